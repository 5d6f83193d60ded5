/* The surroundings of tests of tasks: a started runtime, and a directory for files. */
#ifndef SL_TESTS_RUNNING_H
#define SL_TESTS_RUNNING_H

#include "core/runtime.h"
#include "data/dataset.h"

/* From set-up to tear-down of a group of tests. */
extern struct sl_runtime sl_running;
extern char sl_running_dir[64]; /* empty at first, removed with what is in it */

/* A path in that directory, valid until the fourth call after. */
const char *sl_running_path(const char *name);

/* Write a dataset into that directory, on rank 0. Return its path on all ranks, valid until the
 * next call. */
const char *sl_running_store(const struct sl_dataset *data, const char *name);

/* The device that tasks run on: SL_TEST_DEVICE, or auto. */
enum sl_device sl_running_device(void);

/* Set-up and tear-down of a cmocka group: two workers. Small matrices share
 * places, too (graphs/place.h). */
int sl_running_start(void **state);
int sl_running_stop(void **state);

#endif
