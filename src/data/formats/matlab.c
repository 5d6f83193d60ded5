/* Read MATLAB files of level 5 (by matio): one matrix is the adjacency, others are known by their
 * names. Facebook100 (Traud, Mucha, Porter 2012) has one matrix of vertex attributes, local_info.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <matio.h>

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
    const char *path;
    mat_t *mat;
    struct sl_dataset *out;
    matvar_t *variable[ROLES]; /* variable of each role, as yet without data; NULL: none */
};

/* matio's last message; it reports errors in no better way. */
static _Thread_local char complaint[160];

static void keep_complaint(int level, char *message)
{
    if (level & (MATIO_LOG_LEVEL_ERROR | MATIO_LOG_LEVEL_CRITICAL))
        snprintf(complaint, sizeof complaint, "%.*s", (int)strcspn(message, "\n"), message);
}

/* Free a variable. matio forgets what function handles are made of, but frees the same in cells. */
static void free_variable(matvar_t *variable)
{
    if (variable && variable->class_type == MAT_C_FUNCTION)
        variable->class_type = MAT_C_CELL;
    Mat_VarFree(variable);
}

static const char *name_of(const matvar_t *variable)
{
    return variable->name ? variable->name : "";
}

static int refuse(const struct mat_file *file, const matvar_t *variable, const char *problem)
{
    return sl_error(SL_ERR_DATA, "%s: variable '%s' %s%s%s", file->path, name_of(variable), problem,
                    *complaint ? ": " : "", complaint);
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

static bool is_square_sparse(const matvar_t *variable)
{
    return variable->class_type == MAT_C_SPARSE && variable->rank == 2 &&
           variable->dims[0] == variable->dims[1];
}

/* Give a variable its role, which no other may have. */
static int take_role(struct mat_file *file, enum role role, matvar_t *v)
{
    const matvar_t *other = file->variable[role];
    if (other)
        return sl_error(SL_ERR_DATA, "%s: variables '%s' and '%s' are both %s, expected one",
                        file->path, name_of(other), name_of(v),
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
    matvar_t *square = NULL;
    int squares = 0, rc = SL_OK;
    complaint[0] = '\0';
    for (matvar_t *v; !rc && (v = Mat_VarReadNextInfo(file->mat));) {
        const enum role role = role_of(name_of(v));
        if (role < ROLES)
            rc = take_role(file, role, v);
        else if (is_square_sparse(v) && squares++ == 0)
            square = v;
        if (v != square && (role == ROLES || rc))
            free_variable(v);
    }
    if (!rc && *complaint)
        rc = sl_error(SL_ERR_DATA, "%s: damaged: %s", file->path, complaint);
    if (!rc && !file->variable[ADJACENCY] && squares == 1) {
        file->variable[ADJACENCY] = square;
        square = NULL;
    }
    free_variable(square);
    if (!rc && !file->variable[ADJACENCY])
        rc = sl_error(SL_ERR_DATA,
                      "%s: has no adjacency, expected a variable A, adj, network or graph, or "
                      "one square sparse matrix",
                      file->path);
    return rc;
}

/* ---- Numbers ---- */

/* Return element k of an array; NaN where the type is no number. */
static double number_at(const void *data, enum matio_types type, size_t k)
{
    switch (type) {
    case MAT_T_DOUBLE:
        return ((const double *)data)[k];
    case MAT_T_SINGLE:
        return (double)((const float *)data)[k];
    case MAT_T_INT8:
        return ((const int8_t *)data)[k];
    case MAT_T_UINT8:
        return ((const uint8_t *)data)[k];
    case MAT_T_INT16:
        return ((const int16_t *)data)[k];
    case MAT_T_UINT16:
        return ((const uint16_t *)data)[k];
    case MAT_T_INT32:
        return ((const int32_t *)data)[k];
    case MAT_T_UINT32:
        return ((const uint32_t *)data)[k];
    case MAT_T_INT64:
        return (double)((const int64_t *)data)[k];
    case MAT_T_UINT64:
        return (double)((const uint64_t *)data)[k];
    default:
        return NAN;
    }
}

static bool has_numbers(const matvar_t *variable)
{
    return variable->class_type >= MAT_C_SPARSE && variable->class_type <= MAT_C_UINT64;
}

/* Read a variable's data. */
static int load(const struct mat_file *file, matvar_t *v)
{
    complaint[0] = '\0';
    if (v->rank != 2 || !v->dims)
        return refuse(file, v, "is no matrix, expected two dimensions");
    if (!has_numbers(v) || v->isComplex)
        return refuse(file, v, "has no real numbers");
    if (v->dims[0] < 1 || v->dims[1] < 1 || v->dims[0] > INT32_MAX || v->dims[1] > INT32_MAX)
        return sl_error(SL_ERR_DATA, "%s: variable '%s' is %zu x %zu, expected 1 to 2^31 - 1",
                        file->path, name_of(v), v->dims[0], v->dims[1]);
    if (Mat_VarReadDataAll(file->mat, v) != 0 || !v->data || *complaint)
        return refuse(file, v, "is damaged");
    return SL_OK;
}

/* ---- Sparse matrices ---- */

/* Take the columns of a sparse matrix as rows: the transpose. */
static int take_columns(struct mat_file *file, const matvar_t *v, struct sl_csr *out)
{
    struct sl_block **blocks = &file->out->blocks;
    const mat_sparse_t *sparse = v->data;
    const int64_t rows = (int64_t)v->dims[0], columns = (int64_t)v->dims[1];
    if (sparse->njc != (uint64_t)columns + 1 || !sparse->jc || (sparse->nir > 0 && !sparse->ir) ||
        (sparse->ndata > 0 && !sparse->data))
        return refuse(file, v, "is damaged: it has no start for each column");
    const int64_t entries = sparse->jc[columns];
    if (entries > sparse->nir || entries > sparse->ndata)
        return refuse(file, v, "is damaged: it has fewer entries than its columns");
    int64_t *indptr = sl_block_array(blocks, columns + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, entries, sizeof *indices);
    float *values = sl_block_array(blocks, entries, sizeof *values);
    const char *place =
        sl_block_print(blocks, "%s: variable '%s' by columns", file->path, name_of(v));
    if (!indptr || !indices || !values || !place)
        return SL_ERR_SYSTEM;
    for (int64_t c = 0; c <= columns; c++)
        indptr[c] = sparse->jc[c];
    for (int64_t k = 0; k < entries; k++) {
        indices[k] = (int32_t)sparse->ir[k];
        values[k] = (float)number_at(sparse->data, v->data_type, (size_t)k);
    }
    *out = (struct sl_csr){columns, rows, indptr, indices, values};
    return sl_csr_check(out, entries, place, place);
}

/* Take the nonzeros of a dense matrix by columns, as rows of the transpose. */
static int take_nonzeros(struct mat_file *file, const matvar_t *v, struct sl_csr *out)
{
    struct sl_block **blocks = &file->out->blocks;
    const int64_t rows = (int64_t)v->dims[0], columns = (int64_t)v->dims[1];
    int64_t entries = 0;
    for (int64_t k = 0; k < rows * columns; k++)
        entries += number_at(v->data, v->data_type, (size_t)k) != 0.0;
    int64_t *indptr = sl_block_array(blocks, columns + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, entries, sizeof *indices);
    float *values = sl_block_array(blocks, entries, sizeof *values);
    if (!indptr || !indices || !values)
        return SL_ERR_SYSTEM;
    int64_t at = indptr[0] = 0;
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            const double item = number_at(v->data, v->data_type, (size_t)(c * rows + r));
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
static int take_csr(struct mat_file *file, const matvar_t *v, bool transposed, struct sl_csr *out,
                    int64_t *merged)
{
    struct sl_csr columns = {0};
    int rc = v->class_type == MAT_C_SPARSE ? take_columns(file, v, &columns)
                                           : take_nonzeros(file, v, &columns);
    *out = columns;
    if (!rc && !transposed)
        rc = sl_csr_transpose(&columns, &file->out->blocks, out);
    return rc ? rc : sl_csr_normalize(out, &file->out->blocks, merged);
}

/* ---- Dense matrices ---- */

/* Copy the loaded matrix row by row to dense floats, also a sparse one. */
static int take_dense(struct mat_file *file, const matvar_t *v, float **out)
{
    const int64_t rows = (int64_t)v->dims[0], columns = (int64_t)v->dims[1];
    float *item = sl_block_array(&file->out->blocks, rows, (size_t)columns * sizeof *item);
    *out = item;
    if (!item)
        return SL_ERR_SYSTEM;
    if (v->class_type != MAT_C_SPARSE) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                item[r * columns + c] =
                    (float)number_at(v->data, v->data_type, (size_t)(c * rows + r));
        return SL_OK;
    }
    struct sl_csr csr;
    const int rc = take_columns(file, v, &csr);
    if (rc)
        return rc;
    memset(item, 0, (size_t)(rows * columns) * sizeof *item);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = csr.indptr[c]; k < csr.indptr[c + 1]; k++)
            item[csr.indices[k] * columns + c] = csr.values[k];
    return SL_OK;
}

/* ---- The dataset ---- */

static int check_rows(const struct mat_file *file, const matvar_t *v)
{
    const size_t n = (size_t)file->out->vertices;
    return v->dims[0] == n
               ? SL_OK
               : sl_error(SL_ERR_DATA, "%s: variable '%s' has %zu rows, expected %zu (vertices)",
                          file->path, name_of(v), v->dims[0], n);
}

static int read_adjacency(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    matvar_t *v = file->variable[ADJACENCY];
    const int rc = load(file, v);
    if (rc)
        return rc;
    const size_t *dims = v->dims;
    if (dims[0] != dims[1])
        return sl_error(SL_ERR_DATA, "%s: variable '%s' is %zu x %zu, expected a square adjacency",
                        file->path, name_of(v), dims[0], dims[1]);
    out->vertices = (int64_t)dims[0];
    /* Transpose: entry (u, v) is the edge u -> v, which belongs in row v. */
    return take_csr(file, v, true, &out->adjacency, &out->merged_edges);
}

static int read_features(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    matvar_t *v = file->variable[FEATURES];
    int64_t merged = 0;
    float *dense;
    int rc = load(file, v);
    if (!rc)
        rc = check_rows(file, v);
    if (rc)
        return rc;
    out->features = (int64_t)v->dims[1];
    if (v->class_type == MAT_C_SPARSE) {
        out->feature_form = SL_FEATURES_CSR;
        out->bag_of_words = true;
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
    sl_note("%s: classes 1 to %g of '%s' are numbered from 0", file->path, (double)most,
            name_of(file->variable[LABELS]));
}

static int read_labels(struct mat_file *file)
{
    struct sl_dataset *out = file->out;
    matvar_t *v = file->variable[LABELS];
    float *label;
    int rc = load(file, v);
    if (rc)
        return rc;
    size_t *dims = v->dims;
    if (dims[0] == 1 && dims[1] == (size_t)out->vertices &&
        v->class_type != MAT_C_SPARSE) { /* a row vector is a list, too */
        dims[0] = dims[1];
        dims[1] = 1;
    }
    rc = check_rows(file, v);
    if (!rc)
        rc = take_dense(file, v, &label);
    const char *place = sl_block_print(&out->blocks, "%s: variable '%s'", file->path, name_of(v));
    if (rc || !place)
        return rc ? rc : (int)SL_ERR_SYSTEM;
    if (dims[1] == 1)
        count_from_zero(file, out->vertices, label);
    struct sl_npy npy =
        sl_npy_view(place, SL_NPY_FLOAT32, 2, out->vertices, (int64_t)dims[1], label);
    return sl_arrays_labels(&npy, out);
}

static int read_local_info(struct mat_file *file)
{
    matvar_t *v = file->variable[LOCAL_INFO];
    float *info;
    int rc = load(file, v);
    if (!rc)
        rc = check_rows(file, v);
    if (!rc && v->dims[1] != SL_LOCAL_INFO)
        rc = sl_error(SL_ERR_DATA, "%s: variable '%s' has %zu columns, expected %d", file->path,
                      name_of(v), v->dims[1], SL_LOCAL_INFO);
    if (!rc)
        rc = take_dense(file, v, &info);
    return rc ? rc : sl_matlab_local_info(file->path, info, file->out);
}

/* Read a role's variable, if there is one, and free it. */
static int read_role(struct mat_file *file, enum role role, int (*read)(struct mat_file *file))
{
    const int rc = file->variable[role] ? read(file) : SL_OK;
    free_variable(file->variable[role]);
    file->variable[role] = NULL;
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
    struct mat_file file = {.path = path, .out = out};
    int rc = sl_matlab_check(path);
    if (rc)
        return rc;
    Mat_LogInitFunc("starling", keep_complaint);
    file.mat = Mat_Open(path, MAT_ACC_RDONLY);
    if (!file.mat)
        return sl_error(SL_ERR_DATA, "%s: is no MATLAB file: %s", path, complaint);
    rc = read_variables(&file);
    for (int role = 0; role < ROLES; role++)
        free_variable(file.variable[role]);
    Mat_Close(file.mat);
    return rc;
}

const struct sl_format sl_format_matlab = {
    .name = "MATLAB",
    .extensions = ".mat",
    .sniff = sl_matlab_sniff,
    .read = read_file,
};
