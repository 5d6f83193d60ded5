/* Sums of rows of H that the entries of sparse tiles name. A team of threads has one row of the
 * result. The lanes of the team hold a slice of the row in registers. Where the slice is narrow, a
 * team has several groups of lanes: the groups share the entries of the row. At the end they add up
 * their sums in a fixed order (row splitting: Yang, Buluç, Owens, "Design principles for sparse
 * matrix multiplication on the GPU", Euro-Par'18). The whole block takes a row with far more
 * entries than a team should have. The shape alone says which thread takes which entry. Warps of a
 * block without such a row do not wait for one another: on an H100 they waited 70 % of their time.
 *
 * A team walks over all blocks of all tiles of its row. So the team runs the epilogue and writes
 * the result once. H is in runs of rows that lie anywhere. A lane reads four columns at a time: 16
 * bytes of float32, or 8 of bfloat16. So a lane adds the same terms for both types. */
#ifndef SL_CODELETS_CUDA_GATHER_H
#define SL_CODELETS_CUDA_GATHER_H

#include "codelets/cuda_epilogue.h"

extern "C" {
#include "codelets/epilogue.h"
#include "codelets/spmm.h"
}

enum {
    SL_CUDA_GATHER_THREADS = 128,
    SL_CUDA_GATHER_BLOCKS = 8, /* blocks on a multiprocessor: at most 64 registers a thread */
    SL_CUDA_GATHER_WARPS = SL_CUDA_GATHER_THREADS / 32,
    SL_CUDA_GATHER_LONG = 64, /* entries per thread of a team from which the block takes the row */
    SL_CUDA_GATHER_FULL = 16, /* mean entries of a row in a block from which a warp has a row */
    SL_CUDA_GATHER_PIECES = SL_SPMM_PARTS,
    SL_CUDA_GATHER_RUNS = SL_SPMM_TILES,
};

/* Rows of H with one address, from the row that column `first` meets to the first row of the next
 * run. */
struct sl_cuda_run {
    const void *data;
    uint32_t ld, first;
};

/* A sparse tile, or its columns [from, to). */
struct sl_cuda_piece {
    const uint32_t *row_ptr;
    const void *col;
    const float *value; /* NULL: all 1 */
    uint32_t block_cols, from, to;
    uint32_t first_block, last_block; /* blocks [first_block, last_block) have the columns */
    uint16_t first_run, runs;
    bool narrow, whole;
};

struct sl_cuda_gather {
    int64_t rows;
    int width, pieces, runs;
    sl_type type; /* type of H's elements */
    bool finish;
    bool aligned; /* SUM, Z and the epilogue's operands are aligned */
    sl_rows sum;  /* first term of the sum; without data: 0 */
    sl_rows z;
    sl_epilogue epilogue;
    sl_dropout drop; /* dropout of the entries, as in sl_kernel_features */
    const uint32_t *vertex;
    sl_cuda_piece piece[SL_CUDA_GATHER_PIECES];
    sl_cuda_run run[SL_CUDA_GATHER_RUNS];
};
static_assert(sizeof(sl_cuda_gather) <= 4096, "a launch has 4 KiB of parameters");

/* ---- On the device ---- */

/* Entries of a group whose rows are loaded at the same time: as many as 64 registers hold. */
template <int PER, bool WIDE, bool MANY, bool DROP>
constexpr int SL_CUDA_GATHER_AT_ONCE = MANY || DROP || (!WIDE && PER > 3) ? 4 : 8;

/* Return the first entry, among entries [begin, end) of one row of one block, whose column is
 * `column` or more. Columns count from the block's start. */
