/* The parts of pair attention in which rows do not meet. */
#include "codelets/cuda_epilogue.h"
#include "codelets/cuda_pair.h"

namespace
{

/* ---- Parameters ----
 *
 * Operations on each element. */

/* Return the first row of W_e behind `skipped` rows. */
__device__ __forceinline__ int64_t row_behind_weights(const sl_pair &pair,
                                                      const sl_pair_shape &shape)
{
    return (pair.products ? 3 : 2) * shape.in;
}

struct weights {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at parameters;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width;
        return {{sl_pair_row_at(parameters, shape.skipped + j / columns * shape.in +
                                                r)[shape.first + j % columns]}};
    }
};

struct vectors {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at parameters;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t h = j / pair.attention.width, own = j % pair.attention.width;
        const bool edge = r >= SL_PAIR_VECTORS;
        if ((pair.products && !edge) || own >= pair.width)
            return {{0.0f}};
        const int64_t row = shape.skipped + row_behind_weights(pair, shape) +
                            (edge ? r - SL_PAIR_VECTORS : pair.edges);
        const float a = sl_pair_row_at(parameters, row)[shape.first + h * pair.width + own],
                    slope = pair.attention.slope;
        const float factor = r == SL_PAIR_EVEN  ? 0.5f * (1.0f + slope)
                             : r == SL_PAIR_ODD ? 0.5f * (1.0f - slope)
                                                : 1.0f;
        return {{a * factor}};
    }
};

/* The gradient of the parameters behind `skipped` rows. */
struct weights_back {
    sl_pair pair;
    sl_pair_shape shape;
    sl_floats_at parameters, gradient; /* `parameters` behind `skipped` rows, too */
    bool accumulate;
    sl_floats_at back;

    /* Return column `own` of W_e's gradient from M. */
    __device__ float edge_at(float m, int64_t own) const
    {
        return pair.products ? m
                             : m * sl_pair_row_at(parameters, row_behind_weights(pair, shape) +
                                                                  pair.edges)[shape.first + own];
    }

    /* Return what W_e adds to column `own` of a's gradient X. */
    __device__ float add_edges(int64_t own, float x) const
    {
        for (int64_t f = 0; f < pair.edges; f++)
            x = fmaf(
                sl_pair_row_at(parameters, row_behind_weights(pair, shape) + f)[shape.first + own],
                sl_pair_row_at(gradient, shape.in + f)[shape.at + own], x);
        return x;
    }

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width, own = j - shape.first,
                      weights = row_behind_weights(pair, shape), vector = weights + pair.edges,
                      biases = vector + !pair.products, bias = biases + (pair.products ? 3 : 2),
                      in_bias = j - shape.out_column;
        const float before = accumulate ? sl_pair_row_at(back, r)[j] : 0.0f;
        const float *const behind = sl_pair_row_at(gradient, shape.in + pair.edges) + shape.at;
        if (r >= bias)
            return {{in_bias >= 0 && in_bias < shape.out
                         ? behind[(!pair.products + 1) * gradient.ld + in_bias]
                         : before}};
        if (own < 0 || own >= columns)
            return {{before}};
        if (r < weights)
            return {
                {sl_pair_row_at(gradient, r % shape.in)[shape.at + r / shape.in * columns + own]}};
        if (r < vector)
            return {
                {edge_at(sl_pair_row_at(gradient, shape.in + r - weights)[shape.at + own], own)}};
        if (r < biases)
            return {{add_edges(own, behind[own])}};
        if (r < biases + pair.products)
            return {{before}};
        return {{behind[!pair.products * gradient.ld + (r - biases) * columns + own]}};
    }
};

/* ---- Rows ---- */

/* Rows of SOURCE, or of TARGET: matrices from number `first` on, whose columns have room and a
 * factor, then zeros, then the vertex's number. */
struct ends {
    sl_pair pair;
    sl_pair_shape shape;
    const uint32_t *vertex;
    sl_floats_at parameters, projected;
    int first, matrices;
    float scale;
    int64_t last; /* column of the vertex, the last that is written */

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t all = sl_pair_all_of(pair), within = j % all,
                      h = within / pair.attention.width, own = within % pair.attention.width,
                      matrix = first + j / all;
        if (j == last)
            return {{__uint_as_float(vertex[r] ^ SL_ATTENTION_VERTEX)}};
        if (j >= matrices * all || own >= pair.width)
            return {{0.0f}};
        const int64_t column = h * pair.width + own;
        float x = sl_pair_row_at(projected, r)[matrix * pair.attention.heads * pair.width + column];
        if (shape.bias)
            x += sl_pair_row_at(parameters, shape.skipped + row_behind_weights(pair, shape) +
                                                pair.edges + !pair.products +
                                                matrix)[shape.first + column];
        return {{scale * x}};
    }
};

