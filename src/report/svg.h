/* A figure's <svg> element, made ready to stand beside others in one page. */
#ifndef SL_REPORT_SVG_H
#define SL_REPORT_SVG_H

#include <stdio.h>

/* Print the element without the title and description of the program that drew it. Its ids, and the
 * references to them, get the prefix "f<number>-": an id is there once in a page. */
void sl_svg_print(FILE *out, const char *svg, int number);

#endif
