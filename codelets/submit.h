/* Submission of every operation: one task on tiles. A call does nothing on ranks that do not own
 * the output tile. Shapes are those of the kernels (codelets/kernels.h). */
#ifndef SL_CODELETS_SUBMIT_H
#define SL_CODELETS_SUBMIT_H

#include "codelets/kernels.h"
#include "core/sparse.h"
#include "core/task.h"

/* What is known of each row of a tile: a (SL_ROW_FACTS, rows) tile, a row of it per fact. The
 * normalised adjacency is Â = diag(left)·S·diag(right) with S = A + I, whose values are 1 on a
 * graph without weights. */
enum sl_row_fact {
    SL_ROW_NONE = -1,
    SL_ROW_VERTEX, /* the vertex's number in the dataset, uint32_t; the others are float */
    SL_ROW_LEFT,
    SL_ROW_RIGHT,
    SL_ROW_BOTH,         /* left · right */
    SL_ROW_INVERSE_LEFT, /* 1 / left */
    SL_ROW_INVERSE_RIGHT,
    SL_ROW_FACTS,
};

/* struct sl_epilogue on tiles. */
struct sl_epilogue_tiles {
    struct sl_tile *facts; /* of the rows; NULL: neither factors nor dropout */
    enum sl_row_fact before, after;
    float scale;
    struct sl_tile *parameters; /* whose row `bias_row` is the bias; NULL: none */
    int64_t bias_row, bias_col; /* where it begins */
    bool relu;
    struct sl_tile *mask; /* NULL: none */
    struct sl_dropout drop;
};

/* Nothing happens. */
#define SL_EPILOGUE_NONE                                           \
    (struct sl_epilogue_tiles)                                     \
    {                                                              \
        .before = SL_ROW_NONE, .after = SL_ROW_NONE, .scale = 1.0f \
    }

enum {
    SL_SPMM_PARTS = 16,
    SL_SPMM_TILES = 128, /* dense ones that a GPU takes at once */
};

/* Z = Σ_p A(p)·H(p) (accumulate: Z + …) for at most SL_SPMM_PARTS tiles, then the epilogue, unless
 * it is NULL. */
struct sl_spmm_tiles {
    int parts;
    struct sl_sparse_tile *const *a; // (parts)
    struct sl_tile *const *h; /* a[p]->span tiles for each p; those of one p are neighbours in
                                 one matrix whose memory is this rank's */
    bool accumulate;
    const struct sl_epilogue_tiles *epilogue;
    struct sl_tile *sum; /* float32, where Z is bfloat16, for the sums (sl_kernel_spmm); NULL will
                            do for one part of one block that meets SL_SPMM_TILES tiles at most */
    struct sl_tile *z;
};
void sl_submit_spmm(struct sl_runtime *rt, const struct sl_spmm_tiles *tiles);

/* Submit Z = the largest value of the neighbours (minimum: the least), and ARGMAX (int32) = the
 * vertex of each value (sl_kernel_max). Values are rows of H times the weights of A's entries;
 * accumulate: also Z. H and Z are of either type. */
struct sl_max_tiles {
    struct sl_sparse_tile *a;
    struct sl_tile *h, *argmax, *z;
    bool accumulate, minimum;
    struct sl_tile *vertices; /* of the columns of A, int32, in its first row; NULL: */
    int64_t first;            /* that of column 0, and so on from there */
};
void sl_submit_max(struct sl_runtime *rt, const struct sl_max_tiles *tiles);

/* Submit Z = [Z +] the gradient of H from `h`, which is that of the maximum here, and its ARGMAX;
 * `a` is Aᵀ, and the vertices are those of its rows. All but ARGMAX are float32. */
void sl_submit_max_back(struct sl_runtime *rt, const struct sl_max_tiles *tiles);

/* Merge two results of sl_submit_max for the same vertices: (Z, ARGMAX)(index[r]) = the larger
 * (minimum: the smaller) of it and (X, FROM)(r), for the rows first … first + rows - 1 of X. No row
 * of Z is there twice. index is (1, rows of X) of uint32; NULL: index[r] = r. X and Z are of one
 * type.
 */
struct sl_max_merge_tiles {
    struct sl_tile *x, *from;
    struct sl_tile *index;
    int64_t first, rows;
    bool minimum;
    struct sl_tile *argmax, *z;
};
void sl_submit_max_merge(struct sl_runtime *rt, const struct sl_max_merge_tiles *tiles);

