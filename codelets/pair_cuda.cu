/* The walks of attention whose scores need the rows of both ends of an edge. */
#include "codelets/cuda_pair_walk.h"

namespace
{

/* ---- Forward ---- */

struct head_state {
    float m, l;
};

/* Turn scores into weights w e^(e - m). Return the factor by which a larger maximum scales sums. */
__device__ __forceinline__ float weigh(const chunk &c, float (&score)[STEPS], head_state *s)
{
    float top = s->m;
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        if (c.weight[i] > 0.0f && score[i] > top)
            top = score[i];
    const float scale = top == s->m ? 1.0f : expf(s->m - top);
    const float reference = top == -INFINITY ? 0.0f : top; /* no weight yet */
    s->m = top;
    s->l *= scale;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        score[i] = c.weight[i] * power(score[i] - reference);
        s->l += score[i];
    }
    return scale;
}

template <bool PRODUCTS, bool EDGES, int LANES, int PER>
__device__ __forceinline__ void meet_row(const walk &w, const team<LANES> &t, int64_t piece,
                                         int64_t first, own_row<PER> *own, head_state *s,
                                         float (&z)[PER], float (&numbers)[SHARE])
{
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + t.r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + t.r]; e < end;) {
            const chunk c = read_chunk(w.a, b, e, end);
            met_rows<PER> met;
            float alpha[STEPS] = {}, unused[STEPS], factor[STEPS];
            multiply<FORWARD, PRODUCTS, EDGES>(w, t, c, piece, own, &met, alpha, unused);
            const float scale = weigh(c, alpha, s);
            draw<FORWARD>(w, t, c, factor);
#pragma unroll
            for (int k = 0; k < PER; k++)
                z[k] *= scale;
#pragma unroll
            for (int i = 0; i < STEPS; i++)
#pragma unroll
                for (int k = 0; k < PER; k++)
                    z[k] = fmaf(alpha[i] * factor[i], met.second[i][k], z[k]);
            if (EDGES && PRODUCTS) {
#pragma unroll
                for (int q = 0; q < SHARE; q++)
                    numbers[q] *= scale;
#pragma unroll
                for (int i = 0; i < STEPS; i++)
                    alpha[i] *= factor[i];
                sum_features(w, t, c, first, alpha, numbers);
            }
            e += (uint32_t)c.count;
        }
    }
}

template <bool PRODUCTS, bool EDGES, int LANES, int PER>
__global__ void __launch_bounds__(THREADS) forward(walk w)
{
    const team<LANES> t(w);
    if (t.r >= w.a.rows)
        return;
    float *const row = sl_pair_row_at(w.out, t.r), *const z = row + t.column,
                 *const m = row + sl_pair_all_of(w.pair) + t.head,
                 *const l = m + w.pair.attention.heads,
                 *const b = row + sl_pair_all_of(w.pair) + 2 * w.pair.attention.heads;
    head_state begin = {-INFINITY, 0.0f}, now = begin;
    if (w.accumulate && *l != 0.0f)
        begin = {*m, *l};
    own_row<PER> own;
    load_own<FORWARD, PRODUCTS>(w, t, 0, &own);
    for (int64_t piece = 0, first = 0; has_piece < EDGES && PRODUCTS > (w, piece, first);
         piece += LANES * PER, first += LANES * SHARE) {
        float sum[PER], numbers[SHARE];
        load_sums(w, t, piece, z, sum);
        if (EDGES && PRODUCTS)
            load_features(w, t, first, b, numbers);
        now = begin;
        meet_row<PRODUCTS, EDGES>(w, t, piece, first, &own, &now, sum, numbers);
        store_sums(w, t, piece, sum, z);
        if (EDGES && PRODUCTS)
            store_features(w, t, first, numbers, b);
    }
    __syncwarp(t.mask); /* all lanes have read m and l */
    if (t.lane == 0) {
        *m = now.m == -INFINITY ? 0.0f : now.m;
        *l = now.l;
    }
}

/* ---- Backward ---- */

