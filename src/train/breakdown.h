/* Finds which number of a run was first not finite, and in which layer. */
#ifndef SL_TRAIN_BREAKDOWN_H
#define SL_TRAIN_BREAKDOWN_H

#include <stdint.h>

struct sl_trainer;
struct sl_outcome;

/* The first part of an epoch with a number that is not finite. */
enum sl_breakdown {
    SL_SOUND,
    SL_BROKEN_OUTPUT, /* a layer's output in a training step */
    SL_BROKEN_GRADIENT,
    SL_BROKEN_UPDATE,     /* parameters or the optimizer's state */
    SL_BROKEN_EVALUATION, /* a layer's output in an evaluation, without dropout */
};

/* Return a word for a layer's part: "output", "gradient" or "parameters". */
const char *sl_breakdown_name(enum sl_breakdown broken);

/* Save the best weights, if the run has any. Write to `outcome` where the last epoch's numbers
 * broke down. Return SL_ERR_DATA on rank 0, which has the sentence, and 0 on other ranks.
 * Collective. */
int sl_breakdown_refuse(struct sl_trainer *trainer, int64_t epoch, struct sl_outcome *outcome);

#endif
