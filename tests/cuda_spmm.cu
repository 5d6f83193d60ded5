/* Sums of sparse products on a GPU, and what follows them. */
#include "tests/cuda_epilogue.h"

extern "C" {
#include "codelets/spmm.h"
}

/* ---- Sums of sparse products ---- */

/* A·H, where H is cut into tiles. */
struct part {
    sparse a;
    matrix h;
    std::vector<int64_t> cut;
};

static part make_part(const sparse &a, int64_t width, const std::vector<int64_t> &cut, layout how,
                      kind k)
{
    return {a, random_matrix(a.cols, width, how, NONE, k), cut};
}

static std::vector<part> of_type(enum sl_type type, std::vector<part> parts)
{
    for (part &p : parts)
        p.h = of_type(type, p.h);
    return parts;
}

/* Where the tiles of H lie: one behind the other; each for itself; that, in several layouts. */
enum placing { TOGETHER, APART, MIXED, PLACINGS };

static matrix some_rows(const matrix &from, int64_t first, int64_t last, layout how)
{
    matrix m = empty_matrix(last - first, from.cols, how, from.pad);
    m.type = from.type;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            m(r, j) = from(first + r, j);
    return m;
}

struct device_part {
    device_sparse a;
    std::vector<std::unique_ptr<device_matrix>> memory;
    std::vector<struct sl_cuda_rows> tiles;
    struct sl_cuda_part view;

    device_part(const part &p, placing where) : a(p.a)
    {
        if (where == TOGETHER)
            memory.emplace_back(new device_matrix(p.h));
        for (size_t t = 0; t + 1 < p.cut.size(); t++) {
            const int64_t first = p.cut[t], rows = p.cut[t + 1] - first;
            const layout how = where == MIXED ? (layout)((p.h.how + (int)t) % LAYOUTS) : p.h.how;
            if (where != TOGETHER)
                memory.emplace_back(new device_matrix(some_rows(p.h, first, first + rows, how)));
            const struct sl_rows all = memory.back()->rows();
            tiles.push_back({where == TOGETHER ? sl_rows_at(&all, first, 0) : all, rows});
        }
        view = {a.view, p.a.nnz(), (int)tiles.size(), tiles.data()};
    }
};

/* Z of a product, and SUM, what is accumulated to where Z is bfloat16: the same before, in another
 * layout. */
struct target {
    matrix z, sum;
};

static target make_target(int64_t rows, int64_t width, bool accumulate, layout how, kind k,
                          enum sl_type type)
{
    const matrix z = accumulate ? random_matrix(rows, width, how, CANARY, k)
                                : empty_matrix(rows, width, how, CANARY);
    return {of_type(type, z), moved(z, other(how), CANARY)};
}

static matrix run_cpu_spmm(const std::vector<part> &parts, bool accumulate, finish f, target t)
{
    std::vector<struct sl_sparse> a;
    std::vector<std::unique_ptr<stored>> memory;
    std::vector<struct sl_rows> h;
    for (const part &p : parts) {
        a.push_back(p.a.view());
        memory.emplace_back(new stored(p.h));
        h.push_back(memory.back()->rows());
    }
    const struct sl_epilogue epilogue = f.view();
    stored z(t.z);
    const struct sl_rows out = z.rows(), sum = sl_float_rows(t.sum.at(), t.sum.ld);
    sl_kernel_spmm((int64_t)parts.size(), a.data(), h.data(), t.z.cols, accumulate,
                   f.steps == NO_EPILOGUE ? nullptr : &epilogue, &sum, &out);
    return z.result();
}

static bool takes_one_launch(const std::vector<part> &parts)
{
    size_t tiles = 0;
    for (const part &p : parts)
        tiles += p.cut.size() - 1;
    return parts.size() <= SL_SPMM_PARTS && tiles <= SL_SPMM_TILES;
}

