/* Scores of labels, as integers that sort as the scores do. */
#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/label_scores.h"

/* Return an integer that is larger for a larger score; -0 counts as 0. */
static uint32_t sortable(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Return the number that scores subtract from the logits of a row. */
static double level_of(const struct sl_label_scores *s, const float *z)
{
    double largest = (double)z[0], sum = 0.0;
    if (s->form == SL_TARGET_VALUES)
        return 0.0;
    if (s->labels == 2)
        return largest;
    for (int64_t j = 1; j < s->labels; j++) /* fmax would break GCC 12 on arm64 */
        largest = (double)z[j] > largest ? (double)z[j] : largest;
    for (int64_t j = 0; j < s->labels; j++)
        sum += exp((double)z[j] - largest);
    return largest + log(sum);
}

void sl_kernel_label_scores(const struct sl_label_scores *s, uint64_t *scores)
{
    const bool pair = s->form == SL_TARGET_CLASS && s->labels == 2;
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t *target = s->target + r * sl_target_width(s->form, s->labels);
        const int32_t label = target[SL_TARGET_LABEL];
        const float *z = s->z + r * s->ldz, *value = (const float *)(target + SL_TARGET_FIRST);
        const double level = level_of(s, z);
        for (int64_t k = 0; k < s->count; k++) {
            const int64_t j = s->first + k + pair;
            const bool several = s->form == SL_TARGET_VALUES;
            const bool known = label >= 0 && (!several || !isnan(value[j]));
            const bool has = known && (several ? value[j] > 0.5f : label == j);
            const uint32_t what =
                known ? 2u * (uint32_t)target[SL_TARGET_SPLIT] + (uint32_t)has : SL_NO_SCORE;
            const uint64_t score = sortable((float)((double)z[j] - level));
            scores[r * s->count + k] = score << 32 | what;
        }
    }
}

/* label_scores
 *   argument  struct label_scores_argument
 *   buffers   0 R    target (rows, sl_target_width) of int32
 *             1 R    Z (rows, labels)
 *             2 W    scores (rows, count) of uint64 */
static void label_scores_cpu(void *buffers[], void *argument)
{
    const struct label_scores_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    sl_kernel_label_scores(&(struct sl_label_scores){.form = arg->form,
                                                     .rows = z.rows,
                                                     .labels = z.cols,
                                                     .first = arg->first,
                                                     .count = arg->count,
                                                     .target = sl_raw_buffer(buffers[0]),
                                                     .z = z.data,
                                                     .ldz = z.ld},
                           sl_raw_buffer(buffers[2]));
}

SL_CODELET(label_scores, 0xFFA07A, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_label_scores(struct sl_runtime *rt, enum sl_target_form form, int64_t first,
                            struct sl_tile *target, struct sl_tile *z, struct sl_tile *scores)
{
    const struct label_scores_argument arg = {form, first, scores->cols};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &label_scores_codelet,
                           .count = 3,
                           .tiles = {target, z, scores},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                       });
}
