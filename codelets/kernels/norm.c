/* Normalisation of rows or columns. X is made again wherever it is needed, a few rows at a time, in
 * a buffer of one run. */
#include "codelets/norm.h"

#include "codelets/kernels/rows_of_norm.h"

/* Rows go in blocks of 4 KiB. The stores of a block wait in the core's store buffer while the sums
 * of the next block are found. Sums of sixteen rows overlap. */
enum { BLOCK = 1024, FEWEST = 16, AT_ONCE = BLOCK / SL_ROW_UNIT };

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
    const int64_t most = RUN / ld, rows = BLOCK / ld > FEWEST ? BLOCK / ld : FEWEST;
    return (struct walk){n->mean ? RUN : n->cols, rows < most ? rows : most, ld};
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
                normalise(n, of, r, rows, j, count, inverse, direct ? sl_rows_at(z, r, j).data : x,
                          direct ? z->ld : walk.ld);
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

/* Add the gradients of weight and bias of `rows` rows from row r and column j on. */
SL_INLINE void add_gradient_of(const struct sl_norm *n, bool half_h, bool columns, bool half,
                               const struct sl_rows *g, const struct moments *of, int64_t r,
                               int64_t rows, int64_t j, int64_t count, const float *inverse,
                               float *weight, float *bias)
{
    const struct run_of_norm run = run_of(n, half_h, columns, j, inverse);
    const int64_t whole = count / SL_LANES * SL_LANES;
    for (int64_t q = 0; q < rows; q++) {
        const void *row = sl_rows_at(&n->h, r + q, j).data, *own = sl_rows_at(g, r + q, j).data;
        for (int64_t i = 0; i < whole; i += SL_LANES) {
            const sl_floats load = sl_load(own, i, half);
            *(sl_floats *)(weight + i) += load * normal_vector(&run, of + q, row, i);
            *(sl_floats *)(bias + i) += load;
        }
        for (int64_t i = whole; i < count; i++) {
            const float load = element(own, half, i);
            weight[i] = sl_add_product(weight[i], load, normal(&run, of + q, row, i));
            bias[i] += load;
        }
    }
}

SL_INLINE void add_gradient(const struct sl_norm *n, const struct sl_rows *g,
                            const struct moments *of, int64_t r, int64_t rows, int64_t j,
                            int64_t count, const float *inverse, float *weight, float *bias)
{
    const bool half_h = n->h.type == SL_BFLOAT16, half = g->type == SL_BFLOAT16,
               columns = n->mean != NULL;
#define ADD_GRADIENT(h, c, own)                           \
    if (half_h == (h) && columns == (c) && half == (own)) \
    add_gradient_of(n, h, c, own, g, of, r, rows, j, count, inverse, weight, bias)
    ADD_GRADIENT(false, false, false);
    ADD_GRADIENT(false, false, true);
    ADD_GRADIENT(false, true, false);
    ADD_GRADIENT(false, true, true);
    ADD_GRADIENT(true, false, false);
    ADD_GRADIENT(true, false, true);
    ADD_GRADIENT(true, true, false);
    ADD_GRADIENT(true, true, true);
#undef ADD_GRADIENT
}

SL_KERNEL(sl_kernel_norm_gradient,
          (const struct sl_norm *n, const struct sl_rows *g, float *d, int64_t ld), (n, g, d, ld))
{
    const struct walk walk = walk_of(n);
    struct moments of[TOGETHER] = {{0}};
    float inverse[RUN];
    for (int64_t j = 0; j < n->cols; j++)
        d[j] = d[ld + j] = 0.0f;
    for (int64_t start = 0; start < n->cols; start += walk.panel) {
        invert(n, start, least(walk.panel, n->cols - start), inverse);
        for (int64_t r = 0; r < n->rows; r += TOGETHER) {
            const int64_t rows = least(TOGETHER, n->rows - r);
            if (!n->mean)
                find_moments(n, r, rows, of);
            for (int64_t j = start; j < least(start + walk.panel, n->cols); j += RUN)
                add_gradient(n, g, of, r, rows, j, least(RUN, n->cols - j), inverse, d + j,
                             d + ld + j);
        }
    }
}

/* Find the means of wG and wG·X of rows whose other moments are known. */
SL_INLINE void find_products(const struct sl_norm_back *b, int64_t r, int64_t rows,
                             struct moments *of)
{
    const float cols = (float)(b->norm->moments ? b->norm->whole : b->norm->cols);
    if (!b->norm->moments)
        sum_products(b->norm, &b->g, r, rows, of);
    for (int64_t i = 0; i < rows; i++) {
        const bool whole = b->norm->moments; /* the row is cut: D has the sums over its parts */
        of[i].first = (whole ? b->d[r + i] : of[i].first) / cols;
        of[i].second = (whole ? b->d[b->ld + r + i] : of[i].second) / cols;
    }
}

