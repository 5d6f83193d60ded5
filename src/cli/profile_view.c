#include "cli/profile_view.h"

#include "cli/table.h"

static void set_positive(json_t *object, const char *key, double value)
{
    if (value > 0.0)
        json_object_set_new(object, key, json_real(value));
}

static json_t *new_row(const char *name, double seconds, double epochs, double all_seconds)
{
    return json_pack("{s:s, s:f, s:f}", "operation", name, "seconds", seconds / epochs, "share",
                     all_seconds > 0.0 ? seconds / all_seconds : 0.0);
}

json_t *sl_profile_breakdown(const json_t *profile)
{
    json_t *rows = json_array();
    const double epochs = sl_number(profile, "epochs");
    const double idle = sl_number(profile, "idle_seconds");
    const double overhead = sl_number(profile, "overhead_seconds");
    const double all = sl_number(profile, "busy_seconds") + idle + overhead;
    size_t index;
    const json_t *operation;
    json_array_foreach(json_object_get(profile, "operations"), index, operation)
    {
        const double seconds = sl_number(operation, "seconds"),
                     tasks = sl_number(operation, "tasks");
        json_t *row =
            new_row(json_string_value(json_object_get(operation, "name")), seconds, epochs, all);
        json_object_set_new(row, "tasks", json_real(tasks / epochs));
        set_positive(row, "task_seconds", seconds / tasks);
        if (seconds > 0.0) {
            set_positive(row, "bytes_per_second", sl_number(operation, "bytes") / seconds);
            set_positive(row, "flops_per_second", sl_number(operation, "flops") / seconds);
        }
        json_array_append_new(rows, row);
    }
    json_array_append_new(rows, new_row("(overhead)", overhead, epochs, all));
    json_array_append_new(rows, new_row("(idle)", idle, epochs, all));
    return rows;
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

void sl_profile_print(const json_t *breakdown)
{
    static const struct sl_column columns[] = {
        {"operation", "operation", 0, 0},
        {"seconds", "ms/epoch", 1e-3, 3},
        {"share", "%", 1e-2, 1},
        {"tasks", "tasks/epoch", 0, 1},
        {"task_seconds", "us/task", 1e-6, 1},
        {"bytes_per_second", "GB/s", 1e9, 2},
        {"flops_per_second", "Gflop/s", 1e9, 2},
        {0},
    };
    sl_table_print(breakdown, columns);
}
