/* Blocks of a layer's parameters: the rows and columns of some units. A sub-model takes its blocks
 * from the parameters of a wide model, and puts them back (GIST). The parameters are cut into
 * shards of rows, and each task works on one shard: "the whole" is a shard, or all rows.
 *
 * The parameters of a layer are `weights` matrices, one after the other, whose rows are units of
 * the layer's input, then other rows: vectors and biases. Columns are units of its output. Blocks
 * have the same rows, of fewer units, in the same order. Where a block has all rows, rows of other
 * parts' units are zero: its network reads the features of other parts, without effect. */
#ifndef SL_CODELETS_UNITS_H
#define SL_CODELETS_UNITS_H

#include "codelets/operation.h"
#include "core/runtime.h"

/* The units of an axis, and the part that each unit belongs to. The caller keeps `part` until all
 * tasks are done. */
struct sl_units {
    int64_t width;
    const uint8_t *part; // (width): sub-model that has each unit; NULL: all have all units
};

/* The block of one sub-model. */
struct sl_unit_block {
    int weights;
    struct sl_units in, out;
    int part;      /* the sub-model */
    int shift;     /* the block's weights are 2^shift times the whole's weights */
    bool all_rows; /* the block has the rows of all units of the input */
    int64_t first; /* number of the whole's first row among the rows of the layer's parameters */
};

/* A matrix (rows, cols) of parameters. */
struct sl_parameters {
    float *data;
    int64_t rows, cols, ld;
};

/* Return how many last rows of a block, and of the whole (`rows` rows), all sub-models share,
 * because no axis splits them. Each sub-model keeps its own values of shared rows, `kept`, until
 * they are merged. */
int64_t sl_unit_block_shared(const struct sl_unit_block *block, int64_t rows);

/* Return how many of the last rows belong to no unit of the input, where the input is cut; else
 * return the shared rows. */
int64_t sl_unit_block_apart(const struct sl_unit_block *block, int64_t rows);

/* Return the rows that the block has of a whole of `rows` rows. */
int64_t sl_unit_block_rows(const struct sl_unit_block *block, int64_t rows);

/* Copy the block's entries from the whole into `part`, and shared rows from `kept` (shared rows,
 * cols), where `kept` has data. */
void sl_kernel_take(const struct sl_unit_block *block, const struct sl_parameters *whole,
                    const struct sl_parameters *kept, const struct sl_parameters *part);

/* Copy the block's entries from the whole into `part`, one of several blocks that are summed.
 * Shared entries are in the `first` block; other blocks have zeros there and, where the input is
 * cut, in all rows that belong to no unit of the input. */
void sl_kernel_take_block(const struct sl_unit_block *block, bool first,
                          const struct sl_parameters *whole, const struct sl_parameters *part);

/* Copy the block `part` back into the whole, and its shared rows into `kept` (shared rows, cols).
 */
void sl_kernel_put(const struct sl_unit_block *block, const struct sl_parameters *part,
                   const struct sl_parameters *kept, const struct sl_parameters *whole);

/* Set rows of `part` to zero if another part has their unit of the input. `part` is a matrix like
 * the block, with all rows of the whole. */
void sl_kernel_clear_others(const struct sl_unit_block *block, const struct sl_parameters *part);

/* Set the last rows of the whole to the mean of `before` sub-models that were merged before and of
 * this sub-model's `kept`. Rows that are equal in all sub-models keep their bits. */
void sl_kernel_merge(int before, const struct sl_parameters *kept,
                     const struct sl_parameters *whole);

/* The part of each unit in the `round` rounds before this round, one round after the other,
 * `stride` apart for each unit; NULL: all units are in all parts. The caller keeps the history
 * until all tasks are done. sl_kernel_count_steps sets each entry of the block's counts to `steps`
 * times the rounds in which one sub-model had both its units. */
struct sl_rounds_past {
    int64_t round, steps, stride;
    const uint8_t *in, *out; // (units, stride)
};
void sl_kernel_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                           const struct sl_parameters *counts);

/* Kernels on a GPU, whose memory also has the parts of units and of rounds. The workspace holds
 * lists of a block's rows and columns. Kernels do nothing in epochs after the epoch in `end` (1);
 * `end` NULL: the run has no end. */
struct sl_units_end {
    const double *end;
    int epoch;
};
void sl_cuda_take(const struct sl_units_end *when, const struct sl_unit_block *block,
                  const struct sl_parameters *whole, const struct sl_parameters *kept,
                  const struct sl_parameters *part, struct sl_cuda_queue queue);
