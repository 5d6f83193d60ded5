/* The forward program of a configuration: preprocessing of features, then all layers. */
#ifndef SL_RECIPE_FORWARD_H
#define SL_RECIPE_FORWARD_H

#include "forward/program.h"
#include "recipe/config.h"

/* The dataset that a model was trained on, as far as its program depends on it. */
struct sl_forward_data {
    int64_t features, classes; /* stored columns of features; columns of the logits */
    bool identity;             /* there were no features: value 0 is the identity */
};

/* Set *program to the steps of a trained model of this configuration. A program of links ends with
 * the rows that the decoder reads. Return 0; SL_ERR_USAGE where the model has no program: the
 * sentence names the option; SL_ERR_SYSTEM. Call sl_program_free in either case. */
int sl_config_forward(const struct sl_config *config, const struct sl_forward_data *data,
                      struct sl_program *program);

/* Return the member "forward" of a checkpoint's description: the program, or {"refused": why there
 * is none}. NULL: no memory. */
json_t *sl_config_describe_forward(const struct sl_config *config,
                                   const struct sl_forward_data *data);

#endif
