/* Make a CSR matrix from edges that are read twice, and never held: the first pass counts them, the
 * second puts them into their rows. This takes 8 bytes a vertex and 4 an entry, 8 with weights. */
#ifndef SL_DATA_FORMATS_EDGE_ROWS_H
#define SL_DATA_FORMATS_EDGE_ROWS_H

#include "core/error.h"
#include "data/dataset.h"

struct sl_edge_rows {
    int64_t vertices, entries;
    bool both; /* an edge is an entry of both its ends */
    bool weighted;
    bool numbered;    /* entries say which edge they are, in the order in which edges are put */
    int64_t edge;     /* the number of the next edge */
    int64_t *start;   // (vertices + 1): entries of each row; then place of its next entry
    int32_t *columns; // (entries)
    float *weights;   // (entries), when weighted
    int32_t *edges;   // (entries), when numbered
};

/* Start counting; the caller has set `vertices`, `both`, `weighted` and `numbered`. SL_ERR_SYSTEM.
 */
int sl_edge_rows_open(struct sl_edge_rows *rows, struct sl_block **blocks);

/* Count the edge u -> v, an entry in row v; the caller has checked both ends. */
static inline void sl_edge_rows_count(struct sl_edge_rows *rows, int64_t u, int64_t v)
{
    rows->start[v + 1]++;
    if (rows->both && u != v)
        rows->start[u + 1]++;
}

/* Make room for the entries, after the last count and before the first put. SL_ERR_SYSTEM. */
int sl_edge_rows_allocate(struct sl_edge_rows *rows, struct sl_block **blocks);

static inline bool sl_edge_rows_put_entry(struct sl_edge_rows *rows, int64_t row, int64_t column,
                                          float weight)
{
    const int64_t at = rows->start[row]++;
    if (at >= rows->entries)
        return false;
    rows->columns[at] = (int32_t)column;
    if (rows->weighted)
        rows->weights[at] = weight;
    if (rows->numbered)
        rows->edges[at] = (int32_t)rows->edge;
    return true;
}

/* Put the edge u -> v. Return false if it was not counted, because the file has changed. */
static inline bool sl_edge_rows_put(struct sl_edge_rows *rows, int64_t u, int64_t v, float weight)
{
    const bool forth = sl_edge_rows_put_entry(rows, v, u, weight),
               back =
                   forth && (!rows->both || u == v || sl_edge_rows_put_entry(rows, u, v, weight));
    rows->edge++;
    return back;
}

/* Make the adjacency of a dataset, with sorted rows; add the count of merged duplicates. With
 * `numbered`, make its edge features from those of the edges, FEATURES (edges, columns).
 * SL_ERR_DATA: too many edges have features. SL_ERR_SYSTEM. */
int sl_edge_rows_close(struct sl_edge_rows *rows, int64_t columns, const float *features,
                       struct sl_dataset *out);

/* Say in a note how much memory reading needs, where it is much, and whether less is free. `bytes`:
 * memory beside the matrix. */
void sl_edge_rows_say(const char *path, const struct sl_read_options *options, int64_t edges,
                      int64_t vertices, int64_t bytes);

#endif
