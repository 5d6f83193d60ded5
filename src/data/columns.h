/* The columns of dense features: compare their scales, and standardise them. */
#ifndef SL_DATA_COLUMNS_H
#define SL_DATA_COLUMNS_H

#include "data/source.h"

/* Find the least and the largest scale of dense features in `rows` rows of the files: first, first
 * + step, …. The result does not depend on the number of ranks. Collective. SL_ERR_SYSTEM. */
int sl_columns_find_scales(struct sl_runtime *rt, const struct sl_source *source, int64_t step,
                           int64_t rows, struct sl_column_scales *out);

/* Return whether the largest column drowns the others: its scale is over ten times the least. */
bool sl_columns_are_uneven(const struct sl_column_scales *scales);

/* Set the mean and the deviation of each column of the source, over the training vertices. Draw the
 * splits before, where the source has a rule for them. The form of features becomes dense. The
 * result does not depend on the number of ranks. Collective. SL_ERR_DATA: there are no features, or
 * no training vertex. SL_ERR_SYSTEM. */
int sl_columns_standardize(struct sl_runtime *rt, struct sl_source *source);

/* Return number x of column c after standardisation. */
static inline float sl_columns_value(const struct sl_moments *moments, int64_t c, float x)
{
    return moments->mean ? (float)(((double)x - moments->mean[c]) / moments->deviation[c]) : x;
}

#endif
