#include "data/formats/label_column.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/formats/text.h"

int sl_label_column_set(struct sl_label_column *column, int64_t vertex, const char *label)
{
    if (vertex >= column->capacity) {
        const int64_t capacity = 2 * vertex + 1024;
        int32_t *word = reallocarray(column->word, (size_t)capacity, sizeof *word);
        if (!word)
            return sl_error(SL_ERR_SYSTEM, "out of memory for %" PRId64 " labels", capacity);
        memset(word + column->capacity, 0, (size_t)(capacity - column->capacity) * sizeof *word);
        column->word = word;
        column->capacity = capacity;
    }
    if (column->word[vertex] != 0)
        return 1;
    const int64_t word = *label ? sl_string_ids_get(&column->words, label) : -1;
    if (*label && word < 0)
        return (int)word;
    column->word[vertex] = (int32_t)(word + 1);
    return SL_OK;
}

static int32_t word_of(const struct sl_label_column *column, int64_t vertex)
{
    return vertex < column->capacity ? column->word[vertex] : 0;
}

/* The number that each word is, NaN for none; NULL: some are no numbers, or no memory. */
static float *read_numbers(const struct sl_label_column *column)
{
    float *numbers = malloc((size_t)(column->words.count + 1) * sizeof *numbers);
    const char *word = column->words.text;
    for (int64_t k = 0; numbers && k < column->words.count; k++, word += strlen(word) + 1) {
        const bool nan = strcasecmp(word, "nan") == 0;
        if (!nan && !sl_text_to_float(word, &numbers[k])) {
            free(numbers);
            return NULL;
        }
        if (nan)
            numbers[k] = NAN;
    }
    return numbers;
}

/* Classes -1 and 1 become 0 and 1. */
static void count_signs(const struct sl_label_column *column, float *numbers)
{
    bool signs = column->signs;
    for (int64_t k = 0; k < column->words.count; k++)
        signs = signs && fabsf(numbers[k]) == 1.0f;
    for (int64_t k = 0; signs && k < column->words.count; k++)
        numbers[k] = (numbers[k] + 1.0f) / 2.0f;
}

static int take_numbers(const struct sl_label_column *column, const float *numbers,
                        const char *path, struct sl_dataset *out)
{
    float *label = sl_block_array(&out->blocks, out->vertices, sizeof *label);
    const char *place = sl_block_print(&out->blocks, "%s: labels", path);
    if (!label || !place)
        return SL_ERR_SYSTEM;
    for (int64_t v = 0; v < out->vertices; v++) {
        const int32_t word = word_of(column, v);
        label[v] = word ? numbers[word - 1] : NAN;
    }
    struct sl_npy npy = sl_npy_view(place, SL_NPY_FLOAT32, 1, out->vertices, 0, label);
    const int rc = sl_arrays_labels(&npy, out);
    for (int64_t v = 0; !rc && out->labels && v < out->vertices; v++)
        if (out->labels[v] < -1)
            return sl_error(SL_ERR_DATA,
                            "%s: label %" PRId32 " of vertex %" PRId64
                            " is no class, expected 0 or more, or -1 (none)",
                            place, out->labels[v], v);
    return rc;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Classes are numbered in the order of their names. */
static int take_names(const struct sl_label_column *column, struct sl_dataset *out)
{
    const int64_t classes = column->words.count;
    int32_t *label = sl_block_array(&out->blocks, out->vertices, sizeof *label);
    int32_t *class_of = sl_block_array(&out->blocks, classes, sizeof *class_of);
    const char **names = sl_block_array(&out->blocks, classes + 1, sizeof *names);
    const char *word = column->words.text;
    if (!label || !class_of || !names)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < classes; k++, word += strlen(word) + 1) {
        names[k] = sl_block_print(&out->blocks, "%s", word);
        if (!names[k])
            return SL_ERR_SYSTEM;
    }
    names[classes] = NULL;
    qsort(names, (size_t)classes, sizeof *names, compare_words);
    for (int64_t k = 0; k < classes; k++)
        class_of[sl_string_ids_find(&column->words, names[k])] = (int32_t)k;
    for (int64_t v = 0; v < out->vertices; v++)
        label[v] = word_of(column, v) ? class_of[word_of(column, v) - 1] : -1;
    out->labels = label;
    out->class_names = names;
    out->classes = classes;
    return SL_OK;
}

int sl_label_column_take(const struct sl_label_column *column, const char *path,
                         struct sl_dataset *out)
{
    if (column->words.count == 0)
        return SL_OK;
    float *numbers = read_numbers(column);
    if (numbers)
        count_signs(column, numbers);
    const int rc = numbers ? take_numbers(column, numbers, path, out) : take_names(column, out);
    free(numbers);
    return rc;
}

void sl_label_column_free(struct sl_label_column *column)
{
    sl_string_ids_free(&column->words);
    free(column->word);
    *column = (struct sl_label_column){0};
}
