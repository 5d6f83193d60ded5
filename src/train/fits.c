#include "train/fits.h"

#include "core/error.h"
#include "train/trainer.h"

int sl_plan_make(struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_config *config, struct sl_plan *plan)
{
    struct sl_trainer trainer;
    rt->plans = true;
    const int code = sl_trainer_create(&trainer, rt, source, config, NULL);
    if (!code)
        *plan = sl_plan_of(&trainer.operands, &trainer.network);
    sl_trainer_destroy(&trainer);
    rt->plans = false;
    return code;
}

/* More than a rank takes, from the shape of graph and network alone. */
static double rough_bytes(const struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config)
{
    enum { MOST_PARTS = 64 }; /* of a gradient, unless --tiles says more */
    const double n = (double)source->vertices, f = (double)source->features,
                 c = (double)source->classes;
    const double h = (double)config->hidden, layers = (double)config->layers;
    const double nnz = (double)source->adjacency.indices.count;
    const double features = source->feature_form == SL_FEATURES_IDENTITY ? 12.0 * n : 36.0 * n * f;
    const double parameters = 2.0 * (f * (h + c) + layers * h * h + h * c); /* of two weights */
    const double parts = config->tiles > MOST_PARTS ? (double)config->tiles : MOST_PARTS;
    return (16.0 * (nnz + n) + features + 4.0 * n * (h + c + 32.0) * (layers + 8.0)) / rt->ranks *
               2.0 +
           4.0 * parameters * (4.0 + parts);
}

static int refuse(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config, int64_t total, const struct sl_space *space)
{
    static const double GIB = 1 << 30;
    static const char *const who[SL_MEMORY_BOUNDS] = {
        "this machine has", "the control group (cgroup) has", "ulimit -v or -d leaves"};
    static char bf16[] = "bf16";
    struct sl_config narrow = *config;
    struct sl_plan plan = {.total = 0};
    narrow.precision = bf16;
    const int code = sl_plan_make(rt, source, &narrow, &plan);
    const bool fits = !code && sl_plan_largest(rt, &plan).total <= space->bytes;
    return sl_error(SL_ERR_SYSTEM,
                    "training takes %.1f GiB on a rank, and %s %.1f GiB free for it: "
                    "%s; more ranks on other machines, fewer --layers or a smaller --hidden take "
                    "less (--plan shows what takes how much)",
                    (double)total / GIB, who[space->bound], (double)space->bytes / GIB,
                    fits ? "--precision bf16 would fit" : "--precision bf16 would not fit either");
}

int sl_plan_check(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config)
{
    struct sl_plan plan;
    const struct sl_space space = sl_space_find(rt);
    if (rough_bytes(rt, source, config) < (double)space.bytes)
        return 0;
    int code = sl_plan_make(rt, source, config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(rt, &plan);
    if (plan.total > space.bytes)
        code = refuse(rt, source, config, plan.total, &space);
    return sl_runtime_agree(rt, code);
}
