/* starling train --config LOG --verify: the run of a log, repeated and compared. Rank 0 reads the
 * log and compares. */
#ifndef SL_CLI_TRAIN_VERIFY_H
#define SL_CLI_TRAIN_VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct sl_config;
struct sl_train_run;

struct sl_verify {
    const char *path; /* the log; borrowed */
    FILE *log;        /* NULL: nothing is compared */
    char *line;
    size_t room;
    int64_t number;        /* of the last line that was read */
    json_t *start, *end;   /* events of the log; end NULL: the logged run did not end */
    int64_t epochs, equal; /* epochs in the log; epochs that were alike so far */
    char difference[160];  /* the first one; "" : none */
};

/* Check --verify against the options of the command line (`given`: as of sl_options_parse, before a
 * file was read). Return 0 or SL_ERR_USAGE. */
int sl_verify_check(const struct sl_config *config, const bool *given);

/* Return the dataset that a log names, to be freed by the caller; NULL: `path` is NULL or no log.
 */
char *sl_verify_dataset(const char *path);

/* Read the whole log of a run; sl_verify_close in either case. Return 0, SL_ERR_DATA or
 * SL_ERR_SYSTEM. */
int sl_verify_read(struct sl_verify *verify, const char *path);

/* Read the log of --config, if --verify asks for it. End the run where the logged run was stopped,
 * and evaluate the epochs whose checkpoints the logged run wrote. Collective. Return 0, SL_ERR_DATA
 * or SL_ERR_SYSTEM. */
int sl_verify_open(struct sl_verify *verify, struct sl_train_run *run);

/* Compare the dataset now, and each epoch when it ends. Collective. Return 0 or SL_ERR_DATA. */
int sl_verify_begin(struct sl_verify *verify, struct sl_train_run *run);

/* Say that the whole run was as logged. Collective. Return 0; SL_ERR_DATA names the first
 * difference. */
int sl_verify_end(struct sl_verify *verify, struct sl_train_run *run);

void sl_verify_close(struct sl_verify *verify);

#endif
