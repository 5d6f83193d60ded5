/* Optimizers: an entry each, and a file optimizer_<name>.h with
 *
 *     struct sl_<name>      what is the same for all parameters of a step
 *     sl_<name>_open        makes it of a step
 *     sl_<name>_step        changes one parameter W and its state, M, and V where there are two
 *
 * which cores and GPUs share. */
#ifndef SL_CODELETS_OPTIMIZER_H
#define SL_CODELETS_OPTIMIZER_H

#include <math.h>

#ifdef __CUDACC__
#define SL_EVERYWHERE static __host__ __device__ __forceinline__
#else
#define SL_EVERYWHERE static inline __attribute__((always_inline))
#endif

/* The constant, the name (of --optimizer, too), and how many numbers of state a parameter has. */
#define SL_OPTIMIZERS(ENTRY) ENTRY(ADAM, adam, 2) ENTRY(ADAMW, adamw, 2) ENTRY(SGD, sgd, 1)

#define SL_OPTIMIZER_CONSTANT(constant, name, states) SL_##constant,
enum sl_optimizer { SL_OPTIMIZERS(SL_OPTIMIZER_CONSTANT) };
#undef SL_OPTIMIZER_CONSTANT

/* "|adam|adamw|sgd", and so on. */
#define SL_OPTIMIZER_NAMED(constant, name, states) "|" #name
#define SL_OPTIMIZER_NAMES                         SL_OPTIMIZERS(SL_OPTIMIZER_NAMED)

struct sl_optimizer_step {
    enum sl_optimizer method;
    float rate;         /* learning rate of this step */
    float decay;        /* weight decay */
    float momentum;     /* of SGD */
    float beta1, beta2; /* of Adam and AdamW */
    float epsilon;
    float correction1, correction2; /* 1 - beta1^t, 1 - beta2^t */
};

#include "codelets/optimizer_adam.h"
#include "codelets/optimizer_adamw.h"
#include "codelets/optimizer_sgd.h"

#endif
