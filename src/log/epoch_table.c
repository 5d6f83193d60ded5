#include "log/epoch_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/number.h"
#include "log/report.h"

static const char header[] =
    "epoch,loss,train_accuracy,val_accuracy,test_accuracy,train_score,val_score,test_score,"
    "seconds,eval_seconds,compute_seconds,communication_seconds,hidden_seconds";

bool sl_epoch_table_is(const char *path)
{
    const size_t length = path ? strlen(path) : 0;
    return length > 4 && strcasecmp(path + length - 4, ".csv") == 0;
}

int sl_epoch_table_check(const char *path)
{
    char line[sizeof header + 1] = "";
    const char *why;
    FILE *file = sl_file_stream(path, &why);
    const bool empty = !file || !fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    return empty || strcmp(line, header) == 0
               ? 0
               : sl_error(SL_ERR_DATA,
                          "--log %s: has other columns (expected a table of the run that goes on, "
                          "or a new name)",
                          path);
}

int sl_epoch_table_cut(FILE *file, const char *path, long long epochs)
{
    char line[1024];
    long kept = 0;
    const char *why;
    FILE *rows = sl_file_stream(path, &why);
    if (!rows)
        return -1;
    while (fgets(line, sizeof line, rows) && strchr(line, '\n') &&
           (kept == 0 || strtoll(line, NULL, 10) <= epochs))
        kept = ftell(rows);
    const bool good = !ferror(rows) && kept >= 0;
    fclose(rows);
    return good && ftruncate(fileno(file), kept) == 0 ? 0 : -1;
}

void sl_epoch_table_begin(FILE *file)
{
    fprintf(file, "%s\n", header); /* if the header is lost, the next row's failure tells */
}

static void put_measured(FILE *file, double value)
{
    fputc(',', file);
    if (!isnan(value))
        fprintf(file, "%.17g", value);
}

int sl_epoch_table_row(FILE *file, const struct sl_epoch_report *e)
{
    const double measured[] = {e->train_accuracy,
                               e->val_accuracy,
                               e->test_accuracy,
                               e->score.of[SL_SPLIT_TRAIN],
                               e->score.of[SL_SPLIT_VAL],
                               e->score.of[SL_SPLIT_TEST],
                               e->seconds,
                               e->eval_seconds,
                               sl_overlap_seconds(e->times.compute),
                               sl_overlap_seconds(e->times.communication),
                               sl_overlap_seconds(e->times.hidden)};
    const locale_t before = uselocale(sl_number_locale());
    fprintf(file, "%lld,", (long long)e->epoch);
    if (isnan(e->loss))
        fputs("nan", file); /* a reader must not miss a NaN */
    else
        fprintf(file, "%.17g", e->loss);
    for (size_t m = 0; m < sizeof measured / sizeof *measured; m++)
        put_measured(file, measured[m]);
    uselocale(before);
    fputc('\n', file);
    return fflush(file) || ferror(file) ? -1 : 0;
}
