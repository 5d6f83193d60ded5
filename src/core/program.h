/* Run other programs, which draw. No program starts while MPI runs. */
#ifndef SL_CORE_PROGRAM_H
#define SL_CORE_PROGRAM_H

/* Return 0 if `name` is in PATH. SL_ERR_SYSTEM says what the program does (`task`: "draws ...") and
 * the Debian package that has it. */
int sl_program_probe(const char *name, const char *task, const char *package);

/* Run the program arguments[0] of PATH with these arguments, NULL at the end, without input. Set
 * *text to its output and errors; the caller frees it. Kill the program's process group after
 * `seconds` (0: never), and on SIGINT, SIGTERM and SIGHUP. SL_ERR_SYSTEM: the program cannot start,
 * fails or takes too long; the sentence quotes its output. */
int sl_program_run(char *const *arguments, int seconds, char **text);

#endif
