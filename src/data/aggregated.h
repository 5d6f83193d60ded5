/* The size of aggregated sparse features. */
#ifndef SL_DATA_AGGREGATED_H
#define SL_DATA_AGGREGATED_H

#include "data/source.h"

/* Return about how many entries a row of Â·X has, for sparse features X or the identity: the mean
 * of at most 256 rows, which are counted. ROW has `count` rows of the files; NULL: all rows. Dense
 * features have none. `source` is a whole dataset, no selection; its arrays need not be checked
 * yet. All ranks return the same number. */
double sl_aggregated_entries(const struct sl_source *source, const int32_t *row, int64_t count);

#endif
