#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/error.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats/matlab.h"

/* ---- The file ---- */

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
    const int major = header[VERSION_AT + *little], minor = header[VERSION_AT + !*little];
    if (major != 1 || minor != 0) /* matio would read another minor version as level 4 */
        return sl_error(SL_ERR_DATA,
                        "%s: is a MATLAB file of version %d.%d, expected 1.0 (save -v7)", path,
                        major, minor);
    return SL_OK;
}

/* ---- The elements of a variable ---- */

/* matio takes as much memory as an element claims to have. So the claims are compared with the
 * file's bytes before matio reads them. */
enum { MATRIX = 14, COMPRESSED = 15 };

/* The bytes of a variable, which may be compressed. */
struct bytes {
    FILE *file;
    int64_t left; /* bytes left in the file */
    bool compressed, little;
    z_stream stream;
    unsigned char packed[1 << 14];
};

/* Read up to `count` bytes that the file stores uncompressed. */
static size_t read_plain(struct bytes *b, unsigned char *to, size_t count)
{
    const size_t wanted = (int64_t)count < b->left ? count : (size_t)b->left;
    const size_t got = fread(to, 1, wanted, b->file);
    b->left -= (int64_t)got;
    return got;
}

static size_t read_compressed(struct bytes *b, unsigned char *to, size_t count)
{
    b->stream.next_out = to;
    b->stream.avail_out = (uInt)count;
    int state = Z_OK;
    while (state == Z_OK && b->stream.avail_out > 0) {
        if (b->stream.avail_in == 0) {
            b->stream.next_in = b->packed;
            b->stream.avail_in = (uInt)read_plain(b, b->packed, sizeof b->packed);
        }
        state = inflate(&b->stream, Z_NO_FLUSH);
    }
    return count - b->stream.avail_out;
}

static bool read_exactly(struct bytes *b, unsigned char *to, size_t count)
{
    return (b->compressed ? read_compressed(b, to, count) : read_plain(b, to, count)) == count;
}

static bool skip(struct bytes *b, uint64_t count)
{
    unsigned char part[1 << 14];
    bool good = true;
    for (uint64_t now; good && count > 0; count -= now) {
        now = count < sizeof part ? count : sizeof part;
        good = read_exactly(b, part, (size_t)now);
    }
    return good;
}

/* Class, sizes and names' length, which the first elements of an array claim. */
struct claims {
    uint32_t class, name_length; /* name_length: bytes of each field's name in a structure */
    uint64_t items;
};

enum {
    CELL = 1,
    STRUCTURE = 2,
    OBJECT = 3,
    SPARSE = 5,
    DOUBLE = 6,
    UINT64 = 15,
    FUNCTION = 16,
    OPAQUE = 17
};
enum { FLAGS = 1, SIZES, NAME, NAME_LENGTH, FIELDS }; /* the order of elements */
enum { NUMBERS = NAME + 1, STARTS = NUMBERS + 1, DIMENSIONS = 32 };
enum { TEXT = 1, NUMBERS_32 = 5, WORDS = 6 }; /* types of elements */