__device__ __forceinline__ uint32_t sl_cuda_lower_bound(const void *col, bool narrow,
                                                        uint32_t begin, uint32_t end,
                                                        uint32_t column)
{
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (sl_cuda_sparse_col(col, narrow, middle) < column)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Set [*begin, *end) to the entries of row r in block b of the piece. */
__device__ __forceinline__ void sl_cuda_gather_range(const sl_cuda_piece &a, int64_t rows,
                                                     uint32_t b, int64_t r, uint32_t *begin,
                                                     uint32_t *end)
{
    const uint32_t *range = a.row_ptr + b * rows + r;
    *begin = range[0];
    *end = range[1];
    if (a.whole)
        return;
    const uint32_t column0 = b * a.block_cols;
    if (a.from > column0)
        *begin = sl_cuda_lower_bound(a.col, a.narrow, *begin, *end, a.from - column0);
    if (a.to - column0 < a.block_cols)
        *end = sl_cuda_lower_bound(a.col, a.narrow, *begin, *end, a.to - column0);
}

/* Return how many entries row r has in all pieces. */
__device__ __forceinline__ uint32_t sl_cuda_gather_count(const sl_cuda_gather &p, int64_t r)
{
    uint32_t count = 0;
    for (int i = 0; i < p.pieces; i++)
        for (uint32_t b = p.piece[i].first_block; b < p.piece[i].last_block; b++) {
            uint32_t begin, end;
            sl_cuda_gather_range(p.piece[i], p.rows, b, r, &begin, &end);
            count += end - begin;
        }
    return count;
}

/* Set run[u] to the run of the piece that column[u] meets, by bisection for all u at once. */
template <int AT_ONCE>
__device__ __forceinline__ void sl_cuda_find_runs(const sl_cuda_run *all, const sl_cuda_piece &a,
                                                  const uint32_t (&column)[AT_ONCE],
                                                  uint32_t (&run)[AT_ONCE])
{
    for (uint32_t count = a.runs; count > 1; count -= count / 2)
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (all[run[u] + count / 2].first <= column[u])
                run[u] += count / 2;
}

/* The team's place in its row, and the runs of H. */
struct sl_cuda_gather_place {
    const sl_cuda_run *runs;
    int64_t r;
    int first, lane; /* first column of the slice; lane in the group */
    uint32_t group, groups, vertex;
};

/* Add Σ value(e)·H(column(e), slice) to `sum`, over the group's share of the entries [begin, end)
 * of a block that starts at `column0`. WIDE: a lane has the slice's four columns from 4·lane on;
 * otherwise every LANES-th column, PER in all. MANY: a piece may have several runs. DROP: entries
 * are dropped out. */
template <class T, int LANES, int PER, bool WIDE, bool MANY, bool DROP>
__device__ __forceinline__ void
sl_cuda_gather_entries(const sl_cuda_gather &p, const sl_cuda_piece &a,
                       const sl_cuda_gather_place &at, uint32_t column0, uint32_t begin,
                       uint32_t end, float (&sum)[PER])
{
    constexpr int AT_ONCE = SL_CUDA_GATHER_AT_ONCE<PER, WIDE, MANY, DROP>;
    const int width = p.width - at.first;
    for (uint32_t e = begin + at.group; e < end; e += AT_ONCE * at.groups) {
        uint32_t column[AT_ONCE], run[AT_ONCE];
        float value[AT_ONCE];
        sl_cuda_vector<PER> x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const uint32_t own = e + (uint32_t)u * at.groups;
            column[u] = column0 + (own < end ? sl_cuda_sparse_col(a.col, a.narrow, own) : 0);
            value[u] = own >= end ? 0.0f : a.value ? __ldg(a.value + own) : 1.0f;
            run[u] = a.first_run;
        }
        if (MANY)
            sl_cuda_find_runs(at.runs, a, column, run);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const bool there = e + (uint32_t)u * at.groups < end;
            const sl_cuda_run &h = at.runs[run[u]];
            const T *row = (const T *)h.data + (uint64_t)(column[u] - h.first) * h.ld + at.first;
            if constexpr (WIDE) {
                sl_cuda_four<T> four = {};
                if (there && 4 * at.lane < width)
                    four = __ldg((const sl_cuda_four<T> *)(row + 4 * at.lane));
                x[u] = sl_cuda_widen(four);
            } else {
#pragma unroll
                for (int i = 0; i < PER; i++) {
                    const int j = i * LANES + at.lane;
                    x[u].at[i] = there && j < width ? float(__ldg(row + j)) : 0.0f;
                }
            }
        }
        if (DROP) {
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                value[u] *= sl_dropout_factor(&p.drop, at.vertex, column[u]);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
            for (int i = 0; i < PER; i++)
                sum[i] =
                    fmaf(value[u], x[u].at[i], sum[i]); /* adds 0·0 for entries that are missing */
    }
}

