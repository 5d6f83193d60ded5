#include "bench/input.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

static int generate(const struct sl_bench_input *input, struct sl_dataset *data)
{
    const struct sl_like_options options = {
        .name = input->like, .scale = input->scale, .seed = 1, .threads = 0};
    return sl_generate_like(&options, data);
}

int sl_bench_input_open(const struct sl_bench_input *input, const char *dataset,
                        struct sl_dataset *data)
{
    if (dataset && input->like)
        return sl_error(SL_ERR_USAGE, "expected --dataset or --like NAME, not both");
    return dataset ? sl_dataset_open(dataset, data) : generate(input, data);
}

static int write_generated(struct sl_bench_input *input)
{
    struct sl_dataset data = {0};
    const char *parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(input->directory, sizeof input->directory, "%s/starling-bench-XXXXXX", parent);
    if (!mkdtemp(input->directory)) {
        const int code = sl_error(SL_ERR_SYSTEM, "%s: %s", input->directory, strerror(errno));
        input->directory[0] = 0;
        return code;
    }
    int code = generate(input, &data);
    if (!code)
        code = sl_dataset_write(&data, input->directory);
    sl_dataset_close(&data);
    return code;
}

int sl_bench_input_path(struct sl_bench_input *input, const struct sl_bench_common *common,
                        const char **path)
{
    const bool named = common->positionals > 0;
    if (named == (input->like != NULL))
        return sl_error(SL_ERR_USAGE, "expected a DATASET or --like NAME, one of both");
    if (!named && common->rt.ranks > 1)
        return sl_error(SL_ERR_USAGE, "--like: on several ranks, expected a DATASET that all of "
                                      "them can read (starling generate like makes one)");
    *path = named ? common->words.own[0] : input->directory;
    return named ? 0 : write_generated(input);
}

void sl_bench_input_remove(struct sl_bench_input *input)
{
    if (!input->directory[0])
        return;
    DIR *directory = opendir(input->directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0); /* unlinkat refuses "." and ".." */
    if (directory)
        closedir(directory);
    rmdir(input->directory);
    input->directory[0] = 0;
}
