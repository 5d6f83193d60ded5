/* Normalisation on a GPU. A group of lanes has a row, four elements of each lane at a time. Sums
 * over rows are made of batches of rows, chunks of batches, and all chunks, in a fixed order. */
#include "codelets/cuda_epilogue.h"
#include "codelets/cuda_norm.h"

extern "C" {
#include "codelets/init.h"
#include "codelets/norm.h"
}

namespace
{

enum {
    THREADS = 256,
    BATCH = 32,   /* rows whose moments a block has at a time */
    CHUNKS = 512, /* most chunks */
};

/* ---- Row by row ---- */

template <int LANES>
__global__ void __launch_bounds__(THREADS)
    norm_rows(sl_norm n, sl_epilogue epilogue, sl_rows z, bool aligned)
{
    const int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const int lane = (int)threadIdx.x % LANES;
    if (r >= n.rows)
        return;
    const moments of = moments_of_row<LANES>(n, r, lane, aligned);
    for (int64_t j = V * lane; j < n.cols; j += V * LANES) {
        const int64_t count = n.cols - j;
        const sl_cuda_vector<V> w = sl_cuda_load<V>(n.weight + j, count, aligned),
                                b = sl_cuda_load<V>(n.bias + j, count, aligned);
        sl_cuda_vector<V> v = sl_cuda_load<V>(n.h, r, j, count, aligned);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = fmaf(normal(of, v.at[i]), w.at[i], b.at[i]);
        sl_cuda_finish<V>(epilogue, aligned, r, j, count, &v);
        sl_cuda_store<V>(z, r, j, v, count, aligned);
    }
}

template <int LANES>
__global__ void __launch_bounds__(THREADS) back_rows(sl_norm n, sl_norm_back back, bool aligned)
{
    const int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const int lane = (int)threadIdx.x % LANES;
    if (r >= n.rows)
        return;
    const moments of = moments_of_row<LANES>(n, r, lane, aligned);
    const float cols = (float)(n.moments ? n.whole : n.cols);
    float first, second;
    if (n.moments) {
        first = back.d[r];
        second = back.d[back.ld + r];
    } else {
        products_of_row<LANES>(n, back.g, of, r, lane, aligned, &first, &second);
    }
    first /= cols;
    second /= cols;
    const float by = back.after ? back.after[r] * of.inverse : of.inverse;
    for (int64_t j = V * lane; j < n.cols; j += V * LANES) {
        const int64_t count = n.cols - j;
        const sl_cuda_vector<V> g = sl_cuda_load<V>(back.g, r, j, count, aligned),
                                w = sl_cuda_load<V>(n.weight + j, count, aligned);
        sl_cuda_vector<V> v = sl_cuda_load<V>(n.h, r, j, count, aligned);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = by * fmaf(-normal(of, v.at[i]), second, fmaf(w.at[i], g.at[i], -first));
        sl_cuda_store<V>(back.y, r, j, v, count, aligned);
    }
}

/* ---- Element by element ---- */

struct normed {
    sl_norm n;
    sl_epilogue epilogue;

    template <int W> __device__ sl_cuda_vector<W> at(int64_t r, int64_t j, int64_t count) const
    {
        const sl_cuda_vector<W> w = sl_cuda_load<W>(n.weight + j, count),
                                b = sl_cuda_load<W>(n.bias + j, count);
        sl_cuda_vector<W> v = sl_cuda_load<W>(n.h, r, j, count, true);
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < count)
                v.at[i] = fmaf(normal(moments_of_column(n, j + i), v.at[i]), w.at[i], b.at[i]);
        sl_cuda_finish<W>(epilogue, true, r, j, count, &v);
        return v;
    }
};

struct turned_back {
    sl_norm n;
    sl_norm_back back;

    template <int W> __device__ sl_cuda_vector<W> at(int64_t r, int64_t j, int64_t count) const
    {
        const sl_cuda_vector<W> g = sl_cuda_load<W>(back.g, r, j, count, true);
        const float share = (float)((n.root ? (double)n.root[r] : 1.0) / back.count),
                    after = back.after ? back.after[r] : 1.0f;
        sl_cuda_vector<W> v = sl_cuda_load<W>(n.h, r, j, count, true);
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < count) {
                const moments of = moments_of_column(n, j + i);
                const float by = after * n.weight[j + i] * of.inverse;
                const float mean =
                    back.d ? fmaf(normal(of, v.at[i]), back.d[j + i], back.d[back.ld + j + i])
                           : 0.0f;
                v.at[i] = by * fmaf(-share, mean, g.at[i]);
            }
        return v;
    }
};

/* ---- Sums over rows ---- */

/* Two numbers of a column. Their sums over all rows are in rows 0 and 1 of `to`. */
template <class T> struct pair {
    T first, second;
};

