#include "assembly/operands.h"

#include <stdlib.h>

#include "assembly/making.h"
#include "core/error.h"
#include "graphs/columns.h"

/* Copy the scales and sparse tiles of a group of columns to all its ranks. */
static void share_columns(struct sl_making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_distribution *d = sl_making_distribution(m);
    struct sl_sparse_matrix *matrices[] = {&o->adjacency[m->row_order],
                                           &o->transposed[sl_making_other_order(m)]};
    for (int i = 0; i < d->tiles; i++)
        sl_columns_share(m->rt, d, &o->scales[m->row_order][i]);
    for (int a = 0; a < 2 && !d->drops_adjacency; a++)
        for (int64_t t = 0; matrices[a]->tiles && t < (int64_t)d->tiles * d->tiles; t++)
            if (matrices[a]->tiles[t].shape.nnz)
                sl_columns_share(m->rt, d, &matrices[a]->tiles[t].tile);
}

/* Make the tiles of the current order. */
static int create_tiles(struct sl_making *m)
{
    int code = m->left ? 0 : sl_making_diagonals(m);
    if (!code)
        code = sl_making_row_scales(m);
    if (!code && m->assembly->lists_copies)
        code = sl_making_copies(m);
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = sl_making_adjacencies(m);
    if (!code && !m->rt->plans)
        share_columns(m);
    return code ? code : sl_making_targets(m);
}

static void turn_to(struct sl_making *m, const struct sl_source *source, int row_order)
{
    m->row_order = row_order;
    m->source = sl_source_in_order(source, row_order);
    if (m->o->row_orders > 1) /* each tile has rows of all hops */
        m->source.selection.hop_cut = NULL;
    if (row_order > 0) /* only the first order has features */
        m->source.feature_form = SL_FEATURES_IDENTITY;
}

/* Make the operands of each order. The first order comes last, because aggregating its features
 * needs the second order's tiles. */
static int make_operands(struct sl_making *m, const struct sl_source *source)
{
    const int orders = m->o->row_orders;
    int code =
        m->bounds ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the rows of %d ranks", m->rt->ranks);
    code = sl_runtime_agree(m->rt, code);
    for (int order = 0; !code && order < orders; order++) {
        turn_to(m, source, order);
        code = sl_making_cut(m);
    }
    for (int order = orders - 1; !code && order >= 0; order--) {
        turn_to(m, source, order);
        code = sl_making_read(m);
        if (!code)
            code = create_tiles(m);
        if (!code && order == 0)
            code = sl_runtime_agree(m->rt, sl_making_input(m, m->assembly->aggregates));
        sl_making_close(m);
    }
    return code;
}

int sl_operands_create(struct sl_operands *o, struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_assembly *assembly)
{
    *o = (struct sl_operands){.row_orders = source->order.second_vertex ? 2 : 1,
                              .type = assembly->type};
    struct sl_making m = {.o = o, .rt = rt, .alone = {.ranks = 1}, .assembly = assembly};
    m.readers = assembly->workers ? &m.alone : rt;
    m.bounds = malloc((size_t)(rt->ranks + 1) * sizeof *m.bounds);
    const int code = make_operands(&m, source);
    free(m.bounds);
    return code;
}

static void destroy_order(struct sl_operands *o, int order)
{
    const int tiles = o->partition[order].tiles;
    sl_sparse_matrix_destroy(&o->adjacency[order]);
    sl_sparse_matrix_destroy(&o->transposed[order]);
    for (int i = 0; o->target[order] && i < tiles; i++)
        sl_tile_destroy(&o->target[order][i]);
    for (int i = 0; o->scales[order] && i < tiles; i++)
        sl_tile_destroy(&o->scales[order][i]);
    free(o->target[order]);
    free(o->scales[order]);
    sl_partials_free(&o->partials[order]);
    sl_partition_destroy(&o->partition[order]);
}

void sl_operands_destroy(struct sl_operands *o)
{
    struct sl_input *inputs[] = {&o->input, &o->own};
    for (int i = 0; i < 2; i++) {
        sl_matrix_destroy(&inputs[i]->dense);
        sl_sparse_matrix_destroy(&inputs[i]->csr);
    }
    for (int order = 0; order < o->row_orders; order++)
        if (o->distribution[order].kind)
            o->distribution[order].kind->destroy(&o->distribution[order]);
    for (int order = 0; order < o->row_orders; order++)
        destroy_order(o, order);
    sl_temporaries_free(&o->temporaries);
    sl_tile_destroy(&o->weights);
    sl_stored_rows_free(&o->stored);
    sl_operands_forget_rows(o);
    *o = (struct sl_operands){0};
}
