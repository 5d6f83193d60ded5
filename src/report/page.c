#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/plain.h"
#include "log/report.h"
#include "report/class_scores.h"
#include "report/figures.h"
#include "report/plot.h"
#include "report/seeds.h"
#include "report/svg.h"
#include "report/sweep.h"

static const char style[] =
    ":root{color-scheme:light dark;--line:#8886}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1400px;padding:0 1rem 3rem;"
    "background:Canvas;color:CanvasText;overflow-wrap:anywhere}"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem;border-bottom:1px solid var(--line)}"
    "h3{font-size:1rem;margin:0}"
    ".figures{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem)"
    ",1fr))}"
    "figure{margin:0;min-width:0}figcaption{font-size:.875rem}figure.all{grid-column:1/-1}"
    "svg{width:100%;height:auto;display:block}svg g{color:inherit}svg text{fill:currentColor}"
    "figure.all svg{min-width:56rem}"
    ".wide{overflow-x:auto}:focus-visible{outline:2px solid}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.875rem}"
    ".keys{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.3rem 0 0;padding:0;"
    "font-size:.875rem}"
    ".keys span{display:inline-block;width:1.6rem;margin-right:.4rem;vertical-align:middle;"
    "border-top:2px solid}"
    ".keys .area{border-top-width:.7rem}.keys .dashed{border-top-style:dashed}"
    ".keys .dotted{border-top-style:dotted}"
    "caption{text-align:left;padding:.4rem .6rem}"
    "th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--line)}"
    "td{white-space:nowrap}"
    "th:first-child{text-align:left}thead th{border-bottom-width:2px}"
    ".configuration td{white-space:normal}"
    ".best th,.best td{font-weight:600}"
    ".confusion td{background:color-mix(in srgb,#0072b2 var(--share),transparent)}"
    "details{margin:.5rem 0}summary{cursor:pointer}"
    ".skip{position:absolute;left:-99rem}.skip:focus{left:1rem}";

static void put_text(FILE *out, const char *text)
{
    char piece[SL_PLAIN_PIECE];
    for (size_t left = text ? strlen(text) : 0, taken; left > 0; left -= taken, text += taken) {
        taken = sl_plain_next(text, left, piece);
        switch (*piece) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputs(piece, out);
        }
    }
}

/* Begin a part of the page that scrolls on narrow screens, also by keyboard; "</div>" ends it.
 * `run` tells regions of several runs apart. */
static void begin_scrolling(FILE *out, const char *label, const char *run)
{
    fprintf(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s", label);
    if (run)
        fputs(", ", out);
    put_text(out, run);
    fputs("\">", out);
}

/* ---- Rows of tables ---- */

static void put_value(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        put_text(out, json_string_value(value));
    } else if (json_is_integer(value)) {
        fprintf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        fprintf(out, "%.6g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else if (json_is_array(value) && json_array_size(value) <= 64) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            fputs(i ? ", " : "", out);
            put_value(out, json_array_get(value, i));
        }
    } else {
        fputs("–", out);
    }
}

static void put_number(FILE *out, double number)
{
    if (isnan(number))
        fputs("–", out);
    else
        fprintf(out, "%.6g", number);
}

/* A row of the overview, and the source of its value: the event `start` or `end`, perhaps inside
 * `group`, or a function of the log. */
struct row {
    const char *title;
    bool of_end;
    const char *group, *key;
    double (*number)(const struct sl_logged_run *run);
};

static const json_t *find_value(const struct sl_logged_run *run, const struct row *row)
{
    const json_t *event = row->of_end ? run->end : run->start;
    return json_object_get(row->group ? json_object_get(event, row->group) : event, row->key);
}

static double megabytes_of(const struct sl_logged_run *run, const char *traffic)
{
    return sl_logged_sum(run->end, (const char *const[]){traffic, "bytes_received", NULL}) / 1e6;
}

static double received(const struct sl_logged_run *run)
{
    return megabytes_of(run, "traffic_per_epoch");
}

static double received_exactly(const struct sl_logged_run *run)
{
    return megabytes_of(run, "exact_traffic_per_epoch");
}

