/* Every launcher of codelets/kernels_cuda.h against the kernel of codelets/kernels.h, over the
 * shapes of tests/kernels.c. The program needs CUDA and cuBLAS, neither the runtime nor MPI.
 * Without a device it is skipped (exit status 77).
 *
 * How it is judged. Operations of one rounding per element, and sums of small integers, must be
 * equal. Other sums of n products may differ by n u Σ|terms| on each side (u = 2^-24; Higham,
 * section 3.1); Σ|terms| is what the CPU's kernel makes of the operands' absolute values. Stored in
 * bfloat16, two such results may be neighbours. A result must not depend on ld, on alignment or on
 * which time it is computed: that is compared to the bit.
 *
 * Operands of either type are floats here, which bfloat16 can represent where they are to be
 * stored in it; `stored` and `device_matrix` have them as kernels take them.
 *
 * How stray accesses are seen. Operands stand between guard bands; everything that is not an
 * element is NaN where it is only read and a canary where it is written, and is compared
 * afterwards. compute-sanitizer sees the rest.
 *
 * To test a new kernel: make its operands with random_matrix and empty_matrix, run the CPU's kernel
 * on a copy, upload, launch, and give what download returns to expect_equal or expect_close. */
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "codelets/kernels_cuda.h"
#include "cuda_runtime.h"

extern "C" {
#include "codelets/bfloat16.h"
#include "codelets/submit.h"
#include "core/sparse.h"
}

/* What the codelets' own halves of the object files refer to: nothing here calls them. */
extern "C" {
void sl_task_submit(struct sl_runtime *, const struct sl_task *)
{
    abort();
}

struct sl_sparse sl_sparse_view(const void *, const struct sl_sparse_shape *)
{
    abort();
}

cudaStream_t starpu_cuda_get_local_stream(void)
{
    abort();
}

cublasHandle_t starpu_cublas_get_local_handle(void)
{
    abort();
}

void *sl_runtime_workspace(void)
{
    abort();
}
}

/* ---- Verdicts ---- */

static long checks, failures;
static cudaStream_t stream;
static cublasHandle_t blas;
static void *workspace;

