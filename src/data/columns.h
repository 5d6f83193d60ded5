/* The columns of dense features: how far their scales are apart, and how rows are standardised. */
#ifndef SL_DATA_COLUMNS_H
#define SL_DATA_COLUMNS_H

#include "data/source.h"

/* Find the least and the largest scale of dense features, in rows first, first + step, … of the
 * files, as many as `rows`. The same on any number of ranks. Collective. SL_ERR_SYSTEM. */
int sl_columns_find_scales(struct sl_runtime *rt, const struct sl_source *source, int64_t step,
                           int64_t rows, struct sl_column_scales *out);

/* Whether scales differ so much that the largest column drowns the others: more than tenfold. */
bool sl_columns_are_uneven(const struct sl_column_scales *scales);

/* Set the mean and the deviation of each column of the source, over the training vertices. Draw the
 * splits before, where the source has a rule for them. The same on any number of ranks.
 * The form becomes dense, whatever features are stored as. Collective. SL_ERR_DATA: there are no
 * features, or no training vertex. SL_ERR_SYSTEM. */
int sl_columns_standardize(struct sl_runtime *rt, struct sl_source *source);

/* Return number x of column c as it is trained on. */
static inline float sl_columns_value(const struct sl_moments *moments, int64_t c, float x)
{
    return moments->mean ? (float)(((double)x - moments->mean[c]) / moments->deviation[c]) : x;
}

#endif
