/* Metrics: the numbers that the loss, accuracy and record tasks of an epoch count. */
#ifndef SL_CODELETS_METRICS_H
#define SL_CODELETS_METRICS_H

/* A metrics tile is one row of SL_METRICS doubles. */
enum {
    SL_METRIC_LOSS = 0,    /* + split: summed cross-entropy over the split's vertices */
    SL_METRIC_CORRECT = 4, /* + split: vertices predicted right */
    SL_METRIC_STOP = 8,    /* rank 0 was asked to stop */
    SL_METRIC_SECONDS = 9, /* seconds from the previous epoch to this epoch, on rank 0 */
    /* The first layer of the epoch, from 1, with a number that is not finite in its gradient, or in
     * the result of its step; 0: none. */
    SL_METRIC_BAD_GRADIENT = 10,
    SL_METRIC_BAD_UPDATE = 11,
    SL_METRIC_VALUE = 12, /* + split: value of the objective's metric of labels */
    SL_METRICS = 16,
};

#endif
