#include "graphs/largest.h"

#include <stdlib.h>

#include "codelets/submit.h"
#include "core/error.h"

void sl_largest_open(struct sl_runtime *rt, const struct sl_choice *choice, struct sl_tile_run own,
                     int j, struct sl_largest *largest)
{
    const size_t rows = (size_t)(own.to - own.from) + 1;
    *largest = (struct sl_largest){
        .rt = rt,
        .choice = *choice,
        .own = own,
        .j = j,
        .moved = {choice->h, choice->from},
        .matrices = choice->back ? 2 : 1,
        .started = calloc(rows, sizeof *largest->started),
        .sums = calloc(rows, sizeof *largest->sums),
    };
    if (!largest->started || !largest->sums)
        sl_fatal("no memory for the lists of %zu tiles", rows);
    for (int i = own.from; i < own.to; i++)
        largest->sums[i - own.from] = sl_matrix_tile(choice->z, i, j);
}

void sl_largest_meet(struct sl_largest *largest, int i, int k, struct sl_tile *const *met,
                     struct sl_tile *vertices, int64_t first)
{
    const struct sl_choice *c = &largest->choice;
    bool *started = &largest->started[i - largest->own.from];
    const struct sl_largest_tiles tiles = {
        .a = sl_sparse_matrix_tile(c->a, i, k),
        .h = met[0],
        .arg = c->back ? met[1] : sl_matrix_tile(c->from, i, largest->j),
        .z = largest->sums[i - largest->own.from],
        .accumulate = *started,
        .vertices = vertices,
        .first = first,
    };
    if (!tiles.a->shape.nnz)
        return;
    if (c->back)
        sl_submit_largest_back(largest->rt, &tiles);
    else
        sl_submit_largest(largest->rt, &tiles);
    *started = true;
}

void sl_largest_close(struct sl_largest *largest)
{
    for (int r = 0; r < largest->own.to - largest->own.from; r++)
        if (!largest->started[r])
            sl_submit_fill(largest->rt, 0.0f, largest->sums[r]);
    free(largest->started);
    free(largest->sums);
}
