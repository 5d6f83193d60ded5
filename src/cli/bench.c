/* starling bench: measurements that anyone can repeat, one part each. */
#include "cli/bench.h"

#include <stdlib.h>

#include "cli/bench_train.h"
#include "core/error.h"

static int measure(const struct sl_bench_part *part, const struct sl_bench_common *common,
                   struct bench *bench)
{
    json_t *rows = json_array();
    json_t *document = sl_bench_document(part->command->name + sizeof "bench",
                                         part->command->options, common, rows);
    int code = part->measure(bench, document, rows);
    const char *path = code ? NULL : common->json;
    if (!code && !common->quiet)
        part->print(bench, document);
    if (!code && part->remember)
        code = part->remember(bench, rows);
    const int written = sl_bench_write(document, path);
    return code ? code : written;
}

int sl_bench_run(const struct sl_bench_part *part, struct sl_bench_common *common,
                 struct bench *bench, int argc, char **argv)
{
    struct sl_bench_words *words = &common->words;
    int code = sl_bench_split(part, argc, argv, words);
    if (!code)
        code = sl_command_parse(part->command, common, words->own_count, words->own, 0,
                                part->reserved != NULL, &common->positionals, NULL);
    if (!code)
        code = sl_bench_check_file(common->json);
    if (!code)
        code = part->create(bench);
    if (!code)
        code = measure(part, common, bench);
    part->destroy(bench);
    free(words->own);
    free(words->train);
    sl_options_free(part->command->options, common);
    return code;
}

static const struct sl_command *const parts[] = {
    &sl_bench_machine, &sl_bench_gemm, &sl_bench_spmm, &sl_bench_epoch, &sl_bench_schedulers, NULL,
};

/* Ranks would measure one another. */
static bool is_one_of_many(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        if (getenv(sizes[s]) && atoi(getenv(sizes[s])) > 1)
            return true;
    return false;
}

static int run(int argc, char **argv)
{
    const struct sl_command *part;
    const int code = sl_command_choose_part(&sl_command_bench, argc, argv, &part);
    if (code)
        return code;
    if (is_one_of_many())
        return sl_error(SL_ERR_USAGE, "bench: measures one process; start it without mpirun");
    return part->run(argc - 1, argv + 1);
}

const struct sl_command sl_command_bench = {
    .name = "bench",
    .synopsis = "WHAT [ARGUMENT ...] [--OPTION ...]",
    .summary = "Measure this machine, kernels, epochs or schedulers",
    .parts = parts,
    .run = run,
};
