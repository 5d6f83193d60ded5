/* MATLAB files of level 5 (save -v7, or older). */
#ifndef SL_DATA_FORMATS_MATLAB_H
#define SL_DATA_FORMATS_MATLAB_H

#include <stdio.h>

#include "data/dataset.h"

/* More bytes than deflate makes of one: 1,032. */
enum { SL_MATLAB_INFLATED = 1100 };

/* Classes of matrices that have numbers: sparse, and double to uint64. */
enum { SL_MATLAB_SPARSE = 5, SL_MATLAB_UINT64 = 15 };

struct sl_matlab_variable {
    int64_t at, bytes; /* place in the file */
    bool compressed;
    char *name; /* NULL: an object, whose name is not read */
    int class;
    bool complex, logical;
    int64_t dimensions, rows, cols; /* dimensions: number of sizes, the first two of them here */
    /* Data, of a loaded variable. */
    int64_t taken; /* bytes of the data */
    uint32_t type;
    int64_t count;   /* numbers: rows · cols by columns, or at least the entries of a sparse one */
    void *data;      // (count), for sl_matlab_number
    int64_t entries; /* of a sparse matrix: entries by columns */
    int32_t *row;    // (entries): row of each entry
    int32_t *start;  // (cols + 1): first entry of each column
};

struct sl_matlab {
    const char *path;
    FILE *file;
    int64_t bytes; /* size of the file */
    bool little;
    int count;
    struct sl_matlab_variable *variable; // (count)
};

/* Return whether a file with these first bytes is a MATLAB file of level 5. */
bool sl_matlab_sniff(const char *head, size_t bytes);

/* Open a file and list its variables. SL_ERR_DATA: the level is not 5, the file ends within a
 * variable, or an element has another type or size than MATLAB writes; SL_ERR_SYSTEM. Call
 * sl_matlab_close in either case. */
int sl_matlab_open(struct sl_matlab *file, const char *path);
void sl_matlab_close(struct sl_matlab *file);

/* Read the data of a variable that has numbers in two dimensions of up to 2^31 - 1. Return 0,
 * SL_ERR_DATA or SL_ERR_SYSTEM. Call sl_matlab_unload in either case. */
int sl_matlab_load(const struct sl_matlab *file, struct sl_matlab_variable *v);
void sl_matlab_unload(struct sl_matlab_variable *v);

static inline const char *sl_matlab_name(const struct sl_matlab_variable *v)
{
    return v->name ? v->name : "";
}

/* Return number k of a loaded variable. */
double sl_matlab_number(const struct sl_matlab_variable *v, int64_t k);

/* Columns of local_info: status, gender, major, second major, dormitory, year, high school; 0: not
 * known. */
enum { SL_LOCAL_INFO = 7 };

/* Set labels and features from `info` (vertices, 7), as LINKX does (Lim et al., NeurIPS 2021). The
 * label is the gender. Every other value in a column is a feature of its own. */
int sl_matlab_local_info(const char *path, const float *info, struct sl_dataset *out);

#endif
