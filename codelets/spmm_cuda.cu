/* Sparse x dense. A team of threads has one row of A: its lanes hold a slice of the output row in
 * registers, and where the slice is narrow the team has several groups of lanes, which share the
 * row's entries and add up their sums at the end in a fixed order (row splitting: Yang, Buluç,
 * Owens, "Design principles for sparse matrix multiplication on the GPU", Euro-Par'18). A row far
 * longer than the others' share is the whole block's. Which threads take which entries follows from
 * the shape alone. */
#include "codelets/cuda_scatter.h"

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    AT_ONCE = 4,      /* entries of a group whose rows are under way together */
    LONG_SHARE = 64,  /* entries per thread of a team from which the block takes the row */
    FULL_DEGREE = 16, /* mean entries per row from which a whole warp has a row */
};

struct product {
    int64_t rows, width;
    const uint32_t *row_ptr, *col;
    const float *value; /* NULL: all 1 */
    const float *h;
    int64_t ldh;
    float *z;
    int64_t ldz;
    bool accumulate, wide_stores;
    sl_sparse_dropout drop;
};

__device__ __forceinline__ float entry_value(const float *value, uint32_t e)
{
    return value ? __ldg(value + e) : 1.0f;
}

__device__ __forceinline__ float drop_factor(const sl_sparse_dropout &d, int64_t r, uint32_t column)
{
    return sl_dropout_factor(&d.drop, d.row0 + (uint32_t)r, d.col0 + column);
}

/* Which columns of a slice a lane has: WIDE, runs of four; otherwise every LANES-th. */
template <int LANES, bool WIDE> __device__ __forceinline__ int64_t lane_column(int i, int lane)
{
    return WIDE ? (i / 4) * (4 * LANES) + 4 * lane + i % 4 : i * LANES + lane;
}

/* sum += Σ value(e)·H(col(e), slice) over e = begin, begin + step, … below end. `h` and `width`
 * start at the slice. */
template <int LANES, int PER, bool WIDE, bool DROP>
__device__ __forceinline__ void add_entries(const product &p, int64_t r, uint32_t begin,
                                            uint32_t end, uint32_t step, const float *h,
                                            int64_t width, int lane, float (&sum)[PER])
{
    for (uint32_t e = begin; e < end; e += AT_ONCE * step) {
        uint32_t column[AT_ONCE];
        float value[AT_ONCE], x[AT_ONCE][PER];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const uint32_t own = e + (uint32_t)u * step;
            column[u] = own < end ? __ldg(p.col + own) : 0;
            value[u] = own < end ? entry_value(p.value, own) : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const bool there = e + (uint32_t)u * step < end;
            const float *row = h + column[u] * p.ldh;
            if (WIDE) {
#pragma unroll
                for (int i = 0; i < PER; i += 4) {
                    const int64_t j = lane_column<LANES, WIDE>(i, lane);
                    const float4 four = there && j < width ? __ldg((const float4 *)(row + j))
                                                           : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    x[u][i] = four.x;
                    x[u][i + 1 < PER ? i + 1 : 0] = four.y;
                    x[u][i + 2 < PER ? i + 2 : 0] = four.z;
                    x[u][i + 3 < PER ? i + 3 : 0] = four.w;
                }
            } else {
#pragma unroll
                for (int i = 0; i < PER; i++) {
                    const int64_t j = lane_column<LANES, WIDE>(i, lane);
                    x[u][i] = there && j < width ? __ldg(row + j) : 0.0f;
                }
            }
        }
        if (DROP) {
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                value[u] *= drop_factor(p.drop, r, column[u]);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
            for (int i = 0; i < PER; i++)
                sum[i] = fmaf(value[u], x[u][i], sum[i]); /* of what is not there: + 0·0 */
    }
}

/* Adds up the sums of groups of LANES lanes, `threads` in all: the same result in all of them. */
template <int LANES, int PER>
__device__ __forceinline__ void add_groups(int threads, float (&sum)[PER])
{
#pragma unroll
    for (int distance = LANES; distance < 32; distance *= 2)
        if (distance < threads) {
#pragma unroll
            for (int i = 0; i < PER; i++)
                sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], distance);
        }
}

