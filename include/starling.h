/* Starling as a library: train a graph neural network on a whole graph, and apply it.
 *
 * A graph, options, a model and a prediction are opaque. Functions with the result `int` return 0
 * or a negative code (enum starling_code); starling_error has the sentence. No function ends the
 * process for a wrong argument, file or option. Matrices, (rows, columns), are row-major, without
 * gaps. One call at a time: StarPU exists once in a process. Any thread may make the call; a
 * callback makes none but starling_error. A call prints nothing, unless its option `quiet` is no.
 * Where that option is not set, a process prints one note on stderr if StarPU has fewer workers
 * than there are cores.
 *
 * Ranks: a program that an MPI launcher started makes the calls marked "collective" on all ranks,
 * with equal arguments and arrays, which they compare. They return the same code on all ranks; one
 * rank has the sentence, and the others have an empty one. docs/LIBRARY.md has examples. */
#ifndef STARLING_H
#define STARLING_H

#include <stdint.h>

/* A name that the shared library exports. */
#define STARLING_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Values that functions return. */
enum starling_code {
    STARLING_OK = 0,
    STARLING_ERR_DATA = -1,   /* an array, a file or a dataset is wrong */
    STARLING_ERR_USAGE = -2,  /* an option or an argument is wrong */
    STARLING_ERR_SYSTEM = -3, /* the machine refused: memory, disk, StarPU, MPI */
};

typedef struct starling_graph starling_graph;           /* borrowed arrays, or an open dataset */
typedef struct starling_options starling_options;       /* options of a training, by name */
typedef struct starling_model starling_model;           /* weights, and what a checkpoint has */
typedef struct starling_prediction starling_prediction; /* outputs of all vertices */

/* Return the version, "0.1.0". */
STARLING_API const char *starling_version(void);

/* Return the sentence of this thread's last error; "" before any. Valid until the next call. */
STARLING_API const char *starling_error(void);

/* ---- Ranks ---- */

/* Start MPI where a launcher started this process and the program has not started MPI. Other
 * functions do so as well. A program that starts MPI itself needs MPI_THREAD_MULTIPLE; its MPI
 * stays its own. Collective. STARLING_ERR_SYSTEM, STARLING_ERR_USAGE. */
STARLING_API int starling_start(void);

/* Return the number of this process, 0 …, and of all; 0 and 1 before starling_start. */
STARLING_API int starling_rank(void);
STARLING_API int starling_ranks(void);

/* Finalize MPI if this library has started it. Call this once, at the end. Collective. */
STARLING_API void starling_finish(void);

/* ---- Graphs ---- */

/* The splits of a graph's vertices. */
enum starling_split { STARLING_TRAIN = 1, STARLING_VAL = 2, STARLING_TEST = 3 };

/* The sizes of a graph. */
struct starling_sizes {
    int64_t vertices; /* vertices, which have the indices 0 to vertices - 1 */
    int64_t entries;  /* edges as entries of the adjacency */
    int64_t features; /* columns of the features; without features, the vertices */
    int64_t classes;  /* classes, or columns of labels; 0: no labels */
};

/* Open a dataset in any format that the program reads. Collective. STARLING_ERR_DATA names file and
 * position. */
STARLING_API int starling_graph_open(const char *path, starling_graph **graph);

/* Make a graph of an adjacency in CSR: row v lists the vertices that v aggregates from, the sources
 * of edges to v. Columns of a row may have any order; duplicates are merged, and weights of them
 * summed. Here and below arrays are borrowed: none is copied, and each must stay as it is until
 * starling_graph_free. They are checked when a graph is trained on. Each rank gives the whole
 * arrays and reads its own rows. STARLING_ERR_SYSTEM.
 *   indptr: (vertices + 1), from 0 to `entries`; indices: (entries) */
STARLING_API int starling_graph_create(int64_t vertices, int64_t entries, const int64_t *indptr,
                                       const int32_t *indices, starling_graph **graph);

/* Set weights (entries) of the adjacency. Without them all are 1, also those of duplicates. */
STARLING_API int starling_graph_set_weights(starling_graph *graph, const float *weights);

