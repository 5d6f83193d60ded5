#include "data/formats/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

int sl_csv_open(struct sl_csv *csv, const char *path)
{
    *csv = (struct sl_csv){.delimiter = '\0'};
    return sl_text_open(&csv->text, path);
}

void sl_csv_close(struct sl_csv *csv)
{
    sl_text_close(&csv->text);
    free(csv->field);
    free(csv->record);
    *csv = (struct sl_csv){.delimiter = '\0'};
}

static int add_field(struct sl_csv *csv, char *field)
{
    if (csv->fields == csv->field_capacity) {
        const int64_t capacity = csv->field_capacity ? 2 * csv->field_capacity : 64;
        char **larger = reallocarray(csv->field, (size_t)capacity, sizeof *larger);
        if (!larger)
            return sl_error(SL_ERR_SYSTEM, "%s: out of memory for %" PRId64 " fields",
                            csv->text.path, capacity);
        csv->field = larger;
        csv->field_capacity = capacity;
    }
    csv->field[csv->fields++] = field;
    return SL_OK;
}

/* Puts a line at the end of the record. */
static int append(struct sl_csv *csv, size_t *length, const char *line)
{
    const size_t more = strlen(line);
    if (*length + more + 2 > csv->capacity) {
        const size_t capacity = 2 * csv->capacity + more + 256;
        char *record = realloc(csv->record, capacity);
        if (!record)
            return sl_error(SL_ERR_SYSTEM, "%s: out of memory for line %" PRId64, csv->text.path,
                            csv->line);
        csv->record = record;
        csv->capacity = capacity;
    }
    memcpy(csv->record + *length, line, more + 1);
    *length += more;
    return SL_OK;
}

static bool is_open(const char *line, bool open)
{
    for (; (line = strchr(line, '"')); line++)
        open = !open;
    return open;
}

/* The whole record in csv->record, where quotes go on over lines. */
static int collect(struct sl_csv *csv, char *line)
{
    size_t length = 0;
    bool open = is_open(line, false);
    int rc = append(csv, &length, line);
    while (!rc && open) {
        const int got = sl_text_next(&csv->text, &line);
        if (got < 0)
            return got;
        if (got == 0)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": a quote has no end", csv->text.path,
                            csv->line);
        open = is_open(line, open);
        rc = append(csv, &length, "\n");
        if (!rc)
            rc = append(csv, &length, line);
    }
    return rc;
}

/* Takes the quotes off the field at `from`. Returns what follows it; NULL: the quote has no end. */
static char *unquote(char *from)
{
    char *to = from, *at = from + 1;
    for (; *at; at++) {
        if (*at == '"' && at[1] != '"') {
            char *next = at + 1;
            *to = '\0';
            return next;
        }
        at += *at == '"';
        *to++ = *at;
    }
    return NULL;
}

static void trim(char *field)
{
    size_t length = strlen(field);
    while (length > 0 && (field[length - 1] == ' ' || field[length - 1] == '\t'))
        field[--length] = '\0';
}

static int split(struct sl_csv *csv, char *at)
{
    csv->fields = 0;
    for (;;) {
        if (csv->delimiter != '\t')
            at += strspn(at, " \t");
        if (csv->delimiter == ' ' && *at == '\0' && csv->fields > 0)
            return SL_OK; /* a blank at the end */
        char *field = at, *end;
        const bool quoted = *at == '"';
        end = quoted ? unquote(at) : strchrnul(at, csv->delimiter);
        if (quoted && end)
            end += strspn(end, csv->delimiter == '\t' ? " " : " \t");
        if (!end || (*end != '\0' && *end != csv->delimiter))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": field %" PRId64
                            " goes on after its quote, expected '%c'",
                            csv->text.path, csv->line, csv->fields + 1, csv->delimiter);
        const bool last = *end == '\0';
        if (!quoted) {
            *end = '\0';
            trim(field);
        }
        const int rc = add_field(csv, field);
        if (rc || last)
            return rc;
        at = end + 1;
    }
}

int sl_csv_next(struct sl_csv *csv)
{
    char *line;
    const int got = sl_text_next_data(&csv->text, "", &line);
    if (got <= 0)
        return got;
    csv->line = csv->text.line_number;
    if (!csv->delimiter) {
        csv->delimiter = strchr(line, '\t')  ? '\t'
                         : strchr(line, ';') ? ';'
                         : strchr(line, ',') ? ','
                         : strchr(line, ' ') ? ' '
                                             : ',';
        line += strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    }
    const bool quotes = strchr(line, '"') != NULL;
    int rc = quotes ? collect(csv, line) : SL_OK;
    if (!rc)
        rc = split(csv, quotes ? csv->record : line);
    return rc ? rc : 1;
}
