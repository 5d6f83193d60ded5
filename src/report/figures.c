#include "report/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/sweep.h"

enum { MOST_POINTS = 1000, MOST_SPANS = 5000 };

/* ---- Curves over epochs ---- */

static double value_of(const json_t *event, const char *key)
{
    return sl_logged_number(event, (const char *const[]){key, NULL});
}

static bool any_has(const struct sl_logged_run *runs, int count, const char *key)
{
    for (int r = 0; r < count; r++) {
        size_t i;
        json_t *event;
        json_array_foreach(runs[r].epochs, i, event)
        {
            if (!isnan(value_of(event, key)))
                return true;
        }
    }
    return false;
}

/* Write a run's epochs and values, thinned out. */
static void write_data(FILE *script, const struct sl_logged_run *run, int r, const char *key)
{
    const size_t size = json_array_size(run->epochs), step = size / MOST_POINTS + 1;
    size_t i, next = 0;
    json_t *event;
    fprintf(script, "$%s%d << EOD\n", key, r);
    json_array_foreach(run->epochs, i, event)
    {
        const double value = value_of(event, key);
        if (isnan(value) || (i < next && i + 1 < size))
            continue;
        next = i + step;
        fprintf(script, "%.0f %.9g\n", value_of(event, "epoch"), value);
    }
    fprintf(script, "EOD\n");
}

/* Set the x axis to the epochs of all runs. */
static void set_epochs(FILE *script, const struct sl_logged_run *runs, int count)
{
    double least = NAN, most = NAN;
    for (int r = 0; r < count; r++) {
        size_t i;
        json_t *event;
        json_array_foreach(runs[r].epochs, i, event)
        {
            least = fmin(value_of(event, "epoch"), least);
            most = fmax(value_of(event, "epoch"), most);
        }
    }
    const double around = most > least ? 0.0 : 1.0;
    fprintf(script, "set xlabel 'epoch'\nset format x '%%.0f'\nset rmargin 4\n");
    fprintf(script, "set xrange [%.0f:%.0f]\n", least - around, most + around);
    sl_plot_x_tics(script, fmax(most - least, 4.0)); /* tics at whole numbers */
}

enum { MOST_KEYS = 8 };

static int count_lines(const struct sl_logged_run *runs, int count, const char *const *keys)
{
    int lines = 0;
    for (int r = 0; r < count; r++)
        for (int k = 0; keys[k]; k++)
            lines += any_has(&runs[r], 1, keys[k]);
    return lines;
}

static void write_curve(FILE *script, const char *key, int run, int colour, int dash, bool first)
{
    fprintf(script,
            "%s$%s%d with linespoints pointtype 7 pointsize 0.25 linewidth %s dashtype %d "
            "linecolor rgb '%s'",
            first ? "" : ", ", key, run, colour == SL_PLOT_GREY ? "0.7" : "1.5", dash,
            sl_plot_colour(colour));
}

/* Write a line for each run and key, and a key of the figure for each line. */
static void write_lines(struct sl_plot *plot, const struct sl_logged_run *runs, int count,
                        const char *const *keys, const char *const *names)
{
    for (int r = 0, drawn = 0; r < count; r++)
        for (int k = 0; keys[k]; k++) {
            char title[512];
            if (!any_has(&runs[r], 1, keys[k]))
                continue;
            snprintf(title, sizeof title, "%s%s%s", names[k], *names[k] && count > 1 ? ", " : "",
                     count > 1 ? runs[r].path : "");
            write_curve(plot->script, keys[k], r, count > 1 ? r : k, count > 1 ? k + 1 : 1,
                        drawn++ == 0);
            sl_plot_key(plot, title, count > 1 ? r : k, count > 1 ? k + 1 : 1);
        }
}

/* Return the colour of a run, the same in all figures of a page. */
static int colour_of(const struct sl_sweep *sweep, int count, int place)
{
    return count > MOST_KEYS ? place : sweep->order[place];
}

/* Write the lines of many runs. The best runs have colours and are drawn last; the other runs are
 * grey. Dashes tell keys apart. */
