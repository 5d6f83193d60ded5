#include "core/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"

extern char **environ;

int sl_program_probe(const char *name, const char *task, const char *package)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        char path[PATH_MAX];
        const int length = (int)strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", length, at, name);
        if (access(path, X_OK) == 0)
            return 0;
        at += length + (at[length] == ':');
    }
    return sl_error(SL_ERR_SYSTEM, "%s is not there, and %s (expected it in PATH; Debian: %s)",
                    name, task, package);
}

/* Start the program; what it prints comes out of *reads. Return 0 or an errno. */
static int start(char *const *arguments, pid_t *process, int *reads)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    const int reason = posix_spawnp(process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (reason)
        close(ends[0]);
    *reads = ends[0];
    return reason;
}

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Wait for something to read until `deadline`, in ms; 0: without an end. Return 0 if it is over. */
static int wait_for(int reads, long long deadline)
{
    struct pollfd in = {.fd = reads, .events = POLLIN};
    for (;;) {
        const long long left = deadline ? deadline - now_ms() : -1;
        if (deadline && left <= 0)
            return 0;
        if (poll(&in, 1, (int)left) > 0)
            return 1;
    }
}

/* All that comes before the deadline; *late: the program was not done. NULL: no memory. */
static char *read_all(int reads, long long deadline, int *late)
{
    char *text = NULL, part[4096];
    size_t size = 0;
    ssize_t count = 1;
    FILE *out = open_memstream(&text, &size);
    *late = 0;
    while (out && count > 0) {
        *late = !wait_for(reads, deadline);
        count = *late ? 0 : read(reads, part, sizeof part);
        if (count > 0)
            fwrite(part, 1, (size_t)count, out);
        else if (count < 0 && errno == EINTR)
            count = 1;
    }
    if (out)
        fclose(out);
    return text;
}

int sl_program_run(char *const *arguments, int seconds, char **text)
{
    pid_t process;
    int reads = -1, late, status = 0;
    *text = NULL;
    const int reason = start(arguments, &process, &reads);
    if (reason)
        return sl_error(SL_ERR_SYSTEM, "%s cannot be started: %s", arguments[0], strerror(reason));
    *text = read_all(reads, seconds ? now_ms() + 1000LL * seconds : 0, &late);
    close(reads);
    if (late)
        kill(process, SIGKILL);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!*text)
        return sl_error(SL_ERR_SYSTEM, "no memory for the words of %s", arguments[0]);
    if (late)
        return sl_error(SL_ERR_SYSTEM, "%s took over %d s and was stopped", arguments[0], seconds);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return sl_error(SL_ERR_SYSTEM, "%s failed: %.200s", arguments[0], *text);
    return 0;
}