/* Add the group's share of all entries of row r to `sum`. */
template <class T, int LANES, int PER, bool WIDE, bool MANY, bool DROP>
__device__ __forceinline__ void
sl_cuda_gather_row(const sl_cuda_gather &p, const sl_cuda_gather_place &at, float (&sum)[PER])
{
    for (int i = 0; i < p.pieces; i++) {
        const sl_cuda_piece &a = p.piece[i];
        for (uint32_t b = a.first_block; b < a.last_block; b++) {
            uint32_t begin, end;
            sl_cuda_gather_range(a, p.rows, b, at.r, &begin, &end);
            sl_cuda_gather_entries<T, LANES, PER, WIDE, MANY, DROP>(p, a, at, b * a.block_cols,
                                                                    begin, end, sum);
        }
    }
}

/* Add up the sums of groups of LANES lanes, `threads` threads in all. Every group gets the total.
 */
template <int LANES, int PER>
__device__ __forceinline__ void sl_cuda_add_groups(int threads, float (&sum)[PER])
{
#pragma unroll
    for (int distance = LANES; distance < 32; distance *= 2)
        if (distance < threads) {
#pragma unroll
            for (int i = 0; i < PER; i++)
                sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], distance);
        }
}

/* Write Z(r, j …) = epilogue([SUM +] v). */
template <int V>
__device__ __forceinline__ void sl_cuda_gather_write(const sl_cuda_gather &p, int64_t r, int j,
                                                     sl_cuda_vector<V> v)
{
    const int count = p.width - j;
    if (count <= 0)
        return;
    if (p.sum.data) {
        const sl_cuda_vector<V> sum =
            sl_cuda_load<V>((const float *)p.sum.data + r * p.sum.ld + j, count, p.aligned);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = sum.at[i] + v.at[i];
    }
    if (p.finish)
        sl_cuda_finish<V>(p.epilogue, p.aligned, r, j, count, &v);
    sl_cuda_store<V>(p.z, r, j, v, count, p.aligned);
}

/* Write the lane's columns of the slice of row r. */
template <int LANES, int PER, bool WIDE>
__device__ __forceinline__ void sl_cuda_gather_write_slice(const sl_cuda_gather &p,
                                                           const sl_cuda_gather_place &at,
                                                           const float (&sum)[PER])
{
    if constexpr (WIDE) {
        sl_cuda_gather_write<4>(p, at.r, at.first + 4 * at.lane,
                                {{sum[0], sum[1], sum[2], sum[3]}});
    } else {
#pragma unroll
        for (int i = 0; i < PER; i++)
            sl_cuda_gather_write<1>(p, at.r, at.first + i * LANES + at.lane, {{sum[i]}});
    }
}

/* Make rows of Z. A block has SL_CUDA_GATHER_THREADS / TEAM rows; blockIdx.y is the slice of
 * LANES·PER columns. TEAM is LANES or 32. */
