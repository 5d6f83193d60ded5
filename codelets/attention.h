/* Graph attention: kernels and tasks for tiles that meet, and for the merging and closing of rows.
 * The formulas are in graphs/reduce_attention.c. A row of each matrix has, for heads h = 0 … H - 1
 * of width F,
 *
 *     projected   P (H·F)   t (H)     s (H), of which the first element becomes the vertex's number
 *     scores      s (H)     L (H)     the vertex's number, as bits
 *     state       Z (H·F)   m (H)     l (H)     Z' (H·F)     q (H)      closed: L in place of m
 *     gradient    G (H·F)   r (H)
 *     projected_back        D (H·F)   dt (H)    ds (H)
 *
 * all of them float32. Where entries have K features, EDGE (K, H) is the factor of features in
 * logits, and EDGE_BACK (K, H) its gradient. */
#ifndef SL_CODELETS_ATTENTION_H
#define SL_CODELETS_ATTENTION_H

#include "codelets/epilogue.h"
#include "codelets/operation.h"

/* The number of a vertex is kept with these bits turned over. As bits of a float, small numbers
 * would be subnormal, which processors multiply slowly. */
#define SL_ATTENTION_VERTEX 0x40000000u

enum { SL_ATTENTION_HEADS = 256, SL_ATTENTION_COLUMNS = 16384 }; /* most heads H and columns H·F */

struct sl_attention {
    int32_t heads;
    int32_t first_head;     /* number of the first head in the layer, which dropout uses */
    int64_t width;          /* F */
    float slope;            /* slope of LeakyReLU for negative logits, 0 … 1 */
    struct sl_dropout drop; /* element (i, j, h) belongs to vertices i, j and head h */
    bool training;          /* the pass makes Z' and q, and drops attention out */
};

static inline int64_t sl_attention_all(const struct sl_attention *attention)
{
    return attention->heads * attention->width;
}

/* Return the columns of the matrices above, in this order: projected, scores, state, gradient. */
static inline int64_t sl_attention_projected(const struct sl_attention *attention)
{
    return sl_attention_all(attention) + 2 * attention->heads;
}

static inline int64_t sl_attention_scores(const struct sl_attention *attention)
{
    return 2 * attention->heads + 1;
}

static inline int64_t sl_attention_state(const struct sl_attention *attention)
{
    return 2 * sl_attention_all(attention) + 3 * attention->heads;
}

static inline int64_t sl_attention_gradient(const struct sl_attention *attention)
{
    return sl_attention_all(attention) + attention->heads;
}

/* Meet the entries of A (rows, cols), whose weights are >= 0: PROJECTED (cols), SCORES and STATE
 * (rows). EDGE NULL: features of entries do not count. `accumulate`: continue the state; else begin
 * a new state. A row without entries has l = 0. */
void sl_kernel_attention(const struct sl_attention *attention, const struct sl_sparse *a,
                         const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                         const struct sl_floats_at *edge, bool accumulate,
                         const struct sl_floats_at *state);

/* Merge OTHER (rows) into the states of rows index[0 … rows - 1]; index NULL: merge row r into row
 * r. */
void sl_kernel_attention_merge(const struct sl_attention *attention, int64_t rows,
                               const uint32_t *index, const struct sl_floats_at *other,
                               const struct sl_floats_at *state);

/* Close the states of `rows` rows: divide by l, and write L to STATE and SCORES. */
void sl_kernel_attention_close(const struct sl_attention *attention, int64_t rows,
                               const struct sl_floats_at *scores, const struct sl_floats_at *state);

/* Meet the entries of Aᵀ (rows, cols): GRADIENT and SCORES (cols), PROJECTED and BACK (rows), where
 * ds = 0. EDGE_BACK = [EDGE_BACK +] the sum over these entries. EDGE and EDGE_BACK NULL: features
 * of entries do not count. */
void sl_kernel_attention_back(const struct sl_attention *attention, const struct sl_sparse *at,
                              const struct sl_floats_at *gradient,
                              const struct sl_floats_at *scores,
                              const struct sl_floats_at *projected, const struct sl_floats_at *edge,
                              bool accumulate, const struct sl_floats_at *back,
                              bool edge_accumulate, const struct sl_floats_at *edge_back);

void sl_cuda_attention(const struct sl_attention *attention, const struct sl_sparse *a,
                       const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                       const struct sl_floats_at *edge, bool accumulate,
                       const struct sl_floats_at *state, struct sl_cuda_queue queue);
void sl_cuda_attention_merge(const struct sl_attention *attention, int64_t rows,
                             const uint32_t *index, const struct sl_floats_at *other,
                             const struct sl_floats_at *state, struct sl_cuda_queue queue);
void sl_cuda_attention_close(const struct sl_attention *attention, int64_t rows,
                             const struct sl_floats_at *scores, const struct sl_floats_at *state,
                             struct sl_cuda_queue queue);
void sl_cuda_attention_back(const struct sl_attention *attention, const struct sl_sparse *at,
                            const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
                            const struct sl_floats_at *projected, const struct sl_floats_at *edge,
                            bool accumulate, const struct sl_floats_at *back, bool edge_accumulate,
                            const struct sl_floats_at *edge_back, struct sl_cuda_queue queue);

/* ---- Tasks ---- */

struct sl_attention_tiles {
    struct sl_sparse_tile *a;
    struct sl_tile *projected, *scores, *state;
    struct sl_tile *edge; /* NULL: features of entries do not count */
    bool accumulate;
};
void sl_submit_attention(struct sl_runtime *rt, const struct sl_attention *attention,
                         const struct sl_attention_tiles *tiles);

/* Tiles of a merge. Rows first … first + rows - 1 of OTHER merge into the states of rows
 * index[first …]; index (1, any) of uint32; NULL: row r of OTHER merges into row r. */
struct sl_attention_merge_tiles {
    struct sl_tile *other, *index, *state;
    int64_t first, rows;
};
void sl_submit_attention_merge(struct sl_runtime *rt, const struct sl_attention *attention,
                               const struct sl_attention_merge_tiles *tiles);

void sl_submit_attention_close(struct sl_runtime *rt, const struct sl_attention *attention,
                               struct sl_tile *scores, struct sl_tile *state);

struct sl_attention_back_tiles {
    struct sl_sparse_tile *a; /* a tile of the transpose */
    struct sl_tile *gradient, *scores, *projected, *back;
    struct sl_tile *edge, *edge_back; /* NULL: features of entries do not count */
    bool accumulate, edge_accumulate;
};
void sl_submit_attention_back(struct sl_runtime *rt, const struct sl_attention *attention,
                              const struct sl_attention_back_tiles *tiles);

/* Argument of the tasks attention and attention_back. */
struct attention_argument {
    struct sl_attention attention;
    struct sl_sparse_shape shape;
    bool accumulate;
    bool has_edges, edge_accumulate;
};

/* Argument of the task attention_merge. */
struct attention_merge_argument {
    struct sl_attention attention;
    int64_t first, rows;
    bool listed;
};

#endif
