/* Graphs: arrays borrowed from the program, or a dataset of files. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/error.h"
#include "data/edge_features.h"
#include "data/links.h"
#include "data/relations.h"

_Static_assert((int)STARLING_TRAIN == SL_SPLIT_TRAIN && (int)STARLING_VAL == SL_SPLIT_VAL &&
                   (int)STARLING_TEST == SL_SPLIT_TEST,
               "splits have other numbers");

static struct sl_runtime alone = {.ranks = 1};

static int create_graph(starling_graph **graph)
{
    *graph = calloc(1, sizeof **graph);
    return *graph ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a graph");
}

int starling_graph_open(const char *path, starling_graph **graph)
{
    struct sl_runtime all = {.ranks = 1};
    *graph = NULL;
    if (!path)
        return sl_error(SL_ERR_USAGE, "a graph: the path is NULL (expected a dataset)");
    int code = sl_api_enter();
    if (code)
        return code;
    code = sl_runtime_hold_mpi(&all);
    if (!code)
        code = create_graph(graph);
    if (!code)
        code = sl_source_open(&all, path, &(*graph)->source);
    if (code) {
        starling_graph_free(*graph);
        *graph = NULL;
    } else {
        (*graph)->settled = true;
    }
    sl_api_leave();
    return code;
}

/* ---- Arrays ---- */

/* View a caller's array. `columns` 0: the array has one dimension. */
static int view(struct sl_npy *out, const char *name, enum sl_npy_type type, int64_t rows,
                int64_t columns, const void *data)
{
    const int64_t items = columns > 0 ? columns : 1;
    if (rows < 0 || columns < 0 || rows > INT64_MAX / items / (int64_t)sizeof(int64_t))
        return sl_error(SL_ERR_USAGE, "%s: a size is negative or too large", name);
    if (!data && rows > 0)
        return sl_error(SL_ERR_USAGE, "%s: the array is NULL", name);
    *out = sl_npy_view(name, type, columns > 0 ? 2 : 1, rows, columns, data);
    return 0;
}

static int view_csr(struct sl_stored_csr *csr, const char *const names[3], int64_t rows,
                    int64_t entries, const int64_t *indptr, const int32_t *indices,
                    const float *values)
{
    struct sl_stored_csr new = {.cols = csr->cols};
    int code = view(&new.indptr, names[0], SL_NPY_INT64, rows + 1, 0, indptr);
    if (!code)
        code = view(&new.indices, names[1], SL_NPY_INT32, entries, 0, indices);
    if (!code && values)
        code = view(&new.values, names[2], SL_NPY_FLOAT32, entries, 0, values);
    if (!code)
        *csr = new;
    return code;
}

int starling_graph_create(int64_t vertices, int64_t entries, const int64_t *indptr,
                          const int32_t *indices, starling_graph **graph)
{
    static const char *const names[] = {"graph: indptr", "graph: indices", "graph: weights"};
    *graph = NULL;
    if (vertices < 1 || vertices > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "graph: %lld vertices (expected 1 to 2^31 - 1)",
                        (long long)vertices);
    int code = create_graph(graph);
    if (code)
        return code;
    struct sl_source *source = &(*graph)->source;
    source->name = strdup("graph");
    source->path = strdup("graph");
    source->vertices = source->adjacency.cols = vertices;
    if (!source->name || !source->path)
        code = sl_error(SL_ERR_SYSTEM, "no memory for a graph");
    if (!code)
        code = view_csr(&source->adjacency, names, vertices, entries, indptr, indices, NULL);
    if (code) {
        starling_graph_free(*graph);
        *graph = NULL;
    }
    return code;
}

int starling_graph_set_weights(starling_graph *graph, const float *weights)
{
    struct sl_stored_csr *a = &graph->source.adjacency;
    if (a->values.data && graph->source.merged_edges > 0)
        return sl_error(SL_ERR_USAGE,
                        "graph: weights after starling_graph_count_duplicates, which made weights "
                        "of its own (expected one of both)");
    return view(&a->values, "graph: weights", SL_NPY_FLOAT32, a->indices.count, 0, weights);
}

/* Refuse rows of entries that starling_graph_count_duplicates has merged. */
static int refuse_merged(const struct sl_source *source, const char *name)
{
    return !source->adjacency.values.data || source->merged_edges == 0
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "%s: after starling_graph_count_duplicates, which merged entries "
                          "(expected one of both)",
                          name);
}

