/* Attention whose scores need the rows of both ends of an edge: of GATv2 and of graph transformers.
 * The formulas are in graphs/reduce_pair.c. A row of each matrix has, for heads h = 0 … H - 1,
 *
 *     projected   K (H·F)   V (H·F)   T (H·F)     V of a transformer alone; else V is K
 *     source      K (H·R)   V (H·R)   the vertex's number, as bits
 *     target      T (H·R)   L (H)     the vertex's number, as bits     U (K·H)
 *     state       Z (H·R)   m (H)     l (H)     B (K·H)     closed: L in place of m
 *     gradient    G (H·R)   r (H)     Y (K·H)
 *     target_back C (H·R)   A (K·H)
 *     source_back D (H·R)   E (H·R)
 *
 * all of them float32. F is the width of a head. R >= F is its room: F rounded up to 1, 2, 4 or a
 * multiple of 8. Columns of the room behind F are 0.
 *
 * An entry may have K features, which weights W_e (K, H·F) turn into a row of its edge. Of a
 * transformer with features alone, heads have K numbers each: U, B, Y and A, for feature 0 those of
 * all heads, then for feature 1, …: the heads of a feature fill a vector.
 *
 * The vectors of a part are a tile of SL_PAIR_VECTORS rows (H·R), 0 for a transformer, and K rows
 * W_e. */
#ifndef SL_CODELETS_PAIR_H
#define SL_CODELETS_PAIR_H

#include "codelets/attention.h"

enum {
    SL_PAIR_EVEN, /* a · (1 + slope) / 2: the factor of x in a · LeakyReLU(x) */
    SL_PAIR_ODD,  /* a · (1 - slope) / 2: the factor of |x| */
    SL_PAIR_PLAIN,
    SL_PAIR_VECTORS
};

struct sl_pair {
    struct sl_attention attention; /* attention.width: R */
    int64_t width;                 /* F */
    bool products; /* scores are K·T (transformer); else a·LeakyReLU(K + T) (GATv2) */
    float scale;   /* factor of T of a transformer; else 1 */
    int64_t edges; /* K, 0 … SL_EDGE_FEATURES: the features of an entry */
};

/* Return R. */
static inline int64_t sl_pair_room(int64_t width)
{
    return width <= 2 ? width : width <= 4 ? 4 : (width + 7) / 8 * 8;
}

/* Return the columns of all heads: with their room, and without. */
static inline int64_t sl_pair_all(const struct sl_pair *pair)
{
    return sl_attention_all(&pair->attention);
}

static inline int64_t sl_pair_columns(const struct sl_pair *pair)
{
    return pair->attention.heads * pair->width;
}

/* Return the rows of the vectors. */
static inline int64_t sl_pair_vector_rows(const struct sl_pair *pair)
{
    return SL_PAIR_VECTORS + pair->edges;
}

/* Return the columns of U, B, Y or A: 0 where a row has none. */
static inline int64_t sl_pair_numbers(const struct sl_pair *pair)
{
    return pair->products ? pair->edges * pair->attention.heads : 0;
}

/* Return how many weight matrices, and biases of them, the layer has: for K, for V of a
 * transformer, for T. */
static inline int sl_pair_weights(const struct sl_pair *pair)
{
    return pair->products ? 3 : 2;
}

/* Return the columns of the matrices above. */
static inline int64_t sl_pair_projected(const struct sl_pair *pair)
{
    return sl_pair_weights(pair) * sl_pair_columns(pair);
}

static inline int64_t sl_pair_source(const struct sl_pair *pair)
{
    return (pair->products ? 2 : 1) * sl_pair_all(pair) + 1;
}

static inline int64_t sl_pair_target(const struct sl_pair *pair)
{
    return sl_pair_all(pair) + pair->attention.heads + 1 + sl_pair_numbers(pair);
}

static inline int64_t sl_pair_state(const struct sl_pair *pair)
{
    return sl_pair_all(pair) + 2 * pair->attention.heads + sl_pair_numbers(pair);
}

