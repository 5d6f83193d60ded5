/* Draws figures with gnuplot. */
#ifndef SL_REPORT_PLOT_H
#define SL_REPORT_PLOT_H

#include <stdio.h>

#include <jansson.h>

/* Return the colour of series k, as "#rrggbb", legible on white and on black. SL_PLOT_GREY: the
 * colour of the background's lines. */
enum { SL_PLOT_GREY = -1 };
const char *sl_plot_colour(int k);

/* A figure under way: gnuplot's script, and the keys of its colours. */
struct sl_plot {
    FILE *script;
    json_t *keys; /* list of {name, colour, dash}; dash 0: an area */
};

/* Add the key of series k. The series has colour k, and is an area (dash 0) or a line: 1 solid, 2
 * dashed, 3 dotted. `name` NULL: add no key. */
void sl_plot_key(struct sl_plot *plot, const char *name, int k, int dash);

/* Change the size of the figure, which sl_plot_draw has set. */
void sl_plot_size(FILE *script, int width, int height);

/* Set the tics of an x axis of length `length`: at most five, so that their numbers fit side by
 * side in a narrow figure. gnuplot's own tics are up to ten. */
void sl_plot_x_tics(FILE *script, double length);

/* Print text as a word between double quotes. Quotes, backquotes, backslashes and control
 * characters are left out: gnuplot would end the word there, or run a command. */
void sl_plot_word(FILE *script, const char *text);

/* Return 0 if gnuplot is in PATH. The sentence of SL_ERR_SYSTEM says what is missing. */
int sl_plot_probe(void);

/* Draw the figure that `write` puts into a script, in which terminal and axes are set already. Set
 * *svg to the figure: an <svg> element of width x height units that scales; free it. Set *keys to
 * the list of its keys, for the text around the figure. Return 0, or SL_ERR_SYSTEM if gnuplot is
 * missing or fails; the sentence has gnuplot's words. */
int sl_plot_draw(void (*write)(struct sl_plot *plot, const void *context), const void *context,
                 int width, int height, char **svg, json_t **keys);

#endif
