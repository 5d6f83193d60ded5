/* starling predict: predictions and embeddings of every vertex of a dataset, by a trained model. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/apply_run.h"
#include "cli/commands.h"
#include "cli/predict_links.h"
#include "core/error.h"
#include "data/formats/npy.h"
#include "data/identities.h"
#include "run/apply.h"

struct config {
    char *output, *table, *embeddings, *logits, *probabilities, *links;
    struct sl_apply_run run;
};

#define FIELD(name) offsetof(struct config, name)

static const struct sl_option options[] = {
    {"output", SL_OPTION_STRING, FIELD(output), NULL, 0, 0, NULL, "FILE",
     "write the prediction of every vertex to FILE (.npy): its class (int32); of several labels, 1 "
     "for each with a probability over 1/2, else 0 (int32); or its numbers (float32). Where the "
     "dataset has vertex_ids, write these to FILE.ids.npy",
     "Files"},
    {"table", SL_OPTION_STRING, FIELD(table), NULL, 0, 0, NULL, "FILE",
     "write a line per vertex to FILE: what the dataset calls it, its predicted class or labels "
     "and, where they have names, these, with tabs between them; or its numbers",
     "Files"},
    {"embeddings", SL_OPTION_STRING, FIELD(embeddings), NULL, 0, 0, NULL, "FILE",
     "write the output of the last hidden layer to FILE (.npy, float32); of a model of links, the "
     "rows "
     "that the decoder reads",
     "Files"},
    {"links", SL_OPTION_STRING, FIELD(links), NULL, 0, 0, NULL, "FILE",
     "with a model of links: score the pairs of FILE. A .npy (k, 2) has numbers of vertices; a "
     "text "
     "has a source and a target in each line, as the dataset calls them. --output then has a score "
     "for each pair, --table a line, --probabilities the scores' sigmoids",
     "Files"},
    {"logits", SL_OPTION_STRING, FIELD(logits), NULL, 0, 0, NULL, "FILE",
     "write the output of the last layer to FILE (.npy, float32)", "Files"},
    {"probabilities", SL_OPTION_STRING, FIELD(probabilities), NULL, 0, 0, NULL, "FILE",
     "write the probability of every class to FILE (.npy, float32); of several labels, that of "
     "each",
     "Files"},
    SL_APPLY_RUN_OPTIONS(FIELD(run)),
    {0},
};

/* Write `matrix` (vertices, cols) on rank 0. With `loss`, write probabilities of the logits. */
static int write_matrix(struct sl_apply *apply, struct sl_matrix *matrix,
                        const struct sl_loss *loss, const char *path)
{
    struct sl_runtime *rt = apply->trainer.rt;
    if (!path)
        return 0;
    const int64_t shape[] = {apply->source.vertices, matrix->cols};
    float *all = sl_apply_collect(apply, matrix);
    int code = 0;
    if (rt->rank == 0 && !all)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the %" PRId64 " rows of %s", shape[0], path);
    if (all && loss)
        sl_apply_find_probabilities(loss, all, shape[0], shape[1], all);
    if (all)
        code = sl_npy_write(path, "<f4", sizeof(float), 2, shape, all);
    free(all);
    return sl_runtime_agree(rt, code);
}

/* ---- Predictions ---- */

/* Predictions of several columns: labels of 0 or 1, or numbers. */
struct rows {
    int64_t columns;
    const int32_t *label; // (vertices, columns), or NULL
    const float *number;  // (vertices, columns), or NULL
};

/* Print the labels (columns) that are 1, with commas between them: their numbers, or their names in
 * `named`. */
static bool print_list(FILE *file, int64_t columns, const int32_t *label,
                       const struct sl_identities *named)
{
    const char *before = "";
    bool good = true;
    for (int64_t j = 0; good && j < columns; j++) {
        if (!label[j])
            continue;
        good = named && j < named->classes
                   ? fprintf(file, "%s%s", before, named->class_name[j]) >= 0
                   : fprintf(file, "%s%" PRId64, before, j) > 0;
        before = ",";
    }
    return good;
}

/* Print a vertex's labels, "3,17", and after a tab their names, if they have names. */
static bool print_labels(FILE *file, const struct sl_identities *identities, int64_t vertex,
                         const void *predictions)
{
    const struct rows *rows = predictions;
    const int32_t *label = rows->label + vertex * rows->columns;
    const bool good = print_list(file, rows->columns, label, NULL);
    if (identities->classes == 0)
        return good;
    return good && fputc('\t', file) != EOF && print_list(file, rows->columns, label, identities);
}

static bool print_numbers(FILE *file, const struct sl_identities *identities, int64_t vertex,
                          const void *predictions)
{
    const struct rows *rows = predictions;
    bool good = true;
    (void)identities;
    for (int64_t j = 0; good && j < rows->columns; j++)
        good = fprintf(file, "%s%.9g", j ? "\t" : "",
                       (double)rows->number[vertex * rows->columns + j]) > 0;
    return good;
}

/* An array of predictions of all vertices, and how the table prints it. */
struct output {
    const char *descr; /* NumPy type, int32 or float32 */
    int dims;
    const void *data, *predictions;
    sl_print_prediction *print;
};

static int write_output(const struct config *config, const struct sl_identities *identities,
                        const int64_t shape[2], const struct output *o)
{
    int code = 0;
    if (config->output)
        code = sl_identities_write(identities, config->output, o->descr, o->dims, shape, o->data);
    if (!code && config->table)
        code = sl_identities_tabulate(identities, o->print, o->predictions, config->table);
    return code;
}

