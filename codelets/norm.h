/* Normalisation of rows (LayerNorm: Ba, Kiros & Hinton 2016) or of columns (BatchNorm: Ioffe &
 * Szegedy 2015), and its gradient. H, G, Y and Z are float32 or bfloat16. */
#ifndef SL_CODELETS_NORM_H
#define SL_CODELETS_NORM_H

#include "codelets/epilogue.h"

/* X(r, j) = (H(r, j) - mean) / sqrt(variance + epsilon). Mean and variance (divided by the count)
 * are those of row r or, if `mean` and `variance` are given, of column j. Where `moments` are
 * given, H has some columns of rows that are cut (codelets/norm_parts.h). */
struct sl_norm {
    int64_t rows, cols;
    float epsilon;
    struct sl_rows h;             // (rows, cols)
    const float *mean, *variance; // (cols); NULL: rows are normalised
    const float *moments;         // (3, rows) of the whole rows; NULL: H has whole rows
    int64_t ldm, whole;           /* distance between rows of `moments`; columns of whole rows */
    const float *weight, *bias;   // (cols)
    const float *root;            // (rows), 1, or 0 for a copy of a row; NULL: all 1
};

/* Z = epilogue(weight(j)·X + bias(j)). The epilogue has neither bias nor mask. NULL: none. Z may be
 * H. */
void sl_kernel_norm(const struct sl_norm *norm, const struct sl_epilogue *epilogue,
                    const struct sl_rows *z);

/* sums(0, j) = Σ_r root(r)·H(r, j), sums(1, j) = Σ_r root(r)·H(r, j)². Rows are summed in order. */
void sl_kernel_norm_sums(int64_t rows, int64_t cols, const float *root, const struct sl_rows *h,
                         double *sums, int64_t ld);

/* statistics(0, j) = the mean, statistics(1, j) = the variance, out of the sums of `count` rows. */
void sl_kernel_norm_statistics(int64_t cols, double count, const double *sums, int64_t ld,
                               float *statistics, int64_t lds);

/* averages(0, j) = the mean, averages(1, j) = variance·count / (count - 1), the unbiased variance.
 * With one row: the variance. */
void sl_kernel_norm_averages(int64_t cols, double count, const float *statistics, int64_t lds,
                             float *averages, int64_t lda);

/* D(0, j) = Σ_r G(r, j)·X(r, j), D(1, j) = Σ_r G(r, j): the gradients of weight and bias. G
 * (rows, cols). */
void sl_kernel_norm_gradient(const struct sl_norm *norm, const struct sl_rows *g, float *d,
                             int64_t ld);

/* Y(r, j) = after(r) · the gradient of H, from G, the gradient of weight·X + bias.
 *
 *     rows      (wG - mean_j(wG) - X·mean_j(wG·X)) / sqrt(variance + epsilon)
 *     columns   w / sqrt(variance + epsilon) · (G - root(r)·(D(1, j) + X·D(0, j)) / count)
 *
 * D: for columns the sum of all rows' gradients (sl_kernel_norm_gradient); for cut rows the sum of
 * all products (sl_kernel_norm_products); else NULL. `count`: all rows, each once. `after` NULL: 1.
 * Y may be H or G. Columns with D NULL: the statistics do not depend on H. `gradient`, for whole
 * rows: what sl_kernel_norm_gradient makes, to the bit, in the same pass; NULL: nothing. */
struct sl_norm_back {
    const struct sl_norm *norm;
    struct sl_rows g;
    const float *d; // (2, cols), or (2, rows)
    int64_t ld;
    double count;
    const float *after; // (rows)
    float *gradient;    // (2, cols)
    int64_t ldg;
    struct sl_rows y;
};
void sl_kernel_norm_back(const struct sl_norm_back *back);

void sl_cuda_norm(const struct sl_norm *norm, const struct sl_epilogue *epilogue,
                  const struct sl_rows *z, struct sl_cuda_queue queue);
void sl_cuda_norm_sums(int64_t rows, int64_t cols, const float *root, const struct sl_rows *h,
                       double *sums, int64_t ld, struct sl_cuda_queue queue);
void sl_cuda_norm_statistics(int64_t cols, double count, const double *sums, int64_t ld,
                             float *statistics, int64_t lds, struct sl_cuda_queue queue);
void sl_cuda_norm_averages(int64_t cols, double count, const float *statistics, int64_t lds,
                           float *averages, int64_t lda, struct sl_cuda_queue queue);
void sl_cuda_norm_gradient(const struct sl_norm *norm, const struct sl_rows *g, float *d,
                           int64_t ld, struct sl_cuda_queue queue);
void sl_cuda_norm_back(const struct sl_norm_back *back, struct sl_cuda_queue queue);