/* Set features of edges (entries, columns), at most 256 columns: row e belongs to entry e. Columns
 * of a row of the adjacency must then ascend, each once, unless edges have types. */
STARLING_API int starling_graph_set_edge_features(starling_graph *graph, int64_t columns,
                                                  const float *values);

/* Set types of edges (entries), which --model rgcn reads: the number of the relation of entry e, 0
 * to 65535. A row of the adjacency may then list a column once for each relation. Set features of
 * edges before. */
STARLING_API int starling_graph_set_edge_types(starling_graph *graph, const int32_t *types);

/* Give an edge without weights that is there k times the weight k, as if all were set to 1. Without
 * duplicates, or with weights, the graph stays as it is. Otherwise the adjacency is copied.
 * STARLING_ERR_DATA: the adjacency is wrong. STARLING_ERR_SYSTEM. */
STARLING_API int starling_graph_count_duplicates(starling_graph *graph);

/* Set features (vertices, columns), dense or in CSR. Without them the input is the identity. Dense
 * features of which at most 40 % are not 0 are read as CSR, in training and prediction. CSR
 * features are a bag of words: --normalize-features is l2 by default. indptr: (vertices + 1);
 * indices: (entries), 0 … columns - 1; values: (entries), NULL: all 1 */
STARLING_API int starling_graph_set_features(starling_graph *graph, int64_t columns,
                                             const float *values);
STARLING_API int starling_graph_set_sparse_features(starling_graph *graph, int64_t columns,
                                                    int64_t entries, const int64_t *indptr,
                                                    const int32_t *indices, const float *values);

/* Set a class for each vertex (vertices): 0 … classes - 1, or -1 for none. `classes` 0: one more
 * than the largest. */
STARLING_API int starling_graph_set_classes(starling_graph *graph, int64_t classes,
                                            const int32_t *labels);

/* Set several labels for each vertex, 0 or 1, or numbers to predict: (vertices, columns). NaN: not
 * known. */
STARLING_API int starling_graph_set_labels(starling_graph *graph, int64_t columns,
                                           const float *labels);
STARLING_API int starling_graph_set_numbers(starling_graph *graph, int64_t columns,
                                            const float *numbers);

/* Set the vertices of a split: their numbers (count), or a mask (vertices), not 0 for those of the
 * split. The option `split` draws splits instead. */
STARLING_API int starling_graph_set_split(starling_graph *graph, enum starling_split split,
                                          int64_t count, const int64_t *vertices);
STARLING_API int starling_graph_set_mask(starling_graph *graph, enum starling_split split,
                                         const uint8_t *mask);

/* Set links (links, 2) of STARLING_VAL or STARLING_TEST, pairs of source and target that --task
 * links predicts, and pairs (negatives, 2) that are no links. The adjacency does not have these
 * edges; its own edges are the links that train. Negatives k · (negatives / links) … belong to link
 * k. STARLING_ERR_USAGE: another split. STARLING_ERR_DATA: a vertex is none, or one of both has no
 * pairs. */
STARLING_API int starling_graph_set_links(starling_graph *graph, enum starling_split split,
                                          int64_t links, const int64_t *pairs, int64_t negatives,
                                          const int64_t *others);

/* Set *sizes. STARLING_ERR_DATA: labels or features have no sizes. */
STARLING_API int starling_graph_sizes(starling_graph *graph, struct starling_sizes *sizes);

/* Write a dataset: a directory, or a file in the format that the end of `path` names (.npz, .mtx,
 * ...). Ranks other than 0 write nothing. STARLING_ERR_DATA, STARLING_ERR_USAGE: the directory is
 * there and not empty. STARLING_ERR_SYSTEM. */
STARLING_API int starling_graph_save(starling_graph *graph, const char *path);

/* Free a graph; NULL is fine. Its arrays are the caller's again. */
STARLING_API void starling_graph_free(starling_graph *graph);

/* ---- Options ---- */

/* Make options, all at their defaults: those of `starling train`, but `quiet` is yes. */
STARLING_API int starling_options_create(starling_options **options);

