/* A layer that a program brings (include/starling.h): a function on plain arrays. It has no CUDA
 * twin: its tasks run on cores. */
#ifndef SL_CODELETS_OWN_LAYER_H
#define SL_CODELETS_OWN_LAYER_H

#include "codelets/epilogue.h"
#include <starling.h>

enum {
    SL_OWN_MATRICES = 2,
    SL_OWN_VECTORS = 4
}; /* most matrices and vectors of a program's layer */

struct sl_own_layer {
    starling_layer_function *forward, *backward;
    void *context;
    int matrices, vectors;
    uint32_t number; /* number among the layers of the program */
};

/* Arrays for some rows at a time, which the program's function receives. */
struct sl_own_layer_arrays {
    float *input, *output, *gradient; // (SL_OWN_ROWS, cols)
    float *parameters; // (matrices · cols + vectors, cols): gradients of the parameters
};
enum { SL_OWN_ROWS = 256 };

/* Allocate the arrays. `parameters`: rows of the layer's parameters; 0: no gradients. Return 0, or
 * -1 without memory; sl_own_layer_free in either case. */
int sl_own_layer_open(struct sl_own_layer_arrays *arrays, int64_t cols, int64_t parameters);
void sl_own_layer_free(struct sl_own_layer_arrays *arrays);

/* Z = epilogue(forward(H)). H and Z (rows, cols) are of either type and not the same. parameters
 * (matrices · cols + vectors, cols) have no gaps. */
void sl_kernel_own_layer(const struct sl_own_layer *own, int64_t rows, int64_t cols,
                         const float *parameters, const struct sl_rows *h,
                         const struct sl_epilogue *epilogue,
                         const struct sl_own_layer_arrays *arrays, const struct sl_rows *z);

/* Make, from G, the gradient of forward(H): Y = after(r) · the gradient of H, and D = the gradient
 * of the parameters, summed over the rows. Y may be H. `after` NULL: 1. */
struct sl_own_layer_back {
    int64_t rows, cols;
    const float *parameters;
    struct sl_rows h, g;
    const float *after; // (rows)
    float *d;           // (matrices · cols + vectors, cols), as the parameters
    int64_t ldd;
    struct sl_rows y;
};
void sl_kernel_own_layer_back(const struct sl_own_layer *own, const struct sl_own_layer_back *back,
                              const struct sl_own_layer_arrays *arrays);

/* Submit Z = epilogue(forward(H)). */
void sl_submit_own_layer(struct sl_runtime *rt, const struct sl_own_layer *own,
                         struct sl_tile *parameters, struct sl_tile *h,
                         const struct sl_epilogue_tiles *epilogue, struct sl_tile *z);

/* Submit GRADIENT = the gradient of the parameters, and H = after · the gradient of H. */
void sl_submit_own_layer_back(struct sl_runtime *rt, const struct sl_own_layer *own,
                              struct sl_tile *scales, enum sl_row_scale after,
                              struct sl_tile *parameters, struct sl_tile *g,
                              struct sl_tile *gradient, struct sl_tile *h);

/* Argument of the task own_layer. */
struct own_layer_argument {
    const struct sl_own_layer *own;
    struct epilogue_argument epilogue;
};

/* Argument of the task own_layer_back. */
struct own_layer_back_argument {
    const struct sl_own_layer *own;
    enum sl_row_scale after;
};

#endif
