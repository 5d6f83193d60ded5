/* What a dataset calls its vertices and classes, for those who get predictions of them. */
#ifndef SL_DATA_IDENTITIES_H
#define SL_DATA_IDENTITIES_H

#include <stdio.h>

#include "data/source.h"

struct sl_identities {
    int64_t vertices;
    struct sl_npy ids;       // (n), of the vertices in their original order; data NULL: numbers
    const char **class_name; // (classes)
    int64_t classes;         /* that have names */
    struct sl_block *blocks;
};

/* Copies them out of a source, whose arrays may then go. sl_identities_free in either case.
 * SL_ERR_SYSTEM: out of memory. */
int sl_identities_take(const struct sl_source *source, struct sl_identities *out);
void sl_identities_free(struct sl_identities *identities);

/* Writes the ids beside the predictions in PATH (.npy): PATH with .ids.npy for .npy. Does nothing
 * where vertices have numbers only. SL_ERR_SYSTEM. */
int sl_identities_write(const struct sl_identities *identities, const char *path);

/* Prints what stands behind the id of a vertex in its line. Returns whether that went well. */
typedef bool sl_print_prediction(FILE *file, const struct sl_identities *identities, int64_t vertex,
                                 const void *predictions);

/* "class", or "class name", with a tab; predictions: int32_t (vertices). */
sl_print_prediction sl_identities_print_class;

/* Writes a line per vertex: its id, a tab, and what `print` prints. SL_ERR_SYSTEM. */
int sl_identities_tabulate(const struct sl_identities *identities, sl_print_prediction *print,
                           const void *predictions, const char *path);

#endif
