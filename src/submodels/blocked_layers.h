/* How submodels/blocked_evaluation.h cuts a network: which layers read which, and blocks of units
 * between them.
 *
 * The list has layers that multiply, and at most one norm between two of them. All hidden
 * layers have the same blocks. Blocks of the first layer's input and of the last layer's output are
 * whole. A last layer that reads several outputs has their blocks one output after another. */
#ifndef SL_SUBMODELS_BLOCKED_LAYERS_H
#define SL_SUBMODELS_BLOCKED_LAYERS_H

#include "submodels/blocked_evaluation.h"

/* ---- Layers ---- */

bool sl_blocked_attends(const struct sl_layer_shape *shape);
bool sl_blocked_is_norm(const struct sl_layer_shape *shape);

/* Move the hops at the end of the list behind its end. Return how many hops. */
int sl_blocked_cut_hops(struct sl_layer_list *list);

/* Return how many outputs a layer reads. */
int sl_blocked_inputs(const struct sl_layer_shape *shape);

/* Return the last layer before layer `l` that multiplies. */
int sl_blocked_layer_before(const struct sl_layer_list *list, int l);

/* Whether layer `reader` multiplies and reads the output of layer `l`. */
bool sl_blocked_reads(const struct sl_layer_list *list, int reader, int l);

/* ---- Blocks ---- */

/* Return the columns of a block on a grid of `columns` columns. With one block, return all columns.
 */
int64_t sl_blocked_width(const struct sl_layer_list *list, int64_t vertices, enum sl_type type,
                         int columns);

bool sl_blocked_is_last_layer(const struct sl_blocked *blocked, int l);
bool sl_blocked_is_last_block(const struct sl_blocked *blocked, int block);

/* Return the columns of the last block, or of any other block. */
int64_t sl_blocked_columns(const struct sl_blocked *blocked, bool last);

/* Return the number of blocks of a layer's input (before) and output (after). A norm's input counts
 * as one block. */
int sl_blocked_blocks_before(const struct sl_blocked *blocked, int l);
int sl_blocked_blocks_after(const struct sl_blocked *blocked, int l);

/* Return which block of a reader's input is block `j` of layer l's output. */
int sl_blocked_block_before(const struct sl_blocked *blocked, int reader, int l, int j);

/* Whether all sums of a layer stay in memory: a layer reads them only when all are complete, or
 * several layers read them. Otherwise each block of the first layer is read at once. */
bool sl_blocked_is_kept(const struct sl_blocked *blocked, int l);

/* ---- From block i of a layer's input to block j of its output ---- */

struct sl_blocked_step *sl_blocked_step_of(const struct sl_blocked *blocked, int l, int i, int j);

/* Return the block of parameters of a step, and the shape of the step's layer. */
struct sl_unit_block sl_blocked_block_of(const struct sl_blocked *blocked, int l, int i, int j);
struct sl_layer_shape sl_blocked_shape(const struct sl_blocked *blocked, int l, int i, int j);

#endif
