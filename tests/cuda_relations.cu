/* The aggregation of relational graph convolutions on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/bases.h"
#include "codelets/relations.h"
}

/* The entries' relations and factors. Factors of INTEGERS are powers of two. */
static std::vector<float> features_of(const sparse &a, int64_t relations, kind k)
{
    static const float powers[] = {0.5f, 2.0f, -1.0f};
    std::vector<float> feature;
    for (int64_t e = 0; e < a.nnz(); e++) {
        feature.push_back((float)random_below(relations));
        feature.push_back(k == INTEGERS ? powers[random_below(3)] : random_value(k));
    }
    return feature;
}

static struct sl_sparse with_relations(struct sl_sparse view, const float *edge)
{
    view.value = nullptr;
    view.edge_features = SL_RELATION_FEATURES;
    view.edge = edge;
    return view;
}

/* Numbers are integers, so sums are exact in any order. Any matrix will do for the transpose: X has
 * its rows, G the rows that it meets. */
static void check_relations(const sparse &a, int64_t relations, int64_t in, int64_t out, layout how)
{
    matrix x = random_matrix(a.cols, in, how, NONE, INTEGERS),
           own = random_matrix(a.rows, in, other(how), NONE, INTEGERS),
           weight = random_matrix(relations * in, out, other(how), NONE, INTEGERS),
           g = random_matrix(a.cols, out, how, NONE, INTEGERS),
           sums = random_matrix(a.rows, out, other(how), CANARY, INTEGERS),
           back = random_matrix(a.rows, in, how, CANARY, INTEGERS),
           weight_back = random_matrix(relations * in, out, how, CANARY, INTEGERS);
    const std::vector<float> feature = features_of(a, relations, INTEGERS);
    const device_sparse there(a);
    const array<float> dfeature(feature);
    const device_matrix dx(x), down(own), dweight(weight), dg(g), dsums(sums), dback(back),
        dweight_back(weight_back);
    const struct sl_sparse view = with_relations(a.view(), feature.data()),
                           dview = with_relations(there.view, dfeature.data);
    const struct sl_relations here = {relations, in, out, floats(weight), false},
                              device = {relations, in, out, floats(dweight), false};
    const sl_floats_at from = floats(x), dfrom = floats(dx), to = floats(sums), dto = floats(dsums),
                       to_x = floats(back), dto_x = floats(dback);
    struct sl_relations_back of = {floats(g), floats(own), &to_x, true, true, floats(weight_back)},
                             dof = {floats(dg), floats(down), &dto_x,
                                    true,       true,         floats(dweight_back)};
    for (int option = 3; option >= 0; option--) {
        const bool accumulate = option & 1;
        of.accumulate = dof.accumulate = accumulate;
        of.weight_accumulate = dof.weight_accumulate = option & 2;
        sl_cuda_relations(&dview, &device, &dfrom, accumulate, &dto, queue);
        sl_kernel_relations(&view, &here, &from, accumulate, &to);
        expect_equal("relations", dsums.download(), sums);
        sl_cuda_relations_back(&dview, &device, &dof, queue);
        sl_kernel_relations_back(&view, &here, &of);
        expect_equal("relations_back", dback.download(), back);
        expect_equal("relations_back, WEIGHT", dweight_back.download(), weight_back);
    }
    of.back = dof.back = nullptr;
    of.weight_accumulate = dof.weight_accumulate = true;
    sl_cuda_relations_back(&dview, &device, &dof, queue);
    sl_kernel_relations_back(&view, &here, &of);
    expect_equal("relations_back, BACK is not wanted", dback.download(), back);
    expect_equal("relations_back, WEIGHT alone", dweight_back.download(), weight_back);
}

static void test_relations()
{
    static one_in some(11);
    random_state = 15;
    for (int option = 0; option < 16; option++)
        for (const int64_t in : {1, 3, 16, 33, 64})
            for (const int64_t out : {1, 7, 17, 40})
                for (const int64_t relations : {1, 2, 7, 30}) {
                    if (some.leaves_out())
                        continue;
                    const sparse a = random_sparse(option & 4 ? 129 : 5, 47, 6, 2, false, INTEGERS,
                                                   option & 2 ? 11 : 0, option & 1);
                    check_relations(a, relations, in, out, (layout)(option / 4));
                }
    check_relations(random_sparse(0, 9, 2, -1, false, INTEGERS), 2, 5, 3, PADDED);
    check_relations(random_sparse(9, 7, 0, -1, false, INTEGERS), 3, 4, 5, TIGHT);
}