template <class T, int LANES, int PER, int TEAM, bool WIDE, bool MANY, bool DROP>
__global__ void __launch_bounds__(SL_CUDA_GATHER_THREADS, SL_CUDA_GATHER_BLOCKS)
    sl_cuda_gather_kernel(const __grid_constant__ sl_cuda_gather p)
{
    constexpr int ROWS = SL_CUDA_GATHER_THREADS / TEAM;
    constexpr uint32_t LONG = SL_CUDA_GATHER_LONG * TEAM;
    const int64_t first_row = (int64_t)blockIdx.x * ROWS;
    sl_cuda_gather_place at;
    at.runs = p.run;
    if constexpr (MANY) { /* parameters are fast only where all lanes of a warp read one address */
        auto &runs = sl_cuda_shared<sl_cuda_run[SL_CUDA_GATHER_RUNS]>();
        for (int i = (int)threadIdx.x; i < p.runs; i += SL_CUDA_GATHER_THREADS)
            runs[i] = p.run[i];
        __syncthreads();
        at.runs = runs;
    }
    at.first = (int)blockIdx.y * (LANES * PER);
    at.lane = (int)threadIdx.x % LANES;

    bool is_long = false; /* some row of the block is long; every warp finds out for itself */
    for (int i = (int)threadIdx.x % 32; i < ROWS && first_row + i < p.rows; i += 32)
        is_long = is_long || sl_cuda_gather_count(p, first_row + i) > LONG;
    const bool are_long = __any_sync(0xFFFFFFFFu, is_long);

    at.r = first_row + threadIdx.x / TEAM;
    if (at.r < p.rows && !(are_long && sl_cuda_gather_count(p, at.r) > LONG)) {
        at.group = threadIdx.x % TEAM / LANES;
        at.groups = TEAM / LANES;
        at.vertex = DROP ? p.vertex[at.r] : 0;
        float sum[PER] = {};
        sl_cuda_gather_row<T, LANES, PER, WIDE, MANY, DROP>(p, at, sum);
        if (TEAM > LANES) /* the team is then a whole warp, so its groups add up */
            sl_cuda_add_groups<LANES, PER>(TEAM, sum);
        if (at.group == 0)
            sl_cuda_gather_write_slice<LANES, PER, WIDE>(p, at, sum);
    }
    if (!are_long)
        return;

    auto &part = sl_cuda_shared<float[SL_CUDA_GATHER_WARPS][LANES * PER]>();
    at.group = threadIdx.x / LANES;
    at.groups = SL_CUDA_GATHER_THREADS / LANES;
    for (at.r = first_row; at.r < first_row + ROWS && at.r < p.rows; at.r++) {
        if (sl_cuda_gather_count(p, at.r) <= LONG)
            continue;
        at.vertex = DROP ? p.vertex[at.r] : 0;
        float sum[PER] = {};
        sl_cuda_gather_row<T, LANES, PER, WIDE, MANY, DROP>(p, at, sum);
        sl_cuda_add_groups<LANES, PER>(32, sum);
        if (threadIdx.x % 32 < LANES) {
#pragma unroll
            for (int i = 0; i < PER; i++)
                part[threadIdx.x / 32][i * LANES + at.lane] = sum[i];
        }
        __syncthreads();
        if (threadIdx.x < LANES) {
#pragma unroll
            for (int i = 0; i < PER; i++) {
                sum[i] = part[0][i * LANES + at.lane];
                for (int w = 1; w < SL_CUDA_GATHER_WARPS; w++)
                    sum[i] += part[w][i * LANES + at.lane];
            }
            sl_cuda_gather_write_slice<LANES, PER, WIDE>(p, at, sum);
        }
        __syncthreads();
    }
}

/* ---- On the host ---- */

/* Add the columns of A from `from` on that meet the `tiles` tiles of H. Tiles that are neighbours
 * in memory become one run. There must be room: at most SL_CUDA_GATHER_RUNS runs in all. Return the
 * column after the last one. */
static inline int64_t sl_cuda_gather_add(sl_cuda_gather *g, const struct sl_sparse *a, int64_t from,
                                         int tiles, const struct sl_cuda_rows *h)
{
    const int first_run = g->runs;
    sl_rows behind = {}; /* the row after the last run */
    int64_t to = from;
    for (int t = 0; t < tiles; t++) {
        const sl_rows *next = &h[t].at;
        if (h[t].rows == 0)
            continue;
        if (next->data != behind.data || next->ld != behind.ld)
            g->run[g->runs++] = {next->data, (uint32_t)next->ld, (uint32_t)to};
        behind = sl_rows_at(next, h[t].rows, 0);
        to += h[t].rows;
    }
    if (to == from)
        return to;
    sl_cuda_piece *piece = &g->piece[g->pieces++];
    piece->row_ptr = a->row_ptr;
    piece->col = a->col;
    piece->value = a->value;
    piece->block_cols = (uint32_t)a->block_cols;
    piece->from = (uint32_t)from;
    piece->to = (uint32_t)to;
    piece->first_block = (uint32_t)(from / a->block_cols);
    piece->last_block = (uint32_t)sl_cuda_divide_up(to, a->block_cols);
    piece->first_run = (uint16_t)first_run;
    piece->runs = (uint16_t)(g->runs - first_run);
    piece->narrow = a->narrow;
    piece->whole = from == 0 && to == a->cols;
    return to;
}

