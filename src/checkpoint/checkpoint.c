#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "core/alike.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

/* The safetensors layout: 8 bytes little-endian length of the header, the JSON header padded with
 * spaces, the data. Ours is marked by __metadata__ {"format": FORMAT, "description": …, "crc32":
 * …}. Files of other programs may lack the checksum. */
static const char FORMAT[] = "starling-checkpoint-1";
enum { PREFIX = 8, ALIGNMENT = 64 };
static const uint64_t MOST_HEADER = 100u
                                    << 20; /* the limit of the format's reference implementation */

static size_t tensor_bytes(const struct sl_tensor *tensor)
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
    tensor.data = later ? NULL : malloc(tensor_bytes(&tensor) + 1);
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

/* CRC-32 of the description and of every tensor in order: name, shape, data. */
static uLong add_string(uLong crc, const char *text)
{
    return crc32_z(crc, (const Bytef *)text, strlen(text));
}

static uLong add_head(uLong crc, const struct sl_tensor *tensor)
{
    char head[256];
    snprintf(head, sizeof head, "%s %lld %lld", tensor->name, (long long)tensor->rows,
             (long long)tensor->cols);
    return add_string(crc, head);
}

static uint32_t checksum(const struct sl_checkpoint *checkpoint, const char *description)
{
    uLong crc = add_string(0, description);
    for (int t = 0; t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        crc = add_head(crc, tensor);
        crc = crc32_z(crc, (const Bytef *)tensor->data, tensor_bytes(tensor));
    }
    return (uint32_t)crc;
}

/* ---- The layout of a file ---- */

static const char METADATA[] = "__metadata__";

/* A mapped file: its header and the bytes behind the header. */
struct mapped {
    const char *path;
    void *all;
    size_t all_bytes;
    json_t *header;
    const unsigned char *data;
    size_t size;
};

static int map(const char *path, struct mapped *file)
{
    *file = (struct mapped){.path = path};
    const int code = sl_file_map(path, "a checkpoint", &file->all, &file->all_bytes, NULL);
    if (code)
        return code;
    const unsigned char *bytes = file->all;
    uint64_t length = 0;
    for (int b = 0; b < PREFIX && file->all_bytes >= PREFIX; b++)
        length |= (uint64_t)bytes[b] << (8 * b);
    if (file->all_bytes >= PREFIX && length <= MOST_HEADER && length <= file->all_bytes - PREFIX)
        file->header = sl_json_parse((const char *)bytes + PREFIX, (size_t)length, 0, NULL);
    if (file->header) {
        file->data = bytes + PREFIX + length;
        file->size = file->all_bytes - PREFIX - (size_t)length;
        return 0;
    }
    if (file->all_bytes)
        munmap(file->all, file->all_bytes);
    return sl_error(SL_ERR_DATA,
                    "%s: not a checkpoint (expected a safetensors file), or a truncated one", path);
}

static void unmap(struct mapped *file)
{
    json_decref(file->header);
    munmap(file->all, file->all_bytes);
}

/* The shape of a tensor, and where its bytes lie within the data. */
struct place {
    int64_t rows, cols;
    size_t begin, bytes;
};

static int find_place(const struct mapped *file, const char *name, json_t *entry, struct place *out)
{
    const char *dtype;
    json_int_t rows, cols, begin, end;
    if (json_unpack(entry, "{s:s, s:[I, I!], s:[I, I!]}", "dtype", &dtype, "shape", &rows, &cols,
                    "data_offsets", &begin, &end) != 0 ||
        strcmp(dtype, "F32") != 0)
        return sl_error(SL_ERR_DATA, "%s: tensor %s is not a float32 matrix", file->path, name);
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX || begin < 0 || end < begin ||
        (size_t)end > file->size ||
        (uint64_t)(end - begin) != (uint64_t)rows * (uint64_t)cols * sizeof(float))
        return sl_error(SL_ERR_DATA,
                        "%s: tensor %s does not fit into the file, which is truncated or damaged",
                        file->path, name);
    *out = (struct place){rows, cols, (size_t)begin, (size_t)(end - begin)};
    return 0;
}

/* ---- Write ---- */

static const char CRC_KEY[] = "\"crc32\":\"", NO_CRC[] = "00000000";

/* Return the JSON header as text (malloc), or NULL without memory. Room for the checksum is filled
 * in once all tensors are written. */
