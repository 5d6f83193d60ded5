#include "codelets/link_ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"

static int compare_scores(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Return how many of `count` ascending scores are less than s or, with `equal`, at most s. */
static int64_t count_below(const float *sorted, int64_t count, float s, bool equal)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sorted[middle] < s || (equal && sorted[middle] == s))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double hits(int64_t most, int64_t links, const float *score, int64_t negatives,
                   const float *sorted)
{
    int64_t count = 0;
    if (negatives < most)
        return 1.0;
    for (int64_t k = 0; k < links; k++)
        count += score[k] > sorted[negatives - most];
    return (double)count / (double)links;
}

static double area(int64_t links, const float *score, int64_t negatives, const float *sorted)
{
    double sum = 0.0;
    for (int64_t k = 0; k < links; k++)
        sum += (double)count_below(sorted, negatives, score[k], false) +
               (double)count_below(sorted, negatives, score[k], true);
    return sum / (2.0 * (double)links * (double)negatives);
}

static double reciprocal_rank(int64_t links, const float *score, int64_t negatives,
                              const float *other)
{
    const int64_t each = negatives / links;
    double sum = 0.0;
    for (int64_t k = 0; k < links; k++) {
        double rank = 1.0;
        for (int64_t j = k * each; j < (k + 1) * each; j++)
            rank += other[j] > score[k] ? 1.0 : other[j] == score[k] ? 0.5 : 0.0;
        sum += 1.0 / rank;
    }
    return sum / (double)links;
}

static bool has_nan(int64_t count, const float *score)
{
    bool found = false;
    for (int64_t k = 0; k < count; k++)
        found |= isnan(score[k]);
    return found;
}

double sl_link_metric_value(const struct sl_link_metric *metric, int64_t links, const float *score,
                            int64_t negatives, const float *other, float *scratch)
{
    if (links == 0 || negatives == 0 || metric->measure == SL_LINKS_UNMEASURED ||
        has_nan(links, score) || has_nan(negatives, other))
        return NAN;
    if (metric->measure == SL_LINKS_MRR)
        return negatives % links == 0 ? reciprocal_rank(links, score, negatives, other) : NAN;
    memcpy(scratch, other, (size_t)negatives * sizeof *scratch);
    qsort(scratch, (size_t)negatives, sizeof *scratch, compare_scores);
    return metric->measure == SL_LINKS_HITS ? hits(metric->most, links, score, negatives, scratch)
                                            : area(links, score, negatives, scratch);
}

static double softplus(double x)
{
    return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

double sl_link_loss_value(enum sl_link_loss loss, int64_t links, const float *score,
                          int64_t negatives, const float *other)
{
    double sum = 0.0, others = 0.0;
    if (links == 0 || negatives == 0)
        return 0.0;
    if (loss == SL_LINK_PAIRWISE) {
        const int64_t each = negatives < links ? 1 : negatives / links;
        for (int64_t p = 0; p < links * each; p++)
            sum += softplus((double)other[p % negatives] - (double)score[p / each]);
        return sum / (double)each;
    }
    for (int64_t k = 0; k < links; k++)
        sum += softplus(-(double)score[k]);
    for (int64_t j = 0; j < negatives; j++)
        others += softplus((double)other[j]);
    return sum + others * (double)links / (double)negatives;
}

/* link_metric
 *   argument  struct link_metric_argument
 *   buffers   R    block, each
 *             RW   scratch (2, places)
 *             RW   metrics (1, SL_METRICS) of double */
struct link_metric_argument {
    struct sl_link_metric metric;
    enum sl_link_loss loss;
    struct sl_link_lists_measured lists;
    int count;
};

static void link_metric_cpu(void *buffers[], void *argument)
{
    const struct link_metric_argument *arg = argument;
    const struct sl_dense scratch = sl_dense_buffer(buffers[arg->count]);
    double *metrics = sl_raw_buffer(buffers[arg->count + 1]);
    const float *next = scratch.data;
    for (int b = 0; b < arg->count; b++) {
        struct sl_scored_link *const first = sl_raw_buffer(buffers[b]);
        for (struct sl_scored_link *s = first; s < first + STARPU_MATRIX_GET_NY(buffers[b]);
             s = sl_link_next(s))
            for (const struct sl_scored_link *link = s + 1; link <= s + sl_link_count(s); link++)
                scratch.data[link->number] = link->value;
    }
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    for (int s = 0; s < SL_SPLITS; s++) {
        const int64_t links = arg->lists.links[s], negatives = arg->lists.negatives[s];
        const float *other = next + links;
        metrics[SL_METRIC_LOSS + s] = sl_link_loss_value(arg->loss, links, next, negatives, other);
        metrics[SL_METRIC_VALUE + s] = sl_link_metric_value(&arg->metric, links, next, negatives,
                                                            other, scratch.data + scratch.ld);
        next = other + negatives;
    }
}

SL_HOST_CODELET(link_metric, 0x2E8B57, STARPU_VARIABLE_NBUFFERS, 0);

void sl_submit_link_metric(struct sl_runtime *rt, const struct sl_link_metric *metric,
                           enum sl_link_loss loss, const struct sl_link_lists_measured *lists,
                           int count, struct sl_tile *const *blocks, struct sl_tile *scratch,
                           struct sl_tile *metrics)
{
    const struct link_metric_argument arg = {*metric, loss, *lists, count};
    struct sl_tile **tiles = malloc((size_t)(count + 2) * sizeof *tiles);
    if (!tiles)
        sl_fatal("no memory to submit the metric of %d blocks of links", count);
    if (count > 0)
        memcpy(tiles, blocks, (size_t)count * sizeof *tiles);
    tiles[count] = scratch;
    tiles[count + 1] = metrics;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &link_metric_codelet,
                           .count = count + 2,
                           .list = tiles,
                           .before_output = SL_TASK_UPDATES,
                           .output = SL_TASK_UPDATES,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)scratch->cols,
                       });
    free(tiles);
}
