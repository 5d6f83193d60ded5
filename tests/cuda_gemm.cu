/* Dense products on a GPU. */
#include "tests/cuda_epilogue.h"

extern "C" {
#include "codelets/gemm.h"
}

static struct sl_gemm gemm_of(const bool options[3], int64_t m, int64_t n, int64_t k)
{
    struct sl_gemm gemm = {};
    gemm.transpose_a = options[0];
    gemm.transpose_b = options[1];
    gemm.accumulate = options[2];
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    return gemm;
}

static matrix run_cpu_gemm(const bool options[3], int64_t k, const matrix &a, const matrix &b,
                           const matrix &c)
{
    stored from(a), by(b), to(c);
    struct sl_gemm gemm = gemm_of(options, c.rows, c.cols, k);
    gemm.a = from.rows();
    gemm.b = by.rows();
    gemm.c = to.rows();
    sl_kernel_gemm(&gemm);
    return to.result();
}

/* Where A or B is bfloat16, the other one may be rounded to it, here and there; with `tf32`,
 * float32 operands to 10 bits. */
static void check_gemm(int64_t m, int64_t n, int64_t k, int option, enum sl_type a_type,
                       enum sl_type b_type, enum sl_type c_type, bool tf32)
{
    static one_in sample(13);
    if (sample.leaves_out())
        return;
    const bool options[3] = {(option & 1) != 0, (option & 2) != 0, (option & 4) != 0};
    const std::string name = "gemm, option " + std::to_string(option) + ", types " +
                             std::to_string((int)a_type) + std::to_string((int)b_type) +
                             std::to_string((int)c_type);
    const kind kinds = random_below(2) ? REALS : INTEGERS;
    const layout la = (layout)random_below(LAYOUTS), lb = (layout)random_below(LAYOUTS),
                 lc = (layout)random_below(LAYOUTS);
    const matrix a = of_type(a_type, options[0] ? random_matrix(k, m, la, NONE, kinds)
                                                : random_matrix(m, k, la, NONE, kinds)),
                 b = of_type(b_type, options[1] ? random_matrix(n, k, lb, NONE, kinds)
                                                : random_matrix(k, n, lb, NONE, kinds)),
                 c = of_type(c_type, options[2] ? random_matrix(m, n, lc, CANARY, kinds)
                                                : empty_matrix(m, n, lc, CANARY));
    const device_matrix da(a), db(b), dc(c);
    struct sl_gemm gemm = gemm_of(options, m, n, k);
    gemm.tf32 = tf32;
    gemm.a = da.rows();
    gemm.b = db.rows();
    gemm.c = dc.rows();
    sl_cuda_gemm(&gemm, queue);
    const matrix got = dc.download(), want = run_cpu_gemm(options, k, a, b, c);
    const matrix size =
        run_cpu_gemm(options, k, absolute(a), absolute(b), of_type(SL_FLOAT32, absolute(c)));
    const double rounding = a_type != b_type               ? 2.0 * HALF_UNIT
                            : tf32 && a_type == SL_FLOAT32 ? 2.0 * TF32_UNIT
                                                           : 0.0;
    if (kinds == INTEGERS)
        expect_equal(name.c_str(), got, want);
    else
        expect_close(name.c_str(), got, want, 2.0 * (double)(k + 4) * UNIT + rounding, &size);
}

/* C is float32 where A is transposed and where it is accumulated to. */
static bool may_be_c(enum sl_type type, int option)
{
    return type == SL_FLOAT32 || !(option & 5);
}

static void check_gemm_types(int64_t m, int64_t n, int64_t k, int option)
{
    for (const enum sl_type a_type : TYPES)
        for (const enum sl_type b_type : TYPES)
            for (const enum sl_type c_type : TYPES)
                if (may_be_c(c_type, option))
                    for (const bool tf32 : {false, true})
                        check_gemm(m, n, k, option, a_type, b_type, c_type, tf32);
}

static void test_gemm()
{
    random_state = 2;
    for (const int64_t m : row_counts)
        for (const int64_t n : widths)
            for (const int64_t k : {0, 1, 7, 16, 41, 129, 602})
                for (int option = 0; option < 8; option++)
                    if (m * n * k <= 1000000)
                        check_gemm_types(m, n, k, option);
}

/* With an epilogue: as the product, then the epilogue, on whole numbers; k = 0: of a sum of
 * nothing.
 */
static void check_gemm_epilogue(int64_t m, int64_t n, int64_t k, bool transpose_b,
                                enum sl_type a_type, enum sl_type b_type, enum sl_type c_type)
{
    static one_in sample(7);
    if (sample.leaves_out())
        return;
    finish f = random_finish(m, n, some_steps(), PADDED, INTEGERS);
    const device_finish df(f);
    const matrix a = of_type(a_type, random_matrix(m, k, PADDED, NONE, INTEGERS)),
                 b = of_type(b_type, transpose_b ? random_matrix(n, k, LOOSE, NONE, INTEGERS)
                                                 : random_matrix(k, n, LOOSE, NONE, INTEGERS)),
                 c = of_type(c_type, empty_matrix(m, n, PADDED, CANARY));
    const device_matrix da(a), db(b), dc(c);
    const bool options[3] = {false, transpose_b, false};
    struct sl_gemm gemm = gemm_of(options, m, n, k);
    gemm.a = da.rows();
    gemm.b = db.rows();
    gemm.epilogue = &df.view;
    gemm.c = dc.rows();
    sl_cuda_gemm(&gemm, queue);
    stored want_a(a), want_b(b), want_c(c);
    const struct sl_epilogue e = f.view();
    gemm.a = want_a.rows();
    gemm.b = want_b.rows();
    gemm.epilogue = &e;
    gemm.c = want_c.rows();
    sl_kernel_gemm(&gemm);
    expect_equal("gemm with an epilogue", dc.download(), want_c.result());
}

static void test_gemm_epilogue()
{
    random_state = 3;
    static const int64_t sizes[][3] = {{1, 1, 1},    {7, 5, 0},       {5, 17, 41},
                                       {700, 41, 9}, {3000, 3001, 2}, {129, 64, 602}};
    for (const auto &size : sizes)
        for (int option = 0; option < 16; option++)
            check_gemm_epilogue(size[0], size[1], size[2], option & 1, TYPES[option / 2 % 2],
                                TYPES[option / 4 % 2], TYPES[option / 8]);
}

/* The operand that is converted, or C in float32, is more than the workspace holds. */
static void test_gemm_pieces()
{
    static const int64_t sizes[][3] = {{3, 129, 140000}, {2, 2060, 8200}, {2060, 2, 8200}};
    random_state = 2;
    for (const auto &size : sizes)
        for (int option = 0; option < 8; option++)
            for (const enum sl_type c_type : TYPES)
                if (may_be_c(c_type, option)) {
                    check_gemm(size[0], size[1], size[2], option, SL_BFLOAT16, SL_FLOAT32, c_type,
                               false);
                    check_gemm(size[0], size[1], size[2], option, SL_FLOAT32, SL_BFLOAT16, c_type,
                               false);
                }
    for (const int option : {0, 2})
        check_gemm(3000, 3001, 2, option, SL_FLOAT32, SL_FLOAT32, SL_BFLOAT16, false);
}

const std::vector<test> gemm_tests = {
    {"gemm", test_gemm},
    {"gemm, pieces", test_gemm_pieces},
    {"gemm, epilogue", test_gemm_epilogue},
};