/* Z = epilogue(SUM), which may be one tile; the mask may be Z as it was. */
void sl_submit_epilogue(struct sl_runtime *rt, const struct sl_epilogue_tiles *epilogue,
                        struct sl_tile *sum, struct sl_tile *z);

/* Z = X·H or Xᵀ·H with sparse features X, dropped out if `drop` is not NULL; of Z, only as many
 * rows as the product has. */
struct sl_features_tiles {
    bool transposed;
    struct sl_sparse_tile *x;
    const struct sl_dropout *drop;
    struct sl_tile *facts, *h;
    int64_t h_row, h_col; /* where H begins in its tile */
    struct sl_tile *z;
};
void sl_submit_features(struct sl_runtime *rt, const struct sl_features_tiles *tiles);

/* Z = X as a dense matrix, dropped out if `drop` is not NULL. */
void sl_submit_expand(struct sl_runtime *rt, struct sl_sparse_tile *x,
                      const struct sl_dropout *drop, struct sl_tile *facts, struct sl_tile *z);

/* C = epilogue(op(A)·op(B)), sizes and types as for sl_kernel_gemm; tiles may have further rows,
 * which are left alone. */
struct sl_gemm_tiles {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    struct sl_tile *a, *b;
    int64_t b_row, b_col; /* where B begins in its tile */
    bool accumulate;
    const struct sl_epilogue_tiles *epilogue; /* NULL: none; the mask may be C as it was */
    struct sl_tile *c;
};
void sl_submit_gemm(struct sl_runtime *rt, const struct sl_gemm_tiles *tiles);

/* Z += row `bias_row` of `parameters`, on every row. */
void sl_submit_bias(struct sl_runtime *rt, struct sl_tile *parameters, int64_t bias_row,
                    struct sl_tile *z);

/* Row `bias_row` of `gradient` = sums over the rows of G, multiplied by the fact `factor` of each.
 */
void sl_submit_bias_gradient(struct sl_runtime *rt, struct sl_tile *facts, enum sl_row_fact factor,
                             struct sl_tile *g, int64_t bias_row, struct sl_tile *gradient);

/* Z = max(Z, 0). */
void sl_submit_relu(struct sl_runtime *rt, struct sl_tile *z);

/* G = H > 0 ? scale · G : 0. */
void sl_submit_relu_backward(struct sl_runtime *rt, float scale, struct sl_tile *h,
                             struct sl_tile *g);

/* Y = X * dropout factors; the tile's first column is column0 of its rows. */
void sl_submit_dropout(struct sl_runtime *rt, const struct sl_dropout *drop, struct sl_tile *facts,
                       int64_t column0, struct sl_tile *x, struct sl_tile *y);

/* A metrics tile is one row of SL_METRICS doubles. */
enum {
    SL_METRIC_LOSS = 0,    /* + split: summed cross-entropy over the split's vertices */
    SL_METRIC_CORRECT = 4, /* + split: vertices predicted right */
    SL_METRIC_STOP = 8,    /* rank 0 was asked to stop */
    SL_METRIC_SECONDS = 9, /* from the epoch before to this one, on rank 0 */
    /* The first layer of the epoch, from 1, with a number that is not finite in its gradient, or in
     * the result of its step; 0: none. */
    SL_METRIC_BAD_GRADIENT = 10,
    SL_METRIC_BAD_UPDATE = 11,
    SL_METRICS = 16,
};

/* Submit Z = the gradient of the mean cross-entropy over `train_count` training vertices, from
 * logits Z. The fact `factor` multiplies the rows of the gradient. metrics = this tile's training
 * loss sum and correct count, all else 0. target: (rows, 2) of int32 {label or -1, split}. */
void sl_submit_softmax_loss(struct sl_runtime *rt, int64_t train_count, struct sl_tile *facts,
                            enum sl_row_fact factor, struct sl_tile *target,
                            struct sl_tile *metrics, struct sl_tile *z);

/* metrics = this tile's loss sums and correct counts of every split. */
void sl_submit_accuracy(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                        struct sl_tile *metrics);

/* Y += X, float32 or metrics tiles. */
void sl_submit_accumulate(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);
void sl_submit_metrics_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* The last epoch of a run is known when epochs after it are submitted already. A (1, 1) tile of
 * double says which one it is, 0 as long as there is none; steps of later epochs do nothing. */

