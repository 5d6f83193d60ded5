#include "checkpoint/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "checkpoint/layout.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

const char sl_layout_format[] = "starling-checkpoint-1", sl_layout_metadata[] = "__metadata__";
static const uint64_t MOST_HEADER = 100u
                                    << 20; /* the limit of the format's reference implementation */

size_t sl_layout_bytes(const struct sl_tensor *tensor)
{
    return (size_t)tensor->rows * (size_t)tensor->cols * sizeof(float);
}

static struct sl_tensor *append(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                                int64_t cols, bool later)
{
    const size_t count = (size_t)checkpoint->count;
    struct sl_tensor *grown = realloc(checkpoint->tensors, (count + 1) * sizeof *grown);
    if (grown)
        checkpoint->tensors = grown;
    struct sl_tensor tensor = {strdup(name), rows, cols, NULL};
    tensor.data = later ? NULL : malloc(sl_layout_bytes(&tensor) + 1);
    if (!grown || !tensor.name || (!tensor.data && !later)) {
        free(tensor.name);
        free(tensor.data);
        sl_error(SL_ERR_SYSTEM, "no memory for tensor %s of the checkpoint", name);
        return NULL;
    }
    grown[count] = tensor;
    return &grown[checkpoint->count++];
}

float *sl_checkpoint_add(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                         int64_t cols)
{
    struct sl_tensor *tensor = append(checkpoint, name, rows, cols, false);
    return tensor ? tensor->data : NULL;
}

int sl_checkpoint_add_later(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                            int64_t cols)
{
    return append(checkpoint, name, rows, cols, true) ? 0 : SL_ERR_SYSTEM;
}

const struct sl_tensor *sl_checkpoint_find(const struct sl_checkpoint *checkpoint, const char *name)
{
    for (int t = 0; t < checkpoint->count; t++)
        if (strcmp(checkpoint->tensors[t].name, name) == 0)
            return &checkpoint->tensors[t];
    return NULL;
}

void sl_checkpoint_free(struct sl_checkpoint *checkpoint)
{
    for (int t = 0; t < checkpoint->count; t++) {
        free(checkpoint->tensors[t].name);
        free(checkpoint->tensors[t].data);
    }
    free(checkpoint->tensors);
    json_decref(checkpoint->description);
    *checkpoint = (struct sl_checkpoint){0};
}

uLong sl_layout_add_text(uLong crc, const char *text)
{
    return crc32_z(crc, (const Bytef *)text, strlen(text));
}

uLong sl_layout_add_head(uLong crc, const struct sl_tensor *tensor)
{
    char head[256];
    snprintf(head, sizeof head, "%s %lld %lld", tensor->name, (long long)tensor->rows,
             (long long)tensor->cols);
    return sl_layout_add_text(crc, head);
}

static uint32_t checksum(const struct sl_checkpoint *checkpoint, const char *description)
{
    uLong crc = sl_layout_add_text(0, description);
    for (int t = 0; t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        crc = sl_layout_add_head(crc, tensor);
        crc = crc32_z(crc, (const Bytef *)tensor->data, sl_layout_bytes(tensor));
    }
    return (uint32_t)crc;
}

/* ---- The layout of a file ---- */

/* Return the code of JSON that is wrong, or for which there was no memory. */
static int code_of(const char *path, const json_error_t *error)
{
    return json_error_code(error) == json_error_out_of_memory
               ? sl_error(SL_ERR_SYSTEM, "%s: no memory for its description", path)
               : SL_ERR_DATA;
}

/* Parse a JSON object. Return 0, SL_ERR_DATA for another text (no sentence yet), or SL_ERR_SYSTEM.
 */
static int parse(const char *path, const char *text, size_t bytes, json_t **object)
{
    json_error_t error = {0};
    *object = sl_json_parse(text, bytes, 0, &error);
    return json_is_object(*object) ? 0 : *object ? SL_ERR_DATA : code_of(path, &error);
}

/* Do json_unpack's work. Return what parse returns. */
static int unpack(const char *path, json_t *value, const char *format, ...)
{
    json_error_t error = {0};
    va_list out;
    va_start(out, format);
    const int wrong = json_vunpack_ex(value, &error, 0, format, out);
    va_end(out);
    return wrong ? code_of(path, &error) : 0;
}

