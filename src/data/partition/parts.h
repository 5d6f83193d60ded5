/* A partition of a dataset, in memory and beside the dataset: of its vertices (an edge-cut) or of
 * its edges (a vertex-cut). */
#ifndef SL_DATA_PARTITION_PARTS_H
#define SL_DATA_PARTITION_PARTS_H

#include <jansson.h>

#include "data/dataset.h"

#define SL_PARTS_METHODS "libra|hdrf|metis|random"

struct sl_parts {
    char method[16];
    bool of_edges; /* else of vertices */
    int parts;
    uint64_t seed;
    int64_t vertices, entries; /* of the dataset: n, nnz */
    uint64_t fingerprint;      /* of the pattern of its adjacency */
    uint64_t checksum;         /* of the parts */
    const int32_t *part;       // (nnz) of the entries, row by row, columns ascending; or (n)
    struct sl_block *blocks;   /* what it lives in */
};

struct sl_parts_options {
    const char *method; /* one of SL_PARTS_METHODS */
    int parts;
    uint64_t seed;
    double lambda; /* of hdrf */
};

/* Whether a method cuts edges, else vertices. */
bool sl_parts_of_edges(const char *method);

/* Cuts a dataset. SL_ERR_DATA: a graph that the method cannot take. sl_parts_close in any case. */
int sl_parts_make(const struct sl_dataset *data, const struct sl_parts_options *options,
                  struct sl_parts *out);

/* What it comes to, as a new JSON object of figures; NULL without memory. */
json_t *sl_parts_report(const struct sl_dataset *data, const struct sl_parts *parts);

/* The file for the partition of a dataset at `path` unless a user names one, in the current
 * directory: NAME-METHOD-PARTS.npy, after the dataset's last name. NULL without memory. */
char *sl_parts_path(const char *path, const struct sl_parts *parts, struct sl_block **blocks);

/* Writes PATH, a .npy file of the parts, int32, and PATH with .json for .npy that says what they
 * are. Each appears whole or not at all; `report` may be NULL. SL_ERR_USAGE: a path without .npy.
 */
int sl_parts_write(const struct sl_parts *parts, const json_t *report, const char *path);

/* Maps what was written; the numbers are not looked at. SL_ERR_DATA names the file and what is
 * wrong with it, also where the two are not of one partition. sl_parts_close in any case. */
int sl_parts_open(const char *path, struct sl_parts *out);

/* What parts[first] … parts[first + count - 1] add to the checksum. */
uint64_t sl_parts_checksum(const int32_t *part, int64_t first, int64_t count);

/* SL_ERR_DATA unless the parts are in range and those that were written. */
int sl_parts_check(const struct sl_parts *parts, const char *path);

void sl_parts_close(struct sl_parts *parts);

#endif
