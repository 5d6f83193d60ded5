/* A step of an optimizer (codelets/optimizer.h), one pass over memory. */
#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/optimizer.h"
#include "codelets/vector.h"
#include "core/error.h"
#include "core/split.h"

#define PARAMETERS                                                                          \
    (const struct sl_optimizer_step *s, int64_t count, const float *counts, const float *g, \
     float *w, float *m, float *v)
#define ARGUMENTS (s, count, counts, g, w, m, v)
typedef void step_function PARAMETERS;

/* The step of all parameters, and of parameters with a step count each. */
#define LOOP(constant, name, states, state)                                                       \
    SL_INLINE void name##_body(const struct sl_optimizer_step *s, int64_t count,                  \
                               const float *counts, const float *g, float *w, float *m, float *v) \
    {                                                                                             \
        const struct sl_##name common = sl_##name##_open(s);                                      \
        (void)counts;                                                                             \
        for (int64_t i = 0; i < count; i++)                                                       \
            sl_##name##_step(&common, g[i], w + i, m + i, (states) > 1 ? v + i : NULL);           \
    }                                                                                             \
    SL_INLINE void name##_each_body(const struct sl_optimizer_step *s, int64_t count,             \
                                    const float *counts, const float *g, float *w, float *m,      \
                                    float *v)                                                     \
    {                                                                                             \
        const struct sl_##name common = sl_##name##_open(s);                                      \
        for (int64_t i = 0; i < count; i++) {                                                     \
            const struct sl_##name own = sl_##name##_counted(&common, counts[i]);                 \
            sl_##name##_step(&own, g[i], w + i, m + i, (states) > 1 ? v + i : NULL);              \
        }                                                                                         \
    }                                                                                             \
    SL_DISPATCH(static, name, PARAMETERS, ARGUMENTS)                                              \
    SL_DISPATCH(static, name##_each, PARAMETERS, ARGUMENTS)
SL_OPTIMIZERS(LOOP)

#define ROW(constant, name, states, state) \
    [SL_##constant] = {#name, states, state, {name, name##_each}},
static const struct {
    const char *name;
    int states;
    const char *state;
    step_function *step[2]; /* without counts, with counts */
} optimizers[] = {SL_OPTIMIZERS(ROW)};

enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* The place in the table; OPTIMIZERS: none. */
static int place_of(const char *name)
{
    int o = 0;
    while (o < OPTIMIZERS && strcmp(optimizers[o].name, name) != 0)
        o++;
    return o;
}

enum sl_optimizer sl_optimizer_find(const char *name)
{
    const int place = place_of(name);
    if (place == OPTIMIZERS)
        sl_fatal("no optimizer is called %s", name);
    return (enum sl_optimizer)place;
}

bool sl_optimizer_same_state(const char *a, const char *b)
{
    const int x = place_of(a), y = place_of(b);
    return x < OPTIMIZERS && y < OPTIMIZERS &&
           strcmp(optimizers[x].state, optimizers[y].state) == 0;
}

int sl_optimizer_states(enum sl_optimizer method)
{
    return optimizers[method].states;
}

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

unsigned sl_kernel_optimizer(const struct sl_optimizer_step *step, int64_t count,
                             const float *counts, const float *g, float *w, float *m, float *v)
{
    enum { CHUNK = 2048 }; /* numbers of each, which are in the cache still when they are checked */
    unsigned bad = 0;
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        const bool two = optimizers[step->method].states > 1;
        optimizers[step->method].step[counts != NULL](step, n, counts ? counts + i : NULL, g + i,
                                                      w + i, m + i, two ? v + i : NULL);
        if (is_odd(n, g + i))
            bad |= SL_BAD_GRADIENT;
        if (is_odd(n, w + i) || is_odd(n, m + i) || (two && is_odd(n, v + i)))
            bad |= SL_BAD_UPDATE;
    }
    return bad;
}

SL_INLINE void move_averages_body(float rate, int64_t count, const float *g, float *w)
{
    for (int64_t i = 0; i < count; i++)
        w[i] = sl_average_step(rate, g[i], w[i]);
}

SL_DISPATCH(static, move_averages, (float rate, int64_t count, const float *g, float *w),
            (rate, count, g, w))

unsigned sl_kernel_average(float rate, int64_t count, const float *g, float *w)
{
    move_averages(rate, count, g, w);
    return (is_odd(count, g) ? SL_BAD_GRADIENT : 0) | (is_odd(count, w) ? SL_BAD_UPDATE : 0);
}

/* Whether the epoch has broken down before this layer's step, which would spoil parameters. */
static bool is_broken(const double *metrics)
{
    return !isfinite(metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) ||
           metrics[SL_METRIC_BAD_GRADIENT] > 0.0 || metrics[SL_METRIC_BAD_UPDATE] > 0.0;
}

/* One step on buffers 0 … 4 of `optimizer`; V and counts (rows, cols), or of no data. */
static void step_on(void *buffers[], const struct optimizer_argument *arg, struct sl_dense counts,
                    struct sl_dense v)
{
    const double end = *(const double *)sl_raw_buffer(buffers[0]);
    double *metrics = sl_raw_buffer(buffers[1]);
    const struct sl_dense g = sl_dense_buffer(buffers[2]), m = sl_dense_buffer(buffers[3]),
                          w = sl_dense_buffer(buffers[4]);
    if ((end > 0.0 && arg->now > end) || is_broken(metrics))
        return;
    /* Without padding, all rows are one: those of a narrow layer are short. */
    const bool one =
        w.ld == w.cols && counts.ld == w.cols && g.ld == w.cols && m.ld == w.cols && v.ld == w.cols;
    const int64_t learned = w.rows - arg->averages, rows = one ? 1 : learned,
                  cols = one ? learned * w.cols : w.cols;
    unsigned bad = 0;
    for (int64_t r = 0; r < rows; r++)
        bad |= sl_kernel_optimizer(
            &arg->step, cols, counts.data ? counts.data + r * counts.ld : NULL, g.data + r * g.ld,
            w.data + r * w.ld, m.data + r * m.ld, v.data ? v.data + r * v.ld : NULL);
    for (int64_t r = learned; r < w.rows; r++)
        bad |=
            sl_kernel_average(arg->step.average_rate, w.cols, g.data + r * g.ld, w.data + r * w.ld);
    if (bad & SL_BAD_GRADIENT)
        metrics[SL_METRIC_BAD_GRADIENT] = arg->layer;
    if (bad & SL_BAD_UPDATE)
        metrics[SL_METRIC_BAD_UPDATE] = arg->layer;
}

/* optimizer, of a method with one number of state
 *   argument  struct optimizer_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 RW   metrics (1, SL_METRICS) of double
 *             2 R    G (rows, cols)
 *             3 RW   M (rows, cols)
 *             4 RW   W (rows, cols) */
static void optimizer_cpu(void *buffers[], void *argument)
{
    const struct sl_dense none = {.ld = sl_dense_buffer(buffers[4]).cols};
    step_on(buffers, argument, none, none);
}

SL_CODELET(optimizer, 0xFF8C00, 5, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW);

/* optimizer_two, of a method with two: buffer 5 RW is V (rows, cols) */
static void optimizer_two_cpu(void *buffers[], void *argument)
{
    const struct sl_dense none = {.ld = sl_dense_buffer(buffers[4]).cols};
    step_on(buffers, argument, none, sl_dense_buffer(buffers[5]));
}

SL_CODELET(optimizer_two, 0xFF8C00, 6, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW,
           STARPU_RW);

/* optimizer_counted, of a method with two, whose parameters have step counts of their own
 *   buffers   5 R    counts (rows, cols)
 *             6 RW   V (rows, cols) */
static void optimizer_counted_cpu(void *buffers[], void *argument)
{
    step_on(buffers, argument, sl_dense_buffer(buffers[5]), sl_dense_buffer(buffers[6]));
}

SL_CODELET(optimizer_counted, 0xFF8C00, 7, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW,
           STARPU_R, STARPU_RW);

void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step,
                         const struct sl_optimizer_tiles *tiles)
{
    const struct optimizer_argument arg = {*step, tiles->now, tiles->layer, tiles->averages};
    const bool two = optimizers[step->method].states > 1, counted = two && tiles->counts;
    struct sl_tile *w = tiles->w;
    if (counted && step->local < 1)
        sl_fatal("step %lld of a round whose parameters have step counts (expected 1 or more)",
                 (long long)step->local);
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = counted ? &optimizer_counted_codelet
                                      : two   ? &optimizer_two_codelet
                                              : &optimizer_codelet,
                           .count = counted ? 7
                                    : two   ? 6
                                            : 5,
                           .tiles = {tiles->end, tiles->metrics, tiles->g, tiles->m, w,
                                     counted ? tiles->counts : tiles->v, tiles->v},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)w->rows * (double)w->cols,
                           .kind = (uint32_t)step->method,
                       });
}
