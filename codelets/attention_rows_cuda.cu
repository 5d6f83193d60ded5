/* The parts of graph attention in which rows do not meet. A group of lanes multiplies two heads'
 * rows: each lane adds every LANES-th term, then a tree adds the lanes. */
#include "codelets/cuda_epilogue.h"

extern "C" {
#include "codelets/attention_rows.h"
}

namespace
{

enum {
    THREADS = 256,
    WIDE = 16, /* least columns of a head that 32 lanes share; 8 lanes share a narrower head */
    SUM_LANES = 32,
    SUM_ROWS = 16, /* columns of a block that sums columns, and rows at a time */
};

/* Return the columns of all heads: sl_attention_all on the device. */
__device__ __forceinline__ int64_t all_of(const sl_attention &attention)
{
    return attention.heads * attention.width;
}

/* Run an operation on each head of each row. Add the sums that `at` returns over the lanes; one
 * lane gives the totals to `end`. */
template <int LANES, class Operation>
__global__ void __launch_bounds__(THREADS) each_head(int64_t rows, int heads, Operation operation)
{
    const int64_t item = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES, r = item / heads;
    const int lane = (int)threadIdx.x % LANES, h = (int)(item % heads);
    if (r >= rows)
        return;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - (unsigned)lane);
    auto sum = operation.template at<LANES>(r, h, lane);
#pragma unroll
    for (int i = 0; i < Operation::SUMS; i++)
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            sum.at[i] += __shfl_xor_sync(mask, sum.at[i], distance);
    if (lane == 0)
        operation.end(r, h, sum);
}

template <class Operation>
void launch_each_head(const char *name, const sl_attention &attention, int64_t rows,
                      const Operation &operation, cudaStream_t stream)
{
    if (rows == 0)
        return;
    const int lanes = attention.width > WIDE ? 32 : 8;
    const dim3 grid((unsigned)sl_cuda_divide_up(rows * attention.heads, THREADS / lanes));
    sl_cuda_launch(name, lanes == 32 ? each_head<32, Operation> : each_head<8, Operation>, grid,
                   THREADS, 0, stream, rows, attention.heads, operation);
}

__device__ __forceinline__ float *row_at(const sl_floats_at &of, int64_t r)
{
    return of.data + r * of.ld;
}

/* ---- Parameters ---- */

/* Return the row of a_src; a_dst follows, and then a_edge where entries have features. */
__host__ __device__ __forceinline__ int64_t vectors_of(const sl_attention_shape &shape)
{
    return shape.in + shape.edge_features;
}

struct weights {
    enum { SUMS = 2 };
    sl_attention attention;
    sl_attention_shape shape;
    sl_floats_at parameters, out;

    template <int LANES> __device__ sl_cuda_vector<SUMS> at(int64_t r, int h, int lane) const
    {
        const float *const from = row_at(parameters, r),
                           *const source = row_at(parameters, vectors_of(shape)),
                           *const target = row_at(parameters, vectors_of(shape) + 1);
        float *const to = row_at(out, r) + shape.at;
        sl_cuda_vector<SUMS> sum = {};
        for (int64_t i = lane; i < shape.head_width; i += LANES) {
            const int64_t j = (attention.first_head + h) * shape.head_width + i,
                          own = i - shape.first_column;
            const float x = from[j];
            if (own >= 0 && own < attention.width)
                to[h * attention.width + own] = x;
            sum.at[0] = fmaf(x, source[j], sum.at[0]);
            sum.at[1] = fmaf(x, target[j], sum.at[1]);
        }
        return sum;
    }
    __device__ void end(int64_t r, int h, const sl_cuda_vector<SUMS> &sum) const
    {
        float *const to = row_at(out, r) + shape.at + all_of(attention);
        to[h] = sum.at[0];
        to[attention.heads + h] = sum.at[1];
    }
};

struct edge {
    enum { SUMS = 1 };
    sl_attention attention;
    sl_attention_shape shape;
    sl_floats_at parameters, out;

