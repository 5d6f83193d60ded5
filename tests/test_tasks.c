/* Submissions of codelets/ as tasks on tiles: sums, products and what follows them. What
 * comes out is, bit by bit, what the kernel makes of copies of the same buffers (tests/operands.h).
 * The kernels have tests of their own (test_kernels_*.c). */
#include <stdatomic.h>

#include "codelets/bases.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"
#include "codelets/expand.h"
#include "codelets/features.h"
#include "codelets/gemm.h"
#include "codelets/gine.h"
#include "codelets/max.h"
#include "codelets/relations.h"
#include "codelets/spmm.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- Epilogues ---- */

/* On tiles, and for the kernel on their copies. */
struct epilogue {
    struct sl_operand scales, factor, parameters, mask;
    struct sl_epilogue_tiles tiles;
    struct sl_epilogue kernel;
};

/* `steps` of tests/kernels.h. Made in place: its tiles have addresses. */
static void make_epilogue(struct epilogue *e, int steps, int64_t rows, int64_t cols)
{
    *e = (struct epilogue){
        .scales = sl_operand_scales(rows),
        .factor = sl_operand_reals(1, rows),
        .parameters = sl_operand_reals(4, cols + (steps & 3)),
        .mask = sl_operand_reals_of_type(rows, cols, sl_some_type()),
        .tiles = SL_EPILOGUE_NONE,
        .kernel = {.scale = steps & SL_STEP_SCALE ? 1.375f : 1.0f, .relu = steps & SL_STEP_RELU},
    };
    e->tiles.scale = e->kernel.scale;
    e->tiles.relu = e->kernel.relu;
    if (steps & SL_STEP_BEFORE)
        e->tiles.before = SL_ROW_LEFT + (steps % 3);
    if (steps & SL_STEP_AFTER)
        e->tiles.after = SL_ROW_INVERSE_RIGHT - (steps % 3);
    if (steps & SL_STEP_DROPOUT) {
        e->kernel.drop = sl_some_dropout(0.4);
        e->kernel.drop.column0 = (uint32_t)sl_random_below(9);
        e->tiles.drop = e->kernel.drop;
    }
    if (steps & (SL_STEP_BEFORE | SL_STEP_AFTER | SL_STEP_DROPOUT | SL_STEP_RELU))
        e->tiles.scales = &e->scales.tile;
    if (steps & SL_STEP_FACTOR) {
        e->tiles.factor = &e->factor.tile;
        e->kernel.factor = sl_copied_row(&e->factor, 0);
    }
    if (steps & SL_STEP_BIAS) {
        e->tiles.parameters = &e->parameters.tile;
        e->tiles.bias_row = 2;
        e->tiles.bias_col = steps & 3;
        e->kernel.bias = sl_copied_row(&e->parameters, 2) + (steps & 3);
    }
    if (steps & SL_STEP_MASK) {
        e->tiles.mask = &e->mask.tile;
        e->kernel.mask = sl_copied_rows(&e->mask);
        e->tiles.elu_back = e->kernel.elu_back = steps & SL_STEP_AFTER ? 0.8f : 0.0f;
        e->tiles.mask_scale = steps & SL_STEP_AFTER ? SL_ROW_INVERSE_LEFT : SL_ROW_NONE;
    }
    e->kernel.before = sl_copied_scale(&e->scales, e->tiles.before);
    e->kernel.after = sl_copied_scale(&e->scales, e->tiles.after);
    e->kernel.mask_scale = sl_copied_scale(&e->scales, e->tiles.mask_scale);
    e->kernel.vertex = sl_copied_vertices(&e->scales);
}

/* None, each alone, all, and any. */
static int some_steps(int trial)
{
    return trial == 0   ? 0
           : trial <= 8 ? 1 << (trial - 1)
           : trial == 9 ? SL_STEPS_ALL
                        : (int)sl_random_below(SL_STEPS_ALL + 1);
}

