/* Short trainings of one dataset in one process, however many ranks share it, and how far apart
 * they are.
 *
 * Differences are relative to the largest number of a tensor. Losses and sums are off by some 1e-7
 * of themselves; a pre-activation that passes relu's kink on one side only adds its own size. Plain
 * steps with momentum keep parameters linear in the gradients, where Adam would divide them by
 * their own size. Another order of terms is 1e-7 to 1e-6, one term that is missing, over 1e-3. */
#ifndef SL_TESTS_TRAINED_H
#define SL_TESTS_TRAINED_H

#include "core/runtime.h"
#include "data/source.h"
#include "log/report.h"
#include "recipe/config.h"

enum { SL_TRAINED_EPOCHS = 2 };

/* Results of a run: `traffic` on each rank, the losses too, all else on rank 0. */
struct sl_trained {
    double loss[SL_TRAINED_EPOCHS];
    int64_t parameters, logits; /* numbers of each */
    float *gradient;            // (parameters): of the last step, all layers'
    float *parameter;           // (parameters)
    float *logit;               // (logits): after it, by the numbers of the dataset
    double apart;               /* the largest difference between copies of one logit */
    struct sl_scores score;     /* of the metric, after it */
    struct sl_traffic traffic;  /* of a step, on this rank */
};

/* Sets the options of train that `line` has, as on the command line, beside --hidden 16; ends the
 * program if one is wrong. Small matrices share places, too (graphs/place.h). sl_options_free. */
void sl_test_configure(struct sl_config *config, const char *line);

/* Trains for so many epochs with plain steps, 7 tiles or more, weight decay everywhere and
 * `options`, as on the command line. small_apart: small matrices have memory of their own, as in
 * the program. All ranks call it. Returns what sl_trainer_create did; sl_trained_free in either
 * case. */
int sl_train(struct sl_runtime *rt, const struct sl_source *source, const char *options,
             bool small_apart, struct sl_trained *out);
void sl_trained_free(struct sl_trained *trained);

/* On rank 0: infinite for other sizes, nothing but zeros, or numbers that are none. */
double sl_trained_difference(const struct sl_trained *a, const struct sl_trained *b);

#endif
