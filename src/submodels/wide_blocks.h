/* How submodels/wide.h cuts a network: which layers read which, and blocks of units between them.
 *
 * The list of layers has layers that multiply and, between two of these, a norm or none. All hidden
 * layers have the same blocks. Blocks of the first layer's input and of the last layer's output are
 * whole. A last layer that reads several outputs has the blocks of one after those of another. */
#ifndef SL_SUBMODELS_WIDE_BLOCKS_H
#define SL_SUBMODELS_WIDE_BLOCKS_H

#include "submodels/wide.h"

/* ---- Layers ---- */

bool sl_wide_attends(const struct sl_layer_shape *shape);
bool sl_wide_is_norm(const struct sl_layer_shape *shape);

/* Take the hops at the end out of the list, behind whose end they stay. Return how many. */
int sl_wide_cut_hops(struct sl_layer_list *list);

/* Return how many outputs a layer reads. */
int sl_wide_inputs(const struct sl_layer_shape *shape);

/* Return the last layer before layer `l` that multiplies. */
int sl_wide_layer_before(const struct sl_layer_list *list, int l);

/* Whether a layer that multiplies reads what layer `l` leaves. */
bool sl_wide_reads(const struct sl_layer_list *list, int reader, int l);

/* ---- Blocks ---- */

/* Return the columns of a block, for a grid of so many columns; of the whole, where there is but
 * one block. */
int64_t sl_wide_width(const struct sl_layer_list *list, int64_t vertices, enum sl_type type,
                      int columns);

bool sl_wide_is_last_layer(const struct sl_wide *wide, int l);
bool sl_wide_is_last_block(const struct sl_wide *wide, int block);

/* Return the columns of a block: of the last one, or of another. */
int64_t sl_wide_columns(const struct sl_wide *wide, bool last);

/* Return the blocks of a layer's input and output. A norm has one of its input. */
int sl_wide_blocks_before(const struct sl_wide *wide, int l);
int sl_wide_blocks_after(const struct sl_wide *wide, int l);

/* Return the block of a reader's input that is block `j` of layer l's output. */
int sl_wide_block_before(const struct sl_wide *wide, int reader, int l, int j);

/* Whether all sums of a layer are in memory at a time: all are needed before one is read, or
 * several layers read them. Else a block of the first layer is read when it is there. */
bool sl_wide_is_kept(const struct sl_wide *wide, int l);

/* ---- From block i of a layer's input to block j of its output ---- */

struct sl_wide_step *sl_wide_step_of(const struct sl_wide *wide, int l, int i, int j);

/* Return which parameters these are, and what the step's layer is made from. */
struct sl_unit_block sl_wide_block_of(const struct sl_wide *wide, int l, int i, int j);
struct sl_layer_shape sl_wide_shape(const struct sl_wide *wide, int l, int i, int j);

#endif
