/* The largest of neighbours, elementwise, and its gradient: what distributions have in common. */
#ifndef SL_GRAPHS_LARGEST_H
#define SL_GRAPHS_LARGEST_H

#include "core/sparse.h"
#include "graphs/grid.h"

struct sl_runtime;

/* Z(v, j) = the largest of a(v, u)·H(u, j) over the entries of row v, 0 where there is none, and
 * FROM, of int32 and cut like Z, which u it is, as the distribution numbers them; of equal ones the
 * least. H and Z are of one type. Or, back, Z = the gradient of H from that of Z, which is `h`
 * then, and FROM; A is the transpose, and all are float32. */
struct sl_choice {
    bool back;
    const struct sl_sparse_matrix *a;
    const struct sl_matrix *h, *from, *z;
};

/* This rank's part of it: column tile j of its row tiles. */
struct sl_largest {
    struct sl_runtime *rt;
    struct sl_choice choice;
    struct sl_tile_run own;
    int j;
    const struct sl_matrix *moved[2]; /* those whose rows of other ranks are met */
    int matrices;
    bool *started;         // (own)
    struct sl_tile **sums; // (own): of Z
};

void sl_largest_open(struct sl_runtime *rt, const struct sl_choice *choice, struct sl_tile_run own,
                     int j, struct sl_largest *largest);

/* Submits what the sparse tile (i, k) adds, if it has entries: it meets `met` (matrices), tiles of
 * those that are moved. Its columns, or, back, its rows, are the vertices `first` and so on, or,
 * unless it is NULL, those in the first row of `vertices`. */
void sl_largest_meet(struct sl_largest *largest, int i, int k, struct sl_tile *const *met,
                     struct sl_tile *vertices, int64_t first);

/* Submits the rows that nothing was added to. */
void sl_largest_close(struct sl_largest *largest);

#endif
