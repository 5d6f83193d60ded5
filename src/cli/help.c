#include "cli/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "config.h"
#include "core/error.h"
#include "core/options_print.h"

static const char about[] = "Starling trains graph neural networks on whole graphs. Every step of "
                            "an epoch is a StarPU task, so that CPUs, "
                            "GPUs and MPI ranks all work on one task graph.";

/* ---- Help ---- */

static int count_options(const struct sl_command *command)
{
    int count = 0;
    while (command->options[count].name)
        count++;
    return count;
}

static void print_command_help(const struct sl_command *command, bool all)
{
    printf("usage: starling %s %s\n\n%s.\n", command->name, command->synopsis, command->summary);
    if (command->options)
        sl_options_print_help(command->options, all ? NULL : command->often);
    if (command->often && !all)
        printf("\nAll %d options: starling %s --help=all\n", count_options(command), command->name);
    for (const struct sl_command *const *part = command->parts; part && *part; part++) {
        putchar('\n');
        print_command_help(*part, all);
    }
}

/* Return the part of a command that the first word names, or the command itself. */
static const struct sl_command *narrow(const struct sl_command *command, int argc, char **argv)
{
    const struct sl_command *part = argc > 0 ? sl_command_part(command, argv[0]) : NULL;
    return part ? part : command;
}

int sl_help_print(int argc, char **argv)
{
    if (argc > 0) {
        const struct sl_command *command = sl_command_find(argv[0]);
        if (!command)
            return sl_command_refuse(argv[0]);
        print_command_help(narrow(command, argc - 1, argv + 1), true);
        return 0;
    }
    printf("usage: starling COMMAND [ARGUMENT ...] [--OPTION ...]\n\n");
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        printf("  %-10s %s\n", (*c)->name, (*c)->summary);
    printf("  %-10s %s\n", "help", "Explain a command and all its options");
    printf("  %-10s %s\n", "man", "Print a man page");
    printf("  %-10s %s\n", "completion",
           "Print the completion of commands and options for a shell");
    printf("  %-10s %s\n", "version", "Print the version");
    printf(
        "\nstarling COMMAND --help explains each. First steps: starling generate community graph; "
        "starling train graph\n");
    return 0;
}

/* Words after "--" are no options. */
bool sl_help_print_asked(const struct sl_command *command, int argc, char **argv)
{
    for (int a = 0; a < argc && strcmp(argv[a], "--") != 0; a++) {
        const bool all = strcmp(argv[a], "--help=all") == 0;
        if (all || strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0) {
            print_command_help(narrow(command, argc, argv), all);
            return true;
        }
    }
    return false;
}

/* ---- Man pages ---- */

static void print_title(const char *name)
{
    printf(".TH STARLING");
    if (name)
        putchar('-');
    for (const char *letter = name; letter && *letter; letter++)
        putchar(toupper((unsigned char)*letter));
    printf(" 1 \"\" \"Starling %s\" \"User Commands\"\n", SL_VERSION);
}

static void print_synopsis(const struct sl_command *command, const char *before)
{
    printf("%s.B starling %s\n", before, command->name);
    sl_print_roff(command->synopsis);
    putchar('\n');
}

static void print_summary(const struct sl_command *command)
{
    sl_print_roff(command->summary);
    puts(".");
}

static void print_command_page(const struct sl_command *command)
{
    print_title(command->name);
    printf(".SH NAME\nstarling\\-%s \\- ", command->name);
    putchar(tolower((unsigned char)command->summary[0]));
    sl_print_roff(command->summary + 1);
    printf("\n.SH SYNOPSIS\n");
    print_synopsis(command, "");
    for (const struct sl_command *const *part = command->parts; part && *part; part++)
        print_synopsis(*part, ".br\n");
    printf(".SH DESCRIPTION\n");
    print_summary(command);
    if (command->options) {
        printf(".SH OPTIONS\n");
        sl_options_print_man(command->options);
    }
    for (const struct sl_command *const *part = command->parts; part && *part; part++) {
        printf(".SH \"starling %s\"\n", (*part)->name);
        print_summary(*part);
        sl_options_print_man((*part)->options);
    }
    printf(".SH SEE ALSO\n.BR starling (1)\n");
}

