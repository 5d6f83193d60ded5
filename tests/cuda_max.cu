/* The largest of what neighbours send, on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/jump_max.h"
#include "codelets/max.h"
}

static void expect_equal_vertices(const std::vector<int32_t> &got, const std::vector<int32_t> &want)
{
    expect(got == want, "max: other vertices than on the CPU");
}

static std::vector<int32_t> some_vertices(int64_t count, int32_t least, int64_t below)
{
    std::vector<int32_t> vertices((size_t)count);
    for (int32_t &vertex : vertices)
        vertex = (int32_t)random_below(below) + least;
    return vertices;
}

/* Values that come from no vertex are 0. */
static void clear_nobody(const std::vector<int32_t> &vertices, matrix &values)
{
    for (int64_t r = 0; r < values.rows; r++)
        for (int64_t j = 0; j < values.cols; j++)
            if (vertices[(size_t)(r * values.cols + j)] < 0)
                values(r, j) = 0.0f;
}

/* Forward on top of what is there, and alone; then the gradient. Weights are powers of two beside
 * integers, or there are none: every result is exact, whatever the order and the rounding. */
static void check_max(const sparse &a, int64_t width, layout how, enum sl_type type)
{
    enum { FIRST = 100 };
    const device_sparse on_device(a);
    const struct sl_sparse view = a.view();
    const matrix h = of_type(type, random_matrix(a.cols, width, how, NONE, INTEGERS));
    std::vector<int32_t> argmax = some_vertices(a.rows * width, -1, 2 * FIRST);
    matrix state = random_matrix(a.rows, width, other(how), CANARY, INTEGERS);
    clear_nobody(argmax, state);
    const matrix before = of_type(type, state);
    stored host_h(h), z(before);
    const device_matrix dh(h), dz(before);
    const struct sl_rows from = host_h.rows(), to = z.rows(), dfrom = dh.rows(), dto = dz.rows();
    const std::vector<int32_t> number = some_vertices(std::max(a.rows, a.cols), 0, 2 * FIRST);
    const array<int32_t> dnumber(number), dargmax(argmax);
    const struct sl_numbering run = {FIRST, nullptr}, listed = {0, number.data()},
                              dlisted = {0, dnumber.data};
    const float sign = random_below(2) ? 1.0f : -1.0f;
    const struct sl_argmax on_host = {argmax.data(), width, sign},
                           there = {dargmax.data, width, sign};
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_max(&on_device.view, width, &dfrom, accumulate, &dto, accumulate ? &dlisted : &run,
                    &there, queue);
        sl_kernel_max(&view, width, &from, accumulate, &to, accumulate ? &listed : &run, &on_host);
        expect_equal("max", dz.download(), z.result());
        expect_equal_vertices(dargmax.download(), argmax);
    }
    if (type != SL_FLOAT32)
        return;
    /* Any matrix will do for the transpose: G has the rows that it meets. */
    const matrix g = random_matrix(a.cols, width, TIGHT, NONE, INTEGERS);
    std::vector<int32_t> chosen((size_t)(a.cols * width));
    for (int32_t &vertex : chosen)
        vertex = random_below(2) ? number[(size_t)random_below(a.rows)]
                                 : FIRST + (int32_t)random_below(a.rows + 1);
    matrix result = random_matrix(a.rows, width, how, CANARY, INTEGERS);
    const device_matrix dg(g), dresult(result);
    const array<int32_t> dchosen(chosen);
    const struct sl_argmax taken = {chosen.data(), width, 1.0f},
                           dtaken = {dchosen.data, width, 1.0f};
    const struct sl_rows sent = sl_float_rows((float *)g.at(), g.ld),
                         sum = sl_float_rows(result.at(), result.ld), dsent = dg.rows(),
                         dsum = dresult.rows();
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_max_back(&on_device.view, width, &dsent, accumulate ? &dlisted : &run, &dtaken,
                         accumulate, &dsum, queue);
        sl_kernel_max_back(&view, width, &sent, accumulate ? &listed : &run, &taken, accumulate,
                           &sum);
        expect_equal("max_back", dresult.download(), result);
    }
}

static void test_max()
{
    random_state = 11;
    for (int option = 0; option < 32; option++)
        for (const int64_t width : {1, 33, 64, 130}) {
            const sparse a = random_sparse(option & 4 ? 129 : 5, 47, 6, 2, option & 16, INTEGERS,
                                           option & 2 ? 11 : 0, option & 1);
            check_max(a, width, (layout)(option % LAYOUTS), TYPES[option / 8 % 2]);
        }
}

