/* Scores of links, their gradients, and the order by targets. How kernels are judged:
 * tests/kernels.h.
 *
 * Exact gradients are central differences of the scores, that is, of the definition in
 * codelets/links.h. A score is a polynomial of degree 1 in each number, between kinks, so that
 * these differences have no error but rounding in double. A product of integers, or of multiples of
 * powers of 2, has none. X + Y of the mlp is an odd multiple of 2^-7, and a step is shorter. */
#include "codelets/links.h"
#include "tests/kernels.h"
#include "tests/unit.h"

/* ---- Problems ---- */

enum { FIELDS = sizeof(struct sl_scored_link) / sizeof(float) };
static const double STEP = 0x1p-10;

struct problem {
    enum sl_decoder decoder;
    int64_t sources, targets, cols, links, room;
    bool one; /* sources and targets are rows of one tile */
    enum sl_layout layout;
    enum sl_kind kind;
    struct sl_guarded x, y, w; // (sources, cols), (targets, cols), (1, cols)
    struct sl_guarded block;   /* its memory; see block_of */
};

static struct sl_scored_link *block_of(const struct sl_guarded *memory)
{
    return (struct sl_scored_link *)(void *)memory->at;
}

static const char *name_of(const struct problem *p, const char *what)
{
    static char name[128];
    snprintf(name, sizeof name, "%s, %s, %lld links of %lld rows to %lld%s, %lld columns, %s", what,
             (const char *[]){"dot", "distmult", "mlp"}[p->decoder], (long long)p->links,
             (long long)p->sources, (long long)p->targets, p->one ? " (the same)" : "",
             (long long)p->cols, sl_level_name());
    return name;
}

/* Columns that the mlp has for sources are odd multiples of 2^-7, those for targets even ones. */
static struct sl_guarded make_rows(const struct problem *p, int64_t rows)
{
    struct sl_guarded m = sl_guarded_random(rows, p->cols, p->layout, NAN, p->kind);
    for (int64_t r = 0; p->decoder == SL_DECODER_MLP && r < rows; r++)
        for (int64_t j = 0; j < p->cols; j++)
            *sl_element(&m, r, j) =
                0x1p-2f * (float)(sl_random_below(17) - 8) + (j < p->cols / 2 ? 0x1p-7f : 0x1p-6f);
    return m;
}

static int compare_sources(const void *a, const void *b)
{
    const struct sl_scored_link *x = a, *y = b;
    return (x->source > y->source) - (x->source < y->source);
}

/* Links of random rows. A third has the first target, every fifth repeats another, and every third
 * row has none. The block has more room than links, which ends at a forbidden page. */
static struct sl_guarded make_block(const struct problem *p, enum sl_kind kind)
{
    struct sl_guarded memory = sl_guarded_empty(1 + p->room, FIELDS, SL_EDGE, SL_CANARY);
    struct sl_scored_link *block = block_of(&memory);
    int32_t *work = calloc((size_t)p->targets + 1, sizeof *work);
    assert_non_null(work);
    block->source = (int32_t)p->links;
    for (int64_t e = 0; e < p->links; e++) {
        struct sl_scored_link link = {.source = (int32_t)sl_random_below(p->sources),
                                      .target = (int32_t)sl_random_below(p->targets),
                                      .number = (int32_t)sl_random_bits()};
        link.source -= link.source % 3 == 2;
        link.target = sl_random_below(3) ? link.target : 0;
        if (e % 5 == 4)
            link = block[1 + sl_random_below(e)];
        link.value = sl_random_value(kind);
        block[1 + e] = link;
    }
    qsort(block + 1, (size_t)p->links, sizeof *block, compare_sources);
    sl_link_order(p->targets, block, work);
    free(work);
    return memory;
}

static struct problem make_problem(struct problem p)
{
    p.targets = p.one ? p.sources : p.targets;
    p.x = make_rows(&p, p.sources);
    p.y = p.one ? p.x : make_rows(&p, p.targets);
    p.w = sl_guarded_random(1, p.cols, SL_EDGE, NAN, p.kind);
    p.block = make_block(&p, p.kind);
    return p;
}

static void free_problem(struct problem *p)
{
    if (!p->one)
        sl_guarded_free(&p->y);
    sl_guarded_free(&p->x);
    sl_guarded_free(&p->w);
    sl_guarded_free(&p->block);
}

