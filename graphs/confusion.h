/* Counts of true and predicted classes in the last evaluation, over all ranks. */
#ifndef SL_GRAPHS_CONFUSION_H
#define SL_GRAPHS_CONFUSION_H

#include "graphs/network.h"

/* Count the predictions of the logits that sl_network_measure has measured last. The loss must have
 * classes. Set counts (classes, SL_SPLITS, classes) on rank 0 alone: rows with a label by class,
 * split and predicted class. Collective. It waits, so it is for the end of a run. Return 0 or
 * SL_ERR_SYSTEM. */
int sl_network_count_confusion(struct sl_network *net, double *counts);

#endif