/* Set an option: the name and the value are those of `starling train --help`, without dashes before
 * the name: ("model", "gat"), ("lr", "0.01"), ("bias", "no"). A loss, a layer or a reducer of one's
 * own is registered before its name is a value. STARLING_ERR_USAGE names what was
 * expected. Not here: plan, profile, dag, trace, trace-epochs, report. */
STARLING_API int starling_options_set(starling_options *options, const char *name,
                                      const char *value);

/* Free options; NULL is fine. */
STARLING_API void starling_options_free(starling_options *options);

/* ---- A loss of one's own ---- */

/* Targets that a loss compares the logits with. */
enum starling_labels {
    STARLING_CLASSES, /* a class for each vertex */
    STARLING_LABELS,  /* labels of 0 and 1, several for each vertex; of a class, 1 for itself */
    STARLING_NUMBERS, /* numbers */
};

/* Some vertices with labels, a row each. The arrays belong to the library and last for one call. */
struct starling_loss_rows {
    int64_t rows, columns;  /* how many vertices; numbers of each */
    const int64_t *vertex;  /* (rows): numbers of the vertices in the graph */
    const float *logits;    /* (rows, columns) */
    const int32_t *classes; /* (rows): 0 … columns - 1; NULL unless of STARLING_CLASSES */
    const float *labels;    /* (rows, columns), NaN: not known; NULL if of STARLING_CLASSES */
    double *loss;           /* (rows): to be set; all 0 before */
    float *gradient; /* (rows, columns): to be set to d loss[r] / d logits[r, j]; all 0 before;
                        NULL: an evaluation, which needs none */
};

/* Set the loss and the gradient of each row, from this row alone. The library takes the mean over
 * the training vertices. StarPU's workers make such calls at the same time. The function calls
 * nothing of the library, and always gives the same numbers for the same row. A number that is not
 * finite ends the training with STARLING_ERR_DATA. */
typedef void starling_loss(void *context, const struct starling_loss_rows *rows);

/* Give a loss a name for the option `loss`, on each rank. The same name again replaces function and
 * context. A model that was trained with it needs the name for predictions, also in other
 * processes. It runs on cores; the rest of a step may run on GPUs. A name has 1 to 31 characters of
 * a-z, 0-9 and -, and does not begin with -. STARLING_ERR_USAGE: this is no name, or the library
 * has it; there are 16 names; a training is on its way. */
STARLING_API int starling_loss_register(const char *name, enum starling_labels labels,
                                        starling_loss *loss, void *context);

/* ---- A layer of one's own ---- */

/* Some vertices, a row each, forward or back, and the layer's parameters. The arrays belong to the
 * library and last for one call. Those that a call has to set or to add to are all 0 before, but
 * parameter_gradients, which has the sums of calls before. */
struct starling_layer_rows {
    int64_t rows, columns;             /* how many vertices; numbers of each */
    const float *input;                /* (rows, columns) */
    const float *const *parameters;    /* matrices (columns, columns), then vectors (columns) */
    float *output;                     /* forward, (rows, columns): to be set */
    const float *output_gradient;      /* back, (rows, columns) */
    float *input_gradient;             /* back, (rows, columns): to be set */
    float *const *parameter_gradients; /* back, likewise: to be added to */
};

/* Work on each row alone. StarPU's workers make such calls at the same time. The function calls
 * nothing of the library, and always gives the same numbers for the same row. */
typedef void starling_layer_function(void *context, const struct starling_layer_rows *rows);

/* A layer: the names of its parameters, and its two functions. */
struct starling_layer {
    const char *matrices[3]; /* names of parameters (columns, columns), at most 2, then NULL; random
                                at first, as those of the library */
    const char *vectors[5];  /* names of parameters (columns), at most 4, then NULL */
    float start[4];          /* number that fills each vector at first */
    starling_layer_function *forward;  /* sets the output */
    starling_layer_function *backward; /* sets the input's gradient, adds to the parameters' */
    void *context;                     /* handed to both functions */
};

