/* Runs of batches on small graphs, for tests of their steps and of their memory. */
#ifndef SL_TESTS_BATCH_RUN_H
#define SL_TESTS_BATCH_RUN_H

#include "codelets/optimizer.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

static const struct sl_optimizer_step still = {.method = SL_SGD};

static const struct sl_fixture fixtures[] = {
    {SL_FIXTURE("undirected", 97, 19, 5, 4), .isolated = 3, .form = SL_FEATURES_DENSE, .seed = 81},
    {SL_FIXTURE("directed, weighted, sparse features", 131, 23, 4, 3), .directed = true,
     .weighted = true, .self_loops = true, .form = SL_FEATURES_CSR, .unlabelled_train = true,
     .seed = 82},
    {SL_FIXTURE("identity", 61, 0, 3, 3), .form = SL_FEATURES_IDENTITY, .seed = 83},
};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

/* Open a run of 8 hidden columns and 3 tiles. */
static inline void open_run(struct sl_opened *run, const struct sl_dataset *data, const char *model,
                            const char *batches)
{
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--hidden 8 --tiles 3 %s --batches %s", model, batches);
    sl_opened_open(run, data, sl_run_parse(line));
}

/* Submit a step that leaves the weights as they are. NULL: this rank has none of it. */
static inline struct sl_network *step(struct sl_opened *run, int64_t epoch, int number,
                                      uint32_t update)
{
    struct sl_network *net = sl_batches_network(&run->trainer.batches, epoch, number, 0);
    if (!net)
        return NULL;
    net->step.epoch = (uint32_t)epoch;
    net->step.update = update;
    sl_network_train(net, &still);
    return net;
}

#endif
