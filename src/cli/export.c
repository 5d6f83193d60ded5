/* starling export: a trained model for programs that apply it without Starling. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "deploy/onnx.h"
#include "run/checkpoint_program.h"

struct config {
    char *onnx, *checkpoint;
    bool quiet;
};

#define FIELD(name) offsetof(struct config, name)

static const struct sl_option options[] = {
    {"onnx", SL_OPTION_STRING, FIELD(onnx), NULL, 0, 0, NULL, "FILE",
     "write the model to FILE as ONNX (opset 18), with the output logits. Its inputs are features, "
     "and edge_source and edge_target (int64), u and v of u -> v. Each edge is there once, without "
     "the self-loops that the model adds. The model may read edge_weight, where edges of the "
     "training had weights, edge_features or edge_type",
     "Files"},
    {"checkpoint", SL_OPTION_STRING, FIELD(checkpoint), NULL, 0, 0, NULL, "FILE",
     "write a checkpoint to FILE for libstarling-predict: the weights that predictions use, "
     "without "
     "the optimizer's state; also of a checkpoint of an older version",
     "Files"},
    {"quiet", SL_OPTION_FLAG, FIELD(quiet), "no", 0, 0, NULL, NULL, "print nothing but errors",
     "Files"},
    {0},
};

/* Refuse a command line that writes nothing, or writes over the checkpoint. */
static int check(const struct config *config, const char *path)
{
    const char *const files[] = {config->onnx, config->checkpoint};
    if (!config->onnx && !config->checkpoint)
        return sl_error(SL_ERR_USAGE, "expected --onnx FILE or --checkpoint FILE");
    for (int f = 0; f < 2; f++)
        if (files[f] && !*files[f])
            return sl_error(SL_ERR_USAGE, "--%s is empty (expected a file to write)",
                            f ? "checkpoint" : "onnx");
    for (int f = 0; f < 2; f++)
        if (sl_file_same(files[f], path))
            return sl_error(SL_ERR_USAGE,
                            "--%s %s is the file that is read (expected another file)",
                            f ? "checkpoint" : "onnx", files[f]);
    if (sl_file_same(config->onnx, config->checkpoint))
        return sl_error(SL_ERR_USAGE, "--onnx and --checkpoint name one file (expected two)");
    return 0;
}

/* ---- The checkpoint ---- */

/* Return the kind of numbers at the end of a tensor's name: "best", "moment1", "moment2", or NULL
 * for a weight. Late messages and state of sub-models are no tensors of layers. */
static const char *kind_of(const struct sl_tensor *tensor)
{
    static const char *const kinds[] = {"best", "moment1", "moment2"};
    const char *end = strrchr(tensor->name, '.');
    for (size_t k = 0; end && k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(end + 1, kinds[k]) == 0)
            return kinds[k];
    return strncmp(tensor->name, "layer.", 6) == 0 ? NULL : "other";
}

/* Keep the weights that predictions use, under the names of weights. `best`: those of the best
 * epoch. The tensors of the checkpoint stay its own. */
static int keep_weights(const struct sl_checkpoint *all, bool best, struct sl_checkpoint *kept)
{
    kept->tensors = calloc((size_t)all->count + 1, sizeof *kept->tensors);
    if (!kept->tensors)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d tensors", all->count);
    for (int t = 0; t < all->count; t++) {
        char name[256];
        if (kind_of(&all->tensors[t]))
            continue;
        snprintf(name, sizeof name, "%s.best", all->tensors[t].name);
        const struct sl_tensor *found = best ? sl_checkpoint_find(all, name) : NULL;
        kept->tensors[kept->count] = all->tensors[t];
        if (found)
            kept->tensors[kept->count].data = found->data;
        kept->count++;
    }
    return 0;
}

/* Say that the best epoch is the last one. */
static void set_epoch(json_t *description)
{
    json_t *best = json_object_get(description, "best_epoch");
    json_object_set(description, "epoch", best);
    json_object_set(description, "kept_epoch", best);
    json_object_del(description, "unfinished");
}

/* Return the description of the small checkpoint, a new object. NULL: no memory (sl_error set). */
static json_t *describe(const struct sl_bound *bound, const char *name)
{
    const long failures = sl_json_failures();
    json_t *described = sl_checkpoint_describe_program(&bound->checkpoint, name),
           *description = described ? json_copy(described) : NULL;
    json_decref(described);
    if (description && sl_bound_uses_best(bound))
        set_epoch(description);
    json_object_del(description, "late");
    if (description && sl_json_failures() == failures)
        return description;
    json_decref(description);
    sl_error(SL_ERR_SYSTEM, "%s: no memory for its description", name);
    return NULL;
}

static int write_checkpoint(const struct sl_bound *bound, const char *name, const char *path)
{
    struct sl_checkpoint kept = {.description = describe(bound, name)};
    if (!kept.description)
        return SL_ERR_SYSTEM;
    int code = keep_weights(&bound->checkpoint, sl_bound_uses_best(bound), &kept);
    if (!code)
        code = sl_checkpoint_write(&kept, path);
    free(kept.tensors);
    json_decref(kept.description);
    return code;
}

/* ---- The command ---- */

static int export_model(const struct config *config, const char *path)
{
    struct sl_bound bound = {0};
    int code = check(config, path);
    if (!code)
        code = sl_checkpoint_read(path, &bound.checkpoint);
    if (!code)
        code = sl_error_about(sl_checkpoint_program(&bound.checkpoint, path, &bound.program), path);
    if (!code)
        code = sl_bound_find(&bound, path);
    if (!code && config->onnx)
        code = sl_onnx_write(&bound, config->onnx);
    if (!code && config->checkpoint)
        code = write_checkpoint(&bound, path, config->checkpoint);
    if (!code && !config->quiet)
        printf("%s: %s of %d steps, from %lld features to %lld %s\n", path, bound.program.model,
               bound.program.count, (long long)bound.program.features,
               (long long)bound.program.outputs, sl_program_output_name(bound.program.output));
    sl_bound_free(&bound);
    return code;
}

static int run_export(int argc, char **argv)
{
    struct config config = {0};
    int positionals;
    int code = sl_command_parse(&sl_command_export, &config, argc, argv, 1, 1, &positionals, NULL);
    if (!code)
        code = export_model(&config, argv[0]);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_export = {
    .name = "export",
    .synopsis = "CHECKPOINT --onnx FILE",
    .summary = "Write a trained model for other programs: as ONNX, or for libstarling-predict",
    .options = options,
    .run = run_export,
};