/* SUM is given only where it is needed. */
static matrix run_spmm(const std::vector<part> &parts, placing where, bool accumulate,
                       const finish &f, const target &t)
{
    std::vector<std::unique_ptr<device_part>> on_device;
    std::vector<struct sl_cuda_part> views;
    for (const part &p : parts) {
        on_device.emplace_back(new device_part(p, where));
        views.push_back(on_device.back()->view);
    }
    const device_finish df(f);
    const device_matrix dz(t.z), dsum(t.sum);
    const struct sl_rows out = dz.rows(), sums = dsum.rows();
    const bool one = takes_one_launch(parts);
    sl_cuda_spmm((int64_t)parts.size(), views.data(), t.z.cols, accumulate,
                 f.steps == NO_EPILOGUE ? nullptr : &df.view, one && !accumulate ? nullptr : &sums,
                 &out, queue);
    const matrix sum = dsum.download();
    expect_padding_kept("sum of spmm", sum);
    if (one || t.z.type == SL_FLOAT32)
        expect_same_bits("sum of spmm", sum, t.sum);
    return dz.download();
}

static void check_types(const std::vector<part> &parts, placing where, bool accumulate, int steps,
                        layout how, kind k, enum sl_type z_type)
{
    static one_in sample(5);
    if (sample.leaves_out())
        return;
    const int64_t rows = parts[0].a.rows, width = parts[0].h.cols;
    const std::string name = "spmm, " + std::to_string(parts.size()) + " parts, place " +
                             std::to_string((int)where) + (accumulate ? ", accumulate" : "") +
                             ", steps " + std::to_string(steps) + ", types " +
                             std::to_string((int)parts[0].h.type) + std::to_string((int)z_type);
    const target t = make_target(rows, width, accumulate, how, k, z_type);
    const finish f = random_finish(rows, width, steps, other(how), k);
    const matrix got = run_spmm(parts, where, accumulate, f, t),
                 want = run_cpu_spmm(parts, accumulate, f, t);
    if (k == INTEGERS) {
        expect_equal(name.c_str(), got, want);
        return;
    }
    int64_t terms = 0;
    std::vector<part> positive = parts;
    for (part &p : positive) {
        terms += p.a.cols;
        p.a = absolute(p.a);
        p.h = absolute(p.h);
    }
    const matrix sum = absolute(t.sum),
                 size = run_cpu_spmm(positive, accumulate, absolute(f), {sum, sum});
    expect_close(name.c_str(), got, want, 2.0 * (double)(terms + 12) * UNIT, &size);
}

static void check_spmm(const std::vector<part> &parts, placing where, bool accumulate, int steps,
                       layout how, kind k)
{
    for (const enum sl_type h_type : TYPES)
        for (const enum sl_type z_type : TYPES)
            check_types(of_type(h_type, parts), where, accumulate, steps, how, k, z_type);
}

/* One tile times one tile. */
static void check_product(const sparse &a, int64_t width, layout how, kind k)
{
    const std::vector<part> parts = {make_part(a, width, {0, a.cols}, how, k)};
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (const int steps : {(int)NO_EPILOGUE, some_steps()})
            check_spmm(parts, TOGETHER, accumulate, steps, other(how), k);
}

/* Degree 6: a few lanes per row; 40: a warp per row. */
static void test_spmm()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t cols : {1, 90})
            for (int has_values = 0; has_values < 2; has_values++)
                for (const int64_t degree : {6, 40}) {
                    static one_in sample(31);
                    if (!sample.leaves_out())
                        check_product(random_sparse(rows, cols, degree, rows / 2, has_values, k),
                                      width, how, k);
                }
    });
}

/* Blocks of one column, of some, and of all; columns of either size. */
static void test_spmm_blocks()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t block_cols : {1, 7, 45, 90})
            for (int option = 0; option < 4; option++) {
                static one_in sample(61);
                if (sample.leaves_out())
                    continue;
                check_product(random_sparse(rows, 90, option & 1 ? 40 : 6, rows / 2, option & 1, k,
                                            block_cols, option & 2),
                              width, how, k);
            }
    });
    /* As many columns as 16 bits can tell apart, and more than one such block. */
    for (const int64_t block_cols : {65535, 65536})
        check_product(random_sparse(9, 140000, 300, 4, true, INTEGERS, block_cols, true), 33,
                      PADDED, INTEGERS);
}

