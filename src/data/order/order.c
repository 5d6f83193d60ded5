#include "data/order/order.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/csr.h"

int sl_order_by_degree(const struct sl_csr *graph, bool descending, int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    const int64_t n = graph->rows;
    int64_t most = 0;
    for (int64_t v = 0; v < n; v++) {
        const int64_t degree = graph->indptr[v + 1] - graph->indptr[v];
        most = degree > most ? degree : most;
    }
    int64_t *place = sl_block_array(&scratch, most + 2, sizeof *place);
    if (!place)
        return SL_ERR_SYSTEM;
    memset(place, 0, (size_t)(most + 2) * sizeof *place);
    for (int pass = 0; pass < 2; pass++) { /* count, then put */
        for (int64_t v = 0; v < n; v++) {
            const int64_t degree = graph->indptr[v + 1] - graph->indptr[v];
            const int64_t key = descending ? most - degree : degree;
            if (pass == 0)
                place[key + 1]++;
            else
                vertices[place[key]++] = (int32_t)v;
        }
        for (int64_t key = 0; pass == 0 && key <= most; key++)
            place[key + 1] += place[key];
    }
    sl_block_free_all(&scratch);
    return SL_OK;
}

static int order_degree(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    (void)seed;
    return sl_order_by_degree(graph, true, vertices);
}

/* Shuffle the vertices (Fisher and Yates). */
static int order_random(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    const uint64_t key = sl_rng_key(seed, SL_RNG_ORDER, 0, 0);
    for (int64_t v = 0; v < graph->rows; v++) {
        const int64_t at = (int64_t)(sl_rng_uniform(key, (uint32_t)v, 0) * (double)(v + 1));
        vertices[v] = vertices[at];
        vertices[at] = (int32_t)v;
    }
    return SL_OK;
}

const struct sl_order sl_orders[] = {
    {"none", "as the dataset has them", NULL, false},
    {"degree", "by falling degree", order_degree, true},
    {"rcm", "along breadth-first searches (reverse Cuthill-McKee)", sl_order_rcm, true},
    {"rabbit", "by communities within communities (Rabbit Order)", sl_order_rabbit, true},
    {"metis", "by parts that fit a cache, with few edges between them (METIS)", sl_order_metis,
     true},
    {"random", "at random", order_random, false},
    {0},
};

const struct sl_order *sl_order_find(const char *name)
{
    char names[128] = "";
    for (const struct sl_order *order = sl_orders; order->name; order++) {
        if (strcmp(order->name, name) == 0)
            return order;
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", order->name);
    }
    struct sl_guess guess = sl_guess_begin(name);
    sl_guess_consider_list(&guess, names, ", ");
    sl_error(SL_ERR_USAGE, "unknown order \"%s\", expected one of: %s%s", name, names,
             sl_guess_hint(&guess).text);
    return NULL;
}

int sl_order_compute(const struct sl_order *order, const struct sl_dataset *data, uint64_t seed,
                     int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    struct sl_csr graph;
    int rc = sl_csr_pattern(&data->adjacency, data->symmetric, &scratch, &graph);
    if (!rc)
        rc = order->compute(&graph, seed, vertices);
    sl_block_free_all(&scratch);
    return rc;
}
