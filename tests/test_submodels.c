/* Sub-models: blocks of parameters, the parts of rounds and the axes of models. Training has
 * tests of its own (test_submodels_training.c, submodels.sh). */
#include "codelets/mean_probabilities.h"
#include "codelets/units.h"
#include "core/error.h"
#include "run/share_choice.h"
#include "submodels/rounds.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/runs.h"
#include "tests/unit.h"

/* ---- Blocks ---- */

/* A matrix with columns beside it that nobody may touch. */
struct numbers {
    struct sl_parameters p;
    size_t bytes;
};

static struct numbers make_numbers(int64_t rows, int64_t cols)
{
    const int64_t ld = cols + sl_random_below(5), count = (rows + 1) * ld;
    struct numbers n = {{calloc((size_t)count + 1, sizeof(float)), rows, cols, ld},
                        (size_t)count * sizeof(float)};
    assert_non_null(n.p.data);
    for (int64_t i = 0; i < count; i++)
        n.p.data[i] = (float)sl_random_below(1 << 20) + 0.5f;
    return n;
}

static struct numbers copy_numbers(const struct numbers *of)
{
    struct numbers n = *of;
    n.p.data = malloc(of->bytes + 1);
    assert_non_null(n.p.data);
    memcpy(n.p.data, of->p.data, of->bytes);
    return n;
}

static float *at(const struct numbers *n, int64_t r, int64_t c)
{
    return n->p.data + r * n->p.ld + c;
}

/* Whether every byte is as expected; frees what was expected. */
static void expect(const struct numbers *got, struct numbers *wanted, const char *what)
{
    if (memcmp(got->p.data, wanted->p.data, got->bytes) != 0)
        fail_msg("%s: other entries", what);
    free(wanted->p.data);
}

struct block_case {
    int weights, part, parts;
    int64_t in, out, vectors;
    bool in_split, out_split, all_rows;
};

static uint8_t *random_parts(int64_t units, int parts)
{
    uint8_t *part = malloc((size_t)units + 1);
    assert_non_null(part);
    for (int64_t u = 0; u < units; u++)
        part[u] = (uint8_t)sl_random_below(parts);
    return part;
}

static bool block_has(const struct sl_units *units, int part, int64_t unit)
{
    return !units->part || units->part[unit] == part;
}

/* The row of the block that a row of the whole is, or -1; shared rows count as the block's. A block
 * that has all rows has those of other parts, too, and nothing in them. */
static int64_t row_of(const struct sl_unit_block *b, int64_t row)
{
    int64_t to = 0;
    for (int64_t r = 0; r <= row; r++) {
        const bool unit = r < b->weights * b->in.width;
        const bool has = !unit || block_has(&b->in, b->part, r % b->in.width);
        if (r == row)
            return has ? to : -1;
        to += has || b->all_rows;
    }
    return -1;
}

static int64_t row_count(const struct sl_unit_block *b, int64_t rows)
{
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        count += b->all_rows || row_of(b, r) >= 0;
    return count;
}

static int64_t column_count(const struct sl_units *units, int part)
{
    int64_t count = 0;
    for (int64_t u = 0; u < units->width; u++)
        count += block_has(units, part, u);
    return count;
}

/* Set the block to entries of the whole (or back); rows from `last` on are in kept. */
static void naive(const struct sl_unit_block *b, const struct numbers *whole, int64_t last,
                  const struct numbers *kept, const struct numbers *part, bool back)
{
    for (int64_t r = 0; r < whole->p.rows; r++) {
        const int64_t to = row_of(b, r);
        int64_t column = 0;
        for (int64_t c = 0; to >= 0 && c < whole->p.cols; c++) {
            if (!block_has(&b->out, b->part, c))
                continue;
            float *a = r < last ? at(whole, r, c) : at(kept, r - last, c);
            float *d = at(part, to, column++);
            const float factor =
                r < last && r < b->weights * b->in.width ? ldexpf(1.0f, b->shift) : 1.0f;
            *(back ? a : d) = back ? *d / factor : *a * factor;
        }
        for (int64_t c = 0; to < 0 && b->all_rows && !back && c < part->p.cols; c++)
            *at(part, r, c) = 0.0f;
    }
}

