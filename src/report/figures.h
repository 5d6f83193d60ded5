/* The figures of a report. A figure is shown if the logs have its data. */
#ifndef SL_REPORT_FIGURES_H
#define SL_REPORT_FIGURES_H

#include "report/plot.h"
#include "report/runs.h"
#include <stdbool.h>

struct sl_figure {
    const char *title, *text; /* text: a sentence for the reader */
    bool of_each;             /* a figure for each run; else one for all runs */
    bool wide;                /* page-wide; narrow screens scroll */
    /* `shows`: whether runs (count) have data to draw. `write`: write the gnuplot commands and
     * keys. */
    bool (*shows)(const struct sl_logged_run *runs, int count);
    void (*write)(struct sl_plot *plot, const struct sl_logged_run *runs, int count);
};

/* All figures. A NULL title ends the list. */
extern const struct sl_figure sl_figures[];

#endif