static inline int64_t sl_pair_gradient(const struct sl_pair *pair)
{
    return sl_pair_all(pair) + pair->attention.heads + sl_pair_numbers(pair);
}

static inline int64_t sl_pair_target_back(const struct sl_pair *pair)
{
    return sl_pair_all(pair) + sl_pair_numbers(pair);
}

/* The parameters of a layer are rows of `columns` columns. First come `skipped` rows of other
 * weights, then a matrix of `in` rows for each of K, V, T, then the rows of W_e. GATv2 has a next.
 * With `bias`, the biases of K, V, T and the layer's bias end the parameters. The part's columns of
 * weights and vectors begin at `first`, its columns of the weights that products see at `at`. Its
 * first `out` columns of bias begin at `out_column`.
 *
 * The gradient of the weights that products see has further rows: of W_e (of M in GATv2), then, in
 * GATv2, of a. With `bias`, a row for the biases of K, V, T side by side and a row for the layer's
 * bias follow. */
struct sl_pair_shape {
    int64_t in, columns, skipped;
    int64_t first, at;
    bool bias;
    int64_t out, out_column;
};

/* ---- Parameters ---- */

/* Make the part's columns of WEIGHTS (in, …) and its VECTORS from PARAMETERS. */
void sl_kernel_pair_weights(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                            const struct sl_floats_at *parameters,
                            const struct sl_floats_at *weights, const struct sl_floats_at *vectors);

/* BACK = [BACK and] the part's columns of the parameters' gradient, from GRADIENT of the weights;
 * the other columns are 0. Of GATv2, the gradient of W_e is a M, and that of a gets Σ W_e M. The
 * bias of a transformer's K adds one number to all scores of a target, so the weights of entries do
 * not show it. Its gradient is 0, because rounding errors are no gradient. */
void sl_kernel_pair_weights_back(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                                 const struct sl_floats_at *parameters,
                                 const struct sl_floats_at *gradient, bool accumulate,
                                 const struct sl_floats_at *back);

/* ---- Rows ---- */

/* Make SOURCE and TARGET, with L = 0, from PROJECTED and the biases in PARAMETERS. U = W_e·T. */
void sl_kernel_pair_ends(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                         int64_t rows, const uint32_t *vertex,
                         const struct sl_floats_at *parameters,
                         const struct sl_floats_at *projected, const struct sl_floats_at *vectors,
                         const struct sl_floats_at *source, const struct sl_floats_at *target);

/* Make X (rows, F) = the mean of the closed STATE's heads, or X (rows, H·F) = the heads side by
 * side.
 */
void sl_kernel_pair_heads(const struct sl_pair *pair, int64_t rows, bool mean,
                          const struct sl_floats_at *state, int64_t ld, float *x);

/* Make Z (rows, out) = epilogue(the closed STATE's Z); `mean`: the mean of the heads (out = F),
 * else the heads side by side (out = H·F). */
void sl_kernel_pair_output(const struct sl_pair *pair, int64_t rows, bool mean,
                           const struct sl_floats_at *state, const struct sl_epilogue *epilogue,
                           const struct sl_rows *z);

/* Make GRADIENT (rows) = [G | r | Y] from g (rows, out), the gradient of the output before bias and
 * activation, and the closed STATE. Y = W_e·G. */
void sl_kernel_pair_gradient(const struct sl_pair *pair, int64_t rows, bool mean,
                             const struct sl_rows *g, const struct sl_floats_at *state,
                             const struct sl_floats_at *vectors,
                             const struct sl_floats_at *gradient);

/* Make PROJECTED (rows), the gradient of K, V, T, from TARGET_BACK and SOURCE_BACK. Of GATv2 with
 * R = F, it may be SOURCE_BACK. */
void sl_kernel_pair_join(const struct sl_pair *pair, int64_t rows,
                         const struct sl_floats_at *vectors, const struct sl_floats_at *target_back,
                         const struct sl_floats_at *source_back,
                         const struct sl_floats_at *projected);

