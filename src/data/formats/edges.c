#include "data/formats/edges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"

/* ---- Edges ---- */

int sl_edges_add(struct sl_edges *edges, int64_t u, int64_t v, const float *weight)
{
    if (edges->count == edges->capacity) {
        const int64_t capacity = edges->capacity ? 2 * edges->capacity : 1024;
        int64_t *ends = reallocarray(edges->ends, (size_t)capacity, 2 * sizeof *ends);
        if (ends)
            edges->ends = ends;
        float *weights =
            weight ? reallocarray(edges->weights, (size_t)capacity, sizeof *weights) : NULL;
        if (weights)
            edges->weights = weights;
        float *features = edges->columns > 0
                              ? reallocarray(edges->features, (size_t)capacity,
                                             (size_t)edges->columns * sizeof *features)
                              : NULL;
        if (features)
            edges->features = features;
        if (!ends || (weight && !weights) || (edges->columns > 0 && !features))
            return sl_error(SL_ERR_SYSTEM, "out of memory for %" PRId64 " edges", capacity);
        edges->capacity = capacity;
    }
    edges->ends[2 * edges->count] = u;
    edges->ends[2 * edges->count + 1] = v;
    if (weight)
        edges->weights[edges->count] = *weight;
    edges->count++;
    return SL_OK;
}

/* ---- Labels ---- */

/* LEAST_LABELS: fewer lines may be any graph. LEAST_CLASS: classes have more vertices on average.
 */
enum { LEAST_LABELS = 8, LEAST_CLASS = 4 };

bool sl_edges_is_label_word(const char *word)
{
    static const char *const words[] = {"label",    "labels",    "class",    "classes",
                                        "category", "subject",   "y",        "page_type",
                                        "group",    "community", "node_type"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(word, words[k]) == 0)
            return true;
    return false;
}

/* Return whether the file's name speaks of labels. */
static bool is_named_after_labels(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcasestr(name, "label") || strcasestr(name, "classes");
}

static int compare_vertices(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sort `items`, drop repetitions, and return how many remain. */
static int64_t unite(int64_t *items, int64_t count)
{
    int64_t unique = 0;
    qsort(items, (size_t)count, sizeof *items, compare_vertices);
    for (int64_t k = 0; k < count; k++)
        if (unique == 0 || items[unique - 1] != items[k])
            items[unique++] = items[k];
    return unique;
}

/* List the different sources (end 0) or targets (end 1); return their number, or a negative code.
 */
static int64_t list_ends(const struct sl_edges *edges, int end, struct sl_block **blocks,
                         int64_t **list)
{
    *list = sl_block_array(blocks, edges->count, sizeof **list);
    if (!*list)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < edges->count; k++)
        (*list)[k] = edges->ends[2 * k + end];
    return unite(*list, edges->count);
}

/* Return whether sources can all differ and targets be few, before anything is sorted. */
static bool may_be_labels(const struct sl_edges *edges, int64_t names)
{
    if (edges->count < LEAST_LABELS || edges->weights)
        return false;
    int64_t least = INT64_MAX, most = -1, source = -1;
    for (int64_t k = 0; k < edges->count; k++) {
        const int64_t target = edges->ends[2 * k + 1];
        source = edges->ends[2 * k] > source ? edges->ends[2 * k] : source;
        least = target < least ? target : least;
        most = target > most ? target : most;
    }
    if (names > 0)
        return names > edges->count;
    return source >= edges->count - 1 && least <= 1 && most < edges->count / LEAST_CLASS + least;
}

/* Return whether each vertex points to an earlier one, as in trees and other lists of parents;
 * labels follow no such order. */
static bool points_backwards(const struct sl_edges *edges)
{
    for (int64_t k = 0; k < edges->count; k++)
        if (edges->ends[2 * k + 1] >= edges->ends[2 * k])
            return false;
    return true;
}

/* Return the number of classes; 0: the lines are edges. */
static int64_t count_classes(const char *path, const struct sl_edges *edges, int64_t names,
                             struct sl_block **blocks)
{
    int64_t *sources, *targets;
    if (list_ends(edges, 0, blocks, &sources) != edges->count)
        return 0;
    const int64_t classes = list_ends(edges, 1, blocks, &targets);
    if (classes < 2 || classes > edges->count / LEAST_CLASS)
        return 0;
    const bool apart = names == edges->count + classes; /* no class is a vertex */
    const bool all = targets[classes - 1] - targets[0] == classes - 1;
    const bool likely = is_named_after_labels(path) || !points_backwards(edges);
    return (names > 0 ? apart : all && likely) ? classes : 0;
}

int sl_edges_check(const char *path, const struct sl_edges *edges, int64_t names)
{
    struct sl_block *scratch = NULL;
    if (!may_be_labels(edges, names))
        return SL_OK;
    const int64_t classes = count_classes(path, edges, names, &scratch);
    sl_block_free_all(&scratch);
    if (classes == 0)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: these are labels, not edges: each of %" PRId64
                    " vertices is there once, with one of %" PRId64
                    " classes (expected edges; labels go into labels.npy)",
                    path, edges->count, classes);
}