int sl_layout_map(const char *path, struct sl_layout_file *file)
{
    *file = (struct sl_layout_file){.path = path};
    const int code = sl_file_map(path, "a checkpoint", &file->all, &file->all_bytes, NULL);
    if (code)
        return code;
    const unsigned char *bytes = file->all;
    uint64_t length = 0;
    for (int b = 0; b < SL_LAYOUT_PREFIX && file->all_bytes >= SL_LAYOUT_PREFIX; b++)
        length |= (uint64_t)bytes[b] << (8 * b);
    int wrong = SL_ERR_DATA;
    if (file->all_bytes >= SL_LAYOUT_PREFIX && length <= MOST_HEADER &&
        length <= file->all_bytes - SL_LAYOUT_PREFIX)
        wrong = parse(path, (const char *)bytes + SL_LAYOUT_PREFIX, (size_t)length, &file->header);
    if (!wrong) {
        file->data = bytes + SL_LAYOUT_PREFIX + length;
        file->size = file->all_bytes - SL_LAYOUT_PREFIX - (size_t)length;
        return 0;
    }
    if (file->all_bytes)
        munmap(file->all, file->all_bytes);
    json_decref(file->header);
    if (wrong == SL_ERR_SYSTEM)
        return wrong;
    return sl_error(SL_ERR_DATA,
                    "%s: not a checkpoint (expected a safetensors file), or a truncated one", path);
}

void sl_layout_unmap(struct sl_layout_file *file)
{
    json_decref(file->header);
    munmap(file->all, file->all_bytes);
}

int sl_layout_find(const struct sl_layout_file *file, const char *name, json_t *entry,
                   struct sl_layout_place *out)
{
    const char *dtype;
    json_int_t rows, cols, begin, end;
    const int wrong = unpack(file->path, entry, "{s:s, s:[I, I!], s:[I, I!]}", "dtype", &dtype,
                             "shape", &rows, &cols, "data_offsets", &begin, &end);
    if (wrong == SL_ERR_SYSTEM)
        return wrong;
    if (wrong || strcmp(dtype, "F32") != 0)
        return sl_error(SL_ERR_DATA, "%s: tensor %s is not a float32 matrix", file->path, name);
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX || begin < 0 || end < begin ||
        (size_t)end > file->size ||
        (uint64_t)(end - begin) != (uint64_t)rows * (uint64_t)cols * sizeof(float))
        return sl_error(SL_ERR_DATA,
                        "%s: tensor %s does not fit into the file, which is truncated or damaged",
                        file->path, name);
    *out = (struct sl_layout_place){rows, cols, (size_t)begin, (size_t)(end - begin)};
    return 0;
}

/* ---- Read ---- */

static int read_tensor(struct sl_checkpoint *out, const struct sl_layout_file *file,
                       const char *name, const struct sl_layout_place *place)
{
    float *to = sl_checkpoint_add(out, name, place->rows, place->cols);
    if (!to)
        return SL_ERR_SYSTEM;
    memcpy(to, file->data + place->begin, place->bytes);
    for (int64_t k = 0; k < place->rows * place->cols; k++)
        if (!isfinite(to[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: tensor %s has %g at row %" PRId64 ", column %" PRId64
                            " (expected finite numbers)",
                            file->path, name, (double)to[k], k / place->cols, k % place->cols);
    return 0;
}

static int read_mapped(const struct sl_layout_file *file, struct sl_checkpoint *out)
{
    const char *format, *description, *crc = NULL, *name, *path = file->path;
    json_t *entry;
    const int foreign = unpack(path, file->header, "{s:{s:s, s:s, s?s}}", sl_layout_metadata,
                               "format", &format, "description", &description, "crc32", &crc);
    if (foreign == SL_ERR_SYSTEM)
        return foreign;
    if (foreign || strcmp(format, sl_layout_format) != 0)
        return sl_error(
            SL_ERR_DATA,
            "%s: a safetensors file, but not a checkpoint of this program (expected format %s)",
            path, sl_layout_format);
    size_t bytes = 0; /* bytes of all tensors so far */
    json_object_foreach(file->header, name, entry)
    {
        struct sl_layout_place place = {0};
        int code = strcmp(name, sl_layout_metadata) ? sl_layout_find(file, name, entry, &place) : 0;
        bytes += place.bytes;
        if (!code && bytes > file->size)
            code = sl_error(SL_ERR_DATA, "%s: tensor %s lies on another one (expected none to)",
                            path, name);
        if (!code && strcmp(name, sl_layout_metadata) != 0)
            code = read_tensor(out, file, name, &place);
        if (code)
            return code;
    }
    char sum[16];
    out->checksum = checksum(out, description);
    snprintf(sum, sizeof sum, "%08x", out->checksum);
    if (crc && strcmp(sum, crc) != 0)
        return sl_error(SL_ERR_DATA,
                        "%s: the checksum is %s where %s was written: the file is damaged", path,
                        sum, crc);
    const int wrong = parse(path, description, strlen(description), &out->description);
    return wrong == SL_ERR_DATA
               ? sl_error(SL_ERR_DATA, "%s: the description is not a JSON object", path)
               : wrong;
}

int sl_checkpoint_read(const char *path, struct sl_checkpoint *out)
{
    struct sl_layout_file file;
    *out = (struct sl_checkpoint){0};
    int code = sl_layout_map(path, &file);
    if (code)
        return code;
    code = read_mapped(&file, out);
    sl_layout_unmap(&file);
    if (code)
        sl_checkpoint_free(out);
    return code;
}
