/* Metrics of random labels and scores, against what scikit-learn says (tests/metrics_values.py).
 *
 * The rows of a case are of one split. Between them are as many rows of the other splits, and rows
 * without a label, all of other labels: they must not count. Sums of floats are right to 1e-6;
 * metrics of labels are exact but for the order of a few sums of double. */
#include "codelets/confusion.h"
#include "codelets/softmax.h"
#include "codelets/value_loss.h"
#include "graphs/metric.h"
#include "tests/kernels.h"
#include "tests/metrics_values.h"
#include "tests/unit.h"

enum { SPLIT = SL_SPLIT_VAL };
static const double EXACT = 1e-12, CLOSE = 1e-6;
static const double FAR = 1e-10; /* values are 10^6 times as far from 0 as from their mean */

/* A case as tiles have it. */
struct tiles {
    enum sl_target_form form;
    enum sl_label_decision decision;
    int64_t rows, labels, labelled;
    int32_t *target;
    float *z;
};

static void set_label(const struct known *k, int64_t of, int32_t *row, struct tiles *t)
{
    const float *y = k->several ? k->y + of * k->labels : k->y + of;
    bool any = !k->several;
    for (int64_t j = 0; k->several && j < k->labels; j++) {
        any = any || !isnan(y[j]);
        memcpy(row + SL_TARGET_FIRST + j, y + j, sizeof *y);
    }
    row[SL_TARGET_LABEL] = !any ? -1 : k->several ? 0 : (int32_t)y[0];
    row[SL_TARGET_SPLIT] = SPLIT;
    t->labelled += any;
}

static struct tiles make_tiles(const struct known *k)
{
    struct tiles t = {.form = k->several ? SL_TARGET_VALUES : SL_TARGET_CLASS,
                      .decision = strncmp(k->metric, "top ", 4) ? SL_DECIDE_HALF : SL_DECIDE_TOP,
                      .rows = 2 * k->rows,
                      .labels = k->labels};
    const int64_t width = sl_target_width(t.form, t.labels);
    t.target =
        k->several ? sl_random_values(t.rows, t.labels) : sl_random_targets(t.rows, t.labels);
    t.z = calloc((size_t)(t.rows * t.labels), sizeof *t.z);
    assert_non_null(t.z);
    for (int64_t r = 0; r < t.rows; r++) {
        int32_t *row = t.target + r * width;
        row[SL_TARGET_SPLIT] += row[SL_TARGET_SPLIT] == SPLIT;
        for (int64_t j = 0; j < t.labels; j++)
            t.z[r * t.labels + j] =
                r % 2 ? k->z[r / 2 * t.labels + j] : sl_random_value(SL_INTEGERS);
        if (r % 2)
            set_label(k, r / 2, row, &t);
    }
    return t;
}

static void free_tiles(struct tiles *t)
{
    free(t->target);
    free(t->z);
}

/* The loss is the sum / labelled vertices. */
static double sum_of(const struct tiles *t, const char *metric)
{
    double correct[SL_SPLITS], loss[SL_SPLITS];
    const struct sl_value_loss v = {.kind = strcmp(metric, "mse") == 0 ? SL_VALUE_SQUARE
                                                                       : SL_VALUE_SIGMOID,
                                    .rows = t->rows,
                                    .cols = t->labels,
                                    .target = t->target,
                                    .z = t->z,
                                    .ldz = t->labels};
    if (t->form == SL_TARGET_CLASS)
        sl_kernel_accuracy(t->rows, t->labels, t->target, t->z, t->labels, correct, loss);
    else
        sl_kernel_value_count(&v, correct, loss);
    return (strcmp(metric, "accuracy") == 0 ? correct : loss)[SPLIT] / (double)t->labelled;
}

