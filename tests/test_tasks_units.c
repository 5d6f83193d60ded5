/* Submissions of codelets/units.c and of ensembles as tasks on tiles (tests/operands.h). The
 * kernels have tests of their own (test_submodels.c). */
#include "codelets/mean_probabilities.h"
#include "codelets/metrics.h"
#include "codelets/units.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { PARTS = 3, MANY_PARTS = 200, PART = 1, WEIGHTS = 2 };

static struct sl_parameters parameters_of(const struct sl_operand *o)
{
    return (struct sl_parameters){o->copy, o->tile.rows, o->tile.cols, o->tile.ld};
}

static struct sl_parameters rows_of(const struct sl_operand *o, int64_t at, int64_t rows)
{
    return (struct sl_parameters){sl_copied_row(o, at), rows, o->tile.cols, o->tile.ld};
}

/* ---- Blocks ---- */

/* Parts of units, of which each part has one at least. */
static uint8_t *some_parts(int64_t units, int parts)
{
    uint8_t *part = malloc((size_t)units + 1);
    assert_non_null(part);
    for (int64_t u = 0; u < units; u++)
        part[u] = (uint8_t)(u ? sl_random_below(parts) : PART);
    return part;
}

struct some_block {
    struct sl_unit_block units;
    uint8_t *in, *out;
    int64_t whole_rows, rows, cols, shared;
};

/* `option`: which axes are cut, whether all rows are there, and whether the whole is a shard from a
 * later row on. */
static struct some_block make_block(int64_t rows, int64_t cols, int option)
{
    const int parts = cols < 1000 ? PARTS : MANY_PARTS;
    struct some_block b = {.in = some_parts(rows, parts), .out = some_parts(cols, parts)};
    const int64_t vectors = 1 + sl_random_below(3);
    b.units = (struct sl_unit_block){.weights = WEIGHTS,
                                     .in = {rows, option & 1 ? b.in : NULL},
                                     .out = {cols, option & 2 ? b.out : NULL},
                                     .part = PART,
                                     .shift = option & 1 ? 2 : 0,
                                     .all_rows = (option & 5) == 5,
                                     .first = option & 8 ? sl_random_below(rows) : 0};
    b.whole_rows = WEIGHTS * rows + vectors - b.units.first;
    b.rows = sl_unit_block_rows(&b.units, b.whole_rows);
    b.shared = sl_unit_block_shared(&b.units, b.whole_rows);
    for (int64_t c = 0; c < cols; c++)
        b.cols += !b.units.out.part || b.out[c] == PART;
    return b;
}

static void free_block(struct some_block *b)
{
    free(b->in);
    free(b->out);
}

/* A tile has a row at least: without shared rows nobody touches it. */
static struct sl_operand kept_rows(const struct some_block *b, int64_t cols)
{
    return sl_operand_reals(b->shared ? b->shared : 1, cols);
}

/* The block alone (`before` 0), or behind other rows; in an epoch that counts, or after the end. */
static void check_take_by(int64_t rows, int64_t cols, int option, int64_t before, double last)
{
    struct some_block b = make_block(rows, cols, option);
    const bool alone = before == 0 && last == 0.0, from_whole = option & 16, zero = option & 32;
    struct sl_operand end = sl_operand_doubles(1, &last),
                      whole = sl_operand_reals(b.whole_rows, cols), kept = kept_rows(&b, cols),
                      part = alone ? sl_operand_blank(b.rows, b.cols)
                                   : sl_operand_reals(b.rows + before, b.cols);
    struct sl_tile none = {.rows = 0}, *shared = b.shared ? &kept.tile : &none;
    const struct sl_unit_take take = {.block = b.units,
                                      .step = {alone ? 0 : 7, &end.tile},
                                      .at = before,
                                      .rows = b.rows,
                                      .zero = zero,
                                      .kept = from_whole ? NULL : shared,
                                      .shared = option & 64};
    sl_submit_take(&sl_running, &take, &whole.tile, &part.tile);
    const struct sl_parameters from = parameters_of(&whole), to = rows_of(&part, before, b.rows),
                               own = rows_of(&kept, 0, b.shared);
    for (int64_t r = 0; zero && last == 0.0 && r < b.rows; r++)
        memset(to.data + r * to.ld, 0, (size_t)to.cols * sizeof *to.data);
    if (!zero && last == 0.0 && from_whole)
        sl_kernel_take_block(&b.units, take.shared, &from, &to);
    else if (!zero && last == 0.0)
        sl_kernel_take(&b.units, &from, &own, &to);
    part.exact = true;
    sl_settle("take", &end, &whole, &kept, &part, NULL);
    free_block(&b);
}

