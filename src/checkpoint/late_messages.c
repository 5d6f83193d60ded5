#include "checkpoint/late_messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "graphs/late_rows.h"

bool sl_late_messages(const struct sl_network *net)
{
    const struct sl_vertex_cut *cut = sl_vertex_cut_of(net->graph->distribution);
    return cut && cut->delay > 0 && net->rt->ranks > 1;
}

static void name_tensor(int rank, int number, char name[64])
{
    snprintf(name, 64, "late.rank%d.aggregation%d", rank, number);
}

static void name_cut(const struct sl_vertex_cut *cut, char name[24])
{
    snprintf(name, 24, "%016" PRIx64, cut->fingerprint);
}

static int no_memory(const struct sl_network *net)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for the messages on their way between %d ranks",
                    net->rt->ranks);
}

/* ---- Save ---- */

/* Add a tensor for each rank that sent rows. `received`: rows of rank 0, 1, … */
static int add_tensors(int ranks, const int64_t *rows, int number, int64_t width,
                       const float *received, struct sl_checkpoint *checkpoint)
{
    for (int r = 0; r < ranks; r++) {
        char name[64];
        name_tensor(r, number, name);
        float *to = rows[r] > 0 ? sl_checkpoint_add(checkpoint, name, rows[r], width) : NULL;
        if (rows[r] > 0 && !to)
            return SL_ERR_SYSTEM;
        if (to)
            memcpy(to, received, (size_t)(rows[r] * width) * sizeof *to);
        received += rows[r] * width;
    }
    return 0;
}

/* Whether rows of an aggregation travel between steps. */
static bool is_late(const struct sl_network *net, const struct sl_aggregation *aggregation)
{
    const struct sl_distribution *d = net->graph->distribution;
    return d->kind->share(d, aggregation->transposed) > 0.0;
}

/* Save the late rows of one aggregation: gather the rows of all ranks on rank 0, and add their
 * tensors. */
static int save_aggregation(struct sl_network *net, const int64_t *rows, int number, int64_t width,
                            struct sl_checkpoint *checkpoint)
{
    struct sl_runtime *rt = net->rt;
    const int64_t own = rows[rt->rank];
    int64_t *first = calloc((size_t)rt->ranks + 1, sizeof *first), count;
    float *out = malloc((size_t)(own * width) * sizeof *out + 1);
    void *received = NULL;
    int code = sl_runtime_agree(rt, first && out ? 0 : no_memory(net));
    if (!code) {
        sl_late_rows_keep(rt, sl_vertex_cut_of(net->graph->distribution), net->step.late_steps,
                          number, width, out);
        for (int r = 1; r <= rt->ranks; r++)
            first[r] = own; /* every rank sends all its rows to rank 0 */
        code = sl_runtime_exchange(rt, out, first, (size_t)width * sizeof *out, &received, &count);
    }
    if (!code && rt->rank == 0)
        code = add_tensors(rt->ranks, rows, number, width, received, checkpoint);
    free(received);
    free(out);
    free(first);
    return sl_runtime_agree(rt, code);
}

static int describe(const struct sl_network *net, struct sl_checkpoint *checkpoint)
{
    char name[24];
    name_cut(sl_vertex_cut_of(net->graph->distribution), name);
    json_t *late = json_pack("{s:i, s:i, s:I, s:s}", "ranks", net->rt->ranks, "delay",
                             sl_vertex_cut_of(net->graph->distribution)->delay, "steps",
                             (json_int_t)net->step.late_steps, "cut", name);
    return json_object_set_new(checkpoint->description, "late", late) ? no_memory(net) : 0;
}

int sl_late_messages_save(struct sl_network *net, struct sl_checkpoint *checkpoint)
{
    struct sl_runtime *rt = net->rt;
    struct sl_aggregation *list = calloc((size_t)(net->layers * SL_AGGREGATIONS), sizeof *list);
    int64_t *rows = calloc((size_t)rt->ranks, sizeof *rows);
    int code = sl_runtime_agree(rt, list && rows ? 0 : no_memory(net));
    if (!code) {
        const int count = sl_network_aggregations(net, list);
        sl_runtime_gather(rt, sl_late_rows(sl_vertex_cut_of(net->graph->distribution)), rows);
        for (int a = 0; !code && a < count; a++)
            if (is_late(net, &list[a]))
                code = save_aggregation(net, rows, a, sl_aggregation_merged(&list[a], true)[1],
                                        checkpoint);
    }
    if (!code && rt->rank == 0)
        code = describe(net, checkpoint);
    free(list);
    free(rows);
    return sl_runtime_agree(rt, code);
}

