/* The layout of a checkpoint's file, for its reader and its writer. safetensors: 8 bytes
 * little-endian length of the header, the JSON header padded with spaces, the data. Ours is marked
 * by __metadata__ {"format": …, "description": …, "crc32": …}. Files of other programs may lack the
 * checksum. */
#ifndef SL_CHECKPOINT_LAYOUT_H
#define SL_CHECKPOINT_LAYOUT_H

#include <zlib.h>

#include "checkpoint/checkpoint.h"

enum { SL_LAYOUT_PREFIX = 8, SL_LAYOUT_ALIGNMENT = 64 };
extern const char sl_layout_format[], sl_layout_metadata[];

/* Return the bytes of a tensor's numbers. */
size_t sl_layout_bytes(const struct sl_tensor *tensor);

/* CRC-32 of the description and of every tensor in order: name, shape, data. Return the checksum
 * with a text added, or the name and shape of a tensor. */
uLong sl_layout_add_text(uLong crc, const char *text);
uLong sl_layout_add_head(uLong crc, const struct sl_tensor *tensor);

/* A mapped file: its header and the bytes behind the header. */
struct sl_layout_file {
    const char *path;
    void *all;
    size_t all_bytes;
    json_t *header;
    const unsigned char *data;
    size_t size;
};

/* Map a checkpoint and read its header. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM; after 0, call
 * sl_layout_unmap. */
int sl_layout_map(const char *path, struct sl_layout_file *file);
void sl_layout_unmap(struct sl_layout_file *file);

/* The shape of a tensor, and where its bytes lie within the data. */
struct sl_layout_place {
    int64_t rows, cols;
    size_t begin, bytes;
};

/* Set *out to the place of a tensor, from its entry in the header. Return 0 or SL_ERR_DATA. */
int sl_layout_find(const struct sl_layout_file *file, const char *name, json_t *entry,
                   struct sl_layout_place *out);

#endif
