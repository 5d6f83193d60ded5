/* Read graphs from MATLAB files: one matrix is the adjacency, others are known by their names.
 * Facebook100 (Traud, Mucha, Porter 2012) has one matrix of vertex attributes, local_info. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats/formats.h"
#include "data/formats/matlab.h"

/* Roles of variables. */
enum role { ADJACENCY, FEATURES, LABELS, LOCAL_INFO, ROLES };

struct mat_file {
    struct sl_matlab mat;
    struct sl_dataset *out;
    struct sl_matlab_variable *variable[ROLES]; /* variable of each role; NULL: none */
};

static int refuse(const struct mat_file *file, const struct sl_matlab_variable *v,
                  const char *problem)
{
    return sl_error(SL_ERR_DATA, "%s: variable '%s' %s", file->mat.path, sl_matlab_name(v),
                    problem);
}

/* ---- Which variable is what ---- */

static bool is_one_of(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(name, *words) == 0)
            return true;
    return false;
}

static enum role role_of(const char *name)
{
    static const char *const adjacency[] = {"A",     "adj", "adjacency", "adj_matrix", "network",
                                            "graph", "net", "W",         NULL};
    static const char *const features[] = {"attributes", "attributes_matrix", "attrb", "attr",
                                           "features",   "feature",           "feat",  "X",
                                           NULL};
    static const char *const labels[] = {"group",   "groups", "label", "labels", "class",
                                         "classes", "gnd",    "Y",     NULL};
    return is_one_of(name, adjacency)            ? ADJACENCY
           : is_one_of(name, features)           ? FEATURES
           : is_one_of(name, labels)             ? LABELS
           : strcasecmp(name, "local_info") == 0 ? LOCAL_INFO
                                                 : ROLES;
}

static bool is_square_sparse(const struct sl_matlab_variable *v)
{
    return v->class == SL_MATLAB_SPARSE && v->dimensions == 2 && v->rows == v->cols;
}

/* Give a variable its role, which no other may have. */
static int take_role(struct mat_file *file, enum role role, struct sl_matlab_variable *v)
{
    const struct sl_matlab_variable *other = file->variable[role];
    if (other)
        return sl_error(SL_ERR_DATA, "%s: variables '%s' and '%s' are both %s, expected one",
                        file->mat.path, sl_matlab_name(other), sl_matlab_name(v),
                        role == ADJACENCY ? "adjacencies"
                        : role == LABELS  ? "labels"
                                          : "features");
    file->variable[role] = v;
    return SL_OK;
}

/* Find the variable of each role, by name. The only square sparse variable is the adjacency where
 * no name tells. */
static int find_variables(struct mat_file *file)
{
    struct sl_matlab_variable *square = NULL;
    int squares = 0, rc = SL_OK;
    for (int k = 0; !rc && k < file->mat.count; k++) {
        struct sl_matlab_variable *v = &file->mat.variable[k];
        const enum role role = role_of(sl_matlab_name(v));
        if (role < ROLES)
            rc = take_role(file, role, v);
        else if (is_square_sparse(v) && squares++ == 0)
            square = v;
    }
    if (!rc && !file->variable[ADJACENCY] && squares == 1)
        file->variable[ADJACENCY] = square;
    if (!rc && !file->variable[ADJACENCY])
        rc = sl_error(SL_ERR_DATA,
                      "%s: has no adjacency, expected a variable A, adj, network or graph, or "
                      "one square sparse matrix",
                      file->mat.path);
    return rc;
}

/* Read a variable's data. */
static int load(const struct mat_file *file, struct sl_matlab_variable *v)
{
    if (v->dimensions != 2)
        return refuse(file, v, "is no matrix, expected two dimensions");
    if (v->class < SL_MATLAB_SPARSE || v->class > SL_MATLAB_UINT64 || v->complex)
        return refuse(file, v, "has no real numbers");
    if (v->rows < 1 || v->cols < 1 || v->rows > INT32_MAX || v->cols > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: variable '%s' is %" PRId64 " x %" PRId64 ", expected 1 to 2^31 - 1",
                        file->mat.path, sl_matlab_name(v), v->rows, v->cols);
    return sl_matlab_load(&file->mat, v);
}

/* Check that arrays of `items` may be made of a variable's data: a file of little size may take
 * no gigabytes. */
static int check_memory(const struct mat_file *file, const struct sl_matlab_variable *v,
                        int64_t items, size_t item_bytes)
{
    enum { ROOM = 64 << 20 };
    const int64_t most = SL_MATLAB_INFLATED * file->mat.bytes + ROOM - v->taken;
    return items <= most / (int64_t)item_bytes
               ? SL_OK
               : refuse(file, v, "takes too much memory for the size of its file");
}