template <class T, int LANES, int PER, int TEAM, bool WIDE, bool MANY, bool DROP>
static void sl_cuda_gather_launch_team(const char *name, const sl_cuda_gather &p,
                                       cudaStream_t stream)
{
    const dim3 grid((unsigned)sl_cuda_divide_up(p.rows, SL_CUDA_GATHER_THREADS / TEAM),
                    (unsigned)sl_cuda_divide_up(p.width, LANES * PER));
    sl_cuda_launch(name, sl_cuda_gather_kernel<T, LANES, PER, TEAM, WIDE, MANY, DROP>, grid,
                   SL_CUDA_GATHER_THREADS, 0, stream, p);
}

/* Launch with slices of 4·LANES columns, or 3·LANES where H is no wider, for fewer idle lanes.
 * `full`: a warp per row. */
template <class T, int LANES, bool MANY, bool DROP>
static void sl_cuda_gather_launch_lanes(const char *name, const sl_cuda_gather &p, bool wide,
                                        bool full, cudaStream_t stream)
{
    if (wide && full)
        sl_cuda_gather_launch_team<T, LANES, 4, 32, true, MANY, DROP>(name, p, stream);
    else if (wide)
        sl_cuda_gather_launch_team<T, LANES, 4, LANES, true, MANY, DROP>(name, p, stream);
    else if (LANES >= 16 && p.width <= 3 * LANES && full)
        sl_cuda_gather_launch_team<T, LANES, LANES >= 16 ? 3 : 4, 32, false, MANY, DROP>(name, p,
                                                                                         stream);
    else if (LANES >= 16 && p.width <= 3 * LANES)
        sl_cuda_gather_launch_team<T, LANES, LANES >= 16 ? 3 : 4, LANES, false, MANY, DROP>(name, p,
                                                                                            stream);
    else if (full)
        sl_cuda_gather_launch_team<T, LANES, 4, 32, false, MANY, DROP>(name, p, stream);
    else
        sl_cuda_gather_launch_team<T, LANES, 4, LANES, false, MANY, DROP>(name, p, stream);
}

/* Choose lanes and slices by the width, and launch. Alignment does not decide which lane adds which
 * entry. The whole sum has `entries` entries in `segments` blocks. */
template <class T, bool MANY, bool DROP>
static void sl_cuda_gather_launch(const char *name, const sl_cuda_gather &p, int64_t entries,
                                  int64_t segments, cudaStream_t stream)
{
    const bool full = entries >= SL_CUDA_GATHER_FULL * p.rows * segments;
    bool wide = true;
    for (int i = 0; i < p.runs; i++)
        wide = wide && sl_cuda_aligned(2, {(void *)p.run[i].data, p.run[i].ld, p.type});
    if (p.width <= 8)
        sl_cuda_gather_launch_lanes<T, 2, MANY, DROP>(name, p, wide, full, stream);
    else if (p.width <= 16)
        sl_cuda_gather_launch_lanes<T, 4, MANY, DROP>(name, p, wide, full, stream);
    else if (p.width <= 32)
        sl_cuda_gather_launch_lanes<T, 8, MANY, DROP>(name, p, wide, full, stream);
    else if (p.width <= 64)
        sl_cuda_gather_launch_lanes<T, 16, MANY, DROP>(name, p, wide, full, stream);
    else
        sl_cuda_gather_launch_lanes<T, 32, MANY, DROP>(name, p, wide, full, stream);
}

#endif
