/* Norms of gradients, and their limit. */
#ifndef SL_CODELETS_CLIP_H
#define SL_CODELETS_CLIP_H

#include "codelets/operation.h"

/* Return the sum of the squares of X, added in an order that its shape alone says. */
double sl_kernel_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx);

/* X *= limit / sqrt(squares), unless the factor is 1 or more. */
void sl_kernel_clip(int64_t rows, int64_t cols, double limit, double squares, float *x,
                    int64_t ldx);

/* Make *sum = [*sum +] Σ X² in device memory, added in an order that X's shape alone says. */
void sl_cuda_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx, bool accumulate,
                        double *sum, struct sl_cuda_queue queue);
void sl_cuda_clip(int64_t rows, int64_t cols, double limit, const double *squares, float *x,
                  int64_t ldx, struct sl_cuda_queue queue);

/* Submit SUM, (1, 1) of double, = [SUM +] the squares of G, added in an order that the shape of G
 * says. The last `averages` rows of G are left out: they are no gradients, but values to which
 * averages move. */
void sl_submit_square_sum(struct sl_runtime *rt, bool accumulate, int averages, struct sl_tile *g,
                          struct sl_tile *sum);

/* Submit G *= limit / sqrt(SUM), unless the factor is 1 or more. The last `averages` rows of G
 * stay. */
void sl_submit_clip(struct sl_runtime *rt, double limit, int averages, struct sl_tile *sum,
                    struct sl_tile *g);

/* Argument of the task square_sum. */
struct square_sum_argument {
    bool accumulate;
    int averages;
};

/* Argument of the task clip. */
struct clip_argument {
    double limit;
    int averages;
};

#endif
