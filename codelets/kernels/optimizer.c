/* A step of an optimizer (codelets/optimizer.h), one pass over memory. */
#include "codelets/optimizer.h"
#include "codelets/vector.h"

/* Return bits that are 0 if and only if X is finite. */
SL_INLINE uint32_t odd(float x)
{
    const float difference = x - x;
    uint32_t bits;
    memcpy(&bits, &difference, sizeof bits);
    return bits;
}

/* Return which of the updates and the gradients `g` (count) are infinite or NaN. `update` has the
 * bits of odd(…) of all updates. A gradient that is not finite makes its update not finite. */
static unsigned bad_of(uint32_t update, int64_t count, const float *g)
{
    uint32_t gradient = 0;
    for (int64_t i = 0; update && i < count; i++)
        gradient |= odd(g[i]);
    return (gradient ? SL_BAD_GRADIENT : 0) | (update ? SL_BAD_UPDATE : 0);
}

/* Make a step of one parameter with the values `options`, and collect the odd bits of results. An
 * odd gradient makes m odd, and an odd m makes the parameter odd. The step reads all values before
 * it stores one: a load waits for an earlier store to an address with the same last 12 bits. */
#define STEP(name, states, options)                                                  \
    float weight = w[i], first = m[i], second = (states) > 1 ? v[i] : 0.0f;          \
    sl_##name##_step(options, g[i], &weight, &first, (states) > 1 ? &second : NULL); \
    update |= odd(weight) | ((states) > 1 ? odd(second) : 0);                        \
    w[i] = weight, m[i] = first, *((states) > 1 ? v + i : &second) = second

/* Define a step of all parameters, and a step of parameters with a step count each. */
#define LOOP(constant, name, states, state)                                                 \
    static unsigned name(const struct sl_optimizer_step *s, int64_t count, const float *g,  \
                         float *w, float *m, float *v)                                      \
    {                                                                                       \
        const struct sl_##name common = sl_##name##_open(s);                                \
        uint32_t update = 0;                                                                \
        for (int64_t i = 0; i < count; i++) {                                               \
            STEP(name, states, &common);                                                    \
        }                                                                                   \
        return bad_of(update, count, g);                                                    \
    }                                                                                       \
    static unsigned name##_counted(const struct sl_optimizer_step *s, int64_t count,        \
                                   const float *counts, const float *g, float *w, float *m, \
                                   float *v)                                                \
    {                                                                                       \
        const struct sl_##name common = sl_##name##_open(s);                                \
        uint32_t update = 0;                                                                \
        for (int64_t i = 0; i < count; i++) {                                               \
            const struct sl_##name own = sl_##name##_counted(&common, counts[i]);           \
            STEP(name, states, &own);                                                       \
        }                                                                                   \
        return bad_of(update, count, g);                                                    \
    }
SL_OPTIMIZERS(LOOP)

SL_KERNEL_RETURNS(unsigned, sl_kernel_optimizer,
                  (const struct sl_optimizer_step *step, int64_t count, const float *counts,
                   const float *g, float *w, float *m, float *v),
                  (step, count, counts, g, w, m, v))
{
#define CASE(constant, name, states, state)                             \
    case SL_##constant:                                                 \
        return counts ? name##_counted(step, count, counts, g, w, m, v) \
                      : name(step, count, g, w, m, v);
    switch (step->method) {
        SL_OPTIMIZERS(CASE)
    }
#undef CASE
    return 0;
}

SL_KERNEL_RETURNS(unsigned, sl_kernel_average,
                  (float rate, int64_t count, const float *g, float *w), (rate, count, g, w))
{
    uint32_t update = 0;
    for (int64_t i = 0; i < count; i++) {
        w[i] = sl_average_step(rate, g[i], w[i]);
        update |= odd(w[i]);
    }
    return bad_of(update, count, g);
}