static void put_overview(FILE *out, const struct sl_logged_run *runs, int count)
{
    static const struct row rows[] = {
        {"dataset", false, "graph", "name", NULL},
        {"vertices", false, "graph", "vertices", NULL},
        {"adjacency entries", false, "graph", "adjacency_entries", NULL},
        {"model", false, "configuration", "model", NULL},
        {"layers", false, "configuration", "layers", NULL},
        {"hidden", false, "configuration", "hidden", NULL},
        {"distribution", false, "configuration", "distribution", NULL},
        {"ranks", false, "machine", "ranks", NULL},
        {"workers of a rank", false, "machine", "workers_per_rank", NULL},
        {"GPUs of a rank", false, "machine", "gpus_per_rank", NULL},
        {"scheduler", false, "machine", "scheduler", NULL},
        {"epochs", true, NULL, "epochs", NULL},
        {"weights of epoch", true, NULL, NULL, sl_logged_run_kept},
        {"loss", true, NULL, NULL, sl_logged_run_loss},
        {"training accuracy", true, NULL, "train_accuracy", NULL},
        {"validation accuracy", true, NULL, "val_accuracy", NULL},
        {"test accuracy", true, NULL, "test_accuracy", NULL},
        {"seconds per epoch (median)", true, NULL, "epoch_seconds_median", NULL},
        {"seconds", true, NULL, "seconds", NULL},
        {"tasks per epoch", true, NULL, "tasks_per_epoch", NULL},
        {"peak memory of a rank, bytes", true, NULL, "peak_memory_bytes", NULL},
        {"MB that all ranks receive in an epoch", true, NULL, NULL, received},
        {"MB that all ranks receive in an exact epoch", true, NULL, NULL, received_exactly},
    };
    begin_scrolling(out, "Runs", NULL);
    fputs("<table id=\"runs\"><thead><tr><th scope=\"col\">run</th>", out);
    for (int r = 0; r < count; r++) {
        fputs("<th scope=\"col\">", out);
        put_text(out, runs[r].path);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fprintf(out, "<tr><th scope=\"row\">%s</th>", rows[i].title);
        for (int r = 0; r < count; r++) {
            fputs("<td>", out);
            if (rows[i].number)
                put_number(out, rows[i].number(&runs[r]));
            else
                put_value(out, find_value(&runs[r], &rows[i]));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* ---- Runs side by side ---- */

static void put_head(FILE *out, const struct sl_sweep *sweep)
{
    static const char *const splits[] = {"validation", "test"};
    fputs("<table id=\"sweep\"><caption>", out);
    if (sweep->best > 0)
        fprintf(out, "Options that differ, the best validation %s first", sweep->metric);
    else
        fputs("Options that differ; runs on other graphs, or with other splits or metrics, have no "
              "best "
              "one",
              out);
    fputs("</caption><thead><tr><th scope=\"col\">run</th>", out);
    for (size_t o = 0; o < json_array_size(sweep->options); o++) {
        fputs("<th scope=\"col\">", out);
        put_text(out, json_string_value(json_array_get(sweep->options, o)));
        fputs("</th>", out);
    }
    fputs("<th scope=\"col\">weights of epoch</th><th scope=\"col\">loss</th>", out);
    for (size_t s = 0; s < sizeof splits / sizeof *splits; s++)
        fprintf(out, "<th scope=\"col\">%s %s</th>", splits[s], sweep->metric);
    fputs("<th scope=\"col\">seconds</th></tr></thead><tbody>\n", out);
}

static void put_cell(FILE *out, double number)
{
    fputs("<td>", out);
    put_number(out, number);
    fputs("</td>", out);
}

static void put_compared(FILE *out, const struct sl_sweep *sweep, const struct sl_logged_run *run,
                         bool best)
{
    const json_t *configuration = json_object_get(run->start, "configuration");
    char key[64];
    fprintf(out, "<tr%s><th scope=\"row\">", best ? " class=\"best\"" : "");
    put_text(out, run->path);
    fprintf(out, "%s</th>", best ? " (best)" : "");
    for (size_t o = 0; o < json_array_size(sweep->options); o++) {
        fputs("<td>", out);
        put_value(out, json_object_get(configuration,
                                       json_string_value(json_array_get(sweep->options, o))));
        fputs("</td>", out);
    }
    put_cell(out, sl_logged_run_kept(run));
    put_cell(out, sl_logged_run_loss(run));
    for (int s = 0; s < 2; s++)
        put_cell(out,
                 sl_logged_number(
                     run->end, (const char *const[]){
                                   sl_report_key(key, s ? "test" : "val", sweep->metric), NULL}));
    put_cell(out, sl_logged_number(run->end, (const char *const[]){"seconds", NULL}));
    fputs("</tr>\n", out);
}

/* Put a row for runs that differ in seeds alone. */
static void put_seeds(FILE *out, const struct sl_sweep *sweep, const struct sl_logged_run *run,
                      const struct sl_seeds *seeds)
{
    const json_t *configuration = json_object_get(run->start, "configuration");
    fprintf(out, "<tr><th scope=\"row\">%d</th>", seeds->runs);
    for (size_t o = 0; o < json_array_size(sweep->options); o++) {
        const char *name = json_string_value(json_array_get(sweep->options, o));
        if (sl_seeds_is(name))
            continue;
        fputs("<td>", out);
        put_value(out, json_object_get(configuration, name));
        fputs("</td>", out);
    }
    for (int s = 0; s < 2; s++)
        fprintf(out, "<td>%.4f ± %.4f</td>", seeds->mean[s], seeds->dev[s]);
    fputs("</tr>\n", out);
}

static void begin_seeds(FILE *out, const struct sl_sweep *sweep)
{
    begin_scrolling(out, "Means over seeds", NULL);
    fputs("<table id=\"seeds\"><caption>Runs that differ in seeds alone: mean ± deviation</caption>"
          "<thead><tr><th scope=\"col\">runs</th>",
          out);
    for (size_t o = 0; o < json_array_size(sweep->options); o++) {
        const char *name = json_string_value(json_array_get(sweep->options, o));
        if (sl_seeds_is(name))
            continue;
        fputs("<th scope=\"col\">", out);
        put_text(out, name);
        fputs("</th>", out);
    }
    fprintf(
        out,
        "<th scope=\"col\">validation %s</th><th scope=\"col\">test %s</th></tr></thead><tbody>\n",
        sweep->metric, sweep->metric);
}

/* Put the means of runs that differ in seeds alone, if there are any. */
static void put_means(FILE *out, const struct sl_sweep *sweep, const struct sl_logged_run *runs,
                      int count)
{
    bool begun = false;
    for (int r = 0; r < count; r++) {
        const struct sl_seeds seeds = sl_seeds_of(sweep, runs, count, r);
        if (seeds.runs < 2)
            continue;
        if (!begun)
            begin_seeds(out, sweep);
        begun = true;
        put_seeds(out, sweep, &runs[r], &seeds);
    }
    if (begun)
        fputs("</tbody></table></div>\n", out);
}

static int put_sweep(FILE *out, const struct sl_logged_run *runs, int count)
{
    struct sl_sweep sweep;
    const int code = sl_sweep_make(&sweep, runs, count);
    if (!code) {
        begin_scrolling(out, "Options that differ", NULL);
        put_head(out, &sweep);
        for (int place = 0; place < count; place++)
            put_compared(out, &sweep, &runs[sweep.order[place]], place < sweep.best);
        fputs("</tbody></table></div>\n", out);
        put_means(out, &sweep, runs, count);
    }
    sl_sweep_free(&sweep);
    return code;
}

/* ---- Figures ---- */

struct drawing {
    const struct sl_figure *figure;
    const struct sl_logged_run *runs;
    int count;
};

static void write_figure(struct sl_plot *plot, const void *context)
{
    const struct drawing *d = context;
    d->figure->write(plot, d->runs, d->count);
}

/* Print the keys of a figure: its colours and their meanings. */
static void put_keys(FILE *out, const json_t *keys)
{
    static const char *const forms[] = {"area", "solid", "dashed", "dotted"};
    if (json_array_size(keys) == 0)
        return;
    fputs("<ul class=\"keys\">", out);
    for (size_t k = 0; k < json_array_size(keys); k++) {
        const json_t *key = json_array_get(keys, k);
        fprintf(out, "<li><span class=\"%s\" style=\"color:%s\"></span>",
                forms[json_integer_value(json_object_get(key, "dash")) % 4],
                json_string_value(json_object_get(key, "colour")));
        put_text(out, json_string_value(json_object_get(key, "name")));
        fputs("</li>", out);
    }
    fputs("</ul>\n", out);
}

static void put_drawing(FILE *out, const struct drawing *d, const char *svg, const json_t *keys,
                        int number)
{
    const struct sl_figure *figure = d->figure;
    fprintf(out, "<figure%s><h3>%s</h3>", figure->wide ? " class=\"all\"" : "", figure->title);
    put_keys(out, keys);
    if (figure->wide)
        begin_scrolling(out, figure->title, d->runs->path);
    fprintf(out, "<div role=\"img\" aria-label=\"%s. %s\">", figure->title, figure->text);
    sl_svg_print(out, svg, number);
    fprintf(out, "</div>%s<figcaption>%s</figcaption></figure>\n", figure->wide ? "</div>" : "",
            figure->text);
}

/* Print a figure. *number counts the figures of the page. */
static int put_figure(FILE *out, const struct sl_figure *figure, const struct sl_logged_run *runs,
                      int count, int *number)
{
    enum { WIDTH = 420, HEIGHT = 280, WIDE = 1100, WIDE_HEIGHT = 340 };
    const struct drawing drawing = {figure, runs, count};
    char *svg = NULL;
    json_t *keys = NULL;
    if (!figure->shows(runs, count))
        return 0;
    const int code = sl_plot_draw(write_figure, &drawing, figure->wide ? WIDE : WIDTH,
                                  figure->wide ? WIDE_HEIGHT : HEIGHT, &svg, &keys);
    if (!code)
        put_drawing(out, &drawing, svg, keys, ++*number);
    json_decref(keys);
    free(svg);
    return code;
}

static int put_figures(FILE *out, const struct sl_logged_run *runs, int count, bool of_each,
                       int *number)
{
    int code = 0;
    fputs("<div class=\"figures\">\n", out);
    for (const struct sl_figure *f = sl_figures; !code && f->title; f++)
        if (f->of_each == of_each)
            code = put_figure(out, f, runs, count, number);
    fputs("</div>\n", out);
    return code;
}

/* ---- Classes ---- */

/* Print a class: "3", or "3 Theory" if the classes have names (not NULL). */
static void put_class(FILE *out, const json_t *names, size_t c)
{
    fprintf(out, "<tr><th scope=\"row\">%zu", c);
    if (json_array_get(names, c)) {
        fputc(' ', out);
        put_text(out, json_string_value(json_array_get(names, c)));
    }
    fputs("</th>", out);
}

/* Print the head of a column: the class number only. abbr is the text of screen readers. */
static void put_column(FILE *out, const json_t *names, size_t c)
{
    fputs("<th scope=\"col\"", out);
    if (json_array_get(names, c)) {
        fputs(" abbr=\"", out);
        put_text(out, json_string_value(json_array_get(names, c)));
        fputc('"', out);
    }
    fprintf(out, ">%zu</th>", c);
}

static void put_confusion(FILE *out, const json_t *rows, const json_t *names, const char *run)
{
    const size_t classes = json_array_size(rows);
    begin_scrolling(out, "Confusion matrix", run);
    fputs("<table class=\"confusion\"><caption>Test vertices by class (rows) and predicted class "
          "(columns)</caption><thead><tr><th scope=\"col\">class</th>",
          out);
    for (size_t j = 0; j < classes; j++)
        put_column(out, names, j);
    fputs("</tr></thead><tbody>\n", out);
    for (size_t c = 0; c < classes; c++) {
        const double sum = fmax(sl_class_scores_of(rows, c).vertices, 1.0);
        put_class(out, names, c);
        for (size_t j = 0; j < classes; j++)
            fprintf(out, "<td style=\"--share:%.0f%%\">%.0f</td>",
                    60.0 * sl_confusion_count(rows, c, j) / sum, sl_confusion_count(rows, c, j));
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_score(FILE *out, double score)
{
    if (isnan(score))
        fputs("<td>–</td>", out);
    else
        fprintf(out, "<td>%.4f</td>", score);
}

static void put_classes(FILE *out, const json_t *rows, const json_t *names, const char *run)
{
    begin_scrolling(out, "Scores of classes", run);
    fputs(
        "<table class=\"classes\"><caption>Scores of each class, test vertices</caption><thead><tr>"
        "<th scope=\"col\">class</th><th scope=\"col\">vertices</th><th scope=\"col\">precision"
        "</th><th scope=\"col\">recall</th><th scope=\"col\">F1</th></tr></thead><tbody>\n",
        out);
    for (size_t c = 0; c < json_array_size(rows); c++) {
        const struct sl_class_scores scores = sl_class_scores_of(rows, c);
        put_class(out, names, c);
        fprintf(out, "<td>%.0f</td>", scores.vertices);
        put_score(out, scores.precision);
        put_score(out, scores.recall);
        put_score(out, scores.f1);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* ---- Members of the start event ---- */

static void put_members(FILE *out, const char *title, const json_t *object, const char *run)
{
    const char *name;
    json_t *value;
    if (json_object_size(object) == 0)
        return;
    fprintf(out, "<details><summary>%s</summary>", title);
    begin_scrolling(out, title, run);
    fputs("<table class=\"configuration\"><tbody>\n", out);
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_null(value))
            continue;
        fputs("<tr><th scope=\"row\">", out);
        put_text(out, name);
        fputs("</th><td>", out);
        put_value(out, value);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

static int put_run(FILE *out, const struct sl_logged_run *run, int *number)
{
    const json_t *rows = json_object_get(json_object_get(run->end, "confusion"), "test");
    const json_t *names = json_object_get(json_object_get(run->start, "graph"), "class_names");
    fputs("<h2>", out);
    put_text(out, run->path);
    fputs("</h2>\n", out);
    if (!run->end)
        fputs("<p>The log has no event <code>end</code>: the run was killed, or goes on.</p>\n",
              out);
    const int code = put_figures(out, run, 1, true, number);
    if (json_array_size(rows) > 0) {
        put_confusion(out, rows, names, run->path);
        put_classes(out, rows, names, run->path);
    }
    put_members(out, "Machine", json_object_get(run->start, "machine"), run->path);
    put_members(out, "Versions", json_object_get(run->start, "versions"), run->path);
    put_members(out, "Configuration", json_object_get(run->start, "configuration"), run->path);
    return code;
}

int sl_page_write(const struct sl_logged_run *runs, int count, const char *path)
{
    struct sl_new_file out;
    const long failures = sl_json_failures();
    int number = 0;
    int code = sl_file_create(&out, path);
    if (code)
        return code;
    fprintf(out.file,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
            "<link rel=\"icon\" href=\"data:,\"><title>Starling: %d run%s</title><style>%s</style>"
            "</head><body><header><a class=\"skip\" href=\"#runs\">To the table of "
            "runs</a>\n<h1>Starling: "
            "%d run%s</h1></header>\n<main>\n",
            count, count > 1 ? "s" : "", style, count, count > 1 ? "s" : "");
    if (count > 1)
        code = put_sweep(out.file, runs, count);
    put_overview(out.file, runs, count);
    fputs("<h2>Epochs</h2>\n", out.file);
    if (!code)
        code = put_figures(out.file, runs, count, false, &number);
    for (int r = 0; !code && r < count; r++)
        code = put_run(out.file, &runs[r], &number);
    fprintf(out.file, "</main><footer><p>Starling %s</p></footer></body></html>\n", SL_VERSION);
    if (!code && sl_json_failures() != failures)
        code = sl_error(SL_ERR_SYSTEM, "%s: no memory for a part of the page", path);
    if (code) {
        sl_file_discard(&out);
        return code;
    }
    return sl_file_commit(&out, true);
}

int sl_page_write_log(const char *log, const char *path)
{
    struct sl_logged_run run;
    int code = sl_logged_run_read(log, NULL, &run);
    if (!code)
        code = sl_page_write(&run, 1, path);
    sl_logged_run_free(&run);
    return code;
}