static void check_move(const struct sl_unit_block *b, int64_t rows, int64_t shared)
{
    const int64_t cols = column_count(&b->out, b->part);
    struct numbers whole = make_numbers(rows, b->out.width);
    struct numbers kept = make_numbers(shared, b->out.width);
    struct numbers part = make_numbers(row_count(b, rows), cols), wanted = copy_numbers(&part);
    naive(b, &whole, rows - shared, &kept, &wanted, false);
    sl_kernel_take(b, &whole.p, &kept.p, &part.p);
    expect(&part, &wanted, "take");
    for (int with = 0; with < 2; with++) {
        struct numbers values = copy_numbers(&kept);
        for (int64_t r = 0; r < shared; r++)
            for (int64_t c = 0; c < whole.p.cols; c++)
                *at(&values, r, c) = with ? *at(&whole, rows - shared + r, c) : 0.0f;
        wanted = copy_numbers(&part);
        naive(b, &whole, rows - shared, &values, &wanted, false);
        for (int64_t r = b->weights * b->in.width; !with && b->in.part && r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                *at(&wanted, row_of(b, r), c) = 0.0f;
        sl_kernel_take_block(b, with, &whole.p, &part.p);
        expect(&part, &wanted, with ? "take_block, first" : "take_block");
        free(values.p.data);
    }
    for (size_t i = 0; i < part.bytes / sizeof(float); i++)
        part.p.data[i] = -(float)(i + 1);
    struct numbers back = copy_numbers(&whole), kept_back = copy_numbers(&kept);
    naive(b, &back, rows - shared, &kept_back, &part, true);
    sl_kernel_put(b, &part.p, &kept.p, &whole.p);
    expect(&whole, &back, "put");
    expect(&kept, &kept_back, "put, what is kept");
    free(whole.p.data);
    free(kept.p.data);
    free(part.p.data);
}

/* A byte counts up to 255 rounds. */
static void check_counts(const struct block_case *of)
{
    enum { STRIDE = 600, STEPS = 7 };
    static const int64_t rounds[] = {0, 1, 3, 7, 254, 255, 256, 510, 511, STRIDE - 1};
    const int64_t rows = of->weights * of->in + of->vectors;
    uint8_t *in = random_parts(of->in * STRIDE, of->parts),
            *out = random_parts(of->out * STRIDE, of->parts);
    for (size_t k = 0; k < SL_COUNT(rounds) && (rounds[k] < 10 || of->out < 8); k++) {
        const int64_t round = rounds[k];
        uint8_t now_in[10], now_out[20];
        for (int64_t u = 0; u < of->in; u++)
            now_in[u] = in[u * STRIDE + round];
        for (int64_t u = 0; u < of->out; u++)
            now_out[u] = out[u * STRIDE + round];
        const struct sl_unit_block now = {.weights = of->weights,
                                          .in = {of->in, of->in_split ? now_in : NULL},
                                          .out = {of->out, of->out_split ? now_out : NULL},
                                          .part = of->part};
        const bool both = of->in_split && of->out_split;
        struct numbers got = make_numbers(row_count(&now, rows), column_count(&now.out, of->part));
        struct numbers wanted = copy_numbers(&got);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0, to = 0; row_of(&now, r) >= 0 && c < of->out; c++) {
                int64_t count = 0;
                for (int64_t t = 0; t < round; t++)
                    count += !both || r >= of->weights * of->in ||
                             in[r % of->in * STRIDE + t] == out[c * STRIDE + t];
                if (block_has(&now.out, of->part, c))
                    *at(&wanted, row_of(&now, r), to++) = (float)(STEPS * count);
            }
        sl_kernel_count_steps(&now,
                              &(struct sl_rounds_past){.round = round,
                                                       .steps = STEPS,
                                                       .stride = STRIDE,
                                                       .in = of->in_split ? in : NULL,
                                                       .out = of->out_split ? out : NULL},
                              &got.p);
        expect(&got, &wanted, "count_steps");
        free(got.p.data);
    }
    free(in);
    free(out);
}

