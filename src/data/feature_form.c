#include "data/feature_form.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/columns.h"

/* MOST: largest share of entries in a bag of words. CHANCE: factor by which a sample may exceed it.
 * How features are multiplied is another choice (sl_defaults_form). */
static const double MOST = 0.4, CHANCE = 1.1;

enum { SAMPLE = 1 << 22, FLOATS = 1 << 16, ROWS = 1024 };

/* Row k of a pass is row first + k * step of the order. */
struct pass {
    const struct sl_source *source;
    int64_t first, step;
    int64_t *indptr;  // (rows + 1)
    int32_t *indices; // (indptr[rows]); NULL: indptr[k + 1] gets the entries of row k
    float *values;    // (indptr[rows])
    atomic_bool failed, negative;
};

/* Counts of entries of features. */
struct counts {
    int64_t entries, negative;
};

static struct counts count_entries(int64_t width, const float *x)
{
    struct counts counts = {0};
    for (int64_t j = 0; j < width; j++) {
        counts.entries += x[j] != 0.0f;
        counts.negative += x[j] < 0.0f;
    }
    return counts;
}

static void take_entries(int64_t width, const float *x, int32_t *indices, float *values)
{
    int64_t e = 0;
    for (int64_t j = 0; j < width; j++)
        if (x[j] != 0.0f) {
            indices[e] = (int32_t)j;
            values[e++] = x[j];
        }
}

static void pass_row(struct pass *pass, int64_t k, const float *x)
{
    const int64_t width = pass->source->features;
    if (pass->indices) {
        take_entries(width, x, pass->indices + pass->indptr[k], pass->values + pass->indptr[k]);
        return;
    }
    const struct counts counts = count_entries(width, x);
    pass->indptr[k + 1] = counts.entries;
    if (counts.negative)
        atomic_store(&pass->negative, true);
}

/* Convert some rows at a time to float32, in memory that stays in the cache. */
static void pass_rows(void *context, int64_t begin, int64_t end)
{
    struct pass *pass = context;
    const int64_t width = pass->source->features, fit = FLOATS / width;
    const int64_t most = fit < 1 ? 1 : fit > ROWS ? ROWS : fit;
    float *x = malloc((size_t)(most * width) * sizeof *x);
    int32_t row[ROWS];
    for (int64_t k = begin, rows; k < end; k += rows) {
        rows = end - k < most ? end - k : most;
        for (int64_t i = 0; i < rows; i++)
            row[i] =
                (int32_t)sl_source_feature_row(pass->source, pass->first + (k + i) * pass->step);
        if (!x ||
            sl_npy_copy_rows(&pass->source->features_dense, SL_NPY_FLOAT32, row, rows, x) != 0) {
            atomic_store(&pass->failed, true);
            break;
        }
        for (int64_t i = 0; i < rows; i++)
            pass_row(pass, k + i, x + i * width);
    }
    free(x);
}

static int pass_all(struct pass *pass, int64_t rows)
{
    sl_parallel_for_ranges(sl_parallel_threads(0), rows, pass_rows, pass);
    return atomic_load(&pass->failed) ? sl_error(SL_ERR_SYSTEM, "no memory for rows of features")
                                      : 0;
}

/* Set indptr[k + 1] (rows) to the entries of row first + k * step; each rank counts its share. Set
 * *all to the totals: entries, and ranks with a negative number. Return 0 or an error. */
static int count_rows(struct sl_runtime *rt, const struct sl_source *source, int64_t step,
                      int64_t rows, int64_t *indptr, struct counts *all)
{
    const int64_t begin = rows * rt->rank / rt->ranks, end = rows * (rt->rank + 1) / rt->ranks;
    struct pass pass = {
        .source = source, .first = begin * step, .step = step, .indptr = indptr + begin};
    for (int64_t k = 0; k <= rows; k++)
        indptr[k] = 0;
    const int rc = sl_runtime_agree(rt, pass_all(&pass, end - begin));
    if (rc)
        return rc;
    *all = (struct counts){.negative = atomic_load(&pass.negative)};
    sl_runtime_sum(rt, indptr, rows + 1);
    sl_runtime_sum(rt, &all->negative, 1);
    for (int64_t k = 0; k < rows; k++)
        all->entries += indptr[k + 1];
    return 0;
}

/* Return how many rows to sample, at equal distances; all rows where the features are small. */
static int64_t sampled_rows(const struct sl_source *source)
{
    const int64_t rows = SAMPLE / source->features;
    return rows < 1 ? 1 : rows < source->vertices ? rows : source->vertices;
}

/* Turn the counts into row pointers of the source's CSR features. */
static void become_csr(struct sl_source *source, int64_t *indptr, int64_t entries)
{
    const char *name = source->features_dense.name;
    for (int64_t k = 0; k < source->vertices; k++)
        indptr[k + 1] += indptr[k];
    source->features_csr = (struct sl_stored_csr){
        .indptr = sl_npy_view(name, SL_NPY_INT64, 1, source->vertices + 1, 0, indptr),
        .indices = sl_npy_view(name, SL_NPY_INT32, 1, entries, 0, NULL),
        .values = sl_npy_view(name, SL_NPY_FLOAT32, 1, entries, 0, NULL),
        .cols = source->features,
    };
    source->feature_form = SL_FEATURES_CSR;
}