/* Give a layer a name for the option `block-norm` of the model `resgcn`, on each rank. Each block
 * then is H += GCN(dropout(relu(layer(H)))), and so is the layer before the decoder; `columns` is
 * the option `hidden`. Not with sub-models, nor with a grid of several columns. The same name again
 * replaces the layer. *layer and its names are copied, `context` is not. It runs on cores, and
 * predictions need the name, as of a loss. STARLING_ERR_USAGE: the layer has a name that
 * starling_loss_register would refuse; a parameter has other characters than a-z, 0-9 and _, or
 * the name of another one; there is no parameter; a function is NULL; there are 16 layers; a
 * training is on its way. */
STARLING_API int starling_layer_register(const char *name, const struct starling_layer *layer);

/* ---- A reducer of one's own ---- */

/* How a vertex combines the rows of its neighbours, element by element. The state of a vertex is
 * two numbers for each element. A function works on `n` elements of one vertex or neighbour, which
 * may be some of a row. Functions are as those of a layer. */
struct starling_reducer {
    float start[2]; /* the state of a vertex that has met no neighbour */
    /* Combine a neighbour's elements into the state; `weight`: of the edge, 1 without weights. */
    void (*combine)(void *context, int64_t n, float weight, const float *neighbour, float *first,
                    float *second);
    /* Merge the state that another rank has of the vertex into the state. */
    void (*merge)(void *context, int64_t n, const float *other_first, const float *other_second,
                  float *first, float *second);
    /* Turn the state into the result, in `first`, and what its gradient needs, in `second`. Also of
     * a vertex without neighbours. */
    void (*finish)(void *context, int64_t n, float *first, float *second);
    /* Add the part of one edge to the gradient of the neighbour's elements, from the gradient of
     * the result and the vertex's `second`. */
    void (*differentiate)(void *context, int64_t n, float weight, const float *neighbour,
                          const float *gradient, const float *second, float *neighbour_gradient);
    void *context; /* handed to all functions */
};

/* Give a reducer a name for the option `aggregator` of the model `sage`, on each rank. Not with
 * bfloat16, nor with a `delay` of epochs. The same name again replaces the reducer. *reducer is
 * copied, `context` is not. It runs on cores, and predictions need the name, as of a loss.
 * STARLING_ERR_USAGE: a name is none as of starling_loss_register; a function is NULL; there are 16
 * reducers; a training is on its way. */
STARLING_API int starling_reducer_register(const char *name,
                                           const struct starling_reducer *reducer);

/* ---- Training ---- */

/* Figures of an epoch. Accuracies and scores are NaN where they were not measured, or where labels
 * are numbers. Structures may grow at their ends. */
struct starling_epoch {
    int64_t epoch, epochs;                              /* this epoch (1, 2, …); all epochs */
    double loss;                                        /* mean over the training vertices */
    double train_accuracy, val_accuracy, test_accuracy; /* shares of right vertices */
    double train_score, val_score, test_score;          /* values of the option `metric` */
    double seconds;                                     /* without the evaluation */
};

/* Figures of a training, or of an evaluation. */
struct starling_result {
    int64_t epochs, best_epoch; /* last epoch; best epoch on validation, 0: none was evaluated */
    double loss; /* training loss in kept_epoch, before its last update; NaN: see kept_epoch */
    double train_accuracy, val_accuracy, test_accuracy; /* with the model's weights */
    double train_score, val_score, test_score;          /* values of `metric` with these weights */
    const char *metric;                                 /* name; the caller does not free it */
    double epoch_seconds;                               /* median of the epochs */
    double seconds;                                     /* all epochs and evaluations */
    int stopped;                                        /* by the callback, or starling_stop */
    int early;                                          /* by the option `patience` */
    int64_t kept_epoch; /* whose weights the model has: best_epoch, or epochs (option `keep`). After
                           a stop between two steps these have the steps after `epochs`, too, and no
                           loss, unless the best ones are kept */
};

/* Return 0 to go on; otherwise training stops after an epoch that is already on its way, with the
 * option `batches` after a step, within an epoch that is not counted. */
