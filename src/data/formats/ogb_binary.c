/* Read folders of the Open Graph Benchmark with binary arrays, such as ogbn-papers100M.
 * raw/data.npz has edge_index (2, edges), node_feat (vertices, features) and the sizes;
 * raw/node-label.npz has node_label (vertices, 1). Splits are text, as in other folders.
 *
 * Edges are read twice and never held: sources and targets are two streams of one array. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/edge_features.h"
#include "data/formats/formats.h"
#include "data/formats/npz_archive.h"
#include "data/formats/ogb.h"

struct folder {
    const char *path;
    const struct sl_read_options *options;
    struct sl_dataset *out;
    struct sl_npz data; /* raw/data.npz */
    int64_t edges;
    int64_t edge_features; /* features of an edge; 0: none */
};

/* ---- Sizes ---- */

/* Read an array of one number: a folder has one graph. */
static int read_count(const struct folder *folder, const char *array, int64_t least, int64_t most,
                      int64_t *count)
{
    struct sl_npy npy;
    const int rc = sl_npz_load(&folder->data, array, &npy);
    if (rc)
        return rc;
    *count = npy.count == 1 && !sl_npy_is_text(&npy) ? sl_npy_integer(&npy, 0) : -1;
    if (*count >= least && *count <= most)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: is no size of one graph, expected a number from %" PRId64 " to %" PRId64,
                    npy.name, least, most);
}

static int read_sizes(struct folder *folder)
{
    const int rc = read_count(folder, "num_nodes_list", 1, INT32_MAX, &folder->out->vertices);
    return rc ? rc : read_count(folder, "num_edges_list", 0, INT64_MAX / 64, &folder->edges);
}

/* Find the bytes of the features from their header: as stored, plus float32 copies where the type
 * differs. */
static int peek_features(const struct folder *folder, int64_t *bytes)
{
    struct sl_npz_stream stream;
    *bytes = 0;
    if (!sl_npz_has(&folder->data, "node_feat"))
        return SL_OK;
    int rc = sl_npz_stream_open(&folder->data, "node_feat", &stream);
    const struct sl_npy *npy = &stream.npy;
    if (!rc)
        rc = sl_npy_expect(npy, 2);
    if (!rc && npy->shape[0] != folder->out->vertices)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected %" PRId64, npy->name,
                      npy->shape[0], folder->out->vertices);
    if (!rc) {
        const bool as_it_is = npy->kind == 'f' && npy->item_bytes == sizeof(float);
        *bytes = npy->count * (int64_t)(npy->item_bytes + (as_it_is ? 0 : sizeof(float)));
    }
    sl_npz_stream_close(&stream);
    return rc;
}

static bool goes_both_ways(const struct folder *folder)
{
    return sl_ogb_goes_both_ways(folder->options, folder->out->name, folder->edge_features > 0);
}

static int say_memory(const struct folder *folder)
{
    const struct sl_dataset *out = folder->out;
    int64_t features;
    const int rc = peek_features(folder, &features);
    if (!rc)
        sl_edge_rows_say(folder->path, folder->options, folder->edges, out->vertices,
                         8 * out->vertices + (goes_both_ways(folder) ? 8 : 4) * folder->edges +
                             features +
                             sl_edge_features_bytes(folder->edges, folder->edge_features,
                                                    goes_both_ways(folder)));
    return rc;
}

/* ---- Edges ---- */

/* The two rows of the array of edges, as two streams. */
struct edges {
    struct sl_npz_stream source, target;
};

static void close_edges(struct edges *edges)
{
    sl_npz_stream_close(&edges->source);
    sl_npz_stream_close(&edges->target);
}

/* Open both streams. Call close_edges in either case. */
static int open_edges(const struct folder *folder, struct edges *edges)
{
    *edges = (struct edges){0};
    int rc = sl_npz_stream_open(&folder->data, "edge_index", &edges->source);
    const struct sl_npy *npy = &edges->source.npy;
    if (!rc)
        rc = sl_npy_expect(npy, 2);
    if (!rc && (npy->shape[0] != 2 || npy->shape[1] != folder->edges))
        rc = sl_error(SL_ERR_DATA,
                      "%s: is %" PRId64 " x %" PRId64 ", expected 2 x %" PRId64
                      " as num_edges_list says",
                      npy->name, npy->shape[0], npy->shape[1], folder->edges);
    if (!rc)
        rc = sl_npz_stream_open(&folder->data, "edge_index", &edges->target);
    return rc ? rc : sl_npz_stream_read(&edges->target, folder->edges, NULL);
}

static int check_edge(const struct sl_npz_stream *stream, int64_t at, int64_t u, int64_t v,
                      int64_t vertices)
{
    if (u >= 0 && u < vertices && v >= 0 && v < vertices)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: column %" PRId64 " is the edge %" PRId64 " -> %" PRId64
                    ", expected vertices 0 to %" PRId64,
                    stream->npy.name, at, u, v, vertices - 1);
}

