/* The maximum or minimum of the neighbours, its argmax, and its gradient. A neighbour sends its
 * row, times the weight of the edge where there are weights. The argmax of an element is the vertex
 * whose row has the largest value there. A slice of a row stays in registers while the entries of
 * the row are walked. */
#include "codelets/max.h"

#include <math.h>
#include <string.h>

#include "codelets/bfloat16.h"

/* Most vectors of a slice. A slice has equally many of values and of vertices, in 32 registers of
 * AVX-512 or in 16. */
enum { MOST = SL_VECTOR_BYTES / 16 };

typedef int32_t ints_at __attribute__((vector_size(SL_VECTOR_BYTES), aligned(4), may_alias));

#define SELECT(mask, yes, no) SL_SELECT(sl_ints, mask, yes, no)

SL_INLINE int32_t vertex_of(const struct sl_numbering *vertices, int64_t k)
{
    return vertices->number ? vertices->number[k] : vertices->first + (int32_t)k;
}

/* No vertex yet: a number behind all vertices, with a value less than all others. */
enum { NOBODY = INT32_MAX };

/* Return the lanes in which M, of vertices C, takes the place of OLD, of vertices HAD. NaN wins
 * over any number. Between equal values the least vertex wins, in whatever order they come. */
SL_INLINE sl_ints takes(sl_floats m, sl_ints c, sl_floats old, sl_ints had)
{
    const sl_ints other = (sl_ints)(m != old) & (sl_ints)(old == old);
    sl_ints wins = other | (sl_ints)(c < had);
    wins &= ~(sl_ints)(m < old);
    return wins & ((sl_ints)(old == old) | (sl_ints)(m != m));
}

/* Turn a maximum in memory, times `sign`, into the form that `takes` compares, and back. */
SL_INLINE void open(float sign, sl_floats *z, sl_ints *from)
{
    const sl_ints nobody = SL_SIGN(sl_ints, *from);
    *z = (sl_floats)SL_SELECT(sl_ints, nobody, (sl_floats){0} - INFINITY, sign * *z);
    *from &= NOBODY;
}

SL_INLINE void close(float sign, sl_floats *z, sl_ints *from)
{
    const sl_ints nobody = (sl_ints)(*from == NOBODY);
    *z = (sl_floats)((sl_ints)(sign * *z) & ~nobody);
    *from |= nobody;
}

/* ---- Columns of a row ---- */

/* Return the first `count` of SL_LANES columns from column j on, and 0 in the other lanes. */
SL_INLINE sl_floats load(const struct sl_rows *x, int64_t r, int64_t j, int64_t count, bool half)
{
    const void *row = sl_rows_at(x, r, 0).data;
    if (count >= SL_LANES)
        return sl_load(row, j, half);
    if (!half)
        return sl_load_lanes((const float *)row + j, count);
    sl_floats vector = {0};
    SL_UNROLL for (int i = 0; i < SL_LANES; i++) if (i < count) vector[i] =
        sl_widen(((const uint16_t *)row)[j + i]);
    return vector;
}

SL_INLINE void store(sl_floats vector, const struct sl_rows *z, int64_t r, int64_t j, int64_t count,
                     bool half)
{
    void *row = sl_rows_at(z, r, 0).data;
    if (!half) {
        if (count >= SL_LANES)
            *(sl_floats *)((float *)row + j) = vector;
        else
            sl_store_lanes(vector, count, (float *)row + j);
    } else if (count >= SL_LANES) {
        sl_store_halves(vector, (uint16_t *)row + j);
    } else {
        SL_UNROLL for (int i = 0; i < SL_LANES; i++) if (i < count)((uint16_t *)row)[j + i] =
            sl_narrow(vector[i]);
    }
}

SL_INLINE sl_ints load_vertices(const int32_t *vertex, int64_t count)
{
    if (count >= SL_LANES)
        return *(const ints_at *)vertex;
    sl_ints vertices = {0};
    SL_UNROLL for (int i = 0; i < SL_LANES; i++) if (i < count) vertices[i] = vertex[i];
    return vertices;
}

SL_INLINE void store_vertices(sl_ints vertices, int64_t count, int32_t *vertex)
{
    SL_UNROLL for (int i = 0; i < SL_LANES; i++) if (i < count) vertex[i] = vertices[i];
}

/* ---- Forward ---- */

/* An aggregation of maxima. H and Z are of either type. */
struct forward {
    const struct sl_sparse *a;
    const struct sl_rows *h, *z;
    const struct sl_numbering *columns;
    const struct sl_argmax *argmax;
    bool half_h, half_z;
};

