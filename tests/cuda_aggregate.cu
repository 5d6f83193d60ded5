/* The aggregation primitive on a GPU. */
#include "tests/cuda_kernels.h"

/* Powers of two beside integers: every result is exact, whatever the order and the rounding. */
static matrix edge_features(int64_t entries, int64_t width)
{
    matrix m = empty_matrix(entries, width, width > 1 ? LOOSE : EDGE, NONE);
    for (int64_t e = 0; e < entries; e++)
        for (int64_t j = 0; j < width; j++)
            m(e, j) = (float)(1 << random_below(3)) * (random_below(2) ? 1.0f : -1.0f);
    return m;
}

static void expect_equal_args(const std::vector<int32_t> &got, const std::vector<int32_t> &want)
{
    expect(got == want, "aggregate: other vertices than on the CPU");
}

/* Forward on top of what is there, then both gradients. */
static void check_aggregate(const sparse &a, enum sl_message operation, enum sl_reduce reducer,
                            bool edge_rows, int64_t width, layout how, enum sl_type type)
{
    static one_in sample(7);
    if (sample.leaves_out())
        return;
    enum { FIRST = 100 };
    const bool sums = reducer == SL_REDUCE_SUM;
    const device_sparse on_device(a);
    const struct sl_sparse view = a.view();
    const matrix edges = edge_features(a.nnz(), edge_rows ? width : 1);
    const device_matrix dedges(edges);
    const int64_t ld = edge_rows ? edges.ld : 0;
    const struct sl_messages here = {operation, edges.at(), ld}, there = {operation, dedges.at, ld};
    const matrix h = of_type(type, random_matrix(a.cols, width, how, NONE, INTEGERS));
    const matrix before = of_type(sums ? SL_FLOAT32 : type,
                                  random_matrix(a.rows, width, other(how), CANARY, INTEGERS));
    stored host_h(h), z(before);
    const device_matrix dh(h), dz(before);
    const struct sl_rows from = host_h.rows(), to = z.rows(), dfrom = dh.rows(), dto = dz.rows();
    std::vector<int32_t> arg((size_t)(a.rows * width), -1);
    for (int32_t &vertex : arg)
        vertex = (int32_t)random_below(2 * FIRST) - 1;
    std::vector<int32_t> number((size_t)std::max(a.rows, a.cols));
    for (int32_t &vertex : number)
        vertex = (int32_t)random_below(2 * FIRST);
    const array<int32_t> dnumber(number), darg(arg);
    const struct sl_numbering run = {FIRST, nullptr}, listed = {0, number.data()},
                              dlisted = {0, dnumber.data};
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_aggregate(reducer, &there, &on_device.view, width, &dfrom, accumulate, &dto,
                          accumulate ? &dlisted : &run, sums ? nullptr : darg.data, width, stream);
        sl_kernel_aggregate(reducer, &here, &view, width, &from, accumulate, &to,
                            accumulate ? &listed : &run, sums ? nullptr : arg.data(), width);
        expect_equal("aggregate", dz.download(), z.result());
        expect_equal_args(darg.download(), arg);
    }
    if (type != SL_FLOAT32)
        return;
    const matrix g = random_matrix(a.rows, width, PADDED, NONE, INTEGERS);
    const device_matrix dg(g);
    if (operation != SL_MESSAGE_COPY) {
        matrix de = empty_matrix(a.nnz(), edge_rows ? width : 1, edge_rows ? PADDED : EDGE, CANARY);
        const device_matrix dde(de);
        sl_cuda_aggregate_edges(&there, &on_device.view, width, dh.at, dh.ld, dg.at, dg.ld, &run,
                                sums ? nullptr : darg.data, width, dde.at, dde.ld, stream);
        sl_kernel_aggregate_edges(&here, &view, width, h.at(), h.ld, g.at(), g.ld, &run,
                                  sums ? nullptr : arg.data(), width, de.at(), de.ld);
        expect_equal("aggregate_edges", dde.download(), de);
    }
    /* Any matrix will do for the transpose: G has the rows that it meets. */
    const matrix back = random_matrix(a.cols, width, TIGHT, NONE, INTEGERS);
    std::vector<int32_t> chosen((size_t)(a.cols * width));
    for (int32_t &vertex : chosen)
        vertex = random_below(2) ? number[(size_t)random_below(a.rows)]
                                 : FIRST + (int32_t)random_below(a.rows + 1);
    matrix result = random_matrix(a.rows, width, how, CANARY, INTEGERS);
    const device_matrix dback(back), dresult(result);
    const array<int32_t> dchosen(chosen);
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_aggregate_back(&there, &on_device.view, width, dback.at, dback.ld,
                               accumulate ? &dlisted : &run, sums ? nullptr : dchosen.data, width,
                               accumulate, dresult.at, dresult.ld, stream);
        sl_kernel_aggregate_back(&here, &view, width, back.at(), back.ld,
                                 accumulate ? &listed : &run, sums ? nullptr : chosen.data(), width,
                                 accumulate, result.at(), result.ld);
        expect_equal("aggregate_back", dresult.download(), result);
    }
}

static void test_aggregate()
{
    random_state = 11;
    for (int operation = 0; operation < SL_MESSAGES; operation++)
        for (int reducer = 0; reducer < SL_REDUCERS; reducer++)
            for (int option = 0; option < 16; option++)
                for (const int64_t width : {1, 33, 64, 130}) {
                    const sparse a = random_sparse(option & 4 ? 129 : 5, 47, 6, 2, false, INTEGERS,
                                                   option & 2 ? 11 : 0, option & 1);
                    check_aggregate(a, (enum sl_message)operation, (enum sl_reduce)reducer,
                                    operation != SL_MESSAGE_COPY && option & 1, width,
                                    (layout)(option % LAYOUTS), TYPES[option / 8]);
                }
}

static void test_merge_largest()
{
    random_state = 12;
    for (int option = 0; option < 8; option++)
        for (const int64_t width : {1, 33, 130}) {
            const int64_t rows = 57;
            const bool listed = option & 1;
            const enum sl_type type = TYPES[option / 4];
            const matrix x = of_type(type, random_matrix(rows, width, (layout)(option % LAYOUTS),
                                                         NONE, INTEGERS)),
                         before =
                             of_type(type, random_matrix(rows, width, LOOSE, CANARY, INTEGERS));
            stored host_x(x), z(before);
            const device_matrix dx(x), dz(before);
            const struct sl_rows sent = host_x.rows(), to = z.rows(), dsent = dx.rows(),
                                 dto = dz.rows();
            std::vector<int32_t> from((size_t)(rows * width)), arg(from.size());
            std::vector<uint32_t> index((size_t)rows);
            for (size_t i = 0; i < from.size(); i++) {
                from[i] = (int32_t)random_below(6) - 1;
                arg[i] = (int32_t)random_below(6) - 1;
            }
            for (int64_t r = 0; r < rows; r++)
                index[(size_t)r] = (uint32_t)((7 * r + 3) % rows);
            const array<int32_t> dfrom(from), darg(arg);
            const array<uint32_t> dindex(index);
            sl_cuda_merge_largest(rows, width, listed ? dindex.data : nullptr, &dsent, dfrom.data,
                                  width, &dto, darg.data, width, stream);
            sl_kernel_merge_largest(rows, width, listed ? index.data() : nullptr, &sent,
                                    from.data(), width, &to, arg.data(), width);
            expect_equal("merge_largest", dz.download(), z.result());
            expect_equal_args(darg.download(), arg);
        }
}

const std::vector<test> aggregate_tests = {
    {"aggregate", test_aggregate},
    {"merge_largest", test_merge_largest},
};
