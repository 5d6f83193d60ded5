#include "codelets/link_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"
#include "core/split.h"

/* A sum of log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). Its second terms are the logarithm of a
 * product, whose factors are 2 at most. */
struct softplus_sum {
    double linear, product;
    int factors;
};

enum { MOST_FACTORS = 512 };

/* Add log(1 + e^x). Return 1 / (1 + e^-x), its derivative. */
static float add_softplus(struct softplus_sum *sum, float x)
{
    const float e = expf(-fabsf(x)), near = 1.0f / (1.0f + e);
    sum->linear += x > 0.0f ? (double)x : 0.0;
    sum->product *= 1.0 + (double)e;
    if (++sum->factors == MOST_FACTORS) {
        sum->linear += log(sum->product);
        sum->product = 1.0;
        sum->factors = 0;
    }
    return x < 0.0f ? e * near : near;
}

static double softplus_total(const struct softplus_sum *sum)
{
    return sum->linear + log(sum->product);
}

static double cross_entropy(const struct sl_link_losses *losses)
{
    const double each = 1.0 / losses->negatives;
    const float of_link = (float)(1.0 / losses->links), of_negative = (float)(each / losses->links);
    struct softplus_sum of[2] = {{0.0, 1.0, 0}, {0.0, 1.0, 0}}; /* of links, of negatives */
    for (int b = 0; b < losses->blocks; b++) {
        struct sl_scored_link *const link = losses->block[b] + 1;
        for (int64_t e = 0; e < sl_link_count(losses->block[b]); e++) {
            const bool negative = link[e].number < 0;
            const float share =
                add_softplus(&of[negative], negative ? link[e].value : -link[e].value);
            link[e].value = negative ? of_negative * share : -of_link * share;
        }
    }
    return softplus_total(&of[0]) + each * softplus_total(&of[1]);
}

static double pairwise(const struct sl_link_losses *losses)
{
    const double each = 1.0 / losses->negatives;
    const float scale = (float)(each / losses->links);
    struct softplus_sum sum = {0.0, 1.0, 0};
    memset(losses->slope, 0, (size_t)losses->count * sizeof *losses->slope);
    for (int b = 0; b < losses->blocks; b++)
        for (const struct sl_scored_link *link = losses->block[b] + 1;
             link <= losses->block[b] + sl_link_count(losses->block[b]); link++)
            if (link->number >= 0)
                losses->score[link->number] = link->value;
    for (int b = 0; b < losses->blocks; b++)
        for (struct sl_scored_link *link = losses->block[b] + 1;
             link <= losses->block[b] + sl_link_count(losses->block[b]); link++)
            if (link->number < 0) {
                link->value =
                    scale * add_softplus(&sum, link->value - losses->score[~link->number]);
                losses->slope[~link->number] += link->value;
            }
    for (int b = 0; b < losses->blocks; b++)
        for (struct sl_scored_link *link = losses->block[b] + 1;
             link <= losses->block[b] + sl_link_count(losses->block[b]); link++)
            if (link->number >= 0)
                link->value = -losses->slope[link->number];
    return each * softplus_total(&sum);
}

double sl_link_losses_differentiate(const struct sl_link_losses *losses)
{
    return losses->loss == SL_LINK_PAIRWISE ? pairwise(losses) : cross_entropy(losses);
}

/* link_loss
 *   argument  struct link_loss_argument
 *   buffers   RW   scratch (2, links of the tile), if pairwise
 *             RW   metrics (1, SL_METRICS) of double
 *             RW   block, each */
struct link_loss_argument {
    enum sl_link_loss loss;
    double links, negatives;
    int segments, blocks;
};

static void link_loss_cpu(void *buffers[], void *argument)
{
    const struct link_loss_argument *arg = argument;
    struct sl_link_losses losses = {arg->loss, arg->links, arg->negatives, arg->segments};
    struct sl_scored_link **segments = malloc((size_t)arg->segments * sizeof *segments);
    int next = 0;
    if (!segments)
        sl_fatal("no memory for the loss of %d segments of links", arg->segments);
    if (arg->loss == SL_LINK_PAIRWISE) {
        const struct sl_dense scratch = sl_dense_buffer(buffers[next++]);
        losses.score = scratch.data;
        losses.slope = scratch.data + scratch.ld;
        losses.count = scratch.cols;
    }
    double *metrics = sl_raw_buffer(buffers[next++]);
    if (sl_link_segments(buffers + next, arg->blocks, arg->segments, segments) != arg->segments)
        sl_fatal("blocks of links with another number of segments than %d", arg->segments);
    losses.block = segments;
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN] = sl_link_losses_differentiate(&losses);
    free(segments);
}

SL_HOST_CODELET(link_loss, 0x66CDAA, STARPU_VARIABLE_NBUFFERS, 0);

void sl_submit_link_loss(struct sl_runtime *rt, enum sl_link_loss loss, int64_t links,
                         int64_t negatives, struct sl_tile *scratch, struct sl_tile *metrics,
                         int segments, int count, struct sl_tile *blocks)
{
    const struct link_loss_argument arg = {loss, (double)links, (double)negatives, segments, count};
    struct sl_tile **tiles = malloc((size_t)(count + 2) * sizeof *tiles);
    int next = 0;
    int64_t most = 0;
    if (!tiles)
        sl_fatal("no memory to submit the loss of %d blocks of links", count);
    if (scratch)
        tiles[next++] = scratch;
    tiles[next++] = metrics;
    for (int b = 0; b < count; b++) {
        tiles[next++] = &blocks[b];
        most += blocks[b].rows;
    }
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &link_loss_codelet,
                           .count = next,
                           .list = tiles,
                           .before_output = SL_TASK_READS,
                           .output = SL_TASK_UPDATES,
                           .outputs = next,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)most,
                           .kind = (uint32_t)loss,
                       });
    free(tiles);
}
