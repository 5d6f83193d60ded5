/* The gradients of the weights of edges in pair attention. */
#include "codelets/cuda_pair_walk.h"

namespace
{

/* ---- dW_e of a transformer ----
 *
 * Column sums in a fixed order, as the gradient of a in pair_rows_cuda.cu. A block sums some
 * columns of one chunk of rows, for one feature: each thread row by itself, then the thread rows in
 * order. A second launch adds the chunks. */

enum { SUM_LANES = 32, SUM_ROWS = 8, MOST_CHUNKS = 1024, LEAST_ROWS = 64 /* of a chunk */ };

/* Return the rows of a chunk. The workspace has room for the sums of all chunks. */
int64_t chunk_of(int64_t rows, int64_t sums, int64_t least)
{
    const int64_t fit = SL_RUNTIME_WORKSPACE / (int64_t)sizeof(float) / sums,
                  most = fit < 1             ? 1
                         : fit < MOST_CHUNKS ? fit
                                             : (int64_t)MOST_CHUNKS,
                  share = sl_cuda_divide_up(rows, most);
    return share < least ? least : share;
}

int64_t chunks_of(int64_t rows, int64_t chunk)
{
    return rows <= chunk ? 1 : sl_cuda_divide_up(rows, chunk);
}

struct edges_back {
    sl_pair pair;
    int64_t rows, chunk;
    sl_floats_at target, gradient, a, b; /* `a` and `b`: numbers */
};

__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS)
    sum_chunk(edges_back x, float *sums, int64_t step, int64_t ld)
{
    auto &part = sl_cuda_shared<float[SUM_ROWS][SUM_LANES]>();
    const int64_t columns = x.pair.attention.heads * x.pair.width,
                  j = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x, h = j / x.pair.width,
                  padded = h * x.pair.attention.width + j % x.pair.width, f = blockIdx.z,
                  begin = (int64_t)blockIdx.y * x.chunk,
                  end = begin + x.chunk < x.rows ? begin + x.chunk : x.rows;
    float sum = 0.0f;
    if (j < columns)
        for (int64_t r = begin + threadIdx.y; r < end; r += SUM_ROWS) {
            sum = fmaf(sl_pair_number(x.pair, sl_pair_row_at(x.a, r), f, h),
                       sl_pair_row_at(x.target, r)[padded], sum);
            sum = fmaf(sl_pair_number(x.pair, sl_pair_row_at(x.b, r), f, h),
                       sl_pair_row_at(x.gradient, r)[padded], sum);
        }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= columns)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    sums[blockIdx.y * step + f * ld + j] = sum;
}

/* M without its room. */
struct paste {
    sl_pair pair;
    sl_floats_at sums;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        return {{sl_pair_row_at(sums, r)[j / pair.width * pair.attention.width + j % pair.width]}};
    }
};

/* ---- M of GATv2 ----
 *
 * A team has a head of a chunk of rows. It makes the sums of its columns for a few features at a
 * time. */

enum {
    FEATURES = 8,         /* features whose sums a lane makes in one walk */
    LEAST_TEAM_ROWS = 16, /* of a chunk */
};

template <int LANES, int PER>
__device__ __forceinline__ void sum_row(const walk &w, const team<LANES> &t, int64_t piece,
                                        int64_t features, float (&sum)[FEATURES][PER])
{
    own_row<PER> own;
    load_own<AGAIN, false>(w, t, 0, &own);
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + t.r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + t.r]; e < end;) {
            const chunk c = read_chunk(w.a, b, e, end);
            met_rows<PER> met;
            float share[STEPS] = {}, change[STEPS] = {};
            multiply<AGAIN, false, true>(w, t, c, piece, &own, &met, share, change);
            weigh_back<AGAIN>(w, t, c, share, change);
#pragma unroll
            for (int i = 0; i < STEPS; i++)
#pragma unroll
                for (int f = 0; f < FEATURES; f++) {
                    const bool is = i < c.count && features + f < w.pair.edges;
                    const float feature = is ? features_of(w, c, i)[features + f] : 0.0f;
#pragma unroll
                    for (int k = 0; k < PER; k++)
                        sum[f][k] = fmaf(own.first[k] + met.first[i][k] > 0.0f
                                             ? change[i]
                                             : change[i] * w.pair.attention.slope,
                                         feature, sum[f][k]);
                }
            e += (uint32_t)c.count;
        }
    }
}

/* Chunks of rows lie `edges` rows of OUT apart. */
template <int LANES, int PER> __global__ void __launch_bounds__(THREADS) sum_edges(walk w)
{
    const team<LANES> first(w);
    const int64_t begin = first.r * w.chunk,
                  end = begin + w.chunk < w.a.rows ? begin + w.chunk : w.a.rows;
    if (begin >= w.a.rows && first.r > 0)
        return;
    for (int64_t piece = 0; piece < w.pair.width; piece += LANES * PER)
        for (int64_t features = 0; features < w.pair.edges; features += FEATURES) {
            float sum[FEATURES][PER];
#pragma unroll
            for (int f = 0; f < FEATURES; f++)
                if (features + f < w.pair.edges)
                    load_sums(w, first, piece,
                              sl_pair_row_at(w.out, first.r * w.pair.edges + features + f) +
                                  first.column,
                              sum[f]);
                else
                    for (int k = 0; k < PER; k++)
                        sum[f][k] = 0.0f;
            team<LANES> t = first;
            for (t.r = begin; t.r < end; t.r++)
                sum_row(w, t, piece, features, sum);
#pragma unroll
            for (int f = 0; f < FEATURES; f++)
                if (features + f < w.pair.edges)
                    store_sums(w, first, piece, sum[f],
                               sl_pair_row_at(w.out, first.r * w.pair.edges + features + f) +
                                   first.column);
        }
}