/* Add to the lane's columns of C (AGAIN), or of D and E (BACK). */
template <way WAY, bool PRODUCTS, bool EDGES, int LANES, int PER>
__device__ __forceinline__ void
meet_row_back(const walk &w, const team<LANES> &t, int64_t piece, int64_t features,
              own_row<PER> *own, float (&first)[PER], float (&second)[PER], float (&numbers)[SHARE])
{
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t end = w.a.row_ptr[b * w.a.rows + t.r + 1];
        for (uint32_t e = w.a.row_ptr[b * w.a.rows + t.r]; e < end;) {
            const chunk c = read_chunk(w.a, b, e, end);
            met_rows<PER> met;
            float share[STEPS] = {}, change[STEPS] = {};
            multiply<WAY, PRODUCTS, EDGES>(w, t, c, piece, own, &met, share, change);
            weigh_back<WAY>(w, t, c, share, change);
            if (WAY == AGAIN && EDGES && PRODUCTS)
                sum_features(w, t, c, features, change, numbers);
#pragma unroll
            for (int i = 0; i < STEPS; i++)
#pragma unroll
                for (int k = 0; k < PER; k++) {
                    const float x = own->first[k] + met.first[i][k],
                                slope = x > 0.0f ? 1.0f : w.pair.attention.slope;
                    first[k] = fmaf(change[i], PRODUCTS ? met.first[i][k] : slope, first[k]);
                    if (WAY == BACK)
                        second[k] = fmaf(share[i], met.second[i][k], second[k]);
                }
            e += (uint32_t)c.count;
        }
    }
}

template <way WAY, bool PRODUCTS, bool EDGES, int LANES, int PER>
__global__ void __launch_bounds__(THREADS) backward(walk w)
{
    const team<LANES> t(w);
    if (t.r >= w.a.rows)
        return;
    constexpr bool NUMBERS = WAY == AGAIN && EDGES && PRODUCTS;
    float *const row = sl_pair_row_at(w.out, t.r) + t.column,
                 *const behind = row + sl_pair_all_of(w.pair),
                 *const a = sl_pair_row_at(w.out, t.r) + sl_pair_all_of(w.pair);
    own_row<PER> own;
    load_own<WAY, PRODUCTS>(w, t, 0, &own);
    for (int64_t piece = 0, features = 0; has_piece<NUMBERS>(w, piece, features);
         piece += LANES * PER, features += LANES * SHARE) {
        float first[PER], second[PER] = {}, numbers[SHARE];
        load_sums(w, t, piece, row, first);
        if (WAY == BACK)
            load_sums(w, t, piece, behind, second);
        if (NUMBERS)
            load_features(w, t, features, a, numbers);
        meet_row_back<WAY, PRODUCTS, EDGES>(w, t, piece, features, &own, first, second, numbers);
        if (NUMBERS)
            store_features(w, t, features, numbers, a);
        store_sums(w, t, piece, first, row);
        if (WAY == BACK)
            store_sums(w, t, piece, second, behind);
    }
}

/* ---- Launches of the walks ---- */

template <way WAY, bool PRODUCTS, bool EDGES> struct walks {
    template <int LANES, int PER> static void (*kernel())(walk)
    {
        if constexpr (WAY == FORWARD)
            return forward<PRODUCTS, EDGES, LANES, PER>;
        else
            return backward<WAY, PRODUCTS, EDGES, LANES, PER>;
    }
};

template <way WAY> void launch_walk(const char *name, const walk &w, cudaStream_t stream)
{
    if (w.a.rows == 0)
        return;
    if (w.pair.products && w.pair.edges)
        launch_teams<walks<WAY, true, true>>(name, w, w.a.rows, stream);
    else if (w.pair.products)
        launch_teams<walks<WAY, true, false>>(name, w, w.a.rows, stream);
    else if (w.pair.edges)
        launch_teams<walks<WAY, false, true>>(name, w, w.a.rows, stream);
    else
        launch_teams<walks<WAY, false, false>>(name, w, w.a.rows, stream);
}

} // namespace

