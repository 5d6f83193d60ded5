/* Products with the transpose of a sparse block. */
#include "codelets/gather.h"
#include "codelets/vector.h"

enum { MOST = 8 }; /* vectors of a slice */

/* Add value(e) · H(r, first …) to Z(col(e), first …), `vectors` vectors, for all rows. */
SL_INLINE void scatter_slice(const struct sl_gather *g, int64_t rows, int64_t first, int vectors,
                             bool narrow)
{
    const void *const col = g->col;
    const float *const value = g->value;
    float *const z0 = g->z + first;
    const int64_t ldz = g->ldz;
    for (int64_t r = 0; r < rows; r++) {
        const float *h = (const float *)g->h.data + r * g->h.ld + first;
        sl_floats x[MOST];
        SL_UNROLL for (int s = 0; s < vectors; s++) x[s] = *(const sl_floats *)(h + s * SL_LANES);
        for (uint32_t e = g->row_ptr[r]; e < g->row_ptr[r + 1]; e++) {
            const uint32_t c = narrow ? ((const uint16_t *)col)[e] : ((const uint32_t *)col)[e];
            float *z = z0 + c * ldz;
            const float v = value ? value[e] : 1.0f;
            SL_UNROLL for (int s = 0; s < vectors; s++) * (sl_floats *)(z + s * SL_LANES) +=
                v * x[s];
        }
    }
}

SL_INLINE void scatter_columns(const struct sl_gather *g, int64_t rows, int64_t first, bool narrow)
{
    for (int64_t r = 0; r < rows; r++)
        for (uint32_t e = g->row_ptr[r]; e < g->row_ptr[r + 1]; e++) {
            const uint32_t c =
                narrow ? ((const uint16_t *)g->col)[e] : ((const uint32_t *)g->col)[e];
            for (int64_t j = first; j < g->width; j++)
                g->z[c * g->ldz + j] +=
                    (g->value ? g->value[e] : 1.0f) * ((const float *)g->h.data)[r * g->h.ld + j];
        }
}

SL_INLINE void scatter_slices(const struct sl_gather *g, int64_t rows, bool narrow)
{
    int64_t first = 0;
    for (; first + MOST * SL_LANES <= g->width; first += MOST * SL_LANES)
        scatter_slice(g, rows, first, MOST, narrow);
    if (first + 4 * SL_LANES <= g->width)
        scatter_slice(g, rows, first, 4, narrow), first += 4 * SL_LANES;
    if (first + 2 * SL_LANES <= g->width)
        scatter_slice(g, rows, first, 2, narrow), first += 2 * SL_LANES;
    if (first + SL_LANES <= g->width)
        scatter_slice(g, rows, first, 1, narrow), first += SL_LANES;
    if (first < g->width)
        scatter_columns(g, rows, first, narrow);
}

SL_KERNEL(sl_scatter_rows, (const struct sl_gather *g, int64_t rows), (g, rows))
{
    if (g->narrow)
        scatter_slices(g, rows, true);
    else
        scatter_slices(g, rows, false);
}