static void __attribute__((format(printf, 1, 2))) fail(const char *format, ...)
{
    if (++failures > 20)
        return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static void expect(bool condition, const char *what)
{
    checks++;
    if (!condition)
        fail("%s", what);
}

static void cuda(cudaError_t code)
{
    if (code == cudaSuccess)
        return;
    printf("CUDA: %s\n", cudaGetErrorString(code));
    exit(1);
}

/* ---- Numbers ---- */

static const double UNIT = 0x1p-24; /* relative error of one float rounding */
static const double HALF_UNIT = 0x1p-8, HALF_STEP = 0x1p-7; /* of one bfloat16 rounding; between
                                                               neighbours, at most */
static const float CANARY = -77.5f;
static const float NONE = std::numeric_limits<float>::quiet_NaN();

static uint64_t random_state = 1;

static uint64_t random_bits()
{
    random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static int64_t random_below(int64_t bound)
{
    return (int64_t)(random_bits() % (uint64_t)bound);
}

enum kind { INTEGERS, REALS }; /* -4 … 4, and ±[0.5, 1.5) */

static float random_value(kind k)
{
    if (k == INTEGERS)
        return (float)(random_below(9) - 4);
    const double magnitude = 0.5 + (double)(random_bits() >> 11) * 0x1p-53;
    return (float)(random_bits() & 1 ? magnitude : -magnitude);
}

/* ---- Operands ---- */

/* Without padding, as StarPU allocates on a device; rows aligned to 64 bytes; padded by three and
 * starting one float after an aligned address; without padding, at the very end of the memory. */
enum layout { TIGHT, PADDED, LOOSE, EDGE, LAYOUTS };

static layout other(layout l)
{
    return (layout)((l + 1) % LAYOUTS);
}

enum { GUARD = 64 }; /* elements before and, but for EDGE, after */

static const enum sl_type TYPES[] = {SL_FLOAT32, SL_BFLOAT16};

struct matrix {
    int64_t rows, cols, ld;
    layout how;
    float pad;
    enum sl_type type;
    std::vector<float> all;

    float *at()
    {
        return all.data() + first();
    }
    const float *at() const
    {
        return all.data() + first();
    }
    int64_t first() const
    {
        return GUARD + (how == LOOSE);
    }
    float &operator()(int64_t r, int64_t j)
    {
        return at()[r * ld + j];
    }
    float operator()(int64_t r, int64_t j) const
    {
        return at()[r * ld + j];
    }
};

static matrix empty_matrix(int64_t rows, int64_t cols, layout how, float pad)
{
    const int64_t ld = how == PADDED ? (cols / 16 + 1) * 16 : how == LOOSE ? cols + 3 : cols;
    const int64_t count = rows * ld + (how == EDGE ? GUARD : 2 * GUARD + 1);
    matrix m = {rows, cols, ld, how, pad, SL_FLOAT32, std::vector<float>((size_t)count, pad)};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = NONE;
    return m;
}

static matrix random_matrix(int64_t rows, int64_t cols, layout how, float pad, kind k)
{
    matrix m = empty_matrix(rows, cols, how, pad);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = random_value(k);
    return m;
}

/* To be stored in that type: rounded to what it can represent. */
static matrix of_type(enum sl_type type, matrix m)
{
    m.type = type;
    for (float &x : m.all)
        x = type == SL_BFLOAT16 ? sl_widen(sl_narrow(x)) : x;
    return m;
}

static matrix moved(const matrix &from, layout how, float pad)
{
    matrix m = empty_matrix(from.rows, from.cols, how, pad);
    m.type = from.type;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            m(r, j) = from(r, j);
    return m;
}

static matrix absolute(const matrix &from)
{
    matrix m = from;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            m(r, j) = std::fabs(m(r, j));
    return m;
}

/* An array on the device. */
template <class T> struct array {
    T *data;
    size_t count;

    explicit array(const std::vector<T> &from) : count(from.size())
    {
        cuda(cudaMalloc((void **)&data, std::max(count, (size_t)1) * sizeof(T)));
        if (count)
            cuda(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    array(const array &) = delete;
    ~array()
    {
        cudaFree(data);
    }
    std::vector<T> download() const
    {
        std::vector<T> to(count);
        cuda(cudaStreamSynchronize(stream));
        if (count)
            cuda(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

static std::vector<uint16_t> halves_of(const matrix &m)
{
    std::vector<uint16_t> halves;
    for (const float x : m.all)
        halves.push_back(sl_narrow(x));
    return halves;
}

static matrix with_halves(matrix m, const std::vector<uint16_t> &halves)
{
    std::transform(halves.begin(), halves.end(), m.all.begin(), sl_widen);
    return m;
}

/* A matrix as the CPU's kernels take it, and what they leave in it. */
struct stored {
    matrix floats;
    std::vector<uint16_t> halves;

    explicit stored(const matrix &from) : floats(from)
    {
        if (from.type == SL_BFLOAT16)
            halves = halves_of(from);
    }
    struct sl_rows rows()
    {
        void *first = floats.at();
        if (floats.type == SL_BFLOAT16)
            first = halves.data() + floats.first();
        return sl_rows_of_type(first, floats.ld, floats.type);
    }
    matrix result() const
    {
        return floats.type == SL_BFLOAT16 ? with_halves(floats, halves) : floats;
    }
};

/* A matrix on the device, with its guards. */
struct device_matrix {
    matrix host;
    array<float> floats;
    array<uint16_t> halves;
    float *at; /* of float32 */
    int64_t ld;

    explicit device_matrix(const matrix &from)
        : host(from), floats(from.type == SL_FLOAT32 ? from.all : std::vector<float>()),
          halves(from.type == SL_BFLOAT16 ? halves_of(from) : std::vector<uint16_t>()),
          at(from.type == SL_FLOAT32 ? floats.data + from.first() : nullptr), ld(from.ld)
    {
    }
    struct sl_rows rows() const
    {
        void *first = at;
        if (host.type == SL_BFLOAT16)
            first = halves.data + host.first();
        return sl_rows_of_type(first, ld, host.type);
    }
    matrix download() const
    {
        matrix m = host;
        if (host.type == SL_BFLOAT16)
            return with_halves(m, halves.download());
        m.all = floats.download();
        return m;
    }
};

static void expect_padding_kept(const char *operation, const matrix &m)
{
    for (int64_t i = 0; i < (int64_t)m.all.size(); i++) {
        const int64_t at = i - m.first();
        if (at >= 0 && at < m.rows * m.ld && at % m.ld < m.cols)
            continue;
        if (memcmp(&m.all[(size_t)i], &m.pad, sizeof(float)) != 0) {
            fail("%s: wrote outside a %lld x %lld matrix, ld %lld, at element %lld", operation,
                 (long long)m.rows, (long long)m.cols, (long long)m.ld, (long long)at);
            return;
        }
    }
}

/* Every element within factor · |size|, or equal where there is no size; NaN equals NaN. Where
 * there is a size, those that are stored in bfloat16 may be neighbours. */
static void expect_close(const char *operation, const matrix &got, const matrix &want,
                         double factor, const matrix *size)
{
    checks++;
    for (int64_t r = 0; r < got.rows; r++)
        for (int64_t j = 0; j < got.cols; j++) {
            const double g = got(r, j), w = want(r, j),
                         step = got.type == SL_BFLOAT16 ? HALF_STEP * std::fabs(w) : 0.0,
                         allowed = size ? factor * std::fabs((*size)(r, j)) + step : 0.0;
            if (!(std::fabs(g - w) <= allowed) && !(std::isnan(g) && std::isnan(w)) && g != w) {
                fail("%s: element (%lld, %lld) of a %lld x %lld matrix, ld %lld, is %.9g, not %.9g "
                     "(within %.2g)",
                     operation, (long long)r, (long long)j, (long long)got.rows,
                     (long long)got.cols, (long long)got.ld, g, w, allowed);
                return;
            }
        }
    expect_padding_kept(operation, got);
}

static void expect_equal(const char *operation, const matrix &got, const matrix &want)
{
    expect_close(operation, got, want, 0.0, nullptr);
}

static void expect_same_bits(const char *operation, const matrix &a, const matrix &b)
{
    checks++;
    for (int64_t r = 0; r < a.rows; r++)
        if (memcmp(a.at() + r * a.ld, b.at() + r * b.ld, (size_t)a.cols * sizeof(float)) != 0) {
            fail("%s: row %lld of %lld x %lld is not the same again", operation, (long long)r,
                 (long long)a.rows, (long long)a.cols);
            return;
        }
}

/* ---- Shapes ---- */

static const int64_t row_counts[] = {0, 1, 5, 64, 129};
static const int64_t widths[] = {1, 7, 8, 15, 16, 17, 31, 32, 41, 48, 64, 100, 128, 256, 602};

template <class Check> static void each_shape(Check check)
{
    random_state = 1;
    for (const int64_t rows : row_counts)
        for (const int64_t cols : widths)
            for (int how = 0; how < LAYOUTS; how++)
                check(rows, cols, (layout)how);
}

/* ---- Sparse operands ---- */

/* Entries block after block, as core/sparse.h has it. */
struct sparse {
    int64_t rows, cols, block_cols, blocks;
    bool narrow, has_values;
    std::vector<uint32_t> row_ptr, col;
    std::vector<uint16_t> narrow_col;
    std::vector<float> value;

    int64_t nnz() const
    {
        return (int64_t)value.size();
    }
    /* The CPU's kernels want a block, even of no columns, to write a result. */
    struct sl_sparse view() const
    {
        return {rows,
                cols,
                std::max(block_cols, (int64_t)1),
                std::max(blocks, (int64_t)1),
                narrow,
                row_ptr.data(),
                narrow ? (const void *)narrow_col.data() : (const void *)col.data(),
                has_values ? value.data() : nullptr};
    }
    int64_t longest(bool transposed) const /* terms of one result, at most */
    {
        return transposed ? rows : cols;
    }
};

struct device_sparse {
    array<uint32_t> row_ptr, col;
    array<uint16_t> narrow_col;
    array<float> value;
    struct sl_sparse view;

    explicit device_sparse(const sparse &a)
        : row_ptr(a.row_ptr), col(a.col), narrow_col(a.narrow_col), value(a.value)
    {
        view = {a.rows,
                a.cols,
                a.block_cols,
                a.blocks,
                a.narrow,
                row_ptr.data,
                a.narrow ? (const void *)narrow_col.data : (const void *)col.data,
                a.has_values ? value.data : nullptr};
    }
};

/* `degree` entries per row on average; every fifth row is empty; row `hub`, if there is one, is
 * full. block_cols 0: one block. */
static sparse random_sparse(int64_t rows, int64_t cols, int64_t degree, int64_t hub,
                            bool has_values, kind k, int64_t block_cols = 0, bool narrow = false)
{
    const int64_t block = block_cols ? std::min(block_cols, cols) : cols;
    const int64_t blocks = cols ? (cols + block - 1) / block : 0;
    sparse a = {rows, cols, block, blocks, narrow, has_values, {0}, {}, {}, {}};
    for (int64_t b = 0; b < std::max(blocks, (int64_t)1); b++)
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = b * block; c < std::min((b + 1) * block, cols); c++)
                if (r == hub || (r % 5 != 3 && random_below(cols) < degree)) {
                    a.col.push_back((uint32_t)(c - b * block));
                    a.narrow_col.push_back((uint16_t)(c - b * block));
                    a.value.push_back(random_value(k));
                }
            a.row_ptr.push_back((uint32_t)a.col.size());
        }
    return a;
}

static sparse absolute(sparse a)
{
    for (float &v : a.value)
        v = std::fabs(v);
    return a;
}

static std::vector<uint32_t> random_vertices(int64_t rows)
{
    std::vector<uint32_t> vertex((size_t)rows);
    for (uint32_t &v : vertex)
        v = (uint32_t)random_bits();
    return vertex;
}

/* p = 1/2 has the exact scale 2. */
static struct sl_dropout some_dropout(double p)
{
    struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(7, SL_RNG_DROPOUT, 3, 1));
    drop.column0 = (uint32_t)(random_bits() % 9);
    return drop;
}

/* ---- Sparse features ---- */

/* The entries' dropout, if there is any. */
struct dropping {
    const struct sl_dropout *drop;
    std::vector<uint32_t> vertex;
};

static void launch_features(const sparse &a, const device_sparse &on_device, const dropping &d,
                            const array<uint32_t> &vertex, bool transposed, const device_matrix &h,
                            bool accumulate, const device_matrix &z)
{
    sl_cuda_features(transposed, &on_device.view, a.nnz(), d.drop, vertex.data, z.host.cols, h.at,
                     h.ld, accumulate, z.at, z.ld, stream);
}

static matrix run_cpu_features(const sparse &a, const dropping &d, bool transposed, const matrix &h,
                               bool accumulate, matrix z)
{
    const struct sl_sparse view = a.view();
    sl_kernel_features(transposed, &view, d.drop, d.vertex.data(), z.cols, h.at(), h.ld, accumulate,
                       z.at(), z.ld);
    return z;
}

static void check_expand(const sparse &a, const device_sparse &on_device,
                         const struct sl_dropout *drop, layout how, enum sl_type type)
{
    const std::vector<uint32_t> vertex = random_vertices(a.rows);
    const array<uint32_t> dvertex(vertex);
    const matrix z = of_type(type, empty_matrix(a.rows, a.cols, how, CANARY));
    const device_matrix dz(z);
    stored want(z);
    const struct sl_sparse view = a.view();
    const struct sl_rows out = dz.rows(), wanted = want.rows();
    sl_cuda_expand(&on_device.view, drop, dvertex.data, &out, stream);
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
    const std::string name = std::string("features") + (transposed ? ", transposed" : "") +
                             (accumulate ? ", accumulate" : "") + (a.has_values ? ", values" : "") +
                             (drop ? ", dropout" : "");
    const int64_t rows = transposed ? a.cols : a.rows, inner = transposed ? a.rows : a.cols;
    const dropping d = {drop, random_vertices(a.rows)};
    const array<uint32_t> vertex(d.vertex);
    const matrix h = random_matrix(inner, width, how, NONE, k);
    const matrix z = accumulate ? random_matrix(rows, width, other(how), CANARY, k)
                                : empty_matrix(rows, width, other(how), CANARY);
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
                for (const int64_t degree : {6, 40})
                    check_features_options(random_sparse(rows, cols, degree, rows / 2, option & 1,
                                                         k, option & 2 ? 37 : 0, option & 2),
                                           false, width, how, k);
    });
}

static void test_features_transposed()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t inner : {0, 77})
            for (int option = 0; option < 4; option++)
                check_features_options(random_sparse(inner, rows, 4, inner / 2, option & 1, k,
                                                     option & 2 ? 27 : 0, option & 2),
                                       true, width, how, k);
    });
}