/* Z(r, slice) = [Z +] sum. */
template <int LANES, int PER, bool WIDE>
__device__ __forceinline__ void write_row(const product &p, float *z, int64_t width, int lane,
                                          float (&sum)[PER])
{
    if (WIDE && p.wide_stores) {
#pragma unroll
        for (int i = 0; i < PER; i += 4) {
            const int64_t j = lane_column<LANES, WIDE>(i, lane);
            sl_cuda_vector<4> v = {{sum[i], sum[i + 1 < PER ? i + 1 : 0],
                                    sum[i + 2 < PER ? i + 2 : 0], sum[i + 3 < PER ? i + 3 : 0]}};
            if (p.accumulate) {
                const sl_cuda_vector<4> old = sl_cuda_load<4>(z + j, width - j);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    v.at[k] = old.at[k] + v.at[k];
            }
            sl_cuda_store<4>(z + j, v, width - j);
        }
    } else {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const int64_t j = lane_column<LANES, WIDE>(i, lane);
            if (j < width)
                z[j] = p.accumulate ? z[j] + sum[i] : sum[i];
        }
    }
}

/* A block has THREADS / TEAM rows, blockIdx.y is the slice of LANES·PER columns. TEAM is LANES
 * or 32. */
template <int LANES, int PER, int TEAM, bool WIDE, bool DROP>
__global__ void __launch_bounds__(THREADS) gather_kernel(const __grid_constant__ product p)
{
    constexpr int ROWS = THREADS / TEAM;
    constexpr uint32_t LONG = LONG_SHARE * TEAM;
    const int lane = (int)threadIdx.x % LANES;
    const int64_t first_row = (int64_t)blockIdx.x * ROWS,
                  first = (int64_t)blockIdx.y * (LANES * PER);
    const float *h = p.h + first;
    const int64_t width = p.width - first;

    const int64_t r = first_row + threadIdx.x / TEAM;
    bool is_long = false;
    if (r < p.rows) {
        const uint32_t begin = p.row_ptr[r], end = p.row_ptr[r + 1];
        is_long = end - begin > LONG;
        if (!is_long) {
            const uint32_t group = threadIdx.x % TEAM / LANES;
            float sum[PER] = {};
            add_entries<LANES, PER, WIDE, DROP>(p, r, begin + group, end, TEAM / LANES, h, width,
                                                lane, sum);
            if (TEAM > LANES) /* then the team is the warp, which has come here as a whole */
                add_groups<LANES, PER>(TEAM, sum);
            if (group == 0)
                write_row<LANES, PER, WIDE>(p, p.z + r * p.ldz + first, width, lane, sum);
        }
    }
    if (!__syncthreads_or(is_long))
        return;

    __shared__ float part[WARPS][LANES * PER];
    for (int64_t row = first_row; row < first_row + ROWS && row < p.rows; row++) {
        const uint32_t begin = p.row_ptr[row], end = p.row_ptr[row + 1];
        if (end - begin <= LONG)
            continue;
        float sum[PER] = {};
        add_entries<LANES, PER, WIDE, DROP>(p, row, begin + threadIdx.x / LANES, end,
                                            THREADS / LANES, h, width, lane, sum);
        add_groups<LANES, PER>(32, sum);
        if (threadIdx.x % 32 < LANES) {
#pragma unroll
            for (int i = 0; i < PER; i++)
                part[threadIdx.x / 32][i * LANES + lane] = sum[i];
        }
        __syncthreads();
        if (threadIdx.x < LANES) {
#pragma unroll
            for (int i = 0; i < PER; i++) {
                sum[i] = part[0][i * LANES + lane];
                for (int w = 1; w < WARPS; w++)
                    sum[i] += part[w][i * LANES + lane];
            }
            write_row<LANES, PER, WIDE>(p, p.z + row * p.ldz + first, width, lane, sum);
        }
        __syncthreads();
    }
}

template <int LANES, int PER, int TEAM, bool WIDE>
void launch_team(const product &p, bool drop, cudaStream_t stream)
{
    const dim3 grid((unsigned)sl_cuda_divide_up(p.rows, THREADS / TEAM),
                    (unsigned)sl_cuda_divide_up(p.width, LANES * PER));
    if (drop)
        gather_kernel<LANES, PER, TEAM, WIDE, true><<<grid, THREADS, 0, stream>>>(p);
    else
        gather_kernel<LANES, PER, TEAM, WIDE, false><<<grid, THREADS, 0, stream>>>(p);
}

/* A slice of up to 4·LANES columns. `full`: a warp per row. */
template <int LANES>
void launch_lanes(const product &p, bool wide, bool full, bool drop, cudaStream_t stream)
{
    if (wide && full)
        launch_team<LANES, 4, 32, true>(p, drop, stream);
    else if (wide)
        launch_team<LANES, 4, LANES, true>(p, drop, stream);
    else if (full)
        launch_team<LANES, 4, 32, false>(p, drop, stream);
    else
        launch_team<LANES, 4, LANES, false>(p, drop, stream);
}