    template <int LANES> __device__ sl_cuda_vector<SUMS> at(int64_t f, int h, int lane) const
    {
        const int64_t first = (attention.first_head + h) * shape.head_width;
        const float *const from = row_at(parameters, shape.in + f) + first,
                           *const vector = row_at(parameters, vectors_of(shape) + 2) + first;
        sl_cuda_vector<SUMS> sum = {};
        for (int64_t j = lane; j < shape.head_width; j += LANES)
            sum.at[0] = fmaf(from[j], vector[j], sum.at[0]);
        return sum;
    }
    __device__ void end(int64_t f, int h, const sl_cuda_vector<SUMS> &sum) const
    {
        row_at(out, f)[h] = sum.at[0];
    }
};

/* The gradient of W and W_e, as an operation on each element. */
struct weights_back {
    sl_attention attention;
    sl_attention_shape shape;
    sl_floats_at parameters, gradient;
    bool accumulate;
    sl_floats_at back;

    /* Return the part's head for a column of the parameters. A number below 0, or at least
     * attention.heads, is no head. */
    __device__ int64_t head(int64_t j) const
    {
        const int64_t h = j / shape.head_width - attention.first_head;
        return h < attention.heads ? h : -1;
    }

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t all = all_of(attention), h = head(j),
                      own = j % shape.head_width - shape.first_column;
        const float *const g = row_at(gradient, r) + shape.at;
        float sum = accumulate ? row_at(back, r)[j] : 0.0f;
        if (h < 0)
            return {{sum}};
        if (r >= shape.in)
            return {{fmaf(g[h], row_at(parameters, vectors_of(shape) + 2)[j], sum)}};
        if (own >= 0 && own < attention.width)
            sum += g[h * attention.width + own];
        const int64_t vectors = vectors_of(shape);
        sum = fmaf(g[all + h], row_at(parameters, vectors)[j], sum);
        return {{fmaf(g[all + attention.heads + h], row_at(parameters, vectors + 1)[j], sum)}};
    }
};

struct bias_back {
    int64_t first, count;
    bool accumulate;
    const float *g, *before;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t, int64_t j, int64_t) const
    {
        const float sum = accumulate ? before[j] : 0.0f;
        return {{j >= first && j < first + count ? sum + g[j - first] : sum}};
    }
};

struct column_sums {
    float source[SUM_ROWS][SUM_LANES], target[SUM_ROWS][SUM_LANES];
    float edge[SUM_ROWS][SUM_LANES];
};

/* Add the sums of the block's thread rows to row `r` of BACK, or set the row. */
__device__ __forceinline__ void end_column(const weights_back &w, int64_t r, int64_t j, float sum,
                                           const float (&part)[SUM_ROWS][SUM_LANES])
{
    float *const to = row_at(w.back, r) + j;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    *to = w.accumulate ? *to + sum : sum;
}

/* Make the gradients of a_src and a_dst, sums over the rows of W, and of a_edge, sums over W_e. */
__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS) sum_columns(weights_back w)
{
    column_sums &part = sl_cuda_shared<column_sums>();
    const int64_t all = all_of(w.attention), j = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x,
                  h = j < w.shape.columns ? w.head(j) : -1, vectors = vectors_of(w.shape);
    float source = 0.0f, target = 0.0f, edge = 0.0f;
    if (h >= 0) {
        for (int64_t r = threadIdx.y; r < w.shape.in; r += SUM_ROWS) {
            const float x = row_at(w.parameters, r)[j], *const g = row_at(w.gradient, r) +
                                                                   w.shape.at + all + h;
            source = fmaf(g[0], x, source);
            target = fmaf(g[w.attention.heads], x, target);
        }
        for (int64_t r = w.shape.in + threadIdx.y; r < vectors; r += SUM_ROWS)
            edge = fmaf(row_at(w.gradient, r)[w.shape.at + h], row_at(w.parameters, r)[j], edge);
    }
    part.source[threadIdx.y][threadIdx.x] = source;
    part.target[threadIdx.y][threadIdx.x] = target;
    part.edge[threadIdx.y][threadIdx.x] = edge;
    __syncthreads();
    if (threadIdx.y != 0 || j >= w.shape.columns)
        return;
    end_column(w, vectors, j, source, part.source);
    end_column(w, vectors + 1, j, target, part.target);
    if (w.shape.edge_features)
        end_column(w, vectors + 2, j, edge, part.edge);
}

