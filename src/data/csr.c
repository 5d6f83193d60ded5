#include "data/csr.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"

static bool grow(void **array, int64_t capacity, size_t size)
{
    void *larger = reallocarray(*array, (size_t)capacity, size);
    if (larger)
        *array = larger;
    return larger != NULL;
}

int sl_triples_add(struct sl_triples *t, int64_t row, int64_t col, float weight)
{
    if (t->count == t->capacity) {
        const int64_t capacity = t->capacity ? 2 * t->capacity : 1024;
        if (!grow((void **)&t->rows, capacity, sizeof *t->rows) ||
            !grow((void **)&t->cols, capacity, sizeof *t->cols) ||
            (t->weighted && !grow((void **)&t->weights, capacity, sizeof *t->weights)))
            return sl_error(SL_ERR_SYSTEM, "out of memory for %" PRId64 " edges", capacity);
        t->capacity = capacity;
    }
    t->rows[t->count] = (int32_t)row;
    t->cols[t->count] = (int32_t)col;
    if (t->weighted)
        t->weights[t->count] = weight;
    t->count++;
    return SL_OK;
}

void sl_triples_free(struct sl_triples *t)
{
    free(t->rows);
    free(t->cols);
    free(t->weights);
    *t = (struct sl_triples){0};
}

/* Sort entries stably by `key`, by counting. `out` is a CSR matrix with a row per key, whose
 * entries are `other` in the order of the list. All reordering here is one or two such sorts. */
static int bucket(int64_t keys, int64_t others, int64_t count, const int32_t *key,
                  const int32_t *other, const float *values, struct sl_block **blocks,
                  struct sl_csr *out)
{
    int64_t *indptr = sl_block_array(blocks, keys + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, count, sizeof *indices);
    float *sorted = values ? sl_block_array(blocks, count, sizeof *sorted) : NULL;
    if (!indptr || !indices || (values && !sorted))
        return SL_ERR_SYSTEM;
    memset(indptr, 0, (size_t)(keys + 1) * sizeof *indptr);
    for (int64_t k = 0; k < count; k++)
        indptr[key[k] + 1]++;
    for (int64_t r = 0; r < keys; r++)
        indptr[r + 1] += indptr[r];
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = indptr[key[k]]++;
        indices[at] = other[k];
        if (sorted)
            sorted[at] = values[k];
    }
    /* Each pointer is at the end of its row now, where the next row starts. */
    memmove(indptr + 1, indptr, (size_t)keys * sizeof *indptr);
    indptr[0] = 0;
    *out = (struct sl_csr){keys, others, indptr, indices, sorted};
    return SL_OK;
}

int sl_csr_transpose(const struct sl_csr *csr, struct sl_block **blocks, struct sl_csr *out)
{
    const int64_t nnz = csr->indptr[csr->rows];
    struct sl_block *scratch = NULL;
    int32_t *rows = sl_block_array(&scratch, nnz, sizeof *rows);
    if (!rows)
        return SL_ERR_SYSTEM;
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r]; k < csr->indptr[r + 1]; k++)
            rows[k] = (int32_t)r;
    const int rc = bucket(csr->cols, csr->rows, nnz, csr->indices, rows, csr->values, blocks, out);
    sl_block_free_all(&scratch);
    return rc;
}

/* Merge equal neighbours in sorted rows, in place. Return how many entries were removed. */
static int64_t merge_duplicates(int64_t rows, int64_t *indptr, int32_t *indices, float *values)
{
    int64_t kept = 0, start = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t end = indptr[r + 1], first = kept;
        for (int64_t k = start; k < end; k++) {
            if (kept > first && indices[kept - 1] == indices[k]) {
                if (values)
                    values[kept - 1] += values[k];
                continue;
            }
            indices[kept] = indices[k];
            if (values)
                values[kept] = values[k];
            kept++;
        }
        start = end;
        indptr[r + 1] = kept;
    }
    return start - kept;
}

