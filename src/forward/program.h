/* A forward program: the steps from the features of all vertices to the logits, without training.
 *
 * Values are matrices with a row for each vertex. Value 0 has the features, and step s writes value
 * s + 1. The last step writes the logits. A step reads values of earlier steps, and tensors of a
 * checkpoint by name. */
#ifndef SL_FORWARD_PROGRAM_H
#define SL_FORWARD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

enum { SL_STEP_VALUES = 3, SL_STEP_TENSORS = 4 }; /* most values and tensors that a step reads */

/* The kinds of step, with their names in JSON. X, Y, Z are the values that a step reads, in order;
 * A is the adjacency, w_ij the weight of an entry, f_ij the features of an entry. */
#define SL_STEPS(ENTRY)                                                                          \
    ENTRY(SL_STEP_UNIT_ROWS, "unit_rows")     /* each row of X / its norm (`unit`) */            \
    ENTRY(SL_STEP_STANDARDIZE, "standardize") /* (X - means) / deviations of the checkpoint */   \
    ENTRY(SL_STEP_PRODUCT, "product")         /* X·W, W some rows of a tensor */                \
    ENTRY(SL_STEP_AGGREGATE, "aggregate")     /* rows of neighbours, combined */                 \
    ENTRY(SL_STEP_ADD, "add")                 /* x·X + y·Y */                                  \
    ENTRY(SL_STEP_LARGER, "larger")           /* the larger of X and Y, element by element */    \
    ENTRY(SL_STEP_BIAS, "bias")               /* X + b in each row */                            \
    ENTRY(SL_STEP_RELU, "relu")                                                                  \
    ENTRY(SL_STEP_ELU, "elu")                                                                    \
    ENTRY(SL_STEP_ROW_NORM, "row_norm")     /* tensors: weight, bias */                          \
    ENTRY(SL_STEP_BATCH_NORM, "batch_norm") /* tensors: weight, bias, mean, variance */          \
    ENTRY(SL_STEP_GAT, "gat")               /* X; tensors: att_src, att_dst [, W_e, att_edge] */ \
    ENTRY(SL_STEP_GATV2, "gatv2")           /* X of sources, Y of targets; tensors: a [, W_e] */ \
    ENTRY(SL_STEP_DOT_ATTENTION, "dot_attention") /* keys X, queries Y, values Z [, W_e] */      \
    ENTRY(SL_STEP_MEAN_HEADS, "mean_heads")       /* the mean of the heads of X */               \
    ENTRY(SL_STEP_GINE, "gine")           /* sum of relu(X_j + f_ij·W + b); tensors: W [, b] */ \
    ENTRY(SL_STEP_RELATIONS, "relations") /* sum over relations r of the mean of X_j·W_r */

#define SL_STEP_CONSTANT(constant, name) constant,
enum sl_step_kind { SL_STEPS(SL_STEP_CONSTANT) SL_STEP_KINDS };
#undef SL_STEP_CONSTANT

/* How an aggregation combines rows of neighbours, which are multiplied by the weights first. */
enum sl_step_reduce { SL_REDUCE_SUM, SL_REDUCE_MAX, SL_REDUCE_MIN, SL_REDUCES };

/* The factors of a sum, L_i·w_ij·R_j. d is the sum of a row's weights, n the number of its entries;
 * with loops, the loop counts as one more entry of weight 1. */
enum sl_step_norm {
    SL_STEP_NORM_NONE,  /* L = R = 1 */
    SL_STEP_NORM_SYM,   /* L = R = 1 / √d */
    SL_STEP_NORM_ROW,   /* L = 1 / d, R = 1 */
    SL_STEP_NORM_COUNT, /* L = 1 / n, R = 1; 1 for a row without entries */
    SL_STEP_NORMS,
};

struct sl_step {
    enum sl_step_kind kind;
    int of[SL_STEP_VALUES];        /* values that the step reads; -1: none */
    char *tensor[SL_STEP_TENSORS]; /* names of tensors, owned; NULL: none */
    int64_t row, rows;             /* product: the rows of the tensor; `rows` 0: all */
    enum sl_step_reduce reduce;    /* aggregate */
    enum sl_step_norm norm;        /* aggregate */
    bool loops;                    /* aggregate, gat, gatv2: a vertex is its own neighbour */
    int64_t heads;                 /* attention, mean_heads */
    double slope;                  /* gat, gatv2: LeakyReLU's for negative numbers */
    double x, y;                   /* add */
    double epsilon;                /* norms */
    int unit;                      /* unit_rows: 1: sum of sizes, 2: Euclidean */
    int64_t relations;             /* relations: how many */
    int64_t bases;                 /* relations: tensors are bases and coefficients; 0: weights */
};

/* The meaning of the columns of the last value. */
#define SL_PROGRAM_OUTPUTS(ENTRY)       \
    ENTRY(SL_OUTPUT_CLASSES, "classes") \
    ENTRY(SL_OUTPUT_LABELS, "labels")   \
    ENTRY(SL_OUTPUT_NUMBERS, "numbers") \
    ENTRY(SL_OUTPUT_EMBEDDINGS, "embeddings")
#define SL_OUTPUT_CONSTANT(constant, name) constant,
enum sl_program_output { SL_PROGRAM_OUTPUTS(SL_OUTPUT_CONSTANT) SL_PROGRAM_KINDS };
#undef SL_OUTPUT_CONSTANT

struct sl_program {
    char model[32];                /* the name of the model */
    int64_t features, outputs;     /* columns of value 0, and of the logits */
    enum sl_program_output output; /* what the logits mean */
    bool identity;                 /* value 0 is the identity: a column for each vertex */
    int64_t edge_features;         /* features of edges that steps read; 0: none */
    int64_t relations;             /* relations of edges that steps read; 0: none */
    int count, room;
    struct sl_step *step; // (count)
    bool failed;          /* memory ran out, or a layer has no steps */
};

/* Append a copy of the step, and take its tensor names over. Return the value that it writes.
 * Without memory, free the names and set program->failed. */
int sl_program_add(struct sl_program *program, const struct sl_step *step);

/* Free the steps. */
void sl_program_free(struct sl_program *program);

/* Return the name of what the columns of the logits are. */
const char *sl_program_output_name(enum sl_program_output output);

/* Return the name of a kind of step. */
const char *sl_step_name(enum sl_step_kind kind);

/* Return whether a kind of step reads the adjacency. */
bool sl_step_reads_edges(enum sl_step_kind kind);

/* Return how many values a kind of step reads. */
int sl_step_values(enum sl_step_kind kind);

/* Return the program as a JSON object, or NULL without memory. */
json_t *sl_program_to_json(const struct sl_program *program);

/* Read a program. `name`: of the checkpoint, for errors. Return 0, SL_ERR_DATA for an object of
 * another version or with a wrong step, or SL_ERR_SYSTEM; sl_program_free in either case. */
int sl_program_from_json(const json_t *object, const char *name, struct sl_program *program);

#endif