static void write_sweep(struct sl_plot *plot, const struct sl_logged_run *runs, int count,
                        const char *const *keys, const char *const *names)
{
    struct sl_sweep sweep;
    char others[64];
    int kinds = 0, drawn = 0;
    while (keys[kinds])
        kinds++;
    const int left = MOST_KEYS - (kinds > 1 ? kinds : 0), named = count <= left ? count : left - 1;
    if (sl_sweep_make(&sweep, runs, count) == 0)
        for (int place = count - 1; place >= 0; place--)
            for (int k = 0; k < kinds; k++)
                if (any_has(&runs[sweep.order[place]], 1, keys[k]))
                    write_curve(plot->script, keys[k], sweep.order[place],
                                place < named ? colour_of(&sweep, count, place) : SL_PLOT_GREY,
                                k + 1, drawn++ == 0);
    for (int place = 0; drawn > 0 && place < named; place++)
        sl_plot_key(plot, runs[sweep.order[place]].path, colour_of(&sweep, count, place), 1);
    snprintf(others, sizeof others, "%d other runs", count - named);
    if (named < count)
        sl_plot_key(plot, others, SL_PLOT_GREY, 1);
    for (int k = 0; kinds > 1 && k < kinds; k++)
        sl_plot_key(plot, names[k], SL_PLOT_GREY, k + 1);
    sl_sweep_free(&sweep);
}

/* Write a figure with one line for each run and key. NULL ends the keys. */
static void write_curves(struct sl_plot *plot, const struct sl_logged_run *runs, int count,
                         const char *const *keys, const char *const *names)
{
    for (int r = 0; r < count; r++)
        for (int k = 0; keys[k]; k++)
            write_data(plot->script, &runs[r], r, keys[k]);
    set_epochs(plot->script, runs, count);
    fprintf(plot->script, "plot ");
    if (count_lines(runs, count, keys) <= MOST_KEYS)
        write_lines(plot, runs, count, keys, names);
    else
        write_sweep(plot, runs, count, keys, names);
    fputc('\n', plot->script);
}

static bool shows_loss(const struct sl_logged_run *runs, int count)
{
    return any_has(runs, count, "loss");
}

static void write_loss(struct sl_plot *plot, const struct sl_logged_run *runs, int count)
{
    write_curves(plot, runs, count, (const char *const[]){"loss", NULL}, (const char *const[]){""});
}

static bool shows_accuracy(const struct sl_logged_run *runs, int count)
{
    return any_has(runs, count, "val_accuracy") || any_has(runs, count, "test_accuracy") ||
           any_has(runs, count, "train_accuracy");
}

static void write_accuracy(struct sl_plot *plot, const struct sl_logged_run *runs, int count)
{
    fprintf(plot->script, "set yrange [0:1]\n");
    write_curves(plot, runs, count,
                 (const char *const[]){"val_accuracy", "test_accuracy", "train_accuracy", NULL},
                 (const char *const[]){"validation", "test", "training"});
}

static bool shows_seconds(const struct sl_logged_run *runs, int count)
{
    return any_has(runs, count, "seconds");
}

static void write_seconds(struct sl_plot *plot, const struct sl_logged_run *runs, int count)
{
    fprintf(plot->script, "set ylabel 's'\nset yrange [0:*]\n");
    write_curves(plot, runs, count, (const char *const[]){"seconds", NULL},
                 (const char *const[]){""});
}

/* ---- Bars ---- */

struct bar {
    const char *name;
    double value, second; /* second: a second bar; NaN: none */
};

/* Write horizontal bars, the first one on top. Many bars make a higher figure. */
static void write_bars(struct sl_plot *plot, const struct bar *bars, int count, const char *first,
                       const char *second)
{
    enum { WIDTH = 420, USUAL = 14 };
    double longest = 0.0;
    if (count > USUAL)
        sl_plot_size(plot->script, WIDTH, 70 + 15 * count);
    fprintf(plot->script, "$bars << EOD\n");
    for (int b = 0; b < count; b++) {
        longest = fmax(longest, fmax(bars[b].value, bars[b].second));
        fprintf(plot->script, "%d %.9g %.9g ", count - b, bars[b].value,
                isnan(bars[b].second) ? 0.0 : bars[b].second);
        sl_plot_word(plot->script, bars[b].name);
        fputc('\n', plot->script);
    }
    fprintf(plot->script,
            "EOD\nset style fill solid 1 noborder\nset yrange [0.4:%d.6]\nset xrange [0:*]\n"
            "unset grid\nset grid xtics linecolor rgb '#808080' linewidth 0.3\n",
            count);
    sl_plot_x_tics(plot->script, longest);
    if (second)
        fprintf(
            plot->script,
            "plot $bars using 2:($1+0.2):(0):2:($1+0.03):($1+0.37):yticlabels(4) with boxxyerror "
            "linecolor rgb '%s', $bars using 3:($1-0.2):(0):3:($1-0.37):($1-0.03) "
            "with boxxyerror linecolor rgb '%s'\n",
            sl_plot_colour(0), sl_plot_colour(1));
    else
        fprintf(plot->script,
                "plot $bars using 2:1:(0):2:($1-0.35):($1+0.35):yticlabels(4) with boxxyerror "
                "linecolor rgb '%s'\n",
                sl_plot_colour(0));
    sl_plot_key(plot, first, 0, 0);
    if (second)
        sl_plot_key(plot, second, 1, 0);
}

