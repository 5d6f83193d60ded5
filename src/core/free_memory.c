/* Control groups bound the memory of their processes and of the groups below. Version 1 has a
 * hierarchy for memory alone, version 2 one for everything; a machine may have both. Pages of files
 * count as used in a group, but the system frees them when memory is wanted. */
#include "core/free_memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Files ---- */

static FILE *open_file(const char *root, const char *path)
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, path);
    return fopen(full, "r");
}

/* Return the number after the word `key` at the start of a line, or the file's first number for "".
 * Return `otherwise` where the file or word is missing, or "max" stands for the number. */
static int64_t read_number(const char *root, const char *directory, const char *name,
                           const char *key, int64_t otherwise)
{
    char path[PATH_MAX + 64], line[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = open_file(root, path);
    const size_t skip = strlen(key);
    long long value = 0;
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, key, skip) == 0 && sscanf(line + skip, "%lld", &value) == 1;
    if (file)
        fclose(file);
    return found ? (int64_t)value : otherwise;
}

/* ---- Control groups ---- */

/* A version's files with limits (one or two), use, and pages of files within the use. */
struct version {
    const char *type, *limits[2], *used, *cached[2];
};

static const struct version versions[] = {
    {"cgroup",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file "}},
    {"cgroup2",
     {"memory.max", "memory.high"},
     "memory.current",
     {"inactive_file ", "active_file "}},
};

/* Return whether a list with commas has the word `memory`. */
static bool lists_memory(const char *list)
{
    static const char word[] = "memory";
    for (const char *at = list; (at = strstr(at, word)); at += sizeof word - 1) {
        const char end = at[sizeof word - 1];
        if ((at == list || at[-1] == ',') && (end == ',' || end == '\0'))
            return true;
    }
    return false;
}

/* Find the group of this process in a version's hierarchy, as /proc/self/cgroup names it:
 * "4:memory:/path" or "0::/path". */
static bool find_group(const char *root, const struct version *version, char group[PATH_MAX])
{
    const bool second = version == &versions[1];
    char line[PATH_MAX + 256], controllers[256];
    int hierarchy, at = 0;
    bool found = false;
    FILE *file = open_file(root, "/proc/self/cgroup");
    while (file && !found && fgets(line, sizeof line, file)) {
        controllers[0] = '\0';
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%d::%n", &hierarchy, &at) == 1 && at > 0)
            found = second;
        else if (sscanf(line, "%d:%255[^:]:%n", &hierarchy, controllers, &at) == 2 && at > 0)
            found = !second && lists_memory(controllers);
        if (found)
            snprintf(group, PATH_MAX, "%s", line + at);
        at = 0;
    }
    if (file)
        fclose(file);
    return found;
}

/* Find the mount point of a version's hierarchy and the group mounted there, as
 * /proc/self/mountinfo names them: "35 31 0:32 /group /sys/fs/cgroup/memory rw - cgroup cgroup
 * rw,memory". */
static bool find_mount(const char *root, const struct version *version, char mounted[PATH_MAX],
                       char point[PATH_MAX])
{
    char line[3 * PATH_MAX], type[32], options[512];
    bool found = false;
    FILE *file = open_file(root, "/proc/self/mountinfo");
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *rest = strstr(line, " - ");
        found = rest && sscanf(rest, " - %31s %*s %511s", type, options) == 2 &&
                strcmp(type, version->type) == 0 &&
                (version == &versions[1] || lists_memory(options)) &&
                sscanf(line, "%*d %*d %*s %4095s %4095s", mounted, point) == 2;
    }
    if (file)
        fclose(file);
    return found;
}

/* Return the bytes that one group leaves. */
static int64_t left_by_group(const char *root, const struct version *version, const char *directory)
{
    int64_t limit = INT64_MAX;
    for (int l = 0; l < 2 && version->limits[l]; l++) {
        const int64_t value = read_number(root, directory, version->limits[l], "", INT64_MAX);
        limit = value < limit ? value : limit;
    }
    if (limit == INT64_MAX)
        return limit;
    int64_t used = read_number(root, directory, version->used, "", 0);
    for (int c = 0; c < 2; c++)
        used -= read_number(root, directory, "memory.stat", version->cached[c], 0);
    used = used > 0 ? used : 0;
    return used < limit ? limit - used : 0;
}

/* Return the bytes that the process's group and all groups up to the mounted one leave. A group
 * that is not below the mounted one lies in another name space: only the mounted group can be seen
 * then. */
static int64_t left_by_version(const char *root, const struct version *version)
{
    char group[PATH_MAX], mounted[PATH_MAX], directory[2 * PATH_MAX];
    char point[PATH_MAX];
    if (!find_group(root, version, group) || !find_mount(root, version, mounted, point))
        return INT64_MAX;
    const size_t shared = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
    const bool below = strncmp(group, mounted, shared) == 0 &&
                       (group[shared] == '/' || group[shared] == '\0') && !strstr(group, "/..");
    snprintf(directory, sizeof directory, "%s%s", point, below ? group + shared : "");
    int64_t least = INT64_MAX;
    for (;;) {
        const int64_t left = left_by_group(root, version, directory);
        least = left < least ? left : least;
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < strlen(point))
            return least;
        *slash = '\0';
    }
}

/* ---- The process ---- */

/* Return the bytes that a limit leaves; `field` of /proc/self/statm counts the pages in use. */
static int64_t left_by_limit(const char *root, int resource, int field)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    long long pages[6] = {0};
    FILE *file = open_file(root, "/proc/self/statm");
    for (int f = 0; file && f < 6 && fscanf(file, "%lld", &pages[f]) == 1; f++)
        ;
    if (file)
        fclose(file);
    const int64_t used = (int64_t)pages[field] * sysconf(_SC_PAGESIZE);
    return used < (int64_t)limit.rlim_cur ? (int64_t)limit.rlim_cur - used : 0;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void sl_free_memory(const char *root, int64_t free_bytes[SL_MEMORY_BOUNDS])
{
    enum { SIZE = 0, DATA = 5 };
    const int64_t kib = read_number(root, "/proc", "meminfo", "MemAvailable:", -1);
    free_bytes[SL_MEMORY_OF_MACHINE] =
        kib >= 0 ? kib * 1024 : (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    free_bytes[SL_MEMORY_OF_CGROUP] =
        least_of(left_by_version(root, &versions[0]), left_by_version(root, &versions[1]));
    free_bytes[SL_MEMORY_OF_PROCESS] =
        least_of(left_by_limit(root, RLIMIT_AS, SIZE), left_by_limit(root, RLIMIT_DATA, DATA));
}

bool sl_free_memory_is_limited(void)
{
    return least_of(left_by_limit("", RLIMIT_AS, 0), left_by_limit("", RLIMIT_DATA, 0)) !=
           INT64_MAX;
}

bool sl_free_memory_probe(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    munmap(memory, bytes);
    return true;
}
