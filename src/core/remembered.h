/* Measurements of this machine by `starling bench … --remember`: JSON files in the user's cache
 * directory, $XDG_CACHE_HOME/starling/ or ~/.cache/starling/. Many machines may share a home, so
 * each file is an object with a member for each host name. A machine with another number of
 * processors is another machine: its measurements count as absent. */
#ifndef SL_CORE_REMEMBERED_H
#define SL_CORE_REMEMBERED_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Return the measurement of `subject` ("machine", "scheduler"), a new reference; NULL if there is
 * none. */
json_t *sl_remembered_get(const char *subject);

/* Return 0 if the file of `subject` can be written; call this before hours of measurements.
 * SL_ERR_SYSTEM names the file. */
int sl_remembered_probe(const char *subject);

/* Remember `value`, an object, with "processors" and "date" added; take over its reference.
 * SL_ERR_SYSTEM names the file that cannot be written. */
int sl_remembered_set(const char *subject, json_t *value);

enum { SL_REMEMBERED_GATHERS = 16 };

/* Results of `starling bench machine --remember`. Pairs are {one thread, all threads}; 0: not
 * measured. */
struct sl_remembered_machine {
    int threads;                       /* number of threads that "all" means */
    double read[2], copy[2], triad[2]; /* bytes per second, as STREAM counts them */
    double gemm[2], gemm_tall[2];      /* flops per second: square; (100,000 x 256)·(256 x 64) */
    double features[2];                /* flops per second of products with sparse features */
    double draws[2];                   /* sparse features per second that dropout decides on */
    int gathers;
    struct {
        int64_t width; /* floats in a row */
        /* Bytes per second of whole random rows, huge pages, prefetched: from a core's own cache,
         * from the last-level cache, from memory. */
        double rate[3][2];
    } gather[SL_REMEMBERED_GATHERS]; /* sorted by width */
};

/* Fill `machine` with the remembered measurements; return false if there are none. */
bool sl_remembered_machine(struct sl_remembered_machine *machine);

/* Write the policy that `starling bench schedulers --remember` found fastest, with or without GPUs;
 * return false if none is remembered. */
bool sl_remembered_scheduler(bool gpus, char name[32]);

#endif
