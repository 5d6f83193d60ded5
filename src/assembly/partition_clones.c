/* Cuts the clones of a vertex-cut into tiles. Clones of a rank are in the order of their hops. */
#include <stdlib.h>
#include <string.h>

#include "assembly/partition.h"
#include "core/error.h"

/* Clones [from, to) of one rank with tiles of their own. All clones have one hop, or neighbouring
 * hops with few clones; `hop` is the first hop. */
struct run {
    int rank, hop;
    int64_t from, to;
    int tile, tiles;
};

struct runs {
    int count;
    struct run *run; // (count)
};

static int no_memory(int items)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %d cut points", items);
}

/* ---- A run for each rank ---- */

/* List a run for each rank, with as many tiles as the rank had, at least one and at most one a
 * clone. */
static int list_ranks(const struct sl_partition *p, const int64_t *bounds, struct runs *runs)
{
    runs->run = calloc((size_t)p->ranks + 1, sizeof *runs->run);
    if (!runs->run)
        return no_memory(p->ranks);
    for (int r = 0; r < p->ranks; r++) {
        const int64_t rows = bounds[r + 1] - bounds[r];
        const int had = p->rank_cut[r + 1] - p->rank_cut[r], tiles = had > 0 ? had : 1;
        if (rows > 0)
            runs->run[runs->count++] = (struct run){.rank = r,
                                                    .from = bounds[r],
                                                    .to = bounds[r + 1],
                                                    .tiles = tiles < rows ? tiles : (int)rows};
    }
    return 0;
}

/* ---- A run for each rank and hop ---- */

/* Join neighbouring hops with few clones, the same on all ranks, since all clones of a vertex must
 * be in tiles of one hop. Set together[i] (hops) to the first hop that hop i is joined with. mean
 * (hops): mean clones of a rank. */
static void join_hops(int hops, const double *mean, double few, int *together)
{
    double left = 0.0;
    for (int i = 0; i < hops; i++)
        left += mean[i];
    for (int first = 0, next; first < hops; first = next) {
        double sum = mean[first];
        for (next = first + 1; next < hops && sum < few && mean[next] < few; next++)
            sum += mean[next];
        left -= sum;
        if (left < few)
            next = hops;
        for (int i = first; i < next; i++)
            together[i] = first;
    }
}

static void add_run(struct runs *runs, const struct run *run, double usual)
{
    if (run->to == run->from)
        return;
    const int tiles = (int)((double)(run->to - run->from) / usual + 0.5);
    runs->run[runs->count] = *run;
    runs->run[runs->count++].tiles = tiles > 0 ? tiles : 1;
}

/* List the runs of each rank. The tiles of a run are in proportion to its clones. */
static void add_hops(const struct sl_partition *p, const int64_t *bounds,
                     const struct sl_clone_hops *h, const int *together, struct runs *runs)
{
    const double usual = (double)bounds[p->ranks] / (double)p->tiles;
    for (int r = 0; r < p->ranks; r++) {
        struct run run = {.rank = r, .from = bounds[r], .to = bounds[r]};
        for (int i = 0; i < h->count; i++) {
            if (together[i] == i && i > 0) {
                add_run(runs, &run, usual);
                run.from = run.to;
                run.hop = i;
            }
            run.to += h->rows[r * h->count + i];
        }
        add_run(runs, &run, usual);
    }
}

static int list_hops(const struct sl_partition *p, const int64_t *bounds,
                     const struct sl_clone_hops *h, struct runs *runs)
{
    enum { FEW = 1024 };
    const double half = (double)bounds[p->ranks] / (double)p->tiles / 2.0;
    double *mean = calloc((size_t)h->count, sizeof *mean);
    int *together = calloc((size_t)h->count, sizeof *together);
    runs->run = calloc((size_t)(p->ranks * h->count) + 1, sizeof *runs->run);
    const bool room = mean && together && runs->run;
    for (int r = 0; room && r < p->ranks; r++)
        for (int i = 0; i < h->count; i++)
            mean[i] += (double)h->rows[r * h->count + i] / p->ranks;
    if (room) {
        join_hops(h->count, mean, half < FEW ? half : FEW, together);
        add_hops(p, bounds, h, together, runs);
    }
    free(mean);
    free(together);
    return room ? 0 : no_memory(p->ranks * h->count);
}

static int list_runs(const struct sl_partition *p, const int64_t *bounds,
                     const struct sl_clone_hops *hops, struct runs *runs)
{
    return hops ? list_hops(p, bounds, hops, runs) : list_ranks(p, bounds, runs);
}

