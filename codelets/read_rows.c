#include "codelets/read_rows.h"

#include "codelets/codelet.h"

struct read_rows_argument {
    sl_read_rows_function *read;
    const void *context;
    int64_t first;
};

/* read_rows
 *   buffers   0 W    Y (rows, cols) */
static void read_rows_cpu(void *buffers[], void *argument)
{
    const struct read_rows_argument *arg = argument;
    const struct sl_rows y = sl_rows_buffer(buffers[0]);
    arg->read(arg->context, arg->first, STARPU_MATRIX_GET_NY(buffers[0]),
              STARPU_MATRIX_GET_NX(buffers[0]), &y);
}

SL_HOST_CODELET(read_rows, 0xDEB887, 1, STARPU_W);

void sl_submit_read_rows(struct sl_runtime *rt, sl_read_rows_function *read, const void *context,
                         int64_t first, struct sl_tile *y)
{
    const struct read_rows_argument arg = {.read = read, .context = context, .first = first};
    sl_task_submit(rt, &(struct sl_task){.codelet = &read_rows_codelet,
                                         .tiles = {y},
                                         .count = 1,
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .work = (double)y->rows * (double)y->cols});
}
