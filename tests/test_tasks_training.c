/* Submissions of codelets/ as tasks on tiles: losses, the optimizer, and what leaves the
 * task graph. What comes out is, bit by bit, what the kernel makes of copies of the same buffers
 * (tests/operands.h). The kernels have tests of their own (test_kernels_*.c). */
#include <stdatomic.h>
#include <unistd.h>

#include "codelets/accumulate.h"
#include "codelets/clip.h"
#include "codelets/confusion.h"
#include "codelets/init.h"
#include "codelets/label_counts.h"
#include "codelets/optimizer.h"
#include "codelets/record.h"
#include "codelets/value_errors.h"
#include "codelets/value_loss.h"
#include "codelets/weighted_softmax.h"
#include "core/split.h"
#include "graphs/metric.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- Loss ---- */

static struct sl_operand targets(int64_t rows, int64_t classes)
{
    return sl_operand_over(sl_random_targets(rows, classes), rows, 2, 2, sizeof(int32_t));
}

static void check_softmax_loss_by(int64_t rows, int64_t classes, enum sl_row_scale factor)
{
    enum { TRAIN_COUNT = 140 };
    struct sl_operand scales = sl_operand_scales(rows), target = targets(rows, classes),
                      metrics = sl_operand_blank_metrics(), z = sl_operand_reals(rows, classes);
    double *sums = metrics.copy;
    sl_submit_softmax_loss(&sl_running, TRAIN_COUNT, &scales.tile, factor, &target.tile,
                           &metrics.tile, &z.tile);
    sl_kernel_softmax_loss(&(struct sl_softmax){.rows = rows,
                                                .classes = classes,
                                                .scale = 1.0f / (float)TRAIN_COUNT,
                                                .factor = sl_copied_scale(&scales, factor),
                                                .target = target.copy,
                                                .z = z.copy,
                                                .ldz = z.tile.ld,
                                                .g = z.copy,
                                                .ldg = z.tile.ld},
                           &sums[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                           &sums[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
    sl_settle("softmax loss", &scales, &target, &metrics, &z, NULL);
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

static struct sl_operand values(int64_t rows, int64_t columns)
{
    const int64_t width = sl_target_width(SL_TARGET_VALUES, columns);
    return sl_operand_over(sl_random_values(rows, columns), rows, width, width, sizeof(int32_t));
}

static void check_value_loss_by(int64_t rows, int64_t cols, enum sl_value_loss_kind kind,
                                bool weighted, enum sl_row_scale factor)
{
    enum { TRAIN_COUNT = 140 };
    const bool sigmoid = kind == SL_VALUE_SIGMOID;
    struct sl_operand scales = sl_operand_scales(rows), target = values(rows, cols),
                      weights = sl_operand_over(sl_positive(2 * cols), 2, cols, cols, 4),
                      metrics = sl_operand_blank_metrics(), z = sl_operand_reals(rows, cols);
    double *sums = metrics.copy;
    sl_submit_value_loss(&sl_running, kind, TRAIN_COUNT, sigmoid ? 0.1f : 0.0f, factor,
                         &scales.tile, &target.tile, weighted ? &weights.tile : NULL, &metrics.tile,
                         &z.tile);
    sl_kernel_value_loss(&(struct sl_value_loss){.kind = kind,
                                                 .rows = rows,
                                                 .cols = cols,
                                                 .scale = 1.0f / (float)TRAIN_COUNT,
                                                 .smoothing = sigmoid ? 0.1f : 0.0f,
                                                 .weights = weighted ? weights.copy : NULL,
                                                 .factor = sl_copied_scale(&scales, factor),
                                                 .target = target.copy,
                                                 .z = z.copy,
                                                 .ldz = z.tile.ld,
                                                 .g = z.copy,
                                                 .ldg = z.tile.ld},
                         &sums[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                         &sums[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
    sl_settle("value loss", &scales, &target, &weights, &metrics, &z, NULL);
}

static void check_value_loss(int64_t rows, int64_t cols)
{
    check_value_loss_by(rows, cols, SL_VALUE_SIGMOID, false, SL_ROW_NONE);
    check_value_loss_by(rows, cols, SL_VALUE_SIGMOID, true, SL_ROW_LEFT);
    check_value_loss_by(rows, cols, SL_VALUE_SQUARE, false, SL_ROW_INVERSE_RIGHT);
}

static void check_weighted_softmax_by(int64_t rows, int64_t classes, bool weighted,
                                      enum sl_row_scale factor)
{
    enum { TRAIN_COUNT = 140 };
    struct sl_operand scales = sl_operand_scales(rows), target = targets(rows, classes),
                      weights = sl_operand_over(sl_positive(2 * classes), 2, classes, classes, 4),
                      metrics = sl_operand_blank_metrics(), z = sl_operand_reals(rows, classes);
    double *sums = metrics.copy;
    sl_submit_weighted_softmax(&sl_running, TRAIN_COUNT, 0.2f, factor, &scales.tile, &target.tile,
                               weighted ? &weights.tile : NULL, &metrics.tile, &z.tile);
    sl_kernel_weighted_softmax(
        &(struct sl_weighted_softmax){.softmax = {.rows = rows,
                                                  .classes = classes,
                                                  .scale = 1.0f / (float)TRAIN_COUNT,
                                                  .factor = sl_copied_scale(&scales, factor),
                                                  .target = target.copy,
                                                  .z = z.copy,
                                                  .ldz = z.tile.ld,
                                                  .g = z.copy,
                                                  .ldg = z.tile.ld},
                                      .smoothing = 0.2f,
                                      .weights = weighted ? (float *)weights.copy + classes : NULL},
        &sums[SL_METRIC_LOSS + SL_SPLIT_TRAIN], &sums[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
    sl_settle("weighted softmax", &scales, &target, &weights, &metrics, &z, NULL);
}

static void check_weighted_softmax(int64_t rows, int64_t classes)
{
    check_weighted_softmax_by(rows, classes, false, SL_ROW_NONE);
    check_weighted_softmax_by(rows, classes, true, SL_ROW_LEFT);
}

static void check_value_count(int64_t rows, int64_t cols)
{
    for (int kind = SL_VALUE_SIGMOID; kind <= SL_VALUE_SQUARE; kind++) {
        struct sl_operand target = values(rows, cols), z = sl_operand_reals(rows, cols),
                          metrics = sl_operand_blank_metrics();
        double *sums = metrics.copy;
        sl_submit_value_count(&sl_running, (enum sl_value_loss_kind)kind, &target.tile, &z.tile,
                              &metrics.tile);
        sl_kernel_value_count(&(struct sl_value_loss){.kind = (enum sl_value_loss_kind)kind,
                                                      .rows = rows,
                                                      .cols = cols,
                                                      .target = target.copy,
                                                      .z = z.copy,
                                                      .ldz = z.tile.ld},
                              sums + SL_METRIC_CORRECT, sums + SL_METRIC_LOSS);
        sl_settle("value count", &target, &z, &metrics, NULL);
    }
}

/* ---- Metrics of labels ---- */

/* Metrics of classes, and of values with both decisions. */
static void check_label_counts(int64_t rows, int64_t labels)
{
    for (int form = SL_TARGET_CLASS; form <= SL_TARGET_VALUES; form++)
        for (int decision = SL_DECIDE_HALF; decision <= SL_DECIDE_TOP; decision++) {
            const bool several = form == SL_TARGET_VALUES;
            struct sl_operand target = several ? values(rows, labels) : targets(rows, labels),
                              z = sl_operand_reals(rows, labels),
                              counts = sl_operand_over(calloc((size_t)labels + 1, 1024), labels,
                                                       SL_TABLE_COUNTS, SL_TABLE_COUNTS, 8);
            sl_submit_label_counts(&sl_running, (enum sl_target_form)form,
                                   (enum sl_label_decision)decision, &target.tile, &z.tile,
                                   &counts.tile);
            sl_kernel_label_counts(&(struct sl_label_counts){(enum sl_target_form)form,
                                                             (enum sl_label_decision)decision, rows,
                                                             labels, target.copy, z.copy,
                                                             z.tile.ld},
                                   counts.copy);
            sl_settle("label counts", &target, &z, &counts, NULL);
        }
}

/* Targets with values that are far from 0, as the squares of their sums would tell. */
static struct sl_operand far_values(int64_t rows, int64_t columns)
{
    const int64_t width = sl_target_width(SL_TARGET_VALUES, columns);
    int32_t *target = sl_random_values(rows, columns);
    for (int64_t i = 0; i < rows * width; i++) {
        float value;
        if (i % width < SL_TARGET_FIRST)
            continue;
        memcpy(&value, &target[i], sizeof value);
        value = 1e6f + (float)sl_random_below(9) * value;
        memcpy(&target[i], &value, sizeof value);
    }
    return sl_operand_over(target, rows, width, width, sizeof(int32_t));
}

static void check_value_errors(int64_t rows, int64_t columns)
{
    struct sl_operand target = far_values(rows, columns), z = sl_operand_reals(rows, columns),
                      table = sl_operand_over(calloc((size_t)columns + 1, 1024), columns,
                                              SL_TABLE_ERRORS, SL_TABLE_ERRORS, 8);
    sl_submit_value_errors(&sl_running, &target.tile, &z.tile, &table.tile);
    sl_kernel_value_errors(&(struct sl_value_errors){rows, columns, target.copy, z.copy, z.tile.ld},
                           table.copy);
    sl_settle("value errors", &target, &z, &table, NULL);
}

/* Some columns of a table have no known value. */
static double *random_errors(int64_t columns)
{
    double *table = sl_doubles(columns * SL_TABLE_ERRORS);
    for (int64_t i = 0; i < columns * SL_TABLE_ERRORS; i++) {
        const bool empty = i / SL_VALUE_ERRORS % 3 == 1;
        table[i] = empty ? 0.0
                   : i % SL_VALUE_ERRORS == SL_KNOWN_VALUES
                       ? (double)(1 + sl_random_below(50))
                       : fabs((double)sl_random_value(SL_REALS));
    }
    return table;
}

static void check_join_errors(int64_t rows, int64_t columns)
{
    (void)rows;
    struct sl_operand from = sl_operand_over(random_errors(columns), columns, SL_TABLE_ERRORS,
                                             SL_TABLE_ERRORS, 8),
                      to = sl_operand_over(random_errors(columns), columns, SL_TABLE_ERRORS,
                                           SL_TABLE_ERRORS, 8);
    sl_submit_join_errors(&sl_running, &from.tile, &to.tile);
    sl_kernel_join_errors(columns, from.copy, to.copy);
    sl_settle("join errors", &from, &to, NULL);
}

/* Added to what is there. */
static void check_confusion(int64_t rows, int64_t labels)
{
    const int64_t width = SL_SPLITS * labels;
    struct sl_operand target = targets(rows, labels), z = sl_operand_reals(rows, labels),
                      counts = sl_operand_over(calloc((size_t)(labels * width) + 1, 8), labels,
                                               width, width, 8);
    for (int twice = 0; twice < 2; twice++) {
        sl_submit_confusion(&sl_running, &target.tile, &z.tile, &counts.tile);
        sl_kernel_confusion(&(struct sl_confusion){rows, labels, target.copy, z.copy, z.tile.ld},
                            counts.copy);
    }
    sl_settle("confusion", &target, &z, &counts, NULL);
}

static void check_label_scores(int64_t rows, int64_t labels)
{
    for (int form = SL_TARGET_CLASS; form <= SL_TARGET_VALUES; form++) {
        const bool several = form == SL_TARGET_VALUES;
        const int64_t ranked = sl_ranked_labels((enum sl_target_form)form, labels);
        const int64_t first = ranked / 3, count = ranked - first;
        struct sl_operand target = several ? values(rows, labels) : targets(rows, labels),
                          z = sl_operand_reals(rows, labels),
                          scores = sl_operand_over(calloc((size_t)(rows * count) + 1, 8), rows,
                                                   count, count, 8);
        sl_submit_label_scores(&sl_running, (enum sl_target_form)form, first, &target.tile, &z.tile,
                               &scores.tile);
        sl_kernel_label_scores(&(struct sl_label_scores){(enum sl_target_form)form, rows, labels,
                                                         first, count, target.copy, z.copy,
                                                         z.tile.ld},
                               scores.copy);
        sl_settle("label scores", &target, &z, &scores, NULL);
    }
}

/* Rank two tiles of scores, label by label, and take the metric of the table. A kernel sorts the
 * scores of one label: many labels tell no more than some. */
static void check_ranking(int64_t rows, int64_t labels)
{
    enum { TILES = 2, MOST_LABELS = 41 };
    if (labels > MOST_LABELS)
        return;
    struct sl_operand score[TILES];
    struct sl_tile *list[TILES];
    for (int t = 0; t < TILES; t++) {
        uint64_t *all = calloc((size_t)(rows * labels) + 1, sizeof *all);
        for (int64_t k = 0; k < rows * labels; k++) {
            const int64_t what = sl_random_below(9);
            all[k] = (uint64_t)sl_random_below(40) << 60 |
                     (what < 8 ? (uint64_t)what : (uint64_t)SL_NO_SCORE);
        }
        score[t] = sl_operand_over(all, rows, labels, labels, sizeof *all);
        list[t] = &score[t].tile;
    }
    struct sl_operand work = sl_operand_over(calloc((size_t)(4 * rows) + 1, 8), 2, TILES * rows,
                                             TILES * rows, 8),
                      table = sl_operand_over(calloc((size_t)(labels * SL_TABLE_RANKINGS) + 1, 8),
                                              labels, SL_TABLE_RANKINGS, SL_TABLE_RANKINGS, 8),
                      metrics = sl_operand_metrics();
    work.free_rows = 2;
    sl_submit_ranking(&sl_running, TILES, list, &work.tile, &table.tile);
    struct sl_tile *tables[] = {&table.tile};
    sl_submit_label_metric(&sl_running, &sl_metric_roc_auc.labels, SL_TARGET_VALUES, 1, tables,
                           &metrics.tile);
    uint64_t *entries = work.copy;
    for (int64_t j = 0; j < labels; j++) {
        for (int64_t k = 0; k < TILES * rows; k++)
            entries[k] = ((uint64_t *)score[k / rows].copy)[k % rows * labels + j];
        sl_kernel_ranking(TILES * rows, entries, entries + TILES * rows,
                          (double *)table.copy + j * SL_TABLE_RANKINGS);
    }
    for (int s = 0; s < SL_SPLITS; s++)
        ((double *)metrics.copy)[SL_METRIC_VALUE + s] =
            sl_label_metric_value(&sl_metric_roc_auc.labels, SL_TARGET_VALUES, 1, &labels,
                                  (const double *const[]){table.copy}, s);
    sl_settle("ranking", &score[0], &score[1], &work, &table, &metrics, NULL);
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

/* How many steps the parameters of a tile have had. */
static struct sl_operand step_counts(int64_t rows, int64_t cols)
{
    const int64_t ld = cols + sl_random_below(4);
    float *counts = sl_positive(rows * ld);
    for (int64_t i = 0; i < rows * ld; i++)
        counts[i] = (float)sl_random_below(30);
    return sl_operand_over(counts, rows, cols, ld, sizeof *counts);
}

/* A step of layer 3, before the last quarter of epoch 5, with gradient G, which it ends, as the
 * CPU's kernel makes it. The last rows are running averages. Parameters have counts in a round,
 * where step->local > 0. */
static void check_step(const struct sl_optimizer_step *step, struct sl_operand g, double last,
                       const double metrics_before[SL_METRICS])
{
    const int64_t rows = g.tile.rows, cols = g.tile.cols;
    const int averages = rows < 2 ? 0 : (int)sl_random_below(2) * 2;
    struct sl_operand end = sl_operand_doubles(1, &last),
                      metrics = sl_operand_doubles(SL_METRICS, metrics_before),
                      m = sl_operand_reals(rows, cols), v = sl_operand_reals(rows, cols),
                      w = sl_operand_reals(rows, cols), counts = step_counts(rows, cols);
    const bool counted = step->local > 0;
    double *told = metrics.copy;
    const bool done = (last == 0.0 || last >= 4.75) &&
                      isfinite(told[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) &&
                      told[SL_METRIC_BAD_GRADIENT] == 0.0 && told[SL_METRIC_BAD_UPDATE] == 0.0;
    sl_submit_optimizer(&sl_running, step,
                        &(struct sl_optimizer_tiles){4.75, 3, averages, &end.tile, &metrics.tile,
                                                     counted ? &counts.tile : NULL, &g.tile,
                                                     &m.tile, &v.tile, &w.tile});
    for (int64_t r = 0; r < rows && done; r++) {
        const unsigned bad =
            r < rows - averages
                ? sl_kernel_optimizer(step, cols, counted ? sl_copied_row(&counts, r) : NULL,
                                      sl_copied_row(&g, r), sl_copied_row(&w, r),
                                      sl_copied_row(&m, r), sl_copied_row(&v, r))
                : sl_kernel_average(step->average_rate, cols, sl_copied_row(&g, r),
                                    sl_copied_row(&w, r));
        if (bad & SL_BAD_GRADIENT)
            told[SL_METRIC_BAD_GRADIENT] = 3.0;
        if (bad & SL_BAD_UPDATE)
            told[SL_METRIC_BAD_UPDATE] = 3.0;
    }
    sl_settle("optimizer", &end, &metrics, &counts, &g, &m, &v, &w, NULL);
}

/* Epoch 5 of a run that does not end, ends later, with this epoch, or has ended. */
static void check_optimizer(int64_t rows, int64_t cols)
{
    static const double ends[] = {0.0, 5.0, 4.75, 4.5, 4.0};
    static const enum sl_optimizer methods[] = {SL_OPTIMIZERS(METHOD)};
    struct sl_optimizer_step step = {.rate = 0.01f,
                                     .decay = 0.1f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.999f,
                                     .epsilon = 1e-8f,
                                     .correction1 = 0.4f,
                                     .correction2 = 0.005f,
                                     .average_rate = 0.1f};
    for (size_t i = 0; i < 2 * SL_COUNT(methods) * SL_COUNT(ends); i++) {
        const double last = ends[i / 2 / SL_COUNT(methods)];
        step.method = methods[i / 2 % SL_COUNT(methods)];
        step.local = i % 2 ? 1 + sl_random_below(4) : 0;
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
                                         .correction2 = 0.005f,
                                         .average_rate = 0.1f};
        for (size_t m = 0; m < SL_COUNT(of_metrics); m++) {
            double metrics[SL_METRICS] = {0.0};
            metrics[of_metrics[m]] = m == 0 ? value : 4.0;
            check_step(&step, sl_operand_reals(rows, cols), 0.0, metrics);
        }
        struct sl_operand g = sl_operand_reals(rows, cols);
        if (rows && cols) {
            const int64_t at = sl_random_below(rows) * g.tile.ld + cols - 1;
            void *const all[] = {g.tile.memory, g.copy, g.before};
            for (size_t a = 0; a < SL_COUNT(all); a++)
                ((float *)all[a])[at] = (float)value;
        }
        check_step(&step, g, 0.0, (const double[SL_METRICS]){0.0});
        step.rate = INFINITY;
        check_step(&step, sl_operand_reals(rows, cols), 0.0, (const double[SL_METRICS]){0.0});
    }
}

/* Two gradients, whose norm is above the limit or not. The last row of the first is none. */
static void check_clip(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 4; option++) {
        const int above = option % 2, averages = option / 2;
        struct sl_operand a = sl_operand_reals(rows + averages, cols),
                          b = sl_operand_reals(cols, rows),
                          sum = sl_operand_doubles(1, &(const double){-3.0});
        const double squares = sl_kernel_square_sum(rows, cols, sl_copied_row(&a, 0), a.tile.ld) +
                               sl_kernel_square_sum(cols, rows, sl_copied_row(&b, 0), b.tile.ld);
        const double limit = sqrt(squares) * (above ? 0.3 : 1.0);
        sl_submit_square_sum(&sl_running, false, averages, &a.tile, &sum.tile);
        sl_submit_square_sum(&sl_running, true, 0, &b.tile, &sum.tile);
        sl_submit_clip(&sl_running, limit, averages, &sum.tile, &a.tile);
        sl_submit_clip(&sl_running, limit, 0, &sum.tile, &b.tile);
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

/* Asks to stop in steps 3 and 5; an epoch has two. */
static bool note(void *context, double now, double *values)
{
    const int epoch = (int)(2.0 * now); /* of one step in two */
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
        sl_submit_record(&sl_running, note, &journal, (e + 1) / 2.0, &metrics[e].tile,
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

SL_TEST(test_record)
{
    check_record(true, 0.0, 1.5);
    check_record(true, 1.0, 1.0); /* has ended before */
    check_record(false, 0.0, 1.5);
}

/* Patience 2, on validation's correct count; all other metrics are larger. `falls`: the same with
 * the other sign. */
static void check_keep_best_by(bool falls)
{
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
        {1, -7.0, {-1.0, 0.0}, 0.0, {-7.0, 1.0}, 0.0},
        {2, NAN, {-1.0, 0.0}, 0.0, {-1.0, 0.0}, 2.0}, /* not defined */
    };
    const int index = SL_METRIC_CORRECT + SL_SPLIT_VAL;
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        double values[SL_METRICS];
        for (int j = 0; j < SL_METRICS; j++)
            values[j] = j == index ? (falls ? -cases[i].value : cases[i].value) : 9.0;
        struct sl_operand metrics = sl_operand_doubles(SL_METRICS, values),
                          best = sl_operand_doubles(2, cases[i].best),
                          end = sl_operand_doubles(1, &cases[i].end);
        sl_submit_keep_best(&sl_running, index, falls, cases[i].epoch, 2, &metrics.tile, &best.tile,
                            &end.tile);
        memcpy(best.copy, cases[i].best_after, sizeof cases[i].best_after);
        *(double *)end.copy = cases[i].end_after;
        sl_settle("keep best", &metrics, &best, &end, NULL);
    }
}

static void check_keep_best(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    check_keep_best_by(false);
    check_keep_best_by(true);
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
        SL_OPERATION(check_softmax_loss),
        SL_OPERATION(check_accuracy),
        SL_OPERATION(check_value_loss),
        SL_OPERATION(check_value_count),
        SL_OPERATION(check_weighted_softmax),
        SL_OPERATION(check_label_counts),
        SL_OPERATION(check_value_errors),
        SL_OPERATION(check_join_errors),
        SL_OPERATION(check_confusion),
        SL_OPERATION(check_label_scores),
        SL_OPERATION(check_ranking),
        SL_OPERATION(check_metrics_add),
        SL_OPERATION(check_optimizer),
        SL_OPERATION(check_breakdown),
        SL_OPERATION(check_clip),
        SL_OPERATION(check_keep_best),
        SL_OPERATION(check_copy_if_best),
        cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
