/* Relations of edges: entry e of an adjacency has relation r(e), 0 … relations - 1. Two vertices
 * may have several edges, each of another relation; a row then lists a column several times.
 *
 * The number of the relation is the last edge feature of an entry, behind its other features. */
#ifndef SL_DATA_RELATIONS_H
#define SL_DATA_RELATIONS_H

#include "data/dataset.h"
#include "data/source.h"

/* Append the relations (entries of `types`, whole numbers from 0 on) to the edge features of a
 * source, which may be absent. `relations`: how many there are, or 0: as many as the largest number
 * says. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_relations_attach(struct sl_source *source, const struct sl_npy *types, int64_t relations);

/* Sort entries of equal column by relation, where each row is sorted by column. edges[e] is the row
 * of STORED (any, features) that entry e has, values[e] its weight; `values` may be NULL. Set
 * *again to the first entry whose column and relation are those of the entry before, and *row to
 * its row; *again -1: there is none. SL_ERR_SYSTEM. */
int sl_relations_sort(const struct sl_csr *csr, const struct sl_npy *stored, float *values,
                      int32_t *edges, int64_t *row, int64_t *again);

/* Give each entry of data->adjacency, but for loops, a reverse entry. The reverse of relation r is
 * relation relations + r. The dataset then has twice as many relations. SL_ERR_DATA: too many;
 * SL_ERR_SYSTEM. */
int sl_relations_reverse(struct sl_dataset *data);

/* Count the relations in long rows, so that sl_relations_read is fast, once. The source reads
 * relations. SL_ERR_DATA: row pointers are not within the file; SL_ERR_SYSTEM. */
int sl_relations_count(struct sl_source *source);

/* Copy the relations of a selection's entries, so that sl_relations_read counts entries of the
 * selection's rows, not of rows of the whole graph. The selection reads relations. SL_ERR_SYSTEM.
 */
int sl_relations_own(struct sl_source *selection);

/* Write the two numbers of an entry (codelets/relations.h): its relation r, and 1 / the number of
 * entries of relation r in its row of the files. */
void sl_relations_read(const struct sl_source *source, uint32_t number, float *features);

#endif