static void check_block(const struct block_case *of)
{
    uint8_t *in = random_parts(of->in, of->parts), *out = random_parts(of->out, of->parts);
    const struct sl_unit_block b = {.weights = of->weights,
                                    .in = {of->in, of->in_split ? in : NULL},
                                    .out = {of->out, of->out_split ? out : NULL},
                                    .part = of->part,
                                    .shift = (int)sl_random_below(4),
                                    .all_rows = of->all_rows};
    const int64_t rows = of->weights * of->in + of->vectors;
    const int64_t shared = of->out_split ? 0 : of->in_split ? of->vectors : rows;
    assert_int_equal(sl_unit_block_shared(&b, rows), shared);
    check_move(&b, rows, shared);
    if (of->in < 10 && of->out <= 20)
        check_counts(of);
    free(in);
    free(out);
}

SL_TEST(test_blocks)
{
    sl_random_seed(4);
    for (int k = 0; k < 400; k++)
        check_block(&(struct block_case){
            .weights = (int)sl_random_below(4),
            .parts = 3,
            .part = (int)sl_random_below(3),
            .in = 1 + sl_random_below(9),
            .out = 1 + sl_random_below(20),
            .vectors = sl_random_below(4),
            .in_split = k & 1,
            .out_split = k & 2,
            .all_rows = k & 1 && k & 4,
        });
    /* Columns are listed in runs. */
    for (int64_t out = (1 << 15) - 1; out <= (1 << 15) + 1; out++)
        check_block(&(struct block_case){.weights = 2,
                                         .parts = 3,
                                         .part = 1,
                                         .in = 2,
                                         .out = out,
                                         .vectors = 1,
                                         .in_split = true,
                                         .out_split = true});
    for (int split = 0; split < 4; split++)
        check_block(&(struct block_case){.weights = 1,
                                         .parts = 3,
                                         .part = 2,
                                         .in = 3,
                                         .out = 100003,
                                         .vectors = 2,
                                         .in_split = split & 1,
                                         .out_split = split & 2});
}

/* Logits so far apart that probabilities would be rounded to 0. */
SL_TEST(test_mean_probabilities)
{
    enum { ROWS = 5, CLASSES = 9, LD = 11, NETWORKS = 4 };
    sl_random_seed(6);
    float y[ROWS * LD], x[ROWS * LD];
    long double sum[ROWS * LD] = {0};
    for (int i = 0; i < ROWS * LD; i++)
        y[i] = NAN;
    for (int k = 0; k < NETWORKS; k++) {
        for (int i = 0; i < ROWS * LD; i++)
            x[i] = (float)(sl_random_below(2000) - 1000) * (i < 3 * LD ? 1.0f : 0.002f);
        for (int r = 0; r < ROWS; r++) {
            long double all = 0.0L;
            for (int c = 0; c < CLASSES; c++)
                all += expl((long double)x[r * LD + c]);
            for (int c = 0; c < CLASSES; c++)
                sum[r * LD + c] += expl((long double)x[r * LD + c]) / all;
        }
        sl_kernel_mean_probabilities(k, &(struct sl_logits){x, ROWS, CLASSES, LD},
                                     &(struct sl_logits){y, ROWS, CLASSES, LD});
    }
    for (int i = 0; i < ROWS * LD; i++) {
        const double wanted = (double)logl(sum[i] / NETWORKS);
        if (i % LD >= CLASSES)
            assert_true(isnan(y[i]));
        else if (!(fabs((double)y[i] - wanted) <= 1e-6 * (1.0 + fabs(wanted))))
            fail_msg("logit %d is %g, not %g", i, (double)y[i], wanted);
    }
}

SL_TEST(test_merge)
{
    enum { MODELS = 7 };
    sl_random_seed(5);
    for (int equal = 0; equal < 2; equal++) {
        struct numbers whole = make_numbers(5, 6), wanted = copy_numbers(&whole), kept[MODELS];
        for (int k = 0; k < MODELS; k++)
            kept[k] = equal && k ? copy_numbers(&kept[0]) : make_numbers(2, 6);
        for (int k = 0; k < MODELS; k++)
            sl_kernel_merge(k, &kept[k].p, &whole.p);
        for (int64_t r = 0; r < 2; r++)
            for (int64_t c = 0; c < 6; c++) {
                double sum = 0.0;
                for (int k = 0; k < MODELS; k++)
                    sum += *at(&kept[k], r, c);
                const float mean = (float)(sum / MODELS), got = *at(&whole, 3 + r, c);
                assert_true(equal ? got == *at(&kept[0], r, c)
                                  : fabsf(got - mean) <= 1e-6f * fabsf(mean));
                *at(&wanted, 3 + r, c) = got;
            }
        expect(&whole, &wanted, "merge"); /* other rows stay */
        for (int k = 0; k < MODELS; k++)
            free(kept[k].p.data);
        free(whole.p.data);
    }
}

