/* Sparse features on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/expand.h"
#include "codelets/features.h"
}

/* The entries' dropout, if there is any. */
struct dropping {
    const struct sl_dropout *drop;
    std::vector<uint32_t> vertex;
};

static void launch_features(const sparse &a, const device_sparse &on_device, const dropping &d,
                            const array<uint32_t> &vertex, bool transposed, const device_matrix &h,
                            bool accumulate, const device_matrix &z)
{
    const struct sl_features features = {transposed,  accumulate,  &on_device.view, a.nnz(), d.drop,
                                         vertex.data, z.host.cols, h.rows(),        z.rows()};
    sl_cuda_features(&features, queue);
}

static matrix run_cpu_features(const sparse &a, const dropping &d, bool transposed, const matrix &h,
                               bool accumulate, matrix z)
{
    const struct sl_sparse view = a.view();
    stored from(h), to(z);
    const struct sl_features features = {transposed,      accumulate, &view,       a.nnz(),  d.drop,
                                         d.vertex.data(), z.cols,     from.rows(), to.rows()};
    sl_kernel_features(&features);
    return to.result();
}

static void check_expand(const sparse &a, const device_sparse &on_device,
                         const struct sl_dropout *drop, layout how, enum sl_type type)
{
    static one_in sample(13);
    if (sample.leaves_out())
        return;
    const std::vector<uint32_t> vertex = random_vertices(a.rows);
    const array<uint32_t> dvertex(vertex);
    const matrix z = of_type(type, empty_matrix(a.rows, a.cols, how, CANARY));
    const device_matrix dz(z);
    stored want(z);
    const struct sl_sparse view = a.view();
    const struct sl_rows out = dz.rows(), wanted = want.rows();
    sl_cuda_expand(&on_device.view, drop, dvertex.data, &out, queue);
    sl_kernel_expand(&view, drop, vertex.data(), &wanted);
    expect_equal("expand", dz.download(), want.result());
}

static void test_expand()
{
    const struct sl_dropout drop = some_dropout(0.3);
    each_shape([&](int64_t rows, int64_t cols, layout how) {
        for (const bool values : {false, true})
            for (const int64_t block_cols : {0, 1, 9}) {
                const sparse a =
                    random_sparse(rows, cols, 5, rows / 2, values, REALS, block_cols, values);
                const device_sparse on_device(a);
                for (const enum sl_type type : TYPES) {
                    check_expand(a, on_device, nullptr, how, type);
                    check_expand(a, on_device, &drop, how, type);
                }
            }
    });
}

static void check_features(const sparse &a, const device_sparse &on_device,
                           const struct sl_dropout *drop, bool transposed, int64_t width,
                           bool accumulate, layout how, kind k)
{
    static one_in sample(5);
    if (sample.leaves_out())
        return;
    const std::string name = std::string("features") + (transposed ? ", transposed" : "") +
                             (accumulate ? ", accumulate" : "") + (a.has_values ? ", values" : "") +
                             (drop ? ", dropout" : "");
    const int64_t rows = transposed ? a.cols : a.rows, inner = transposed ? a.rows : a.cols;
    const dropping d = {drop, random_vertices(a.rows)};
    const array<uint32_t> vertex(d.vertex);
    static one_in wide(2);
    const enum sl_type type = accumulate || wide.leaves_out() ? SL_FLOAT32 : SL_BFLOAT16;
    const matrix h =
        of_type(transposed ? type : SL_FLOAT32, random_matrix(inner, width, how, NONE, k));
    const matrix z = of_type(transposed ? SL_FLOAT32 : type,
                             accumulate ? random_matrix(rows, width, other(how), CANARY, k)
                                        : empty_matrix(rows, width, other(how), CANARY));
    const device_matrix dh(h), dz(z);
    launch_features(a, on_device, d, vertex, transposed, dh, accumulate, dz);
    const matrix got = dz.download(), want = run_cpu_features(a, d, transposed, h, accumulate, z);
    if (k == INTEGERS) {
        expect_equal(name.c_str(), got, want);
    } else {
        const matrix size =
            run_cpu_features(absolute(a), d, transposed, absolute(h), accumulate, absolute(z));
        expect_close(name.c_str(), got, want, 2.0 * (double)(a.longest(transposed) + 4) * UNIT,
                     &size);
    }
}

static void check_features_options(const sparse &a, bool transposed, int64_t width, layout how,
                                   kind k)
{
    const struct sl_dropout half = some_dropout(0.5), none = some_dropout(0.0);
    const struct sl_dropout *drops[] = {nullptr, &half, &none};
    const device_sparse on_device(a);
    for (const struct sl_dropout *drop : drops)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_features(a, on_device, drop, transposed, width, accumulate, how, k);
}

/* Degree 6: a few lanes per row; 40: a warp per row. */
static void test_features()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t cols : {1, 90})
            for (int option = 0; option < 4; option++)
                for (const int64_t degree : {6, 40}) {
                    static one_in sample(31);
                    if (sample.leaves_out())
                        continue;
                    check_features_options(random_sparse(rows, cols, degree, rows / 2, option & 1,
                                                         k, option & 2 ? 37 : 0, option & 2),
                                           false, width, how, k);
                }
    });
}

