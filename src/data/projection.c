#include "data/projection.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"

double sl_row_norm_of(enum sl_row_norm kind, int64_t count, const float *values)
{
    double sum = 0.0;
    if (kind == SL_ROW_NORM_NONE)
        return 1.0;
    for (int64_t e = 0; e < count; e++) {
        const double x = values ? (double)values[e] : 1.0;
        sum += kind == SL_ROW_NORM_L1 ? fabs(x) : x * x;
    }
    if (kind == SL_ROW_NORM_L2)
        sum = sqrt(sum);
    return sum > 0.0 ? sum : 1.0;
}

/* ---- The matrix ---- */

struct drawing {
    uint64_t key;
    int64_t columns;
    float *matrix; // (stored columns, columns)
};

static void draw_rows(void *context, int64_t begin, int64_t end)
{
    const struct drawing *d = context;
    const double deviation = 1.0 / sqrt((double)d->columns);
    for (int64_t c = begin; c < end; c++)
        for (int64_t j = 0; j < d->columns; j++)
            d->matrix[c * d->columns + j] =
                (float)(deviation * sl_rng_normal(d->key, (uint32_t)c, (uint32_t)j));
}

int sl_projection_open(struct sl_source *source, int64_t columns, enum sl_row_norm norm,
                       uint64_t seed)
{
    const int64_t stored = source->features;
    if (source->feature_form == SL_FEATURES_IDENTITY)
        return sl_error(SL_ERR_DATA,
                        "%s: --project-features %" PRId64 ": the features are the vertices "
                        "themselves (expected columns of features)",
                        source->path, columns);
    struct drawing drawing = {.key = sl_rng_key(seed, SL_RNG_PROJECTION, 0, 0), .columns = columns};
    drawing.matrix =
        sl_block_array(&source->blocks, stored, (size_t)columns * sizeof *drawing.matrix);
    if (!drawing.matrix)
        return SL_ERR_SYSTEM;
    sl_parallel_for_ranges(sl_parallel_threads(0), stored, draw_rows, &drawing);
    source->change.projection = (struct sl_projection){stored, drawing.matrix, norm};
    source->features = columns;
    source->feature_form = SL_FEATURES_DENSE;
    return SL_OK;
}

struct sl_source sl_projection_stored(const struct sl_source *source)
{
    struct sl_source stored = *source;
    stored.features = source->change.projection.columns;
    stored.feature_form = source->features_dense.data ? SL_FEATURES_DENSE : SL_FEATURES_CSR;
    stored.change.projection = (struct sl_projection){.columns = 0};
    return stored;
}

/* ---- Rows ---- */

struct applying {
    const struct sl_projection *projection;
    const struct sl_part *part;
    int64_t columns;
    float *x; // (rows, columns)
    atomic_bool failed;
};

static void add(const struct applying *a, int64_t c, double value, double *restrict sum)
{
    const float *row = a->projection->matrix + c * a->columns;
    for (int64_t j = 0; value != 0.0 && j < a->columns; j++)
        sum[j] += value * (double)row[j];
}

/* Set sum (columns) to row k of the part times the matrix. Return the row's norm. */
static double project_row(const struct applying *a, int64_t k, double *sum)
{
    const struct sl_csr *csr = &a->part->data.features_csr;
    const float *dense = a->part->data.features_dense, *values = NULL;
    int64_t count = a->projection->columns;
    memset(sum, 0, (size_t)a->columns * sizeof *sum);
    if (dense) {
        values = dense + k * count;
        for (int64_t c = 0; c < count; c++)
            add(a, c, (double)values[c], sum);
    } else {
        count = csr->indptr[k + 1] - csr->indptr[k];
        values = csr->values ? csr->values + csr->indptr[k] : NULL;
        for (int64_t e = 0; e < count; e++)
            add(a, csr->indices[csr->indptr[k] + e], values ? (double)values[e] : 1.0, sum);
    }
    return sl_row_norm_of(a->projection->norm, count, values);
}

static void project_rows(void *context, int64_t begin, int64_t end)
{
    struct applying *a = context;
    double *sum = malloc((size_t)a->columns * sizeof *sum);
    if (!sum)
        atomic_store(&a->failed, true);
    for (int64_t k = begin; sum && k < end; k++) {
        const double norm = project_row(a, k, sum);
        for (int64_t j = 0; j < a->columns; j++)
            a->x[k * a->columns + j] = (float)(sum[j] / norm);
    }
    free(sum);
}

int sl_projection_apply(const struct sl_source *source, const struct sl_part *part, float *x)
{
    struct applying a = {.projection = &source->change.projection,
                         .part = part,
                         .columns = source->features,
                         .x = x};
    sl_parallel_for_ranges(sl_parallel_threads(0), part->dense_rows, project_rows, &a);
    return atomic_load(&a.failed)
               ? sl_error(SL_ERR_SYSTEM, "no memory for sums of projected features")
               : SL_OK;
}
