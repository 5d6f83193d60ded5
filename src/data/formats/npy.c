#include "data/formats/npy.h"
#include "core/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alike.h"
#include "core/error.h"
#include "core/file.h"

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        c->at++;
}

static bool take(struct cursor *c, char expected)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != expected)
        return false;
    c->at++;
    return true;
}

static bool take_string(struct cursor *c, char *out, size_t size)
{
    const char quote = take(c, '\'') ? '\'' : '"';
    if (quote == '"' && !take(c, '"'))
        return false;
    size_t length = 0;
    while (c->at < c->end && *c->at != quote && length + 1 < size)
        out[length++] = *c->at++;
    out[length] = '\0';
    return take(c, quote);
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t length = strlen(word);
    if (!take(c, *word) || (size_t)(c->end - c->at) < length - 1 ||
        memcmp(c->at, word + 1, length - 1) != 0)
        return false;
    c->at += length - 1;
    return true;
}

static bool take_count(struct cursor *c, int64_t *value)
{
    skip_blanks(c);
    const char *start = c->at;
    for (*value = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *c->at - '0', value))
            return false;
    const bool any = c->at > start;
    take(c, 'L'); /* Python 2 wrote long integers with an L */
    return any;
}

static bool take_shape(struct cursor *c, struct sl_npy *npy)
{
    if (!take(c, '('))
        return false;
    npy->count = 1;
    for (npy->dims = 0; !take(c, ')'); npy->dims++) {
        if (npy->dims == SL_NPY_MAX_DIMS || !take_count(c, &npy->shape[npy->dims]) ||
            __builtin_mul_overflow(npy->count, npy->shape[npy->dims], &npy->count))
            return false;
        if (!take(c, ',') && (c->at == c->end || *c->at != ')'))
            return false;
    }
    return true;
}

static bool take_dictionary(struct cursor *c, struct sl_npy *npy, char *descr, size_t descr_size)
{
    bool has_descr = false, has_order = false, has_shape = false;
    char key[24];
    if (!take(c, '{'))
        return false;
    while (!take(c, '}')) {
        if (!take_string(c, key, sizeof key) || !take(c, ':'))
            return false;
        if (strcmp(key, "descr") == 0) {
            has_descr = take_string(c, descr, descr_size);
        } else if (strcmp(key, "fortran_order") == 0) {
            npy->fortran_order = take_word(c, "True");
            has_order = npy->fortran_order || take_word(c, "False");
        } else if (strcmp(key, "shape") == 0) {
            has_shape = take_shape(c, npy);
        } else {
            return false;
        }
        if (!take(c, ',') && (c->at == c->end || *c->at != '}'))
            return false;
    }
    return has_descr && has_order && has_shape;
}

/* Parse a type: byte order, kind, bytes per item (characters for 'U'). */
static int parse_descr(const char *descr, struct sl_npy *npy)
{
    char order = 0, kind = 0, rest = 0;
    unsigned size = 0;
    const int fields = sscanf(descr, "%c%c%9u%c", &order, &kind, &size, &rest);
    if (fields >= 2 && kind == 'O')
        return sl_error(SL_ERR_DATA,
                        "%s: holds pickled Python objects, which are not read; expected a plain "
                        "array of numbers",
                        npy->name);
    if (fields != 3)
        return sl_error(SL_ERR_DATA, "%s: type '%s' is not read", npy->name, descr);
    if (order == '>')
        return sl_error(SL_ERR_DATA, "%s: type '%s' is big endian; expected little endian",
                        npy->name, descr);
    const bool power = size == 1 || size == 2 || size == 4 || size == 8;
    const bool known = (kind == 'b' && size == 1) || ((kind == 'i' || kind == 'u') && power) ||
                       (kind == 'f' && power && size > 1) || kind == 'S' || kind == 'U';
    if ((order != '<' && order != '|') || !known)
        return sl_error(SL_ERR_DATA, "%s: type '%s' is not read; expected bool, integer or float",
                        npy->name, descr);
    npy->kind = kind;
    npy->item_bytes = kind == 'U' ? (size_t)size * 4 : size;
    return SL_OK;
}

