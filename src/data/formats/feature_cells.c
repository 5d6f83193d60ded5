#include "data/formats/feature_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "data/block.h"

int sl_feature_cells_add_column(struct sl_feature_cells *cells, const char *name, bool category)
{
    struct sl_cell_column *column =
        reallocarray(cells->column, (size_t)cells->columns + 1, sizeof *column);
    if (!column)
        return sl_error(SL_ERR_SYSTEM, "out of memory for columns of features");
    cells->column = column;
    column[cells->columns++] = (struct sl_cell_column){.name = name, .category = category};
    return SL_OK;
}

int sl_feature_cells_add_row(struct sl_feature_cells *cells)
{
    if (cells->rows == cells->capacity) {
        const int64_t capacity = cells->capacity ? 2 * cells->capacity : 1024;
        float *cell = reallocarray(cells->cell, (size_t)capacity,
                                   (size_t)(cells->columns + 1) * sizeof *cell);
        if (!cell)
            return sl_error(SL_ERR_SYSTEM, "out of memory for the features of %" PRId64 " rows",
                            capacity);
        cells->cell = cell;
        cells->capacity = capacity;
    }
    for (int64_t c = 0; c < cells->columns; c++)
        cells->cell[cells->rows * cells->columns + c] = NAN;
    cells->rows++;
    return SL_OK;
}

void sl_feature_cells_set_number(struct sl_feature_cells *cells, int64_t column, float number)
{
    cells->cell[(cells->rows - 1) * cells->columns + column] = number;
}

int sl_feature_cells_set_word(struct sl_feature_cells *cells, int64_t column, const char *word)
{
    const int64_t number = sl_string_ids_get(&cells->column[column].words, word);
    if (number < 0)
        return (int)number;
    sl_feature_cells_set_number(cells, column, (float)number);
    return number >= SL_FEATURE_CELLS_WORDS;
}

void sl_feature_cells_free(struct sl_feature_cells *cells)
{
    for (int64_t c = 0; c < cells->columns; c++)
        sl_string_ids_free(&cells->column[c].words);
    free(cells->column);
    free(cells->cell);
    *cells = (struct sl_feature_cells){0};
}

/* ---- Features ---- */

/* Replace empty numbers by the mean of the others; leave empty words. */
static void fill_empty(struct sl_feature_cells *cells, int64_t c, const char *path)
{
    struct sl_cell_column *column = &cells->column[c];
    double sum = 0.0;
    for (int64_t v = 0; v < cells->rows; v++) {
        const float x = cells->cell[v * cells->columns + c];
        column->empty += isnan(x);
        sum += isnan(x) ? 0.0 : (double)x;
    }
    const int64_t known = cells->rows - column->empty;
    const double mean = known > 0 ? sum / (double)known : 0.0;
    for (int64_t v = 0; v < cells->rows && !column->category; v++)
        if (isnan(cells->cell[v * cells->columns + c]))
            cells->cell[v * cells->columns + c] = (float)mean;
    if (column->empty > 0 && column->category)
        sl_note("%s: column '%.40s': %" PRId64 " of %" PRId64 " cells are empty: none of its words",
                path, column->name, column->empty, cells->rows);
    else if (column->empty > 0)
        sl_note("%s: column '%.40s': %" PRId64 " of %" PRId64 " cells are empty: they get the "
                "mean, %g",
                path, column->name, column->empty, cells->rows, mean);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort the words of a category and find the place of each; both arrays are on the list. */
static int sort_words(const struct sl_string_ids *words, struct sl_block **blocks,
                      const char ***sorted, int32_t **place)
{
    const char *word = words->text;
    *sorted = sl_block_array(blocks, words->count, sizeof **sorted);
    *place = sl_block_array(blocks, words->count, sizeof **place);
    if (!*sorted || !*place)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < words->count; k++, word += strlen(word) + 1)
        (*sorted)[k] = word;
    if (words->count > 0)
        qsort(*sorted, (size_t)words->count, sizeof **sorted, compare_words);
    for (int64_t k = 0; k < words->count; k++)
        (*place)[sl_string_ids_find(words, (*sorted)[k])] = (int32_t)k;
    return SL_OK;
}

