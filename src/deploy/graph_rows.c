#include "deploy/graph_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* ---- Check ---- */

/* Bytes of the first version's structure. Members that later versions add are 0 where a caller's
 * structure ends before them. */
static const size_t FIRST = offsetof(struct starling_predictor_graph, edge_types) +
                            sizeof((struct starling_predictor_graph *)0)->edge_types;

static int check_rows(const struct starling_predictor_graph *graph)
{
    if (graph->size < FIRST)
        return sl_error(SL_ERR_USAGE,
                        "the graph's size is %zu (expected sizeof (struct "
                        "starling_predictor_graph))",
                        graph->size);
    if (graph->vertices < 1 || graph->vertices > INT32_MAX || graph->entries < 0)
        return sl_error(SL_ERR_USAGE,
                        "the graph has %" PRId64 " vertices and %" PRId64
                        " entries (expected 1 to %d vertices)",
                        graph->vertices, graph->entries, INT32_MAX);
    if (!graph->indptr || (!graph->indices && graph->entries > 0))
        return sl_error(SL_ERR_USAGE, "the graph has no %s (expected an adjacency in CSR)",
                        graph->indptr ? "indices" : "indptr");
    for (int64_t v = 0; v < graph->vertices; v++)
        if (graph->indptr[v + 1] < graph->indptr[v])
            return sl_error(SL_ERR_DATA, "indptr falls at row %" PRId64 " (expected ascending)", v);
    if (graph->indptr[0] != 0 || graph->indptr[graph->vertices] != graph->entries)
        return sl_error(SL_ERR_DATA,
                        "indptr goes from %" PRId64 " to %" PRId64 " (expected 0 to %" PRId64
                        ", the entries)",
                        graph->indptr[0], graph->indptr[graph->vertices], graph->entries);
    for (int64_t e = 0; e < graph->entries; e++)
        if (graph->indices[e] < 0 || graph->indices[e] >= graph->vertices)
            return sl_error(SL_ERR_DATA,
                            "entry %" PRId64 " has column %" PRId32 " (expected 0 to %" PRId64 ")",
                            e, graph->indices[e], graph->vertices - 1);
    return 0;
}

