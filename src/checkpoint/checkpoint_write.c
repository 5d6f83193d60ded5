/* Writes checkpoints. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/layout.h"
#include "core/alike.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

static const char CRC_KEY[] = "\"crc32\":\"", NO_CRC[] = "00000000";

/* Return the JSON header as text (malloc), or NULL without memory. Room for the checksum is filled
 * in once all tensors are written. */
static char *make_header(const struct sl_checkpoint *checkpoint, const char *description)
{
    json_t *header = json_pack("{s:{s:s, s:s, s:s}}", sl_layout_metadata, "format",
                               sl_layout_format, "description", description, "crc32", NO_CRC);
    size_t offset = 0;
    bool good = header != NULL;
    for (int t = 0; good && t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        const size_t end = offset + sl_layout_bytes(tensor);
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
    const uint64_t padded = (SL_LAYOUT_PREFIX + length + SL_LAYOUT_ALIGNMENT - 1) /
                                SL_LAYOUT_ALIGNMENT * SL_LAYOUT_ALIGNMENT -
                            SL_LAYOUT_PREFIX;
    unsigned char prefix[SL_LAYOUT_PREFIX];
    for (int b = 0; b < SL_LAYOUT_PREFIX; b++)
        prefix[b] = (unsigned char)(padded >> (8 * b));
    write_bytes(sink, prefix, SL_LAYOUT_PREFIX);
    write_bytes(sink, header, length);
    for (uint64_t b = length; b < padded; b++)
        write_bytes(sink, " ", 1);
}

/* Write the checksum into its room in the header. Strings of the header have a backslash before
 * quotation marks, so the key is not part of a string. */
static void write_crc(struct sl_checkpoint_sink *sink, const char *header)
{
    char crc[16];
    const long at = SL_LAYOUT_PREFIX + (strstr(header, CRC_KEY) - header) + (long)strlen(CRC_KEY);
    snprintf(crc, sizeof crc, "%08x", (unsigned)sink->crc);
    if (!sink->reason && fseek(sink->file, at, SEEK_SET))
        sink->reason = errno;
    write_bytes(sink, crc, strlen(NO_CRC));
}

/* Whether the written file reads back with the same checksum. It must be whole before it replaces a
 * good one. */
static bool is_whole(const char *path, const struct sl_checkpoint *checkpoint, uLong crc)
{
    struct sl_layout_file file;
    struct sl_layout_place place;
    const char *description;
    if (sl_layout_map(path, &file))
        return false;
    bool good = json_unpack(file.header, "{s:{s:s}}", sl_layout_metadata, "description",
                            &description) == 0 &&
                json_object_size(file.header) == (size_t)checkpoint->count + 1;
    uLong found = good ? sl_layout_add_text(0, description) : 0;
    for (int t = 0; good && t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        json_t *entry = json_object_get(file.header, tensor->name);
        good = entry && sl_layout_find(&file, tensor->name, entry, &place) == 0;
        found =
            good ? crc32_z(sl_layout_add_head(found, tensor), file.data + place.begin, place.bytes)
                 : 0;
    }
    sl_layout_unmap(&file);
    return good && found == crc;
}

/* Write the checkpoint to a file. Return whether the file took every byte. *crc: checksum of the
 * description and the tensors. */
static bool write_file(FILE *file, const struct sl_checkpoint *checkpoint, const char *header,
                       const char *description, uLong *crc)
{
    struct sl_checkpoint_sink sink = {.file = file, .crc = sl_layout_add_text(0, description)};
    write_header(&sink, header);
    for (int t = 0; t < checkpoint->count; t++) {
        const struct sl_tensor *tensor = &checkpoint->tensors[t];
        sink.crc = sl_layout_add_head(sink.crc, tensor);
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

int sl_checkpoint_check_alike(struct sl_runtime *rt, const struct sl_checkpoint *checkpoint,
                              const char *name)
{
    struct sl_alike alike = {.count = 0};
    sl_alike_add(&alike, "numbers in the checkpoint", checkpoint->checksum, "checkpoint");
    return sl_error_about(
        sl_alike_check(rt, &alike, SL_ERR_DATA, "the same checkpoint on all ranks"), name);
}