/* Features made of cells, with the next free column. */
struct features {
    struct sl_block **blocks;
    float *x; // (rows, width)
    const char **names;
    int64_t width, at;
};

static int add_name(struct features *out, const char *name, const char *word)
{
    out->names[out->at] =
        sl_block_print(out->blocks, "%s%s%s", name, word ? "=" : "", word ? word : "");
    return out->names[out->at++] ? SL_OK : SL_ERR_SYSTEM;
}

static int add_number(const struct sl_feature_cells *cells, int64_t c, struct features *out)
{
    for (int64_t v = 0; v < cells->rows; v++)
        out->x[v * out->width + out->at] = cells->cell[v * cells->columns + c];
    return add_name(out, cells->column[c].name, NULL);
}

static int add_words(const struct sl_feature_cells *cells, int64_t c, struct features *out)
{
    const struct sl_string_ids *words = &cells->column[c].words;
    struct sl_block *scratch = NULL;
    const char **sorted;
    int32_t *place;
    int rc = sort_words(words, &scratch, &sorted, &place);
    for (int64_t v = 0; v < cells->rows && !rc; v++) {
        const float word = cells->cell[v * cells->columns + c];
        if (!isnan(word))
            out->x[v * out->width + out->at + place[(int)word]] = 1.0f;
    }
    for (int64_t k = 0; k < words->count && !rc; k++)
        rc = add_name(out, cells->column[c].name, sorted[k]);
    sl_block_free_all(&scratch);
    return rc;
}

/* Take the cells themselves as features, where all columns are numbers. */
static int adopt_cells(struct sl_feature_cells *cells, struct features *out)
{
    const size_t bytes =
        (size_t)cells->capacity * (size_t)(cells->columns + 1) * sizeof *cells->cell;
    out->x = cells->cell;
    cells->cell = NULL; /* the list has it, or has freed it */
    int rc = sl_block_adopt(out->blocks, out->x, bytes, false) == 0 ? SL_OK : SL_ERR_SYSTEM;
    for (int64_t c = 0; c < cells->columns && !rc; c++)
        rc = add_name(out, cells->column[c].name, NULL);
    return rc;
}

static int make_features(struct sl_feature_cells *cells, bool categories, struct features *out)
{
    out->names = sl_block_array(out->blocks, out->width + 1, sizeof *out->names);
    if (!out->names)
        return SL_ERR_SYSTEM;
    out->names[out->width] = NULL;
    if (!categories)
        return adopt_cells(cells, out);
    out->x = sl_block_array(out->blocks, cells->rows, (size_t)out->width * sizeof *out->x);
    if (!out->x)
        return SL_ERR_SYSTEM;
    memset(out->x, 0, (size_t)(cells->rows * out->width) * sizeof *out->x);
    int rc = SL_OK;
    for (int64_t c = 0; c < cells->columns && !rc; c++)
        rc = (cells->column[c].category ? add_words : add_number)(cells, c, out);
    return rc;
}

int sl_feature_cells_take(struct sl_feature_cells *cells, const char *path, struct sl_dataset *out)
{
    struct features features = {.blocks = &out->blocks};
    bool categories = false;
    for (int64_t c = 0; c < cells->columns; c++) {
        fill_empty(cells, c, path);
        features.width += cells->column[c].category ? cells->column[c].words.count : 1;
        categories = categories || cells->column[c].category;
    }
    if (features.width == 0)
        return SL_OK;
    const int rc = make_features(cells, categories, &features);
    if (rc)
        return rc;
    out->feature_form = SL_FEATURES_DENSE;
    out->columns.table = true;
    out->features = features.width;
    out->features_dense = features.x;
    out->columns.names = features.names;
    return SL_OK;
}