/* Prefetch the columns from j on of the row of X that entry e + AHEAD of A meets. An entry of the
 * next block is taken for an entry of this block, so another row may be prefetched. */
SL_INLINE void prefetch(const struct sl_sparse *a, int64_t b, uint32_t e, const struct sl_rows *x,
                        int64_t j, int vectors, bool half)
{
    enum { AHEAD = 8 };
    const uint32_t last = a->row_ptr[a->blocks * a->rows] - 1,
                   coming = e + AHEAD < last ? e + AHEAD : last;
    const int64_t size = half ? 2 : 4;
    const char *row =
        (const char *)x->data + ((b * a->block_cols + sl_sparse_col(a, coming)) * x->ld + j) * size;
    SL_UNROLL for (int64_t at = 0; at < vectors * SL_LANES * size; at += 64)
        __builtin_prefetch(row + at);
}

/* Take the maxima of block b of row r: `vectors` vectors from column j on, `count` columns.
 * `fresh`: Z holds nothing yet. bfloat16 is compared as it is stored. */
SL_INLINE void slice(const struct forward *f, int64_t b, int64_t r, int64_t j, int64_t count,
                     int vectors, bool single, bool fresh)
{
    const struct sl_sparse *a = f->a;
    const float sign = f->argmax->sign;
    int32_t *const argmax = f->argmax->vertex + r * f->argmax->ld + j;
    sl_floats z[MOST];
    sl_ints from[MOST];
    SL_UNROLL for (int v = 0; v < vectors; v++)
    {
        const int64_t at = v * SL_LANES;
        z[v] = (sl_floats){0} - INFINITY;
        from[v] = (sl_ints){0} + NOBODY;
        if (!fresh) {
            z[v] = load(f->z, r, j + at, count - at, f->half_z);
            from[v] = load_vertices(argmax + at, count - at);
            open(sign, &z[v], &from[v]);
        }
    }
    for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1]; e++) {
        const int64_t c = b * a->block_cols + sl_sparse_col(a, e);
        const sl_ints vertex = (sl_ints){0} + vertex_of(f->columns, c);
        const float weight = a->value ? sign * a->value[e] : sign;
        prefetch(a, b, e, f->h, j, vectors, f->half_h);
        SL_UNROLL for (int v = 0; v < vectors; v++)
        {
            const int64_t at = v * SL_LANES;
            sl_floats x = weight * load(f->h, c, j + at, single ? 1 : SL_LANES, f->half_h);
            if (f->half_z)
                x = sl_round_lanes(x);
            const sl_ints wins = takes(x, vertex, z[v], from[v]);
            z[v] = (sl_floats)SELECT(wins, x, z[v]);
            from[v] = SELECT(wins, vertex, from[v]);
        }
    }
    SL_UNROLL for (int v = 0; v < vectors; v++)
    {
        const int64_t at = v * SL_LANES;
        close(sign, &z[v], &from[v]);
        store(z[v], f->z, r, j + at, count - at, f->half_z);
        store_vertices(from[v], count - at, argmax + at);
    }
}

SL_INLINE void walk(const struct forward *f, int64_t width, bool accumulate)
{
    const struct sl_sparse *a = f->a;
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const bool fresh = !accumulate && b == 0;
            int64_t j = 0;
            /* Rounding to bfloat16 needs registers, so these slices are shorter. */
            for (; (!f->half_z || MOST > 2) && j + MOST * SL_LANES <= width; j += MOST * SL_LANES)
                slice(f, b, r, j, MOST * SL_LANES, MOST, false, fresh);
            for (; j + SL_LANES <= width; j += SL_LANES)
                slice(f, b, r, j, SL_LANES, 1, false, fresh);
            if (j < width && j + SL_LANES <= f->h->room)
                slice(f, b, r, j, width - j, 1, false, fresh);
            for (; j < width && j + SL_LANES > f->h->room; j++)
                slice(f, b, r, j, 1, 1, true, fresh);
        }
}

SL_KERNEL(sl_kernel_max,
          (const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
           const struct sl_rows *z, const struct sl_numbering *columns,
           const struct sl_argmax *argmax),
          (a, width, h, accumulate, z, columns, argmax))
{
    const bool half_h = h->type == SL_BFLOAT16, half_z = z->type == SL_BFLOAT16;
    for (int64_t r = 0; a->blocks == 0 && !accumulate && r < a->rows; r++) {
        memset(sl_rows_at(z, r, 0).data, 0, (size_t)width * sl_type_size(z->type));
        memset(argmax->vertex + r * argmax->ld, 0xFF, (size_t)width * sizeof *argmax->vertex);
    }
    if (!half_h && !half_z)
        walk(&(struct forward){a, h, z, columns, argmax, false, false}, width, accumulate);
    else if (half_h && half_z)
        walk(&(struct forward){a, h, z, columns, argmax, true, true}, width, accumulate);
    else if (half_h)
        walk(&(struct forward){a, h, z, columns, argmax, true, false}, width, accumulate);
    else
        walk(&(struct forward){a, h, z, columns, argmax, false, true}, width, accumulate);
}

