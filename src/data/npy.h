/* NumPy .npy files, versions 1 to 3: plain little-endian arrays, mapped or in memory. */
#ifndef SL_DATA_NPY_H
#define SL_DATA_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/block.h"

enum { SL_NPY_MAX_DIMS = 8 };

/* An array as stored; borrows its name and its bytes from the block list that it was loaded with.
 */
struct sl_npy {
    const char *name; /* for errors: the file, or "archive: member" */
    char kind;        /* 'b' bool, 'i', 'u', 'f', or text: 'S', 'U' */
    size_t item_bytes;
    bool fortran_order;
    int dims;
    int64_t shape[SL_NPY_MAX_DIMS];
    int64_t count;             /* product of the shape */
    const unsigned char *data; // (count * item_bytes), not always aligned
};

/* Reads the header of a whole .npy file in memory and checks its size. SL_ERR_DATA: not such a
 * file, truncated, pickled objects, big endian, structured. */
int sl_npy_parse(const char *name, const void *bytes, size_t size, struct sl_npy *out);

/* Maps a file, which stays on the list, and parses it. */
int sl_npy_map(const char *path, struct sl_block **blocks, struct sl_npy *out);

/* SL_ERR_DATA unless the array has `dims` dimensions and, with two or more, C order. */
int sl_npy_expect(const struct sl_npy *npy, int dims);

/* Element k (in storage order) of a numeric array, rounded to a double. */
double sl_npy_get(const struct sl_npy *npy, int64_t k);

/* The elements in storage order as one type: in place where the type fits and is aligned, else a
 * copy on the list. SL_ERR_DATA: text, or a value that the integer type cannot hold (fractions
 * too). */
int sl_npy_int64(const struct sl_npy *npy, struct sl_block **blocks, const int64_t **out);
int sl_npy_int32(const struct sl_npy *npy, struct sl_block **blocks, const int32_t **out);
int sl_npy_float32(const struct sl_npy *npy, struct sl_block **blocks, const float **out);

/* Writes version 1.0, C order, the header padded to 64 bytes, and syncs the file. `descr` as NumPy
 * spells it
 * ("<i8"), with `item_bytes` per element. SL_ERR_SYSTEM names the file; what was written then is
 * incomplete. */
int sl_npy_write(const char *path, const char *descr, size_t item_bytes, int dims,
                 const int64_t *shape, const void *data);

#endif