typedef int starling_callback(void *context, const struct starling_epoch *epoch);

/* Train a model. `options` NULL: defaults. `callback`, NULL: none, is told of each epoch on rank 0.
 * Losses and weights are, bit for bit, those of `starling train` with the same options. On an error
 * *model is NULL, unless the model is there and only a log or a checkpoint could not be written.
 * Collective. STARLING_ERR_DATA names array or file and position;
 * STARLING_ERR_USAGE names the option; STARLING_ERR_SYSTEM. */
STARLING_API int starling_train(starling_graph *graph, const starling_options *options,
                                starling_callback *callback, void *context, starling_model **model);

/* Ask the training on its way to stop, as its callback may. This is a signal handler:
 * signal(SIGINT, starling_stop). The argument does not matter. Any rank may be asked. Trainings
 * stop until starling_stopped is called. */
STARLING_API void starling_stop(int signal);

/* Return whether starling_stop was called since the last call of starling_stopped, or ever. */
STARLING_API int starling_stopped(void);

/* ---- Models ---- */

/* Read a checkpoint, as of starling_model_save or `starling train --checkpoint`. */
STARLING_API int starling_model_load(const char *path, starling_model **model);

/* Write a checkpoint. Ranks other than 0 write nothing. */
STARLING_API int starling_model_save(const starling_model *model, const char *path);

/* Free a model; NULL is fine. Pointers to its weights and its result end with it. */
STARLING_API void starling_model_free(starling_model *model);

/* Return the result of the training. A loaded model has epochs, best_epoch and kept_epoch alone;
 * other numbers are NaN. */
STARLING_API const struct starling_result *starling_model_result(const starling_model *model);

/* Return a JSON object: "configuration" has all options by name, "dataset" the sizes. */
STARLING_API const char *starling_model_description(const starling_model *model);

/* Return how many weights there are, and weight `index`, (rows, columns), with its name, such as
 * "layer.0.weight" (docs/MODELS.md). Weights are those of the result's kept_epoch. They may be
 * changed in place: predictions follow. NULL: no such weight. `name`, `rows` and `columns` may be
 * NULL. */
STARLING_API int64_t starling_model_weights(const starling_model *model);
STARLING_API float *starling_model_weight(starling_model *model, int64_t index, const char **name,
                                          int64_t *rows, int64_t *columns);
STARLING_API float *starling_model_find(starling_model *model, const char *name, int64_t *rows,
                                        int64_t *columns);

/* ---- Predictions ---- */

/* The arrays of a prediction. */
enum starling_output {
    STARLING_LOGITS,        /* (vertices, columns): the output of the last layer; numbers that are
                               predicted are that */
    STARLING_PROBABILITIES, /* (vertices, columns): softmax, or sigmoid of several labels */
    STARLING_EMBEDDINGS,    /* (vertices, hidden): the output of the last hidden layer */
};

/* Apply a model to all vertices of a graph, which may be another one than it was trained on. Of
 * `options`, NULL: defaults, those that say how to run count: workers, device, scheduler, tiles,
 * distribution, grid, replication. `embeddings`: not 0 to keep them. Collective; errors as of
 * starling_train. */
STARLING_API int starling_predict(const starling_model *model, starling_graph *graph,
                                  const starling_options *options, int embeddings,
                                  starling_prediction **prediction);

/* Return an array on rank 0; NULL on others, and where it does not exist. Set the shape. */
STARLING_API const float *starling_prediction_output(const starling_prediction *prediction,
                                                     enum starling_output output, int64_t *rows,
                                                     int64_t *columns);

/* Return the class of each vertex (rows, 1); of several labels, 1 for each with a probability above
 * 1/2 (rows, columns). NULL likewise, and where labels are numbers. */
STARLING_API const int32_t *starling_prediction_classes(const starling_prediction *prediction,
                                                        int64_t *rows, int64_t *columns);

/* Return accuracies and scores on the graph's splits; NaN for those without labels, on all ranks.
 */
STARLING_API const struct starling_result *
starling_prediction_result(const starling_prediction *prediction);