/* More entries at once than the list of the transposed product holds, and ranges of one row and of
 * many. */
static void test_features_transposed_lists()
{
    for (const int64_t cols : {1, 511, 513, 3000, 40000})
        for (const int64_t width : {5, 41, 128, 130}) {
            if (cols <= 3000)
                check_features_options(random_sparse(300, cols, cols, -1, true, INTEGERS), true,
                                       width, TIGHT, INTEGERS);
            check_features_options(random_sparse(60, cols, 50, 7, true, INTEGERS), true, width,
                                   PADDED, INTEGERS);
            check_features_options(random_sparse(60, cols, 50, 7, true, INTEGERS, 1000, true), true,
                                   width, PADDED, INTEGERS);
        }
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

/* The steps of an epilogue, and its operands. */
enum { BEFORE = 1, BIAS = 2, RELU = 4, MASK = 8, DROP = 16, AFTER = 32, SCALE = 64, STEPS = 128 };
enum { NO_EPILOGUE = -1 };

struct finish {
    int steps;
    struct sl_dropout drop;
    uint32_t column0;
    matrix before, bias, after;
    stored mask;
    std::vector<uint32_t> vertex;

    struct sl_epilogue make(const float *before_at, const float *bias_at,
                            const struct sl_rows &mask_rows, const uint32_t *vertex_at,
                            const float *after_at) const
    {
        struct sl_epilogue e = {};
        e.scale = steps & SCALE ? 0.5f : 1.0f;
        e.before = steps & BEFORE ? before_at : nullptr;
        e.bias = steps & BIAS ? bias_at : nullptr;
        e.relu = steps & RELU;
        if (steps & MASK)
            e.mask = mask_rows;
        if (steps & DROP)
            e.drop = drop;
        e.vertex = vertex_at;
        e.column0 = column0;
        e.after = steps & AFTER ? after_at : nullptr;
        return e;
    }
    struct sl_epilogue view()
    {
        return make(before.at(), bias.at(), mask.rows(), vertex.data(), after.at());
    }
};

static enum sl_type some_type()
{
    return TYPES[random_below(2)];
}

static finish random_finish(int64_t rows, int64_t cols, int steps, layout how, kind k)
{
    static const uint32_t columns[] = {0, 4, 1021, 4000000002u};
    return {steps,
            some_dropout(0.5),
            columns[random_below(4)],
            random_matrix(1, rows, TIGHT, NONE, k),
            random_matrix(1, cols, other(how), NONE, k),
            random_matrix(1, rows, TIGHT, NONE, k),
            stored(of_type(some_type(), random_matrix(rows, cols, how, NONE, INTEGERS))),
            random_vertices(rows)};
}

static finish absolute(finish f)
{
    f.before = absolute(f.before);
    f.bias = absolute(f.bias);
    f.after = absolute(f.after);
    return f;
}

struct device_finish {
    device_matrix before, bias, after, mask;
    array<uint32_t> vertex;
    struct sl_epilogue view;

    explicit device_finish(const finish &f)
        : before(f.before), bias(f.bias), after(f.after), mask(f.mask.floats), vertex(f.vertex)
    {
        view = f.make(before.at, bias.at, mask.rows(), vertex.data, after.at);
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
    const struct sl_rows out = z.rows();
    sl_kernel_spmm((int64_t)parts.size(), a.data(), h.data(), t.z.cols, accumulate,
                   f.steps == NO_EPILOGUE ? nullptr : &epilogue, t.sum.at(), t.sum.ld, &out);
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
    const struct sl_rows out = dz.rows();
    const bool one = takes_one_launch(parts);
    sl_cuda_spmm((int64_t)parts.size(), views.data(), t.z.cols, accumulate,
                 f.steps == NO_EPILOGUE ? nullptr : &df.view,
                 one && !accumulate ? nullptr : dsum.at, dsum.ld, &out, stream);
    const matrix sum = dsum.download();
    expect_padding_kept("sum of spmm", sum);
    if (one || t.z.type == SL_FLOAT32)
        expect_same_bits("sum of spmm", sum, t.sum);
    return dz.download();
}

static void check_types(const std::vector<part> &parts, placing where, bool accumulate, int steps,
                        layout how, kind k, enum sl_type z_type)
{
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

static int some_steps()
{
    return (int)random_below(STEPS);
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
                for (const int64_t degree : {6, 40})
                    check_product(random_sparse(rows, cols, degree, rows / 2, has_values, k), width,
                                  how, k);
    });
}

/* Blocks of one column, of some, and of all; columns of either size. */
static void test_spmm_blocks()
{
    each_shape([](int64_t rows, int64_t width, layout how) {
        const kind k = how == TIGHT ? REALS : INTEGERS;
        for (const int64_t block_cols : {1, 7, 45, 90})
            for (int option = 0; option < 4; option++)
                check_product(random_sparse(rows, 90, option & 1 ? 40 : 6, rows / 2, option & 1, k,
                                            block_cols, option & 2),
                              width, how, k);
    });
    /* As many columns as 16 bits can tell apart, and more than one such block. */
    for (const int64_t block_cols : {65535, 65536})
        check_product(random_sparse(9, 140000, 300, 4, true, INTEGERS, block_cols, true), 33,
                      PADDED, INTEGERS);
}

/* Rows that a whole block takes, among short ones; lengths around the bounds of that; many blocks.
 */
static void test_spmm_long_rows()
{
    for (const int64_t width : widths)
        for (const int64_t degree : {3, 40})
            for (const int64_t hub : {0, 150, 299})
                for (const int64_t block_cols : {0, 900})
                    check_product(random_sparse(300, 5000, degree, hub, true, INTEGERS, block_cols),
                                  width, width % 2 ? TIGHT : PADDED, INTEGERS);
    for (int64_t length = 64; length <= 2048; length *= 2)
        for (int64_t off = -1; off <= 1; off++)
            for (const int64_t width : {1, 9, 41, 128}) {
                const sparse a = random_sparse(3, length + off, 0, 1, true, INTEGERS),
                             b = random_sparse(3, length + off, 0, 1, true, INTEGERS, 100, true);
                check_product(a, width, LOOSE, INTEGERS);
                check_product(b, width, LOOSE, INTEGERS);
                for (int transposed = 0; transposed < 2; transposed++)
                    check_features_options(a, transposed, width, LOOSE, INTEGERS);
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
        check_features_options(a, false, 17, TIGHT, INTEGERS);
        check_features_options(a, true, 17, TIGHT, INTEGERS);
    }
}

/* NaN reaches exactly the results that it is a term of. */
static void test_spmm_nan()
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
            if (transposed)
                continue;
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

static void test_features_same_bits()
{
    const struct sl_dropout drop = some_dropout(0.3);
    const dropping d = {&drop, random_vertices(61)};
    const array<uint32_t> vertex(d.vertex);
    for (const int64_t width : widths)
        for (int option = 0; option < 8; option++) {
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

/* ---- The aggregation primitive ---- */

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
static void check_aggregate(const sparse &a, enum sl_message operation, enum sl_reducer reducer,
                            bool edge_rows, int64_t width, layout how)
{
    enum { FIRST = 100 };
    const bool sums = reducer == SL_REDUCE_SUM;
    const device_sparse on_device(a);
    const struct sl_sparse view = a.view();
    const matrix edges = edge_features(a.nnz(), edge_rows ? width : 1);
    const device_matrix dedges(edges);
    const int64_t ld = edge_rows ? edges.ld : 0;
    const struct sl_messages here = {operation, edges.at(), ld}, there = {operation, dedges.at, ld};
    const matrix h = random_matrix(a.cols, width, how, NONE, INTEGERS);
    matrix z = random_matrix(a.rows, width, other(how), CANARY, INTEGERS);
    std::vector<int32_t> arg((size_t)(a.rows * width), -1);
    for (int32_t &vertex : arg)
        vertex = (int32_t)random_below(2 * FIRST) - 1;
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        const device_matrix dh(h), dz(z);
        const array<int32_t> darg(arg);
        sl_cuda_aggregate(reducer, &there, &on_device.view, width, dh.at, dh.ld, accumulate, dz.at,
                          dz.ld, FIRST, sums ? nullptr : darg.data, width, stream);
        sl_kernel_aggregate(reducer, &here, &view, width, h.at(), h.ld, accumulate, z.at(), z.ld,
                            FIRST, sums ? nullptr : arg.data(), width);
        expect_equal("aggregate", dz.download(), z);
        expect_equal_args(darg.download(), arg);
    }
    const matrix g = random_matrix(a.rows, width, PADDED, NONE, INTEGERS);
    const device_matrix dh(h), dg(g);
    const array<int32_t> darg(arg);
    if (operation != SL_MESSAGE_COPY) {
        matrix de = empty_matrix(a.nnz(), edge_rows ? width : 1, edge_rows ? PADDED : EDGE, CANARY);
        const device_matrix dde(de);
        sl_cuda_aggregate_edges(&there, &on_device.view, width, dh.at, dh.ld, dg.at, dg.ld, FIRST,
                                sums ? nullptr : darg.data, width, dde.at, dde.ld, stream);
        sl_kernel_aggregate_edges(&here, &view, width, h.at(), h.ld, g.at(), g.ld, FIRST,
                                  sums ? nullptr : arg.data(), width, de.at(), de.ld);
        expect_equal("aggregate_edges", dde.download(), de);
    }
    /* Any matrix will do for the transpose: G has the rows that it meets. */
    const matrix back = random_matrix(a.cols, width, TIGHT, NONE, INTEGERS);
    std::vector<int32_t> chosen((size_t)(a.cols * width));
    for (int32_t &vertex : chosen)
        vertex = FIRST + (int32_t)random_below(a.rows + 1);
    matrix result = random_matrix(a.rows, width, how, CANARY, INTEGERS);
    const device_matrix dback(back), dresult(result);
    const array<int32_t> dchosen(chosen);
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        sl_cuda_aggregate_back(&there, &on_device.view, width, dback.at, dback.ld, FIRST,
                               sums ? nullptr : dchosen.data, width, accumulate, dresult.at,
                               dresult.ld, stream);
        sl_kernel_aggregate_back(&here, &view, width, back.at(), back.ld, FIRST,
                                 sums ? nullptr : chosen.data(), width, accumulate, result.at(),
                                 result.ld);
        expect_equal("aggregate_back", dresult.download(), result);
    }
}

static void test_aggregate()
{
    random_state = 11;
    for (int operation = 0; operation < SL_MESSAGES; operation++)
        for (int reducer = 0; reducer < SL_REDUCERS; reducer++)
            for (int option = 0; option < 8; option++)
                for (const int64_t width : {1, 33, 64, 130}) {
                    const sparse a = random_sparse(option & 4 ? 129 : 5, 47, 6, 2, false, INTEGERS,
                                                   option & 2 ? 11 : 0, option & 1);
                    check_aggregate(a, (enum sl_message)operation, (enum sl_reducer)reducer,
                                    operation != SL_MESSAGE_COPY && option & 1, width,
                                    (layout)(option % LAYOUTS));
                }
}

/* ---- Epilogue ---- */

/* Z = SUM or apart. */
static void check_epilogue(int64_t rows, int64_t cols, int steps, layout how, kind k, bool apart)
{
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
    sl_cuda_epilogue(rows, cols, &df.view, &from, &to, stream);
    const struct sl_epilogue e = f.view(), bound = positive.view();
    sl_kernel_epilogue(rows, cols, &e, &want_from, &want_to);
    sl_kernel_epilogue(rows, cols, &bound, &sizes, &sizes);
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
                check_epilogue(37, cols, steps, (layout)how, INTEGERS, steps % 2);
                const sparse a = random_sparse(37, 50, 9, 5, true, INTEGERS, 20, true);
                const std::vector<part> parts = {
                    make_part(a, cols, {0, 20, 50}, (layout)how, INTEGERS)};
                check_spmm(parts, APART, steps % 2, steps, (layout)how, INTEGERS);
            }
}

