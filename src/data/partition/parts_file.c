/* Store partitions in files: the parts as a .npy array, and a .json file that describes them. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/options.h"
#include "data/block.h"
#include "data/formats/npy.h"
#include "data/partition/edge_parts.h"
#include "data/partition/parts.h"

static int64_t count_of(const struct sl_parts *parts)
{
    return parts->of_edges ? parts->entries : parts->vertices;
}

/* ---- Names ---- */

char *sl_parts_path(const char *path, const struct sl_parts *parts, struct sl_block **blocks)
{
    char whole[PATH_MAX];
    const char *name = realpath(path, whole) ? strrchr(whole, '/') + 1 : "";
    return sl_block_print(blocks, "%s-%s-%d.npy", *name ? name : "graph", parts->method,
                          parts->parts);
}

static char *description_path(const char *path, struct sl_block **blocks)
{
    const size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".npy") != 0) {
        sl_error(SL_ERR_USAGE, "%s: expected a file name that ends in .npy", path);
        return NULL;
    }
    return sl_block_print(blocks, "%.*s.json", (int)length - 4, path);
}

/* ---- Writing ---- */

static json_t *describe(const struct sl_parts *parts, const json_t *report)
{
    char fingerprint[24], checksum[24];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, parts->fingerprint);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, parts->checksum);
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:O?}", "method", parts->method,
                     "kind", parts->of_edges ? "edges" : "vertices", "parts", parts->parts, "seed",
                     (json_int_t)parts->seed, "vertices", (json_int_t)parts->vertices, "entries",
                     (json_int_t)parts->entries, "fingerprint", fingerprint, "checksum", checksum,
                     "report", report);
}

int sl_parts_write(const struct sl_parts *parts, const json_t *report, const char *path)
{
    struct sl_block *scratch = NULL;
    struct sl_new_file array, text;
    const char *other = description_path(path, &scratch);
    json_t *description = describe(parts, report);
    int rc = other ? SL_OK : SL_ERR_USAGE;
    if (!rc && (!description || sl_json_failures()))
        rc = sl_error(SL_ERR_SYSTEM, "%s: no memory for what goes into it", other);
    if (!rc)
        rc = sl_file_create_both(&array, path, &text, other);
    if (!rc) {
        const int64_t count = count_of(parts);
        const bool good =
            sl_npy_put(array.file, "<i4", sizeof *parts->part, 1, &count, parts->part);
        rc = sl_file_commit_both(&array, good, &text,
                                 good && sl_json_put(description, JSON_INDENT(1), text.file));
    }
    json_decref(description);
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- Reading ---- */

static int get_integer(const char *path, const json_t *root, const char *key, int64_t least,
                       int64_t most, int64_t *out)
{
    const json_t *value = json_object_get(root, key);
    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= least && *out <= most)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: \"%s\" is missing or wrong, expected an integer, %" PRId64 " to %" PRId64,
                    path, key, least, most);
}

static int get_hash(const char *path, const json_t *root, const char *key, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(root, key));
    char *end = NULL;
    if (text && strlen(text) == 16)
        *out = strtoull(text, &end, 16);
    if (end && !*end)
        return SL_OK;
    return sl_error(SL_ERR_DATA, "%s: \"%s\" is missing or wrong, expected 16 hexadecimal digits",
                    path, key);
}

static int get_kind(const char *path, const json_t *root, bool *of_edges)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    *of_edges = kind && strcmp(kind, "edges") == 0;
    if (*of_edges || (kind && strcmp(kind, "vertices") == 0))
        return SL_OK;
    return sl_error(SL_ERR_DATA, "%s: \"kind\" is missing or wrong, expected vertices or edges",
                    path);
}

static int get_description(const char *path, const json_t *root, struct sl_parts *out)
{
    const char *method = json_string_value(json_object_get(root, "method"));
    int64_t parts = 0, seed = 0;
    int rc = get_kind(path, root, &out->of_edges);
    if (!rc)
        rc = get_integer(path, root, "parts", 1, SL_EDGE_PARTS_MOST, &parts);
    if (!rc)
        rc = get_integer(path, root, "seed", 0, INT64_MAX, &seed);
    if (!rc)
        rc = get_integer(path, root, "vertices", 0, INT32_MAX, &out->vertices);
    if (!rc)
        rc = get_integer(path, root, "entries", 0, INT64_MAX, &out->entries);
    if (!rc)
        rc = get_hash(path, root, "fingerprint", &out->fingerprint);
    if (!rc)
        rc = get_hash(path, root, "checksum", &out->checksum);
    out->parts = (int)parts;
    out->seed = (uint64_t)seed;
    snprintf(out->method, sizeof out->method, "%s", method ? method : "unknown");
    return rc;
}

static int read_description(const char *path, struct sl_parts *out)
{
    json_error_t error;
    json_t *root = sl_json_read_file(path, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return sl_error(SL_ERR_SYSTEM, "%s: %s", path, error.text);
    if (!root && error.line < 1)
        return sl_error(SL_ERR_DATA,
                        "%s: %s; expected what starling partition writes beside the parts", path,
                        error.text);
    const int rc = root ? get_description(path, root, out)
                        : sl_error(SL_ERR_DATA,
                                   "%s: line %d: %s; expected what starling "
                                   "partition writes beside the parts",
                                   path, error.line, error.text);
    json_decref(root);
    return rc;
}

int sl_parts_open(const char *path, struct sl_parts *out)
{
    struct sl_npy npy = {0};
    *out = (struct sl_parts){0};
    const char *other = description_path(path, &out->blocks);
    int rc = other ? read_description(other, out) : SL_ERR_USAGE;
    if (!rc)
        rc = sl_npy_map(path, &out->blocks, &npy);
    if (!rc)
        rc = sl_npy_expect(&npy, 1);
    if (!rc && npy.count != count_of(out))
        rc = sl_error(SL_ERR_DATA,
                      "%s: has %" PRId64 " parts, expected %" PRId64 ", one for each "
                      "of the %s in %s",
                      path, npy.count, count_of(out),
                      out->of_edges ? "adjacency entries" : "vertices", other);
    return rc ? rc : sl_npy_take(&npy, SL_NPY_INT32, 0, npy.count, &out->blocks, &out->part);
}

int sl_parts_check(const struct sl_parts *parts, const char *path)
{
    const int64_t count = count_of(parts);
    for (int64_t k = 0; k < count; k++)
        if (parts->part[k] < 0 || parts->part[k] >= parts->parts)
            return sl_error(SL_ERR_DATA, "%s: element %" PRId64 " is %d, expected 0 to %d", path, k,
                            parts->part[k], parts->parts - 1);
    if (sl_parts_checksum(parts->part, 0, count) == parts->checksum)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: its .json file describes another partition; expected both "
                    "as starling partition wrote them",
                    path);
}
