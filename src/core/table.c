#include "core/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/plain.h"

static void cell_text(const json_t *row, const struct sl_column *column, char *text, size_t size)
{
    const json_t *value = json_object_get(row, column->key);
    if (json_is_string(value))
        sl_plain_copy(text, size, json_string_value(value));
    else if (json_is_number(value))
        snprintf(text, size, "%.*f", column->digits,
                 json_number_value(value) / (column->unit != 0.0 ? column->unit : 1.0));
    else
        snprintf(text, size, "-");
}

static int width_of(const json_t *rows, const struct sl_column *column)
{
    size_t width = strlen(column->title), index;
    const json_t *row;
    json_array_foreach((json_t *)rows, index, row)
    {
        char text[128];
        cell_text(row, column, text, sizeof text);
        width = strlen(text) > width ? strlen(text) : width;
    }
    return (int)width;
}

static bool is_text(const json_t *rows, const struct sl_column *column)
{
    return json_is_string(json_object_get(json_array_get(rows, 0), column->key));
}

static void print_line(const json_t *rows, const json_t *row, const struct sl_column *columns)
{
    for (const struct sl_column *column = columns; column->key; column++) {
        char text[128];
        if (row)
            cell_text(row, column, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", column->title);
        const int width = width_of(rows, column);
        const bool last = !column[1].key;
        if (is_text(rows, column))
            printf("  %-*s", last ? 0 : width, text);
        else
            printf("  %*s", width, text);
    }
    putchar('\n');
}

void sl_table_print(const json_t *rows, const struct sl_column *columns)
{
    size_t index;
    const json_t *row;
    print_line(rows, NULL, columns);
    json_array_foreach((json_t *)rows, index, row) print_line(rows, row, columns);
}
