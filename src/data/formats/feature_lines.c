#include "data/formats/feature_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats/label_column.h"
#include "data/formats/text.h"

struct lines {
    struct sl_text text;
    struct sl_vertex_map *map;
    enum sl_line_start start;
    struct sl_label_column labels;
    struct sl_triples triples;
    unsigned char *seen; // (vertices), on the list of blocks; NULL where lines are vertices
    int64_t least, most; /* smallest and largest column */
};

static int read_item(struct lines *l, int64_t vertex, const char *word)
{
    const char *at = word;
    int64_t column = 0;
    float value = 0.0f;
    const bool ok = sl_text_read_int64(&at, &column) && *at++ == ':' &&
                    sl_text_read_float(&at, &value) && *at == '\0' && isfinite(value);
    if (!ok || column < 0 || column > INT32_MAX - 1)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": '%.40s' is no feature, expected INDEX:VALUE",
                        l->text.path, l->text.line_number, word);
    l->least = column < l->least ? column : l->least;
    l->most = column > l->most ? column : l->most;
    return sl_triples_add(&l->triples, vertex, column, value);
}

/* Return the vertex of a line that begins with `word`. */
static int64_t find_vertex(struct lines *l, const char *word)
{
    if (l->start == SL_LINE_NEW) {
        const int rc = sl_vertex_map_add(l->map, word, l->text.line_number);
        return rc ? rc : l->map->ids.count - 1;
    }
    if (l->start == SL_LINE_LABEL) {
        char name[24];
        float unused;
        const int64_t vertex = l->map->ids.count;
        if (!sl_text_to_float(word, &unused))
            return sl_error(SL_ERR_DATA,
                            "%s: line %" PRId64 ": '%.40s' is no label, expected a "
                            "number",
                            l->text.path, l->text.line_number, word);
        snprintf(name, sizeof name, "%" PRId64, vertex);
        int rc = sl_vertex_map_add(l->map, name, l->text.line_number);
        if (!rc)
            rc = sl_label_column_set(&l->labels, vertex, word);
        return rc ? rc : vertex;
    }
    const int64_t vertex = sl_vertex_map_get(l->map, word, l->text.path, l->text.line_number);
    if (vertex < 0)
        return vertex;
    if (l->seen[vertex])
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": vertex '%.40s' is there twice",
                        l->text.path, l->text.line_number, word);
    l->seen[vertex] = 1;
    return vertex;
}

static int read_lines(struct lines *l)
{
    char *line;
    int got;
    while ((got = sl_text_next_data(&l->text, "#", &line)) > 0) {
        const int64_t first = l->triples.count, vertex = find_vertex(l, sl_text_word(&line));
        int rc = vertex < 0 ? (int)vertex : SL_OK;
        for (const char *word; !rc && (word = sl_text_word(&line));) {
            rc = read_item(l, vertex, word);
            const int64_t last = l->triples.count - 1;
            if (!rc && last > first && l->triples.cols[last] == l->triples.cols[last - 1])
                rc = sl_error(SL_ERR_DATA,
                              "%s: line %" PRId64 ": feature %" PRId32 " is there twice",
                              l->text.path, l->text.line_number, l->triples.cols[last]);
        }
        if (rc)
            return rc;
    }
    return got;
}

/* Refuse far too many columns: a single wrong index would use up the memory. */
static int check_width(const struct lines *l)
{
    enum { FEW = 1 << 20, MOST_PER_ENTRY = 1000 };
    if (l->triples.count == 0)
        return sl_error(SL_ERR_DATA, "%s: has no features, expected INDEX:VALUE", l->text.path);
    return l->most <= FEW || l->most / MOST_PER_ENTRY <= l->triples.count
               ? SL_OK
               : sl_error(SL_ERR_DATA,
                          "%s: feature %" PRId64 " of %" PRId64
                          " values, expected at least one for every %d columns",
                          l->text.path, l->most, l->triples.count, MOST_PER_ENTRY);
}

static int take_features(struct lines *l, struct sl_dataset *out)
{
    const bool from_one = l->start == SL_LINE_LABEL && l->least >= 1;
    int64_t merged = 0;
    for (int64_t k = 0; from_one && k < l->triples.count; k++)
        l->triples.cols[k]--;
    out->feature_form = SL_FEATURES_CSR;
    out->features = l->most + 1 - from_one;
    out->columns.bag_of_words = true;
    const int rc = sl_csr_build(&l->triples, out->vertices, out->features, &out->blocks,
                                &out->features_csr, &merged);
    return rc || merged == 0
               ? rc
               : sl_error(SL_ERR_DATA, "%s: %" PRId64 " features are there twice in their lines",
                          l->text.path, merged);
}

int sl_feature_lines_read(const char *path, enum sl_line_start start, struct sl_vertex_map *map,
                          struct sl_dataset *out)
{
    struct lines l = {.map = map,
                      .start = start,
                      .least = INT32_MAX,
                      .triples = {.weighted = true},
                      .labels = {.signs = true}};
    const bool known = start == SL_LINE_VERTEX;
    if (!known)
        map->path = path;
    l.seen = known ? sl_block_array(&out->blocks, out->vertices, 1) : NULL;
    if (known && !l.seen)
        return SL_ERR_SYSTEM;
    if (known)
        memset(l.seen, 0, (size_t)out->vertices);
    int rc = sl_text_open(&l.text, path);
    if (!rc)
        rc = read_lines(&l);
    if (!rc)
        rc = check_width(&l);
    if (!rc && !known)
        rc = sl_vertex_map_keep(map, out);
    if (!rc)
        rc = take_features(&l, out);
    if (!rc)
        rc = sl_label_column_take(&l.labels, path, out);
    sl_text_close(&l.text);
    sl_triples_free(&l.triples);
    sl_label_column_free(&l.labels);
    return rc;
}