/* ---- Rows ---- */

__global__ void __launch_bounds__(THREADS)
    scores(int heads, int64_t all, int64_t rows, const uint32_t *vertex, sl_floats_at projected,
           sl_floats_at to)
{
    const int64_t count = 2 * heads + 1, item = (int64_t)blockIdx.x * THREADS + threadIdx.x,
                  r = item / count, j = item % count;
    if (r >= rows)
        return;
    float *const s = row_at(projected, r) + all + heads;
    const float number = __uint_as_float(vertex[r] ^ SL_ATTENTION_VERTEX);
    row_at(to, r)[j] = j < heads ? s[j] : j < 2 * heads ? 0.0f : number;
    if (j == 0)
        s[0] = number;
}

/* The mean of the heads, with the epilogue, as an operation on each element. */
struct mean {
    sl_attention attention;
    sl_floats_at state;
    sl_epilogue epilogue;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const float share = 1.0f / (float)attention.heads, *const z = row_at(state, r) + j;
        sl_cuda_vector<V> sum = {};
        for (int64_t h = 0; h < attention.heads; h++) {
            const sl_cuda_vector<V> own = sl_cuda_load<V>(z + h * attention.width, count);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum.at[i] += own.at[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            sum.at[i] *= share;
        sl_cuda_finish<V>(epilogue, true, r, j, count, &sum);
        return sum;
    }
};

struct gradient {
    enum { SUMS = 1 };
    sl_attention attention;
    bool averaged;
    sl_rows g;
    sl_floats_at state, out;

    template <int LANES> __device__ sl_cuda_vector<SUMS> at(int64_t r, int h, int lane) const
    {
        const float share = averaged ? 1.0f / (float)attention.heads : 1.0f,
                    *const z = row_at(state, r) + h * attention.width;
        float *const to = row_at(out, r) + h * attention.width;
        sl_cuda_vector<SUMS> sum = {};
        for (int64_t j = lane; j < attention.width; j += LANES) {
            const float x = share * sl_cuda_element(g, r, averaged ? j : h * attention.width + j);
            to[j] = x;
            sum.at[0] = fmaf(x, z[j], sum.at[0]);
        }
        return sum;
    }
    __device__ void end(int64_t r, int h, const sl_cuda_vector<SUMS> &sum) const
    {
        row_at(out, r)[all_of(attention) + h] = sum.at[0];
    }
};

struct own {
    enum { SUMS = 1 };
    sl_attention attention;
    sl_floats_at gradient, state, back;

    template <int LANES> __device__ sl_cuda_vector<SUMS> at(int64_t r, int h, int lane) const
    {
        const float *const g = row_at(gradient, r) + h * attention.width, *const sloped =
                                                                              row_at(state, r) +
                                                                              all_of(attention) +
                                                                              2 * attention.heads +
                                                                              h * attention.width;
        sl_cuda_vector<SUMS> sum = {};
        for (int64_t j = lane; j < attention.width; j += LANES)
            sum.at[0] = fmaf(g[j], sloped[j], sum.at[0]);
        return sum;
    }
    __device__ void end(int64_t r, int h, const sl_cuda_vector<SUMS> &sum) const
    {
        const int64_t all = all_of(attention);
        const float product = row_at(gradient, r)[all + h],
                    q = row_at(state, r)[2 * all + 2 * attention.heads + h];
        row_at(back, r)[all + attention.heads + h] += fmaf(-product, q, sum.at[0]);
    }
};

template <class T>
void launch_mean(int64_t rows, int64_t out, const mean &operation, const sl_rows &z,
                 cudaStream_t stream)
{
    const bool aligned =
        out % 4 == 0 && sl_cuda_aligned(rows, operation.state.data, operation.state.ld) &&
        sl_cuda_aligned(rows, z) && sl_cuda_epilogue_aligned(operation.epilogue, rows, out);
    sl_cuda_launch_each("attention_output", rows, out, aligned, operation, (T *)z.data, z.ld,
                        stream);
}

} // namespace