static void check_epilogue(int64_t rows, int64_t cols)
{
    for (int trial = 0; trial < 12; trial++) {
        struct epilogue e;
        make_epilogue(&e, some_steps(trial), rows, cols);
        const bool apart = sl_random_below(2);
        struct sl_operand sum = sl_operand_reals(rows, cols);
        struct sl_operand z = apart ? sl_operand_blank_of_type(rows, cols, sl_some_type())
                                    : sl_operand_reals(rows, cols);
        const struct sl_rows from = sl_copied_rows(&sum), to = apart ? sl_copied_rows(&z) : from;
        sl_submit_epilogue(&sl_running, &e.tiles, &sum.tile, apart ? &z.tile : &sum.tile);
        sl_kernel_epilogue(rows, cols, &e.kernel, &from, &to);
        sl_settle("epilogue", &e.scales, &e.factor, &e.parameters, &e.mask, &sum, &z, NULL);
    }
    for (int trial = 0; trial < 12; trial++) { /* Z is its own mask */
        struct epilogue e;
        make_epilogue(&e, some_steps(trial) & ~SL_STEP_MASK, rows, cols);
        struct sl_operand sum = sl_operand_reals(rows, cols),
                          z = sl_operand_reals_of_type(rows, cols, sl_some_type());
        const struct sl_rows from = sl_copied_rows(&sum), to = sl_copied_rows(&z);
        e.tiles.mask = &z.tile;
        e.kernel.mask = to;
        sl_submit_epilogue(&sl_running, &e.tiles, &sum.tile, &z.tile);
        sl_kernel_epilogue(rows, cols, &e.kernel, &from, &to);
        sl_settle("epilogue", &e.scales, &e.factor, &e.parameters, &e.mask, &sum, &z, NULL);
    }
}

/* ---- Products ---- */

/* With entries and empty rows, or without entries. */
static struct sl_guarded_sparse some_sparse(int64_t rows, int64_t cols, bool entries, bool values)
{
    static const int64_t block_sizes[] = {0, 1, 7, 16};
    struct sl_guarded_sparse all = sl_guarded_sparse_random(
        rows, cols, entries ? 6 : 0, entries ? rows / 2 : -1, values, SL_REALS);
    const struct sl_guarded_sparse cut =
        sl_guarded_sparse_cut(&all.view, 0, cols, block_sizes[sl_random_below(4)], false);
    sl_guarded_sparse_free(&all);
    return cut;
}

/* The sparse tiles of a product. Each one meets `span` dense tiles, which are neighbours in one
 * matrix. */
enum { MOST_PARTS = SL_SPMM_PARTS, MOST_SPAN = 4 };

static const struct cut {
    int parts, span[MOST_PARTS];
} cuts[] = {{1, {1}},
            {1, {3}},
            {2, {2, 1}},
            {4, {1, 4, 3, 2}},
            {MOST_PARTS, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}};

struct product {
    const struct cut *cut;
    struct sl_guarded_sparse sparse[MOST_PARTS];
    struct sl_operand a[MOST_PARTS], h[MOST_PARTS][MOST_SPAN];
    struct sl_sparse views[MOST_PARTS]; /* for the kernel, as is the next one */
    struct sl_rows rows[MOST_PARTS];
    struct sl_sparse_tile *a_tiles[MOST_PARTS];
    struct sl_tile *h_tiles[MOST_PARTS * MOST_SPAN];
};

static void make_product(struct product *p, const struct cut *cut, int64_t rows, int64_t width,
                         enum sl_type type, int option)
{
    static const int64_t heights[MOST_SPAN] = {5, 1, 13, 8};
    int tiles = 0;
    p->cut = cut;
    for (int i = 0; i < cut->parts; i++) {
        int64_t cols = 0;
        for (int t = 0; t < cut->span[i]; t++)
            cols += heights[t];
        p->sparse[i] = some_sparse(rows, cols, (option + i) & 1, option & 2);
        p->views[i] = p->sparse[i].view;
        p->a[i] = sl_operand_packed(&p->views[i], cut->span[i]);
        p->a_tiles[i] = &p->a[i].sparse;
        sl_operand_matrix(p->h[i], cut->span[i], heights, width, type);
        p->rows[i] = sl_copied_rows(&p->h[i][0]);
        for (int t = 0; t < cut->span[i]; t++)
            p->h_tiles[tiles++] = &p->h[i][t].tile;
    }
}

