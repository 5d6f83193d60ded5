/* Normalisation of rows or columns. X is made again wherever it is needed, a few rows at a time, in
 * a buffer of one run. */
#include "codelets/norm.h"

#include "codelets/kernels/rows_of_norm.h"

enum { AT_ONCE = RUN / SL_ROW_UNIT }; /* rows in a buffer */

/* ---- Walks ---- */

/* A walk over all elements: panels of columns, then some rows of a panel, then runs of their
 * columns. A norm of columns has panels of one run; a norm of rows has one panel of whole rows. */
struct walk {
    int64_t panel; /* columns of a panel, at most */
    int64_t rows;  /* rows at a time */
    int64_t ld;    /* distance between rows in the buffer */
};

SL_INLINE struct walk walk_of(const struct sl_norm *n)
{
    const int64_t run = n->cols < RUN ? n->cols : RUN, ld = sl_padded(run > 0 ? run : 1);
    return (struct walk){n->mean ? RUN : n->cols, RUN / ld, ld};
}

/* Return whether Z is float32 and another matrix than H, so that no buffer is needed. */
SL_INLINE bool is_apart(const struct sl_rows *z, const struct sl_rows *h)
{
    return z->type == SL_FLOAT32 && z->data != h->data;
}

/* ---- Forward ---- */

SL_KERNEL(sl_kernel_norm,
          (const struct sl_norm *n, const struct sl_epilogue *epilogue, const struct sl_rows *z),
          (n, epilogue, z))
{
    const struct walk walk = walk_of(n);
    struct moments of[AT_ONCE] = {{0}};
    float inverse[RUN], x[RUN] = {0};
    const struct sl_rows from = sl_float_rows(x, walk.ld);
    const bool direct = is_apart(z, &n->h) && !(epilogue && sl_epilogue_has_steps(epilogue));
    for (int64_t start = 0; start < n->cols; start += walk.panel) {
        invert(n, start, least(walk.panel, n->cols - start), inverse);
        for (int64_t r = 0; r < n->rows; r += walk.rows) {
            const int64_t rows = least(walk.rows, n->rows - r);
            if (!n->mean)
                find_moments(n, r, rows, of);
            for (int64_t j = start; j < least(start + walk.panel, n->cols); j += RUN) {
                const int64_t count = least(RUN, n->cols - j);
                for (int64_t i = 0; i < rows; i++)
                    normalise(n, true, of + i, r + i, j, count, inverse,
                              direct ? sl_rows_at(z, r + i, j).data : x + i * walk.ld);
                if (direct)
                    continue;
                const struct sl_epilogue here = sl_epilogue_at(epilogue, r, j);
                const struct sl_rows to = sl_rows_at(z, r, j);
                sl_epilogue_rows(&here, 0, rows, count, &from, &to);
            }
        }
    }
}

/* ---- Statistics of columns ---- */

SL_INLINE void add_to_sums(int64_t cols, double root, const void *row, bool half,
                           double *restrict sum, double *restrict square)
{
    for (int64_t j = 0; j < cols; j++) {
        const double h = (double)element(row, half, j);
        sum[j] += root * h;
        square[j] += root * h * h;
    }
}

SL_KERNEL(sl_kernel_norm_sums,
          (int64_t rows, int64_t cols, const float *root, const struct sl_rows *h, double *sums,
           int64_t ld),
          (rows, cols, root, h, sums, ld))
{
    for (int64_t j = 0; j < cols; j++)
        sums[j] = sums[ld + j] = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        const void *row = sl_rows_at(h, r, 0).data;
        const double own = root ? (double)root[r] : 1.0;
        if (h->type == SL_BFLOAT16)
            add_to_sums(cols, own, row, true, sums, sums + ld);
        else
            add_to_sums(cols, own, row, false, sums, sums + ld);
    }
}

/* ---- Gradients ---- */

SL_INLINE void add_gradient(int64_t count, const void *g, bool half, const float *restrict x,
                            float *restrict weight, float *restrict bias)
{
    for (int64_t i = 0; i < count; i++) {
        const float own = element(g, half, i);
        weight[i] += own * x[i];
        bias[i] += own;
    }
}

