/* Submissions of normalisation as tasks on tiles. What comes out is, bit by bit, what the kernel
 * makes of copies of the same buffers (tests/operands.h). The kernels have tests of their own
 * (test_kernels_norm.c). */
#include "codelets/norm_parts.h"
#include "graphs/collective.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

/* Forms of a norm: it normalises rows, columns with statistics, columns with running averages, or
 * rows that are cut. */
enum form { OF_ROWS, OF_COLUMNS, RUNNING, CUT_ROWS, FORMS };

static const double GPU_ERROR = 2e-4; /* of sums whose signs cancel */

/* On tiles, and for the kernel on their copies. */
struct norm {
    struct sl_operand scales, h, parameters, statistics, moments;
    int64_t width; /* of whole rows */
    struct sl_norm_tiles tiles;
    struct sl_norm kernel;
};

/* Variances are not below 0. */
static void make_positive(struct sl_operand *o, int64_t r)
{
    void *const all[] = {o->tile.memory, o->copy, o->before};
    for (size_t a = 0; a < SL_COUNT(all); a++)
        for (int64_t j = 0; j < o->tile.cols; j++) {
            float *const x = (float *)all[a] + r * o->tile.ld + j;
            *x = fabsf(*x);
        }
}

static bool of_columns(enum form form)
{
    return form == OF_COLUMNS || form == RUNNING;
}

/* Made in place: its tiles have addresses. H has all columns, or some of them. */
static void make_norm(struct norm *n, enum form form, int64_t rows, int64_t cols)
{
    const bool columns = of_columns(form);
    const int64_t column = form == OF_ROWS ? 0 : sl_random_below(4),
                  width = form == OF_ROWS ? cols : column + cols + sl_random_below(4);
    *n = (struct norm){.scales = sl_operand_scales(rows),
                       .h = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                       .parameters = sl_operand_reals(columns ? 4 : 2, width),
                       .statistics = sl_operand_reals(2, width),
                       .moments = sl_operand_reals(SL_NORM_MOMENTS, rows),
                       .width = width};
    make_positive(&n->statistics, 1);
    make_positive(&n->moments, 2);
    if (columns)
        make_positive(&n->parameters, 3);
    n->tiles = (struct sl_norm_tiles){.scales = &n->scales.tile,
                                      .h = &n->h.tile,
                                      .parameters = &n->parameters.tile,
                                      .statistics = columns ? &n->statistics.tile : NULL,
                                      .moments = form == CUT_ROWS ? &n->moments.tile : NULL,
                                      .column = column,
                                      .running = form == RUNNING,
                                      .epsilon = 0.01f};
    const struct sl_operand *from = form == RUNNING ? &n->parameters : &n->statistics;
    const int64_t first = form == RUNNING ? 2 : 0;
    n->kernel =
        (struct sl_norm){.rows = rows,
                         .cols = cols,
                         .epsilon = 0.01f,
                         .h = sl_copied_rows(&n->h),
                         .mean = columns ? sl_copied_row(from, first) + column : NULL,
                         .variance = columns ? sl_copied_row(from, first + 1) + column : NULL,
                         .moments = form == CUT_ROWS ? n->moments.copy : NULL,
                         .ldm = n->moments.tile.ld,
                         .whole = width,
                         .weight = sl_copied_row(&n->parameters, 0) + column,
                         .bias = sl_copied_row(&n->parameters, 1) + column,
                         .root = columns ? sl_copied_scale(&n->scales, SL_ROW_ROOT) : NULL};
}

/* Return an operand that a task writes, or that it leaves alone. */
static struct sl_operand some_output(int64_t rows, int64_t cols, bool written)
{
    return written ? sl_operand_blank_of_type(rows, cols, sl_some_type())
                   : sl_operand_reals(rows, cols);
}

