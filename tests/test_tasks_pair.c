/* Submissions of attention by pairs of rows as tasks on tiles, with features of entries and
 * without. What comes out is, bit by bit, what the kernel makes of copies of the same buffers
 * (tests/operands.h). The kernels have tests of their own (test_kernels_pair*.c). */
#include "codelets/pair.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { TRIALS = 4, HEADS = 3, FEATURES = 5, MOST_WIDTH = 9 };

static const double GPU_ERROR = 2e-4; /* of sums whose signs cancel */

static struct sl_pair pair_of(int trial, int64_t cols)
{
    const int64_t width = cols < MOST_WIDTH ? cols : MOST_WIDTH;
    const bool products = trial % 2;
    return (struct sl_pair){.attention = {.heads = HEADS,
                                          .width = sl_pair_room(width),
                                          .slope = 0.2f,
                                          .drop = {.scale = 1.0f}},
                            .width = width,
                            .products = products,
                            .scale = products ? 0.375f : 1.0f,
                            .edges = trial / 2 ? FEATURES : 0};
}

static struct sl_pair_shape shape_of(const struct sl_pair *pair)
{
    const int64_t columns = sl_pair_columns(pair);
    return (struct sl_pair_shape){.in = 4,
                                  .columns = columns + 3,
                                  .skipped = 2,
                                  .first = 1,
                                  .at = 2,
                                  .bias = true,
                                  .out = columns,
                                  .out_column = 1};
}

static struct sl_operand parameters_of(const struct sl_pair *pair)
{
    const struct sl_pair_shape shape = shape_of(pair);
    const int64_t weights = sl_pair_weights(pair), rows = shape.skipped + weights * (shape.in + 1) +
                                                          pair->edges + 1 + !pair->products;
    return sl_operand_reals(rows, shape.columns);
}

static struct sl_floats_at copied(const struct sl_operand *o, int64_t r)
{
    return (struct sl_floats_at){sl_copied_row(o, r), o->tile.ld};
}

/* Rows that begin with `matrices` times the columns of all heads, whose room is 0. */
static struct sl_operand with_room(const struct sl_pair *pair, int64_t rows, int64_t cols,
                                   int matrices)
{
    const int64_t room = pair->attention.width;
    float *contents = calloc((size_t)(rows * cols) + 1, sizeof *contents);
    assert_non_null(contents);
    for (int64_t k = 0; k < rows * cols; k++) {
        const int64_t c = k % cols;
        if (c >= matrices * sl_pair_all(pair) || c % room < pair->width)
            contents[k] = sl_random_value(SL_REALS);
    }
    return sl_operand_over(contents, rows, cols, cols, sizeof *contents);
}

static struct sl_operand vectors_of(const struct sl_pair *pair)
{
    return with_room(pair, sl_pair_vector_rows(pair), sl_pair_all(pair), 1);
}

/* ---- Rows ---- */

static void check_ends(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct sl_pair pair = pair_of(trial, cols);
        const struct sl_pair_shape shape = shape_of(&pair);
        struct sl_operand scales = sl_operand_scales(rows), parameters = parameters_of(&pair),
                          vectors = vectors_of(&pair),
                          projected = sl_operand_reals(rows, sl_pair_projected(&pair)),
                          source = sl_operand_blank(rows, sl_pair_source(&pair)),
                          target = sl_operand_blank(rows, sl_pair_target(&pair));
        const struct sl_floats_at p = copied(&parameters, 0), v = copied(&vectors, 0),
                                  x = copied(&projected, 0), s = copied(&source, 0),
                                  t = copied(&target, 0);
        target.gpu_error = GPU_ERROR;
        sl_submit_pair_ends(&sl_running, &pair, &shape, &scales.tile, &parameters.tile,
                            &vectors.tile, &projected.tile, &source.tile, &target.tile);
        sl_kernel_pair_ends(&pair, &shape, rows, sl_copied_vertices(&scales), &p, &x, &v, &s, &t);
        sl_settle("pair ends", &scales, &parameters, &vectors, &projected, &source, &target, NULL);
    }
}

