/* starling: finds the subcommand and turns its error into one line and an exit status. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "config.h"
#include "core/blas.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/runtime.h"

static const struct sl_command *const commands[] = {
    &sl_command_train,     &sl_command_predict, &sl_command_generate, &sl_command_convert,
    &sl_command_partition, &sl_command_info,    &sl_command_plan,     &sl_command_bench,
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const char about[] = "Starling trains graph neural networks on whole graphs. Every step of "
                            "an epoch is a StarPU task, so that CPUs, "
                            "GPUs and MPI ranks all work on one task graph.";

static const struct sl_command *find(const char *name)
{
    for (int c = 0; c < COMMANDS; c++)
        if (strcmp(commands[c]->name, name) == 0)
            return commands[c];
    return NULL;
}

static int refuse_command(const char *name)
{
    static const char *const others[] = {"help", "version"};
    const char *nearest = others[0];
    size_t best = sl_nearest_distance(name, nearest);
    if (sl_nearest_distance(name, others[1]) < best)
        best = sl_nearest_distance(name, nearest = others[1]);
    for (int c = 0; c < COMMANDS; c++)
        if (sl_nearest_distance(name, commands[c]->name) <= best)
            best = sl_nearest_distance(name, nearest = commands[c]->name);
    if (!sl_nearest_is_close(name, best))
        return sl_error(SL_ERR_USAGE, "unknown command \"%s\": see starling help", name);
    return sl_error(SL_ERR_USAGE,
                    "unknown command \"%s\": the nearest is \"%s\"; see starling help", name,
                    nearest);
}

static void print_command_help(const struct sl_command *command)
{
    printf("usage: starling %s %s\n\n%s.\n", command->name, command->synopsis, command->summary);
    if (command->options)
        sl_options_print_help(command->options);
    for (const struct sl_command *const *part = command->parts; part && *part; part++) {
        putchar('\n');
        print_command_help(*part);
    }
}

/* The command or part that the words name: they are those after a command's own. */
static const struct sl_command *narrow(const struct sl_command *command, int argc, char **argv)
{
    const struct sl_command *part = argc > 0 ? sl_command_part(command, argv[0]) : NULL;
    return part ? part : command;
}

static int print_help(int argc, char **argv)
{
    if (argc > 0) {
        const struct sl_command *command = find(argv[0]);
        if (!command)
            return refuse_command(argv[0]);
        print_command_help(narrow(command, argc - 1, argv + 1));
        return 0;
    }
    printf("usage: starling COMMAND [ARGUMENT ...] [--OPTION ...]\n\n");
    for (int c = 0; c < COMMANDS; c++)
        printf("  %-10s %s\n", commands[c]->name, commands[c]->summary);
    printf("  %-10s %s\n", "help", "Explain a command and its options");
    printf("  %-10s %s\n", "version", "Print the version");
    printf(
        "\nstarling COMMAND --help explains each. First steps: starling train examples/karate\n");
    return 0;
}

static int print_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("starling %s\n", SL_VERSION);
    return 0;
}

/* A line of roff in which dashes stay dashes. */
static void print_roff(const char *before, const char *text, const char *after)
{
    fputs(before, stdout);
    for (; *text; text++) {
        if (*text == '-')
            putchar('\\');
        putchar(*text);
    }
    fputs(after, stdout);
}

static void print_man_command(const struct sl_command *command)
{
    printf(".SH STARLING ");
    for (const char *letter = command->name; *letter; letter++)
        putchar(toupper((unsigned char)*letter));
    print_roff("\n.B starling ", command->name, "\n");
    print_roff("", command->synopsis, "\n.PP\n");
    print_roff("", command->summary, ".\n");
    if (command->options)
        sl_options_print_man(command->options);
}

static int print_man(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf(".TH STARLING 1 \"\" \"Starling %s\" \"User Commands\"\n", SL_VERSION);
    printf(".SH NAME\nstarling \\- train graph neural networks on whole graphs\n");
    printf(".SH SYNOPSIS\n");
    for (int c = 0; c < COMMANDS; c++) {
        printf("%s.B starling %s\n", c > 0 ? ".br\n" : "", commands[c]->name);
        print_roff("", commands[c]->synopsis, "\n");
    }
    printf(".SH DESCRIPTION\n%s\n", about);
    printf(".PP\nStarted by an MPI launcher (\\fBmpirun \\-n 4 starling train\\fR ...), the same "
           "commands run on all "
           "its ranks.\n");
    for (int c = 0; c < COMMANDS; c++) {
        print_man_command(commands[c]);
        for (const struct sl_command *const *part = commands[c]->parts; part && *part; part++)
            print_man_command(*part);
    }
    printf(".SH EXIT STATUS\n0: done. 1: a file, the data or the machine is at fault. 2: the "
           "command line is.\n");
    printf(".SH ENVIRONMENT\n.TP\n.B STARPU_*\nVariables of StarPU win over what the program would "
           "choose, for instance "
           "\\fBSTARPU_NCPU\\fR, \\fBSTARPU_SCHED\\fR and \\fBSTARPU_HOME\\fR.\n");
    printf(".SH SEE ALSO\n.BR mpirun (1)\n");
    return 0;
}

/* Is there a --help among the words, before a "--"? */
static int asks_help(int argc, char **argv)
{
    for (int a = 0; a < argc && strcmp(argv[a], "--") != 0; a++)
        if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
            return 1;
    return 0;
}

static int run(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } others[] = {
        {"help", print_help},       {"--help", print_help},       {"-h", print_help},
        {"version", print_version}, {"--version", print_version}, {"man", print_man},
    };
    if (argc < 2)
        return sl_error(SL_ERR_USAGE, "which command? See starling help");
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
        if (strcmp(argv[1], others[o].name) == 0)
            return others[o].run(argc - 2, argv + 2);
    if (argv[1][0] == '-')
        return sl_error(SL_ERR_USAGE, "%s: options come after a command; see starling help",
                        argv[1]);
    const struct sl_command *command = find(argv[1]);
    if (!command)
        return refuse_command(argv[1]);
    if (asks_help(argc - 2, argv + 2)) {
        print_command_help(narrow(command, argc - 2, argv + 2));
        return 0;
    }
    return command->run(argc - 2, argv + 2);
}

/* All ranks see the same command line, so one rank is enough to report an error in it. */
static int is_other_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        if (getenv(marks[m]))
            return atoi(getenv(marks[m])) != 0;
    return 0;
}

int main(int argc, char **argv)
{
    sl_blas_load_alone(argv);
    int code = run(argc, argv);
    if (fflush(stdout) && !code)
        code = sl_error(SL_ERR_SYSTEM, "standard output cannot be written");
    /* One rank reports the error and fails. If the others failed, too, the launcher could end this
     * rank before it speaks. Before MPI starts, all ranks read the same command line. */
    const bool said_elsewhere =
        sl_error_message()[0] == '\0' || (is_other_rank() && !sl_runtime_started());
    if (code == 0 || said_elsewhere)
        return 0;
    fprintf(stderr, "starling: %s\n", sl_error_message());
    return code == SL_ERR_USAGE ? 2 : 1;
}
