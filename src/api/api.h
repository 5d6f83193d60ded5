/* Shared by the functions of include/starling.h. */
#ifndef SL_API_API_H
#define SL_API_API_H

#include <locale.h>
#include <stdbool.h>

#include "recipe/config.h"
#include "run/apply.h"
#include <starling.h>

struct starling_graph {
    struct sl_source source; /* arrays are the caller's, or a file's that the graph owns */
    bool settled;            /* sizes are known */
};

struct starling_options {
    struct sl_config config;     /* options set so far, for checks */
    char *text[SL_MOST_OPTIONS]; /* text of each option of the table; NULL: not set */
};

struct starling_model {
    struct sl_checkpoint checkpoint;
    struct starling_result result;
    char *description;
};

struct starling_prediction {
    int64_t rows, columns, label_columns, hidden;
    float *output[STARLING_EMBEDDINGS + 1]; // by enum starling_output; NULL: none
    int32_t *classes;                       // (rows, label_columns), or NULL
    struct starling_result result;
};

/* Begin a call that needs ranks: start MPI if needed, and keep other calls out. The call prints
 * nothing before its sl_talk. Return 0, STARLING_ERR_USAGE (another call is on its way), or a code
 * of sl_runtime_hold_mpi. After 0, call sl_api_leave. */
int sl_api_enter(void);
void sl_api_leave(void);

/* Return the program's locale, for its callbacks. During a call, the thread has the locale "C". */
locale_t sl_api_locale(void);

/* Keep other calls out, without ranks. Return 0 or STARLING_ERR_USAGE. After 0, call sl_api_leave.
 */
int sl_api_lock(void);

/* Return one code on all ranks (sl_runtime_agree). Collective. */
int sl_api_agree(int code);

/* Set *config to the options, and `given` (SL_MOST_OPTIONS) to whether each is set. `options` may
 * be NULL. Return 0 or SL_ERR_SYSTEM; call sl_options_free in either case. */
int sl_api_configure(const struct starling_options *options, struct sl_config *config, bool *given);

/* Return SL_ERR_USAGE if a file of --config has an option of the program that the library lacks;
 * otherwise 0. */
int sl_api_check(const struct sl_config *config);

/* Return whether the program itself has set the option `quiet` to yes. Without this option, a call
 * is quiet, but notes once in a process that StarPU leaves cores idle. */
bool sl_api_silent(const struct sl_config *config, const bool *given);

/* Find the sizes of a graph, once. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM. */
int sl_api_settle(struct starling_graph *graph);

/* Return the accuracies and scores of an outcome; other members are 0. */
struct starling_result sl_api_result(const struct sl_outcome *outcome);

#endif
