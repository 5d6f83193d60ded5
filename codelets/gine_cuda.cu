/* GINE's aggregation on a GPU. A thread has some columns of a row and walks over the row's entries,
 * in their order. Its weights stay in registers where edges have few features. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/gine.h"
}

namespace
{

enum {
    THREADS = 256,
    FEW = 8, /* features whose weights stay in registers, and whose gradients a thread sums */
    MOST_CHUNKS = 1024,
    LEAST_ROWS = 32, /* of a chunk */
    SUM_LANES = 32,
    SUM_ROWS = 8,
};

/* Rows that entries meet, rows of A or Aᵀ, and EDGE. */
struct walk {
    sl_sparse a;
    int64_t cols;
    sl_floats_at met, own, edge;
};

__device__ __forceinline__ const float *row_at(const sl_floats_at &of, int64_t r)
{
    return of.data + r * of.ld;
}

/* The columns of EDGE that a thread keeps in registers: of the bias and, with KEEPS, of W. */
template <int V, bool KEEPS> struct weights {
    sl_cuda_vector<V> bias, at[KEEPS ? FEW : 1];

    __device__ weights(const walk &w, int64_t j)
    {
        const int64_t features = w.a.edge_features;
        bias = sl_cuda_load<V>(row_at(w.edge, features) + j, w.cols - j);
        if constexpr (KEEPS) {
#pragma unroll
            for (int k = 0; k < FEW; k++)
                at[k] = k < features ? sl_cuda_load<V>(row_at(w.edge, k) + j, w.cols - j)
                                     : sl_cuda_vector<V>{};
        }
    }
    /* Return x + f·W of entry e. */
    __device__ sl_cuda_vector<V> add(const walk &w, uint32_t e, int64_t j,
                                     sl_cuda_vector<V> x) const
    {
        const int64_t features = w.a.edge_features;
        const float *const f = w.a.edge + e * features;
        if constexpr (KEEPS) {
#pragma unroll
            for (int k = 0; k < FEW; k += 4) {
                const sl_cuda_vector<4> four =
                    sl_cuda_load<4>(f + k, features - k, features % 4 == 0);
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int v = 0; v < V; v++)
                        x.at[v] = fmaf(four.at[i], at[k + i].at[v], x.at[v]);
            }
        } else {
            for (int64_t k = 0; k < features; k++) {
                const sl_cuda_vector<V> weight = sl_cuda_load<V>(row_at(w.edge, k) + j, w.cols - j);
#pragma unroll
                for (int v = 0; v < V; v++)
                    x.at[v] = fmaf(f[k], weight.at[v], x.at[v]);
            }
        }
        return x;
    }
};

template <int V>
__device__ __forceinline__ sl_cuda_vector<V> sum_of(sl_cuda_vector<V> x, const sl_cuda_vector<V> &y)
{
#pragma unroll
    for (int v = 0; v < V; v++)
        x.at[v] += y.at[v];
    return x;
}

/* Return columns j … of the row that entry e of block b meets. */
template <int V>
__device__ __forceinline__ sl_cuda_vector<V> met_by(const walk &w, int64_t b, uint32_t e, int64_t j)
{
    const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
    return sl_cuda_load<V>(row_at(w.met, c) + j, w.cols - j);
}

/* ---- Forward ---- */

template <int V, bool KEEPS>
__global__ void __launch_bounds__(THREADS) forward(walk w, bool accumulate, sl_floats_at out)
{
    const int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y,
                  j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V;
    if (r >= w.a.rows || j >= w.cols)
        return;
    const weights<V, KEEPS> edge(w, j);
    float *const to = out.data + r * out.ld + j;
    sl_cuda_vector<V> sum = {};
    if (accumulate)
        sum = sl_cuda_load<V>(to, w.cols - j);
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const sl_cuda_vector<V> x = edge.add(w, e, j, sum_of(met_by<V>(w, b, e, j), edge.bias));
#pragma unroll
            for (int v = 0; v < V; v++)
                sum.at[v] += x.at[v] < 0.0f ? 0.0f : x.at[v]; /* NaN stays */
        }
    sl_cuda_store<V>(to, sum, w.cols - j);
}

/* ---- Backward ----
 *
 * Gradients of EDGE in a fixed order: the shape alone cuts the rows into chunks. A thread sums some
 * columns over every blockDim.y-th row of a chunk, for FEW features. Its block adds the threads'
 * sums in order, into the workspace. A second launch adds the chunks. */

static_assert((SL_EDGE_FEATURES + 1) * SL_GINE_COLUMNS * sizeof(float) <= SL_RUNTIME_WORKSPACE,
              "the sums of a chunk have room");

struct back {
    sl_floats_at rows; /* BACK, or NULL */
    bool accumulate;
    int64_t chunk; /* rows of a chunk */
    float *sums;   // (chunks, features + 1, cols)
};

