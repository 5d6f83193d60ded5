#include "report/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/options.h"
#include "core/plain.h"
#include "core/program.h"

const char *sl_plot_colour(int k)
{
    static const char *const colours[] = {
        "#0072b2", "#d55e00", "#009e73", "#c0609a", "#b8860b", "#6a7fdb", "#a0522d", "#708090",
        "#2e8b57", "#cd5c5c", "#8a2be2", "#808000", "#20949a", "#d2691e", "#c71585", "#5f8f3f"};
    return k == SL_PLOT_GREY ? "#909090" : colours[k % (int)(sizeof colours / sizeof *colours)];
}

void sl_plot_key(struct sl_plot *plot, const char *name, int k, int dash)
{
    if (*name)
        json_array_append_new(plot->keys, json_pack("{s:o, s:s, s:i}", "name", sl_json_text(name),
                                                    "colour", sl_plot_colour(k), "dash", dash));
}

/* Print a word. Inside double quotes, gnuplot runs text in backquotes, and interprets backslashes.
 */
void sl_plot_word(FILE *script, const char *text)
{
    char piece[SL_PLAIN_PIECE];
    fputc('"', script);
    for (size_t left = strlen(text), taken; left > 0; left -= taken, text += taken) {
        taken = sl_plain_next(text, left, piece);
        if (!strchr("\"\\`", *piece)) /* a control character begins with a backslash, too */
            fputs(piece, script);
    }
    fputc('"', script);
}

void sl_plot_size(FILE *script, int width, int height)
{
    fprintf(script, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13'\n", width,
            height);
}

void sl_plot_x_tics(FILE *script, double length)
{
    enum { MOST = 4 };
    static const double steps[] = {1.0, 2.0, 5.0, 10.0};
    if (!(length > 0.0) || isinf(length))
        return;
    const double unit = pow(10.0, floor(log10(length / MOST)));
    int k = 0;
    while (k < 3 && steps[k] * unit * MOST < length)
        k++;
    fprintf(script, "set xtics %.9g\n", steps[k] * unit);
}

/* Begin a script. Lines and text without colours get the page's. */
static void begin(FILE *script, int width, int height)
{
    sl_plot_size(script, width, height);
    fputs("set border 3 linecolor rgb '#808080'\nset tics nomirror out\n"
          "set grid ytics linecolor rgb '#808080' linewidth 0.3\n"
          "unset key\nset encoding utf8\n",
          script);
}

/* Cut the <svg> element out of a file: an element inside a page has no XML declaration. */
static int cut(char *text, char **svg)
{
    static const char end[] = "</svg>";
    const char *start = strstr(text, "<svg"), *stop = start ? strstr(start, end) : NULL;
    *svg = stop ? strndup(start, (size_t)(stop - start) + sizeof end - 1) : NULL;
    return *svg ? 0 : sl_error(SL_ERR_SYSTEM, "gnuplot drew nothing: %.200s", text);
}

int sl_plot_probe(void)
{
    return sl_program_probe("gnuplot", "draws the figures of a report", "gnuplot-nox");
}

int sl_plot_draw(void (*write)(struct sl_plot *plot, const void *context), const void *context,
                 int width, int height, char **svg, json_t **keys)
{
    char path[64] = "/tmp/starling-plot-XXXXXX", *text = NULL;
    const int descriptor = mkstemp(path);
    FILE *script = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    *svg = NULL;
    *keys = NULL;
    if (!script) {
        const int reason = errno;
        if (descriptor >= 0) {
            close(descriptor);
            unlink(path);
        }
        return sl_error(SL_ERR_SYSTEM, "%s: %s (expected room for a script of gnuplot)", path,
                        strerror(reason));
    }
    struct sl_plot plot = {script, *keys = json_array()};
    begin(script, width, height);
    write(&plot, context);
    int code = ferror(script) ? SL_ERR_SYSTEM : 0;
    if (fclose(script) || code)
        code = sl_error(SL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (!code)
        code = sl_plot_probe();
    if (!code)
        /* -d ignores the user's settings */
        code = sl_program_run((char *[]){"gnuplot", "-d", path, NULL}, 0, &text);
    if (!code)
        code = cut(text, svg);
    free(text);
    unlink(path);
    return code;
}