/* Numbers: W_e times the first columns of ROWS. */
struct numbers {
    sl_pair pair;
    sl_floats_at vectors, rows;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t first = j % pair.attention.heads * pair.attention.width;
        const float *const x = sl_pair_row_at(rows, r) + first,
                           *const w =
                               sl_pair_row_at(vectors, SL_PAIR_VECTORS + j / pair.attention.heads) +
                               first;
        float sum = 0.0f;
        for (int64_t i = 0; i < pair.width; i++)
            sum = fmaf(w[i], x[i], sum);
        return {{sum}};
    }
};

/* Make the numbers from column `column` of ROWS on. */
void launch_numbers(const char *name, const sl_pair *pair, int64_t rows,
                    const sl_floats_at *vectors_at, const sl_floats_at *of, int64_t column,
                    cudaStream_t stream)
{
    sl_cuda_launch_each(name, rows, sl_pair_numbers(pair), false, numbers{*pair, *vectors_at, *of},
                        of->data + column, of->ld, stream);
}

/* Z of a closed state, or the mean of its heads, with the epilogue. */
struct output {
    sl_pair pair;
    bool mean;
    sl_floats_at state;
    sl_epilogue epilogue;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const float share = 1.0f / (float)pair.attention.heads, *const z = sl_pair_row_at(state, r);
        const int64_t room = pair.attention.width;
        sl_cuda_vector<V> sum = {};
        if (!mean)
            sum = sl_cuda_load<V>(z + j / pair.width * room + j % pair.width, count);
        for (int64_t h = 0; mean && h < pair.attention.heads; h++) {
            const sl_cuda_vector<V> own = sl_cuda_load<V>(z + h * room + j, count);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum.at[i] += own.at[i];
        }
#pragma unroll
        for (int i = 0; mean && i < V; i++)
            sum.at[i] *= share;
        sl_cuda_finish<V>(epilogue, true, r, j, count, &sum);
        return sum;
    }
};

template <class T>
void launch_output(int64_t rows, const output &operation, const sl_rows &z, cudaStream_t stream)
{
    const int64_t out = operation.mean ? operation.pair.width : sl_pair_columns(&operation.pair);
    const bool aligned = operation.pair.width % 4 == 0 &&
                         sl_cuda_aligned(rows, operation.state.data, operation.state.ld) &&
                         sl_cuda_aligned(rows, z) &&
                         sl_cuda_epilogue_aligned(operation.epilogue, rows, out);
    sl_cuda_launch_each("pair_output", rows, out, aligned, operation, (T *)z.data, z.ld, stream);
}

/* Make [G | r]: a group of lanes has a head of a row. Each lane adds every LANES-th term of r, then
 * a tree adds the lanes. */
enum { GRADIENT_THREADS = 256, WIDE = 16 }; /* a head wider than WIDE has 32 lanes, another 8 */

template <int LANES>
__global__ void __launch_bounds__(GRADIENT_THREADS)
    gradient(sl_pair pair, int64_t rows, bool mean, sl_rows g, sl_floats_at state, sl_floats_at out)
{
    const int64_t item = ((int64_t)blockIdx.x * GRADIENT_THREADS + threadIdx.x) / LANES,
                  r = item / pair.attention.heads, h = item % pair.attention.heads;
    const int lane = (int)threadIdx.x % LANES;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - (unsigned)lane);
    if (r >= rows)
        return;
    const float share = mean ? 1.0f / (float)pair.attention.heads : 1.0f,
                *const z = sl_pair_row_at(state, r) + h * pair.attention.width;
    float *const to = sl_pair_row_at(out, r) + h * pair.attention.width, sum = 0.0f;
    for (int64_t j = lane; j < pair.attention.width; j += LANES) {
        float x = 0.0f;
        if (j < pair.width) {
            x = share * sl_cuda_element(g, r, mean ? j : h * pair.width + j);
            sum = fmaf(x, z[j], sum);
        }
        to[j] = x;
    }
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(mask, sum, distance);
    if (lane == 0)
        sl_pair_row_at(out, r)[sl_pair_all_of(pair) + h] = sum;
}

