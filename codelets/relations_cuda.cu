/* The aggregation of relational graph convolutions on a GPU. For each relation, a launch gathers
 * the sums over neighbours of some rows into the workspace, and cuBLAS multiplies them. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/gemm.h"
#include "codelets/init.h"
#include "codelets/relations.h"
}

namespace
{

enum { THREADS = 256 };

/* Rows of A or Aᵀ from `first` on, whose entries meet rows of MET, `width` wide. */
struct walk {
    sl_sparse a;
    sl_floats_at met;
    int64_t width, first, rows;
    float *z; // (rows, width)
};

/* Z(i) = Σ_e factor(e) · MET(col(e)) over the entries of the row that have the relation. */
template <int V> __global__ void __launch_bounds__(THREADS) gather(walk w, float relation)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y,
                  j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V;
    if (i >= w.rows || j >= w.width)
        return;
    sl_cuda_vector<V> sum = {};
    for (int64_t b = 0; b < w.a.blocks; b++) {
        const uint32_t *const row_ptr = w.a.row_ptr + b * w.a.rows + w.first + i;
        for (uint32_t e = row_ptr[0]; e < row_ptr[1]; e++) {
            const float *const feature = w.a.edge + (int64_t)e * SL_RELATION_FEATURES;
            if (feature[SL_RELATION] != relation)
                continue;
            const int64_t c = b * w.a.block_cols + sl_cuda_sparse_col(w.a.col, w.a.narrow, e);
            const sl_cuda_vector<V> x = sl_cuda_load<V>(w.met.data + c * w.met.ld + j, w.width - j);
#pragma unroll
            for (int v = 0; v < V; v++)
                sum.at[v] = fmaf(feature[SL_RELATION_FACTOR], x.at[v], sum.at[v]);
        }
    }
    sl_cuda_store<V>(w.z + i * w.width + j, sum, w.width - j);
}

void gather_relation(const walk &w, int64_t relation, struct sl_cuda_queue queue)
{
    const bool four = w.width % 4 == 0 && sl_cuda_aligned(w.a.cols, w.met.data, w.met.ld);
    unsigned across = 1;
    while (across < 32 && (four ? 4 : 1) * (int64_t)across < w.width)
        across *= 2;
    const dim3 block(across, THREADS / across),
        grid((unsigned)sl_cuda_divide_up(w.rows, block.y),
             (unsigned)sl_cuda_divide_up(w.width, (int64_t)across * (four ? 4 : 1)));
    if (four)
        sl_cuda_launch("relations", gather<4>, grid, block, 0, queue.stream, w, (float)relation);
    else
        sl_cuda_launch("relations", gather<1>, grid, block, 0, queue.stream, w, (float)relation);
}

sl_rows rows_from(const sl_floats_at &of, int64_t row)
{
    return sl_float_rows(of.data + row * of.ld, of.ld);
}

void clear(int64_t rows, int64_t cols, const sl_floats_at &of, struct sl_cuda_queue queue)
{
    const sl_rows at = rows_from(of, 0);
    sl_cuda_fill(rows, cols, 0.0f, &at, queue);
}

/* Run `multiply` on the gathered rows of each relation, for as many rows at a time as the workspace
 * holds. */
template <class Multiply>
void each_relation(const sl_sparse &a, const sl_relations &r, const sl_floats_at &met,
                   int64_t width, struct sl_cuda_queue queue, Multiply multiply)
{
    const int64_t room = SL_RUNTIME_WORKSPACE / (int64_t)sizeof(float) / width;
    walk w = {a, met, width, 0, 0, (float *)queue.workspace};
    if (a.blocks == 0)
        return;
    for (; w.first < a.rows; w.first += w.rows) {
        w.rows = a.rows - w.first < room ? a.rows - w.first : room;
        for (int64_t k = 0; k < r.relations; k++) {
            gather_relation(w, k, queue);
            multiply(w, k);
        }
    }
}

} // namespace

extern "C" void sl_cuda_relations(const struct sl_sparse *a, const struct sl_relations *relations,
                                  const struct sl_floats_at *x, bool accumulate,
                                  const struct sl_floats_at *out, struct sl_cuda_queue queue)
{
    const sl_relations r = *relations;
    if (!accumulate)
        clear(a->rows, r.out, *out, queue);
    each_relation(*a, r, *x, r.in, queue, [&](const walk &w, int64_t k) {
        struct sl_gemm product = {};
        product.accumulate = true;
        product.tf32 = r.tf32;
        product.m = w.rows;
        product.n = r.out;
        product.k = r.in;
        product.a = sl_float_rows(w.z, r.in);
        product.b = rows_from(r.weight, k * r.in);
        product.c = rows_from(*out, w.first);
        sl_cuda_gemm(&product, queue);
    });
}

extern "C" void sl_cuda_relations_back(const struct sl_sparse *at,
                                       const struct sl_relations *relations,
                                       const struct sl_relations_back *of,
                                       struct sl_cuda_queue queue)
{
    const sl_relations r = *relations;
    if (!of->weight_accumulate)
        clear(r.relations * r.in, r.out, of->weight_back, queue);
    if (of->back && !of->accumulate)
        clear(at->rows, r.in, *of->back, queue);
    each_relation(*at, r, of->g, r.out, queue, [&](const walk &w, int64_t k) {
        struct sl_gemm product = {};
        product.transpose_a = product.accumulate = true;
        product.tf32 = r.tf32;
        product.m = r.in;
        product.n = r.out;
        product.k = w.rows;
        product.a = rows_from(of->x, w.first);
        product.b = sl_float_rows(w.z, r.out);
        product.c = rows_from(of->weight_back, k * r.in);
        sl_cuda_gemm(&product, queue);
        if (!of->back)
            return;
        product.transpose_a = false;
        product.transpose_b = true;
        product.m = w.rows;
        product.n = r.in;
        product.k = r.out;
        product.a = sl_float_rows(w.z, r.out);
        product.b = rows_from(r.weight, k * r.in);
        product.c = rows_from(*of->back, w.first);
        sl_cuda_gemm(&product, queue);
    });
}

/* ---- Tasks ---- */

extern "C" void relations_cuda(void *buffers[], void *argument)
{
    const relations_argument *arg = (const relations_argument *)argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at x = sl_floats_buffer(buffers[1]), out = sl_floats_buffer(buffers[3]);
    const struct sl_relations relations =
        sl_relations_of(arg, sl_dense_buffer(buffers[1]).cols, sl_dense_buffer(buffers[3]).cols,
                        sl_floats_buffer(buffers[2]));
    sl_cuda_relations(&a, &relations, &x, arg->accumulate, &out, sl_cuda_task_queue());
}

extern "C" void relations_back_cuda(void *buffers[], void *argument)
{
    const relations_argument *arg = (const relations_argument *)argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const sl_floats_at back = sl_floats_buffer(buffers[4 + arg->has_back]);
    const struct sl_relations relations =
        sl_relations_of(arg, sl_dense_buffer(buffers[2]).cols, sl_dense_buffer(buffers[1]).cols,
                        sl_floats_buffer(buffers[3]));
    const struct sl_relations_back of = {
        sl_floats_buffer(buffers[1]),    sl_floats_buffer(buffers[2]),
        arg->has_back ? &back : nullptr, arg->accumulate,
        arg->weight_accumulate,          sl_floats_buffer(buffers[4])};
    sl_cuda_relations_back(&at, &relations, &of, sl_cuda_task_queue());
}
