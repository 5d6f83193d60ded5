/* Blocks of parameters. The rows and columns of a block are listed first, in the workspace. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/metrics.h"
#include "codelets/units.h"
}

namespace
{

enum { THREADS = 256, LISTING = 1024, MOST_BLOCKS = 65535 };

__device__ __forceinline__ bool is_in(const sl_units &units, int64_t unit, int part)
{
    return !units.part || units.part[unit] == part;
}

/* Return the unit of a row of the layer, or -1 for a row that belongs to no unit of the input. */
__device__ __forceinline__ int64_t unit_of(const sl_unit_block &block, int64_t row)
{
    return row < block.weights * block.in.width ? row % block.in.width : -1;
}

__device__ __forceinline__ bool has_row(const sl_unit_block &block, int64_t unit)
{
    return unit < 0 || is_in(block.in, unit, block.part);
}

__device__ __forceinline__ bool has_ended(const sl_units_end &when)
{
    return when.end && *when.end > 0.0 && when.epoch > (int)*when.end;
}

/* ---- Lists ---- */

/* Lists of the rows and columns of the whole that a block has. */
struct unit_lists {
    int64_t rows, cols;
    int32_t *row, *col; // (rows), (cols)
};

/* List rows and columns: one block of threads lists rows, among `all_rows` of the whole, the other
 * one columns. */
__global__ void __launch_bounds__(LISTING)
    list_kernel(sl_unit_block block, int64_t all_rows, unit_lists lists)
{
    auto &counts = sl_cuda_shared<int[LISTING / 32]>();
    const bool rows = blockIdx.x == 0;
    const int64_t all = rows ? all_rows : block.out.width, most = rows ? lists.rows : lists.cols;
    int32_t *const list = rows ? lists.row : lists.col;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t listed = 0;
    for (int64_t from = 0; from < all && listed < most; from += LISTING) {
        const int64_t i = from + threadIdx.x;
        bool has = i < all;
        if (has && rows)
            has = block.all_rows || has_row(block, unit_of(block, block.first + i));
        else if (has)
            has = is_in(block.out, i, block.part);
        const unsigned mask = __ballot_sync(0xFFFFFFFFu, has);
        if (lane == 0)
            counts[warp] = __popc(mask);
        __syncthreads();
        int64_t at = listed + __popc(mask & ((1u << lane) - 1));
        for (int w = 0; w < LISTING / 32; w++) {
            at += w < warp ? counts[w] : 0;
            listed += counts[w];
        }
        if (has && at < most)
            list[at] = (int32_t)i;
        __syncthreads();
    }
}

/* Return the lists of a block, which stay valid until the next task of the queue. */
unit_lists list_block(const sl_unit_block &block, int64_t all_rows, const sl_parameters &part,
                      const sl_cuda_queue &queue)
{
    int32_t *const room = (int32_t *)queue.workspace;
    const unit_lists lists = {part.rows, part.cols, room, room + part.rows};
    sl_cuda_launch("units", list_kernel, 2, LISTING, 0, queue.stream, block, all_rows, lists);
    return lists;
}

/* Return the grid: blocks of threads along the columns, then rows. */
dim3 grid_of(int64_t rows, int64_t cols)
{
    return dim3((unsigned)sl_cuda_divide_up(cols, THREADS),
                (unsigned)(rows < MOST_BLOCKS ? rows : MOST_BLOCKS));
}

/* ---- Moves ---- */

/* A move of entries. Rows of the block before `moved` are listed rows of the whole. Its last rows
 * are rows of `last`; zero if `last` has no data. */
struct move {
    sl_units_end when;
    sl_unit_block block;
    sl_parameters whole, part, last;
    int64_t moved;
    float factor; /* factor of rows that are units */
    unit_lists lists;
};