static void test_max_merge()
{
    random_state = 12;
    for (int option = 0; option < 16; option++)
        for (const int64_t width : {1, 33, 130}) {
            const int64_t rows = 57;
            const bool listed = option & 1;
            const float sign = option & 8 ? -1.0f : 1.0f;
            const enum sl_type type = TYPES[option / 4 % 2];
            matrix numbers = random_matrix(rows, width, (layout)(option % LAYOUTS), NONE, INTEGERS);
            for (int64_t r = 0; r < rows; r += 5)
                numbers.at()[r * numbers.ld] = NAN;
            matrix state = random_matrix(rows, width, LOOSE, CANARY, INTEGERS);
            std::vector<int32_t> from((size_t)(rows * width)), argmax(from.size());
            for (size_t i = 0; i < from.size(); i++) {
                from[i] = (int32_t)random_below(6) - 1;
                argmax[i] = (int32_t)random_below(6) - 1;
            }
            clear_nobody(argmax, state);
            const matrix x = of_type(type, numbers), before = of_type(type, state);
            stored host_x(x), z(before);
            const device_matrix dx(x), dz(before);
            const struct sl_rows sent = host_x.rows(), to = z.rows(), dsent = dx.rows(),
                                 dto = dz.rows();
            std::vector<uint32_t> index((size_t)rows);
            for (int64_t r = 0; r < rows; r++)
                index[(size_t)r] = (uint32_t)((7 * r + 3) % rows);
            const array<int32_t> dfrom(from), dargmax(argmax);
            const array<uint32_t> dindex(index);
            const struct sl_argmax other = {from.data(), width, sign},
                                   own = {argmax.data(), width, sign},
                                   dother = {dfrom.data, width, sign},
                                   down = {dargmax.data, width, sign};
            sl_cuda_max_merge(rows, width, listed ? dindex.data : nullptr, &dsent, &dother, &dto,
                              &down, queue);
            sl_kernel_max_merge(rows, width, listed ? index.data() : nullptr, &sent, &other, &to,
                                &own);
            expect_equal("max_merge", dz.download(), z.result());
            expect_equal_vertices(dargmax.download(), argmax);
        }
}

/* Three matrices of integers, many of them equal, and some that are no numbers. */
static void test_jump_max()
{
    random_state = 13;
    each_shape([](int64_t rows, int64_t cols, layout how) {
        const enum sl_type type = TYPES[random_below(2)];
        const bool scaled = random_below(2);
        const matrix factor = random_matrix(1, rows, TIGHT, NONE, INTEGERS);
        const device_matrix df(factor);
        stored m(of_type(type, random_matrix(rows, cols, other(how), CANARY, INTEGERS)));
        const device_matrix dm(m.floats);
        const struct sl_rows to = m.rows(), dto = dm.rows();
        const int64_t ldc = cols + 1;
        std::vector<int32_t> argmax((size_t)(rows * ldc), -5);
        const array<int32_t> dargmax(argmax);
        for (int number = 0; number < 3; number++) {
            matrix numbers = random_matrix(rows, cols, how, NONE, INTEGERS);
            for (int64_t r = number; r < rows; r += 5)
                numbers(r, r % cols) = NAN;
            const matrix x = of_type(type, numbers);
            stored host(x);
            const device_matrix dx(x);
            const struct sl_rows from = host.rows(), dfrom = dx.rows();
            sl_cuda_jump_max(rows, cols, number, scaled ? df.at : nullptr, &dfrom, &dto,
                             dargmax.data, ldc, queue);
            sl_kernel_jump_max(rows, cols, number, scaled ? factor.at() : nullptr, &from, &to,
                               argmax.data(), ldc);
            expect_equal("jump_max", dm.download(), m.result());
            expect_equal_vertices(dargmax.download(), argmax);
        }
        stored g(of_type(type, random_matrix(rows, cols, how, NONE, INTEGERS)));
        const device_matrix dg(g.floats);
        matrix d = random_matrix(rows, cols, other(how), CANARY, INTEGERS);
        const device_matrix dd(d);
        const struct sl_rows from = g.rows(), dfrom = dg.rows();
        for (int number = 2; number >= 0; number--) {
            sl_cuda_jump_max_back(rows, cols, number, &dfrom, dargmax.data, ldc, number != 1, dd.at,
                                  dd.ld, queue);
            sl_kernel_jump_max_back(rows, cols, number, &from, argmax.data(), ldc, number != 1,
                                    d.at(), d.ld);
            expect_equal("jump_max_back", dd.download(), d);
        }
    });
}

const std::vector<test> max_tests = {
    {"max", test_max},
    {"max_merge", test_max_merge},
    {"jump_max", test_jump_max},
};
