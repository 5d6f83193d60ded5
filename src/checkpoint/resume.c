#include "checkpoint/resume.h"

#include <string.h>

#include "codelets/instructions.h"
#include "core/error.h"
#include "core/log.h"
#include "graphs/distribution.h"
#include "graphs/vertex_cut.h"

/* Options of "how to run" that decide in which order numbers are added. Workers, schedulers and
 * forms of broadcasts do not. Devices round differently, but belong to the machine. */
static const char *const kept[] = {
    "groups",    "preload-hops", "distribution", "grid",         "replication",
    "partition", "delay",        "partial-sums", "exact-epochs", "sum-order",
    "order",     "balance",      "tiles",        "instructions", "rows",
};

static bool is_kept(const struct sl_option *option)
{
    bool found = !sl_config_is_execution(option);
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        found = found || strcmp(option->name, kept[k]) == 0;
    return found;
}

static void leave(bool *skip, const char *name)
{
    for (int o = 0; sl_config_options[o].name; o++)
        skip[o] = skip[o] || strcmp(sl_config_options[o].name, name) == 0;
}

/* Skip saved options that a given option replaces. One option of --distribution, --grid and
 * --replication replaces all three. Partitions and delays belong to a distribution. */
static void leave_others(const struct sl_config *config, const bool *given, const json_t *saved,
                         bool *skip)
{
    const bool distribution = sl_config_is_given(given, "distribution"),
               grid = sl_config_is_given(given, "grid"),
               replication = sl_config_is_given(given, "replication");
    const char *before = json_string_value(json_object_get(saved, "distribution"));
    const bool other =
        distribution && (!before || sl_distribution_find(before) != config->ranks.distribution);
    if (distribution || replication)
        leave(skip, "grid");
    if (distribution || grid)
        leave(skip, "replication");
    if (grid || (!distribution && !replication && json_is_string(json_object_get(saved, "grid"))))
        leave(skip, "distribution"); /* the grid decides */
    if (sl_config_is_given(given, "delay"))
        leave(skip, "exact-epochs"); /* another delay may allow no exact epochs */
    if (grid || other) {
        leave(skip, "partition");
        leave(skip, "delay");
        leave(skip, "partial-sums");
        leave(skip, "exact-epochs");
    }
}

static void choose_anew(struct sl_config *config, int ranks)
{
    const bool grid = config->ranks.grid.rows > 0;
    sl_note("--resume %s: --%s %s of the checkpoint does not fit %d ranks and is chosen anew",
            config->files.resume, grid ? "grid" : "distribution",
            grid ? sl_config_text(config, "grid").text
                 : sl_config_word(config, "distribution").text,
            ranks);
    config->ranks.replication = 0;
    config->ranks.grid = (struct sl_grid){0, 0, 0};
    config->ranks.distribution = NULL;
}

/* Settle a distribution that the checkpoint's run left to the program. Unless it was a grid, it was
 * 1D or one rank, which gives the same bits. */
static void settle_distribution(struct sl_config *config, const bool *given, int ranks)
{
    struct sl_grid grid;
    if (sl_config_is_given(given, "distribution") || sl_config_is_given(given, "grid") ||
        sl_config_is_given(given, "replication") ||
        config->steps.groups.given) /* the distribution then cuts a group's ranks */
        return;
    if (sl_grid_choose(config->ranks.distribution, config->ranks.replication, config->ranks.grid,
                       ranks, &grid)) {
        choose_anew(config, ranks);
        return;
    }
    config->ranks.allow_inexact = false; /* nothing is left to choose */
    if (ranks > 1 && config->ranks.grid.rows == 0 && !config->ranks.distribution)
        config->ranks.distribution = sl_distribution_find("1d");
}

/* Settle --rows. Programs without --rows computed all rows. A given distribution or order may need
 * all rows. */
static void settle_rows(struct sl_config *config, const bool *given, const json_t *saved)
{
    const bool all = !json_object_get(saved, "rows") ||
                     (config->steps.rows == SL_ROWS_NEEDED && sl_config_check_batches(config));
    if (all && !sl_config_is_given(given, "rows"))
        config->steps.rows = SL_ROWS_ALL;
}

/* Reset saved options that this run cannot have: parts of several ranks on one rank, an order that
 * a given distribution does not take, instructions that this processor lacks. */