/* ---- Sparse matrices ---- */

/* Take the columns of a sparse matrix as rows: the transpose. */
static int take_columns(struct mat_file *file, const struct sl_matlab_variable *v,
                        struct sl_csr *out)
{
    struct sl_block **blocks = &file->out->blocks;
    const int rc = check_memory(file, v, v->cols + 1 + v->entries, sizeof(int64_t));
    if (rc)
        return rc;
    int64_t *indptr = sl_block_array(blocks, v->cols + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, v->entries, sizeof *indices);
    float *values = sl_block_array(blocks, v->entries, sizeof *values);
    const char *place =
        sl_block_print(blocks, "%s: variable '%s' by columns", file->mat.path, sl_matlab_name(v));
    if (!indptr || !indices || !values || !place)
        return SL_ERR_SYSTEM;
    for (int64_t c = 0; c <= v->cols; c++)
        indptr[c] = v->start[c];
    for (int64_t k = 0; k < v->entries; k++) {
        indices[k] = v->row[k];
        values[k] = (float)sl_matlab_number(v, k);
    }
    *out = (struct sl_csr){v->cols, v->rows, indptr, indices, values};
    return sl_csr_check(out, v->entries, place, place);
}

/* Take the nonzeros of a dense matrix by columns, as rows of the transpose. */
static int take_nonzeros(struct mat_file *file, const struct sl_matlab_variable *v,
                         struct sl_csr *out)
{
    struct sl_block **blocks = &file->out->blocks;
    const int64_t rows = v->rows, columns = v->cols;
    int64_t entries = 0;
    for (int64_t k = 0; k < rows * columns; k++)
        entries += sl_matlab_number(v, k) != 0.0;
    const int rc = check_memory(file, v, columns + 1 + entries, sizeof(int64_t));
    if (rc)
        return rc;
    int64_t *indptr = sl_block_array(blocks, columns + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, entries, sizeof *indices);
    float *values = sl_block_array(blocks, entries, sizeof *values);
    if (!indptr || !indices || !values)
        return SL_ERR_SYSTEM;
    int64_t at = indptr[0] = 0;
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            const double item = sl_matlab_number(v, c * rows + r);
            if (item == 0.0)
                continue;
            indices[at] = (int32_t)r;
            values[at++] = (float)item;
        }
        indptr[c + 1] = at;
    }
    *out = (struct sl_csr){columns, rows, indptr, indices, values};
    return SL_OK;
}

/* Take the loaded matrix as CSR with sorted rows; `transposed`: with a row for each of its columns.
 */
static int take_csr(struct mat_file *file, const struct sl_matlab_variable *v, bool transposed,
                    struct sl_csr *out, int64_t *merged)
{
    struct sl_csr columns = {0};
    int rc = v->class == SL_MATLAB_SPARSE ? take_columns(file, v, &columns)
                                          : take_nonzeros(file, v, &columns);
    *out = columns;
    if (!rc && !transposed)
        rc = sl_csr_transpose(&columns, &file->out->blocks, out);
    return rc ? rc : sl_csr_normalize(out, &file->out->blocks, merged);
}

/* ---- Dense matrices ---- */

/* Copy the loaded matrix row by row to dense floats, also a sparse one. */
static int take_dense(struct mat_file *file, const struct sl_matlab_variable *v, float **out)
{
    const int64_t rows = v->rows, columns = v->cols;
    int rc = check_memory(file, v, rows * columns, sizeof(float));
    if (rc)
        return rc;
    float *item = sl_block_array(&file->out->blocks, rows, (size_t)columns * sizeof *item);
    *out = item;
    if (!item)
        return SL_ERR_SYSTEM;
    if (v->class != SL_MATLAB_SPARSE) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                item[r * columns + c] = (float)sl_matlab_number(v, c * rows + r);
        return SL_OK;
    }
    struct sl_csr csr;
    rc = take_columns(file, v, &csr);
    if (rc)
        return rc;
    memset(item, 0, (size_t)(rows * columns) * sizeof *item);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = csr.indptr[c]; k < csr.indptr[c + 1]; k++)
            item[csr.indices[k] * columns + c] = csr.values[k];
    return SL_OK;
}

/* ---- The dataset ---- */

static int check_rows(const struct mat_file *file, const struct sl_matlab_variable *v)
{
    const int64_t n = file->out->vertices;
    return v->rows == n
               ? SL_OK
               : sl_error(SL_ERR_DATA,
                          "%s: variable '%s' has %" PRId64 " rows, expected %" PRId64 " (vertices)",
                          file->mat.path, sl_matlab_name(v), v->rows, n);
}