static struct sl_link_rows rows_of(const struct problem *p)
{
    return (struct sl_link_rows){.decoder = p->decoder,
                                 .cols = p->cols,
                                 .x = {p->x.at, p->x.ld},
                                 .y = {p->y.at, p->y.ld},
                                 .w = p->decoder == SL_DECODER_DOT ? NULL : p->w.at};
}

static struct sl_scored_link link_of(const struct problem *p, int64_t e)
{
    return block_of(&p->block)[1 + e];
}

/* ---- Exact ---- */

/* What a score is made of: the row of its source, of its target, the parameters. */
enum part { OF_SOURCE, OF_TARGET, OF_PARAMETERS };

static double number_of(const struct sl_guarded *m, int64_t r, int64_t j, double more)
{
    return (double)*sl_element(m, r, j) + more;
}

/* The score of a link, with number J of one part `more` larger. `size`: the sum of sizes. */
static double score_of(const struct problem *p, int64_t e, enum part part, int64_t j, double more,
                       double *size)
{
    const struct sl_scored_link link = link_of(p, e);
    const int64_t h = p->decoder == SL_DECODER_MLP ? p->cols / 2 : p->cols;
    double sum = 0.0, all = 0.0;
    for (int64_t c = 0; c < h; c++) {
        const int64_t at = p->decoder == SL_DECODER_MLP ? h + c : c;
        const double x = number_of(&p->x, link.source, c, part == OF_SOURCE && j == c ? more : 0.0);
        const double y =
            number_of(&p->y, link.target, at, part == OF_TARGET && j == at ? more : 0.0);
        const double w = p->decoder == SL_DECODER_DOT
                             ? 1.0
                             : number_of(&p->w, 0, c, part == OF_PARAMETERS && j == c ? more : 0.0);
        const double term = p->decoder == SL_DECODER_MLP ? w * fmax(x + y, 0.0) : w * x * y;
        sum += term;
        all += fabs(term);
    }
    if (p->decoder == SL_DECODER_MLP) {
        const double b = number_of(&p->w, 0, h, part == OF_PARAMETERS && j == h ? more : 0.0);
        sum += b;
        all += fabs(b);
    }
    if (size)
        *size = all;
    return sum;
}

/* Set the gradient of Σ value · score by (rows, cols) numbers of a part: central differences. Add
 * what is in `onto`. Set the bound that a kernel's sums may be off by. */
static void differences(const struct problem *p, enum part part, const struct sl_guarded *onto,
                        double *want, double *bound)
{
    for (int64_t i = 0; i < onto->rows * onto->cols; i++) {
        want[i] = (double)*sl_element(onto, i / onto->cols, i % onto->cols);
        bound[i] = fabs(want[i]);
    }
    for (int64_t e = 0; e < p->links; e++) {
        const struct sl_scored_link link = link_of(p, e);
        const int64_t r = part == OF_SOURCE ? link.source : part == OF_TARGET ? link.target : 0;
        for (int64_t j = 0; j < p->cols; j++) {
            const double slope =
                (score_of(p, e, part, j, STEP, NULL) - score_of(p, e, part, j, -STEP, NULL)) /
                (2.0 * STEP);
            want[r * p->cols + j] += (double)link.value * slope;
            bound[r * p->cols + j] += fabs((double)link.value * slope);
        }
    }
    for (int64_t i = 0; i < onto->rows * onto->cols; i++)
        bound[i] = bound[i] * SL_UNIT * (double)(p->links + 4) + 1e-9;
}

/* ---- Checks ---- */

/* Nothing of a block changed but values of its links. */
static void expect_values_only(const struct problem *p, const char *what,
                               const struct sl_guarded *memory)
{
    struct sl_guarded expected = sl_guarded_copy(&p->block, SL_EDGE, SL_CANARY);
    for (int64_t e = 0; e < p->links; e++)
        block_of(&expected)[1 + e].value = block_of(memory)[1 + e].value;
    if (memcmp(expected.at, memory->at, (size_t)(1 + p->room) * sizeof(struct sl_scored_link)) != 0)
        fail_msg("%s: changed more than values", name_of(p, what));
    sl_expect_padding_kept(name_of(p, what), memory);
    sl_guarded_free(&expected);
}