/* Rows that a whole block takes, among short ones; several of them in a block; lengths around the
 * bounds of that; many blocks. */
static void test_spmm_long_rows()
{
    for (const int64_t width : widths)
        for (const int64_t degree : {3, 40})
            for (const int64_t hub : {0, 150, 299})
                for (const int64_t block_cols : {0, 900}) {
                    static one_in sample(13);
                    if (sample.leaves_out())
                        continue;
                    check_product(random_sparse(300, 5000, degree, hub, true, INTEGERS, block_cols),
                                  width, width % 2 ? TIGHT : PADDED, INTEGERS);
                }
    for (const int64_t width : {1, 9, 41, 128})
        check_product(random_sparse(7, 2100, 2100, -1, true, INTEGERS), width, LOOSE, INTEGERS);
    for (int64_t length = 64; length <= 2048; length *= 2)
        for (int64_t off = -1; off <= 1; off++)
            for (const int64_t width : {1, 9, 41, 128}) {
                static one_in sample(5);
                if (sample.leaves_out())
                    continue;
                const sparse a = random_sparse(3, length + off, 0, 1, true, INTEGERS),
                             b = random_sparse(3, length + off, 0, 1, true, INTEGERS, 100, true);
                check_product(a, width, LOOSE, INTEGERS);
                check_product(b, width, LOOSE, INTEGERS);
            }
}

static std::vector<int64_t> random_cut(int64_t rows, int64_t tiles)
{
    std::vector<int64_t> cut = {0, rows};
    for (int64_t t = 1; t < tiles; t++)
        cut.push_back(random_below(rows + 1)); /* tiles without rows, too */
    std::sort(cut.begin(), cut.end());
    return cut;
}

static std::vector<part> random_parts(int64_t count, int64_t rows, int64_t most_cols, int64_t tiles,
                                      int64_t width, layout how, kind k)
{
    std::vector<part> parts;
    const bool has_values = random_below(2);
    for (int64_t p = 0; p < count; p++) {
        const int64_t cols = 1 + random_below(most_cols);
        const sparse a = random_sparse(rows, cols, 1 + random_below(20), random_below(rows + 1),
                                       has_values, k, 1 + random_below(cols), random_below(2));
        parts.push_back(make_part(a, width, random_cut(cols, 1 + random_below(tiles)), how, k));
    }
    return parts;
}

static void test_spmm_parts()
{
    random_state = 3;
    for (const int64_t rows : row_counts)
        for (const int64_t width : widths)
            for (int how = 0; how < LAYOUTS; how++) {
                const kind k = how == TIGHT ? REALS : INTEGERS;
                for (const int64_t count : {1, 2, 5, 17}) {
                    if (count > SL_SPMM_PARTS && how != LOOSE)
                        continue;
                    static one_in sample(13);
                    if (sample.leaves_out())
                        continue;
                    const std::vector<part> parts =
                        random_parts(count, rows, 60, 6, width, (layout)how, k);
                    for (int where = 0; where < PLACINGS; where++)
                        for (int accumulate = 0; accumulate < 2; accumulate++)
                            check_spmm(parts, (placing)where, accumulate,
                                       accumulate ? (int)NO_EPILOGUE : some_steps(),
                                       other((layout)how), k);
                }
            }
}

