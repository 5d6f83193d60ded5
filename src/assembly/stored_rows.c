#include "assembly/stored_rows.h"

#include <stdlib.h>

#include "codelets/bfloat16.h"
#include "codelets/read_rows.h"
#include "core/error.h"
#include "data/columns.h"

enum { AT_ONCE = 256 }; /* columns that are read at a time */

int sl_stored_rows_create(struct sl_stored_rows *stored, const struct sl_source *source,
                          int64_t first, int64_t rows, int64_t width)
{
    *stored = (struct sl_stored_rows){
        .features = source->features_dense,
        .moments = source->change.moments,
        .first = first,
        .rows = rows,
        .width = width,
        .row = malloc((size_t)(rows + 1) * sizeof *stored->row),
        .factor = malloc((size_t)(rows + 1) * sizeof *stored->factor),
    };
    return stored->row && stored->factor
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the numbers of %lld rows", (long long)rows);
}

void sl_stored_rows_free(struct sl_stored_rows *stored)
{
    free(stored->row);
    free(stored->factor);
    *stored = (struct sl_stored_rows){0};
}

int64_t sl_stored_rows_bytes(const struct sl_stored_rows *stored)
{
    return stored->rows * (int64_t)(sizeof *stored->row + sizeof *stored->factor);
}

/* Read columns from … from + count - 1 of row k into row r of `out`. */
static void read_columns(const struct sl_stored_rows *stored, int64_t k, int64_t from,
                         int64_t count, int64_t r, const struct sl_rows *out)
{
    float value[AT_ONCE];
    const double factor = stored->factor[k];
    const struct sl_rows at = sl_rows_at(out, r, from);
    if (sl_npy_copy(&stored->features, SL_NPY_FLOAT32, stored->row[k] * stored->width + from, count,
                    value))
        sl_fatal("%s", sl_error_message());
    for (int64_t j = 0; j < count; j++) {
        const float own = sl_columns_value(&stored->moments, from + j, value[j]);
        const float x = factor == 1.0 ? own : (float)((double)own * factor);
        if (out->type == SL_BFLOAT16)
            ((uint16_t *)at.data)[j] = sl_narrow(x);
        else
            ((float *)at.data)[j] = x;
    }
}

static void read_rows(const void *context, int64_t first, int64_t rows, int64_t cols,
                      const struct sl_rows *out)
{
    const struct sl_stored_rows *stored = context;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j += AT_ONCE)
            read_columns(stored, first + r - stored->first, j,
                         cols - j < AT_ONCE ? cols - j : AT_ONCE, r, out);
}

void sl_stored_rows_load(struct sl_runtime *rt, const struct sl_stored_rows *stored,
                         const struct sl_matrix *x)
{
    for (int i = 0; i < x->tile_rows; i++)
        sl_submit_read_rows(rt, read_rows, stored, x->row_cut[i], sl_matrix_tile(x, i, 0));
}
