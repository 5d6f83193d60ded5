#include "bench/train.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/command.h"
#include "core/error.h"
#include "core/json_file.h"
#include "core/runtime.h"
#include "recipe/config.h"

/* ---- Whose word is it? ---- */

/* Return the option row that `--word`, `--word=value` or `--no-word` names, or NULL. */
static const struct sl_option *row_of(const struct sl_option *table, const char *word)
{
    const char *name = word + 2;
    const size_t length = strcspn(name, "=");
    for (const struct sl_option *row = table; row->name; row++) {
        const size_t size = strlen(row->name);
        if (size == length && strncmp(row->name, name, size) == 0)
            return row;
        if (row->type == SL_OPTION_FLAG && size + 3 == length && strncmp(name, "no-", 3) == 0 &&
            strncmp(row->name, name + 3, size) == 0)
            return row;
    }
    return NULL;
}

/* Return the distance of a word from the nearest option of a table. */
static size_t distance_to(const struct sl_option *table, const char *word)
{
    char typed[64], nearest[80];
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return sl_options_nearest(table, typed, nearest, sizeof nearest);
}

static int try_training_options(const struct sl_bench_words *words)
{
    struct sl_config config;
    int positionals;
    char **copy = calloc((size_t)words->train_count + 1, sizeof *copy); /* parsing moves words */
    if (!copy)
        return sl_error(SL_ERR_SYSTEM, "no memory for the command line");
    memcpy(copy, words->train, (size_t)words->train_count * sizeof *copy);
    int code = sl_config_defaults(&config);
    if (!code)
        code = sl_options_parse(sl_config_options, &config, words->train_count, copy, &positionals,
                                NULL);
    if (!code)
        code = sl_config_check(&config);
    sl_options_free(sl_config_options, &config);
    free(copy);
    return code;
}

static int refuse_reserved(const struct sl_bench_part *part, const struct sl_option *row)
{
    for (const struct sl_bench_reserved *r = part->reserved; row && r->name; r++)
        if (strcmp(row->name, r->name) == 0)
            return sl_error(SL_ERR_USAGE, "--%s: %s sets it itself%s%s", row->name,
                            part->command->name, r->instead ? "; see " : "",
                            r->instead ? r->instead : "");
    return 0;
}

/* Return the option row of a word, and set *is_own if the option is the part's. An unknown option
 * (NULL) belongs to the table with the nearest name; this table then names the option. */
static const struct sl_option *find_row(const struct sl_bench_part *part, const char *word,
                                        bool *is_own)
{
    const struct sl_option *own = part->command->options;
    *is_own = true;
    if (!part->reserved || strncmp(word, "--", 2) != 0 || !word[2])
        return NULL;
    const struct sl_option *row = row_of(own, word);
    if (row)
        return row;
    row = row_of(sl_config_options, word);
    *is_own = !row && distance_to(own, word) < distance_to(sl_config_options, word);
    return row;
}

static void append(struct sl_bench_words *words, bool is_own, char *word)
{
    if (is_own)
        words->own[words->own_count++] = word;
    else
        words->train[words->train_count++] = word;
}

int sl_bench_split(const struct sl_bench_part *part, int argc, char **argv,
                   struct sl_bench_words *words)
{
    *words = (struct sl_bench_words){
        .own = calloc((size_t)argc + 1, sizeof *words->own),
        .train = calloc((size_t)argc + 1, sizeof *words->train),
    };
    if (!words->own || !words->train)
        return sl_error(SL_ERR_SYSTEM, "no memory for the command line");
    for (int a = 0; a < argc; a++) {
        bool is_own;
        const struct sl_option *row = find_row(part, argv[a], &is_own);
        const int code = is_own ? 0 : refuse_reserved(part, row);
        if (code)
            return code;
        const bool takes_value = row && row->type != SL_OPTION_FLAG && !strchr(argv[a], '=') &&
                                 a + 1 < argc && strncmp(argv[a + 1], "--", 2) != 0;
        append(words, is_own, argv[a]);
        if (takes_value)
            append(words, is_own, argv[++a]);
    }
    return try_training_options(words);
}

