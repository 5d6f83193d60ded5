/* Blocks of a layer's parameters: the rows and columns of some units. A sub-model takes its blocks
 * from the parameters of a wide model, and puts them back (GIST). The parameters are cut into
 * panels of rows, and each task works on one panel: "the whole" is a panel, or all rows.
 *
 * The parameters of a layer are `weights` matrices, one after the other, whose rows are units of
 * the layer's input, then other rows: vectors and biases. Columns are units of its output. Blocks
 * have the same rows, of fewer units, in the same order. Where a block has all rows, those of other
 * parts' units are zero: its network reads the features of other parts, and nothing comes of it. */
#ifndef SL_CODELETS_UNITS_H
#define SL_CODELETS_UNITS_H

#include "codelets/operation.h"
#include "core/runtime.h"

/* The units of an axis, and whose they are. Parts stay the caller's until all tasks are done. */
struct sl_units {
    int64_t width;
    const uint8_t *part; // (width): the sub-model that has each unit; NULL: all have all units
};

/* The block of one sub-model. */
struct sl_unit_block {
    int weights;
    struct sl_units in, out;
    int part;      /* the sub-model */
    int shift;     /* the block's weights are 2^shift times those of the whole */
    bool all_rows; /* of the input's units */
    int64_t first; /* row of the layer's parameters that the first row of the whole is */
};

/* A matrix (rows, cols) of parameters. */
struct sl_parameters {
    float *data;
    int64_t rows, cols, ld;
};

/* Entries that all sub-models have, because no axis splits them: the last rows of a block, and as
 * many of the whole, which has `rows`. Each sub-model keeps its own values of them, `kept`, until
 * they meet. */
int64_t sl_unit_block_shared(const struct sl_unit_block *block, int64_t rows);

/* Return how many of the last rows belong to no unit of the input, where it is cut; else what all
 * parts have. */
int64_t sl_unit_block_apart(const struct sl_unit_block *block, int64_t rows);

/* Return the rows that the block has of a whole of `rows` rows. */
int64_t sl_unit_block_rows(const struct sl_unit_block *block, int64_t rows);

/* Block = those entries of the whole, and of `kept` (rows shared, cols), where there are any. */
void sl_kernel_take(const struct sl_unit_block *block, const struct sl_parameters *whole,
                    const struct sl_parameters *kept, const struct sl_parameters *part);

/* The same of one of the blocks that make a sum, whose shared entries are in the first block alone.
 * Where the input is cut, so are all rows of no unit of the input. Others have zeros there. */
void sl_kernel_take_block(const struct sl_unit_block *block, bool first,
                          const struct sl_parameters *whole, const struct sl_parameters *part);

/* The same back. */
void sl_kernel_put(const struct sl_unit_block *block, const struct sl_parameters *part,
                   const struct sl_parameters *kept, const struct sl_parameters *whole);

/* Rows of a matrix like the block, which has all rows of the whole, become zero where the unit of
 * the input is another part's. */
void sl_kernel_clear_others(const struct sl_unit_block *block, const struct sl_parameters *part);

/* The last rows of the whole become the mean of `before` sub-models that were merged before and of
 * this one. They stay the same to the bit where all are equal. */
void sl_kernel_merge(int before, const struct sl_parameters *kept,
                     const struct sl_parameters *whole);

/* Parts that units had in the `round` rounds before this one, one round after the other, `stride`
 * apart for each unit; NULL: all units are in all parts. Counts, of the block's entries, = `steps`
 * · the rounds in which one sub-model had both units. The history stays the caller's until all
 * tasks are done. */
struct sl_rounds_past {
    int64_t round, steps, stride;
    const uint8_t *in, *out; // (units, stride)
};
void sl_kernel_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                           const struct sl_parameters *counts);

/* The same on a GPU, whose memory has parts of units and of rounds, too. Lists of the rows and
 * columns of a block are in the workspace. Nothing is done in an epoch after the one that `end` (1)
 * holds; `end` NULL: in none. */
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
/* Y = X; X without data is zero. */
void sl_cuda_copy_parameters(const struct sl_units_end *when, const struct sl_parameters *x,
                             const struct sl_parameters *y, struct sl_cuda_queue queue);
/* Counts = [counts +] those of sl_kernel_count_steps. */
void sl_cuda_count_steps(const struct sl_unit_block *block, const struct sl_rounds_past *past,
                         bool accumulate, const struct sl_parameters *counts,
                         struct sl_cuda_queue queue);
void sl_cuda_metrics_join(const double *x, double *y, struct sl_cuda_queue queue);

/* Bytes of a GPU's workspace for parts of past rounds; as many are left for lists. */
enum { SL_UNITS_HISTORY = SL_RUNTIME_WORKSPACE / 2 };

/* Whether a task still counts: it does nothing in epochs after the last one of the run, which
 * `end`, a (1, 1) tile of double, holds (codelets/optimizer.h). Epoch 0 always counts. */
struct sl_units_moment {
    int epoch;
    struct sl_tile *end;
};

/* A block takes rows of the whole, which become rows of a tile. */
struct sl_unit_take {
    struct sl_unit_block block;
    struct sl_units_moment moment;
    int64_t at, rows; /* the first of the rows of the tile that the block becomes, and how many */
    bool zero;        /* zeros are taken, of what is shared too */
    struct sl_tile *kept; /* shared entries; without rows, there are none; NULL: the whole's */
    bool shared;          /* with `kept` NULL; or they are zero */
};

/* Tasks on parameters that no GPU has room for are for the cores (core/tile.h: `on_cores`).
 * sl_submit_share gives a sub-model the values of the whole, or zeros, to keep. `part` is a tile of
 * a sub-model, or rows of one that travel. */
void sl_submit_take(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *whole,
                    struct sl_tile *part);
void sl_submit_put(struct sl_runtime *rt, const struct sl_unit_take *take, struct sl_tile *part,
                   struct sl_tile *whole);
void sl_submit_merge(struct sl_runtime *rt, const struct sl_units_moment *moment, int before,
                     struct sl_tile *kept, struct sl_tile *whole);
void sl_submit_share(struct sl_runtime *rt, const struct sl_units_moment *moment, bool zero,
                     struct sl_tile *whole, struct sl_tile *kept);
void sl_submit_clear_others(struct sl_runtime *rt, const struct sl_unit_block *block,
                            struct sl_tile *part);
/* Rows that travel: rows of `tile` from row `at` on become `rows`, or the other way round. */
void sl_submit_rows_in(struct sl_runtime *rt, const struct sl_units_moment *moment, int64_t at,
                       struct sl_tile *rows, struct sl_tile *tile);
void sl_submit_rows_out(struct sl_runtime *rt, int64_t at, struct sl_tile *tile,
                        struct sl_tile *rows);

void sl_submit_count_steps(struct sl_runtime *rt, const struct sl_unit_block *block,
                           const struct sl_rounds_past *past, struct sl_tile *counts);

/* Metrics (1, SL_METRICS) of a step, copied before the next step overwrites them. */
void sl_submit_metrics_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Metrics of two sub-models (1, SL_METRICS): Y += X, but a layer that broke is the first of both.
 */
void sl_submit_metrics_join(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* take, put, clear_others, merge, share, rows_in, rows_out, count_steps */
struct units_argument {
    struct sl_unit_block block;
    int epoch, before;
    int64_t at, rows;
    bool zero, kept, whole, shared; /* with kept entries; with entries of the whole, or zeros */
    struct sl_rounds_past past;
};

#endif