static void print_program_page(void)
{
    print_title(NULL);
    printf(".SH NAME\nstarling \\- train graph neural networks on whole graphs\n");
    printf(".SH SYNOPSIS\n");
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        print_synopsis(*c, c > sl_commands ? ".br\n" : "");
    printf(".SH DESCRIPTION\n%s\n", about);
    printf(".PP\nStarted by an MPI launcher (\\fBmpirun \\-n 4 starling train\\fR ...), the same "
           "commands run on all "
           "its ranks.\n");
    printf(".SH COMMANDS\nEach has a page with its options.\n");
    for (const struct sl_command *const *c = sl_commands; *c; c++) {
        printf(".TP\n.BR starling\\-%s (1)\n", (*c)->name);
        print_summary(*c);
    }
    printf(
        ".SH EXIT STATUS\n0: the work is done. It is also done where a signal ended a training: "
        "SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU.\n.P\n1: the work failed. A file "
        "cannot be read, written or understood; numbers are not finite; or memory, a program or a "
        "rank is missing.\n.P\n2: the usage is wrong. An option or argument is unknown or "
        "malformed, or does not go with the others, the dataset or the machine.\n.P\n"
        "Under a launcher one rank reports, and its status is that of the launcher.\n");
    printf(".SH ENVIRONMENT\n.TP\n.B STARPU_*\nVariables of StarPU win over what the program would "
           "choose, for instance "
           "\\fBSTARPU_NCPU\\fR and \\fBSTARPU_SCHED\\fR.\n"
           ".TP\n.B XDG_CACHE_HOME\nStarPU's measurements of this machine are kept there; else in "
           "\\fBSTARPU_HOME\\fR, else in \\fBHOME\\fR.\n"
           ".TP\n.B STARLING_ALONE\nSet to 1, every process of a launcher runs by itself.\n");
    printf(".SH SEE ALSO\n.BR mpirun (1)\n");
}

int sl_help_print_man(int argc, char **argv)
{
    const struct sl_command *command = argc > 0 ? sl_command_find(argv[0]) : NULL;
    if (argc > 0 && !command)
        return sl_command_refuse(argv[0]);
    if (command)
        print_command_page(command);
    else
        print_program_page();
    return 0;
}

/* ---- Completion ---- */

static void print_names(const struct sl_command *const *list, size_t skip)
{
    for (const struct sl_command *const *c = list; *c; c++)
        printf("%s%s", c > list ? " " : "", (*c)->name + skip);
}

/* Print the commands that have parts, with `between` between them. */
static void print_parted(const char *between)
{
    const char *before = "";
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        if ((*c)->parts) {
            printf("%s%s", before, (*c)->name);
            before = between;
        }
}

/* Print the cases of a command and its parts. A part is two words: "bench spmm". */
static void print_bash_case(const struct sl_command *command)
{
    printf("    '%s')\n", command->name);
    if (command->options)
        sl_options_print_bash(command->options, "        ");
    if (command->parts) {
        printf("        values='");
        print_names(command->parts, strlen(command->name) + 1);
        puts("'");
    }
    puts("        ;;");
    for (const struct sl_command *const *part = command->parts; part && *part; part++)
        print_bash_case(*part);
}

static void print_bash(void)
{
    printf("# Completion of starling for bash.\n_starling() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} options= values=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    print_names(sl_commands, 0);
    printf(" help version man completion' -- \"$word\"))\n        return\n    fi\n"
           "    case $command in\n    ");
    print_parted(" | ");
    printf(") [ \"$COMP_CWORD\" -le 2 ] || command=\"$command ${COMP_WORDS[2]}\" ;;\n    esac\n"
           "    case $command in\n");
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        print_bash_case(*c);
    printf("    help | man) values='");
    print_names(sl_commands, 0);
    printf("' ;;\n    completion) values='bash zsh' ;;\n    esac\n"
           "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
           "    *) [ -z \"$values\" ] || COMPREPLY=($(compgen -W \"$values\" -- \"$word\")) ;;\n"
           "    esac\n}\ncomplete -o default -F _starling starling\n");
}

static void print_zsh_case(const struct sl_command *command, const char *files)
{
    printf("'%s')\n    _arguments", command->name);
    if (command->options)
        sl_options_print_zsh(command->options, "        ");
    if (command->parts) {
        printf(" \\\n        '1:part:(");
        print_names(command->parts, strlen(command->name) + 1);
        fputs(")'", stdout);
    }
    printf("%s\n    ;;\n", files);
    for (const struct sl_command *const *part = command->parts; part && *part; part++)
        print_zsh_case(*part, files);
}

static void print_zsh(void)
{
    printf("#compdef starling\n# Completion of starling for zsh.\n"
           "if (( CURRENT == 2 )); then\n    compadd -- ");
    print_names(sl_commands, 0);
    printf(" help version man completion\n    return\nfi\n"
           "words=(\"${words[@]:1}\")\n(( CURRENT-- ))\n"
           "local command=${words[1]}\n"
           "if [[ $command == (");
    print_parted("|");
    printf(") ]] && (( CURRENT > 2 )); then\n"
           "    words=(\"${words[@]:1}\")\n    (( CURRENT-- ))\n"
           "    command=\"$command ${words[1]}\"\nfi\n"
           "case $command in\n");
    for (const struct sl_command *const *c = sl_commands; *c; c++)
        print_zsh_case(*c, " \\\n        '*:file:_files'");
    printf("help | man)\n    compadd -- ");
    print_names(sl_commands, 0);
    printf("\n    ;;\ncompletion)\n    compadd -- bash zsh\n    ;;\nesac\n");
}

int sl_help_print_completion(int argc, char **argv)
{
    const char *shell = argc > 0 ? argv[0] : "";
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return sl_error(SL_ERR_USAGE, "completion %s: expected bash or zsh", shell);
    return 0;
}