static void check_scores(const struct problem *p)
{
    const struct sl_link_rows rows = rows_of(p);
    struct sl_guarded memory = sl_guarded_copy(&p->block, SL_EDGE, SL_CANARY);
    struct sl_guarded got = sl_guarded_empty(p->links, 1, SL_TIGHT, SL_CANARY);
    double *want = sl_doubles(p->links), *bound = sl_doubles(p->links);
    sl_kernel_link_scores(&rows, block_of(&memory));
    for (int64_t e = 0; e < p->links; e++) {
        want[e] = score_of(p, e, OF_SOURCE, -1, 0.0, &bound[e]);
        bound[e] *= SL_UNIT * (double)(p->cols + 4);
        *sl_element(&got, e, 0) = block_of(&memory)[1 + e].value;
    }
    sl_expect(name_of(p, "scores"), &got, want, p->kind == SL_REALS ? bound : NULL);
    expect_values_only(p, "scores", &memory);
    free(want);
    free(bound);
    sl_guarded_free(&got);
    sl_guarded_free(&memory);
}

static void check_gradient(const struct problem *p, enum part part, const char *what)
{
    const struct sl_link_rows rows = rows_of(p);
    const int64_t count = part == OF_SOURCE ? p->sources : part == OF_TARGET ? p->targets : 1;
    struct sl_guarded g =
        sl_guarded_random(count, p->cols, sl_other_layout(p->layout), SL_CANARY, SL_INTEGERS);
    double *want = sl_doubles(count * p->cols), *bound = sl_doubles(count * p->cols);
    differences(p, part, &g, want, bound);
    if (part == OF_PARAMETERS)
        sl_kernel_link_parameters(&rows, block_of(&p->block), g.at);
    else
        sl_kernel_link_back(&rows, part == OF_SOURCE ? SL_LINK_SOURCE : SL_LINK_TARGET, count,
                            block_of(&p->block), (struct sl_floats_at){g.at, g.ld});
    sl_expect(name_of(p, what), &g, want, p->kind == SL_REALS ? bound : NULL);
    free(want);
    free(bound);
    sl_guarded_free(&g);
}

static void check_gradients(const struct problem *p)
{
    check_gradient(p, OF_SOURCE, "gradient of sources");
    check_gradient(p, OF_TARGET, "gradient of targets");
    if (p->decoder != SL_DECODER_DOT)
        check_gradient(p, OF_PARAMETERS, "gradient of parameters");
}

/* ---- All of them ---- */

static void each_kind(struct problem p, void (*check)(const struct problem *p))
{
    for (int kind = 0; kind < 2 && sl_takes(p.links * p.cols * p.cols); kind++) {
        p.kind = (enum sl_kind)kind;
        struct problem made = make_problem(p);
        for (int level = 0; sl_next_level(&level);)
            check(&made);
        free_problem(&made);
    }
}

/* A block without links, and one with more links than prefetch is ahead; a row; room for no other
 * link, and for many. */
static void each_problem(void (*check)(const struct problem *p))
{
    static const int64_t widths[] = {1, 2, 3, 15, 16, 17, 33, 64, 100, 130};
    for (int decoder = 0; decoder < 3; decoder++)
        for (size_t i = 0; i < SL_COUNT(widths); i++) {
            struct problem p = {.decoder = (enum sl_decoder)decoder,
                                .sources = 11,
                                .targets = 17,
                                .cols = widths[i],
                                .links = 45,
                                .room = i % 2 ? 45 : 200,
                                .layout = (enum sl_layout)((size_t)decoder + i) % SL_LAYOUTS};
            each_kind(p, check);
            p.one = true;
            each_kind(p, check);
            p.links = 0;
            each_kind(p, check);
            p = (struct problem){p.decoder, 1, 1, widths[i], 1, 1, .layout = SL_EDGE};
            each_kind(p, check);
            p.links = p.room = 70;
            p.one = true;
            each_kind(p, check);
        }
}

SL_TEST(test_scores)
{
    each_problem(check_scores);
}

SL_TEST(test_gradients)
{
    each_problem(check_gradients);
}

