/* Read variables of MATLAB files of level 5 ("MAT-File Format", MathWorks). A file is a list of
 * arrays, each of elements with a type and a size. An array may be compressed. A size in the file
 * never decides how much memory is taken: it is compared with the file's bytes before. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/matlab.h"

/* ---- The header ---- */

enum { HEADER = 128, TAG = 8, VERSION_AT = 124 };

bool sl_matlab_sniff(const char *head, size_t bytes)
{
    return bytes >= HEADER && memcmp(head, "MATLAB 5.0 MAT-file", 19) == 0;
}

static uint32_t read_word(const unsigned char *bytes, bool little)
{
    uint32_t word = 0;
    for (int k = 0; k < 4; k++)
        word = word << 8 | bytes[little ? 3 - k : k];
    return word;
}

static int check_header(const char *path, const unsigned char *header, size_t bytes, bool *little)
{
    if (bytes >= 8 && memcmp(header, "\x89HDF\r\n\x1a\n", 8) == 0)
        return sl_error(SL_ERR_DATA, "%s: is HDF5, expected a MATLAB file of level 5 (save -v7)",
                        path);
    if (bytes < HEADER)
        return sl_error(SL_ERR_DATA,
                        "%s: has %zu bytes, expected the 128 of a MATLAB file's header", path,
                        bytes);
    *little = memcmp(header + VERSION_AT + 2, "IM", 2) == 0;
    if (!*little && memcmp(header + VERSION_AT + 2, "MI", 2) != 0)
        return sl_error(SL_ERR_DATA,
                        "%s: is no MATLAB file of level 5: bytes 126 and 127 are not "
                        "\"IM\" or \"MI\"",
                        path);
    const int major = header[VERSION_AT + *little];
    if (major != 1)
        return sl_error(SL_ERR_DATA, "%s: is a MATLAB file of version %d, expected 1 (save -v7)",
                        path, major);
    return SL_OK;
}

/* ---- Types of elements ---- */

enum {
    INT8 = 1,
    UINT8,
    INT16,
    UINT16,
    INT32,
    UINT32,
    SINGLE,
    DOUBLE = 9,
    INT64 = 12,
    UINT64,
    MATRIX,
    COMPRESSED,
    UTF8
};

