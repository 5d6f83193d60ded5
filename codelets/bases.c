/* Weights of relations as sums of bases. One row of the input at a time, V and W are matrices with
 * a row for each basis or relation: their rows lie `in` rows apart. */
#include "codelets/bases.h"

#include <string.h>

#include "codelets/codelet.h"
#include "codelets/gemm.h"

/* Return row i of all matrices (in, …) of M. */
static struct sl_rows rows_of(const struct sl_floats_at *m, int64_t in, int64_t i)
{
    return sl_float_rows(m->data + i * m->ld, in * m->ld);
}

static struct sl_rows coefficients(const struct sl_bases *b, const struct sl_floats_at *m)
{
    return sl_float_rows(m->data + b->bases * b->in * m->ld, m->ld);
}

void sl_bases_products(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                       const struct sl_floats_at *weight, sl_bases_multiply *multiply,
                       const void *context)
{
    for (int64_t i = 0; i < bases->in; i++)
        multiply(&(struct sl_gemm){.m = bases->relations,
                                   .n = bases->out,
                                   .k = bases->bases,
                                   .a = coefficients(bases, parameters),
                                   .b = rows_of(parameters, bases->in, i),
                                   .c = rows_of(weight, bases->in, i)},
                 context);
}

void sl_bases_products_back(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                            const struct sl_floats_at *gradient, const struct sl_floats_at *back,
                            sl_bases_multiply *multiply, const void *context)
{
    for (int64_t i = 0; i < bases->in; i++) {
        multiply(&(struct sl_gemm){.transpose_a = true,
                                   .m = bases->bases,
                                   .n = bases->out,
                                   .k = bases->relations,
                                   .a = coefficients(bases, parameters),
                                   .b = rows_of(gradient, bases->in, i),
                                   .c = rows_of(back, bases->in, i)},
                 context);
        multiply(&(struct sl_gemm){.transpose_b = true,
                                   .accumulate = i > 0,
                                   .m = bases->relations,
                                   .n = bases->bases,
                                   .k = bases->out,
                                   .a = rows_of(gradient, bases->in, i),
                                   .b = rows_of(parameters, bases->in, i),
                                   .c = coefficients(bases, back)},
                 context);
    }
}

static void on_core(const struct sl_gemm *gemm, const void *context)
{
    (void)context;
    sl_kernel_gemm(gemm);
}

void sl_kernel_bases(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                     const struct sl_floats_at *weight)
{
    sl_bases_products(bases, parameters, weight, on_core, NULL);
}

void sl_kernel_bases_back(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                          const struct sl_floats_at *gradient, const struct sl_floats_at *back)
{
    float *const c = coefficients(bases, back).data;
    for (int64_t r = 0; r < bases->relations; r++)
        memset(c + r * back->ld, 0, (size_t)bases->out * sizeof *c);
    sl_bases_products_back(bases, parameters, gradient, back, on_core, NULL);
}

/* ---- Tasks ---- */

static struct sl_floats_at from_row(void *buffer, int64_t row)
{
    struct sl_floats_at of = sl_floats_buffer(buffer);
    of.data += row * of.ld;
    return of;
}

/* bases
 *   argument  struct bases_argument
 *   buffers   0 R   PARAMETERS (>= row + bases · in + relations, out)
 *             1 W   WEIGHT (relations · in, out) */
static void bases_cpu(void *buffers[], void *argument)
{
    const struct bases_argument *arg = argument;
    const struct sl_floats_at parameters = from_row(buffers[0], arg->row),
                              weight = sl_floats_buffer(buffers[1]);
    sl_kernel_bases(&arg->bases, &parameters, &weight);
}

/* bases_back
 *   argument  struct bases_argument
 *   buffers   0 R   PARAMETERS (>= row + bases · in + relations, out)
 *             1 R   GRADIENT (relations · in, out)
 *             2 RW  BACK (>= back_row + bases · in + relations, out) */
static void bases_back_cpu(void *buffers[], void *argument)
{
    const struct bases_argument *arg = argument;
    const struct sl_floats_at parameters = from_row(buffers[0], arg->row),
                              gradient = sl_floats_buffer(buffers[1]),
                              back = from_row(buffers[2], arg->back_row);
    sl_kernel_bases_back(&arg->bases, &parameters, &gradient, &back);
}

SL_CODELET(bases, 0x808000, 2, STARPU_R, STARPU_W);
SL_CODELET(bases_back, 0xBDB76B, 3, STARPU_R, STARPU_R, STARPU_RW);

static double work_of(const struct sl_bases *b)
{
    return 2.0 * (double)b->relations * (double)b->bases * (double)b->in * (double)b->out;
}

void sl_submit_bases(struct sl_runtime *rt, const struct sl_bases *bases,
                     struct sl_tile *parameters, int64_t row, struct sl_tile *weight)
{
    const struct bases_argument arg = {.bases = *bases, .row = row};
    sl_task_submit(rt, &(struct sl_task){.codelet = &bases_codelet,
                                         .count = 2,
                                         .tiles = {parameters, weight},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = work_of(bases)});
}

void sl_submit_bases_back(struct sl_runtime *rt, const struct sl_bases *bases,
                          struct sl_tile *parameters, int64_t row, struct sl_tile *gradient,
                          struct sl_tile *back, int64_t back_row)
{
    const struct bases_argument arg = {*bases, row, back_row};
    sl_task_submit(rt, &(struct sl_task){.codelet = &bases_back_codelet,
                                         .count = 3,
                                         .tiles = {parameters, gradient, back},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_LATER,
                                         .work = 2.0 * work_of(bases)});
}