/* ---- Load ---- */

struct late {
    json_int_t ranks, delay, steps;
    const char *cut;
};

/* Whether the checkpoint has a tensor for each late aggregation of this rank. */
static bool has_tensors(const struct sl_network *net, const struct sl_checkpoint *checkpoint,
                        const struct sl_aggregation *list, int count)
{
    const int64_t rows = sl_late_rows(sl_vertex_cut_of(net->graph->distribution));
    for (int a = 0; rows > 0 && a < count; a++) {
        char name[64];
        if (!is_late(net, &list[a]))
            continue;
        name_tensor(net->rt->rank, a, name);
        const struct sl_tensor *tensor = sl_checkpoint_find(checkpoint, name);
        if (!tensor || tensor->rows != rows ||
            tensor->cols != sl_aggregation_merged(&list[a], true)[1])
            return false;
    }
    return true;
}

static bool is_of_this_cut(const struct sl_network *net, const struct late *late)
{
    char name[24];
    if (!sl_late_messages(net) || late->ranks != net->rt->ranks ||
        late->delay != sl_vertex_cut_of(net->graph->distribution)->delay)
        return false;
    name_cut(sl_vertex_cut_of(net->graph->distribution), name);
    return strcmp(late->cut, name) == 0;
}

static void load(struct sl_network *net, const struct sl_checkpoint *checkpoint,
                 const struct late *late, const struct sl_aggregation *list, int count)
{
    static const float none[1];
    for (int a = 0; a < count; a++) {
        char name[64];
        if (!is_late(net, &list[a]))
            continue;
        name_tensor(net->rt->rank, a, name);
        const struct sl_tensor *tensor = sl_checkpoint_find(checkpoint, name);
        sl_late_rows_restore(net->rt, sl_vertex_cut_of(net->graph->distribution), late->steps, a,
                             sl_aggregation_merged(&list[a], true)[1],
                             tensor ? tensor->data : none);
    }
    net->step.late_steps = late->steps;
}

static void tell_drop(const struct sl_network *net, const struct late *late, const char *file)
{
    const bool other_ranks = late->ranks != net->rt->ranks;
    sl_note("--resume %s: drops the messages on their way, which are of --delay cd-%d on %d ranks: "
            "this run has %s",
            file, (int)late->delay, (int)late->ranks,
            other_ranks              ? "another number of ranks"
            : !sl_late_messages(net) ? "none"
            : late->delay != sl_vertex_cut_of(net->graph->distribution)->delay
                ? "another delay"
                : "another partition of the edges, other layers or other partial sums");
}

int sl_late_messages_load(struct sl_network *net, const struct sl_checkpoint *checkpoint,
                          const char *file)
{
    struct late late;
    const json_t *saved = json_object_get(checkpoint->description, "late");
    if (!saved)
        return 0;
    struct sl_aggregation *list = calloc((size_t)(net->layers * SL_AGGREGATIONS), sizeof *list);
    int code = sl_runtime_agree(net->rt, list ? 0 : no_memory(net));
    if (!code && (json_unpack((json_t *)saved, "{s:I, s:I, s:I, s:s}", "ranks", &late.ranks,
                              "delay", &late.delay, "steps", &late.steps, "cut", &late.cut) ||
                  late.steps < 0))
        code = sl_error(SL_ERR_DATA, "the checkpoint's description of late messages is damaged");
    if (!code) {
        const int count = sl_network_aggregations(net, list);
        const bool fits = is_of_this_cut(net, &late) && has_tensors(net, checkpoint, list, count);
        if (sl_runtime_least(net->rt, fits))
            load(net, checkpoint, &late, list, count);
        else if (file)
            tell_drop(net, &late, file);
    }
    free(list);
    return code;
}