/* ---- Axes and rounds ---- */

enum { FEATURES = 11, CLASSES = 4, MOST_AXES = 5 };

struct axes_case {
    const char *line;
    int count, heads;
    int64_t width[MOST_AXES];
};

static const struct axes_case axes_cases[] = {
    {"--model gcn --layers 3 --hidden 10", 4, 1, {FEATURES, 10, 10, CLASSES}},
    {"--model gcn --layers 1", 2, 1, {FEATURES, CLASSES}},
    {"--model sage --layers 2 --hidden 7", 3, 1, {FEATURES, 7, CLASSES}},
    {"--model gat --layers 3 --heads 3 --hidden 5", 4, 3, {FEATURES, 15, 15, CLASSES}},
    {"--model gatv2 --layers 3 --heads 3 --hidden 5", 4, 3, {FEATURES, 15, 15, CLASSES}},
    {"--model resgcn --layers 4 --hidden 9", 3, 1, {FEATURES, 9, CLASSES}},
    {"--model resgcn --layers 3 --hidden 9 --block-norm batch", 3, 1, {FEATURES, 9, CLASSES}},
    {"--model gcn --layers 3 --hidden 10 --norm-layers row", 4, 1, {FEATURES, 10, 10, CLASSES}},
    {"--model gcn --layers 2 --hidden 10 --residual linear --classifier linear",
     4,
     1,
     {FEATURES, 10, 10, CLASSES}},
    {"--model gat --layers 2 --heads 3 --hidden 5 --norm-layers batch",
     3,
     3,
     {FEATURES, 15, CLASSES}},
    {"--model gat --layers 2 --heads 3 --hidden 5 --residual linear --classifier linear",
     4,
     3,
     {FEATURES, 15, 15, CLASSES}},
    {"--model gcn --layers 3 --hidden 10 --residual identity", 3, 1, {FEATURES, 10, CLASSES}},
    {"--model gat --layers 2 --heads 3 --hidden 5 --encoder linear --residual identity",
     3,
     3,
     {FEATURES, 15, CLASSES}},
    {"--model sage --layers 3 --hidden 10 --jump sum", 3, 1, {FEATURES, 10, CLASSES}},
    {"--model gcn --layers 2 --hidden 10 --encoder linear", 4, 1, {FEATURES, 10, 10, CLASSES}},
    {"--model gin --layers 2 --hidden 6", 5, 1, {FEATURES, 6, 6, 6, CLASSES}},
    {"--model sgc --hops 3", 2, 1, {FEATURES, CLASSES}},
    {"--model appnp --layers 2 --hidden 8", 3, 1, {FEATURES, 8, CLASSES}},
    {"--model jknet --layers 3 --hidden 8", 3, 1, {FEATURES, 8, CLASSES}},
};

static void find_axes(const char *line, struct sl_axes *axes)
{
    struct sl_config config = sl_run_parse(line);
    const struct sl_model_shape shape = sl_config_shape(&config, FEATURES, CLASSES);
    struct sl_layer_list list = {0};
    sl_model_list(&shape, &list);
    assert_false(list.failed);
    assert_int_equal(sl_axes_find(&list, axes), 0);
    for (int l = 0; l < list.count; l++) {
        const struct sl_layer_shape *layer = &list.layer[l];
        assert_int_equal(axes->axis[axes->in[l]].width, layer->in);
        assert_int_equal(axes->axis[axes->out[l]].width, layer->out);
        assert_int_equal(axes->in[l], l ? axes->out[l - 1] : 0);
    }
    assert_int_equal(axes->out[list.count - 1], axes->count - 1);
    free(list.layer);
    sl_options_free(sl_config_options, &config);
}

