#include "core/progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/plain.h"

enum { MOST_STEPS = 8, MOST_NAME = 160, BAR = 30, LEAST_BAR = 8, USUAL_COLUMNS = 100 };
static const double FIRST_DRAWN = 0.2, REDRAWN = 0.1; /* seconds */

struct step {
    char name[MOST_NAME];
    const char *phase; /* NULL: the step has no phase */
    double began, phase_began;
    _Atomic int64_t total, done;
};

/* The steps in progress. The main thread changes them, and the drawing thread reads them, under the
 * lock. */
static struct {
    bool bar, lines;
    struct step step[MOST_STEPS];
    int depth;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool draws; /* the drawing thread runs */
} told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool line_there; /* a bar is on stderr; the lock of stderr guards this, too */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The terminal ---- */

static bool is_dumb(void)
{
    const char *terminal = getenv("TERM");
    return terminal && strcmp(terminal, "dumb") == 0;
}

/* Return whether colours are wanted; see no-color.org: any value but an empty one forbids them. */
static bool has_colours(void)
{
    const char *none = getenv("NO_COLOR");
    return !none || !*none;
}

bool sl_progress_can_draw(void)
{
    return isatty(STDERR_FILENO) && !is_dumb();
}

static int count_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : USUAL_COLUMNS;
}

/* Return the bytes of a text that fill at most `columns` columns; do not cut within a character of
 * UTF-8. */
static int cut(const char *text, int columns)
{
    int bytes = 0;
    while (text[bytes] && (columns > 0 || (text[bytes] & 0xC0) == 0x80)) {
        columns -= (text[bytes] & 0xC0) != 0x80;
        bytes++;
    }
    return bytes;
}

static void put(FILE *out, char c, int count)
{
    for (; count > 0; count--)
        fputc(c, out);
}

static void put_bar(FILE *out, double share, int width)
{
    const int full = (int)(width * (share < 1.0 ? share : 1.0));
    const bool colours = has_colours();
    fputs("[", out);
    fputs(colours ? "\033[32m" : "", out);
    put(out, '#', full);
    fputs(colours ? "\033[0m" : "", out);
    put(out, '.', width - full);
    fputs("] ", out);
}

void sl_progress_draw(double share, const char *text)
{
    char line[1024];
    const int columns = count_columns() - 1, rest = columns - (int)strlen(text) - 3;
    const int width = share < 0.0 ? 0 : rest < LEAST_BAR ? LEAST_BAR : rest < BAR ? rest : BAR;
    FILE *out = fmemopen(line, sizeof line, "w");
    if (!out)
        return;
    fputc('\r', out);
    if (width > 0)
        put_bar(out, share, width);
    fprintf(out, "%.*s\033[K", cut(text, width > 0 ? columns - width - 3 : columns), text);
    fclose(out);
    line[sizeof line - 1] = '\0';
    flockfile(stderr);
    fputs(line, stderr);
    fflush(stderr);
    line_there = true;
    funlockfile(stderr);
}

void sl_progress_clear(void)
{
    flockfile(stderr);
    if (line_there)
        fputs("\r\033[K", stderr);
    line_there = false;
    funlockfile(stderr);
}

const char *sl_progress_time(double seconds, char text[24])
{
    if (seconds < 100.0)
        snprintf(text, 24, "%.0f s", seconds);
    else if (seconds < 6000.0)
        snprintf(text, 24, "%.0f min", seconds / 60.0);
    else
        snprintf(text, 24, "%.1f h", seconds / 3600.0);
    return text;
}

/* ---- Drawing a step ---- */

