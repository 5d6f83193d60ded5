#include "data/neighbours.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rng.h"
#include "data/csr.h"
#include "data/part.h"

void sl_neighbours_free(struct sl_neighbours *neighbours)
{
    free(neighbours->own_vertex);
    free(neighbours->own_weight);
    free(neighbours->ticket);
    *neighbours = (struct sl_neighbours){0};
}

/* ---- Reading ---- */

static int refuse_room(int64_t count)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " neighbours of a vertex", count);
}

static int make_room(struct sl_neighbours *out, int64_t count, bool weighted)
{
    if (count <= out->room)
        return SL_OK;
    const size_t room = (size_t)(2 * count);
    int32_t *vertex = reallocarray(out->own_vertex, room, sizeof *vertex);
    if (!vertex)
        return refuse_room(count);
    out->own_vertex = vertex;
    if (weighted) {
        float *weight = reallocarray(out->own_weight, room, sizeof *weight);
        if (!weight)
            return refuse_room(count);
        out->own_weight = weight;
    }
    out->room = 2 * count;
    return SL_OK;
}

/* Refuse a wrong column or weight with sl_source_read's error. */
static int refuse(const struct sl_source *source, int64_t v, const struct sl_neighbours *n)
{
    for (int64_t k = 0; k < n->count; k++) {
        if (n->vertex[k] < 0 || n->vertex[k] >= source->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 " has column %" PRId32 ", expected 0 to %" PRId64,
                            source->adjacency.indices.name, v, n->vertex[k], source->vertices - 1);
        if (n->weight && !isfinite(n->weight[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: row %" PRId64 ", column %" PRId32
                            " is %f, expected a finite number",
                            source->adjacency.values.name, v, n->vertex[k], (double)n->weight[k]);
    }
    return SL_OK;
}

/* Return whether a row is sorted, without duplicates and errors; most rows are. Entries of one
 * column that are read with their relations are no duplicates. */
static bool is_right(const struct sl_source *source, const struct sl_neighbours *n)
{
    const int32_t *vertex = n->vertex;
    const int64_t last = n->count - 1;
    const int32_t step = !(source->reads_edges && source->relations.count > 0);
    int wrong = 0;
    for (int64_t k = 0; k < last; k++)
        wrong |= vertex[k + 1] - vertex[k] < step;
    for (int64_t k = 0; n->weight && k <= last; k++)
        wrong |= !isfinite(n->weight[k]);
    return !wrong && (last < 0 || (vertex[0] >= 0 && vertex[last] < source->vertices));
}

static int put_in_order(const struct sl_source *source, struct sl_neighbours *n)
{
    const int64_t indptr[] = {0, n->count};
    struct sl_csr row = {1, source->vertices, indptr, n->vertex, n->weight};
    struct sl_block *blocks = NULL;
    int64_t merged = 0;
    int rc = sl_csr_normalize(&row, &blocks, &merged);
    if (!rc)
        rc = make_room(n, n->count, n->weight != NULL); /* nothing if own_vertex has room */
    if (!rc) {
        n->count = row.indptr[1];
        memcpy(n->own_vertex, row.indices, (size_t)n->count * sizeof *n->vertex);
        n->vertex = n->own_vertex;
    }
    if (!rc && n->weight) {
        memcpy(n->own_weight, row.values, (size_t)n->count * sizeof *n->weight);
        n->weight = n->own_weight;
    }
    sl_block_free_all(&blocks);
    return rc;
}

/* Find entries first … first + out->count - 1 of the files, in place where their types allow it. */
static int find(const struct sl_stored_csr *a, int64_t first, struct sl_neighbours *out)
{
    const bool weighted = a->values.data != NULL;
    out->vertex = sl_npy_find(&a->indices, SL_NPY_INT32, first);
    out->weight = weighted ? sl_npy_find(&a->values, SL_NPY_FLOAT32, first) : NULL;
    int rc = out->vertex && (out->weight || !weighted) ? (int)SL_OK
                                                       : make_room(out, out->count, weighted);
    if (!rc && !out->vertex) {
        rc = sl_npy_copy(&a->indices, SL_NPY_INT32, first, out->count, out->own_vertex);
        out->vertex = out->own_vertex;
    }
    if (!rc && weighted && !out->weight) {
        rc = sl_npy_copy(&a->values, SL_NPY_FLOAT32, first, out->count, out->own_weight);
        out->weight = out->own_weight;
    }
    return rc;
}

int sl_neighbours_read(const struct sl_source *source, int64_t v, struct sl_neighbours *out)
{
    const struct sl_stored_csr *a = &source->adjacency;
    int64_t extent[2];
    int rc = sl_part_find_row(a, v, extent);
    if (rc)
        return rc;
    out->count = extent[1] - extent[0];
    out->first = extent[0];
    rc = find(a, extent[0], out);
    if (rc || is_right(source, out))
        return rc;
    rc = refuse(source, v, out);
    if (!rc && source->reads_edges)
        return sl_error(SL_ERR_DATA,
                        "%s: the columns of row %" PRId64 " do not ascend, expected that they do, "
                        "since edges have features (starling convert sorts them)",
                        a->indices.name, v);
    return rc ? rc : put_in_order(source, out);
}

/* ---- Drawing ---- */

static bool comes_before(const struct sl_ticket *a, const struct sl_ticket *b)
{
    return a->number != b->number ? a->number < b->number : a->original < b->original;
}

/* Insert a ticket into the sorted tickets, of which at most `room` stay. */
static void insert(struct sl_neighbours *n, int64_t room, const struct sl_ticket *ticket)
{
    if (n->tickets == room && !comes_before(ticket, &n->ticket[room - 1]))
        return;
    int64_t low = 0, high = n->tickets;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (comes_before(&n->ticket[middle], ticket))
            low = middle + 1;
        else
            high = middle;
    }
    n->tickets += n->tickets < room;
    memmove(n->ticket + low + 1, n->ticket + low,
            (size_t)(n->tickets - 1 - low) * sizeof *n->ticket);
    n->ticket[low] = *ticket;
}

int sl_neighbours_draw(const struct sl_source *source, int64_t v,
                       const struct sl_neighbour_draw *draw, struct sl_neighbours *n)
{
    const uint32_t own = (uint32_t)sl_source_number(source, v);
    if (n->count <= draw->fanout)
        return SL_OK;
    struct sl_ticket *ticket = reallocarray(n->ticket, (size_t)draw->fanout, sizeof *ticket);
    if (!ticket)
        return refuse_room(draw->fanout);
    n->ticket = ticket;
    n->tickets = 0;
    for (int64_t k = 0; k < n->count; k++) {
        const int32_t u = n->vertex[k];
        const bool again = k > 0 && u == n->vertex[k - 1]; /* by another relation */
        if (again || u == v || sl_vertex_set_has(draw->inner, sl_source_place(source, u)))
            continue;
        const int64_t original = sl_source_number(source, u);
        insert(n, draw->fanout,
               &(struct sl_ticket){sl_rng_bits(draw->key, own, (uint32_t)original), original, u});
    }
    const int rc = make_room(n, n->tickets, n->weight != NULL);
    if (rc)
        return rc;
    for (int64_t k = 0; k < n->tickets; k++)
        n->own_vertex[k] = n->ticket[k].vertex;
    n->vertex = n->own_vertex;
    n->count = n->tickets;
    return SL_OK;
}
