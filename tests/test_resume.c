/* Training runs that end early, and that go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/log.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/runs.h"

/* ---- Early stopping ---- */

/* The epoch with the most right answers, the first of equals, and the epoch in which `patience` of
 * them have passed since. */
static void expect_stop(const struct sl_run *whole, int64_t patience, int64_t *best, int64_t *stop)
{
    *best = 1;
    for (*stop = 1; *stop <= whole->epochs; ++*stop) {
        if (whole->val_correct[*stop] > whole->val_correct[*best])
            *best = *stop;
        if (*stop - *best >= patience)
            return;
    }
    *stop = whole->epochs;
}

static void check_patience(const struct sl_dataset *data, int seed, int patience, bool *stopped)
{
    char line[SL_MOST_LINE];
    int64_t best, stop;
    const int length = snprintf(line, sizeof line,
                                "--lr 0.05 --seed %d --tiles 2 --eval-every 1 --epochs 40", seed);
    struct sl_run whole = sl_run_train(data, line, &(struct sl_around){0});
    expect_stop(&whole, patience, &best, &stop);
    const char *path = sl_running_path("stopped");
    snprintf(line + length, sizeof line - (size_t)length, " --patience %d --checkpoint %s",
             patience, path);
    struct sl_run patient = sl_run_train(data, line, &(struct sl_around){0});
    assert_int_equal(patient.epochs, stop);
    assert_int_equal(patient.outcome.best_epoch, best);
    /* What is saved is the last epoch, though more of them were submitted. */
    line[length] = 0;
    if (stop < 40) {
        struct sl_run rest = sl_run_train(data, line, &(struct sl_around){.resume = path});
        assert_int_equal(rest.first, stop + 1);
        sl_run_same(&whole, &rest, stop + 1, line);
        sl_run_free(&rest);
    }
    assert_int_equal(unlink(path), 0);
    snprintf(line + length, sizeof line - (size_t)length, " --epochs %d", (int)best);
    struct sl_run until_best = sl_run_train(data, line, &(struct sl_around){0});
    sl_run_same_parameters(&patient, &until_best, line);
    assert_true(patient.outcome.val_accuracy == until_best.outcome.val_accuracy);
    assert_true(patient.outcome.test_accuracy == until_best.outcome.test_accuracy);
    stopped[stop < 40] = true;
    sl_run_free(&whole);
    sl_run_free(&patient);
    sl_run_free(&until_best);
}

static void test_patience(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    bool stopped[2] = {false, false};
    for (int seed = 1; seed <= 6; seed++) {
        check_patience(&data, seed, 1, stopped);
        check_patience(&data, seed, 4, stopped);
        check_patience(&data, seed, 25, stopped);
    }
    assert_true(stopped[0] && stopped[1]); /* the seeds show both */
    sl_fixture_close(&data);
}

/* A request to stop ends the run with the epoch under way, and with its parameters. */
static void test_stop_request(void **state)
{
    (void)state;
    const volatile sig_atomic_t requested = 1;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_run stopped =
        sl_run_train(&data, "--epochs 5000", &(struct sl_around){.stop = &requested});
    assert_true(stopped.outcome.stopped);
    assert_int_equal(stopped.epochs, 1);
    struct sl_run same = sl_run_train(&data, "--epochs 1", &(struct sl_around){0});
    assert_false(same.outcome.stopped);
    sl_run_same_parameters(&stopped, &same, "stopped on request");
    struct sl_run patient =
        sl_run_train(&data, "--epochs 5000 --patience 10", &(struct sl_around){.stop = &requested});
    assert_int_equal(patient.epochs, 1);
    assert_int_equal(patient.outcome.best_epoch, 1);
    sl_run_same_parameters(&patient, &same, "stopped on request, with patience");
    sl_run_free(&patient);
    sl_run_free(&stopped);
    sl_run_free(&same);
    sl_fixture_close(&data);
}

/* ---- Resuming ---- */

static void check_resume(const char *fixture, const char *options)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    const char *path = sl_running_path("half");
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct sl_run whole = sl_run_train(&data, line, &(struct sl_around){0});
    snprintf(line, sizeof line, "--epochs 10 %s", options);
    struct sl_run half = sl_run_train(&data, line, &(struct sl_around){.save = path});
    snprintf(line, sizeof line, "--epochs 20 %s", options);
    struct sl_run rest = sl_run_train(&data, line, &(struct sl_around){.resume = path});
    assert_int_equal(rest.first, 11);
    sl_run_same(&whole, &rest, 11, options);
    sl_run_free(&whole);
    sl_run_free(&half);
    sl_run_free(&rest);
    assert_int_equal(unlink(path), 0);
    sl_fixture_close(&data);
}

static void test_resume(void **state)
{
    (void)state;
    check_resume("undirected", "--tiles 3 --eval-every 10");
    check_resume("directed-weighted", "--optimizer sgd --lr 0.1 --eval-every 10");
    check_resume("identity", "--optimizer adamw --weight-decay 0.1 --layers 3 --eval-every 10");
    check_resume("directed", "--schedule step --step-epochs 6 --lr 0.1 --eval-every 10");
}

/* A run with patience that ended at epoch 10 goes on as if it had not, with its best parameters so
 * far: what is saved is the last epoch, beside the best one. */
static void test_resume_patience(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (int seed = 1; seed <= 5; seed++) {
        char line[SL_MOST_LINE], options[SL_MOST_LINE / 4];
        snprintf(options, sizeof options, "--patience 30 --lr 0.05 --seed %d", seed);
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct sl_run whole = sl_run_train(&data, line, &(struct sl_around){0});
        snprintf(line, sizeof line, "--epochs 10 %s --checkpoint %s", options,
                 sl_running_path("tenth"));
        struct sl_run half = sl_run_train(&data, line, &(struct sl_around){0});
        snprintf(line, sizeof line, "--epochs 19 %s", options);
        struct sl_run rest =
            sl_run_train(&data, line, &(struct sl_around){.resume = sl_running_path("tenth")});
        assert_int_equal(rest.first, 11);
        sl_run_same(&whole, &rest, 11, line);
        sl_run_free(&whole);
        sl_run_free(&half);
        sl_run_free(&rest);
    }
    assert_int_equal(unlink(sl_running_path("tenth")), 0);
    sl_fixture_close(&data);
}

/* A checkpoint on the way that cannot be written is reported, and the training goes on. */
static void test_checkpoint_on_the_way_fails(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    char line[SL_MOST_LINE];
    snprintf(line, sizeof line, "--epochs 20 --checkpoint %s/none/x --checkpoint-every 5",
             sl_running_dir);
    sl_log_enable(false);
    setenv("TMPDIR", sl_running_dir, 1);
    struct sl_run run = sl_run_train(&data, line, &(struct sl_around){.fails = true});
    /* The last one is elsewhere. */
    const char *saved = strstr(sl_error_message(), "; the model is in ");
    struct sl_checkpoint checkpoint;
    assert_non_null(saved);
    assert_int_equal(sl_checkpoint_read(strrchr(saved, ' ') + 1, &checkpoint), 0);
    assert_int_equal(json_integer_value(json_object_get(checkpoint.description, "epoch")), 20);
    sl_checkpoint_free(&checkpoint);
    unsetenv("TMPDIR");
    struct sl_run good = sl_run_train(&data, "--epochs 20", &(struct sl_around){0});
    sl_run_same(&run, &good, 1, "without its checkpoints");
    sl_run_free(&run);
    sl_run_free(&good);
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_stop_request),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_patience),
        cmocka_unit_test(test_checkpoint_on_the_way_fails),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
