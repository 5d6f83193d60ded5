/* Figures, drawn by gnuplot. */
#ifndef SL_REPORT_PLOT_H
#define SL_REPORT_PLOT_H

#include <stdio.h>

#include <jansson.h>

/* Return the colour of series k, as "#rrggbb": legible on white and on black. SL_PLOT_GREY: of
 * what is in the background. */
enum { SL_PLOT_GREY = -1 };
const char *sl_plot_colour(int k);

/* A figure while it is written: gnuplot's script, and what the colours mean. */
struct sl_plot {
    FILE *script;
    json_t *keys; /* a list of {name, colour, dash}; dash 0: an area */
};

/* Say what series k is, which has the colour k and is an area (dash 0) or a line: 1 solid, 2
 * dashed, 3 dotted. No name: nothing needs to be said. */
void sl_plot_key(struct sl_plot *plot, const char *name, int k, int dash);

/* Set the size of the figure, which sl_plot_draw has set, to another one. */
void sl_plot_size(FILE *script, int width, int height);

/* Set the tics of an x axis of that length: at most five, whose numbers have room beside one
 * another in a narrow figure. gnuplot's own are up to ten. */
void sl_plot_x_tics(FILE *script, double length);

/* Print text as a word between double quotes. Quotes, backquotes, backslashes and control
 * characters are left out: gnuplot would end the word there, or run a command. */
void sl_plot_word(FILE *script, const char *text);

/* Whether gnuplot is in PATH. SL_ERR_SYSTEM says what is missing. */
int sl_plot_probe(void);

/* Draw what `write` puts into a script, where terminal and axes are set already. *svg becomes the
 * figure: an <svg> element of width x height units that scales; free it. *keys becomes the list of
 * its keys, for the text around the figure. SL_ERR_SYSTEM: gnuplot is missing or fails; the
 * sentence has its words. */
int sl_plot_draw(void (*write)(struct sl_plot *plot, const void *context), const void *context,
                 int width, int height, char **svg, json_t **keys);

#endif
