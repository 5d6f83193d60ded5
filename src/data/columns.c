#include "data/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "data/feature_form.h"
#include "data/part.h"

/* Sums are made by pieces of the rows and added in the order of the pieces: the pieces do not
 * depend on the number of ranks. */
enum { PIECES = 64, SUMS = 1 << 20, FLOATS = 1 << 16, ROWS = 1024 };

/* Sums of each column: numbers that are not 0, x - shift, and its square. */
enum { COUNT, SUM, SQUARES, KINDS };

struct pass {
    const struct sl_source *source;
    const int32_t *row; // (rows): rows of features_dense
    int64_t rows, pieces;
    const double *shift; // (features)
    double *sum;         // (pieces, KINDS, features)
    int rank, ranks;
    atomic_bool failed;
};

/* Copy rows of features to x (rows, features) as dense floats, however they are stored. */
static int copy_rows(const struct sl_source *source, const int32_t *row, int64_t rows, float *x)
{
    const struct sl_stored_csr *csr = &source->features_csr;
    const int64_t width = source->features;
    if (source->features_dense.data)
        return sl_npy_copy_rows(&source->features_dense, SL_NPY_FLOAT32, row, rows, x);
    memset(x, 0, (size_t)(rows * width) * sizeof *x);
    for (int64_t k = 0; k < rows; k++) {
        int64_t extent[2];
        const int rc = sl_part_find_row(csr, row[k], extent);
        if (rc)
            return rc;
        for (int64_t e = extent[0]; e < extent[1]; e++) {
            const int64_t c = sl_npy_integer(&csr->indices, e);
            if (c < 0 || c >= width)
                return sl_error(SL_ERR_DATA,
                                "%s: row %" PRId32 " has column %" PRId64 ", expected 0 to "
                                "%" PRId64,
                                csr->indices.name, row[k], c, width - 1);
            x[k * width + c] += csr->values.data ? (float)sl_npy_get(&csr->values, e) : 1.0f;
        }
    }
    return SL_OK;
}

static void add_row(const struct pass *pass, const float *x, double *sum)
{
    const int64_t width = pass->source->features;
    for (int64_t c = 0; c < width; c++) {
        const double d = isfinite(x[c]) ? (double)x[c] - pass->shift[c] : 0.0;
        sum[COUNT * width + c] += x[c] != 0.0f;
        sum[SUM * width + c] += d;
        sum[SQUARES * width + c] += d * d;
    }
}

/* Sum the pieces of this rank, which lie side by side: the rank reads about these rows later. */
static void pass_pieces(void *context, int64_t begin, int64_t end)
{
    struct pass *pass = context;
    const int64_t width = pass->source->features, fit = FLOATS / width;
    const int64_t most = fit < 1 ? 1 : fit > ROWS ? ROWS : fit;
    float *x = malloc((size_t)(most * width) * sizeof *x);
    for (int64_t p = begin; p < end; p++) {
        double *sum = pass->sum + p * KINDS * width;
        const int64_t last = pass->rows * (p + 1) / pass->pieces;
        if (p * pass->ranks / pass->pieces != pass->rank)
            continue;
        for (int64_t k = pass->rows * p / pass->pieces, rows; k < last; k += rows) {
            rows = last - k < most ? last - k : most;
            if (!x || copy_rows(pass->source, pass->row + k, rows, x) != 0) {
                atomic_store(&pass->failed, true);
                break;
            }
            for (int64_t r = 0; r < rows; r++)
                add_row(pass, x + r * width, sum);
        }
    }
    free(x);
}

/* Return the error of the first row that has one, as one core alone would find it. */
static int find_failure(const struct pass *pass)
{
    float *x = malloc((size_t)pass->source->features * sizeof *x);
    int rc = SL_OK;
    for (int64_t k = 0; x && !rc && k < pass->rows; k++)
        rc = copy_rows(pass->source, pass->row + k, 1, x);
    free(x);
    return rc ? rc : sl_error(SL_ERR_SYSTEM, "no memory for rows of features");
}