/* ---- Numbers ---- */

static void keep_ids(struct sl_dataset *out, const int64_t *ids)
{
    out->vertex_ids = sl_npy_view("vertex_ids", SL_NPY_INT64, 1, out->vertices, 0, ids);
}

int sl_edges_compact(struct sl_edges *edges, struct sl_dataset *out)
{
    const int64_t ends = 2 * edges->count;
    int64_t *sorted = malloc((size_t)ends * sizeof *sorted + 1);
    if (!sorted)
        return sl_error(SL_ERR_SYSTEM, "out of memory for %" PRId64 " edges", edges->count);
    memcpy(sorted, edges->ends, (size_t)ends * sizeof *sorted);
    out->vertices = unite(sorted, ends);
    for (int64_t k = 0; k < ends; k++) {
        const int64_t *found = bsearch(&edges->ends[k], sorted, (size_t)out->vertices,
                                       sizeof *sorted, compare_vertices);
        edges->ends[k] = found - sorted;
    }
    int64_t *ids = sl_block_array(&out->blocks, out->vertices, sizeof *ids);
    if (ids)
        memcpy(ids, sorted, (size_t)out->vertices * sizeof *ids);
    free(sorted);
    keep_ids(out, ids);
    return ids ? SL_OK : SL_ERR_SYSTEM;
}

int sl_edges_shift(struct sl_edges *edges, int64_t base, struct sl_dataset *out)
{
    int64_t *ids = sl_block_array(&out->blocks, out->vertices, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < 2 * edges->count; k++)
        edges->ends[k] -= base;
    for (int64_t v = 0; v < out->vertices; v++)
        ids[v] = v + base;
    keep_ids(out, ids);
    return SL_OK;
}

/* ---- Names ---- */

/* Return the code point at *at and move *at past it. A byte that is not UTF-8 counts as Latin-1. */
static uint32_t decode(const unsigned char **at)
{
    const unsigned char *byte = *at;
    const int more = byte[0] >= 0xF0 ? 3 : byte[0] >= 0xE0 ? 2 : byte[0] >= 0xC0 ? 1 : 0;
    uint32_t code = byte[0] & (0x7Fu >> (more ? more + 1 : 0));
    *at = byte + 1;
    if (byte[0] < 0x80)
        return byte[0];
    for (int b = 1; b <= more; b++) {
        if ((byte[b] & 0xC0) != 0x80)
            return byte[0];
        code = code << 6 | (byte[b] & 0x3F);
    }
    if (more == 0)
        return byte[0];
    *at = byte + more + 1;
    return code;
}

static size_t count_characters(const char *name)
{
    size_t count = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at; count++)
        decode(&at);
    return count;
}

/* Return the most bytes that names of equal lengths may take: a long name makes all names long. */
static int64_t most_bytes(const char *path, const struct sl_string_ids *names)
{
    enum { TIMES = 512, FREE = 32 << 20 };
    static const int64_t MOST = (int64_t)1 << 32;
    struct stat status;
    const bool is_file = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    const int64_t bytes = is_file ? (int64_t)status.st_size : (int64_t)names->text_bytes;
    return bytes < (MOST - FREE) / TIMES ? TIMES * bytes + FREE : MOST;
}

int sl_edges_keep_names(const char *path, const struct sl_string_ids *names, struct sl_dataset *out)
{
    size_t longest = 1;
    const char *text = names->text; /* NULL: no names */
    out->vertices = names->count;
    for (size_t k = 0; k < names->text_bytes; k += strlen(text + k) + 1) {
        const size_t length = count_characters(text + k);
        longest = length > longest ? length : longest;
    }
    if ((int64_t)(longest * sizeof(uint32_t)) > most_bytes(path, names) / (names->count + 1)) {
        sl_note("%s: names have up to %zu characters, too many to be kept", path, longest);
        return SL_OK;
    }
    uint32_t *items = sl_block_array(&out->blocks, names->count, longest * sizeof *items),
             *item = items;
    if (!items)
        return SL_ERR_SYSTEM;
    memset(items, 0, (size_t)names->count * longest * sizeof *items);
    for (size_t k = 0; k < names->text_bytes; k += strlen(text + k) + 1, item += longest) {
        const unsigned char *at = (const unsigned char *)text + k;
        for (size_t c = 0; *at; c++)
            item[c] = decode(&at);
    }
    out->vertex_ids = sl_npy_view("vertex_ids", SL_NPY_INT32, 1, names->count, 0, items);
    out->vertex_ids.kind = 'U';
    out->vertex_ids.item_bytes = longest * sizeof *items;
    return SL_OK;
}
