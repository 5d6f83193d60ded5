/* Copies of parts of tiles, which join rows from columns of several ranks, or cut them. */
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/paste.h"

void sl_kernel_paste(int64_t rows, int64_t cols, const struct sl_rows *x, const struct sl_rows *y)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(sl_rows_at(y, r, 0).data, sl_rows_at(x, r, 0).data,
               (size_t)cols * sl_type_size(y->type));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* paste
 *   argument  struct paste_argument
 *   buffers   0 R      X
 *             1 W/RW   Y, of which a part is written */
static void paste_cpu(void *buffers[], void *argument)
{
    const struct paste_argument *arg = argument;
    const struct sl_rows x = sl_rows_buffer(buffers[0]), y = sl_rows_buffer(buffers[1]);
    const struct sl_rows from = sl_rows_at(&x, arg->x_row, arg->x_col),
                         to = sl_rows_at(&y, arg->y_row, arg->y_col);
    sl_kernel_paste(arg->rows, arg->cols, &from, &to);
}

SL_CODELET_ANY(paste, 0xBDB76B);

void sl_submit_paste(struct sl_runtime *rt, const struct sl_paste_tiles *tiles)
{
    const struct sl_tile *x = tiles->x, *y = tiles->y;
    const struct paste_argument arg = {
        .x_row = tiles->x_row,
        .x_col = tiles->x_col,
        .y_row = tiles->y_row,
        .y_col = tiles->y_col,
        .rows = least(x->rows - tiles->x_row, y->rows - tiles->y_row),
        .cols = least(x->cols - tiles->x_col, y->cols - tiles->y_col),
    };
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &paste_codelet,
                           .count = 2,
                           .output = arg.rows == y->rows && arg.cols == y->cols ? SL_TASK_WRITES
                                                                                : SL_TASK_UPDATES,
                           .tiles = {tiles->x, tiles->y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)arg.rows * (double)arg.cols,
                       });
}