/* Return the share of row r in the means of columns. */
SL_INLINE float share_of(const struct sl_norm_back *b, int64_t r)
{
    return (float)((b->norm->root ? (double)b->norm->root[r] : 1.0) / b->count);
}

/* Set `to` to the gradient of H, without `after`, of `rows` rows from row r and column j on. Rows
 * share the loads of means, factors and weights of columns. Add to b->gradient. Take whole
 * vectors alone; turn_back_last takes the other columns. to: rows with a distance of ldt. */
SL_INLINE void turn_back_by(const struct run_of_norm *run, const struct sl_norm_back *b, bool half,
                            const struct moments *of, int64_t r, int rows, int64_t j, int64_t count,
                            float *to, int64_t ldt)
{
    const struct sl_norm *n = b->norm;
    const float *w = run->weight, *inverse = run->inverse,
                *d = run->columns && b->d ? b->d + j : NULL, *e = d ? d + b->ld : NULL;
    float *const of_weight = run->columns || !b->gradient ? NULL : b->gradient + j;
    float *const of_bias = of_weight ? of_weight + b->ldg : NULL;
    const int64_t whole = count / SL_LANES * SL_LANES;
    const void *row[TOGETHER], *g[TOGETHER];
    float share[TOGETHER] = {0};
    SL_UNROLL for (int q = 0; q < rows; q++)
    {
        row[q] = sl_rows_at(&n->h, r + q, j).data;
        g[q] = sl_rows_at(&b->g, r + q, j).data;
        share[q] = d ? share_of(b, r + q) : 0.0f;
    }
    for (int64_t i = 0; i < whole; i += SL_LANES) {
        sl_floats products = {0}, sums = {0};
        if (of_weight) {
            products = *(const sl_floats *)(of_weight + i);
            sums = *(const sl_floats *)(of_bias + i);
        }
        SL_UNROLL for (int q = 0; q < rows; q++)
        {
            const sl_floats x = normal_vector(run, of + q, row[q], i), own = sl_load(g[q], i, half),
                            weight = *(const sl_floats *)(w + i);
            products += own * x;
            sums += own;
            sl_floats turned;
            if (!run->columns)
                turned = of[q].inverse * (weight * own - of[q].first - x * of[q].second);
            else if (!d)
                turned = weight * *(const sl_floats *)(inverse + i) * own;
            else
                turned = weight * *(const sl_floats *)(inverse + i) *
                         (own - share[q] * (*(const sl_floats *)(e + i) +
                                            x * *(const sl_floats *)(d + i)));
            *(sl_floats *)(to + q * ldt + i) = turned;
        }
        if (of_weight) {
            *(sl_floats *)(of_weight + i) = products;
            *(sl_floats *)(of_bias + i) = sums;
        }
    }
}

/* Do the work of turn_back_by for the last elements of a row, from column j + `from` on, fewer than
 * a vector. */
SL_INLINE void turn_back_last(const struct run_of_norm *run, const struct sl_norm_back *b,
                              bool half, const struct moments *of, int64_t r, int64_t j,
                              int64_t from, int64_t count, float *to)
{
    const void *h = sl_rows_at(&b->norm->h, r, j).data, *g = sl_rows_at(&b->g, r, j).data;
    const float *w = run->weight, *inverse = run->inverse,
                *d = run->columns && b->d ? b->d + j : NULL;
    const float share = d ? share_of(b, r) : 0.0f;
    float *const of_weight = run->columns || !b->gradient ? NULL : b->gradient + j;
    for (int64_t i = from; i < count; i++) {
        const float x = normal(run, of, h, i), own = element(g, half, i);
        if (of_weight) {
            of_weight[i] = sl_add_product(of_weight[i], own, x);
            of_weight[b->ldg + i] += own;
        }
        to[i] = !run->columns ? of->inverse * (w[i] * own - of->first - x * of->second)
                : !d          ? w[i] * inverse[i] * own
                              : w[i] * inverse[i] * (own - share * (d[b->ld + i] + x * d[i]));
    }
}

/* An area of the matrix: `rows` rows from row r on, `count` columns from column j on; the moments
 * of its rows, or the factors of its columns; and the place of its result. */
