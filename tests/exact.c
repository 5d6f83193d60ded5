#include "tests/exact.h"

#include <math.h>
#include <stdlib.h>

const int64_t sl_block_sizes[4] = {0, 1, 7, 16};

struct sl_exact sl_exact_start(const struct sl_guarded *z, bool accumulate)
{
    const int64_t count = z->rows * z->cols;
    struct sl_exact x = {z->rows, z->cols, sl_doubles(count), sl_doubles(count),
                         sl_doubles(z->rows)};
    for (int64_t r = 0; accumulate && r < z->rows; r++)
        for (int64_t j = 0; j < z->cols; j++) {
            x.want[r * z->cols + j] = (double)*sl_element(z, r, j);
            x.bound[r * z->cols + j] = fabs(x.want[r * z->cols + j]);
        }
    return x;
}

void sl_exact_add(struct sl_exact *x, const struct sl_sparse *a, const struct sl_dropout *drop,
                  const uint32_t *vertex, bool transposed, const struct sl_guarded *h)
{
    int64_t count;
    struct sl_entry *entries = sl_sparse_entries(a, &count);
    for (int64_t e = 0; e < count; e++) {
        const int64_t r = entries[e].row, c = entries[e].col;
        const int64_t to = transposed ? c : r, from = transposed ? r : c;
        double value = (double)entries[e].value;
        if (drop)
            value *= (double)sl_dropout_factor(drop, vertex[r], (uint32_t)c);
        for (int64_t j = 0; j < x->width; j++) {
            const double term = value * (double)*sl_element(h, from, j);
            x->want[to * x->width + j] += term;
            x->bound[to * x->width + j] += fabs(term);
        }
        x->terms[to]++;
    }
    free(entries);
}

/* bound = n u Σ|terms| with n the number of terms and the roundings of value and sum. */
void sl_exact_finish(struct sl_exact *x)
{
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t j = 0; j < x->width; j++)
            x->bound[r * x->width + j] *= (x->terms[r] + 4.0) * SL_UNIT;
}

void sl_exact_free(struct sl_exact *x)
{
    free(x->want);
    free(x->bound);
    free(x->terms);
}

struct sl_guarded sl_exact_result(int64_t rows, int64_t cols, bool accumulate,
                                  enum sl_layout layout, enum sl_kind kind)
{
    return accumulate ? sl_guarded_random(rows, cols, layout, SL_CANARY, kind)
                      : sl_guarded_empty(rows, cols, layout, SL_CANARY);
}

void sl_take_same_bits(const char *operation, struct sl_guarded *want, struct sl_guarded *got)
{
    sl_expect_same_bits(operation, want, got);
    sl_guarded_free(got);
}
