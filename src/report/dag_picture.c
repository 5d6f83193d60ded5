#include "report/dag_picture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/dag.h"
#include "core/error.h"
#include "core/file.h"
#include "core/program.h"

/* Limits of a picture: 600 tasks with 4,000 arrows take 2 s. A chain of many layers takes longer
 * than a wide graph. */
enum { MOST = 5000, SECONDS = 60 };

int sl_dag_picture_probe(void)
{
    return sl_program_probe("dot", "draws the tasks of --dag FILE.svg", "graphviz");
}

static int keep_text(const char *text)
{
    char reason[512];
    snprintf(reason, sizeof reason, "%s", sl_error_message());
    return sl_error(SL_ERR_SYSTEM, "%s; %s has the text", reason, text);
}

/* Run dot. nslimit bounds the search for shorter arrows. */
static int run_dot(const char *text, const char *svg)
{
    struct sl_new_file out;
    char *words = NULL;
    int code = sl_file_create(&out, svg);
    if (code)
        return code;
    code = sl_program_run((char *[]){"dot", "-Gnslimit=1", "-Gnslimit1=1", "-Tsvg", "-o",
                                     out.temporary, (char *)text, NULL},
                          SECONDS, &words);
    free(words);
    if (!code)
        return sl_file_commit(&out, true);
    sl_file_discard(&out);
    return sl_error_about(code, svg);
}

int sl_dag_picture_draw(const char *svg)
{
    char text[PATH_MAX];
    const int size = sl_dag_size();
    snprintf(text, sizeof text, "%s.%ld.dot", svg, (long)getpid());
    int code = sl_dag_write(text);
    if (code)
        return code;
    if (size > MOST)
        code = sl_error(SL_ERR_SYSTEM,
                        "--dag %s: %d tasks and arrows (expected at most %d: fewer tiles or "
                        "layers)",
                        svg, size, MOST);
    if (!code)
        code = run_dot(text, svg);
    if (code)
        return keep_text(text);
    unlink(text);
    return 0;
}