/* Write the predictions that the loss derives from logits. `all` and `work` have shape `shape`. */
static int write_all(const struct config *config, const struct sl_identities *identities,
                     const int64_t shape[2], const struct sl_loss *loss, const float *all,
                     int32_t *work)
{
    if (loss->form == SL_TARGET_CLASS) {
        sl_apply_find_classes(all, shape[0], shape[1], work);
        return write_output(config, identities, shape,
                            &(struct output){"<i4", 1, work, work, sl_identities_print_class});
    }
    if (!loss->classes) {
        const struct rows numbers = {.columns = shape[1], .number = all};
        return write_output(config, identities, shape,
                            &(struct output){"<f4", 2, all, &numbers, print_numbers});
    }
    for (int64_t k = 0; k < shape[0] * shape[1]; k++)
        work[k] = all[k] > 0.0f;
    const struct rows labels = {.columns = shape[1], .label = work};
    return write_output(config, identities, shape,
                        &(struct output){"<i4", 2, work, &labels, print_labels});
}

static int write_predictions(struct sl_apply *apply, const struct config *config)
{
    struct sl_runtime *rt = apply->trainer.rt;
    const int64_t shape[] = {apply->source.vertices, apply->logits->cols};
    if (!config->output && !config->table)
        return 0;
    float *all = sl_apply_collect(apply, apply->logits);
    int32_t *work = rt->rank == 0 ? malloc((size_t)(shape[0] * shape[1]) * sizeof *work + 1) : NULL;
    int code = 0;
    if (rt->rank == 0)
        code = all && work
                   ? write_all(config, &apply->named, shape,
                               apply->trainer.whole.graph.objective.loss, all, work)
                   : sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " predictions", shape[0]);
    free(all);
    free(work);
    return sl_runtime_agree(rt, code);
}

static void print_score(const char *name, double value)
{
    printf("%s ", name);
    if (isnan(value))
        printf("-");
    else
        printf("%.4f", value);
}

/* Refuse files that the model has nothing for. */
static int check_links(const struct sl_apply *apply, const struct config *config)
{
    const bool links = apply->trainer.whole.graph.links != NULL;
    const char *file = config->output          ? "output"
                       : config->table         ? "table"
                       : config->probabilities ? "probabilities"
                                               : NULL;
    if (config->links && !links)
        return sl_error(SL_ERR_USAGE,
                        "--links %s: the model predicts labels of vertices (expected a "
                        "model of --task links)",
                        config->links);
    if (config->links && !file)
        return sl_error(SL_ERR_USAGE,
                        "--links %s: expected --output, --table or --probabilities "
                        "with it",
                        config->links);
    if (links && file && !config->links)
        return sl_error(SL_ERR_USAGE,
                        "--%s: the model scores pairs of vertices (expected --links "
                        "FILE with it; --embeddings writes a row for each vertex)",
                        file);
    return 0;
}

static int write_all_files(const void *command, struct sl_apply *apply)
{
    const struct config *config = command;
    const struct sl_outcome *outcome = &apply->outcome;
    const struct sl_loss *loss = apply->trainer.whole.graph.objective.loss;
    const bool links = apply->trainer.whole.graph.links != NULL;
    int code = check_links(apply, config);
    if (!code && links)
        code = sl_predict_links(apply,
                                &(struct sl_predict_links){config->links, config->output,
                                                           config->table, config->probabilities});
    if (!code && !links)
        code = config->probabilities && !loss->classes
                   ? sl_error(SL_ERR_USAGE,
                              "--probabilities: the model predicts numbers (expected a model of "
                              "classes; --output writes the numbers)")
                   : 0;
    if (!code && !links)
        code = write_predictions(apply, config);
    if (!code)
        code =
            write_matrix(apply, links ? apply->logits : &apply->hidden, NULL, config->embeddings);
    if (!code)
        code = write_matrix(apply, apply->logits, NULL, config->logits);
    if (!code && !links)
        code = write_matrix(apply, apply->logits, loss, config->probabilities);
    if (!code && apply->trainer.rt->rank == 0 && !config->run.talk.quiet) {
        printf("%s: ", outcome->metric->name);
        print_score("training", outcome->score.of[SL_SPLIT_TRAIN]);
        print_score(", validation", outcome->score.of[SL_SPLIT_VAL]);
        print_score(", test", outcome->score.of[SL_SPLIT_TEST]);
        printf("\n");
    }
    return code;
}

static int run_predict(int argc, char **argv)
{
    struct config config = {0};
    int positionals;
    bool given[SL_MOST_OPTIONS];
    int code =
        sl_command_parse(&sl_command_predict, &config, argc, argv, 2, 2, &positionals, given);
    const struct sl_apply_options apply = {.embeddings = config.embeddings != NULL,
                                           .names = config.output || config.table || config.links,
                                           .output = config.output};
    if (!code)
        code = sl_apply_run(&config.run, &sl_command_predict, &config, given, argv, apply,
                            write_all_files);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_predict = {
    .name = "predict",
    .synopsis = "CHECKPOINT DATASET [--OPTION ...]",
    .summary = "Apply a trained model to every vertex of DATASET",
    .options = options,
    .run = run_predict,
    .on_ranks = true,
};
