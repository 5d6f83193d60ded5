/* Sparse x dense. The dense rows are gathered at random, so a kernel holds a slice of the output
 * row in registers, walks the row's entries once and asks for coming rows ahead (DistGNN, section
 * IV-A: register loop). */
#include <string.h>

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

/* One call's operands; the slice functions below work on columns [first, first + 8·vectors) of it.
 */
struct product {
    const struct sl_sparse *a;
    const float *value; // (nnz), or NULL: all 1
    const float *h;
    int64_t ldh;
    float *z;
    int64_t ldz;
    bool accumulate;
    bool prefetch;
};

enum {
    AHEAD = 12, /* entries between asking for a row and using it */
    CACHED_BYTES =
        512 * 1024, /* dense operands below this stay in the L2 cache: nothing to ask for */
    FLOATS_PER_LINE = 16,
};

/* Z(r, slice) = [Z +] Σ_e value(e) · H(col(e), slice) for all rows; `lanes` of the last vector are
 * stored. */
SL_INLINE void gather_slice(const struct product *p, int64_t first, int vectors, int lanes)
{
    const struct sl_sparse *a = p->a;
    const uint32_t *col = a->col, end = a->row_ptr[a->rows];
    const float *h = p->h + first;
    for (int64_t r = 0; r < a->rows; r++) {
        float *z = p->z + r * p->ldz + first;
        sl_float8 sum[8] = {0};
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++) {
            if (p->prefetch && e + AHEAD < end)
                for (int line = 0; line < vectors * SL_LANES; line += FLOATS_PER_LINE)
                    __builtin_prefetch(h + col[e + AHEAD] * p->ldh + line);
            const float *x = h + col[e] * p->ldh;
            const float v = p->value ? p->value[e] : 1.0f;
            for (int s = 0; s < vectors; s++)
                sum[s] += v * *(const sl_float8 *)(x + s * SL_LANES);
        }
        if (lanes == SL_LANES) {
            for (int s = 0; s < vectors; s++) {
                sl_float8 *out = (sl_float8 *)(z + s * SL_LANES);
                if (p->accumulate)
                    sum[s] += *out;
                *out = sum[s];
            }
        } else {
            for (int j = 0; j < lanes; j++)
                z[j] = p->accumulate ? z[j] + sum[0][j] : sum[0][j];
        }
    }
}

/* Z(col(e), slice) += value(e) · H(r, slice) for all rows. */
SL_INLINE void scatter_slice(const struct product *p, int64_t first, int vectors)
{
    const struct sl_sparse *a = p->a;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *h = p->h + r * p->ldh + first;
        sl_float8 x[8];
        for (int s = 0; s < vectors; s++)
            x[s] = *(const sl_float8 *)(h + s * SL_LANES);
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++) {
            float *z = p->z + a->col[e] * p->ldz + first;
            const float v = p->value ? p->value[e] : 1.0f;
            for (int s = 0; s < vectors; s++)
                *(sl_float8 *)(z + s * SL_LANES) += v * x[s];
        }
    }
}

/* The last columns where a whole vector would read past the row. */
SL_INLINE void gather_columns(const struct product *p, int64_t first, int64_t count)
{
    const struct sl_sparse *a = p->a;
    for (int64_t r = 0; r < a->rows; r++) {
        float *z = p->z + r * p->ldz + first, sum[SL_LANES] = {0};
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++)
            for (int64_t j = 0; j < count; j++)
                sum[j] += (p->value ? p->value[e] : 1.0f) * p->h[a->col[e] * p->ldh + first + j];
        for (int64_t j = 0; j < count; j++)
            z[j] = p->accumulate ? z[j] + sum[j] : sum[j];
    }
}

SL_INLINE void scatter_columns(const struct product *p, int64_t first, int64_t count)
{
    const struct sl_sparse *a = p->a;
    for (int64_t r = 0; r < a->rows; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++)
            for (int64_t j = 0; j < count; j++)
                p->z[a->col[e] * p->ldz + first + j] +=
                    (p->value ? p->value[e] : 1.0f) * p->h[r * p->ldh + first + j];
}

SL_VECTOR static void gather_product(const struct product *p, int64_t width)
{
    int64_t first = 0;
    for (; first + 64 <= width; first += 64)
        gather_slice(p, first, 8, SL_LANES);
    if (first + 32 <= width)
        gather_slice(p, first, 4, SL_LANES), first += 32;
    if (first + 16 <= width)
        gather_slice(p, first, 2, SL_LANES), first += 16;
    if (first + 8 <= width)
        gather_slice(p, first, 1, SL_LANES), first += 8;
    if (first == width)
        return;
    if (first + SL_LANES <= p->ldh) /* a buffer has ld elements in every row, the last one too */
        gather_slice(p, first, 1, (int)(width - first));
    else
        gather_columns(p, first, width - first);
}

SL_VECTOR static void scatter_product(const struct product *p, int64_t width)
{
    int64_t first = 0;
    for (; first + 64 <= width; first += 64)
        scatter_slice(p, first, 8);
    if (first + 32 <= width)
        scatter_slice(p, first, 4), first += 32;
    if (first + 16 <= width)
        scatter_slice(p, first, 2), first += 16;
    if (first + 8 <= width)
        scatter_slice(p, first, 1), first += 8;
    if (first < width)
        scatter_columns(p, first, width - first);
}

enum { BATCH = 512 };