/* ---- Dense products ---- */

static matrix run_cpu_gemm(const bool options[3], int64_t k, const matrix &a, const matrix &b,
                           const matrix &c)
{
    stored from(a), to(c);
    const struct sl_rows a_rows = from.rows(), c_rows = to.rows();
    sl_kernel_gemm(options[0], options[1], c.rows, c.cols, k, &a_rows, b.at(), b.ld, options[2],
                   NULL, &c_rows);
    return to.result();
}

/* Where A is bfloat16, B may be rounded to it. */
static void check_gemm(int64_t m, int64_t n, int64_t k, int option, enum sl_type a_type,
                       enum sl_type c_type)
{
    const bool options[3] = {(option & 1) != 0, (option & 2) != 0, (option & 4) != 0};
    const std::string name = "gemm, option " + std::to_string(option) + ", types " +
                             std::to_string((int)a_type) + std::to_string((int)c_type);
    const kind kinds = random_below(2) ? REALS : INTEGERS;
    const layout la = (layout)random_below(LAYOUTS), lb = (layout)random_below(LAYOUTS),
                 lc = (layout)random_below(LAYOUTS);
    const matrix a = of_type(a_type, options[0] ? random_matrix(k, m, la, NONE, kinds)
                                                : random_matrix(m, k, la, NONE, kinds)),
                 b = options[1] ? random_matrix(n, k, lb, NONE, kinds)
                                : random_matrix(k, n, lb, NONE, kinds),
                 c = of_type(c_type, options[2] ? random_matrix(m, n, lc, CANARY, kinds)
                                                : empty_matrix(m, n, lc, CANARY));
    const device_matrix da(a), db(b), dc(c);
    const struct sl_rows from = da.rows(), to = dc.rows();
    sl_cuda_gemm(blas, options[0], options[1], m, n, k, &from, db.at, db.ld, options[2], NULL, &to,
                 workspace, stream);
    const matrix got = dc.download(), want = run_cpu_gemm(options, k, a, b, c);
    const matrix size =
        run_cpu_gemm(options, k, absolute(a), absolute(b), of_type(SL_FLOAT32, absolute(c)));
    const double rounding = a_type == SL_BFLOAT16 ? HALF_UNIT : 0.0;
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
        for (const enum sl_type c_type : TYPES)
            if (may_be_c(c_type, option))
                check_gemm(m, n, k, option, a_type, c_type);
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
                                enum sl_type a_type, enum sl_type c_type)
{
    finish f = random_finish(m, n, some_steps(), PADDED, INTEGERS);
    const device_finish df(f);
    const matrix a = of_type(a_type, random_matrix(m, k, PADDED, NONE, INTEGERS)),
                 b = transpose_b ? random_matrix(n, k, LOOSE, NONE, INTEGERS)
                                 : random_matrix(k, n, LOOSE, NONE, INTEGERS),
                 c = of_type(c_type, empty_matrix(m, n, PADDED, CANARY));
    const device_matrix da(a), db(b), dc(c);
    const struct sl_rows from = da.rows(), to = dc.rows();
    sl_cuda_gemm(blas, false, transpose_b, m, n, k, &from, db.at, db.ld, false, &df.view, &to,
                 workspace, stream);
    stored want_a(a), want_c(c);
    const struct sl_rows a_rows = want_a.rows(), c_rows = want_c.rows();
    const struct sl_epilogue e = f.view();
    sl_kernel_gemm(false, transpose_b, m, n, k, &a_rows, b.at(), b.ld, false, &e, &c_rows);
    expect_equal("gemm with an epilogue", dc.download(), want_c.result());
}

