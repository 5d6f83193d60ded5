/* The common part of the tests of attention on a GPU. */
#ifndef SL_TESTS_CUDA_ATTENTION_H
#define SL_TESTS_CUDA_ATTENTION_H

#include "tests/cuda_epilogue.h"

extern "C" {
#include "codelets/attention_rows.h"
}

struct sizes {
    int32_t heads;
    int64_t width;
};

/* A sparse matrix whose rows have these numbers of entries. Some weights are 0. */
static sparse of_degrees(const std::vector<int64_t> &degrees, int64_t cols, bool has_values,
                         int64_t block_cols, bool narrow)
{
    const int64_t rows = (int64_t)degrees.size(), block = block_cols ? block_cols : cols,
                  blocks = (cols + block - 1) / block;
    std::vector<std::vector<bool>> chosen;
    for (const int64_t degree : degrees) {
        std::vector<bool> row((size_t)cols);
        for (int64_t i = 0, c = random_below(cols); i < degree; i++) {
            while (row[(size_t)c])
                c = (c + 1) % cols;
            row[(size_t)c] = true;
            c = (c + 1 + random_below(cols)) % cols;
        }
        chosen.push_back(row);
    }
    sparse a = {rows, cols, block, blocks, narrow, has_values, {0}, {}, {}, {}};
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = b * block; c < std::min((b + 1) * block, cols); c++)
                if (chosen[(size_t)r][(size_t)c]) {
                    a.col.push_back((uint32_t)(c - b * block));
                    a.narrow_col.push_back((uint16_t)(c - b * block));
                    a.value.push_back(random_below(9) ? std::fabs(random_value(REALS)) : 0.0f);
                }
            a.row_ptr.push_back((uint32_t)a.col.size());
        }
    return a;
}

/* Columns [0, end) without their signs. */
static matrix absolute_until(matrix m, int64_t end)
{
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t j = 0; j < end; j++)
            m(r, j) = std::fabs(m(r, j));
    return m;
}

static double tolerance(int64_t terms)
{
    return 8.0 * ((double)terms + 64.0) * UNIT;
}

/* Return a state without the maxima of heads that no entry met: kernels may leave anything there.
 */
static matrix state_of(const struct sl_attention &how, matrix m)
{
    const int64_t all = sl_attention_all(&how);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t h = 0; h < how.heads; h++)
            if (m(r, all + how.heads + h) == 0.0f)
                m(r, all + h) = 0.0f;
    return m;
}

#endif
