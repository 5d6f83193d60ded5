#include "train/more_scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/label_counts.h"
#include "codelets/target.h"
#include "core/error.h"

/* A tile's rows on this rank. */
struct rows {
    const int32_t *target; // (count, width)
    const float *z;        // (count, labels)
    int64_t count, width, ldz;
};

/* A sum over tiles. Each tile adds `numbers` numbers, which its owner makes with `add`. */
struct sums {
    struct sl_network *net;
    int64_t labels, numbers; /* numbers of a tile */
    const double *mean;      // (SL_SPLITS, labels): for the second pass over numbers
    void (*add)(const struct sums *sums, const struct rows *rows, double *own);
};

/* Set sum (numbers), on all ranks, to the sums over the tiles, in the order of tiles. */
static void sum_tiles(const struct sums *s, double *sum)
{
    struct sl_network *net = s->net;
    struct sl_runtime *rt = net->rt;
    const struct sl_matrix *logits = sl_network_logits(net);
    const int tiles = net->graph->distribution->tiles;
    double *all = calloc((size_t)(tiles * s->numbers) + 1, sizeof *all);
    if (!all)
        sl_fatal("no memory for the scores of %lld labels", (long long)s->labels);
    for (int i = 0; i < tiles; i++) {
        struct sl_tile *z = sl_matrix_tile(logits, i, 0),
                       *target = &net->graph->target[logits->row_order][i];
        if (z->owner != rt->rank)
            continue;
        const struct rows rows = {.target = sl_tile_acquire(rt, target, false),
                                  .z = sl_tile_acquire(rt, z, false),
                                  .count = z->rows,
                                  .width = sl_target_width(SL_TARGET_VALUES, s->labels),
                                  .ldz = z->ld};
        s->add(s, &rows, all + i * s->numbers);
        sl_tile_release(z);
        sl_tile_release(target);
    }
    sl_runtime_share(rt, all, tiles * s->numbers);
    memset(sum, 0, (size_t)s->numbers * sizeof *sum);
    for (int i = 0; i < tiles; i++)
        for (int64_t k = 0; k < s->numbers; k++)
            sum[k] += all[i * s->numbers + k];
    free(all);
}

/* ---- Several labels ---- */

static void add_counts(const struct sums *s, const struct rows *rows, double *own)
{
    sl_kernel_label_counts(&(struct sl_label_counts){SL_TARGET_VALUES,
                                                     s->net->graph->objective.decision, rows->count,
                                                     s->labels, rows->target, rows->z, rows->ldz},
                           own);
}

static void score_labels(struct sl_network *net, int64_t labels, struct sl_more_scores *out)
{
    static const struct sl_metric *const metrics[] = {&sl_metric_micro_f1, &sl_metric_macro_f1,
                                                      &sl_metric_label_accuracy};
    const struct sums sums = {
        .net = net, .labels = labels, .numbers = labels * SL_TABLE_COUNTS, .add = add_counts};
    double *counts = calloc((size_t)sums.numbers, sizeof *counts);
    if (!counts)
        sl_fatal("no memory for the scores of %lld labels", (long long)labels);
    sum_tiles(&sums, counts);
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        out->name[out->count] = metrics[m]->name;
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
            out->of[out->count].of[s] =
                sl_label_metric_value(&metrics[m]->labels, SL_TARGET_VALUES, 1, &labels,
                                      (const double *const[]){counts}, s);
        out->count++;
    }
    free(counts);
}

/* ---- Numbers ---- */

/* Kinds of sums of a split and column: known values; values, or their squares about the mean;
 * absolute errors; squared errors. */
enum { KNOWN, VALUES, ERRORS, SQUARES, KINDS };

static void add_numbers(const struct sums *s, const struct rows *rows, double *own)
{
    for (int64_t r = 0; r < rows->count; r++) {
        const int32_t *target = rows->target + r * rows->width;
        const int split = target[SL_TARGET_SPLIT];
        for (int64_t j = 0; target[SL_TARGET_LABEL] >= 0 && j < s->labels; j++) {
            const int64_t at = split * s->labels + j;
            float y;
            memcpy(&y, &target[SL_TARGET_FIRST + j], sizeof y);
            if (isnan(y))
                continue;
            const double error = (double)rows->z[r * rows->ldz + j] - (double)y;
            own[at * KINDS + KNOWN] += 1.0;
            own[at * KINDS + VALUES] += s->mean ? pow((double)y - s->mean[at], 2.0) : (double)y;
            own[at * KINDS + ERRORS] += fabs(error);
            own[at * KINDS + SQUARES] += error * error;
        }
    }
}

/* Set *mae and *r2 of a split to means over columns with known values. `spread`: sums of the second
 * pass, about the mean. */
static void score_split(const double *spread, int64_t labels, int split, double *mae, double *r2)
{
    double sums[2] = {0.0, 0.0}, columns[2] = {0.0, 0.0};
    for (int64_t j = 0; j < labels; j++) {
        const double *of = spread + (split * labels + j) * KINDS;
        if (of[KNOWN] > 0.0) {
            sums[0] += of[ERRORS] / of[KNOWN];
            columns[0] += 1.0;
        }
        if (of[VALUES] > 0.0) {
            sums[1] += 1.0 - of[SQUARES] / of[VALUES];
            columns[1] += 1.0;
        }
    }
    *mae = columns[0] > 0.0 ? sums[0] / columns[0] : NAN;
    *r2 = columns[1] > 0.0 ? sums[1] / columns[1] : NAN;
}

static void score_numbers(struct sl_network *net, int64_t labels, struct sl_more_scores *out)
{
    const int64_t columns = SL_SPLITS * labels;
    struct sums sums = {
        .net = net, .labels = labels, .numbers = columns * KINDS, .add = add_numbers};
    double *of = calloc((size_t)sums.numbers, sizeof *of),
           *mean = calloc((size_t)columns, sizeof *mean);
    if (!of || !mean)
        sl_fatal("no memory for the scores of %lld columns", (long long)labels);
    sum_tiles(&sums, of);
    for (int64_t k = 0; k < columns; k++)
        mean[k] =
            of[k * KINDS + KNOWN] > 0.0 ? of[k * KINDS + VALUES] / of[k * KINDS + KNOWN] : 0.0;
    sums.mean = mean;
    sum_tiles(&sums, of);
    out->name[0] = "mae";
    out->name[1] = "r2";
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
        score_split(of, labels, s, &out->of[0].of[s], &out->of[1].of[s]);
    out->count = 2;
    free(of);
    free(mean);
}

void sl_more_scores_find(struct sl_network *net, bool numbers, struct sl_more_scores *out)
{
    const struct sl_loss *loss = net->graph->objective.loss;
    const int64_t labels = sl_network_logits(net)->cols;
    *out = (struct sl_more_scores){.count = 0};
    if (loss->form != SL_TARGET_VALUES)
        return;
    if (numbers)
        score_numbers(net, labels, out);
    else if (loss->classes)
        score_labels(net, labels, out);
}
