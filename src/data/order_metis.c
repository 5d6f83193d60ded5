/* METIS' k-way partition as an order. */
#include <inttypes.h>
#include <string.h>

#include <metis.h>

#include "core/error.h"
#include "data/block.h"
#include "data/order.h"

/* Vertices per part: rows of 64 floats in half of an L2 cache of 1 MiB. Not this machine's cache,
 * so that all ranks and all machines get the same order. */
enum { PART_VERTICES = 2048 };

struct graph {
    idx_t vertices;
    idx_t *indptr;  // (vertices + 1)
    idx_t *indices; // (indptr[vertices]), without self-loops, which METIS does not take
    idx_t *part;    // (vertices)
};

static int copy_graph(const struct sl_csr *csr, struct sl_block **scratch, struct graph *out)
{
    const int64_t n = csr->rows, nnz = csr->indptr[n];
    if ((idx_t)nnz != nnz)
        return sl_error(SL_ERR_DATA,
                        "order metis: the graph has %" PRId64
                        " adjacency entries, and METIS, built with %d-bit numbers, takes at most "
                        "%" PRId64 "; rabbit has no such limit",
                        nnz, IDXTYPEWIDTH, (int64_t)IDX_MAX);
    out->vertices = (idx_t)n;
    out->indptr = sl_block_array(scratch, n + 1, sizeof *out->indptr);
    out->indices = sl_block_array(scratch, nnz, sizeof *out->indices);
    out->part = sl_block_array(scratch, n, sizeof *out->part);
    if (!out->indptr || !out->indices || !out->part)
        return SL_ERR_SYSTEM;
    idx_t kept = 0;
    for (int64_t v = 0; v < n; v++) {
        out->indptr[v] = kept;
        for (int64_t k = csr->indptr[v]; k < csr->indptr[v + 1]; k++)
            if (csr->indices[k] != v)
                out->indices[kept++] = csr->indices[k];
    }
    out->indptr[n] = kept;
    return SL_OK;
}

static int partition(struct graph *g, idx_t parts, uint64_t seed)
{
    idx_t options[METIS_NOPTIONS], constraints = 1, cut;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(seed & 0x7FFFFFFF);
    const int status = METIS_PartGraphKway(&g->vertices, &constraints, g->indptr, g->indices, NULL,
                                           NULL, NULL, &parts, NULL, NULL, options, &cut, g->part);
    return status == METIS_OK
               ? SL_OK
               : sl_error(SL_ERR_SYSTEM, "METIS cannot cut the graph into %" PRId64 " parts: %s",
                          (int64_t)parts,
                          status == METIS_ERROR_MEMORY ? "out of memory" : "it says no more");
}

/* A counting sort, which keeps the order within a part. */
static int sort_by_part(const struct graph *g, idx_t parts, int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    int64_t *place = sl_block_array(&scratch, (int64_t)parts + 1, sizeof *place);
    if (!place)
        return SL_ERR_SYSTEM;
    memset(place, 0, (size_t)(parts + 1) * sizeof *place);
    for (idx_t v = 0; v < g->vertices; v++)
        place[g->part[v] + 1]++;
    for (idx_t p = 0; p < parts; p++)
        place[p + 1] += place[p];
    for (idx_t v = 0; v < g->vertices; v++)
        vertices[place[g->part[v]]++] = (int32_t)v;
    sl_block_free_all(&scratch);
    return SL_OK;
}

int sl_order_metis(const struct sl_csr *graph, uint64_t seed, int32_t *vertices)
{
    struct sl_block *scratch = NULL;
    struct graph g = {0};
    int rc = copy_graph(graph, &scratch, &g);
    const idx_t parts = (g.vertices + PART_VERTICES - 1) / PART_VERTICES;
    /* One part, or nothing to cut: METIS need not be asked, and does not always answer. */
    const bool trivial = rc || parts < 2 || g.indptr[g.vertices] == 0;
    if (!rc && trivial)
        memset(g.part, 0, (size_t)g.vertices * sizeof *g.part);
    if (!trivial)
        rc = partition(&g, parts, seed);
    if (!rc)
        rc = sort_by_part(&g, parts, vertices);
    sl_block_free_all(&scratch);
    return rc;
}
