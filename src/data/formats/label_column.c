#include "data/formats/label_column.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
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
    const bool none = sl_text_is_missing(label);
    const int64_t word = sl_string_ids_get(none ? &column->empty : &column->words, label);
    if (word < 0)
        return (int)word;
    column->word[vertex] = none ? -1 : (int32_t)(word + 1);
    return SL_OK;
}

/* Return the number of a vertex's word, from 1; 0: the vertex has no label. */
static int32_t word_of(const struct sl_label_column *column, int64_t vertex)
{
    return vertex < column->capacity && column->word[vertex] > 0 ? column->word[vertex] : 0;
}

/* Return the words as numbers; NULL: a word is no number, or there is no memory. */
static float *read_numbers(const struct sl_label_column *column)
{
    float *numbers = malloc((size_t)(column->words.count + 1) * sizeof *numbers);
    const char *word = column->words.text;
    for (int64_t k = 0; numbers && k < column->words.count; k++, word += strlen(word) + 1) {
        if (!sl_text_to_float(word, &numbers[k])) {
            free(numbers);
            return NULL;
        }
    }
    return numbers;
}

/* Turn classes -1 and 1 into 0 and 1. */
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

/* Number the classes in the order of their names; return the class of each word, or NULL. */
static const int32_t *sort_names(const struct sl_string_ids *words, struct sl_dataset *out)
{
    const int64_t classes = words->count;
    int32_t *class_of = sl_block_array(&out->blocks, classes, sizeof *class_of);
    const char **names = sl_block_array(&out->blocks, classes + 1, sizeof *names);
    const char *word = words->text;
    if (!class_of || !names)
        return NULL;
    for (int64_t k = 0; k < classes; k++, word += strlen(word) + 1) {
        names[k] = sl_block_print(&out->blocks, "%s", word);
        if (!names[k])
            return NULL;
    }
    names[classes] = NULL;
    qsort(names, (size_t)classes, sizeof *names, compare_words);
    for (int64_t k = 0; k < classes; k++)
        class_of[sl_string_ids_find(words, names[k])] = (int32_t)k;
    out->meaning.class_names = names;
    out->classes = classes;
    return class_of;
}

static int take_names(const struct sl_label_column *column, struct sl_dataset *out)
{
    int32_t *label = sl_block_array(&out->blocks, out->vertices, sizeof *label);
    const int32_t *class_of = sort_names(&column->words, out);
    if (!label || !class_of)
        return SL_ERR_SYSTEM;
    for (int64_t v = 0; v < out->vertices; v++)
        label[v] = word_of(column, v) ? class_of[word_of(column, v) - 1] : -1;
    out->labels = label;
    return SL_OK;
}

/* ---- Several labels ---- */

/* Cut the next label off *at, with the blanks around it; NULL at the end. */
static char *next_label(char **at, char separator)
{
    char *label = *at;
    if (!label)
        return NULL;
    char *end = strchr(label, separator);
    *at = end ? end + 1 : NULL;
    end = end ? end : label + strlen(label);
    label += strspn(label, " ");
    while (end > label && end[-1] == ' ')
        end--;
    *end = '\0';
    return label;
}

/* Add the labels of a word to `labels`, or, where `row` is not NULL, mark their classes in it. */
static int split_word(const char *word, char separator, struct sl_string_ids *labels,
                      const int32_t *class_of, float *row)
{
    char *copy = strdup(word), *at = copy;
    int rc = copy ? SL_OK : sl_error(SL_ERR_SYSTEM, "out of memory for labels");
    for (const char *label; !rc && (label = next_label(&at, separator));) {
        if (sl_text_is_missing(label))
            continue;
        if (row)
            row[class_of[sl_string_ids_find(labels, label)]] = 1.0f;
        else
            rc = sl_string_ids_get(labels, label) < 0 ? (int)SL_ERR_SYSTEM : SL_OK;
    }
    free(copy);
    return rc;
}

