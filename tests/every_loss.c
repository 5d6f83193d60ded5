/* On every distribution, losses and metrics are those of one rank. Metrics are also counted one by
 * one from the logits of all ranks, in double. A vertex of a vertex-cut has
 * several clones, and counts once. tests/every-loss.sh runs this program on several numbers of
 * ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/metric.h"
#include "tests/every.h"
#include "tests/fixtures.h"
#include "tests/trained.h"
#include "train/trainer.h"

enum { VERTICES = 67, LABELS = 5 };
static const double ROUNDING = 2e-5, EXACT = 1e-12;

enum labels { CLASSES, TWO_CLASSES, SEVERAL, NUMBERS };

static const struct objective {
    enum labels labels;
    const char *metric, *options;
} objectives[] = {
    {SEVERAL, "micro-f1", "--loss sigmoid --decision top"},
    {SEVERAL, "macro-f1", "--loss sigmoid --class-weights balanced --label-smoothing 0.1"},
    {SEVERAL, "roc-auc", "--loss sigmoid"},
    {SEVERAL, "average-precision", "--loss sigmoid --model sage --aggregator max"},
    {SEVERAL, "label-accuracy", "--loss sigmoid"},
    {NUMBERS, "loss", "--loss mse"},
    {NUMBERS, "mae", "--loss mse --model sage"},
    {NUMBERS, "r2", "--loss mse --model gin"},
    {CLASSES, "macro-f1", "--class-weights balanced"},
    {CLASSES, "roc-auc", "--label-smoothing 0.2"},
    {CLASSES, "micro-f1", "--loss sigmoid"},
    {CLASSES, "macro-f1", "--loss own-classes"},
    {NUMBERS, "loss", "--loss own-numbers"},
    {TWO_CLASSES, "roc-auc", ""},
    {TWO_CLASSES, "average-precision", "--class-weights balanced"},
};

struct checking {
    struct sl_runtime *rt;
    struct sl_dataset data;
    const struct objective *objective;
    struct sl_trained expected;
    float labels[VERTICES * LABELS]; /* of SEVERAL and NUMBERS */
    int split[VERTICES];
    int cases, failures;
};

/* ---- Losses of a program ---- */

/* A sum of (z - y)²: y of a class is 3 where the class is right, and 0. */
static void sum_squares(void *context, const struct starling_loss_rows *rows)
{
    (void)context;
    for (int64_t k = 0; k < rows->rows * rows->columns; k++) {
        const int64_t r = k / rows->columns;
        const float y = !rows->classes                              ? rows->labels[k]
                        : rows->classes[r] == k - r * rows->columns ? 3.0f
                                                                    : 0.0f;
        const float apart = isnan(y) ? 0.0f : rows->logits[k] - y;
        rows->loss[r] += (double)(apart * apart);
        if (rows->gradient)
            rows->gradient[k] = 2.0f * apart;
    }
}

/* ---- Labels ---- */

static void set_split(struct checking *k, const struct sl_index_set *set, int split)
{
    for (int64_t i = 0; i < set->count; i++)
        k->split[set->ids[i]] = split;
}

/* A third of the values is not known, and every ninth vertex has none. */
static void set_labels(struct checking *k)
{
    struct sl_dataset *data = &k->data;
    const enum labels labels = k->objective->labels;
    set_split(k, &data->train, SL_SPLIT_TRAIN);
    set_split(k, &data->val, SL_SPLIT_VAL);
    set_split(k, &data->test, SL_SPLIT_TEST);
    if (labels == CLASSES || labels == TWO_CLASSES)
        return;
    for (int v = 0; v < VERTICES; v++)
        for (int j = 0; j < LABELS; j++) {
            const int drawn = (int)(sl_rng_bits(11, (uint32_t)v, (uint32_t)j) % 60);
            const float value =
                labels == NUMBERS ? 0.25f * (float)drawn - 7.0f : (float)(drawn % 2);
            k->labels[v * LABELS + j] = drawn % 3 == 0 || v % 9 == 4 ? NAN : value;
        }
    data->labels = NULL;
    data->multilabels = k->labels;
    data->meaning.regression = labels == NUMBERS;
}

/* ---- Metrics, one by one ---- */

/* The value of a label of vertex v: 1, 0, or NaN. */
static double value_of(const struct checking *k, int v, int64_t j)
{
    if (k->data.multilabels)
        return (double)k->labels[v * LABELS + j];
    return k->data.labels[v] < 0 ? NAN : (double)(k->data.labels[v] == j);
}

static double score_of(const struct checking *k, const float *z, int64_t c, int64_t j)
{
    double sum = 0.0;
    if (k->data.multilabels || strstr(k->objective->options, "sigmoid"))
        return (double)z[j];
    if (c == 2)
        return (double)(float)((double)z[1] - (double)z[0]);
    double largest = (double)z[0];
    for (int64_t i = 1; i < c; i++)
        largest = fmax(largest, (double)z[i]);
    for (int64_t i = 0; i < c; i++)
        sum += exp((double)z[i] - largest);
    return (double)(float)((double)z[j] - (largest + log(sum)));
}