static const json_t *member(const json_t *object, const char *first, const char *second)
{
    return json_object_get(json_object_get(object, first), second);
}

static bool shows_operations(const struct sl_logged_run *run, int count)
{
    (void)count;
    return json_array_size(member(run->end, "profile", "operations")) > 0;
}

static void write_operations(struct sl_plot *plot, const struct sl_logged_run *run, int count)
{
    enum { MOST = 14 };
    struct bar bars[MOST];
    const json_t *operations = member(run->end, "profile", "operations");
    const double epochs = value_of(json_object_get(run->end, "profile"), "epochs");
    int used = 0;
    (void)count;
    for (size_t i = 0; i < json_array_size(operations) && used < MOST; i++) {
        const json_t *operation = json_array_get(operations, i);
        const char *name = json_string_value(json_object_get(operation, "name"));
        bars[used++] = (struct bar){name ? name : "?",
                                    1e3 * value_of(operation, "seconds") / fmax(epochs, 1.0), NAN};
    }
    fprintf(plot->script, "set xlabel 'ms of an epoch'\n");
    write_bars(plot, bars, used, "tasks on rank 0", NULL);
}

/* Return the mean of a list over ranks. */
static double rank_mean(const struct sl_logged_run *run, const char *key)
{
    return sl_logged_mean(run->end, (const char *const[]){"time_per_epoch", key, NULL});
}

static bool shows_times(const struct sl_logged_run *run, int count)
{
    (void)count;
    return !isnan(rank_mean(run, "compute_seconds"));
}

static void write_times(struct sl_plot *plot, const struct sl_logged_run *run, int count)
{
    const struct bar bars[] = {
        {"computing", 1e3 * rank_mean(run, "compute_seconds"), NAN},
        {"messages", 1e3 * rank_mean(run, "communication_seconds"), NAN},
        {"hidden", 1e3 * rank_mean(run, "hidden_seconds"), NAN},
        {"waiting", 1e3 * rank_mean(run, "waiting_seconds"), NAN},
    };
    (void)count;
    fprintf(plot->script, "set xlabel 'ms of an epoch'\n");
    write_bars(plot, bars, 4, "mean over ranks", NULL);
}

static bool shows_memory(const struct sl_logged_run *run, int count)
{
    (void)count;
    return json_object_size(json_object_get(run->start, "planned_bytes")) > 0;
}

static void write_memory(struct sl_plot *plot, const struct sl_logged_run *run, int count)
{
    enum { MOST = 16 };
    struct bar bars[MOST];
    const char *name;
    json_t *value;
    int used = 0;
    (void)count;
    json_object_foreach(json_object_get(run->start, "planned_bytes"), name, value)
    {
        if (used < MOST - 2 && json_is_number(value) && json_number_value(value) > 0.0)
            bars[used++] = (struct bar){name, json_number_value(value) / 1048576.0, NAN};
    }
    if (run->end) {
        bars[used++] =
            (struct bar){"taken: tiles", value_of(run->end, "tile_bytes") / 1048576.0, NAN};
        bars[used++] = (struct bar){"taken: process",
                                    value_of(run->end, "peak_memory_bytes") / 1048576.0, NAN};
    }
    fprintf(plot->script, "set xlabel 'MiB on a rank'\n");
    write_bars(plot, bars, used, "planned, and taken", NULL);
}

static bool shows_traffic(const struct sl_logged_run *run, int count)
{
    static const char *const keys[] = {"traffic_per_epoch", "bytes_received", NULL};
    (void)count;
    return sl_logged_sum(run->end, keys) > 0.0;
}

static double megabytes(const json_t *bytes, size_t rank)
{
    const json_t *value = json_array_get(bytes, rank);
    return json_is_number(value) ? json_number_value(value) / 1e6 : NAN;
}