/* Make the gradient of a (H·F) from `rows` rows: column sums of K·D + T·C. */
void sl_kernel_pair_vector_back(const struct sl_pair *pair, int64_t rows,
                                const struct sl_floats_at *source,
                                const struct sl_floats_at *target,
                                const struct sl_floats_at *target_back,
                                const struct sl_floats_at *source_back, float *gradient);

/* Make BACK (K, H·F), the gradient of a transformer's W_e, from `rows` rows: A·T + B·G, with the
 * closed STATE's B. */
void sl_kernel_pair_edges_back(const struct sl_pair *pair, int64_t rows,
                               const struct sl_floats_at *target,
                               const struct sl_floats_at *gradient,
                               const struct sl_floats_at *target_back,
                               const struct sl_floats_at *state, const struct sl_floats_at *back);

/* Make BACK (K, H·F) = SUMS (K, H·R) without the room. */
void sl_kernel_pair_edges_paste(const struct sl_pair *pair, const struct sl_floats_at *sums,
                                const struct sl_floats_at *back);

/* ---- Walks ---- */

/* Meet the entries of A (rows, cols), whose weights are >= 0: SOURCE (cols), TARGET and STATE
 * (rows). `accumulate`: continue the state; else begin a new state. A row without entries has l =
 * 0. */
void sl_kernel_pair(const struct sl_pair *pair, const struct sl_sparse *a,
                    const struct sl_floats_at *vectors, const struct sl_floats_at *source,
                    const struct sl_floats_at *target, bool accumulate,
                    const struct sl_floats_at *state);

/* Merge OTHER (rows) into the states of rows index[0 … rows - 1]; index NULL: merge row r into row
 * r. */
void sl_kernel_pair_merge(const struct sl_pair *pair, int64_t rows, const uint32_t *index,
                          const struct sl_floats_at *other, const struct sl_floats_at *state);

/* Close the states of `rows` rows: divide by l, write L to STATE and TARGET, and add B·W_e to Z. */
void sl_kernel_pair_close(const struct sl_pair *pair, int64_t rows,
                          const struct sl_floats_at *vectors, const struct sl_floats_at *target,
                          const struct sl_floats_at *state);

/* Meet the entries of A once more: SOURCE (cols), TARGET, GRADIENT and TARGET_BACK (rows). Of GATv2
 * with features, EDGE_BACK (K, H·R) = M; `edge_accumulate`: add M. Else EDGE_BACK is NULL. */
void sl_kernel_pair_again(const struct sl_pair *pair, const struct sl_sparse *a,
                          const struct sl_floats_at *vectors, const struct sl_floats_at *source,
                          const struct sl_floats_at *target, const struct sl_floats_at *gradient,
                          bool accumulate, const struct sl_floats_at *target_back,
                          bool edge_accumulate, const struct sl_floats_at *edge_back);

/* Meet the entries of Aᵀ (rows, cols): GRADIENT and TARGET (cols), SOURCE and SOURCE_BACK (rows).
 */
void sl_kernel_pair_back(const struct sl_pair *pair, const struct sl_sparse *at,
                         const struct sl_floats_at *vectors, const struct sl_floats_at *gradient,
                         const struct sl_floats_at *target, const struct sl_floats_at *source,
                         bool accumulate, const struct sl_floats_at *source_back);

/* ---- GPUs ---- */

void sl_cuda_pair_weights(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                          const struct sl_floats_at *parameters, const struct sl_floats_at *weights,
                          const struct sl_floats_at *vectors, struct sl_cuda_queue queue);
void sl_cuda_pair_weights_back(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                               const struct sl_floats_at *parameters,
                               const struct sl_floats_at *gradient, bool accumulate,
                               const struct sl_floats_at *back, struct sl_cuda_queue queue);