__global__ void __launch_bounds__(THREADS) take_kernel(move m)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x, last = m.part.rows - m.last.rows;
    if (j >= m.part.cols || has_ended(m.when))
        return;
    for (int64_t i = blockIdx.y; i < m.part.rows; i += gridDim.y) {
        float *const to = m.part.data + i * m.part.ld + j;
        if (i >= last) {
            *to = m.last.data ? m.last.data[(i - last) * m.last.ld + j] : 0.0f;
        } else if (i < m.moved) {
            const int64_t r = m.lists.row[i], unit = unit_of(m.block, m.block.first + r);
            const float x = m.whole.data[r * m.whole.ld + m.lists.col[j]];
            *to = has_row(m.block, unit) ? (unit < 0 ? x : m.factor * x) : 0.0f;
        }
    }
}

__global__ void __launch_bounds__(THREADS) put_kernel(move m)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x, last = m.part.rows - m.last.rows;
    if (j >= m.part.cols || has_ended(m.when))
        return;
    for (int64_t i = blockIdx.y; i < m.part.rows; i += gridDim.y) {
        const float x = m.part.data[i * m.part.ld + j];
        if (i >= last) {
            m.last.data[(i - last) * m.last.ld + j] = x;
        } else if (i < m.moved) {
            const int64_t r = m.lists.row[i], unit = unit_of(m.block, m.block.first + r);
            if (has_row(m.block, unit))
                m.whole.data[r * m.whole.ld + m.lists.col[j]] = unit < 0 ? x : x / m.factor;
        }
    }
}

void launch_move(const char *name, void (*kernel)(move), const sl_units_end &when,
                 const sl_unit_block &block, const sl_parameters &whole, const sl_parameters &part,
                 const sl_parameters &last, const sl_cuda_queue &queue)
{
    const move m = {when,
                    block,
                    whole,
                    part,
                    last,
                    part.rows - sl_unit_block_shared(&block, whole.rows),
                    ldexpf(1.0f, block.shift),
                    list_block(block, whole.rows, part, queue)};
    sl_cuda_launch(name, kernel, grid_of(part.rows, part.cols), THREADS, 0, queue.stream, m);
}

bool is_empty(const sl_parameters *of)
{
    return of->rows == 0 || of->cols == 0;
}

/* Return the last `rows` rows of a matrix. */
sl_parameters last_rows(const sl_parameters &of, int64_t rows)
{
    return {of.data + (of.rows - rows) * of.ld, rows, of.cols, of.ld};
}

/* ---- Entries ---- */

__global__ void __launch_bounds__(THREADS) clear_kernel(sl_unit_block block, sl_parameters part)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= part.cols)
        return;
    for (int64_t r = blockIdx.y; r < part.rows; r += gridDim.y)
        if (!has_row(block, unit_of(block, block.first + r)))
            part.data[r * part.ld + j] = 0.0f;
}

__global__ void __launch_bounds__(THREADS)
    merge_kernel(sl_units_end when, int before, sl_parameters kept, sl_parameters whole)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= kept.cols || has_ended(when))
        return;
    for (int64_t r = blockIdx.y; r < kept.rows; r += gridDim.y) {
        const float value = kept.data[r * kept.ld + j];
        float *const mean = whole.data + r * whole.ld + j;
        *mean = before ? *mean + (value - *mean) / (float)(before + 1) : value;
    }
}

__global__ void __launch_bounds__(THREADS)
    copy_kernel(sl_units_end when, sl_parameters x, sl_parameters y)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= y.cols || has_ended(when))
        return;
    for (int64_t r = blockIdx.y; r < y.rows; r += gridDim.y)
        y.data[r * y.ld + j] = x.data ? x.data[r * x.ld + j] : 0.0f;
}

__global__ void join_kernel(const double *x, double *y)
{
    const int i = (int)threadIdx.x;
    if (i != SL_METRIC_BAD_GRADIENT && i != SL_METRIC_BAD_UPDATE)
        y[i] += x[i];
    else if (x[i] > 0.0 && (y[i] == 0.0 || x[i] < y[i]))
        y[i] = x[i];
}

/* ---- Counts ---- */

enum { SIDE = 16, ROUNDS = 32 };

/* The parts, in ROUNDS rounds, of the units of SIDE rows and SIDE columns. */
struct history {
    uint8_t in[SIDE][ROUNDS + 4], out[SIDE][ROUNDS + 4];
};

