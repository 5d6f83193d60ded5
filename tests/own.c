#include "tests/own.h"

#include <math.h>

#include "core/error.h"
#include "graphs/network.h"

/* ---- A layer ---- */

enum { W, V, B };

static double blend(const struct starling_layer_rows *rows, int64_t r, int64_t j)
{
    const int64_t n = rows->columns;
    double sum = (double)rows->parameters[B][j];
    for (int64_t i = 0; i < n; i++)
        sum += (double)rows->input[r * n + i] * (double)rows->parameters[W][i * n + j];
    return tanh(sum);
}

static void blend_forward(void *context, const struct starling_layer_rows *rows)
{
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++)
        for (int64_t j = 0; j < rows->columns; j++)
            rows->output[r * rows->columns + j] = rows->input[r * rows->columns + j] +
                                                  rows->parameters[V][j] * (float)blend(rows, r, j);
}

static void blend_backward(void *context, const struct starling_layer_rows *rows)
{
    const int64_t n = rows->columns;
    (void)context;
    for (int64_t k = 0; k < rows->rows * n; k++) {
        const int64_t r = k / n, j = k % n;
        const double g = (double)rows->output_gradient[k], t = blend(rows, r, j);
        const float d = (float)(g * (double)rows->parameters[V][j] * (1.0 - t * t));
        rows->input_gradient[k] += (float)g;
        rows->parameter_gradients[V][j] += (float)(g * t);
        rows->parameter_gradients[B][j] += d;
        for (int64_t i = 0; i < n; i++) {
            rows->input_gradient[r * n + i] += d * rows->parameters[W][i * n + j];
            rows->parameter_gradients[W][i * n + j] += d * rows->input[r * n + i];
        }
    }
}

/* ---- A reducer: log(Σ w e^h), as (largest, Σ w e^(h - largest)) ---- */

static void add_power(float largest, float sum, float *first, float *second)
{
    const float most = fmaxf(largest, *first);
    if (sum == 0.0f)
        return;
    *second = *second * expf(*first - most) + sum * expf(largest - most);
    *first = most;
}

static void power_combine(void *context, int64_t n, float weight, const float *neighbour,
                          float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        add_power(neighbour[j], weight, &first[j], &second[j]);
}

static void power_merge(void *context, int64_t n, const float *other_first,
                        const float *other_second, float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        add_power(other_first[j], other_second[j], &first[j], &second[j]);
}

static void power_finish(void *context, int64_t n, float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        second[j] = first[j] = second[j] > 0.0f ? first[j] + logf(second[j]) : 0.0f;
}

static void power_differentiate(void *context, int64_t n, float weight, const float *neighbour,
                                const float *gradient, const float *second,
                                float *neighbour_gradient)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        neighbour_gradient[j] += gradient[j] * weight * expf(neighbour[j] - second[j]);
}

void sl_test_add_own(void)
{
    static const struct starling_layer layer = {.matrices = {"weight"},
                                                .vectors = {"scale", "bias"},
                                                .start = {0.5f, 0.125f},
                                                .forward = blend_forward,
                                                .backward = blend_backward};
    static const struct starling_reducer reducer = {.start = {-INFINITY, 0.0f},
                                                    .combine = power_combine,
                                                    .merge = power_merge,
                                                    .finish = power_finish,
                                                    .differentiate = power_differentiate};
    if (sl_layer_add("own-blend", &layer) || sl_reducer_own_add("own-power", &reducer))
        sl_fatal("%s", sl_error_message());
}
