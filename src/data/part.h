/* The steps of reading a part of a dataset, for sl_source_read. */
#ifndef SL_DATA_PART_H
#define SL_DATA_PART_H

#include "data/source.h"

/* Where row v of the file begins and ends, by its row pointers. SL_ERR_DATA: not within the file.
 */
int sl_part_find_row(const struct sl_stored_csr *csr, int64_t v, int64_t extent[2]);

/* The splits' own vertices, checked. Every rank calls it. */
int sl_part_read_splits(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_part *part);

/* The same where the source has a rule for them: of the labels and original numbers of the part. */
int sl_part_draw_splits(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_part *part);

/* Read labels and original numbers alone, of all rows in the order of the files. sl_part_close in
 * either case. */
int sl_part_read_labels(const struct sl_source *source, struct sl_part *out);

/* Checks what a rank can see in its own rows: finite weights; finite features, labels in range. */
int sl_part_check_weights(const struct sl_source *source, const struct sl_part *part);
int sl_part_check_vertices(const struct sl_source *source, const struct sl_part *part);

/* Settles and checks what the adjacency of all ranks' rows is together: weights that are all 1,
 * symmetry, totals. Every rank calls it. */
int sl_part_settle_adjacency(struct sl_runtime *rt, const struct sl_source *source,
                             struct sl_part *part);

/* Whether the original numbers are a permutation. Every rank calls it. */
int sl_part_check_original(struct sl_runtime *rt, const struct sl_source *source,
                           const struct sl_part *part);

#endif
