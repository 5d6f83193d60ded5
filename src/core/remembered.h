/* Measurements of this machine by `starling bench … --remember`: JSON files in the user's cache
 * directory, $XDG_CACHE_HOME/starling/ or ~/.cache/starling/. Many machines may share a home, so
 * each file is an object with a member for each host name. A machine with another number of
 * processors is another machine: its measurements count as absent. */
#ifndef SL_CORE_REMEMBERED_H
#define SL_CORE_REMEMBERED_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* What is remembered of `subject` ("machine", "scheduler"); NULL if nothing is (a new reference).
 */
json_t *sl_remembered_get(const char *subject);

/* Find out whether the file of `subject` can be written, before hours of measurements. Return 0, or
 * SL_ERR_SYSTEM, which names the file. */
int sl_remembered_probe(const char *subject);

/* Remembers `value`, an object (its reference is taken over), adding "processors" and "date" to it.
 * SL_ERR_SYSTEM names the file that cannot be written. */
int sl_remembered_set(const char *subject, json_t *value);

enum { SL_REMEMBERED_GATHERS = 16 };

/* `starling bench machine --remember`. Pairs are {one thread, all threads}; 0: not measured. */
struct sl_remembered_machine {
    int threads;                       /* how many "all" are */
    double read[2], copy[2], triad[2]; /* bytes per second, as STREAM counts them */
    double gemm[2], gemm_tall[2];      /* flops per second: square; (100,000 x 256)·(256 x 64) */
    double features[2];                /* flops per second of products with sparse features */
    double draws[2];                   /* entries of these per second that dropout decides on */
    int gathers;
    struct {
        int64_t width; /* floats in a row */
        /* Bytes per second of whole random rows, huge pages, prefetched: from a core's own cache,
         * from the last-level cache, from memory. */
        double rate[3][2];
    } gather[SL_REMEMBERED_GATHERS]; /* by width, ascending */
};

/* Fills `machine` with what is remembered; false if nothing is. */
bool sl_remembered_machine(struct sl_remembered_machine *machine);

/* The policy that `starling bench schedulers --remember` found fastest, with or without GPUs at
 * work; false if none is remembered. */
bool sl_remembered_scheduler(bool gpus, char name[32]);

#endif
