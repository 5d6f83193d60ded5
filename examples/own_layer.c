/* A layer of one's own: a gate, y = x * s(x W + b) element by element, with the logistic s. It
 * takes the place of the norm in each block of a residual network. Usage: own_layer DATASET
 *
 *     cc own_layer.c $(pkg-config --cflags --libs starling) -lm -o own_layer */
#include <math.h>
#include <starling.h>

#include "own_train.h"

enum { W, B };

/* s(x W + b) of row r, column j. */
static float gate(const struct starling_layer_rows *rows, int64_t r, int64_t j)
{
    const int64_t n = rows->columns;
    float sum = rows->parameters[B][j];
    for (int64_t i = 0; i < n; i++)
        sum += rows->input[r * n + i] * rows->parameters[W][i * n + j];
    return 1.0f / (1.0f + expf(-sum));
}

static void forward(void *context, const struct starling_layer_rows *rows)
{
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++)
        for (int64_t j = 0; j < rows->columns; j++)
            rows->output[r * rows->columns + j] =
                rows->input[r * rows->columns + j] * gate(rows, r, j);
}

/* With g the gradient of y: that of the sum is d = g x s (1 - s). */
static void backward(void *context, const struct starling_layer_rows *rows)
{
    const int64_t n = rows->columns;
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *x = rows->input + r * n;
        float *dx = rows->input_gradient + r * n;
        for (int64_t j = 0; j < n; j++) {
            const float g = rows->output_gradient[r * n + j], s = gate(rows, r, j);
            const float d = g * x[j] * s * (1.0f - s);
            dx[j] += g * s;
            rows->parameter_gradients[B][j] += d;
            for (int64_t i = 0; i < n; i++) {
                dx[i] += d * rows->parameters[W][i * n + j];
                rows->parameter_gradients[W][i * n + j] += d * x[i];
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct starling_layer layer = {.matrices = {"gate"},
                                                .vectors = {"bias"},
                                                .start = {1.0f},
                                                .forward = forward,
                                                .backward = backward};
    static const char *const words[][2] = {
        {"model", "resgcn"}, {"block-norm", "gate"}, {"layers", "2"},        {"hidden", "16"},
        {"epochs", "50"},    {"tiles", "4"},         {"distribution", "1d"}, {NULL}};
    const int code = starling_layer_register("gate", &layer);
    return own_train(code, argc, argv, words);
}
