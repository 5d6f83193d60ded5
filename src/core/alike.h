/* Check that all ranks have the same command, options, dataset and checkpoint. A rank that differs
 * would submit other tasks and messages: ranks would wait for ever or compute a wrong result. */
#ifndef SL_CORE_ALIKE_H
#define SL_CORE_ALIKE_H

#include "core/options.h"
#include "core/runtime.h"

enum { SL_ALIKE_MOST = 128, SL_ALIKE_WORDS = 48 };

/* A list of things, in the same order on all ranks. */
struct sl_alike {
    int count;
    int code; /* SL_ERR_SYSTEM: memory ended while the list was made; the thread has the sentence */
    struct sl_alike_thing {
        const char *name; /* "labels" */
        uint64_t hash;
        char words[SL_ALIKE_WORDS]; /* this rank's value as text: "400 vertices", "no labels" */
    } thing[SL_ALIKE_MOST];
};

/* Continue a hash with `size` more bytes. More than 256 MiB are sampled: 256 pieces of 1 MiB,
 * evenly spread. */
uint64_t sl_alike_hash(uint64_t hash, const void *bytes, size_t size);
uint64_t sl_alike_hash_text(uint64_t hash, const char *text);

/* Append a thing. Its formatted words are compared, too. */
void sl_alike_add(struct sl_alike *alike, const char *name, uint64_t hash, const char *words, ...)
    __attribute__((format(printf, 4, 5)));

/* Append the version, the command and the options that the user gave (`given`: see
 * sl_options_parse). Leave out options that may differ between ranks, such as `workers`. For a
 * FILE, append only whether the option has a value: ranks may have different paths. */
void sl_alike_add_options(struct sl_alike *alike, const char *command,
                          const struct sl_option *table, const void *config, const bool *given);

/* Append the version and a command that ranks run together. */
void sl_alike_add_command(struct sl_alike *alike, const char *command);

/* Append the version and a command that ranks run one by one, without MPI: it equals all other
 * commands of this kind. */
void sl_alike_add_alone(struct sl_alike *alike, const char *command);

/* Return whether all ranks have equal lists. Collective. */
bool sl_alike_same(struct sl_runtime *rt, const struct sl_alike *alike);

/* Return 0 where all ranks have the list of rank 0, else `code` on all ranks. The error names the
 * first rank that differs, its host and the first difference, and ends with `expected`. Collective.
 */
int sl_alike_check(struct sl_runtime *rt, const struct sl_alike *alike, int code,
                   const char *expected);

#endif
