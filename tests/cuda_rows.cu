/* Operations by element and by row, and random numbers, on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/accumulate.h"
#include "codelets/bias.h"
#include "codelets/dropout.h"
#include "codelets/init.h"
#include "codelets/pack_rows.h"
#include "codelets/paste.h"
#include "codelets/record.h"
}

/* ---- Elementwise and row operations ---- */

static void check_bias_gradient(int64_t rows, int64_t cols, bool has_factor, layout how, kind k)
{
    static one_in wide(2);
    const matrix g = of_type(wide.leaves_out() ? SL_FLOAT32 : SL_BFLOAT16,
                             random_matrix(rows, cols, how, NONE, k)),
                 factor = random_matrix(1, rows, TIGHT, NONE, k);
    matrix want = empty_matrix(1, cols, TIGHT, CANARY), size = want;
    const device_matrix dg(g), df(factor), first(want), again(want);
    const float *const on_device = has_factor ? df.at : nullptr;
    const struct sl_rows from = dg.rows();
    sl_cuda_bias_gradient(rows, cols, on_device, &from, first.at, queue);
    sl_cuda_bias_gradient(rows, cols, on_device, &from, again.at, queue);
    stored host(g), positive(absolute(g));
    const struct sl_rows own = host.rows(), own_positive = positive.rows();
    const matrix positive_factor = absolute(factor);
    sl_kernel_bias_gradient(rows, cols, has_factor ? factor.at() : nullptr, &own, want.at());
    sl_kernel_bias_gradient(rows, cols, has_factor ? positive_factor.at() : nullptr, &own_positive,
                            size.at());
    if (k == INTEGERS)
        expect_equal("bias gradient", first.download(), want);
    else
        expect_close("bias gradient", first.download(), want, 2.0 * (double)(rows + 1) * UNIT,
                     &size);
    expect_same_bits("bias gradient", first.download(), again.download());
}

/* Also more chunks than one launch sums, and more columns than are cut into chunks. */
static void test_bias_gradient()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const bool has_factor : {false, true})
            check_bias_gradient(rows, cols, has_factor, how, how == TIGHT ? REALS : INTEGERS);
    });
    static const int64_t sizes[][2] = {{50000, 41},  {40000, 1},  {5000, 602},
                                       {130, 40000}, {66, 70000}, {33000, 16}};
    for (const auto &size : sizes)
        for (int how = 0; how < LAYOUTS; how++) {
            static one_in sample(3);
            if (!sample.leaves_out())
                check_bias_gradient(size[0], size[1], how % 2, (layout)how, INTEGERS);
        }
}

static void test_accumulate()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const layout to : {how, other(how)}) { /* both without padding: one long row */
            const matrix x = random_matrix(rows, cols, how, NONE, REALS);
            matrix want = random_matrix(rows, cols, to, CANARY, REALS);
            const device_matrix dx(x), dy(want);
            sl_cuda_accumulate(rows, cols, dx.at, dx.ld, dy.at, dy.ld, queue);
            sl_kernel_accumulate(rows, cols, x.at(), x.ld, want.at(), want.ld);
            expect_equal("accumulate", dy.download(), want);
        }
    });
}

static void test_add_scaled()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (int option = 0; option < 8; option++) {
            static one_in sample(5);
            if (sample.leaves_out())
                continue;
            const matrix x = of_type(TYPES[option % 2],
                                     random_matrix(rows, cols, how, NONE, REALS)),
                         factor = random_matrix(1, rows, TIGHT, NONE, REALS);
            stored want(of_type(TYPES[option / 2 % 2],
                                random_matrix(rows, cols, other(how), CANARY, REALS)));
            stored host(x);
            matrix size = want.floats;
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < cols; j++)
                    size(r, j) = std::fabs(size(r, j)) + std::fabs(x(r, j));
            const device_matrix dx(x), df(factor), dy(want.floats);
            const struct sl_rows from = host.rows(), to = want.rows(), dfrom = dx.rows(),
                                 dto = dy.rows();
            const bool has_factor = option / 4;
            sl_cuda_add_scaled(rows, cols, 0.3f, has_factor ? df.at : nullptr, &dfrom, &dto, queue);
            sl_kernel_add_scaled(rows, cols, 0.3f, has_factor ? factor.at() : nullptr, &from, &to);
            expect_close("add_scaled", dy.download(), want.result(), 4.0 * UNIT, &size);
        }
    });
}

