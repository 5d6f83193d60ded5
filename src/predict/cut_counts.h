/* How many clones of vertices a vertex-cut makes, and how many rows travel between them
 * (graphs/vertex_cut.h), before there is a rank that trains. Of a selection, by hop. */
#ifndef SL_PREDICT_CUT_COUNTS_H
#define SL_PREDICT_CUT_COUNTS_H

#include "assembly/operands.h"
#include "data/source.h"
#include "graphs/vertex_cut.h"

/* A clone whose root is elsewhere. */
struct sl_cut_leaf {
    int32_t root, rank; /* ranks of the root and of the clone */
    int32_t hop;        /* hop of the vertex */
    int64_t original;   /* the vertex in the whole graph */
};

struct sl_cut_counts {
    int ranks;
    struct sl_clone_hops hops; /* one hop where none are known */
    int64_t *bounds;           // (ranks + 1): rank r has the clones bounds[r] … bounds[r + 1] - 1
    int64_t *entries; // (ranks, hops, hops): of S = A + I, or A, by the hops of row and column
    int64_t feature_entries; /* entries of sparse features, over all clones */
    bool symmetric;
    int64_t numbers;          /* float32 numbers of an entry: its value, or its features */
    int64_t leaves;           /* counted, */
    struct sl_cut_leaf *leaf; // (leaves): by the ranks of their roots
    double expected;          /* or as many on each rank */
};

/* Count the clones of a whole graph, in the order of the source's files, whose entries are in parts
 * (entries), 0 … ranks - 1. The assembly's loops and seed count. Return 0 or SL_ERR_SYSTEM;
 * sl_cut_counts_destroy in either case. */
int sl_cut_counts_create(struct sl_cut_counts *counts, const struct sl_source *source,
                         const struct sl_dataset *graph, int ranks, const int32_t *part,
                         const struct sl_assembly *assembly);

/* Estimate the clones of edges in random parts (Gonzalez et al., PowerGraph, OSDI 2012, theorem
 * 5.2): an upper limit of clones of better parts. Vertices of a source that has its sizes alone
 * have equal degrees. Hops are not told apart. */
int sl_cut_counts_expect(struct sl_cut_counts *counts, const struct sl_source *source, int ranks,
                         const struct sl_assembly *assembly);

void sl_cut_counts_destroy(struct sl_cut_counts *counts);

/* Free the list of leaves. sl_cut_counts_flow does not follow. */
void sl_cut_counts_forget_leaves(struct sl_cut_counts *counts);

/* Count what travels with a delay, where the clones are cut into these tiles. Of the assembly, seed
 * and widths count. SL_ERR_SYSTEM; sl_vertex_cut_destroy in either case. */
int sl_cut_counts_flow(const struct sl_cut_counts *counts, const struct sl_source *source,
                       const struct sl_partition *clones, const struct sl_assembly *assembly,
                       int delay, struct sl_vertex_cut *cut);

#endif
