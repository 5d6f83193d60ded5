#include "data/identities.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "data/labels.h"

/* Copy the ids to the places of the vertices' original numbers. */
static int take_ids(const struct sl_source *source, struct sl_identities *out)
{
    const struct sl_npy *stored = &source->vertex_ids;
    const size_t bytes = stored->item_bytes;
    unsigned char *items = sl_block_array(&out->blocks, stored->count, bytes);
    if (!items)
        return SL_ERR_SYSTEM;
    memset(items, 0, (size_t)stored->count * bytes);
    for (int64_t row = 0; row < stored->count; row++) {
        const int64_t v =
            source->order.original.data ? sl_npy_integer(&source->order.original, row) : row;
        if (v >= 0 && v < stored->count) /* sl_source_read refuses other numbers */
            memcpy(items + (size_t)v * bytes, stored->data + (size_t)row * bytes, bytes);
    }
    out->ids = *stored;
    out->ids.name = "vertex_ids";
    out->ids.data = items;
    return SL_OK;
}

static int take_names(const struct sl_source *source, struct sl_identities *out)
{
    const int64_t classes = sl_labels_count_names(source->targets.class_names);
    out->class_name = sl_block_array(&out->blocks, classes, sizeof *out->class_name);
    if (!out->class_name)
        return SL_ERR_SYSTEM;
    for (int64_t c = 0; c < classes; c++) {
        out->class_name[c] = sl_block_print(&out->blocks, "%s", source->targets.class_names[c]);
        if (!out->class_name[c])
            return SL_ERR_SYSTEM;
    }
    out->classes = classes;
    return SL_OK;
}

int sl_identities_take(const struct sl_source *source, struct sl_identities *out)
{
    *out = (struct sl_identities){.vertices = source->vertices};
    const int rc = source->vertex_ids.data ? take_ids(source, out) : SL_OK;
    return rc ? rc : take_names(source, out);
}

/* Return the name of the file of ids beside `path`, from `blocks`, or NULL. */
static const char *ids_path(const char *path, struct sl_block **blocks)
{
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0)
        length -= 4;
    return sl_block_print(blocks, "%.*s.ids.npy", (int)length, path);
}

int sl_identities_check(const char *path)
{
    struct sl_block *scratch = NULL;
    const char *ids = ids_path(path, &scratch);
    const int rc = !ids                     ? (int)SL_ERR_SYSTEM
                   : access(ids, F_OK) == 0 ? sl_error(SL_ERR_USAGE,
                                                       "%s would be read as the ids of %s, which "
                                                       "has none (expected another --output)",
                                                       ids, path)
                                            : SL_OK;
    sl_block_free_all(&scratch);
    return rc;
}

void sl_identities_free(struct sl_identities *identities)
{
    sl_block_free_all(&identities->blocks);
    *identities = (struct sl_identities){0};
}

int sl_identities_write(const struct sl_identities *identities, const char *path, const char *descr,
                        int dims, const int64_t *shape, const void *predictions)
{
    const struct sl_npy *ids = &identities->ids;
    struct sl_block *scratch = NULL;
    struct sl_new_file array, of_ids;
    char descr_of_ids[24];
    if (!ids->data)
        return sl_npy_write(path, descr, sizeof(int32_t), dims, shape, predictions);
    const char *beside = ids_path(path, &scratch);
    int rc = beside ? sl_file_create_both(&array, path, &of_ids, beside) : (int)SL_ERR_SYSTEM;
    if (!rc) {
        sl_npy_descr(ids, descr_of_ids);
        const bool good = sl_npy_put(array.file, descr, sizeof(int32_t), dims, shape, predictions);
        rc = sl_file_commit_both(&array, good, &of_ids,
                                 good && sl_npy_put(of_ids.file, descr_of_ids, ids->item_bytes, 1,
                                                    &ids->count, ids->data));
    }
    sl_block_free_all(&scratch);
    return rc;
}

bool sl_identities_print_class(FILE *file, const struct sl_identities *identities, int64_t vertex,
                               const void *predictions)
{
    const int32_t class_of = ((const int32_t *)predictions)[vertex];
    if (fprintf(file, "%" PRId32, class_of) < 0)
        return false;
    return class_of >= identities->classes ||
           fprintf(file, "\t%s", identities->class_name[class_of]) > 0;
}

enum { DIGITS = 24 };

size_t sl_identities_room(const struct sl_identities *identities)
{
    const size_t bytes = identities->ids.data ? identities->ids.item_bytes + 1 : 0;
    return bytes > DIGITS ? bytes : DIGITS;
}

void sl_identities_name(const struct sl_identities *identities, int64_t v, char *text)
{
    const struct sl_npy *ids = &identities->ids;
    if (ids->data && sl_npy_is_text(ids))
        sl_npy_text(ids, v, text);
    else
        snprintf(text, DIGITS, "%" PRId64, ids->data ? sl_npy_integer(ids, v) : v);
}

/* Print the id of vertex v; `text` has room for an id. */
static bool print_id(FILE *file, const struct sl_identities *identities, int64_t v, char *text)
{
    sl_identities_name(identities, v, text);
    return fprintf(file, "%s\t", text) > 0;
}

int sl_identities_tabulate(const struct sl_identities *identities, sl_print_prediction *print,
                           const void *predictions, const char *path)
{
    struct sl_block *scratch = NULL;
    struct sl_new_file out;
    char *text = sl_block_alloc(&scratch, sl_identities_room(identities));
    int rc = text ? sl_file_create(&out, path) : (int)SL_ERR_SYSTEM;
    if (!rc) {
        bool good = true;
        for (int64_t v = 0; good && v < identities->vertices; v++)
            good = print_id(out.file, identities, v, text) &&
                   print(out.file, identities, v, predictions) && fputc('\n', out.file) != EOF;
        rc = sl_file_commit(&out, good);
    }
    sl_block_free_all(&scratch);
    return rc;
}
