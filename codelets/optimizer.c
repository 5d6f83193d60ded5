/* Adam (Kingma & Ba), AdamW (Loshchilov & Hutter) and SGD with momentum, one pass over memory. */
#include <math.h>
#include <string.h>

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"
#include "core/split.h"

SL_INLINE void adam_body(const struct sl_optimizer_step *s, int64_t count, const float *g, float *w,
                         float *m, float *v)
{
    const float l2 = s->method == SL_ADAM ? s->decay : 0.0f;
    const float keep = s->method == SL_ADAMW ? 1.0f - s->rate * s->decay : 1.0f;
    const float rate = s->rate / s->correction1, unbias = 1.0f / s->correction2;
    const float beta1 = s->beta1, beta2 = s->beta2, epsilon = s->epsilon;
    for (int64_t i = 0; i < count; i++) {
        const float gradient = g[i] + l2 * w[i];
        m[i] = beta1 * m[i] + (1.0f - beta1) * gradient;
        v[i] = beta2 * v[i] + (1.0f - beta2) * gradient * gradient;
        w[i] = keep * w[i] - rate * m[i] / (sqrtf(v[i] * unbias) + epsilon);
    }
}

SL_DISPATCH(static, adam,
            (const struct sl_optimizer_step *s, int64_t count, const float *g, float *w, float *m,
             float *v),
            (s, count, g, w, m, v))

SL_INLINE void sgd_body(const struct sl_optimizer_step *s, int64_t count, const float *g, float *w,
                        float *m)
{
    const float momentum = s->beta1, rate = s->rate, decay = s->decay;
    for (int64_t i = 0; i < count; i++) {
        m[i] = momentum * m[i] + g[i] + decay * w[i];
        w[i] -= rate * m[i];
    }
}

SL_DISPATCH(static, sgd,
            (const struct sl_optimizer_step *s, int64_t count, const float *g, float *w, float *m),
            (s, count, g, w, m))

/* *odd: whether a number is infinite or NaN. */
SL_INLINE void find_odd_body(int64_t count, const float *x, uint32_t *odd)
{
    const uint32_t exponent = 0x7F800000;
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    *odd = found;
}

SL_DISPATCH(static, find_odd, (int64_t count, const float *x, uint32_t *odd), (count, x, odd))

static bool is_odd(int64_t count, const float *x)
{
    uint32_t odd;
    find_odd(count, x, &odd);
    return odd;
}

unsigned sl_kernel_optimizer(const struct sl_optimizer_step *step, int64_t count, const float *g,
                             float *w, float *m, float *v)
{
    enum { CHUNK = 2048 }; /* numbers of each, which are in the cache still when they are checked */
    unsigned bad = 0;
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        const bool momentum_only = step->method == SL_SGD;
        if (momentum_only)
            sgd(step, n, g + i, w + i, m + i);
        else
            adam(step, n, g + i, w + i, m + i, v + i);
        if (is_odd(n, g + i))
            bad |= SL_BAD_GRADIENT;
        if (is_odd(n, w + i) || is_odd(n, m + i) || (!momentum_only && is_odd(n, v + i)))
            bad |= SL_BAD_UPDATE;
    }
    return bad;
}

/* Whether the epoch has broken down before this layer's step, which would spoil parameters. */
static bool is_broken(const double *metrics)
{
    return !isfinite(metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) ||
           metrics[SL_METRIC_BAD_GRADIENT] > 0.0 || metrics[SL_METRIC_BAD_UPDATE] > 0.0;
}

/* optimizer
 *   argument  struct optimizer_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 RW   metrics (1, SL_METRICS) of double
 *             2 R    G (rows, cols)
 *             3 RW   M (rows, cols)
 *             4 RW   V (rows, cols), unused by SGD
 *             5 RW   W (rows, cols) */
static void optimizer_cpu(void *buffers[], void *argument)
{
    const struct optimizer_argument *arg = argument;
    const double end = *(const double *)sl_raw_buffer(buffers[0]);
    double *metrics = sl_raw_buffer(buffers[1]);
    const struct sl_dense g = sl_dense_buffer(buffers[2]), m = sl_dense_buffer(buffers[3]),
                          v = sl_dense_buffer(buffers[4]), w = sl_dense_buffer(buffers[5]);
    if ((end > 0.0 && arg->epoch > (int)end) || is_broken(metrics))
        return;
    /* Without padding, all rows are one: those of a narrow layer are short. */
    const bool one = w.ld == w.cols && g.ld == w.cols && m.ld == w.cols && v.ld == w.cols;
    const int64_t rows = one ? 1 : w.rows, cols = one ? w.rows * w.cols : w.cols;
    unsigned bad = 0;
    for (int64_t r = 0; r < rows; r++)
        bad |= sl_kernel_optimizer(&arg->step, cols, g.data + r * g.ld, w.data + r * w.ld,
                                   m.data + r * m.ld, v.data + r * v.ld);
    if (bad & SL_BAD_GRADIENT)
        metrics[SL_METRIC_BAD_GRADIENT] = arg->layer;
    if (bad & SL_BAD_UPDATE)
        metrics[SL_METRIC_BAD_UPDATE] = arg->layer;
}

SL_CODELET(optimizer, 0xFF8C00, 6, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW, STARPU_RW);

void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step,
                         const struct sl_optimizer_tiles *tiles)
{
    const struct optimizer_argument arg = {*step, tiles->epoch, tiles->layer};
    struct sl_tile *w = tiles->w;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &optimizer_codelet,
                           .count = 6,
                           .tiles = {tiles->end, tiles->metrics, tiles->g, tiles->m, tiles->v, w},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)w->rows * (double)w->cols,
                           .kind = (uint32_t)step->method,
                       });
}
