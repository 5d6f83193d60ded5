/* Parts of `starling bench` share this: options, repetitions in turn, medians with their spread,
 * rows of figures, and the file of --json. */
#ifndef SL_BENCH_MEASURE_H
#define SL_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/options.h"
#include "core/runtime.h"

/* ---- What every part has ---- */

/* The words of a command line: the part's own, and those for `starling train`. */
struct sl_bench_words {
    int own_count, train_count;
    char **own;   // (own_count + 1), NULL at the end; positional arguments come to its front
    char **train; // (train_count + 1), options of train as the user typed them
};

struct sl_bench_common {
    int64_t repetitions;
    char *json;
    bool quiet;
    struct sl_bench_words words;
    int positionals; /* arguments among the part's own words */
    /* Only rank and ranks are set: all ranks run the part, and rank 0 reports. */
    struct sl_runtime rt;
};

enum { SL_BENCH_MOST_REPETITIONS = 1000 };

/* The device that is measured: the cores, or a GPU. */
#define SL_BENCH_DEVICES(ENTRY) ENTRY(SL_BENCH_CPU, "cpu") ENTRY(SL_BENCH_CUDA, "cuda")
enum sl_bench_device { SL_BENCH_DEVICES(SL_CHOICE_CONSTANT) };

/* Rows of the common options, for a configuration struct with a member `struct sl_bench_common
 * common`. */
#define SL_BENCH_OPTIONS(config, default_repetitions)                                           \
    {"repetitions",                                                                             \
     SL_OPTION_INT,                                                                             \
     offsetof(struct config, common.repetitions),                                               \
     default_repetitions,                                                                       \
     1,                                                                                         \
     SL_BENCH_MOST_REPETITIONS,                                                                 \
     NULL,                                                                                      \
     "N",                                                                                       \
     "rounds in which every measurement has its turn; medians and quartiles are over them",     \
     "Measuring"},                                                                              \
        {"json",                                                                                \
         SL_OPTION_STRING,                                                                      \
         offsetof(struct config, common.json),                                                  \
         NULL,                                                                                  \
         0,                                                                                     \
         0,                                                                                     \
         NULL,                                                                                  \
         "FILE",                                                                                \
         "write all figures and what they were measured on to FILE",                            \
         "Output"},                                                                             \
    {                                                                                           \
        "quiet", SL_OPTION_FLAG, offsetof(struct config, common.quiet), "no", 0, 0, NULL, NULL, \
            "print nothing", "Output"                                                           \
    }

/* Read "16,64,128" (option --`name`) into numbers[0..*count), each from `least` to `most`. Return
 * 0, or SL_ERR_USAGE for anything else, and for more than `room` numbers. */
int sl_bench_parse_list(const char *name, const char *text, int64_t least, int64_t most, int room,
                        int64_t *numbers, int *count);

/* ---- Taking turns ---- */

/* A contestant, measured in turn with others in every round, so that disturbances of the machine
 * meet all alike. */
struct sl_contestant {
    /* Run `times` times. Return the seconds. */
    double (*run)(void *context, int64_t times);
    void *context;
    int64_t times;   /* runs in a sample, enough to be timed */
    double *seconds; /* (repetitions): seconds of one run; NULL before sl_bench_alternate */
};

/* Measure the contestants: one round that is not counted, then `repetitions` rounds, every other
 * one backwards. With `progress`, show the progress on a terminal. Return 0 or SL_ERR_SYSTEM. */
int sl_bench_alternate(struct sl_contestant *contestants, int count, int repetitions,
                       bool progress);
void sl_bench_free(struct sl_contestant *contestants, int count);

/* Show "done/all" on stderr if it is a terminal. Remove it once they are equal. */
void sl_bench_progress(int done, int all);

/* ---- Figures ---- */

/* Median and quartiles of a sample; all NaN if the sample is empty. */
struct sl_spread {
    double median, low, high;
};
struct sl_spread sl_spread_of(const double *values, int count);

/* Set the members `key` (the median), `key`_low and `key`_high (the quartiles). */
void sl_bench_set_spread(json_t *row, const char *key, struct sl_spread spread);

/* Return the spread of work / seconds[r], or of numerator[r] / denominator[r]: ratios within a
 * round. */
struct sl_spread sl_spread_of_rate(double work, const double *seconds, int count);
struct sl_spread sl_spread_of_ratio(const double *numerator, const double *denominator, int count);

/* ---- The file ---- */

/* Return {"bench": part, "date", "versions", "machine", "options": of the table, "rows": rows}. The
 * document owns `rows`. */
json_t *sl_bench_document(const char *part, const struct sl_option *table, const void *config,
                          json_t *rows);

/* Write the document so far to `path` (NULL: nowhere). Return 0 or SL_ERR_SYSTEM. */
int sl_bench_keep(const json_t *document, const char *path);

/* Write the document to `path` (NULL: nowhere), and release it. Return 0 or SL_ERR_SYSTEM. */
int sl_bench_write(json_t *document, const char *path);

#endif