static void test_features_transposed()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t inner : {0, 77})
            for (int option = 0; option < 4; option++) {
                static one_in sample(31);
                if (sample.leaves_out())
                    continue;
                check_features_options(random_sparse(inner, rows, 4, inner / 2, option & 1, k,
                                                     option & 2 ? 27 : 0, option & 2),
                                       true, width, how, k);
            }
    });
}

/* More entries at once than the list of the transposed product holds, and ranges of one row and of
 * many. */
static void test_features_transposed_lists()
{
    check_features_options(random_sparse(260, 6000, 6000, -1, true, INTEGERS), true, 5, TIGHT,
                           INTEGERS); /* full lists, one after the other */
    for (const int64_t cols : {1, 511, 513, 2000, 40000})
        for (const int64_t width : {5, 41, 128, 130}) {
            static one_in sample(7);
            if (sample.leaves_out())
                continue;
            if (cols <= 2000)
                check_features_options(random_sparse(300, cols, cols, -1, true, INTEGERS), true,
                                       width, TIGHT, INTEGERS);
            check_features_options(random_sparse(60, cols, 50, 7, true, INTEGERS), true, width,
                                   PADDED, INTEGERS);
            check_features_options(random_sparse(60, cols, 50, 7, true, INTEGERS, 1000, true), true,
                                   width, PADDED, INTEGERS);
        }
}

static void test_features_long_rows()
{
    for (int64_t length = 64; length <= 2048; length *= 2)
        for (int64_t off = -1; off <= 1; off++)
            for (const int64_t width : {1, 9, 41, 128}) {
                static one_in sample(5);
                if (sample.leaves_out())
                    continue;
                const sparse a = random_sparse(3, length + off, 0, 1, true, INTEGERS);
                for (int transposed = 0; transposed < 2; transposed++)
                    check_features_options(a, transposed, width, LOOSE, INTEGERS);
            }
}

static void test_features_no_entries()
{
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (const auto &size : sizes)
        for (int transposed = 0; transposed < 2; transposed++)
            check_features_options(random_sparse(size[0], size[1], 0, -1, true, INTEGERS),
                                   transposed, 17, TIGHT, INTEGERS);
}

/* NaN reaches exactly the results that it is a term of. */
static void test_features_nan()
{
    const sparse a = random_sparse(23, 19, 5, 2, true, INTEGERS, 8, true);
    const device_sparse on_device(a);
    const dropping none = {nullptr, random_vertices(23)};
    const array<uint32_t> vertex(none.vertex);
    for (int transposed = 0; transposed < 2; transposed++)
        for (int how = 0; how < LAYOUTS; how++) {
            matrix h = random_matrix(transposed ? 23 : 19, 21, (layout)how, NONE, INTEGERS);
            h(0, 3) = h(4, 20) = NONE;
            const matrix z = empty_matrix(transposed ? 19 : 23, 21, (layout)how, CANARY);
            const device_matrix dh(h), dz(z);
            launch_features(a, on_device, none, vertex, transposed, dh, false, dz);
            expect_equal("features of NaN", dz.download(),
                         run_cpu_features(a, none, transposed, h, false, z));
        }
}

static void test_features_same_bits()
{
    const struct sl_dropout drop = some_dropout(0.3);
    const dropping d = {&drop, random_vertices(61)};
    const array<uint32_t> vertex(d.vertex);
    for (const int64_t width : widths)
        for (int option = 0; option < 8; option++) {
            static one_in sample(29);
            if (sample.leaves_out())
                continue;
            const bool transposed = option & 1, accumulate = option & 2;
            const sparse a = random_sparse(61, 1200, option & 4 ? 9 : 70, 5, true, REALS);
            const device_sparse on_device(a);
            const matrix h = random_matrix(transposed ? 61 : 1200, width, TIGHT, NONE, REALS),
                         z = random_matrix(transposed ? 1200 : 61, width, TIGHT, CANARY, REALS);
            matrix first;
            for (int how = 0; how < 2 * LAYOUTS; how++) {
                const device_matrix dh(moved(h, (layout)(how % LAYOUTS), NONE)),
                    dz(moved(z, (layout)(how % LAYOUTS), CANARY));
                launch_features(a, on_device, d, vertex, transposed, dh, accumulate, dz);
                if (how == 0)
                    first = dz.download();
                else
                    expect_same_bits(transposed ? "features, transposed" : "features", first,
                                     dz.download());
            }
        }
}

const std::vector<test> features_tests = {
    {"expand", test_expand},
    {"features", test_features},
    {"features, transposed", test_features_transposed},
    {"features, transposed, lists", test_features_transposed_lists},
    {"features, same bits", test_features_same_bits},
    {"features, long rows", test_features_long_rows},
    {"features, no entries", test_features_no_entries},
    {"features, NaN", test_features_nan},
};
