/* Contests of trainings, for the parts of `starling bench` that measure whole runs. Every
 * contestant trains once in each round, so that disturbances of the machine meet all alike. */
#ifndef SL_BENCH_CONTEST_H
#define SL_BENCH_CONTEST_H

#include "bench/train.h"

/* A contestant: what its trainings have beside the user's words, and their results. */
struct sl_bench_entry {
    const char *words[8]; /* as in struct sl_bench_training */
    char number[24];      /* room for a number among the words */
    bool profile;
    int tried;                 /* trainings so far */
    struct sl_bench_run *runs; // (rounds)
    double *seconds;           // (rounds): median epoch of each run
};

struct sl_bench_contest {
    struct sl_bench_common *common;
    const char *dataset;
    double limit; /* as in struct sl_bench_training */
    int count, rounds;
    bool profile_last;              /* the trainings of the last round have a profile */
    bool tolerant;                  /* a training that ends badly is no error */
    struct sl_bench_entry *entries; // (count)
};

/* Make `count` entries for `rounds` rounds. Return 0 or SL_ERR_SYSTEM. The caller destroys the
 * contest in either case. */
int sl_bench_contest_create(struct sl_bench_contest *contest, struct sl_bench_common *common,
                            int count, int64_t rounds);
void sl_bench_contest_destroy(struct sl_bench_contest *contest);

/* Set the words of an entry: an option and a number. */
void sl_bench_entry_number(struct sl_bench_entry *entry, const char *option, int64_t number);

/* Train in all rounds, every other round backwards. In a tolerant contest, an entry whose training
 * ends badly trains no more. Return 0, SL_ERR_SYSTEM, or the first bad ending as an error. */
int sl_bench_contest_run(struct sl_bench_contest *contest);

/* Return the last run of an entry. */
const struct sl_bench_run *sl_bench_entry_last(const struct sl_bench_entry *entry);

/* Return how many trainings of an entry ended well. */
int sl_bench_entry_done(const struct sl_bench_entry *entry);

/* Set the members of the document that say what was trained on. */
void sl_bench_describe(json_t *document, const struct sl_bench_contest *contest,
                       const struct sl_bench_run *run);

#endif
