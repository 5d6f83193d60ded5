#include "graphs/place.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/task.h"

size_t sl_place_small = SL_PLACE_SMALL;

int sl_place_add(struct sl_place *place, struct sl_matrix *matrix)
{
    if (place->count == place->room) {
        const int room = 2 * place->room + 4;
        struct sl_matrix **longer = realloc(place->matrix, (size_t)room * sizeof *longer);
        if (!longer)
            return sl_error(SL_ERR_SYSTEM, "no memory for a list of %d matrices", room);
        place->matrix = longer;
        place->room = room;
    }
    place->matrix[place->count++] = matrix;
    return 0;
}

static size_t aligned_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    enum { LINE = 64 };
    return (sl_matrix_own_bytes(rt, matrix) + LINE - 1) / LINE * LINE;
}

int sl_place_allocate(struct sl_runtime *rt, struct sl_place *place)
{
    size_t most = 0, all = 0, next = 0;
    for (int m = 0; m < place->count; m++) {
        const size_t bytes = aligned_bytes(rt, place->matrix[m]);
        most = bytes > most ? bytes : most;
        all += bytes;
    }
    place->apart = all <= sl_place_small && !place->shared;
    place->bytes = place->apart ? all : most;
    if (place->bytes > 0 && !rt->plans) {
        place->memory = sl_memory_alloc(place->bytes);
        if (!place->memory)
            return SL_ERR_SYSTEM;
    }
    for (int m = 0; m < place->count; m++) {
        sl_matrix_lend(rt, place->matrix[m], place->memory ? (char *)place->memory + next : NULL);
        next += place->apart ? aligned_bytes(rt, place->matrix[m]) : 0;
    }
    return 0;
}

void sl_place_free(struct sl_place *place)
{
    sl_memory_free(place->memory, place->bytes);
    free(place->matrix);
    *place = (struct sl_place){0};
}

void sl_place_take(struct sl_runtime *rt, struct sl_place *place, const struct sl_matrix *matrix)
{
    if (place->apart)
        return;
    if (place->current && place->current != matrix)
        sl_task_hand_over(rt, place->current, matrix);
    for (int m = 0; m < place->count; m++)
        if (place->matrix[m] == matrix)
            place->current = place->matrix[m];
}
