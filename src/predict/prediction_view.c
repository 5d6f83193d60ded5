#include "predict/prediction_view.h"

json_t *sl_plan_to_json(const struct sl_plan *plan)
{
    json_t *object = json_object();
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        json_object_set_new(object, sl_plan_names[k], json_integer(plan->bytes[k]));
    json_object_set_new(object, "total", json_integer(plan->total));
    return object;
}

static json_t *rank_to_json(const struct sl_rank_prediction *rank)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "words",
                     (json_int_t)(rank->received / 4), "bytes_received", (json_int_t)rank->received,
                     "rows_received", (json_int_t)rank->rows, "sums_received",
                     (json_int_t)rank->sums, "adjacency_received", (json_int_t)rank->adjacency,
                     "messages", (json_int_t)rank->messages, "compute_seconds", rank->compute,
                     "communication_seconds", rank->communication, "hidden_seconds", rank->hidden,
                     "own_last_seconds", rank->own_last);
}

json_t *sl_prediction_to_json(const struct sl_prediction *prediction)
{
    const struct sl_grid *grid = &prediction->grid;
    json_t *object = rank_to_json(&prediction->most);
    json_object_set_new(object, "distribution", json_string(prediction->name));
    json_object_set_new(object, "grid",
                        prediction->kind != &sl_distribution_block
                            ? json_string(prediction->name)
                            : json_sprintf("%dx%dx%d", grid->rows, grid->columns, grid->depth));
    json_object_set_new(object, "exact", json_boolean(prediction->exact));
    json_object_set_new(object, "epoch_seconds", json_real(prediction->seconds));
    json_object_set_new(object, "memory_bytes", json_integer(prediction->memory.total));
    json_object_set_new(object, "memory", sl_plan_to_json(&prediction->memory));
    json_object_set_new(object, "mean", rank_to_json(&prediction->mean));
    return object;
}

json_t *sl_prediction_traffic(const struct sl_prediction *prediction, int ranks)
{
    static const char *const names[] = {"bytes_received", "rows_received", "sums_received",
                                        "adjacency_received", "messages"};
    json_t *object = json_object();
    for (int n = 0; n < 5; n++) {
        json_t *list = json_array();
        for (int r = 0; r < ranks; r++) {
            const struct sl_rank_prediction *rank = &prediction->rank[r];
            const int64_t figures[] = {rank->received, rank->rows, rank->sums, rank->adjacency,
                                       rank->messages};
            json_array_append_new(list, json_integer(figures[n]));
        }
        json_object_set_new(object, names[n], list);
    }
    return object;
}
