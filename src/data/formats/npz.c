/* Read NumPy .npz archives in the forms that graph datasets are published in. Graphs stay directed
 * as stored: an entry (u, v) is the edge u -> v. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "data/arrays.h"
#include "data/csr.h"
#include "data/formats/formats.h"
#include "data/formats/npz_archive.h"

enum { NAME_BYTES = 64 };

struct archive {
    struct sl_npz npz;
    struct sl_dataset *out;
    bool count_duplicates; /* duplicate edges without weights are counted */
};

static bool has(const struct archive *archive, const char *array)
{
    return sl_npz_has(&archive->npz, array);
}

static int load(const struct archive *archive, const char *array, struct sl_npy *npy)
{
    return sl_npz_load(&archive->npz, array, npy);
}

/* Read rows and columns from a member "shape". */
static int load_shape(const struct archive *archive, const char *array, int64_t shape[2])
{
    struct sl_npy npy;
    const int64_t *items;
    int rc = load(archive, array, &npy);
    if (!rc)
        rc = sl_npy_expect(&npy, 1);
    if (!rc)
        rc = sl_npy_take(&npy, SL_NPY_INT64, 0, npy.count, &archive->out->blocks, &items);
    if (rc)
        return rc;
    if (npy.count != 2 || items[0] < 0 || items[1] < 0 || items[0] > INT32_MAX ||
        items[1] > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: is no matrix shape, expected two numbers below 2^31",
                        npy.name);
    shape[0] = items[0];
    shape[1] = items[1];
    return SL_OK;
}

/* Load a matrix from the members PREFIXdata, PREFIXindices, PREFIXindptr, PREFIXshape. With
 * `by_column` they describe columns (CSC), and *out is the transpose, with a row for each column.
 */
static int load_sparse(const struct archive *archive, const char *prefix, bool by_column,
                       bool square, struct sl_csr *out, int64_t *merged)
{
    static const char *const parts[] = {"indptr", "indices", "data"};
    struct sl_block **blocks = &archive->out->blocks;
    struct sl_npy npy[3];
    int64_t shape[2];
    char array[NAME_BYTES];
    for (int k = 0; k < 3; k++) {
        snprintf(array, sizeof array, "%s%s", prefix, parts[k]);
        const int rc = load(archive, array, &npy[k]);
        if (rc)
            return rc;
    }
    snprintf(array, sizeof array, "%sshape", prefix);
    int rc = load_shape(archive, array, shape);
    if (rc)
        return rc;
    const int64_t rows = shape[by_column], cols = shape[!by_column];
    if (square && rows != cols) /* the shape only: no array has an item for each column */
        return sl_error(SL_ERR_DATA,
                        "%s: adjacency is %" PRId64 " x %" PRId64 ", expected a square matrix",
                        archive->npz.path, shape[0], shape[1]);
    if (npy[0].count - 1 != rows)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " items, expected %" PRId64 " + 1",
                        npy[0].name, npy[0].count, rows);
    return sl_arrays_csr(&npy[0], &npy[1], &npy[2], cols, blocks, out, merged);
}

static int load_adjacency(const struct archive *archive, const char *prefix, bool by_column)
{
    struct sl_dataset *out = archive->out;
    struct sl_csr csr = {0};
    int rc = load_sparse(archive, prefix, by_column, true, &csr, &out->merged_edges);
    out->adjacency = csr; /* row v has the sources of edges to v: a column of the matrix */
    if (!rc && !by_column)
        rc = sl_csr_transpose(&csr, &out->blocks, &out->adjacency);
    out->vertices = csr.rows;
    return rc;
}

static int load_sparse_features(const struct archive *archive, const char *prefix)
{
    struct sl_dataset *out = archive->out;
    int64_t merged = 0;
    const int rc = load_sparse(archive, prefix, false, false, &out->features_csr, &merged);
    if (!rc && out->features_csr.rows != out->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: %sindptr: has %" PRId64 " rows of features, expected %" PRId64
                        " (vertices)",
                        archive->npz.path, prefix, out->features_csr.rows, out->vertices);
    out->feature_form = SL_FEATURES_CSR;
    out->features = out->features_csr.cols;
    out->columns.bag_of_words = true;
    return rc;
}

