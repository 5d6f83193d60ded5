/* Arrays of a NumPy .npz archive, whole or in pieces. Every function says SL_ERR_DATA of a damaged
 * archive, and names it and the array. */
#ifndef SL_DATA_FORMATS_NPZ_ARCHIVE_H
#define SL_DATA_FORMATS_NPZ_ARCHIVE_H

#include "data/formats/npy.h"

struct zip;
struct zip_file;

struct sl_npz {
    const char *path;
    uint64_t bytes; /* of the file */
    struct zip *zip;
    struct sl_block **blocks; /* where names and arrays are kept */
};

/* `path` stays as long as the archive. */
int sl_npz_open(struct sl_npz *npz, const char *path, struct sl_block **blocks);
void sl_npz_close(struct sl_npz *npz);

bool sl_npz_has(const struct sl_npz *npz, const char *array);

/* A whole array, kept in memory. SL_ERR_SYSTEM without memory. */
int sl_npz_load(const struct sl_npz *npz, const char *array, struct sl_npy *npy);

/* SL_ERR_DATA where any array cannot be loaded: it is damaged, or has Python objects. */
int sl_npz_check(const struct sl_npz *npz);

/* An array that is read from its start to its end and never held. */
struct sl_npz_stream {
    struct sl_npy npy; /* its `data` is NULL */
    struct zip_file *file;
    int64_t next; /* the item that is read next, in the order of the file */
};

/* Call sl_npz_stream_close in either case. */
int sl_npz_stream_open(const struct sl_npz *npz, const char *array, struct sl_npz_stream *stream);
void sl_npz_stream_close(struct sl_npz_stream *stream);

/* The next `count` items as integers of 64 bits, into `out` (count); NULL: they are left out. After
 * the last item the sum of the array is checked. */
int sl_npz_stream_read(struct sl_npz_stream *stream, int64_t count, int64_t *out);

#endif
