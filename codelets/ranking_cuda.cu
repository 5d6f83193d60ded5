/* Areas under curves on a GPU, one label after the other.
 *
 *   sort the entries by score, by counting digits from the lowest
 *   for each split, at each entry: vertices before it, without and with the label
 *
 * Both sums are over the vertices with the label.
 *
 *   area      = Σ vertices without it that score less, and half the vertices that score equally
 *   precision = Σ share of vertices with it among all that score as much or more
 *
 * A block of threads has a run of entries. Sums of counts are exact, and sums of shares have one
 * order. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/ranking.h"
}

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    ROUNDS = 16, /* least rounds of THREADS entries in a block */
    MOST_BLOCKS = 1024,
    DIGIT = 8,
    DIGITS = 1 << DIGIT,
    PASSES = 32 / DIGIT,
};
static_assert(DIGITS == (int)THREADS, "a thread has a digit");
static_assert(PASSES % 2 == 0, "sorted entries end where they began");

/* A block of threads has a run of entries. */
struct entry_runs {
    int64_t count, run; /* entries in all; entries of a block: a multiple of THREADS */
    int blocks;
};

entry_runs cut_runs(int64_t count)
{
    const int64_t wanted = sl_cuda_divide_up(count, (int64_t)THREADS * ROUNDS),
                  blocks = wanted < MOST_BLOCKS ? wanted : (int64_t)MOST_BLOCKS,
                  rounds = sl_cuda_divide_up(count, blocks * THREADS);
    return {count, rounds * THREADS, (int)blocks};
}

/* The workspace has counts of digits of each block; then, for one split, the vertices before each
 * block and before the end, and the sums of each block. */
struct workspace {
    uint32_t *counts; // (DIGITS, blocks) and their sum
    uint64_t *before; // (blocks + 1)
    double *sums;     // (blocks, SL_RANKINGS)
};

workspace open_workspace(const sl_cuda_queue &queue)
{
    char *const room = (char *)queue.workspace;
    const size_t counts = ((size_t)DIGITS * MOST_BLOCKS + 64) * sizeof(uint32_t),
                 before = (MOST_BLOCKS + 64) * sizeof(uint64_t);
    return {(uint32_t *)room, (uint64_t *)(room + counts), (double *)(room + counts + before)};
}

__device__ __forceinline__ unsigned lanes_below()
{
    return (1u << threadIdx.x % 32) - 1;
}

/* ---- Sort ---- */

/* Gather entries of one label. Entries without a score get the largest number, so that they sort
 * last. */
__global__ void __launch_bounds__(THREADS)
    gather_kernel(int64_t rows, int64_t labels, const uint64_t *scores, uint64_t *entries)
{
    for (int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x; r < rows;
         r += (int64_t)gridDim.x * THREADS) {
        const uint64_t entry = scores[r * labels];
        entries[r] = (uint32_t)entry == SL_NO_SCORE ? UINT64_MAX : entry;
    }
}

/* Return the lanes of the warp whose entries have this digit. `has`: the calling lane has an entry.
 */
__device__ __forceinline__ unsigned same_digit(bool has, unsigned digit)
{
    unsigned same = __ballot_sync(0xFFFFFFFFu, has);
    for (int bit = 0; bit < DIGIT; bit++) {
        const bool set = digit >> bit & 1;
        const unsigned lanes = __ballot_sync(0xFFFFFFFFu, set);
        same &= set ? lanes : ~lanes;
    }
    return same;
}

/* Count the digits of a warp: the first lane with a digit adds all lanes with it. */
__device__ __forceinline__ void count_digit(bool has, unsigned digit, unsigned same, uint32_t *bins)
{
    if (has && (same & lanes_below()) == 0)
        bins[digit] += (uint32_t)__popc(same);
}

typedef uint32_t digit_bins[WARPS][DIGITS];

