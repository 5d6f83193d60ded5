#include "assembly/adjacency_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/edge_features.h"

static void add_entry(const struct sl_adjacency_rows *a, int64_t r, int64_t c, double weight,
                      int64_t *count)
{
    a->columns[*count] = (int32_t)c;
    a->values[(*count)++] =
        (float)(a->left ? weight * a->left[r - a->first] * a->right[c - a->from] : weight);
}

/* Return the first entry of a row whose column is at least `from`, by binary search. */
static int64_t find_entry(const struct sl_csr *source, int64_t row, int64_t from)
{
    int64_t low = source->indptr[row], high = source->indptr[row + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (source->indices[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Copy `count` numbers of entries, as bits. */
static void copy_edges(const int32_t *edges, int64_t count, float *to)
{
    memcpy(to, edges, (size_t)count * sizeof *to);
}

/* Copy the columns of a row whose entries are all 1, and insert column d of I unless `diagonal`
 * says it is there. Edge features come along. */
static void copy_columns(const struct sl_adjacency_rows *a, int64_t row, int64_t d, bool diagonal,
                         int64_t *count)
{
    const int32_t *columns = a->source->indices;
    const int64_t *indptr = a->source->indptr;
    const int64_t begin = a->from > 0 ? find_entry(a->source, row, a->from) : indptr[row],
                  end =
                      a->to < a->source->cols ? find_entry(a->source, row, a->to) : indptr[row + 1],
                  at = diagonal ? end : find_entry(a->source, row, d), before = at - begin;
    memcpy(a->columns, columns + begin, (size_t)before * sizeof *columns);
    if (!diagonal)
        a->columns[before] = (int32_t)d;
    memcpy(a->columns + before + !diagonal, columns + at, (size_t)(end - at) * sizeof *columns);
    *count = end - begin + !diagonal;
    if (!a->source->edges || (!diagonal && !a->vertex))
        return;
    copy_edges(a->source->edges + begin, before, a->values);
    if (!diagonal) {
        const uint32_t number = SL_EDGE_LOOP | (uint32_t)a->vertex[row];
        memcpy(a->values + before, &number, sizeof number);
    }
    copy_edges(a->source->edges + at, end - at, a->values + before + !diagonal);
}

void sl_adjacency_row(const void *rows, int64_t r, int64_t *count, const int32_t **columns,
                      const float **values)
{
    const struct sl_adjacency_rows *a = rows;
    const struct sl_csr *source = a->source;
    const int64_t row = r - a->first, end = source->indptr[row + 1];
    const int64_t d = a->diagonal ? a->diagonal[row] : r;
    bool diagonal = !a->loops || d < a->from || d >= a->to; /* no entry of I has to be added */
    *columns = a->columns;
    *values = source->values || a->left ? a->values : NULL;
    *count = 0;
    if (!*values || source->edges) {
        copy_columns(a, row, d, diagonal, count);
        *values = source->edges ? a->values : NULL;
        return;
    }
    for (int64_t e = find_entry(source, row, a->from); e < end && source->indices[e] < a->to; e++) {
        const int32_t c = source->indices[e];
        const double weight = source->values ? (double)source->values[e] : 1.0;
        const bool loop = a->loops && c == d && source->values;
        if (!diagonal && c >= d && !loop)
            add_entry(a, r, d, 1.0, count);
        diagonal = diagonal || c >= d;
        add_entry(a, r, c, loop ? weight + 1.0 : weight, count);
    }
    if (!diagonal)
        add_entry(a, r, d, 1.0, count);
}

int sl_adjacency_rows_open(struct sl_adjacency_rows *a, const struct sl_csr *source, int64_t first,
                           bool loops)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < source->rows; r++)
        if (source->indptr[r + 1] - source->indptr[r] > longest)
            longest = source->indptr[r + 1] - source->indptr[r];
    *a = (struct sl_adjacency_rows){
        .source = source, .first = first, .to = source->cols, .loops = loops};
    a->columns = malloc((size_t)(longest + 1) * sizeof *a->columns);
    a->values = malloc((size_t)(longest + 1) * sizeof *a->values);
    return a->columns && a->values
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for a row of the adjacency");
}

void sl_adjacency_rows_close(struct sl_adjacency_rows *a)
{
    free(a->columns);
    free(a->values);
}
