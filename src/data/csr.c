#include "data/csr.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

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

/* A stable counting sort of entries by `key`. `out` is a CSR matrix with a row per key, whose
 * entries are `other` in the order of the list. Everything that reorders here is one or two of
 * these. */
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
    /* Each pointer has moved to the end of its row, where the next row starts. */
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

/* Closes up equal neighbours in sorted rows, in place. Returns how many entries went. */
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

/* From the transpose, rows in any order, to a matrix in order. */
static int finish(const struct sl_csr *transposed, struct sl_block **blocks, struct sl_csr *out,
                  int64_t *merged)
{
    const int rc = sl_csr_transpose(transposed, blocks, out);
    if (rc)
        return rc;
    /* The arrays are new and nobody else sees them yet: writing is fine. */
    *merged += merge_duplicates(out->rows, (int64_t *)out->indptr, (int32_t *)out->indices,
                                (float *)out->values);
    return SL_OK;
}

int sl_csr_build(const struct sl_triples *t, int64_t rows, int64_t cols, struct sl_block **blocks,
                 struct sl_csr *out, int64_t *merged)
{
    struct sl_block *scratch = NULL;
    struct sl_csr transposed;
    int rc = bucket(cols, rows, t->count, t->cols, t->rows, t->weighted ? t->weights : NULL,
                    &scratch, &transposed);
    if (!rc)
        rc = finish(&transposed, blocks, out, merged);
    sl_block_free_all(&scratch);
    return rc;
}

static bool is_in_order(const struct sl_csr *csr)
{
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r] + 1; k < csr->indptr[r + 1]; k++)
            if (csr->indices[k - 1] >= csr->indices[k])
                return false;
    return true;
}

int sl_csr_normalize(struct sl_csr *csr, struct sl_block **blocks, int64_t *merged)
{
    if (is_in_order(csr))
        return SL_OK;
    struct sl_block *scratch = NULL;
    struct sl_csr transposed;
    int rc = sl_csr_transpose(csr, &scratch, &transposed);
    if (!rc)
        rc = finish(&transposed, blocks, csr, merged);
    sl_block_free_all(&scratch);
    return rc;
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
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r]; k < csr->indptr[r + 1]; k++)
            if (csr->indices[k] < 0 || csr->indices[k] >= csr->cols)
                return sl_error(SL_ERR_DATA,
                                "%s: row %" PRId64 " has column %" PRId32
                                ", expected 0 to %" PRId64,
                                indices_name, r, csr->indices[k], csr->cols - 1);
    return SL_OK;
}

int sl_csr_check_values(const struct sl_csr *csr, const char *name)
{
    if (!csr->values)
        return SL_OK;
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r]; k < csr->indptr[r + 1]; k++)
            if (!isfinite(csr->values[k]))
                return sl_error(SL_ERR_DATA,
                                "%s: row %" PRId64 ", column %" PRId32
                                " is %f, expected a finite number",
                                name, r, csr->indices[k], (double)csr->values[k]);
    return SL_OK;
}

/* Row `r` of both matrices merged to `out` from position `at`; returns the position after it. With
 * `out` NULL it only counts. */
static int64_t unite_row(const struct sl_csr *a, const struct sl_csr *b, int64_t r,
                         int32_t *indices, float *values, int64_t at)
{
    int64_t i = a->indptr[r], j = b->indptr[r];
    const int64_t i_end = a->indptr[r + 1], j_end = b->indptr[r + 1];
    for (; i < i_end || j < j_end; at++) {
        const bool from_a = j == j_end || (i < i_end && a->indices[i] <= b->indices[j]);
        const bool from_b = i == i_end || (j < j_end && b->indices[j] <= a->indices[i]);
        if (indices)
            indices[at] = from_a ? a->indices[i] : b->indices[j];
        if (values) {
            const float x = from_a ? a->values[i] : -INFINITY;
            const float y = from_b ? b->values[j] : -INFINITY;
            values[at] = x > y ? x : y;
        }
        i += from_a;
        j += from_b;
    }
    return at;
}

int sl_csr_symmetrize(struct sl_csr *csr, struct sl_block **blocks)
{
    struct sl_block *scratch = NULL;
    struct sl_csr mirror;
    int rc = sl_csr_transpose(csr, &scratch, &mirror);
    int64_t *indptr = rc ? NULL : sl_block_array(blocks, csr->rows + 1, sizeof *indptr);
    if (!indptr)
        goto failed;
    indptr[0] = 0;
    for (int64_t r = 0; r < csr->rows; r++)
        indptr[r + 1] = unite_row(csr, &mirror, r, NULL, NULL, indptr[r]);
    const int64_t nnz = indptr[csr->rows];
    int32_t *indices = sl_block_array(blocks, nnz, sizeof *indices);
    float *values = csr->values ? sl_block_array(blocks, nnz, sizeof *values) : NULL;
    if (!indices || (csr->values && !values))
        goto failed;
    for (int64_t r = 0; r < csr->rows; r++)
        unite_row(csr, &mirror, r, indices, values, indptr[r]);
    *csr = (struct sl_csr){csr->rows, csr->cols, indptr, indices, values};
    sl_block_free_all(&scratch);
    return SL_OK;
failed:
    sl_block_free_all(&scratch);
    return SL_ERR_SYSTEM;
}

/* Entries (i, j) come with i ascending, so those that mirror row j come in the order of row j: one
 * cursor per row, at its next entry without a partner, is all the state there is. */
int sl_csr_is_symmetric(const struct sl_csr *csr, bool *symmetric, int32_t *row, int32_t *col)
{
    struct sl_block *scratch = NULL;
    int64_t *cursor = sl_block_array(&scratch, csr->rows, sizeof *cursor);
    if (!cursor)
        return SL_ERR_SYSTEM;
    memcpy(cursor, csr->indptr, (size_t)csr->rows * sizeof *cursor);
    *symmetric = true;
    for (int32_t i = 0; i < csr->rows && *symmetric; i++)
        for (int64_t k = csr->indptr[i]; k < csr->indptr[i + 1]; k++) {
            const int32_t j = csr->indices[k];
            const int64_t mirror = cursor[j]++;
            const bool past = mirror == csr->indptr[j + 1];
            if (!past && csr->indices[mirror] == i &&
                (!csr->values || csr->values[mirror] == csr->values[k]))
                continue;
            *symmetric = false;
            /* Row j waits at a column before i: row i' of that column is done and lacked j. */
            const bool skipped = !past && csr->indices[mirror] < i;
            *row = skipped ? j : i;
            *col = skipped ? csr->indices[mirror] : j;
            break;
        }
    sl_block_free_all(&scratch);
    return SL_OK;
}

int64_t sl_csr_diagonal_count(const struct sl_csr *csr)
{
    int64_t count = 0;
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r]; k < csr->indptr[r + 1]; k++)
            count += csr->indices[k] == r;
    return count;
}
