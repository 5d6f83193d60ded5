/* starling train --config LOG --verify: the run of a log, repeated and compared. */
#ifndef SL_CLI_TRAIN_VERIFY_H
#define SL_CLI_TRAIN_VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct sl_train_run;

struct sl_verify {
    FILE *log; /* NULL: the run is not compared */
    char *line;
    size_t room;
    json_t *start, *end;   /* events of the log; end NULL: the logged run did not end */
    int64_t epochs, equal; /* epochs in the log; epochs that were alike so far */
    char difference[160];  /* the first one; "" : none */
};

/* Return the dataset that the log of --config names, to be freed by the caller; NULL: the file is
 * no log, or names none. */
char *sl_verify_dataset(const char *path);

/* Read the log of --config, if --verify asks for it. End the run where the logged run was stopped.
 * Every rank calls it by itself. Return 0, SL_ERR_USAGE or SL_ERR_DATA. */
int sl_verify_open(struct sl_verify *verify, struct sl_train_run *run);

/* Compare the dataset, then each epoch from now on, on rank 0. Return 0 or SL_ERR_DATA there. */
int sl_verify_begin(struct sl_verify *verify, struct sl_train_run *run);

/* Return 0 where the whole run was as logged, and say so; SL_ERR_DATA on rank 0 names the first
 * difference. */
int sl_verify_end(struct sl_verify *verify, const struct sl_train_run *run);

void sl_verify_close(struct sl_verify *verify);

#endif
