/* What the parts of tests/test_cuda_kernels.cu share: operands on the device, and the verdict.
 *
 * How it is judged. Operations of one rounding per element, and sums of small integers, must be
 * equal. Other sums of n products may differ by n u Σ|terms| on each side (u = 2^-24; Higham,
 * section 3.1); Σ|terms| is what the CPU's kernel makes of the operands' absolute values. Stored in
 * bfloat16, two such results may be neighbours. A result must not depend on ld, on alignment or on
 * which time it is computed: that is compared to the bit.
 *
 * Operands of either type are floats here, which bfloat16 can represent where they are to be stored
 * in it; `stored` and `device_matrix` have them as kernels take them.
 *
 * How stray accesses are seen. Operands stand between guard bands. All memory beside the elements
 * is NaN in operands that are read, and a canary in operands that are written. The test compares
 * this memory afterwards. compute-sanitizer sees the rest.
 *
 * To test a new kernel, write a test in the file of similar kernels. Make its operands with
 * random_matrix and empty_matrix, and run the CPU's kernel on a copy. Upload, launch, download, and
 * give the result to expect_equal or expect_close. Add a line to the file's list. */
#ifndef SL_TESTS_CUDA_KERNELS_H
#define SL_TESTS_CUDA_KERNELS_H

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime.h>

extern "C" {
#include "codelets/bfloat16.h"
#include "codelets/operation.h"
#include "core/runtime.h"
}

/* A list for each file. */
struct test {
    const char *name;
    void (*run)();
};
extern const std::vector<test> cusparse_tests, rows_tests, features_tests, spmm_tests, max_tests,
    norm_tests, attention_tests, pair_tests, gine_tests, relations_tests, links_tests, gemm_tests,
    training_tests, units_tests;

/* ---- Verdicts ---- */

extern long checks, failures;
extern struct sl_cuda_queue queue; /* its workspace is NaN before the first test */