static int check_finite(const char *name, const float *numbers, int64_t rows, int64_t columns)
{
    for (int64_t k = 0; numbers && k < rows * columns; k++)
        if (!isfinite(numbers[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 ", column %" PRId64 " is %g (expected finite "
                            "numbers)",
                            name, k / columns, k % columns, (double)numbers[k]);
    return 0;
}

static bool weighs(const struct starling_predictor_graph *graph)
{
    int64_t e = 0;
    while (graph->weights && e < graph->entries && graph->weights[e] == 1.0f)
        e++;
    return graph->weights && e < graph->entries;
}

/* Check that the graph has what steps read of entries, and nothing else. */
static int check_edges(const struct sl_program *program,
                       const struct starling_predictor_graph *graph)
{
    const int64_t columns = graph->edge_features ? graph->edge_columns : 0;
    const bool reads = program->edge_features > 0 || program->relations > 0;
    if (columns != program->edge_features && (graph->entries > 0 || columns > 0))
        return sl_error(SL_ERR_USAGE,
                        "the graph has %" PRId64 " features of edges (expected %" PRId64
                        ", as the model)",
                        columns, program->edge_features);
    if (!graph->edge_types != !(program->relations > 0) &&
        (graph->entries > 0 || graph->edge_types))
        return sl_error(SL_ERR_USAGE,
                        program->relations > 0
                            ? "the graph has no types of edges (expected a relation of each)"
                            : "the model reads no types of edges (expected none)");
    if (reads && weighs(graph))
        return sl_error(SL_ERR_USAGE, "edges have weights beside their features or types (expected "
                                      "one of both, or weights that are all 1)");
    for (int64_t e = 0; graph->edge_types && e < graph->entries; e++)
        if (graph->edge_types[e] < 0 || graph->edge_types[e] >= program->relations)
            return sl_error(SL_ERR_DATA,
                            "entry %" PRId64 " has type %" PRId32 " (expected 0 to %" PRId64 ")", e,
                            graph->edge_types[e], program->relations - 1);
    return check_finite("edge_features", graph->edge_features, graph->entries, columns);
}

/* Refuse weights below 0 where attention divides by sums of weights. */
static int check_weights(const struct sl_program *program,
                         const struct starling_predictor_graph *graph)
{
    bool attends = false;
    for (int s = 0; s < program->count; s++)
        attends = attends || program->step[s].kind == SL_STEP_GAT ||
                  program->step[s].kind == SL_STEP_GATV2 ||
                  program->step[s].kind == SL_STEP_DOT_ATTENTION;
    for (int64_t e = 0; attends && graph->weights && e < graph->entries; e++)
        if (graph->weights[e] < 0.0f)
            return sl_error(SL_ERR_DATA,
                            "entry %" PRId64
                            " has weight %g, which attention cannot take (expected none below 0)",
                            e, (double)graph->weights[e]);
    return check_finite("weights", graph->weights, graph->entries, 1);
}

/* ---- Duplicates ---- */

/* Whether some row has a column twice. `seen` (vertices) is scratch. */
static bool has_duplicates(const struct starling_predictor_graph *graph, int64_t *seen)
{
    for (int64_t v = 0; v < graph->vertices; v++)
        seen[v] = -1;
    for (int64_t v = 0; v < graph->vertices; v++)
        for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
            if (seen[graph->indices[e]] == v)
                return true;
            seen[graph->indices[e]] = v;
        }
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Refuse an entry whose column and relation an earlier entry of its row has. */
static int check_relations(const struct sl_graph_rows *a)
{
    uint64_t *key = malloc((size_t)(a->longest + 1) * sizeof *key);
    int code = key ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a row of the graph");
    for (int64_t v = 0; !code && v < a->vertices; v++) {
        const int64_t first = a->start[v], count = a->start[v + 1] - first;
        for (int64_t e = 0; e < count; e++)
            key[e] = (uint64_t)a->column[first + e] << 32 | (uint32_t)a->type[first + e];
        qsort(key, (size_t)count, sizeof *key, compare_keys);
        for (int64_t e = 1; !code && e < count; e++)
            if (key[e] == key[e - 1])
                code = sl_error(SL_ERR_DATA,
                                "row %" PRId64 " has column %" PRId64
                                " twice with one type (expected each once)",
                                v, (int64_t)(key[e] >> 32));
    }
    free(key);
    return code;
}

/* Merge entries of one row and column. place[c] is the merged entry that has column c last. */
static void merge(struct sl_graph_rows *a, const struct starling_predictor_graph *graph,
                  int64_t *place)
{
    int64_t count = 0;
    for (int64_t v = 0; v < graph->vertices; v++)
        place[v] = -1;
    for (int64_t v = 0; v < graph->vertices; v++) {
        a->own_start[v] = count;
        for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
            const int32_t c = graph->indices[e];
            const bool again = place[c] >= a->own_start[v];
            const int64_t at = again ? place[c] : count++;
            place[c] = at;
            a->own_column[at] = c;
            if (a->own_weight)
                a->own_weight[at] = graph->weights[e] + (again ? a->own_weight[at] : 0.0f);
        }
    }
    a->own_start[graph->vertices] = count;
}

static int merge_duplicates(struct sl_graph_rows *a, const struct starling_predictor_graph *graph,
                            int64_t *place)
{
    const size_t entries = (size_t)graph->entries + 1;
    if (graph->edge_features)
        return sl_error(SL_ERR_DATA, "a row of the graph has a column twice, and edges have "
                                     "features (expected each column once)");
    a->own_start = malloc((size_t)(graph->vertices + 1) * sizeof *a->own_start);
    a->own_column = malloc(entries * sizeof *a->own_column);
    a->own_weight = graph->weights ? malloc(entries * sizeof *a->own_weight) : NULL;
    if (!a->own_start || !a->own_column || (graph->weights && !a->own_weight))
        return sl_error(SL_ERR_SYSTEM, "no memory for the entries of the graph");
    merge(a, graph, place);
    a->start = a->own_start;
    a->column = a->own_column;
    a->weight = a->own_weight;
    return 0;
}

/* ---- Take ---- */

static void borrow(struct sl_graph_rows *a, const struct sl_program *program,
                   const struct starling_predictor_graph *graph)
{
    const bool reads = program->edge_features > 0 || program->relations > 0;
    *a = (struct sl_graph_rows){.vertices = graph->vertices,
                                .start = graph->indptr,
                                .column = graph->indices,
                                .weight = reads ? NULL : graph->weights,
                                .edge_columns = program->edge_features,
                                .edge = graph->edge_features,
                                .type = graph->edge_types};
    for (int64_t v = 0; v < a->vertices; v++)
        if (a->start[v + 1] - a->start[v] > a->longest)
            a->longest = a->start[v + 1] - a->start[v];
}

int sl_graph_rows_take(struct sl_graph_rows *rows, const struct sl_program *program,
                       const struct starling_predictor_graph *graph)
{
    *rows = (struct sl_graph_rows){0};
    int code = check_rows(graph);
    if (!code)
        code = check_edges(program, graph);
    if (!code)
        code = check_weights(program, graph);
    if (code)
        return code;
    borrow(rows, program, graph);
    if (graph->edge_types)
        return check_relations(rows);
    int64_t *scratch = malloc((size_t)graph->vertices * sizeof *scratch);
    if (!scratch)
        return sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " vertices", graph->vertices);
    if (has_duplicates(graph, scratch))
        code = merge_duplicates(rows, graph, scratch);
    free(scratch);
    return code;
}

void sl_graph_rows_free(struct sl_graph_rows *rows)
{
    free(rows->own_start);
    free(rows->own_column);
    free(rows->own_weight);
    *rows = (struct sl_graph_rows){0};
}

void sl_graph_rows_loop(const struct sl_graph_rows *a, int64_t i, float *features)
{
    const int64_t width = a->edge_columns;
    for (int64_t f = 0; f < width; f++) {
        double sum = 0.0;
        int64_t count = 0;
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            if (a->column[e] == i)
                continue;
            sum += (double)a->edge[e * width + f];
            count++;
        }
        features[f] = count ? (float)(sum / (double)count) : 0.0f;
    }
}