static void test_gemm_epilogue()
{
    random_state = 3;
    static const int64_t sizes[][3] = {{1, 1, 1},    {7, 5, 0},       {5, 17, 41},
                                       {700, 41, 9}, {3000, 3001, 2}, {129, 64, 602}};
    for (const auto &size : sizes)
        for (int option = 0; option < 8; option++)
            check_gemm_epilogue(size[0], size[1], size[2], option & 1, TYPES[option / 2 % 2],
                                TYPES[option / 4]);
}

/* B, or C in float32, is more than the workspace holds. */
static void test_gemm_pieces()
{
    static const int64_t sizes[][3] = {{3, 129, 140000}, {2, 2060, 8200}};
    random_state = 2;
    for (const auto &size : sizes)
        for (int option = 0; option < 8; option++)
            for (const enum sl_type c_type : TYPES)
                if (may_be_c(c_type, option))
                    check_gemm(size[0], size[1], size[2], option, SL_BFLOAT16, c_type);
    for (const int option : {0, 2})
        check_gemm(3000, 3001, 2, option, SL_FLOAT32, SL_BFLOAT16);
}

/* ---- Elementwise and row operations ---- */

static void test_bias()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        matrix want = random_matrix(rows, cols, how, CANARY, REALS);
        const matrix b = random_matrix(1, cols, other(how), NONE, REALS);
        const device_matrix dz(want), db(b);
        sl_cuda_bias(rows, cols, db.at, dz.at, dz.ld, stream);
        sl_kernel_bias(rows, cols, b.at(), want.at(), want.ld);
        expect_equal("bias", dz.download(), want);
    });
}