/* A row more than the workspace holds: it is gathered alone. */
static void test_relations_pieces()
{
    enum {
        WIDE = SL_RELATIONS_COLUMNS,
        ROWS = SL_RUNTIME_WORKSPACE / sizeof(float) / WIDE + 1,
        FEW = 2,
        MET = 5,
        RELATIONS = 1,
    };
    random_state = 16;
    const sparse a = random_sparse(ROWS, MET, 1, ROWS - 1, false, INTEGERS);
    matrix x = random_matrix(MET, WIDE, TIGHT, NONE, INTEGERS),
           weight = random_matrix(WIDE, FEW, TIGHT, NONE, INTEGERS),
           sums = random_matrix(ROWS, FEW, TIGHT, CANARY, INTEGERS),
           own = random_matrix(ROWS, FEW, TIGHT, NONE, INTEGERS),
           weight_back = random_matrix(FEW, WIDE, TIGHT, CANARY, INTEGERS);
    const std::vector<float> feature = features_of(a, RELATIONS, INTEGERS);
    const device_sparse there(a);
    const array<float> dfeature(feature);
    const device_matrix dx(x), dweight(weight), dsums(sums), down(own), dweight_back(weight_back);
    const struct sl_sparse view = with_relations(a.view(), feature.data()),
                           dview = with_relations(there.view, dfeature.data);
    const struct sl_relations here = {RELATIONS, WIDE, FEW, floats(weight), false},
                              device = {RELATIONS, WIDE, FEW, floats(dweight), false},
                              turned = {RELATIONS, FEW, WIDE, floats(x), false},
                              dturned = {RELATIONS, FEW, WIDE, floats(dx), false};
    const sl_floats_at from = floats(x), dfrom = floats(dx), to = floats(sums), dto = floats(dsums);
    sl_cuda_relations(&dview, &device, &dfrom, true, &dto, queue);
    sl_kernel_relations(&view, &here, &from, true, &to);
    expect_equal("relations, pieces", dsums.download(), sums);
    const struct sl_relations_back of = {from, floats(own), &to, true, true, floats(weight_back)},
                                   dof = {dfrom, floats(down), &dto,
                                          true,  true,         floats(dweight_back)};
    sl_cuda_relations_back(&dview, &dturned, &dof, queue);
    sl_kernel_relations_back(&view, &turned, &of);
    expect_equal("relations_back, pieces", dsums.download(), sums);
    expect_equal("relations_back, WEIGHT, pieces", dweight_back.download(), weight_back);
}

/* Results are the same to the bit at each launch. */
static void test_relations_alike()
{
    enum { ROWS = 300, MET = 70, IN = 20, OUT = 12, RELATIONS = 3 };
    random_state = 17;
    const sparse a = random_sparse(ROWS, MET, 5, -1, false, REALS);
    const matrix g = random_matrix(MET, OUT, TIGHT, NONE, REALS),
                 x = random_matrix(ROWS, IN, TIGHT, NONE, REALS),
                 weight = random_matrix(RELATIONS * IN, OUT, TIGHT, NONE, REALS);
    const device_sparse there(a);
    const array<float> dfeature(features_of(a, RELATIONS, REALS));
    const struct sl_sparse view = with_relations(there.view, dfeature.data);
    const device_matrix dg(g), dx(x), dweight(weight);
    const struct sl_relations relations = {RELATIONS, IN, OUT, floats(dweight), false};
    std::vector<matrix> backs, weights;
    for (int time = 0; time < 3; time++) {
        const device_matrix back(empty_matrix(ROWS, IN, TIGHT, CANARY)),
            weight_back(empty_matrix(RELATIONS * IN, OUT, TIGHT, CANARY));
        const sl_floats_at to = floats(back);
        const struct sl_relations_back of = {floats(dg), floats(dx), &to,
                                             false,      false,      floats(weight_back)};
        sl_cuda_relations_back(&view, &relations, &of, queue);
        backs.push_back(back.download());
        weights.push_back(weight_back.download());
        expect_same_bits("relations_back, again", backs.back(), backs[0]);
        expect_same_bits("relations_back, WEIGHT again", weights.back(), weights[0]);
    }
}

static void test_bases()
{
    static const sl_bases sizes[] = {{1, 1, 1, 1}, {3, 2, 5, 2}, {7, 3, 17, 8}, {9, 30, 20, 31}};
    random_state = 18;
    for (const sl_bases &b : sizes)
        for (layout how : {TIGHT, PADDED}) {
            const int64_t all = b.bases * b.in + b.relations, of = b.relations * b.in;
            matrix parameters = random_matrix(all, b.out, how, NONE, INTEGERS),
                   gradient = random_matrix(of, b.out, other(how), NONE, INTEGERS),
                   weight = random_matrix(of, b.out, how, CANARY, INTEGERS),
                   back = random_matrix(all, b.out, other(how), CANARY, INTEGERS);
            const device_matrix dparameters(parameters), dgradient(gradient), dweight(weight),
                dback(back);
            const sl_floats_at p = floats(parameters), g = floats(gradient), w = floats(weight),
                               to = floats(back), dp = floats(dparameters), dg = floats(dgradient),
                               dw = floats(dweight), dto = floats(dback);
            sl_cuda_bases(&b, &dp, &dw, queue);
            sl_kernel_bases(&b, &p, &w);
            expect_equal("bases", dweight.download(), weight);
            sl_cuda_bases_back(&b, &dp, &dg, &dto, queue);
            sl_kernel_bases_back(&b, &p, &g, &to);
            expect_equal("bases_back", dback.download(), back);
        }
}

const std::vector<test> relations_tests = {
    {"relations", test_relations},
    {"relations_pieces", test_relations_pieces},
    {"relations_alike", test_relations_alike},
    {"bases", test_bases},
};
