#include "recipe/objective.h"

#include "core/error.h"
#include "recipe/link_options.h"

static const char *describe(enum sl_label_kind kind)
{
    return kind == SL_LABELS_SEVERAL   ? "several labels per vertex"
           : kind == SL_LABELS_NUMBERS ? "numbers to predict"
                                       : "a class per vertex";
}

/* A dataset without labels, to predict with, has those of the model. */
static enum sl_label_kind kind_of(const struct sl_objective *o, const struct sl_source *source)
{
    if (source->targets.labels.data)
        return source->targets.label_kind;
    return o->loss->form == SL_TARGET_CLASS ? SL_LABELS_CLASS
           : o->loss->classes               ? SL_LABELS_SEVERAL
                                            : SL_LABELS_NUMBERS;
}

int sl_objective_take_labels(struct sl_runtime *rt, const struct sl_config *config,
                             const json_t *trained, struct sl_source *source)
{
    if (sl_config_links(config))
        return SL_OK;
    if (sl_config_objective(config).loss->classes)
        return sl_source_take_classes(rt, source);
    return json_integer_value(json_object_get(trained, "classes")) == 1
               ? sl_source_take_numbers(rt, source)
               : SL_OK;
}

static int check_loss(const struct sl_objective *o, enum sl_label_kind kind, const char *path)
{
    if (o->loss->form == SL_TARGET_CLASS && kind != SL_LABELS_CLASS)
        return sl_error(SL_ERR_USAGE, "--loss %s: %s has %s (expected --loss %s, or auto)",
                        o->loss->name, path, describe(kind),
                        kind == SL_LABELS_SEVERAL ? "sigmoid" : "mse");
    if (o->loss->classes && kind == SL_LABELS_NUMBERS)
        return sl_error(SL_ERR_USAGE, "--loss %s: %s has %s (expected --loss mse, or auto)",
                        o->loss->name, path, describe(kind));
    if (o->balanced && !o->loss->weighted)
        return sl_error(SL_ERR_USAGE,
                        "--class-weights balanced: --loss %s has no weights of classes (expected "
                        "none)",
                        o->loss->name);
    if (o->smoothing > 0.0 && !o->loss->weighted)
        return sl_error(SL_ERR_USAGE,
                        "--label-smoothing %g: --loss %s has no smooth labels (expected 0)",
                        o->smoothing, o->loss->name);
    return 0;
}

static int check_decision(const struct sl_objective *o)
{
    if (o->decision != SL_DECIDE_TOP)
        return 0;
    if (o->loss->form != SL_TARGET_VALUES || !o->loss->classes)
        return sl_error(SL_ERR_USAGE,
                        "--decision top: this run has --loss %s (expected --loss sigmoid)",
                        o->loss->name);
    if (o->metric->source != SL_METRIC_OF_COUNTS)
        return sl_error(SL_ERR_USAGE,
                        "--decision top: this run has --metric %s (expected micro-f1, macro-f1 or "
                        "label-accuracy)",
                        o->metric->name);
    return 0;
}

/* Refuse a metric that the labels do not have. Sigmoids and squares decide label by label. */
static int check_metric(const struct sl_objective *o, enum sl_label_kind kind, const char *path)
{
    const struct sl_metric *metric = o->metric;
    const bool defined = kind == SL_LABELS_NUMBERS || !o->loss->classes ? metric->of_numbers
                         : o->loss->form == SL_TARGET_VALUES            ? metric->of_several
                                                                        : metric->of_classes;
    if (!defined)
        return sl_error(SL_ERR_USAGE,
                        "--metric %s: is not defined for --loss %s on %s, which has "
                        "%s (expected %s, or auto)",
                        metric->name, o->loss->name, path, describe(kind),
                        sl_metric_of_loss(o->loss)->name);
    return 0;
}

int sl_objective_check(const struct sl_config *config, const struct sl_source *source)
{
    const struct sl_objective objective = sl_config_objective(config);
    if (sl_config_links(config))
        return sl_links_check_objective(config, source);
    const enum sl_label_kind kind = kind_of(&objective, source);
    int code = check_loss(&objective, kind, source->path);
    if (!code)
        code = check_decision(&objective);
    return code ? code : check_metric(&objective, kind, source->path);
}
