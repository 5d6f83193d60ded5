#include "data/formats/npz_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zip.h>

#include "core/error.h"
#include "core/file.h"

enum { NAME_BYTES = 64 };

int sl_npz_open(struct sl_npz *npz, const char *path, struct sl_block **blocks)
{
    const char *why;
    struct stat info;
    int code;
    *npz = (struct sl_npz){.path = path, .blocks = blocks};
    const int file = sl_file_open(path, &why);
    if (file < 0)
        return sl_error(SL_ERR_DATA, "%s: %s (expected a .npz archive)", path, why);
    npz->bytes = fstat(file, &info) == 0 ? (uint64_t)info.st_size : 0;
    npz->zip =
        zip_fdopen(file, ZIP_RDONLY, &code); /* takes the file where it can open the archive */
    if (!npz->zip) {
        zip_error_t error;
        close(file);
        zip_error_init_with_code(&error, code);
        const int rc =
            sl_error(SL_ERR_DATA, "%s: is no .npz archive: %s", path, zip_error_strerror(&error));
        zip_error_fini(&error);
        return rc;
    }
    return SL_OK;
}

void sl_npz_close(struct sl_npz *npz)
{
    if (npz->zip)
        zip_discard(npz->zip);
    npz->zip = NULL;
}

static zip_int64_t locate(const struct sl_npz *npz, const char *array)
{
    char member[NAME_BYTES + 4];
    snprintf(member, sizeof member, "%s.npy", array);
    return zip_name_locate(npz->zip, member, 0);
}

bool sl_npz_has(const struct sl_npz *npz, const char *array)
{
    return locate(npz, array) >= 0;
}

/* Return whether the archive's sizes are plausible. A stream longer than the file, or a size that
 * deflate cannot make of it, would use up the memory. */
static bool is_plausible(const struct sl_npz *npz, const zip_stat_t *info)
{
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    return (info->valid & needed) == needed && info->comp_size <= npz->bytes &&
           info->size / 1100 <= info->comp_size;
}

/* Find an array: its index, its bytes with the header, and its name in errors. */
static int find(const struct sl_npz *npz, const char *array, zip_uint64_t *index,
                zip_uint64_t *bytes, const char **name)
{
    *name = sl_block_print(npz->blocks, "%s: %s", npz->path, array);
    if (!*name)
        return SL_ERR_SYSTEM;
    const zip_int64_t at = locate(npz, array);
    if (at < 0)
        return sl_error(SL_ERR_DATA, "%s is missing in the archive", *name);
    zip_stat_t info;
    if (zip_stat_index(npz->zip, (zip_uint64_t)at, 0, &info) != 0 || !is_plausible(npz, &info))
        return sl_error(SL_ERR_DATA, "%s: damaged: its size is unknown or impossible", *name);
    *index = (zip_uint64_t)at;
    *bytes = info.size;
    return SL_OK;
}

static int open_member(const struct sl_npz *npz, zip_uint64_t index, const char *name,
                       zip_file_t **file)
{
    *file = zip_fopen_index(npz->zip, index, 0);
    return *file ? SL_OK
                 : sl_error(SL_ERR_DATA, "%s: cannot open: %s", name, zip_strerror(npz->zip));
}

/* Read all bytes; with `last`, try to read one byte more, because libzip checks the CRC at the end.
 */
static int read_bytes(zip_file_t *file, const char *name, void *bytes, zip_uint64_t size, bool last)
{
    char extra;
    zip_uint64_t have = 0;
    zip_int64_t got = 1;
    while (have < size && got > 0) {
        got = zip_fread(file, (char *)bytes + have, size - have);
        have += got > 0 ? (zip_uint64_t)got : 0;
    }
    return have == size && (!last || zip_fread(file, &extra, 1) == 0)
               ? SL_OK
               : sl_error(SL_ERR_DATA, "%s: truncated or damaged: %s", name,
                          zip_file_strerror(file));
}

