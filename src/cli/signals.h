/* Handles signals that would end the program without a sentence. */
#ifndef SL_CLI_SIGNALS_H
#define SL_CLI_SIGNALS_H

/* Catch the signals. Writing a file beyond the size limit then returns an error. A file that
 * shrinks while it is mapped ends the program with a sentence that names it, and exit status 1. */
void sl_signals_catch(void);

#endif
