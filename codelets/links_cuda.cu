/* Scores of links and their gradients on a GPU. Sums have a fixed order. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/init.h"
#include "codelets/links.h"
}

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    MOST_BLOCKS = 4096,
    MOST_CHUNKS = 64,
    LEAST_LINKS = 256,    /* least links of a chunk */
    CHUNK_SUMS = 1 << 16, /* most sums of all chunks together */
};
static_assert(CHUNK_SUMS * sizeof(float) <= SL_RUNTIME_WORKSPACE, "the chunks' sums have room");

unsigned blocks_for(int64_t warps)
{
    const int64_t blocks = sl_cuda_divide_up(warps, (int64_t)WARPS);
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : (int64_t)MOST_BLOCKS);
}

/* Return the columns that a decoder multiplies. */
__host__ __device__ __forceinline__ int64_t columns_of(const sl_link_rows &rows)
{
    return rows.decoder == SL_DECODER_MLP ? rows.cols / 2 : rows.cols;
}

/* Return the first of these columns in rows of targets. */
__host__ __device__ __forceinline__ int64_t shift_of(const sl_link_rows &rows)
{
    return rows.decoder == SL_DECODER_MLP ? rows.cols / 2 : 0;
}

template <int DECODER> __device__ __forceinline__ float term_of(float x, float y, const float *w)
{
    if (DECODER == SL_DECODER_DOT)
        return x * y;
    if (DECODER == SL_DECODER_DISTMULT)
        return *w * x * y;
    return *w * (x + y < 0.0f ? 0.0f : x + y);
}

/* ---- Scores: a warp for each link ---- */

template <int DECODER>
__global__ void __launch_bounds__(THREADS) score_links(sl_link_rows rows, sl_scored_link *segment)
{
    const int64_t count = segment->source, cols = columns_of(rows), shift = shift_of(rows);
    sl_scored_link *const link = segment + 1;
    const int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    for (int64_t e = warp; e < count; e += (int64_t)gridDim.x * WARPS) {
        const float *const x = rows.x.data + link[e].source * rows.x.ld, *const y = rows.y.data +
                                                                                    link[e].target *
                                                                                        rows.y.ld +
                                                                                    shift;
        float sum = 0.0f;
        for (int64_t j = threadIdx.x % 32; j < cols; j += 32)
            sum += term_of<DECODER>(x[j], y[j], DECODER == SL_DECODER_DOT ? nullptr : rows.w + j);
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
        if (threadIdx.x % 32 == 0)
            link[e].value = DECODER == SL_DECODER_MLP ? sum + rows.w[cols] : sum;
    }
}

/* ---- Gradients by rows: a warp for each row ---- */

/* Return place p of the order of an end. */
__device__ __forceinline__ const sl_scored_link *link_at(const sl_scored_link *link, bool by_target,
                                                         int64_t p)
{
    return &link[by_target ? link[p].by_target : p];
}

/* Return the first place whose row is r or more. */
__device__ int64_t find_row(const sl_scored_link *link, int64_t count, bool by_target, int64_t r)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const sl_scored_link *const at = link_at(link, by_target, middle);
        if ((by_target ? at->target : at->source) < r)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

template <int DECODER>
__global__ void __launch_bounds__(THREADS) go_back(sl_link_rows rows, bool by_target, int64_t count,
                                                   const sl_scored_link *segment, sl_floats_at g)
{
    const int64_t links = segment->source, cols = columns_of(rows), shift = shift_of(rows);
    const sl_scored_link *const link = segment + 1;
    const sl_floats_at &own = by_target ? rows.y : rows.x, &met = by_target ? rows.x : rows.y;
    const int64_t own_shift = by_target ? shift : 0, met_shift = by_target ? 0 : shift;
    const int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    for (int64_t r = warp; r < count; r += (int64_t)gridDim.x * WARPS) {
        const int64_t first = find_row(link, links, by_target, r),
                      end = find_row(link, links, by_target, r + 1);
        for (int64_t j = threadIdx.x % 32; first < end && j < cols; j += 32) {
            float sum = g.data[r * g.ld + own_shift + j];
            const float mine = own.data[r * own.ld + own_shift + j];
            for (int64_t p = first; p < end; p++) {
                const sl_scored_link *const at = link_at(link, by_target, p);
                const int64_t other = by_target ? at->source : at->target;
                const float y = met.data[other * met.ld + met_shift + j];
                if (DECODER == SL_DECODER_DOT)
                    sum += at->value * y;
                else if (DECODER == SL_DECODER_DISTMULT)
                    sum += at->value * (rows.w[j] * y);
                else
                    sum += at->value * (mine + y > 0.0f ? rows.w[j] : 0.0f);
            }
            g.data[r * g.ld + own_shift + j] = sum;
        }
    }
}

/* ---- Gradient by the parameters: chunks of links, then their sums ---- */

template <int DECODER>
__global__ void __launch_bounds__(THREADS)
    sum_chunk(sl_link_rows rows, int64_t columns, const sl_scored_link *segment, float *sums)
{
    auto &part = sl_cuda_shared<float[WARPS][32]>();
    const int64_t count = segment->source, cols = columns_of(rows), shift = shift_of(rows);
    const int64_t run = (count + gridDim.y - 1) / gridDim.y, first = blockIdx.y * run,
                  end = first + run < count ? first + run : count;
    const int64_t j = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    float sum = 0.0f;
    for (int64_t e = first + warp; j < columns && e < end; e += WARPS) {
        const sl_scored_link &link = segment[1 + e];
        float term = 1.0f; /* of b */
        if (j < cols) {
            const float x = rows.x.data[link.source * rows.x.ld + j],
                        y = rows.y.data[link.target * rows.y.ld + shift + j];
            term = DECODER == SL_DECODER_DISTMULT ? x * y : x + y < 0.0f ? 0.0f : x + y;
        }
        sum += link.value * term;
    }
    part[warp][threadIdx.x % 32] = sum;
    __syncthreads();
    if (warp == 0 && j < columns) {
        float all = 0.0f;
        for (int w = 0; w < WARPS; w++)
            all += part[w][threadIdx.x];
        sums[(int64_t)blockIdx.y * columns + j] = all;
    }
}