/* ---- Merged ---- */

SL_KERNEL(sl_kernel_max_merge,
          (int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
           const struct sl_argmax *from, const struct sl_rows *z, const struct sl_argmax *argmax),
          (rows, width, index, x, from, z, argmax))
{
    const float sign = argmax->sign;
    const bool half = z->type == SL_BFLOAT16;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j += SL_LANES) {
            const int64_t to = index ? index[r] : r, count = width - j;
            int32_t *const vertex = argmax->vertex + to * argmax->ld + j;
            sl_floats sent = load(x, r, j, count, half), state = load(z, to, j, count, half);
            sl_ints other = load_vertices(from->vertex + r * from->ld + j, count),
                    own = load_vertices(vertex, count);
            open(sign, &sent, &other);
            open(sign, &state, &own);
            const sl_ints wins = takes(sent, other, state, own);
            state = (sl_floats)SELECT(wins, sent, state);
            own = SELECT(wins, other, own);
            close(sign, &state, &own);
            store(state, z, to, j, count, half);
            store_vertices(own, count, vertex);
        }
}

/* ---- Backward ---- */

/* The gradient of an aggregation of maxima. */
struct backward {
    const struct sl_sparse *at;
    const struct sl_rows *g, *dh;
    const struct sl_argmax *argmax;
};

/* Add the gradients of block b of row r of Aᵀ, vertex u, in slices as for the maxima. G and DH are
 * float32. */
SL_INLINE void slice_back(const struct backward *back, int64_t b, int64_t r, int32_t u, int64_t j,
                          int64_t count, int vectors, bool single, bool fresh)
{
    const struct sl_sparse *at = back->at;
    sl_floats sum[MOST];
    SL_UNROLL for (int i = 0; i < vectors; i++)
    {
        sum[i] = (sl_floats){0};
        if (!fresh)
            sum[i] = load(back->dh, r, j + i * SL_LANES, count - i * SL_LANES, false);
    }
    for (uint32_t e = at->row_ptr[b * at->rows + r]; e < at->row_ptr[b * at->rows + r + 1]; e++) {
        const int64_t v = b * at->block_cols + sl_sparse_col(at, e);
        const int32_t *chosen = back->argmax->vertex + v * back->argmax->ld + j;
        const float weight = at->value ? at->value[e] : 1.0f;
        prefetch(at, b, e, back->g, j, vectors, false);
        SL_UNROLL for (int i = 0; i < vectors; i++)
        {
            const int64_t k = i * SL_LANES;
            const sl_floats x = weight * load(back->g, v, j + k, single ? 1 : SL_LANES, false);
            const sl_ints own = (sl_ints)(load_vertices(chosen + k, single ? 1 : SL_LANES) == u);
            sum[i] += (sl_floats)((sl_ints)x & own);
        }
    }
    SL_UNROLL for (int i = 0; i < vectors; i++)
        store(sum[i], back->dh, r, j + i * SL_LANES, count - i * SL_LANES, false);
}

SL_KERNEL(sl_kernel_max_back,
          (const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
           const struct sl_numbering *rows, const struct sl_argmax *argmax, bool accumulate,
           const struct sl_rows *dh),
          (at, width, g, rows, argmax, accumulate, dh))
{
    const struct backward back = {at, g, dh, argmax};
    for (int64_t r = 0; at->blocks == 0 && !accumulate && r < at->rows; r++)
        memset(sl_rows_at(dh, r, 0).data, 0, (size_t)width * sizeof(float));
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++) {
            const bool fresh = !accumulate && b == 0;
            const int32_t u = vertex_of(rows, r);
            int64_t j = 0;
            for (; j + MOST * SL_LANES <= width; j += MOST * SL_LANES)
                slice_back(&back, b, r, u, j, MOST * SL_LANES, MOST, false, fresh);
            for (; j + SL_LANES <= width; j += SL_LANES)
                slice_back(&back, b, r, u, j, SL_LANES, 1, false, fresh);
            const int64_t room = g->room < argmax->ld ? g->room : argmax->ld;
            if (j < width && j + SL_LANES <= room)
                slice_back(&back, b, r, u, j, width - j, 1, false, fresh);
            for (; j < width && j + SL_LANES > room; j++)
                slice_back(&back, b, r, u, j, 1, 1, true, fresh);
        }
}
