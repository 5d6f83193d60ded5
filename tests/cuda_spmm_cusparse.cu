/* Sparse products by cuSPARSE: that they are the CPU's, and what is kept of a tile. */
#include <optional>

#include "codelets/spmm_cusparse.h"
#include "tests/cuda_epilogue.h"

extern "C" {
#include "codelets/spmm.h"
}

enum { MOST_ONES = 1 << 16 };

/* Parts of one sum, each a tile that meets one dense one. */
struct sum {
    std::vector<sparse> a;
    std::vector<matrix> h;
    std::vector<int64_t> key;

    void add(int64_t own_key, const sparse &tile, int64_t width, layout how, kind k)
    {
        a.push_back(tile);
        h.push_back(random_matrix(tile.cols, width, how, NONE, k));
        key.push_back(own_key);
    }
};

/* On the device, for one call or several. */
struct device_sum {
    std::vector<std::unique_ptr<device_sparse>> a;
    std::vector<std::unique_ptr<device_matrix>> h;
    std::vector<struct sl_cuda_rows> tiles;
    std::vector<struct sl_cuda_part> views;

    explicit device_sum(const sum &s)
    {
        for (size_t p = 0; p < s.a.size(); p++) {
            a.emplace_back(new device_sparse(s.a[p]));
            h.emplace_back(new device_matrix(s.h[p]));
            tiles.push_back({h[p]->rows(), s.h[p].rows});
        }
        for (size_t p = 0; p < s.a.size(); p++)
            views.push_back({a[p]->view, s.a[p].nnz(), 1, &tiles[p]});
    }
};

static matrix cpu_result(const sum &s, bool accumulate, finish f, const matrix &before)
{
    std::vector<struct sl_sparse> a;
    std::vector<std::unique_ptr<stored>> memory;
    std::vector<struct sl_rows> h;
    for (size_t p = 0; p < s.a.size(); p++) {
        a.push_back(s.a[p].view());
        memory.emplace_back(new stored(s.h[p]));
        h.push_back(memory.back()->rows());
    }
    const struct sl_epilogue epilogue = f.view();
    stored z(before);
    const struct sl_rows out = z.rows();
    sl_kernel_spmm((int64_t)a.size(), a.data(), h.data(), before.cols, accumulate,
                   f.steps == NO_EPILOGUE ? nullptr : &epilogue, nullptr, &out);
    return z.result();
}

static matrix gpu_result(struct sl_cusparse *c, const sum &s, const device_sum &on_device,
                         bool accumulate, const finish &f, const matrix &before)
{
    const device_finish df(f);
    const device_matrix z(before);
    const struct sl_rows out = z.rows();
    sl_cusparse_spmm(c, (int64_t)s.a.size(), on_device.views.data(), s.key.data(), before.cols,
                     accumulate, f.steps == NO_EPILOGUE ? nullptr : &df.view, &out);
    return z.download();
}

static void check_sum(struct sl_cusparse *c, const sum &s, const device_sum &on_device,
                      bool accumulate, int steps, layout how)
{
    const int64_t rows = s.a[0].rows, width = s.h[0].cols;
    const matrix z = accumulate ? random_matrix(rows, width, how, CANARY, INTEGERS)
                                : empty_matrix(rows, width, how, CANARY);
    const finish f = random_finish(rows, width, steps, other(how), INTEGERS);
    expect_equal("spmm by cuSPARSE", gpu_result(c, s, on_device, accumulate, f, z),
                 cpu_result(s, accumulate, f, z));
}

static void check_sum(struct sl_cusparse *c, const sum &s, bool accumulate, int steps, layout how)
{
    check_sum(c, s, device_sum(s), accumulate, steps, how);
}

/* Entries in every row but each fifth; with one hub there is at least one. */
static sparse some_tile(int64_t rows, int64_t cols, bool has_values, int64_t block_cols,
                        bool narrow)
{
    return random_sparse(rows, cols, 6, rows / 2, has_values, INTEGERS, block_cols, narrow);
}

/* Blocks or one, columns of either size, values or none, several parts, what follows. */
static void test_cusparse()
{
    int64_t key = 0;
    struct sl_cusparse *c = sl_cusparse_create(queue, SL_CUSPARSE_ALG3, MOST_ONES);
    for (const int64_t rows : {1, 5, 129})
        for (const int64_t width : {1, 7, 16, 41, 128})
            for (int option = 0; option < 16; option++) {
                sum s;
                const layout how = (layout)random_below(LAYOUTS);
                for (int64_t p = 0; p <= option % 3; p++)
                    s.add(key++,
                          some_tile(rows, 90 - p, option & 1, option & 2 ? 1 + random_below(89) : 0,
                                    option & 4),
                          width, how, INTEGERS);
                check_sum(c, s, option & 8, option % 5 ? some_steps() : (int)NO_EPILOGUE, how);
            }
    sl_cusparse_destroy(c);
}