/* Return a unit's part in a round; UINT8_MAX for no unit and behind the last round. */
__device__ __forceinline__ uint8_t part_in(const uint8_t *parts, int64_t unit, int64_t round,
                                           const sl_rounds_past &past)
{
    return unit < 0 || round >= past.round ? UINT8_MAX : parts[unit * past.stride + round];
}

/* Count steps. A block has SIDE x SIDE entries of the counts. */
__global__ void __launch_bounds__(SIDE *SIDE)
    count_kernel(sl_unit_block block, sl_rounds_past past, bool accumulate, sl_parameters counts,
                 unit_lists lists)
{
    auto &tile = sl_cuda_shared<history>();
    const bool both = past.in && past.out;
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    const int64_t j = (int64_t)blockIdx.x * SIDE + x, loaded = (int64_t)blockIdx.x * SIDE + y;
    const int64_t column = loaded < counts.cols ? lists.col[loaded] : -1;
    for (int64_t top = (int64_t)blockIdx.y * SIDE; top < counts.rows;
         top += (int64_t)gridDim.y * SIDE) {
        const int64_t i = top + y, unit = i < counts.rows ? unit_of(block, lists.row[i]) : -1;
        int64_t same = both && unit >= 0 ? 0 : past.round;
        for (int64_t from = 0; both && from < past.round; from += ROUNDS) {
            for (int k = x; k < ROUNDS; k += SIDE) {
                tile.in[y][k] = part_in(past.in, unit, from + k, past);
                tile.out[y][k] = part_in(past.out, column, from + k, past);
            }
            __syncthreads();
            for (int k = 0; unit >= 0 && k < ROUNDS; k++)
                same += tile.in[y][k] == tile.out[x][k] && tile.in[y][k] != UINT8_MAX;
            __syncthreads();
        }
        if (i < counts.rows && j < counts.cols) {
            float *const to = counts.data + i * counts.ld + j;
            *to = (accumulate ? *to : 0.0f) + (float)(past.steps * same);
        }
    }
}

} // namespace

extern "C" void sl_cuda_take(const struct sl_units_end *when, const struct sl_unit_block *block,
                             const struct sl_parameters *whole, const struct sl_parameters *kept,
                             const struct sl_parameters *part, struct sl_cuda_queue queue)
{
    if (!is_empty(part))
        launch_move("take", take_kernel, *when, *block, *whole, *part, *kept, queue);
}

extern "C" void sl_cuda_take_block(const struct sl_units_end *when,
                                   const struct sl_unit_block *block, bool first,
                                   const struct sl_parameters *whole,
                                   const struct sl_parameters *part, struct sl_cuda_queue queue)
{
    sl_parameters last = last_rows(*whole, sl_unit_block_shared(block, whole->rows));
    if (!first)
        last = {nullptr, sl_unit_block_apart(block, whole->rows), part->cols, 0};
    if (!is_empty(part))
        launch_move("take", take_kernel, *when, *block, *whole, *part, last, queue);
}

extern "C" void sl_cuda_put(const struct sl_units_end *when, const struct sl_unit_block *block,
                            const struct sl_parameters *part, const struct sl_parameters *kept,
                            const struct sl_parameters *whole, struct sl_cuda_queue queue)
{
    if (!is_empty(part))
        launch_move("put", put_kernel, *when, *block, *whole, *part, *kept, queue);
}

extern "C" void sl_cuda_clear_others(const struct sl_unit_block *block,
                                     const struct sl_parameters *part, struct sl_cuda_queue queue)
{
    if (!is_empty(part))
        sl_cuda_launch("clear_others", clear_kernel, grid_of(part->rows, part->cols), THREADS, 0,
                       queue.stream, *block, *part);
}

extern "C" void sl_cuda_merge(const struct sl_units_end *when, int before,
                              const struct sl_parameters *kept, const struct sl_parameters *whole,
                              struct sl_cuda_queue queue)
{
    if (!is_empty(kept))
        sl_cuda_launch("merge", merge_kernel, grid_of(kept->rows, kept->cols), THREADS, 0,
                       queue.stream, *when, before, *kept, last_rows(*whole, kept->rows));
}