static void check_bias_gradient(int64_t rows, int64_t cols, bool has_factor, layout how, kind k)
{
    const matrix g = random_matrix(rows, cols, how, NONE, k),
                 factor = random_matrix(1, rows, TIGHT, NONE, k);
    matrix want = empty_matrix(1, cols, TIGHT, CANARY), size = want;
    const device_matrix dg(g), df(factor), first(want), again(want);
    const float *const on_device = has_factor ? df.at : nullptr;
    sl_cuda_bias_gradient(rows, cols, on_device, dg.at, dg.ld, first.at, workspace, stream);
    sl_cuda_bias_gradient(rows, cols, on_device, dg.at, dg.ld, again.at, workspace, stream);
    sl_kernel_bias_gradient(rows, cols, has_factor ? factor.at() : nullptr, g.at(), g.ld,
                            want.at());
    const matrix positive = absolute(g), positive_factor = absolute(factor);
    sl_kernel_bias_gradient(rows, cols, has_factor ? positive_factor.at() : nullptr, positive.at(),
                            positive.ld, size.at());
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
    static const int64_t sizes[][2] = {{100000, 41}, {40000, 1},   {5000, 602},
                                       {300, 40000}, {130, 70000}, {33000, 16}};
    for (const auto &size : sizes)
        for (int how = 0; how < LAYOUTS; how++)
            check_bias_gradient(size[0], size[1], how % 2, (layout)how, INTEGERS);
}

static void test_relu()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        matrix want = random_matrix(rows, cols, how, CANARY, INTEGERS);
        if (rows > 0) {
            want(rows / 2, cols / 2) = NONE;
            want(0, cols - 1) = -INFINITY;
        }
        const device_matrix dz(want);
        sl_cuda_relu(rows, cols, dz.at, dz.ld, stream);
        sl_kernel_relu(rows, cols, want.at(), want.ld);
        expect_equal("relu", dz.download(), want);
    });
}

static void test_relu_backward()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        const matrix h = random_matrix(rows, cols, how, NONE, INTEGERS);
        matrix want = random_matrix(rows, cols, other(how), CANARY, REALS);
        if (rows > 0)
            want(rows / 2, cols / 2) = NONE;
        const device_matrix dh(h), dg(want);
        sl_cuda_relu_backward(rows, cols, 1.25f, dh.at, dh.ld, dg.at, dg.ld, stream);
        sl_kernel_relu_backward(rows, cols, 1.25f, h.at(), h.ld, want.at(), want.ld);
        expect_equal("relu backward", dg.download(), want);
    });
}

static void test_accumulate()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const layout to : {how, other(how)}) { /* both without padding: one long row */
            const matrix x = random_matrix(rows, cols, how, NONE, REALS);
            matrix want = random_matrix(rows, cols, to, CANARY, REALS);
            const device_matrix dx(x), dy(want);
            sl_cuda_accumulate(rows, cols, dx.at, dx.ld, dy.at, dy.ld, stream);
            sl_kernel_accumulate(rows, cols, x.at(), x.ld, want.at(), want.ld);
            expect_equal("accumulate", dy.download(), want);
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
            sl_cuda_copy(rows, cols, dx.at, dx.ld, dy.at, dy.ld, stream);
            expect_equal("copy", dy.download(), moved(x, to, CANARY));
        }
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
            sl_cuda_paste(rows, cols, &from, &out, stream);
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
    sl_cuda_metrics_add(SL_METRICS, dx.data, dy.data, stream);
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
            sl_cuda_fill(rows, cols, 2.5f, &out, stream);
            sl_kernel_fill(rows, cols, 2.5f, want.at(), want.ld);
            expect_equal("fill", dw.download(), want);
        }
    });
}

/* Longer than the grid of one launch reaches. */
static void test_fill_large()
{
    const int64_t rows = 3, cols = 30000001;
    matrix want = empty_matrix(rows, cols, TIGHT, CANARY);
    const device_matrix dw(want);
    const struct sl_rows out = dw.rows();
    sl_cuda_fill(rows, cols, 1.5f, &out, stream);
    sl_kernel_fill(rows, cols, 1.5f, want.at(), want.ld);
    expect_equal("large fill", dw.download(), want);
}

static void test_scale_rows()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        const matrix s = random_matrix(1, rows, TIGHT, NONE, REALS),
                     x = random_matrix(rows, cols, how, CANARY, REALS);
        matrix want = empty_matrix(rows, cols, other(how), CANARY);
        const device_matrix ds(s), dx(x), dy(want);
        sl_cuda_scale_rows(rows, cols, ds.at, dx.at, dx.ld, dy.at, dy.ld, stream);
        sl_kernel_scale_rows(rows, cols, s.at(), x.at(), x.ld, want.at(), want.ld);
        expect_equal("scale rows", dy.download(), want);
        sl_cuda_scale_rows(rows, cols, ds.at, dx.at, dx.ld, dx.at, dx.ld, stream);
        expect_equal("scale rows in place", dx.download(), want);
    });
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
    sl_cuda_pack_rows(rows, cols, di.data, &dfrom, &dto, stream);
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
    sl_cuda_unpack_rows(rows, cols, di.data, accumulate, &dfrom, &dto, stream);
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
}

/* ---- Random numbers and dropout ---- */

static void test_glorot()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        const uint64_t key = sl_rng_key(11, SL_RNG_INIT, 0, 2);
        matrix want = empty_matrix(rows, cols, how, CANARY);
        const device_matrix dw(want);
        sl_cuda_glorot(rows, cols, 0.37f, key, 17, 5, dw.at, dw.ld, stream);
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
        const enum sl_type from = TYPES[option & 1], to = TYPES[option >> 1 & 1];
        const layout there = option & 4 ? other(how) : how;
        stored x(of_type(from, random_matrix(rows, cols, how, CANARY, REALS))),
            y(of_type(to, empty_matrix(rows, cols, there, CANARY)));
        const device_matrix dx(x.floats), dy(y.floats);
        const struct sl_rows in = dx.rows(), out = dy.rows(), want_in = x.rows(),
                             want_out = y.rows();
        sl_cuda_dropout(rows, cols, &drop, dvertex.data, column0, &in, &out, stream);
        sl_kernel_dropout(rows, cols, &drop, vertex.data(), column0, &want_in, &want_out);
        expect_equal("dropout", dy.download(), y.result());
        sl_cuda_dropout(rows, cols, &drop, dvertex.data, column0, &in, &in, stream);
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

/* ---- Loss and accuracy ---- */

static std::vector<int32_t> random_targets(int64_t rows, int64_t classes)
{
    std::vector<int32_t> target((size_t)rows * 2);
    for (size_t r = 0; r < (size_t)rows; r++) {
        target[2 * r] = (int32_t)(random_below(classes + 1) - 1);
        target[2 * r + 1] = (int32_t)random_below(4);
    }
    return target;
}

enum { TRAIN = 1 };

static bool close(double got, double want, double bound)
{
    return got == want || (std::isnan(got) && std::isnan(want)) || std::fabs(got - want) <= bound;
}

/* The logits are at most `size` large. A row's loss has the error of its terms, of their sum and of
 * adding the largest logit back; a probability that of one term and of the sum. */
