/* Whole trainings on one rank, and what is left of them, for tests to compare. What fails, fails
 * the cmocka test that called. Two runs that should be one and the same are compared bit by bit. */
#ifndef SL_TESTS_RUNS_H
#define SL_TESTS_RUNS_H

#include <signal.h>

#include "data/dataset.h"
#include "train/trainer.h"

enum { SL_MOST_LINE = 512 };

/* Results of a run. */
struct sl_run {
    int64_t first, epochs; /* first and last epoch of this run */
    double *losses;        // (epochs + 1): of epoch e at [e], 0 before `first`
    double *val_correct;   // (epochs + 1): 0 where not evaluated
    int64_t count;         /* of parameters */
    float *parameters;     // (count): all layers'
    int64_t rows, classes;
    float *logits; // (rows, classes): of the last evaluation
    struct sl_outcome outcome;
};

/* How a run is started and ended beyond its configuration; all zero is the usual. */
struct sl_around {
    const char *resume, *save;         /* checkpoints */
    const volatile sig_atomic_t *stop; /* the stop flag */
    bool fails;                        /* the run must return an error */
};

/* The configuration of a command line. */
struct sl_config sl_run_parse(const char *line);

/* A trainer on a dataset. It takes the configuration over. */
struct sl_opened {
    struct sl_config config;
    struct sl_source source;
    struct sl_trainer trainer;
};
void sl_opened_open(struct sl_opened *opened, const struct sl_dataset *data,
                    struct sl_config config);
void sl_opened_close(struct sl_opened *opened);

/* The mean loss of the training vertices in the network's last step. */
double sl_network_train_loss(struct sl_network *net);

/* The caller frees the run. */
struct sl_run sl_run_train(const struct sl_dataset *data, const char *line,
                           const struct sl_around *around);
struct sl_run sl_run_train_fixture(const char *fixture, const char *line);
void sl_run_free(struct sl_run *run);

/* The same bits; of a run, from epoch `first` on. */
void sl_run_same_parameters(const struct sl_run *a, const struct sl_run *b, const char *what);
void sl_run_same(const struct sl_run *a, const struct sl_run *b, int64_t first, const char *what);

/* The largest relative difference of two curves (epochs + 1), and that of the losses of two runs.
 */
double sl_run_difference(const double *a, const double *b, int64_t epochs);
void sl_run_close(const struct sl_run *a, const struct sl_run *b, double tolerance,
                  const char *what);

#endif
