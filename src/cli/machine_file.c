#include "cli/machine_file.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

/* Return `folder` relative to the program's own folder, or as it is where it is absolute. malloc;
 * NULL without memory. */
static char *name_folder(const char *folder)
{
    char program[PATH_MAX], *path;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    const bool absolute = folder[0] == '/';
    return asprintf(&path, "%s%s%s", absolute ? "" : program, absolute ? "" : "/", folder) < 0
               ? NULL
               : path;
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
    /* Folders of machine files: in the sources, which the build folder knows; beside a program that
     * was moved or came in a wheel; where the program was to be installed. */
    static const char *const folders[] = {SL_TOP_SRCDIR "/examples/machines",
                                          "../share/starling/examples/machines",
                                          SL_PKGDATADIR "/examples/machines"};
    char list[256] = "";
    int code = 0;
    if (access(name, F_OK) == 0 || strchr(name, '/') || strchr(name, '.'))
        return sl_rates_read(name, out);
    bool found = false;
    for (size_t f = 0; f < sizeof folders / sizeof folders[0] && !found; f++) {
        char *folder = name_folder(folders[f]);
        found = read_shipped(folder, name, out, &code);
        if (folder && !list[0])
            list_names(folder, list, sizeof list);
        free(folder);
    }
    if (!found)
        code = sl_error(SL_ERR_USAGE, "--machine %s: no such machine (expected a file, or %s)",
                        name, list[0] ? list : "a name of examples/machines");
    return code;
}
