/* Draw features, labels and splits for the vertices of a synthetic dataset. */
#ifndef SL_DATA_GENERATE_DRAW_VERTICES_H
#define SL_DATA_GENERATE_DRAW_VERTICES_H

#include <stdint.h>

#include "data/dataset.h"

/* Set x (columns) to centre (columns; NULL: 0) + sd times normal numbers, a function of key and
 * row. */
void sl_draw_normals(uint64_t key, int64_t row, int64_t columns, const float *centre, float sd,
                     float *x);

/* Fill in the splits of *out from split (out->vertices): enum sl_split. SL_ERR_SYSTEM: out of
 * memory. */
int sl_draw_list_splits(const uint8_t *split, struct sl_dataset *out);

/* Return SL_ERR_USAGE for a number of features or classes that no dataset can have. */
int sl_draw_check_vertices(int64_t features, int64_t classes);

struct sl_draw_vertices {
    int64_t features, classes; /* at least 1 */
    uint64_t seed;
    int threads;
};

/* Fill in dense normal features, labels and a 60/20/20 split for out->vertices vertices, all
 * random: none depends on another or on the graph. The result does not depend on the threads.
 * SL_ERR_SYSTEM: out of memory. */
int sl_draw_random_vertices(const struct sl_draw_vertices *options, struct sl_dataset *out);

#endif
