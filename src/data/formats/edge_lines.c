#include "data/formats/edge_lines.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void survey_edge(struct sl_edge_survey *s, int64_t u, int64_t v, const float *weight)
{
    const float w = weight ? *weight : 1.0f;
    if (s->count == 0)
        *s = (struct sl_edge_survey){
            .most = u, .least = u, .source = u, .target = {v, v}, .weight = {w, w}};
    if (s->count < 2)
        s->first_target[s->count] = v;
    s->count++;
    s->most = larger(s->most, larger(u, v));
    s->least = -larger(-s->least, larger(-u, -v));
    s->source = larger(s->source, u);
    s->target[0] = -larger(-s->target[0], -v);
    s->target[1] = larger(s->target[1], v);
    s->weight[0] = w < s->weight[0] ? w : s->weight[0];
    s->weight[1] = w > s->weight[1] ? w : s->weight[1];
}

static int take_edge(const struct sl_csv *csv, struct sl_edge_lines *r, int64_t u, int64_t v,
                     const float *weight)
{
    static const float one = 1.0f;
    const int64_t base = r->layout.first_vertex, n = r->rows.vertices;
    if (r->pass == SL_EDGES_HOLD)
        return sl_edges_add(&r->edges, u, v, r->file && !weight ? &one : weight);
    if (r->pass == SL_EDGES_SURVEY) {
        survey_edge(&r->survey, u, v, weight);
        return SL_OK;
    }
    if (u - base < n && v - base < n && r->pass == SL_EDGES_COUNT) {
        sl_edge_rows_count(&r->rows, u - base, v - base);
        return SL_OK;
    }
    return u - base < n && v - base < n &&
                   sl_edge_rows_put(&r->rows, u - base, v - base, weight ? *weight : 1.0f)
               ? SL_OK
               : sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": changed while it was read",
                          csv->text.path, csv->line);
}

/* Refuse a name without quotes that is a piece of another format, or contains another separator. */
static int check_name(const struct sl_csv *csv, const char *field)
{
    const char *mark = strchr("{[(<;|", field[0]) ? field : NULL;
    if (!mark && csv->delimiter == ' ')
        mark = strpbrk(field, "{}[]<>;|");
    bool says = false;
    for (const char *at = field; *at; at++)
        says = says || isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80;
    if (sl_text_is_numbers(field) || sl_text_has_decimal_comma(field))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": '%.40s' has two numbers, expected one separator in "
                        "the whole file and points in numbers",
                        csv->text.path, csv->line, field);
    if (!mark && says)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: line %" PRId64 ": '%.40s' is no vertex, expected a number or a name "
                    "(a name with %s in quotes)",
                    csv->text.path, csv->line, field,
                    mark ? (char[]){'\'', *mark, '\'', '\0'} : "such characters alone");
}

static int parse_vertex(const struct sl_csv *csv, struct sl_edge_lines *r, int64_t column,
                        int64_t *vertex)
{
    const char *field = csv->field[column];
    const struct sl_edge_layout *layout = &r->layout;
    if (r->map) {
        *vertex = sl_vertex_map_get(r->map, field, csv->text.path, csv->line);
        return *vertex < 0 ? (int)*vertex : SL_OK;
    }
    if (layout->names && *field != '\0') {
        const int rc = csv->quoted[column] ? SL_OK : check_name(csv, field);
        *vertex = rc ? rc : sl_string_ids_get(&r->names, field);
        return *vertex < 0 ? (int)*vertex : SL_OK;
    }
    if (!sl_text_to_int64(field, vertex)) {
        if (sl_edge_layout_is_name(field))
            return SL_EDGES_AGAIN;
        const int rc = *field != '\0' ? check_name(csv, field) : SL_OK;
        return rc ? rc
                  : sl_error(SL_ERR_DATA,
                             "%s: line %" PRId64 ": '%.40s' is no vertex, expected a %snumber",
                             csv->text.path, csv->line, field, *field ? "whole " : "name or a ");
    }
    if (*vertex < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 " is negative, expected 0 or more",
                        csv->text.path, csv->line, *vertex);
    if (*vertex < layout->first_vertex)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": vertex %" PRId64 ", expected none before %s%" PRId64,
                        csv->text.path, csv->line, *vertex,
                        layout->konect ? "KONECT's " : "--first-vertex ", layout->first_vertex);
    return SL_OK;
}

