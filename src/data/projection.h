/* Random projection of features (GIST's program, as GaussianRandomProjection of scikit-learn): rows
 * of the dataset are divided by their norm and multiplied by a random matrix. */
#ifndef SL_DATA_PROJECTION_H
#define SL_DATA_PROJECTION_H

#include "data/source.h"

/* Return the divisor of a row of features; `values` (count), NULL: all are 1. */
double sl_row_norm_of(enum sl_row_norm kind, int64_t count, const float *values);

/* Give the source dense features of `columns` columns: its features times a matrix of normal
 * numbers with variance 1 / columns. The matrix is a function of the seed, of the column of the
 * features and of the column of the result. Rows are divided by `norm` and projected when they are
 * read. Every rank calls it by itself. SL_ERR_DATA: the features are the identity. SL_ERR_SYSTEM.
 */
int sl_projection_open(struct sl_source *source, int64_t columns, enum sl_row_norm norm,
                       uint64_t seed);

/* Return the source with its features as they are stored. It borrows from `source`; do not close
 * it. */
struct sl_source sl_projection_stored(const struct sl_source *source);

/* Set x (rows, f) to the projected rows of `part`, a part of the stored source whose dense rows are
 * all its rows. Sums are made in double, by ascending column. SL_ERR_SYSTEM. */
int sl_projection_apply(const struct sl_source *source, const struct sl_part *part, float *x);

#endif