/* Write the bars of traffic. If the last epochs were exact, each rank has a second bar. */
static void write_traffic(struct sl_plot *plot, const struct sl_logged_run *run, int count)
{
    enum { MOST = 32 };
    struct bar bars[2 * MOST];
    char names[2 * MOST][32];
    const json_t *counted = member(run->end, "traffic_per_epoch", "bytes_received"),
                 *exact = member(run->end, "exact_traffic_per_epoch", "bytes_received"),
                 *planned = member(json_object_get(run->start, "prediction"), "traffic_per_epoch",
                                   "bytes_received");
    int used = 0;
    (void)count;
    for (size_t r = 0; r < json_array_size(counted) && r < MOST; r++) {
        snprintf(names[used], sizeof names[used], "rank %zu", r);
        bars[used] = (struct bar){names[used], megabytes(counted, r), megabytes(planned, r)};
        used++;
        if (!json_array_get(exact, r))
            continue;
        snprintf(names[used], sizeof names[used], "rank %zu, exact", r);
        bars[used] = (struct bar){names[used], megabytes(exact, r), NAN};
        used++;
    }
    fprintf(plot->script, "set xlabel 'MB received in an epoch'\n");
    write_bars(plot, bars, used, "counted", planned ? "predicted" : NULL);
}

/* ---- An epoch over time ---- */

struct span {
    int track, kind;
    double start, end; /* ms */
};

enum { MOST_TRACKS = 64, TRACK_NAME = 64 };

struct gantt {
    struct span *spans; // (count): shown tasks and messages
    int count, tracks, kinds;
    char track[MOST_TRACKS][TRACK_NAME];
    const char *name[24];
    double epoch, start, end; /* the first epoch; start and end of its tasks in µs */
};

static bool is_of(const json_t *event, const char *category)
{
    const char *text = json_string_value(json_object_get(event, "cat"));
    return text && strcmp(text, category) == 0;
}

static double epoch_of(const json_t *event)
{
    return is_of(event, "task")
               ? sl_logged_number(event, (const char *const[]){"args", "epoch", NULL})
               : NAN;
}

/* Find the first traced epoch, its start and its end. */
static void find_epoch(const json_t *events, struct gantt *g)
{
    size_t i;
    json_t *event;
    g->epoch = g->start = g->end = NAN;
    json_array_foreach((json_t *)events, i, event)
    {
        const double epoch = epoch_of(event), start = value_of(event, "ts");
        const double end = start + value_of(event, "dur");
        g->epoch = isnan(g->epoch) ? epoch : g->epoch;
        if (isnan(epoch) || epoch != g->epoch)
            continue;
        g->start = fmin(start, g->start);
        g->end = fmax(end, g->end);
    }
}

/* Return the names of threads, by "process/thread". */
static json_t *list_names(const json_t *events)
{
    json_t *names = json_object(), *event;
    size_t i;
    char key[64];
    json_array_foreach((json_t *)events, i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        if (!name || strcmp(name, "thread_name") != 0)
            continue;
        snprintf(key, sizeof key, "%.0f/%.0f", value_of(event, "pid"), value_of(event, "tid"));
        json_object_set(names, key, json_object_get(json_object_get(event, "args"), "name"));
    }
    return names;
}

/* Name the track of a message or task. Messages that overlap on a link share a track, though the
 * trace has a thread for each: "to rank 1 (2)". */
static void name_track(const json_t *names, const json_t *event, char name[TRACK_NAME])
{
    char key[64];
    snprintf(key, sizeof key, "%.0f/%.0f", value_of(event, "pid"), value_of(event, "tid"));
    const char *thread = json_string_value(json_object_get(names, key));
    snprintf(name, TRACK_NAME, "rank %.0f, %.*s", value_of(event, "pid"),
             thread ? (int)strcspn(thread, "(") : 1, thread ? thread : "?");
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--)
        name[end - 1] = '\0';
}

static int index_of_track(struct gantt *g, const char *name)
{
    int t = 0;
    while (t < g->tracks && strcmp(g->track[t], name) != 0)
        t++;
    if (t == g->tracks && t < MOST_TRACKS)
        snprintf(g->track[g->tracks++], TRACK_NAME, "%s", name);
    return t < g->tracks ? t : -1;
}

/* Return the index of a kind. If all are in use, the last one takes the rest. */
static int index_of_kind(struct gantt *g, const char *name)
{
    enum { MOST = sizeof g->name / sizeof *g->name };
    int k = 0;
    while (k < g->kinds && strcmp(g->name[k], name) != 0)
        k++;
    if (k == g->kinds && k < MOST)
        g->name[g->kinds++] = k < MOST - 1 ? name : "others";
    return k < MOST ? k : MOST - 1;
}

