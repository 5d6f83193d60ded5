#include "graphs/columns.h"

#include "codelets/paste.h"
#include "core/temporary.h"
#include "graphs/collective.h"

void sl_columns_join(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_matrix *parts, const struct sl_matrix *whole)
{
    for (int i = 0; i < d->tiles; i++)
        for (int j = 0; j < d->grid.columns; j++) {
            struct sl_tile *part = sl_matrix_tile(parts, i, j), *row = sl_matrix_tile(whole, i, 0);
            sl_tile_send(rt, part, part->owner, row->owner);
            sl_submit_paste(
                rt, &(struct sl_paste_tiles){.x = part, .y = row, .y_col = parts->col_cut[j]});
            sl_tile_drop(rt, part);
        }
}

/* Cut a part out of a row tile, and send it to its owner. */
static void cut_elsewhere(struct sl_runtime *rt, const struct sl_distribution *d,
                          struct sl_tile *row, int64_t column, int64_t tag, struct sl_tile *part)
{
    struct sl_tile sent;
    if (rt->rank != row->owner && rt->rank != part->owner)
        return;
    sl_temporary_open_shared(&sent, part->rows, part->cols, part->element_size, row->owner, tag);
    sl_temporaries_serve(d->temporaries, &sent);
    sl_submit_paste(rt, &(struct sl_paste_tiles){.x = row, .x_col = column, .y = &sent});
    sl_tile_send(rt, &sent, row->owner, part->owner);
    sl_submit_paste(rt, &(struct sl_paste_tiles){.x = &sent, .y = part});
    sl_temporaries_close(d->temporaries, &sent);
}

void sl_columns_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                    const struct sl_matrix *whole, const struct sl_matrix *parts, int64_t tags)
{
    const int columns = d->grid.columns;
    sl_temporaries_turn(d->temporaries);
    for (int i = 0; i < d->tiles; i++)
        for (int j = 0; j < columns; j++) {
            struct sl_tile *row = sl_matrix_tile(whole, i, 0), *part = sl_matrix_tile(parts, i, j);
            const int64_t column = parts->col_cut[j];
            if (row->owner == part->owner)
                sl_submit_paste(rt, &(struct sl_paste_tiles){.x = row, .x_col = column, .y = part});
            else
                cut_elsewhere(rt, d, row, column, tags + (int64_t)i * columns + j, part);
        }
}

int64_t sl_columns_count(const struct sl_distribution *d, const int64_t *cut, int rank,
                         int64_t *messages)
{
    const struct sl_tile_run run = sl_grid_group(d, rank);
    const int columns = d->grid.columns, c = sl_grid_column(&d->grid, rank);
    const int64_t own = cut[c + 1] - cut[c], others = cut[columns] - own;
    int64_t elements = 0;
    for (int i = run.from; i < run.to; i++) {
        const bool whole = sl_distribution_whole_owner(d, i, 0) == rank;
        elements += (d->row_cut[i + 1] - d->row_cut[i]) * (whole ? others : own);
        *messages += whole ? columns - 1 : 1;
    }
    return elements;
}

void sl_columns_share(struct sl_runtime *rt, const struct sl_distribution *d, struct sl_tile *tile)
{
    sl_broadcast(rt, tile, tile->owner - sl_grid_column(&d->grid, tile->owner), d->grid.columns);
}

int sl_columns_after(const struct sl_runtime *rt, const struct sl_distribution *d, int hop)
{
    return (sl_grid_column(&d->grid, rt->rank) + hop) % d->grid.columns;
}

int sl_columns_rank(const struct sl_runtime *rt, const struct sl_distribution *d, int column)
{
    return rt->rank - sl_grid_column(&d->grid, rt->rank) + column;
}

/* Return the ring of a group, whose ranks need all columns. */
static struct sl_ring ring_of(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    return (struct sl_ring){
        .form = d->broadcast,
        .first = sl_columns_rank(rt, d, 0),
        .stride = 1,
        .count = d->grid.columns,
        .reach = rt->stages - 1,
    };
}

struct sl_stage sl_columns_stage(const struct sl_runtime *rt, const struct sl_distribution *d,
                                 const struct sl_matrix *matrix, int column, struct sl_tile **tiles,
                                 int *from)
{
    const struct sl_tile_run rows = sl_grid_group(d, rt->rank);
    const struct sl_ring ring = ring_of(rt, d);
    const int owner = sl_columns_rank(rt, d, column);
    const int position = sl_ring_position(&ring, owner, rt->rank);
    const int parent = position > 0 ? sl_ring_parent(&ring, owner, position, NULL, NULL) : 0;
    struct sl_stage stage = {.tiles = tiles, .from = from};
    for (int i = rows.from; i < rows.to; i++) {
        from[stage.count] = sl_ring_rank(&ring, owner, parent);
        tiles[stage.count++] = sl_matrix_tile(matrix, i, column);
    }
    return stage;
}

void sl_columns_send(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_stage *stage)
{
    const struct sl_ring ring = ring_of(rt, d);
    const int owner = stage->count > 0 ? stage->tiles[0]->owner : rt->rank;
    const int own = sl_ring_position(&ring, owner, rt->rank);
    for (int p = own + 1; p <= sl_ring_last(&ring, own); p++) {
        const bool child = sl_ring_parent(&ring, owner, p, NULL, NULL) == own;
        for (int t = 0; child && t < stage->count; t++)
            sl_stage_send(rt, stage->tiles[t], sl_ring_rank(&ring, owner, p));
    }
}