static void test_copy()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const layout to : {how, other(how)}) {
            const matrix x = random_matrix(rows, cols, how, NONE, REALS),
                         y = empty_matrix(rows, cols, to, CANARY);
            const device_matrix dx(x), dy(y);
            sl_cuda_copy(rows, cols, dx.at, dx.ld, dy.at, dy.ld, queue);
            expect_equal("copy", dy.download(), moved(x, to, CANARY));
        }
    });
}

static void test_copy_if_best()
{
    const array<double> best(std::vector<double>{0.7, 4.0});
    each_shape([&](int64_t rows, int64_t cols, layout how) {
        const matrix x = random_matrix(rows, cols, how, NONE, REALS),
                     y = random_matrix(rows, cols, other(how), CANARY, REALS);
        const device_matrix dx(x), dy(y);
        const struct sl_rows from = dx.rows(), to = dy.rows();
        sl_cuda_copy_if_best(rows, cols, best.data, 3, &from, &to, queue);
        expect_equal("copy if best, another epoch", dy.download(), y);
        sl_cuda_copy_if_best(rows, cols, best.data, 4, &from, &to, queue);
        expect_equal("copy if best", dy.download(), moved(x, other(how), CANARY));
    });
}

static void test_paste()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const layout to : {how, other(how)}) {
            const matrix x = random_matrix(rows, cols, how, NONE, REALS),
                         y = empty_matrix(rows, cols, to, CANARY);
            const device_matrix dx(x), dy(y);
            const struct sl_rows from = sl_float_rows(dx.at, dx.ld),
                                 out = sl_float_rows(dy.at, dy.ld);
            sl_cuda_paste(rows, cols, &from, &out, queue);
            expect_equal("paste", dy.download(), moved(x, to, CANARY));
        }
    });
}

static void test_metrics_add()
{
    std::vector<double> x(SL_METRICS), y(SL_METRICS);
    for (int i = 0; i < SL_METRICS; i++) {
        x[(size_t)i] = 1.0 / (1 + i);
        y[(size_t)i] = i * 0.3;
    }
    const array<double> dx(x), dy(y);
    sl_cuda_metrics_add(SL_METRICS, dx.data, dy.data, queue);
    const std::vector<double> got = dy.download();
    for (size_t i = 0; i < x.size(); i++)
        expect(got[i] == x[i] + y[i], "metrics_add");
}

static void test_fill()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const enum sl_type type : TYPES) {
            matrix want = of_type(type, empty_matrix(rows, cols, how, CANARY));
            const device_matrix dw(want);
            const struct sl_rows out = dw.rows();
            sl_cuda_fill(rows, cols, 2.5f, &out, queue);
            sl_kernel_fill(rows, cols, 2.5f, want.at(), want.ld);
            expect_equal("fill", dw.download(), want);
        }
    });
}

/* Longer than the grid of one launch reaches. */
static void test_fill_large()
{
    static const int64_t sizes[][2] = {{8, 2100001}, {3, 30000001}};
    for (const auto &size : sizes) {
        static one_in sample(2);
        if (sample.leaves_out_in_software())
            continue;
        matrix want = empty_matrix(size[0], size[1], size[0] == 8 ? LOOSE : TIGHT, CANARY);
        const device_matrix dw(want);
        const struct sl_rows out = dw.rows();
        sl_cuda_fill(size[0], size[1], 1.5f, &out, queue);
        sl_kernel_fill(size[0], size[1], 1.5f, want.at(), want.ld);
        expect_equal("large fill", dw.download(), want);
    }
}

/* Copied, or rounded once: equal, not close. */
static void check_pack_rows(int64_t rows, int64_t cols, layout how, enum sl_type type)
{
    std::vector<uint32_t> index((size_t)rows);
    for (uint32_t &i : index)
        i = (uint32_t)random_below(33);
    const matrix x = of_type(type, random_matrix(33, cols, how, NONE, REALS)),
                 y = of_type(type, empty_matrix(rows, cols, other(how), CANARY));
    const array<uint32_t> di(index);
    const device_matrix dx(x), dy(y);
    stored from(x), want(y);
    const struct sl_rows dfrom = dx.rows(), dto = dy.rows(), hfrom = from.rows(), hto = want.rows();
    sl_cuda_pack_rows(rows, cols, di.data, &dfrom, &dto, queue);
    sl_kernel_pack_rows(rows, cols, index.data(), &hfrom, &hto);
    expect_equal("pack rows", dy.download(), want.result());
}

