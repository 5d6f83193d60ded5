/* Messages inside a group. The ranks of a group have the same rows, and each rank has some columns.
 */
#ifndef SL_GRAPHS_COLUMNS_H
#define SL_GRAPHS_COLUMNS_H

#include "core/message.h"
#include "graphs/distribution.h"

/* Submit WHOLE, of whole rows, = PARTS, the same matrix cut along its columns. */
void sl_columns_join(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_matrix *parts, const struct sl_matrix *whole);

/* Submit PARTS = WHOLE. `tags`: the first of row tiles x columns tags, one per tile of PARTS. */
void sl_columns_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                    const struct sl_matrix *whole, const struct sl_matrix *parts, int64_t tags);

/* Return the elements that `rank` receives while a matrix of that cut (columns + 1) is joined and
 * cut again; add the messages to *messages. The grid has more than one column. */
int64_t sl_columns_count(const struct sl_distribution *d, const int64_t *cut, int rank,
                         int64_t *messages);

/* Send a tile from its owner to the other ranks of the owner's group. They keep the tile. */
void sl_columns_share(struct sl_runtime *rt, const struct sl_distribution *d, struct sl_tile *tile);

/* Return the column `hop` places after this rank's column, round. */
int sl_columns_after(const struct sl_runtime *rt, const struct sl_distribution *d, int hop);

/* Return the rank in this rank's group that has the column. */
int sl_columns_rank(const struct sl_runtime *rt, const struct sl_distribution *d, int column);

/* Return column tile `column` of this group's rows as a stage (core/message.h). Its lists `tiles`
 * and `from` have room for the row tiles of the group. */
struct sl_stage sl_columns_stage(const struct sl_runtime *rt, const struct sl_distribution *d,
                                 const struct sl_matrix *matrix, int column, struct sl_tile **tiles,
                                 int *from);

/* Send a stage on to the ranks of the group whose parent this rank is (graphs/ring.h). This rank
 * owns the stage or has asked for it. The order is the order in which the ranks ask: each rank asks
 * first for the column after its own. */
void sl_columns_send(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_stage *stage);

#endif
