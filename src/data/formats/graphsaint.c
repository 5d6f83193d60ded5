/* Read folders of GraphSAINT (Zeng et al., ICLR 2020). adj_full.npz is a sparse matrix of SciPy.
 * feats.npy has the features. class_map.json has the class of each vertex, or its several labels.
 * role.json has the vertices of the splits. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/formats/formats.h"
#include "data/formats/json_members.h"
#include "data/formats/number_rows.h"

struct labels {
    int64_t vertices, columns; /* 0: a class per vertex */
    int32_t *class_of;         // (vertices)
    float *several;            // (vertices, columns), NaN: no label read yet
    unsigned char *known;      // (vertices)
};

static const char *path_of(const char *folder, const char *file, struct sl_block **blocks)
{
    return sl_block_print(blocks, "%s/%s", folder, file);
}

/* ---- class_map.json ---- */

static int find_vertex(const struct sl_json_members *members, const struct labels *labels,
                       int64_t *vertex)
{
    const char *key = sl_json_members_key(members);
    if (!sl_text_to_int64(key, vertex) || *vertex < 0 || *vertex >= labels->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: member %" PRId64 ": '%.40s' is no vertex, expected 0 to %" PRId64,
                        members->path, members->count, key, labels->vertices - 1);
    if (labels->known[*vertex])
        return sl_error(SL_ERR_DATA, "%s: member %" PRId64 ": vertex %" PRId64 " is there twice",
                        members->path, members->count, *vertex);
    labels->known[*vertex] = 1;
    return SL_OK;
}

/* Find the form of labels from the first member. */
static int open_labels(const struct sl_json_members *members, struct labels *labels,
                       struct sl_block **blocks)
{
    enum { MOST = 1 << 20 };
    labels->columns = (int64_t)json_array_size(members->value);
    const bool list = json_is_array(members->value);
    if (list && (labels->columns < 1 || labels->columns > MOST))
        return sl_error(SL_ERR_DATA, "%s: member 1 has %" PRId64 " labels, expected 1 to %d",
                        members->path, labels->columns, MOST);
    if (list)
        labels->several = sl_block_array(blocks, labels->vertices,
                                         (size_t)labels->columns * sizeof *labels->several);
    else
        labels->class_of = sl_block_array(blocks, labels->vertices, sizeof *labels->class_of);
    return labels->several || labels->class_of ? SL_OK : SL_ERR_SYSTEM;
}

static int read_class(const struct sl_json_members *members, int32_t *class_of)
{
    const json_int_t class = json_integer_value(members->value);
    if (!json_is_integer(members->value) || class < -1 || class > INT32_MAX - 1)
        return sl_error(SL_ERR_DATA,
                        "%s: member %" PRId64 ": label of vertex %s is no class, expected 0 or "
                        "more, or -1 (none)",
                        members->path, members->count, sl_json_members_key(members));
    *class_of = (int32_t) class;
    return SL_OK;
}

static int read_several(const struct sl_json_members *members, int64_t columns, float *row)
{
    if ((int64_t)json_array_size(members->value) != columns)
        return sl_error(SL_ERR_DATA,
                        "%s: member %" PRId64 ": vertex %s has %zu labels, expected %" PRId64,
                        members->path, members->count, sl_json_members_key(members),
                        json_array_size(members->value), columns);
    for (int64_t c = 0; c < columns; c++) {
        const json_t *item = json_array_get(members->value, (size_t)c);
        row[c] = (float)json_number_value(item);
        if (!json_is_number(item) || (row[c] != 0.0f && row[c] != 1.0f))
            return sl_error(SL_ERR_DATA,
                            "%s: member %" PRId64 ": label %" PRId64
                            " of vertex %s is neither 0 nor 1",
                            members->path, members->count, c, sl_json_members_key(members));
    }
    return SL_OK;
}

static int read_member(const struct sl_json_members *members, struct labels *labels,
                       struct sl_block **blocks)
{
    int64_t v = 0;
    int rc = find_vertex(members, labels, &v);
    if (!rc && members->count == 1)
        rc = open_labels(members, labels, blocks);
    if (rc)
        return rc;
    return labels->several
               ? read_several(members, labels->columns, labels->several + v * labels->columns)
               : read_class(members, &labels->class_of[v]);
}

static int read_members(struct sl_json_members *members, struct labels *labels,
                        struct sl_block **blocks)
{
    int got;
    while ((got = sl_json_members_next(members)) > 0) {
        const int rc = read_member(members, labels, blocks);
        if (rc)
            return rc;
    }
    if (got == 0 && members->count != labels->vertices)
        return sl_error(SL_ERR_DATA, "%s: has labels of %" PRId64 " vertices, expected %" PRId64,
                        members->path, members->count, labels->vertices);
    return got;
}

