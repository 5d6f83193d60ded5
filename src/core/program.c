#include "core/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
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

/* ---- Signals ---- */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOPS = sizeof stops / sizeof *stops };

static volatile pid_t running; /* the program's process, and its group */
static struct sigaction stop_before[STOPS], child_before;
static sigset_t mask_before;

/* Kill the program's process group, and hand the signal to the previous handler. */
static void stop_running(int signal_number)
{
    kill(-running, SIGKILL);
    for (int s = 0; s < STOPS; s++)
        if (stops[s] == signal_number)
            sigaction(signal_number, &stop_before[s], NULL);
    raise(signal_number);
}

/* Block the signals that stop this process. Where SIGCHLD is ignored, no status of a child would be
 * kept. */
static void hold_signals(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t held;
    sigemptyset(&held);
    for (int s = 0; s < STOPS; s++)
        sigaddset(&held, stops[s]);
    pthread_sigmask(SIG_BLOCK, &held, &mask_before);
    sigaction(SIGCHLD, &usual, &child_before);
}

/* Let signals that stop this process stop `process`, too. */
static void catch_signals(pid_t process)
{
    const struct sigaction stop = {.sa_handler = stop_running};
    running = process;
    for (int s = 0; s < STOPS; s++) {
        sigaction(stops[s], NULL, &stop_before[s]);
        if (stop_before[s].sa_handler != SIG_IGN)
            sigaction(stops[s], &stop, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

static void leave_stops(void)
{
    for (int s = 0; s < STOPS; s++)
        sigaction(stops[s], &stop_before[s], NULL);
}

/* ---- The program ---- */

/* Start the program in a group of its own; set *reads to its output. Return 0 or an errno. */
static int start(char *const *arguments, pid_t *process, int *reads)
{
    int ends[2];
    sigset_t ignored; /* signals that the program is to ignore */
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setsigmask(&attributes, &mask_before);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    const int reason =
        posix_spawnp(process, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
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

/* Wait until `reads` has something to read, or until `deadline` in ms (0: none). Return whether it
 * has. */
static bool wait_for(int reads, long long deadline)
{
    struct pollfd in = {.fd = reads, .events = POLLIN};
    for (;;) {
        const long long left = deadline ? deadline - now_ms() : -1;
        if (deadline && left <= 0)
            return false;
        if (poll(&in, 1, (int)left) > 0)
            return true;
    }
}

/* Return all output before the deadline; *late: the program was not done. NULL: no memory. */
static char *read_all(int reads, long long deadline, bool *late)
{
    char *text = NULL, part[4096];
    size_t size = 0;
    ssize_t count = 1;
    FILE *out = open_memstream(&text, &size);
    bool whole = true;
    *late = false;
    while (out && count > 0) {
        *late = !wait_for(reads, deadline);
        count = *late ? 0 : read(reads, part, sizeof part);
        if (count > 0)
            whole = fwrite(part, 1, (size_t)count, out) == (size_t)count && whole;
        else if (count < 0 && errno == EINTR)
            count = 1;
    }
    if (out && fclose(out) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

/* Wait for the program to end (kill it if `late`), kill the rest of its group, and return its
 * status. The program keeps its process number until signals are restored. */
static int end(pid_t process, bool late)
{
    siginfo_t ended;
    int status = 0;
    if (late)
        kill(-process, SIGKILL);
    while (waitid(P_PID, (id_t)process, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    leave_stops();
    kill(-process, SIGKILL); /* processes that the program has started and left */
    waitpid(process, &status, 0);
    return status;
}

/* Run the program; return 0 or an errno of the start. */
static int run_program(char *const *arguments, int seconds, char **text, bool *late, int *status)
{
    pid_t process;
    int reads = -1;
    hold_signals();
    const int reason = start(arguments, &process, &reads);
    if (reason) {
        pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    } else {
        catch_signals(process);
        *text = read_all(reads, seconds ? now_ms() + 1000LL * seconds : 0, late);
        close(reads);
        *status = end(process, *late);
    }
    sigaction(SIGCHLD, &child_before, NULL);
    return reason;
}

int sl_program_run(char *const *arguments, int seconds, char **text)
{
    bool late = false;
    int status = 0;
    *text = NULL;
    const int reason = run_program(arguments, seconds, text, &late, &status);
    if (reason)
        return sl_error(SL_ERR_SYSTEM, "%s cannot be started: %s", arguments[0], strerror(reason));
    if (!*text)
        return sl_error(SL_ERR_SYSTEM, "no memory for the words of %s", arguments[0]);
    if (late)
        return sl_error(SL_ERR_SYSTEM, "%s took over %d s and was stopped", arguments[0], seconds);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return sl_error(SL_ERR_SYSTEM, "%s failed: %.200s", arguments[0], *text);
    return 0;
}
