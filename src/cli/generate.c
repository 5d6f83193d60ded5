/* starling generate: synthetic datasets, one kind each. */
#include "cli/generate.h"
#include "core/progress.h"
#include "core/words.h"

#include <inttypes.h>
#include <stdio.h>

static const struct sl_command *const kinds[] = {
    &sl_command_generate_bter,
    &sl_command_generate_community,
    &sl_command_generate_like,
    &sl_command_generate_rmat,
    NULL,
};

static void print_sizes(const struct sl_dataset *data, const char *directory)
{
    const int64_t entries = data->adjacency.indptr[data->vertices];
    printf("%s: %" PRId64 " %s, %" PRId64 " adjacency %s, %" PRId64 " feature%s, %" PRId64
           " class%s\n",
           directory, data->vertices, sl_vertices(data->vertices), entries, sl_entries(entries),
           data->features, sl_s(data->features), data->classes, data->classes == 1 ? "" : "es");
}

static int write_dataset(const struct sl_dataset *data, const char *directory, bool quiet)
{
    sl_progress_begin("writing %s", directory);
    const int code = sl_progress_end_with(sl_dataset_write(data, directory));
    if (!code && !quiet)
        print_sizes(data, directory);
    return code;
}

int sl_generate_run(const struct sl_command *command, void *config, const struct sl_talk *talk,
                    int (*generate)(const void *config, struct sl_dataset *data), int argc,
                    char **argv)
{
    struct sl_dataset data = {0};
    int positionals;
    int code = sl_command_parse(command, config, argc, argv, 1, 1, &positionals, NULL);
    if (!code) {
        sl_talk_begin(talk, true);
        sl_progress_begin("generating %s", argv[0]);
        code = sl_progress_end_with(generate(config, &data));
    }
    if (!code)
        code = write_dataset(&data, argv[0], talk->quiet);
    sl_dataset_close(&data);
    sl_options_free(command->options, config);
    return code;
}

static int run_generate(int argc, char **argv)
{
    const struct sl_command *kind;
    const int code = sl_command_choose_part(&sl_command_generate, argc, argv, &kind);
    return code ? code : kind->run(argc - 1, argv + 1);
}

const struct sl_command sl_command_generate = {
    .name = "generate",
    .synopsis = "KIND DIRECTORY [--OPTION ...]",
    .summary = "Write a synthetic dataset",
    .parts = kinds,
    .run = run_generate,
};
