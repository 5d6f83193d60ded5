#include "report/svg.h"

#include <stddef.h>
#include <string.h>

/* Text before an id, or before a reference to an id. */
static const char *const before_id[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};

/* Elements with the drawing program's own texts. */
static const char *const dropped[][2] = {{"<title>Gnuplot</title>", ""}, {"<desc>", "</desc>"}};

/* Return how many bytes at `at` are left out; 0: none. */
static size_t dropped_length(const char *at)
{
    for (size_t d = 0; d < sizeof dropped / sizeof *dropped; d++) {
        const char *const *part = dropped[d];
        if (strncmp(at, part[0], strlen(part[0])) != 0)
            continue;
        const char *end = strstr(at, part[1]);
        return end && *part[1] ? (size_t)(end - at) + strlen(part[1]) : strlen(part[0]);
    }
    return 0;
}

/* Return the length of the text at `at` that an id follows; 0: none. */
static size_t before_id_length(const char *at)
{
    for (size_t b = 0; b < sizeof before_id / sizeof *before_id; b++)
        if (strncmp(at, before_id[b], strlen(before_id[b])) == 0)
            return strlen(before_id[b]);
    return 0;
}

void sl_svg_print(FILE *out, const char *svg, int number)
{
    while (*svg) {
        const size_t leave_out = dropped_length(svg), words = before_id_length(svg);
        if (leave_out > 0) {
            svg += leave_out;
        } else if (words > 0) {
            fprintf(out, "%.*sf%d-", (int)words, svg, number);
            svg += words;
        } else {
            fputc(*svg++, out);
        }
    }
}
