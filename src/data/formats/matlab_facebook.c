/* Read vertex attributes of Facebook100 (Traud, Mucha, Porter 2012), the matrix local_info. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats/matlab.h"

enum { GENDER = 1 };

static int compare_numbers(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int check_numbers(const char *path, const float *info, int64_t vertices)
{
    for (int64_t k = 0; k < vertices * SL_LOCAL_INFO; k++)
        if (!(info[k] >= 0.0f) || info[k] > 16777216.0f || info[k] != floorf(info[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: local_info: row %" PRId64 ", column %" PRId64
                            " is %g, expected a number from 0 to 2^24",
                            path, k / SL_LOCAL_INFO, k % SL_LOCAL_INFO, (double)info[k]);
    return SL_OK;
}

/* Sort the different values of a column, but 0, into `values`; return their number. */
static int64_t list_values(const float *info, int64_t vertices, int column, float *values)
{
    int64_t count = 0, unique = 0;
    for (int64_t v = 0; v < vertices; v++)
        if (info[v * SL_LOCAL_INFO + column] > 0.0f)
            values[count++] = info[v * SL_LOCAL_INFO + column];
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    for (int64_t k = 0; k < count; k++)
        if (unique == 0 || values[unique - 1] != values[k])
            values[unique++] = values[k];
    return unique;
}

static int64_t find_value(const float *values, int64_t count, float value)
{
    const float *found = bsearch(&value, values, (size_t)count, sizeof *values, compare_numbers);
    return found - values;
}

static int make_labels(const float *info, struct sl_dataset *out)
{
    int32_t *labels = sl_block_array(&out->blocks, out->vertices, sizeof *labels);
    float *values = malloc((size_t)out->vertices * sizeof *values + 1);
    if (!labels || !values) {
        free(values);
        return sl_error(SL_ERR_SYSTEM, "no memory for values of %" PRId64 " vertices",
                        out->vertices);
    }
    out->classes = list_values(info, out->vertices, GENDER, values);
    for (int64_t v = 0; v < out->vertices; v++) {
        const float value = info[v * SL_LOCAL_INFO + GENDER];
        labels[v] = value > 0.0f ? (int32_t)find_value(values, out->classes, value) : -1;
    }
    free(values);
    out->labels = labels;
    return SL_OK;
}

/* Make a column of features for each value of each column but the gender. */
static int make_features(const float *info, struct sl_dataset *out)
{
    struct sl_triples triples = {0};
    float *values = malloc((size_t)out->vertices * sizeof *values + 1);
    int64_t first = 0, merged = 0;
    int rc = values ? SL_OK
                    : sl_error(SL_ERR_SYSTEM, "no memory for values of %" PRId64 " vertices",
                               out->vertices);
    for (int column = 0; !rc && column < SL_LOCAL_INFO; column++) {
        if (column == GENDER)
            continue;
        const int64_t count = list_values(info, out->vertices, column, values);
        for (int64_t v = 0; !rc && v < out->vertices; v++) {
            const float value = info[v * SL_LOCAL_INFO + column];
            if (value > 0.0f)
                rc = sl_triples_add(&triples, v, first + find_value(values, count, value), 1.0f);
        }
        first += count;
    }
    if (!rc)
        rc =
            sl_csr_build(&triples, out->vertices, first, &out->blocks, &out->features_csr, &merged);
    sl_triples_free(&triples);
    free(values);
    out->feature_form = SL_FEATURES_CSR;
    out->features = first;
    out->columns.bag_of_words = true;
    return rc;
}

int sl_matlab_local_info(const char *path, const float *info, struct sl_dataset *out)
{
    int rc = check_numbers(path, info, out->vertices);
    if (!rc)
        rc = make_labels(info, out);
    return rc ? rc : make_features(info, out);
}