/* Count the clones of all ranks by hop. `hop`: see sl_partition_recut. Collective. */
static int count_hops(struct sl_runtime *rt, int64_t rows, const int32_t *hop,
                      struct sl_clone_hops *h)
{
    h->count = 1 - (int)sl_runtime_least(rt, rows > 0 ? -hop[rows - 1] : 0);
    h->rows = calloc((size_t)(rt->ranks * h->count), sizeof *h->rows);
    const int code = sl_runtime_agree(rt, h->rows ? 0 : no_memory(h->count));
    for (int64_t k = 0; !code && k < rows; k++)
        h->rows[rt->rank * h->count + hop[k]]++;
    if (!code)
        sl_runtime_sum(rt, h->rows, rt->ranks * h->count);
    return code;
}

/* ---- Cuts ---- */

/* Number the tiles of all runs, and allocate the cuts. */
static int take_runs(struct sl_partition *p, struct runs *runs, bool hops)
{
    int tiles = 0, k = 0;
    for (int r = 0; r < p->ranks; r++) {
        p->rank_cut[r] = tiles;
        for (; k < runs->count && runs->run[k].rank == r; k++) {
            runs->run[k].tile = tiles;
            tiles += runs->run[k].tiles;
        }
    }
    p->rank_cut[p->ranks] = p->tiles = tiles;
    free(p->row_cut);
    free(p->nnz);
    free(p->hop);
    p->row_cut = calloc((size_t)tiles + 1, sizeof *p->row_cut);
    p->nnz = calloc((size_t)tiles + 1, sizeof *p->nnz);
    p->hop = hops ? calloc((size_t)tiles + 1, sizeof *p->hop) : NULL;
    if (!p->row_cut || !p->nnz || (hops && !p->hop))
        return no_memory(tiles);
    for (k = 0; hops && k < runs->count; k++)
        for (int t = 0; t < runs->run[k].tiles; t++)
            if (runs->run[k].tile + t > 0)
                p->hop[runs->run[k].tile + t] = runs->run[k].hop;
    return 0;
}

/* Return the work of the rows before row k of the part: entries of A + I and of sparse features. */
static int64_t work_before(const struct sl_part *part, int64_t k)
{
    const int64_t *features = part->data.features_csr.indptr;
    return k + part->data.adjacency.indptr[k] + (features ? features[k] : 0);
}

/* Cut a run of this rank into tiles of equal work, with at least a row each. */
static void cut_run(const struct run *run, const struct sl_part *part, int64_t *cut)
{
    const int64_t first = run->from - part->first, end = run->to - part->first,
                  before = work_before(part, first);
    int64_t k = first;
    for (int t = 0; t < run->tiles; t++) {
        const double goal =
            (double)before + (double)(work_before(part, end) - before) * t / run->tiles;
        while (k < end - (run->tiles - t) && (double)work_before(part, k) < goal)
            k++;
        cut[run->tile + t] = part->first + k;
        k++;
    }
}

int sl_partition_recut_evenly(const struct sl_partition *p, const int64_t *bounds,
                              const struct sl_clone_hops *hops, struct sl_partition *out)
{
    struct runs runs = {0};
    *out = (struct sl_partition){.ranks = p->ranks};
    out->rank_cut = malloc((size_t)(p->ranks + 1) * sizeof *out->rank_cut);
    out->workers = malloc((size_t)p->ranks * sizeof *out->workers);
    if (!out->rank_cut || !out->workers)
        return sl_error(SL_ERR_SYSTEM, "no memory for the cuts of %d ranks", p->ranks);
    memcpy(out->workers, p->workers, (size_t)p->ranks * sizeof *out->workers);
    int code = list_runs(p, bounds, hops, &runs);
    if (!code)
        code = take_runs(out, &runs, hops != NULL);
    for (int k = 0; !code && k < runs.count; k++) {
        const struct run *run = &runs.run[k];
        for (int t = 0; t < run->tiles; t++)
            out->row_cut[run->tile + t] = run->from + (run->to - run->from) * t / run->tiles;
    }
    if (!code)
        out->row_cut[out->tiles] = bounds[p->ranks];
    free(runs.run);
    return code;
}

int sl_partition_recut(struct sl_runtime *rt, struct sl_partition *p, const int64_t *bounds,
                       const struct sl_part *part, const int32_t *hop)
{
    struct sl_clone_hops hops = {0};
    struct runs runs = {0};
    int code = hop ? count_hops(rt, bounds[rt->rank + 1] - bounds[rt->rank], hop, &hops) : 0;
    if (!code)
        code = sl_runtime_agree(rt, list_runs(p, bounds, hop ? &hops : NULL, &runs));
    if (!code)
        code = sl_runtime_agree(rt, take_runs(p, &runs, hop != NULL));
    for (int k = 0; !code && k < runs.count; k++)
        if (runs.run[k].rank == rt->rank)
            cut_run(&runs.run[k], part, p->row_cut);
    if (!code) {
        sl_runtime_sum(rt, p->row_cut, p->tiles);
        p->row_cut[p->tiles] = bounds[p->ranks];
    }
    free(hops.rows);
    free(runs.run);
    return code;
}