static bool is_predicted(const struct checking *k, int v, const float *z, int64_t c, int64_t j)
{
    const bool top = strstr(k->objective->options, "top") != NULL;
    const bool several = k->data.multilabels || strstr(k->objective->options, "sigmoid");
    int wanted = several ? 0 : 1, before = 0;
    if (several && !top)
        return z[j] > 0.0f;
    for (int64_t i = 0; i < c; i++)
        if (!isnan(value_of(k, v, i))) {
            wanted += several && value_of(k, v, i) == 1.0;
            before += z[i] > z[j] || (z[i] == z[j] && i < j);
        }
    return before < wanted;
}

/* Count for one label true and false positives, false and true negatives. */
static void count_label(const struct checking *k, const float *z, int64_t c, int64_t j, int split,
                        double n[4])
{
    memset(n, 0, 4 * sizeof *n);
    for (int v = 0; v < VERTICES; v++) {
        const double y = value_of(k, v, j);
        if (k->split[v] != split || isnan(y))
            continue;
        const bool yes = is_predicted(k, v, z + v * c, c, j);
        n[y == 1.0 ? (yes ? 0 : 2) : (yes ? 1 : 3)] += 1.0;
    }
}

/* Area by pairs; precision at each vertex that has the label. NaN: not defined. */
static double rank_label(const struct checking *k, const float *z, int64_t c, int64_t j, int split)
{
    const bool area = strcmp(k->objective->metric, "roc-auc") == 0;
    double won = 0.0, pairs = 0.0, precision = 0.0, having = 0.0;
    for (int a = 0; a < VERTICES; a++) {
        double above = 0.0, right = 0.0;
        if (k->split[a] != split || value_of(k, a, j) != 1.0)
            continue;
        const double mine = score_of(k, z + a * c, c, j);
        for (int b = 0; b < VERTICES; b++) {
            const double y = value_of(k, b, j), other = score_of(k, z + b * c, c, j);
            if (k->split[b] != split || isnan(y))
                continue;
            above += other >= mine;
            right += other >= mine && y == 1.0;
            pairs += y == 0.0;
            won += y == 0.0 ? (mine > other ? 1.0 : mine == other ? 0.5 : 0.0) : 0.0;
        }
        having += 1.0;
        precision += right / above;
    }
    if (having == 0.0 || pairs == 0.0)
        return NAN;
    return area ? won / pairs : precision / having;
}

/* MAE or R², a mean over the columns, which all have values that differ. */
static double error_by_hand(const struct checking *k, const float *z, int split)
{
    const int64_t c = k->data.classes;
    double sum = 0.0;
    for (int64_t j = 0; j < c; j++) {
        double known = 0.0, mean = 0.0, spread = 0.0, errors = 0.0, squares = 0.0;
        for (int pass = 0; pass < 2; pass++)
            for (int v = 0; v < VERTICES; v++) {
                const double y = value_of(k, v, j), error = y - (double)z[v * c + j];
                if (k->split[v] != split || isnan(y))
                    continue;
                if (!pass) {
                    mean = (mean * known + y) / (known + 1.0);
                    known += 1.0;
                    continue;
                }
                spread += (y - mean) * (y - mean);
                errors += fabs(error);
                squares += error * error;
            }
        sum += strcmp(k->objective->metric, "mae") == 0 ? errors / known : 1.0 - squares / spread;
    }
    return sum / (double)c;
}

static double metric_by_hand(const struct checking *k, const float *z, int split)
{
    const char *metric = k->objective->metric;
    const int64_t c = k->data.classes, ranked = c == 2 ? 1 : c;
    const bool ranks = strcmp(metric, "roc-auc") == 0 || strcmp(metric, "average-precision") == 0;
    const bool several = k->data.multilabels || strstr(k->objective->options, "sigmoid");
    if (k->objective->labels == NUMBERS)
        return error_by_hand(k, z, split);
    double top = 0.0, bottom = 0.0;
    for (int64_t j = 0; j < (ranks ? ranked : c); j++) {
        double n[4];
        if (ranks) {
            const double one = rank_label(k, z, c, c == 2 ? 1 : j, split);
            top += isnan(one) ? 0.0 : one;
            bottom += !isnan(one);
            continue;
        }
        count_label(k, z, c, j, split, n);
        const double two = 2.0 * n[0], all = two + n[1] + n[2];
        const bool micro = strcmp(metric, "micro-f1") == 0;
        if (strcmp(metric, "label-accuracy") == 0) {
            const double seen = n[0] + n[1] + n[2] + n[3];
            top += seen > 0.0 ? (n[0] + n[3]) / seen : 0.0;
            bottom += seen > 0.0;
        } else {
            top += micro ? two : all > 0.0 ? two / all : 0.0;
            bottom += micro ? all : several || all > 0.0;
        }
    }
    return bottom > 0.0 ? top / bottom : NAN;
}

