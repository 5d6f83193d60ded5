/* Rows that the loss depends on: --rows needed. The inner vertices of a step's graph are then its
 * training vertices, and layers compute what these depend on (graphs/reach.h). */
#ifndef SL_BATCHES_NEEDED_H
#define SL_BATCHES_NEEDED_H

#include "data/select.h"
#include "recipe/config.h"

/* Set *kept (*left, freed by the caller) to the vertices of a split among `inner` (count; rows of
 * the files; NULL: all vertices), in their order. Splits are drawn. Return 0, SL_ERR_DATA or
 * SL_ERR_SYSTEM. */
int sl_needed_keep(const struct sl_source *source, enum sl_split split, const int64_t *inner,
                   int64_t count, int64_t **kept, int64_t *left);

/* Select the graph of a step with needed rows: the training vertices, and what these depend on.
 * Splits are drawn. Return as sl_select; sl_selection_free in either case. */
int sl_needed_select(const struct sl_source *source, const struct sl_config *config,
                     struct sl_selection *selection);

/* Set *size to the graph that evaluations between epochs take: validation vertices, and vertices
 * that these depend on. No vertex: they take the whole graph, since it is hardly larger. All ranks
 * do as rank 0. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM, the same on all ranks. */
struct sl_needed_size {
    int64_t vertices, entries; /* of the adjacency */
};
int sl_needed_validation(struct sl_runtime *rt, const struct sl_source *source,
                         const struct sl_config *config, struct sl_needed_size *size);

/* Rows of a training step, and what a step with needed rows computes. */
struct sl_needed_choice {
    char reason[256];     /* why auto chose as it did; "": it was no auto */
    double entries, rows; /* shares of the graph's, in the mean of the layers; 0: not counted */
    bool cached;          /* --cache-aggregate with all rows */
};

/* Settle --rows auto: needed, where fewer rows are predicted to save enough of a step's time. The
 * rates are the usual ones of one core; where GPUs train, of one GPU. So workers, ranks and
 * machines do not change the choice. Count the shares unless --rows is all, or has to be. Splits
 * are drawn then. With `may_cache`, settle --cache-aggregate for needed rows: Â·X, made once,
 * spares the rows one hop further. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM, the same on
 * all ranks. */
int sl_needed_choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                     bool may_cache, struct sl_needed_choice *choice);

/* Take all rows after all, where auto chose needed ones; say why. */
void sl_needed_give_up(struct sl_config *config, struct sl_needed_choice *choice, const char *why);

#endif