extern "C" void sl_cuda_attention_weights(const struct sl_attention *attention,
                                          const struct sl_attention_shape *shape,
                                          const struct sl_floats_at *parameters,
                                          const struct sl_floats_at *weights_at,
                                          struct sl_cuda_queue queue)
{
    launch_each_head("attention_weights", *attention, shape->in,
                     weights{*attention, *shape, *parameters, *weights_at}, queue.stream);
}

extern "C" void sl_cuda_attention_edge(const struct sl_attention *attention,
                                       const struct sl_attention_shape *shape,
                                       const struct sl_floats_at *parameters,
                                       const struct sl_floats_at *edge_at,
                                       struct sl_cuda_queue queue)
{
    launch_each_head("attention_edge", *attention, shape->edge_features,
                     edge{*attention, *shape, *parameters, *edge_at}, queue.stream);
}

extern "C" void sl_cuda_attention_weights_back(const struct sl_attention *attention,
                                               const struct sl_attention_shape *shape,
                                               const struct sl_floats_at *parameters,
                                               const struct sl_floats_at *gradient_at,
                                               bool accumulate, const struct sl_floats_at *back,
                                               struct sl_cuda_queue queue)
{
    const weights_back operation = {*attention,   *shape,     *parameters,
                                    *gradient_at, accumulate, *back};
    const int64_t rows = vectors_of(*shape);
    float *const bias = back->data + (rows + 2 + (shape->edge_features > 0)) * back->ld;
    sl_cuda_launch_each("attention_weights_back", rows, shape->columns, false, operation,
                        back->data, back->ld, queue.stream);
    sl_cuda_launch("attention_weights_sums", sum_columns,
                   dim3((unsigned)sl_cuda_divide_up(shape->columns, SUM_LANES)),
                   dim3(SUM_LANES, SUM_ROWS), 0, queue.stream, operation);
    if (shape->bias)
        sl_cuda_launch_each("attention_bias", 1, shape->columns, false,
                            bias_back{shape->out_column, shape->out, accumulate,
                                      gradient_at->data + rows * gradient_at->ld + shape->at, bias},
                            bias, back->ld, queue.stream);
}

extern "C" void sl_cuda_attention_scores(const struct sl_attention *attention, int64_t rows,
                                         const uint32_t *vertex,
                                         const struct sl_floats_at *projected,
                                         const struct sl_floats_at *scores_at,
                                         struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    const int64_t items = rows * sl_attention_scores(attention);
    sl_cuda_launch("attention_scores", scores, dim3((unsigned)sl_cuda_divide_up(items, THREADS)),
                   THREADS, 0, queue.stream, attention->heads, sl_attention_all(attention), rows,
                   vertex, *projected, *scores_at);
}

extern "C" void sl_cuda_attention_output(const struct sl_attention *attention, int64_t rows,
                                         int64_t out, const struct sl_floats_at *state,
                                         const struct sl_epilogue *epilogue,
                                         const struct sl_rows *z, struct sl_cuda_queue queue)
{
    const sl_rows sum = sl_float_rows(state->data, state->ld);
    const mean operation = {*attention, *state, *epilogue};
    if (out == sl_attention_all(attention))
        sl_cuda_epilogue(rows, out, epilogue, &sum, z, queue);
    else if (z->type == SL_BFLOAT16)
        launch_mean<__nv_bfloat16>(rows, out, operation, *z, queue.stream);
    else
        launch_mean<float>(rows, out, operation, *z, queue.stream);
}

extern "C" void sl_cuda_attention_gradient(const struct sl_attention *attention, int64_t rows,
                                           int64_t out, const struct sl_rows *g,
                                           const struct sl_floats_at *state,
                                           const struct sl_floats_at *gradient_at,
                                           struct sl_cuda_queue queue)
{
    launch_each_head(
        "attention_gradient", *attention, rows,
        gradient{*attention, out != sl_attention_all(attention), *g, *state, *gradient_at},
        queue.stream);
}