/* Terms of sl_cuda_norm_sums: values and squares. */
struct powers {
    typedef double type;
    const float *root;
    sl_rows h;

    __device__ void open(int64_t, int64_t)
    {
    }
    __device__ void choose(int64_t)
    {
    }
    __device__ void add(int64_t r, int, int64_t j, pair<double> *sum) const
    {
        const double x = sl_cuda_element(h, r, j), own = root ? (double)root[r] * x : x;
        sum->first += own;
        sum->second = fma(own, x, sum->second);
    }
};

/* Terms of sl_cuda_norm_gradient. In a norm of rows, the block first finds the moments of a batch.
 */
struct products {
    typedef float type;
    sl_norm n;
    sl_rows g;
    bool aligned;
    moments column;

    template <int LANES> __device__ void find(int64_t first, int64_t count, moments *of) const
    {
        const int lane = (int)threadIdx.x % LANES;
        for (int64_t i = threadIdx.x / LANES; i < count; i += THREADS / LANES) {
            const moments own = moments_of_row<LANES>(n, first + i, lane, aligned);
            if (lane == 0)
                of[i] = own;
        }
    }
    __device__ void open(int64_t first, int64_t count)
    {
        if (n.mean)
            return;
        auto &of = sl_cuda_shared<moments[BATCH]>();
        __syncthreads();
        if (n.cols > NARROW)
            find<32>(first, count, of);
        else
            find<8>(first, count, of);
        __syncthreads();
    }
    __device__ void choose(int64_t j)
    {
        if (n.mean)
            column = moments_of_column(n, j);
    }
    __device__ void add(int64_t r, int i, int64_t j, pair<float> *sum) const
    {
        const float own = sl_cuda_element(g, r, j), h = sl_cuda_element(n.h, r, j);
        const moments &of = n.mean ? column : sl_cuda_shared<moments[BATCH]>()[i];
        sum->first = fmaf(own, normal(of, h), sum->first);
        sum->second += own;
    }
};

/* Add the sums of the block's thread rows into the first thread row. */
template <class T> __device__ void add_thread_rows(int across, int down, pair<T> *sum)
{
    auto &part = sl_cuda_shared<pair<T>[THREADS]>();
    const int own = (int)threadIdx.x, y = own / across;
    __syncthreads();
    part[own] = *sum;
    for (int half = down / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half) {
            part[own].first += part[own + half * across].first;
            part[own].second += part[own + half * across].second;
        }
    }
    *sum = part[own];
}

/* Sum chunks. Block b sums chunk b into rows 0 and 1 of to + b·apart, `across` columns at a time.
 */
template <class Terms>
__global__ void __launch_bounds__(THREADS)
    sum_chunk(int64_t rows, int64_t chunk, int64_t cols, int across, Terms terms,
              typename Terms::type *all, int64_t apart, int64_t ld)
{
    typedef typename Terms::type T;
    const int down = THREADS / across, x = (int)threadIdx.x % across, y = (int)threadIdx.x / across;
    const int64_t begin = blockIdx.x * chunk, end = begin + chunk < rows ? begin + chunk : rows;
    T *const to = all + blockIdx.x * apart;
    int64_t first = begin;
    do {
        const int64_t count = end - first < BATCH ? end - first : BATCH;
        terms.open(first, count);
        for (int64_t j = x; j - x < cols; j += across) {
            pair<T> sum = {};
            if (j < cols) {
                terms.choose(j);
                for (int i = y; i < count; i += down)
                    terms.add(first + i, i, j, &sum);
            }
            if (down > 1)
                add_thread_rows(across, down, &sum);
            if (y == 0 && j < cols) {
                to[j] = first > begin ? to[j] + sum.first : sum.first;
                to[ld + j] = first > begin ? to[ld + j] + sum.second : sum.second;
            }
        }
        first += BATCH;
    } while (first < end);
}

enum { ADDED = 32 /* columns of a block that adds chunks */ };

template <class T>
__global__ void __launch_bounds__(THREADS)
    add_chunks(int64_t chunks, int64_t cols, const T *parts, T *to, int64_t ld)
{
    const int y = (int)threadIdx.x / ADDED;
    const int64_t j = (int64_t)blockIdx.x * ADDED + threadIdx.x % ADDED;
    pair<T> sum = {};
    for (int64_t c = y; c < chunks && j < cols; c += THREADS / ADDED) {
        sum.first += parts[2 * c * cols + j];
        sum.second += parts[(2 * c + 1) * cols + j];
    }
    add_thread_rows(ADDED, THREADS / ADDED, &sum);
    if (y == 0 && j < cols) {
        to[j] = sum.first;
        to[ld + j] = sum.second;
    }
}