/* Find the dictionary: its length is in two bytes in version 1, in four in 2 and 3. */
static int find_header(const char *name, const unsigned char *bytes, size_t size, struct cursor *c)
{
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return sl_error(SL_ERR_DATA, "%s: is not a .npy file (bad magic)", name);
    const unsigned version = bytes[6];
    if (version < 1 || version > 3)
        return sl_error(SL_ERR_DATA, "%s: .npy version %u is not read; expected 1, 2 or 3", name,
                        version);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8, start = 10;
    if (version > 1) {
        if (size < 12)
            return sl_error(SL_ERR_DATA, "%s: truncated in its header", name);
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        start = 12;
    }
    if (length > size - start)
        return sl_error(SL_ERR_DATA, "%s: truncated in its header", name);
    c->at = (const char *)bytes + start;
    c->end = c->at + length;
    return SL_OK;
}

int sl_npy_parse_header(const char *name, const void *bytes, size_t have, size_t size,
                        struct sl_npy *out)
{
    struct cursor header = {0};
    int rc = find_header(name, bytes, have, &header);
    if (rc)
        return rc;
    char descr[32];
    const unsigned char *data = (const unsigned char *)header.end;
    *out = (struct sl_npy){.name = name, .data = data};
    if (!take_dictionary(&header, out, descr, sizeof descr))
        return sl_error(SL_ERR_DATA, "%s: its .npy header is not that of a plain array", name);
    out->fortran_order = out->fortran_order && out->dims > 1;
    rc = parse_descr(descr, out);
    if (rc)
        return rc;
    const size_t held = size - (size_t)(data - (const unsigned char *)bytes);
    size_t needed;
    if (__builtin_mul_overflow((size_t)out->count, out->item_bytes, &needed) || held < needed)
        return sl_error(SL_ERR_DATA,
                        "%s: truncated: has %zu bytes of data, its header announces %" PRId64
                        " items of %zu bytes",
                        name, held, out->count, out->item_bytes);
    if (held > needed)
        return sl_error(SL_ERR_DATA, "%s: has %zu bytes of data, its header announces only %zu",
                        name, held, needed);
    return SL_OK;
}

int sl_npy_parse(const char *name, const void *bytes, size_t size, struct sl_npy *out)
{
    return sl_npy_parse_header(name, bytes, size, size, out);
}

/* Return a hash that identifies a file. Hosts that share a file system give a file the same inode,
 * size and time, but the device another number. */
static uint64_t identify(const struct stat *info)
{
    const int64_t marks[] = {(int64_t)info->st_ino, (int64_t)info->st_size,
                             (int64_t)info->st_mtim.tv_sec, (int64_t)info->st_mtim.tv_nsec};
    return sl_alike_hash(1, marks, sizeof marks) | 1;
}

int sl_npy_map(const char *path, struct sl_block **blocks, struct sl_npy *out)
{
    struct stat info;
    size_t size;
    void *base;
    const int mapped = sl_file_map(path, "a .npy array", &base, &size, &info);
    if (mapped)
        return mapped;
    if (size == 0)
        return sl_error(SL_ERR_DATA, "%s: is empty (expected a .npy array)", path);
    const int rc = sl_block_adopt(blocks, base, size, true);
    if (rc)
        return rc;
    const char *name = sl_block_print(blocks, "%s", path);
    const int code = name ? sl_npy_parse(name, base, size, out) : SL_ERR_SYSTEM;
    out->file = identify(&info);
    return code;
}

int sl_npy_expect(const struct sl_npy *npy, int dims)
{
    return npy->dims == dims ? SL_OK
                             : sl_error(SL_ERR_DATA, "%s: has %d dimension%s, expected %d",
                                        npy->name, npy->dims, sl_s(npy->dims), dims);
}