__global__ void __launch_bounds__(THREADS)
    add_chunks(int chunks, int64_t columns, const float *sums, float *dw)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    float sum = 0.0f;
    for (int c = 0; j < columns && c < chunks; c++)
        sum += sums[c * columns + j];
    if (j < columns)
        dw[j] += sum;
}

} // namespace

#define OF_DECODER(kernel, decoder)                                   \
    ((decoder) == SL_DECODER_DOT        ? kernel<SL_DECODER_DOT>      \
     : (decoder) == SL_DECODER_DISTMULT ? kernel<SL_DECODER_DISTMULT> \
                                        : kernel<SL_DECODER_MLP>)

extern "C" void sl_cuda_link_scores(const struct sl_link_rows *rows, int64_t links,
                                    struct sl_scored_link *segment, struct sl_cuda_queue queue)
{
    sl_cuda_launch("link_scores", OF_DECODER(score_links, rows->decoder), blocks_for(links),
                   THREADS, 0, queue.stream, *rows, segment);
}

extern "C" void sl_cuda_link_back(const struct sl_link_rows *rows, enum sl_link_end end,
                                  int64_t count, const struct sl_scored_link *segment,
                                  struct sl_floats_at g, struct sl_cuda_queue queue)
{
    if (count > 0)
        sl_cuda_launch("link_back", OF_DECODER(go_back, rows->decoder), blocks_for(count), THREADS,
                       0, queue.stream, *rows, end == SL_LINK_TARGET, count, segment, g);
}

extern "C" void sl_cuda_link_parameters(const struct sl_link_rows *rows, int64_t links,
                                        const struct sl_scored_link *segment, float *dw,
                                        struct sl_cuda_queue queue)
{
    const bool mlp = rows->decoder == SL_DECODER_MLP;
    const int64_t columns = columns_of(*rows) + mlp, room = CHUNK_SUMS / columns,
                  wanted = sl_cuda_divide_up(links, (int64_t)LEAST_LINKS);
    int64_t chunks = wanted < MOST_CHUNKS ? wanted : (int64_t)MOST_CHUNKS;
    chunks = chunks < room ? chunks : room;
    chunks = chunks < 1 ? 1 : chunks;
    float *const sums = (float *)queue.workspace;
    sl_cuda_launch("link_parameters",
                   mlp ? sum_chunk<SL_DECODER_MLP> : sum_chunk<SL_DECODER_DISTMULT>,
                   dim3((unsigned)sl_cuda_divide_up(columns, (int64_t)32), (unsigned)chunks),
                   THREADS, 0, queue.stream, *rows, columns, segment, sums);
    sl_cuda_launch("link_parameters, sum", add_chunks,
                   (unsigned)sl_cuda_divide_up(columns, (int64_t)THREADS), THREADS, 0, queue.stream,
                   (int)chunks, columns, sums, dw);
}

/* ---- Tasks ---- */

namespace
{

void clear(const sl_dense &g, const sl_cuda_queue &queue)
{
    const sl_rows rows = sl_float_rows(g.data, g.ld);
    sl_cuda_fill(g.rows, g.cols, 0.0f, &rows, queue);
}

} // namespace

extern "C" void link_scores_cuda(void *buffers[], void *argument)
{
    const struct link_argument *const arg = (const struct link_argument *)argument;
    const sl_cuda_queue queue = sl_cuda_task_queue();
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    for (int64_t k = 0; k < arg->count; k++) { /* the block is the output */
        const int end = sl_link_task(buffers, arg, k, &rows, &segment);
        sl_cuda_link_scores(&rows, (int64_t)STARPU_MATRIX_GET_NY(buffers[end - 1]), segment, queue);
    }
}

/* Call of(rows, segment, links, output) for each segment of a task, which has so many links at
 * most. The first task clears the output. */
template <class Of> static void each_segment(void *buffers[], void *argument, Of of)
{
    const struct link_argument *const arg = (const struct link_argument *)argument;
    const sl_cuda_queue queue = sl_cuda_task_queue();
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    for (int64_t k = 0; k < arg->count; k++) {
        const int next = sl_link_task(buffers, arg, k, &rows, &segment);
        const sl_dense output = sl_dense_buffer(buffers[next]);
        if (arg->first && k == 0)
            clear(output, queue);
        of(rows, segment, (int64_t)STARPU_MATRIX_GET_NY(buffers[next - 1]), output, queue);
    }
}

extern "C" void link_back_cuda(void *buffers[], void *argument)
{
    const enum sl_link_end end = ((const struct link_argument *)argument)->end;
    each_segment(buffers, argument,
                 [=](const sl_link_rows &rows, const sl_scored_link *segment, int64_t,
                     const sl_dense &g, const sl_cuda_queue &queue) {
                     sl_cuda_link_back(&rows, end, g.rows, segment, {g.data, g.ld}, queue);
                 });
}

extern "C" void link_parameters_cuda(void *buffers[], void *argument)
{
    each_segment(buffers, argument,
                 [](const sl_link_rows &rows, const sl_scored_link *segment, int64_t links,
                    const sl_dense &dw, const sl_cuda_queue &queue) {
                     sl_cuda_link_parameters(&rows, links, segment, dw.data, queue);
                 });
}
