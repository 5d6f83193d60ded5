/* The features of a table: columns of numbers, and categories, columns of words. Each word of a
 * category becomes a feature of 0 and 1. */
#ifndef SL_DATA_FORMATS_FEATURE_CELLS_H
#define SL_DATA_FORMATS_FEATURE_CELLS_H

#include "data/dataset.h"
#include "data/formats/string_ids.h"

struct sl_cell_column {
    const char *name;
    bool category;
    struct sl_string_ids words; /* words of a category */
    int64_t empty;              /* cells without a value */
};

/* The cells of a table; all zero is empty. */
struct sl_feature_cells {
    struct sl_cell_column *column; // (columns)
    int64_t columns, rows, capacity;
    float *cell; // (capacity, columns): numbers, or numbers of words; NAN: empty
};

/* Add a column, before any row; `name` must outlive the cells. SL_ERR_SYSTEM. */
int sl_feature_cells_add_column(struct sl_feature_cells *cells, const char *name, bool category);

/* Add a row of empty cells. SL_ERR_SYSTEM. */
int sl_feature_cells_add_row(struct sl_feature_cells *cells);

/* Set a cell of the last row. sl_feature_cells_set_word returns 1 where the category has too many
 * words, else 0 or SL_ERR_SYSTEM. */
void sl_feature_cells_set_number(struct sl_feature_cells *cells, int64_t column, float number);
int sl_feature_cells_set_word(struct sl_feature_cells *cells, int64_t column, const char *word);
enum { SL_FEATURE_CELLS_WORDS = 1000 }; /* Most words of a category. */

/* Make features of the cells and free the cells. Words of a category are sorted by name. Empty
 * numbers get the mean of their column, and a note says so. SL_ERR_SYSTEM. */
int sl_feature_cells_take(struct sl_feature_cells *cells, const char *path, struct sl_dataset *out);

void sl_feature_cells_free(struct sl_feature_cells *cells);

#endif