struct join {
    sl_pair pair;
    sl_floats_at vectors, target_back, source_back;
    int64_t first; /* first column */

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        const int64_t columns = pair.attention.heads * pair.width, within = j % columns,
                      padded = within / pair.width * pair.attention.width + within % pair.width,
                      matrix = (first + j) / columns;
        const float *const d = sl_pair_row_at(source_back, r) + padded,
                           *const e = d + sl_pair_all_of(pair),
                           *const c = sl_pair_row_at(target_back, r) + padded;
        if (pair.products)
            return {{matrix == 0   ? *d
                     : matrix == 1 ? *e
                                   : pair.scale * sl_pair_add_edges(pair, vectors,
                                                                    sl_pair_row_at(target_back, r) +
                                                                        sl_pair_all_of(pair),
                                                                    padded, *c)}};
        const float a = sl_pair_row_at(vectors, SL_PAIR_PLAIN)[padded];
        return {{matrix == 0 ? fmaf(a, *d, *e) : a * *c}};
    }
};

/* ---- The gradient of a ----
 *
 * Column sums in a fixed order. The shape alone cuts the rows into chunks. A block sums some
 * columns of one chunk into the workspace: first each thread row, then the thread rows in order. A
 * second launch adds the chunks. */

enum { SUM_LANES = 32, SUM_ROWS = 8, MOST_CHUNKS = 256, LEAST_ROWS = 64 /* of a chunk */ };
static_assert(MOST_CHUNKS * SL_ATTENTION_COLUMNS * sizeof(float) <= SL_RUNTIME_WORKSPACE,
              "the chunks' sums have room");

struct vector_back {
    sl_pair pair;
    int64_t rows, chunk;
    sl_floats_at source, target, target_back, source_back;
};

__global__ void __launch_bounds__(SUM_LANES *SUM_ROWS) sum_chunk(vector_back v, float *sums)
{
    auto &part = sl_cuda_shared<float[SUM_ROWS][SUM_LANES]>();
    const int64_t columns = v.pair.attention.heads * v.pair.width,
                  j = (int64_t)blockIdx.x * SUM_LANES + threadIdx.x,
                  padded = j / v.pair.width * v.pair.attention.width + j % v.pair.width,
                  begin = (int64_t)blockIdx.y * v.chunk,
                  end = begin + v.chunk < v.rows ? begin + v.chunk : v.rows;
    float sum = 0.0f;
    if (j < columns) {
#pragma unroll 4
        for (int64_t r = begin + threadIdx.y; r < end; r += SUM_ROWS) {
            sum = fmaf(sl_pair_row_at(v.source, r)[padded],
                       sl_pair_row_at(v.source_back, r)[padded], sum);
            sum = fmaf(sl_pair_row_at(v.target, r)[padded],
                       sl_pair_row_at(v.target_back, r)[padded], sum);
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= columns)
        return;
    for (int i = 1; i < SUM_ROWS; i++)
        sum += part[i][threadIdx.x];
    sums[blockIdx.y * columns + j] = sum;
}

} // namespace

extern "C" void sl_cuda_pair_weights(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                                     const struct sl_floats_at *parameters,
                                     const struct sl_floats_at *weights_at,
                                     const struct sl_floats_at *vectors_at,
                                     struct sl_cuda_queue queue)
{
    sl_cuda_launch_each("pair_weights", shape->in, sl_pair_projected(pair), false,
                        weights{*pair, *shape, *parameters}, weights_at->data + shape->at,
                        weights_at->ld, queue.stream);
    sl_cuda_launch_each("pair_vectors", sl_pair_vector_rows(pair), sl_pair_all(pair), false,
                        vectors{*pair, *shape, *parameters}, vectors_at->data, vectors_at->ld,
                        queue.stream);
}

extern "C" void sl_cuda_pair_weights_back(const struct sl_pair *pair,
                                          const struct sl_pair_shape *shape,
                                          const struct sl_floats_at *parameters,
                                          const struct sl_floats_at *gradient_at, bool accumulate,
                                          const struct sl_floats_at *back,
                                          struct sl_cuda_queue queue)
{
    const sl_floats_at behind = {back->data + shape->skipped * back->ld, back->ld},
                       from = {parameters->data + shape->skipped * parameters->ld, parameters->ld};
    const int count = sl_pair_weights(pair);
    const int64_t rows =
        count * shape->in + pair->edges + !pair->products + (shape->bias ? count + 1 : 0);
    sl_cuda_launch_each("pair_weights_back", rows, shape->columns, false,
                        weights_back{*pair, *shape, from, *gradient_at, accumulate, behind},
                        behind.data, behind.ld, queue.stream);
}

