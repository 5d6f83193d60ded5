#include "report/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/metric.h"
#include "log/report.h"
#include "recipe/config.h"

/* ---- Options ---- */

/* Whether an option may explain a run's result. Files and words of a run do not. */
static bool is_told(const char *name)
{
    for (const struct sl_option *o = sl_config_options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return !sl_config_is_file(o) && strcmp(name, "plan") != 0;
    return true;
}

/* Return an option's value. NULL: the log of an older program lacks the option. JSON's null is a
 * value: the option was not given. */
static const json_t *option_of(const struct sl_logged_run *run, const char *name)
{
    return json_object_get(json_object_get(run->start, "configuration"), name);
}

/* Whether runs differ in an option. A log that lacks the option differs from none. */
static bool differs(const struct sl_logged_run *runs, int count, const char *name)
{
    const json_t *first = NULL;
    for (int r = 0; r < count; r++) {
        const json_t *value = option_of(&runs[r], name);
        if (value && first && !json_equal(value, first))
            return true;
        first = first ? first : value;
    }
    return false;
}

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return true;
    return false;
}

static json_t *list_options(const struct sl_logged_run *runs, int count)
{
    json_t *list = json_array(), *value;
    const char *name;
    for (int r = 0; r < count; r++) {
        json_t *configuration = json_object_get(runs[r].start, "configuration");
        json_object_foreach(configuration, name, value)
        {
            if (is_told(name) && !has_text(list, name) && differs(runs, count, name))
                json_array_append_new(list, json_string(name));
        }
    }
    return list;
}

/* ---- The best run ---- */

static const char *text_of(const json_t *event, const char *group, const char *key)
{
    const json_t *object = group ? json_object_get(event, group) : event;
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Whether two runs have the same number, or both have none. */
static bool are_alike(const struct sl_logged_run *a, const struct sl_logged_run *b,
                      const char *group, const char *key)
{
    const char *const keys[] = {group, key, NULL};
    const double x = sl_logged_number(a->start, keys), y = sl_logged_number(b->start, keys);
    return x == y || (isnan(x) && isnan(y));
}

/* Whether scores of two runs are of the same validation vertices, as far as the logs tell. */
static bool are_comparable(const struct sl_logged_run *a, const struct sl_logged_run *b)
{
    const char *split = text_of(a->start, "configuration", "split");
    return strcmp(text_of(a->start, "graph", "name"), text_of(b->start, "graph", "name")) == 0 &&
           are_alike(a, b, "graph", "vertices") && are_alike(a, b, "graph", "adjacency_entries") &&
           strcmp(split, text_of(b->start, "configuration", "split")) == 0 &&
           (!*split || are_alike(a, b, "configuration", "split-seed"));
}

/* Return the metric of all finished runs, or NULL if they have different metrics or validation
 * vertices. */
static const struct sl_metric *find_metric(const struct sl_logged_run *runs, int count)
{
    const struct sl_metric *metric = NULL;
    for (int r = 0; r < count; r++) {
        const struct sl_metric *own = sl_metric_find(text_of(runs[r].end, NULL, "metric"));
        if (!are_comparable(&runs[r], &runs[0]) || (own && metric && own != metric))
            return NULL;
        metric = metric ? metric : own;
    }
    return metric;
}

/* Return the score of a run, more being better. NaN: the run has none. */
static double value_of(const struct sl_logged_run *run, const struct sl_metric *metric)
{
    char key[64];
    const char *const keys[] = {metric ? sl_report_key(key, "val", metric->name) : "", NULL};
    const double value = sl_logged_number(run->end, keys);
    return metric && metric->falls ? -value : value;
}

static bool is_before(double value, double other)
{
    return value > other || (isnan(other) && !isnan(value));
}

static void sort(int *order, const struct sl_logged_run *runs, int count,
                 const struct sl_metric *metric)
{
    for (int r = 0; r < count; r++) {
        const double value = value_of(&runs[r], metric);
        int at = r;
        for (; at > 0 && is_before(value, value_of(&runs[order[at - 1]], metric)); at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
}

int sl_sweep_make(struct sl_sweep *sweep, const struct sl_logged_run *runs, int count)
{
    const struct sl_metric *metric = find_metric(runs, count);
    *sweep =
        (struct sl_sweep){.options = list_options(runs, count),
                          .metric = metric ? metric->name : "accuracy",
                          .order = calloc((size_t)(count > 0 ? count : 1), sizeof *sweep->order)};
    if (!sweep->options || !sweep->order)
        return sl_error(SL_ERR_SYSTEM, "no memory to compare %d runs", count);
    sort(sweep->order, runs, count, metric);
    const double best = value_of(&runs[sweep->order[0]], metric);
    while (sweep->best < count && value_of(&runs[sweep->order[sweep->best]], metric) == best)
        sweep->best++;
    return 0;
}

void sl_sweep_free(struct sl_sweep *sweep)
{
    json_decref(sweep->options);
    free(sweep->order);
    *sweep = (struct sl_sweep){0};
}
