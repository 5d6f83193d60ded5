/* Areas under curves, exact: all scores of a label are sorted.
 *
 *   sort the entries by score, by counting digits from the lowest
 *   for groups of equal scores upward:
 *       area += positives · (2 · negatives below + negatives)
 *   for groups of equal scores downward:
 *       precision += positives · (positives so far / entries so far) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/ranking.h"
#include "core/error.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT, PASSES = 3 };

/* Sort entries by their upper halves. The result is in `other`, because the number of passes is
 * odd. */
static void sort_entries(int64_t count, uint64_t *entries, uint64_t *other)
{
    for (int pass = 0; pass < PASSES; pass++) {
        const int shift = 32 + DIGIT * pass;
        int64_t start[DIGITS + 1] = {0};
        for (int64_t k = 0; k < count; k++)
            start[(entries[k] >> shift) % DIGITS + 1]++;
        for (int d = 0; d < DIGITS; d++)
            start[d + 1] += start[d];
        for (int64_t k = 0; k < count; k++)
            other[start[(entries[k] >> shift) % DIGITS]++] = entries[k];
        uint64_t *const sorted = other;
        other = entries;
        entries = sorted;
    }
}

/* Numbers of vertices of a split without the label [0] and with the label [1]. */
struct tally {
    double of[SL_SPLITS][2];
};

/* Count the entries from k on with the score of k, in steps of `step`. Return where they end. */
static int64_t count_group(int64_t k, int64_t end, int64_t step, const uint64_t *entries,
                           struct tally *group)
{
    const uint64_t score = entries[k] >> 32;
    memset(group, 0, sizeof *group);
    for (; k != end && entries[k] >> 32 == score; k += step) {
        const uint32_t what = (uint32_t)entries[k];
        group->of[what / 2][what % 2] += 1.0;
    }
    return k;
}

static void add_group(struct tally *all, const struct tally *group)
{
    for (int s = 0; s < SL_SPLITS; s++)
        for (int has = 0; has < 2; has++)
            all->of[s][has] += group->of[s][has];
}

void sl_kernel_ranking(int64_t count, uint64_t *entries, uint64_t *scratch,
                       double result[SL_TABLE_RANKINGS])
{
    struct tally below = {{{0}}}, above = {{{0}}}, group;
    double area[SL_SPLITS] = {0}, precision[SL_SPLITS] = {0};
    int64_t kept = 0;
    for (int64_t k = 0; k < count; k++)
        if ((uint32_t)entries[k] != SL_NO_SCORE)
            entries[kept++] = entries[k];
    sort_entries(kept, entries, scratch);
    for (int64_t k = 0; k < kept;) {
        k = count_group(k, kept, 1, scratch, &group);
        for (int s = 0; s < SL_SPLITS; s++)
            area[s] += group.of[s][1] * (2.0 * below.of[s][0] + group.of[s][0]);
        add_group(&below, &group);
    }
    for (int64_t k = kept - 1; k >= 0;) {
        k = count_group(k, -1, -1, scratch, &group);
        add_group(&above, &group);
        for (int s = 0; s < SL_SPLITS; s++)
            if (group.of[s][1] > 0.0)
                precision[s] +=
                    group.of[s][1] * (above.of[s][1] / (above.of[s][0] + above.of[s][1]));
    }
    for (int s = 0; s < SL_SPLITS; s++) {
        const double negatives = below.of[s][0], positives = below.of[s][1];
        const bool defined = negatives > 0.0 && positives > 0.0;
        result[s * SL_RANKINGS + SL_AREA] = defined ? area[s] / (2.0 * positives * negatives) : NAN;
        result[s * SL_RANKINGS + SL_PRECISION] = defined ? precision[s] / positives : NAN;
    }
}

/* ranking
 *   argument  int, how many tiles of scores
 *   buffers   R    scores (rows, labels) of uint64, each
 *             W    work (2, all rows) of uint64
 *             W    table (labels, SL_TABLE_RANKINGS) of double */