__device__ __forceinline__ void clear_bins(digit_bins &bins)
{
    for (int w = 0; w < WARPS; w++)
        bins[w][threadIdx.x] = 0;
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS)
    count_kernel(entry_runs runs, int shift, const uint64_t *entries, uint32_t *counts)
{
    auto &bins = sl_cuda_shared<digit_bins>();
    const int64_t first = (int64_t)blockIdx.x * runs.run;
    clear_bins(bins);
    for (int64_t from = first; from < first + runs.run; from += THREADS) {
        const int64_t k = from + threadIdx.x;
        const bool has = k < runs.count;
        const unsigned digit = has ? (unsigned)(entries[k] >> shift) % DIGITS : 0;
        count_digit(has, digit, same_digit(has, digit), bins[threadIdx.x / 32]);
        __syncwarp();
    }
    __syncthreads();
    uint32_t all = 0;
    for (int w = 0; w < WARPS; w++)
        all += bins[w][threadIdx.x];
    counts[threadIdx.x * gridDim.x + blockIdx.x] = all;
}

/* Replace numbers by the sums of the numbers before them, and append the total. Runs in one block.
 */
template <class T> __global__ void __launch_bounds__(THREADS) scan_kernel(int64_t count, T *numbers)
{
    auto &sums = sl_cuda_shared<T[THREADS]>();
    const int64_t piece = (count + THREADS - 1) / THREADS, from = piece * threadIdx.x,
                  to = from + piece < count ? from + piece : count;
    T sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += numbers[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    T before = 0;
    for (unsigned t = 0; t < threadIdx.x; t++)
        before += sums[t];
    if (threadIdx.x == THREADS - 1)
        numbers[count] = before + sum;
    for (int64_t i = from; i < to; i++) {
        const T own = numbers[i];
        numbers[i] = before;
        before += own;
    }
}

__global__ void __launch_bounds__(THREADS)
    move_kernel(entry_runs runs, int shift, const uint64_t *entries, const uint32_t *counts,
                uint64_t *other)
{
    auto &bins = sl_cuda_shared<digit_bins>();
    const int64_t first = (int64_t)blockIdx.x * runs.run;
    const int warp = (int)threadIdx.x / 32;
    uint32_t next =
        counts[threadIdx.x * gridDim.x + blockIdx.x]; /* next place for the thread's digit */
    for (int64_t from = first; from < first + runs.run; from += THREADS) {
        const int64_t k = from + threadIdx.x;
        const bool has = k < runs.count;
        const uint64_t entry = has ? entries[k] : 0;
        const unsigned digit = (unsigned)(entry >> shift) % DIGITS;
        const unsigned same = same_digit(has, digit);
        clear_bins(bins);
        count_digit(has, digit, same, bins[warp]);
        __syncthreads();
        for (int w = 0; w < WARPS; w++) {
            const uint32_t here = bins[w][threadIdx.x];
            bins[w][threadIdx.x] = next;
            next += here;
        }
        __syncthreads();
        if (has)
            other[bins[warp][digit] + (uint32_t)__popc(same & lanes_below())] = entry;
        __syncthreads();
    }
}

/* ---- Vertices before an entry ---- */

/* Return 1 for a vertex of the split: in the low half without the label, in the upper half with it.
 * Return 0 for other entries. */
__device__ __forceinline__ uint64_t counts_as(uint64_t entry, int split)
{
    const uint32_t what = (uint32_t)entry;
    return what / 2 != (uint32_t)split ? 0 : what % 2 ? (uint64_t)1 << 32 : 1;
}

__device__ __forceinline__ double without(uint64_t vertices)
{
    return (double)(uint32_t)vertices;
}

__device__ __forceinline__ double with(uint64_t vertices)
{
    return (double)(vertices >> 32);
}

/* Return the sum of the numbers of the warp's lower lanes, and set the sum of all lanes. */
__device__ __forceinline__ uint64_t sum_below(uint64_t own, uint64_t *all)
{
    const unsigned low = __ballot_sync(0xFFFFFFFFu, own == 1),
                   high = __ballot_sync(0xFFFFFFFFu, own > 1);
    *all = (uint64_t)__popc(high) << 32 | (uint64_t)__popc(low);
    return (uint64_t)__popc(high & lanes_below()) << 32 | (uint64_t)__popc(low & lanes_below());
}

/* Count the vertices of each block; with `prefix`, write the count before each entry instead. */
__global__ void __launch_bounds__(THREADS)
    before_kernel(entry_runs runs, int split, const uint64_t *entries, uint64_t *before,
                  uint64_t *prefix)
{
    auto &warps = sl_cuda_shared<uint64_t[WARPS]>();
    const int64_t first = (int64_t)blockIdx.x * runs.run;
    const int warp = (int)threadIdx.x / 32;
    uint64_t sum = prefix ? before[blockIdx.x] : 0;
    for (int64_t from = first; from < first + runs.run; from += THREADS) {
        const int64_t k = from + threadIdx.x;
        uint64_t all;
        uint64_t below = sum_below(k < runs.count ? counts_as(entries[k], split) : 0, &all);
        if (threadIdx.x % 32 == 0)
            warps[warp] = all;
        __syncthreads();
        for (int w = 0; w < WARPS; w++)
            below += w < warp ? warps[w] : 0;
        if (prefix && k < runs.count)
            prefix[k] = sum + below;
        for (int w = 0; w < WARPS; w++)
            sum += warps[w];
        __syncthreads();
    }
    if (!prefix && threadIdx.x == 0)
        before[blockIdx.x] = sum;
}

/* ---- Sums ---- */

/* Return the first entry whose score is at least `score`, a number of 33 bits. */
__device__ __forceinline__ int64_t find(const uint64_t *entries, int64_t count, uint64_t score)
{
    int64_t from = 0, to = count;
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (entries[middle] >> 32 < score)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Add the sums of the block's threads into its first thread: lanes by a tree, then warps in order.
 */
__device__ void sum_block(double (&sums)[SL_RANKINGS])
{
    auto &parts = sl_cuda_shared<double[WARPS][SL_RANKINGS]>();
    for (int i = 0; i < SL_RANKINGS; i++) {
        for (int distance = 16; distance > 0; distance /= 2)
            sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], distance);
        if (threadIdx.x % 32 == 0)
            parts[threadIdx.x / 32][i] = sums[i];
    }
    __syncthreads();
    for (int i = 0; i < SL_RANKINGS && threadIdx.x == 0; i++) {
        sums[i] = 0.0;
        for (int w = 0; w < WARPS; w++)
            sums[i] += parts[w][i];
    }
}

