/* Training: the same steps as the program's, with a callback. */
#include <signal.h>
#include <stdlib.h>

#include "api/api.h"
#include "core/error.h"
#include "run/run.h"

struct listener {
    starling_callback *callback;
    void *context;
};

static volatile sig_atomic_t stop;  /* the current training is to stop */
static volatile sig_atomic_t asked; /* starling_stop was called since starling_stopped */

void starling_stop(int signal)
{
    (void)signal;
    asked = 1;
    stop = 1;
}

int starling_stopped(void)
{
    const int was = asked;
    asked = 0;
    return was;
}

static void tell(void *context, const struct sl_epoch_report *e)
{
    struct listener *listener = context;
    const struct starling_epoch epoch = {
        .epoch = e->epoch,
        .epochs = e->epochs,
        .loss = e->loss,
        .train_accuracy = e->train_accuracy,
        .val_accuracy = e->val_accuracy,
        .test_accuracy = e->test_accuracy,
        .train_score = e->score.of[SL_SPLIT_TRAIN],
        .val_score = e->score.of[SL_SPLIT_VAL],
        .test_score = e->score.of[SL_SPLIT_TEST],
        .seconds = e->seconds,
    };
    const locale_t own = uselocale(sl_api_locale());
    if (listener->callback(listener->context, &epoch))
        stop = 1;
    uselocale(own);
}

static struct starling_result result_of(const struct sl_outcome *outcome)
{
    struct starling_result result = sl_api_result(outcome);
    result.epochs = outcome->epochs;
    result.best_epoch = outcome->best_epoch;
    result.kept_epoch = outcome->kept_epoch;
    result.loss = outcome->loss;
    result.epoch_seconds = outcome->epoch_seconds_median;
    result.seconds = outcome->seconds;
    result.stopped = outcome->stopped;
    result.early = outcome->early;
    return result;
}

struct training {
    struct sl_train_run *run;
    const bool *given;
    struct listener *listener;
    struct starling_model *model;
};

static int train(void *argument)
{
    const struct training *training = argument;
    struct sl_train_run *run = training->run;
    int code = sl_train_open(run, training->given);
    if (!code)
        code = sl_train_load(run);
    if (code)
        return code;
    run->trainer.records.stop_requested = &stop;
    run->trainer.taken = &training->model->checkpoint;
    if (training->listener->callback) {
        run->report.listener = tell;
        run->report.context = training->listener;
    }
    sl_train_measure(run);
    sl_train_report_start(run);
    code = sl_trainer_run(&run->trainer, &run->report, &run->outcome);
    sl_guard_check(); /* check before the log gets the run's end */
    sl_train_sum_traffic(run);
    sl_train_report_end(run);
    training->model->result = result_of(&run->outcome);
    return sl_runtime_agree(&run->rt, code);
}

static int run_training(starling_graph *graph, const starling_options *options,
                        struct listener *listener, struct starling_model *model)
{
    struct sl_train_run run = {.path = graph->source.path, .graph = &graph->source};
    bool given[SL_MOST_OPTIONS];
    int code = sl_api_configure(options, &run.config, given);
    if (!code)
        code = sl_config_read_file(&run.config, given);
    if (!code)
        code = sl_api_check(&run.config);
    if (!code)
        code = sl_api_settle(graph);
    code = sl_api_agree(code);
    if (!code)
        code = sl_train_start(&run, given, sl_api_silent(&run.config, given));
    if (!code) {
        code = sl_runtime_guard(&run.rt, train, &(struct training){&run, given, listener, model});
        sl_train_stop(&run);
    }
    const int closed = sl_train_free(&run);
    return code ? code : sl_api_agree(closed); /* `code` is alike on all ranks */
}

int starling_train(starling_graph *graph, const starling_options *options,
                   starling_callback *callback, void *context, starling_model **model)
{
    struct listener listener = {.callback = callback, .context = context};
    *model = NULL;
    if (!graph)
        return sl_error(SL_ERR_USAGE, "training: the graph is NULL");
    int code = sl_api_enter();
    if (code)
        return code;
    stop = 0;
    if (asked)
        stop = 1;
    struct starling_model *new = calloc(1, sizeof *new);
    code = sl_api_agree(new ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a model"));
    if (!code)
        code = run_training(graph, options, &listener, new);
    if (new &&new->checkpoint.description && !sl_guard_failed())
        *model = new; /* a model exists, even if a file could not be written */
    else
        starling_model_free(new);
    sl_api_leave();
    return code;
}
