/* A trained model, applied to every vertex of a dataset. */
#ifndef SL_RUN_APPLY_H
#define SL_RUN_APPLY_H

#include "data/identities.h"
#include "train/trainer.h"

/* How to run it: as the options of the same names. */
struct sl_apply_options {
    const struct sl_distribution_name *distribution; /* NULL: 1d */
    struct sl_grid grid;                             /* no rows: as the distribution says */
    int64_t tiles, replication;
    const struct sl_metric *metric; /* measured on the dataset; NULL: the model's */
    bool embeddings;                /* the output of the last hidden layer is wanted, too; links
                                       have embeddings in the last layer */
    bool names;                     /* names of vertices and classes are wanted on rank 0 */
    bool scores;                    /* refuse a dataset without labels, or without links */
    const char *output; /* gets predictions, and their vertices' names beside it; NULL: no file */
};

struct sl_apply {
    struct sl_config config; /* the model's */
    struct sl_source source;
    struct sl_identities named; /* when wanted */
    struct sl_trainer trainer;
    struct sl_outcome outcome; /* scores of the splits; NaN for a split without labels */
    struct sl_matrix *logits;  /* the trainer's */
    struct sl_matrix hidden;   /* when wanted */
};

/* Open a dataset, `path` or `graph` (the other is NULL), and run a checkpoint's model on it once.
 * `name`: of the checkpoint, for errors. The dataset's labels may be absent. Collective.
 * SL_ERR_DATA: the model and the dataset do not fit; SL_ERR_USAGE: the options do not;
 * SL_ERR_SYSTEM. Call sl_apply_destroy in either case. */
int sl_apply_create(struct sl_apply *apply, struct sl_runtime *rt, const char *path,
                    const struct sl_source *graph, const struct sl_checkpoint *checkpoint,
                    const char *name, const struct sl_apply_options *options);
void sl_apply_destroy(struct sl_apply *apply);

/* Return a whole matrix (vertices, cols) on rank 0; the caller frees it. NULL on other ranks, and
 * without memory. Clones of a vertex have the same row. Collective. */
float *sl_apply_collect(struct sl_apply *apply, struct sl_matrix *matrix);

/* Set classes[v] (rows) to the first largest logit of row v. all: (rows, cols). */
void sl_apply_find_classes(const float *all, int64_t rows, int64_t cols, int32_t *classes);

/* Set out (rows, cols) to the softmax of each row of the logits `all`; to the sigmoid of each logit
 * where vertices have several labels. The loss is one of classes. May work in place. */
void sl_apply_find_probabilities(const struct sl_loss *loss, const float *all, int64_t rows,
                                 int64_t cols, float *out);

#endif