static void check_softmax(const matrix &z, const std::vector<int32_t> &target, layout how,
                          double size, bool has_factor = false)
{
    const float scale = 1.0f / 140.0f;
    const double row_bound = 2.0 * ((double)z.cols + 8.0 + 4.0 * size) * UNIT;
    matrix want = empty_matrix(z.rows, z.cols, how, CANARY);
    const array<int32_t> dt(target);
    const matrix factor = random_matrix(1, z.rows, TIGHT, NONE, REALS);
    const device_matrix dz(z), dg(want), df(factor);
    const array<double> training(std::vector<double>(SL_METRICS, -1.0)),
        all(std::vector<double>(SL_METRICS, -1.0)), again(std::vector<double>(SL_METRICS, -1.0));
    sl_cuda_softmax_loss(z.rows, z.cols, scale, has_factor ? df.at : nullptr, dt.data, dz.at, dz.ld,
                         training.data, dg.at, dg.ld, workspace, stream);
    sl_cuda_accuracy(z.rows, z.cols, dt.data, dz.at, dz.ld, all.data, workspace, stream);
    sl_cuda_accuracy(z.rows, z.cols, dt.data, dz.at, dz.ld, again.data, workspace, stream);

    double loss, correct, losses[4], corrects[4];
    sl_kernel_softmax_loss(z.rows, z.cols, scale, has_factor ? factor.at() : nullptr, target.data(),
                           z.at(), z.ld, &loss, &correct, want.at(), want.ld);
    sl_kernel_accuracy(z.rows, z.cols, target.data(), z.at(), z.ld, corrects, losses);

    const std::vector<double> got = training.download(), got_all = all.download();
    const double bound = row_bound * (double)z.rows;
    expect(close(got[SL_METRIC_LOSS + TRAIN], loss, bound), "training loss");
    expect(got[SL_METRIC_CORRECT + TRAIN] == correct, "training correct");
    for (size_t i = 0; i < SL_METRICS; i++)
        expect(i == SL_METRIC_LOSS + TRAIN || i == SL_METRIC_CORRECT + TRAIN || got[i] == 0.0,
               "other metrics");
    for (size_t s = 0; s < 4; s++) {
        expect(close(got_all[SL_METRIC_LOSS + s], losses[s], bound), "loss of a split");
        expect(got_all[SL_METRIC_CORRECT + s] == corrects[s], "correct of a split");
    }
    for (size_t i = 8; i < SL_METRICS; i++)
        expect(got_all[i] == 0.0, "metrics behind");
    expect(memcmp(got_all.data(), again.download().data(), sizeof(double) * SL_METRICS) == 0,
           "accuracy is not the same again");
    matrix scales = want;
    for (int64_t r = 0; r < z.rows; r++)
        for (int64_t j = 0; j < z.cols; j++)
            scales(r, j) =
                std::fabs(want(r, j)) + (j == target[2 * (size_t)r] ? 3.0f * scale : 1e-37f);
    expect_close("softmax gradient", dg.download(), want, 2.0 * ((double)z.cols + 16.0) * UNIT,
                 &scales);
}

static void test_softmax()
{
    each_shape([](int64_t rows, int64_t classes, layout how) {
        for (const kind k : {INTEGERS, REALS}) /* integer logits: many ties for the largest */
            for (const bool has_factor : {false, true})
                check_softmax(random_matrix(rows, classes, how, NONE, k),
                              random_targets(rows, classes), other(how), 4.0, has_factor);
    });
    /* More rows than one pass of the grid takes. */
    check_softmax(random_matrix(70001, 7, TIGHT, NONE, REALS), random_targets(70001, 7), TIGHT,
                  2.0);
    check_softmax(random_matrix(20001, 41, TIGHT, NONE, REALS), random_targets(20001, 41), TIGHT,
                  2.0);
}

static void test_softmax_large_logits()
{
    random_state = 9;
    for (int trial = 0; trial < 20; trial++) {
        matrix z = empty_matrix(40, 41, LOOSE, NONE);
        std::vector<int32_t> target = random_targets(40, 41);
        for (int64_t r = 0; r < 40; r++)
            for (int64_t j = 0; j < 41; j++)
                z(r, j) = r < 2 || random_below(3) == 0
                              ? (r == 0 || (r > 1 && random_bits() & 1) ? 1e4f : -1e4f)
                              : random_value(REALS);
        check_softmax(z, target, PADDED, 1e4);
    }
}

/* NaN at the start, behind the largest, before it and alone; all logits -inf; +inf. */
static void test_softmax_not_finite()
{
    const float bad[] = {NONE, INFINITY, -INFINITY};
    for (const int64_t classes : {1, 3, 9, 41})
        for (const float value : bad) {
            matrix z = random_matrix(4 * classes + 1, classes, TIGHT, NONE, REALS);
            std::vector<int32_t> target((size_t)z.rows * 2);
            for (int64_t r = 0; r < z.rows; r++) {
                target[2 * (size_t)r] = (int32_t)(r % 4 == 3 ? -1 : r % classes);
                target[2 * (size_t)r + 1] = (int32_t)(r % 4);
                if (r < 4 * classes)
                    z(r, r / 4) = value;
            }
            for (int64_t j = 0; j < classes; j++)
                z(z.rows - 1, j) = value;
            check_softmax(z, target, TIGHT, 4.0);
        }
}

static void test_first_largest_wins()
{
    static const float logits[][4] = {
        {1, 3, 3, 3}, {5, 5, 5, 5}, {-2, -3, -2, -9}, {0, 1, 2, 2}, {-1, -1, -1, 0}};
    static const int32_t first[] = {1, 0, 0, 2, 3};
    for (size_t i = 0; i < 5; i++)
        for (int32_t label = 0; label < 4; label++) {
            matrix z = empty_matrix(1, 4, TIGHT, NONE);
            std::copy(logits[i], logits[i] + 4, z.at());
            const device_matrix dz(z);
            const array<int32_t> dt(std::vector<int32_t>{label, TRAIN});
            const array<double> metrics(std::vector<double>(SL_METRICS, -1.0));
            sl_cuda_accuracy(1, 4, dt.data, dz.at, dz.ld, metrics.data, workspace, stream);
            expect(metrics.download()[SL_METRIC_CORRECT + TRAIN] == (label == first[i]),
                   "first largest");
        }
}

/* ---- Optimizers ---- */

/* How far one float step may be from the exact one: a few roundings of each term. */
static void step_bounds(const struct sl_optimizer_step &s, double g, double w, double m, double v,
                        double bound[3])
{
    const double rate = s.rate, decay = s.decay, beta1 = s.beta1, beta2 = s.beta2;
    if (s.method == SL_SGD) {
        bound[1] = 4.0 * UNIT * (std::fabs(beta1 * m) + std::fabs(g) + std::fabs(decay * w));
        bound[0] = 4.0 * UNIT * (std::fabs(w) + rate * std::fabs(beta1 * m + g + decay * w)) +
                   rate * bound[1];
        bound[2] = 0.0;
        return;
    }
    const double g_bound =
        s.method == SL_ADAM ? 4.0 * UNIT * (std::fabs(g) + 3.0 * std::fabs(decay * w)) : 0.0;
    if (s.method == SL_ADAM)
        g += decay * w;
    const double new_m = beta1 * m + (1.0 - beta1) * g, new_v = beta2 * v + (1.0 - beta2) * g * g;
    const double root = std::sqrt(new_v / (double)s.correction2) + (double)s.epsilon;
    const double move = rate * new_m / (double)s.correction1 / root;
    bound[1] = 4.0 * UNIT * (std::fabs(beta1 * m) + std::fabs((1.0 - beta1) * g)) +
               (1.0 - beta1) * g_bound;
    bound[2] = 6.0 * UNIT * new_v + 2.0 * (1.0 - beta2) * std::fabs(g) * g_bound;
    bound[0] = 4.0 * UNIT * std::fabs(w) +
               std::fabs(move) * (12.0 * UNIT + (new_v > 0.0 ? bound[2] / new_v : 0.0)) +
               rate * bound[1] / (double)s.correction1 / root;
}