/* From the counts of two parts of the rows, added. */
static double count_value(const struct tiles *t, const struct sl_metric *metric)
{
    const int64_t size = t->labels * SL_TABLE_COUNTS, cut = t->rows / 3,
                  width = sl_target_width(t->form, t->labels);
    double *all = sl_doubles(size), *part = sl_doubles(size);
    for (int p = 0; p < 2; p++) {
        const int64_t first = p ? cut : 0, rows = p ? t->rows - cut : cut;
        sl_kernel_label_counts(&(struct sl_label_counts){t->form, t->decision, rows, t->labels,
                                                         t->target + first * width,
                                                         t->z + first * t->labels, t->labels},
                               part);
        for (int64_t i = 0; i < size; i++)
            all[i] += part[i];
    }
    const double value = sl_label_metric_value(&metric->labels, t->form, 1, &t->labels,
                                               (const double *const[]){all}, SPLIT);
    free(all);
    free(part);
    return value;
}

/* The labels in two groups. */
static double ranking_value(const struct tiles *t, const struct sl_metric *metric)
{
    const int64_t ranked = sl_ranked_labels(t->form, t->labels);
    const int64_t labels[] = {ranked / 2, ranked - ranked / 2};
    double *table[2];
    for (int g = 0; g < 2; g++) {
        uint64_t *scores = calloc((size_t)(t->rows * ranked) + 1, sizeof *scores),
                 *work = calloc((size_t)(2 * t->rows), sizeof *work);
        table[g] = sl_doubles(labels[g] * SL_TABLE_RANKINGS);
        sl_kernel_label_scores(&(struct sl_label_scores){t->form, t->rows, t->labels,
                                                         g ? labels[0] : 0, labels[g], t->target,
                                                         t->z, t->labels},
                               scores);
        for (int64_t j = 0; j < labels[g]; j++) {
            for (int64_t r = 0; r < t->rows; r++)
                work[r] = scores[r * labels[g] + j];
            sl_kernel_ranking(t->rows, work, work + t->rows, table[g] + j * SL_TABLE_RANKINGS);
        }
        free(scores);
        free(work);
    }
    const double value = sl_label_metric_value(&metric->labels, t->form, 2, labels,
                                               (const double *const *)table, SPLIT);
    free(table[0]);
    free(table[1]);
    return value;
}

SL_TEST(test_known_values)
{
    for (size_t i = 0; i < SL_COUNT(known); i++) {
        struct tiles t = make_tiles(&known[i]);
        const char *name = known[i].metric + (t.decision == SL_DECIDE_TOP ? 4 : 0);
        const struct sl_metric *metric = sl_metric_find(name);
        const bool sums = !metric || metric->source == SL_METRIC_OF_SUMS;
        const double got = sums                                    ? sum_of(&t, name)
                           : metric->source == SL_METRIC_OF_COUNTS ? count_value(&t, metric)
                                                                   : ranking_value(&t, metric);
        if (!(fabs(got - known[i].value) <= (sums ? CLOSE : EXACT)))
            fail_msg("%s: %s is %.17g, expected %.17g", known[i].name, known[i].metric, got,
                     known[i].value);
        free_tiles(&t);
    }
}

/* Many equal scores, scores of both signs and of all sizes, zeros of both signs: pairs are counted
 * one by one. */
SL_TEST(test_ranking_by_pairs)
{
    enum { ROWS = 200 };
    static const float sizes[] = {0.0f,  -0.0f,  1e-40f,  -1e-40f, 1.0f,
                                  -1.0f, 500.0f, -500.0f, 3e38f,   -3e38f};
    for (int trial = 0; trial < 20; trial++) {
        int32_t target[ROWS * 3];
        float z[ROWS], y[ROWS];
        uint64_t work[2 * ROWS];
        double got[SL_TABLE_RANKINGS];
        for (int r = 0; r < ROWS; r++) {
            y[r] = (float)sl_random_below(2);
            z[r] = sl_random_below(3) ? sizes[sl_random_below(10)] : sl_random_value(SL_REALS);
            target[3 * r] = sl_random_below(9) ? 0 : -1;
            target[3 * r + 1] = (int32_t)sl_random_below(SL_SPLITS);
            memcpy(&target[3 * r + 2], &y[r], sizeof y[r]);
        }
        sl_kernel_label_scores(
            &(struct sl_label_scores){SL_TARGET_VALUES, ROWS, 1, 0, 1, target, z, 1}, work);
        sl_kernel_ranking(ROWS, work, work + ROWS, got);
        for (int s = 0; s < SL_SPLITS; s++) {
            double won = 0.0, pairs = 0.0;
            for (int a = 0; a < ROWS; a++)
                for (int b = 0; b < ROWS; b++)
                    if (target[3 * a] == 0 && target[3 * b] == 0 && target[3 * a + 1] == s &&
                        target[3 * b + 1] == s && y[a] > y[b]) {
                        pairs += 1.0;
                        won += z[a] > z[b] ? 1.0 : z[a] == z[b] ? 0.5 : 0.0;
                    }
            assert_true(got[s * SL_RANKINGS + SL_AREA] == won / pairs);
        }
    }
}