/* ---- The process ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* Catch Ctrl-C, which reaches this process only: the training is in a process group of its own. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Files that a training leaves for this process. */
struct traces {
    char directory[PATH_MAX], log[PATH_MAX + 8], said[PATH_MAX + 8];
};

static int create_traces(struct traces *traces)
{
    const char *folder = getenv("TMPDIR");
    if (snprintf(traces->directory, sizeof traces->directory, "%s/starling-bench-XXXXXX",
                 folder && folder[0] ? folder : "/tmp") >= (int)sizeof traces->directory ||
        !mkdtemp(traces->directory))
        return sl_error(SL_ERR_SYSTEM, "%s: cannot make a directory for logs: %s",
                        traces->directory, strerror(errno));
    snprintf(traces->log, sizeof traces->log, "%s/log", traces->directory);
    snprintf(traces->said, sizeof traces->said, "%s/said", traces->directory);
    return 0;
}

static void remove_traces(const struct traces *traces)
{
    unlink(traces->log);
    unlink(traces->said);
    rmdir(traces->directory);
}

/* Return the command line: train DATASET, the part's defaults, the user's words, the part's fixed
 * options. */
static char **command_line(const struct sl_bench_training *training, const struct traces *traces)
{
    const struct sl_bench_words *words = &training->common->words;
    const char *const before[] = {"starling", "train", training->dataset,
                                  /* measure epochs, not evaluations */
                                  "--eval-every", "10000000", "--patience", "0"};
    const char *const after[] = {"--log", traces->log, "--quiet",
                                 training->profile ? "--profile" : "--no-profile"};
    enum { BEFORE = sizeof before / sizeof *before, AFTER = sizeof after / sizeof *after };
    int own = 0;
    while (training->words[own])
        own++;
    const size_t user = (size_t)words->train_count;
    char **argv = calloc(BEFORE + user + AFTER + (size_t)own + 1, sizeof *argv);
    if (!argv)
        return NULL;
    memcpy(argv, before, sizeof before);
    memcpy(argv + BEFORE, words->train, user * sizeof *argv);
    memcpy(argv + BEFORE + user, after, sizeof after);
    memcpy(argv + BEFORE + user + AFTER, training->words, (size_t)own * sizeof *argv);
    return argv;
}

/* Become the training, after a fork: call only functions that are safe there. */
static void become(char **argv, int nothing, int said, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

static pid_t start(char **argv, const struct traces *traces)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int said = open(traces->said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        become(argv, nothing, said, parent);
    if (child > 0)
        setpgid(child, child); /* both processes set the group, before it can be killed */
    close(nothing);
    close(said);
    return child;
}

/* Wait for the process to end. After the limit or an interruption, kill it and its group. */
static int await(pid_t child, double limit, bool *timed_out)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    const double end = sl_runtime_seconds() + limit;
    siginfo_t info = {.si_pid = 0};
    int status = 0;
    *timed_out = false;
    /* Look without reaping: while the process is unreaped, no other process gets its group's
     * number. */
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid) {
        if (!*timed_out && (interrupted || sl_runtime_seconds() > end)) {
            *timed_out = true;
            kill(-child, SIGKILL);
        }
        nanosleep(&nap, NULL);
    }
    kill(-child, SIGKILL); /* kill processes that the training has left */
    waitpid(child, &status, 0);
    return status;
}

/* ---- What it left ---- */