extern "C" void sl_cuda_pair_ends(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                                  int64_t rows, const uint32_t *vertex,
                                  const struct sl_floats_at *parameters,
                                  const struct sl_floats_at *projected,
                                  const struct sl_floats_at *vectors_at,
                                  const struct sl_floats_at *source,
                                  const struct sl_floats_at *target, struct sl_cuda_queue queue)
{
    const int matrices = sl_pair_weights(pair) - 1;
    const int64_t source_columns = sl_pair_source(pair),
                  target_columns = sl_pair_target(pair) - sl_pair_numbers(pair);
    sl_cuda_launch_each(
        "pair_ends, source", rows, source_columns, false,
        ends{*pair, *shape, vertex, *parameters, *projected, 0, matrices, 1.0f, source_columns - 1},
        source->data, source->ld, queue.stream);
    sl_cuda_launch_each("pair_ends, target", rows, target_columns, false,
                        ends{*pair, *shape, vertex, *parameters, *projected, matrices, 1,
                             pair->scale, target_columns - 1},
                        target->data, target->ld, queue.stream);
    launch_numbers("pair_ends, U", pair, rows, vectors_at, target, target_columns, queue.stream);
}

extern "C" void sl_cuda_pair_output(const struct sl_pair *pair, int64_t rows, bool mean,
                                    const struct sl_floats_at *state,
                                    const struct sl_epilogue *epilogue, const struct sl_rows *z,
                                    struct sl_cuda_queue queue)
{
    const output operation = {*pair, mean, *state, *epilogue};
    if (z->type == SL_BFLOAT16)
        launch_output<__nv_bfloat16>(rows, operation, *z, queue.stream);
    else
        launch_output<float>(rows, operation, *z, queue.stream);
}

extern "C" void sl_cuda_pair_gradient(const struct sl_pair *pair, int64_t rows, bool mean,
                                      const struct sl_rows *g, const struct sl_floats_at *state,
                                      const struct sl_floats_at *vectors_at,
                                      const struct sl_floats_at *gradient_at,
                                      struct sl_cuda_queue queue)
{
    if (rows == 0)
        return;
    const int lanes = pair->width > WIDE ? 32 : 8;
    const dim3 grid(
        (unsigned)sl_cuda_divide_up(rows * pair->attention.heads, GRADIENT_THREADS / lanes));
    sl_cuda_launch("pair_gradient", lanes == 32 ? gradient<32> : gradient<8>, grid,
                   GRADIENT_THREADS, 0, queue.stream, *pair, rows, mean, *g, *state, *gradient_at);
    launch_numbers("pair_gradient, Y", pair, rows, vectors_at, gradient_at,
                   sl_pair_gradient(pair) - sl_pair_numbers(pair), queue.stream);
}

extern "C" void sl_cuda_pair_join(const struct sl_pair *pair, int64_t rows,
                                  const struct sl_floats_at *vectors_at,
                                  const struct sl_floats_at *target_back,
                                  const struct sl_floats_at *source_back,
                                  const struct sl_floats_at *projected, struct sl_cuda_queue queue)
{
    /* T's gradient comes last, because PROJECTED may be SOURCE_BACK */
    const int64_t columns = sl_pair_columns(pair), sources = sl_pair_projected(pair) - columns;
    const join operation = {*pair, *vectors_at, *target_back, *source_back, 0};
    sl_cuda_launch_each("pair_join", rows, sources, false, operation, projected->data,
                        projected->ld, queue.stream);
    sl_cuda_launch_each("pair_join", rows, columns, false,
                        join{*pair, *vectors_at, *target_back, *source_back, sources},
                        projected->data + sources, projected->ld, queue.stream);
}

