#include "core/temporary.h"

#include <stdlib.h>

#include <starpu.h>

#include "core/handle.h"

void sl_temporary_open_shared(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                              int owner, int64_t tag)
{
    *tile = (struct sl_tile){
        .rows = rows,
        .cols = cols,
        .ld = cols,
        .element_size = element_size,
        .tag = tag,
        .owner = owner,
    };
}

void sl_temporary_open(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols)
{
    /* Tag -1 stays on this rank: ranks need not open the same tiles. */
    sl_temporary_open_shared(tile, rows, cols, sizeof(float), rt->rank, -1);
}

int64_t sl_temporary_tags(struct sl_runtime *rt, int64_t count)
{
    const int64_t first = rt->next_tag;
    rt->next_tag += count;
    return first;
}

void sl_temporary_empty(struct sl_tile *tile)
{
    if (tile->handle)
        starpu_data_invalidate_submit((starpu_data_handle_t)tile->handle);
}

void sl_temporary_close(struct sl_tile *tile)
{
    if (tile->handle)
        sl_handle_unregister(tile->handle);
    *tile = (struct sl_tile){0};
}

/* ---- Handles that rest ---- */

struct sl_resting {
    struct sl_resting *next;
    struct sl_tile tile; /* a closed tile, without contents */
    int64_t turn;        /* turn in which the tile was closed */
};

static int list_of(const struct sl_tile *tile)
{
    const uint64_t shape = (uint64_t)tile->rows * 31 + (uint64_t)tile->ld;
    return (int)(shape % SL_TEMPORARY_LISTS);
}

static bool are_alike(const struct sl_tile *a, const struct sl_tile *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->ld == b->ld &&
           a->element_size == b->element_size;
}

void sl_temporaries_turn(struct sl_temporaries *t)
{
    if (t)
        t->turn++;
}

void sl_temporaries_serve(struct sl_temporaries *t, struct sl_tile *tile)
{
    const int l = list_of(tile);
    struct sl_resting *before = NULL, *resting = t ? t->first[l] : NULL;
    while (resting && resting->turn + SL_TEMPORARY_REST <= t->turn &&
           !are_alike(&resting->tile, tile)) {
        before = resting;
        resting = resting->next;
    }
    if (!resting || resting->turn + SL_TEMPORARY_REST > t->turn)
        return;
    *(before ? &before->next : &t->first[l]) = resting->next;
    if (t->last[l] == resting)
        t->last[l] = before;
    tile->handle = resting->tile.handle;
    free(resting);
}

void sl_temporaries_close(struct sl_temporaries *t, struct sl_tile *tile)
{
    const int l = list_of(tile);
    struct sl_resting *resting = t && tile->handle ? malloc(sizeof *resting) : NULL;
    if (!resting) {
        sl_temporary_close(tile);
        return;
    }
    sl_temporary_empty(tile);
    *resting = (struct sl_resting){.tile = *tile, .turn = t->turn};
    *(t->last[l] ? &t->last[l]->next : &t->first[l]) = resting;
    t->last[l] = resting;
    *tile = (struct sl_tile){0};
}

void sl_temporaries_free(struct sl_temporaries *t)
{
    for (int l = 0; l < SL_TEMPORARY_LISTS; l++)
        for (struct sl_resting *resting = t->first[l], *next; resting; resting = next) {
            next = resting->next;
            sl_handle_forget(resting->tile.handle);
            free(resting);
        }
    *t = (struct sl_temporaries){0};
}
