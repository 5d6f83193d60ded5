/* Starling's predictions as a small library: a trained model, applied to a graph in memory. It
 * needs neither StarPU nor MPI; its functions compute on the calling thread.
 *
 * The library has no state of its own. Any number of threads may call it at a time, also with one
 * predictor. It prints nothing and never ends the process. Functions with the result `int` return 0
 * or a negative code (enum starling_predictor_code); *error, where it is not NULL, then has one
 * sentence. Matrices, (rows, columns), are row-major, without gaps. Arrays are borrowed for the
 * call. docs/DEPLOY.md has an example. */
#ifndef STARLING_PREDICT_H
#define STARLING_PREDICT_H

#include <stddef.h>
#include <stdint.h>

/* A name that the shared library exports. */
#define STARLING_PREDICT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Values that functions return: those of enum starling_code in starling.h. */
enum starling_predictor_code {
    STARLING_PREDICTOR_OK = 0,
    STARLING_PREDICTOR_ERR_DATA = -1,   /* a checkpoint or an array is wrong */
    STARLING_PREDICTOR_ERR_USAGE = -2,  /* an argument is wrong or missing */
    STARLING_PREDICTOR_ERR_SYSTEM = -3, /* no memory, or a file that cannot be read */
};

/* The sentence of an error, in English, without a newline. */
struct starling_predictor_error {
    char text[1024]; /* "" after a call without an error */
};

typedef struct starling_predictor starling_predictor; /* a model that was read */

/* The meaning of the columns of the logits. */
enum starling_predictor_output {
    STARLING_PREDICTOR_CLASSES,    /* a class each: the largest is the prediction */
    STARLING_PREDICTOR_LABELS,     /* a label each: 1 where the logit is above 0 */
    STARLING_PREDICTOR_NUMBERS,    /* the predicted numbers themselves */
    STARLING_PREDICTOR_EMBEDDINGS, /* of a model of links: the row that its decoder reads */
};

/* A model's properties. Later versions may add members at the end of this structure, and of struct
 * starling_predictor_graph, whose `size` tells them apart; struct starling_predictor_error stays.
 */
struct starling_predictor_info {
    const char *model;     /* value of --model, such as "gcn"; the predictor owns the text */
    int64_t features;      /* columns of features; of a model without features, its vertices */
    int64_t outputs;       /* columns of the logits */
    int64_t edge_features; /* features of an edge that the model reads; 0: none */
    int64_t relations;     /* relations of edges that the model reads; 0: none */
    int identity;          /* not 0: trained without features, for its own graph alone */
    enum starling_predictor_output output; /* what the columns of the logits are */
    int edge_weights; /* edges of the training: 1: with weights, 0: without, -1: unknown */
};

/* A graph: an adjacency in CSR, and features. Row v lists the vertices that v aggregates from, the
 * sources of edges to v, without loops that the model adds itself. Columns of a row may have any
 * order. Weights of duplicates are summed; duplicates without weights count once. Where training
 * counted duplicates (Python's default), give weights that are all 1. With edge_types, a row may
 * have a column once for each type. Members that are not needed are 0. */
struct starling_predictor_graph {
    size_t size;                /* sizeof (struct starling_predictor_graph) */
    int64_t vertices, entries;  /* vertices: 1 or more, below 2^31 */
    const int64_t *indptr;      /* (vertices + 1), from 0 to `entries` */
    const int32_t *indices;     /* (entries): 0 … vertices - 1; NULL: there are no entries */
    const float *weights;       /* (entries); NULL: all 1 */
    int64_t feature_columns;    /* as info->features */
    const float *features;      /* (vertices, feature_columns); NULL: a model with `identity` */
    int64_t edge_columns;       /* as info->edge_features */
    const float *edge_features; /* (entries, edge_columns): row e belongs to entry e */
    const int32_t *edge_types;  /* (entries): relations, 0 … info->relations - 1 */
};

/* Return the version, "0.1.0". */
STARLING_PREDICT_API const char *starling_predictor_version(void);

/* Read a checkpoint of `starling train --checkpoint`, starling_model_save or `starling export
 * --checkpoint`. Every size in it is checked. STARLING_PREDICTOR_ERR_DATA: the file is damaged, has
 * no forward program, or its model has none (docs/DEPLOY.md). */
STARLING_PREDICT_API int starling_predictor_open(const char *path, starling_predictor **predictor,
                                                 struct starling_predictor_error *error);

/* Free a predictor; NULL is fine. */
STARLING_PREDICT_API void starling_predictor_close(starling_predictor *predictor);

/* Return the model's properties, valid until starling_predictor_close; NULL for NULL. */
STARLING_PREDICT_API const struct starling_predictor_info *
starling_predictor_info(const starling_predictor *predictor);

/* Return the name of class or label `output`, of 0 … info->outputs - 1; NULL: no name. */
STARLING_PREDICT_API const char *starling_predictor_class_name(const starling_predictor *predictor,
                                                               int64_t output);

/* Compute the logits (vertices, outputs) of all vertices. They are those of `starling predict
 * --logits` in float32, but for 1e-6 of the largest logit. Training sums in float32, so that the
 * error reaches 1e-5 at vertices of tens of thousands of neighbours. The call does what training
 * did to features: it divides rows by norms and standardises columns. STARLING_PREDICTOR_ERR_DATA:
 * an index is out of range, a number is not finite, or weights cannot be normalised.
 * STARLING_PREDICTOR_ERR_USAGE: an array is missing, or has other columns than the model. */
STARLING_PREDICT_API int starling_predictor_run(const starling_predictor *predictor,
                                                const struct starling_predictor_graph *graph,
                                                float *logits,
                                                struct starling_predictor_error *error);

/* Turn logits (rows, outputs) into predictions: the class of each row (rows), or labels of 0 and 1
 * (rows, outputs). STARLING_PREDICTOR_ERR_USAGE: logits are numbers or embeddings, or an argument
 * is missing. */
STARLING_PREDICT_API int starling_predictor_classes(const starling_predictor *predictor,
                                                    int64_t rows, const float *logits,
                                                    int32_t *classes,
                                                    struct starling_predictor_error *error);

#ifdef __cplusplus
}
#endif

#endif