__global__ void __launch_bounds__(THREADS)
    sum_kernel(entry_runs runs, int split, const uint64_t *entries, const uint64_t *prefix,
               const uint64_t *before, double *sums)
{
    const int64_t first = (int64_t)blockIdx.x * runs.run;
    const uint64_t all = before[gridDim.x];
    double own[SL_RANKINGS] = {};
    for (int64_t k = first + threadIdx.x; k < first + runs.run && k < runs.count; k += THREADS) {
        if (counts_as(entries[k], split) <= 1)
            continue;
        const uint64_t score = entries[k] >> 32;
        const int64_t above = find(entries, runs.count, score + 1);
        const uint64_t less = prefix[find(entries, runs.count, score)],
                       not_more = above < runs.count ? prefix[above] : all;
        own[SL_AREA] += without(less) + without(not_more);
        own[SL_PRECISION] += with(all - less) / (with(all - less) + without(all - less));
    }
    sum_block(own);
    for (int i = 0; i < SL_RANKINGS && threadIdx.x == 0; i++)
        sums[blockIdx.x * SL_RANKINGS + i] = own[i];
}

/* Add up the sums of all blocks, in one block, and write the result of a split. */
__global__ void __launch_bounds__(THREADS)
    finish_kernel(int blocks, const uint64_t *before, const double *sums, double *result)
{
    const double negatives = without(before[blocks]), positives = with(before[blocks]);
    const bool defined = negatives > 0.0 && positives > 0.0;
    double all[SL_RANKINGS] = {};
    for (int b = (int)threadIdx.x; b < blocks; b += THREADS)
        for (int i = 0; i < SL_RANKINGS; i++)
            all[i] += sums[b * SL_RANKINGS + i];
    sum_block(all);
    if (threadIdx.x > 0)
        return;
    result[SL_AREA] = defined ? all[SL_AREA] / (2.0 * positives * negatives) : NAN;
    result[SL_PRECISION] = defined ? all[SL_PRECISION] / positives : NAN;
}

