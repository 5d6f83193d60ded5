/* Read arrays of a NumPy .npz archive, whole or in pieces. For a damaged archive every function
 * returns SL_ERR_DATA, which names archive and array. */
#ifndef SL_DATA_FORMATS_NPZ_ARCHIVE_H
#define SL_DATA_FORMATS_NPZ_ARCHIVE_H

#include "data/formats/npy.h"

struct zip;
struct zip_file;

struct sl_npz {
    const char *path;
    uint64_t bytes; /* size of the file */
    struct zip *zip;
    struct sl_block **blocks; /* list that owns names and arrays */
};

/* Open an archive; `path` must outlive it. */
int sl_npz_open(struct sl_npz *npz, const char *path, struct sl_block **blocks);
void sl_npz_close(struct sl_npz *npz);

bool sl_npz_has(const struct sl_npz *npz, const char *array);

/* Load a whole array into memory. SL_ERR_SYSTEM without memory. */
int sl_npz_load(const struct sl_npz *npz, const char *array, struct sl_npy *npy);

/* Return SL_ERR_DATA where any array cannot be loaded: it is damaged, or has Python objects. */
int sl_npz_check(const struct sl_npz *npz);

/* An array that is read from start to end and never held. */
struct sl_npz_stream {
    struct sl_npy npy; /* the header; its `data` is NULL */
    struct zip_file *file;
    int64_t next; /* number of the next item, in the order of the file */
};

/* Start to read an array. Call sl_npz_stream_close in either case. */
int sl_npz_stream_open(const struct sl_npz *npz, const char *array, struct sl_npz_stream *stream);
void sl_npz_stream_close(struct sl_npz_stream *stream);

/* Read the next `count` items as 64-bit integers into `out` (count); NULL: skip them. After the
 * last item, check the array's checksum. */
int sl_npz_stream_read(struct sl_npz_stream *stream, int64_t count, int64_t *out);

#endif
