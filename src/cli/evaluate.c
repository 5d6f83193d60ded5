/* starling evaluate: scores of a trained model on a dataset with labels. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/apply_run.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/log.h"
#include "data/identities.h"
#include "data/links.h"
#include "report/class_scores.h"
#include "run/apply.h"
#include "train/confusion.h"

struct config {
    const struct sl_metric *metric; /* NULL: the model's */
    char *json;
    struct sl_apply_run run;
};

static const void *find_metric(const char *name)
{
    return sl_metric_find(name);
}

#define FIELD(name) offsetof(struct config, name)

static const struct sl_option options[] = {
    {"metric", SL_OPTION_KIND, FIELD(metric), "auto", 0, 0, "auto" SL_METRIC_NAMES, "NAME",
     "measure beside the accuracy, as in starling train; auto: the model's", "Scores", find_metric},
    {"json", SL_OPTION_STRING, FIELD(json), NULL, 0, 0, NULL, "FILE",
     "write the scores, the confusion matrix and the scores of each class to FILE", "Files"},
    SL_APPLY_RUN_OPTIONS(FIELD(run)),
    {0},
};

static const char *const split_names[] = {
    [SL_SPLIT_TRAIN] = "train", [SL_SPLIT_VAL] = "val", [SL_SPLIT_TEST] = "test"};

/* ---- Scores ---- */

/* Set counts (classes, SL_TABLE_COUNTS) of a split from its confusion matrix, as
 * sl_kernel_label_counts does. */
static void count_labels(const json_t *rows, int split, double *counts)
{
    const size_t classes = json_array_size(rows);
    double all = 0.0;
    for (size_t c = 0; c < classes; c++)
        all += sl_class_scores_of(rows, c).vertices;
    for (size_t c = 0; c < classes; c++) {
        double *of = counts + c * SL_TABLE_COUNTS + split * SL_LABEL_COUNTS, column = 0.0;
        const double right = sl_confusion_count(rows, c, c),
                     row = sl_class_scores_of(rows, c).vertices;
        for (size_t j = 0; j < classes; j++)
            column += sl_confusion_count(rows, j, c);
        of[SL_TRUE_POSITIVE] = right;
        of[SL_FALSE_POSITIVE] = column - right;
        of[SL_FALSE_NEGATIVE] = row - right;
        of[SL_TRUE_NEGATIVE] = all - row - column + right;
    }
}

static json_t *score_or_null(double score)
{
    return isfinite(score) ? json_real(score) : json_null();
}

static void set_score(json_t *scores, const char *metric, int split, double score)
{
    json_t *of = json_object_get(scores, metric);
    if (!of) {
        of = json_object();
        json_object_set_new(scores, metric, of);
    }
    json_object_set_new(of, split_names[split], score_or_null(score));
}

/* Add the metrics that follow from the confusion matrix. */
static void add_class_metrics(json_t *scores, const json_t *confusion)
{
    static const struct sl_metric *const metrics[] = {&sl_metric_micro_f1, &sl_metric_macro_f1,
                                                      &sl_metric_label_accuracy};
    const int64_t classes =
        (int64_t)json_array_size(json_object_get(confusion, split_names[SL_SPLIT_TEST]));
    double *counts = calloc((size_t)(classes * SL_TABLE_COUNTS) + 1, sizeof *counts);
    if (!counts)
        sl_fatal("no memory for the counts of %" PRId64 " classes", classes);
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) {
        count_labels(json_object_get(confusion, split_names[s]), s, counts);
        for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++)
            set_score(scores, metrics[m]->name, s,
                      sl_label_metric_value(&metrics[m]->labels, SL_TARGET_CLASS, 1, &classes,
                                            (const double *const[]){counts}, s));
    }
    free(counts);
}

/* Return the scores of each class. `named`: names of the classes, if the dataset has any. */
static json_t *describe_classes(const json_t *rows, const struct sl_identities *named)
{
    json_t *list = json_array();
    for (size_t c = 0; c < json_array_size(rows); c++) {
        const struct sl_class_scores scores = sl_class_scores_of(rows, c);
        json_t *of = json_pack("{s:I, s:o, s:o, s:o}", "vertices", (json_int_t)scores.vertices,
                               "precision", score_or_null(scores.precision), "recall",
                               score_or_null(scores.recall), "f1", score_or_null(scores.f1));
        if ((int64_t)c < named->classes)
            json_object_set_new(of, "name", json_string(named->class_name[c]));
        json_array_append_new(list, of);
    }
    return list;
}

/* Set *confusion to the confusion matrices, or to NULL if the model has no classes, or more than
 * take a hundred MiB. Collective. */