/* Return the bytes of a number of the type; 0: the type has no numbers. */
static uint32_t size_of(uint32_t type)
{
    static const unsigned char size[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
    return type < sizeof size ? size[type] : 0;
}

double sl_matlab_number(const struct sl_matlab_variable *v, int64_t k)
{
    switch (v->type) {
    case INT8:
        return ((const int8_t *)v->data)[k];
    case UINT8:
        return ((const uint8_t *)v->data)[k];
    case INT16:
        return ((const int16_t *)v->data)[k];
    case UINT16:
        return ((const uint16_t *)v->data)[k];
    case INT32:
        return ((const int32_t *)v->data)[k];
    case UINT32:
        return ((const uint32_t *)v->data)[k];
    case SINGLE:
        return (double)((const float *)v->data)[k];
    case INT64:
        return (double)((const int64_t *)v->data)[k];
    case UINT64:
        return (double)((const uint64_t *)v->data)[k];
    default:
        return ((const double *)v->data)[k];
    }
}

static void turn_bytes(void *data, int64_t count, uint32_t size)
{
    unsigned char *item = data;
    for (; count > 0; count--, item += size)
        for (uint32_t k = 0; k < size / 2; k++) {
            const unsigned char byte = item[k];
            item[k] = item[size - 1 - k];
            item[size - 1 - k] = byte;
        }
}

static bool is_little_here(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

/* ---- The bytes of an array ---- */

struct array {
    FILE *file;
    int64_t stored; /* bytes of the variable left in the file */
    uint64_t left;  /* bytes left in the array */
    bool compressed, little, no_memory;
    z_stream stream;
    unsigned char packed[1 << 14];
};

static size_t read_plain(struct array *a, unsigned char *to, size_t count)
{
    const size_t wanted = (int64_t)count < a->stored ? count : (size_t)a->stored;
    const size_t got = fread(to, 1, wanted, a->file);
    a->stored -= (int64_t)got;
    return got;
}

/* Set *state to what inflate has returned last. */
static size_t read_compressed(struct array *a, unsigned char *to, size_t count, int *state)
{
    a->stream.next_out = to;
    a->stream.avail_out = (uInt)count;
    *state = Z_OK;
    do {
        if (a->stream.avail_in == 0) {
            a->stream.next_in = a->packed;
            a->stream.avail_in = (uInt)read_plain(a, a->packed, sizeof a->packed);
        }
        *state = inflate(&a->stream, Z_NO_FLUSH);
    } while (*state == Z_OK && a->stream.avail_out > 0);
    a->no_memory = a->no_memory || *state == Z_MEM_ERROR;
    return count - a->stream.avail_out;
}

static bool read_all(struct array *a, void *to, uint64_t count)
{
    enum { MOST = 1 << 30 }; /* zlib counts in 32 bits */
    unsigned char *at = to;
    int state;
    for (uint64_t now; count > 0; count -= now, at += now) {
        now = count < MOST ? count : MOST;
        if ((a->compressed ? read_compressed(a, at, now, &state) : read_plain(a, at, now)) != now)
            return false;
    }
    return true;
}

static bool skip(struct array *a, uint64_t count)
{
    unsigned char part[1 << 14];
    bool good = true;
    for (uint64_t now; good && count > 0; count -= now) {
        now = count < sizeof part ? count : sizeof part;
        good = read_all(a, part, now);
    }
    return good;
}

static void *allocate(struct array *a, uint64_t bytes)
{
    void *memory = calloc(1, bytes + 1);
    a->no_memory = a->no_memory || !memory;
    return memory;
}

/* Begin the array of a variable. */
static bool begin(struct array *a, FILE *file, bool little, const struct sl_matlab_variable *v)
{
    unsigned char tag[TAG];
    *a = (struct array){.file = file,
                        .stored = v->bytes,
                        .left = (uint64_t)v->bytes,
                        .little = little,
                        .compressed = v->compressed};
    if (fseeko(file, v->at, SEEK_SET) != 0)
        return false;
    if (!v->compressed)
        return true;
    a->no_memory = inflateInit(&a->stream) != Z_OK;
    if (a->no_memory || !read_all(a, tag, TAG) || read_word(tag, little) != MATRIX)
        return false;
    a->left = read_word(tag + 4, little);
    return a->left <= SL_MATLAB_INFLATED * (uint64_t)v->bytes;
}

/* Skip the rest of the array. Return whether the checksum of a compressed array is right. */
static bool finish(struct array *a)
{
    unsigned char none;
    int state = Z_STREAM_END;
    return skip(a, a->left) &&
           (!a->compressed || (read_compressed(a, &none, 1, &state) == 0 && state == Z_STREAM_END));
}

/* ---- Elements ---- */

struct element {
    uint32_t type;
    uint64_t bytes;
    bool small; /* the bytes are in the tag */
    unsigned char in_tag[4];
};

static bool next(struct array *a, struct element *e)
{
    unsigned char tag[TAG];
    if (a->left < TAG || !read_all(a, tag, TAG))
        return false;
    a->left -= TAG;
    const uint32_t type = read_word(tag, a->little);
    *e = (struct element){type, read_word(tag + 4, a->little), type >> 16, {0}};
    if (e->small) {
        e->type = type & 0xffff;
        e->bytes = type >> 16;
        memcpy(e->in_tag, tag + 4, sizeof e->in_tag);
    }
    return e->bytes <= (e->small ? sizeof e->in_tag : a->left);
}

/* Read the first `count` bytes of an element, and skip its others. */
static bool take(struct array *a, const struct element *e, void *to, uint64_t count)
{
    if (e->small) {
        memcpy(to, e->in_tag, count < sizeof e->in_tag ? count : sizeof e->in_tag);
        return true;
    }
    const uint64_t padded = (e->bytes + 7) / 8 * 8, all = padded < a->left ? padded : a->left;
    a->left -= all;
    return read_all(a, to, count) && skip(a, all - count);
}

/* Read the numbers of an element: set *data, which the caller frees, and *count. */
static bool take_numbers(struct array *a, const struct element *e, uint32_t type, int64_t *count,
                         void **data)
{
    const uint32_t size = size_of(type);
    if (size == 0 || e->bytes % size != 0)
        return false;
    *count = (int64_t)(e->bytes / size);
    *data = allocate(a, e->bytes);
    if (!*data || !take(a, e, *data, e->bytes))
        return false;
    if (a->little != is_little_here())
        turn_bytes(*data, *count, size);
    return true;
}

static bool take_words(struct array *a, int64_t *count, int32_t **words)
{
    struct element e;
    void *data = NULL;
    const bool good = next(a, &e) && (e.type == INT32 || e.type == UINT32) &&
                      take_numbers(a, &e, e.type, count, &data);
    *words = data;
    return good;
}

/* ---- What a variable is ---- */

enum { OPAQUE = 17, MOST_NAME = 4096 };

static bool take_flags(struct array *a, struct sl_matlab_variable *v)
{
    enum { LOGICAL = 0x200, COMPLEX = 0x800 };
    struct element e;
    unsigned char flags[8];
    if (!next(a, &e) || e.type != UINT32 || e.bytes != sizeof flags || !take(a, &e, flags, 8))
        return false;
    const uint32_t word = read_word(flags, a->little);
    v->class = (int)(word & 0xff);
    v->complex = word & COMPLEX;
    v->logical = word & LOGICAL;
    return v->class > 0;
}

static bool take_sizes(struct array *a, struct sl_matlab_variable *v)
{
    struct element e;
    unsigned char sizes[8];
    if (!next(a, &e) || (e.type != INT32 && e.type != UINT32) || e.bytes < sizeof sizes ||
        e.bytes % 4 != 0 || !take(a, &e, sizes, sizeof sizes))
        return false;
    v->dimensions = (int64_t)(e.bytes / 4);
    v->rows = read_word(sizes, a->little);
    v->cols = read_word(sizes + 4, a->little);
    return true;
}

static bool take_name(struct array *a, struct sl_matlab_variable *v)
{
    struct element e;
    if (!next(a, &e) || (e.type != INT8 && e.type != UTF8) || e.bytes > MOST_NAME)
        return false;
    v->name = allocate(a, e.bytes);
    return v->name && take(a, &e, v->name, e.bytes);
}

/* Read class, sizes and name. Objects have other elements, and their names are not read. */
static bool describe(struct array *a, struct sl_matlab_variable *v)
{
    if (!take_flags(a, v))
        return false;
    return v->class >= OPAQUE || (take_sizes(a, v) && take_name(a, v));
}

/* Read a variable's description or, with `data`, its data. */
static int read_variable(const struct sl_matlab *file, struct sl_matlab_variable *v,
                         bool (*data)(struct array *a, struct sl_matlab_variable *v))
{
    struct array *a = malloc(sizeof *a);
    struct sl_matlab_variable same = {0};
    bool good = a && begin(a, file->file, file->little, v);
    if (good && data) {
        good = describe(a, &same) && data(a, v) && finish(a);
        free(same.name);
    } else if (good) {
        good = describe(a, v);
    }
    const bool no_memory = !a || a->no_memory;
    if (a)
        inflateEnd(&a->stream);
    free(a);
    if (no_memory)
        return sl_error(SL_ERR_SYSTEM, "no memory for a variable of %s", file->path);
    return good ? SL_OK
                : sl_error(SL_ERR_DATA,
                           "%s: byte %" PRId64 ": variable '%s' is damaged: its elements do not "
                           "have the types and sizes that MATLAB writes",
                           file->path, v->at - TAG, sl_matlab_name(v));
}

/* ---- Data ---- */

static bool take_values(struct array *a, struct sl_matlab_variable *v, int64_t entries)
{
    struct element e;
    if (!next(a, &e))
        return false;
    /* True and false of a sparse matrix are bytes, which MATLAB calls doubles. */
    const bool bytes = v->class == SL_MATLAB_SPARSE && v->logical && e.type == DOUBLE &&
                       (e.bytes == (uint64_t)v->entries || e.bytes == (uint64_t)entries);
    v->type = bytes ? UINT8 : e.type;
    v->taken += (int64_t)e.bytes;
    return take_numbers(a, &e, v->type, &v->count, &v->data) && v->count >= entries;
}

static bool take_data(struct array *a, struct sl_matlab_variable *v)
{
    if (v->class != SL_MATLAB_SPARSE)
        return take_values(a, v, v->rows * v->cols) && v->count == v->rows * v->cols;
    int64_t starts = 0;
    if (!take_words(a, &v->entries, &v->row) || !take_words(a, &starts, &v->start) ||
        starts != v->cols + 1 || v->start[v->cols] < 0 || v->start[v->cols] > v->entries)
        return false;
    v->taken = (v->entries + starts) * (int64_t)sizeof *v->row;
    if (!take_values(a, v, v->start[v->cols]))
        return false;
    v->entries = v->start[v->cols];
    return true;
}

int sl_matlab_load(const struct sl_matlab *file, struct sl_matlab_variable *v)
{
    return read_variable(file, v, take_data);
}

void sl_matlab_unload(struct sl_matlab_variable *v)
{
    free(v->data);
    free(v->row);
    free(v->start);
    v->data = v->row = v->start = NULL;
}

/* ---- The file ---- */

static int add_variable(struct sl_matlab *file, const struct sl_matlab_variable *v)
{
    struct sl_matlab_variable *more =
        realloc(file->variable, (size_t)(file->count + 1) * sizeof *more);
    if (!more)
        return sl_error(SL_ERR_SYSTEM, "no memory for the variables of %s", file->path);
    file->variable = more;
    file->variable[file->count++] = *v;
    return read_variable(file, &file->variable[file->count - 1], NULL);
}

/* Go from variable to variable by their lengths. */
static int list_variables(struct sl_matlab *file)
{
    unsigned char tag[TAG];
    int rc = SL_OK;
    for (int64_t at = HEADER; !rc && at < file->bytes;) {
        fseeko(file->file, at, SEEK_SET);
        const bool whole = fread(tag, 1, TAG, file->file) == TAG;
        const uint32_t type = read_word(tag, file->little),
                       bytes = read_word(tag + 4, file->little);
        if (whole && type != MATRIX && type != COMPRESSED)
            return sl_error(SL_ERR_DATA,
                            "%s: byte %" PRId64 ": variable %d has type %" PRIu32
                            ", expected 14 (a matrix) or 15 (compressed)",
                            file->path, at, file->count + 1, type);
        if (!whole || file->bytes - at - TAG < bytes)
            return sl_error(SL_ERR_DATA,
                            "%s: byte %" PRId64 ": variable %d is truncated, expected %" PRIu32
                            " bytes",
                            file->path, at, file->count + 1, whole ? bytes : (uint32_t)TAG);
        rc = add_variable(file, &(struct sl_matlab_variable){.at = at + TAG,
                                                             .bytes = bytes,
                                                             .compressed = type == COMPRESSED});
        at += TAG + (int64_t)bytes;
    }
    return rc;
}

int sl_matlab_open(struct sl_matlab *file, const char *path)
{
    unsigned char header[HEADER];
    const char *why;
    *file = (struct sl_matlab){.path = path, .file = sl_file_stream(path, &why)};
    if (!file->file)
        return sl_error(SL_ERR_DATA, "%s: %s", path, why);
    const size_t got = fread(header, 1, HEADER, file->file);
    const int rc = check_header(path, header, got, &file->little);
    if (rc)
        return rc;
    fseeko(file->file, 0, SEEK_END);
    file->bytes = ftello(file->file);
    return list_variables(file);
}

void sl_matlab_close(struct sl_matlab *file)
{
    for (int k = 0; k < file->count; k++) {
        sl_matlab_unload(&file->variable[k]);
        free(file->variable[k].name);
    }
    free(file->variable);
    if (file->file)
        fclose(file->file);
}