static uint64_t times(uint64_t a, uint64_t b)
{
    return a > 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* Keep what element `number` says; `data` has its first bytes. */
static void keep_claims(struct claims *c, int number, const unsigned char *data, uint64_t bytes,
                        bool little)
{
    if (number == FLAGS && bytes >= 4)
        c->class = read_word(data, little) & 0xff;
    if (number == NAME_LENGTH && bytes >= 4)
        c->name_length = read_word(data, little);
    c->items = number == SIZES ? 1 : c->items;
    for (uint64_t k = 0; number == SIZES && k + 4 <= bytes; k += 4)
        c->items = times(c->items, read_word(data + k, little));
}

/* Return whether an element has whole numbers or characters of its type. */
static bool is_data(uint32_t type, uint64_t bytes)
{
    static const unsigned char size[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8, 0, 0, 1, 2, 4};
    return type < sizeof size && size[type] > 0 && bytes % size[type] == 0;
}

/* Return whether element `number` has the type and the size that matio takes for granted. */
static bool is_expected(const struct claims *c, int number, uint32_t type, uint64_t bytes)
{
    const bool structure = c->class == STRUCTURE;
    if (number == FLAGS)
        return type == WORDS && bytes == 8;
    if (c->class == 0 || c->class > OPAQUE)
        return false;
    if (c->class == OPAQUE) /* an object's: three names, no sizes */
        return is_data(type, bytes) || type == MATRIX;
    if (number == SIZES || (number == NAME_LENGTH && structure))
        return type == NUMBERS_32 && bytes % 4 == 0 && bytes >= 4 && bytes <= 4 * DIMENSIONS;
    if (number == NAME || (number == FIELDS && structure))
        return type == TEXT;
    if (c->class == SPARSE) /* values of true and false: bytes, which MATLAB calls doubles */
        return number <= STARTS ? type == NUMBERS_32 && bytes % 4 == 0 : is_data(type, 0);
    return structure || c->class == CELL || c->class == FUNCTION ? type == MATRIX
           : c->class == OBJECT ? is_data(type, bytes) || type == MATRIX
                                : is_data(type, bytes);
}

/* Return whether the items that an array claims fit its bytes: element `number` has `bytes`, and
 * `left` follow. A number has a byte or more, an array within the array a tag. */
static bool fits(const struct claims *c, int number, uint64_t bytes, uint64_t left)
{
    if (number == NAME && (c->class == CELL || c->class == FUNCTION))
        return c->items <= left / TAG;
    if (number == NUMBERS && c->class >= DOUBLE && c->class <= UINT64)
        return c->items <= bytes;
    if (number == FIELDS && c->class == STRUCTURE)
        return c->name_length == 0 || times(c->items, bytes / c->name_length) <= left / TAG;
    return true;
}

/* Return whether a matrix and its elements are complete. A small element has its data in the tag.
 */
static bool is_whole(struct bytes *b, uint64_t left, int depth)
{
    enum { SMALL = 4, DEPTH = 32 };
    unsigned char tag[TAG], data[4 * DIMENSIONS];
    struct claims claims = {0};
    for (int number = FLAGS; left >= TAG; number += number < INT_MAX) {
        if (!read_exactly(b, tag, TAG))
            return false;
        left -= TAG;
        const uint32_t type = read_word(tag, b->little);
        const bool small = type >> 16;
        const uint64_t bytes = small ? type >> 16 : read_word(tag + 4, b->little);
        const uint64_t padded = small ? 0 : (bytes + 7) / 8 * 8;
        const uint64_t here = padded < left ? padded : left;
        const uint64_t first = bytes < sizeof data ? bytes : sizeof data;
        if (bytes > (small ? SMALL : left) ||
            !is_expected(&claims, number, small ? type & 0xffff : type, bytes))
            return false;
        left -= here;
        if (type == MATRIX && number > NAME) {
            if (depth == DEPTH || !is_whole(b, bytes, depth + 1) || !skip(b, here - bytes))
                return false;
            continue;
        }
        if (small)
            memcpy(data, tag + 4, SMALL);
        else if (!read_exactly(b, data, first) || !skip(b, here - first))
            return false;
        keep_claims(&claims, number, data, first, b->little);
        if (!fits(&claims, number, bytes, left) || (claims.class == OBJECT && depth > 0))
            return false; /* matio reads an object within an array as a structure */
    }
    return skip(b, left);
}

/* Return whether a variable of `count` bytes is complete; the file is at the first byte after its
 * tag. */
static bool is_whole_variable(FILE *file, bool little, uint32_t type, uint32_t count)
{
    unsigned char tag[TAG];
    struct bytes *b = calloc(1, sizeof *b);
    if (!b)
        return false;
    b->file = file;
    b->left = count;
    b->little = little;
    bool good = true;
    if (type == MATRIX) {
        good = is_whole(b, count, 0);
    } else if (inflateInit(&b->stream) == Z_OK) {
        b->compressed = true;
        good = read_exactly(b, tag, TAG) && read_word(tag, little) == MATRIX &&
               is_whole(b, read_word(tag + 4, little), 0);
        inflateEnd(&b->stream);
    }
    free(b);
    return good;
}

/* Go from variable to variable by their lengths and check each. */
static int check_variables(const char *path, FILE *file, bool little)
{
    unsigned char tag[TAG];
    fseeko(file, 0, SEEK_END);
    const int64_t size = ftello(file);
    int64_t at = HEADER;
    for (int number = 1; at < size; number++) {
        fseeko(file, at, SEEK_SET);
        const bool whole = fread(tag, 1, TAG, file) == TAG;
        const uint32_t type = read_word(tag, little), bytes = read_word(tag + 4, little);
        if (whole && type != MATRIX && type != COMPRESSED)
            return sl_error(SL_ERR_DATA,
                            "%s: byte %" PRId64 ": variable %d has type %" PRIu32
                            ", expected 14 (a matrix) or 15 (compressed)",
                            path, at, number, type);
        if (!whole || size - at - TAG < bytes)
            return sl_error(SL_ERR_DATA,
                            "%s: byte %" PRId64 ": variable %d is truncated, expected %" PRIu32
                            " bytes",
                            path, at, number, whole ? bytes : (uint32_t)TAG);
        if (!is_whole_variable(file, little, type, bytes))
            return sl_error(SL_ERR_DATA,
                            "%s: byte %" PRId64
                            ": variable %d is damaged: its elements do not have "
                            "the types and sizes that MATLAB writes",
                            path, at, number);
        at += TAG + (int64_t)bytes;
    }
    return SL_OK;
}

int sl_matlab_check(const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return sl_error(SL_ERR_DATA, "%s: cannot open: %s", path, strerror(errno));
    unsigned char header[HEADER];
    bool little = true;
    int rc = check_header(path, header, fread(header, 1, HEADER, file), &little);
    if (!rc)
        rc = check_variables(path, file, little);
    fclose(file);
    return rc;
}

/* ---- Facebook100 ---- */

enum { GENDER = 1 };

static int compare_numbers(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int check_numbers(const char *path, const float *info, int64_t vertices)
{
    for (int64_t k = 0; k < vertices * SL_LOCAL_INFO; k++)
        if (!(info[k] >= 0.0f) || info[k] > 16777216.0f || info[k] != floorf(info[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: local_info: row %" PRId64 ", column %" PRId64
                            " is %g, expected a number from 0 to 2^24",
                            path, k / SL_LOCAL_INFO, k % SL_LOCAL_INFO, (double)info[k]);
    return SL_OK;
}

/* Sort the different values of a column, but 0, into `values`; return their number. */
static int64_t list_values(const float *info, int64_t vertices, int column, float *values)
{
    int64_t count = 0, unique = 0;
    for (int64_t v = 0; v < vertices; v++)
        if (info[v * SL_LOCAL_INFO + column] > 0.0f)
            values[count++] = info[v * SL_LOCAL_INFO + column];
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    for (int64_t k = 0; k < count; k++)
        if (unique == 0 || values[unique - 1] != values[k])
            values[unique++] = values[k];
    return unique;
}

static int64_t find_value(const float *values, int64_t count, float value)
{
    const float *found = bsearch(&value, values, (size_t)count, sizeof *values, compare_numbers);
    return found - values;
}

static int make_labels(const float *info, struct sl_dataset *out)
{
    int32_t *labels = sl_block_array(&out->blocks, out->vertices, sizeof *labels);
    float *values = malloc((size_t)out->vertices * sizeof *values + 1);
    if (!labels || !values) {
        free(values);
        return SL_ERR_SYSTEM;
    }
    out->classes = list_values(info, out->vertices, GENDER, values);
    for (int64_t v = 0; v < out->vertices; v++) {
        const float value = info[v * SL_LOCAL_INFO + GENDER];
        labels[v] = value > 0.0f ? (int32_t)find_value(values, out->classes, value) : -1;
    }
    free(values);
    out->labels = labels;
    return SL_OK;
}

/* Make a column of features for each value of each column but the gender. */
static int make_features(const float *info, struct sl_dataset *out)
{
    struct sl_triples triples = {0};
    float *values = malloc((size_t)out->vertices * sizeof *values + 1);
    int64_t first = 0, merged = 0;
    int rc = values ? SL_OK : (int)SL_ERR_SYSTEM;
    for (int column = 0; !rc && column < SL_LOCAL_INFO; column++) {
        if (column == GENDER)
            continue;
        const int64_t count = list_values(info, out->vertices, column, values);
        for (int64_t v = 0; !rc && v < out->vertices; v++) {
            const float value = info[v * SL_LOCAL_INFO + column];
            if (value > 0.0f)
                rc = sl_triples_add(&triples, v, first + find_value(values, count, value), 1.0f);
        }
        first += count;
    }
    if (!rc)
        rc =
            sl_csr_build(&triples, out->vertices, first, &out->blocks, &out->features_csr, &merged);
    sl_triples_free(&triples);
    free(values);
    out->feature_form = SL_FEATURES_CSR;
    out->features = first;
    out->bag_of_words = true;
    return rc;
}

int sl_matlab_local_info(const char *path, const float *info, struct sl_dataset *out)
{
    int rc = check_numbers(path, info, out->vertices);
    if (!rc)
        rc = make_labels(info, out);
    return rc ? rc : make_features(info, out);
}
