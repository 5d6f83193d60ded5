/* Losses of links, and metrics of those that validate and test. The reference is the definition in
 * double precision. Slopes are central differences of the loss. A metric looks at all pairs of a
 * link and a negative. The Open Graph Benchmark defines hits@K and mrr; scikit-learn defines areas.
 */
#include "codelets/link_ranking.h"
#include "tests/kernels.h"
#include "tests/unit.h"

enum { BLOCKS = 4 };

static double softplus(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static void expect_near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance) && !(isnan(got) && isnan(want)))
        fail_msg("%s: %.12g, expected %.12g within %.2g", what, got, want, tolerance);
}

/* ---- The loss of training ---- */

/* The links of a tile, and K negatives for each, in blocks. */
struct problem {
    enum sl_link_loss loss;
    int64_t links, each;
    double all;            /* links of all tiles */
    double *score, *other; // (links), (links, each)
    struct sl_scored_link *block[BLOCKS];
};

/* The sum over the links of the tile, by the definition. */
static double loss_of(const struct problem *p)
{
    double sum = 0.0, others = 0.0;
    for (int64_t k = 0; k < p->links; k++)
        for (int64_t j = 0; j < p->each; j++) {
            const double s = p->score[k], n = p->other[k * p->each + j];
            sum += j == 0 && p->loss == SL_LINK_CROSS_ENTROPY ? softplus(-s) : 0.0;
            others += softplus(p->loss == SL_LINK_CROSS_ENTROPY ? n : n - s);
        }
    return sum + others / (double)p->each;
}

/* The slope of the mean loss by a score. */
static double slope_of(const struct problem *p, double *score)
{
    const double step = 1e-4, at = *score;
    *score = at + step;
    const double up = loss_of(p);
    *score = at - step;
    const double down = loss_of(p);
    *score = at;
    return (up - down) / (2.0 * step) / p->all;
}

/* Draw scores up to `size`, some of them exactly so, and put them into blocks in no order. The
 * second block has no link. */
static struct problem make_problem(enum sl_link_loss loss, int64_t links, int64_t each, float size)
{
    const int64_t all = links * (1 + each);
    struct problem p = {.loss = loss, .links = links, .each = each, .all = 3.0 * (double)links + 1};
    p.score = sl_doubles(links);
    p.other = sl_doubles(links * each);
    uint32_t *order = sl_row_numbers(all, all, true);
    for (int b = 0; b < BLOCKS; b++)
        p.block[b] = calloc((size_t)all + 1, sizeof **p.block);
    for (int64_t i = 0; i < all; i++) {
        struct sl_scored_link *block = p.block[(int[]){0, 2, 3}[sl_random_below(BLOCKS - 1)]];
        const int64_t at = order[i], k = at < links ? at : (at - links) / each;
        const float value = sl_random_below(4) ? size * sl_random_value(SL_REALS) / 1.5f
                                               : size - 2.0f * size * (float)(at % 2);
        block[1 + block->source++] =
            (struct sl_scored_link){.source = (int32_t)i,
                                    .target = (int32_t)(i + 1),
                                    .number = at < links ? (int32_t)k : ~(int32_t)k,
                                    .by_target = (int32_t)(i + 2),
                                    .value = value};
        if (at < links)
            p.score[k] = (double)value;
        else
            p.other[at - links] = (double)value;
    }
    free(order);
    return p;
}

static void free_problem(struct problem *p)
{
    free(p->score);
    free(p->other);
    for (int b = 0; b < BLOCKS; b++)
        free(p->block[b]);
}

/* Return the double that the value of a link stands for: a negative's with the same value. */
static double *score_at(const struct problem *p, const struct sl_scored_link *link)
{
    if (link->number >= 0)
        return &p->score[link->number];
    double *other = p->other + ~link->number * p->each;
    while (*other != (double)link->value)
        other++;
    return other;
}