/* More tiles than a launch has room for, of one part and of all together. */
static void test_spmm_many_tiles()
{
    random_state = 3;
    for (const int64_t width : {1, 16, 41, 128})
        for (int where = 0; where < PLACINGS; where++)
            for (const int64_t block_cols : {0, 1, 50, 333}) {
                static one_in sample(5);
                if (sample.leaves_out())
                    continue;
                std::vector<int64_t> each;
                for (int64_t c = 0; c <= 600; c += 2)
                    each.push_back(c);
                const sparse a = random_sparse(40, 600, 50, 7, true, INTEGERS, block_cols, true);
                const layout how = (layout)random_below(LAYOUTS);
                const std::vector<part> one = {make_part(a, width, each, how, INTEGERS)};
                check_spmm(one, (placing)where, false, some_steps(), how, INTEGERS);
                std::vector<part> three = random_parts(2, 40, 90, 6, width, how, INTEGERS);
                three.insert(three.begin() + 1, one[0]);
                check_spmm(three, (placing)where, true, some_steps(), how, INTEGERS);
                check_spmm(random_parts(16, 40, 300, 60, width, how, INTEGERS), (placing)where,
                           false, some_steps(), how, INTEGERS);
            }
}

static void test_spmm_no_entries()
{
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {700, 9}};
    for (const auto &size : sizes) {
        const sparse a = random_sparse(size[0], size[1], 0, -1, true, INTEGERS);
        check_product(a, 17, TIGHT, INTEGERS);
    }
}

/* NaN reaches exactly the results that it is a term of. */
static void test_spmm_nan()
{
    const sparse a = random_sparse(23, 19, 5, 2, true, INTEGERS, 8, true);
    for (int how = 0; how < LAYOUTS; how++) {
        matrix h = random_matrix(19, 21, (layout)how, NONE, INTEGERS);
        h(0, 3) = h(4, 20) = NONE;
        const matrix z = empty_matrix(23, 21, (layout)how, CANARY);
        const finish relu = random_finish(23, 21, RELU, (layout)how, INTEGERS);
        const std::vector<part> floats = {{a, h, {0, 3, 4, 19}}};
        for (int option = 0; option < 4; option++)
            for (int where = 0; where < PLACINGS; where++) {
                const std::vector<part> parts = of_type(TYPES[option / 2], floats);
                const target t = {of_type(TYPES[option % 2], z), z};
                expect_equal("spmm of NaN", run_spmm(parts, (placing)where, false, relu, t),
                             run_cpu_spmm(parts, false, relu, t));
            }
    }
}

/* Ranks and devices may keep a tile with another ld, and tiles anywhere: that must not change a bit
 * of the result. Nor does it matter what numbers that both types can represent are stored as. */
static void test_spmm_same_bits()
{
    for (const int64_t width : widths)
        for (int option = 0; option < 4; option++) {
            static one_in sample(7);
            if (sample.leaves_out())
                continue;
            const bool accumulate = option & 1;
            const sparse a = random_sparse(61, 1200, option & 2 ? 9 : 70, 5, true, REALS,
                                           option & 2 ? 500 : 0, option & 2);
            const std::vector<int64_t> cut = random_cut(1200, option & 2 ? 200 : 9);
            const matrix h = of_type(SL_BFLOAT16, random_matrix(1200, width, TIGHT, NONE, REALS)),
                         z = random_matrix(61, width, TIGHT, CANARY, REALS);
            finish f = random_finish(61, width, STEPS - 1, TIGHT, REALS);
            matrix first;
            for (int how = 0; how < 3 * LAYOUTS; how++) {
                const layout l = (layout)(how % LAYOUTS);
                const enum sl_type type = TYPES[how / LAYOUTS % 2];
                const std::vector<part> parts = {{a, of_type(type, moved(h, l, NONE)), cut}};
                const matrix to = moved(z, other(l), CANARY);
                f.bias = moved(f.bias, l, NONE);
                f.mask = stored(of_type(type, moved(f.mask.floats, l, NONE)));
                const matrix got =
                    run_spmm(parts, (placing)(how % PLACINGS), accumulate, f, {to, to});
                if (how == 0)
                    first = got;
                else
                    expect_same_bits("spmm", first, got);
            }
        }
}

/* ---- Epilogue ---- */

