/* Selections by plain loops over arrays of all vertices. */
#ifndef SL_TESTS_SELECT_REFERENCE_H
#define SL_TESTS_SELECT_REFERENCE_H

#include "data/select.h"

/* hop (n): of each vertex of the dataset, -1: not selected. Abort without memory. */
void sl_reference_select(const struct sl_dataset *data, const bool *inner,
                         const struct sl_selection_options *options, int *hop);

/* Fail the cmocka test unless both have the same vertices, hops, edges and degrees. */
void sl_assert_equal_selections(const struct sl_selection *a, const struct sl_selection *b);

#endif
