/* Numbers that are not finite: what broke down first, and in which layer. */
#ifndef SL_TRAIN_BREAKDOWN_H
#define SL_TRAIN_BREAKDOWN_H

#include <stdint.h>

struct sl_trainer;
struct sl_outcome;

/* What in an epoch was the first to have a number that is not finite. */
enum sl_breakdown {
    SL_SOUND,
    SL_BROKEN_OUTPUT, /* of a layer, in the training step */
    SL_BROKEN_GRADIENT,
    SL_BROKEN_UPDATE,     /* parameters, or the optimizer's state */
    SL_BROKEN_EVALUATION, /* the output of a layer, without dropout */
};

/* Words for a layer's part: "output", "gradient", "parameters". */
const char *sl_breakdown_name(enum sl_breakdown broken);

/* Save the best weights, if the run has any. Say where the numbers of the last epoch broke down, in
 * `outcome` and, on rank 0, as SL_ERR_DATA; 0 on other ranks. Collective. */
int sl_breakdown_refuse(struct sl_trainer *trainer, int64_t epoch, struct sl_outcome *outcome);

#endif