static char *make_header(const struct sl_checkpoint *checkpoint, const char *description)
{
    json_t *header = json_pack("{s:{s:s, s:s, s:s}}", METADATA, "format", FORMAT, "description",
                               description, "crc32", NO_CRC);
    size_t offset = 0;
    bool good = header != NULL;
    for (int t = 0; good && t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        const size_t end = offset + tensor_bytes(tensor);
        good = json_object_set_new(header, tensor->name,
                                   json_pack("{s:s, s:[I, I], s:[I, I]}", "dtype", "F32", "shape",
                                             (json_int_t)tensor->rows, (json_int_t)tensor->cols,
                                             "data_offsets", (json_int_t)offset,
                                             (json_int_t)end)) == 0;
        offset = end;
    }
    char *text = good ? sl_json_print(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

struct sl_checkpoint_sink {
    FILE *file;
    uLong crc;
    int reason; /* errno of the first failure; 0: none */
};

static void write_bytes(struct sl_checkpoint_sink *sink, const void *bytes, size_t count)
{
    if (sink->reason || fwrite(bytes, 1, count, sink->file) == count)
        return;
    sink->reason = errno ? errno : ENOSPC;
}

void sl_checkpoint_write_numbers(struct sl_checkpoint_sink *sink, const float *numbers,
                                 int64_t count)
{
    write_bytes(sink, numbers, (size_t)count * sizeof *numbers);
    sink->crc = crc32_z(sink->crc, (const Bytef *)numbers, (size_t)count * sizeof *numbers);
}

static void write_header(struct sl_checkpoint_sink *sink, const char *header)
{
    const size_t length = strlen(header);
    const uint64_t padded = (PREFIX + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - PREFIX;
    unsigned char prefix[PREFIX];
    for (int b = 0; b < PREFIX; b++)
        prefix[b] = (unsigned char)(padded >> (8 * b));
    write_bytes(sink, prefix, PREFIX);
    write_bytes(sink, header, length);
    for (uint64_t b = length; b < padded; b++)
        write_bytes(sink, " ", 1);
}

/* Write the checksum into its room in the header. Strings of the header have a backslash before
 * quotation marks, so the key is not part of a string. */
static void write_crc(struct sl_checkpoint_sink *sink, const char *header)
{
    char crc[16];
    const long at = PREFIX + (strstr(header, CRC_KEY) - header) + (long)strlen(CRC_KEY);
    snprintf(crc, sizeof crc, "%08x", (unsigned)sink->crc);
    if (!sink->reason && fseek(sink->file, at, SEEK_SET))
        sink->reason = errno;
    write_bytes(sink, crc, strlen(NO_CRC));
}

/* Whether the written file reads back with the same checksum. It must be whole before it replaces a
 * good one. */
static bool is_whole(const char *path, const struct sl_checkpoint *checkpoint, uLong crc)
{
    struct mapped file;
    struct place place;
    const char *description;
    if (map(path, &file))
        return false;
    bool good = json_unpack(file.header, "{s:{s:s}}", METADATA, "description", &description) == 0 &&
                json_object_size(file.header) == (size_t)checkpoint->count + 1;
    uLong found = good ? add_string(0, description) : 0;
    for (int t = 0; good && t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        json_t *entry = json_object_get(file.header, tensor->name);
        good = entry && find_place(&file, tensor->name, entry, &place) == 0;
        found = good ? crc32_z(add_head(found, tensor), file.data + place.begin, place.bytes) : 0;
    }
    unmap(&file);
    return good && found == crc;
}

/* Write the checkpoint to a file. Return whether the file took every byte. *crc: checksum of the
 * description and the tensors. */
static bool write_file(FILE *file, const struct sl_checkpoint *checkpoint, const char *header,
                       const char *description, uLong *crc)
{
    struct sl_checkpoint_sink sink = {.file = file, .crc = add_string(0, description)};
    write_header(&sink, header);
    for (int t = 0; t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        sink.crc = add_head(sink.crc, tensor);
        if (tensor->data || !checkpoint->source)
            sl_checkpoint_write_numbers(&sink, tensor->data, tensor->rows * tensor->cols);
        else
            checkpoint->source(checkpoint->context, t, &sink);
    }
    write_crc(&sink, header);
    *crc = sink.crc;
    if (!sink.reason && fflush(file))
        sink.reason = errno;
    errno = sink.reason;
    return sink.reason == 0;
}

int sl_checkpoint_write(const struct sl_checkpoint *checkpoint, const char *path)
{
    char *description = sl_json_print(checkpoint->description, JSON_COMPACT | JSON_SORT_KEYS);
    char *header = description ? make_header(checkpoint, description) : NULL;
    struct sl_new_file out;
    uLong crc;
    int code =
        header ? sl_file_create(&out, path)
               : sl_error(SL_ERR_SYSTEM, "%s: no memory for the header of the checkpoint", path);
    if (!code) {
        const bool taken = write_file(out.file, checkpoint, header, description, &crc);
        if (!taken || is_whole(out.temporary, checkpoint, crc)) {
            code = sl_file_commit(&out, taken);
        } else {
            sl_file_discard(&out);
            code = sl_error(SL_ERR_SYSTEM,
                            "%s: cannot be read back (expected memory for its header, and a disk "
                            "that keeps its bytes)",
                            path);
        }
    }
    free(header);
    free(description);
    return code;
}

/* Write the checkpoint in a new private directory inside `directory`. Set path to the file. Return
 * 0 or the code of sl_checkpoint_write. */
static int write_in(const struct sl_checkpoint *checkpoint, const char *name, const char *directory,
                    char path[PATH_MAX])
{
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    if (snprintf(path, PATH_MAX, "%s/starling-XXXXXX", directory) >= PATH_MAX || !mkdtemp(path))
        return sl_error(SL_ERR_SYSTEM, "%s: no directory can be made: %s", directory,
                        strerror(errno));
    const size_t length = strlen(path);
    if (snprintf(path + length, PATH_MAX - length, "/%s", name) >= (int)(PATH_MAX - length))
        return sl_error(SL_ERR_SYSTEM, "%s/%s: the name is too long", directory, name);
    const int code = sl_checkpoint_write(checkpoint, path);
    if (code) {
        path[length] = '\0';
        rmdir(path);
    }
    return code;
}

int sl_checkpoint_write_somewhere(const struct sl_checkpoint *checkpoint, const char *wanted)
{
    const char *const places[] = {getenv("TMPDIR"), "/tmp"};
    char reason[512], path[PATH_MAX];
    if (sl_checkpoint_write(checkpoint, wanted) == 0)
        return 0;
    snprintf(reason, sizeof reason, "%s", sl_error_message());
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        if (places[p] && *places[p] && write_in(checkpoint, wanted, places[p], path) == 0)
            return sl_error(SL_ERR_SYSTEM, "%s; the model is in %s", reason, path);
    return sl_error(SL_ERR_SYSTEM, "%s, nor is there room in TMPDIR: the model is lost", reason);
}

static int read_tensor(struct sl_checkpoint *out, const struct mapped *file, const char *name,
                       const struct place *place)
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

static int read_mapped(const struct mapped *file, struct sl_checkpoint *out)
{
    const char *format, *description, *crc = NULL, *name, *path = file->path;
    json_t *entry;
    if (json_unpack(file->header, "{s:{s:s, s:s, s?s}}", METADATA, "format", &format, "description",
                    &description, "crc32", &crc) != 0 ||
        strcmp(format, FORMAT) != 0)
        return sl_error(
            SL_ERR_DATA,
            "%s: a safetensors file, but not a checkpoint of this program (expected format %s)",
            path, FORMAT);
    size_t bytes = 0; /* bytes of all tensors so far */
    json_object_foreach(file->header, name, entry)
    {
        struct place place = {0};
        int code = strcmp(name, METADATA) ? find_place(file, name, entry, &place) : 0;
        bytes += place.bytes;
        if (!code && bytes > file->size)
            code = sl_error(SL_ERR_DATA, "%s: tensor %s lies on another one (expected none to)",
                            path, name);
        if (!code && strcmp(name, METADATA) != 0)
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
    out->description = sl_json_parse(description, strlen(description), 0, NULL);
    if (!json_is_object(out->description))
        return sl_error(SL_ERR_DATA, "%s: the description is not a JSON object", path);
    return 0;
}

int sl_checkpoint_read(const char *path, struct sl_checkpoint *out)
{
    struct mapped file;
    *out = (struct sl_checkpoint){0};
    int code = map(path, &file);
    if (code)
        return code;
    code = read_mapped(&file, out);
    unmap(&file);
    if (code)
        sl_checkpoint_free(out);
    return code;
}

int sl_checkpoint_check_alike(struct sl_runtime *rt, const struct sl_checkpoint *checkpoint,
                              const char *name)
{
    struct sl_alike alike = {.count = 0};
    sl_alike_add(&alike, "numbers in the checkpoint", checkpoint->checksum, "checkpoint");
    return sl_error_about(
        sl_alike_check(rt, &alike, SL_ERR_DATA, "the same checkpoint on all ranks"), name);
}
