/* Scores of labels, to be ranked: the rows of a tile add entries to the ranking of a label. */
#ifndef SL_CODELETS_LABEL_SCORES_H
#define SL_CODELETS_LABEL_SCORES_H

#include "codelets/operation.h"
#include "codelets/target.h"

/* An entry of 64 bits sorts by its score. Its low half says 2 · split + (1 if the vertex has the
 * label), or SL_NO_SCORE. */
static const uint32_t SL_NO_SCORE = UINT32_MAX;

/* Return how many labels are ranked. With two classes, class 1 alone is ranked. */
static inline int64_t sl_ranked_labels(enum sl_target_form form, int64_t labels)
{
    return form == SL_TARGET_CLASS && labels == 2 ? 1 : labels;
}

struct sl_label_scores {
    enum sl_target_form form;
    int64_t rows, labels;
    int64_t first, count;  /* first ranked label, and number of ranked labels */
    const int32_t *target; // (rows, sl_target_width)
    const float *z;        // (rows, labels)
    int64_t ldz;
};

/* Set scores (rows, count). The score of a label is its logit. The score of one of two classes is
 * its logit less the other logit; with more classes, the logarithm of its softmax. */
void sl_kernel_label_scores(const struct sl_label_scores *s, uint64_t *scores);
void sl_cuda_label_scores(const struct sl_label_scores *s, uint64_t *scores,
                          struct sl_cuda_queue queue);

/* Argument of the task label_scores. */
struct label_scores_argument {
    enum sl_target_form form;
    int64_t first, count;
};

/* Submit scores (rows, labels from `first` on) of uint64. */
void sl_submit_label_scores(struct sl_runtime *rt, enum sl_target_form form, int64_t first,
                            struct sl_tile *target, struct sl_tile *z, struct sl_tile *scores);

#endif