inline void __attribute__((format(printf, 1, 2))) fail(const char *format, ...)
{
    if (++failures > 20)
        return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

inline void expect(bool condition, const char *what)
{
    checks++;
    if (!condition)
        fail("%s", what);
}

inline void cuda(cudaError_t code)
{
    if (code == cudaSuccess)
        return;
    printf("CUDA: %s\n", cudaGetErrorString(code));
    exit(1);
}

/* The software GPU and the CPU's kernels are slow. A loop takes its first case, and then one case
 * in `of`. `of` is a prime number, so every value of every parameter has its turn. SL_ALL_CASES in
 * the environment: all cases. SL_SAMPLE=K/N, there: of the cases that a loop would take, the first
 * one, and those whose place modulo N is K. Where cases are made, a static one_in(...) says whether
 * to go on to the next case. */
struct one_in {
    long of, cases = 0;

    explicit one_in(long many) : of(many)
    {
    }
    bool leaves_out()
    {
        static const bool all = getenv("SL_ALL_CASES");
        static const long samples = sample(1, 1), own = sample(0, 0) % samples;
        const long at = cases++, place = at / of;
        return at > 0 && (at % of != 0 || place % samples != own) && !all;
    }
    /* Whether to leave out a large case. A GPU runs all of them. */
    bool leaves_out_in_software()
    {
#ifdef __CUDACC__
        return false;
#else
        return leaves_out();
#endif
    }
    /* Return K (0) or N (1) of SL_SAMPLE. */
    static long sample(int which, long otherwise)
    {
        const char *const words = getenv("SL_SAMPLE");
        long part[2];
        return words && sscanf(words, "%ld/%ld", &part[0], &part[1]) == 2 && part[1] > 0
                   ? part[which]
                   : otherwise;
    }
};

/* ---- Numbers ---- */

const double TF32_UNIT = 0x1p-10; /* relative error of one operand in TF32, at most */
const double UNIT = 0x1p-24;      /* relative error of one float rounding */
const double HALF_UNIT = 0x1p-8, HALF_STEP = 0x1p-7; /* of one bfloat16 rounding; between
                                                               neighbours, at most */
const float CANARY = -77.5f;
const float NONE = std::numeric_limits<float>::quiet_NaN();

extern uint64_t random_state;

inline uint64_t random_bits()
{
    random_state += 0x9E3779B97F4A7C15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

inline int64_t random_below(int64_t bound)
{
    return (int64_t)(random_bits() % (uint64_t)bound);
}

enum kind { INTEGERS, REALS }; /* -4 … 4, and ±[0.5, 1.5) */

inline float random_value(kind k)
{
    if (k == INTEGERS)
        return (float)(random_below(9) - 4);
    const double magnitude = 0.5 + (double)(random_bits() >> 11) * 0x1p-53;
    return (float)(random_bits() & 1 ? magnitude : -magnitude);
}

/* ---- Operands ---- */

/* TIGHT: without padding, as StarPU allocates on a device. PADDED: rows aligned to 64 bytes. LOOSE:
 * padded by three, one float after an aligned address. EDGE: unpadded, at the end of the memory. */
enum layout { TIGHT, PADDED, LOOSE, EDGE, LAYOUTS };

inline layout other(layout l)
{
    return (layout)((l + 1) % LAYOUTS);
}

enum { GUARD = 64 }; /* elements before and, but for EDGE, after */

const enum sl_type TYPES[] = {SL_FLOAT32, SL_BFLOAT16};

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

inline matrix empty_matrix(int64_t rows, int64_t cols, layout how, float pad)
{
    const int64_t ld = how == PADDED ? (cols / 16 + 1) * 16 : how == LOOSE ? cols + 3 : cols;
    const int64_t count = rows * ld + (how == EDGE ? GUARD : 2 * GUARD + 1);
    matrix m = {rows, cols, ld, how, pad, SL_FLOAT32, std::vector<float>((size_t)count, pad)};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = NONE;
    return m;
}

inline matrix random_matrix(int64_t rows, int64_t cols, layout how, float pad, kind k)
{
    matrix m = empty_matrix(rows, cols, how, pad);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = random_value(k);
    return m;
}

/* To be stored in that type: rounded to what it can represent. */
inline matrix of_type(enum sl_type type, matrix m)
{
    m.type = type;
    for (float &x : m.all)
        x = type == SL_BFLOAT16 ? sl_widen(sl_narrow(x)) : x;
    return m;
}

inline matrix moved(const matrix &from, layout how, float pad)
{
    matrix m = empty_matrix(from.rows, from.cols, how, pad);
    m.type = from.type;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            m(r, j) = from(r, j);
    return m;
}

inline matrix absolute(const matrix &from)
{
    matrix m = from;
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < m.cols; j++)
            m(r, j) = std::fabs(m(r, j));
    return m;
}

/* Memory on the device by its bytes, exactly, so that a sanitizer sees its end. Arrays of the same
 * size use the memory again: cudaMalloc and cudaFree take longer than most kernels here. With
 * SL_NO_POOL in the environment memory is freed, and a sanitizer sees who reads it later. */
inline std::map<size_t, std::vector<void *>> &spare_memory()
{
    static std::map<size_t, std::vector<void *>> spare;
    return spare;
}

inline void free_spare_memory()
{
    for (auto &size : spare_memory())
        for (void *memory : size.second)
            cudaFree(memory);
    spare_memory().clear();
}

/* An array on the device. A copy of pageable memory may be under way when cudaMemcpy returns, and
 * the queue does not wait for it. */
template <class T> struct array {
    T *data;
    size_t count;

    explicit array(const std::vector<T> &from) : count(from.size())
    {
        std::vector<void *> &spare = spare_memory()[bytes()];
        if (spare.empty()) {
            cuda(cudaMalloc((void **)&data, bytes()));
        } else {
            data = (T *)spare.back();
            spare.pop_back();
        }
        if (count) {
            cuda(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
            cuda(cudaStreamSynchronize(nullptr));
        }
    }
    array(const array &) = delete;
    ~array()
    {
        static const bool frees = getenv("SL_NO_POOL");
        cuda(cudaStreamSynchronize(queue.stream));
        if (frees)
            cudaFree(data);
        else
            spare_memory()[bytes()].push_back(data);
    }
    size_t bytes() const
    {
        return std::max(count, (size_t)1) * sizeof(T);
    }
    std::vector<T> download() const
    {
        std::vector<T> to(count);
        cuda(cudaStreamSynchronize(queue.stream));
        if (count)
            cuda(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

inline std::vector<uint16_t> halves_of(const matrix &m)
{
    std::vector<uint16_t> halves;
    for (const float x : m.all)
        halves.push_back(sl_narrow(x));
    return halves;
}

inline matrix with_halves(matrix m, const std::vector<uint16_t> &halves)
{
    std::transform(halves.begin(), halves.end(), m.all.begin(),
                   [](uint16_t half) { return sl_widen(half); });
    return m;
}

/* A matrix for the CPU's kernels. result() is the matrix after a kernel. */
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

inline struct sl_floats_at floats(matrix &m)
{
    return {m.at(), m.ld};
}

inline struct sl_floats_at floats(const device_matrix &m)
{
    return {m.at, m.ld};
}

inline void expect_padding_kept(const char *operation, const matrix &m)
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
inline void expect_close(const char *operation, const matrix &got, const matrix &want,
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

inline void expect_equal(const char *operation, const matrix &got, const matrix &want)
{
    expect_close(operation, got, want, 0.0, nullptr);
}

inline void expect_same_bits(const char *operation, const matrix &a, const matrix &b)
{
    checks++;
    for (int64_t r = 0; r < a.rows; r++)
        for (int64_t j = 0; j < a.cols; j++)
            if (memcmp(&a.at()[r * a.ld + j], &b.at()[r * b.ld + j], sizeof(float)) != 0) {
                fail("%s: element (%lld, %lld) of %lld x %lld is %.9g, and was %.9g", operation,
                     (long long)r, (long long)j, (long long)a.rows, (long long)a.cols,
                     (double)a(r, j), (double)b(r, j));
                return;
            }
}

/* ---- Shapes ---- */

const int64_t row_counts[] = {0, 1, 5, 64, 129};
const int64_t widths[] = {1, 7, 8, 15, 16, 17, 31, 32, 41, 48, 64, 100, 128, 256, 602};

template <class Check> void each_shape(Check check)
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
inline sparse random_sparse(int64_t rows, int64_t cols, int64_t degree, int64_t hub,
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

inline sparse absolute(sparse a)
{
    for (float &v : a.value)
        v = std::fabs(v);
    return a;
}

inline std::vector<uint32_t> random_vertices(int64_t rows)
{
    std::vector<uint32_t> vertex((size_t)rows);
    for (uint32_t &v : vertex)
        v = (uint32_t)random_bits();
    return vertex;
}

/* p = 1/2 has the exact scale 2. */
inline struct sl_dropout some_dropout(double p)
{
    struct sl_dropout drop = sl_dropout_make(p, sl_rng_key(7, SL_RNG_DROPOUT, 3, 1));
    drop.column0 = (uint32_t)(random_bits() % 9);
    return drop;
}

#endif
