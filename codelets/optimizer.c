/* Adam (Kingma & Ba), AdamW (Loshchilov & Hutter) and SGD with momentum, one pass over memory. */
#include <math.h>

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

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

void sl_kernel_optimizer(const struct sl_optimizer_step *step, int64_t count, const float *g,
                         float *w, float *m, float *v)
{
    if (step->method == SL_SGD)
        sgd(step, count, g, w, m);
    else
        adam(step, count, g, w, m, v);
}

/* optimizer
 *   argument  struct optimizer_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 R    G (rows, cols)
 *             2 RW   M (rows, cols)
 *             3 RW   V (rows, cols), unused by SGD
 *             4 RW   W (rows, cols) */
static void optimizer_cpu(void *buffers[], void *argument)
{
    const struct optimizer_argument *arg = argument;
    const double end = *(const double *)sl_raw_buffer(buffers[0]);
    const struct sl_dense g = sl_dense_buffer(buffers[1]), m = sl_dense_buffer(buffers[2]),
                          v = sl_dense_buffer(buffers[3]), w = sl_dense_buffer(buffers[4]);
    if (end > 0.0 && arg->epoch > (int)end)
        return;
    /* Without padding, all rows are one: those of a narrow layer are short. */
    const bool one = w.ld == w.cols && g.ld == w.cols && m.ld == w.cols && v.ld == w.cols;
    const int64_t rows = one ? 1 : w.rows, cols = one ? w.rows * w.cols : w.cols;
    for (int64_t r = 0; r < rows; r++)
        sl_kernel_optimizer(&arg->step, cols, g.data + r * g.ld, w.data + r * w.ld,
                            m.data + r * m.ld, v.data + r * v.ld);
}

SL_CODELET(optimizer, 0xFF8C00, 5, STARPU_R, STARPU_R, STARPU_RW, STARPU_RW, STARPU_RW);

void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step, int epoch,
                         struct sl_tile *end, struct sl_tile *g, struct sl_tile *m,
                         struct sl_tile *v, struct sl_tile *w)
{
    const struct optimizer_argument arg = {*step, epoch};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &optimizer_codelet,
                           .count = 5,
                           .tiles = {end, g, m, v, w},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)w->rows * (double)w->cols,
                           .kind = (uint32_t)step->method,
                       });
}