/* Count some edges, or put them. `at`: number of the first edge. */
static int take_edges(const struct edges *edges, struct sl_edge_rows *rows, bool put, int64_t at,
                      int64_t count, const int64_t *u, const int64_t *v)
{
    for (int64_t k = 0; k < count; k++) {
        const int rc = check_edge(&edges->source, at + k, u[k], v[k], rows->vertices);
        if (rc)
            return rc;
        if (!put)
            sl_edge_rows_count(rows, u[k], v[k]);
        else if (!sl_edge_rows_put(rows, u[k], v[k], 1.0f))
            return sl_error(SL_ERR_DATA, "%s: changed while it was read", edges->source.npy.name);
    }
    return SL_OK;
}

static int pass_edges(const struct folder *folder, struct sl_edge_rows *rows, bool put)
{
    enum { PIECE = 4096 };
    int64_t u[PIECE], v[PIECE], upward = 0;
    struct edges edges;
    int rc = open_edges(folder, &edges);
    for (int64_t at = 0; at < folder->edges && !rc; at += PIECE) {
        const int64_t count = folder->edges - at < PIECE ? folder->edges - at : PIECE;
        rc = sl_npz_stream_read(&edges.source, count, u);
        if (!rc)
            rc = sl_npz_stream_read(&edges.target, count, v);
        if (!rc)
            rc = take_edges(&edges, rows, put, at, count, u, v);
        for (int64_t k = 0; k < count && !rc; k++)
            upward += u[k] < v[k];
    }
    if (!rc && !put)
        sl_ogb_note_one_way(edges.source.npy.name, rows, folder->edges, upward);
    close_edges(&edges);
    return rc;
}

/* Set *features to the features of the edges; NULL: there are none. */
static int read_edge_features(struct folder *folder, const float **features)
{
    struct sl_npy npy;
    *features = NULL;
    if (!sl_npz_has(&folder->data, "edge_feat"))
        return SL_OK;
    int rc = sl_npz_load(&folder->data, "edge_feat", &npy);
    if (!rc)
        rc = sl_edge_features_check(&npy, folder->edges);
    folder->edge_features = rc ? 0 : npy.shape[1];
    return rc ? rc
              : sl_npy_take(&npy, SL_NPY_FLOAT32, 0, npy.count, &folder->out->blocks, features);
}

static int read_edges(const struct folder *folder, const float *features)
{
    struct sl_dataset *out = folder->out;
    struct sl_edge_rows rows = {.vertices = out->vertices,
                                .both = goes_both_ways(folder),
                                .weighted = folder->options->count_duplicates,
                                .numbered = features != NULL};
    int rc = sl_edge_rows_open(&rows, &out->blocks);
    if (!rc)
        rc = pass_edges(folder, &rows, false);
    if (!rc)
        rc = sl_edge_rows_allocate(&rows, &out->blocks);
    if (!rc)
        rc = pass_edges(folder, &rows, true);
    return rc ? rc : sl_edge_rows_close(&rows, folder->edge_features, features, out);
}

/* ---- Vertices ---- */

static int read_features(const struct folder *folder)
{
    struct sl_npy features;
    if (!sl_npz_has(&folder->data, "node_feat"))
        return SL_OK;
    const int rc = sl_npz_load(&folder->data, "node_feat", &features);
    return rc ? rc : sl_arrays_features(&features, folder->out);
}

static int read_labels(const struct folder *folder)
{
    struct sl_dataset *out = folder->out;
    const char *path = sl_block_print(&out->blocks, "%s/raw/node-label.npz", folder->path);
    struct sl_npz archive;
    struct sl_npy labels;
    if (!path)
        return SL_ERR_SYSTEM;
    if (access(path, F_OK) != 0)
        return SL_OK;
    int rc = sl_npz_open(&archive, path, &out->blocks);
    if (!rc)
        rc = sl_npz_load(&archive, "node_label", &labels);
    sl_npz_close(&archive);
    return rc ? rc : sl_arrays_labels(&labels, out);
}

/* ---- The folder ---- */

static int read_arrays(struct folder *folder)
{
    const float *edge_features = NULL;
    int rc = read_sizes(folder);
    if (!rc)
        rc = read_edge_features(folder, &edge_features);
    if (!rc)
        rc = say_memory(folder);
    if (!rc)
        rc = read_labels(folder);
    if (!rc)
        rc = read_features(folder);
    if (!rc)
        rc = sl_ogb_check_size(folder->data.path, folder->out, folder->edges);
    if (!rc)
        rc = read_edges(folder, edge_features);
    return rc ? rc : sl_ogb_read_splits(folder->path, folder->out);
}

static int read_folder(const char *path, const struct sl_read_options *options,
                       struct sl_dataset *out)
{
    struct folder folder = {.path = path, .options = options, .out = out};
    const char *data = sl_block_print(&out->blocks, "%s/raw/data.npz", path);
    int rc = data ? sl_npz_open(&folder.data, data, &out->blocks) : (int)SL_ERR_SYSTEM;
    if (!rc)
        rc = read_arrays(&folder);
    sl_npz_close(&folder.data);
    return rc;
}

static bool is_binary(const char *path)
{
    struct sl_block *scratch = NULL;
    const char *data = sl_block_print(&scratch, "%s/raw/data.npz", path);
    const bool found = data && access(data, F_OK) == 0;
    sl_block_free_all(&scratch);
    return found;
}

const struct sl_format sl_format_ogb_binary = {
    .name = "OGB folder of arrays",
    .extensions = "",
    .is_folder = is_binary,
    .read = read_folder,
};
