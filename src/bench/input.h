/* The input of a part of `starling bench`: a dataset, or a graph generated like a known dataset. */
#ifndef SL_BENCH_INPUT_H
#define SL_BENCH_INPUT_H

#include "bench/measure.h"
#include "data/dataset.h"
#include "data/generate/generate_like.h"

struct sl_bench_input {
    char *like; /* NULL: none */
    double scale;
    char directory[256]; /* directory of the generated dataset; "": not written */
};

/* Rows of the input's options, for a configuration struct with a member `struct sl_bench_input
 * input`. */
#define SL_BENCH_INPUT_OPTIONS(config)                                                            \
    {"like",                                                                                      \
     SL_OPTION_NAME,                                                                              \
     offsetof(struct config, input.like),                                                         \
     NULL,                                                                                        \
     0,                                                                                           \
     0,                                                                                           \
     SL_LIKE_NAMES,                                                                               \
     "NAME",                                                                                      \
     "a generated graph of the shape of that dataset (starling generate like)",                   \
     "Graph"},                                                                                    \
    {                                                                                             \
        "scale", SL_OPTION_REAL, offsetof(struct config, input.scale), "0.1", 1e-6, 1, NULL, "S", \
            "with --like: share of that dataset's vertices", "Graph"                              \
    }

/* Set *path, for runs in other processes, to the positional argument, or to a directory that --like
 * was written to. Return SL_ERR_USAGE if there is neither or both. The caller removes the input in
 * either case. */
int sl_bench_input_path(struct sl_bench_input *input, const struct sl_bench_common *common,
                        const char **path);
void sl_bench_input_remove(struct sl_bench_input *input);

/* Open `dataset` (NULL: none), or the generated one, in this process. */
int sl_bench_input_open(const struct sl_bench_input *input, const char *dataset,
                        struct sl_dataset *data);

#endif