extern "C" void sl_cuda_copy_parameters(const struct sl_units_end *when,
                                        const struct sl_parameters *x,
                                        const struct sl_parameters *y, struct sl_cuda_queue queue)
{
    if (!is_empty(y))
        sl_cuda_launch("copy_parameters", copy_kernel, grid_of(y->rows, y->cols), THREADS, 0,
                       queue.stream, *when, *x, *y);
}

extern "C" void sl_cuda_count_steps(const struct sl_unit_block *block,
                                    const struct sl_rounds_past *past, bool accumulate,
                                    const struct sl_parameters *counts, struct sl_cuda_queue queue)
{
    if (is_empty(counts))
        return;
    const int64_t all_rows = block->weights * block->in.width + counts->rows,
                  down = sl_cuda_divide_up(counts->rows, (int64_t)SIDE);
    const dim3 grid((unsigned)sl_cuda_divide_up(counts->cols, (int64_t)SIDE),
                    (unsigned)(down < MOST_BLOCKS ? down : MOST_BLOCKS));
    sl_cuda_launch("count_steps", count_kernel, grid, dim3(SIDE, SIDE), 0, queue.stream, *block,
                   *past, accumulate, *counts, list_block(*block, all_rows, *counts, queue));
}

extern "C" void sl_cuda_metrics_join(const double *x, double *y, struct sl_cuda_queue queue)
{
    sl_cuda_launch("metrics_join", join_kernel, 1, SL_METRICS, 0, queue.stream, x, y);
}

/* ---- Tasks ---- */

static sl_parameters parameters_of(void *buffer)
{
    const sl_dense dense = sl_dense_buffer(buffer);
    return {dense.data, dense.rows, dense.cols, dense.ld};
}

static sl_parameters rows_at(void *buffer, int64_t at, int64_t rows)
{
    const sl_parameters all = parameters_of(buffer);
    return {all.data + at * all.ld, rows, all.cols, all.ld};
}

static sl_units_end end_of(void *buffer, const units_argument *arg)
{
    return {(const double *)sl_raw_buffer(buffer), arg->epoch};
}

/* Take the first `bytes` bytes of the queue's workspace, and return their address. */
static void *take_workspace(sl_cuda_queue *queue, int64_t bytes)
{
    void *const room = queue->workspace;
    queue->workspace = (char *)room + sl_cuda_divide_up(bytes, (int64_t)256) * 256;
    return room;
}

/* Copy rows of `width` bytes from the host side by side into the workspace. Return their address.
 */
static const uint8_t *upload(const uint8_t *from, int64_t rows, int64_t stride, int64_t width,
                             sl_cuda_queue *queue)
{
    if (!from || rows == 0 || width == 0)
        return from;
    void *const room = take_workspace(queue, rows * width);
    const cudaError_t status =
        cudaMemcpy2DAsync(room, (size_t)width, from, (size_t)stride, (size_t)width, (size_t)rows,
                          cudaMemcpyHostToDevice, queue->stream);
    if (status != cudaSuccess)
        sl_fatal("units of a sub-model: %s", cudaGetErrorString(status));
    return (const uint8_t *)room;
}

/* Return the block with its parts of units copied from the host to the device. */
static sl_unit_block upload_block(const sl_unit_block &block, sl_cuda_queue *queue)
{
    sl_unit_block copy = block;
    copy.in.part = upload(block.in.part, 1, block.in.width, block.in.width, queue);
    copy.out.part = upload(block.out.part, 1, block.out.width, block.out.width, queue);
    return copy;
}

extern "C" void take_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    sl_cuda_queue queue = sl_cuda_task_queue();
    const sl_units_end when = end_of(buffers[0], arg);
    const sl_parameters nothing = {}, whole = parameters_of(buffers[1]),
                        part = rows_at(buffers[2 + arg->kept], arg->at, arg->rows),
                        kept = arg->kept ? parameters_of(buffers[2]) : nothing;
    if (arg->zero) {
        sl_cuda_copy_parameters(&when, &nothing, &part, queue);
        return;
    }
    const sl_unit_block block = upload_block(arg->block, &queue);
    if (arg->whole)
        sl_cuda_take_block(&when, &block, arg->shared, &whole, &part, queue);
    else
        sl_cuda_take(&when, &block, &whole, &kept, &part, queue);
}