/* ---- One distribution ---- */

static int train(const struct checking *k, struct sl_runtime *rt, const struct sl_source *source,
                 const char *how, struct sl_trained *out)
{
    char line[300];
    snprintf(line, sizeof line, "--metric %s --patience 5 --eval-every 1 %s %s",
             k->objective->metric, k->objective->options, how);
    return sl_train(rt, source, line, false, out);
}

static bool is_close(double a, double b, double bound)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= bound;
}

/* The loss of evaluations is compared with one rank's alone. */
static void check(struct checking *k, const struct sl_source *source, const char *how)
{
    struct sl_trained got;
    const bool loss = strcmp(k->objective->metric, "loss") == 0;
    if (train(k, k->rt, source, how, &got))
        sl_fatal("%s %s: %s", k->objective->options, how, sl_error_message());
    if (k->rt->rank == 0) {
        const double apart = sl_trained_difference(&got, &k->expected);
        bool right = apart <= ROUNDING;
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) {
            const double want = loss ? k->expected.score.of[s] : metric_by_hand(k, got.logit, s);
            right = right && is_close(got.score.of[s], want, loss ? ROUNDING * want : EXACT);
        }
        printf("%s  %s %s, %s: %.1e apart, %.4f\n", right ? "ok  " : "FAIL", k->objective->metric,
               k->objective->options, how, apart, got.score.of[SL_SPLIT_VAL]);
        k->failures += !right;
    }
    k->cases++;
    sl_trained_free(&got);
}

static void check_all(struct checking *k)
{
    static const char *const fixed[] = {"--distribution vertex-cut --partition libra",
                                        "--distribution halo", "--distribution cover"};
    const int ranks = k->rt->ranks;
    struct sl_runtime alone = *k->rt;
    struct sl_source source, by_parts;
    int32_t part[VERTICES];
    if (sl_source_of(&k->data, &source) || sl_source_of(&k->data, &by_parts))
        sl_fatal("%s", sl_error_message());
    for (int v = 0; v < VERTICES; v++)
        part[v] = v % ranks;
    if (sl_source_order_by_parts(&by_parts, ranks, part))
        sl_fatal("%s", sl_error_message());
    alone.ranks = 1;
    const int code =
        k->rt->rank == 0 ? train(k, &alone, &source, "--distribution 1d", &k->expected) : 0;
    if (sl_runtime_agree(k->rt, code))
        sl_fatal("%s, alone: %s", k->objective->options, sl_error_message());
    for (int layers = 1; layers <= ranks; layers++)
        for (int columns = 1; columns <= ranks / layers; columns++) {
            char grid[60];
            if (ranks % (layers * columns) || columns > k->data.classes)
                continue;
            snprintf(grid, sizeof grid, "--grid %dx%dx%d", ranks / layers / columns, columns,
                     layers);
            check(k, &source, grid);
        }
    for (int d = 0; d < 3; d++)
        check(k, d ? &by_parts : &source, fixed[d]);
    check(k, &source, "--distribution 1d --no-overlap");
    sl_trained_free(&k->expected);
    sl_source_close(&by_parts);
    sl_source_close(&source);
}

int main(void)
{
    struct sl_runtime rt;
    int cases = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    if (sl_loss_add("own-classes", SL_TARGET_CLASS, true, sum_squares, NULL) ||
        sl_loss_add("own-numbers", SL_TARGET_VALUES, false, sum_squares, NULL))
        sl_fatal("%s", sl_error_message());
    for (size_t o = 0; o < sizeof objectives / sizeof *objectives; o++) {
        const struct sl_fixture fixture = {.name = "labels",
                                           .vertices = VERTICES,
                                           .features = 23,
                                           .classes =
                                               objectives[o].labels == TWO_CLASSES ? 2 : LABELS,
                                           .degree = 4,
                                           .isolated = 3,
                                           .form = SL_FEATURES_DENSE,
                                           .unlabelled_train = true,
                                           .seed = 43};
        struct checking k = {.rt = &rt, .objective = &objectives[o]};
        if (!sl_every_wants((int)o, rt.ranks))
            continue;
        k.data = sl_fixture_open(&fixture);
        const int32_t *labels = k.data.labels;
        set_labels(&k);
        check_all(&k);
        k.data.labels = labels;
        k.data.multilabels = NULL;
        sl_fixture_close(&k.data);
        cases += k.cases;
        failures += k.failures;
    }
    if (rt.rank == 0)
        printf("%d cases on %d rank%s, %d failed\n", cases, rt.ranks, rt.ranks == 1 ? "" : "s",
               failures);
    int64_t all = failures;
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all > 0;
}