/* One optimizer step on parameters W with gradient G and state M, V (SGD takes no V),
 * unless `end` holds an epoch before `epoch`. W stays, too, if `metrics` hold a training loss or
 * the number of a layer before this one that is not finite. If a number of this layer is not
 * finite, the step writes the layer into `metrics`. */
struct sl_optimizer_tiles {
    int epoch, layer; /* the layer from 1 */
    struct sl_tile *end, *metrics, *g, *m, *v, *w;
};
void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step,
                         const struct sl_optimizer_tiles *tiles);

/* SUM, (1, 1) of double, = [SUM +] the squares of G, added in an order that the shape of G says. */
void sl_submit_square_sum(struct sl_runtime *rt, bool accumulate, struct sl_tile *g,
                          struct sl_tile *sum);

/* G *= limit / sqrt(SUM), unless that is 1 or more. */
void sl_submit_clip(struct sl_runtime *rt, double limit, struct sl_tile *sum, struct sl_tile *g);

/* The first `rows` rows of W ~ uniform(-limit, limit) by (key, row, column), the others 0. */
void sl_submit_glorot(struct sl_runtime *rt, int64_t rows, float limit, uint64_t key,
                      struct sl_tile *w);

/* W = value. */
void sl_submit_fill(struct sl_runtime *rt, float value, struct sl_tile *w);

/* Y = diag(s)·X; s is (1, rows). */
void sl_submit_scale_rows(struct sl_runtime *rt, struct sl_tile *s, struct sl_tile *x,
                          struct sl_tile *y);

/* Submit Y = listed rows of `count` tiles, one tile after the other. Y(r, :) = X(t)(index[r], :)
 * for r = first[t] … first[t + 1] - 1. index is (1, rows of Y) of uint32. */
struct sl_pack_tiles {
    struct sl_tile *index;
    int count;
    struct sl_tile *const *x; // (count)
    const int64_t *first;     // (count + 1), from 0 to the rows of Y
    struct sl_tile *y;
};
void sl_submit_pack_rows(struct sl_runtime *rt, const struct sl_pack_tiles *tiles);

/* Submit Y(index[r], :) = X(r, :), or +=, for r = first … first + rows - 1. No row of Y is there
 * twice. index is (1, rows of X) of uint32. */
struct sl_unpack_tiles {
    struct sl_tile *index, *x;
    int64_t first, rows;
    bool accumulate;
    struct sl_tile *y;
};
void sl_submit_unpack_rows(struct sl_runtime *rt, const struct sl_unpack_tiles *tiles);

/* Submit a call of record(context, epoch, values) on a worker of the rank that owns `end`. The call
 * waits for this epoch's values in `metrics`, for the current value of `after` (NULL: none), and
 * for tasks that read `end`. So the calls of a rank are in order. The callback must be quick.
 * Values that the callback writes to `values` stay in `metrics`. If the callback returns true, the
 * run ends with this epoch, unless the run has ended already. */
typedef bool sl_record_function(void *context, int epoch, double *values);
void sl_submit_record(struct sl_runtime *rt, sl_record_function *record, void *context, int epoch,
                      struct sl_tile *metrics, struct sl_tile *after, struct sl_tile *end);

/* best = {best value, its epoch}: if metrics[index] > best[0], replaces both; if not, and
 * `patience` epochs have passed since the best one, the run ends with this epoch. Nothing after the
 * end. */
void sl_submit_keep_best(struct sl_runtime *rt, int index, int epoch, int patience,
                         struct sl_tile *metrics, struct sl_tile *best, struct sl_tile *end);

/* copy = W if best[1] == epoch. */
void sl_submit_copy_if_best(struct sl_runtime *rt, int epoch, struct sl_tile *best,
                            struct sl_tile *w, struct sl_tile *copy);

/* Y = X. */
void sl_submit_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Y(y_row…, y_col…) = X(x_row…, x_col…), of one type, as far as both have rows and columns. */
struct sl_paste_tiles {
    struct sl_tile *x;
    int64_t x_row, x_col;
    struct sl_tile *y;
    int64_t y_row, y_col;
};
void sl_submit_paste(struct sl_runtime *rt, const struct sl_paste_tiles *tiles);

#endif
