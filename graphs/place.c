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
    matrix->place = place;
    return 0;
}

void sl_place_remove(struct sl_place *place, const struct sl_matrix *matrix)
{
    int kept = 0;
    for (int m = 0; m < place->count; m++)
        if (place->matrix[m] != matrix)
            place->matrix[kept++] = place->matrix[m];
    place->count = kept;
    if (place->current == matrix)
        place->current = NULL;
    if (place->last == matrix)
        place->last = NULL;
}

static size_t aligned_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    enum { LINE = 64 };
    return (sl_matrix_own_bytes(rt, matrix) + LINE - 1) / LINE * LINE;
}

/* Forget a place's memory. Wait first for tasks on its matrices, and for messages, which may still
 * use the memory. */
static void forget_memory(const struct sl_runtime *rt, struct sl_place *place)
{
    for (int m = 0; m < place->count; m++) {
        const struct sl_matrix *matrix = place->matrix[m];
        for (int t = 0; t < matrix->tile_rows * matrix->tile_cols; t++)
            if (matrix->tiles[t].owner == rt->rank)
                sl_tile_forget(&matrix->tiles[t]);
    }
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
    const size_t bytes = place->apart ? all : most;
    if (bytes > place->bytes) {
        forget_memory(rt, place);
        sl_memory_free(place->memory, place->bytes);
        place->bytes = bytes;
        place->current = place->last = NULL;
        place->memory = rt->plans ? NULL : sl_memory_alloc(bytes);
        if (!place->memory && !rt->plans)
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

/* Give the place away. A matrix without rows on this rank has no tasks to wait for, so the next
 * matrix waits for the last one with rows. */
void sl_place_take(struct sl_runtime *rt, struct sl_place *place, const struct sl_matrix *matrix)
{
    if (place->apart)
        return;
    const bool has_rows = sl_matrix_own_bytes(rt, matrix) > 0;
    if (has_rows && place->last && place->last != matrix)
        sl_task_hand_over(rt, place->last, matrix);
    if (place->current != matrix)
        sl_matrix_wake(matrix);
    for (int m = 0; m < place->count; m++)
        if (place->matrix[m] == matrix) {
            place->current = place->matrix[m];
            place->last = has_rows ? place->matrix[m] : place->last;
        }
}

/* ---- The places of a network ---- */

struct sl_place *sl_places_find(struct sl_places *places, enum sl_place_use use, int number)
{
    for (int p = 0; p < places->count; p++)
        if (places->entry[p]->use == use && places->entry[p]->number == number)
            return &places->entry[p]->place;
    struct sl_use_of_place **longer =
        realloc(places->entry, (size_t)(places->count + 1) * sizeof(struct sl_use_of_place *));
    struct sl_use_of_place *entry = calloc(1, sizeof *entry);
    if (longer)
        places->entry = longer;
    if (!longer || !entry) {
        free(entry);
        sl_error(SL_ERR_SYSTEM, "no memory for a list of %d places", places->count + 1);
        return NULL;
    }
    entry->use = use;
    entry->number = number;
    entry->place.shared = places->shared;
    places->entry[places->count++] = entry;
    return &entry->place;
}

int sl_places_allocate(struct sl_runtime *rt, struct sl_places *places)
{
    int code = 0;
    for (int p = 0; !code && p < places->count; p++)
        code = sl_place_allocate(rt, &places->entry[p]->place);
    return code;
}

bool sl_places_lack(const struct sl_runtime *rt, const struct sl_places *places)
{
    bool lack = false;
    for (int p = 0; p < places->count; p++) {
        const struct sl_place *place = &places->entry[p]->place;
        for (int m = 0; m < place->count; m++)
            lack = lack || aligned_bytes(rt, place->matrix[m]) > place->bytes;
    }
    return lack;
}

size_t sl_places_bytes(const struct sl_places *places, enum sl_place_use use)
{
    size_t bytes = 0;
    for (int p = 0; p < places->count; p++)
        if (places->entry[p]->use == use)
            bytes += places->entry[p]->place.bytes;
    return bytes;
}

void sl_places_free(struct sl_places *places)
{
    for (int p = 0; p < places->count; p++) {
        sl_place_free(&places->entry[p]->place);
        free(places->entry[p]);
    }
    free(places->entry);
    *places = (struct sl_places){0};
}
