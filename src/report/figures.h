/* The figures of a report: what they show, and whether the logs have it. */
#ifndef SL_REPORT_FIGURES_H
#define SL_REPORT_FIGURES_H

#include "report/plot.h"
#include "report/runs.h"
#include <stdbool.h>

struct sl_figure {
    const char *title, *text; /* text: what the reader sees, in a sentence */
    bool of_each;             /* of one run; else of all together */
    bool wide;                /* as wide as the page; narrow screens scroll */
    /* Whether runs (count) have something to draw, and the gnuplot commands and keys of it. */
    bool (*shows)(const struct sl_logged_run *runs, int count);
    void (*write)(struct sl_plot *plot, const struct sl_logged_run *runs, int count);
};

/* NULL title: the end. */
extern const struct sl_figure sl_figures[];

#endif