static int load_dense_features(const struct archive *archive, const char *array)
{
    struct sl_npy features;
    const int rc = load(archive, array, &features);
    return rc ? rc : sl_arrays_features(&features, archive->out);
}

static int load_labels(const struct archive *archive, const char *array)
{
    if (!has(archive, array))
        return SL_OK;
    struct sl_npy labels;
    const int rc = load(archive, array, &labels);
    return rc ? rc : sl_arrays_labels(&labels, archive->out);
}

/* Read the first of several masks over the vertices, (splits, n), or the only one, (n). */
static int load_mask(const struct archive *archive, const char *array, struct sl_index_set *split)
{
    if (!has(archive, array))
        return SL_OK;
    struct sl_dataset *out = archive->out;
    struct sl_npy masks;
    const int rc = load(archive, array, &masks);
    if (rc)
        return rc;
    const bool numeric = masks.kind != 'S' && masks.kind != 'U';
    const bool fits = masks.dims == 2 ? masks.shape[0] > 0 && masks.shape[1] == out->vertices
                                      : masks.dims == 1 && masks.count == out->vertices;
    if (!numeric || !fits)
        return sl_error(SL_ERR_DATA, "%s: is no mask, expected (splits, %" PRId64 ")", masks.name,
                        out->vertices);
    int64_t *ids = sl_block_array(&out->blocks, out->vertices, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    split->ids = ids;
    for (int64_t v = 0; v < out->vertices; v++)
        if (sl_npy_get(&masks, v) != 0.0)
            ids[split->count++] = v;
    return SL_OK;
}

static int load_masks(const struct archive *archive)
{
    struct sl_dataset *out = archive->out;
    int rc = load_mask(archive, "train_masks", &out->train);
    if (!rc)
        rc = load_mask(archive, "val_masks", &out->val);
    return rc ? rc : load_mask(archive, "test_masks", &out->test);
}

/* Read gnn-benchmark (Shchur et al. 2018): adj_*, attr_*, labels; or adj_matrix.*, attr_matrix.*,
 * labels. */
static int read_attributed(const struct archive *archive, const char *adjacency,
                           const char *attributes)
{
    char data[NAME_BYTES];
    snprintf(data, sizeof data, "%sdata", attributes);
    int rc = load_adjacency(archive, adjacency, false);
    if (!rc && has(archive, data))
        rc = load_sparse_features(archive, attributes);
    else if (!rc && has(archive, "attr_matrix"))
        rc = load_dense_features(archive, "attr_matrix");
    if (!rc)
        rc = load_labels(archive, "labels");
    return rc ? rc : load_masks(archive);
}

static int read_adj(const struct archive *archive)
{
    return read_attributed(archive, "adj_", "attr_");
}

static int read_adj_matrix(const struct archive *archive)
{
    return read_attributed(archive, "adj_matrix.", "attr_matrix.");
}

/* The members row, col and data: positions and values of entries. */
struct coo {
    int64_t count;
    const int64_t *row, *col; // (count)
    const float *value;       // (count)
};

static int load_coo(const struct archive *archive, struct coo *out)
{
    struct sl_block **blocks = &archive->out->blocks;
    struct sl_npy row, col, data;
    int rc = load(archive, "row", &row);
    if (!rc)
        rc = sl_npy_expect(&row, 1);
    if (!rc)
        rc = load(archive, "col", &col);
    if (!rc)
        rc = sl_arrays_check_rows(&col, 1, row.count);
    if (!rc)
        rc = load(archive, "data", &data);
    if (!rc)
        rc = sl_arrays_check_rows(&data, 1, row.count);
    if (!rc)
        rc = sl_npy_take(&row, SL_NPY_INT64, 0, row.count, blocks, &out->row);
    if (!rc)
        rc = sl_npy_take(&col, SL_NPY_INT64, 0, row.count, blocks, &out->col);
    if (!rc)
        rc = sl_npy_take(&data, SL_NPY_FLOAT32, 0, row.count, blocks, &out->value);
    out->count = rc ? 0 : row.count;
    return rc;
}

/* Read a coordinate matrix; merge entries with equal positions and add their values. */
static int read_coo(const struct archive *archive)
{
    struct sl_dataset *out = archive->out;
    struct sl_triples triples = {.weighted = true};
    struct coo coo;
    int64_t shape[2];
    int rc = load_shape(archive, "shape", shape);
    if (!rc && shape[0] != shape[1])
        rc = sl_error(SL_ERR_DATA,
                      "%s: adjacency is %" PRId64 " x %" PRId64 ", expected a square matrix",
                      archive->npz.path, shape[0], shape[1]);
    if (!rc)
        rc = load_coo(archive, &coo);
    for (int64_t k = 0; !rc && k < coo.count; k++) {
        const int64_t u = coo.row[k], v = coo.col[k];
        rc = u < 0 || u >= shape[0] || v < 0 || v >= shape[0]
                 ? sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is entry (%" PRId64 ", %" PRId64
                            "), expected 0 to %" PRId64,
                            archive->npz.path, k, u, v, shape[0] - 1)
                 : sl_triples_add(&triples, v, u, coo.value[k]);
    }
    if (!rc)
        rc = sl_csr_build(&triples, shape[0], shape[0], &out->blocks, &out->adjacency,
                          &out->merged_edges);
    if (!rc)
        out->vertices = shape[0];
    sl_triples_free(&triples);
    return rc;
}

/* Read a graph of scipy.sparse.save_npz. The member "format" is text: "csr" as bytes or as
 * four-byte characters. */
static int read_scipy(const struct archive *archive)
{
    struct sl_npy format = {.item_bytes = 3, .kind = 'S', .data = (const unsigned char *)"csr"};
    if (has(archive, "format")) {
        const int rc = load(archive, "format", &format);
        if (rc)
            return rc;
    }
    char text[8] = "";
    const size_t step = format.kind == 'U' ? 4 : 1;
    if (format.kind == 'S' || format.kind == 'U')
        for (size_t k = 0; k < sizeof text - 1 && k * step < format.item_bytes; k++)
            text[k] = (char)format.data[k * step];
    const bool csc = strcmp(text, "csc") == 0;
    if (strcmp(text, "coo") == 0)
        return read_coo(archive);
    if (!csc && strcmp(text, "csr") != 0)
        return sl_error(SL_ERR_DATA, "%s: sparse format '%s' is not read, expected csr, csc or coo",
                        archive->npz.path, text);
    return load_adjacency(archive, "", csc);
}

/* Set *directed for heterophilous-graphs (Platonov et al. 2023). The file name tells, unless a
 * later version of the file has a member "directed". */
static int is_directed(const struct archive *archive, bool *directed)
{
    if (has(archive, "directed")) {
        struct sl_npy npy;
        const int rc = load(archive, "directed", &npy);
        if (rc)
            return rc;
        *directed = npy.count > 0 && sl_npy_get(&npy, 0) != 0.0;
        return SL_OK;
    }
    const char *slash = strrchr(archive->npz.path, '/');
    const char *name = slash ? slash + 1 : archive->npz.path;
    *directed = strcasestr(name, "directed") && !strcasestr(name, "undirected");
    return SL_OK;
}

static int add_edges(const struct sl_npy *npy, const int64_t *ends, int64_t vertices,
                     struct sl_triples *triples)
{
    for (int64_t k = 0; k < npy->shape[0]; k++) {
        const int64_t u = ends[2 * k], v = ends[2 * k + 1];
        if (u < 0 || u >= vertices || v < 0 || v >= vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 " is the edge %" PRId64 " -> %" PRId64
                            ", expected 0 to %" PRId64,
                            npy->name, k, u, v, vertices - 1);
        const int rc = sl_triples_add(triples, v, u, 1.0f);
        if (rc)
            return rc;
    }
    return SL_OK;
}

static int load_edges(const struct archive *archive)
{
    struct sl_dataset *out = archive->out;
    struct sl_npy npy;
    const int64_t *ends;
    struct sl_triples triples = {.weighted = archive->count_duplicates};
    int rc = load(archive, "edges", &npy);
    if (!rc)
        rc = sl_npy_expect(&npy, 2);
    if (!rc && npy.shape[1] != 2)
        rc = sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected 2", npy.name,
                      npy.shape[1]);
    if (!rc)
        rc = sl_npy_take(&npy, SL_NPY_INT64, 0, npy.count, &out->blocks, &ends);
    if (!rc)
        rc = add_edges(&npy, ends, out->vertices, &triples);
    if (!rc)
        rc = sl_csr_build(&triples, out->vertices, out->vertices, &out->blocks, &out->adjacency,
                          &out->merged_edges);
    sl_triples_free(&triples);
    bool directed = false;
    if (!rc)
        rc = is_directed(archive, &directed);
    return rc || directed ? rc : sl_csr_symmetrize(&out->adjacency, &out->blocks);
}

