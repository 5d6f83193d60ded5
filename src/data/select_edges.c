/* The edges among selected vertices, and the degrees of their rows in the whole graph. */
#include "core/error.h"
#include "data/csr.h"
#include "data/part.h"
#include "data/selecting.h"

struct edges {
    int64_t *indptr;  // (n + 1): lengths of rows, then row pointers
    int32_t *entries; // (n): entries of the vertex's row in the whole graph
    double *weight;   // (n): sum of the weights of this row; or NULL
    int32_t *indices; // (indptr[n])
    float *values;    // (indptr[n]); or NULL
    int32_t *edges;   // (indptr[n]): rows of edge features; or NULL
};

/* Note the degree of row v in the whole graph. In a selection of a selection, that is the first
 * one's whole graph. */
static void note_degree(const struct sl_source *source, int64_t v, const struct sl_neighbours *n,
                        int32_t *entries, double *weight)
{
    double sum = 0.0;
    for (int64_t e = 0; n->weight && e < n->count; e++)
        sum += (double)n->weight[e];
    *entries = source->selection.row_entries ? source->selection.row_entries[v] : (int32_t)n->count;
    if (weight)
        *weight = source->selection.row_entries ? source->selection.row_weight[v] : sum;
}

static bool keeps_row(const struct sl_selecting *s, int64_t k)
{
    return s->options->keeps_last_rows || s->out->hops != s->options->hops ||
           k < s->out->hop_cut[s->out->hops];
}

static int count_row(const struct sl_selecting *s, void *context, int64_t k,
                     struct sl_neighbours *n)
{
    const struct edges *edges = context;
    int64_t kept = 0;
    for (int64_t e = 0; keeps_row(s, k) && e < n->count; e++)
        kept += sl_vertex_set_has(&s->selected, sl_source_place(s->source, n->vertex[e]));
    edges->indptr[k + 1] = kept;
    note_degree(s->source, s->out->row[k], n, &edges->entries[k],
                edges->weight ? &edges->weight[k] : NULL);
    return SL_OK;
}

static int write_row(const struct sl_selecting *s, void *context, int64_t k,
                     struct sl_neighbours *n)
{
    const struct edges *edges = context;
    int64_t at = edges->indptr[k];
    for (int64_t e = 0; at < edges->indptr[k + 1]; e++) {
        const int32_t number = sl_selecting_number(s, n->vertex[e]);
        if (number < 0)
            continue;
        edges->indices[at] = number;
        if (edges->values)
            edges->values[at] = n->weight[e];
        if (edges->edges)
            edges->edges[at] = (int32_t)sl_part_edge(&s->source->adjacency, n->first + e);
        at++;
    }
    return SL_OK;
}

/* Count the degrees and the lengths of the rows. */
static int count_rows(struct sl_selecting *s, struct edges *edges)
{
    struct sl_source *out = &s->out->source;
    const struct sl_source *from = s->source;
    const bool weighted = from->selection.row_entries ? from->selection.row_weight != NULL
                                                      : from->adjacency.values.data != NULL;
    edges->indptr = sl_block_array(&out->blocks, s->count + 1, sizeof *edges->indptr);
    edges->entries = sl_block_array(&out->blocks, s->count, sizeof *edges->entries);
    if (weighted)
        edges->weight = sl_block_array(&out->blocks, s->count, sizeof *edges->weight);
    if (!edges->indptr || !edges->entries || (weighted && !edges->weight))
        return SL_ERR_SYSTEM;
    edges->indptr[0] = 0;
    const int rc = sl_selecting_pass(s, 0, s->count, count_row, edges);
    for (int64_t k = 0; !rc && k < s->count; k++)
        edges->indptr[k + 1] += edges->indptr[k];
    out->selection.row_entries = edges->entries;
    out->selection.row_weight = edges->weight;
    return rc;
}

/* Write the rows and sort them by new numbers: the rows of the files have another order. */
static int write_rows(struct sl_selecting *s, struct edges *edges)
{
    struct sl_block **blocks = &s->out->source.blocks;
    const int64_t nnz = edges->indptr[s->count];
    const bool weighted = s->source->adjacency.values.data != NULL;
    edges->indices = sl_block_array(blocks, nnz, sizeof *edges->indices);
    if (weighted)
        edges->values = sl_block_array(blocks, nnz, sizeof *edges->values);
    if (s->source->reads_edges)
        edges->edges = sl_block_array(blocks, nnz, sizeof *edges->edges);
    if (!edges->indices || (weighted && !edges->values) ||
        (s->source->reads_edges && !edges->edges))
        return SL_ERR_SYSTEM;
    const int rc = sl_selecting_pass(s, 0, s->count, write_row, edges);
    const struct sl_csr rows = {s->count,       s->count,      edges->indptr,
                                edges->indices, edges->values, edges->edges};
    return rc ? rc : sl_csr_sort_edges(&rows, edges->indices, edges->values, edges->edges);
}

int sl_selecting_edges(struct sl_selecting *s)
{
    const struct sl_stored_csr *from = &s->source->adjacency;
    struct sl_source *out = &s->out->source;
    struct edges edges = {0};
    int rc = count_rows(s, &edges);
    if (!rc)
        rc = write_rows(s, &edges);
    if (rc)
        return rc;
    const int64_t nnz = edges.indptr[s->count];
    struct sl_stored_csr *a = &out->adjacency;
    rc = sl_selecting_view(s, &from->indptr, SL_NPY_INT64, s->count + 1, 0, edges.indptr,
                           &a->indptr);
    if (!rc)
        rc = sl_selecting_view(s, &from->indices, SL_NPY_INT32, nnz, 0, edges.indices, &a->indices);
    if (!rc && edges.values)
        rc = sl_selecting_view(s, &from->values, SL_NPY_FLOAT32, nnz, 0, edges.values, &a->values);
    if (!rc && edges.edges)
        rc = sl_selecting_view(s, &s->source->edge_features, SL_NPY_INT32, nnz, 0, edges.edges,
                               &a->edges);
    out->edge_features = s->source->edge_features;
    out->relations = s->source->relations;
    out->reads_edges = s->source->reads_edges;
    a->cols = out->vertices = s->count;
    const bool whole_rows = keeps_row(s, s->count - 1);
    out->undirected = s->source->undirected && whole_rows;
    out->symmetric = s->source->symmetric && whole_rows;
    return rc;
}
