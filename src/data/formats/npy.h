/* NumPy .npy files, versions 1 to 3: plain little-endian arrays, mapped or in memory. */
#ifndef SL_DATA_FORMATS_NPY_H
#define SL_DATA_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "data/block.h"

enum { SL_NPY_MAX_DIMS = 8 };

/* An array as stored; borrows its name and its bytes from the block list that it was loaded with.
 */
struct sl_npy {
    const char *name; /* for errors: the file, or "archive: member" */
    char kind;        /* 'b' bool, 'i', 'u', 'f', or text: 'S', 'U' */
    size_t item_bytes;
    bool fortran_order; /* columns of the matrix lie one after the other */
    int dims;
    int64_t shape[SL_NPY_MAX_DIMS];
    int64_t count;             /* product of the shape */
    const unsigned char *data; // (count * item_bytes), not always aligned
    uint64_t file; /* hash of number, size and time of the mapped file; 0: no file is mapped */
};

/* Read the header of a whole .npy file in memory and check its size. SL_ERR_DATA: no .npy file,
 * truncated, pickled objects, big endian, structured. */
int sl_npy_parse(const char *name, const void *bytes, size_t size, struct sl_npy *out);

/* Read the header of a file of `size` bytes whose first `have` bytes are in memory; they must
 * contain the header. Errors are those of sl_npy_parse. */
int sl_npy_parse_header(const char *name, const void *bytes, size_t have, size_t size,
                        struct sl_npy *out);

/* Map a file, which stays on the list, and parse it. */
int sl_npy_map(const char *path, struct sl_block **blocks, struct sl_npy *out);

/* Return SL_ERR_DATA unless the array has `dims` dimensions, at most two. */
int sl_npy_expect(const struct sl_npy *npy, int dims);

/* The functions below count elements row by row, however a matrix is stored. */

/* Return element k of a numeric array, rounded to a double. */
double sl_npy_get(const struct sl_npy *npy, int64_t k);

/* Return element k of an array as an integer; INT64_MIN where it is no integer of 64 bits. */
int64_t sl_npy_integer(const struct sl_npy *npy, int64_t k);

/* Return whether elements are text. */
bool sl_npy_is_text(const struct sl_npy *npy);

/* Write element k of an array of text as UTF-8 to `out` (item_bytes + 1). Return its length. */
size_t sl_npy_text(const struct sl_npy *npy, int64_t k, char *out);

/* Write the type of the elements as NumPy spells it: "<i8". */
void sl_npy_descr(const struct sl_npy *npy, char descr[24]);

/* Types that elements can be read as. */
enum sl_npy_type { SL_NPY_INT32, SL_NPY_INT64, SL_NPY_FLOAT32 };
size_t sl_npy_type_bytes(enum sl_npy_type type);

/* Copy elements first … first + count - 1 to `out` as one type. SL_ERR_DATA: text, or a value that
 * the integer type cannot hold (fractions too). */
int sl_npy_copy(const struct sl_npy *npy, enum sl_npy_type type, int64_t first, int64_t count,
                void *out);

/* Copy rows row[0] … row[count - 1] to `out` as one type. A row of a one-dimensional array is one
 * element. SL_ERR_DATA: see sl_npy_copy. */
int sl_npy_copy_rows(const struct sl_npy *npy, enum sl_npy_type type, const int32_t *row,
                     int64_t count, void *out);

/* Return the address of element `first`, in place; NULL: type, order or alignment do not fit. */
const void *sl_npy_find(const struct sl_npy *npy, enum sl_npy_type type, int64_t first);

/* Set the pointer at `out` to elements first … first + count - 1. Point into the array where type,
 * order and alignment fit, else to a copy on the list. `out` is the address of a pointer to the
 * type. */
int sl_npy_take(const struct sl_npy *npy, enum sl_npy_type type, int64_t first, int64_t count,
                struct sl_block **blocks, void *out);

/* Return an array in memory as a stored array of shape (rows) or, with `dims` 2, (rows, cols). */
struct sl_npy sl_npy_view(const char *name, enum sl_npy_type type, int dims, int64_t rows,
                          int64_t cols, const void *data);

/* Write the header of version 1.0, C order, padded to a multiple of 64 bytes, to `header` (size;
 * 512 are enough). Return its length. */
size_t sl_npy_header(char *header, size_t size, const char *descr, int dims, const int64_t *shape);

/* Put such a header and the items into a stream. Return whether the stream took all. */
bool sl_npy_put(FILE *file, const char *descr, size_t item_bytes, int dims, const int64_t *shape,
                const void *data);

/* Write a file of version 1.0, C order, the header padded to 64 bytes, and sync it. `descr` is
 * NumPy's name of the type ("<i8"), with `item_bytes` per element. SL_ERR_SYSTEM names the file,
 * which is then incomplete. */
int sl_npy_write(const char *path, const char *descr, size_t item_bytes, int dims,
                 const int64_t *shape, const void *data);

#endif
