/* A partition of a dataset's vertices (an edge-cut) or edges (a vertex-cut), in memory and in a
 * file. */
#ifndef SL_DATA_PARTITION_PARTS_H
#define SL_DATA_PARTITION_PARTS_H

#include <jansson.h>

#include "data/dataset.h"

#define SL_PARTS_METHODS "libra|hdrf|metis|random"

struct sl_parts {
    char method[16];
    bool of_edges; /* the parts are of edges, else of vertices */
    int parts;
    uint64_t seed;
    int64_t vertices, entries; /* n and nnz of the dataset */
    uint64_t fingerprint;      /* fingerprint of the adjacency's pattern */
    uint64_t checksum;         /* checksum of the parts */
    const int32_t *part;       // (nnz): part of each entry, by row and column; or (n)
    struct sl_block *blocks;   /* owns `part` */
};

struct sl_parts_options {
    const struct sl_parts_method *method;
    int parts;
    uint64_t seed;
    double lambda; /* HDRF's weight of even loads */
};

/* A way to cut a graph into parts. `cut` sets the part of each entry or vertex. */
struct sl_parts_method {
    const char *name;
    bool of_edges; /* cuts edges, else vertices */
    int (*cut)(const struct sl_dataset *data, const struct sl_parts_options *options,
               int32_t *part);
};
extern const struct sl_parts_method sl_parts_libra, sl_parts_hdrf, sl_parts_metis, sl_parts_random;

/* Return the method of that name, one of SL_PARTS_METHODS; NULL: there is none. */
const struct sl_parts_method *sl_parts_find_method(const char *name);

/* Check what --partition names: one of `names`, as of SL_PARTS_METHODS, or a .npy file. Return 0 or
 * SL_ERR_USAGE. */
int sl_parts_check_name(const char *partition, const char *names);

/* Partition a dataset. SL_ERR_DATA: the method cannot take this graph. Call sl_parts_close in any
 * case. */
int sl_parts_make(const struct sl_dataset *data, const struct sl_parts_options *options,
                  struct sl_parts *out);

/* Return the quality of a partition as a new JSON object of figures; NULL without memory. */
json_t *sl_parts_report(const struct sl_dataset *data, const struct sl_parts *parts);

/* Return the default file name of a partition of the dataset at `path`, in the current directory:
 * NAME-METHOD-PARTS.npy, where NAME is the last name in `path`. NULL without memory. */
char *sl_parts_path(const char *path, const struct sl_parts *parts, struct sl_block **blocks);

/* Write the parts to PATH, a .npy file of int32, and their description to PATH with .json for .npy.
 * Both files appear in one step (sl_file_commit_both), or none does; `report` may be NULL.
 * SL_ERR_USAGE: a path without .npy. */
int sl_parts_write(const struct sl_parts *parts, const json_t *report, const char *path);

/* Map the files of sl_parts_write without reading the parts. SL_ERR_DATA names the file and the
 * problem, also where the two files are of different partitions. Call sl_parts_close in any case.
 */
int sl_parts_open(const char *path, struct sl_parts *out);

/* Return what the parts part (count) of entries or vertices first … first + count - 1 add to the
 * checksum. */
uint64_t sl_parts_checksum(const int32_t *part, int64_t first, int64_t count);

/* Return SL_ERR_DATA unless the parts are in range and match their checksum. */
int sl_parts_check(const struct sl_parts *parts, const char *path);

void sl_parts_close(struct sl_parts *parts);

#endif
