/* The metric of labels of an evaluation: counts of labels, errors of numbers, or rankings of all
 * their scores. */
#ifndef SL_GRAPHS_EVALUATION_H
#define SL_GRAPHS_EVALUATION_H

#include <stdint.h>

#include "core/tile.h"

struct sl_network;

/* Tiles of the graph's metric; tiles that it does not need do not exist. Labels are ranked in
 * groups; a rank has some groups. */
struct sl_evaluation {
    struct sl_tile *counts; // T tiles (labels, SL_TABLE_COUNTS or SL_TABLE_ERRORS) of double
    int groups;
    int64_t *first;        // (groups + 1): ranked labels first[g] … first[g + 1] - 1
    struct sl_tile *score; // (groups) x T tiles (rows, labels of the group) of uint64
    struct sl_tile *work;  // (groups) tiles (2, all rows) of uint64
    struct sl_tile *table; // (groups) tiles (labels of the group, SL_TABLE_RANKINGS) of double
};

/* Make the tiles that the metric needs. Return 0 or SL_ERR_SYSTEM; sl_evaluation_destroy in either
 * case. */
int sl_evaluation_create(struct sl_network *net);
void sl_evaluation_destroy(struct sl_network *net);

/* Submit the metric of labels, if the graph's metric, or the one shown beside it, is one, into
 * sl_network_total. */
void sl_evaluation_submit(struct sl_network *net, const struct sl_matrix *logits);

/* Return the bytes of the evaluation's tiles on this rank, with received tiles. */
int64_t sl_evaluation_bytes(const struct sl_network *net);

#endif