/* A row with a NaN reaches the scores of its links, and no others. */
static void check_nan(const struct problem *p)
{
    struct sl_guarded x = sl_guarded_copy(&p->x, SL_TIGHT, NAN),
                      memory = sl_guarded_copy(&p->block, SL_EDGE, SL_CANARY);
    struct sl_link_rows rows = rows_of(p);
    rows.x = (struct sl_floats_at){x.at, x.ld};
    *sl_element(&x, 4, 2) = NAN;
    sl_kernel_link_scores(&rows, block_of(&memory));
    for (int64_t e = 0; e < p->links; e++)
        if (!isnan(block_of(&memory)[1 + e].value) != (link_of(p, e).source != 4))
            fail_msg("%s: link %lld of row %d is %g", name_of(p, "NaN"), (long long)e,
                     (int)link_of(p, e).source, (double)block_of(&memory)[1 + e].value);
    sl_guarded_free(&memory);
    sl_guarded_free(&x);
}

SL_TEST(test_nan)
{
    for (int decoder = 0; decoder < 3; decoder++)
        each_kind((struct problem){.decoder = (enum sl_decoder)decoder,
                                   .sources = 9,
                                   .targets = 9,
                                   .cols = 20,
                                   .links = 40,
                                   .room = 40},
                  check_nan);
}

/* A million gradients of one sign: a sum of one after the other would be off by a hundredth. */
SL_TEST(test_long_sum)
{
    enum { LINKS = 1 << 20 };
    struct sl_scored_link *block = calloc(1 + LINKS, sizeof *block);
    float x[2] = {0.5f, 0.5f}, w[2] = {1.0f, 1.0f};
    assert_non_null(block);
    block->source = LINKS;
    for (int64_t e = 1; e <= LINKS; e++)
        block[e].value = 0.1f;
    for (int level = 0; sl_next_level(&level);)
        for (int decoder = SL_DECODER_DISTMULT; decoder <= SL_DECODER_MLP; decoder++) {
            const double each = decoder == SL_DECODER_MLP ? 0.1 : 0.025;
            float dw[2] = {0.0f, 0.0f};
            sl_kernel_link_parameters(
                &(struct sl_link_rows){(enum sl_decoder)decoder, 2, {x, 2}, {x, 2}, w}, block, dw);
            for (int j = 0; j < 2; j++)
                assert_true(fabs((double)dw[j] / (LINKS * each) - 1.0) < 1e-4);
        }
    free(block);
}

/* The order by targets is a permutation, ascends, and keeps links of one target in their order. */
static void check_order(int64_t targets, int64_t links)
{
    const struct problem p = {
        .sources = 7, .targets = targets, .cols = 1, .links = links, .room = links + 2};
    struct sl_guarded memory = make_block(&p, SL_REALS), before, work;
    struct sl_scored_link *block = block_of(&memory);
    for (int64_t e = 0; e < links; e++)
        block[1 + e].by_target = -1;
    before = sl_guarded_copy(&memory, SL_EDGE, SL_CANARY);
    work = sl_guarded_empty(1, targets + 1, SL_EDGE, SL_CANARY);
    sl_link_order(targets, block, (int32_t *)(void *)work.at);
    for (int64_t k = 1; k < links; k++) {
        const int32_t a = block[k].by_target, b = block[1 + k].by_target;
        assert_in_range(a, 0, links - 1);
        assert_in_range(b, 0, links - 1);
        assert_true(block[1 + a].target < block[1 + b].target ||
                    (block[1 + a].target == block[1 + b].target && a < b));
    }
    if (links == 1)
        assert_int_equal(block[1].by_target, 0);
    for (int64_t e = 0; e < links; e++)
        block_of(&before)[1 + e].by_target = block[1 + e].by_target;
    assert_memory_equal(before.at, memory.at, (size_t)(1 + p.room) * sizeof *block);
    sl_expect_padding_kept("order", &work);
    sl_expect_padding_kept("order", &memory);
    sl_guarded_free(&work);
    sl_guarded_free(&before);
    sl_guarded_free(&memory);
}

SL_TEST(test_order)
{
    for (int64_t targets = 1; targets < 40; targets += 6)
        for (int64_t links = 0; links < 60; links = 2 * links + 1)
            check_order(targets, links);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_nan),    cmocka_unit_test(test_long_sum),
        cmocka_unit_test(test_order),
    };
    sl_random_seed(21);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
