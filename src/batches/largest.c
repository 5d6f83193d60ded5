/* Finds the batches of clusters that take the most memory. */
#include <stdlib.h>

#include "batches/batch.h"
#include "batches/sets.h"
#include "core/error.h"

enum { MOST_LOOKS = 10000000 }; /* pairs of sets to look at, over all batches */

/* Return the bytes of a vertex's features and of its rows in all layers, forward and back. */
static int64_t row_bytes(const struct sl_batches *b)
{
    int64_t columns = b->source->feature_form == SL_FEATURES_DENSE ? b->source->features : 0;
    for (int l = 0; l < b->whole->network.layers; l++)
        columns += 2 * b->whole->network.layer[l].out;
    return columns * (int64_t)sizeof(float);
}

/* Set *rows to the vertices of this group's batch, and *bytes to the bytes of its adjacency and
 * rows. */
static void measure(const struct sl_batches *b, int64_t version, int64_t *rows, int64_t *bytes)
{
    enum { ENTRY = 8 }; /* bytes of an adjacency entry and its column */
    const int64_t sets = b->options.sets, first = version % b->steps * b->options.each,
                  end = first + b->options.each < sets ? first + b->options.each : sets,
                  epoch = version / b->steps + 1;
    int64_t entries = 0;
    *rows = 0;
    for (int64_t p = first; p < end; p++) {
        const int64_t s = sl_batches_set_at(b, epoch, p);
        *rows += b->set_cut[s + 1] - b->set_cut[s];
        for (int64_t q = first; b->edges && q < end; q++)
            entries += b->edges[s * sets + sl_batches_set_at(b, epoch, q)];
    }
    *bytes = ENTRY * entries + row_bytes(b) * *rows;
}

int sl_largest_find(struct sl_batches *b, int64_t *widest, int64_t *pair)
{
    const int64_t all = sl_config_epochs(b->config) * b->steps,
                  most = MOST_LOOKS / (b->options.each * b->options.each) + b->steps,
                  count = (all < most ? all : most) + 1;
    int64_t *rows = malloc((size_t)count * 2 * sizeof *rows), *bytes = rows + count;
    const int code = sl_runtime_agree(
        b->rt, rows ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a list of batches"));
    *widest = *pair = 0;
    for (int64_t v = 0; !code && v < count; v++)
        measure(b, v, &rows[v], &bytes[v]);
    if (!code && b->groups.count > 1) /* each group counts once for each rank */
        sl_runtime_sum(b->rt, rows, 2 * count);
    for (int64_t v = 0; !code && v + 1 < count; v++) {
        *widest = rows[v] > rows[*widest] ? v : *widest;
        *pair = bytes[v] + bytes[v + 1] > bytes[*pair] + bytes[*pair + 1] ? v : *pair;
    }
    free(rows);
    return code;
}