/* The tiles of a normalisation. Row 0 of the layer's parameters is the weight, row 1 the bias.
 * Columns are normalised if there are statistics or if the norm is `running`, else rows. H has all
 * `width` columns, or columns from `column` on. */
struct sl_norm_tiles {
    struct sl_tile *scales;     /* row scales: the root, and `after` of sl_submit_norm_back */
    struct sl_tile *h;          // (rows, cols)
    struct sl_tile *parameters; // (2, width); a norm of columns: (4, width)
    struct sl_tile *statistics; // (2, width), mean and variance of columns; NULL: rows
    struct sl_tile *moments;    // (3, rows): moments of rows that are cut; NULL: H has whole rows
    struct sl_tile *gradient;   // (2, width): sl_submit_norm_back makes it, too, for whole rows
    int64_t column;
    bool running; /* rows 2 and 3 of the parameters take the place of `statistics` */
    float epsilon;
};

/* Submit Z = epilogue(weight·X + bias); Z may be the tile H. The epilogue (NULL: none) has neither
 * parameters nor a mask. The scales of the norm are not read. */
void sl_submit_norm(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                    const struct sl_epilogue_tiles *epilogue, struct sl_tile *z);

/* Submit SUMS (2, cols) of double, from H; a vertex counts at its root. sl_submit_norm_sums_add
 * submits Y += X, for sl_reduce. */
void sl_submit_norm_sums(struct sl_runtime *rt, struct sl_tile *scales, struct sl_tile *h,
                         struct sl_tile *sums);
void sl_submit_norm_sums_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Submit STATISTICS (2, width), from column `column` on, from the sums (2, cols) over `count`
 * vertices. Columns from 0 on are written first. */
void sl_submit_norm_statistics(struct sl_runtime *rt, int64_t count, struct sl_tile *sums,
                               int64_t column, struct sl_tile *statistics);

/* Submit rows 0 and 1 of GRADIENT (…, cols) = the gradients of weight and bias; the other rows
 * become 0. */
void sl_submit_norm_gradient(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                             struct sl_tile *g, struct sl_tile *gradient);

/* Submit rows 2 and 3 of GRADIENT = mean and unbiased variance of `count` vertices. Running
 * averages move towards these rows. */
void sl_submit_norm_averages(struct sl_runtime *rt, int64_t count, struct sl_tile *statistics,
                             struct sl_tile *gradient);

/* Submit Y = after · the gradient of H; Y may be the tile H or G. D for columns: the gradient tile
 * of sl_submit_norm_gradient, summed over all of the graph's rows, which have `count` vertices, and
 * over all columns of the grid. D for cut rows: the sum of all products. D for whole rows: NULL. */
void sl_submit_norm_back(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                         struct sl_tile *g, struct sl_tile *d, int64_t count,
                         enum sl_row_scale after, struct sl_tile *y);

/* Argument of the tasks norm, norm_gradient, norm_products and norm_back: the tiles that come
 * along, and other values. */
struct norm_argument {
    float epsilon;
    bool scales, statistics, moments, running, d, g;
    bool gradient; /* the tile before the output is the gradient of weight and bias */
    int64_t column, whole;
    bool z_is_h, z_is_g; /* Z is the task's output */
    enum sl_row_scale after;
    double count;
    struct epilogue_argument epilogue;
};

/* Operands of norm, norm_gradient, norm_products and norm_back. */
struct norm_operands {
    struct sl_norm norm;
    struct sl_epilogue epilogue;
    struct sl_rows g, z;
    int64_t z_rows;
    const float *after; // (rows)
    const float *d;     // (2, cols), or (2, rows)
    int64_t ldd;
    float *gradient; // (2, cols)
    int64_t ldg;
};
void sl_norm_buffers(const struct norm_argument *argument, void **buffers,
                     struct norm_operands *operands);

/* List all tiles of a task but its output Z, and note them in the argument. If Z is H or G, leave
 * that tile out. Return how many. */
int sl_norm_pack(const struct sl_norm_tiles *from, struct sl_tile *g, struct sl_tile *d,
                 const struct sl_tile *z, struct norm_argument *to, struct sl_tile **tiles);

/* Return the operands of norm_back. */
static inline struct sl_norm_back sl_norm_back_of(const struct norm_argument *argument,
                                                  const struct norm_operands *operands)
{
    return (struct sl_norm_back){
        &operands->norm, operands->g,        operands->d,   operands->ldd, argument->count,
        operands->after, operands->gradient, operands->ldg, operands->z,
    };
}

/* Argument of the task norm_statistics. */
struct norm_statistics_argument {
    double count;
    int64_t column;
};

#endif