static int settle_others(struct sl_config *config, const bool *given, int ranks)
{
    const struct sl_distribution_kind *kind = sl_config_kind(config);
    const bool clones =
                   kind->clones && config->ranks.order && !sl_order_is_none(config->ranks.order),
               parts = kind->parts && config->ranks.order == &sl_order_double;
    int code = 0;
    if ((clones || parts) && !sl_config_is_given(given, "order"))
        config->ranks.order = NULL;
    if (!code && ranks == 1 && !config->steps.groups.given && sl_config_kind(config)->parts &&
        !sl_config_is_given(given, "partition"))
        code = sl_config_set_text(&config->ranks.partition, NULL);
    if (config->machine.instructions != SL_INSTRUCTIONS_AUTO &&
        !sl_config_is_given(given, "instructions") &&
        config->machine.instructions > sl_instructions_best()) {
        sl_note("--resume %s: this processor lacks --instructions %s of the checkpoint",
                config->files.resume, sl_instructions_names[config->machine.instructions]);
        config->machine.instructions = SL_INSTRUCTIONS_AUTO;
    }
    return code;
}

/* Settle --partial-sums. Programs without it did not scale partial sums of delayed runs. */
static void settle_partial_sums(struct sl_config *config, const bool *given, const json_t *saved)
{
    const char *before = json_string_value(json_object_get(saved, "delay"));
    const bool late = before && strcmp(before, "cd-0") != 0,
               stays = sl_config_kind(config)->clones && config->ranks.delay != SL_DELAY_EXACT;
    if (late && stays && !json_object_get(saved, "partial-sums") &&
        !sl_config_is_given(given, "partial-sums"))
        config->ranks.partial_sums = SL_PARTIAL_SUMS_UNSCALED;
}

/* Settle --keep. A saved "best" may have been the program's choice, so the new run chooses by its
 * own data (sl_defaults_settle). */
static void settle_keep(struct sl_config *config, const bool *given)
{
    if (config->training.keep == SL_KEEP_BEST && !sl_config_is_given(given, "keep"))
        config->training.keep = SL_KEEP_AUTO;
}

/* Refuse other numbers of heads: the parameters have the same shapes, but belong to another
 * network. */
static int check_heads(const struct sl_config *config, const bool *given, const json_t *saved)
{
    static const char *const names[] = {"heads", "out-heads"};
    const int64_t wanted[] = {config->network.heads, config->network.out_heads};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const json_t *before = json_object_get(saved, names[k]);
        if (sl_config_is_given(given, names[k]) && json_is_integer(before) &&
            json_integer_value(before) != wanted[k])
            return sl_error(SL_ERR_USAGE, "--%s %lld: %s has %lld (expected the same)", names[k],
                            (long long)wanted[k], config->files.resume,
                            (long long)json_integer_value(before));
    }
    return 0;
}

/* Return what a value of an option means for a model: auto is an activation. */
static const char *meaning_of(const char *option, const char *value, const json_t *saved)
{
    const char *model = json_string_value(json_object_get(saved, "model"));
    if (strcmp(option, "activation") != 0 || strcmp(value, "auto") != 0)
        return value;
    const struct sl_model_kind *kind = model ? sl_model_find(model) : NULL;
    return kind && kind->attention ? "elu" : "relu";
}

/* Refuse other options of the layers: their parameters may fit all the same. Programs without these
 * options had none of them. */
static int check_layers(const struct sl_config *config, const bool *given, const json_t *saved)
{
    static const struct {
        const char *name, *before;
    } of[] = {{"encoder", "none"},     {"activation", "auto"},
              {"norm-layers", "none"}, {"residual", "none"},
              {"jump", "none"},        {"classifier", "none"},
              {"block-norm", "row"},   {"block-aggregator", "gcn"},
              {"aggregator", "mean"}};
    struct sl_config before_it = *config; /* of the checkpoint's model */
    const char *model = json_string_value(json_object_get(saved, "model"));
    before_it.network.model = model ? sl_model_find(model) : NULL;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const char *text = json_string_value(json_object_get(saved, of[k].name));
        const char *before = text ? text : of[k].before;
        const char *now = sl_config_word(config, of[k].name).text;
        if (sl_config_is_given_either(given, of[k].name) && sl_config_has(&before_it, of[k].name) &&
            strcmp(meaning_of(of[k].name, before, saved), meaning_of(of[k].name, now, saved)) != 0)
            return sl_error(SL_ERR_USAGE, "--%s %s: %s has %s (expected the same)", of[k].name, now,
                            config->files.resume, before);
    }
    return 0;
}