static double differentiate(const struct problem *p, struct sl_scored_link *const *blocks)
{
    struct sl_guarded scratch = sl_guarded_random(2, p->links, SL_TIGHT, SL_CANARY, SL_REALS);
    const bool pairwise = p->loss == SL_LINK_PAIRWISE;
    const double sum = sl_link_losses_differentiate(
        &(struct sl_link_losses){.loss = p->loss,
                                 .links = p->all,
                                 .negatives = (double)p->each,
                                 .blocks = BLOCKS,
                                 .block = blocks,
                                 .score = pairwise ? sl_element(&scratch, 0, 0) : NULL,
                                 .slope = pairwise ? sl_element(&scratch, 1, 0) : NULL,
                                 .count = p->links});
    sl_expect_padding_kept("scratch", &scratch);
    sl_guarded_free(&scratch);
    return sum;
}

static void check_loss(enum sl_link_loss loss, int64_t links, int64_t each, float size)
{
    struct problem p = make_problem(loss, links, each, size);
    const int64_t all = links * (1 + each);
    struct sl_scored_link *got[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) {
        got[b] = calloc((size_t)all + 1, sizeof **got);
        assert_non_null(got[b]);
        memcpy(got[b], p.block[b], (size_t)(all + 1) * sizeof **got);
    }
    const double want = loss_of(&p), sum = differentiate(&p, got);
    expect_near("loss", sum, want, 1e-6 * fmax(want, 1.0));
    for (int b = 0; b < BLOCKS; b++) {
        for (int64_t e = 1; e <= sl_link_count(p.block[b]); e++) {
            const double slope = slope_of(&p, score_at(&p, &p.block[b][e]));
            assert_true(isfinite(got[b][e].value));
            expect_near("slope", (double)got[b][e].value, slope, 1e-6 * fabs(slope) + 1e-7 / p.all);
            got[b][e].value = p.block[b][e].value;
        }
        assert_memory_equal(got[b], p.block[b], (size_t)(all + 1) * sizeof **got);
        free(got[b]);
    }
    free_problem(&p);
}

SL_TEST(test_losses)
{
    static const float sizes[] = {0.0f, 1.0f, 6.0f, 100.0f};
    for (int loss = SL_LINK_CROSS_ENTROPY; loss <= SL_LINK_PAIRWISE; loss++)
        for (int64_t each = 1; each < 5; each++)
            for (size_t s = 0; s < SL_COUNT(sizes); s++)
                for (int64_t links = 0; links < 40; links = 3 * links + 1)
                    check_loss((enum sl_link_loss)loss, links, each, sizes[s]);
}

/* A NaN is in the loss. */
SL_TEST(test_nan_loss)
{
    for (int loss = SL_LINK_CROSS_ENTROPY; loss <= SL_LINK_PAIRWISE; loss++)
        for (int64_t i = 0; i < 8; i++) {
            struct problem p = make_problem((enum sl_link_loss)loss, 8, 2, 1.0f);
            const int b = p.block[2]->source > p.block[0]->source ? 2 : 0;
            p.block[b][1 + i % p.block[b]->source].value = NAN;
            assert_true(isnan(differentiate(&p, p.block)));
            free_problem(&p);
        }
}

/* ---- Metrics ---- */

static double hits_of(int64_t most, int64_t links, const float *score, int64_t negatives,
                      const float *other)
{
    double hits = 0.0;
    for (int64_t k = 0; k < links; k++) {
        int64_t ahead = 0;
        for (int64_t j = 0; j < negatives; j++)
            ahead += other[j] >= score[k];
        hits += ahead < most;
    }
    return negatives < most ? 1.0 : hits / (double)links;
}

static double mrr_of(int64_t links, const float *score, int64_t each, const float *other)
{
    double sum = 0.0;
    for (int64_t k = 0; k < links; k++) {
        int64_t best = 0, worst = 0; /* ranks, from 0 */
        for (int64_t j = 0; j < each; j++) {
            best += other[k * each + j] > score[k];
            worst += other[k * each + j] >= score[k];
        }
        sum += 1.0 / (1.0 + 0.5 * (double)(best + worst));
    }
    return sum / (double)links;
}

