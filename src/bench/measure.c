#include "bench/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/json_file.h"
#include "log/environment.h"

int sl_bench_parse_list(const char *name, const char *text, int64_t least, int64_t most, int room,
                        int64_t *numbers, int *count)
{
    *count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || at[0] < '0' || at[0] > '9' || errno || (*end && *end != ',') ||
            number < least || number > most)
            return sl_error(SL_ERR_USAGE,
                            "--%s: expected whole numbers from %" PRId64 " to %" PRId64
                            " with commas between, not \"%s\"",
                            name, least, most, text);
        if (*count == room)
            return sl_error(SL_ERR_USAGE, "--%s: at most %d numbers", name, room);
        numbers[(*count)++] = number;
        at = end;
        if (!*at)
            return 0;
    }
}

/* ---- Taking turns ---- */

/* The least seconds of a sample: an interruption costs microseconds. */
static const double LEAST_SECONDS = 0.01;

static int prepare(struct sl_contestant *contestant, int repetitions)
{
    contestant->seconds = calloc((size_t)repetitions, sizeof *contestant->seconds);
    if (!contestant->seconds)
        return sl_error(SL_ERR_SYSTEM, "no memory for the times of %d repetitions", repetitions);
    contestant->times = 1;
    for (;;) {
        const double seconds = contestant->run(contestant->context, contestant->times);
        if (seconds >= LEAST_SECONDS)
            return 0;
        const double factor = seconds > 0.0 ? 1.2 * LEAST_SECONDS / seconds : 1000.0;
        contestant->times = 1 + (int64_t)((double)contestant->times * fmin(factor, 1000.0));
    }
}

int sl_bench_alternate(struct sl_contestant *contestants, int count, int repetitions, bool progress)
{
    const int all = count * (repetitions + 1);
    int done = 0, code = 0;
    for (int c = 0; c < count; c++)
        contestants[c].seconds = NULL;
    for (int c = 0; !code && c < count; c++) {
        code = prepare(&contestants[c], repetitions);
        if (progress)
            sl_bench_progress(++done, all);
    }
    for (int r = 0; !code && r < repetitions; r++)
        for (int turn = 0; turn < count; turn++) {
            struct sl_contestant *c = &contestants[r % 2 ? turn : count - 1 - turn];
            c->seconds[r] = c->run(c->context, c->times) / (double)c->times;
            if (progress)
                sl_bench_progress(++done, all);
        }
    return code;
}

void sl_bench_free(struct sl_contestant *contestants, int count)
{
    for (int c = 0; c < count; c++)
        free(contestants[c].seconds);
}

void sl_bench_progress(int done, int all)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, done < all ? "\r%d/%d" : "\r\033[K", done, all);
    fflush(stderr);
}

/* ---- Figures ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return a quantile, linear between the two values around it. */
static double quantile(const double *sorted, int count, double q)
{
    const double at = q * (count - 1);
    const int below = (int)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

struct sl_spread sl_spread_of(const double *values, int count)
{
    struct sl_spread spread = {NAN, NAN, NAN};
    double *sorted = count ? malloc((size_t)count * sizeof *sorted) : NULL;
    if (!sorted)
        return spread;
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    spread = (struct sl_spread){quantile(sorted, count, 0.5), quantile(sorted, count, 0.25),
                                quantile(sorted, count, 0.75)};
    free(sorted);
    return spread;
}

struct sl_spread sl_spread_of_rate(double work, const double *seconds, int count)
{
    double *rates = malloc((size_t)count * sizeof *rates);
    for (int r = 0; rates && r < count; r++)
        rates[r] = work / seconds[r];
    const struct sl_spread spread = sl_spread_of(rates, rates ? count : 0);
    free(rates);
    return spread;
}

struct sl_spread sl_spread_of_ratio(const double *numerator, const double *denominator, int count)
{
    double *ratios = malloc((size_t)count * sizeof *ratios);
    for (int r = 0; ratios && r < count; r++)
        ratios[r] = numerator[r] / denominator[r];
    const struct sl_spread spread = sl_spread_of(ratios, ratios ? count : 0);
    free(ratios);
    return spread;
}

static void set_number(json_t *row, const char *key, const char *suffix, double value)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", key, suffix);
    json_object_set_new(row, name, isfinite(value) ? json_real(value) : json_null());
}

void sl_bench_set_spread(json_t *row, const char *key, struct sl_spread spread)
{
    set_number(row, key, "", spread.median);
    set_number(row, key, "_low", spread.low);
    set_number(row, key, "_high", spread.high);
}

/* ---- The file ---- */

json_t *sl_bench_document(const char *part, const struct sl_option *table, const void *config,
                          json_t *rows)
{
    char date[32];
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "bench", part, "date", date, "versions",
                     sl_environment_versions(), "machine", sl_environment_hardware(), "options",
                     sl_options_to_json(table, config), "rows", rows);
}

int sl_bench_keep(const json_t *document, const char *path)
{
    return path ? sl_json_write(document, path) : 0;
}

int sl_bench_write(json_t *document, const char *path)
{
    const int code = sl_bench_keep(document, path);
    json_decref(document);
    return code;
}