extern "C" void put_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    sl_cuda_queue queue = sl_cuda_task_queue();
    const sl_units_end when = end_of(buffers[0], arg);
    const sl_parameters part = rows_at(buffers[1], arg->at, arg->rows),
                        whole = parameters_of(buffers[2 + arg->kept]),
                        kept = arg->kept ? parameters_of(buffers[2]) : sl_parameters{};
    const sl_unit_block block = upload_block(arg->block, &queue);
    sl_cuda_put(&when, &block, &part, &kept, &whole, queue);
}

extern "C" void rows_in_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    const sl_units_end when = end_of(buffers[0], arg);
    const sl_parameters x = parameters_of(buffers[1]), y = rows_at(buffers[2], arg->at, x.rows);
    sl_cuda_copy_parameters(&when, &x, &y, sl_cuda_task_queue());
}

extern "C" void rows_out_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    const sl_units_end always = {};
    const sl_parameters y = parameters_of(buffers[1]), x = rows_at(buffers[0], arg->at, y.rows);
    sl_cuda_copy_parameters(&always, &x, &y, sl_cuda_task_queue());
}

extern "C" void clear_others_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    sl_cuda_queue queue = sl_cuda_task_queue();
    const sl_parameters part = parameters_of(buffers[0]);
    const sl_unit_block block = upload_block(arg->block, &queue);
    sl_cuda_clear_others(&block, &part, queue);
}

extern "C" void merge_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    const sl_units_end when = end_of(buffers[0], arg);
    const sl_parameters kept = parameters_of(buffers[1]), whole = parameters_of(buffers[2]);
    sl_cuda_merge(&when, arg->before, &kept, &whole, sl_cuda_task_queue());
}

extern "C" void share_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    const sl_units_end when = end_of(buffers[0], arg);
    const sl_parameters whole = parameters_of(buffers[1]), kept = parameters_of(buffers[2]);
    const sl_parameters from = arg->zero ? sl_parameters{} : last_rows(whole, kept.rows);
    sl_cuda_copy_parameters(&when, &from, &kept, sl_cuda_task_queue());
}

/* Run a count_steps task, in pieces of rounds that the workspace has room for. */
extern "C" void count_steps_cuda(void *buffers[], void *argument)
{
    const units_argument *arg = (const units_argument *)argument;
    const sl_parameters counts = parameters_of(buffers[0]);
    sl_cuda_queue queue = sl_cuda_task_queue();
    const sl_unit_block block = upload_block(arg->block, &queue);
    const sl_rounds_past *past = &arg->past;
    const int64_t units = block.in.width + block.out.width, most = SL_UNITS_HISTORY / units;
    const bool both = past->in && past->out;
    for (int64_t from = 0; from == 0 || from < past->round; from += most) {
        const int64_t left = past->round - from, rounds = left < most ? left : most;
        sl_rounds_past some = {rounds, past->steps, rounds, nullptr, nullptr};
        sl_cuda_queue rest = queue;
        if (both && rounds > 0) {
            some.in = upload(past->in + from, block.in.width, past->stride, rounds, &rest);
            some.out = upload(past->out + from, block.out.width, past->stride, rounds, &rest);
        }
        sl_cuda_count_steps(&block, &some, from > 0, &counts, rest);
    }
}

extern "C" void metrics_copy_cuda(void *buffers[], void *)
{
    const size_t bytes = (size_t)STARPU_MATRIX_GET_NX(buffers[1]) *
                         STARPU_MATRIX_GET_NY(buffers[1]) * sizeof(double);
    const cudaError_t status =
        cudaMemcpyAsync(sl_raw_buffer(buffers[1]), sl_raw_buffer(buffers[0]), bytes,
                        cudaMemcpyDeviceToDevice, sl_cuda_task_queue().stream);
    if (status != cudaSuccess)
        sl_fatal("metrics_copy: %s", cudaGetErrorString(status));
}

extern "C" void metrics_join_cuda(void *buffers[], void *)
{
    sl_cuda_metrics_join((const double *)sl_raw_buffer(buffers[0]),
                         (double *)sl_raw_buffer(buffers[1]), sl_cuda_task_queue());
}
