#include "data/partition/parts.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/names.h"
#include "core/nearest.h"
#include "core/progress.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/fingerprint.h"
#include "data/partition/edge_parts.h"
#include "data/partition/vertex_parts.h"

static uint64_t fingerprint_of(const struct sl_csr *graph)
{
    uint64_t sum = 0;
    for (int64_t v = 0; v < graph->rows; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            sum += sl_fingerprint((int32_t)v, graph->indices[k], 1.0f);
    return sum;
}

uint64_t sl_parts_checksum(const int32_t *part, int64_t first, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += sl_fingerprint_mix(sl_fingerprint_mix((uint64_t)(first + k)) ^ (uint32_t)part[k]);
    return sum;
}

/* ---- Methods ---- */

static int cut_by_libra(const struct sl_dataset *data, const struct sl_parts_options *options,
                        int32_t *part)
{
    return sl_edge_parts_libra(&data->adjacency, data->symmetric, options->parts, options->seed,
                               part);
}

static int cut_by_hdrf(const struct sl_dataset *data, const struct sl_parts_options *options,
                       int32_t *part)
{
    return sl_edge_parts_hdrf(&data->adjacency, data->symmetric, options->parts, options->seed,
                              options->lambda, part);
}

/* METIS takes undirected graphs: it gets the union with the transpose. */
static int cut_by_metis(const struct sl_dataset *data, const struct sl_parts_options *options,
                        int32_t *part)
{
    struct sl_block *scratch = NULL;
    struct sl_csr graph;
    int rc = sl_csr_pattern(&data->adjacency, data->symmetric, &scratch, &graph);
    if (!rc)
        rc =
            sl_vertex_parts_metis(&graph, SL_VERTICES_BY_WORK, options->parts, options->seed, part);
    sl_block_free_all(&scratch);
    return rc;
}

static int cut_at_random(const struct sl_dataset *data, const struct sl_parts_options *options,
                         int32_t *part)
{
    sl_vertex_parts_random(data->vertices, options->parts, options->seed, part);
    return SL_OK;
}

const struct sl_parts_method sl_parts_libra = {"libra", true, cut_by_libra},
                             sl_parts_hdrf = {"hdrf", true, cut_by_hdrf},
                             sl_parts_metis = {"metis", false, cut_by_metis},
                             sl_parts_random = {"random", false, cut_at_random};

const struct sl_parts_method *sl_parts_find_method(const char *name)
{
    static const struct sl_parts_method *const methods[] = {&sl_parts_libra, &sl_parts_hdrf,
                                                            &sl_parts_metis, &sl_parts_random};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        if (strcmp(methods[m]->name, name) == 0)
            return methods[m];
    return NULL;
}

int sl_parts_check_name(const char *partition, const char *names)
{
    const size_t length = strlen(partition);
    if (sl_choice_find(names, partition) != SL_NO_CHOICE ||
        (length > 4 && strcmp(partition + length - 4, ".npy") == 0))
        return SL_OK;
    struct sl_guess guess = sl_guess_begin(partition);
    char list[64];
    sl_guess_consider_list(&guess, names, "|");
    snprintf(list, sizeof list, "%s", names);
    for (char *c = list; *c; c++)
        *c = *c == '|' ? ' ' : *c;
    return sl_error(SL_ERR_USAGE, "--partition %s: expected one of: %s, or a .npy file%s",
                    partition, list, sl_guess_hint(&guess).text);
}

/* ---- Parts ---- */

int sl_parts_make(const struct sl_dataset *data, const struct sl_parts_options *options,
                  struct sl_parts *out)
{
    const int64_t n = data->vertices, nnz = data->adjacency.indptr[n];
    *out = (struct sl_parts){
        .of_edges = options->method->of_edges,
        .parts = options->parts,
        .seed = options->seed,
        .vertices = n,
        .entries = nnz,
        .fingerprint = fingerprint_of(&data->adjacency),
    };
    snprintf(out->method, sizeof out->method, "%s", options->method->name);
    const int64_t count = out->of_edges ? nnz : n;
    int32_t *part = sl_block_array(&out->blocks, count, sizeof *part);
    sl_progress_begin("cutting into %d parts, %s", options->parts, options->method->name);
    const int rc =
        sl_progress_end_with(part ? options->method->cut(data, options, part) : SL_ERR_SYSTEM);
    if (rc)
        return rc;
    out->part = part;
    out->checksum = sl_parts_checksum(part, 0, count);
    return SL_OK;
}

json_t *sl_parts_report(const struct sl_dataset *data, const struct sl_parts *parts)
{
    struct sl_edge_parts_report edges;
    struct sl_vertex_parts_report vertices;
    if (parts->of_edges)
        return sl_edge_parts_report(&data->adjacency, data->symmetric, parts->parts, parts->part,
                                    &edges)
                   ? NULL
                   : json_pack("{s:f, s:f, s:f, s:f, s:f}", "replication_factor", edges.replication,
                               "random_replication_factor", edges.random, "split_vertices",
                               edges.split, "edge_balance", edges.edge_balance, "vertex_balance",
                               edges.vertex_balance);
    return sl_vertex_parts_report(&data->adjacency, parts->parts, parts->part, &vertices)
               ? NULL
               : json_pack("{s:f, s:f, s:f, s:f}", "cut_edges", vertices.cut, "halo_vertices",
                           vertices.halo, "edge_balance", vertices.entry_balance, "vertex_balance",
                           vertices.vertex_balance);
}

void sl_parts_close(struct sl_parts *parts)
{
    sl_block_free_all(&parts->blocks);
    *parts = (struct sl_parts){0};
}