/* Whether an event is a task of the epoch, or a message that began during it. */
static bool is_shown(const struct gantt *g, const json_t *event)
{
    const double start = value_of(event, "ts");
    return epoch_of(event) == g->epoch ||
           (is_of(event, "message") && json_object_get(event, "dur") && start >= g->start &&
            start <= g->end);
}

static void take_spans(const json_t *trace, struct gantt *g)
{
    const json_t *events = json_object_get(trace, "traceEvents");
    json_t *names = list_names(events), *event;
    size_t i;
    find_epoch(events, g);
    json_array_foreach((json_t *)events, i, event)
    {
        char track[TRACK_NAME];
        const char *name = json_string_value(json_object_get(event, "name"));
        if (!name || g->count == MOST_SPANS || !is_shown(g, event))
            continue;
        name_track(names, event, track);
        const double start = value_of(event, "ts") - g->start;
        const int t = index_of_track(g, track);
        if (t >= 0)
            g->spans[g->count++] = (struct span){t, index_of_kind(g, name), 1e-3 * start,
                                                 1e-3 * (start + value_of(event, "dur"))};
    }
    json_decref(names);
}

static bool shows_gantt(const struct sl_logged_run *run, int count)
{
    (void)count;
    return json_array_size(json_object_get(run->trace, "traceEvents")) > 0;
}

static void write_gantt(struct sl_plot *plot, const struct sl_logged_run *run, int count)
{
    struct gantt g = {.spans = calloc(MOST_SPANS, sizeof *g.spans)};
    (void)count;
    if (g.spans)
        take_spans(run->trace, &g);
    for (int k = 0; k < g.kinds; k++) {
        fprintf(plot->script, "$kind%d << EOD\n", k);
        for (int s = 0; s < g.count; s++)
            if (g.spans[s].kind == k)
                fprintf(plot->script, "%.6f %.6f %d\n", g.spans[s].start, g.spans[s].end,
                        g.tracks - g.spans[s].track);
        fprintf(plot->script, "EOD\n");
    }
    sl_plot_size(plot->script, 1100, 90 + 24 * g.tracks);
    fprintf(plot->script,
            "set xlabel 'ms'\nset xrange [0:*]\nset yrange [0.4:%d.6]\nunset grid\n"
            "set style fill solid 1 noborder\nset ytics (",
            g.tracks);
    for (int t = 0; t < g.tracks; t++) {
        fputs(t ? ", " : "", plot->script);
        sl_plot_word(plot->script, g.track[t]);
        fprintf(plot->script, " %d", g.tracks - t);
    }
    fprintf(plot->script, ")\nplot ");
    for (int k = 0; k < g.kinds; k++) {
        fprintf(plot->script,
                "%s$kind%d using 1:3:1:2:($3-0.4):($3+0.4) with boxxyerror linecolor rgb '%s'",
                k ? ", " : "", k, sl_plot_colour(k));
        sl_plot_key(plot, g.name[k], k, 0);
    }
    fprintf(plot->script, g.kinds ? "\n" : "0\n");
    free(g.spans);
}

const struct sl_figure sl_figures[] = {
    {"Loss", "The training loss of each epoch.", false, false, shows_loss, write_loss},
    {"Accuracy", "The accuracy of evaluated epochs, on vertices of each split.", false, false,
     shows_accuracy, write_accuracy},
    {"Seconds of an epoch", "How long each epoch took.", false, false, shows_seconds,
     write_seconds},
    {"Time of an epoch",
     "Computing, messages on their way, the part of them that computing hid, and waiting.", true,
     false, shows_times, write_times},
    {"Operations", "The time of the workers by operation: the 14 longest.", true, false,
     shows_operations, write_operations},
    {"An epoch over time",
     "A row for each worker and link, a box for each task and message: at most 64 rows, 5,000 "
     "boxes.",
     true, true, shows_gantt, write_gantt},
    {"Memory", "What was planned, by kind, and what was taken.", true, false, shows_memory,
     write_memory},
    {"Traffic",
     "What each rank received in a training epoch, beside the prediction, and in an exact epoch "
     "where the last ones are exact: at most 32 ranks.",
     true, false, shows_traffic, write_traffic},
    {NULL, NULL, false, false, NULL, NULL},
};