void sl_cuda_take_block(const struct sl_units_end *when, const struct sl_unit_block *block,
                        bool first, const struct sl_parameters *whole,
                        const struct sl_parameters *part, struct sl_cuda_queue queue);
void sl_cuda_put(const struct sl_units_end *when, const struct sl_unit_block *block,
                 const struct sl_parameters *part, const struct sl_parameters *kept,
                 const struct sl_parameters *whole, struct sl_cuda_queue queue);
void sl_cuda_clear_others(const struct sl_unit_block *block, const struct sl_parameters *part,
                          struct sl_cuda_queue queue);
void sl_cuda_merge(const struct sl_units_end *when, int before, const struct sl_parameters *kept,
                   const struct sl_parameters *whole, struct sl_cuda_queue queue);
/* Copy X to Y; X without data counts as zeros. */
void sl_cuda_copy_parameters(const struct sl_units_end *when, const struct sl_parameters *x,
                             const struct sl_parameters *y, struct sl_cuda_queue queue);
/* Counts = [counts +] the counts of sl_kernel_count_steps. */
void sl_cuda_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                         bool accumulate, const struct sl_parameters *counts,
                         struct sl_cuda_queue queue);
void sl_cuda_metrics_join(const double *x, double *y, struct sl_cuda_queue queue);

/* Bytes of a GPU's workspace for parts of past rounds; the other half is for lists. */
enum { SL_UNITS_HISTORY = SL_RUNTIME_WORKSPACE / 2 };

/* The epoch of a task, and the run's last epoch in `end`, a (1, 1) tile of double
 * (codelets/optimizer.h). The task does nothing in later epochs. Epoch 0 always counts. */
struct sl_units_step {
    int epoch;
    struct sl_tile *end;
};

/* A copy of a block's entries from the whole into rows of a tile. */
struct sl_unit_take {
    struct sl_unit_block block;
    struct sl_units_step step;
    int64_t at, rows;     /* first row of the tile to write, and number of rows */
    bool zero;            /* write zeros, also for shared entries */
    struct sl_tile *kept; /* this sub-model's shared entries; no rows: none; NULL: take shared
                             entries from the whole */
    bool shared; /* with `kept` NULL: take shared entries from the whole; else write zeros */
};

/* Submit tasks on parameters. Tasks that no GPU has room for run on the cores (core/tile.h:
 * `on_cores`). sl_submit_share gives a sub-model the values of the whole, or zeros, to keep. `part`
 * is a tile of a sub-model, or rows of such a tile that travel. */
void sl_submit_take(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *whole,
                    struct sl_tile *part);
void sl_submit_put(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *part,
                   struct sl_tile *whole);
void sl_submit_merge(struct sl_runtime *rt, const struct sl_units_step *step, int before,
                     struct sl_tile *kept, struct sl_tile *whole);
void sl_submit_share(struct sl_runtime *rt, const struct sl_units_step *step, bool zero,
                     struct sl_tile *whole, struct sl_tile *kept);
void sl_submit_clear_others(struct sl_runtime *rt, const struct sl_unit_block *block,
                            struct sl_tile *part);
/* Copy rows that travel: `rows` into `tile` from row `at` on (in), or back (out). */
void sl_submit_rows_in(struct sl_runtime *rt, const struct sl_units_step *step, int64_t at,
                       struct sl_tile *rows, struct sl_tile *tile);
void sl_submit_rows_out(struct sl_runtime *rt, int64_t at, struct sl_tile *tile,
                        struct sl_tile *rows);

void sl_submit_count_steps(struct sl_runtime *rt, const struct sl_unit_block *block,
                           const struct sl_rounds_past *past, struct sl_tile *counts);

/* Copy the metrics (1, SL_METRICS) of a step before the next step overwrites them. */
void sl_submit_metrics_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Add the metrics (1, SL_METRICS) of two sub-models: Y += X. The number of the layer that broke is
 * the smaller of both. */
void sl_submit_metrics_join(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Argument of the tasks take, put, clear_others, merge, share, rows_in, rows_out and count_steps.
 */
struct units_argument {
    struct sl_unit_block block;
    int epoch, before;
    int64_t at, rows;
    bool zero, kept, whole, shared; /* sources of the block's entries */
    struct sl_rounds_past past;
};

#endif
