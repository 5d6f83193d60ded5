/* Products with sparse features, whose values may be dropped out, and with their transpose. */
#include "codelets/features.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"
#include "codelets/gather.h"
#include "codelets/init.h"
#include "codelets/kept.h"
#include "core/memory.h"

/* Rows from … to - 1 of X, and the float32 matrix with a row for each of these rows. */
struct part {
    const struct sl_features *f;
    int64_t from, to;
    struct sl_rows rows;
};

/* Return the operands of block b. Transposed: H has the block's rows, and Z has the rows of the
 * block's columns. */
static struct sl_gather operands(const struct part *p, int64_t b)
{
    const struct sl_features *f = p->f;
    const struct sl_rows h = f->transposed ? p->rows : f->h, z = f->transposed ? f->z : p->rows;
    struct sl_gather g = sl_gather_make(f->x, b, f->width, &h, f->accumulate || b > 0, &z);
    g.row_ptr += p->from;
    if (f->transposed) {
        g.h = h;
        g.z = (float *)z.data + b * f->x->block_cols * z.ld;
    }
    return g;
}

static void multiply_block(const struct sl_gather *g, int64_t rows, bool transposed)
{
    if (transposed)
        sl_scatter_rows(g, rows);
    else
        sl_gather_slices(g, rows);
}

/* Multiply a block without its dropped entries. */
static void dropped_block(const struct part *p, int64_t b, const struct sl_gather *g)
{
    const struct sl_features *f = p->f;
    struct sl_kept batch;
    struct sl_kept_walk walk = sl_kept_walk(f->x, b, f->drop, f->vertex, p->from, p->to);
    while (sl_kept_next(&walk, &batch)) {
        struct sl_gather part = *g;
        part.row_ptr = batch.row_ptr;
        part.col = batch.col;
        part.narrow = false;
        part.value = batch.value;
        part.last = batch.count ? batch.count - 1 : 0;
        part.accumulate = g->accumulate || batch.continued;
        if (f->transposed)
            part.h = sl_rows_at(&g->h, batch.row - p->from, 0);
        else
            part.z += (batch.row - p->from) * g->ldz;
        multiply_block(&part, batch.rows, f->transposed);
    }
}

static bool drops(const struct sl_features *f)
{
    return f->drop && f->drop->threshold;
}

static void multiply_part(const struct part *p)
{
    for (int64_t b = 0; b < p->f->x->blocks; b++) {
        const struct sl_gather g = operands(p, b);
        if (drops(p->f))
            dropped_block(p, b, &g);
        else
            multiply_block(&g, p->to - p->from, p->f->transposed);
    }
}

/* Multiply some rows at a time through float32 memory that stays in the cache. */
static void multiply_narrow(const struct sl_features *f)
{
    enum { PIECE = 64 * 1024 };
    static const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    float *room = sl_memory_of_thread(PIECE * sizeof *room);
    const int64_t ld = sl_padded(f->width), most = PIECE / ld;
    const struct sl_rows *wide = f->transposed ? &f->h : &f->z;
    for (int64_t r = 0; r < f->x->rows; r += most) {
        const int64_t left = f->x->rows - r, rows = left < most ? left : most;
        const struct part part = {f, r, r + rows, sl_float_rows(room, ld)};
        const struct sl_rows narrow = sl_rows_at(wide, r, 0);
        if (f->transposed)
            sl_epilogue_rows(&identity, 0, rows, f->width, &narrow, &part.rows);
        multiply_part(&part);
        if (!f->transposed)
            sl_epilogue_rows(&identity, 0, rows, f->width, &part.rows, &narrow);
    }
}

/* Multiply slices of columns that fit into the memory of multiply_narrow. */
static void multiply_slices(const struct sl_features *f)
{
    enum { SLICE = 4096 };
    for (int64_t j = 0; j < f->width; j += SLICE) {
        struct sl_features slice = *f;
        slice.width = f->width - j < SLICE ? f->width - j : SLICE;
        slice.h = sl_rows_at(&f->h, 0, j);
        slice.z = sl_rows_at(&f->z, 0, j);
        multiply_narrow(&slice);
    }
}