/* Free a prediction; NULL is fine. Its arrays end with it. */
STARLING_API void starling_prediction_free(starling_prediction *prediction);

/* ---- Kernels ----
 *
 * Kernels for a program with matrices and a training of its own, such as a program of PyTorch. The
 * calls need no rank and no StarPU. Any number of threads may make them at a time. A call shares
 * its rows out among `threads` threads. One thread makes all sums of a row, so results have the
 * same bits whatever the number of threads. A result does not lie in the place of an operand. */

typedef struct starling_adjacency starling_adjacency; /* a sparse matrix and its transpose */
typedef struct starling_attention
    starling_attention; /* what a forward pass keeps for the way back */

/* Make a matrix of edges in any order: row targets[e] has an entry in column sources[e], of value
 * weights[e], or 1 where `weights` is NULL. Arrays (entries) are copied. An edge may be there
 * several times. STARLING_ERR_DATA: a vertex out of range. STARLING_ERR_USAGE: a size of 2^31 or
 * more. STARLING_ERR_SYSTEM. */
STARLING_API int starling_adjacency_create(int64_t rows, int64_t columns, int64_t entries,
                                           const int64_t *targets, const int64_t *sources,
                                           const float *weights, starling_adjacency **adjacency);

/* Free an adjacency; NULL is fine. */
STARLING_API void starling_adjacency_free(starling_adjacency *adjacency);

/* Make out (rows, width) = A·x, x (columns, width). transposed: out (columns, width) = Aᵀ·x, x
 * (rows, width). STARLING_ERR_USAGE: a width below 1. */
STARLING_API int starling_adjacency_sum(const starling_adjacency *adjacency, int transposed,
                                        int64_t width, const float *x, int threads, float *out);

/* Make out (rows, width): for each row and element, the largest value of x (columns, width) in the
 * columns of the row's entries, or the least value. Set argmax (rows, width) to the column of the
 * value, the least of several. A row without entries has 0 and -1. Weights do not count. */
STARLING_API int starling_adjacency_max(const starling_adjacency *adjacency, int minimum,
                                        int64_t width, const float *x, int threads, float *out,
                                        int32_t *argmax);

/* Make out (columns, width) = the gradient of x from the gradient (rows, width) of a maximum. Edges
 * that are there several times count once each: give starling_adjacency_max none. */
STARLING_API int starling_adjacency_max_back(const starling_adjacency *adjacency, int64_t width,
                                             const float *gradient, const int32_t *argmax,
                                             int threads, float *out);

/* Heads of attention. */
struct starling_heads {
    int32_t heads;  /* 1 to 256 */
    int64_t width;  /* columns of a head */
    float slope;    /* slope of LeakyReLU, 0 to 1 */
    int training;   /* 0: nothing is dropped, and there is no gradient */
    double dropout; /* share of the attention that is dropped, 0 to below 1 */
    uint64_t seed;  /* of what is dropped */
};

/* Make out: for each row and head, the sum of α·values over the row's entries. An entry has the
 * term w·exp(LeakyReLU(source of its column + target of its row)), of its weight w >= 0. α is the
 * term, divided by the sum of the row's terms. The adjacency must outlive *attention.
 * STARLING_ERR_USAGE, STARLING_ERR_SYSTEM. values, out: (vertices, heads · width); source, target:
 * (vertices, heads) */
STARLING_API int starling_attention_forward(const starling_adjacency *adjacency,
                                            const struct starling_heads *heads, const float *values,
                                            const float *source, const float *target, int threads,
                                            float *out, starling_attention **attention);

/* Make the gradients of values, source and target from the gradient (vertices, heads · width) of
 * the output. STARLING_ERR_USAGE: the pass did not train. STARLING_ERR_SYSTEM. */
STARLING_API int starling_attention_back(const starling_attention *attention, const float *gradient,
                                         int threads, float *values, float *source, float *target);

/* Free what a pass kept; NULL is fine. */
STARLING_API void starling_attention_free(starling_attention *attention);

#ifdef __cplusplus
}
#endif

#endif
