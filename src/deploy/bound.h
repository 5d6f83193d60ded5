/* A forward program with the tensors of a checkpoint. All sizes are checked: a step can run, or be
 * exported, without further checks. */
#ifndef SL_DEPLOY_BOUND_H
#define SL_DEPLOY_BOUND_H

#include "checkpoint/checkpoint.h"
#include "forward/program.h"

/* Weights of the edges that a model was trained on. */
enum sl_bound_weights { SL_WEIGHTS_UNKNOWN, SL_WEIGHTS_ABSENT, SL_WEIGHTS_PRESENT };

struct sl_bound {
    struct sl_checkpoint checkpoint; /* owned */
    struct sl_program program;       /* owned */
    int64_t *width;                  // (steps + 1): columns of each value
    int *last;                       // (steps + 1): the last step that reads each value
    const struct sl_tensor **tensor; // (steps, SL_STEP_TENSORS): NULL: the step has none
    enum sl_bound_weights weights;
    double *mean, *deviation; // (features): moments of columns; NULL: there are none
};

/* Return the tensor of step s of that number; NULL: none. */
static inline const struct sl_tensor *sl_bound_tensor(const struct sl_bound *bound, int s, int t)
{
    return bound->tensor[s * SL_STEP_TENSORS + t];
}

/* Find the tensors of bound->program in bound->checkpoint, those of the best epoch where
 * predictions use them, and check all sizes. `name`: of the checkpoint, for errors. Return 0,
 * SL_ERR_DATA where a tensor is missing or has another shape, or SL_ERR_SYSTEM. */
int sl_bound_find(struct sl_bound *bound, const char *name);

/* Return whether predictions use the weights of the best epoch, which are tensors of their own. */
bool sl_bound_uses_best(const struct sl_bound *bound);

/* Read a checkpoint with a forward program, and find its tensors. Return 0, SL_ERR_DATA, or
 * SL_ERR_SYSTEM; sl_bound_free in either case. */
int sl_bound_read(struct sl_bound *bound, const char *path);

/* Free checkpoint and program. */
void sl_bound_free(struct sl_bound *bound);

#endif
