#include "data/aggregated.h"

#include <stdlib.h>

#include "data/feature_form.h"

/* Features whose columns were seen in a row of Â·X have its number, from 1 on. */
struct counting {
    const struct sl_source *source;
    int32_t *seen; // (features); NULL: all entries count
    int32_t number;
};

/* Set [*from, *end) to the entries of row v. The files have not been checked yet: a row that they
 * cannot have has no entries. */
static void row_of(const struct sl_stored_csr *csr, int64_t rows, int64_t v, int64_t *from,
                   int64_t *end)
{
    *from = *end = 0;
    if (v < 0 || v >= rows)
        return;
    const int64_t at = sl_npy_integer(&csr->indptr, v),
                  count = sl_npy_integer(&csr->indptr, v + 1) - at;
    *from = csr->start ? csr->start[v] : at;
    *end = *from + count;
    if (*from < 0 || *end > csr->indices.shape[0])
        *end = *from;
}

static bool is_new(struct counting *c, int64_t column)
{
    if (!c->seen || column < 0 || column >= c->source->features)
        return true;
    const bool other = c->seen[column] != c->number;
    c->seen[column] = c->number;
    return other;
}

/* Count the features of vertex v whose columns are new in this row of Â·X. */
static int64_t count_new(struct counting *c, int64_t v)
{
    const struct sl_source *source = c->source;
    const int64_t width = source->features;
    int64_t from, end, count = 0;
    if (sl_features_lie_dense(source)) {
        for (int64_t j = 0; v >= 0 && v < source->vertices && j < width; j++)
            count += sl_npy_get(&source->features_dense, v * width + j) != 0.0 && is_new(c, j);
        return count;
    }
    row_of(&source->features_csr, source->vertices, v, &from, &end);
    for (int64_t e = from; e < end; e++)
        count += is_new(c, sl_npy_integer(&source->features_csr.indices, e));
    return count;
}

double sl_aggregated_entries(const struct sl_source *source, const int32_t *row, int64_t count)
{
    enum { SAMPLE = 256 };
    const int64_t rows = row ? count : source->vertices, sample = rows < SAMPLE ? rows : SAMPLE;
    const bool csr = source->feature_form == SL_FEATURES_CSR;
    struct counting c = {source, csr ? calloc((size_t)source->features + 1, sizeof *c.seen) : NULL,
                         0};
    int64_t entries = 0;
    if (source->feature_form == SL_FEATURES_DENSE || sample == 0)
        return 0.0;
    while (c.number < sample) {
        const int64_t k = (int64_t)((double)c.number++ * (double)rows / (double)sample),
                      v = row ? row[k] : k;
        int64_t from, end;
        row_of(&source->adjacency, source->vertices, v, &from, &end);
        entries += csr ? count_new(&c, v) : end - from + 1;
        for (int64_t e = from; csr && e < end; e++)
            entries += count_new(&c, sl_npy_integer(&source->adjacency.indices, e));
    }
    free(c.seen);
    return (double)entries / (double)sample;
}
