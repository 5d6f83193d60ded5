/* Rows that the loss depends on: --rows needed. The inner vertices of a step's graph are its
 * training vertices. Layers compute only rows that these depend on (graphs/reach.h). */
#ifndef SL_BATCHES_NEEDED_H
#define SL_BATCHES_NEEDED_H

#include "data/select.h"
#include "recipe/config.h"

/* Set *kept (*left) to the vertices of a split among `inner` (count; rows of the files; NULL: all
 * vertices), in the order of `inner`. The caller frees *kept. The splits must be drawn. Return 0,
 * SL_ERR_DATA or SL_ERR_SYSTEM. */
int sl_needed_keep(const struct sl_source *source, enum sl_split split, const int64_t *inner,
                   int64_t count, int64_t **kept, int64_t *left);

/* Select the graph of a step with needed rows: the training vertices, and the vertices they depend
 * on. The splits must be drawn. Return a code of sl_select; call sl_selection_free in either case.
 */
int sl_needed_select(const struct sl_source *source, const struct sl_config *config,
                     struct sl_selection *selection);

/* The size of a graph of needed rows. */
struct sl_needed_size {
    int64_t vertices, entries; /* entries of the adjacency */
};

/* Set *size to the graph for evaluations between epochs: validation vertices, and the vertices they
 * depend on. Zero: evaluations take the whole graph, which is hardly larger. All ranks get the size
 * of rank 0. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM, the same on all ranks. */
int sl_needed_validation(struct sl_runtime *rt, const struct sl_source *source,
                         const struct sl_config *config, struct sl_needed_size *size);

/* The choice between all rows and needed rows, and its reason. */
struct sl_needed_choice {
    char reason[256];     /* why auto chose as it did; "": the user chose */
    double entries, rows; /* needed over all, in the mean of the layers; 0: not counted */
    bool cached;          /* --cache-aggregate, had the run all rows */
};

/* Settle --rows auto: needed rows, if they are predicted to save enough of a step's time. The
 * prediction has the usual rates of one core or, where GPUs train, of one GPU. So workers, ranks
 * and machines do not change the choice. Count the needed shares, unless --rows is all or must be.
 * Splits are drawn then. With `may_cache`, settle --cache-aggregate for needed rows: Â·X, made
 * once, spares the rows one hop further. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM, the
 * same on all ranks. */
int sl_needed_choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                     bool may_cache, struct sl_needed_choice *choice);

/* Change needed rows that auto chose to all rows, and put `why` into the reason. */
void sl_needed_give_up(struct sl_config *config, struct sl_needed_choice *choice, const char *why);

#endif