static double half_to_double(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value;
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -value : value;
}

/* Kind and size of a type as one number, for a switch. */
#define TYPE(kind, bytes) ((kind)*16 + (int)(bytes))

#define LOAD(type)                                                             \
    ({                                                                         \
        type loaded;                                                           \
        memcpy(&loaded, npy->data + (size_t)k * sizeof loaded, sizeof loaded); \
        loaded;                                                                \
    })

/* Return the place of element (row, col) of a matrix in Fortran order. */
static int64_t fortran_place(const struct sl_npy *npy, int64_t row, int64_t col)
{
    return col * npy->shape[0] + row;
}

/* Return the place of element k. */
static int64_t place(const struct sl_npy *npy, int64_t k)
{
    const int64_t cols = npy->fortran_order ? npy->shape[1] : 1;
    return npy->fortran_order ? fortran_place(npy, k / cols, k % cols) : k;
}

/* Return the item at place k of the file. */
static double load(const struct sl_npy *npy, int64_t k)
{
    switch (TYPE(npy->kind, npy->item_bytes)) {
    case TYPE('b', 1):
        return LOAD(uint8_t) != 0;
    case TYPE('i', 1):
        return LOAD(int8_t);
    case TYPE('i', 2):
        return LOAD(int16_t);
    case TYPE('i', 4):
        return LOAD(int32_t);
    case TYPE('i', 8):
        return (double)LOAD(int64_t);
    case TYPE('u', 1):
        return LOAD(uint8_t);
    case TYPE('u', 2):
        return LOAD(uint16_t);
    case TYPE('u', 4):
        return LOAD(uint32_t);
    case TYPE('u', 8):
        return (double)LOAD(uint64_t);
    case TYPE('f', 2):
        return half_to_double(LOAD(uint16_t));
    case TYPE('f', 4):
        return LOAD(float);
    case TYPE('f', 8):
        return LOAD(double);
    default:
        return NAN; /* text; callers have refused it */
    }
}

double sl_npy_get(const struct sl_npy *npy, int64_t k)
{
    return load(npy, place(npy, k));
}

/* Set *value to element k exactly; return false where it is no 64-bit integer. */
static bool get_int64(const struct sl_npy *npy, int64_t element, int64_t *value)
{
    const int64_t k = place(npy, element);
    if (npy->item_bytes == 8 && npy->kind == 'i') {
        *value = LOAD(int64_t);
        return true;
    }
    if (npy->item_bytes == 8 && npy->kind == 'u') {
        const uint64_t item = LOAD(uint64_t);
        *value = (int64_t)item;
        return item <= INT64_MAX;
    }
    const double item = load(npy, k); /* exact: all other types fit a double */
    if (!(fabs(item) < 0x1p63) || item != floor(item))
        return false;
    *value = (int64_t)item;
    return true;
}

int64_t sl_npy_integer(const struct sl_npy *npy, int64_t k)
{
    int64_t value;
    return get_int64(npy, k, &value) ? value : INT64_MIN;
}

/* ---- Text ---- */

bool sl_npy_is_text(const struct sl_npy *npy)
{
    return npy->kind == 'S' || npy->kind == 'U';
}

/* Write a code point as UTF-8; write U+FFFD for an invalid one. Return the length. */
static size_t encode(uint32_t code, char *out)
{
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        code = 0xFFFD;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (int b = more; b > 0; b--, code >>= 6)
        out[b] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(0xFF00 >> (more + 1) | (int)code);
    return (size_t)more + 1;
}

size_t sl_npy_text(const struct sl_npy *npy, int64_t k, char *out)
{
    const unsigned char *item = npy->data + (size_t)place(npy, k) * npy->item_bytes;
    size_t length = 0;
    if (npy->kind == 'S') {
        length = strnlen((const char *)item, npy->item_bytes);
        memcpy(out, item, length);
    } else {
        for (size_t b = 0; b < npy->item_bytes; b += 4) {
            uint32_t code;
            memcpy(&code, item + b, sizeof code);
            if (code == 0)
                break;
            length += encode(code, out + length);
        }
    }
    out[length] = '\0';
    return length;
}

