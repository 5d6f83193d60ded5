/* Steps of making the operands (assembly/operands.h): cut the graph, read this rank's part of the
 * dataset, make tiles of it. Each step returns 0 or a code of sl_operands_create. */
#ifndef SL_ASSEMBLY_MAKING_H
#define SL_ASSEMBLY_MAKING_H

#include "assembly/operands.h"
#include "core/spread.h"

struct sl_making {
    struct sl_operands *o;
    struct sl_runtime *rt;
    struct sl_runtime *readers; /* ranks that share the rows of the graph: `rt`, or `alone` if this
                                   rank reads all rows */
    struct sl_runtime alone;
    const struct sl_assembly *assembly;
    int row_order; /* order of the current rows; the members below follow from it */
    struct sl_source source;
    struct sl_part part;
    int64_t *bounds;      // (ranks + 1): rank r has the rows bounds[r] … bounds[r + 1] - 1
    double *left, *right; // (rows): the diagonals of Â
    int32_t *diagonal;    // (rows): columns of I in a vertex-cut, -1 at leaves; else NULL
    int32_t *row;         // (rows): rows of the source in a vertex-cut; NULL: in its order
};

static inline const struct sl_partition *sl_making_partition(const struct sl_making *m)
{
    return &m->o->partition[m->row_order];
}

static inline const struct sl_distribution *sl_making_distribution(const struct sl_making *m)
{
    return &m->o->distribution[m->row_order];
}

/* Return the order of the adjacency's columns. */
static inline int sl_making_other_order(const struct sl_making *m)
{
    return sl_row_order_after(m->o->row_orders, m->row_order);
}

/* Return the row of the part that is row r of the graph. */
static inline int64_t sl_making_local(const struct sl_making *m, int64_t r)
{
    return r - m->part.first;
}

/* Whether the part has all rows of the graph. */
static inline bool sl_making_has_all(const struct sl_making *m)
{
    return m->readers->ranks == 1;
}

/* Return the vertex of the dataset that row k of the part is, in any order. */
static inline int64_t sl_making_vertex(const struct sl_making *m, int64_t k)
{
    return m->part.data.original ? m->part.data.original[k] : m->part.first + k;
}

/* ---- operands_cut.c ---- */

/* Make the partition and the distribution of the graph, before any row is read. */
int sl_making_cut(struct sl_making *m);

/* Read this rank's rows. In a vertex-cut, make its clones and their diagonals from them. Call
 * sl_making_close in either case. */
int sl_making_read(struct sl_making *m);
void sl_making_close(struct sl_making *m);

/* ---- operands_rows.c ---- */

/* Make the diagonals of Â: D^-1/2 on both sides, or D^-1 on the left. The codes of diagonals and of
 * scales are this rank's own, and may differ between ranks. */
int sl_making_diagonals(struct sl_making *m);
int sl_making_row_scales(struct sl_making *m);
int sl_making_targets(struct sl_making *m);

/* Find which rows of a selection are copies of vertices, and which rows own vertices
 * (graphs/copies.h). */
int sl_making_copies(struct sl_making *m);

/* ---- operands_adjacency.c ---- */

/* The layout of a sparse matrix's tiles. */
struct sl_sparse_form {
    int64_t block_cols;
    bool has_values, mirrored; /* see sl_sparse_shape */
    struct sl_edge_source edges;
};

/* Make a sparse matrix. source->row reads this rank's rows; parts of a row may go to tiles of other
 * ranks. `adjacency`: the distribution of the rows, if the matrix is the adjacency or its
 * transpose; else NULL. */
int sl_making_sparse(struct sl_making *m, struct sl_sparse_matrix *matrix,
                     const struct sl_spread_source *source, const struct sl_sparse_form *form,
                     sl_span_function *span, struct sl_distribution *adjacency);
int sl_making_adjacencies(struct sl_making *m);

/* ---- operands_input.c ---- */

/* Whether dense features can stay in the files: tiles have whole rows, in one order, and the rows
 * can be read at any time. */
bool sl_making_can_store(const struct sl_making *m);

/* Make the input in the first order or, if dense features are aggregated, in the other one. */
int sl_making_input(struct sl_making *m, bool aggregate);

#endif