/* Read the features of the edge that was held last. */
static int parse_features(const struct sl_csv *csv, struct sl_edge_lines *r)
{
    const struct sl_edge_layout *l = &r->layout;
    float *to = r->edges.features + (r->edges.count - 1) * r->edges.columns;
    for (int64_t f = 0; f < l->features - l->related; f++)
        if (!sl_text_to_float(csv->field[l->feature[f]], &to[f]))
            return sl_error(
                SL_ERR_DATA, "%s: line %" PRId64 ": feature '%.40s' is no finite number%s",
                csv->text.path, csv->line, csv->field[l->feature[f]],
                sl_text_has_decimal_comma(csv->field[l->feature[f]]) ? ", expected a decimal point"
                                                                     : " (--edge-features)");
    return SL_OK;
}

/* Read the relation of the edge that was held last. */
static int parse_relation(const struct sl_csv *csv, struct sl_edge_lines *r)
{
    const char *const field = csv->field[r->layout.feature[r->edges.columns - 1]];
    float number = -1.0f;
    if (!sl_text_to_float(field, &number) ||
        !(number >= 0.0f && number < (float)SL_RELATIONS && number == floorf(number)))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": relation '%.40s', expected a whole number from 0 to "
                        "%d (--edge-types)",
                        csv->text.path, csv->line, field, SL_RELATIONS - 1);
    sl_edge_lines_relate(r, (int64_t)number);
    if ((int64_t)number >= r->edges.relations)
        r->edges.relations = (int64_t)number + 1;
    return SL_OK;
}

static int parse_edge(const struct sl_csv *csv, struct sl_edge_lines *r)
{
    const struct sl_edge_layout *l = &r->layout;
    int64_t least = larger(larger(l->source, l->target), l->weight) + 1;
    for (int64_t f = 0; f < l->features; f++)
        least = larger(least, l->feature[f] + 1);
    if (csv->fields == 1 && sl_text_is_numbers(csv->field[0]))
        return check_name(csv, csv->field[0]);
    if (l->more ? csv->fields < least : csv->fields != l->columns)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 " has %" PRId64 " columns, expected %s%" PRId64,
                        csv->text.path, csv->line, csv->fields, l->more ? "at least " : "",
                        l->more ? least : l->columns);
    int64_t u = 0, v = 0;
    float weight = 1.0f;
    int rc = parse_vertex(csv, r, l->source, &u);
    if (!rc)
        rc = parse_vertex(csv, r, l->target, &v);
    if (!rc && l->weight >= 0 && !sl_text_to_float(csv->field[l->weight], &weight))
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": weight '%.40s' is no finite number%s",
                      csv->text.path, csv->line, csv->field[l->weight],
                      sl_text_has_decimal_comma(csv->field[l->weight])
                          ? ", expected a decimal point"
                          : " (--weights none ignores this column)");
    if (!rc)
        rc = take_edge(csv, r, u, v, l->weight >= 0 ? &weight : NULL);
    if (!rc && r->edges.columns > 0)
        rc = parse_features(csv, r);
    if (!rc && r->file)
        sl_edge_lines_relate(r, r->file->relation);
    return rc || !l->related ? rc : parse_relation(csv, r);
}

int sl_edge_lines_parse(struct sl_csv *csv, struct sl_edge_lines *r)
{
    bool skip = r->layout.header;
    int got;
    for (; (got = sl_edge_layout_next(csv)) > 0; skip = false) {
        const int rc = skip ? SL_OK : parse_edge(csv, r);
        if (rc)
            return rc;
    }
    return got;
}

int sl_edge_lines_parse_again(struct sl_csv *csv, struct sl_edge_lines *r, enum sl_edge_pass pass)
{
    r->pass = pass;
    const int rc = sl_csv_rewind(csv);
    return rc ? rc : sl_edge_lines_parse(csv, r);
}

bool sl_edge_lines_is_edge(const struct sl_edge_layout *l, const struct sl_string_ids *names)
{
    return l->header && l->names && l->columns == 2 && l->first.count == 2 &&
           (sl_string_ids_find(names, l->first.field[0]) >= 0 ||
            sl_string_ids_find(names, l->first.field[1]) >= 0);
}

void sl_edge_lines_take_header(const char *path, struct sl_edge_layout *layout)
{
    sl_note("%s: line %" PRId64 " is no header but an edge: others have its vertices", path,
            layout->first_line);
    layout->header = false;
    layout->source = 0;
    layout->target = 1;
}

void sl_edge_lines_relate(struct sl_edge_lines *r, int64_t relation)
{
    r->edges.features[r->edges.count * r->edges.columns - 1] = (float)relation;
}

void sl_edge_lines_free(struct sl_edge_lines *r)
{
    sl_edge_layout_free(&r->layout);
    sl_string_ids_free(&r->names);
    free(r->edges.ends);
    free(r->edges.weights);
    free(r->edges.features);
}