static int read_class_map(const char *folder, struct sl_dataset *out)
{
    struct sl_json_members members;
    struct labels labels = {.vertices = out->vertices};
    const char *path = path_of(folder, "class_map.json", &out->blocks);
    labels.known = sl_block_array(&out->blocks, out->vertices, 1);
    if (!path || !labels.known)
        return SL_ERR_SYSTEM;
    memset(labels.known, 0, (size_t)out->vertices);
    int rc = sl_json_members_open(&members, path);
    if (!rc)
        rc = read_members(&members, &labels, &out->blocks);
    sl_json_members_close(&members);
    out->labels = labels.class_of;
    out->multilabels = labels.several;
    out->classes = labels.columns;
    return rc;
}

/* ---- role.json ---- */

static int read_role(const struct sl_json_members *members, struct sl_split_lists *lists,
                     struct sl_block **blocks, struct sl_index_set *set)
{
    const char *path =
        sl_block_print(blocks, "%s: \"%s\"", members->path, sl_json_members_key(members));
    if (!path)
        return SL_ERR_SYSTEM;
    if (set->ids)
        return sl_error(SL_ERR_DATA, "%s is there twice", path);
    if (!json_is_array(members->value))
        return sl_error(SL_ERR_DATA, "%s is no list, expected vertices", path);
    size_t k;
    json_t *item;
    json_array_foreach(members->value, k, item)
    {
        const int64_t v = json_is_integer(item) ? json_integer_value(item) : -1;
        const int rc = sl_split_lists_add(lists, path, "item", (int64_t)k + 1, v);
        if (rc)
            return rc;
    }
    return sl_split_lists_end(lists, path, blocks, set);
}

static int read_roles(struct sl_json_members *members, struct sl_dataset *out)
{
    static const char *const names[] = {"tr", "va", "te"};
    struct sl_index_set *const sets[] = {&out->train, &out->val, &out->test};
    struct sl_split_lists lists = {.vertices = out->vertices};
    int rc = sl_split_lists_open(&lists, &out->blocks);
    int got = 0;
    while (!rc && (got = sl_json_members_next(members)) > 0) {
        int k = 0;
        while (k < 3 && strcmp(names[k], sl_json_members_key(members)) != 0)
            k++;
        rc = k < 3 ? read_role(members, &lists, &out->blocks, sets[k])
                   : sl_error(SL_ERR_DATA, "%s: member \"%.40s\", expected tr, va and te",
                              members->path, sl_json_members_key(members));
    }
    if (rc || got < 0)
        return rc ? rc : got;
    for (int k = 0; k < 3; k++)
        if (!sets[k]->ids)
            return sl_error(SL_ERR_DATA, "%s: has no member \"%s\", expected tr, va and te",
                            members->path, names[k]);
    return SL_OK;
}

static int read_role_file(const char *folder, struct sl_dataset *out)
{
    struct sl_json_members members;
    const char *path = path_of(folder, "role.json", &out->blocks);
    int rc = path ? sl_json_members_open(&members, path) : (int)SL_ERR_SYSTEM;
    if (!path)
        return rc;
    if (!rc)
        rc = read_roles(&members, out);
    sl_json_members_close(&members);
    return rc;
}

/* ---- The folder ---- */

static int read_graph(const char *folder, const struct sl_read_options *options,
                      struct sl_dataset *out)
{
    const char *path = path_of(folder, "adj_full.npz", &out->blocks);
    return path ? sl_format_npz.read(path, options, out) : (int)SL_ERR_SYSTEM;
}

static int read_features(const char *folder, struct sl_dataset *out)
{
    struct sl_npy features;
    const char *path = path_of(folder, "feats.npy", &out->blocks);
    const int rc = path ? sl_npy_map(path, &out->blocks, &features) : (int)SL_ERR_SYSTEM;
    return rc ? rc : sl_arrays_features(&features, out);
}

static int read_folder(const char *path, const struct sl_read_options *options,
                       struct sl_dataset *out)
{
    int rc = read_graph(path, options, out);
    if (!rc)
        rc = read_features(path, out);
    if (!rc)
        rc = read_class_map(path, out);
    return rc ? rc : read_role_file(path, out);
}

static bool has(const char *folder, const char *file)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    return length < (int)sizeof path && access(path, F_OK) == 0;
}

static bool is_graphsaint(const char *path)
{
    return has(path, "adj_full.npz") || (has(path, "class_map.json") && has(path, "role.json"));
}

const struct sl_format sl_format_graphsaint = {
    .name = "GraphSAINT folder",
    .extensions = "",
    .is_folder = is_graphsaint,
    .read = read_folder,
};
