#include "data/formats/number_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/words.h"
#include "data/block.h"

const char *sl_text_find(const char *stem, struct sl_block **blocks)
{
    char *path = sl_block_print(blocks, "%s.gz", stem);
    if (path && access(path, F_OK) != 0 && access(stem, F_OK) == 0)
        path[strlen(stem)] = '\0';
    return path;
}

bool sl_text_exists(const char *stem)
{
    struct sl_block *scratch = NULL;
    const char *path = sl_text_find(stem, &scratch);
    const bool found = path && access(path, F_OK) == 0;
    sl_block_free_all(&scratch);
    return found;
}

/* ---- Matrices ---- */

struct matrix {
    struct sl_text text;
    float *item; // (capacity, columns)
    int64_t rows, columns, capacity;
    bool nan;
};

/* Read the next number of a row at *at, and move *at past it. */
static bool read_item(const char **at, bool nan, float *item)
{
    *at += strspn(*at, " \t");
    if (nan && (**at == ',' || **at == '\0')) {
        *item = NAN;
        return true;
    }
    if (!sl_text_read_float(at, item) || !(isfinite(*item) || (nan && isnan(*item))))
        return false;
    *at += strspn(*at, " \t");
    return **at == ',' || **at == '\0';
}

static int read_row(const struct matrix *m, const char *line)
{
    float *row = m->item + m->rows * m->columns;
    const char *at = line;
    for (int64_t c = 0; c < m->columns; c++) {
        const char *start = at;
        if (!read_item(&at, m->nan, &row[c]))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ", column %" PRId64 ": '%.*s' is no %snumber",
                            m->text.path, m->text.line_number, c + 1, (int)strcspn(start, ","),
                            start, m->nan ? "" : "finite ");
        const bool last = c + 1 == m->columns;
        if ((*at == ',') == last)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has %s columns, expected %" PRId64,
                            m->text.path, m->text.line_number, last ? "more" : "fewer", m->columns);
        at += *at == ',';
    }
    return SL_OK;
}

static int64_t count_columns(const char *line)
{
    int64_t count = 1;
    for (; (line = strchr(line, ',')); line++)
        count++;
    return count;
}

/* Make room for one more of `rows` rows: announced rows take no memory before they are read. */
static int make_room(struct matrix *m, int64_t rows)
{
    if (m->rows < m->capacity)
        return SL_OK;
    const int64_t twice = m->capacity ? 2 * m->capacity : 1024;
    const int64_t capacity = twice < rows ? twice : rows;
    float *item = reallocarray(m->item, (size_t)capacity, (size_t)m->columns * sizeof *item);
    if (!item)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory for %" PRId64 " x %" PRId64 " numbers",
                        m->text.path, capacity, m->columns);
    m->item = item;
    m->capacity = capacity;
    return SL_OK;
}

static int read_rows(struct matrix *m, int64_t rows)
{
    char *line;
    int got;
    while ((got = sl_text_next_data(&m->text, "", &line)) > 0) {
        if (m->rows == rows)
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": more lines than the %" PRId64 " %s",
                            m->text.path, m->text.line_number, rows, sl_vertices(rows));
        if (m->rows == 0)
            m->columns = count_columns(line);
        int rc = make_room(m, rows);
        if (!rc)
            rc = read_row(m, line);
        if (rc)
            return rc;
        m->rows++;
    }
    if (got == 0 && m->rows < rows)
        return sl_error(SL_ERR_DATA, "%s: ends after %" PRId64 " %s, expected %" PRId64,
                        m->text.path, m->rows, sl_plural(m->rows, "line", "lines"), rows);
    return got;
}

int sl_number_rows_read(const char *path, int64_t rows, bool nan, struct sl_block **blocks,
                        struct sl_number_rows *out)
{
    struct matrix m = {.nan = nan};
    int rc = sl_text_open(&m.text, path);
    m.text.cost = SL_TEXT_COST_CELLS;
    if (!rc)
        rc = read_rows(&m, rows);
    if (m.item && sl_block_adopt(blocks, m.item, (size_t)(m.capacity * m.columns) * sizeof *m.item,
                                 false) != 0)
        rc = SL_ERR_SYSTEM;
    sl_text_close(&m.text);
    *out = (struct sl_number_rows){m.item, m.columns};
    return rc;
}

/* ---- Splits ---- */

int sl_split_lists_open(struct sl_split_lists *lists, struct sl_block **blocks)
{
    lists->member = sl_block_array(blocks, lists->vertices, 1);
    if (!lists->member)
        return SL_ERR_SYSTEM;
    memset(lists->member, 0, (size_t)lists->vertices);
    return SL_OK;
}

int sl_split_lists_add(struct sl_split_lists *lists, const char *path, const char *unit,
                       int64_t number, int64_t vertex)
{
    if (vertex < 0 || vertex >= lists->vertices)
        return sl_error(SL_ERR_DATA,
                        "%s: %s %" PRId64 ": is vertex %" PRId64 ", expected 0 to %" PRId64, path,
                        unit, number, vertex, lists->vertices - 1);
    unsigned char *list = &lists->member[vertex];
    if (*list == lists->lists + 1)
        return sl_error(SL_ERR_DATA, "%s: %s %" PRId64 ": vertex %" PRId64 " is there twice", path,
                        unit, number, vertex);
    if (*list != 0)
        return sl_error(SL_ERR_DATA,
                        "%s: %s %" PRId64 ": vertex %" PRId64 " is in %s, too, expected one split",
                        path, unit, number, vertex, lists->path[*list - 1]);
    *list = (unsigned char)(lists->lists + 1);
    return SL_OK;
}

int sl_split_lists_end(struct sl_split_lists *lists, const char *path, struct sl_block **blocks,
                       struct sl_index_set *out)
{
    const int list = lists->lists + 1;
    int64_t count = 0;
    for (int64_t v = 0; v < lists->vertices; v++)
        count += lists->member[v] == list;
    int64_t *ids = sl_block_array(blocks, count, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    for (int64_t v = 0, k = 0; v < lists->vertices; v++)
        if (lists->member[v] == list)
            ids[k++] = v;
    *out = (struct sl_index_set){ids, count};
    lists->path[lists->lists++] = path;
    return SL_OK;
}

static int read_list(struct sl_split_lists *lists, struct sl_text *text, bool header)
{
    char *line;
    int got;
    for (bool first = header; (got = sl_text_next_data(text, "", &line)) > 0; first = false) {
        int64_t v;
        char *rest = line;
        const char *word = sl_text_word(&rest);
        const bool number = sl_text_to_int64(word, &v) && !sl_text_word(&rest);
        if (!number && first)
            continue;
        const int rc =
            number ? sl_split_lists_add(lists, text->path, "line", text->line_number, v)
                   : sl_error(SL_ERR_DATA,
                              "%s: line %" PRId64 ": '%.40s' is no vertex, expected a number",
                              text->path, text->line_number, word);
        if (rc)
            return rc;
    }
    return got;
}

int sl_split_lists_read(struct sl_split_lists *lists, const char *path, bool header,
                        struct sl_block **blocks, struct sl_index_set *out)
{
    struct sl_text text;
    int rc = sl_text_open(&text, path);
    if (!rc)
        rc = read_list(lists, &text, header);
    sl_text_close(&text);
    return rc ? rc : sl_split_lists_end(lists, path, blocks, out);
}