/* out[e] = value(e) · dropout factor of the `count` entries at (row[e], col[e]). */
SL_VECTOR static void drop_values(const struct sl_sparse_dropout *d, int64_t count,
                                  const uint32_t *restrict row, const uint32_t *restrict col,
                                  const float *restrict value, float *restrict out)
{
    const uint64_t key = d->drop.key;
    const uint32_t threshold = d->drop.threshold, row0 = d->row0, col0 = d->col0;
    const float scale = d->drop.scale;
    for (int64_t e = 0; e < count; e++) {
        const uint32_t column = col0 + col[e];
        uint32_t x, y;
        sl_rng_block(key, row0 + row[e], column >> 2, &x, &y);
        const uint32_t word = column & 2 ? y : x, bits = column & 1 ? word >> 16 : word & 0xFFFF;
        out[e] = bits >= threshold ? scale : 0.0f;
    }
    if (value)
        for (int64_t e = 0; e < count; e++)
            out[e] *= value[e];
}

/* The product with dropped values, a batch of entries at a time, so that the random numbers come in
 * vectors however short the rows are. */
static void dropped_product(struct product *p, const struct sl_sparse_dropout *drop, int64_t width,
                            void (*product)(const struct product *, int64_t))
{
    const struct sl_sparse *a = p->a;
    uint32_t row[BATCH], row_ptr[BATCH + 1];
    float value[BATCH];
    for (int64_t r = 0; r < a->rows;) {
        /* Rows [r, last) that fit, or a piece of one row that alone does not. */
        const uint32_t begin = a->row_ptr[r];
        int64_t last = r;
        while (last < a->rows && last - r < BATCH && a->row_ptr[last + 1] - begin <= BATCH)
            last++;
        const int64_t rows = last > r ? last - r : 1;
        const uint32_t row_end = a->row_ptr[r + rows];
        for (uint32_t start = begin; start < row_end || start == begin; start += BATCH) {
            const uint32_t count = row_end - start < BATCH ? row_end - start : BATCH;
            for (int64_t i = 0; i < rows; i++) {
                row_ptr[i] = rows > 1 ? a->row_ptr[r + i] - begin : 0;
                const uint32_t stop = rows > 1 ? a->row_ptr[r + i + 1] - begin : count;
                for (uint32_t e = row_ptr[i]; e < stop; e++)
                    row[e] = (uint32_t)(r + i);
            }
            row_ptr[rows] = count;
            drop_values(drop, count, row, a->col + start, p->value ? p->value + start : NULL,
                        value);
            const struct sl_sparse part = {rows, a->cols, row_ptr, a->col + start, value};
            struct product q = *p;
            q.a = &part;
            q.value = value;
            q.accumulate = p->accumulate || start > begin;
            if (product == gather_product)
                q.z += r * q.ldz;
            else
                q.h += r * q.ldh;
            product(&q, width);
        }
        r += rows;
    }
}

static struct product make_product(const struct sl_sparse *a, const float *h, int64_t ldh,
                                   bool accumulate, float *z, int64_t ldz)
{
    return (struct product){
        .a = a,
        .value = a->value,
        .h = h,
        .ldh = ldh,
        .z = z,
        .ldz = ldz,
        .accumulate = accumulate,
        .prefetch = a->cols * ldh * (int64_t)sizeof(float) > CACHED_BYTES,
    };
}

void sl_kernel_spmm(const struct sl_sparse *a, const struct sl_sparse_dropout *drop, int64_t width,
                    const float *h, int64_t ldh, bool accumulate, float *z, int64_t ldz)
{
    struct product p = make_product(a, h, ldh, accumulate, z, ldz);
    if (drop && drop->drop.threshold)
        dropped_product(&p, drop, width, gather_product);
    else
        gather_product(&p, width);
}

void sl_kernel_spmm_transposed(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                               int64_t width, const float *h, int64_t ldh, bool accumulate,
                               float *z, int64_t ldz)
{
    struct product p = make_product(a, h, ldh, true, z, ldz);
    if (!accumulate)
        sl_kernel_fill(a->cols, width, 0.0f, z, ldz);
    if (drop && drop->drop.threshold)
        dropped_product(&p, drop, width, scatter_product);
    else
        scatter_product(&p, width);
}

/* spmm_set, spmm_add
 *   argument  struct spmm_argument
 *   buffers   0 R      A, sparse tile (rows, cols)
 *             1 R      H (cols, width); transposed: (rows, width)
 *             2 W/RW   Z (rows, width); transposed: (cols, width) */
static void spmm_set_cpu(void *buffers[], void *argument)
{
    const struct spmm_argument *arg = argument;
    const struct sl_sparse a =
        sl_sparse_view(sl_raw_buffer(buffers[0]), arg->rows, arg->cols, arg->nnz, arg->has_values);
    const struct sl_dense h = sl_dense_buffer(buffers[1]), z = sl_dense_buffer(buffers[2]);
    (arg->transposed ? sl_kernel_spmm_transposed : sl_kernel_spmm)(
        &a, &arg->drop, z.cols, h.data, h.ld, arg->accumulate, z.data, z.ld);
}

#define spmm_add_cpu spmm_set_cpu

SL_CODELET(spmm_set, 0x2E8B57, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(spmm_add, 0x3CB371, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_spmm(struct sl_runtime *rt, bool transposed, struct sl_sparse_tile *a,
                    const struct sl_sparse_dropout *drop, struct sl_tile *h, bool accumulate,
                    struct sl_tile *z)
{
    const struct spmm_argument arg = {
        .rows = a->rows,
        .cols = a->cols,
        .nnz = a->nnz,
        .drop = drop ? *drop : (struct sl_sparse_dropout){.drop.threshold = 0},
        .has_values = a->has_values,
        .transposed = transposed,
        .accumulate = accumulate,
    };
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = accumulate ? &spmm_add_codelet : &spmm_set_codelet,
                           .count = 3,
                           .tiles = {&a->tile, h, z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = 2.0 * (double)a->nnz * (double)z->cols,
                       });
}