static void ranking_cpu(void *buffers[], void *argument)
{
    const int tiles = *(const int *)argument;
    uint64_t *entries = sl_raw_buffer(buffers[tiles]);
    uint64_t *scratch = entries + STARPU_MATRIX_GET_NX(buffers[tiles]);
    double *table = sl_raw_buffer(buffers[tiles + 1]);
    const int64_t labels = STARPU_MATRIX_GET_NY(buffers[tiles + 1]);
    for (int64_t j = 0; j < labels; j++) {
        int64_t count = 0;
        for (int t = 0; t < tiles; t++) {
            const uint64_t *scores = sl_raw_buffer(buffers[t]);
            const int64_t rows = STARPU_MATRIX_GET_NY(buffers[t]);
            for (int64_t r = 0; r < rows; r++)
                entries[count++] = scores[r * labels + j];
        }
        sl_kernel_ranking(count, entries, scratch, table + j * SL_TABLE_RANKINGS);
    }
}

double sl_label_metric_value(const struct sl_label_metric *metric, enum sl_target_form form,
                             int count, const int64_t *labels, const double *const *tables,
                             int split)
{
    double sum = 0.0, weight = 0.0;
    for (int t = 0; t < count; t++)
        for (int64_t j = 0; j < labels[t]; j++) {
            double top = 0.0, bottom = 0.0;
            metric->ratio(form, tables[t] + (j * SL_SPLITS + split) * metric->numbers, &top,
                          &bottom);
            if (metric->pooled) {
                sum += top;
                weight += bottom;
            } else if (bottom != 0.0) {
                sum += top / bottom;
                weight += 1.0;
            }
        }
    return weight > 0.0 ? sum / weight : NAN;
}

/* label_metric
 *   argument  struct label_metric_argument
 *   buffers   R    table (labels, SL_SPLITS · numbers) of double, each
 *             RW   metrics (1, SL_METRICS) of double */
struct label_metric_argument {
    struct sl_label_metric metric;
    enum sl_target_form form;
    int count;
};

static void label_metric_cpu(void *buffers[], void *argument)
{
    const struct label_metric_argument *arg = argument;
    const double *tables[SL_MOST_TABLES];
    int64_t labels[SL_MOST_TABLES];
    double *metrics = sl_raw_buffer(buffers[arg->count]);
    for (int t = 0; t < arg->count; t++) {
        tables[t] = sl_raw_buffer(buffers[t]);
        labels[t] = STARPU_MATRIX_GET_NY(buffers[t]);
    }
    for (int s = 0; s < SL_SPLITS; s++)
        metrics[SL_METRIC_VALUE + s] =
            sl_label_metric_value(&arg->metric, arg->form, arg->count, labels, tables, s);
}

SL_CODELET_ANY(ranking, 0xDEB887);
SL_HOST_CODELET(label_metric, 0xD2B48C, STARPU_VARIABLE_NBUFFERS, 0);

void sl_submit_ranking(struct sl_runtime *rt, int count, struct sl_tile *const *scores,
                       struct sl_tile *work, struct sl_tile *table)
{
    struct sl_tile **list = malloc((size_t)(count + 2) * sizeof(struct sl_tile *));
    if (!list)
        sl_fatal("no memory to submit a ranking of %d tiles", count);
    memcpy(list, scores, (size_t)count * sizeof(struct sl_tile *));
    list[count] = work;
    list[count + 1] = table;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &ranking_codelet,
                           .count = count + 2,
                           .list = list,
                           .before_output = SL_TASK_WRITES,
                           .output = SL_TASK_WRITES,
                           .argument = &count,
                           .argument_size = sizeof count,
                           .work = (double)work->cols * (double)table->rows,
                       });
    free(list);
}

void sl_submit_label_metric(struct sl_runtime *rt, const struct sl_label_metric *metric,
                            enum sl_target_form form, int count, struct sl_tile *const *tables,
                            struct sl_tile *metrics)
{
    const struct label_metric_argument arg = {*metric, form, count};
    struct sl_tile *list[SL_MOST_TABLES + 1];
    memcpy(list, tables, (size_t)count * sizeof(struct sl_tile *));
    list[count] = metrics;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &label_metric_codelet,
                           .count = count + 1,
                           .list = list,
                           .before_output = SL_TASK_READS,
                           .output = SL_TASK_UPDATES,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                       });
}
