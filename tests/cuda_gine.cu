/* The aggregation of GINE on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/gine.h"
}

static matrix units(int64_t rows, int64_t cols, layout how, float unit, float more)
{
    matrix m = empty_matrix(rows, cols, how, NONE);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = unit * (float)((int)random_below(17) - 8) + more;
    return m;
}

static struct sl_sparse with_features(struct sl_sparse view, int64_t features, const float *edge)
{
    view.value = nullptr;
    view.edge_features = features;
    view.edge = edge;
    return view;
}

/* Sums are exact in any order and never near the kink of relu, as in test_kernels_gine.c. Any
 * matrix will do for the transpose: X has its rows, G the rows that it meets. */
static void check_gine(const sparse &a, int64_t cols, int64_t features, layout how)
{
    matrix x = units(a.cols, cols, how, 0x1p-2f, 0x1p-7f),
           own = units(a.rows, cols, how, 0x1p-2f, 0x1p-7f),
           edge = units(features + 1, cols, other(how), 0x1p-3f, 0.0f),
           g = random_matrix(a.cols, cols, how, NONE, INTEGERS),
           out = random_matrix(a.rows, cols, other(how), CANARY, INTEGERS), back = out,
           edge_back = random_matrix(features + 1, cols, how, CANARY, INTEGERS),
           numbers = units(a.nnz(), features, TIGHT, 0x1p-3f, 0.0f);
    const std::vector<float> feature(numbers.at(), numbers.at() + a.nnz() * features);
    const device_sparse there(a);
    const array<float> dfeature(feature);
    const device_matrix dx(x), down(own), dedge(edge), dg(g), dout(out), dback(back),
        dedge_back(edge_back);
    const struct sl_sparse view = with_features(a.view(), features, feature.data()),
                           dview = with_features(there.view, features, dfeature.data);
    const sl_floats_at from = floats(x), map = floats(edge), to = floats(out), dfrom = floats(dx),
                       dmap = floats(dedge), dto = floats(dout), rows = floats(own),
                       sent = floats(g), sum = floats(back), sums = floats(edge_back),
                       drows = floats(down), dsent = floats(dg), dsum = floats(dback),
                       dsums = floats(dedge_back);
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_gine(&dview, cols, &dfrom, &dmap, accumulate, &dto, queue);
        sl_kernel_gine(&view, cols, &from, &map, accumulate, &to);
        expect_equal("gine", dout.download(), out);
        sl_cuda_gine_back(&dview, cols, &dsent, &drows, &dmap, accumulate, &dsum, accumulate,
                          &dsums, queue);
        sl_kernel_gine_back(&view, cols, &sent, &rows, &map, accumulate, &sum, accumulate, &sums);
        expect_equal("gine_back", dback.download(), back);
        expect_equal("gine_back, EDGE", dedge_back.download(), edge_back);
    }
    sl_cuda_gine_back(&dview, cols, &dsent, &drows, &dmap, false, nullptr, true, &dsums, queue);
    sl_kernel_gine_back(&view, cols, &sent, &rows, &map, false, nullptr, true, &sums);
    expect_equal("gine_back, BACK is not wanted", dback.download(), back);
    expect_equal("gine_back, EDGE alone", dedge_back.download(), edge_back);
}

static void test_gine()
{
    static one_in some(7);
    random_state = 13;
    for (int option = 0; option < 16; option++)
        for (const int64_t cols : {1, 7, 16, 33, 64, 200})
            for (const int64_t features : {1, 3, 8, 17}) {
                if (some.leaves_out())
                    continue;
                const sparse a = random_sparse(option & 4 ? 129 : 5, 47, 6, 2, false, INTEGERS,
                                               option & 2 ? 11 : 0, option & 1);
                check_gine(a, cols, features, (layout)(option / 4));
            }
    check_gine(random_sparse(0, 9, 2, -1, false, INTEGERS), 33, 3, PADDED);
    check_gine(random_sparse(9, 7, 2, 0, false, INTEGERS), 40, SL_EDGE_FEATURES, PADDED);
}

/* The gradient of EDGE is the same to the bit at each launch, and does not depend on alignment. */
static void test_gine_alike()
{
    enum { ROWS = 3000, COLS = 20, FEATURES = 5 };
    random_state = 14;
    const sparse a = random_sparse(ROWS, 7, 2, -1, false, REALS);
    const matrix g = random_matrix(7, COLS, TIGHT, NONE, REALS),
                 x = random_matrix(ROWS, COLS, TIGHT, NONE, REALS),
                 edge = random_matrix(FEATURES + 1, COLS, TIGHT, NONE, REALS),
                 feature = random_matrix(a.nnz(), FEATURES, TIGHT, NONE, REALS);
    const device_sparse there(a);
    const array<float> dfeature(
        std::vector<float>(feature.at(), feature.at() + a.nnz() * FEATURES));
    const struct sl_sparse view = with_features(there.view, FEATURES, dfeature.data);
    matrix first = empty_matrix(FEATURES + 1, COLS, TIGHT, CANARY);
    for (const layout how : {PADDED, LOOSE, PADDED}) {
        const device_matrix dg(moved(g, how, NONE)), dx(moved(x, how, NONE)),
            dedge(moved(edge, how, NONE)), result(empty_matrix(FEATURES + 1, COLS, TIGHT, CANARY));
        const sl_floats_at met = floats(dg), own = floats(dx), map = floats(dedge),
                           to = floats(result);
        sl_cuda_gine_back(&view, COLS, &met, &own, &map, false, nullptr, false, &to, queue);
        const matrix got = result.download();
        if (std::isnan(first(0, 0)))
            first = got;
        expect_same_bits("gine_back, again", got, first);
    }
}

const std::vector<test> gine_tests = {
    {"gine", test_gine},
    {"gine_alike", test_gine_alike},
};