static void settle_product(struct product *p, struct epilogue *e, struct sl_operand *sum,
                           struct sl_operand *z)
{
    struct sl_operand *all[SL_MOST_OPERANDS];
    int count = 0;
    for (int i = 0; i < p->cut->parts; i++) {
        all[count++] = &p->a[i];
        for (int t = 0; t < p->cut->span[i]; t++)
            all[count++] = &p->h[i][t];
    }
    all[count++] = &e->scales;
    all[count++] = &e->factor;
    all[count++] = &e->parameters;
    all[count++] = &e->mask;
    all[count++] = sum;
    all[count++] = z;
    sl_settle_all("spmm", count, all);
    for (int i = 0; i < p->cut->parts; i++)
        sl_guarded_sparse_free(&p->sparse[i]);
}

/* Without an epilogue, and with each step of one; of both types, and sums apart where Z is narrow.
 */
static void check_spmm(int64_t rows, int64_t width)
{
    for (size_t c = 0; c < SL_COUNT(cuts); c++)
        for (int trial = -1; trial < 10; trial++) {
            const bool accumulate = sl_random_below(2);
            struct product p;
            struct epilogue e;
            const enum sl_type type = sl_some_type();
            make_product(&p, &cuts[c], rows, width, sl_some_type(), (int)sl_random_below(4));
            make_epilogue(&e, trial < 0 ? 0 : some_steps(trial), rows, width);
            struct sl_operand sum = sl_operand_reals(rows, width),
                              z = type == SL_FLOAT32 && accumulate
                                      ? sl_operand_reals(rows, width)
                                      : sl_operand_blank_of_type(rows, width, type);
            const struct sl_rows out = sl_copied_rows(&z), sums = sl_copied_rows(&sum);
            sum.free_rows = rows;
            sl_submit_spmm(&sl_running, &(struct sl_spmm_tiles){
                                            .parts = cuts[c].parts,
                                            .a = p.a_tiles,
                                            .h = p.h_tiles,
                                            .accumulate = accumulate,
                                            .epilogue = trial < 0 ? NULL : &e.tiles,
                                            .sum = type == SL_FLOAT32 ? NULL : &sum.tile,
                                            .z = &z.tile,
                                        });
            sl_kernel_spmm(cuts[c].parts, p.views, p.rows, width, accumulate,
                           trial < 0 ? NULL : &e.kernel, &sums, &out);
            settle_product(&p, &e, &sum, &z);
        }
}

/* Rows of int32 from `least` on. */
static struct sl_operand some_vertices(int64_t rows, int64_t cols, int32_t least)
{
    int32_t *contents = calloc((size_t)(rows * cols) + 1, sizeof *contents);
    assert_non_null(contents);
    for (int64_t k = 0; k < rows * cols; k++)
        contents[k] = (int32_t)sl_random_below(40) + least;
    struct sl_operand made = sl_operand_over(contents, rows, cols, cols, sizeof *contents);
    made.exact = true;
    return made;
}

static void check_max(int64_t rows, int64_t width)
{
    enum { INNER = 37 };
    for (int option = 0; option < 8; option++) {
        const bool accumulate = option & 1, listed = option & 2;
        const enum sl_type type = sl_some_type();
        struct sl_guarded_sparse s = some_sparse(rows, INNER, true, option & 4);
        struct sl_operand a = sl_operand_packed(&s.view, 1),
                          h = sl_operand_reals_of_type(INNER, width, type),
                          vertices = some_vertices(1, INNER, 0),
                          arg = accumulate ? some_vertices(rows, width, 0)
                                           : sl_operand_blank(rows, width),
                          z = accumulate ? sl_operand_reals_of_type(rows, width, type)
                                         : sl_operand_blank_of_type(rows, width, type);
        const struct sl_numbering columns = {13, listed ? vertices.copy : NULL};
        const struct sl_rows from = sl_copied_rows(&h), out = sl_copied_rows(&z);
        arg.exact = true;
        sl_submit_max(&sl_running, &(struct sl_max_tiles){
                                       .a = &a.sparse,
                                       .h = &h.tile,
                                       .argmax = &arg.tile,
                                       .z = &z.tile,
                                       .accumulate = accumulate,
                                       .minimum = option & 4,
                                       .vertices = listed ? &vertices.tile : NULL,
                                       .first = 13,
                                   });
        const struct sl_argmax argmax = {arg.copy, arg.tile.ld, option & 4 ? -1.0f : 1.0f};
        sl_kernel_max(&s.view, width, &from, accumulate, &out, &columns, &argmax);
        sl_settle("max", &a, &h, &vertices, &arg, &z, NULL);
        sl_guarded_sparse_free(&s);
    }
}

