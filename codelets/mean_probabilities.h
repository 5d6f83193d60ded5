/* The mean of softmax probabilities of several networks (ensembles). */
#ifndef SL_CODELETS_MEAN_PROBABILITIES_H
#define SL_CODELETS_MEAN_PROBABILITIES_H

#include "codelets/operation.h"

/* A matrix (rows, classes). */
struct sl_logits {
    float *z;
    int64_t rows, classes, ld;
};

/* Set Y = log of the mean probabilities of `before` + 1 networks: exp(Y) is the mean of the first
 * `before` networks, softmax(X) are the probabilities of one more network. With before == 0, Y is
 * only written. Each row of exp(Y) has the sum 1, so softmax(Y) = exp(Y): Y are logits. */
void sl_kernel_mean_probabilities(int before, const struct sl_logits *x, const struct sl_logits *y);

void sl_cuda_mean_probabilities(int before, const struct sl_logits *x, const struct sl_logits *y,
                                struct sl_cuda_queue queue);

/* Submit the mean of sl_kernel_mean_probabilities. X and Y: (rows, classes) of float32. */
void sl_submit_mean_probabilities(struct sl_runtime *rt, int before, struct sl_tile *x,
                                  struct sl_tile *y);

/* Argument of the task mean_probabilities. */
struct mean_probabilities_argument {
    int before;
};

#endif