static void check_norm(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 4 * FORMS; trial++) {
        struct norm n;
        make_norm(&n, (enum form)(trial % FORMS), rows, cols);
        const bool apart = trial / FORMS % 2;
        struct sl_operand z = some_output(rows, cols, apart), scales = sl_operand_scales(rows),
                          factor = sl_operand_reals(1, rows);
        const struct sl_rows to = sl_copied_rows(apart ? &z : &n.h);
        const struct sl_epilogue kernel = {.scale = 1.0f,
                                           .factor = sl_copied_row(&factor, 0),
                                           .relu = true,
                                           .drop = sl_some_dropout(0.4),
                                           .vertex = sl_copied_vertices(&scales),
                                           .after = sl_copied_scale(&scales, SL_ROW_RIGHT)};
        const struct sl_epilogue_tiles tiles = {.scales = &scales.tile,
                                                .before = SL_ROW_NONE,
                                                .after = SL_ROW_RIGHT,
                                                .factor = &factor.tile,
                                                .scale = 1.0f,
                                                .relu = true,
                                                .drop = kernel.drop};
        const bool plain = trial / FORMS / 2;
        sl_submit_norm(&sl_running, &n.tiles, plain ? NULL : &tiles, apart ? &z.tile : &n.h.tile);
        sl_kernel_norm(&n.kernel, plain ? NULL : &kernel, &to);
        sl_settle("norm", &n.scales, &n.h, &n.parameters, &n.statistics, &n.moments, &scales,
                  &factor, &z, NULL);
    }
}

static struct sl_operand sums_of(int64_t cols)
{
    double *values = calloc((size_t)(2 * cols) + 1, sizeof *values);
    assert_non_null(values);
    for (int64_t k = 0; k < 2 * cols; k++)
        values[k] = (double)sl_random_value(SL_REALS) + (k < cols ? 0.0 : 9.0);
    return sl_operand_over(values, 2, cols, cols, sizeof *values);
}

/* Sums of two tiles, added, and the statistics from them, for all columns or for the last ones. */
static void check_statistics(int64_t rows, int64_t cols)
{
    const int64_t before = sl_random_below(2) * 5;
    struct norm n, m;
    make_norm(&n, OF_COLUMNS, rows, cols);
    make_norm(&m, OF_COLUMNS, cols, cols);
    struct sl_operand sums = sums_of(cols), others = sums_of(cols),
                      statistics =
                          before ? sl_operand_reals(2, before + cols) : sl_operand_blank(2, cols),
                      gradient = sl_operand_reals(4, before + cols);
    sl_add_function *const add = sl_submit_norm_sums_add;
    sl_submit_norm_sums(&sl_running, &n.scales.tile, &n.h.tile, &sums.tile);
    sl_submit_norm_sums(&sl_running, &m.scales.tile, &m.h.tile, &others.tile);
    add(&sl_running, &others.tile, &sums.tile);
    sl_submit_norm_statistics(&sl_running, rows + cols, &sums.tile, before, &statistics.tile);
    sl_submit_norm_averages(&sl_running, rows + cols, &statistics.tile, &gradient.tile);
    sl_kernel_norm_sums(rows, cols, n.kernel.root, &n.kernel.h, sums.copy, cols);
    sl_kernel_norm_sums(cols, cols, m.kernel.root, &m.kernel.h, others.copy, cols);
    for (int64_t k = 0; k < 2 * cols; k++)
        ((double *)sums.copy)[k] += ((double *)others.copy)[k];
    sl_kernel_norm_statistics(cols, (double)(rows + cols), sums.copy, cols,
                              sl_copied_row(&statistics, 0) + before, statistics.tile.ld);
    sl_kernel_norm_averages(before + cols, (double)(rows + cols), statistics.copy,
                            statistics.tile.ld, sl_copied_row(&gradient, 2), gradient.tile.ld);
    sl_settle("norm statistics", &n.scales, &n.h, &m.scales, &m.h, &n.parameters, &n.statistics,
              &m.parameters, &m.statistics, &n.moments, &m.moments, &sums, &others, &statistics,
              &gradient, NULL);
}