static void check_max_back(int64_t rows, int64_t width)
{
    enum { INNER = 37 };
    for (int option = 0; option < 8; option++) {
        const bool accumulate = option & 1, listed = option & 2;
        struct sl_guarded_sparse s = some_sparse(rows, INNER, true, option & 4);
        struct sl_operand at = sl_operand_packed(&s.view, 1), g = sl_operand_reals(INNER, width),
                          arg = some_vertices(INNER, width, -1),
                          vertices = some_vertices(1, rows, 0),
                          dh = accumulate ? sl_operand_reals(rows, width)
                                          : sl_operand_blank(rows, width);
        const struct sl_numbering own = {3, listed ? vertices.copy : NULL};
        sl_submit_max_back(&sl_running, &(struct sl_max_tiles){
                                            .a = &at.sparse,
                                            .h = &g.tile,
                                            .argmax = &arg.tile,
                                            .z = &dh.tile,
                                            .accumulate = accumulate,
                                            .vertices = listed ? &vertices.tile : NULL,
                                            .first = 3,
                                        });
        const struct sl_argmax argmax = {arg.copy, arg.tile.ld, 1.0f};
        const struct sl_rows from = sl_copied_rows(&g), to = sl_copied_rows(&dh);
        sl_kernel_max_back(&s.view, width, &from, &own, &argmax, accumulate, &to);
        sl_settle("max back", &at, &g, &arg, &vertices, &dh, NULL);
        sl_guarded_sparse_free(&s);
    }
}

/* A matrix whose entries have features (free: a.edge). */
static struct sl_guarded_sparse some_features(int64_t rows, int64_t cols, int64_t features)
{
    struct sl_guarded_sparse s = some_sparse(rows, cols, true, false);
    const int64_t count = s.view.row_ptr[s.view.blocks * rows] * features;
    float *edge = calloc((size_t)count + 1, sizeof *edge);
    assert_non_null(edge);
    for (int64_t i = 0; i < count; i++)
        edge[i] = sl_random_value(SL_REALS);
    s.view.edge = edge;
    s.view.edge_features = features;
    return s;
}

static struct sl_floats_at copied_floats(const struct sl_operand *o)
{
    return (struct sl_floats_at){o->copy, o->tile.ld};
}

static void check_gine(int64_t rows, int64_t width)
{
    enum { INNER = 37, FEATURES = 3 };
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct sl_guarded_sparse s = some_features(rows, INNER, FEATURES);
        struct sl_operand a = sl_operand_packed(&s.view, 1), x = sl_operand_reals(INNER, width),
                          edge = sl_operand_reals(FEATURES + 1, width),
                          out = accumulate ? sl_operand_reals(rows, width)
                                           : sl_operand_blank(rows, width);
        const struct sl_floats_at from = copied_floats(&x), map = copied_floats(&edge),
                                  to = copied_floats(&out);
        sl_submit_gine(&sl_running, &(struct sl_gine_tiles){.a = &a.sparse,
                                                            .x = &x.tile,
                                                            .edge = &edge.tile,
                                                            .out = &out.tile,
                                                            .accumulate = accumulate});
        sl_kernel_gine(&s.view, width, &from, &map, accumulate, &to);
        sl_settle("gine", &a, &x, &edge, &out, NULL);
        free((void *)s.view.edge);
        sl_guarded_sparse_free(&s);
    }
}

