/* A table for each rank:
 *
 *   for row tiles i:  table(owner of i) += confusion(i)
 *   table(0) = Σ table(r) → rank 0
 *
 * Counts are whole numbers: no order of additions changes them. */
#include "graphs/confusion.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/confusion.h"
#include "core/error.h"
#include "core/message.h"
#include "graphs/collective.h"

static void submit(struct sl_network *net, struct sl_tile *table)
{
    struct sl_runtime *rt = net->rt;
    const struct sl_matrix *logits = sl_network_logits(net);
    for (int i = 0; i < net->graph->distribution->tiles; i++) {
        struct sl_tile *z = sl_matrix_tile(logits, i, 0);
        sl_submit_confusion(rt, &net->graph->target[logits->row_order][i], z, &table[z->owner]);
    }
    sl_reduce(rt, table, rt->ranks, 1, sl_submit_metrics_add);
}

int sl_network_count_confusion(struct sl_network *net, double *counts)
{
    struct sl_runtime *rt = net->rt;
    const int64_t classes = net->model->layer[net->model->layers - 1].shape.out;
    struct sl_tile *table = calloc((size_t)rt->ranks, sizeof *table);
    int code = table ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d tables", rt->ranks);
    for (int r = 0; !code && r < rt->ranks; r++)
        code = sl_tile_create(rt, &table[r], classes, SL_SPLITS * classes, sizeof(double), r);
    code = sl_runtime_agree(rt, code);
    if (!code) {
        submit(net, table);
        if (rt->rank == 0) {
            memcpy(counts, sl_tile_acquire(rt, &table[0], false), (size_t)sl_tile_bytes(&table[0]));
            sl_tile_release(&table[0]);
        }
        sl_runtime_wait(rt);
    }
    for (int r = 0; table && r < rt->ranks; r++)
        sl_tile_destroy(&table[r]);
    free(table);
    return code;
}