/* The same where three columns per lane are enough: fewer idle lanes. */
template <int LANES> void launch_three(const product &p, bool full, bool drop, cudaStream_t stream)
{
    if (full)
        launch_team<LANES, 3, 32, false>(p, drop, stream);
    else
        launch_team<LANES, 3, LANES, false>(p, drop, stream);
}

/* The entries of A, to be scattered: the target of an entry is its column. */
struct columns {
    const uint32_t *row_ptr, *col;
    const float *values;
    sl_sparse_dropout drop;

    __device__ uint32_t lower_bound(uint32_t begin, uint32_t end, uint32_t column) const
    {
        while (begin < end) {
            const uint32_t middle = begin + (end - begin) / 2;
            if (__ldg(col + middle) < column)
                begin = middle + 1;
            else
                end = middle;
        }
        return begin;
    }

    __device__ void find(int64_t r, uint32_t from, uint32_t to, uint32_t *begin,
                         uint32_t *end) const
    {
        const uint32_t row_end = row_ptr[r + 1];
        *begin = lower_bound(row_ptr[r], row_end, from);
        *end = lower_bound(*begin, row_end, to);
    }

    __device__ uint32_t target(uint32_t e) const
    {
        return col[e];
    }

    __device__ float value(int64_t r, uint32_t e) const
    {
        const float v = entry_value(values, e);
        return drop.drop.threshold ? v * drop_factor(drop, r, col[e]) : v;
    }
};

sl_sparse_dropout dropout_or_none(const struct sl_sparse_dropout *drop)
{
    const sl_sparse_dropout none = {{0, 0, 1.0f}, 0, 0};
    return drop ? *drop : none;
}

} // namespace

extern "C" void sl_cuda_spmm(const struct sl_sparse *a, int64_t nnz,
                             const struct sl_sparse_dropout *drop, int64_t width, const float *h,
                             int64_t ldh, bool accumulate, float *z, int64_t ldz,
                             cudaStream_t stream)
{
    if (a->rows == 0 || width == 0)
        return;
    const product p = {a->rows,
                       width,
                       a->row_ptr,
                       a->col,
                       a->value,
                       h,
                       ldh,
                       z,
                       ldz,
                       accumulate,
                       sl_cuda_aligned(a->rows, z, ldz),
                       dropout_or_none(drop)};
    const bool wide = sl_cuda_aligned(2, h, ldh), full = nnz >= FULL_DEGREE * a->rows,
               dropped = p.drop.drop.threshold != 0;
    if (width <= 8)
        launch_lanes<2>(p, wide, full, dropped, stream);
    else if (width <= 16)
        launch_lanes<4>(p, wide, full, dropped, stream);
    else if (width <= 32)
        launch_lanes<8>(p, wide, full, dropped, stream);
    else if (width <= 48 && !wide)
        launch_three<16>(p, full, dropped, stream);
    else if (width <= 64)
        launch_lanes<16>(p, wide, full, dropped, stream);
    else if (width <= 96 && !wide)
        launch_three<32>(p, full, dropped, stream);
    else
        launch_lanes<32>(p, wide, full, dropped, stream);
    sl_cuda_check_launch("spmm");
}

extern "C" void sl_cuda_spmm_transposed(const struct sl_sparse *a,
                                        const struct sl_sparse_dropout *drop, int64_t width,
                                        const float *h, int64_t ldh, bool accumulate, float *z,
                                        int64_t ldz, cudaStream_t stream)
{
    const sl_scatter p = {a->rows, a->cols, width, h, ldh, z, ldz, 0, accumulate};
    sl_scatter_launch("spmm_transposed", p,
                      columns{a->row_ptr, a->col, a->value, dropout_or_none(drop)}, stream);
}

extern "C" void spmm_set_cuda(void *buffers[], void *argument)
{
    const spmm_argument *arg = (const spmm_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_cuda_raw_buffer(buffers[0]), arg->rows, arg->cols,
                                              arg->nnz, arg->has_values);
    const sl_cuda_dense h = sl_cuda_dense_buffer(buffers[1]), z = sl_cuda_dense_buffer(buffers[2]);
    const cudaStream_t stream = sl_cuda_task_stream();
    if (arg->transposed)
        sl_cuda_spmm_transposed(&a, &arg->drop, z.cols, h.data, h.ld, arg->accumulate, z.data, z.ld,
                                stream);
    else
        sl_cuda_spmm(&a, arg->nnz, &arg->drop, z.cols, h.data, h.ld, arg->accumulate, z.data, z.ld,
                     stream);
}

extern "C" void spmm_add_cuda(void *buffers[], void *argument)
{
    spmm_set_cuda(buffers, argument);
}
