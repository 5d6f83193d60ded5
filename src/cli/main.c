/* starling: runs a subcommand, and turns its error into one line and an exit status. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/signals.h"
#include "config.h"
#include "core/blas.h"
#include "core/error.h"
#include "core/json_file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/plain.h"
#include "core/ranks.h"
#include "core/runtime.h"
#include "core/stop.h"

static int print_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("starling %s\n", SL_VERSION);
    return 0;
}

static int run_command(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } others[] = {
        {"help", sl_help_print},
        {"--help", sl_help_print},
        {"-h", sl_help_print},
        {"version", print_version},
        {"--version", print_version},
        {"man", sl_help_print_man},
        {"completion", sl_help_print_completion},
    };
    if (argc < 2)
        return sl_error(SL_ERR_USAGE, "which command? See starling help");
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
        if (strcmp(argv[1], others[o].name) == 0)
            return sl_runtime_meet(argv[1], others[o].run(argc - 2, argv + 2));
    if (argv[1][0] == '-')
        return sl_error(SL_ERR_USAGE, "%s: options come after a command; see starling help",
                        argv[1]);
    const struct sl_command *command = sl_command_find(argv[1]);
    if (!command)
        return sl_runtime_refuse(sl_command_refuse(argv[1]));
    if (sl_help_print_asked(command, argc - 2, argv + 2))
        return sl_runtime_meet("help", 0);
    const int code = command->run(argc - 2, argv + 2);
    if (!command->on_ranks)
        return sl_runtime_meet(command->name, code);
    return code ? sl_runtime_refuse(code) : 0;
}

enum { WAIT_FOR_RANK_0 = 5 }; /* seconds */

static void speak(void)
{
    sl_warn("%s", sl_error_message()[0] ? sl_error_message() : "no memory");
}

/* Whether this process is not rank 0, of a command that ranks run one by one, without MPI. */
static bool is_other_rank(void)
{
    return !sl_ranks_use_mpi() && sl_launcher_rank() != 0;
}

/* Exit at once. Tasks still run, and destructors would free what they use. */
static void end_with_error(void)
{
    sl_stop_peers();
    _exit(1);
}

int main(int argc, char **argv)
{
    sl_signals_catch();
    sl_fatal_ends(end_with_error);
    sl_json_failures(); /* failures are counted from now on */
    sl_plain_stdout();
    sl_blas_load_alone(argv);
    sl_blas_choose_kernels();
    sl_runtime_keep_mpi();
    int code = run_command(argc, argv);
    if (!code && sl_json_failures())
        code = sl_error(SL_ERR_SYSTEM, "no memory for a part of the results");
    if (fflush(stdout) && !code)
        code = sl_error(SL_ERR_SYSTEM, "standard output cannot be written");
    /* Usually rank 0 fails, too. Let it speak first; the launcher ends this rank meanwhile. */
    if (code && is_other_rank())
        sleep(WAIT_FOR_RANK_0);
    code = sl_runtime_end(code, speak);
    return code == 0 || code == SL_ERR_STOPPED ? 0 : code == SL_ERR_USAGE ? 2 : 1;
}
