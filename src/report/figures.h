/* The figures of a report: what they show, and whether the logs have it. */
#ifndef SL_REPORT_FIGURES_H
#define SL_REPORT_FIGURES_H

#include <stdbool.h>
#include <stdio.h>

#include "report/runs.h"

struct sl_figure {
    const char *title, *text; /* text: what the reader sees, in a sentence */
    bool of_each;             /* of one run; else of all together */
    /* Whether runs (count) have something to draw, and the gnuplot commands of it. */
    bool (*shows)(const struct sl_logged_run *runs, int count);
    void (*write)(FILE *script, const struct sl_logged_run *runs, int count);
};

/* NULL title: the end. */
extern const struct sl_figure sl_figures[];

#endif