struct edge_sums {
    template <int LANES, int PER> static void (*kernel())(walk)
    {
        return sum_edges<LANES, PER>;
    }
};

} // namespace

extern "C" void sl_cuda_pair_edges_back(const struct sl_pair *pair, int64_t rows,
                                        const struct sl_floats_at *target,
                                        const struct sl_floats_at *gradient_at,
                                        const struct sl_floats_at *target_back,
                                        const struct sl_floats_at *state,
                                        const struct sl_floats_at *back, struct sl_cuda_queue queue)
{
    const int64_t columns = sl_pair_columns(pair), all = sl_pair_all(pair), edges = pair->edges,
                  chunk = chunk_of(rows, edges * columns, LEAST_ROWS),
                  chunks = chunks_of(rows, chunk);
    const edges_back x = {*pair,
                          rows,
                          chunk,
                          *target,
                          *gradient_at,
                          {target_back->data + all, target_back->ld},
                          {state->data + all + 2 * pair->attention.heads, state->ld}};
    float *const sums = chunks == 1 ? back->data : (float *)queue.workspace;
    const dim3 grid((unsigned)sl_cuda_divide_up(columns, SUM_LANES), (unsigned)chunks,
                    (unsigned)edges);
    sl_cuda_launch("pair_edges_back", sum_chunk, grid, dim3(SUM_LANES, SUM_ROWS), 0, queue.stream,
                   x, sums, edges * columns, chunks == 1 ? back->ld : columns);
    if (chunks > 1)
        sl_cuda_launch_each("pair_edges_back, sum", edges, columns, false,
                            sl_pair_chunks{chunks, columns, sums, edges * columns, nullptr, 0},
                            back->data, back->ld, queue.stream);
}

extern "C" void sl_cuda_pair_edges_paste(const struct sl_pair *pair,
                                         const struct sl_floats_at *sums,
                                         const struct sl_floats_at *back,
                                         struct sl_cuda_queue queue)
{
    sl_cuda_launch_each("pair_edges_paste", pair->edges, sl_pair_columns(pair), false,
                        paste{*pair, *sums}, back->data, back->ld, queue.stream);
}

/* The shape alone cuts the rows into chunks. */
extern "C" void sl_cuda_pair_edge_sums(const struct sl_pair *pair, const struct sl_sparse *a,
                                       const struct sl_floats_at *vectors_at,
                                       const struct sl_floats_at *source,
                                       const struct sl_floats_at *target,
                                       const struct sl_floats_at *gradient_at, bool accumulate,
                                       const struct sl_floats_at *edge_back,
                                       struct sl_cuda_queue queue)
{
    walk w = walk_of_targets(pair, a, vectors_at, source, target, gradient_at);
    const int64_t columns = sl_pair_all(pair), edges = pair->edges;
    w.chunk = chunk_of(a->rows, edges * columns, LEAST_TEAM_ROWS);
    const int64_t chunks = chunks_of(a->rows, w.chunk);
    float *const sums = chunks == 1 ? edge_back->data : (float *)queue.workspace;
    w.out = {sums, chunks == 1 ? edge_back->ld : columns};
    w.accumulate = accumulate && chunks == 1;
    launch_teams<edge_sums>("pair_again, M", w, chunks, queue.stream);
    if (chunks > 1)
        sl_cuda_launch_each("pair_again, sum of M", edges, columns, false,
                            sl_pair_chunks{chunks, columns, sums, edges * columns,
                                           accumulate ? edge_back->data : nullptr, edge_back->ld},
                            edge_back->data, edge_back->ld, queue.stream);
}

/* ---- Tasks ---- */

extern "C" void pair_edges_back_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_floats_at target = sl_pair_floats(buffers[0]),
                       gradient_at = sl_pair_floats(buffers[1]),
                       target_back = sl_pair_floats(buffers[2]), state = sl_pair_floats(buffers[3]),
                       back = sl_pair_floats(buffers[4], arg->row);
    sl_cuda_pair_edges_back(&arg->pair, sl_dense_buffer(buffers[0]).rows, &target, &gradient_at,
                            &target_back, &state, &back, sl_cuda_task_queue());
}

extern "C" void pair_edges_paste_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_floats_at sums = sl_pair_floats(buffers[0]),
                       back = sl_pair_floats(buffers[1], arg->row);
    sl_cuda_pair_edges_paste(&arg->pair, &sums, &back, sl_cuda_task_queue());
}
