/* Makes the tiles of S and of its transpose. */
#include "assembly/adjacency_rows.h"
#include "assembly/making.h"
#include "codelets/pair.h"
#include "core/error.h"
#include "core/tile.h"
#include "data/csr.h"
#include "data/edge_features.h"

/* Return the columns of a state of attention (codelets/attention.h); 0 without heads. */
static int64_t state_columns(int64_t heads, int64_t all)
{
    return heads > 0 ? 2 * all + 3 * heads : 0;
}

/* The attention of codelets/pair.h: the matrices of sources, the columns of all heads with their
 * room, and the numbers that edge features give a row. */
struct pairs {
    int64_t sources, all, numbers;
};

static struct pairs pairs_of(const struct sl_assembly *assembly, int64_t heads, int64_t columns)
{
    const bool transformer = assembly->reducer == &sl_reduce_transformer;
    return (struct pairs){transformer ? 2 : 1,
                          heads > 0 ? heads * sl_pair_room(columns / heads) : 0,
                          transformer ? heads * assembly->model.edge_features : 0};
}

/* Return the columns of the widest matrix of a layer of attention. */
static int64_t widest_of_attention(const struct sl_assembly *assembly, int64_t heads,
                                   int64_t columns)
{
    const struct pairs pairs = pairs_of(assembly, heads, columns);
    return assembly->reducer->again
               ? (pairs.sources + 1) * pairs.all + heads + 1 + 2 * pairs.numbers
               : state_columns(heads, columns);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t sl_operands_row_bytes(const struct sl_source *source, const struct sl_assembly *assembly)
{
    const int64_t hidden = assembly->model.inner
                               ? widest_of_attention(assembly, assembly->model.heads,
                                                     assembly->model.hidden)
                               : 0,
                  last = widest_of_attention(assembly, assembly->model.out_heads,
                                             assembly->model.out_heads * source->classes);
    int64_t widest = larger(larger(source->classes, assembly->model.hidden), larger(hidden, last));
    if (source->feature_form != SL_FEATURES_IDENTITY && source->features > widest)
        widest = source->features;
    return sl_leading(widest, SL_FLOAT32) * (int64_t)sizeof(float);
}

/* Add the bytes that an aggregation sends, for each element of a row and of a partial result. */
static void add_weights(const struct sl_reducer *reducer, enum sl_type moved,
                        struct sl_cover_weights *weights)
{
    weights->row += reducer->moved * (int)sl_type_size(moved);
    weights->result +=
        (int)sl_reducer_bytes(reducer, moved) + reducer->row_operands * (int)sizeof(float);
}

/* Return the weights of a hidden layer of attention: words of a moved row, and words of a state
 * with its row operands (graphs/reduce_attention.c). Covers are found sooner with small numbers, so
 * the ratio is rounded. */
static struct sl_cover_weights attention_weights(const struct sl_assembly *assembly, bool symmetric,
                                                 bool transposed)
{
    enum { ROW = 4 };
    const int64_t all = assembly->model.hidden, projected = all + 2 * assembly->model.heads,
                  scores = 2 * assembly->model.heads + 1;
    int64_t row = 0, result = 0;
    if (!transposed || symmetric) {
        row += projected;
        result += state_columns(assembly->model.heads, all) + scores;
    }
    if (transposed || symmetric) {
        row += all + assembly->model.heads + scores;
        result += 2 * projected;
    }
    return (struct sl_cover_weights){ROW, (int)((ROW * result + row / 2) / row)};
}

/* Return the weights of a hidden layer of pair attention (graphs/reduce_pair.c): words of moved
 * rows, and words of states with row operands. */
static struct sl_cover_weights pair_weights(const struct sl_assembly *assembly, bool symmetric,
                                            bool transposed)
{
    enum { ROW = 4 };
    const int64_t heads = assembly->model.heads;
    const struct pairs pairs = pairs_of(assembly, heads, assembly->model.hidden);
    const int64_t source = pairs.sources * pairs.all + 1,
                  target = pairs.all + heads + 1 + pairs.numbers,
                  gradient = pairs.all + heads + pairs.numbers;
    int64_t row = 0, result = 0;
    if (!transposed || symmetric) { /* the walk forward, and the second walk back */
        row += 2 * source;
        result += 2 * (pairs.all + pairs.numbers) + 2 * heads + 2 * target + gradient;
    }
    if (transposed || symmetric) {
        row += gradient + target;
        result += 2 * pairs.all + source;
    }
    return (struct sl_cover_weights){ROW, (int)((ROW * result + row / 2) / row)};
}

struct sl_cover_weights sl_operands_weights(const struct sl_assembly *assembly, bool symmetric,
                                            bool transposed)
{
    const struct sl_reducer *forward = assembly->reducer;
    struct sl_cover_weights weights = {0};
    if (forward->again)
        return pair_weights(assembly, symmetric, transposed);
    if (assembly->model.heads > 0)
        return attention_weights(assembly, symmetric, transposed);
    if (!transposed || !forward->back)
        add_weights(forward, assembly->type, &weights);
    if (forward->back && (transposed || symmetric))
        add_weights(forward->back, forward->back->linear ? assembly->type : SL_FLOAT32, &weights);
    return weights;
}

int sl_making_sparse(struct sl_making *m, struct sl_sparse_matrix *matrix,
                     const struct sl_spread_source *source, const struct sl_sparse_form *form,
                     sl_span_function *span, struct sl_distribution *adjacency)
{
    const struct sl_distribution *d = sl_making_distribution(m);
    const bool all = sl_making_has_all(m);
    const bool own = !source->transposed && (all || d->grid.columns * d->grid.depth == 1);
    struct sl_spread spread = {0};
    int code = own ? 0 : sl_runtime_agree(m->rt, sl_spread_create(m->readers, source, &spread));
    sl_row_function *row = own ? source->row : sl_spread_row;
    const void *context = own ? source->context : &spread;
    struct sl_adjacency_source made = {
        .tile_rows = source->tile_rows,
        .tile_cols = source->tile_cols,
        .row_cut = source->row_cut,
        .col_cut = source->col_cut,
        .block_cols = form->block_cols,
        .row_bytes = sl_operands_row_bytes(&m->source, m->assembly),
        .transposed = source->transposed,
        .has_values = form->has_values,
        .edges = form->edges,
        .numbered = m->assembly->reducer->numbered,
        .weights = sl_operands_weights(m->assembly, m->part.data.symmetric, source->transposed),
        .row = row,
        .context = context,
        .all = all,
    };
    if (!code && adjacency)
        code = adjacency->kind->create_adjacency(m->rt, adjacency, &made, matrix);
    else if (!code)
        code = sl_sparse_matrix_create(m->rt, matrix,
                                       &(struct sl_cuts){source->tile_rows, source->tile_cols,
                                                         source->row_cut, source->col_cut,
                                                         source->owner, source->owner_context},
                                       span, form->block_cols,
                                       &(struct sl_sparse_rows){form->has_values, row, context,
                                                                form->mirrored, all, form->edges});
    sl_spread_free(&spread);
    return code;
}

/* Give A's columns the second order. Set *diagonal to the columns of I. */
static int turn_columns(const struct sl_making *m, struct sl_block **blocks, struct sl_csr *a,
                        const int32_t **diagonal)
{
    const struct sl_source *source = &m->source;
    const int64_t nnz = a->indptr[a->rows];
    int32_t *columns = sl_block_array(blocks, nnz, sizeof *columns);
    int32_t *own = sl_block_array(blocks, a->rows, sizeof *own);
    if (!columns || !own)
        return SL_ERR_SYSTEM;
    for (int64_t e = 0; e < nnz; e++)
        columns[e] = source->order.second_place[source->order.vertex[a->indices[e]]];
    for (int64_t k = 0; k < a->rows; k++)
        own[k] = source->order.second_place[source->order.vertex[m->part.first + k]];
    int64_t merged = 0; /* a permutation puts no two entries in one place */
    a->indices = columns;
    *diagonal = own;
    return sl_csr_normalize(a, blocks, &merged);
}

/* List the rows of the files that the rows of A are. */
static int list_vertices(const struct sl_making *m, struct sl_block **blocks,
                         struct sl_adjacency_rows *rows)
{
    int32_t *vertex = sl_block_array(blocks, rows->source->rows, sizeof *vertex);
    for (int64_t k = 0; vertex && k < rows->source->rows; k++)
        vertex[k] = (int32_t)sl_source_vertex(&m->source, m->row ? m->row[k] : m->part.first + k);
    rows->vertex = vertex;
    return vertex ? 0 : SL_ERR_SYSTEM;
}

/* Make the tiles of S, or of its transpose, from this rank's rows of A. The rows of S have the
 * current order, and so have the columns of the transpose. */
static int create_adjacency(struct sl_making *m, const struct sl_csr *a, const int32_t *diagonal,
                            bool transposed)
{
    struct sl_operands *o = m->o;
    const int rows_in = transposed ? sl_making_other_order(m) : m->row_order;
    const int columns_in = transposed ? m->row_order : sl_making_other_order(m);
    const struct sl_partition *p = sl_making_partition(m);
    struct sl_adjacency_rows rows;
    struct sl_block *blocks = NULL;
    int code = sl_adjacency_rows_open(&rows, a, m->part.first, m->assembly->loops);
    if (!code && a->edges && m->assembly->loops)
        code = list_vertices(m, &blocks, &rows);
    code = sl_runtime_agree(m->rt, code);
    rows.diagonal = diagonal;
    const struct sl_spread_source source = {
        .first = m->part.first,
        .end = m->part.first + a->rows,
        .row = sl_adjacency_row,
        .context = &rows,
        .transposed = transposed,
        .tile_rows = p->tiles,
        .tile_cols = p->tiles,
        .row_cut = o->partition[rows_in].row_cut,
        .col_cut = o->partition[columns_in].row_cut,
        .owner = sl_distribution_sparse_owner,
        .owner_context = &o->distribution[rows_in],
    };
    const struct sl_sparse_form form = {.block_cols = p->block_cols,
                                        .has_values = a->values != NULL,
                                        .edges = {.features = m->part.data.edge_features,
                                                  .read = sl_edge_features_read,
                                                  .context = &m->source}};
    if (!code)
        code = sl_making_sparse(m, transposed ? &o->transposed[rows_in] : &o->adjacency[rows_in],
                                &source, &form, sl_distribution_span, &o->distribution[rows_in]);
    sl_adjacency_rows_close(&rows);
    sl_block_free_all(&blocks);
    return code;
}

int sl_making_adjacencies(struct sl_making *m)
{
    struct sl_csr a = m->part.data.adjacency;
    struct sl_block *blocks = NULL;
    const int32_t *diagonal = m->diagonal;
    int code = 0;
    if (m->source.order.second_place)
        code = sl_runtime_agree(m->rt, turn_columns(m, &blocks, &a, &diagonal));
    if (!code)
        code = create_adjacency(m, &a, diagonal, false);
    if (!code && !m->part.data.symmetric && !m->assembly->forward_only)
        code = create_adjacency(m, &a, diagonal, true);
    sl_block_free_all(&blocks);
    return code;
}
