/* Figures, drawn by gnuplot. */
#ifndef SL_REPORT_PLOT_H
#define SL_REPORT_PLOT_H

#include <stdio.h>

/* Return the colour of series k, as "#rrggbb": legible on white and on black. */
const char *sl_plot_colour(int k);

/* Print text between quotes of a gnuplot command. */
void sl_plot_quote(FILE *script, const char *text);

/* Print text as a word between double quotes of a datablock; characters that would end it are left
 * out. */
void sl_plot_word(FILE *script, const char *text);

/* Whether gnuplot is in PATH. SL_ERR_SYSTEM says what is missing. */
int sl_plot_probe(void);

/* Draw what `write` puts into a script. The script begins with terminal and axes set. *svg becomes
 * the figure, an <svg> element of width x height units that scales; free it. SL_ERR_SYSTEM: gnuplot
 * is not there, or fails; its words are in the sentence. */
int sl_plot_draw(void (*write)(FILE *script, const void *context), const void *context, int width,
                 int height, char **svg);

#endif