static void check_gradient(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct sl_pair pair = pair_of(trial, cols);
        struct sl_operand vectors = vectors_of(&pair),
                          g = sl_operand_reals_of_type(rows, sl_pair_columns(&pair),
                                                       sl_some_type()),
                          state = sl_operand_reals(rows, sl_pair_state(&pair)),
                          gradient = sl_operand_blank(rows, sl_pair_gradient(&pair));
        const struct sl_rows from = sl_copied_rows(&g);
        const struct sl_floats_at v = copied(&vectors, 0), s = copied(&state, 0),
                                  to = copied(&gradient, 0);
        gradient.gpu_error = GPU_ERROR;
        sl_submit_pair_gradient(&sl_running, &pair, false, &vectors.tile, &g.tile, &state.tile,
                                &gradient.tile);
        sl_kernel_pair_gradient(&pair, rows, false, &from, &s, &v, &to);
        sl_settle("pair gradient", &vectors, &g, &state, &gradient, NULL);
    }
}

static void check_close(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct sl_pair pair = pair_of(trial, cols);
        struct sl_operand vectors = vectors_of(&pair),
                          target = sl_operand_reals(rows, sl_pair_target(&pair)),
                          state = sl_operand_reals(rows, sl_pair_state(&pair));
        const struct sl_floats_at v = copied(&vectors, 0), t = copied(&target, 0),
                                  s = copied(&state, 0);
        target.gpu_error = state.gpu_error = GPU_ERROR;
        sl_submit_pair_close(&sl_running, &pair, &vectors.tile, &target.tile, &state.tile);
        sl_kernel_pair_close(&pair, rows, &v, &t, &s);
        sl_settle("pair close", &vectors, &target, &state, NULL);
    }
}

/* ---- Parameters ---- */

static void check_weights_back(int64_t rows, int64_t cols)
{
    (void)rows;
    for (int trial = 0; trial < 2 * TRIALS; trial++) {
        const struct sl_pair pair = pair_of(trial % TRIALS, cols);
        const struct sl_pair_shape shape = shape_of(&pair);
        const bool further = trial / TRIALS;
        const int64_t given = shape.in + pair.edges + !pair.products + 2,
                      wide = shape.at + sl_pair_projected(&pair);
        struct sl_operand parameters = parameters_of(&pair),
                          gradient = sl_operand_reals(given, wide),
                          back = sl_operand_reals(parameters.tile.rows, shape.columns);
        const struct sl_floats_at p = copied(&parameters, 0), g = copied(&gradient, 0),
                                  to = copied(&back, 0);
        back.gpu_error = GPU_ERROR;
        back.free_first = further ? 0 : shape.skipped;
        sl_submit_pair_weights_back(&sl_running, &pair, &shape, further, &parameters.tile,
                                    &gradient.tile, &back.tile);
        sl_kernel_pair_weights_back(&pair, &shape, &p, &g, further, &to);
        sl_settle("pair weights back", &parameters, &gradient, &back, NULL);
    }
}

/* Rows 2 … of a larger tile. */
static void check_edges_back(int64_t rows, int64_t cols)
{
    const struct sl_pair pair = pair_of(3, cols), sums_pair = pair_of(2, cols);
    struct sl_operand target = sl_operand_reals(rows, sl_pair_target(&pair)),
                      gradient = sl_operand_reals(rows, sl_pair_gradient(&pair)),
                      target_back = sl_operand_reals(rows, sl_pair_target_back(&pair)),
                      state = sl_operand_reals(rows, sl_pair_state(&pair)),
                      back = sl_operand_reals(FEATURES + 3, sl_pair_columns(&pair)),
                      sums = sl_operand_reals(FEATURES, sl_pair_all(&sums_pair)),
                      pasted = sl_operand_reals(FEATURES + 3, sl_pair_columns(&sums_pair));
    const struct sl_floats_at t = copied(&target, 0), g = copied(&gradient, 0),
                              c = copied(&target_back, 0), s = copied(&state, 0),
                              to = copied(&back, 2), m = copied(&sums, 0),
                              pasted_to = copied(&pasted, 2);
    back.gpu_error = GPU_ERROR;
    back.free_first = 2;
    back.free_rows = 1;
    sl_submit_pair_edges_back(&sl_running, &pair, &target.tile, &gradient.tile, &target_back.tile,
                              &state.tile, 2, &back.tile);
    sl_submit_pair_edges_paste(&sl_running, &sums_pair, &sums.tile, 2, &pasted.tile);
    sl_kernel_pair_edges_back(&pair, rows, &t, &g, &c, &s, &to);
    sl_kernel_pair_edges_paste(&sums_pair, &m, &pasted_to);
    sl_settle("pair edges back", &target, &gradient, &target_back, &state, &back, &sums, &pasted,
              NULL);
}

