/* The dataset's names of vertices and classes, for output of predictions. */
#ifndef SL_DATA_IDENTITIES_H
#define SL_DATA_IDENTITIES_H

#include <stdio.h>

#include "data/source.h"

struct sl_identities {
    int64_t vertices;
    struct sl_npy ids; // (n), by original number of the vertex; data NULL: ids are these numbers
    const char **class_name; // (classes)
    int64_t classes;         /* classes that have names */
    struct sl_block *blocks;
};

/* Copy names and ids out of a source, whose arrays may then go. Call sl_identities_free in either
 * case. SL_ERR_SYSTEM: out of memory. */
int sl_identities_take(const struct sl_source *source, struct sl_identities *out);
void sl_identities_free(struct sl_identities *identities);

/* Refuse a file of ids beside `path` where the predictions at `path` will have none. SL_ERR_USAGE,
 * SL_ERR_SYSTEM. */
int sl_identities_check(const char *path);

/* Write predictions of four bytes each to PATH (.npy). Where the dataset has vertex_ids, write them
 * to PATH with .ids.npy for .npy: both files appear in one step, or none does. SL_ERR_SYSTEM. */
int sl_identities_write(const struct sl_identities *identities, const char *path, const char *descr,
                        int dims, const int64_t *shape, const void *predictions);

/* Write what the dataset calls vertex v (original number) to `text` (sl_identities_room). */
size_t sl_identities_room(const struct sl_identities *identities);
void sl_identities_name(const struct sl_identities *identities, int64_t v, char *text);

/* Print the rest of a vertex's line after its id. Return whether printing succeeded. */
typedef bool sl_print_prediction(FILE *file, const struct sl_identities *identities, int64_t vertex,
                                 const void *predictions);

/* Print a class, or its number and name with a tab between; predictions: int32_t (vertices). */
sl_print_prediction sl_identities_print_class;

/* Write a line per vertex: its id, a tab, and the text that `print` prints. SL_ERR_SYSTEM. */
int sl_identities_tabulate(const struct sl_identities *identities, sl_print_prediction *print,
                           const void *predictions, const char *path);

#endif