SL_KERNEL(sl_kernel_norm_gradient,
          (const struct sl_norm *n, const struct sl_rows *g, float *d, int64_t ld), (n, g, d, ld))
{
    const struct walk walk = walk_of(n);
    struct moments of[TOGETHER] = {{0}};
    float inverse[RUN], x[RUN];
    for (int64_t j = 0; j < n->cols; j++)
        d[j] = d[ld + j] = 0.0f;
    for (int64_t start = 0; start < n->cols; start += walk.panel) {
        invert(n, start, least(walk.panel, n->cols - start), inverse);
        for (int64_t r = 0; r < n->rows; r++) {
            if (!n->mean && r % TOGETHER == 0)
                find_moments(n, r, least(TOGETHER, n->rows - r), of);
            for (int64_t j = start; j < least(start + walk.panel, n->cols); j += RUN) {
                const int64_t count = least(RUN, n->cols - j);
                const void *row = sl_rows_at(g, r, j).data;
                normalise(n, false, of + r % TOGETHER, r, j, count, inverse, x);
                if (g->type == SL_BFLOAT16)
                    add_gradient(count, row, true, x, d + j, d + ld + j);
                else
                    add_gradient(count, row, false, x, d + j, d + ld + j);
            }
        }
    }
}

/* Find the means of wG and wG·X of rows whose other moments are known. */
SL_INLINE void find_products(const struct sl_norm_back *b, int64_t r, int64_t rows, float *x,
                             struct moments *of)
{
    const float cols = (float)(b->norm->moments ? b->norm->whole : b->norm->cols);
    if (!b->norm->moments)
        sum_products(b->norm, &b->g, r, rows, x, of);
    for (int64_t i = 0; i < rows; i++) {
        const bool whole = b->norm->moments; /* the row is cut: D has the sums over its parts */
        of[i].first = (whole ? b->d[r + i] : of[i].first) / cols;
        of[i].second = (whole ? b->d[b->ld + r + i] : of[i].second) / cols;
    }
}

/* Replace X by the gradient of H, without `after`. */
SL_INLINE void turn_back(const struct sl_norm_back *b, bool half, const struct moments *of,
                         int64_t r, int64_t j, int64_t count, const float *restrict inverse,
                         float *restrict x)
{
    const struct sl_norm *n = b->norm;
    const float *restrict w = n->weight + j, *d = b->d;
    const void *g = sl_rows_at(&b->g, r, j).data;
    const float first = of->first, second = of->second, by = of->inverse;
    const float share = (float)((n->root ? (double)n->root[r] : 1.0) / b->count);
    if (!n->mean)
        for (int64_t i = 0; i < count; i++)
            x[i] = by * (w[i] * element(g, half, i) - first - x[i] * second);
    else if (!d)
        for (int64_t i = 0; i < count; i++)
            x[i] = w[i] * inverse[i] * element(g, half, i);
    else
        for (int64_t i = 0; i < count; i++)
            x[i] = w[i] * inverse[i] *
                   (element(g, half, i) - share * (d[b->ld + j + i] + x[i] * d[j + i]));
}

SL_KERNEL(sl_kernel_norm_back, (const struct sl_norm_back *b), (b))
{
    const struct sl_norm *n = b->norm;
    const struct walk walk = walk_of(n);
    struct moments of[AT_ONCE] = {{0}};
    float inverse[RUN], x[RUN] = {0};
    struct sl_epilogue epilogue = SL_EPILOGUE_IDENTITY;
    const struct sl_rows from = sl_float_rows(x, walk.ld);
    const bool direct = is_apart(&b->y, &n->h) && is_apart(&b->y, &b->g) && !b->after;
    for (int64_t start = 0; start < n->cols; start += walk.panel) {
        invert(n, start, least(walk.panel, n->cols - start), inverse);
        for (int64_t r = 0; r < n->rows; r += walk.rows) {
            const int64_t rows = least(walk.rows, n->rows - r);
            if (!n->mean) {
                find_moments(n, r, rows, of);
                find_products(b, r, rows, x, of);
            }
            for (int64_t j = start; j < least(start + walk.panel, n->cols); j += RUN) {
                const int64_t count = least(RUN, n->cols - j);
                for (int64_t i = 0; i < rows; i++) {
                    float *restrict const to =
                        direct ? sl_rows_at(&b->y, r + i, j).data : x + i * walk.ld;
                    normalise(n, false, of + i, r + i, j, count, inverse, to);
                    if (b->g.type == SL_BFLOAT16)
                        turn_back(b, true, of + i, r + i, j, count, inverse, to);
                    else
                        turn_back(b, false, of + i, r + i, j, count, inverse, to);
                }
                if (direct)
                    continue;
                const struct sl_rows to = sl_rows_at(&b->y, r, j);
                epilogue.after = b->after ? b->after + r : NULL;
                sl_epilogue_rows(&epilogue, 0, rows, count, &from, &to);
            }
        }
    }
}
