/* Signals that would end the program without a word. */
#ifndef SL_CLI_SIGNALS_H
#define SL_CLI_SIGNALS_H

/* A file that is larger than allowed becomes an error of its writer. A file that shrinks while it
 * is mapped ends the program with a sentence that names it, and exit status 1. */
void sl_signals_catch(void);

#endif
