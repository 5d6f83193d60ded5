/* starling bench: measurements that anyone can repeat, in several parts. */
#include "bench/bench.h"

#include <stdlib.h>

#include "bench/train.h"
#include "core/error.h"
#include "core/file.h"

static int measure(const struct sl_bench_part *part, const struct sl_bench_common *common,
                   struct bench *bench)
{
    json_t *rows = json_array();
    json_t *document = sl_bench_document(part->command->name + sizeof "bench",
                                         part->command->options, common, rows);
    int code = part->measure(bench, document, rows);
    const bool speaks = !code && common->rt.rank == 0;
    const char *path = speaks ? common->json : NULL;
    if (speaks && !common->quiet)
        part->print(bench, document);
    if (speaks && part->remember)
        code = part->remember(bench, rows);
    const int written = sl_bench_write(document, path);
    return code ? code : written;
}

/* Start MPI once. This process and all its trainings share it. */
static int meet_ranks(const struct sl_bench_part *part, struct sl_bench_common *common)
{
    int code = sl_runtime_hold_mpi(&common->rt);
    if (code)
        return code;
    common->quiet |= common->rt.rank > 0;
    if (common->rt.ranks > 1 && !part->on_ranks) /* ranks would measure one another */
        code = sl_error(SL_ERR_USAGE, "%s: measures one process; start it without mpirun",
                        part->command->name);
    else if (common->rt.rank == 0)
        code = sl_file_probe(common->json);
    return sl_runtime_meet_held(&common->rt, "bench", code);
}

int sl_bench_run(const struct sl_bench_part *part, struct sl_bench_common *common,
                 struct bench *bench, int argc, char **argv)
{
    struct sl_bench_words *words = &common->words;
    int code = sl_bench_split(part, argc, argv, words);
    if (!code)
        code = sl_command_parse(part->command, common, words->own_count, words->own, 0,
                                part->datasets, &common->positionals, NULL);
    if (!code)
        code = meet_ranks(part, common);
    if (!code)
        code = sl_runtime_agree(&common->rt, part->create(bench));
    if (!code)
        code = measure(part, common, bench);
    part->destroy(bench);
    free(words->own);
    free(words->train);
    sl_options_free(part->command->options, common);
    return code;
}

static const struct sl_command *const parts[] = {
    &sl_bench_machine,       &sl_bench_gemm,    &sl_bench_spmm,
    &sl_bench_kernels,       &sl_bench_epoch,   &sl_bench_schedulers,
    &sl_bench_distributions, &sl_bench_choices, NULL,
};

static int run_bench(int argc, char **argv)
{
    const struct sl_command *part;
    const int code = sl_command_choose_part(&sl_command_bench, argc, argv, &part);
    return code ? code : part->run(argc - 1, argv + 1);
}

const struct sl_command sl_command_bench = {
    .name = "bench",
    .synopsis = "WHAT [ARGUMENT ...] [--OPTION ...]",
    .summary = "Measure this machine, kernels, epochs, schedulers or distributions",
    .parts = parts,
    .run = run_bench,
    .on_ranks = true,
};