SL_TEST(test_axes)
{
    for (size_t k = 0; k < SL_COUNT(axes_cases); k++) {
        const struct axes_case *of = &axes_cases[k];
        struct sl_axes axes;
        find_axes(of->line, &axes);
        assert_int_equal(axes.count, of->count);
        for (int a = 0; a < axes.count; a++) {
            const bool hidden = a > 0 && a < axes.count - 1;
            assert_int_equal(axes.axis[a].width, of->width[a]);
            assert_int_equal(axes.axis[a].hidden, hidden);
            assert_int_equal(axes.axis[a].heads, hidden ? of->heads : 1);
        }
        sl_axes_free(&axes);
    }
}

static const uint8_t *parts_of(const struct sl_rounds *rounds, int64_t t, int axis)
{
    return rounds->part + t * rounds->first[rounds->axes->count] + rounds->first[axis];
}

/* Each head has the same number of units of a part: in proportion to `share`, or, of NULL, as many
 * of each. */
static void check_sizes(const struct sl_rounds *rounds, int64_t t, int axis, const int64_t *share)
{
    const struct sl_axis *a = &rounds->axes->axis[axis];
    const int64_t units = a->width / a->heads;
    int64_t all = 0;
    for (int p = 0; p < rounds->parts; p++) {
        const int64_t size = sl_rounds_size(rounds, axis, p);
        for (int h = 0; h < a->heads; h++) {
            int64_t count = 0;
            for (int64_t u = 0; u < units; u++)
                count += parts_of(rounds, t, axis)[h * units + u] == p;
            assert_int_equal(count * a->heads, size);
        }
        int64_t shares = 0;
        for (int q = 0; q < rounds->parts; q++)
            shares += share ? share[q] : 1;
        const double exact = (double)units * (double)(share ? share[p] : 1) / (double)shares;
        assert_true(fabs((double)(size / a->heads) - exact) < 1.0);
        all += size;
    }
    assert_int_equal(all, a->width);
}

/* How many of all units have other parts than in the first round. */
static int64_t moved(const struct sl_rounds *a, int64_t t, const struct sl_rounds *b, int64_t u)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a->first[a->axes->count]; i++)
        count += parts_of(a, t, 0)[i] != parts_of(b, u, 0)[i];
    return count;
}

static void check_rounds(const struct sl_axes *axes, enum sl_rounds_kind kind, int parts)
{
    enum { ROUNDS = 7 };
    struct sl_rounds rounds, again, other;
    assert_int_equal(sl_rounds_create(&rounds, axes, kind, parts, ROUNDS, 8, NULL), 0);
    assert_int_equal(sl_rounds_create(&again, axes, kind, parts, ROUNDS, 8, NULL), 0);
    assert_int_equal(sl_rounds_create(&other, axes, kind, parts, ROUNDS, 9, NULL), 0);
    sl_rounds_draw(&rounds, ROUNDS - 1);
    sl_rounds_draw(&other, ROUNDS - 1);
    for (int64_t t = 0; t < ROUNDS; t++) {
        sl_rounds_draw(&again, t);
        for (int a = 0; a < axes->count; a++)
            if (axes->axis[a].hidden)
                check_sizes(&rounds, t, a, NULL);
        assert_int_equal(moved(&rounds, t, &again, t), 0);
        assert_true(parts == 1 || moved(&rounds, t, &other, t) > 0);
        for (int64_t u = 0; u < t; u++)
            assert_int_equal(moved(&rounds, t, &rounds, u) > 0,
                             parts > 1 && kind != SL_ROUNDS_FIXED);
    }
    sl_rounds_free(&rounds);
    sl_rounds_free(&again);
    sl_rounds_free(&other);
}

