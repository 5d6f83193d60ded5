/* starling report: one page from several logs. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "report/page.h"

struct config {
    char *output, *trace;
    bool quiet;
};

enum { MOST_RUNS = 64 };

#define FIELD(name) offsetof(struct config, name)

static const struct sl_option options[] = {
    {"output", SL_OPTION_STRING, FIELD(output), "report.html", 0, 0, NULL, "FILE",
     "write the page to FILE", "Files"},
    {"trace", SL_OPTION_STRING, FIELD(trace), NULL, 0, 0, NULL, "FILE",
     "the file of --trace of the first run; unless given, the one that its log names", "Files"},
    {"quiet", SL_OPTION_FLAG, FIELD(quiet), "no", 0, 0, NULL, NULL, "print nothing but errors",
     "Files"},
    {0},
};

/* Refuse to write the page over a file that it is made from. */
static int check_output(const struct config *config, int count, char **logs)
{
    for (int r = 0; r <= count; r++) {
        const char *read = r < count ? logs[r] : config->trace;
        if (sl_file_same(config->output, read))
            return sl_error(SL_ERR_USAGE,
                            "--output %s is a file that is read (expected another file)",
                            config->output);
    }
    return 0;
}

static int write_page(const struct config *config, int count, char **logs)
{
    struct sl_logged_run runs[MOST_RUNS] = {{0}};
    int code = check_output(config, count, logs);
    for (int r = 0; !code && r < count; r++)
        code = sl_logged_run_read(logs[r], r == 0 ? config->trace : NULL, &runs[r]);
    if (!code)
        code = sl_page_write(runs, count, config->output);
    if (!code && !config->quiet)
        printf("%s: %d run%s\n", config->output, count, count > 1 ? "s" : "");
    for (int r = 0; r < count; r++)
        sl_logged_run_free(&runs[r]);
    return code;
}

static int run_report(int argc, char **argv)
{
    struct config config = {0};
    int positionals;
    int code =
        sl_command_parse(&sl_command_report, &config, argc, argv, 1, MOST_RUNS, &positionals, NULL);
    if (!code)
        code = write_page(&config, positionals, argv);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_report = {
    .name = "report",
    .synopsis = "LOG... [--OPTION ...]",
    .summary = "Draw the logs of runs as one page of HTML",
    .options = options,
    .run = run_report,
};