/* Set sum (KINDS, features) to the sums over some rows. */
static int sum_rows(struct sl_runtime *rt, const struct sl_source *source, const int32_t *row,
                    int64_t rows, const double *shift, double *sum)
{
    const int64_t numbers = KINDS * source->features, fit = SUMS / numbers;
    const int64_t pieces = fit < 1 ? 1 : fit < PIECES ? fit : PIECES;
    double *all = calloc((size_t)(pieces * numbers), sizeof *all);
    int rc = sl_runtime_agree(
        rt, all ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for sums of columns of features"));
    if (!rc) {
        struct pass pass = {.source = source,
                            .row = row,
                            .rows = rows,
                            .pieces = pieces,
                            .shift = shift,
                            .sum = all,
                            .rank = rt->rank,
                            .ranks = rt->ranks};
        sl_parallel_for_ranges(sl_parallel_threads(0), pieces, pass_pieces, &pass);
        rc = sl_runtime_agree(rt, atomic_load(&pass.failed) ? find_failure(&pass) : 0);
    }
    if (!rc)
        sl_runtime_share(rt, all, pieces * numbers);
    memset(sum, 0, (size_t)numbers * sizeof *sum);
    for (int64_t p = 0; !rc && p < pieces; p++)
        for (int64_t k = 0; k < numbers; k++)
            sum[k] += all[p * numbers + k];
    free(all);
    return rc;
}

/* ---- Scales ---- */

static void compare_scales(const double *sum, int64_t width, int64_t rows,
                           struct sl_column_scales *out)
{
    *out = (struct sl_column_scales){.half_full = false};
    for (int64_t c = 0; c < width; c++) {
        const double count = sum[COUNT * width + c],
                     scale = count > 0 ? sqrt(sum[SQUARES * width + c] / count) : 0.0;
        out->half_full = out->half_full || 2.0 * count >= (double)rows;
        if (scale == 0.0)
            continue;
        if (out->scale[0] == 0.0 || scale < out->scale[0]) {
            out->scale[0] = scale;
            out->least = c;
        }
        if (scale > out->scale[1]) {
            out->scale[1] = scale;
            out->most = c;
        }
    }
}

int sl_columns_find_scales(struct sl_runtime *rt, const struct sl_source *source, int64_t step,
                           int64_t rows, struct sl_column_scales *out)
{
    const int64_t width = source->features;
    struct sl_block *blocks = NULL;
    double *shift = sl_block_array(&blocks, width, sizeof *shift),
           *sum = sl_block_array(&blocks, width, KINDS * sizeof *sum);
    int32_t *row = sl_block_array(&blocks, rows, sizeof *row);
    int rc = sl_runtime_agree(rt, shift && sum && row ? 0 : SL_ERR_SYSTEM);
    for (int64_t c = 0; !rc && c < width; c++)
        shift[c] = 0.0;
    for (int64_t k = 0; !rc && k < rows; k++)
        row[k] = (int32_t)(source->selection.feature_row ? source->selection.feature_row[k * step]
                                                         : k * step);
    if (!rc)
        rc = sum_rows(rt, source, row, rows, shift, sum);
    if (!rc)
        compare_scales(sum, width, rows, out);
    sl_block_free_all(&blocks);
    return rc;
}

bool sl_columns_are_uneven(const struct sl_column_scales *scales)
{
    static const double MOST = 10.0;
    return scales->scale[1] > MOST * scales->scale[0];
}

/* ---- Means and deviations ---- */

/* List the rows of the training vertices, in the order of the files. Leave out numbers that are no
 * vertices: readers of the split report them. */
static int64_t list_training(const struct sl_source *source, int32_t *row)
{
    const struct sl_npy *ids = &source->splits.split[SL_SPLIT_TRAIN];
    const bool mask = source->splits.mask[SL_SPLIT_TRAIN];
    const int64_t width = ids->dims == 2 ? ids->shape[1] : 1,
                  items = mask ? source->vertices : ids->count;
    int64_t count = 0;
    for (int64_t k = 0; ids->data && k < items; k++) {
        const int64_t v = mask ? k : sl_npy_integer(ids, k);
        const bool chosen = mask ? sl_npy_get(ids, k * width) != 0.0
                                 : v >= 0 && v < source->vertices && count < source->vertices;
        if (chosen)
            row[count++] =
                (int32_t)(source->selection.feature_row ? source->selection.feature_row[v] : v);
    }
    return count;
}

/* Set the shift to the first training row, which is near the others: sums of squares of the
 * differences keep their digits. */
static int find_shift(const struct sl_source *source, const int32_t *row, double *shift)
{
    const int64_t width = source->features;
    float *x = malloc((size_t)width * sizeof *x);
    const int rc = x ? copy_rows(source, row, 1, x)
                     : sl_error(SL_ERR_SYSTEM, "no memory for a row of features");
    for (int64_t c = 0; !rc && c < width; c++)
        shift[c] = isfinite(x[c]) ? (double)x[c] : 0.0;
    free(x);
    return rc;
}

/* Compute mean and deviation of each column. A column of equal numbers is centred and keeps its
 * scale. */
static void find_moments(const double *shift, const double *sum, int64_t width, int64_t rows,
                         double *mean, double *deviation)
{
    static const double ROUNDING = 1e-7;
    for (int64_t c = 0; c < width; c++) {
        const double d = sum[SUM * width + c] / (double)rows,
                     variance = sum[SQUARES * width + c] / (double)rows - d * d;
        mean[c] = shift[c] + d;
        deviation[c] = sqrt(fmax(variance, 0.0));
        if (deviation[c] <= ROUNDING * fabs(mean[c]))
            deviation[c] = 1.0;
    }
}

static int standardize(struct sl_runtime *rt, struct sl_source *source, struct sl_block **scratch)
{
    const int64_t width = source->features;
    int32_t *row = sl_block_array(scratch, source->vertices, sizeof *row);
    double *shift = sl_block_array(scratch, width, sizeof *shift),
           *sum = sl_block_array(scratch, width, KINDS * sizeof *sum),
           *mean = sl_block_array(&source->blocks, width, sizeof *mean),
           *deviation = sl_block_array(&source->blocks, width, sizeof *deviation);
    int rc = row && shift && sum && mean && deviation ? 0 : (int)SL_ERR_SYSTEM;
    const int64_t rows = rc ? 0 : list_training(source, row);
    if (!rc && rows == 0)
        rc = sl_error(SL_ERR_DATA,
                      "%s: --normalize-features standard: there is no training vertex (expected "
                      "train_idx, or --split)",
                      source->path);
    if (!rc)
        rc = find_shift(source, row, shift);
    rc = sl_runtime_agree(rt, rc);
    if (!rc)
        rc = sum_rows(rt, source, row, rows, shift, sum);
    if (rc)
        return rc;
    find_moments(shift, sum, width, rows, mean, deviation);
    source->change.moments = (struct sl_moments){mean, deviation};
    return 0;
}

int sl_columns_standardize(struct sl_runtime *rt, struct sl_source *source)
{
    struct sl_block *scratch = NULL;
    int rc = 0;
    if (source->feature_form == SL_FEATURES_IDENTITY)
        rc = sl_error(SL_ERR_DATA,
                      "%s: --normalize-features standard: the features are the vertices themselves "
                      "(expected columns of features)",
                      source->path);
    if (!rc)
        rc = sl_features_set_form(rt, source, SL_FEATURES_DENSE);
    if (!rc)
        rc = sl_source_settle_splits(source);
    rc = sl_runtime_agree(rt, rc);
    if (!rc)
        rc = standardize(rt, source, &scratch);
    sl_block_free_all(&scratch);
    return rc;
}