int starling_graph_set_edge_features(starling_graph *graph, int64_t columns, const float *values)
{
    static const char name[] = "graph: edge_features";
    struct sl_source *source = &graph->source;
    struct sl_npy array;
    int code = columns > 0 && columns <= SL_EDGE_FEATURES
                   ? 0
                   : sl_error(SL_ERR_USAGE, "%s: %lld columns (expected 1 to %d)", name,
                              (long long)columns, SL_EDGE_FEATURES);
    if (!code)
        code = refuse_merged(source, name);
    if (!code)
        code = view(&array, name, SL_NPY_FLOAT32, source->adjacency.indices.count, columns, values);
    if (!code)
        code = sl_edge_features_check(&array, source->adjacency.indices.count);
    if (!code && source->relations.count > 0)
        code =
            sl_error(SL_ERR_USAGE, "%s: expected them before starling_graph_set_edge_types", name);
    if (!code)
        source->edge_features = array;
    return code;
}

int starling_graph_set_edge_types(starling_graph *graph, const int32_t *types)
{
    static const char name[] = "graph: edge_types";
    struct sl_source *source = &graph->source;
    struct sl_npy array;
    int code = source->relations.count == 0
                   ? 0
                   : sl_error(SL_ERR_USAGE, "%s: are set already (expected them once)", name);
    if (!code)
        code = refuse_merged(source, name);
    if (!code)
        code = view(&array, name, SL_NPY_INT32, source->adjacency.indices.count, 0, types);
    return code ? code : sl_relations_attach(source, &array, 0);
}

int starling_graph_count_duplicates(starling_graph *graph)
{
    return sl_source_count_duplicates(&graph->source);
}

static int check_columns(const char *name, int64_t columns)
{
    return columns > 0 && columns <= INT32_MAX
               ? 0
               : sl_error(SL_ERR_USAGE, "%s: %lld columns (expected 1 to 2^31 - 1)", name,
                          (long long)columns);
}

int starling_graph_set_features(starling_graph *graph, int64_t columns, const float *values)
{
    static const char name[] = "graph: features";
    struct sl_source *source = &graph->source;
    int code = check_columns(name, columns);
    if (!code)
        code =
            view(&source->features_dense, name, SL_NPY_FLOAT32, source->vertices, columns, values);
    if (code)
        return code;
    source->feature_form = SL_FEATURES_DENSE;
    source->features_csr = (struct sl_stored_csr){0};
    source->features = columns;
    source->columns.bag_of_words = source->columns.table = false;
    graph->settled = false;
    return 0;
}

int starling_graph_set_sparse_features(starling_graph *graph, int64_t columns, int64_t entries,
                                       const int64_t *indptr, const int32_t *indices,
                                       const float *values)
{
    static const char *const names[] = {"graph: features_indptr", "graph: features_indices",
                                        "graph: features_data"};
    struct sl_source *source = &graph->source;
    int code = check_columns("graph: features", columns);
    if (!code)
        code = view_csr(&source->features_csr, names, source->vertices, entries, indptr, indices,
                        values);
    if (code)
        return code;
    source->feature_form = SL_FEATURES_CSR;
    source->features_dense = (struct sl_npy){.data = NULL};
    source->features = source->features_csr.cols = columns;
    source->columns.bag_of_words = true;
    graph->settled = false;
    return 0;
}

static int set_labels(starling_graph *graph, enum sl_label_kind kind, int64_t classes,
                      int64_t columns, const void *labels)
{
    struct sl_source *source = &graph->source;
    const enum sl_npy_type type = kind == SL_LABELS_CLASS ? SL_NPY_INT32 : SL_NPY_FLOAT32;
    const int code =
        view(&source->targets.labels, "graph: labels", type, source->vertices, columns, labels);
    if (code)
        return code;
    source->targets.label_kind = kind;
    source->classes = classes;
    graph->settled = false;
    return 0;
}

int starling_graph_set_classes(starling_graph *graph, int64_t classes, const int32_t *labels)
{
    if (classes < 0 || classes > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "graph: %lld classes (expected 0 to 2^31 - 1)",
                        (long long)classes);
    return set_labels(graph, SL_LABELS_CLASS, classes, 0, labels);
}