/* No row twice. */
static void check_unpack_rows(int64_t rows, int64_t cols, layout how, enum sl_type type,
                              bool accumulate)
{
    std::vector<uint32_t> index((size_t)rows + 5);
    for (size_t i = 0; i < index.size(); i++) {
        const size_t at = (size_t)random_below((int64_t)i + 1);
        index[i] = index[at];
        index[at] = (uint32_t)i;
    }
    const matrix x = of_type(type, random_matrix(rows, cols, how, NONE, REALS)),
                 y = of_type(type, random_matrix(rows + 5, cols, other(how), CANARY, REALS));
    const array<uint32_t> di(index);
    const device_matrix dx(x), dy(y);
    stored from(x), want(y);
    const struct sl_rows dfrom = dx.rows(), dto = dy.rows(), hfrom = from.rows(), hto = want.rows();
    sl_cuda_unpack_rows(rows, cols, di.data, accumulate, &dfrom, &dto, queue);
    sl_kernel_unpack_rows(rows, cols, index.data(), accumulate, &hfrom, &hto);
    expect_equal("unpack rows", dy.download(), want.result());
}

static void test_pack_rows()
{
    for (const enum sl_type type : {SL_FLOAT32, SL_BFLOAT16}) {
        each_shape([type](int64_t rows, int64_t cols, layout how) {
            check_pack_rows(rows, cols, how, type);
            for (const bool accumulate : {false, true})
                check_unpack_rows(rows, cols, how, type, accumulate);
        });
        check_pack_rows(70000, 64, PADDED, type);
        check_unpack_rows(70000, 41, PADDED, type, true);
    }
    check_pack_rows(1050000, 16, LOOSE, SL_FLOAT32); /* more elements than a grid has threads */
}

/* ---- Random numbers and dropout ---- */

static void test_glorot()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
        matrix want = empty_matrix(rows, cols, how, CANARY);
        const device_matrix dw(want);
        const struct sl_rows to = dw.rows();
        sl_cuda_glorot(rows, cols, 0.37f, key, 17, 5, &to, queue);
        sl_kernel_glorot(rows, cols, 0.37f, key, 17, 5, want.at(), want.ld);
        expect_equal("glorot", dw.download(), want);
    });
}

static void check_dropout(int64_t rows, int64_t cols, layout how, double p, uint32_t column0)
{
    const struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(3, SL_RNG_DROPOUT, 8, 1));
    const std::vector<uint32_t> vertex = random_vertices(rows);
    const array<uint32_t> dvertex(vertex);
    for (int option = 0; option < 8; option++) {
        static one_in sample(13);
        if (sample.leaves_out())
            continue;
        const enum sl_type from = TYPES[option & 1], to = TYPES[option >> 1 & 1];
        const layout there = option & 4 ? other(how) : how;
        stored x(of_type(from, random_matrix(rows, cols, how, CANARY, REALS))),
            y(of_type(to, empty_matrix(rows, cols, there, CANARY)));
        const device_matrix dx(x.floats), dy(y.floats);
        const struct sl_rows in = dx.rows(), out = dy.rows(), want_in = x.rows(),
                             want_out = y.rows();
        sl_cuda_dropout(rows, cols, &drop, dvertex.data, column0, &in, &out, queue);
        sl_kernel_dropout(rows, cols, &drop, vertex.data(), column0, &want_in, &want_out);
        expect_equal("dropout", dy.download(), y.result());
        sl_cuda_dropout(rows, cols, &drop, dvertex.data, column0, &in, &in, queue);
        sl_kernel_dropout(rows, cols, &drop, vertex.data(), column0, &want_in, &want_in);
        expect_equal("dropout in place", dx.download(), x.result());
    }
}

static void test_dropout()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const uint32_t column : {0u, 1u, 2u, 3u, 4u, 1021u})
            check_dropout(rows, cols, how, 0.3, column);
        check_dropout(rows, cols, how, 0.0, 34);
        check_dropout(rows, cols, how, 1.0, 34);
        check_dropout(rows, cols, how, 0.5, 3999999998u);
    });
}

const std::vector<test> rows_tests = {
    {"fill", test_fill},
    {"large fill", test_fill_large},
    {"copy", test_copy},
    {"copy if best", test_copy_if_best},
    {"paste", test_paste},
    {"accumulate", test_accumulate},
    {"add_scaled", test_add_scaled},
    {"metrics_add", test_metrics_add},
    {"bias_gradient", test_bias_gradient},
    {"pack_rows, unpack_rows", test_pack_rows},
    {"glorot", test_glorot},
    {"dropout", test_dropout},
};