void sl_cuda_pair_ends(const struct sl_pair *pair, const struct sl_pair_shape *shape, int64_t rows,
                       const uint32_t *vertex, const struct sl_floats_at *parameters,
                       const struct sl_floats_at *projected, const struct sl_floats_at *vectors,
                       const struct sl_floats_at *source, const struct sl_floats_at *target,
                       struct sl_cuda_queue queue);
void sl_cuda_pair_output(const struct sl_pair *pair, int64_t rows, bool mean,
                         const struct sl_floats_at *state, const struct sl_epilogue *epilogue,
                         const struct sl_rows *z, struct sl_cuda_queue queue);
void sl_cuda_pair_gradient(const struct sl_pair *pair, int64_t rows, bool mean,
                           const struct sl_rows *g, const struct sl_floats_at *state,
                           const struct sl_floats_at *vectors, const struct sl_floats_at *gradient,
                           struct sl_cuda_queue queue);
void sl_cuda_pair_join(const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *vectors,
                       const struct sl_floats_at *target_back,
                       const struct sl_floats_at *source_back, const struct sl_floats_at *projected,
                       struct sl_cuda_queue queue);
void sl_cuda_pair_vector_back(const struct sl_pair *pair, int64_t rows,
                              const struct sl_floats_at *source, const struct sl_floats_at *target,
                              const struct sl_floats_at *target_back,
                              const struct sl_floats_at *source_back, float *gradient,
                              struct sl_cuda_queue queue);
void sl_cuda_pair_edges_back(const struct sl_pair *pair, int64_t rows,
                             const struct sl_floats_at *target, const struct sl_floats_at *gradient,
                             const struct sl_floats_at *target_back,
                             const struct sl_floats_at *state, const struct sl_floats_at *back,
                             struct sl_cuda_queue queue);
void sl_cuda_pair_edges_paste(const struct sl_pair *pair, const struct sl_floats_at *sums,
                              const struct sl_floats_at *back, struct sl_cuda_queue queue);
void sl_cuda_pair(const struct sl_pair *pair, const struct sl_sparse *a,
                  const struct sl_floats_at *vectors, const struct sl_floats_at *source,
                  const struct sl_floats_at *target, bool accumulate,
                  const struct sl_floats_at *state, struct sl_cuda_queue queue);
void sl_cuda_pair_merge(const struct sl_pair *pair, int64_t rows, const uint32_t *index,
                        const struct sl_floats_at *other, const struct sl_floats_at *state,
                        struct sl_cuda_queue queue);
void sl_cuda_pair_close(const struct sl_pair *pair, int64_t rows,
                        const struct sl_floats_at *vectors, const struct sl_floats_at *target,
                        const struct sl_floats_at *state, struct sl_cuda_queue queue);
void sl_cuda_pair_again(const struct sl_pair *pair, const struct sl_sparse *a,
                        const struct sl_floats_at *vectors, const struct sl_floats_at *source,
                        const struct sl_floats_at *target, const struct sl_floats_at *gradient,
                        bool accumulate, const struct sl_floats_at *target_back,
                        bool edge_accumulate, const struct sl_floats_at *edge_back,
                        struct sl_cuda_queue queue);
void sl_cuda_pair_back(const struct sl_pair *pair, const struct sl_sparse *at,
                       const struct sl_floats_at *vectors, const struct sl_floats_at *gradient,
                       const struct sl_floats_at *target, const struct sl_floats_at *source,
                       bool accumulate, const struct sl_floats_at *source_back,
                       struct sl_cuda_queue queue);

/* ---- Tasks ---- */

/* Make the part's columns of `weights`, and `vectors`, which may be wider. */
void sl_submit_pair_weights(struct sl_runtime *rt, const struct sl_pair *pair,
                            const struct sl_pair_shape *shape, struct sl_tile *parameters,
                            struct sl_tile *weights, struct sl_tile *vectors);