static void check_shares(const struct sl_axes *axes, enum sl_rounds_kind kind)
{
    enum { ROUNDS = 4, PARTS = 3 };
    static const int64_t share[PARTS] = {7, 1, 3}, alike[PARTS] = {5, 5, 5};
    struct sl_rounds rounds, equal, none;
    assert_int_equal(sl_rounds_create(&rounds, axes, kind, PARTS, ROUNDS, 8, NULL), 0);
    assert_int_equal(sl_rounds_create(&equal, axes, kind, PARTS, ROUNDS, 8, NULL), 0);
    assert_int_equal(sl_rounds_create(&none, axes, kind, PARTS, ROUNDS, 8, NULL), 0);
    assert_int_equal(sl_rounds_share(&rounds, share), 0);
    assert_int_equal(sl_rounds_share(&equal, alike), 0);
    sl_rounds_draw(&rounds, ROUNDS - 1);
    sl_rounds_draw(&equal, ROUNDS - 1);
    sl_rounds_draw(&none, ROUNDS - 1);
    for (int64_t t = 0; t < ROUNDS; t++) {
        for (int a = 0; a < axes->count; a++)
            if (axes->axis[a].hidden)
                check_sizes(&rounds, t, a, share);
        assert_int_equal(moved(&equal, t, &none, t), 0);
        assert_true(moved(&rounds, t, &none, t) > 0);
    }
    sl_rounds_free(&rounds);
    sl_rounds_free(&equal);
    sl_rounds_free(&none);
}

SL_TEST(test_shares_of_seconds)
{
    static const struct {
        int groups;
        double seconds[3];
        int64_t share[3];
    } cases[] = {
        {1, {2.0}, {1}},
        {2, {1.0, 1.0}, {1, 1}},
        {2, {1.0, 1.09}, {1, 1}},
        {2, {1.0, 4.0}, {100, 25}},
        {3, {3.0, 1.5, 30.0}, {50, 100, 5}},
        {2, {1.0, 1000.0}, {100, 1}},
    };
    for (size_t k = 0; k < SL_COUNT(cases); k++) {
        int64_t share[3];
        sl_shares_of_seconds(cases[k].groups, cases[k].seconds, share);
        for (int g = 0; g < cases[k].groups; g++)
            assert_int_equal(share[g], cases[k].share[g]);
    }
}

SL_TEST(test_rounds)
{
    static const char *const lines[] = {"--model gcn --layers 4 --hidden 61",
                                        "--model gat --layers 3 --heads 3 --hidden 23",
                                        "--model resgcn --layers 3 --hidden 60"};
    for (size_t k = 0; k < SL_COUNT(lines); k++) {
        struct sl_axes axes;
        find_axes(lines[k], &axes);
        for (int parts = 1; parts < 7; parts += 2) {
            check_rounds(&axes, SL_ROUNDS_RANDOM, parts);
            check_rounds(&axes, SL_ROUNDS_FIXED, parts);
        }
        check_shares(&axes, SL_ROUNDS_RANDOM);
        check_shares(&axes, SL_ROUNDS_FIXED);
        sl_axes_free(&axes);
    }
}

/* There are as many rounds as parts. Two units of neighbouring axes are in one part in exactly one
 * round. */
SL_TEST(test_latin)
{
    enum { PARTS = 4, WIDTH = 20, ROUNDS = 2 * PARTS };
    struct sl_axes axes;
    struct sl_rounds rounds;
    find_axes("--model gcn --layers 5 --hidden 20", &axes);
    assert_int_equal(sl_rounds_create(&rounds, &axes, SL_ROUNDS_LATIN, PARTS, ROUNDS, 3, NULL), 0);
    sl_rounds_draw(&rounds, ROUNDS - 1);
    for (int a = 1; a < axes.count - 1; a++) {
        for (int64_t t = 0; t < ROUNDS; t++)
            check_sizes(&rounds, t, a, NULL);
        for (int first = 0; a > 1 && first < ROUNDS; first += PARTS)
            for (int i = 0; i < WIDTH; i++)
                for (int j = 0; j < WIDTH; j++) {
                    int met = 0;
                    for (int t = first; t < first + PARTS; t++)
                        met += parts_of(&rounds, t, a - 1)[i] == parts_of(&rounds, t, a)[j];
                    assert_int_equal(met, 1);
                }
    }
    sl_rounds_free(&rounds);
    assert_int_equal(sl_rounds_create(&rounds, &axes, SL_ROUNDS_LATIN, 3, 2, 3, NULL),
                     SL_ERR_USAGE);
    sl_rounds_free(&rounds);
    assert_int_equal(sl_rounds_create(&rounds, &axes, SL_ROUNDS_RANDOM, 21, 2, 3, NULL),
                     SL_ERR_USAGE);
    sl_rounds_free(&rounds);
    sl_axes_free(&axes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_mean_probabilities),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_latin),
        cmocka_unit_test(test_shares_of_seconds),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