/* Z = SUM or apart. */
static void check_epilogue(int64_t rows, int64_t cols, int steps, layout how, kind k, bool apart)
{
    static one_in sample(11);
    if (sample.leaves_out())
        return;
    const std::string name = "epilogue, steps " + std::to_string(steps);
    finish f = random_finish(rows, cols, steps, how, k), positive = absolute(f);
    const device_finish df(f);
    const bool masked = steps & MASK; /* the CPU's kernel then takes no sum in bfloat16 */
    matrix sum = random_matrix(rows, cols, other(how), apart ? NONE : CANARY, k),
           size = absolute(sum);
    if (rows > 0)
        sum(rows / 2, cols / 2) = NONE;
    sum = of_type(masked ? SL_FLOAT32 : some_type(), sum);
    const matrix z = of_type(some_type(), empty_matrix(rows, cols, how, CANARY));
    const device_matrix dsum(sum), dz(z);
    stored want_sum(sum), want_z(z);
    const struct sl_rows from = dsum.rows(), to = apart ? dz.rows() : from,
                         want_from = want_sum.rows(), want_to = apart ? want_z.rows() : want_from,
                         sizes = sl_float_rows(size.at(), size.ld);
    sl_cuda_epilogue(rows, cols, &df.view, &from, &to, queue);
    const struct sl_epilogue e = f.view(), bound = positive.view();
    sl_kernel_epilogue(rows, cols, &e, &want_from, &want_to);
    sl_kernel_epilogue(rows, cols, &bound, &sizes, &sizes);
    for (int64_t r = 0; r < rows && steps & ELU; r++)
        for (int64_t j = 0; j < cols; j++)
            size(r, j) = std::fabs(size(r, j)) + 8.0f; /* e^x - 1, after and dropout */
    for (int64_t r = 0; r < rows && (steps & ELU_BACK) && (steps & AFTER); r++)
        for (int64_t j = 0; j < cols; j++)
            size(r, j) = std::fabs(size(r, j)) + 1.0f; /* 1 + elu_back · mask may cancel */
    const matrix got = apart ? dz.download() : dsum.download(),
                 want = apart ? want_z.result() : want_sum.result();
    if (k == INTEGERS)
        expect_equal(name.c_str(), got, want);
    else
        expect_close(name.c_str(), got, want, 12.0 * UNIT, &size);
}

/* Every choice of steps; dropout that drops nothing and everything. */
static void test_epilogue()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (int trial = 0; trial < 12; trial++)
            check_epilogue(rows, cols, some_steps(), how, trial % 2 ? REALS : INTEGERS, trial % 3);
    });
    for (int steps = 0; steps < STEPS; steps++)
        for (int how = 0; how < LAYOUTS; how++)
            for (const int64_t cols : {15, 16, 41}) {
                static one_in sample(11);
                if (sample.leaves_out())
                    continue;
                check_epilogue(37, cols, steps, (layout)how, INTEGERS, steps % 2);
                const sparse a = random_sparse(37, 50, 9, 5, true, INTEGERS, 20, true);
                const std::vector<part> parts = {
                    make_part(a, cols, {0, 20, 50}, (layout)how, INTEGERS)};
                check_spmm(parts, APART, steps % 2, steps, (layout)how, INTEGERS);
            }
}

/* ELU beside every choice of the other steps, and its mask. */
static void test_epilogue_elu()
{
    random_state = 13;
    for (int steps = 0; steps < STEPS; steps++)
        for (int how = 0; how < LAYOUTS; how++)
            for (const int64_t cols : {1, 16, 41, 602})
                check_epilogue(37, cols, (steps & ~RELU) | (steps & MASK ? ELU_BACK : ELU),
                               (layout)how, REALS, steps % 2);
}

const std::vector<test> spmm_tests = {
    {"spmm", test_spmm},
    {"spmm, blocks", test_spmm_blocks},
    {"spmm, long rows", test_spmm_long_rows},
    {"spmm, parts", test_spmm_parts},
    {"spmm, many tiles", test_spmm_many_tiles},
    {"spmm, no entries", test_spmm_no_entries},
    {"spmm, NaN", test_spmm_nan},
    {"spmm, same bits", test_spmm_same_bits},
    {"epilogue", test_epilogue},
    {"epilogue, ELU", test_epilogue_elu},
};
