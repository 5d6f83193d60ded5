#include "core/siblings.h"

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"

/* ---- Processes ---- */

/* What the launcher told this process, and so its siblings: the job's name in PMIX_NAMESPACE, a
 * rank of their own in PMIX_RANK. */
struct job {
    const char *name;
    int rank;
    int here; /* processes that were started on this node; 0: unknown */
};

/* Return the processes that the launcher started on this node, or 0. */
static int count_started(void)
{
    const char *count = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *tasks = getenv("SLURM_GTIDS");
    int commas = 0;
    if (count)
        return atoi(count);
    for (const char *c = tasks; c && *c; c++)
        commas += *c == ',';
    return tasks ? commas + 1 : 0;
}

static struct job own_job(void)
{
    const char *name = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    return (struct job){name, rank ? atoi(rank) : 0, name && rank ? count_started() : 0};
}

/* Return the rank of a process in the job; -1: it is in no job, or in another one. */
static int rank_of(const struct job *job, long process)
{
    static const char NAME[] = "PMIX_NAMESPACE=", RANK[] = "PMIX_RANK=";
    char path[64], *line = NULL;
    size_t room = 0;
    int rank = -1;
    bool ours = false;
    snprintf(path, sizeof path, "/proc/%ld/environ", process);
    const char *why;
    FILE *file = sl_file_stream(path, &why);
    while (file && getdelim(&line, &room, '\0', file) > 0)
        if (strncmp(line, NAME, sizeof NAME - 1) == 0)
            ours = strcmp(line + sizeof NAME - 1, job->name) == 0;
        else if (strncmp(line, RANK, sizeof RANK - 1) == 0)
            rank = atoi(line + sizeof RANK - 1);
    if (file)
        fclose(file);
    free(line);
    return ours ? rank : -1;
}

static long parent_of(long process)
{
    char path[64], text[512] = "";
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    const char *why;
    FILE *file = sl_file_stream(path, &why);
    const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')'); /* a name may hold anything */
    return after && sscanf(after, ") %*c %ld", &parent) == 1 ? parent : 0;
}

/* Return whether the launcher is among the ancestors: in a container of its own, a process sees
 * neither the launcher nor its siblings. */
static bool sees_launcher(const struct job *job)
{
    long process = getpid();
    while (process > 1 && rank_of(job, process) >= 0)
        process = parent_of(process);
    return process > 1;
}

/* Return how many of the node's ranks have a process, and set *first to the lowest; -1: unknown. */
static int count_left(const struct job *job, int *first)
{
    int *ranks = calloc((size_t)job->here, sizeof *ranks), count = 0;
    DIR *all = ranks ? opendir("/proc") : NULL;
    *first = job->rank;
    for (struct dirent *entry; all && (entry = readdir(all));) {
        const int rank =
            isdigit((unsigned char)*entry->d_name) ? rank_of(job, atol(entry->d_name)) : -1;
        bool known = rank < 0;
        for (int r = 0; r < count; r++)
            known = known || ranks[r] == rank;
        if (!known && count < job->here)
            ranks[count++] = rank;
        *first = !known && rank < *first ? rank : *first;
    }
    if (all)
        closedir(all);
    free(ranks);
    return all ? count : -1;
}

/* ---- The watch ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t started;
    pthread_t thread;
    bool runs, over;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .started = PTHREAD_COND_INITIALIZER};

/* Wait for MPI; return whether it has not started after the seconds. */
static bool still_waits(int seconds)
{
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&watch.lock);
    while (!watch.over && code == 0)
        code = pthread_cond_timedwait(&watch.started, &watch.lock, &until);
    const bool waits = !watch.over;
    pthread_mutex_unlock(&watch.lock);
    return waits;
}

static void end(const struct job *job, int left, int first)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    if (job->rank != first && !still_waits(2)) /* the launcher ends this rank when that one ends */
        return;
    sl_fatal("the launcher started %d processes on host %s, and %d %s left while MPI starts "
             "(expected the same command on all ranks)",
             job->here, host, left, left == 1 ? "is" : "are");
}

/* Look each second. A process that is being started may be without its variables for a moment. */
static void *look(void *unused)
{
    enum { LOOKS = 4, NOTE = 30 };
    const struct job job = own_job();
    const bool sees = job.here > 1 && sees_launcher(&job);
    (void)unused;
    for (int second = 1, short_of = 0; still_waits(1); second++) {
        int first, left = sees ? count_left(&job, &first) : -1;
        short_of = left >= 0 && left < job.here ? short_of + 1 : 0;
        if (short_of == LOOKS)
            end(&job, left, first);
        if (second == NOTE && job.rank == 0)
            sl_note("MPI has been starting for %d seconds: does each rank run this command?", NOTE);
    }
    return NULL;
}

void sl_siblings_watch(void)
{
    sigset_t all, before;
    sigfillset(&all);
    watch.over = false;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch.runs = pthread_create(&watch.thread, NULL, look, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sl_siblings_release(void)
{
    if (!watch.runs)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.over = true;
    pthread_cond_signal(&watch.started);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.runs = false;
}