/* Refuse another norm than the one of the features that the weights were trained on. */
static int check_norm(const struct sl_config *config, const bool *given, const json_t *saved)
{
    static const char name[] = "normalize-features";
    const char *before = json_string_value(json_object_get(saved, name));
    if (!sl_config_is_given(given, name) || !before ||
        sl_choice_find(SL_CHOICES(SL_FEATURE_NORMS), before) ==
            (int)config->features.normalize_features)
        return 0;
    return sl_error(SL_ERR_USAGE, "--%s %s: %s has %s (expected the same)", name,
                    sl_config_word(config, name).text, config->files.resume, before);
}

/* Refuse another projection than the one of the features that the weights were trained on. Programs
 * without the option had none. */
static int check_projection(const struct sl_config *config, const bool *given, const json_t *saved)
{
    static const char name[] = "project-features";
    const json_int_t before = json_integer_value(json_object_get(saved, name)),
                     seed = json_integer_value(json_object_get(saved, "seed"));
    if (sl_config_is_given(given, name) && before != config->features.project_features)
        return sl_error(SL_ERR_USAGE, "--%s %lld: %s has %lld (expected the same)", name,
                        (long long)config->features.project_features, config->files.resume,
                        (long long)before);
    if (before > 0 && sl_config_is_given(given, "seed") && seed != config->training.seed)
        return sl_error(SL_ERR_USAGE,
                        "--seed %lld: the features of %s were projected with seed %lld (expected "
                        "the same)",
                        (long long)config->training.seed, config->files.resume, (long long)seed);
    return 0;
}

/* Refuse another task, another decoder, whose parameters may fit all the same, and other links than
 * those that training has not seen. Programs without these options had labels of vertices. */
static int check_links(const struct sl_config *config, const bool *given, const json_t *saved)
{
    static const struct {
        const char *name, *before;
        bool word;
    } of[] = {{"task", "vertices", true}, {"decoder", "dot", true}, {"split-edges", "", false}};
    const char *task = json_string_value(json_object_get(saved, "task"));
    const bool links = task && strcmp(task, of[0].before) != 0;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const char *text = json_string_value(json_object_get(saved, of[k].name));
        const char *before = text ? text : of[k].before;
        const struct sl_word word = sl_config_word(config, of[k].word ? of[k].name : "task");
        const struct sl_text own = sl_config_text(config, of[k].word ? "split-edges" : of[k].name);
        const char *now = of[k].word ? word.text : own.text;
        if (sl_config_is_given(given, of[k].name) && strcmp(before, now) != 0)
            return sl_error(SL_ERR_USAGE, "--%s %s: %s has %s (expected the same)", of[k].name, now,
                            config->files.resume, *before ? before : "none");
    }
    const json_int_t seed = json_integer_value(json_object_get(saved, "split-seed"));
    if (links && sl_config_is_given(given, "split-seed") && seed != config->splits.split_seed)
        return sl_error(SL_ERR_USAGE, "--split-seed %lld: %s has %lld (expected the same)",
                        (long long)config->splits.split_seed, config->files.resume,
                        (long long)seed);
    return 0;
}

int sl_resume_read(struct sl_config *config, const bool *given, int ranks,
                   struct sl_checkpoint *checkpoint)
{
    int code = sl_checkpoint_read(config->files.resume, checkpoint);
    if (code)
        return code;
    const json_t *saved = json_object_get(checkpoint->description, "configuration");
    bool skip[SL_MOST_OPTIONS];
    for (int o = 0; sl_config_options[o].name; o++)
        skip[o] = given[o] || !is_kept(&sl_config_options[o]);
    if (check_heads(config, given, saved) || check_layers(config, given, saved) ||
        check_norm(config, given, saved) || check_projection(config, given, saved) ||
        check_links(config, given, saved))
        return SL_ERR_USAGE;
    leave_others(config, given, saved, skip);
    code = sl_options_from_json(sl_config_options, config, saved, skip, config->files.resume);
    if (code)
        return code;
    settle_distribution(config, given, ranks);
    settle_partial_sums(config, given, saved);
    settle_keep(config, given);
    code = settle_others(config, given, ranks);
    settle_rows(config, given, saved);
    return code;
}
