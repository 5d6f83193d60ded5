/* Submissions of codelets/ as tasks on tiles: losses, the optimizer, and what leaves the
 * task graph. What comes out is, bit by bit, what the kernel makes of copies of the same buffers
 * (tests/operands.h). The kernels have tests of their own (test_kernels_*.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codelets/accumulate.h"
#include "codelets/clip.h"
#include "codelets/init.h"
#include "codelets/optimizer.h"
#include "codelets/record.h"
#include "codelets/softmax.h"
#include "core/split.h"
#include "tests/operands.h"
#include "tests/running.h"

/* ---- Loss ---- */

static struct sl_operand targets(int64_t rows, int64_t classes)
{
    return sl_operand_over(sl_random_targets(rows, classes), rows, 2, 2, sizeof(int32_t));
}

static void check_softmax_loss_by(int64_t rows, int64_t classes, enum sl_row_fact factor)
{
    enum { TRAIN_COUNT = 140 };
    struct sl_operand facts = sl_operand_facts(rows), target = targets(rows, classes),
                      metrics = sl_operand_blank_metrics(), z = sl_operand_reals(rows, classes);
    double *sums = metrics.copy;
    sl_submit_softmax_loss(&sl_running, TRAIN_COUNT, &facts.tile, factor, &target.tile,
                           &metrics.tile, &z.tile);
    sl_kernel_softmax_loss(&(struct sl_softmax){.rows = rows,
                                                .classes = classes,
                                                .scale = 1.0f / (float)TRAIN_COUNT,
                                                .factor = sl_copied_fact(&facts, factor),
                                                .target = target.copy,
                                                .z = z.copy,
                                                .ldz = z.tile.ld,
                                                .g = z.copy,
                                                .ldg = z.tile.ld},
                           &sums[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                           &sums[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
    sl_settle("softmax loss", &facts, &target, &metrics, &z, NULL);
}

static void check_softmax_loss(int64_t rows, int64_t classes)
{
    check_softmax_loss_by(rows, classes, SL_ROW_NONE);
    check_softmax_loss_by(rows, classes, SL_ROW_LEFT);
    check_softmax_loss_by(rows, classes, SL_ROW_INVERSE_RIGHT);
}

static void check_accuracy(int64_t rows, int64_t classes)
{
    struct sl_operand target = targets(rows, classes), z = sl_operand_reals(rows, classes),
                      metrics = sl_operand_blank_metrics();
    double *sums = metrics.copy;
    sl_submit_accuracy(&sl_running, &target.tile, &z.tile, &metrics.tile);
    sl_kernel_accuracy(rows, classes, target.copy, z.copy, z.tile.ld, sums + SL_METRIC_CORRECT,
                       sums + SL_METRIC_LOSS);
    sl_settle("accuracy", &target, &z, &metrics, NULL);
}

static void check_metrics_add(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    struct sl_operand x = sl_operand_metrics(), y = sl_operand_metrics();
    sl_submit_metrics_add(&sl_running, &x.tile, &y.tile);
    for (int i = 0; i < SL_METRICS; i++)
        ((double *)y.copy)[i] += ((double *)x.copy)[i];
    sl_settle("metrics add", &x, &y, NULL);
}

/* ---- Optimizer ---- */

#define METHOD(constant, name, states, state) SL_##constant,

/* A step of layer 3 in epoch 5 with gradient G, which it ends, as the CPU's kernel makes it. */
static void check_step(const struct sl_optimizer_step *step, struct sl_operand g, double last,
                       const double metrics_before[SL_METRICS])
{
    const int64_t rows = g.tile.rows, cols = g.tile.cols;
    struct sl_operand end = sl_operand_doubles(1, &last),
                      metrics = sl_operand_doubles(SL_METRICS, metrics_before),
                      m = sl_operand_reals(rows, cols), v = sl_operand_reals(rows, cols),
                      w = sl_operand_reals(rows, cols);
    double *told = metrics.copy;
    const bool done = last != 4.0 && isfinite(told[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) &&
                      told[SL_METRIC_BAD_GRADIENT] == 0.0 && told[SL_METRIC_BAD_UPDATE] == 0.0;
    sl_submit_optimizer(&sl_running, step,
                        &(struct sl_optimizer_tiles){5, 3, &end.tile, &metrics.tile, &g.tile,
                                                     &m.tile, &v.tile, &w.tile});
    for (int64_t r = 0; r < rows && done; r++) {
        const unsigned bad =
            sl_kernel_optimizer(step, cols, sl_copied_row(&g, r), sl_copied_row(&w, r),
                                sl_copied_row(&m, r), sl_copied_row(&v, r));
        if (bad & SL_BAD_GRADIENT)
            told[SL_METRIC_BAD_GRADIENT] = 3.0;
        if (bad & SL_BAD_UPDATE)
            told[SL_METRIC_BAD_UPDATE] = 3.0;
    }
    sl_settle("optimizer", &end, &metrics, &g, &m, &v, &w, NULL);
}

/* Epoch 5 of a run that does not end, ends later, with this epoch, or has ended. */
static void check_optimizer(int64_t rows, int64_t cols)
{
    static const double ends[] = {0.0, 6.0, 5.0, 4.0};
    static const enum sl_optimizer methods[] = {SL_OPTIMIZERS(METHOD)};
    struct sl_optimizer_step step = {.rate = 0.01f,
                                     .decay = 0.1f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.4f,
                                     .correction2 = 0.005f};
    for (size_t i = 0; i < SL_COUNT(methods) * SL_COUNT(ends); i++) {
        const double last = ends[i / SL_COUNT(methods)];
        step.method = methods[i % SL_COUNT(methods)];
        const double sound[SL_METRICS] = {[SL_METRIC_LOSS + SL_SPLIT_TRAIN] = 7.0};
        check_step(&step, sl_operand_reals(rows, cols), last, sound);
    }
}

/* Layer 3: the loss, a layer before it, a number of its gradient, or its result is not finite. In
 * the first two cases all stays as it was. */
static void check_breakdown(int64_t rows, int64_t cols)
{
    static const int of_metrics[] = {SL_METRIC_LOSS + SL_SPLIT_TRAIN, SL_METRIC_BAD_GRADIENT,
                                     SL_METRIC_BAD_UPDATE};
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const enum sl_optimizer methods[] = {SL_OPTIMIZERS(METHOD)};
    for (size_t i = 0; i < SL_COUNT(methods) * SL_COUNT(bad); i++) {
        const double value = bad[i / SL_COUNT(methods)];
        struct sl_optimizer_step step = {.method = methods[i % SL_COUNT(methods)],
                                         .rate = 0.01f,
                                         .beta1 = 0.9f,
                                         .beta2 = 0.999f,
                                         .epsilon = 1e-8f,
                                         .correction1 = 0.4f,
                                         .correction2 = 0.005f};
        for (size_t m = 0; m < SL_COUNT(of_metrics); m++) {
            double metrics[SL_METRICS] = {0.0};
            metrics[of_metrics[m]] = m == 0 ? value : 4.0;
            check_step(&step, sl_operand_reals(rows, cols), 0.0, metrics);
        }
        struct sl_operand g = sl_operand_reals(rows, cols);
        if (rows && cols) {
            const int64_t at = rows / 2 * g.tile.ld + cols - 1;
            void *const all[] = {g.tile.memory, g.copy, g.before};
            for (size_t a = 0; a < SL_COUNT(all); a++)
                ((float *)all[a])[at] = (float)value;
        }
        check_step(&step, g, 0.0, (const double[SL_METRICS]){0.0});
        step.rate = INFINITY;
        check_step(&step, sl_operand_reals(rows, cols), 0.0, (const double[SL_METRICS]){0.0});
    }
}

/* Two gradients, whose norm is above the limit or not. */
static void check_clip(int64_t rows, int64_t cols)
{
    for (int above = 0; above < 2; above++) {
        struct sl_operand a = sl_operand_reals(rows, cols), b = sl_operand_reals(cols, rows),
                          sum = sl_operand_doubles(1, &(const double){-3.0});
        const double squares = sl_kernel_square_sum(rows, cols, sl_copied_row(&a, 0), a.tile.ld) +
                               sl_kernel_square_sum(cols, rows, sl_copied_row(&b, 0), b.tile.ld);
        const double limit = sqrt(squares) * (above ? 0.3 : 1.0);
        sl_submit_square_sum(&sl_running, false, &a.tile, &sum.tile);
        sl_submit_square_sum(&sl_running, true, &b.tile, &sum.tile);
        sl_submit_clip(&sl_running, limit, &sum.tile, &a.tile);
        sl_submit_clip(&sl_running, limit, &sum.tile, &b.tile);
        *(double *)sum.copy = squares;
        sl_kernel_clip(rows, cols, limit, squares, sl_copied_row(&a, 0), a.tile.ld);
        sl_kernel_clip(cols, rows, limit, squares, sl_copied_row(&b, 0), b.tile.ld);
        sl_settle("clip", &sum, &a, &b, NULL);
    }
}

/* ---- What leaves the task graph ---- */

enum { EPOCHS = 6, VALUE = 3, WRITTEN = 7 /* metrics that the callback reads and writes */ };

struct journal {
    atomic_int calls;
    int epochs[EPOCHS];
    double values[EPOCHS];
    float afters[EPOCHS];
    const struct sl_operand *after; // (EPOCHS)
};

/* Asks to stop in epochs 3 and 5. */
static bool note(void *context, int epoch, double *values)
{
    struct journal *journal = context;
    const int call = journal->calls;
    journal->epochs[call] = epoch;
    journal->values[call] = values[VALUE];
    journal->afters[call] = *(const float *)journal->after[epoch - 1].tile.memory;
    values[WRITTEN] = -epoch;
    journal->calls++;
    return epoch == 3 || epoch == 5;
}

/* The first epoch's metrics and the last one's `after`, if the calls wait for that, come late. Each
 * epoch has tiles of its own, so that nothing but `end` orders the calls. */
static void check_record(bool wait, double end_before, double end_after)
{
    struct sl_operand one = sl_operand_metrics(), metrics[EPOCHS], after[EPOCHS],
                      end = sl_operand_doubles(1, &end_before);
    struct journal journal = {.after = after};
    for (int e = 0; e < EPOCHS; e++) {
        metrics[e] = sl_operand_metrics();
        after[e] = sl_operand_reals(1, 1);
    }
    sl_tile_acquire(&sl_running, &metrics[0].tile, true);
    sl_tile_acquire(&sl_running, &after[EPOCHS - 1].tile, true);
    for (int e = 0; e < EPOCHS; e++) {
        sl_submit_metrics_add(&sl_running, &one.tile, &metrics[e].tile);
        sl_submit_fill(&sl_running, (float)e, &after[e].tile);
        sl_submit_record(&sl_running, note, &journal, e + 1, &metrics[e].tile,
                         wait ? &after[e].tile : NULL, &end.tile);
    }
    usleep(SL_TASK_PAUSE);
    const int too_early = journal.calls;
    sl_tile_release(&metrics[0].tile);
    usleep(SL_TASK_PAUSE);
    sl_tile_release(&after[EPOCHS - 1].tile);
    sl_runtime_wait(&sl_running);
    assert_int_equal(too_early, 0);
    assert_int_equal(journal.calls, EPOCHS);
    for (int e = 0; e < EPOCHS; e++) {
        double *values = metrics[e].copy;
        for (int i = 0; i < SL_METRICS; i++)
            values[i] += ((double *)one.copy)[i];
        values[WRITTEN] = -(e + 1);
        *(float *)after[e].copy = (float)e;
        assert_int_equal(journal.epochs[e], e + 1);
        assert_true(journal.values[e] == values[VALUE]);
        assert_true(!wait || journal.afters[e] == (float)e);
        sl_settle("record", &metrics[e], &after[e], NULL);
    }
    *(double *)end.copy = end_after;
    sl_settle("record", &one, &end, NULL);
}

static void test_record(void **state)
{
    (void)state;
    check_record(true, 0.0, 3.0);
    check_record(true, 2.0, 2.0); /* has ended before */
    check_record(false, 0.0, 3.0);
}

/* Patience 2, on validation's correct count; all other metrics are larger. */
static void check_keep_best(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    static const struct {
        int epoch;
        double value;
        double best[2], end, best_after[2], end_after;
    } cases[] = {
        {4, 0.6, {0.5, 3.0}, 0.0, {0.6, 4.0}, 0.0},  /* better */
        {5, 0.7, {0.5, 3.0}, 0.0, {0.7, 5.0}, 0.0},  /* at the last moment */
        {4, 0.5, {0.5, 3.0}, 0.0, {0.5, 3.0}, 0.0},  /* only as good */
        {5, 0.5, {0.5, 3.0}, 0.0, {0.5, 3.0}, 5.0},  /* for two epochs */
        {9, 0.4, {0.5, 3.0}, 0.0, {0.5, 3.0}, 9.0},  /* for more */
        {6, 0.9, {0.5, 3.0}, 5.0, {0.5, 3.0}, 5.0},  /* better, after the end */
        {9, 0.1, {0.5, 3.0}, 5.0, {0.5, 3.0}, 5.0},  /* worse, after the end */
        {1, 0.0, {-1.0, 0.0}, 0.0, {0.0, 1.0}, 0.0}, /* the first epoch */
    };
    const int index = SL_METRIC_CORRECT + SL_SPLIT_VAL;
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        double values[SL_METRICS];
        for (int j = 0; j < SL_METRICS; j++)
            values[j] = j == index ? cases[i].value : 9.0;
        struct sl_operand metrics = sl_operand_doubles(SL_METRICS, values),
                          best = sl_operand_doubles(2, cases[i].best),
                          end = sl_operand_doubles(1, &cases[i].end);
        sl_submit_keep_best(&sl_running, index, cases[i].epoch, 2, &metrics.tile, &best.tile,
                            &end.tile);
        memcpy(best.copy, cases[i].best_after, sizeof cases[i].best_after);
        *(double *)end.copy = cases[i].end_after;
        sl_settle("keep best", &metrics, &best, &end, NULL);
    }
}

static void check_copy_if_best(int64_t rows, int64_t cols)
{
    for (int epoch = 3; epoch < 6; epoch++) {
        struct sl_operand best = sl_operand_doubles(2, (const double[]){0.7, 4.0}),
                          w = sl_operand_reals(rows, cols), copy = sl_operand_reals(rows, cols);
        sl_submit_copy_if_best(&sl_running, epoch, &best.tile, &w.tile, &copy.tile);
        if (epoch == 4)
            sl_operand_copy(&w, &copy);
        sl_settle("copy if best", &best, &w, &copy, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_softmax_loss), SL_OPERATION(check_accuracy),
        SL_OPERATION(check_metrics_add),  SL_OPERATION(check_optimizer),
        SL_OPERATION(check_breakdown),    SL_OPERATION(check_clip),
        SL_OPERATION(check_keep_best),    SL_OPERATION(check_copy_if_best),
        cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