/* A split without a vertex, or with one kind of label alone, has no area and no precision. */
SL_TEST(test_ranking_undefined)
{
    uint64_t work[] = {2 * SL_SPLIT_VAL, 2 * SL_SPLIT_VAL, 2 * SL_SPLIT_TEST + 1, 0, 0, 0};
    double got[SL_TABLE_RANKINGS];
    sl_kernel_ranking(3, work, work + 3, got);
    for (int i = 0; i < SL_TABLE_RANKINGS; i++)
        assert_true(isnan(got[i]));
    sl_kernel_ranking(0, work, work + 3, got);
    assert_true(isnan(got[0]));
    const int64_t labels = 1;
    assert_true(isnan(sl_label_metric_value(&sl_metric_roc_auc.labels, SL_TARGET_VALUES, 1, &labels,
                                            (const double *const[]){got}, SL_SPLIT_VAL)));
}

/* Sums of rows and columns are the right and wrong labels, counted otherwise; a known pair of
 * classes is where it belongs. */
SL_TEST(test_confusion)
{
    enum { ROWS = 300, CLASSES = 5 };
    int32_t target[ROWS * 2];
    float z[ROWS * CLASSES];
    double table[CLASSES][SL_SPLITS][CLASSES] = {{{0}}};
    double counts[CLASSES][SL_SPLITS][SL_LABEL_COUNTS];
    for (int r = 0; r < ROWS; r++) {
        target[2 * r] = (int32_t)sl_random_below(CLASSES + 1) - 1;
        target[2 * r + 1] = (int32_t)sl_random_below(SL_SPLITS);
        for (int j = 0; j < CLASSES; j++)
            z[r * CLASSES + j] = sl_random_value(SL_INTEGERS);
    }
    sl_kernel_confusion(&(struct sl_confusion){ROWS, CLASSES, target, z, CLASSES}, table[0][0]);
    sl_kernel_label_counts(&(struct sl_label_counts){SL_TARGET_CLASS, SL_DECIDE_HALF, ROWS, CLASSES,
                                                     target, z, CLASSES},
                           counts[0][0]);
    for (int s = 0; s < SL_SPLITS; s++)
        for (int c = 0; c < CLASSES; c++) {
            double row = 0.0, column = 0.0;
            for (int j = 0; j < CLASSES; j++) {
                row += table[c][s][j];
                column += table[j][s][c];
            }
            assert_true(table[c][s][c] == counts[c][s][SL_TRUE_POSITIVE]);
            assert_true(row == counts[c][s][SL_TRUE_POSITIVE] + counts[c][s][SL_FALSE_NEGATIVE]);
            assert_true(column == counts[c][s][SL_TRUE_POSITIVE] + counts[c][s][SL_FALSE_POSITIVE]);
        }
    const int32_t one[] = {3, SL_SPLIT_TEST};
    const float logits[] = {-1.0f, 2.0f, 2.0f, 1.0f, 0.0f};
    const double before = table[3][SL_SPLIT_TEST][1];
    sl_kernel_confusion(&(struct sl_confusion){1, CLASSES, one, logits, CLASSES}, table[0][0]);
    assert_true(table[3][SL_SPLIT_TEST][1] == before + 1.0);
}

/* Return MAE (`absolute`) or R² of a split by two passes in long double; NaN where no column has
 * one. */