extern "C" void sl_cuda_pair(const struct sl_pair *pair, const struct sl_sparse *a,
                             const struct sl_floats_at *vectors_at,
                             const struct sl_floats_at *source, const struct sl_floats_at *target,
                             bool accumulate, const struct sl_floats_at *state,
                             struct sl_cuda_queue queue)
{
    walk w = walk_of_targets(pair, a, vectors_at, source, target, nullptr);
    w.accumulate = accumulate;
    w.out = *state;
    launch_walk<FORWARD>("pair", w, queue.stream);
}

extern "C" void sl_cuda_pair_again(const struct sl_pair *pair, const struct sl_sparse *a,
                                   const struct sl_floats_at *vectors_at,
                                   const struct sl_floats_at *source,
                                   const struct sl_floats_at *target,
                                   const struct sl_floats_at *gradient_at, bool accumulate,
                                   const struct sl_floats_at *target_back, bool edge_accumulate,
                                   const struct sl_floats_at *edge_back, struct sl_cuda_queue queue)
{
    walk w = walk_of_targets(pair, a, vectors_at, source, target, gradient_at);
    w.accumulate = accumulate;
    w.out = *target_back;
    launch_walk<AGAIN>("pair_again", w, queue.stream);
    if (edge_back)
        sl_cuda_pair_edge_sums(pair, a, vectors_at, source, target, gradient_at, edge_accumulate,
                               edge_back, queue);
}

extern "C" void sl_cuda_pair_back(const struct sl_pair *pair, const struct sl_sparse *at,
                                  const struct sl_floats_at *vectors_at,
                                  const struct sl_floats_at *gradient_at,
                                  const struct sl_floats_at *target,
                                  const struct sl_floats_at *source, bool accumulate,
                                  const struct sl_floats_at *source_back,
                                  struct sl_cuda_queue queue)
{
    walk w = {};
    w.pair = *pair;
    w.a = *at;
    w.vectors = *vectors_at;
    w.own_first = *source;
    w.own_second = values_of(pair, source);
    w.met_first = *target;
    w.met_second = *gradient_at;
    w.own_vertex = sl_pair_source(pair) - 1;
    w.met_vertex = sl_pair_all(pair) + pair->attention.heads;
    w.accumulate = accumulate;
    w.out = *source_back;
    launch_walk<BACK>("pair_back", w, queue.stream);
}

/* ---- Tasks ---- */

extern "C" void pair_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = sl_pair_floats(buffers[1]), source = sl_pair_floats(buffers[2]),
                       target = sl_pair_floats(buffers[3]), state = sl_pair_floats(buffers[4]);
    sl_cuda_pair(&arg->pair, &a, &vectors_at, &source, &target, arg->accumulate, &state,
                 sl_cuda_task_queue());
}

extern "C" void pair_again_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = sl_pair_floats(buffers[1]), source = sl_pair_floats(buffers[2]),
                       target = sl_pair_floats(buffers[3]),
                       gradient_at = sl_pair_floats(buffers[4]),
                       edge_back = sl_pair_floats(buffers[5]),
                       target_back = sl_pair_floats(buffers[5 + arg->has_edge_back]);
    sl_cuda_pair_again(&arg->pair, &a, &vectors_at, &source, &target, &gradient_at, arg->accumulate,
                       &target_back, arg->edge_accumulate,
                       arg->has_edge_back ? &edge_back : nullptr, sl_cuda_task_queue());
}

extern "C" void pair_back_cuda(void *buffers[], void *argument)
{
    const pair_argument *arg = (const pair_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at vectors_at = sl_pair_floats(buffers[1]),
                       gradient_at = sl_pair_floats(buffers[2]),
                       target = sl_pair_floats(buffers[3]), source = sl_pair_floats(buffers[4]),
                       source_back = sl_pair_floats(buffers[5]);
    sl_cuda_pair_back(&arg->pair, &at, &vectors_at, &gradient_at, &target, &source, arg->accumulate,
                      &source_back, sl_cuda_task_queue());
}