static struct sl_cusparse_counts since(struct sl_cusparse *c, struct sl_cusparse_counts *before)
{
    const struct sl_cusparse_counts now = sl_cusparse_count(c),
                                    new_ones = {now.allocations - before->allocations,
                                                now.preparations - before->preparations};
    *before = now;
    return new_ones;
}

static void expect_counts(const char *when, struct sl_cusparse *c,
                          struct sl_cusparse_counts *before, int64_t allocations,
                          int64_t preparations)
{
    const struct sl_cusparse_counts counts = since(c, before);
    checks++;
    if (counts.allocations != allocations || counts.preparations != preparations)
        fail("%s: %lld allocations and %lld preparations, not %lld and %lld", when,
             (long long)counts.allocations, (long long)counts.preparations, (long long)allocations,
             (long long)preparations);
}

/* Two tiles: cuSPARSE takes the first one as it is, and copies the second one. */
static void test_cusparse_keeps()
{
    for (int copied = 0; copied < 2; copied++) {
        struct sl_cusparse *c = sl_cusparse_create(queue, SL_CUSPARSE_ALG3, MOST_ONES);
        struct sl_cusparse_counts counts = {};
        sum s, wide;
        s.add(1, some_tile(40, 70, true, copied ? 30 : 0, copied), 16, TIGHT, INTEGERS);
        wide.a = s.a;
        wide.key = s.key;
        wide.h.push_back(random_matrix(70, 41, TIGHT, NONE, INTEGERS));
        std::optional<device_sum> first(s);
        check_sum(c, s, *first, false, NO_EPILOGUE, TIGHT);
        expect_counts("at first", c, &counts, copied ? 4 : 1, 1);
        check_sum(c, s, *first, true, STEPS - 1, TIGHT);
        expect_counts("again", c, &counts, 0, 0);
        const device_sum moved(s);
        first.reset(); /* its memory is gone */
        check_sum(c, s, moved, false, NO_EPILOGUE, TIGHT);
        expect_counts("after a move", c, &counts, 0, copied ? 0 : 1);
        check_sum(c, wide, false, NO_EPILOGUE, TIGHT);
        since(c, &counts);
        check_sum(c, s, moved, false, NO_EPILOGUE, TIGHT);
        expect_counts("after another width", c, &counts, 0, 0);
        sl_cusparse_destroy(c);
    }
}

/* Tiles without values share ones: a larger one than before neither allocates them anew nor makes
 * others prepare anew. */
static void test_cusparse_ones()
{
    struct sl_cusparse *c = sl_cusparse_create(queue, SL_CUSPARSE_ALG3, MOST_ONES);
    struct sl_cusparse_counts counts = {};
    sum small, large;
    small.add(1, some_tile(20, 30, false, 0, false), 16, TIGHT, INTEGERS);
    large.add(2, some_tile(90, 300, false, 0, false), 16, TIGHT, INTEGERS);
    const device_sum small_one(small), large_one(large);
    check_sum(c, small, small_one, false, NO_EPILOGUE, TIGHT);
    expect_counts("with ones", c, &counts, 2, 1);
    check_sum(c, large, large_one, false, NO_EPILOGUE, TIGHT);
    expect_counts("with ones for both", c, &counts, 1, 1);
    check_sum(c, small, small_one, false, NO_EPILOGUE, TIGHT);
    check_sum(c, large, large_one, false, NO_EPILOGUE, TIGHT);
    expect_counts("again, with ones for both", c, &counts, 0, 0);
    sl_cusparse_destroy(c);
}

/* The same bits, from a tile that lies elsewhere and one that is prepared anew, too. Row 5 has
 * `longest` entries. cuSPARSE 12.6 sums a row of 1200 entries in another order each time on an
 * H100. */
static void test_cusparse_same_bits()
{
    for (const int64_t longest : {128, 256, 512}) {
        sum s;
        s.add(1, random_sparse(61, longest, 70, 5, true, REALS), 41, TIGHT, REALS);
        const matrix z = empty_matrix(61, 41, TIGHT, CANARY);
        const finish none = random_finish(61, 41, NO_EPILOGUE, TIGHT, REALS);
        matrix first;
        for (int again = 0; again < 4; again++) {
            struct sl_cusparse *c = sl_cusparse_create(queue, SL_CUSPARSE_ALG3, MOST_ONES);
            for (int call = 0; call < 2; call++) {
                const matrix got = gpu_result(c, s, device_sum(s), false, none, z);
                if (again == 0 && call == 0)
                    first = got;
                expect_same_bits("spmm by cuSPARSE", got, first);
            }
            sl_cusparse_destroy(c);
        }
    }
}

const std::vector<test> cusparse_tests = {
    {"spmm by cuSPARSE", test_cusparse},
    {"spmm by cuSPARSE: what is kept", test_cusparse_keeps},
    {"spmm by cuSPARSE: ones", test_cusparse_ones},
    {"spmm by cuSPARSE: same bits", test_cusparse_same_bits},
};