/* ---- Walks ---- */

/* The walks over A, of one tile. States and sums are new, or they go on. States are compared
 * closed: before, equal states may have other bits. */
static void check_walks(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 4 * TRIALS; trial++) {
        const struct sl_pair pair = pair_of(trial % TRIALS, cols);
        const bool on = trial / TRIALS % 2, sums_on = trial / TRIALS / 2,
                   sums = pair.edges && !pair.products;
        struct sl_guarded_sparse a =
            sl_guarded_sparse_random(rows, rows + 3, 4, 0, false, SL_REALS);
        const int64_t nnz = a.view.row_ptr[a.view.blocks * rows];
        struct sl_guarded edge = sl_guarded_random(nnz, FEATURES, SL_TIGHT, 0.0f, SL_REALS);
        a.view.edge_features = pair.edges;
        a.view.edge = pair.edges ? edge.at : NULL;
        struct sl_operand packed = sl_operand_packed(&a.view, 1), vectors = vectors_of(&pair),
                          source = with_room(&pair, rows + 3, sl_pair_source(&pair),
                                             pair.products ? 2 : 1),
                          target = with_room(&pair, rows, sl_pair_target(&pair), 1),
                          gradient = with_room(&pair, rows, sl_pair_gradient(&pair), 1),
                          state = sl_operand_blank(rows, sl_pair_state(&pair)),
                          back = on ? with_room(&pair, rows, sl_pair_target_back(&pair), 1)
                                    : sl_operand_blank(rows, sl_pair_target_back(&pair)),
                          m = sums_on || !sums ? with_room(&pair, FEATURES, sl_pair_all(&pair), 1)
                                               : sl_operand_blank(FEATURES, sl_pair_all(&pair));
        const struct sl_floats_at v = copied(&vectors, 0), s = copied(&source, 0),
                                  t = copied(&target, 0), g = copied(&gradient, 0),
                                  z = copied(&state, 0), c = copied(&back, 0), to = copied(&m, 0);
        struct sl_pair_tiles tiles = {.a = &packed.sparse,
                                      .vectors = &vectors.tile,
                                      .source = &source.tile,
                                      .target = &target.tile,
                                      .out = &state.tile};
        state.gpu_error = target.gpu_error = back.gpu_error = m.gpu_error = GPU_ERROR;
        sl_submit_pair(&sl_running, &pair, &tiles);
        tiles.accumulate = on;
        if (on)
            sl_submit_pair(&sl_running, &pair, &tiles);
        tiles.gradient = &gradient.tile;
        tiles.out = &back.tile;
        tiles.edge_back = sums ? &m.tile : NULL;
        tiles.edge_accumulate = sums_on;
        sl_submit_pair_again(&sl_running, &pair, &tiles);
        sl_kernel_pair(&pair, &a.view, &v, &s, &t, false, &z);
        if (on)
            sl_kernel_pair(&pair, &a.view, &v, &s, &t, true, &z);
        sl_kernel_pair_again(&pair, &a.view, &v, &s, &t, &g, on, &c, sums_on, sums ? &to : NULL);
        sl_submit_pair_close(&sl_running, &pair, &vectors.tile, &target.tile, &state.tile);
        sl_kernel_pair_close(&pair, rows, &v, &t, &z);
        sl_settle("pair walks", &packed, &vectors, &source, &target, &gradient, &state, &back, &m,
                  NULL);
        sl_guarded_sparse_free(&a);
        sl_guarded_free(&edge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_ends),         SL_OPERATION(check_gradient),   SL_OPERATION(check_close),
        SL_OPERATION(check_weights_back), SL_OPERATION(check_edges_back), SL_OPERATION(check_walks),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