static void check_gine_back(int64_t rows, int64_t width)
{
    enum { INNER = 37, FEATURES = 3 };
    for (int option = 0; option < 8; option++) {
        const bool accumulate = option & 1, edge_accumulate = option & 2, has_back = option & 4;
        struct sl_guarded_sparse s = some_features(rows, INNER, FEATURES);
        struct sl_operand at = sl_operand_packed(&s.view, 1), g = sl_operand_reals(INNER, width),
                          x = sl_operand_reals(rows, width),
                          edge = sl_operand_reals(FEATURES + 1, width),
                          edge_back = edge_accumulate ? sl_operand_reals(FEATURES + 1, width)
                                                      : sl_operand_blank(FEATURES + 1, width),
                          back = accumulate || !has_back ? sl_operand_reals(rows, width)
                                                         : sl_operand_blank(rows, width);
        const double entries = (double)s.view.row_ptr[s.view.blocks * rows];
        edge_back.gpu_error = 1e-5 + 1e-6 * sqrt(entries); /* sums over all entries */
        const struct sl_floats_at sent = copied_floats(&g), own = copied_floats(&x),
                                  map = copied_floats(&edge), sums = copied_floats(&edge_back),
                                  to = copied_floats(&back);
        sl_submit_gine_back(&sl_running,
                            &(struct sl_gine_back_tiles){.a = &at.sparse,
                                                         .g = &g.tile,
                                                         .x = &x.tile,
                                                         .edge = &edge.tile,
                                                         .edge_back = &edge_back.tile,
                                                         .back = has_back ? &back.tile : NULL,
                                                         .accumulate = accumulate,
                                                         .edge_accumulate = edge_accumulate});
        sl_kernel_gine_back(&s.view, width, &sent, &own, &map, accumulate, has_back ? &to : NULL,
                            edge_accumulate, &sums);
        sl_settle("gine back", &at, &g, &x, &edge, &edge_back, &back, NULL);
        free((void *)s.view.edge);
        sl_guarded_sparse_free(&s);
    }
}

/* A matrix whose entries have a relation and a factor (free: a.edge). */
static struct sl_guarded_sparse some_related(int64_t rows, int64_t cols, int64_t relations)
{
    struct sl_guarded_sparse s = some_features(rows, cols, SL_RELATION_FEATURES);
    float *const edge = (float *)s.view.edge;
    for (uint32_t e = 0; e < s.view.row_ptr[s.view.blocks * rows]; e++)
        edge[e * SL_RELATION_FEATURES + SL_RELATION] = (float)sl_random_below(relations);
    return s;
}

/* In the second half of the options, WEIGHT begins at a later row of its tile. */
static void check_relations(int64_t rows, int64_t width)
{
    enum { INNER = 37, IN = 11, RELATIONS = 3, LATER = 5 };
    for (int option = 0; option < 4; option++) {
        const bool accumulate = option & 1;
        const int64_t weight_row = option & 2 ? LATER : 0;
        struct sl_guarded_sparse s = some_related(rows, INNER, RELATIONS);
        struct sl_operand a = sl_operand_packed(&s.view, 1), x = sl_operand_reals(INNER, IN),
                          weight = sl_operand_reals(weight_row + RELATIONS * IN, width),
                          out = accumulate ? sl_operand_reals(rows, width)
                                           : sl_operand_blank(rows, width);
        const struct sl_relations relations = {
            RELATIONS, IN, width, {sl_copied_row(&weight, weight_row), weight.tile.ld}, false};
        const struct sl_floats_at from = copied_floats(&x), to = copied_floats(&out);
        out.gpu_error = 3e-5; /* sums over neighbours and columns */
        sl_submit_relations(&sl_running, &(struct sl_relations_tiles){.a = &a.sparse,
                                                                      .relations = RELATIONS,
                                                                      .weight_row = weight_row,
                                                                      .x = &x.tile,
                                                                      .weight = &weight.tile,
                                                                      .out = &out.tile,
                                                                      .accumulate = accumulate});
        sl_kernel_relations(&s.view, &relations, &from, accumulate, &to);
        sl_settle("relations", &a, &x, &weight, &out, NULL);
        free((void *)s.view.edge);
        sl_guarded_sparse_free(&s);
    }
}