static double area_of(int64_t links, const float *score, int64_t negatives, const float *other)
{
    double sum = 0.0;
    for (int64_t k = 0; k < links; k++)
        for (int64_t j = 0; j < negatives; j++)
            sum += score[k] > other[j] ? 1.0 : score[k] == other[j] ? 0.5 : 0.0;
    return sum / (double)(links * negatives);
}

/* Scores, of which half are small integers, so that some are equal. */
static float *make_scores(int64_t count)
{
    float *score = calloc((size_t)count + 1, sizeof *score);
    assert_non_null(score);
    for (int64_t k = 0; k < count; k++)
        score[k] = sl_random_value(sl_random_below(2) ? SL_REALS : SL_INTEGERS);
    return score;
}

static double value_of(enum sl_link_measure measure, int64_t most, int64_t links,
                       const float *score, int64_t negatives, const float *other)
{
    struct sl_guarded scratch = sl_guarded_empty(1, negatives, SL_EDGE, SL_CANARY);
    float *const before = make_scores(links + negatives);
    memcpy(before, score, (size_t)links * sizeof *score);
    memcpy(before + links, other, (size_t)negatives * sizeof *score);
    const double value = sl_link_metric_value(&(struct sl_link_metric){measure, most}, links, score,
                                              negatives, other, scratch.at);
    assert_memory_equal(before, score, (size_t)links * sizeof *score);
    assert_memory_equal(before + links, other, (size_t)negatives * sizeof *score);
    sl_expect_padding_kept("scratch", &scratch);
    sl_guarded_free(&scratch);
    free(before);
    return value;
}

static void check_metrics(int64_t links, int64_t negatives)
{
    static const int64_t most[] = {1, 2, 10, 20, 50, 100};
    float *score = make_scores(links), *other = make_scores(negatives);
    for (size_t i = 0; i < SL_COUNT(most); i++)
        expect_near("hits", value_of(SL_LINKS_HITS, most[i], links, score, negatives, other),
                    hits_of(most[i], links, score, negatives, other), 1e-12);
    expect_near("area", value_of(SL_LINKS_AREA, 0, links, score, negatives, other),
                area_of(links, score, negatives, other), 1e-12);
    expect_near("mrr", value_of(SL_LINKS_MRR, 0, links, score, negatives, other),
                negatives % links ? NAN : mrr_of(links, score, negatives / links, other), 1e-12);
    assert_true(isnan(value_of(SL_LINKS_UNMEASURED, 0, links, score, negatives, other)));
    free(score);
    free(other);
}

SL_TEST(test_metrics)
{
    static const int64_t links[] = {1, 3, 20, 64}, negatives[] = {1, 3, 9, 10, 20, 60, 100, 128};
    for (size_t i = 0; i < SL_COUNT(links); i++)
        for (size_t j = 0; j < SL_COUNT(negatives); j++)
            check_metrics(links[i], negatives[j]);
}

/* Numbers that can be counted by hand. */
SL_TEST(test_known)
{
    const float score[] = {0.9f, 0.5f, 0.1f, 0.5f},
                other[] = {0.5f, 0.95f, 0.5f, 0.2f, 0.0f, 0.1f, 0.5f, 0.5f};
    expect_near("hits@1", value_of(SL_LINKS_HITS, 1, 4, score, 8, other), 0.0, 0.0);
    expect_near("hits@2", value_of(SL_LINKS_HITS, 2, 4, score, 8, other), 0.25, 0.0);
    expect_near("hits@5", value_of(SL_LINKS_HITS, 5, 4, score, 8, other), 0.25, 0.0);
    expect_near("hits@6", value_of(SL_LINKS_HITS, 6, 4, score, 8, other), 0.75, 0.0);
    expect_near("hits@8", value_of(SL_LINKS_HITS, 8, 4, score, 8, other), 1.0, 0.0);
    expect_near("hits@9", value_of(SL_LINKS_HITS, 9, 4, score, 8, other), 1.0, 0.0);
    expect_near("mrr", value_of(SL_LINKS_MRR, 0, 4, score, 8, other),
                (1.0 / 2.0 + 1.0 / 1.5 + 1.0 / 1.5 + 1.0 / 2.0) / 4.0, 1e-15);
    expect_near("area", value_of(SL_LINKS_AREA, 0, 4, score, 8, other),
                (7.0 + 5.0 + 1.5 + 5.0) / 32.0, 1e-15);
}

