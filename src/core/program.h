/* Other programs, which draw. No program starts while MPI runs. */
#ifndef SL_CORE_PROGRAM_H
#define SL_CORE_PROGRAM_H

/* Return 0 if `name` is in PATH. SL_ERR_SYSTEM says what the program does (`task`: "draws ...") and
 * which Debian package has it. */
int sl_program_probe(const char *name, const char *task, const char *package);

/* Run arguments[0] of PATH with these arguments, NULL at the end, without input. *text becomes what
 * the program prints, errors included; free it. Kill the program's group of processes after so many
 * seconds (0: never), and on SIGINT, SIGTERM and SIGHUP.
 * SL_ERR_SYSTEM: the program cannot start, fails or takes too long; the sentence has its words. */
int sl_program_run(char *const *arguments, int seconds, char **text);

#endif