/* Make a row of 0 and 1 for each word. */
static int mark_words(const struct sl_label_column *column, struct sl_string_ids *labels,
                      const int32_t *class_of, float *rows)
{
    const char *word = column->words.text;
    int rc = SL_OK;
    for (int64_t k = 0; !rc && k < column->words.count; k++, word += strlen(word) + 1)
        rc = split_word(word, column->separator, labels, class_of,
                        rows ? rows + k * labels->count : NULL);
    return rc;
}

static int take_several(const struct sl_label_column *column, struct sl_dataset *out)
{
    struct sl_string_ids labels = {0};
    struct sl_block *scratch = NULL;
    int rc = mark_words(column, &labels, NULL, NULL);
    const int64_t classes = labels.count, words = column->words.count;
    if (!rc && classes == 0) { /* words of separators alone have no labels */
        sl_string_ids_free(&labels);
        return SL_OK;
    }
    const size_t bytes = (size_t)classes * sizeof(float);
    const int32_t *class_of = rc ? NULL : sort_names(&labels, out);
    float *rows = sl_block_array(&scratch, words, bytes);
    float *matrix = sl_block_array(&out->blocks, out->vertices, bytes);
    rc = class_of && rows && matrix ? SL_OK : (int)SL_ERR_SYSTEM;
    if (!rc) {
        memset(rows, 0, (size_t)words * bytes);
        rc = mark_words(column, &labels, class_of, rows);
    }
    for (int64_t v = 0; v < out->vertices && !rc; v++)
        for (int64_t c = 0; c < classes; c++)
            matrix[v * classes + c] =
                word_of(column, v) ? rows[(word_of(column, v) - 1) * classes + c] : NAN;
    out->multilabels = matrix;
    sl_string_ids_free(&labels);
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- Notes ---- */

static int64_t count_word(const struct sl_label_column *column, int64_t vertices, int32_t word)
{
    int64_t count = 0;
    for (int64_t v = 0; v < vertices && v < column->capacity; v++)
        count += column->word[v] == word;
    return count;
}

static void note_missing(const struct sl_label_column *column, const char *path, int64_t vertices)
{
    char words[96] = "";
    const char *word = column->empty.text;
    for (int64_t k = 0; k < column->empty.count; k++, word += strlen(word) + 1) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", k ? ", " : "", *word ? word : "empty");
    }
    const int64_t count = count_word(column, vertices, -1);
    if (count > 0)
        sl_note("%s: %" PRId64 " of %" PRId64 " %s no label (%s)", path, count, vertices,
                count == 1 ? "vertices has" : "vertices have", words);
}

/* Say in a note which classes may be no class, or several. */
static void note_classes(const struct sl_label_column *column, const char *path, int64_t vertices)
{
    static const char *const doubtful[] = {"unknown",   "unlabeled", "unlabelled", "missing",
                                           "undefined", "-",         NULL};
    const char *word = column->words.text;
    bool apart = column->separator != 0;
    for (int64_t k = 0; k < column->words.count; k++, word += strlen(word) + 1) {
        for (int d = 0; doubtful[d]; d++)
            if (strcasecmp(word, doubtful[d]) == 0)
                sl_note("%s: '%s' is a class, of %" PRId64 " vertices; expected an empty field "
                        "where it means no label",
                        path, word, count_word(column, vertices, (int32_t)(k + 1)));
        const char *mark = apart ? NULL : strpbrk(word, "|;");
        if (mark)
            sl_note("%s: '%.40s' is one class (starling convert --label-separator '%c' makes it "
                    "several labels)",
                    path, word, *mark);
        apart = apart || mark;
    }
}

int sl_label_column_take(const struct sl_label_column *column, const char *path,
                         struct sl_dataset *out)
{
    note_missing(column, path, out->vertices);
    note_classes(column, path, out->vertices);
    if (column->words.count == 0)
        return SL_OK;
    if (column->separator)
        return take_several(column, out);
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
    sl_string_ids_free(&column->empty);
    free(column->word);
    *column = (struct sl_label_column){0};
}