/* Each step is judged from the CPU's state before it. */
static void check_optimizer(struct sl_optimizer_step step, int64_t rows, int64_t cols, layout how)
{
    matrix w = random_matrix(rows, cols, how, CANARY, REALS),
           m = empty_matrix(rows, cols, other(how), CANARY), v = m;
    sl_kernel_fill(rows, cols, 0.0f, m.at(), m.ld);
    sl_kernel_fill(rows, cols, 0.0f, v.at(), v.ld);
    const bool sgd = step.method == SL_SGD;
    for (int t = 1; t <= 12; t++) {
        step.correction1 = (float)(1.0 - std::pow((double)step.beta1, t));
        step.correction2 = (float)(1.0 - std::pow((double)step.beta2, t));
        matrix g = random_matrix(rows, cols, how, NONE, REALS), w_bound = w, m_bound = m,
               v_bound = v;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++) {
                g(r, j) =
                    random_below(5) ? 0.01f * g(r, j) : 0.0f; /* features that never occur: 0 */
                double bound[3];
                step_bounds(step, g(r, j), w(r, j), m(r, j), v(r, j), bound);
                w_bound(r, j) = (float)bound[0];
                m_bound(r, j) = (float)bound[1];
                v_bound(r, j) = (float)bound[2];
            }
        const device_matrix dg(g), dw(w), dm(m), dv(v);
        const array<double> end(std::vector<double>{t == 12 ? 12.0 : 0.0}); /* step 13 is none */
        for (int epoch = t; epoch <= (t == 12 ? 13 : t); epoch++)
            sl_cuda_optimizer(&step, rows, cols, dg.at, dg.ld, dw.at, dw.ld, dm.at, dm.ld,
                              sgd ? nullptr : dv.at, dv.ld, end.data, epoch, stream);
        for (int64_t r = 0; r < rows; r++)
            sl_kernel_optimizer(&step, cols, g.at() + r * g.ld, w.at() + r * w.ld,
                                m.at() + r * m.ld, v.at() + r * v.ld);
        expect_close("optimizer, w", dw.download(), w, 2.01, &w_bound);
        expect_close("optimizer, m", dm.download(), m, 2.01, &m_bound);
        expect_close("optimizer, v", dv.download(), v, 2.01, &v_bound);
    }
}

static void test_optimizer()
{
    struct sl_optimizer_step adam = {}, decayed, decoupled, sgd = {}, plain = {};
    adam.method = SL_ADAM;
    adam.rate = 0.01f;
    adam.beta1 = 0.9f;
    adam.beta2 = 0.999f;
    adam.epsilon = 1e-8f;
    decayed = decoupled = adam;
    decayed.decay = 5e-4f;
    decoupled.method = SL_ADAMW;
    decoupled.decay = 0.1f;
    sgd.method = plain.method = SL_SGD;
    sgd.rate = plain.rate = 0.1f;
    sgd.decay = 5e-3f;
    sgd.beta1 = 0.9f;
    random_state = 4;
    for (const struct sl_optimizer_step &step : {adam, decayed, decoupled, sgd, plain})
        for (const int64_t rows : {0, 1, 5})
            for (const int64_t cols : {1, 7, 16, 33, 64, 602})
                for (int how = 0; how < LAYOUTS; how++)
                    check_optimizer(step, rows, cols, (layout)how);
}

/* ---- All of them ---- */

int main()
{
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device (%s)\n",
               code == cudaSuccess ? "none found" : cudaGetErrorString(code));
        return 77;
    }
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS ||
        cublasSetStream(blas, stream) != CUBLAS_STATUS_SUCCESS) {
        printf("cuBLAS does not start\n");
        return 1;
    }
    cuda(cudaMalloc(&workspace, SL_RUNTIME_WORKSPACE));
    cuda(cudaMemset(workspace, 0xFF, SL_RUNTIME_WORKSPACE)); /* NaN, whatever is read of it */

    static const struct {
        const char *name;
        void (*run)();
    } tests[] = {
        {"fill", test_fill},
        {"large fill", test_fill_large},
        {"copy", test_copy},
        {"paste", test_paste},
        {"accumulate", test_accumulate},
        {"metrics_add", test_metrics_add},
        {"relu", test_relu},
        {"relu_backward", test_relu_backward},
        {"bias", test_bias},
        {"bias_gradient", test_bias_gradient},
        {"scale_rows", test_scale_rows},
        {"pack_rows, unpack_rows", test_pack_rows},
        {"glorot", test_glorot},
        {"dropout", test_dropout},
        {"expand", test_expand},
        {"features", test_features},
        {"features, transposed", test_features_transposed},
        {"features, transposed, lists", test_features_transposed_lists},
        {"features, same bits", test_features_same_bits},
        {"spmm", test_spmm},
        {"spmm, blocks", test_spmm_blocks},
        {"spmm, long rows", test_spmm_long_rows},
        {"spmm, parts", test_spmm_parts},
        {"spmm, many tiles", test_spmm_many_tiles},
        {"spmm, no entries", test_spmm_no_entries},
        {"spmm, NaN", test_spmm_nan},
        {"spmm, same bits", test_spmm_same_bits},
        {"aggregate", test_aggregate},
        {"epilogue", test_epilogue},
        {"gemm", test_gemm},
        {"gemm, pieces", test_gemm_pieces},
        {"gemm, epilogue", test_gemm_epilogue},
        {"softmax", test_softmax},
        {"softmax, large logits", test_softmax_large_logits},
        {"softmax, not finite", test_softmax_not_finite},
        {"first largest", test_first_largest_wins},
        {"optimizer", test_optimizer},
    };
    int failed = 0;
    for (const auto &test : tests) {
        const long before = failures;
        random_state = 1;
        test.run();
        cuda(cudaDeviceSynchronize());
        failed += failures > before;
        printf("%s %s\n", failures > before ? "FAIL" : "ok  ", test.name);
        fflush(stdout);
    }
    cudaFree(workspace);
    cublasDestroy(blas);
    cudaStreamDestroy(stream);
    printf("%d of %d tests failed, %ld of %ld checks\n", failed,
           (int)(sizeof tests / sizeof *tests), failures, checks);
    return failed != 0;
}
