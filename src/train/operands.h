/* From a dataset in host memory to the tiles that training reads: the adjacency, its transpose,
 * what normalises it, the features, the targets. */
#ifndef SL_TRAIN_OPERANDS_H
#define SL_TRAIN_OPERANDS_H

#include "data/dataset.h"
#include "graphs/network.h"
#include "train/config.h"
#include "train/partition.h"

struct sl_operands {
    struct sl_partition partition;
    struct sl_distribution distribution;
    struct sl_sparse_matrix adjacency, transposed; /* S = A + I and Sᵀ, which is empty where S is
                                                      symmetric: Â = diag(left)·S·diag(right) */
    struct sl_tile *facts;                         // T tiles (SL_ROW_FACTS, rows)
    enum sl_type type;                             /* of dense features */
    struct sl_input input;
    struct sl_tile *target; // T tiles (rows, 2) of int32 {label or -1, split}
    int64_t split_count[4]; /* labelled vertices of each split */
    int64_t input_cut[2];
};

/* Makes all tiles of this rank. With `aggregate` the input is Â·X. Returns 0, SL_ERR_DATA (no
 * degree to normalise by) or SL_ERR_SYSTEM; sl_operands_destroy frees what was made in either case.
 */
int sl_operands_create(struct sl_operands *operands, struct sl_runtime *rt,
                       const struct sl_dataset *data, const struct sl_config *config,
                       bool aggregate);
void sl_operands_destroy(struct sl_operands *operands);

#endif