static void check_take(int64_t rows, int64_t cols)
{
    const int step = rows == 5 ? 5 : 41;
    for (int option = 0; option < 128; option += step) {
        check_take_by(rows, cols, option, 0, 0.0);
        check_take_by(rows, cols, option, 3, option & 2 ? 6.0 : 0.0);
    }
}

static void check_put(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 32; option += rows == 5 ? 1 : 7) {
        struct some_block b = make_block(rows, cols, option);
        const int64_t before = sl_random_below(3);
        const double last = option & 16 ? 6.0 : 0.0;
        struct sl_operand end = sl_operand_doubles(1, &last),
                          part = sl_operand_reals(b.rows + before, b.cols),
                          kept = kept_rows(&b, cols), whole = sl_operand_reals(b.whole_rows, cols);
        struct sl_tile none = {.rows = 0};
        sl_submit_put(&sl_running,
                      &(struct sl_unit_take){.block = b.units,
                                             .step = {7, &end.tile},
                                             .at = before,
                                             .rows = b.rows,
                                             .kept = b.shared ? &kept.tile : &none},
                      &part.tile, &whole.tile);
        const struct sl_parameters from = rows_of(&part, before, b.rows),
                                   own = rows_of(&kept, 0, b.shared), to = parameters_of(&whole);
        if (last == 0.0)
            sl_kernel_put(&b.units, &from, &own, &to);
        whole.exact = kept.exact = true;
        sl_settle("put", &end, &part, &kept, &whole, NULL);
        free_block(&b);
    }
}

static void check_clear_others(int64_t rows, int64_t cols)
{
    struct some_block b = make_block(rows, cols, 5);
    struct sl_operand part = sl_operand_reals(b.rows, b.cols);
    sl_submit_clear_others(&sl_running, &b.units, &part.tile);
    const struct sl_parameters of = parameters_of(&part);
    sl_kernel_clear_others(&b.units, &of);
    part.exact = true;
    sl_settle("clear others", &part, NULL);
    free_block(&b);
}

/* On a GPU, 200000 units have room for the parts of 83 rounds at a time. */
static void check_count_steps_of(int64_t rows, int64_t cols, int option, int64_t rounds)
{
    enum { STEPS = 7 };
    struct some_block b = make_block(rows, cols, option & 7);
    const int64_t stride = rounds + 2;
    uint8_t *in = some_parts(rows * stride, PARTS), *out = some_parts(cols * stride, PARTS);
    struct sl_operand counts = sl_operand_blank(b.rows, b.cols);
    const struct sl_rounds_past past = {rounds, STEPS, stride, option & 1 ? in : NULL,
                                        option & 2 ? out : NULL};
    sl_submit_count_steps(&sl_running, &b.units, &past, &counts.tile);
    const struct sl_parameters to = parameters_of(&counts);
    sl_kernel_count_steps(&b.units, &past, &to);
    counts.exact = true;
    sl_settle("count steps", &counts, NULL);
    free(in);
    free(out);
    free_block(&b);
}

static void check_count_steps(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 8; option++)
        check_count_steps_of(rows, cols, option, sl_random_below(40));
}

SL_TEST(test_many_rounds)
{
    check_count_steps_of(2, 200000, 3, 100);
}

/* ---- Shared entries and rows that travel ---- */

static void check_merge(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 6; option++) {
        const double last = option & 1 ? 6.0 : 0.0;
        struct sl_operand end = sl_operand_doubles(1, &last), kept = sl_operand_reals(rows, cols),
                          whole = sl_operand_reals(rows + 2, cols);
        const struct sl_units_step step = {7, &end.tile};
        sl_submit_merge(&sl_running, &step, option / 2, &kept.tile, &whole.tile);
        const struct sl_parameters from = parameters_of(&kept), to = parameters_of(&whole);
        if (last == 0.0)
            sl_kernel_merge(option / 2, &from, &to);
        sl_settle("merge", &end, &kept, &whole, NULL);
    }
}

static void copy_rows(const struct sl_parameters *x, const struct sl_parameters *y)
{
    for (int64_t r = 0; r < y->rows; r++)
        memcpy(y->data + r * y->ld, x->data + r * x->ld, (size_t)y->cols * sizeof *y->data);
}

