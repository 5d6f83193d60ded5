#include "bench/contest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/profile_view.h"

int sl_bench_contest_create(struct sl_bench_contest *contest, struct sl_bench_common *common,
                            int count, int64_t rounds)
{
    contest->common = common;
    contest->count = count;
    contest->rounds = (int)rounds;
    contest->entries = calloc((size_t)count, sizeof *contest->entries);
    for (int e = 0; contest->entries && e < count; e++) {
        struct sl_bench_entry *entry = &contest->entries[e];
        entry->runs = calloc((size_t)rounds, sizeof *entry->runs);
        entry->seconds = calloc((size_t)rounds, sizeof *entry->seconds);
        if (!entry->runs || !entry->seconds)
            return sl_error(SL_ERR_SYSTEM, "no memory for the figures of %d runs", contest->rounds);
    }
    return contest->entries ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d contestants", count);
}

void sl_bench_contest_destroy(struct sl_bench_contest *contest)
{
    for (int e = 0; contest->entries && e < contest->count; e++) {
        struct sl_bench_entry *entry = &contest->entries[e];
        for (int r = 0; r < entry->tried; r++)
            sl_bench_run_free(&entry->runs[r]);
        free(entry->runs);
        free(entry->seconds);
    }
    free(contest->entries);
}

void sl_bench_entry_number(struct sl_bench_entry *entry, const char *option, int64_t number)
{
    snprintf(entry->number, sizeof entry->number, "%" PRId64, number);
    entry->words[0] = option;
    entry->words[1] = entry->number;
}

const struct sl_bench_run *sl_bench_entry_last(const struct sl_bench_entry *entry)
{
    return &entry->runs[entry->tried > 0 ? entry->tried - 1 : 0];
}

int sl_bench_entry_done(const struct sl_bench_entry *entry)
{
    return entry->tried - (sl_bench_entry_last(entry)->ending != SL_BENCH_DONE);
}

static int train(const struct sl_bench_contest *contest, struct sl_bench_entry *entry, int round)
{
    if (sl_bench_entry_done(entry) < entry->tried)
        return 0;
    struct sl_bench_training training = {
        .dataset = contest->dataset,
        .common = contest->common,
        .words = entry->words,
        .profile = entry->profile || (contest->profile_last && round == contest->rounds - 1),
        .limit = contest->limit,
    };
    struct sl_bench_run *run = &entry->runs[entry->tried++];
    const int code = sl_bench_train(&training, run);
    entry->seconds[round] = sl_number(run->end, "epoch_seconds_median");
    return code || contest->tolerant ? code : sl_bench_check_ending(run);
}

int sl_bench_contest_run(struct sl_bench_contest *contest)
{
    const int count = contest->count, all = count * contest->rounds;
    int code = 0;
    for (int done = 0; !code && done < all; done++) {
        const int round = done / count, at = done % count;
        code = train(contest, &contest->entries[round % 2 ? count - 1 - at : at], round);
        if (!contest->common->quiet)
            sl_bench_progress(code ? all : done + 1, all);
    }
    return code;
}

void sl_bench_describe(json_t *document, const struct sl_bench_contest *contest,
                       const struct sl_bench_run *run)
{
    json_object_set_new(document, "dataset", sl_json_text(contest->dataset));
    json_object_set(document, "graph", json_object_get(run->start, "graph"));
    json_object_set(document, "training", json_object_get(run->start, "configuration"));
    json_object_set(document, "runtime", json_object_get(run->start, "machine"));
}
