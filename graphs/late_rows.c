#include "graphs/late_rows.h"

#include <string.h>

#include "core/message.h"

int64_t sl_late_rows(const struct sl_vertex_cut *cut)
{
    int64_t rows = 0;
    for (int b = 0; b < cut->delay; b++)
        rows += sl_exchange_rows_received(&cut->bin[b].to_root) +
                sl_exchange_rows_received(&cut->bin[b].to_leaves);
    return rows;
}

/* A copy of an aggregation's late rows, one after the other, out of their buffers or back into
 * them. */
struct passing {
    struct sl_runtime *rt;
    int number;
    int64_t width;
    float *out;
    const float *in;
    int64_t at; /* numbers copied so far */
};

static void keep_rows(struct passing *p, struct sl_tile *tile)
{
    const int64_t count = tile->rows * tile->cols;
    memcpy(p->out + p->at, sl_tile_acquire(p->rt, tile, false), (size_t)count * sizeof *p->out);
    sl_tile_release(tile);
}

static void pass(struct passing *p, struct sl_exchange *x, bool sent)
{
    struct sl_tile *tiles = sent ? sl_exchange_places(p->rt, x, p->width, p->number) : NULL;
    for (int part = 0; part < x->receives; part++) {
        const int64_t count = x->receive[part].rows * p->width;
        if (p->in && sent)
            sl_tile_restore(p->rt, &tiles[part], p->in + p->at);
        else if (!p->in && sent)
            keep_rows(p, &tiles[part]);
        else if (!p->in)
            memset(p->out + p->at, 0, (size_t)count * sizeof *p->out);
        p->at += count;
    }
}

/* Copy the rows of all bins. Leaves of bin b have sent rows since step b, roots since step b +
 * delay. */
static void pass_all(struct passing *p, struct sl_vertex_cut *cut, int64_t steps)
{
    for (int b = 0; b < cut->delay; b++) {
        pass(p, &cut->bin[b].to_root, b < steps);
        pass(p, &cut->bin[b].to_leaves, b + cut->delay < steps);
    }
}

void sl_late_rows_keep(struct sl_runtime *rt, struct sl_vertex_cut *cut, int64_t steps, int number,
                       int64_t width, float *out)
{
    pass_all(&(struct passing){.rt = rt, .number = number, .width = width, .out = out}, cut, steps);
}

void sl_late_rows_restore(struct sl_runtime *rt, struct sl_vertex_cut *cut, int64_t steps,
                          int number, int64_t width, const float *in)
{
    pass_all(&(struct passing){.rt = rt, .number = number, .width = width, .in = in}, cut, steps);
}
