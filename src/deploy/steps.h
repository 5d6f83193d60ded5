/* The steps of a forward program, on values in memory. */
#ifndef SL_DEPLOY_STEPS_H
#define SL_DEPLOY_STEPS_H

#include "deploy/bound.h"
#include "deploy/graph_rows.h"

/* A value (vertices, width). */
struct sl_value {
    const float *data; /* NULL: the identity, as features that a model has none of */
    int64_t width;
    float *own; /* `data`, where the program made it; NULL: the caller's */
};

/* A step that is computed: z (vertices, width) = kind(x, y, …). */
struct sl_computing {
    const struct sl_bound *bound;
    const struct sl_graph_rows *graph;
    const struct sl_step *step;
    const struct sl_tensor *const *tensor;        // (SL_STEP_TENSORS)
    const struct sl_value *value[SL_STEP_VALUES]; /* values that the step reads */
    int64_t width;                                /* columns of z */
    float *z;
};

/* Compute the step. Return 0, SL_ERR_DATA where sums cannot be normalised, or SL_ERR_SYSTEM. */
int sl_step_compute(const struct sl_computing *c);

/* Compute a step of attention (attention.c). Return 0 or SL_ERR_SYSTEM. */
int sl_attention_compute(const struct sl_computing *c);

/* Set row (columns of W) to f·W: features (rows of W) of an entry times the tensor. */
void sl_edge_row(const struct sl_tensor *w, const float *features, double *row);

#endif
