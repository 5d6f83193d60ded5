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
    free(neighbours->vertex);
    free(neighbours->weight);
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
    int32_t *vertex = reallocarray(out->vertex, room, sizeof *vertex);
    if (!vertex)
        return refuse_room(count);
    out->vertex = vertex;
    if (weighted) {
        float *weight = reallocarray(out->weight, room, sizeof *weight);
        if (!weight)
            return refuse_room(count);
        out->weight = weight;
    }
    out->room = 2 * count;
    return SL_OK;
}

/* What sl_source_read refuses, too. */
static int check(const struct sl_source *source, int64_t v, const struct sl_neighbours *n)
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

/* Most files have their rows in order. */
static int put_in_order(const struct sl_source *source, struct sl_neighbours *n)
{
    bool ordered = true;
    for (int64_t k = 1; k < n->count; k++)
        ordered = ordered && n->vertex[k - 1] < n->vertex[k];
    if (ordered)
        return SL_OK;
    const int64_t indptr[] = {0, n->count};
    struct sl_csr row = {1, source->vertices, indptr, n->vertex, n->weight};
    struct sl_block *blocks = NULL;
    int64_t merged = 0;
    const int rc = sl_csr_normalize(&row, &blocks, &merged);
    if (!rc) {
        n->count = row.indptr[1];
        memcpy(n->vertex, row.indices, (size_t)n->count * sizeof *n->vertex);
        if (n->weight)
            memcpy(n->weight, row.values, (size_t)n->count * sizeof *n->weight);
    }
    sl_block_free_all(&blocks);
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
    rc = make_room(out, out->count, a->values.data != NULL);
    if (!rc)
        rc = sl_npy_copy(&a->indices, SL_NPY_INT32, extent[0], out->count, out->vertex);
    if (!rc && a->values.data)
        rc = sl_npy_copy(&a->values, SL_NPY_FLOAT32, extent[0], out->count, out->weight);
    if (!rc)
        rc = check(source, v, out);
    return rc ? rc : put_in_order(source, out);
}

/* ---- Drawing ---- */

static bool comes_before(const struct sl_ticket *a, const struct sl_ticket *b)
{
    return a->number != b->number ? a->number < b->number : a->original < b->original;
}

/* Into the sorted tickets, of which at most `room` stay. */
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
        if (u == v || sl_vertex_set_has(draw->inner, sl_source_place(source, u)))
            continue;
        const int64_t original = sl_source_number(source, u);
        insert(n, draw->fanout,
               &(struct sl_ticket){sl_rng_bits(draw->key, own, (uint32_t)original), original, u});
    }
    for (int64_t k = 0; k < n->tickets; k++)
        n->vertex[k] = n->ticket[k].vertex;
    n->count = n->tickets;
    return SL_OK;
}