/* Count the entries of rows 0, step, … in new blocks. Set *few to whether they are few enough, and
 * *counts to the list of count_rows. */
static int find_few(struct sl_runtime *rt, const struct sl_source *source, int64_t step,
                    int64_t rows, double most, struct sl_block **blocks, int64_t **counts,
                    struct counts *all, bool *few)
{
    *counts = sl_block_array(blocks, rows + 1, sizeof **counts);
    int rc = sl_runtime_agree(rt, *counts ? 0 : SL_ERR_SYSTEM);
    if (!rc)
        rc = count_rows(rt, source, step, rows, *counts, all);
    *few = !rc && (double)all->entries <= most * (double)rows * (double)source->features;
    return rc;
}

int sl_features_settle(struct sl_runtime *rt, struct sl_source *source)
{
    struct sl_block *blocks = NULL;
    struct counts all;
    int64_t *counts;
    bool few;
    if (source->feature_form != SL_FEATURES_DENSE || sl_npy_is_text(&source->features_dense))
        return 0;
    const int64_t n = source->vertices, rows = sampled_rows(source);
    int rc = sl_columns_find_scales(rt, source, n / rows, rows, &source->change.scales);
    const bool uneven =
        source->change.scales.half_full && sl_columns_are_uneven(&source->change.scales);
    if (rc || source->columns.table || (uneven && !source->columns.bag_of_words))
        return rc; /* in a table, many columns may be mostly 0 */
    rc = find_few(rt, source, n / rows, rows, CHANCE * MOST, &blocks, &counts, &all, &few);
    if (!rc && few)
        rc = find_few(rt, source, 1, n, MOST, &blocks, &counts, &all, &few);
    if (!rc && few) {
        become_csr(source, counts, all.entries);
        source->columns.bag_of_words =
            source->columns.bag_of_words || (!source->columns.said && !all.negative);
        sl_block_move(&source->blocks, &blocks);
    }
    sl_block_free_all(&blocks);
    return rc;
}

int sl_features_set_form(struct sl_runtime *rt, struct sl_source *source, enum sl_feature_form form)
{
    const bool in_csr = source->feature_form == form || source->features_csr.indptr.data;
    struct counts all;
    int64_t *counts;
    bool few;
    if (source->feature_form == SL_FEATURES_IDENTITY)
        return 0;
    if (form == SL_FEATURES_CSR && !in_csr) {
        const int rc =
            find_few(rt, source, 1, source->vertices, 1.0, &source->blocks, &counts, &all, &few);
        if (rc)
            return rc;
        become_csr(source, counts, all.entries);
    }
    source->feature_form = form;
    return 0;
}

enum sl_feature_form sl_features_part_form(const struct sl_source *source)
{
    const bool in_csr = source->features_csr.indptr.data && !source->features_dense.data;
    return source->feature_form == SL_FEATURES_DENSE && in_csr ? SL_FEATURES_CSR
                                                               : source->feature_form;
}

bool sl_features_made_dense(const struct sl_source *source)
{
    return source->feature_form == SL_FEATURES_DENSE && source->features_csr.indptr.data &&
           source->change.projection.columns == 0;
}

bool sl_features_lie_dense(const struct sl_source *source)
{
    return source->feature_form == SL_FEATURES_CSR && source->features_dense.data;
}

void sl_features_note(const struct sl_source *source, const char *name)
{
    const double all = (double)source->vertices * (double)source->features;
    if (sl_features_lie_dense(source))
        sl_note("%s: %.2g %% of the dense features are not 0: they count as CSR%s", name,
                100.0 * (double)source->features_csr.indices.count / all,
                source->columns.bag_of_words ? ", as a bag of words whose rows are normalised"
                                             : "");
}

int sl_features_read_sparse(const struct sl_source *source, int64_t first, int64_t rows,
                            struct sl_block **blocks, struct sl_csr *out)
{
    struct pass pass = {.source = source, .first = first, .step = 1};
    pass.indptr = sl_block_array(blocks, rows + 1, sizeof *pass.indptr);
    if (!pass.indptr)
        return SL_ERR_SYSTEM;
    pass.indptr[0] = 0;
    int rc = pass_all(&pass, rows);
    for (int64_t k = 0; !rc && k < rows; k++)
        pass.indptr[k + 1] += pass.indptr[k];
    const int64_t entries = rc ? 0 : pass.indptr[rows];
    pass.indices = rc ? NULL : sl_block_array(blocks, entries, sizeof *pass.indices);
    pass.values = rc ? NULL : sl_block_array(blocks, entries, sizeof *pass.values);
    if (rc || !pass.indices || !pass.values)
        return rc ? rc : (int)SL_ERR_SYSTEM;
    rc = pass_all(&pass, rows);
    *out = (struct sl_csr){rows, source->features, pass.indptr, pass.indices, pass.values};
    return rc;
}