void sl_npy_descr(const struct sl_npy *npy, char descr[24])
{
    const size_t size = npy->kind == 'U' ? npy->item_bytes / 4 : npy->item_bytes;
    snprintf(descr, 24, "%c%c%zu", npy->kind == 'S' || npy->item_bytes == 1 ? '|' : '<', npy->kind,
             size);
}

/* ---- Copies ---- */

static const struct {
    char kind;
    size_t bytes;
} types[] = {
    [SL_NPY_INT32] = {'i', sizeof(int32_t)},
    [SL_NPY_INT64] = {'i', sizeof(int64_t)},
    [SL_NPY_FLOAT32] = {'f', sizeof(float)},
};

size_t sl_npy_type_bytes(enum sl_npy_type type)
{
    return types[type].bytes;
}

static bool is_stored_as(const struct sl_npy *npy, enum sl_npy_type type)
{
    return npy->kind == types[type].kind && npy->item_bytes == types[type].bytes &&
           !npy->fortran_order;
}

static int refuse_item(const struct sl_npy *npy, int64_t k, int bits)
{
    return sl_error(SL_ERR_DATA, "%s: element %" PRId64 " is %g, expected a %d-bit integer",
                    npy->name, k, sl_npy_get(npy, k), bits);
}

static int copy_int64(const struct sl_npy *npy, int64_t first, int64_t count, int64_t *out)
{
    for (int64_t k = 0; k < count; k++)
        if (!get_int64(npy, first + k, &out[k]))
            return refuse_item(npy, first + k, 64);
    return SL_OK;
}

static int copy_int32(const struct sl_npy *npy, int64_t first, int64_t count, int32_t *out)
{
    for (int64_t k = 0; k < count; k++) {
        int64_t item;
        if (!get_int64(npy, first + k, &item) || item < INT32_MIN || item > INT32_MAX)
            return refuse_item(npy, first + k, 32);
        out[k] = (int32_t)item;
    }
    return SL_OK;
}

/* Copy rows of a matrix in Fortran order: `row`, or, where that is NULL, rows from `first` on. Go
 * by tiles of columns, so that reads and writes follow cache lines. */
static void copy_fortran(const struct sl_npy *npy, const int32_t *row, int64_t first, int64_t count,
                         float *out)
{
    enum { ROWS = 256, COLS = 16 };
    const int64_t cols = npy->shape[1];
    for (int64_t k0 = 0; k0 < count; k0 += ROWS)
        for (int64_t j0 = 0; j0 < cols; j0 += COLS)
            for (int64_t k = k0; k < count && k < k0 + ROWS; k++)
                for (int64_t j = j0; j < cols && j < j0 + COLS; j++)
                    out[k * cols + j] =
                        (float)load(npy, fortran_place(npy, row ? row[k] : first + k, j));
}

static int copy_float32(const struct sl_npy *npy, int64_t first, int64_t count, float *out)
{
    const int64_t cols = npy->fortran_order ? npy->shape[1] : 0;
    if (cols > 0 && first % cols == 0 && count % cols == 0) {
        copy_fortran(npy, NULL, first / cols, count / cols, out);
        return SL_OK;
    }
    for (int64_t k = 0; k < count; k++)
        out[k] = (float)sl_npy_get(npy, first + k);
    return SL_OK;
}

int sl_npy_copy(const struct sl_npy *npy, enum sl_npy_type type, int64_t first, int64_t count,
                void *out)
{
    if (sl_npy_is_text(npy))
        return sl_error(SL_ERR_DATA, "%s: holds text, expected numbers", npy->name);
    if (count == 0) /* an empty array has no address */
        return SL_OK;
    if (is_stored_as(npy, type)) {
        memcpy(out, npy->data + (size_t)first * npy->item_bytes, (size_t)count * npy->item_bytes);
        return SL_OK;
    }
    return type == SL_NPY_INT64   ? copy_int64(npy, first, count, out)
           : type == SL_NPY_INT32 ? copy_int32(npy, first, count, out)
                                  : copy_float32(npy, first, count, out);
}

