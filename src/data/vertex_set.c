#include "data/vertex_set.h"

#include <stddef.h>

#include "core/error.h"

int sl_vertex_set_create(struct sl_vertex_set *set, int64_t n)
{
    *set = (struct sl_vertex_set){.words = (n + 63) / 64};
    set->bits = sl_block_array(&set->blocks, set->words, sizeof *set->bits);
    for (int64_t w = 0; set->bits && w < set->words; w++)
        atomic_init(&set->bits[w], 0);
    return set->bits ? SL_OK : SL_ERR_SYSTEM;
}

void sl_vertex_set_free(struct sl_vertex_set *set)
{
    sl_block_free_all(&set->blocks);
    *set = (struct sl_vertex_set){0};
}

void sl_vertex_set_move(struct sl_vertex_set *more, struct sl_vertex_set *set,
                        struct sl_vertex_set *copy)
{
    for (int64_t w = 0; w < set->words; w++) {
        const uint64_t word = sl_vertex_set_word(more, w);
        if (word == 0)
            continue;
        atomic_fetch_or_explicit(&set->bits[w], word, memory_order_relaxed);
        if (copy)
            atomic_fetch_or_explicit(&copy->bits[w], word, memory_order_relaxed);
        atomic_store_explicit(&more->bits[w], 0, memory_order_relaxed);
    }
}

int64_t sl_vertex_set_count(const struct sl_vertex_set *set)
{
    int64_t count = 0;
    for (int64_t w = 0; w < set->words; w++)
        count += __builtin_popcountll(sl_vertex_set_word(set, w));
    return count;
}

int sl_vertex_set_seal(struct sl_vertex_set *set)
{
    uint32_t count = 0;
    set->before = sl_block_array(&set->blocks, set->words, sizeof *set->before);
    if (!set->before)
        return SL_ERR_SYSTEM;
    for (int64_t w = 0; w < set->words; w++) {
        set->before[w] = count;
        count += (uint32_t)__builtin_popcountll(sl_vertex_set_word(set, w));
    }
    return SL_OK;
}