extern "C" void sl_cuda_pair_vector_back(const struct sl_pair *pair, int64_t rows,
                                         const struct sl_floats_at *source,
                                         const struct sl_floats_at *target,
                                         const struct sl_floats_at *target_back,
                                         const struct sl_floats_at *source_back, float *to,
                                         struct sl_cuda_queue queue)
{
    const int64_t columns = sl_pair_columns(pair), share = sl_cuda_divide_up(rows, MOST_CHUNKS),
                  least = columns <= SL_ATTENTION_COLUMNS ? (int64_t)LEAST_ROWS : rows;
    vector_back v = {*pair,        rows,        share < least ? least : share, *source, *target,
                     *target_back, *source_back};
    const int64_t chunks = rows <= v.chunk ? 1 : sl_cuda_divide_up(rows, v.chunk);
    float *const sums = chunks == 1 ? to : (float *)queue.workspace;
    const dim3 grid((unsigned)sl_cuda_divide_up(columns, SUM_LANES), (unsigned)chunks);
    sl_cuda_launch("pair_vector_back", sum_chunk, grid, dim3(SUM_LANES, SUM_ROWS), 0, queue.stream,
                   v, sums);
    if (chunks > 1)
        sl_cuda_launch_each("pair_vector_back, sum", 1, columns, false,
                            sl_pair_chunks{chunks, columns, sums, columns, nullptr, 0}, to, columns,
                            queue.stream);
}

/* ---- Tasks ---- */

extern "C" void pair_weights_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at parameters = sl_pair_floats(buffers[0]),
                       weights_at = sl_pair_floats(buffers[1]),
                       vectors_at = sl_pair_floats(buffers[2]);
    sl_cuda_pair_weights(&arg->pair, &arg->shape, &parameters, &weights_at, &vectors_at,
                         sl_cuda_task_queue());
}

extern "C" void pair_weights_back_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at parameters = sl_pair_floats(buffers[0]),
                       gradient_at = sl_pair_floats(buffers[1]), back = sl_pair_floats(buffers[2]);
    sl_cuda_pair_weights_back(&arg->pair, &arg->shape, &parameters, &gradient_at, arg->further,
                              &back, sl_cuda_task_queue());
}

extern "C" void pair_ends_cuda(void *buffers[], void *argument)
{
    const pair_weights_argument *arg = (const pair_weights_argument *)argument;
    const sl_floats_at parameters = sl_pair_floats(buffers[1]),
                       vectors_at = sl_pair_floats(buffers[2]),
                       projected = sl_pair_floats(buffers[3]), source = sl_pair_floats(buffers[4]),
                       target = sl_pair_floats(buffers[5]);
    sl_cuda_pair_ends(&arg->pair, &arg->shape, sl_dense_buffer(buffers[3]).rows,
                      sl_vertices(buffers[0]), &parameters, &projected, &vectors_at, &source,
                      &target, sl_cuda_task_queue());
}

extern "C" void pair_output_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(&arg->epilogue, buffers + 1, &epilogue);
    const sl_floats_at state = sl_pair_floats(buffers[0]);
    const sl_rows z = sl_rows_buffer(buffers[1 + used]);
    sl_cuda_pair_output(&arg->pair, sl_dense_buffer(buffers[0]).rows, arg->mean, &state, &epilogue,
                        &z, sl_cuda_task_queue());
}

extern "C" void pair_gradient_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_rows g = sl_rows_buffer(buffers[1]);
    const sl_floats_at vectors_at = sl_pair_floats(buffers[0]), state = sl_pair_floats(buffers[2]),
                       gradient_at = sl_pair_floats(buffers[3]);
    sl_cuda_pair_gradient(&arg->pair, sl_dense_buffer(buffers[2]).rows, arg->mean, &g, &state,
                          &vectors_at, &gradient_at, sl_cuda_task_queue());
}

extern "C" void pair_join_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    void *const last = buffers[2 + !arg->in_place];
    const sl_floats_at vectors_at = sl_pair_floats(buffers[0]),
                       target_back = sl_pair_floats(buffers[1]),
                       source_back = sl_pair_floats(buffers[2]), projected = sl_pair_floats(last);
    sl_cuda_pair_join(&arg->pair, sl_dense_buffer(last).rows, &vectors_at, &target_back,
                      &source_back, &projected, sl_cuda_task_queue());
}

extern "C" void pair_vector_back_cuda(void *buffers[], void *argument)
{
    const pair_rows_argument *arg = (const pair_rows_argument *)argument;
    const sl_floats_at source = sl_pair_floats(buffers[0]), target = sl_pair_floats(buffers[1]),
                       target_back = sl_pair_floats(buffers[2]),
                       source_back = sl_pair_floats(buffers[3]), to = sl_pair_floats(buffers[4]);
    sl_cuda_pair_vector_back(&arg->pair, sl_dense_buffer(buffers[0]).rows, &source, &target,
                             &target_back, &source_back, to.data + arg->row * to.ld,
                             sl_cuda_task_queue());
}
