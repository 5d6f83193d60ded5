/* Optimizers: an entry each, and a file optimizer_<name>.h with
 *
 *     struct sl_<name>      values that all parameters of a step share
 *     sl_<name>_open        makes the struct from a step
 *     sl_<name>_counted     makes the struct for a parameter with a step count of its own
 *     sl_<name>_step        changes one parameter W and its state, M, and V where the state has two
 *
 * Cores and GPUs share these functions. */
#ifndef SL_CODELETS_OPTIMIZER_H
#define SL_CODELETS_OPTIMIZER_H

#include <math.h>
#include <string.h>

#include "codelets/metrics.h"
#include "codelets/operation.h"

/* Optimizers: the constant, the name (also for --optimizer), the numbers of state for each
 * parameter, and the state's name. Optimizers with the same state continue from one another's
 * checkpoints. */
#define SL_OPTIMIZERS(ENTRY)          \
    ENTRY(ADAM, adam, 2, "moments")   \
    ENTRY(ADAMW, adamw, 2, "moments") \
    ENTRY(SGD, sgd, 1, "momentum")

#define SL_OPTIMIZER_CONSTANT(constant, name, states, state) SL_##constant,
enum sl_optimizer { SL_OPTIMIZERS(SL_OPTIMIZER_CONSTANT) };
#undef SL_OPTIMIZER_CONSTANT

/* Names that --optimizer takes: "|adam|adamw|sgd". */
#define SL_OPTIMIZER_NAMED(constant, name, states, state) "|" #name
#define SL_OPTIMIZER_NAMES                                SL_OPTIMIZERS(SL_OPTIMIZER_NAMED)

struct sl_optimizer_step {
    enum sl_optimizer method;
    float rate;         /* learning rate of this step */
    float decay;        /* weight decay */
    float momentum;     /* momentum of SGD */
    float beta1, beta2; /* decay of the moments in Adam and AdamW */
    float epsilon;
    float correction1, correction2; /* 1 - beta1^t, 1 - beta2^t; unused where there are counts */
    int64_t local; /* number of this step in its round: 1, 2, …; 0: parameters have no counts */
    float average_rate; /* share by which running averages move */
};

#include "codelets/optimizer_adam.h"
#include "codelets/optimizer_adamw.h"
#include "codelets/optimizer_sgd.h"

/* Return how many numbers of state the method keeps for each parameter, 1 or 2. */
int sl_optimizer_states(enum sl_optimizer method);

/* Return whether an optimizer of that name exists and keeps the same state as `method`. */
bool sl_optimizer_same_state(enum sl_optimizer method, const char *name);

/* Make one optimizer step on w (count) with gradient g and state m, v (count). v may be NULL where
 * the method has one number of state. counts (count): steps of each parameter before this round, at
 * most 2^24; the step's number is counts + step->local. counts NULL: no parameter has a count.
 * Return SL_BAD_GRADIENT if some gradient, and SL_BAD_UPDATE if some result, is infinite or NaN. */
enum { SL_BAD_GRADIENT = 1, SL_BAD_UPDATE = 2 };
unsigned sl_kernel_optimizer(const struct sl_optimizer_step *step, int64_t count,
                             const float *counts, const float *g, float *w, float *m, float *v);

/* Move running averages w (count) towards g: w = (1 - rate)·w + rate·g. Return bits as
 * sl_kernel_optimizer does. */
unsigned sl_kernel_average(float rate, int64_t count, const float *g, float *w);

SL_EVERYWHERE float sl_average_step(float rate, float g, float w)
{
    return (1.0f - rate) * w + rate * g;
}

/* Data in device memory on which a step depends beside its matrices: `end` (1), or NULL, and
 * `metrics` (SL_METRICS), as in sl_submit_optimizer. */
struct sl_cuda_step {
    const double *end;
    double *metrics;
    double now;
    int layer;
};

/* Counts, gradient, parameters and state on a GPU, all (rows, cols). Counts: NULL, or as for
 * sl_kernel_optimizer. V: only where there are two numbers of state. The last `averages` rows are
 * running averages, whose state stays. */
struct sl_cuda_parameters {
    int64_t rows, cols, averages;
    const float *counts, *g;
    float *w, *m, *v;
    int64_t ldc, ldg, ldw, ldm, ldv;
    struct sl_cuda_step step;
};
void sl_cuda_optimizer(const struct sl_optimizer_step *step,
                       const struct sl_cuda_parameters *parameters, struct sl_cuda_queue queue);

/* The last step of a run is known when steps after it are submitted already. A (1, 1) tile of
 * double holds the epoch after the last step, 0 before it is known; later steps do nothing. The
 * tile counts epochs: 2.5 is the step in the middle of the third epoch, 3 its last step. */

/* Submit one optimizer step on parameters W with gradient G and state M, V (V: only with two
 * numbers of state), unless `end` holds a step before `now`. W stays, too, if `metrics` hold a
 * training loss or the number of a layer before this one that is not finite. If a number of this
 * layer is not finite, the step writes the layer into `metrics`. The last `averages` rows of W are
 * running averages: they move towards G by step->average_rate, without decay, and their state
 * stays.
 *
 * Counts (or NULL): steps of each entry of W before this round; the entry's step number is counts +
 * step->local. Methods with one number of state ignore counts. */
struct sl_optimizer_tiles {
    double now;
    int layer; /* the layer's number, from 1 */
    int averages;
    struct sl_tile *end, *metrics, *counts, *g, *m, *v, *w;
};
void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step,
                         const struct sl_optimizer_tiles *tiles);

/* Argument of the task optimizer. */
struct optimizer_argument {
    struct sl_optimizer_step step;
    double now;
    int layer, averages;
};

#endif