static double error_metric(int rows, int columns, const float *y, const float *z, const int *split,
                           int wanted, bool absolute)
{
    double sum = 0.0, defined = 0.0;
    for (int j = 0; j < columns; j++) {
        long double count = 0.0L, mean = 0.0L, spread = 0.0L, errors = 0.0L, squares = 0.0L;
        for (int pass = 0; pass < 2; pass++) {
            for (int r = 0; r < rows; r++) {
                const long double a = y[r * columns + j], error = a - z[r * columns + j];
                if (split[r] != wanted || isnan(y[r * columns + j]))
                    continue;
                count += pass ? 0.0L : 1.0L;
                mean += pass ? 0.0L : a;
                spread += pass ? (a - mean) * (a - mean) : 0.0L;
                errors += pass ? fabsl(error) : 0.0L;
                squares += pass ? error * error : 0.0L;
            }
            mean = pass || count == 0.0L ? mean : mean / count;
        }
        const bool has = absolute ? count > 0.0L : spread > 0.0L;
        sum += has ? (double)(absolute ? errors / count : 1.0L - squares / spread) : 0.0;
        defined += has;
    }
    return defined > 0.0 ? sum / defined : NAN;
}

/* Tables of three parts of the rows, joined. Column 1 is far from 0, column 2 has one value, and
 * column 3 no known value; no row is of the test split, and rows without a label lie between. */
SL_TEST(test_errors)
{
    enum { ROWS = 500, COLUMNS = 5, WIDTH = SL_TARGET_FIRST + COLUMNS, UNLABELLED = -1 };
    static const int cut[] = {0, 1, 210, ROWS};
    int32_t target[ROWS * WIDTH];
    float y[ROWS * COLUMNS], z[ROWS * COLUMNS];
    int split[ROWS];
    double all[COLUMNS * SL_TABLE_ERRORS] = {0}, part[COLUMNS * SL_TABLE_ERRORS];
    for (int r = 0; r < ROWS; r++) {
        const bool labelled = sl_random_below(9) > 0;
        target[r * WIDTH + SL_TARGET_LABEL] = labelled ? 0 : -1;
        target[r * WIDTH + SL_TARGET_SPLIT] = (int32_t)sl_random_below(SL_SPLIT_TEST);
        split[r] = labelled ? target[r * WIDTH + SL_TARGET_SPLIT] : UNLABELLED;
        for (int j = 0; j < COLUMNS; j++) {
            float *own = &y[r * COLUMNS + j];
            *own = j == 2 ? 0.1f : j == 3 || !sl_random_below(5) ? NAN : sl_random_value(SL_REALS);
            if (j == 1)
                *own = 8e6f + (float)sl_random_below(20);
            z[r * COLUMNS + j] = sl_random_value(SL_REALS) + (j == 1 ? 8e6f : 0.0f);
            memcpy(&target[r * WIDTH + SL_TARGET_FIRST + j], own, sizeof *own);
        }
    }
    for (int p = 0; p < 3; p++) {
        sl_kernel_value_errors(&(struct sl_value_errors){cut[p + 1] - cut[p], COLUMNS,
                                                         target + cut[p] * WIDTH,
                                                         z + cut[p] * COLUMNS, COLUMNS},
                               part);
        sl_kernel_join_errors(COLUMNS, part, all);
    }
    const int64_t columns = COLUMNS;
    for (int s = 0; s < SL_SPLITS; s++)
        for (int absolute = 0; absolute < 2; absolute++) {
            const struct sl_metric *metric = absolute ? &sl_metric_mae : &sl_metric_r2;
            const double got = sl_label_metric_value(&metric->labels, SL_TARGET_VALUES, 1, &columns,
                                                     (const double *const[]){all}, s),
                         want = error_metric(ROWS, COLUMNS, y, z, split, s, absolute);
            assert_true(isnan(want) == (s == SL_SPLIT_TEST));
            if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= FAR * (1.0 + fabs(want))))
                fail_msg("%s of split %d is %.17g, expected %.17g", metric->name, s, got, want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),           cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_ranking_by_pairs), cmocka_unit_test(test_ranking_undefined),
        cmocka_unit_test(test_confusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