static int describe_confusion(struct sl_apply *apply, json_t **confusion)
{
    enum { MOST_CLASSES = 1024 };
    const int code = sl_confusion_describe(&apply->trainer, MOST_CLASSES, confusion);
    const struct sl_model *model = apply->trainer.whole.network.model;
    const int64_t classes = model->layer[model->layers - 1].shape.out;
    if (!*confusion && classes > MOST_CLASSES &&
        apply->trainer.whole.graph.objective.loss->form == SL_TARGET_CLASS)
        sl_note("%" PRId64 " classes: no confusion matrix, and no scores that follow from it "
                "(expected at most %d classes)",
                classes, MOST_CLASSES);
    return code;
}

/* Return the document of all scores. `confusion`: matrices, which the document takes; NULL: none.
 */
static json_t *describe(struct sl_apply *apply, json_t *confusion)
{
    const struct sl_outcome *outcome = &apply->outcome;
    const struct sl_scores accuracies = sl_outcome_accuracies(outcome);
    json_t *document = json_object(), *scores = json_object();
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) {
        if (!apply->trainer.whole.graph.links)
            set_score(scores, "accuracy", s, accuracies.of[s]);
        if (outcome->metric != &sl_metric_accuracy)
            set_score(scores, outcome->metric->name, s, outcome->score.of[s]);
    }
    for (int k = 0; k < outcome->more.count; k++)
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
            set_score(scores, outcome->more.name[k], s, outcome->more.of[k].of[s]);
    if (confusion)
        add_class_metrics(scores, confusion);
    json_object_set_new(document, "scores", scores);
    if (confusion) {
        json_t *classes = json_object();
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
            json_object_set_new(
                classes, split_names[s],
                describe_classes(json_object_get(confusion, split_names[s]), &apply->named));
        json_object_set_new(document, "classes", classes);
        json_object_set_new(document, "confusion", confusion);
    }
    return document;
}

/* ---- What comes out ---- */

static void print_number(const json_t *value)
{
    if (json_is_number(value))
        printf(" %10.4f", json_number_value(value));
    else
        printf(" %10s", "-");
}

static void print_scores(const json_t *document)
{
    const char *name;
    json_t *of;
    printf("%-20s %10s %10s %10s\n", "", "training", "validation", "test");
    json_object_foreach(json_object_get(document, "scores"), name, of)
    {
        printf("%-20s", name);
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
            print_number(json_object_get(of, split_names[s]));
        putchar('\n');
    }
}

static void print_classes(const json_t *document)
{
    const json_t *classes = json_object_get(json_object_get(document, "classes"), "test");
    if (json_array_size(classes) == 0)
        return;
    printf("\n%-20s %10s %10s %10s %10s\n", "class, test", "vertices", "precision", "recall", "F1");
    for (size_t c = 0; c < json_array_size(classes); c++) {
        const json_t *of = json_array_get(classes, c);
        const char *name = json_string_value(json_object_get(of, "name"));
        if (name)
            printf("%-20s", name);
        else
            printf("%-20zu", c);
        printf(" %10" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(of, "vertices")));
        print_number(json_object_get(of, "precision"));
        print_number(json_object_get(of, "recall"));
        print_number(json_object_get(of, "f1"));
        putchar('\n');
    }
}

/* Print and write the scores. */
static int tell(const void *command, struct sl_apply *apply)
{
    const struct config *config = command;
    struct sl_runtime *rt = apply->trainer.rt;
    json_t *confusion;
    int code = describe_confusion(apply, &confusion);
    json_t *document = describe(apply, confusion);
    if (!code && rt->rank == 0 && sl_json_failures())
        code = sl_error(SL_ERR_SYSTEM, "no memory for the scores");
    if (rt->rank == 0 && !code && !config->run.talk.quiet) {
        print_scores(document);
        print_classes(document);
    }
    if (rt->rank == 0 && !code && config->json)
        code = sl_json_write(document, config->json);
    json_decref(document);
    return sl_runtime_agree(rt, code);
}

static int run_evaluate(int argc, char **argv)
{
    struct config config = {0};
    int positionals;
    bool given[SL_MOST_OPTIONS];
    int code =
        sl_command_parse(&sl_command_evaluate, &config, argc, argv, 2, 2, &positionals, given);
    if (!code)
        code = sl_file_probe(config.json);
    const struct sl_apply_options apply = {.metric = config.metric, .names = true, .scores = true};
    if (!code)
        code = sl_apply_run(&config.run, &sl_command_evaluate, &config, given, argv, apply, tell);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_evaluate = {
    .name = "evaluate",
    .synopsis = "CHECKPOINT DATASET [--OPTION ...]",
    .summary = "Score a trained model on the labels, or the links, of DATASET",
    .options = options,
    .run = run_evaluate,
    .on_ranks = true,
};