/* Read heterophilous-graphs: node_features, node_labels, edges, and ten splits as masks. Take the
 * first split. */
static int read_heterophilous(const struct archive *archive)
{
    struct sl_dataset *out = archive->out;
    struct sl_npy features;
    int rc = load(archive, "node_features", &features);
    if (!rc)
        rc = sl_npy_expect(&features, 2);
    if (rc)
        return rc;
    if (features.shape[0] > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " rows, expected fewer than 2^31",
                        features.name, features.shape[0]);
    if (features.count == 0) /* the header of an empty array can announce any number of rows */
        return sl_error(SL_ERR_DATA, "%s: is %" PRId64 " x %" PRId64 ", expected some features",
                        features.name, features.shape[0], features.shape[1]);
    out->vertices = features.shape[0];
    rc = sl_arrays_features(&features, out);
    if (!rc)
        rc = load_labels(archive, "node_labels");
    if (!rc)
        rc = load_edges(archive);
    return rc ? rc : load_masks(archive);
}

/* Refuse an archive of unknown form; say so if a pickled member is the reason. */
static int refuse(const struct archive *archive)
{
    const int rc = sl_npz_check(&archive->npz);
    return rc ? rc
              : sl_error(SL_ERR_DATA,
                         "%s: has no graph in a known form; expected members adj_data, "
                         "adj_matrix.data, indptr or edges",
                         archive->npz.path);
}

/* Forms of archives, each with a member that no other form has. */
static const struct {
    const char *marker;
    int (*read)(const struct archive *archive);
} forms[] = {
    {"adj_data", read_adj}, {"adj_matrix.data", read_adj_matrix},
    {"indptr", read_scipy}, {"edges", read_heterophilous},
    {"format", read_scipy},
};

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    struct archive archive = {.out = out, .count_duplicates = options->count_duplicates};
    int rc = sl_npz_open(&archive.npz, path, &out->blocks);
    if (rc)
        return rc;
    int (*read)(const struct archive *) = refuse;
    for (size_t k = sizeof forms / sizeof *forms; k-- > 0;)
        if (has(&archive, forms[k].marker))
            read = forms[k].read;
    rc = read(&archive);
    sl_npz_close(&archive.npz);
    return rc;
}

static bool is_zip(const char *head, size_t bytes)
{
    return bytes >= 4 && memcmp(head, "PK\x03\x04", 4) == 0;
}

const struct sl_format sl_format_npz = {
    .name = "NumPy archive",
    .extensions = ".npz",
    .sniff = is_zip,
    .read = read_file,
    .write = sl_npz_write,
};
