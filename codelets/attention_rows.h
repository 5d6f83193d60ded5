/* Graph attention, row by row and on parameters. codelets/attention.h describes the rows. */
#ifndef SL_CODELETS_ATTENTION_ROWS_H
#define SL_CODELETS_ATTENTION_ROWS_H

#include "codelets/attention.h"

/* The parameters of a layer: rows of `columns` columns: `skipped` rows of other weights, W (`in`
 * rows), a_src, a_dst, and the bias (`bias`: 0 or 1 row). Where entries have features, W_e
 * (`edge_features` rows) follows W, and a_edge follows a_dst. Kernels get parameters from W on. The
 * weights that products see are W, then a column W·a_src and then a column W·a_dst for each head.
 *
 * Ranks that share rows have some of the columns each. A rank's part has the layer's heads from
 * first_head on, with columns first_column … first_column + F - 1 of each head's head_width. Its
 * weights begin at column `at`. The first `out` columns of its bias count: the layer's columns from
 * out_column on. */
struct sl_attention_shape {
    int64_t in, columns, skipped;
    int64_t edge_features; /* K; 0: none */
    bool bias;
    int64_t head_width, first_column; /* columns of a head; the part's first one */
    int64_t at;
    int64_t out, out_column;
};

/* Make the part's columns of WEIGHTS (`in` rows) from PARAMETERS. */
void sl_kernel_attention_weights(const struct sl_attention *attention,
                                 const struct sl_attention_shape *shape,
                                 const struct sl_floats_at *parameters,
                                 const struct sl_floats_at *weights);

/* Make EDGE (K, H) of the part from PARAMETERS: W_e·a_edge of each head. */
void sl_kernel_attention_edge(const struct sl_attention *attention,
                              const struct sl_attention_shape *shape,
                              const struct sl_floats_at *parameters,
                              const struct sl_floats_at *edge);

/* BACK = [BACK +] the part's share of the parameters' gradient, from PARAMETERS and GRADIENT of the
 * weights. After `in` rows, GRADIENT has K rows, whose first H columns from `at` on are
 * EDGE_BACK's. Its last row is the bias's. */
void sl_kernel_attention_weights_back(const struct sl_attention *attention,
                                      const struct sl_attention_shape *shape,
                                      const struct sl_floats_at *parameters,
                                      const struct sl_floats_at *gradient, bool accumulate,
                                      const struct sl_floats_at *back);

/* Make SCORES from PROJECTED, with L = 0, and write `vertex` (rows) into both. */
void sl_kernel_attention_scores(const struct sl_attention *attention, int64_t rows,
                                const uint32_t *vertex, const struct sl_floats_at *projected,
                                const struct sl_floats_at *scores);

/* Make Z (rows, out) = epilogue(the closed STATE's Z); `out` = F: the mean of the heads, else H·F.
 */
void sl_kernel_attention_output(const struct sl_attention *attention, int64_t rows, int64_t out,
                                const struct sl_floats_at *state,
                                const struct sl_epilogue *epilogue, const struct sl_rows *z);

/* Make GRADIENT (rows) = [G | r] from G (rows, out), the gradient of the output before bias and
 * activation, and the closed STATE. */
void sl_kernel_attention_gradient(const struct sl_attention *attention, int64_t rows, int64_t out,
                                  const struct sl_rows *g, const struct sl_floats_at *state,
                                  const struct sl_floats_at *gradient);

/* Add G·Z' - r q to ds of BACK (rows). */
void sl_kernel_attention_own(const struct sl_attention *attention, int64_t rows,
                             const struct sl_floats_at *gradient, const struct sl_floats_at *state,
                             const struct sl_floats_at *back);

void sl_cuda_attention_weights(const struct sl_attention *attention,
                               const struct sl_attention_shape *shape,
                               const struct sl_floats_at *parameters,
                               const struct sl_floats_at *weights, struct sl_cuda_queue queue);
void sl_cuda_attention_edge(const struct sl_attention *attention,
                            const struct sl_attention_shape *shape,
                            const struct sl_floats_at *parameters, const struct sl_floats_at *edge,
                            struct sl_cuda_queue queue);
void sl_cuda_attention_weights_back(const struct sl_attention *attention,
                                    const struct sl_attention_shape *shape,
                                    const struct sl_floats_at *parameters,
                                    const struct sl_floats_at *gradient, bool accumulate,
                                    const struct sl_floats_at *back, struct sl_cuda_queue queue);
void sl_cuda_attention_scores(const struct sl_attention *attention, int64_t rows,
                              const uint32_t *vertex, const struct sl_floats_at *projected,
                              const struct sl_floats_at *scores, struct sl_cuda_queue queue);
void sl_cuda_attention_output(const struct sl_attention *attention, int64_t rows, int64_t out,
                              const struct sl_floats_at *state, const struct sl_epilogue *epilogue,
                              const struct sl_rows *z, struct sl_cuda_queue queue);
void sl_cuda_attention_gradient(const struct sl_attention *attention, int64_t rows, int64_t out,
                                const struct sl_rows *g, const struct sl_floats_at *state,
                                const struct sl_floats_at *gradient, struct sl_cuda_queue queue);
void sl_cuda_attention_own(const struct sl_attention *attention, int64_t rows,
                           const struct sl_floats_at *gradient, const struct sl_floats_at *state,
                           const struct sl_floats_at *back, struct sl_cuda_queue queue);

/* Submit the kernels above. `further`: the part is not the first of its layer. */
void sl_submit_attention_weights(struct sl_runtime *rt, const struct sl_attention *attention,
                                 const struct sl_attention_shape *shape, bool further,
                                 struct sl_tile *parameters, struct sl_tile *weights);
void sl_submit_attention_edge(struct sl_runtime *rt, const struct sl_attention *attention,
                              const struct sl_attention_shape *shape, struct sl_tile *parameters,
                              struct sl_tile *edge);
void sl_submit_attention_weights_back(struct sl_runtime *rt, const struct sl_attention *attention,
                                      const struct sl_attention_shape *shape, bool further,
                                      struct sl_tile *parameters, struct sl_tile *gradient,
                                      struct sl_tile *back);
void sl_submit_attention_scores(struct sl_runtime *rt, const struct sl_attention *attention,
                                struct sl_tile *scales, struct sl_tile *projected,
                                struct sl_tile *scores);
void sl_submit_attention_output(struct sl_runtime *rt, const struct sl_attention *attention,
                                const struct sl_epilogue_tiles *epilogue, struct sl_tile *state,
                                struct sl_tile *z);
void sl_submit_attention_gradient(struct sl_runtime *rt, const struct sl_attention *attention,
                                  struct sl_tile *g, struct sl_tile *state,
                                  struct sl_tile *gradient);
void sl_submit_attention_own(struct sl_runtime *rt, const struct sl_attention *attention,
                             struct sl_tile *gradient, struct sl_tile *state, struct sl_tile *back);

/* Argument of the tasks attention_weights, attention_edge and attention_weights_back. */
struct attention_weights_argument {
    struct sl_attention attention;
    struct sl_attention_shape shape;
    bool further;
};

/* Argument of the task attention_output. */
struct attention_output_argument {
    struct sl_attention attention;
    struct epilogue_argument epilogue;
};

#endif