int sl_npz_load(const struct sl_npz *npz, const char *array, struct sl_npy *npy)
{
    zip_uint64_t index = 0, size = 0;
    zip_file_t *file;
    const char *name;
    int rc = find(npz, array, &index, &size, &name);
    void *bytes = rc ? NULL : sl_block_alloc(npz->blocks, size);
    if (!bytes)
        return rc ? rc : SL_ERR_SYSTEM;
    rc = open_member(npz, index, name, &file);
    if (rc)
        return rc;
    rc = read_bytes(file, name, bytes, size, true);
    zip_fclose(file);
    return rc ? rc : sl_npy_parse(name, bytes, size, npy);
}

int sl_npz_check(const struct sl_npz *npz)
{
    const zip_int64_t members = zip_get_num_entries(npz->zip, 0);
    for (zip_int64_t k = 0; k < members; k++) {
        const char *member = zip_get_name(npz->zip, (zip_uint64_t)k, 0);
        char array[NAME_BYTES];
        const size_t length = member ? strlen(member) : 0;
        if (length < 5 || length >= sizeof array || strcmp(member + length - 4, ".npy") != 0)
            continue;
        snprintf(array, sizeof array, "%.*s", (int)length - 4, member);
        struct sl_npy npy;
        const int rc = sl_npz_load(npz, array, &npy);
        if (rc)
            return rc;
    }
    return SL_OK;
}

/* ---- In pieces ---- */

/* Return the bytes of a header that begins with these 12, as sl_npy_parse_header reads it. */
static zip_uint64_t header_bytes(const unsigned char *head)
{
    const zip_uint64_t low = (zip_uint64_t)head[8] | (zip_uint64_t)head[9] << 8;
    return head[6] == 1 ? 10 + low
                        : 12 + (low | (zip_uint64_t)head[10] << 16 | (zip_uint64_t)head[11] << 24);
}

static int read_header(struct sl_npz_stream *stream, const char *name, zip_uint64_t size)
{
    enum { START = 12, MOST = START + UINT16_MAX };
    unsigned char head[MOST];
    const zip_uint64_t start = size < START ? size : START;
    int rc = read_bytes(stream->file, name, head, start, false);
    if (rc)
        return rc;
    zip_uint64_t length = start == START ? header_bytes(head) : start;
    length = length < start ? start : length;
    if (length > size || length > MOST)
        return sl_error(SL_ERR_DATA,
                        "%s: truncated in its header (expected at most %d bytes of it)", name,
                        MOST);
    rc = read_bytes(stream->file, name, head + start, length - start, false);
    if (!rc)
        rc = sl_npy_parse_header(name, head, length, size, &stream->npy);
    stream->npy.data = NULL;
    return rc;
}

int sl_npz_stream_open(const struct sl_npz *npz, const char *array, struct sl_npz_stream *stream)
{
    zip_uint64_t index = 0, size = 0;
    const char *name;
    *stream = (struct sl_npz_stream){0};
    int rc = find(npz, array, &index, &size, &name);
    if (!rc)
        rc = open_member(npz, index, name, &stream->file);
    return rc ? rc : read_header(stream, name, size);
}

void sl_npz_stream_close(struct sl_npz_stream *stream)
{
    if (stream->file)
        zip_fclose(stream->file);
    stream->file = NULL;
}

int sl_npz_stream_read(struct sl_npz_stream *stream, int64_t count, int64_t *out)
{
    enum { PIECE = 4096, WIDEST = 8 };
    const struct sl_npy *npy = &stream->npy;
    unsigned char bytes[PIECE * WIDEST];
    if (npy->item_bytes > WIDEST || npy->fortran_order)
        return sl_error(SL_ERR_DATA, "%s: expected numbers, row by row", npy->name);
    while (count > 0) {
        const int64_t now = count < PIECE ? count : PIECE;
        const bool last = stream->next + now == npy->count;
        int rc = read_bytes(stream->file, npy->name, bytes, (size_t)now * npy->item_bytes, last);
        if (rc)
            return rc;
        struct sl_npy piece = *npy;
        piece.data = bytes;
        piece.dims = 1;
        piece.shape[0] = piece.count = now;
        if (out) {
            rc = sl_npy_copy(&piece, SL_NPY_INT64, 0, now, out);
            out += now;
        }
        if (rc)
            return rc;
        stream->next += now;
        count -= now;
    }
    return SL_OK;
}