struct area {
    int64_t r, rows, j, count;
    const struct moments *of; // (rows)
    const float *inverse;     // (count)
    float *to;                // (rows, count), rows with a distance of ldt
    int64_t ldt;
};

SL_INLINE void turn_back_of(const struct sl_norm_back *b, bool half_h, bool columns, bool half,
                            const struct area *p)
{
    const struct run_of_norm run = run_of(b->norm, half_h, columns, p->j, p->inverse);
    int64_t q = 0;
    for (; q < fours_of(p->rows, p->count); q += TOGETHER)
        turn_back_by(&run, b, half, p->of + q, p->r + q, TOGETHER, p->j, p->count,
                     p->to + q * p->ldt, p->ldt);
    for (; q < p->rows; q++)
        turn_back_by(&run, b, half, p->of + q, p->r + q, 1, p->j, p->count, p->to + q * p->ldt,
                     p->ldt);
}

SL_INLINE void turn_back_rest(const struct sl_norm_back *b, bool half_h, bool columns, bool half,
                              const struct area *p)
{
    const struct run_of_norm run = run_of(b->norm, half_h, columns, p->j, p->inverse);
    const int64_t whole = p->count / SL_LANES * SL_LANES;
    for (int64_t q = 0; q < p->rows; q++)
        turn_back_last(&run, b, half, p->of + q, p->r + q, p->j, whole, p->count,
                       p->to + q * p->ldt);
}

/* Define the functions that turn back, for H and G of float32 or bfloat16 and for rows or columns.
 * In one large function, loops would lose registers to each other. */
#define TURN_BACK(h, columns, g)                                                                  \
    __attribute__((noinline)) static void turn_back_##h##columns##g(const struct sl_norm_back *b, \
                                                                    const struct area *p)         \
    {                                                                                             \
        turn_back_of(b, h, columns, g, p);                                                        \
    }                                                                                             \
    __attribute__((noinline)) static void rest_back_##h##columns##g(const struct sl_norm_back *b, \
                                                                    const struct area *p)         \
    {                                                                                             \
        turn_back_rest(b, h, columns, g, p);                                                      \
    }
TURN_BACK(0, 0, 0)
TURN_BACK(0, 0, 1)
TURN_BACK(0, 1, 0)
TURN_BACK(0, 1, 1)
TURN_BACK(1, 0, 0)
TURN_BACK(1, 0, 1)
TURN_BACK(1, 1, 0)
TURN_BACK(1, 1, 1)
#undef TURN_BACK

static void turn_back(const struct sl_norm_back *b, const struct area *p)
{
    static void (*const all[2][2][2][2])(const struct sl_norm_back *, const struct area *) = {
#define BOTH(h, columns, g) {turn_back_##h##columns##g, rest_back_##h##columns##g}
        {{BOTH(0, 0, 0), BOTH(0, 0, 1)}, {BOTH(0, 1, 0), BOTH(0, 1, 1)}},
        {{BOTH(1, 0, 0), BOTH(1, 0, 1)}, {BOTH(1, 1, 0), BOTH(1, 1, 1)}},
#undef BOTH
    };
    const bool half_h = b->norm->h.type == SL_BFLOAT16, half = b->g.type == SL_BFLOAT16;
    all[half_h][b->norm->mean != NULL][half][0](b, p);
    if (p->count % SL_LANES)
        all[half_h][b->norm->mean != NULL][half][1](b, p);
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
    for (int64_t j = 0; b->gradient && j < n->cols; j++)
        b->gradient[j] = b->gradient[b->ldg + j] = 0.0f;
    for (int64_t start = 0; start < n->cols; start += walk.panel) {
        invert(n, start, least(walk.panel, n->cols - start), inverse);
        for (int64_t r = 0; r < n->rows; r += walk.rows) {
            const int64_t rows = least(walk.rows, n->rows - r);
            if (!n->mean) {
                find_moments(n, r, rows, of);
                find_products(b, r, rows, of);
            }
            for (int64_t j = start; j < least(start + walk.panel, n->cols); j += RUN) {
                const int64_t count = least(RUN, n->cols - j);
                turn_back(b, &(struct area){r, rows, j, count, of, inverse,
                                            direct ? sl_rows_at(&b->y, r, j).data : x,
                                            direct ? b->y.ld : walk.ld});
                if (direct)
                    continue;
                const struct sl_rows to = sl_rows_at(&b->y, r, j);
                epilogue.after = b->after ? b->after + r : NULL;
                sl_epilogue_rows(&epilogue, 0, rows, count, &from, &to);
            }
        }
    }
}
