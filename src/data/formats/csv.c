#include "data/formats/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

int sl_csv_open(struct sl_csv *csv, const char *path)
{
    *csv = (struct sl_csv){.comments = ""};
    return sl_text_open(&csv->text, path);
}

int sl_csv_rewind(struct sl_csv *csv)
{
    return sl_text_rewind(&csv->text);
}

void sl_csv_close(struct sl_csv *csv)
{
    sl_text_close(&csv->text);
    free(csv->field);
    free(csv->quoted);
    free(csv->record);
    *csv = (struct sl_csv){.comments = ""};
}

static int add_field(struct sl_csv *csv, char *field, bool quoted)
{
    if (csv->fields == csv->field_capacity) {
        const int64_t capacity = csv->field_capacity ? 2 * csv->field_capacity : 64;
        char **larger = reallocarray(csv->field, (size_t)capacity, sizeof *larger);
        if (larger)
            csv->field = larger;
        bool *marks = reallocarray(csv->quoted, (size_t)capacity, sizeof *marks);
        if (marks)
            csv->quoted = marks;
        if (!larger || !marks)
            return sl_error(SL_ERR_SYSTEM, "%s: out of memory for %" PRId64 " fields",
                            csv->text.path, capacity);
        csv->field_capacity = capacity;
    }
    csv->field[csv->fields] = field;
    csv->quoted[csv->fields++] = quoted;
    return SL_OK;
}

/* Append a line to the record. */
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

/* ---- The separator ---- */

/* Return the end of the quotes that are open at `at`, or NULL. */
static const char *skip_quotes(const char *at)
{
    while ((at = strchr(at, '"'))) {
        if (at[1] != '"')
            return at + 1;
        at += 2;
    }
    return NULL;
}

/* Return whether a field between tabs is numbers with blanks between: then blanks separate fields,
 * too. */
static bool has_blanks_too(const char *line)
{
    while (*line) {
        char field[64];
        const size_t length = strcspn(line, "\t");
        if (length < sizeof field) {
            memcpy(field, line, length);
            field[length] = '\0';
            if (sl_text_is_numbers(field))
                return true;
        }
        line += length + (line[length] != '\0');
    }
    return false;
}

static char find_delimiter(const char *line)
{
    static const char marks[] = "\t;, ";
    bool seen[sizeof marks] = {false}, start = true;
    for (const char *at = line; *at; at++) {
        if (*at == '"' && start && !(at = skip_quotes(at + 1)))
            break;
        const char *mark = *at ? strchr(marks, *at) : NULL;
        if (mark)
            seen[mark - marks] = true;
        start = mark != NULL;
        if (!*at)
            break;
    }
    if (seen[0])
        return has_blanks_too(line) ? ' ' : '\t';
    return seen[1] ? ';' : !seen[2] && seen[3] ? ' ' : ',';
}

/* Return the end of a field without quotes. */
static char *field_end(const struct sl_csv *csv, char *at)
{
    if (csv->delimiter == ' ')
        return at + strcspn(at, " \t");
    while (*at && *at != csv->delimiter)
        at++;
    return at;
}

static char *skip_blanks(const struct sl_csv *csv, char *at)
{
    const bool tabs = csv->delimiter != '\t';
    while (*at == ' ' || (tabs && *at == '\t'))
        at++;
    return at;
}

/* ---- Records ---- */

/* Return whether a quote is open at the end of a line; `open`: one is open at its start. */
static bool is_open(const struct sl_csv *csv, char *at, bool open)
{
    for (;; at++) {
        if (!open) {
            at = skip_blanks(csv, at);
            open = *at == '"';
            at += open;
        }
        if (open) {
            at = (char *)skip_quotes(at);
            if (!at)
                return true;
            open = false;
        }
        at = field_end(csv, at);
        if (!*at)
            return false;
    }
}

/* Collect a record in csv->record, because quotes go on over lines. */
static int collect(struct sl_csv *csv, char *line)
{
    size_t length = 0;
    bool open = is_open(csv, line, false);
    int rc = append(csv, &length, line);
    while (!rc && open) {
        const int got = sl_text_next(&csv->text, &line);
        if (got < 0)
            return got;
        if (got == 0)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": a quote has no end", csv->text.path,
                            csv->line);
        open = is_open(csv, line, open);
        rc = append(csv, &length, "\n");
        if (!rc)
            rc = append(csv, &length, line);
    }
    return rc;
}

/* Remove the quotes of the field at `from`. Return the text after it; NULL: the quote has no end.
 */
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

/* End the field before the blanks at its end. */
static void trim(const char *field, char *end)
{
    while (end > field && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
}

static int split(struct sl_csv *csv, char *at)
{
    csv->fields = 0;
    for (;;) {
        at = skip_blanks(csv, at);
        if (csv->delimiter == ' ' && *at == '\0' && csv->fields > 0)
            return SL_OK; /* a blank at the end of the line */
        char *field = at, *end;
        const bool quoted = *at == '"';
        end = quoted ? unquote(at) : field_end(csv, at);
        if (quoted && end && csv->delimiter != ' ')
            end = skip_blanks(csv, end);
        const bool stops = end && (*end == '\0' || *end == csv->delimiter ||
                                   (csv->delimiter == ' ' && *end == '\t'));
        if (!stops)
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": field %" PRId64
                            " goes on after its quote, expected '%c'",
                            csv->text.path, csv->line, csv->fields + 1, csv->delimiter);
        const bool last = *end == '\0';
        if (!quoted)
            trim(field, end);
        const int rc = add_field(csv, field, quoted);
        if (rc || last)
            return rc;
        at = end + 1;
    }
}

int sl_csv_next(struct sl_csv *csv)
{
    char *line;
    const int got = sl_text_next_data(&csv->text, csv->comments, &line);
    if (got <= 0)
        return got;
    csv->line = csv->text.line_number;
    if (!csv->delimiter)
        csv->delimiter = find_delimiter(line);
    const bool quotes = strchr(line, '"') != NULL;
    int rc = quotes ? collect(csv, line) : SL_OK;
    if (!rc)
        rc = split(csv, quotes ? csv->record : line);
    return rc ? rc : 1;
}
