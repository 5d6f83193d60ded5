/* Stop after every step of epochs of batches, in one process for each rank. Each run goes on from
 * the checkpoint of the run before, is asked to stop at once, and so makes one step. The last
 * checkpoint and the losses of all epochs have the bits of a run that was never stopped.
 * tests/batches.sh runs this program on one rank and on two. `every_step TEXT` takes the cases
 * alone whose options have TEXT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/trained.h"
#include "train/trainer.h"

enum { EPOCHS = 2, MOST_RUNS = 200 };

struct checking {
    struct sl_runtime *rt;
    struct sl_source source;
    const char *options;
    char whole[256], parts[256]; /* checkpoints */
    double loss[EPOCHS + 1];     /* of the run that was never stopped */
    int between;                 /* checkpoints in the middle of an epoch */
    bool same;                   /* all losses so far */
    bool ended;                  /* the last run did its last epoch */
};

/* Train from a checkpoint (NULL: from the beginning) to the next step, or to the end. Return the
 * step of the optimizer that the run ends after. */
static int64_t train(struct checking *k, const char *from, const char *to, bool stops)
{
    static const volatile sig_atomic_t asked = 1;
    struct sl_config config = {0};
    struct sl_checkpoint checkpoint = {0};
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    char line[480];
    snprintf(line, sizeof line, "--hidden 7 --tiles 5 --epochs %d --checkpoint %s %s", EPOCHS, to,
             k->options);
    sl_test_configure(&config, line);
    k->rt->stages = sl_config_stages(&config);
    if ((from && sl_checkpoint_read(from, &checkpoint)) ||
        sl_trainer_create(&trainer, k->rt, &k->source, &config, from ? &checkpoint : NULL) ||
        sl_report_open(&report, NULL, false, true))
        sl_fatal("%s: %s", k->options, sl_error_message());
    trainer.records.stop_requested = stops ? &asked : NULL;
    if (sl_trainer_run(&trainer, &report, &outcome))
        sl_fatal("%s: %s", k->options, sl_error_message());
    for (int64_t e = trainer.start.first_epoch; e <= outcome.epochs; e++) {
        const double loss = sl_records_of(&trainer.records, e)->train_loss;
        k->same = k->same && (!stops || loss == k->loss[e]);
        k->loss[e] = loss;
    }
    k->between += outcome.unfinished.steps > 0;
    k->ended = outcome.epochs == EPOCHS;
    const int64_t last = outcome.epochs + (outcome.unfinished.steps > 0);
    const int64_t updates = sl_records_of(&trainer.records, last)->updates;
    sl_report_close(&report);
    sl_outcome_free(&outcome);
    sl_trainer_destroy(&trainer);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_runtime_agree(k->rt, 0); /* rank 0 has written the file */
    return updates;
}

static bool same_tensors(const struct sl_checkpoint *a, const struct sl_checkpoint *b)
{
    bool same = a->count == b->count && a->count > 0;
    for (int t = 0; same && t < a->count; t++) {
        const struct sl_tensor *x = &a->tensors[t], *y = sl_checkpoint_find(b, x->name);
        same = y && x->rows == y->rows && x->cols == y->cols &&
               memcmp(x->data, y->data, (size_t)(x->rows * x->cols) * sizeof *x->data) == 0;
    }
    return same;
}

static bool same_counters(const struct sl_checkpoint *a, const struct sl_checkpoint *b)
{
    static const char *const names[] = {"epoch", "updates", "best_epoch", "best_value"};
    bool same = !json_object_get(b->description, "unfinished");
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        same = same && json_equal(json_object_get(a->description, names[n]),
                                  json_object_get(b->description, names[n]));
    return same;
}

static bool same_files(const struct checking *k)
{
    struct sl_checkpoint a, b;
    if (sl_checkpoint_read(k->whole, &a) || sl_checkpoint_read(k->parts, &b))
        sl_fatal("%s", sl_error_message());
    const bool same = same_tensors(&a, &b) && same_counters(&a, &b);
    sl_checkpoint_free(&a);
    sl_checkpoint_free(&b);
    return same;
}

static bool check(struct checking *k)
{
    k->same = true;
    k->between = 0;
    const int64_t steps = train(k, NULL, k->whole, false);
    int runs = 0;
    for (k->ended = false; !k->ended && runs < MOST_RUNS; runs++)
        train(k, runs ? k->parts : NULL, k->parts, true);
    /* The last run may have no steps but such without a training vertex. */
    const bool good =
        k->same && (runs == steps || runs == steps + 1) && k->between >= EPOCHS && same_files(k);
    if (k->rt->rank == 0)
        printf("%s  %s: %d steps, %d runs, %d checkpoints within epochs%s\n",
               good ? "ok  " : "FAIL", k->options, (int)steps, runs, k->between,
               k->same ? "" : "; other losses");
    return good;
}

int main(int argc, char **argv)
{
    /* Some on one rank alone, some without groups, and some in two groups of one rank. */
    enum { ALONE = 1, TOGETHER = 2, GROUPS = 4 };
    static const struct {
        const char *options;
        int where;
    } rows[] = {
        {"--batches co:3 --dropout 0.3", ALONE | TOGETHER},
        {"--batches co:4 --dropout 0.3 --max-hop 1", ALONE | GROUPS},
        {"--batches co:3 --dropout 0.3 --fanout 2 --resample 1", ALONE | GROUPS},
        {"--batches co:3 --fanout 2 --resample 2 --model gat --heads 2", ALONE},
        {"--batches clusters:7,2 --dropout 0.3", ALONE | GROUPS},
        {"--batches clusters:7,3 --model sage --schedule cosine --clip-norm 1", ALONE | TOGETHER},
        {"--batches clusters:5,2 --model resgcn --layers 3 --block-norm batch", ALONE},
        {"--batches clusters:5,2 --norm-layers batch --dropout 0.3", ALONE},
        {"--batches co:3 --patience 2 --eval-every 1 --layers 3", ALONE | GROUPS},
        {"--batches co:30 --dropout 0.3", ALONE},
        {"--batches co:3 --dropout 0.3 --distribution vertex-cut", ALONE | TOGETHER},
    };
    static const struct sl_fixture fixture = {SL_FIXTURE("steps", 83, 17, 5, 4), .isolated = 3,
                                              .form = SL_FEATURES_DENSE, .seed = 91};
    struct sl_runtime rt;
    const char *folder = getenv("TMPDIR");
    int cases = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    struct sl_dataset data = sl_fixture_open(&fixture);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int where = ALONE; where <= GROUPS; where *= 2) {
            char line[256];
            struct checking k = {.rt = &rt, .options = line};
            if (!(rows[r].where & where) || (where == ALONE) != (rt.ranks == 1) ||
                (argc > 1 && !strstr(rows[r].options, argv[1])))
                continue;
            snprintf(line, sizeof line, "%s%s", rows[r].options,
                     where == GROUPS ? " --groups 2x1" : "");
            snprintf(k.whole, sizeof k.whole, "%s/whole", folder ? folder : "/tmp");
            snprintf(k.parts, sizeof k.parts, "%s/parts", folder ? folder : "/tmp");
            if (sl_source_of(&data, &k.source))
                sl_fatal("%s", sl_error_message());
            failures += !check(&k);
            cases++;
            sl_source_close(&k.source);
        }
    sl_fixture_close(&data);
    if (rt.rank == 0)
        printf("%d cases on %d rank%s, %d failed\n", cases, rt.ranks, rt.ranks == 1 ? "" : "s",
               failures);
    int64_t all = failures;
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all > 0;
}