static void check_relations_back(int64_t rows, int64_t width)
{
    enum { INNER = 37, OUT = 11, RELATIONS = 3, LATER = 5 };
    for (int option = 0; option < 16; option++) {
        const bool accumulate = option & 1, weight_accumulate = option & 2, has_back = option & 4;
        const int64_t weight_row = option & 8 ? LATER : 0, weights = RELATIONS * width;
        struct sl_guarded_sparse s = some_related(rows, INNER, RELATIONS);
        struct sl_operand at = sl_operand_packed(&s.view, 1), g = sl_operand_reals(INNER, OUT),
                          x = sl_operand_reals(rows, width),
                          weight = sl_operand_reals(weight_row + weights, OUT),
                          weight_back = weight_accumulate ? sl_operand_reals(weights, OUT)
                                                          : sl_operand_blank(weights, OUT),
                          back = accumulate || !has_back ? sl_operand_reals(rows, width)
                                                         : sl_operand_blank(rows, width);
        const double entries = (double)s.view.row_ptr[s.view.blocks * rows];
        weight_back.gpu_error = 1e-5 + 1e-6 * sqrt(entries); /* sums over all entries */
        back.gpu_error = 3e-5; /* over neighbours, relations and columns */
        const struct sl_relations relations = {
            RELATIONS, width, OUT, {sl_copied_row(&weight, weight_row), weight.tile.ld}, false};
        const struct sl_floats_at to = copied_floats(&back);
        sl_submit_relations_back(
            &sl_running, &(struct sl_relations_back_tiles){.a = &at.sparse,
                                                           .relations = RELATIONS,
                                                           .weight_row = weight_row,
                                                           .g = &g.tile,
                                                           .x = &x.tile,
                                                           .weight = &weight.tile,
                                                           .weight_back = &weight_back.tile,
                                                           .back = has_back ? &back.tile : NULL,
                                                           .accumulate = accumulate,
                                                           .weight_accumulate = weight_accumulate});
        sl_kernel_relations_back(
            &s.view, &relations,
            &(struct sl_relations_back){.g = copied_floats(&g),
                                        .x = copied_floats(&x),
                                        .back = has_back ? &to : NULL,
                                        .accumulate = accumulate,
                                        .weight_accumulate = weight_accumulate,
                                        .weight_back = copied_floats(&weight_back)});
        sl_settle("relations back", &at, &g, &x, &weight, &weight_back, &back, NULL);
        free((void *)s.view.edge);
        sl_guarded_sparse_free(&s);
    }
}

/* Parameters and gradients are rows 2 … of larger tiles. */
static void check_bases(int64_t rows, int64_t width)
{
    enum { BASES = 2, IN = 3, LATER = 2 };
    const struct sl_bases bases = {rows % 7 + 1, BASES, IN, width + 1};
    const int64_t of = bases.relations * IN, all = LATER + BASES * IN + bases.relations;
    struct sl_operand parameters = sl_operand_reals(all, bases.out),
                      weight = sl_operand_blank(of, bases.out),
                      gradient = sl_operand_reals(of, bases.out),
                      back = sl_operand_reals(all, bases.out);
    const struct sl_floats_at p = {sl_copied_row(&parameters, LATER), parameters.tile.ld},
                              w = copied_floats(&weight), g = copied_floats(&gradient),
                              to = {sl_copied_row(&back, LATER), back.tile.ld};
    back.gpu_error = 1e-4; /* sums over all columns */
    sl_submit_bases(&sl_running, &bases, &parameters.tile, LATER, &weight.tile);
    sl_submit_bases_back(&sl_running, &bases, &parameters.tile, LATER, &gradient.tile, &back.tile,
                         LATER);
    sl_kernel_bases(&bases, &p, &w);
    sl_kernel_bases_back(&bases, &p, &g, &to);
    sl_settle("bases", &parameters, &weight, &gradient, &back, NULL);
}

/* The rows from the last to the first, behind `before` others. */
static struct sl_operand reversed(int64_t rows, int64_t before)
{
    uint32_t *contents = calloc((size_t)(rows + before) + 1, sizeof *contents);
    assert_non_null(contents);
    for (int64_t r = 0; r < rows; r++)
        contents[before + r] = (uint32_t)(rows - 1 - r);
    struct sl_operand made =
        sl_operand_over(contents, 1, rows + before, rows + before, sizeof *contents);
    made.exact = true;
    return made;
}