int sl_csr_build(const struct sl_triples *t, int64_t rows, int64_t cols, struct sl_block **blocks,
                 struct sl_csr *out, int64_t *merged)
{
    struct sl_block *scratch = NULL;
    struct sl_csr transposed;
    int rc = bucket(cols, rows, t->count, t->cols, t->rows, t->weighted ? t->weights : NULL,
                    &scratch, &transposed);
    if (!rc)
        rc = sl_csr_transpose(&transposed, blocks, out);
    if (!rc) /* the arrays are new, and nobody else has them yet: they may be written */
        *merged += merge_duplicates(rows, (int64_t *)out->indptr, (int32_t *)out->indices,
                                    (float *)out->values);
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- Rows in order ---- */

struct entry {
    int32_t col;
    float value;
};

static void insertion_sort(int64_t count, struct entry *entries)
{
    for (int64_t k = 1; k < count; k++) {
        const struct entry entry = entries[k];
        int64_t at = k;
        for (; at > 0 && entries[at - 1].col > entry.col; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* Sort by one byte of the column. */
static void radix_pass(int64_t count, const struct entry *from, struct entry *to, int byte)
{
    int64_t next[256] = {0}, sum = 0;
    for (int64_t k = 0; k < count; k++)
        next[from[k].col >> (8 * byte) & 255]++;
    for (int digit = 0; digit < 256; digit++) {
        const int64_t here = next[digit];
        next[digit] = sum;
        sum += here;
    }
    for (int64_t k = 0; k < count; k++)
        to[next[from[k].col >> (8 * byte) & 255]++] = from[k];
}

/* Sort a row by column, stably; `scratch` has as much room as `entries`. Return the array with the
 * result. */
static struct entry *sort_row(int64_t count, int64_t cols, struct entry *entries,
                              struct entry *scratch)
{
    enum { SHORT = 48 };
    if (count <= SHORT) {
        insertion_sort(count, entries);
        return entries;
    }
    for (int byte = 0; byte < 4 && (cols - 1) >> (8 * byte) > 0; byte++) {
        radix_pass(count, entries, scratch, byte);
        struct entry *const sorted = scratch;
        scratch = entries;
        entries = sorted;
    }
    return entries;
}

/* Return the entries of the longest row. */
static int64_t longest_of(int64_t rows, const int64_t *indptr)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++)
        longest = indptr[r + 1] - indptr[r] > longest ? indptr[r + 1] - indptr[r] : longest;
    return longest;
}

/* Data of a pass over rows on all threads. */
struct passing {
    const struct sl_csr *csr;
    int32_t *indices;
    float *values;
    atomic_bool found; /* the pass has found an entry of the kind it looks for */
};

/* Sort each of the rows begin … end - 1. */
static void sort_rows(void *context, int64_t begin, int64_t end)
{
    struct passing *s = context;
    const struct sl_csr *csr = s->csr;
    const int64_t longest = longest_of(end - begin, csr->indptr + begin);
    struct entry *scratch = malloc((size_t)(2 * longest + 1) * sizeof *scratch);
    for (int64_t r = begin; scratch && r < end; r++) {
        const int64_t first = csr->indptr[r], count = csr->indptr[r + 1] - first;
        for (int64_t k = 0; k < count; k++)
            scratch[k] =
                (struct entry){csr->indices[first + k], s->values ? csr->values[first + k] : 1.0f};
        const struct entry *sorted = sort_row(count, csr->cols, scratch, scratch + longest);
        for (int64_t k = 0; k < count; k++) {
            s->indices[first + k] = sorted[k].col;
            if (s->values)
                s->values[first + k] = sorted[k].value;
        }
    }
    if (!scratch)
        atomic_store(&s->found, true);
    free(scratch);
}

static bool for_rows(struct passing *s, void (*pass)(void *context, int64_t begin, int64_t end))
{
    sl_parallel_for_ranges(sl_parallel_threads(0), s->csr->rows, pass, s);
    return atomic_load(&s->found);
}

static void find_disorder(void *context, int64_t begin, int64_t end)
{
    struct passing *s = context;
    const struct sl_csr *csr = s->csr;
    bool ordered = true;
    for (int64_t r = begin; r < end && ordered; r++)
        for (int64_t k = csr->indptr[r] + 1; k < csr->indptr[r + 1]; k++)
            ordered = ordered && csr->indices[k - 1] < csr->indices[k];
    if (!ordered)
        atomic_store(&s->found, true);
}

int sl_csr_sort(const struct sl_csr *csr, int32_t *indices, float *values)
{
    struct passing s = {.csr = csr, .indices = indices, .values = values};
    return for_rows(&s, sort_rows)
               ? sl_error(SL_ERR_SYSTEM, "no memory to sort %" PRId64 " entries",
                          csr->indptr[csr->rows])
               : SL_OK;
}

int sl_csr_sort_edges(const struct sl_csr *csr, int32_t *indices, float *values, int32_t *edges)
{
    struct sl_block *scratch = NULL;
    const int64_t nnz = csr->indptr[csr->rows];
    int32_t *sorted = edges && values ? sl_block_array(&scratch, nnz, sizeof *sorted) : NULL;
    /* sorting moves 32 bits with each column, whatever they mean */
    const struct sl_csr numbered = {
        csr->rows, csr->cols, csr->indptr, csr->indices, (const float *)edges, NULL};
    if (!edges)
        return sl_csr_sort(csr, indices, values);
    int rc = sorted || !values ? SL_OK : (int)SL_ERR_SYSTEM;
    if (!rc)
        rc = sl_csr_sort(&numbered, values ? sorted : indices, (float *)edges);
    if (!rc && values)
        rc = sl_csr_sort(csr, indices, values);
    sl_block_free_all(&scratch);
    return rc;
}

bool sl_csr_find_disorder(const struct sl_csr *csr, int64_t *row, int64_t *entry)
{
    struct passing s = {.csr = csr};
    if (!for_rows(&s, find_disorder))
        return false;
    for (*row = 0; *row < csr->rows; ++*row)
        for (*entry = csr->indptr[*row] + 1; *entry < csr->indptr[*row + 1]; ++*entry)
            if (csr->indices[*entry - 1] >= csr->indices[*entry])
                return true;
    return false;
}

int sl_csr_mend(struct sl_csr *csr, int64_t *merged)
{
    int32_t *indices = (int32_t *)csr->indices;
    float *values = (float *)csr->values;
    const int rc = sl_csr_sort(csr, indices, values);
    if (!rc)
        *merged += merge_duplicates(csr->rows, (int64_t *)csr->indptr, indices, values);
    return rc;
}

int sl_csr_normalize(struct sl_csr *csr, struct sl_block **blocks, int64_t *merged)
{
    struct passing order = {.csr = csr};
    if (!for_rows(&order, find_disorder))
        return SL_OK;
    if (csr->edges)
        return sl_error(SL_ERR_SYSTEM, "rows with edge features are not sorted");
    const int64_t nnz = csr->indptr[csr->rows];
    int64_t *indptr = sl_block_array(blocks, csr->rows + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(blocks, nnz, sizeof *indices);
    float *values = csr->values ? sl_block_array(blocks, nnz, sizeof *values) : NULL;
    if (!indptr || !indices || (csr->values && !values))
        return SL_ERR_SYSTEM;
    const int rc = sl_csr_sort(csr, indices, values);
    if (rc)
        return rc;
    memcpy(indptr, csr->indptr, (size_t)(csr->rows + 1) * sizeof *indptr);
    *merged += merge_duplicates(csr->rows, indptr, indices, values);
    *csr = (struct sl_csr){csr->rows, csr->cols, indptr, indices, values};
    return SL_OK;
}

int sl_csr_check(const struct sl_csr *csr, int64_t nnz, const char *indptr_name,
                 const char *indices_name)
{
    if (csr->indptr[0] != 0)
        return sl_error(SL_ERR_DATA, "%s: starts at %" PRId64 ", expected 0", indptr_name,
                        csr->indptr[0]);
    for (int64_t r = 0; r < csr->rows; r++)
        if (csr->indptr[r + 1] < csr->indptr[r])
            return sl_error(SL_ERR_DATA,
                            "%s: falls from %" PRId64 " to %" PRId64 " at row %" PRId64
                            ", expected ascending",
                            indptr_name, csr->indptr[r], csr->indptr[r + 1], r);
    if (csr->indptr[csr->rows] != nnz)
        return sl_error(SL_ERR_DATA,
                        "%s: ends at %" PRId64 ", expected %" PRId64 ", the length of %s",
                        indptr_name, csr->indptr[csr->rows], nnz, indices_name);
    int64_t row, entry;
    if (!sl_csr_columns_fit(csr, &row, &entry))
        return sl_error(SL_ERR_DATA,
                        "%s: row %" PRId64 " has column %" PRId32 ", expected 0 to %" PRId64,
                        indices_name, row, csr->indices[entry], csr->cols - 1);
    return SL_OK;
}

static void find_misfit(void *context, int64_t begin, int64_t end)
{
    struct passing *s = context;
    const struct sl_csr *csr = s->csr;
    bool misfit = false;
    for (int64_t k = csr->indptr[begin]; k < csr->indptr[end]; k++)
        misfit |= csr->indices[k] < 0 || csr->indices[k] >= csr->cols;
    if (misfit)
        atomic_store(&s->found, true);
}

/* Return whether all columns are in range. Only if a thread finds a wrong column, look for the
 * first one. */
bool sl_csr_columns_fit(const struct sl_csr *csr, int64_t *row, int64_t *entry)
{
    struct passing s = {.csr = csr};
    if (!for_rows(&s, find_misfit))
        return true;
    for (*row = 0; *row < csr->rows; ++*row)
        for (*entry = csr->indptr[*row]; *entry < csr->indptr[*row + 1]; ++*entry)
            if (csr->indices[*entry] < 0 || csr->indices[*entry] >= csr->cols)
                return false;
    return true;
}

bool sl_csr_values_finite(const struct sl_csr *csr, int64_t *row, int64_t *entry)
{
    for (*row = 0; csr->values && *row < csr->rows; ++*row)
        for (*entry = csr->indptr[*row]; *entry < csr->indptr[*row + 1]; ++*entry)
            if (!isfinite(csr->values[*entry]))
                return false;
    return true;
}

/* Return the value of an entry that both matrices have. */
static float unite_values(enum sl_symmetrize way, bool loop, float x, float y)
{
    if (way == SL_SYMMETRIZE_MAX || loop)
        return x > y ? x : y;
    return way == SL_SYMMETRIZE_SUM ? x + y : 0.5f * x + 0.5f * y;
}

/* Merge row `r` of both matrices into indices and values from position `at`; return the position
 * after it. With `indices` NULL only count. */
static int64_t unite_row(const struct sl_csr *a, const struct sl_csr *b, enum sl_symmetrize way,
                         int64_t r, int32_t *indices, float *values, int64_t at)
{
    int64_t i = a->indptr[r], j = b->indptr[r];
    const int64_t i_end = a->indptr[r + 1], j_end = b->indptr[r + 1];
    for (; i < i_end || j < j_end; at++) {
        const bool from_a = j == j_end || (i < i_end && a->indices[i] <= b->indices[j]);
        const bool from_b = i == i_end || (j < j_end && b->indices[j] <= a->indices[i]);
        if (indices)
            indices[at] = from_a ? a->indices[i] : b->indices[j];
        if (values)
            values[at] = !from_b ? a->values[i]
                         : !from_a
                             ? b->values[j]
                             : unite_values(way, a->indices[i] == r, a->values[i], b->values[j]);
        i += from_a;
        j += from_b;
    }
    return at;
}

int sl_csr_pattern(const struct sl_csr *csr, bool symmetric, struct sl_block **blocks,
                   struct sl_csr *out)
{
    *out = *csr;
    out->values = NULL;
    return symmetric ? SL_OK : sl_csr_symmetrize(out, blocks);
}

/* Count pairs u < v with an entry each way, in the rows of a matrix and its transpose. */
static void count_pairs(const struct sl_csr *a, const struct sl_csr *b, int64_t *both,
                        int64_t *different)
{
    for (int64_t r = 0; r < a->rows; r++) {
        int64_t j = b->indptr[r];
        for (int64_t i = a->indptr[r]; i < a->indptr[r + 1]; i++) {
            while (j < b->indptr[r + 1] && b->indices[j] < a->indices[i])
                j++;
            if (j == b->indptr[r + 1] || b->indices[j] != a->indices[i] || a->indices[i] <= r)
                continue;
            ++*both;
            *different += a->values && a->values[i] != b->values[j];
        }
    }
}

int sl_csr_symmetrize(struct sl_csr *csr, struct sl_block **blocks)
{
    int64_t both = 0, different = 0;
    return sl_csr_symmetrize_by(csr, SL_SYMMETRIZE_MAX, blocks, &both, &different);
}

int sl_csr_symmetrize_by(struct sl_csr *csr, enum sl_symmetrize way, struct sl_block **blocks,
                         int64_t *both, int64_t *different)
{
    struct sl_block *scratch = NULL;
    struct sl_csr mirror;
    int rc = sl_csr_transpose(csr, &scratch, &mirror);
    int64_t *indptr = rc ? NULL : sl_block_array(blocks, csr->rows + 1, sizeof *indptr);
    if (!indptr)
        goto failed;
    indptr[0] = 0;
    for (int64_t r = 0; r < csr->rows; r++)
        indptr[r + 1] = unite_row(csr, &mirror, way, r, NULL, NULL, indptr[r]);
    const int64_t nnz = indptr[csr->rows];
    int32_t *indices = sl_block_array(blocks, nnz, sizeof *indices);
    float *values = csr->values ? sl_block_array(blocks, nnz, sizeof *values) : NULL;
    if (!indices || (csr->values && !values))
        goto failed;
    for (int64_t r = 0; r < csr->rows; r++)
        unite_row(csr, &mirror, way, r, indices, values, indptr[r]);
    if (values)
        count_pairs(csr, &mirror, both, different);
    *csr = (struct sl_csr){csr->rows, csr->cols, indptr, indices, values};
    sl_block_free_all(&scratch);
    return SL_OK;
failed:
    sl_block_free_all(&scratch);
    return SL_ERR_SYSTEM;
}

int64_t sl_csr_diagonal_count(const struct sl_csr *csr)
{
    int64_t count = 0;
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r]; k < csr->indptr[r + 1]; k++)
            count += csr->indices[k] == r;
    return count;
}
