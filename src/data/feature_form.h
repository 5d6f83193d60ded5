/* The form of features, which need not be the form that they are stored in. A source of the form
 * SL_FEATURES_CSR that has `features_dense` lies dense: its rows are read as CSR. A source of the
 * form SL_FEATURES_DENSE without `features_dense` lies in CSR: its parts are CSR, and the assembly
 * makes dense tiles of them. */
#ifndef SL_DATA_FEATURE_FORM_H
#define SL_DATA_FEATURE_FORM_H

#include "data/source.h"

/* Find the scales of the columns. Make the form CSR where at most 40 % of dense features are not
 * 0. Such features become a bag of words, unless the files say otherwise or a number is negative.
 * Columns of a table stay dense; other features are taken for a table where scales are uneven and a
 * column is at least half full. A sample of the rows tells first, so that other features are not
 * read. NaN is not 0. Each rank counts an equal share of the rows. Collective. SL_ERR_SYSTEM. */
int sl_features_settle(struct sl_runtime *rt, struct sl_source *source);

/* Give features the form CSR or dense, in whatever form they are stored; identity features stay.
 * The files and their mark of a bag of words stay. Collective. SL_ERR_SYSTEM. */
int sl_features_set_form(struct sl_runtime *rt, struct sl_source *source,
                         enum sl_feature_form form);

/* Return the form that a part of the source has. */
enum sl_feature_form sl_features_part_form(const struct sl_source *source);

/* Return whether the form is dense, and was CSR before. */
bool sl_features_made_dense(const struct sl_source *source);

/* Return whether the features are stored dense and read as CSR. */
bool sl_features_lie_dense(const struct sl_source *source);

/* Print a note about dataset `name` where dense features are read as CSR; else print nothing. */
void sl_features_note(const struct sl_source *source, const char *name);

/* Read rows first … first + rows - 1 of the order as CSR, into new blocks. Count the entries again,
 * because a caller's array may have changed since. SL_ERR_SYSTEM. */
int sl_features_read_sparse(const struct sl_source *source, int64_t first, int64_t rows,
                            struct sl_block **blocks, struct sl_csr *out);

#endif
