/* What is drawn for the vertices of a synthetic dataset: features, labels, splits. */
#ifndef SL_DATA_GENERATE_DRAW_VERTICES_H
#define SL_DATA_GENERATE_DRAW_VERTICES_H

#include <stdint.h>

#include "data/dataset.h"

/* x (columns) = centre (columns; NULL: 0) + sd times normal numbers, a function of key and row. */
void sl_draw_normals(uint64_t key, int64_t row, int64_t columns, const float *centre, float sd,
                     float *x);

/* Fills in the splits from split (out->vertices): enum sl_split. SL_ERR_SYSTEM: out of memory. */
int sl_draw_list_splits(const uint8_t *split, struct sl_dataset *out);

/* SL_ERR_USAGE unless there can be so many. */
int sl_draw_check_vertices(int64_t features, int64_t classes);

struct sl_draw_vertices {
    int64_t features, classes; /* at least 1 */
    uint64_t seed;
    int threads;
};

/* Fills in, for out->vertices, dense normal features, labels and a 60/20/20 split, all random: none
 * says anything about another or about the graph. The same for any number of threads.
 * SL_ERR_SYSTEM: out of memory. */
int sl_draw_random_vertices(const struct sl_draw_vertices *options, struct sl_dataset *out);

#endif