/* A NaN anywhere, and nothing to measure. */
SL_TEST(test_no_value)
{
    for (int measure = SL_LINKS_HITS; measure <= SL_LINKS_AREA; measure++) {
        float *score = make_scores(6), *other = make_scores(12);
        const enum sl_link_measure of = (enum sl_link_measure)measure;
        assert_false(isnan(value_of(of, 3, 6, score, 12, other)));
        assert_true(isnan(value_of(of, 3, 0, score, 12, other)));
        assert_true(isnan(value_of(of, 3, 6, score, 0, other)));
        score[5] = NAN;
        assert_true(isnan(value_of(of, 3, 6, score, 12, other)));
        score[5] = 1.0f;
        other[0] = NAN;
        assert_true(isnan(value_of(of, 3, 6, score, 12, other)));
        other[0] = INFINITY;
        score[1] = -INFINITY;
        assert_false(isnan(value_of(of, 3, 6, score, 12, other)));
        free(score);
        free(other);
    }
}

/* ---- The loss of a split ---- */

/* By the definition. Link k of a pairwise loss meets its own negatives; where there are not enough,
 * negative k modulo their number. */
static double split_loss(enum sl_link_loss loss, int64_t links, const float *score,
                         int64_t negatives, const float *other)
{
    double of_links = 0.0, of_negatives = 0.0, of_pairs = 0.0;
    const int64_t each = negatives / links;
    for (int64_t k = 0; k < links; k++) {
        of_links += softplus(-(double)score[k]) / (double)links;
        double of_link = 0.0;
        for (int64_t j = 0; j < each; j++)
            of_link += softplus((double)other[k * each + j] - (double)score[k]) / (double)each;
        if (each == 0)
            of_link = softplus((double)other[k % negatives] - (double)score[k]);
        of_pairs += of_link;
    }
    for (int64_t j = 0; j < negatives; j++)
        of_negatives += softplus((double)other[j]) / (double)negatives;
    return loss == SL_LINK_PAIRWISE ? of_pairs : (double)links * (of_links + of_negatives);
}

SL_TEST(test_split_loss)
{
    static const int64_t links[] = {1, 3, 20, 64}, negatives[] = {1, 3, 9, 20, 50, 60, 128};
    for (int loss = SL_LINK_CROSS_ENTROPY; loss <= SL_LINK_PAIRWISE; loss++)
        for (size_t i = 0; i < SL_COUNT(links); i++)
            for (size_t j = 0; j < SL_COUNT(negatives); j++) {
                const int64_t n = links[i], m = negatives[j];
                float *score = make_scores(n), *other = make_scores(m);
                const enum sl_link_loss of = (enum sl_link_loss)loss;
                score[0] = -100.0f;
                other[m - 1] = 100.0f;
                expect_near("loss", sl_link_loss_value(of, n, score, m, other),
                            split_loss(of, n, score, m, other), 1e-9);
                assert_true(sl_link_loss_value(of, 0, score, m, other) == 0.0);
                assert_true(sl_link_loss_value(of, n, score, 0, other) == 0.0);
                score[0] = NAN;
                assert_true(isnan(sl_link_loss_value(of, n, score, m, other)));
                free(score);
                free(other);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),   cmocka_unit_test(test_nan_loss),
        cmocka_unit_test(test_metrics),  cmocka_unit_test(test_known),
        cmocka_unit_test(test_no_value), cmocka_unit_test(test_split_loss),
    };
    sl_random_seed(23);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
