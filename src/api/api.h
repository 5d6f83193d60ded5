/* What the functions of include/starling.h share. */
#ifndef SL_API_API_H
#define SL_API_API_H

#include <locale.h>
#include <stdbool.h>

#include "recipe/config.h"
#include "run/apply.h"
#include <starling.h>

struct starling_graph {
    struct sl_source source; /* whose arrays are the caller's, or its own of a file */
    bool settled;            /* its sizes are known */
};

struct starling_options {
    struct sl_config config;     /* as far as options are set: to check them */
    char *text[SL_MOST_OPTIONS]; /* of each row of the table; NULL: not set */
};

struct starling_model {
    struct sl_checkpoint checkpoint;
    struct starling_result result;
    char *description;
};

struct starling_prediction {
    int64_t rows, columns, label_columns, hidden;
    float *output[STARLING_EMBEDDINGS + 1]; // by enum starling_output; NULL: not there
    int32_t *classes;                       // (rows, label_columns), or NULL
    struct starling_result result;
};

/* Begin a call that needs ranks: start MPI where it is due, and keep other calls out. The call
 * prints nothing before its sl_talk. Return 0, STARLING_ERR_USAGE (another call is on its way), or
 * a code of sl_runtime_hold_mpi. After 0, call sl_api_leave. */
int sl_api_enter(void);
void sl_api_leave(void);

/* The locale of the program, for its callbacks; in a call the thread has the locale "C". */
locale_t sl_api_locale(void);

/* Only keep other calls out. STARLING_ERR_USAGE likewise. */
int sl_api_lock(void);

/* The same code on all ranks (sl_runtime_agree). */
int sl_api_agree(int code);

/* Set *config to the options, and `given` (SL_MOST_OPTIONS) to those that are set; `options` may be
 * NULL. SL_ERR_SYSTEM; sl_options_free in either case. */
int sl_api_configure(const struct starling_options *options, struct sl_config *config, bool *given);

/* Refuse options that a file of --config has and that are not of the library. SL_ERR_USAGE. */
int sl_api_check(const struct sl_config *config);

/* Return whether the program itself has set the option `quiet` to yes. Without this option, a call
 * is quiet, but notes once in a process that StarPU leaves cores idle. */
bool sl_api_silent(const struct sl_config *config, const bool *given);

/* Find the sizes of a graph, once. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_api_settle(struct starling_graph *graph);

/* The accuracies and scores of an outcome; other members are 0. */
struct starling_result sl_api_result(const struct sl_outcome *outcome);

#endif