void sort_entries(const entry_runs &runs, uint64_t *entries, uint64_t *other, const workspace &room,
                  cudaStream_t stream)
{
    for (int pass = 0; pass < PASSES; pass++) {
        const int shift = 32 + DIGIT * pass;
        sl_cuda_launch("ranking, digits", count_kernel, runs.blocks, THREADS, 0, stream, runs,
                       shift, entries, room.counts);
        sl_cuda_launch("ranking, places", scan_kernel<uint32_t>, 1, THREADS, 0, stream,
                       (int64_t)DIGITS * runs.blocks, room.counts);
        sl_cuda_launch("ranking, sort", move_kernel, runs.blocks, THREADS, 0, stream, runs, shift,
                       entries, room.counts, other);
        uint64_t *const sorted = other;
        other = entries;
        entries = sorted;
    }
}

} // namespace

/* Rank the entries of one label. Without entries, one block without entries runs: results are NaN.
 */
extern "C" void sl_cuda_ranking(int64_t count, uint64_t *entries, uint64_t *scratch, double *result,
                                struct sl_cuda_queue queue)
{
    const entry_runs runs = count > 0 ? cut_runs(count) : entry_runs{0, 0, 1};
    const workspace room = open_workspace(queue);
    if (count > 0)
        sort_entries(runs, entries, scratch, room, queue.stream);
    for (int split = 0; split < SL_SPLITS; split++) {
        sl_cuda_launch("ranking, count", before_kernel, runs.blocks, THREADS, 0, queue.stream, runs,
                       split, entries, room.before, nullptr);
        sl_cuda_launch("ranking, before", scan_kernel<uint64_t>, 1, THREADS, 0, queue.stream,
                       (int64_t)runs.blocks, room.before);
        sl_cuda_launch("ranking, prefix", before_kernel, runs.blocks, THREADS, 0, queue.stream,
                       runs, split, entries, room.before, scratch);
        sl_cuda_launch("ranking, sums", sum_kernel, runs.blocks, THREADS, 0, queue.stream, runs,
                       split, entries, scratch, room.before, room.sums);
        sl_cuda_launch("ranking", finish_kernel, 1, THREADS, 0, queue.stream, runs.blocks,
                       room.before, room.sums, result + split * SL_RANKINGS);
    }
}

extern "C" void sl_cuda_ranking_gather(int64_t rows, int64_t labels, const uint64_t *scores,
                                       uint64_t *entries, struct sl_cuda_queue queue)
{
    const int64_t blocks = sl_cuda_divide_up(rows, (int64_t)THREADS);
    if (rows > 0)
        sl_cuda_launch("ranking, gather", gather_kernel,
                       (unsigned)(blocks < MOST_BLOCKS ? blocks : (int64_t)MOST_BLOCKS), THREADS, 0,
                       queue.stream, rows, labels, scores, entries);
}

extern "C" void ranking_cuda(void *buffers[], void *argument)
{
    const int tiles = *(const int *)argument;
    const sl_cuda_queue queue = sl_cuda_task_queue();
    uint64_t *const entries = (uint64_t *)sl_raw_buffer(buffers[tiles]), *const scratch =
                                                                             entries +
                                                                             STARPU_MATRIX_GET_NX(
                                                                                 buffers[tiles]);
    double *const table = (double *)sl_raw_buffer(buffers[tiles + 1]);
    const int64_t labels = STARPU_MATRIX_GET_NY(buffers[tiles + 1]);
    for (int64_t j = 0; j < labels; j++) {
        int64_t count = 0;
        for (int t = 0; t < tiles; t++) {
            const int64_t rows = STARPU_MATRIX_GET_NY(buffers[t]);
            sl_cuda_ranking_gather(rows, labels, (const uint64_t *)sl_raw_buffer(buffers[t]) + j,
                                   entries + count, queue);
            count += rows;
        }
        sl_cuda_ranking(count, entries, scratch, table + j * SL_TABLE_RANKINGS, queue);
    }
}