/* Multiply by the stored transpose. It adds in the order of the scatter, and writes each row of Z
 * once a block. */
static void multiply_mirror(const struct sl_features *f)
{
    const struct sl_sparse *x = f->x, mirror = {
                                          .rows = x->cols,
                                          .cols = x->rows,
                                          .block_cols = x->mirror.block_rows,
                                          .blocks = x->mirror.blocks,
                                          .narrow = x->mirror.narrow,
                                          .row_ptr = x->mirror.row_ptr,
                                          .col = x->mirror.col,
                                          .value = x->mirror.value,
                                      };
    for (int64_t b = 0; b < mirror.blocks; b++) {
        const struct sl_gather g =
            sl_gather_make(&mirror, b, f->width, &f->h, f->accumulate || b > 0, &f->z);
        sl_gather_slices(&g, mirror.rows);
    }
}

void sl_kernel_features(const struct sl_features *f)
{
    if (f->transposed && f->x->mirror.row_ptr && !drops(f)) {
        multiply_mirror(f);
        return;
    }
    const struct sl_rows *rows = f->transposed ? &f->h : &f->z;
    if (f->transposed && !f->accumulate)
        sl_kernel_fill(f->x->cols, f->width, 0.0f, f->z.data, f->z.ld);
    if (rows->type == SL_FLOAT32)
        multiply_part(&(struct part){f, 0, f->x->rows, *rows});
    else
        multiply_slices(f);
}

struct sl_features sl_features_of_task(const struct features_argument *arg, void **buffers,
                                       struct sl_sparse *x)
{
    const struct sl_rows h = sl_rows_buffer(buffers[2]), z = sl_rows_buffer(buffers[3]);
    *x = sl_sparse_view(sl_raw_buffer(buffers[1]), &arg->shape);
    return (struct sl_features){
        .transposed = arg->transposed,
        .accumulate = arg->accumulate,
        .x = x,
        .nnz = arg->shape.nnz,
        .drop = &arg->drop,
        .vertex = sl_vertices(buffers[0]),
        .width = STARPU_MATRIX_GET_NX(buffers[3]),
        .h = sl_rows_at(&h, arg->h_row, arg->h_col),
        .z = z,
    };
}

/* features
 *   argument  struct features_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    X, sparse tile (rows, cols)
 *             2 R    H (cols, width), part of a tile; transposed: (rows, width)
 *             3 W/RW Z (rows, width); transposed: (≥ cols, width) */
static void features_cpu(void *buffers[], void *argument)
{
    struct sl_sparse x;
    const struct sl_features features = sl_features_of_task(argument, buffers, &x);
    sl_kernel_features(&features);
}

SL_CODELET_ANY(features, 0x8FBC8F);

void sl_submit_features(struct sl_runtime *rt, const struct sl_features_tiles *tiles)
{
    struct sl_sparse_tile *x = tiles->x;
    const struct features_argument arg = {
        .shape = x->shape,
        .drop = tiles->drop ? *tiles->drop : (struct sl_dropout){.threshold = 0},
        .transposed = tiles->transposed,
        .accumulate = tiles->accumulate,
        .h_row = tiles->h_row,
        .h_col = tiles->h_col,
    };
    sl_task_submit(
        rt, &(struct sl_task){
                .codelet = &features_codelet,
                .count = 4,
                .output = tiles->accumulate || tiles->keeps ? SL_TASK_UPDATES : SL_TASK_WRITES,
                .tiles = {tiles->scales, &x->tile, tiles->h, tiles->z},
                .argument = &arg,
                .argument_size = sizeof arg,
                .urgency = tiles->transposed ? SL_TASK_LATER : SL_TASK_SOON,
                .work = 2.0 * (double)x->shape.nnz * (double)tiles->z->cols,
                .kind = (uint32_t)(arg.transposed | (arg.drop.threshold > 0) << 1 |
                                   arg.accumulate << 2),
            });
}
