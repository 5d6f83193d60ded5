/* How many clones of vertices a vertex-cut makes, and how many rows travel between them
 * (graphs/vertex_cut.h), before there is a rank that trains. */
#ifndef SL_PREDICT_CUT_COUNTS_H
#define SL_PREDICT_CUT_COUNTS_H

#include "assembly/operands.h"
#include "data/source.h"
#include "graphs/vertex_cut.h"

struct sl_cut_counts {
    int ranks;
    struct sl_vertex_cut cut; /* its counts alone */
    int64_t *bounds;          // (ranks + 1): rank r has the clones bounds[r] … bounds[r + 1] - 1
    int64_t *entries;         // (ranks): of S = A + I, or A, among them
    int64_t feature_entries;  /* of sparse features, of all clones */
    bool symmetric, has_values;
};

/* Of a graph, all of it, in the order of the source's files, whose entries are in parts (entries),
 * 0 … ranks - 1. Of the assembly, loops, seed and widths count, the delay is the argument.
 * SL_ERR_SYSTEM; sl_cut_counts_destroy in either case. */
int sl_cut_counts_create(struct sl_cut_counts *counts, const struct sl_source *source,
                         const struct sl_dataset *graph, int ranks, const int32_t *part,
                         const struct sl_assembly *how, int delay);

/* Those that are expected where edges are in random parts, as PowerGraph's (Gonzalez et al., OSDI
 * 2012, theorem 5.2): an upper limit of better ones. Of a source of which only the sizes are there,
 * vertices have equal degrees. */
int sl_cut_counts_expect(struct sl_cut_counts *counts, const struct sl_source *source, int ranks,
                         const struct sl_assembly *how, int delay);

void sl_cut_counts_destroy(struct sl_cut_counts *counts);

#endif
