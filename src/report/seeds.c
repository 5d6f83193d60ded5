#include "report/seeds.h"

#include <math.h>
#include <string.h>

#include "log/report.h"

bool sl_seeds_is(const char *option)
{
    return strcmp(option, "seed") == 0 || strcmp(option, "split-seed") == 0;
}

bool sl_seeds_alike(const struct sl_sweep *sweep, const struct sl_logged_run *a,
                    const struct sl_logged_run *b)
{
    const json_t *one = json_object_get(a->start, "configuration"),
                 *two = json_object_get(b->start, "configuration");
    bool alike = json_equal(json_object_get(json_object_get(a->start, "graph"), "name"),
                            json_object_get(json_object_get(b->start, "graph"), "name"));
    for (size_t o = 0; alike && o < json_array_size(sweep->options); o++) {
        const char *name = json_string_value(json_array_get(sweep->options, o));
        alike =
            sl_seeds_is(name) || json_equal(json_object_get(one, name), json_object_get(two, name));
    }
    return alike;
}

/* Return a score of a run; NaN: it has none. */
static double score_of(const struct sl_sweep *sweep, const struct sl_logged_run *run, int split)
{
    char key[64];
    return sl_logged_number(
        run->end,
        (const char *const[]){sl_report_key(key, split ? "test" : "val", sweep->metric), NULL});
}

struct sl_seeds sl_seeds_of(const struct sl_sweep *sweep, const struct sl_logged_run *runs,
                            int count, int r)
{
    struct sl_seeds seeds = {0};
    double squares[2] = {0.0};
    for (int other = 0; other < r; other++)
        if (sl_seeds_alike(sweep, &runs[other], &runs[r]))
            return seeds;
    for (int other = r; other < count; other++) {
        const double score[2] = {score_of(sweep, &runs[other], 0),
                                 score_of(sweep, &runs[other], 1)};
        if (isnan(score[0]) || isnan(score[1]) || !sl_seeds_alike(sweep, &runs[other], &runs[r]))
            continue;
        seeds.runs++;
        for (int s = 0; s < 2; s++) { /* Welford */
            const double before = score[s] - seeds.mean[s];
            seeds.mean[s] += before / seeds.runs;
            squares[s] += before * (score[s] - seeds.mean[s]);
        }
    }
    for (int s = 0; s < 2; s++)
        seeds.dev[s] = seeds.runs > 1 ? sqrt(squares[s] / (seeds.runs - 1)) : 0.0;
    return seeds;
}
