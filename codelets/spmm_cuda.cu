/* Aggregation: one row of sparse tiles times dense tiles, which StarPU keeps anywhere on a device.
 * A launch takes as many tiles as its parameters have room for; one launch usually suffices. */
#include <stdlib.h>

#include "codelets/cuda_gather.h"

extern "C" {
#include "codelets/epilogue.h"
#include "codelets/spmm.h"
}
#include "codelets/spmm_cusparse.h"

namespace
{

/* A sum whose parts are being distributed among launches. */
struct aggregation {
    sl_cuda_gather next; /* parameters of the next launch */
    int tiles;           /* tiles of H in the next launch */
    int64_t entries, segments;
};

template <class T> void launch_type(const aggregation *s, cudaStream_t stream)
{
    bool many = false;
    for (int i = 0; i < s->next.pieces; i++)
        many = many || s->next.piece[i].runs > 1;
    if (many)
        sl_cuda_gather_launch<T, true, false>("spmm", s->next, s->entries, s->segments, stream);
    else
        sl_cuda_gather_launch<T, false, false>("spmm", s->next, s->entries, s->segments, stream);
}

void launch(const aggregation *s, cudaStream_t stream)
{
    if (s->next.type == SL_BFLOAT16)
        launch_type<__nv_bfloat16>(s, stream);
    else
        launch_type<float>(s, stream);
}

/* Add a part to the next launch; launch first if there is no room. The number of tiles alone
 * decides on launches, not the tiles' places. */
void add_part(aggregation *s, const sl_cuda_part *part, const sl_rows &sum, cudaStream_t stream)
{
    sl_cuda_gather *g = &s->next;
    int64_t column = 0;
    for (int t = 0, take; t < part->tiles; t += take) {
        const int left = part->tiles - t;
        take = left < SL_CUDA_GATHER_RUNS ? left : (int)SL_CUDA_GATHER_RUNS;
        if (g->pieces == SL_CUDA_GATHER_PIECES || s->tiles + take > SL_CUDA_GATHER_RUNS) {
            g->z = sum;
            launch(s, stream);
            g->sum = sum;
            g->pieces = g->runs = s->tiles = 0;
        }
        column = sl_cuda_gather_add(g, &part->a, column, take, part->h + t);
        s->tiles += take;
    }
    if (column != part->a.cols)
        sl_fatal("the tiles of a sparse product have %lld rows, not %lld", (long long)column,
                 (long long)part->a.cols);
}

} // namespace

extern "C" void sl_cuda_spmm(int64_t parts, const struct sl_cuda_part *part, int64_t width,
                             bool accumulate, const struct sl_epilogue *epilogue,
                             const struct sl_rows *sum, const struct sl_rows *z,
                             struct sl_cuda_queue queue)
{
    const sl_rows sums = z->type == SL_FLOAT32 ? *z : sum ? *sum : sl_float_rows(NULL, 0);
    aggregation s = {};
    sl_cuda_gather *g = &s.next;
    g->rows = part[0].a.rows;
    g->width = (int)width;
    if (g->rows == 0 || width == 0)
        return;
    g->type = part[0].h[0].at.type;
    g->aligned = sl_cuda_aligned(g->rows, sums);
    if (accumulate)
        g->sum = sums;
    for (int64_t p = 0; p < parts; p++) {
        s.entries += part[p].nnz;
        s.segments += part[p].a.blocks;
    }
    for (int64_t p = 0; p < parts; p++)
        add_part(&s, &part[p], sums, queue.stream);
    if (epilogue) {
        g->finish = true;
        g->epilogue = *epilogue;
        g->aligned = g->aligned && sl_cuda_epilogue_aligned(*epilogue, g->rows, width);
    }
    g->z = *z;
    g->aligned = g->aligned && sl_cuda_aligned(g->rows, *z);
    launch(&s, queue.stream);
}

/* Make the parts of a task from its buffers; put their tiles into `h`. Return the number of
 * buffers. */
static int unpack_parts(const spmm_argument *arg, void **buffers, struct sl_cuda_part *part,
                        struct sl_cuda_rows *h)
{
    void **rest = buffers + arg->parts;
    for (int p = 0; p < arg->parts; p++) {
        const spmm_argument::spmm_part *from = &arg->part[p];
        part[p].a = sl_sparse_view(sl_raw_buffer(buffers[p]), &from->shape);
        part[p].nnz = from->shape.nnz;
        part[p].tiles = from->span;
        part[p].h = h;
        for (int t = 0; t < from->span; t++) {
            *h++ = {sl_rows_buffer(*rest), STARPU_MATRIX_GET_NY(*rest)};
            rest++;
        }
    }
    return (int)(rest - buffers);
}

static void destroy_cusparse(void *kept)
{
    sl_cusparse_destroy((struct sl_cusparse *)kept);
}

/* Return this worker's struct sl_cusparse, on its queue. */
static struct sl_cusparse *own_cusparse(struct sl_cuda_queue queue, int64_t most_ones)
{
    void **kept = sl_runtime_kept(destroy_cusparse);
    if (!*kept)
        *kept = sl_cusparse_create(queue, SL_CUSPARSE_ALG3, most_ones);
    return (struct sl_cusparse *)*kept;
}

extern "C" void spmm_set_cuda(void *buffers[], void *argument)
{
    const spmm_argument *arg = (const spmm_argument *)argument;
    struct sl_cuda_part part[SL_SPMM_PARTS];
    struct sl_epilogue epilogue;
    size_t tiles = 0;
    for (int p = 0; p < arg->parts; p++)
        tiles += (size_t)arg->part[p].span;
    struct sl_cuda_rows *h = (struct sl_cuda_rows *)malloc(tiles * sizeof *h);
    if (!h)
        sl_fatal("no memory for the %zu tiles of a sparse product", tiles);
    int used = unpack_parts(arg, buffers, part, h);
    used += sl_epilogue_buffers(&arg->epilogue, buffers + used, &epilogue);
    const sl_rows z = sl_rows_buffer(buffers[used + arg->has_sum]);
    const sl_rows sum = arg->has_sum ? sl_rows_buffer(buffers[used]) : sl_float_rows(NULL, 0);
    const int64_t width = STARPU_MATRIX_GET_NX(buffers[used]);
    const struct sl_cuda_queue queue = sl_cuda_task_queue();
    const struct sl_epilogue *after = arg->epilogue.present ? &epilogue : NULL;
    if (arg->cusparse) {
        int64_t key[SL_SPMM_PARTS];
        for (int p = 0; p < arg->parts; p++)
            key[p] = arg->part[p].tag;
        sl_cusparse_spmm(own_cusparse(queue, arg->most_ones), arg->parts, part, key, width,
                         arg->accumulate, after, &z);
    } else {
        sl_cuda_spmm(arg->parts, part, width, arg->accumulate, after, &sum, &z, queue);
    }
    free(h);
}

extern "C" void spmm_add_cuda(void *buffers[], void *argument)
{
    spmm_set_cuda(buffers, argument);
}