static void check_share(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 4; option++) {
        const double last = option & 1 ? 6.0 : 0.0;
        const bool zero = option & 2;
        struct sl_operand end = sl_operand_doubles(1, &last),
                          whole = sl_operand_reals(rows + 2, cols),
                          kept = sl_operand_reals(rows, cols);
        const struct sl_units_step step = {7, &end.tile};
        sl_submit_share(&sl_running, &step, zero, &whole.tile, &kept.tile);
        const struct sl_parameters from = rows_of(&whole, 2, rows), to = parameters_of(&kept);
        for (int64_t r = 0; zero && last == 0.0 && r < rows; r++)
            memset(sl_copied_row(&kept, r), 0, (size_t)cols * sizeof(float));
        if (!zero && last == 0.0)
            copy_rows(&from, &to);
        kept.exact = true;
        sl_settle("share", &end, &whole, &kept, NULL);
    }
}

static void check_rows(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 2; option++) {
        const double last = option ? 6.0 : 0.0;
        struct sl_operand end = sl_operand_doubles(1, &last), x = sl_operand_reals(rows, cols),
                          y = sl_operand_reals(rows + 4, cols), z = sl_operand_blank(rows, cols);
        const struct sl_units_step step = {7, &end.tile};
        sl_submit_rows_in(&sl_running, &step, 3, &x.tile, &y.tile);
        sl_submit_rows_out(&sl_running, 1, &y.tile, &z.tile);
        const struct sl_parameters from = parameters_of(&x), middle = rows_of(&y, 3, rows),
                                   out = rows_of(&y, 1, rows), to = parameters_of(&z);
        if (last == 0.0)
            copy_rows(&from, &middle);
        copy_rows(&out, &to);
        y.exact = z.exact = true;
        sl_settle("rows", &end, &x, &y, &z, NULL);
    }
}

/* ---- Metrics and logits ---- */

static void check_metrics(int64_t rows, int64_t cols)
{
    (void)rows, (void)cols;
    struct sl_operand x = sl_operand_metrics(), y = sl_operand_blank_metrics();
    sl_submit_metrics_copy(&sl_running, &x.tile, &y.tile);
    memcpy(y.copy, x.copy, SL_METRICS * sizeof(double));
    sl_settle("metrics copy", &x, &y, NULL);
    for (int option = 0; option < 9; option++) {
        const double layer[] = {0.0, 2.0, 4.0}, a = layer[option % 3], b = layer[option / 3];
        double one[SL_METRICS], two[SL_METRICS];
        for (int i = 0; i < SL_METRICS; i++) {
            one[i] = (double)sl_random_value(SL_REALS);
            two[i] = (double)sl_random_value(SL_REALS);
        }
        one[SL_METRIC_BAD_GRADIENT] = one[SL_METRIC_BAD_UPDATE] = a;
        two[SL_METRIC_BAD_GRADIENT] = two[SL_METRIC_BAD_UPDATE] = b;
        struct sl_operand from = sl_operand_doubles(SL_METRICS, one),
                          to = sl_operand_doubles(SL_METRICS, two);
        sl_submit_metrics_join(&sl_running, &from.tile, &to.tile);
        double *sum = to.copy;
        for (int i = 0; i < SL_METRICS; i++)
            sum[i] = one[i] + two[i];
        sum[SL_METRIC_BAD_GRADIENT] = sum[SL_METRIC_BAD_UPDATE] = a == 0.0            ? b
                                                                  : b == 0.0 || a < b ? a
                                                                                      : b;
        sl_settle("metrics join", &from, &to, NULL);
    }
}

static void check_mean_probabilities(int64_t rows, int64_t cols)
{
    struct sl_operand x = sl_operand_reals(rows, cols), y = sl_operand_reals(rows, cols);
    for (int before = 0; before < 3; before++) {
        sl_submit_mean_probabilities(&sl_running, before, &x.tile, &y.tile);
        sl_kernel_mean_probabilities(before, &(struct sl_logits){x.copy, rows, cols, x.tile.ld},
                                     &(struct sl_logits){y.copy, rows, cols, y.tile.ld});
    }
    sl_settle("mean probabilities", &x, &y, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_take),           SL_OPERATION(check_put),
        SL_OPERATION(check_clear_others),   SL_OPERATION(check_count_steps),
        SL_OPERATION(check_merge),          SL_OPERATION(check_share),
        SL_OPERATION(check_rows),           SL_OPERATION(check_metrics),
        cmocka_unit_test(test_many_rounds), SL_OPERATION(check_mean_probabilities),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
