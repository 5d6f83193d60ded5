#include "report/seeds.h"

#include <math.h>
#include <string.h>

#include "log/report.h"

bool sl_seeds_is(const char *option)
{
    return strcmp(option, "seed") == 0 || strcmp(option, "split-seed") == 0;
}

/* Whether two logs have the same value, or both have none. */
static bool same(const json_t *a, const json_t *b, const char *name)
{
    const json_t *one = json_object_get(a, name), *two = json_object_get(b, name);
    return one == two || json_equal(one, two);
}

/* Whether two logs have the same option. The log of an older program lacks options, and differs in
 * none of them. */
static bool same_option(const json_t *a, const json_t *b, const char *name)
{
    return !json_object_get(a, name) || !json_object_get(b, name) || same(a, b, name);
}

static bool same_graph(const json_t *a, const json_t *b)
{
    const json_t *hashes = json_object_get(a, "hashes");
    return same(a, b, "name") && same(a, b, "vertices") && same(a, b, "adjacency_entries") &&
           (!hashes || !json_object_get(b, "hashes") || same(a, b, "hashes"));
}

bool sl_seeds_alike(const struct sl_sweep *sweep, const struct sl_logged_run *a,
                    const struct sl_logged_run *b)
{
    const json_t *one = json_object_get(a->start, "configuration"),
                 *two = json_object_get(b->start, "configuration");
    bool alike = same_graph(json_object_get(a->start, "graph"), json_object_get(b->start, "graph"));
    for (size_t o = 0; alike && o < json_array_size(sweep->options); o++) {
        const char *name = json_string_value(json_array_get(sweep->options, o));
        alike = sl_seeds_is(name) || same_option(one, two, name);
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

/* Whether a run like run r, between `first` and `r`, has its seeds, too. */
static bool is_repeated(const struct sl_sweep *sweep, const struct sl_logged_run *runs, int first,
                        int r)
{
    const json_t *own = json_object_get(runs[r].start, "configuration");
    bool repeated = false;
    for (int other = first; other < r; other++) {
        const json_t *before = json_object_get(runs[other].start, "configuration");
        repeated = repeated || (same(own, before, "seed") && same(own, before, "split-seed") &&
                                sl_seeds_alike(sweep, &runs[other], &runs[r]));
    }
    return repeated;
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
        if (is_repeated(sweep, runs, r, other))
            continue;
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