static void check_max_merge(int64_t rows, int64_t width)
{
    for (int option = 0; option < 4; option++) {
        const bool listed = option & 1, minimum = option & 2;
        const enum sl_type type = sl_some_type();
        const int64_t before = listed ? sl_random_below(4) : 0, all = rows + before;
        struct sl_operand x = sl_operand_reals_of_type(all, width, type),
                          from = some_vertices(all, width, -1), index = reversed(rows, before),
                          arg = some_vertices(rows, width, 0),
                          z = sl_operand_reals_of_type(rows, width, type);
        const struct sl_rows sent = sl_copied_rows(&x), to = sl_copied_rows(&z),
                             first = sl_rows_at(&sent, before, 0);
        sl_submit_max_merge(&sl_running,
                            &(struct sl_max_merge_tiles){.x = &x.tile,
                                                         .from = &from.tile,
                                                         .index = listed ? &index.tile : NULL,
                                                         .first = before,
                                                         .rows = rows,
                                                         .minimum = minimum,
                                                         .argmax = &arg.tile,
                                                         .z = &z.tile});
        const float sign = minimum ? -1.0f : 1.0f;
        const struct sl_argmax vertices = {(int32_t *)from.copy + before * from.tile.ld,
                                           from.tile.ld, sign},
                               argmax = {arg.copy, arg.tile.ld, sign};
        sl_kernel_max_merge(rows, width, listed ? (uint32_t *)index.copy + before : NULL, &first,
                            &vertices, &to, &argmax);
        sl_settle("max merge", &x, &from, &index, &arg, &z, NULL);
    }
}

/* Weights and their gradient have the bias as a further row. */
static void check_features(int64_t rows, int64_t width)
{
    const struct sl_dropout some = sl_some_dropout(0.4);
    enum { INNER = 37 };
    for (int option = 0; option < 32; option++) {
        const bool transposed = option & 1, add = option & 16;
        const enum sl_type type = add ? SL_FLOAT32 : sl_some_type();
        const struct sl_dropout *drop = option & 2 ? &some : NULL;
        struct sl_guarded_sparse s = some_sparse(transposed ? INNER : rows,
                                                 transposed ? rows : INNER, option & 4, option & 8);
        const int64_t row = sl_random_below(3), col = sl_random_below(3);
        struct sl_operand x = sl_operand_packed(&s.view, 1),
                          scales = sl_operand_scales(s.view.rows),
                          h = sl_operand_reals_of_type(INNER + 1 + row, width + col,
                                                       transposed ? type : SL_FLOAT32);
        struct sl_operand z =
            add || (transposed && sl_random_below(2))
                ? sl_operand_reals(rows + transposed, width)
                : sl_operand_blank_of_type(rows, width, transposed ? SL_FLOAT32 : type);
        const struct sl_rows from = sl_copied_rows(&h);
        z.free_rows = transposed;
        sl_submit_features(&sl_running, &(struct sl_features_tiles){
                                            .transposed = transposed,
                                            .accumulate = add,
                                            .x = &x.sparse,
                                            .drop = drop,
                                            .scales = &scales.tile,
                                            .h = &h.tile,
                                            .h_row = row,
                                            .h_col = col,
                                            .z = &z.tile,
                                        });
        sl_kernel_features(&(struct sl_features){.transposed = transposed,
                                                 .accumulate = add,
                                                 .x = &s.view,
                                                 .drop = drop,
                                                 .vertex = sl_copied_vertices(&scales),
                                                 .width = width,
                                                 .h = sl_rows_at(&from, row, col),
                                                 .z = sl_copied_rows(&z)});
        sl_settle("features", &x, &scales, &h, &z, NULL);
        sl_guarded_sparse_free(&s);
    }
}

static void check_expand(int64_t rows, int64_t cols)
{
    const struct sl_dropout some = sl_some_dropout(0.4);
    for (int option = 0; option < 8; option++) {
        const struct sl_dropout *drop = option & 1 ? &some : NULL;
        struct sl_guarded_sparse s = some_sparse(rows, cols, option & 2, option & 4);
        struct sl_operand x = sl_operand_packed(&s.view, 1), scales = sl_operand_scales(rows),
                          z = sl_operand_blank_of_type(rows, cols, sl_some_type());
        const struct sl_rows out = sl_copied_rows(&z);
        sl_submit_expand(&sl_running, &x.sparse, drop, &scales.tile, &z.tile);
        sl_kernel_expand(&s.view, drop, sl_copied_vertices(&scales), &out);
        sl_settle("expand", &x, &scales, &z, NULL);
        sl_guarded_sparse_free(&s);
    }
}

