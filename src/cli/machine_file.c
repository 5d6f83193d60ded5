#include "cli/machine_file.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

/* Return the folder of machine files in the sources. A program that is not installed lies in its
 * build tree, which knows the path of the sources. malloc; NULL without memory. */
static char *name_build_folder(void)
{
    char program[PATH_MAX], *folder;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    const bool absolute = SL_TOP_SRCDIR[0] == '/';
    return asprintf(&folder, "%s%s%s/examples/machines", absolute ? "" : program,
                    absolute ? "" : "/", SL_TOP_SRCDIR) < 0
               ? NULL
               : folder;
}

/* Write the names of a folder's .json files to `list`, without ".json". */
static void list_names(const char *folder, char *list, size_t size)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, alphasort);
    for (int e = 0; e < count; e++) {
        const size_t length = strlen(entries[e]->d_name), used = strlen(list);
        if (length > 5 && strcmp(entries[e]->d_name + length - 5, ".json") == 0)
            snprintf(list + used, size - used, "%s%.*s", used ? ", " : "", (int)length - 5,
                     entries[e]->d_name);
        free(entries[e]);
    }
    free(entries);
}

/* Return whether `folder` has a machine file with a name. If so, read it, and set *code. */
static bool read_shipped(const char *folder, const char *name, struct sl_rates *out, int *code)
{
    char *path;
    if (!folder || asprintf(&path, "%s/%s.json", folder, name) < 0)
        return false;
    const bool found = access(path, F_OK) == 0;
    if (found)
        *code = sl_rates_read(path, out);
    free(path);
    return found;
}

int sl_machine_file_read(const char *name, struct sl_rates *out)
{
    static const char installed[] = SL_PKGDATADIR "/examples/machines";
    char list[256] = "";
    int code = 0;
    if (access(name, F_OK) == 0 || strchr(name, '/') || strchr(name, '.'))
        return sl_rates_read(name, out);
    char *built = name_build_folder();
    if (!read_shipped(built, name, out, &code) && !read_shipped(installed, name, out, &code)) {
        if (built)
            list_names(built, list, sizeof list);
        if (!list[0])
            list_names(installed, list, sizeof list);
        code = sl_error(SL_ERR_USAGE, "--machine %s: no such machine (expected a file, or %s)",
                        name, list[0] ? list : "a name of examples/machines");
    }
    free(built);
    return code;
}