int starling_graph_set_labels(starling_graph *graph, int64_t columns, const float *labels)
{
    const int code = check_columns("graph: labels", columns);
    return code ? code : set_labels(graph, SL_LABELS_SEVERAL, columns, columns, labels);
}

int starling_graph_set_numbers(starling_graph *graph, int64_t columns, const float *numbers)
{
    const int code = check_columns("graph: labels", columns);
    return code ? code : set_labels(graph, SL_LABELS_NUMBERS, columns, columns, numbers);
}

static const char *const split_names[] = {[STARLING_TRAIN] = "graph: training vertices",
                                          [STARLING_VAL] = "graph: validation vertices",
                                          [STARLING_TEST] = "graph: test vertices"};

static int check_split(enum starling_split split)
{
    return split == STARLING_TRAIN || split == STARLING_VAL || split == STARLING_TEST
               ? 0
               : sl_error(SL_ERR_USAGE, "graph: there is no split %d", (int)split);
}

int starling_graph_set_split(starling_graph *graph, enum starling_split split, int64_t count,
                             const int64_t *vertices)
{
    int code = check_split(split);
    if (!code)
        code = view(&graph->source.splits.split[split], split_names[split], SL_NPY_INT64, count, 0,
                    vertices);
    if (!code)
        graph->source.splits.mask[split] = false;
    return code;
}

int starling_graph_set_mask(starling_graph *graph, enum starling_split split, const uint8_t *mask)
{
    int code = check_split(split);
    if (code)
        return code;
    struct sl_npy *array = &graph->source.splits.split[split];
    code = view(array, split_names[split], SL_NPY_INT32, graph->source.vertices, 0, mask);
    if (code)
        return code;
    array->kind = 'b';
    array->item_bytes = 1;
    graph->source.splits.mask[split] = true;
    return 0;
}

int starling_graph_set_links(starling_graph *graph, enum starling_split split, int64_t links,
                             const int64_t *pairs, int64_t negatives, const int64_t *others)
{
    static const char *const names[][2] = {
        [STARLING_VAL] = {"graph: validation links", "graph: validation negatives"},
        [STARLING_TEST] = {"graph: test links", "graph: test negatives"}};
    struct sl_source_links set = graph->source.links;
    if (split != STARLING_VAL && split != STARLING_TEST)
        return sl_error(SL_ERR_USAGE,
                        "graph: links of split %d (expected validation or test; edges are links "
                        "that train)",
                        (int)split);
    int code = view(&set.pairs[split], names[split][0], SL_NPY_INT64, links, 2, pairs);
    if (!code)
        code = view(&set.negatives[split], names[split][1], SL_NPY_INT64, negatives, 2, others);
    if (!code)
        code = sl_links_check(&set, "graph", graph->source.vertices);
    if (!code)
        graph->source.links = set;
    return code;
}

/* ---- Sizes ---- */

int sl_api_settle(struct starling_graph *graph)
{
    const int code = graph->settled ? 0 : sl_source_settle(&alone, &graph->source);
    graph->settled = code == 0;
    return code;
}

int starling_graph_sizes(starling_graph *graph, struct starling_sizes *sizes)
{
    const int code = sl_api_settle(graph);
    if (code)
        return code;
    const struct sl_source *source = &graph->source;
    *sizes = (struct starling_sizes){.vertices = source->vertices,
                                     .entries = source->adjacency.indices.count,
                                     .features = source->features,
                                     .classes = source->classes};
    return 0;
}

/* ---- Write ---- */

static int save(starling_graph *graph, const char *path)
{
    struct sl_dataset data;
    int code = sl_api_settle(graph);
    if (code)
        return code;
    code = sl_dataset_of(&graph->source, &data);
    if (!code)
        code = sl_dataset_write_as(&data, path);
    sl_dataset_close(&data);
    return code;
}

int starling_graph_save(starling_graph *graph, const char *path)
{
    if (!graph || !path)
        return sl_error(SL_ERR_USAGE,
                        "a graph: the graph or the path is NULL (expected a dataset to write)");
    int code = sl_api_enter();
    if (code)
        return code;
    if (starling_rank() == 0)
        code = save(graph, path);
    sl_api_leave();
    return code;
}

void starling_graph_free(starling_graph *graph)
{
    if (!graph)
        return;
    sl_source_close(&graph->source);
    free(graph);
}