/* Sum all rows: chunks first, then the chunks' sums. The shape alone decides the order of
 * additions. */
template <class Terms>
void sum_rows(const char *name, int64_t rows, int64_t cols, const Terms &terms,
              typename Terms::type *to, int64_t ld, const struct sl_cuda_queue &queue)
{
    typedef typename Terms::type T;
    if (cols == 0)
        return;
    T *const parts = (T *)queue.workspace; // (chunks, 2, cols)
    const int64_t room = (int64_t)(SL_RUNTIME_WORKSPACE / sizeof(T)) / (2 * cols);
    const int64_t most = room > CHUNKS ? CHUNKS : room > 1 ? room : 1;
    const int64_t chunk =
        BATCH * sl_cuda_divide_up(sl_cuda_divide_up(rows > 0 ? rows : 1, BATCH), most);
    const int64_t chunks = rows > 0 ? sl_cuda_divide_up(rows, chunk) : 1;
    int across = 4;
    while (across < THREADS && across < cols)
        across *= 2;
    if (chunks == 1) {
        sl_cuda_launch(name, sum_chunk<Terms>, 1, THREADS, 0, queue.stream, rows, chunk, cols,
                       across, terms, to, 0, ld);
    } else {
        sl_cuda_launch(name, sum_chunk<Terms>, (unsigned)chunks, THREADS, 0, queue.stream, rows,
                       chunk, cols, across, terms, parts, 2 * cols, cols);
        sl_cuda_launch("norm, chunks", add_chunks<T>, (unsigned)sl_cuda_divide_up(cols, ADDED),
                       THREADS, 0, queue.stream, chunks, cols, parts, to, ld);
    }
}

/* ---- Statistics ---- */

__global__ void __launch_bounds__(THREADS)
    find_statistics(int64_t cols, double count, const double *sums, int64_t ld, float *to,
                    int64_t ldt)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= cols)
        return;
    const double mean = sums[j] / count, variance = fma(-mean, mean, sums[ld + j] / count);
    to[j] = (float)mean;
    to[ldt + j] = (float)(variance < 0.0 ? 0.0 : variance);
}

__global__ void __launch_bounds__(THREADS)
    find_averages(int64_t cols, double unbiased, const float *statistics, int64_t lds, float *to,
                  int64_t ldt)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= cols)
        return;
    to[j] = statistics[j];
    to[ldt + j] = (float)((double)statistics[lds + j] * unbiased);
}

/* ---- Launches ---- */

bool is_aligned(const sl_norm &n)
{
    return sl_cuda_aligned(n.rows, n.h) && sl_cuda_aligned(1, n.weight, n.cols) &&
           sl_cuda_aligned(1, n.bias, n.cols);
}

template <class T, class Operation>
void launch_each(const char *name, const sl_norm &n, bool aligned, const Operation &operation,
                 const sl_rows &z, cudaStream_t stream)
{
    sl_cuda_launch_each(name, n.rows, n.cols, aligned, operation, (T *)z.data, z.ld, stream);
}

} // namespace

extern "C" void sl_cuda_norm(const struct sl_norm *n, const struct sl_epilogue *given,
                             const struct sl_rows *z, struct sl_cuda_queue queue)
{
    const sl_epilogue epilogue = sl_epilogue_at(given, 0, 0);
    const bool aligned = is_aligned(*n) && sl_cuda_aligned(n->rows, *z) &&
                         sl_cuda_epilogue_aligned(epilogue, n->rows, n->cols);
    if (n->rows == 0 || n->cols == 0)
        return;
    if (!n->mean)
        sl_cuda_launch("norm", n->cols > NARROW ? norm_rows<32> : norm_rows<8>,
                       grid_of_rows(n->rows, n->cols, THREADS), THREADS, 0, queue.stream, *n,
                       epilogue, *z, aligned);
    else if (z->type == SL_BFLOAT16)
        launch_each<__nv_bfloat16>("norm", *n, aligned, normed{*n, epilogue}, *z, queue.stream);
    else
        launch_each<float>("norm", *n, aligned, normed{*n, epilogue}, *z, queue.stream);
}

extern "C" void sl_cuda_norm_sums(int64_t rows, int64_t cols, const float *root,
                                  const struct sl_rows *h, double *sums, int64_t ld,
                                  struct sl_cuda_queue queue)
{
    sum_rows("norm_sums", rows, cols, powers{root, *h}, sums, ld, queue);
}

extern "C" void sl_cuda_norm_statistics(int64_t cols, double count, const double *sums, int64_t ld,
                                        float *statistics, int64_t lds, struct sl_cuda_queue queue)
{
    if (cols > 0)
        sl_cuda_launch("norm_statistics", find_statistics,
                       (unsigned)sl_cuda_divide_up(cols, THREADS), THREADS, 0, queue.stream, cols,
                       count, sums, ld, statistics, lds);
}

