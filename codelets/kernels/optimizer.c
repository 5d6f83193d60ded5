/* A step of an optimizer (codelets/optimizer.h), one pass over memory. */
#include "codelets/optimizer.h"
#include "codelets/vector.h"

/* The step of all parameters, and of parameters with a step count each. */
#define LOOP(constant, name, states, state)                                                       \
    static void name(const struct sl_optimizer_step *s, int64_t count, const float *g, float *w,  \
                     float *m, float *v)                                                          \
    {                                                                                             \
        const struct sl_##name common = sl_##name##_open(s);                                      \
        for (int64_t i = 0; i < count; i++)                                                       \
            sl_##name##_step(&common, g[i], w + i, m + i, (states) > 1 ? v + i : NULL);           \
    }                                                                                             \
    static void name##_counted(const struct sl_optimizer_step *s, int64_t count,                  \
                               const float *counts, const float *g, float *w, float *m, float *v) \
    {                                                                                             \
        const struct sl_##name common = sl_##name##_open(s);                                      \
        for (int64_t i = 0; i < count; i++) {                                                     \
            const struct sl_##name own = sl_##name##_counted(&common, counts[i]);                 \
            sl_##name##_step(&own, g[i], w + i, m + i, (states) > 1 ? v + i : NULL);              \
        }                                                                                         \
    }
SL_OPTIMIZERS(LOOP)

/* Some numbers of a step: a case for each optimizer. */
static void step_some(const struct sl_optimizer_step *step, int64_t count, const float *counts,
                      const float *g, float *w, float *m, float *v)
{
#define CASE(constant, name, states, state)                  \
    case SL_##constant:                                      \
        if (counts)                                          \
            name##_counted(step, count, counts, g, w, m, v); \
        else                                                 \
            name(step, count, g, w, m, v);                   \
        break;
    switch (step->method) {
        SL_OPTIMIZERS(CASE)
    }
#undef CASE
}

/* Whether a number is infinite or NaN. */
static bool is_odd(int64_t count, const float *x)
{
    const uint32_t exponent = 0x7F800000;
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found;
}

SL_KERNEL_RETURNS(unsigned, sl_kernel_optimizer,
                  (const struct sl_optimizer_step *step, int64_t count, const float *counts,
                   const float *g, float *w, float *m, float *v),
                  (step, count, counts, g, w, m, v))
{
    enum { CHUNK = 2048 }; /* numbers of each, which are in the cache still when they are checked */
    const bool two = sl_optimizer_states(step->method) > 1;
    unsigned bad = 0;
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        step_some(step, n, counts ? counts + i : NULL, g + i, w + i, m + i, two ? v + i : NULL);
        if (is_odd(n, g + i))
            bad |= SL_BAD_GRADIENT;
        if (is_odd(n, w + i) || is_odd(n, m + i) || (two && is_odd(n, v + i)))
            bad |= SL_BAD_UPDATE;
    }
    return bad;
}

SL_KERNEL_RETURNS(unsigned, sl_kernel_average,
                  (float rate, int64_t count, const float *g, float *w), (rate, count, g, w))
{
    for (int64_t i = 0; i < count; i++)
        w[i] = sl_average_step(rate, g[i], w[i]);
    return (is_odd(count, g) ? SL_BAD_GRADIENT : 0) | (is_odd(count, w) ? SL_BAD_UPDATE : 0);
}