static int read_adjacency(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    struct sl_matlab_variable *v = file->variable[ADJACENCY];
    const int rc = load(file, v);
    if (rc)
        return rc;
    if (v->rows != v->cols)
        return sl_error(SL_ERR_DATA,
                        "%s: variable '%s' is %" PRId64 " x %" PRId64
                        ", expected a square adjacency",
                        file->mat.path, sl_matlab_name(v), v->rows, v->cols);
    out->vertices = v->rows;
    /* Transpose: entry (u, v) is the edge u -> v, which belongs in row v. */
    return take_csr(file, v, true, &out->adjacency, &out->merged_edges);
}

static int read_features(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    struct sl_matlab_variable *v = file->variable[FEATURES];
    int64_t merged = 0;
    float *dense;
    int rc = load(file, v);
    if (!rc)
        rc = check_rows(file, v);
    if (rc)
        return rc;
    out->features = v->cols;
    if (v->class == SL_MATLAB_SPARSE) {
        out->feature_form = SL_FEATURES_CSR;
        out->columns.bag_of_words = true;
        return take_csr(file, v, false, &out->features_csr, &merged);
    }
    out->feature_form = SL_FEATURES_DENSE;
    rc = take_dense(file, v, &dense);
    out->features_dense = dense;
    return rc;
}

/* Let classes count from 0: MATLAB counts from 1. */
static void count_from_zero(const struct mat_file *file, int64_t rows, float *label)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t v = 0; v < rows; v++) {
        least = label[v] < least ? label[v] : least;
        most = label[v] > most ? label[v] : most;
    }
    if (least != 1.0f)
        return;
    for (int64_t v = 0; v < rows; v++)
        label[v] -= 1.0f;
    sl_note("%s: classes 1 to %g of '%s' are numbered from 0", file->mat.path, (double)most,
            sl_matlab_name(file->variable[LABELS]));
}

static int read_labels(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    struct sl_matlab_variable *v = file->variable[LABELS];
    float *label;
    int rc = load(file, v);
    if (rc)
        return rc;
    if (v->rows == 1 && v->cols == out->vertices &&
        v->class != SL_MATLAB_SPARSE) { /* a row vector is a list, too */
        v->rows = v->cols;
        v->cols = 1;
    }
    rc = check_rows(file, v);
    if (!rc)
        rc = take_dense(file, v, &label);
    const char *place =
        sl_block_print(&out->blocks, "%s: variable '%s'", file->mat.path, sl_matlab_name(v));
    if (rc || !place)
        return rc ? rc : (int)SL_ERR_SYSTEM;
    if (v->cols == 1)
        count_from_zero(file, out->vertices, label);
    struct sl_npy npy = sl_npy_view(place, SL_NPY_FLOAT32, 2, out->vertices, v->cols, label);
    return sl_arrays_labels(&npy, out);
}

static int read_local_info(struct mat_file *file)
{
    struct sl_matlab_variable *v = file->variable[LOCAL_INFO];
    float *info;
    int rc = load(file, v);
    if (!rc)
        rc = check_rows(file, v);
    if (!rc && v->cols != SL_LOCAL_INFO)
        rc = sl_error(SL_ERR_DATA, "%s: variable '%s' has %" PRId64 " columns, expected %d",
                      file->mat.path, sl_matlab_name(v), v->cols, SL_LOCAL_INFO);
    if (!rc)
        rc = take_dense(file, v, &info);
    return rc ? rc : sl_matlab_local_info(file->mat.path, info, file->out);
}

/* Read a role's variable, if there is one. */
static int read_role(struct mat_file *file, enum role role, int (*read)(struct mat_file *file))
{
    struct sl_matlab_variable *v = file->variable[role];
    const int rc = v ? read(file) : SL_OK;
    if (v)
        sl_matlab_unload(v);
    return rc;
}

static int read_variables(struct mat_file *file)
{
    int rc = find_variables(file);
    const bool alone = !file->variable[FEATURES] && !file->variable[LABELS];
    if (!rc)
        rc = read_role(file, ADJACENCY, read_adjacency);
    if (!rc)
        rc = read_role(file, FEATURES, read_features);
    if (!rc)
        rc = read_role(file, LABELS, read_labels);
    return rc || !alone ? rc : read_role(file, LOCAL_INFO, read_local_info);
}

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    (void)options;
    struct mat_file file = {.out = out};
    int rc = sl_matlab_open(&file.mat, path);
    if (!rc)
        rc = read_variables(&file);
    sl_matlab_close(&file.mat);
    return rc;
}

const struct sl_format sl_format_matlab = {
    .name = "MATLAB",
    .extensions = ".mat",
    .sniff = sl_matlab_sniff,
    .read = read_file,
};
