#include "core/profile_view.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/table.h"

static void set_positive(json_t *object, const char *key, double value)
{
    if (value > 0.0)
        json_object_set_new(object, key, json_real(value));
}

static json_t *new_row(const json_t *of, const char *name, double seconds, double epochs,
                       double all_seconds)
{
    return json_pack("{s:s, s:O, s:f, s:f}", "operation", name, "kind", json_object_get(of, "kind"),
                     "seconds", seconds / epochs, "share",
                     all_seconds > 0.0 ? seconds / all_seconds : 0.0);
}

json_t *sl_profile_breakdown(const json_t *profile)
{
    json_t *rows = json_array();
    const double epochs = sl_number(profile, "epochs");
    const double all = sl_number(profile, "busy_seconds") + sl_number(profile, "idle_seconds") +
                       sl_number(profile, "overhead_seconds");
    size_t index;
    const json_t *operation, *kind;
    json_array_foreach(json_object_get(profile, "operations"), index, operation)
    {
        const double seconds = sl_number(operation, "seconds"),
                     tasks = sl_number(operation, "tasks");
        json_t *row = new_row(operation, json_string_value(json_object_get(operation, "name")),
                              seconds, epochs, all);
        json_object_set_new(row, "tasks", json_real(tasks / epochs));
        set_positive(row, "task_seconds", seconds / tasks);
        if (seconds > 0.0) {
            set_positive(row, "bytes_per_second", sl_number(operation, "bytes") / seconds);
            set_positive(row, "flops_per_second", sl_number(operation, "flops") / seconds);
        }
        json_array_append_new(rows, row);
    }
    json_array_foreach(json_object_get(profile, "kinds"), index, kind)
    {
        json_array_append_new(
            rows, new_row(kind, "(overhead)", sl_number(kind, "overhead_seconds"), epochs, all));
        json_array_append_new(
            rows, new_row(kind, "(idle)", sl_number(kind, "idle_seconds"), epochs, all));
    }
    return rows;
}

static const char *const transfers[] = {"bytes_to_gpus", "bytes_from_gpus", "bytes_between_gpus"};
enum { TRANSFERS = sizeof transfers / sizeof *transfers };

void sl_profile_set_gpus(json_t *row, const json_t *profile)
{
    const double epochs = sl_number(profile, "epochs");
    if (!json_object_get(profile, transfers[0]))
        return;
    for (int t = 0; t < TRANSFERS; t++)
        json_object_set_new(row, transfers[t],
                            json_real(sl_number(profile, transfers[t]) / epochs));
    json_t *idle = json_array();
    size_t index;
    const json_t *worker;
    json_array_foreach(json_object_get(profile, "workers"), index, worker)
    {
        if (strcmp(json_string_value(json_object_get(worker, "kind")), "CUDA") == 0)
            json_array_append_new(idle, json_real(sl_number(worker, "idle_seconds") / epochs));
    }
    json_object_set_new(row, "gpu_idle_seconds", idle);
}

void sl_profile_print_gpus(const json_t *row)
{
    const json_t *idle = json_object_get(row, "gpu_idle_seconds");
    size_t index;
    const json_t *value;
    if (!idle)
        return;
    printf("per epoch %.3f MB to GPUs, %.3f MB from GPUs, %.3f MB between GPUs, which idle",
           1e-6 * sl_number(row, transfers[0]), 1e-6 * sl_number(row, transfers[1]),
           1e-6 * sl_number(row, transfers[2]));
    json_array_foreach((json_t *)idle, index, value)
        printf("%s %.3f", index ? "," : "", 1e3 * json_number_value(value));
    printf(" ms\n");
}

void sl_profile_set_shares(json_t *row, const json_t *profile)
{
    const double overhead = sl_number(profile, "overhead_seconds");
    const double all = sl_number(profile, "seconds") *
                       (double)json_array_size(json_object_get(profile, "workers"));
    json_object_set_new(row, "idle_share", json_real(sl_number(profile, "idle_seconds") / all));
    json_object_set_new(row, "overhead_share", json_real(overhead / all));
    json_object_set_new(row, "task_overhead_seconds",
                        json_real(overhead / sl_number(profile, "tasks")));
}

static bool has_kinds(const json_t *breakdown)
{
    const json_t *first = json_object_get(json_array_get(breakdown, 0), "kind");
    size_t index;
    const json_t *row;
    json_array_foreach((json_t *)breakdown, index, row)
    {
        if (!json_equal(json_object_get(row, "kind"), first))
            return true;
    }
    return false;
}

void sl_profile_print(const json_t *breakdown)
{
    static const struct sl_column columns[] = {
        {"kind", "worker", 0, 0},
        {"operation", "operation", 0, 0},
        {"seconds", "ms/epoch", 1e-3, 3},
        {"share", "%", 1e-2, 1},
        {"tasks", "tasks/epoch", 0, 1},
        {"task_seconds", "us/task", 1e-6, 1},
        {"bytes_per_second", "GB/s", 1e9, 2},
        {"flops_per_second", "Gflop/s", 1e9, 2},
        {0},
    };
    sl_table_print(breakdown, has_kinds(breakdown) ? columns : columns + 1);
}
