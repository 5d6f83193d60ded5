#include "report/class_scores.h"

#include <math.h>

double sl_confusion_count(const json_t *rows, size_t label, size_t predicted)
{
    return json_number_value(json_array_get(json_array_get(rows, label), predicted));
}

struct sl_class_scores sl_class_scores_of(const json_t *rows, size_t label)
{
    const double right = sl_confusion_count(rows, label, label);
    double row = 0.0, column = 0.0;
    for (size_t j = 0; j < json_array_size(rows); j++) {
        row += sl_confusion_count(rows, label, j);
        column += sl_confusion_count(rows, j, label);
    }
    return (struct sl_class_scores){.vertices = row,
                                    .precision = column > 0.0 ? right / column : NAN,
                                    .recall = row > 0.0 ? right / row : NAN,
                                    .f1 = row + column > 0.0 ? 2.0 * right / (row + column) : NAN};
}
