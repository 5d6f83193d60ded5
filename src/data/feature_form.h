/* Dense features of which few are not 0, such as counts of words: they stay stored as they are, and
 * are read as CSR. The source then has the form SL_FEATURES_CSR and `features_dense`, too. */
#ifndef SL_DATA_FEATURE_FORM_H
#define SL_DATA_FEATURE_FORM_H

#include "data/source.h"

/* Make the form CSR where at most 40 % of dense features are not 0, and the features a bag of
 * words, unless the files say otherwise. A sample of the rows tells first, so that other features
 * are not read. NaN is not 0. Each rank counts an equal share of the rows. Collective.
 * SL_ERR_SYSTEM. */
int sl_features_settle(struct sl_runtime *rt, struct sl_source *source);

/* Whether the features are stored dense and read as CSR. */
bool sl_features_lie_dense(const struct sl_source *source);

/* Say so in a note, of the dataset called `name`; else say nothing. */
void sl_features_note(const struct sl_source *source, const char *name);

/* Read rows first … first + rows - 1 of the order as CSR, into new blocks. What was counted before
 * is not relied on: a caller's array may have changed since. SL_ERR_SYSTEM. */
int sl_features_read_sparse(const struct sl_source *source, int64_t first, int64_t rows,
                            struct sl_block **blocks, struct sl_csr *out);

#endif
