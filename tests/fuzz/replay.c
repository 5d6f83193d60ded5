/* Runs readers on stored inputs, with any compiler:
 *
 *     test_readers                    on the files of tests/fuzz/corpus/READER
 *     test_readers READER FILE ...    on these files
 *     test_readers list               prints the readers and the pieces of their inputs
 *
 * A sentence that a reader refuses an input with follows the input's name.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

#include "readers.h"

static int replay(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file)
        return fprintf(stderr, "%s: cannot open\n", path), 1;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, size);
    if (*sl_error_message())
        printf("    %s\n", sl_error_message());
    return 0;
}

/* Calls for every name in a folder; returns how many there were. */
static int each(const char *folder, int (*call)(const char *path, const char *name))
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            count += call(path, entry->d_name);
        }
    if (dir)
        closedir(dir);
    return count;
}

static int replay_file(const char *path, const char *name)
{
    (void)name;
    return replay(path) == 0;
}

static int replay_reader(const char *path, const char *name)
{
    if (!readers_choose(name)) {
        fprintf(stderr, "%s: no reader has that name\n", path);
        exit(1);
    }
    return each(path, replay_file);
}

int main(int argc, char **argv)
{
    const char *source = getenv("top_srcdir");
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        readers_list();
        return 0;
    }
    if (argc > 2 && readers_choose(argv[1])) {
        int failed = 0;
        for (int k = 2; k < argc; k++)
            failed += replay(argv[k]);
        return failed > 0;
    }
    if (chdir(source ? source : ".") || chdir("tests/fuzz/corpus")) {
        perror("tests/fuzz/corpus");
        return 1;
    }
    const int count = each(".", replay_reader);
    printf("%d inputs\n", count);
    return count == 0;
}
