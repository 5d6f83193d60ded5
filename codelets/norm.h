/* Normalisation of rows (LayerNorm: Ba, Kiros & Hinton 2016) or of columns (BatchNorm: Ioffe &
 * Szegedy 2015), and its gradient. H, G, Y and Z are of either type. */
#ifndef SL_CODELETS_NORM_H
#define SL_CODELETS_NORM_H

#include "codelets/epilogue.h"

/* X(r, j) = (H(r, j) - mean) / sqrt(variance + epsilon), with the mean and the variance (divided by
 * the count) of row r. Where `mean` and `variance` are given: of column j. Where `moments` are
 * given, H has some columns of rows that are cut (codelets/norm_parts.h). */
struct sl_norm {
    int64_t rows, cols;
    float epsilon;
    struct sl_rows h;             // (rows, cols)
    const float *mean, *variance; // (cols); NULL: of each row
    const float *moments;         // (3, rows) of the whole rows; NULL: H has whole rows
    int64_t ldm, whole;           /* columns of whole rows that are cut */
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

/* averages(0, j) = the mean, averages(1, j) = variance·count / (count - 1), the unbiased one. Of
 * one row: the variance. */
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
 * D: of columns the sum of all rows' gradients (sl_kernel_norm_gradient), of cut rows the sum of
 * all products (sl_kernel_norm_products), else NULL. `count` rows: each once. `after` NULL: 1. Y
 * may be H or G. Of columns, D NULL: the statistics do not depend on H. */
struct sl_norm_back {
    const struct sl_norm *norm;
    struct sl_rows g;
    const float *d; // (2, cols), or (2, rows)
    int64_t ld;
    double count;
    const float *after; // (rows)
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

/* What is normalised and with what. The layer's parameters: row 0 is the weight, row 1 the bias.
 * The norm is of columns if there are statistics or if it is `running`. H has all `width` columns,
 * or those from `column` on. */
struct sl_norm_tiles {
    struct sl_tile *facts;      /* of the rows: the root, and `after` of sl_submit_norm_back */
    struct sl_tile *h;          // (rows, cols)
    struct sl_tile *parameters; // (2, width); of columns (4, width)
    struct sl_tile *statistics; // (2, width), mean and variance; NULL: of each row
    struct sl_tile *moments;    // (3, rows), of rows that are cut; NULL: H has whole rows
    int64_t column;
    bool running; /* instead of `statistics`, rows 2 and 3 of the parameters */
    float epsilon;
};

/* Z = epilogue(weight·X + bias); Z may be the tile H. The epilogue (NULL: none) has neither
 * parameters nor a mask. The facts of the norm are not read. */
void sl_submit_norm(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                    const struct sl_epilogue_tiles *epilogue, struct sl_tile *z);

/* SUMS (2, cols) of double, from H; a vertex counts at its root. Y += X of sums has the form that
 * sl_reduce takes. */
void sl_submit_norm_sums(struct sl_runtime *rt, struct sl_tile *facts, struct sl_tile *h,
                         struct sl_tile *sums);
void sl_submit_norm_sums_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* STATISTICS (2, width), from column `column` on, from the sums (2, cols) over `count` vertices.
 * Columns from 0 on are written first. */
void sl_submit_norm_statistics(struct sl_runtime *rt, int64_t count, struct sl_tile *sums,
                               int64_t column, struct sl_tile *statistics);

/* Rows 0 and 1 of GRADIENT (…, cols) = the gradients of weight and bias; the other rows are 0. */
void sl_submit_norm_gradient(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                             struct sl_tile *g, struct sl_tile *gradient);

/* Rows 2 and 3 of GRADIENT = mean and unbiased variance of `count` vertices: what the running
 * averages move to. */
void sl_submit_norm_averages(struct sl_runtime *rt, int64_t count, struct sl_tile *statistics,
                             struct sl_tile *gradient);

/* Y = after · the gradient of H; Y may be the tile H or G. D, of columns: the gradient tile of
 * sl_submit_norm_gradient, summed over all of the graph's rows, which have `count` vertices, and
 * over all columns of the grid. Of cut rows: the sum of all products. Of whole rows NULL. */
void sl_submit_norm_back(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                         struct sl_tile *g, struct sl_tile *d, int64_t count,
                         enum sl_row_fact after, struct sl_tile *y);

/* norm, norm_gradient, norm_products, norm_back: which tiles there are, and what is known beside
 * them. */
struct norm_argument {
    float epsilon;
    bool facts, statistics, moments, running, d, g;
    int64_t column, whole;
    bool z_is_h, z_is_g; /* Z: the output */
    enum sl_row_fact after;
    double count;
    struct epilogue_argument epilogue;
};

/* Their operands. */
struct norm_operands {
    struct sl_norm norm;
    struct sl_epilogue epilogue;
    struct sl_rows g, z;
    int64_t z_rows;
    const float *after; // (rows)
    const float *d;     // (2, cols), or (2, rows)
    int64_t ldd;
};
void sl_norm_buffers(const struct norm_argument *argument, void **buffers,
                     struct norm_operands *operands);

/* List all tiles but the output, which the next is unless it is H or G, and say so in the argument.
 * Return how many. */
int sl_norm_pack(const struct sl_norm_tiles *from, struct sl_tile *g, struct sl_tile *d,
                 const struct sl_tile *z, struct norm_argument *to, struct sl_tile **tiles);

/* The one of norm_back. */
static inline struct sl_norm_back sl_norm_back_of(const struct norm_argument *argument,
                                                  const struct norm_operands *operands)
{
    return (struct sl_norm_back){
        &operands->norm, operands->g,     operands->d, operands->ldd,
        argument->count, operands->after, operands->z,
    };
}

/* norm_statistics */
struct norm_statistics_argument {
    double count;
    int64_t column;
};

#endif