/* Draw a step, numbers first: a narrow terminal cuts the names. */
static void draw_step(struct step *step)
{
    char numbers[64], text[MOST_NAME + 128], time[24];
    const int64_t total = atomic_load(&step->total), done = atomic_load(&step->done);
    const double share = total > 0 ? (double)done / (double)total : -1.0;
    const double taken = now() - step->phase_began;
    if (share > 0.0 && share < 1.0)
        snprintf(numbers, sizeof numbers, "%.0f %%  %s left", 100.0 * share,
                 sl_progress_time(taken * (1.0 - share) / share, time));
    else
        snprintf(numbers, sizeof numbers, "%s", sl_progress_time(now() - step->began, time));
    snprintf(text, sizeof text, "%s  %s%s%s", numbers, step->name, step->phase ? ": " : "",
             step->phase ? step->phase : "");
    sl_progress_draw(share, text);
}

static struct timespec in_seconds(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(1e9 * seconds);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Draw the innermost step repeatedly, once the outermost step has lasted FIRST_DRAWN seconds. */
static void *draw_steps(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&told.lock);
    while (told.depth > 0) {
        const struct timespec then = in_seconds(REDRAWN);
        struct step *step = &told.step[told.depth - 1];
        if (now() - told.step[0].began >= FIRST_DRAWN)
            draw_step(step);
        pthread_cond_timedwait(&told.changed, &told.lock, &then);
    }
    pthread_mutex_unlock(&told.lock);
    return NULL;
}

/* ---- Steps ---- */

void sl_progress_tell(bool bar, bool lines)
{
    told.bar = bar && sl_progress_can_draw();
    told.lines = lines;
}

static bool is_silent(void)
{
    return !told.bar && !told.lines;
}

static struct step *innermost(void)
{
    return told.depth > 0 ? &told.step[told.depth - 1] : NULL;
}

/* Number of open steps that are not told, because nothing is told or there is no room. */
static atomic_int untold;

void sl_progress_begin(const char *format, ...)
{
    char text[MOST_NAME];
    va_list arguments;
    if (is_silent() || told.depth == MOST_STEPS) {
        untold++;
        return;
    }
    pthread_mutex_lock(&told.lock);
    struct step *step = &told.step[told.depth++];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sl_plain_copy(step->name, sizeof step->name, text);
    step->phase = NULL;
    step->began = step->phase_began = now();
    atomic_store(&step->total, 0);
    atomic_store(&step->done, 0);
    pthread_mutex_unlock(&told.lock);
    if (told.bar && told.depth == 1)
        told.draws = pthread_create(&told.thread, NULL, draw_steps, NULL) == 0;
}

void sl_progress_end(void)
{
    if (untold > 0) {
        untold--;
        return;
    }
    pthread_mutex_lock(&told.lock);
    const struct step *step = &told.step[--told.depth];
    const double seconds = now() - step->began;
    pthread_cond_signal(&told.changed);
    pthread_mutex_unlock(&told.lock);
    if (told.draws && told.depth == 0) {
        pthread_join(told.thread, NULL);
        told.draws = false;
        sl_progress_clear();
        fflush(stderr);
    }
    if (told.lines)
        sl_note("%*s%s: %.3f s", 2 * told.depth, "", step->name, seconds);
}

void sl_progress_end_all(void)
{
    while (untold > 0 || told.depth > 0)
        sl_progress_end();
}

int sl_progress_end_with(int code)
{
    sl_progress_end();
    return code;
}

void sl_progress_phase(const char *name)
{
    struct step *step = innermost();
    if (!step)
        return;
    pthread_mutex_lock(&told.lock);
    step->phase = name;
    pthread_mutex_unlock(&told.lock);
    sl_progress_count(0);
}

void sl_progress_count(int64_t total)
{
    struct step *step = innermost();
    if (!step)
        return;
    pthread_mutex_lock(&told.lock);
    step->phase_began = now();
    atomic_store(&step->done, 0);
    atomic_store(&step->total, total);
    pthread_mutex_unlock(&told.lock);
}

void sl_progress_add(int64_t parts)
{
    struct step *step = innermost();
    if (step)
        atomic_fetch_add(&step->done, parts);
}

void sl_progress_set(int64_t parts)
{
    struct step *step = innermost();
    if (step)
        atomic_store(&step->done, parts);
}
