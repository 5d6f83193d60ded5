/* What the ranks of a group, which have the columns of the same rows, exchange. */
#ifndef SL_GRAPHS_COLUMNS_H
#define SL_GRAPHS_COLUMNS_H

#include "core/message.h"
#include "graphs/distribution.h"

/* WHOLE, of whole rows, from PARTS, the same matrix cut along its columns; and the other way round,
 * with a tag for each of the parts. */
void sl_columns_join(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_matrix *parts, const struct sl_matrix *whole);
void sl_columns_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                    const struct sl_matrix *whole, const struct sl_matrix *parts, int64_t tags);

/* Sends a tile from its owner to the other ranks of the owner's group, which keep it. */
void sl_columns_share(struct sl_runtime *rt, const struct sl_distribution *d, struct sl_tile *tile);

/* The column that is `hop` after this rank's, round, and its rank in this rank's group. */
int sl_columns_after(const struct sl_runtime *rt, const struct sl_distribution *d, int hop);
int sl_columns_rank(const struct sl_runtime *rt, const struct sl_distribution *d, int column);

/* Column tile `column` of this group's rows, as a stage whose lists, which have room for its rows,
 * are `tiles` and `from`. */
struct sl_stage sl_columns_stage(const struct sl_runtime *rt, const struct sl_distribution *d,
                                 const struct sl_matrix *matrix, int column, struct sl_tile **tiles,
                                 int *from);

/* Sends the stage, which is this rank's own or which it has asked for, to those of its group that
 * get it from here, in the order in which they ask: each for the column after its own first. */
void sl_columns_send(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_stage *stage);

#endif