static void read_reason(const struct traces *traces, int status, struct sl_bench_run *run)
{
    static const char name[] = "starling: ";
    char line[sizeof run->reason];
    FILE *said = fopen(traces->said, "r");
    while (said && fgets(line, sizeof line, said))
        if (line[0] != '\n') {
            const size_t skip = strncmp(line, name, sizeof name - 1) == 0 ? sizeof name - 1 : 0;
            line[strcspn(line, "\n")] = '\0';
            snprintf(run->reason, sizeof run->reason, "%s", line + skip);
        }
    if (said)
        fclose(said);
    if (run->reason[0])
        return;
    if (WIFSIGNALED(status))
        snprintf(run->reason, sizeof run->reason, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(run->reason, sizeof run->reason, "exit status %d", WEXITSTATUS(status));
}

static void take_line(struct sl_bench_run *run, json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    if (event && strcmp(event, "start") == 0 && !run->start)
        run->start = json_incref(line);
    else if (event && strcmp(event, "end") == 0 && !run->end)
        run->end = json_incref(line);
    else
        run->epochs += event && strcmp(event, "epoch") == 0;
    json_decref(line);
}

static int read_log(const struct traces *traces, struct sl_bench_run *run)
{
    FILE *log = fopen(traces->log, "r");
    char *text = NULL;
    size_t size = 0;
    while (log && getline(&text, &size, log) > 0)
        take_line(run, sl_json_parse(text, strlen(text), 0, NULL));
    free(text);
    if (log)
        fclose(log);
    return run->start && run->end && run->epochs
               ? 0
               : sl_error(SL_ERR_SYSTEM, "%s: not the log of a whole training", traces->log);
}

/* Train in a new process. */
static int train_apart(const struct sl_bench_training *training, const struct traces *traces,
                       char **argv, struct sl_bench_run *run)
{
    bool timed_out = false;
    catch_signals();
    const pid_t child = start(argv, traces);
    if (child < 0)
        return sl_error(SL_ERR_SYSTEM, "no process for a training: %s", strerror(errno));
    const int status = await(child, training->limit, &timed_out);
    if (interrupted)
        return sl_error(SL_ERR_SYSTEM, "interrupted");
    if (timed_out) {
        run->ending = SL_BENCH_TIMED_OUT;
        snprintf(run->reason, sizeof run->reason, "not done after %g s", training->limit);
    } else if (status != 0) {
        run->ending = SL_BENCH_FAILED;
        read_reason(traces, status, run);
    } else {
        return read_log(traces, run);
    }
    return 0;
}

/* The command whose runs are measured (src/cli/train.c). */
extern const struct sl_command sl_command_train;

/* Train in this process, on all ranks. */
static int train_here(struct sl_runtime *rt, const struct traces *traces, char **argv,
                      struct sl_bench_run *run)
{
    int words = 0;
    while (argv[words])
        words++;
    int code = sl_runtime_agree(rt, sl_command_train.run(words - 2, argv + 2));
    if (code) {
        run->ending = SL_BENCH_FAILED;
        snprintf(run->reason, sizeof run->reason, "%s", sl_error_message());
        return 0;
    }
    if (rt->rank == 0)
        code = read_log(traces, run);
    if (!code && json_is_true(json_object_get(run->end, "stopped")))
        code = sl_error(SL_ERR_SYSTEM, "interrupted");
    return sl_runtime_agree(rt, code);
}

int sl_bench_train(const struct sl_bench_training *training, struct sl_bench_run *run)
{
    struct sl_runtime *rt = &training->common->rt;
    struct traces traces = {.directory = ""};
    *run = (struct sl_bench_run){.ending = SL_BENCH_DONE};
    int code = create_traces(&traces);
    char **argv = code ? NULL : command_line(training, &traces);
    if (!code && !argv)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the words of a training");
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = sl_runtime_launched() ? train_here(rt, &traces, argv, run)
                                     : train_apart(training, &traces, argv, run);
    remove_traces(&traces);
    free(argv);
    return code;
}

int sl_bench_check_ending(const struct sl_bench_run *run)
{
    if (run->ending == SL_BENCH_DONE)
        return 0;
    if (!run->reason[0]) /* another rank has the sentence */
        return sl_error(SL_ERR_SYSTEM, "%s", "");
    return sl_error(SL_ERR_SYSTEM, "the training ended badly: %s", run->reason);
}

void sl_bench_run_free(struct sl_bench_run *run)
{
    json_decref(run->start);
    json_decref(run->end);
    *run = (struct sl_bench_run){0};
}