void sl_submit_pair_weights_back(struct sl_runtime *rt, const struct sl_pair *pair,
                                 const struct sl_pair_shape *shape, bool further,
                                 struct sl_tile *parameters, struct sl_tile *gradient,
                                 struct sl_tile *back);
void sl_submit_pair_ends(struct sl_runtime *rt, const struct sl_pair *pair,
                         const struct sl_pair_shape *shape, struct sl_tile *scales,
                         struct sl_tile *parameters, struct sl_tile *vectors,
                         struct sl_tile *projected, struct sl_tile *source, struct sl_tile *target);
void sl_submit_pair_output(struct sl_runtime *rt, const struct sl_pair *pair, bool mean,
                           const struct sl_epilogue_tiles *epilogue, struct sl_tile *state,
                           struct sl_tile *z);
void sl_submit_pair_gradient(struct sl_runtime *rt, const struct sl_pair *pair, bool mean,
                             struct sl_tile *vectors, struct sl_tile *g, struct sl_tile *state,
                             struct sl_tile *gradient);
void sl_submit_pair_join(struct sl_runtime *rt, const struct sl_pair *pair, struct sl_tile *vectors,
                         struct sl_tile *target_back, struct sl_tile *source_back,
                         struct sl_tile *projected);

/* Write row `row` of `gradient`, the first row that is written. */
void sl_submit_pair_vector_back(struct sl_runtime *rt, const struct sl_pair *pair,
                                struct sl_tile *source, struct sl_tile *target,
                                struct sl_tile *target_back, struct sl_tile *source_back,
                                int64_t row, struct sl_tile *gradient);

/* Write rows row … row + K - 1 of `back`, the first rows that are written. */
void sl_submit_pair_edges_back(struct sl_runtime *rt, const struct sl_pair *pair,
                               struct sl_tile *target, struct sl_tile *gradient,
                               struct sl_tile *target_back, struct sl_tile *state, int64_t row,
                               struct sl_tile *back);

/* Write rows row … row + K - 1 of `back`, of which other rows were written before. */
void sl_submit_pair_edges_paste(struct sl_runtime *rt, const struct sl_pair *pair,
                                struct sl_tile *sums, int64_t row, struct sl_tile *back);

/* Tiles of a walk; `gradient` NULL: the walk forward. */
struct sl_pair_tiles {
    struct sl_sparse_tile *a; /* a tile of A; of `back`: of its transpose */
    struct sl_tile *vectors, *source, *target, *gradient;
    struct sl_tile *out; /* the state; target_back; of `back`: source_back */
    bool accumulate;
    struct sl_tile *edge_back; /* of `again`, M of GATv2 with features; else NULL */
    bool edge_accumulate;
};
void sl_submit_pair(struct sl_runtime *rt, const struct sl_pair *pair,
                    const struct sl_pair_tiles *tiles);
void sl_submit_pair_again(struct sl_runtime *rt, const struct sl_pair *pair,
                          const struct sl_pair_tiles *tiles);
void sl_submit_pair_back(struct sl_runtime *rt, const struct sl_pair *pair,
                         const struct sl_pair_tiles *tiles);
void sl_submit_pair_merge(struct sl_runtime *rt, const struct sl_pair *pair,
                          const struct sl_attention_merge_tiles *tiles);
void sl_submit_pair_close(struct sl_runtime *rt, const struct sl_pair *pair,
                          struct sl_tile *vectors, struct sl_tile *target, struct sl_tile *state);

/* Arguments of the tasks. */
struct pair_argument {
    struct sl_pair pair;
    struct sl_sparse_shape shape;
    bool accumulate, has_edge_back, edge_accumulate;
};

struct pair_merge_argument {
    struct sl_pair pair;
    int64_t first, rows;
    bool listed;
};

struct pair_weights_argument {
    struct sl_pair pair;
    struct sl_pair_shape shape;
    bool further;
};

struct pair_rows_argument {
    struct sl_pair pair;
    bool mean, in_place;
    int64_t row;
    struct epilogue_argument epilogue;
};

#endif
