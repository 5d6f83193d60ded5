/* What the parts of `starling bench` share: options, repetitions in turn, medians with their
 * spread, rows of figures, and the file that --json writes. */
#ifndef SL_BENCH_MEASURE_H
#define SL_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/options.h"
#include "core/runtime.h"

/* ---- What every part has ---- */

/* The words of a command line, the part's own apart from those for `starling train`. */
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
    /* No more than rank and ranks: all ranks run the part, and rank 0 says what came of it. */
    struct sl_runtime rt;
};

/* What is measured: the cores, or a GPU. */
#define SL_BENCH_DEVICES(ENTRY) ENTRY(SL_BENCH_CPU, "cpu") ENTRY(SL_BENCH_CUDA, "cuda")
enum sl_bench_device { SL_BENCH_DEVICES(SL_CHOICE_CONSTANT) };

/* The rows of its options, for a configuration struct with a member `struct sl_bench_common
 * common`. */
#define SL_BENCH_OPTIONS(config, default_repetitions)                                           \
    {"repetitions",                                                                             \
     SL_OPTION_INT,                                                                             \
     offsetof(struct config, common.repetitions),                                               \
     default_repetitions,                                                                       \
     1,                                                                                         \
     1000,                                                                                      \
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

/* Reads "16,64,128" (option --`name`) into numbers[0..*count), each from `least` to `most`.
 * SL_ERR_USAGE for anything else, and for more than `room` numbers. */
int sl_bench_parse_list(const char *name, const char *text, int64_t least, int64_t most, int room,
                        int64_t *numbers, int *count);

/* ---- Taking turns ---- */

/* Something that is measured against others, in turn with them in every round, so that whatever
 * else the machine does meets all alike. */
struct sl_contestant {
    /* Runs `times` times and returns the seconds that took. */
    double (*run)(void *context, int64_t times);
    void *context;
    int64_t times;   /* of one sample, chosen so that it lasts long enough to be timed */
    double *seconds; /* (repetitions), of one run each; NULL before sl_bench_alternate */
};

/* A round that is not counted, then `repetitions` rounds; every other one goes backwards. With
 * `progress`, says on a terminal how far it is. Returns 0 or SL_ERR_SYSTEM. */
int sl_bench_alternate(struct sl_contestant *contestants, int count, int repetitions,
                       bool progress);
void sl_bench_free(struct sl_contestant *contestants, int count);

/* Shows "done/all" on stderr if that is a terminal; removes it once they are equal. */
void sl_bench_progress(int done, int all);

/* ---- Figures ---- */

/* Median and quartiles of a sample; all NaN if it is empty. */
struct sl_spread {
    double median, low, high;
};
struct sl_spread sl_spread_of(const double *values, int count);

/* Sets the members `key` (the median), `key`_low and `key`_high (the quartiles). */
void sl_bench_set_spread(json_t *row, const char *key, struct sl_spread spread);

/* The spread of work / seconds[r], and of numerator[r] / denominator[r]: ratios within a round. */
struct sl_spread sl_spread_of_rate(double work, const double *seconds, int count);
struct sl_spread sl_spread_of_ratio(const double *numerator, const double *denominator, int count);

/* ---- The file ---- */

/* {"bench": part, "date", "versions", "machine", "options": of the table, "rows": rows}; rows is
 * taken over. */
json_t *sl_bench_document(const char *part, const struct sl_option *table, const void *config,
                          json_t *rows);

/* Writes the document to `path` (NULL: nowhere): what there is so far. SL_ERR_SYSTEM. */
int sl_bench_keep(const json_t *document, const char *path);

/* The same, and releases the document. */
int sl_bench_write(json_t *document, const char *path);

#endif