extern "C" void sl_cuda_norm_averages(int64_t cols, double count, const float *statistics,
                                      int64_t lds, float *averages, int64_t lda,
                                      struct sl_cuda_queue queue)
{
    if (cols > 0)
        sl_cuda_launch("norm_averages", find_averages, (unsigned)sl_cuda_divide_up(cols, THREADS),
                       THREADS, 0, queue.stream, cols, count > 1.0 ? count / (count - 1.0) : 1.0,
                       statistics, lds, averages, lda);
}

extern "C" void sl_cuda_norm_gradient(const struct sl_norm *n, const struct sl_rows *g, float *d,
                                      int64_t ld, struct sl_cuda_queue queue)
{
    sum_rows("norm_gradient", n->rows, n->cols,
             products{*n, *g, sl_cuda_aligned(n->rows, n->h), moments{}}, d, ld, queue);
}

extern "C" void sl_cuda_norm_back(const struct sl_norm_back *back, struct sl_cuda_queue queue)
{
    const sl_norm &n = *back->norm;
    const bool aligned =
        is_aligned(n) && sl_cuda_aligned(n.rows, back->g) && sl_cuda_aligned(n.rows, back->y);
    if (n.rows == 0 || n.cols == 0)
        return;
    if (!n.mean)
        sl_cuda_launch("norm_back", n.cols > NARROW ? back_rows<32> : back_rows<8>,
                       grid_of_rows(n.rows, n.cols, THREADS), THREADS, 0, queue.stream, n, *back,
                       aligned);
    else if (back->y.type == SL_BFLOAT16)
        launch_each<__nv_bfloat16>("norm_back", n, aligned, turned_back{n, *back}, back->y,
                                   queue.stream);
    else
        launch_each<float>("norm_back", n, aligned, turned_back{n, *back}, back->y, queue.stream);
}

/* ---- Tasks ---- */

extern "C" void norm_cuda(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers((const norm_argument *)argument, buffers, &o);
    sl_cuda_norm(&o.norm, &o.epilogue, &o.z, sl_cuda_task_queue());
}

extern "C" void norm_sums_cuda(void *buffers[], void *)
{
    const sl_rows h = sl_rows_buffer(buffers[1]);
    sl_cuda_norm_sums(STARPU_MATRIX_GET_NY(buffers[1]), STARPU_MATRIX_GET_NX(buffers[1]),
                      sl_row_scale(buffers[0], SL_ROW_ROOT), &h,
                      (double *)sl_raw_buffer(buffers[2]), STARPU_MATRIX_GET_LD(buffers[2]),
                      sl_cuda_task_queue());
}

extern "C" void norm_statistics_cuda(void *buffers[], void *argument)
{
    const norm_statistics_argument *arg = (const norm_statistics_argument *)argument;
    const sl_dense statistics = sl_dense_buffer(buffers[1]);
    sl_cuda_norm_statistics(STARPU_MATRIX_GET_NX(buffers[0]), arg->count,
                            (const double *)sl_raw_buffer(buffers[0]),
                            STARPU_MATRIX_GET_LD(buffers[0]), statistics.data + arg->column,
                            statistics.ld, sl_cuda_task_queue());
}

extern "C" void norm_averages_cuda(void *buffers[], void *argument)
{
    const sl_dense statistics = sl_dense_buffer(buffers[0]), gradient = sl_dense_buffer(buffers[1]);
    sl_cuda_norm_averages(statistics.cols, *(const double *)argument, statistics.data,
                          statistics.ld, gradient.data + 2 * gradient.ld, gradient.ld,
                          sl_cuda_task_queue());
}

extern "C" void norm_gradient_cuda(void *buffers[], void *argument)
{
    const sl_cuda_queue queue = sl_cuda_task_queue();
    struct norm_operands o;
    sl_norm_buffers((const norm_argument *)argument, buffers, &o);
    const sl_rows rest = sl_rows_at(&o.z, 2, 0);
    sl_cuda_norm_gradient(&o.norm, &o.g, (float *)o.z.data, o.z.ld, queue);
    sl_cuda_fill(o.z_rows - 2, o.norm.cols, 0.0f, &rest, queue);
}

extern "C" void norm_back_cuda(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers((const norm_argument *)argument, buffers, &o);
    const sl_cuda_queue queue = sl_cuda_task_queue();
    const sl_norm_back back = sl_norm_back_of((const norm_argument *)argument, &o);
    if (back.gradient) /* first: Y may be H or G */
        sl_cuda_norm_gradient(back.norm, &back.g, back.gradient, back.ldg, queue);
    sl_cuda_norm_back(&back, queue);
}