int sl_npy_copy_rows(const struct sl_npy *npy, enum sl_npy_type type, const int32_t *row,
                     int64_t count, void *out)
{
    const int64_t width = npy->dims == 2 ? npy->shape[1] : 1;
    const size_t bytes = (size_t)width * types[type].bytes;
    if (npy->fortran_order && type == SL_NPY_FLOAT32 && !sl_npy_is_text(npy)) {
        copy_fortran(npy, row, 0, count, out);
        return SL_OK;
    }
    int rc = SL_OK;
    for (int64_t k = 0; !rc && k < count; k++)
        rc = sl_npy_copy(npy, type, row[k] * width, width, (char *)out + (size_t)k * bytes);
    return rc;
}

const void *sl_npy_find(const struct sl_npy *npy, enum sl_npy_type type, int64_t first)
{
    const bool in_place = is_stored_as(npy, type) && (uintptr_t)npy->data % npy->item_bytes == 0;
    return in_place ? npy->data + (size_t)first * npy->item_bytes : NULL;
}

int sl_npy_take(const struct sl_npy *npy, enum sl_npy_type type, int64_t first, int64_t count,
                struct sl_block **blocks, void *out)
{
    const void *items = sl_npy_find(npy, type, first);
    void *copy = items ? NULL : sl_block_array(blocks, count, types[type].bytes);
    if (!items && !copy)
        return SL_ERR_SYSTEM;
    const void *taken = items ? items : copy;
    memcpy(out, &taken, sizeof taken);
    return items ? SL_OK : sl_npy_copy(npy, type, first, count, copy);
}

struct sl_npy sl_npy_view(const char *name, enum sl_npy_type type, int dims, int64_t rows,
                          int64_t cols, const void *data)
{
    return (struct sl_npy){.name = name,
                           .kind = types[type].kind,
                           .item_bytes = types[type].bytes,
                           .dims = dims,
                           .shape = {rows, cols},
                           .count = dims == 2 ? rows * cols : rows,
                           .data = data ? data : (const void *)""}; /* "" for an empty array */
}

size_t sl_npy_header(char *header, size_t size, const char *descr, int dims, const int64_t *shape)
{
    enum { PREFIX = 10 };
    size_t at = PREFIX;
    at += (size_t)snprintf(header + at, size - at,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < dims; d++)
        at +=
            (size_t)snprintf(header + at, size - at, d == 0 ? "%" PRId64 : ", %" PRId64, shape[d]);
    at += (size_t)snprintf(header + at, size - at, dims == 1 ? ",), }" : "), }");
    const size_t total = (at + 1 + 63) / 64 * 64; /* one byte for the newline that ends it */
    memset(header + at, ' ', total - at);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - PREFIX) & 255);
    header[9] = (char)((total - PREFIX) >> 8);
    return total;
}

bool sl_npy_put(FILE *file, const char *descr, size_t item_bytes, int dims, const int64_t *shape,
                const void *data)
{
    char header[512];
    const size_t header_bytes = sl_npy_header(header, sizeof header, descr, dims, shape);
    size_t count = 1;
    for (int d = 0; d < dims; d++)
        count *= (size_t)shape[d];
    return fwrite(header, 1, header_bytes, file) == header_bytes &&
           (count == 0 || fwrite(data, item_bytes, count, file) == count);
}

int sl_npy_write(const char *path, const char *descr, size_t item_bytes, int dims,
                 const int64_t *shape, const void *data)
{
    struct sl_new_file new_file;
    if (sl_file_create(&new_file, path))
        return SL_ERR_SYSTEM;
    const bool good = sl_npy_put(new_file.file, descr, item_bytes, dims, shape, data);
    return sl_file_commit(&new_file, good);
}
