/* Select inner vertices and the vertices they depend on as a dataset. Servers preload such a
 * dataset. Batches of clusters and cooperative batches are such datasets. */
#ifndef SL_DATA_SELECT_H
#define SL_DATA_SELECT_H

#include "data/source.h"

enum { SL_ALL_HOPS = -1 };

/* Limits of a selection. All zero: the inner vertices alone, without edges. */
struct sl_selection_options {
    int hops;             /* layers of an exact network; SL_ALL_HOPS: until no vertex is new */
    int64_t fanout;       /* each vertex adds at most so many of its outer neighbours; 0: all */
    uint64_t seed;        /* seed of the fanout's draws */
    uint32_t draw;        /* number of the fanout's draw, the other key of its random numbers */
    bool keeps_last_rows; /* vertices of the last hop keep their edges to selected vertices (the
                             induced subgraph); else they are inputs alone */
    bool vertices_alone;  /* find only hops and rows: out->source has no arrays */
    int threads;          /* 0: as many as this process may run at a time */
};

/* n selected vertices, numbered by hop, then in the order of the source: vertex 0 is the first
 * inner vertex. With keeps_last_rows, hops are distances by the edges that are kept. */
struct sl_selection {
    struct sl_source source; /* the selection as a dataset: sl_source_read, sl_source_order and the
                                assembly take it. It borrows features and names of classes from its
                                parent source, which must outlive it */
    int hops;                /* the last hop that has a vertex, at most options.hops */
    int64_t *hop_cut;   // (hops + 2): vertices hop_cut[h] … hop_cut[h + 1] - 1 are h hops away
    const int32_t *row; // (n): row in the files of the parent source
    struct sl_block *blocks;
};

/* Select the vertices inner (count; rows of the files, as of sl_source_find_parts; any order,
 * repetitions count once) and the vertices that they depend on.
 *
 * A vertex depends on the columns of its row: hop h + 1 are the neighbours in rows of hop h that
 * are in no hop before. With a fanout k, a vertex with more than k outer neighbours (neighbours
 * that are not inner, in whatever hop) adds the k with the smallest random numbers, keyed by (seed,
 * draw) and the numbers that both vertices have in the whole graph. This is GraNNDis'
 * expansion-aware sampling (section 4.3) with max_hop = hops, where keeps_last_rows is set: all
 * edges between selected vertices stay. The same set follows for any number of threads or ranks and
 * for any order of the source.
 *
 * out->source has
 *   adjacency       the edges among the selected vertices, with their weights
 *   original (n)    each vertex's number in the whole graph: dropout is keyed by it, and it is the
 *                   column of identity features; `whole` is the number of vertices there
 *   row_entries,    the number and the sum of all entries of the vertex's row in the whole graph,
 *   row_weight (n)  which normalise Â. Clear both to normalise by the edges of the selection.
 *                   Columns are normalised by the rows of their vertices, in directed graphs too
 *   labels, splits  those of inner vertices; outer vertices have no label and are in no split
 *   features        rows of the source's own arrays, which sl_source_read gathers
 *   hop_cut         as of the selection; NULL with keeps_last_rows and no hop. It lives as long as
 *                   this
 * A source may be a selection itself.
 *
 * Memory: that of the selected vertices and edges, and bits per vertex of the source: 2 while
 * searching (3 with a fanout, or while distances are found), then 1.5. A selected vertex is
 * numbered by its rank in the set of selected vertices (data/vertex_set.h). No messages: every rank
 * may call this by itself.
 *
 * SL_ERR_DATA: the source is wrong where it was read, or an inner vertex is none. SL_ERR_USAGE: the
 * source has a rule for its splits (sl_source_settle_splits comes first). SL_ERR_SYSTEM.
 * sl_selection_free in either case. */
int sl_select(const struct sl_source *source, const int64_t *inner, int64_t count,
              const struct sl_selection_options *options, struct sl_selection *out);
void sl_selection_free(struct sl_selection *selection);

/* Count all vertices that are at least `hops` hops away as `hops` hops away. */
void sl_selection_join_hops(struct sl_selection *selection, int hops);

/* Return the number of vertices at most h hops away: they come first. */
static inline int64_t sl_selection_within(const struct sl_selection *selection, int h)
{
    return selection->hop_cut[h < selection->hops ? h + 1 : selection->hops + 1];
}

#endif