/* Add the sums of the threads of a column, one after the other, into TO. */
template <int V> __device__ void add_threads(const sl_cuda_vector<V> &sum, float *to, int64_t count)
{
    auto &part = sl_cuda_shared<sl_cuda_vector<V>[THREADS]>();
    part[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && count > 0) {
        sl_cuda_vector<V> total = sum;
        for (unsigned i = 1; i < blockDim.y; i++)
            total = sum_of(total, part[i * blockDim.x + threadIdx.x]);
        sl_cuda_store<V>(to, total, count, false);
    }
    __syncthreads();
}

/* The sums of a thread: of the bias, and of features `first` … . */
template <int V> struct gradients {
    sl_cuda_vector<V> bias, at[FEW];

    __device__ void add(const walk &w, uint32_t e, int64_t first, const sl_cuda_vector<V> &g)
    {
        const int64_t features = w.a.edge_features;
        const float *const f = w.a.edge + e * features;
#pragma unroll
        for (int k = 0; k < FEW; k += 4) {
            const sl_cuda_vector<4> four =
                sl_cuda_load<4>(f + first + k, features - first - k, features % 4 == 0);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int v = 0; v < V; v++)
                    at[k + i].at[v] = fmaf(four.at[i], g.at[v], at[k + i].at[v]);
        }
    }
};

/* Walk over row r: add to SUMS, and make the row of BACK if `first` is 0. */
template <int V, bool KEEPS>
__device__ void walk_back(const walk &w, const back &to, const weights<V, KEEPS> &edge, int64_t r,
                          int64_t j, int64_t first, gradients<V> *sums)
{
    const int64_t count = w.cols - j;
    const sl_cuda_vector<V> own = sum_of(sl_cuda_load<V>(row_at(w.own, r) + j, count), edge.bias);
    sl_cuda_vector<V> sum = {};
    for (int64_t b = 0; b < w.a.blocks; b++)
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + r]; e < w.a.row_ptr[b * w.a.rows + r + 1];
             e++) {
            const sl_cuda_vector<V> x = edge.add(w, e, j, own);
            sl_cuda_vector<V> g = met_by<V>(w, b, e, j);
#pragma unroll
            for (int v = 0; v < V; v++)
                g.at[v] = x.at[v] > 0.0f ? g.at[v] : 0.0f;
            sum = sum_of(sum, g);
            sums->add(w, e, first, g);
        }
    sums->bias = sum_of(sums->bias, sum);
    if (!to.rows.data || first > 0)
        return;
    float *const row = to.rows.data + r * to.rows.ld + j;
    if (to.accumulate)
        sum = sum_of(sl_cuda_load<V>(row, count), sum);
    sl_cuda_store<V>(row, sum, count);
}

template <int V, bool KEEPS> __global__ void __launch_bounds__(THREADS) backward(walk w, back to)
{
    const int64_t begin = (int64_t)blockIdx.x * to.chunk, first = (int64_t)blockIdx.z * FEW,
                  end = begin + to.chunk < w.a.rows ? begin + to.chunk : w.a.rows,
                  j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V,
                  features = w.a.edge_features;
    gradients<V> sums = {};
    if (j < w.cols) {
        const weights<V, KEEPS> edge(w, j);
        for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y)
            walk_back<V, KEEPS>(w, to, edge, r, j, first, &sums);
    }
    float *const out = to.sums + (int64_t)blockIdx.x * (features + 1) * w.cols + j;
#pragma unroll
    for (int k = 0; k < FEW; k++)
        if (first + k < features)
            add_threads<V>(sums.at[k], out + (first + k) * w.cols, w.cols - j);
    if (first == 0)
        add_threads<V>(sums.bias, out + features * w.cols, w.cols - j);
}

/* Add the chunks' sums: first every SUM_ROWS-th chunk, then these sums, in order. */
__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS)
    add_chunks(int64_t chunks, int64_t cols, const float *sums, bool accumulate, sl_floats_at out)
{
    auto &part = sl_cuda_shared<float[SUM_ROWS][SUM_LANES]>();
    const int64_t j = (int64_t)blockIdx.y * SUM_LANES + threadIdx.x, k = blockIdx.x,
                  rows = gridDim.x;
    float sum = 0.0f;
    if (j < cols)
        for (int64_t i = threadIdx.y; i < chunks; i += SUM_ROWS)
            sum += sums[(i * rows + k) * cols + j];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= cols)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    float *const to = out.data + k * out.ld + j;
    *to = accumulate ? *to + sum : sum;
}

/* ---- Launches ---- */

/* Return the threads of a block, along columns and along rows. They depend on the columns alone, so
 * that sums have one order. */
