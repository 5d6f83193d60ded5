/* Counts of right and wrong labels, for every label and split. */
#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/label_counts.h"

/* Logits and labels of a row. */
struct row {
    const float *z;
    const float *value; // (labels), for SL_TARGET_VALUES
    int64_t labels;
    int32_t label;
    int64_t first_largest; /* predicted class, for SL_TARGET_CLASS */
    int64_t wanted;        /* labels that the vertex has */
};

static bool is_known(const struct row *row, int64_t j)
{
    return !row->value || !isnan(row->value[j]);
}

static bool is_true(const struct row *row, int64_t j)
{
    return row->value ? row->value[j] > 0.5f : j == row->label;
}

static struct row row_of(const struct sl_label_counts *c, int64_t r)
{
    const int32_t *target = c->target + r * sl_target_width(c->form, c->labels);
    struct row row = {
        .z = c->z + r * c->ldz, .labels = c->labels, .label = target[SL_TARGET_LABEL]};
    if (c->form == SL_TARGET_VALUES)
        row.value = (const float *)(target + SL_TARGET_FIRST);
    for (int64_t j = 1; !row.value && j < c->labels; j++)
        if (row.z[j] > row.z[row.first_largest])
            row.first_largest = j;
    for (int64_t j = 0; j < c->labels; j++)
        row.wanted += is_known(&row, j) && is_true(&row, j);
    return row;
}

/* Return whether label k ranks before label j. Labels with equal logits keep their order. */
static bool is_before(const struct row *row, int64_t k, int64_t j)
{
    return k < j ? row->z[k] >= row->z[j] : row->z[k] > row->z[j];
}

static bool is_predicted(const struct row *row, enum sl_label_decision decision, int64_t j)
{
    int64_t before = 0;
    if (!row->value)
        return j == row->first_largest;
    if (decision == SL_DECIDE_HALF)
        return row->z[j] > 0.0f;
    for (int64_t k = 0; k < row->labels && before < row->wanted; k++)
        before += is_known(row, k) && is_before(row, k, j);
    return before < row->wanted;
}

void sl_kernel_label_counts(const struct sl_label_counts *c, double *counts)
{
    const int64_t width = sl_target_width(c->form, c->labels);
    memset(counts, 0, (size_t)(c->labels * SL_TABLE_COUNTS) * sizeof *counts);
    for (int64_t r = 0; r < c->rows; r++) {
        if (c->target[r * width + SL_TARGET_LABEL] < 0)
            continue;
        const struct row row = row_of(c, r);
        double *of_split = counts + c->target[r * width + SL_TARGET_SPLIT] * SL_LABEL_COUNTS;
        for (int64_t j = 0; j < c->labels; j++) {
            if (!is_known(&row, j))
                continue;
            const bool yes = is_predicted(&row, c->decision, j);
            const int what = is_true(&row, j) ? (yes ? SL_TRUE_POSITIVE : SL_FALSE_NEGATIVE)
                                              : (yes ? SL_FALSE_POSITIVE : SL_TRUE_NEGATIVE);
            of_split[j * SL_TABLE_COUNTS + what] += 1.0;
        }
    }
}

/* label_counts
 *   argument  struct label_counts_argument
 *   buffers   0 R    target (rows, sl_target_width) of int32
 *             1 R    Z (rows, labels)
 *             2 W    counts (labels, SL_TABLE_COUNTS) of double */
static void label_counts_cpu(void *buffers[], void *argument)
{
    const struct label_counts_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    sl_kernel_label_counts(&(struct sl_label_counts){.form = arg->form,
                                                     .decision = arg->decision,
                                                     .rows = z.rows,
                                                     .labels = z.cols,
                                                     .target = sl_raw_buffer(buffers[0]),
                                                     .z = z.data,
                                                     .ldz = z.ld},
                           sl_raw_buffer(buffers[2]));
}

SL_CODELET(label_counts, 0xE9967A, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_label_counts(struct sl_runtime *rt, enum sl_target_form form,
                            enum sl_label_decision decision, struct sl_tile *target,
                            struct sl_tile *z, struct sl_tile *counts)
{
    const struct label_counts_argument arg = {form, decision};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &label_counts_codelet,
                           .count = 3,
                           .tiles = {target, z, counts},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                       });
}
