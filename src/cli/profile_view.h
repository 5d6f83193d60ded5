/* A profile (core/profile.h) as tables for a person. */
#ifndef SL_CLI_PROFILE_VIEW_H
#define SL_CLI_PROFILE_VIEW_H

#include <jansson.h>

/* A member of an object; 0 where there is none. */
static inline double sl_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* One row for each operation and one each for idle time and overhead, all per epoch (a new
 * reference): {"operation", "seconds" (summed over the workers), "share" (of the workers' time),
 * and for operations "tasks", "task_seconds" (mean), "bytes_per_second", "flops_per_second"}. The
 * shares add up to 1. */
json_t *sl_profile_breakdown(const json_t *profile);

/* Sets the members idle_share and overhead_share (of the workers' time) and task_overhead_seconds
 * (per task). */
void sl_profile_set_shares(json_t *row, const json_t *profile);

/* Prints that breakdown. */
void sl_profile_print(const json_t *breakdown);

#endif
