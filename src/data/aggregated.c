#include "data/aggregated.h"

#include <string.h>

#include "data/feature_form.h"

enum { COLUMNS = 65536 }; /* of more features, some share a bit and count once */

/* The columns of a row of Â·X that were seen. Without an allocation, no rank can fail alone. */
struct seen {
    uint64_t bits[COLUMNS / 64];
};

/* Set [*from, *end) to the entries of row v. A row that the files cannot have has no entries. */
static void row_of(const struct sl_stored_csr *csr, int64_t rows, int64_t v, int64_t *from,
                   int64_t *end)
{
    *from = *end = 0;
    if (v < 0 || v >= rows)
        return;
    const int64_t begin = sl_npy_integer(&csr->indptr, v),
                  stop = sl_npy_integer(&csr->indptr, v + 1);
    if (begin < 0 || stop < begin || stop > csr->indices.count)
        return;
    *from = begin;
    *end = stop;
}

static bool is_new(struct seen *seen, int64_t column)
{
    const uint64_t bit = (uint64_t)column % COLUMNS, mask = UINT64_C(1) << bit % 64;
    const bool known = seen->bits[bit / 64] & mask;
    seen->bits[bit / 64] |= mask;
    return !known;
}

/* Count the features of vertex v whose columns are new in this row of Â·X. */
static int64_t count_new(const struct sl_source *source, int64_t v, struct seen *seen)
{
    const int64_t width = source->features;
    int64_t from, end, count = 0;
    if (sl_features_lie_dense(source)) {
        for (int64_t j = 0; v >= 0 && v < source->vertices && j < width; j++)
            count += sl_npy_get(&source->features_dense, v * width + j) != 0.0 && is_new(seen, j);
        return count;
    }
    row_of(&source->features_csr, source->vertices, v, &from, &end);
    for (int64_t e = from; e < end; e++)
        count += is_new(seen, sl_npy_integer(&source->features_csr.indices, e));
    return count;
}

static int64_t count_row(const struct sl_source *source, int64_t v)
{
    struct seen seen;
    int64_t from, end;
    row_of(&source->adjacency, source->vertices, v, &from, &end);
    if (source->feature_form == SL_FEATURES_IDENTITY)
        return end - from + 1;
    memset(&seen, 0, sizeof seen);
    int64_t count = count_new(source, v, &seen);
    for (int64_t e = from; e < end; e++)
        count += count_new(source, sl_npy_integer(&source->adjacency.indices, e), &seen);
    return count;
}

double sl_aggregated_entries(const struct sl_source *source, const int32_t *row, int64_t count)
{
    enum { SAMPLE = 256 };
    const int64_t rows = row ? count : source->vertices, sample = rows < SAMPLE ? rows : SAMPLE;
    double entries = 0.0;
    if (source->feature_form == SL_FEATURES_DENSE || sample == 0)
        return 0.0;
    for (int64_t s = 0; s < sample; s++) {
        const int64_t k = (int64_t)((double)s * (double)rows / (double)sample);
        entries += (double)count_row(source, row ? row[k] : k);
    }
    return entries / (double)sample;
}