dim3 block_of(int64_t cols)
{
    unsigned across = 1;
    while (across < 32 && 4 * across < cols)
        across *= 2;
    return dim3(across, THREADS / across);
}

/* Return how many blocks lie along the columns. A thread has four columns where `aligned`. */
unsigned panels_of(int64_t cols, const dim3 &block, bool aligned)
{
    return (unsigned)sl_cuda_divide_up(cols, (int64_t)block.x * (aligned ? 4 : 1));
}

bool is_aligned(const sl_floats_at &of)
{
    return sl_cuda_aligned(2, of.data, of.ld);
}

} // namespace

extern "C" void sl_cuda_gine(const struct sl_sparse *a, int64_t cols, const struct sl_floats_at *x,
                             const struct sl_floats_at *edge, bool accumulate,
                             const struct sl_floats_at *out, struct sl_cuda_queue queue)
{
    if (a->rows == 0 || cols == 0)
        return;
    const walk w = {*a, cols, *x, {}, *edge};
    const bool aligned = is_aligned(*x) && is_aligned(*edge) && is_aligned(*out),
               few = a->edge_features <= FEW;
    const dim3 block = block_of(cols),
               grid((unsigned)sl_cuda_divide_up(a->rows, block.y), panels_of(cols, block, aligned));
    sl_cuda_launch("gine",
                   aligned ? few ? forward<4, true> : forward<4, false>
                   : few ? forward<1, true>
                           : forward<1, false>,
                   grid, block, 0, queue.stream, w, accumulate, *out);
}

extern "C" void sl_cuda_gine_back(const struct sl_sparse *at, int64_t cols,
                                  const struct sl_floats_at *g, const struct sl_floats_at *x,
                                  const struct sl_floats_at *edge, bool accumulate,
                                  const struct sl_floats_at *back_at, bool edge_accumulate,
                                  const struct sl_floats_at *edge_back, struct sl_cuda_queue queue)
{
    const int64_t features = at->edge_features, sums = (features + 1) * cols;
    if (cols == 0)
        return;
    const walk w = {*at, cols, *g, *x, *edge};
    back to = {back_at ? *back_at : sl_floats_at{}, accumulate, LEAST_ROWS,
               (float *)queue.workspace};
    int64_t most = SL_RUNTIME_WORKSPACE / (int64_t)sizeof(float) / sums;
    most = most < MOST_CHUNKS ? most : MOST_CHUNKS;
    if (to.chunk < sl_cuda_divide_up(at->rows, most))
        to.chunk = sl_cuda_divide_up(at->rows, most);
    const int64_t chunks = sl_cuda_divide_up(at->rows, to.chunk);
    const bool aligned = is_aligned(*g) && is_aligned(*x) && is_aligned(*edge) &&
                         (!back_at || is_aligned(*back_at)),
               few = features <= FEW;
    const dim3 block = block_of(cols), grid((unsigned)chunks, panels_of(cols, block, aligned),
                                            (unsigned)sl_cuda_divide_up(features, FEW));
    if (chunks > 0)
        sl_cuda_launch("gine_back",
                       aligned ? few ? backward<4, true> : backward<4, false>
                       : few ? backward<1, true>
                               : backward<1, false>,
                       grid, block, 0, queue.stream, w, to);
    sl_cuda_launch("gine_back, sum", add_chunks,
                   dim3((unsigned)(features + 1), (unsigned)sl_cuda_divide_up(cols, SUM_LANES)),
                   dim3(SUM_LANES, SUM_ROWS), 0, queue.stream, chunks, cols, to.sums,
                   edge_accumulate, *edge_back);
}

/* ---- Tasks ---- */

extern "C" void gine_cuda(void *buffers[], void *argument)
{
    const gine_argument *arg = (const gine_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at x = sl_floats_buffer(buffers[1]), edge = sl_floats_buffer(buffers[2]),
                       out = sl_floats_buffer(buffers[3]);
    sl_cuda_gine(&a, sl_dense_buffer(buffers[2]).cols, &x, &edge, arg->accumulate, &out,
                 sl_cuda_task_queue());
}

extern "C" void gine_back_cuda(void *buffers[], void *argument)
{
    const gine_argument *arg = (const gine_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at g = sl_floats_buffer(buffers[1]), x = sl_floats_buffer(buffers[2]),
                       edge = sl_floats_buffer(buffers[3]),
                       edge_back = sl_floats_buffer(buffers[4]),
                       back_at = sl_floats_buffer(buffers[4 + arg->has_back]);
    sl_cuda_gine_back(&at, sl_dense_buffer(buffers[3]).cols, &g, &x, &edge, arg->accumulate,
                      arg->has_back ? &back_at : nullptr, arg->edge_accumulate, &edge_back,
                      sl_cuda_task_queue());
}
