#include "core/stop.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"

enum { SENTENCE = 256 };

/* Another rank of this node, and the words to print when it is gone: a signal handler cannot format
 * text. */
struct peer {
    pid_t pid;
    int rank;
    char sentence[SENTENCE];
};

static volatile sig_atomic_t requested;
static struct peer *peers; /* ranks of this node, by rank */
static volatile sig_atomic_t peer_count;
static int own_rank;
static bool catching;

static bool is_alive(const struct peer *peer)
{
    return kill(peer->pid, 0) == 0;
}

/* End the process if a rank of this node is gone. The first rank left speaks. All look before any
 * ends: the launcher waits a second before it kills. */
static void end_if_alone(void)
{
    static const struct timespec pause = {.tv_nsec = 300000000};
    const struct peer *gone = NULL;
    bool first = true;
    for (int p = 0; p < peer_count; p++)
        if (!is_alive(&peers[p]))
            gone = gone ? gone : &peers[p];
        else if (peers[p].rank < own_rank)
            first = false;
    if (!gone)
        return;
    const ssize_t said = first ? write(STDERR_FILENO, gone->sentence, strlen(gone->sentence)) : 0;
    (void)said; /* the handler can do nothing about a failed write */
    nanosleep(&pause, NULL);
    _exit(1);
}

/* The value of a SIGTERM from a rank that has printed why all ranks end. */
enum { SAID = 0x5714 };

static void request_stop(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == SI_QUEUE && info->si_value.sival_int == SAID)
        _exit(1);
    if (signal_number == SIGTERM)
        end_if_alone();
    requested = 1;
}

void sl_stop_peers(void)
{
    const union sigval said = {.sival_int = SAID};
    for (int p = 0; p < peer_count; p++)
        sigqueue(peers[p].pid, SIGTERM, said);
}

/* Find the ranks of this node. Ranks in a container of their own, whose processes cannot be seen
 * from here, are left out. */
void sl_stop_watch(struct sl_runtime *rt)
{
    char host[128] = "";
    int64_t *pid = calloc((size_t)rt->ranks, sizeof *pid),
            *node = calloc((size_t)rt->ranks, sizeof *node);
    peers = calloc((size_t)rt->ranks, sizeof *peers);
    if (!pid || !node || !peers)
        sl_fatal("no memory for the processes of %d ranks", rt->ranks); /* other ranks wait */
    gethostname(host, sizeof host - 1);
    int64_t name = 0; /* hash of the host's name, for ranks to compare */
    for (const char *c = host; *c; c++)
        name = (name * 31 + *c) % 1000000007;
    sl_runtime_gather(rt, getpid(), pid);
    sl_runtime_gather(rt, name, node);
    int count = 0;
    own_rank = rt->rank;
    for (int r = 0; r < rt->ranks; r++) {
        struct peer peer = {.pid = (pid_t)pid[r], .rank = r};
        snprintf(peer.sentence, sizeof peer.sentence,
                 "starling: rank %d on host %s is gone (killed, or out of memory?); all ranks "
                 "stop\n",
                 r, host);
        if (r != rt->rank && node[r] == name && is_alive(&peer))
            peers[count++] = peer;
    }
    peer_count = count; /* last: a signal may come at any moment */
    free(pid);
    free(node);
}

/* Signals of a terminal, of a launcher, of Slurm and others before the time is up, and of the
 * system before the processor time is. */
static const int requests[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
enum { REQUESTS = sizeof requests / sizeof *requests };
static struct sigaction before[REQUESTS];

void sl_stop_request(void)
{
    if (!catching)
        return;
    end_if_alone();
    requested = 1;
}

void sl_stop_catch(void)
{
    struct sigaction action = {.sa_sigaction = request_stop};
    catching = true;
    for (int r = 0; r < REQUESTS; r++) { /* nohup and "&" of a shell ignore some signals */
        const bool insistent = requests[r] == SIGINT || requests[r] == SIGTERM;
        action.sa_flags = SA_SIGINFO | SA_RESTART; /* files are read on */
        if (insistent) /* a shell sends SIGHUP twice, the system SIGXCPU often */
            action.sa_flags |= (int)SA_RESETHAND;
        sigaction(requests[r], NULL, &before[r]);
        if (before[r].sa_handler != SIG_IGN)
            sigaction(requests[r], &action, NULL);
    }
}

void sl_stop_release(void)
{
    if (!catching)
        return;
    catching = false;
    for (int r = 0; r < REQUESTS; r++)
        sigaction(requests[r], &before[r], NULL);
    if (requested) {
        signal(SIGHUP, SIG_IGN); /* the second SIGHUP of a shell may come late */
        signal(SIGXCPU, SIG_IGN);
    }
    peer_count = 0;
    free(peers);
    peers = NULL;
}

const volatile sig_atomic_t *sl_stop_flag(void)
{
    return &requested;
}

int sl_stop_error(void)
{
    return requested ? sl_error(SL_ERR_STOPPED,
                                "stopped on request before the end of an epoch: nothing to save")
                     : 0;
}

int sl_stop_check(struct sl_runtime *rt)
{
    return sl_runtime_agree(rt, sl_stop_error());
}
