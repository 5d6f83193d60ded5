/* Prepares a figure's <svg> element to stand beside others in one page. */
#ifndef SL_REPORT_SVG_H
#define SL_REPORT_SVG_H

#include <stdio.h>

/* Print the element without the title and description of the program that drew it. Ids and
 * references to them get the prefix "f<number>-", so that each id is unique in the page. */
void sl_svg_print(FILE *out, const char *svg, int number);

#endif