extern "C" void sl_cuda_attention_own(const struct sl_attention *attention, int64_t rows,
                                      const struct sl_floats_at *gradient_at,
                                      const struct sl_floats_at *state,
                                      const struct sl_floats_at *back, struct sl_cuda_queue queue)
{
    launch_each_head("attention_own", *attention, rows,
                     own{*attention, *gradient_at, *state, *back}, queue.stream);
}

/* ---- Tasks ---- */

/* Return the parameters of attention, W and later rows, in a tile shaped as a layer's parameters.
 */
static sl_floats_at parameters_of(const sl_attention_shape *shape, void *buffer)
{
    const sl_dense tile = sl_dense_buffer(buffer);
    return {(float *)tile.data + shape->skipped * tile.ld, tile.ld};
}

extern "C" void attention_weights_cuda(void *buffers[], void *argument)
{
    const attention_weights_argument *arg = (const attention_weights_argument *)argument;
    const sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                       weights_at = sl_floats_buffer(buffers[1]);
    sl_cuda_attention_weights(&arg->attention, &arg->shape, &parameters, &weights_at,
                              sl_cuda_task_queue());
}

extern "C" void attention_edge_cuda(void *buffers[], void *argument)
{
    const attention_weights_argument *arg = (const attention_weights_argument *)argument;
    const sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                       edge_at = sl_floats_buffer(buffers[1]);
    sl_cuda_attention_edge(&arg->attention, &arg->shape, &parameters, &edge_at,
                           sl_cuda_task_queue());
}

extern "C" void attention_weights_back_cuda(void *buffers[], void *argument)
{
    const attention_weights_argument *arg = (const attention_weights_argument *)argument;
    const sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                       gradient_at = sl_floats_buffer(buffers[1]),
                       back = parameters_of(&arg->shape, buffers[2]);
    sl_cuda_attention_weights_back(&arg->attention, &arg->shape, &parameters, &gradient_at,
                                   arg->further, &back, sl_cuda_task_queue());
}

extern "C" void attention_scores_cuda(void *buffers[], void *argument)
{
    const sl_floats_at projected = sl_floats_buffer(buffers[1]),
                       scores_at = sl_floats_buffer(buffers[2]);
    sl_cuda_attention_scores((const sl_attention *)argument, sl_dense_buffer(buffers[1]).rows,
                             sl_vertices(buffers[0]), &projected, &scores_at, sl_cuda_task_queue());
}

extern "C" void attention_output_cuda(void *buffers[], void *argument)
{
    const attention_output_argument *arg = (const attention_output_argument *)argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(&arg->epilogue, buffers + 1, &epilogue);
    const sl_floats_at state = sl_floats_buffer(buffers[0]);
    const sl_rows z = sl_rows_buffer(buffers[1 + used]);
    sl_cuda_attention_output(&arg->attention, sl_dense_buffer(buffers[0]).rows,
                             sl_dense_buffer(buffers[1 + used]).cols, &state, &epilogue, &z,
                             sl_cuda_task_queue());
}

extern "C" void attention_gradient_cuda(void *buffers[], void *argument)
{
    const sl_rows g = sl_rows_buffer(buffers[0]);
    const sl_floats_at state = sl_floats_buffer(buffers[1]),
                       gradient_at = sl_floats_buffer(buffers[2]);
    sl_cuda_attention_gradient((const sl_attention *)argument, sl_dense_buffer(buffers[1]).rows,
                               sl_dense_buffer(buffers[0]).cols, &g, &state, &gradient_at,
                               sl_cuda_task_queue());
}

extern "C" void attention_own_cuda(void *buffers[], void *argument)
{
    const sl_floats_at gradient_at = sl_floats_buffer(buffers[0]),
                       state = sl_floats_buffer(buffers[1]), back = sl_floats_buffer(buffers[2]);
    sl_cuda_attention_own((const sl_attention *)argument, sl_dense_buffer(buffers[1]).rows,
                          &gradient_at, &state, &back, sl_cuda_task_queue());
}
