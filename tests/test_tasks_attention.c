/* Submissions of graph attention on sparse tiles, whose entries may have features, and on
 * parameters. What comes out is, bit by bit, what the kernel makes of copies of the same buffers
 * (tests/operands.h). The kernels have tests of their own (test_kernels_attention.c). */
#include "codelets/attention_rows.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { INNER = 37, HEADS = 3, FEATURES = 5 };

static struct sl_floats_at copied(const struct sl_operand *o)
{
    return (struct sl_floats_at){o->copy, o->tile.ld};
}

/* A GPU's sums of about `terms` products differ. */
static struct sl_operand result(bool accumulate, int64_t rows, int64_t cols, int64_t terms)
{
    struct sl_operand made =
        accumulate ? sl_operand_reals(rows, cols) : sl_operand_blank(rows, cols);
    made.gpu_error = 1e-6 * (double)(terms + 100);
    return made;
}

static struct sl_attention attention_of(int64_t width, bool training)
{
    return (struct sl_attention){.heads = HEADS,
                                 .width = width,
                                 .slope = 0.2f,
                                 .drop = training ? sl_some_dropout(0.4)
                                                  : (struct sl_dropout){.scale = 1.0f},
                                 .training = training};
}

/* A sparse matrix with features (free) of its entries, or, without `edges`, with weights >= 0. */
static struct sl_guarded_sparse some_sparse(int64_t rows, bool edges, float **feature)
{
    struct sl_guarded_sparse s =
        sl_guarded_sparse_random(rows, INNER, 6, rows / 2, !edges, SL_REALS);
    const uint32_t count = s.view.row_ptr[s.view.rows];
    *feature = malloc((count + 1) * FEATURES * sizeof **feature);
    assert_non_null(*feature);
    for (uint32_t i = 0; i < count * FEATURES; i++)
        (*feature)[i] = sl_random_value(SL_REALS);
    for (uint32_t i = 0; !edges && i < count; i++)
        ((float *)s.view.value)[i] *= s.view.value[i];
    s.view.edge_features = edges ? FEATURES : 0;
    s.view.edge = edges ? *feature : NULL;
    return s;
}

static void check_attention(int64_t rows, int64_t width)
{
    for (int option = 0; option < 8; option++) {
        const bool accumulate = option & 1, edges = option & 2;
        const struct sl_attention attention = attention_of(width, option & 4);
        float *feature;
        struct sl_guarded_sparse s = some_sparse(rows, edges, &feature);
        struct sl_operand a = sl_operand_packed(&s.view, 1),
                          projected = sl_operand_reals(INNER, sl_attention_projected(&attention)),
                          scores = sl_operand_reals(rows, sl_attention_scores(&attention)),
                          edge = sl_operand_reals(FEATURES, HEADS),
                          state = result(accumulate, rows, sl_attention_state(&attention), INNER);
        const struct sl_floats_at p = copied(&projected), r = copied(&scores), v = copied(&edge),
                                  to = copied(&state);
        sl_submit_attention(&sl_running, &attention,
                            &(struct sl_attention_tiles){
                                .a = &a.sparse,
                                .projected = &projected.tile,
                                .scores = &scores.tile,
                                .state = &state.tile,
                                .edge = edges ? &edge.tile : NULL,
                                .accumulate = accumulate,
                            });
        sl_kernel_attention(&attention, &s.view, &p, &r, edges ? &v : NULL, accumulate, &to);
        sl_settle("attention", &a, &projected, &scores, &edge, &state, NULL);
        sl_guarded_sparse_free(&s);
        free(feature);
    }
}

static void check_attention_back(int64_t rows, int64_t width)
{
    for (int option = 0; option < 8; option++) {
        const bool accumulate = option & 1, edges = option & 2, edge_accumulate = option & 4;
        const struct sl_attention attention = attention_of(width, true);
        float *feature;
        struct sl_guarded_sparse s = some_sparse(rows, edges, &feature);
        struct sl_operand at = sl_operand_packed(&s.view, 1),
                          gradient = sl_operand_reals(INNER, sl_attention_gradient(&attention)),
                          scores = sl_operand_reals(INNER, sl_attention_scores(&attention)),
                          projected = sl_operand_reals(rows, sl_attention_projected(&attention)),
                          edge = sl_operand_reals(FEATURES, HEADS),
                          edge_back =
                              result(edge_accumulate || !edges, FEATURES, HEADS, rows * width),
                          back = result(accumulate, rows, sl_attention_projected(&attention),
                                        10 * width);
        const struct sl_floats_at g = copied(&gradient), r = copied(&scores),
                                  p = copied(&projected), v = copied(&edge), to = copied(&back),
                                  v_to = copied(&edge_back);
        sl_submit_attention_back(&sl_running, &attention,
                                 &(struct sl_attention_back_tiles){
                                     .a = &at.sparse,
                                     .gradient = &gradient.tile,
                                     .scores = &scores.tile,
                                     .projected = &projected.tile,
                                     .back = &back.tile,
                                     .edge = edges ? &edge.tile : NULL,
                                     .edge_back = edges ? &edge_back.tile : NULL,
                                     .accumulate = accumulate,
                                     .edge_accumulate = edge_accumulate,
                                 });
        sl_kernel_attention_back(&attention, &s.view, &g, &r, &p, edges ? &v : NULL, accumulate,
                                 &to, edge_accumulate, edges ? &v_to : NULL);
        sl_settle("attention back", &at, &gradient, &scores, &projected, &edge, &edge_back, &back,
                  NULL);
        sl_guarded_sparse_free(&s);
        free(feature);
    }
}

/* Parameters behind two rows of other weights, and the gradient of the weights that products see.
 */
static void check_parameters(int64_t in, int64_t width)
{
    for (int64_t features = 0; features <= FEATURES; features += FEATURES) {
        const struct sl_attention attention = attention_of(width, false);
        const struct sl_attention_shape shape = {.in = in,
                                                 .columns = HEADS * width,
                                                 .skipped = 2,
                                                 .edge_features = features,
                                                 .bias = true,
                                                 .head_width = width,
                                                 .out = HEADS * width};
        const int64_t rows = in + features + (features ? 4 : 3), skipped = shape.skipped;
        struct sl_operand parameters = sl_operand_reals(skipped + rows, shape.columns),
                          edge = result(features == 0, FEATURES, HEADS, width),
                          gradient = sl_operand_reals(in + features + 1,
                                                      sl_attention_projected(&attention)),
                          back = sl_operand_reals(skipped + rows, shape.columns);
        const struct sl_floats_at from = {sl_copied_row(&parameters, skipped), parameters.tile.ld},
                                  v = copied(&edge), g = copied(&gradient),
                                  to = {sl_copied_row(&back, skipped), back.tile.ld};
        back.gpu_error = 1e-6 * (double)(in + 100);
        if (features) {
            sl_submit_attention_edge(&sl_running, &attention, &shape, &parameters.tile, &edge.tile);
            sl_kernel_attention_edge(&attention, &shape, &from, &v);
        }
        sl_submit_attention_weights_back(&sl_running, &attention, &shape, true, &parameters.tile,
                                         &gradient.tile, &back.tile);
        sl_kernel_attention_weights_back(&attention, &shape, &from, &g, true, &to);
        sl_settle("attention's parameters", &parameters, &edge, &gradient, &back, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_attention),
        SL_OPERATION(check_attention_back),
        SL_OPERATION(check_parameters),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
