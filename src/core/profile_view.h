/* A profile (core/profile.h) as tables for a person. */
#ifndef SL_CORE_PROFILE_VIEW_H
#define SL_CORE_PROFILE_VIEW_H

#include <jansson.h>

/* Return the number at `key` of an object; 0 where the member is missing. */
static inline double sl_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Return the times of one epoch (a new reference): one row for each operation on each kind of
 * worker. Each kind has two more rows, for idle time and for overhead. A row is
 *
 *     {"operation", "kind" ("CPU" or "CUDA"), "seconds" (summed over the workers),
 *      "share" (of all workers' time)}
 *
 * and, for an operation, also "tasks", "task_seconds" (mean), "bytes_per_second",
 * "flops_per_second". The shares add up to 1. */
json_t *sl_profile_breakdown(const json_t *profile);

/* Set the members idle_share and overhead_share (of the workers' time) and task_overhead_seconds
 * (per task). */
void sl_profile_set_shares(json_t *row, const json_t *profile);

/* With GPUs, set the members bytes_to_gpus, bytes_from_gpus, bytes_between_gpus, and
 * gpu_idle_seconds (one number for each GPU worker), all per epoch. */
void sl_profile_set_gpus(json_t *row, const json_t *profile);

/* Print the members of sl_profile_set_gpus in a line; print nothing without GPUs. */
void sl_profile_print_gpus(const json_t *row);

/* Print the rows of sl_profile_breakdown as a table; name kinds of workers if there are several. */
void sl_profile_print(const json_t *breakdown);

#endif