/* Without an epilogue, and, where there can be one, with each step; the mask apart, or C itself. */
static void check_gemm(int64_t m, int64_t n)
{
    static const int64_t inner[] = {1, 7, 41, 129};
    for (int option = 0; option < 64; option++) {
        const bool ta = option & 1, tb = option & 2, accumulate = option & 4, further = option & 8;
        const int64_t k = inner[sl_random_below(SL_COUNT(inner))];
        const int64_t row = sl_random_below(3), col = sl_random_below(3);
        const bool plain = ta || accumulate, finishes = !plain && option >= 16,
                   own_mask = finishes && option >= 48;
        const enum sl_type type = plain ? SL_FLOAT32 : sl_some_type();
        struct epilogue e;
        make_epilogue(&e, finishes ? some_steps(option % 12) & ~(own_mask ? SL_STEP_MASK : 0) : 0,
                      m, n);
        struct sl_operand a = sl_operand_reals_of_type((ta ? k : m) + further, ta ? m : k,
                                                       sl_some_type()),
                          b = sl_operand_reals_of_type((tb ? n : k) + further + row,
                                                       (tb ? k : n) + col, sl_some_type()),
                          c = accumulate || further || own_mask
                                  ? sl_operand_reals_of_type(m + further, n, type)
                                  : sl_operand_blank_of_type(m, n, type);
        const struct sl_rows by = sl_copied_rows(&b), to = sl_copied_rows(&c);
        if (own_mask) {
            e.tiles.mask = &c.tile;
            e.kernel.mask = to;
        }
        /* Sums of k products below 2.25; of two types, the other operand is rounded, too. */
        c.gpu_error = a.tile.element_size != b.tile.element_size ? 0x1p-2 : 1e-6 * (double)k;
        c.free_rows = accumulate ? 0 : further;
        sl_submit_gemm(&sl_running, &(struct sl_gemm_tiles){
                                        .transpose_a = ta,
                                        .transpose_b = tb,
                                        .m = m,
                                        .n = n,
                                        .k = k,
                                        .a = &a.tile,
                                        .b = &b.tile,
                                        .b_row = row,
                                        .b_col = col,
                                        .accumulate = accumulate,
                                        .epilogue = finishes ? &e.tiles : NULL,
                                        .c = &c.tile,
                                    });
        sl_kernel_gemm(&(struct sl_gemm){.transpose_a = ta,
                                         .transpose_b = tb,
                                         .accumulate = accumulate,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .a = sl_copied_rows(&a),
                                         .b = sl_rows_at(&by, row, col),
                                         .epilogue = finishes ? &e.kernel : NULL,
                                         .c = to});
        sl_settle("gemm", &a, &b, &e.scales, &e.factor, &e.parameters, &e.mask, &c, NULL);
    }
}

/* ---- A task that fails ---- */

static atomic_int failing_calls;

static void failing_cpu(void *buffers[], void *argument)
{
    (void)buffers, (void)argument;
    atomic_fetch_add(&failing_calls, 1);
    sl_fatal("no memory for a task");
}

void failing_cuda(void *buffers[], void *argument);
void failing_cuda(void *buffers[], void *argument)
{
    failing_cpu(buffers, argument);
}

SL_CODELET(failing, 0, 1, STARPU_W);

static int submit_failing(void *argument)
{
    struct sl_operand *out = argument;
    for (int task = 0; task < 2; task++)
        sl_task_submit(
            &sl_running,
            &(struct sl_task){.codelet = &failing_codelet, .count = 1, .tiles = {&out->tile}});
    sl_runtime_wait(&sl_running);
    return 0;
}

/* On a core and on a GPU, the first task ends the work of sl_runtime_guard, not the process. The
 * second task, which writes the same tile, does nothing. */
SL_TEST(test_failing)
{
    struct sl_operand out = sl_operand_reals(1, 1);
    out.free_rows = 1;
    assert_int_equal(sl_runtime_guard(&sl_running, submit_failing, &out), SL_ERR_SYSTEM);
    assert_string_equal(sl_error_message(), "no memory for a task");
    assert_int_equal(atomic_load(&failing_calls), 1);
    sl_settle("failing", &out, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_spmm),      SL_OPERATION(check_features),
        SL_OPERATION(check_epilogue),  SL_OPERATION(check_expand),
        SL_OPERATION(check_gemm),      SL_OPERATION(check_max),
        SL_OPERATION(check_max_back),  SL_OPERATION(check_max_merge),
        SL_OPERATION(check_gine),      SL_OPERATION(check_gine_back),
        SL_OPERATION(check_relations), SL_OPERATION(check_relations_back),
        SL_OPERATION(check_bases),     cmocka_unit_test(test_failing),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
