#include "tests/every.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

static const double TOLERANCE = 1e-4, COARSE = 3e-2; /* of float32 and of bfloat16 */

static int train(const struct sl_every *every, struct sl_runtime *rt,
                 const struct sl_source *source, const char *how, bool apart,
                 struct sl_trained *out)
{
    char options[480];
    snprintf(options, sizeof options, "--layers %d --hidden %d %s %s", every->layers,
             SL_EVERY_HIDDEN, every->c->options, how);
    return sl_train(rt, source, options, apart, out);
}

int sl_every_train(const struct sl_every *every, const struct sl_source *source, const char *how,
                   bool apart, struct sl_trained *out)
{
    return train(every, every->rt, source, how, apart, out);
}

void sl_every_say(struct sl_every *every, bool good, const char *how, const char *text)
{
    every->done++;
    every->failures += !good;
    if (every->rt->rank == 0)
        printf("%s  %s, %s: %s\n", good ? "ok  " : "FAIL", every->c->name, how, text);
}

void sl_every_judge(struct sl_every *every, const char *how, bool apart, int code,
                    const struct sl_trained *got, bool good, const char *text)
{
    char name[200], said[800];
    const double limit = strstr(every->c->options, "bf16") ? COARSE : TOLERANCE;
    const double far =
        !code && every->rt->rank == 0 ? sl_trained_difference(got, &every->expected) : 0.0;
    snprintf(name, sizeof name, "%s%s", how, apart ? ", small matrices apart" : "");
    snprintf(said, sizeof said, "off by %.1e of the largest number%s%s%s", far, text,
             code ? "; " : "", code ? sl_error_message() : "");
    sl_every_say(every, good && !code && far <= limit, name, said);
}

/* Rank 0 trains alone first, with the default order of sums. */
static void check_source(struct sl_every *every, const struct sl_every_program *program)
{
    struct sl_runtime alone = *every->rt;
    alone.ranks = 1;
    const int code = every->rt->rank == 0
                         ? train(every, &alone, &every->source, "--grid 1x1x1 --sum-order tiles",
                                 false, &every->expected)
                         : 0;
    if (sl_runtime_agree(every->rt, code))
        sl_every_say(every, false, "alone", sl_error_message());
    else
        program->check(every);
    sl_trained_free(&every->expected);
}

/* Real datasets are there where the data is. */
static void check_case(struct sl_every *every, const struct sl_every_program *program)
{
    char path[4096];
    struct sl_fixture fixture = every->c->fixture;
    const bool made = fixture.classes > 0;
    const char *folder = getenv("SL_SHARED_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", every->c->name);
    if (!made && access(path, R_OK)) {
        if (every->rt->rank == 0)
            printf("skip  %s: not there\n", every->c->name);
        return;
    }
    fixture.name = every->c->name;
    if (made)
        every->data = sl_fixture_open(&fixture);
    if (made ? sl_source_of(&every->data, &every->source)
             : sl_source_open(every->rt, path, &every->source))
        sl_fatal("%s: %s", every->c->name, sl_error_message());
    check_source(every, program);
    sl_source_close(&every->source);
    if (made)
        sl_fixture_close(&every->data);
}

bool sl_every_all(void)
{
    const char *every = getenv("SL_EVERY");
    return every && strcmp(every, "all") == 0;
}

bool sl_every_wants(int number, int ranks)
{
    const int of_five = ranks > 4 ? 1 : ranks > 2 ? 2 : 3;
    return sl_every_all() || (7 * number + 3 * (number / 5) + 2 * ranks) % 5 < of_five;
}

int sl_every_run(const struct sl_every_program *program, int argc, char **argv)
{
    struct sl_runtime rt;
    int done = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    for (size_t c = 0; c < program->count; c++) {
        const void *row = (const char *)program->cases + c * program->size;
        struct sl_every every = {.rt = &rt,
                                 .c = row,
                                 .number = (int)c,
                                 .layers = program->layers,
                                 .all = argc > 1 || getenv("SL_GRID_RANKS") || sl_every_all()};
        if (argc > 1 ? strcmp(argv[1], every.c->name) == 0 : sl_every_wants((int)c, rt.ranks))
            check_case(&every, program);
        done += every.done;
        failures += every.failures;
    }
    if (rt.rank == 0)
        printf("%d cases on %d ranks, %d failed\n", done, rt.ranks, failures);
    int64_t all = failures + (done == 0);
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all > 0;
}