static void check_gradient(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 2 * FORMS; trial++) {
        struct norm n;
        const enum form form = (enum form)(trial % FORMS);
        make_norm(&n, form, rows, cols);
        struct sl_operand g = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                          gradient = sl_operand_blank(of_columns(form) ? 4 : 2, cols);
        const struct sl_rows from = sl_copied_rows(&g);
        gradient.gpu_error = GPU_ERROR;
        sl_submit_norm_gradient(&sl_running, &n.tiles, &g.tile, &gradient.tile);
        sl_kernel_norm_gradient(&n.kernel, &from, gradient.copy, gradient.tile.ld);
        for (int64_t k = 0; of_columns(form) && k < 2 * cols; k++)
            sl_copied_row(&gradient, 2 + k / cols)[k % cols] = 0.0f;
        sl_settle("norm gradient", &n.scales, &n.h, &n.parameters, &n.statistics, &n.moments, &g,
                  &gradient, NULL);
    }
}

/* Y: H, G, or a third tile. Half of the norms of whole rows make the gradient of the parameters,
 * too. */
static void check_back(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 12 * FORMS; trial++) {
        struct norm n;
        const enum form form = (enum form)(trial % FORMS);
        const enum sl_row_scale after = trial / FORMS % 2 ? SL_ROW_NONE : SL_ROW_LEFT;
        const bool along = form == OF_ROWS && trial >= 6 * FORMS;
        make_norm(&n, form, rows, cols);
        struct sl_operand g = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                          d = form == CUT_ROWS ? sl_operand_reals(SL_NORM_PRODUCTS, rows)
                                               : sl_operand_reals(4, n.width),
                          gradient = sl_operand_reals(2, cols),
                          third = some_output(rows, cols, trial / FORMS / 2 % 3 == 2);
        struct sl_operand *const all[] = {&n.h, &g, &third}, *const y = all[trial / FORMS / 2 % 3];
        const bool fixed = form == OF_ROWS || form == RUNNING;
        float *const at = sl_copied_row(&d, 0) + (form == CUT_ROWS ? 0 : n.tiles.column);
        const struct sl_norm_back kernel = {.norm = &n.kernel,
                                            .g = sl_copied_rows(&g),
                                            .d = fixed ? NULL : at,
                                            .ld = d.tile.ld,
                                            .count = 77.0,
                                            .after = sl_copied_scale(&n.scales, after),
                                            .gradient = along ? gradient.copy : NULL,
                                            .ldg = gradient.tile.ld,
                                            .y = sl_copied_rows(y)};
        y->gpu_error = gradient.gpu_error = GPU_ERROR;
        n.tiles.gradient = along ? &gradient.tile : NULL;
        sl_submit_norm_back(&sl_running, &n.tiles, &g.tile, fixed ? NULL : &d.tile, 77, after,
                            &y->tile);
        sl_kernel_norm_back(&kernel);
        sl_settle("norm back", &n.scales, &n.h, &n.parameters, &n.statistics, &n.moments, &g, &d,
                  &gradient, &third, NULL);
    }
}

/* Moments of two parts, merged, and the products of one. */
static void check_parts(int64_t rows, int64_t cols)
{
    struct norm n;
    make_norm(&n, CUT_ROWS, rows, cols);
    struct sl_operand own = sl_operand_blank(SL_NORM_MOMENTS, rows),
                      other = sl_operand_reals(SL_NORM_MOMENTS, rows),
                      g = sl_operand_reals_of_type(rows, cols, sl_some_type()),
                      products = sl_operand_blank(SL_NORM_PRODUCTS, rows);
    const struct sl_rows from = sl_copied_rows(&g);
    own.gpu_error = products.gpu_error = GPU_ERROR;
    sl_submit_norm_moments(&sl_running, &n.h.tile, &own.tile);
    sl_submit_norm_merge(&sl_running, cols, 3, &other.tile, &own.tile);
    sl_submit_norm_products(&sl_running, &n.tiles, &g.tile, &products.tile);
    sl_kernel_norm_moments(rows, cols, &n.kernel.h, own.copy, own.tile.ld);
    sl_kernel_norm_merge(rows, (double)cols, 3.0, other.copy, other.tile.ld, own.copy, own.tile.ld);
    sl_kernel_norm_products(&n.kernel, &from, products.copy, products.tile.ld);
    sl_settle("norm of parts", &n.scales, &n.h, &n.parameters, &n.statistics, &n.moments, &own,
              &other, &g, &products, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_norm), SL_OPERATION(check_statistics), SL_OPERATION(check_gradient),
        SL_OPERATION(check_back), SL_OPERATION(check_parts),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
