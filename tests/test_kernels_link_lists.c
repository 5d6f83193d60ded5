/* The links of a training step: sl_link_lists_make. Blocks are compared with what
 * codelets/link_lists.h says of each link, and with the same links in other tiles or in another
 * order of the rows. Draws are judged by chi-square, with fixed keys. */
#include "codelets/link_lists.h"
#include "tests/kernels.h"
#include "tests/unit.h"

enum { VERTICES = 61, MOST_TILES = 7, FIELDS = sizeof(struct sl_scored_link) / sizeof(float) };

/* ---- Graphs ---- */

/* A graph in an order of its rows. */
struct graph {
    int64_t count;               /* links */
    int64_t start[VERTICES + 1]; /* of rows */
    int32_t *target;             // (count): rows
    uint32_t number[VERTICES];   /* of rows */
    int32_t row[VERTICES];       /* of numbers */
};

/* Link k of the vertex `source`: 0 … degree - 1. Every fourth vertex has none. */
static int64_t degree_of(int64_t source)
{
    return source % 4 == 1 ? 0 : source == 6 ? VERTICES : 1 + (source * 7) % 6;
}

static int64_t target_of(int64_t source, int64_t k)
{
    return (source * 11 + k * 3) % VERTICES / 2 + k;
}

/* Targets of a row ascend by their numbers, not by their rows. */
static struct graph make_graph(bool shuffled)
{
    struct graph g = {0};
    uint32_t *rows = sl_row_numbers(VERTICES, VERTICES, true);
    for (int64_t v = 0; v < VERTICES; v++)
        g.row[v] = (int32_t)(shuffled ? rows[v] : v);
    for (int64_t v = 0; v < VERTICES; v++)
        g.number[g.row[v]] = (uint32_t)v;
    for (int64_t r = 0; r < VERTICES; r++)
        g.start[r + 1] = g.start[r] + degree_of(g.number[r]);
    g.count = g.start[VERTICES];
    g.target = calloc((size_t)g.count, sizeof *g.target);
    assert_non_null(g.target);
    for (int64_t r = 0; r < VERTICES; r++)
        for (int64_t k = g.start[r]; k < g.start[r + 1]; k++)
            g.target[k] = g.row[target_of(g.number[r], k - g.start[r]) % VERTICES];
    free(rows);
    return g;
}

/* Cuts of unlike sizes; the second tile has no row, if there are more. */
static void cut_rows(int tiles, int64_t *cut)
{
    for (int t = 0; t <= tiles; t++)
        cut[t] = (int64_t)VERTICES * t * t / (tiles * tiles);
    if (tiles > 2)
        cut[2] = cut[1];
}

/* The list of rows first … first + rows - 1: its starts, targets and numbers, as a tile has them.
 */
struct part {
    struct sl_link_list list;
    int64_t start[VERTICES + 1];
};

static void take_part(const struct graph *g, int64_t first, int64_t rows, struct part *p)
{
    for (int64_t r = 0; r <= rows; r++)
        p->start[r] = g->start[first + r] - g->start[first];
    p->list = (struct sl_link_list){.first = first,
                                    .rows = rows,
                                    .start = p->start,
                                    .target = g->target + g->start[first],
                                    .source = g->number + first};
}

/* ---- Blocks ---- */

struct made {
    int64_t room[MOST_TILES];
    struct sl_guarded memory[MOST_TILES], before[MOST_TILES];
    struct sl_scored_link *block[MOST_TILES];
};

/* Make blocks in memory that ends at a forbidden page. room NULL: enough for all links. */
static struct made make_blocks(const struct sl_link_list *list, const struct sl_link_draw *draw,
                               const int64_t *room)
{
    struct made m = {0};
    int64_t most = 0;
    for (int t = 0; t < draw->tiles; t++) {
        const int64_t rows = draw->row_cut[t + 1] - draw->row_cut[t];
        most = rows > most ? rows : most;
        m.room[t] = room ? room[t] : list->start[list->rows] * (1 + draw->negatives);
        m.memory[t] = sl_guarded_empty(1 + m.room[t], FIELDS, SL_EDGE, SL_CANARY);
        m.block[t] = (struct sl_scored_link *)(void *)m.memory[t].at;
        m.block[t]->target = (int32_t)m.room[t];
        m.before[t] = sl_guarded_copy(&m.memory[t], SL_EDGE, SL_CANARY);
    }
    struct sl_guarded work = sl_guarded_empty(1, most + 1, SL_EDGE, SL_CANARY);
    sl_link_lists_make(list, draw, m.block, (int32_t *)(void *)work.at);
    sl_expect_padding_kept("work", &work);
    sl_guarded_free(&work);
    for (int t = 0; t < draw->tiles; t++) {
        const int64_t count = sl_link_count(m.block[t]);
        assert_in_range(count, 0, m.room[t]);
        assert_int_equal(m.block[t]->target, m.room[t]);
        sl_expect_padding_kept("block", &m.memory[t]);
        assert_memory_equal(m.block[t] + 1 + count,
                            (struct sl_scored_link *)(void *)m.before[t].at + 1 + count,
                            (size_t)(m.room[t] - count) * sizeof **m.block);
    }
    return m;
}

static void free_blocks(const struct sl_link_draw *draw, struct made *m)
{
    for (int t = 0; t < draw->tiles; t++) {
        sl_guarded_free(&m->memory[t]);
        sl_guarded_free(&m->before[t]);
    }
}

/* All links, by the numbers of their vertices. */
struct found {
    int64_t source, target, number; /* number: as a link has it, of the list */
};

static int compare_found(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    const int64_t d = x->source != y->source   ? x->source - y->source
                      : x->number != y->number ? x->number - y->number
                                               : x->target - y->target;
    return (d > 0) - (d < 0);
}

/* The links of all blocks, sorted (free). Their numbers count from the start of the row. */
static struct found *find_links(const struct graph *g, const struct sl_link_list *list,
                                const struct sl_link_draw *draw, const struct made *m,
                                int64_t *count)
{
    int64_t all = 0;
    for (int t = 0; t < draw->tiles; t++)
        all += sl_link_count(m->block[t]);
    struct found *found = calloc((size_t)all + 1, sizeof *found);
    assert_non_null(found);
    *count = 0;
    for (int t = 0; t < draw->tiles; t++)
        for (int64_t e = 0; e < sl_link_count(m->block[t]); e++) {
            const struct sl_scored_link *link = &m->block[t][1 + e];
            const int64_t rows = draw->row_cut[t + 1] - draw->row_cut[t],
                          k = link->number < 0 ? ~link->number : link->number;
            assert_in_range(link->source, 0, list->rows - 1);
            assert_true(link->target >= 0 && link->target < rows);
            assert_in_range(k, list->start[link->source], list->start[link->source + 1] - 1);
            const int64_t place = k - list->start[link->source];
            found[(*count)++] = (struct found){.source = g->number[list->first + link->source],
                                               .target = g->number[draw->row_cut[t] + link->target],
                                               .number = link->number < 0 ? ~place : place};
        }
    qsort(found, (size_t)*count, sizeof *found, compare_found);
    return found;
}

static struct sl_link_draw make_draw(const struct graph *g, int tiles, const int64_t *cut,
                                     int64_t negatives)
{
    return (struct sl_link_draw){.least = 0,
                                 .end = VERTICES,
                                 .row = g->row,
                                 .negatives = negatives,
                                 .key = 0x1234567u + (uint64_t)negatives,
                                 .tiles = tiles,
                                 .row_cut = cut};
}

/* ---- Tests ---- */

/* The links that the header says, sorted (free). */
static struct found *expected_links(const struct graph *g, const struct sl_link_list *list,
                                    const struct sl_link_draw *draw, int64_t *count)
{
    struct found *want =
        calloc((size_t)(list->start[list->rows] * (1 + draw->negatives)) + 1, sizeof *want);
    assert_non_null(want);
    *count = 0;
    for (int64_t r = list->first; r < list->first + list->rows; r++) {
        const int64_t source = g->number[r];
        for (int64_t k = 0; k < degree_of(source); k++) {
            want[(*count)++] = (struct found){source, target_of(source, k) % VERTICES, k};
            for (int64_t j = 0; j < draw->negatives; j++) {
                const uint64_t bits =
                    sl_rng_bits(draw->key, (uint32_t)source, (uint32_t)(k * draw->negatives + j));
                want[(*count)++] = (struct found){
                    source,
                    draw->least +
                        (int64_t)__builtin_floorl((long double)bits *
                                                  (long double)(draw->end - draw->least) / 0x1p64L),
                    ~k};
            }
        }
    }
    qsort(want, (size_t)*count, sizeof *want, compare_found);
    return want;
}

/* In each block, sources ascend and places by targets are set. */
static void expect_sorted(const struct sl_link_draw *draw, const struct made *m)
{
    for (int t = 0; t < draw->tiles; t++) {
        const struct sl_scored_link *link = m->block[t] + 1;
        for (int64_t e = 1; e < sl_link_count(m->block[t]); e++) {
            const int32_t a = link[e - 1].by_target, b = link[e].by_target;
            assert_true(link[e - 1].source <= link[e].source);
            assert_true(link[a].target < link[b].target ||
                        (link[a].target == link[b].target && a < b));
        }
    }
}

/* Lists of some rows in tiles: each training link once, and its negatives, in the right block. */
static void check_links(const struct graph *g, int tiles, int64_t first, int64_t rows,
                        int64_t negatives, int64_t least, int64_t end)
{
    int64_t cut[MOST_TILES + 1], count, wanted;
    struct part part;
    cut_rows(tiles, cut);
    take_part(g, first, rows, &part);
    struct sl_link_draw draw = make_draw(g, tiles, cut, negatives);
    draw.least = least;
    draw.end = end;
    struct made m = make_blocks(&part.list, &draw, NULL);
    struct found *got = find_links(g, &part.list, &draw, &m, &count),
                 *want = expected_links(g, &part.list, &draw, &wanted);
    expect_sorted(&draw, &m);
    assert_int_equal(count, wanted);
    assert_memory_equal(got, want, (size_t)count * sizeof *got);
    for (int64_t i = 0; i < count; i++)
        assert_true(got[i].number >= 0 || (got[i].target >= least && got[i].target < end));
    free(got);
    free(want);
    free_blocks(&draw, &m);
}

SL_TEST(test_links)
{
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        struct graph g = make_graph(shuffled);
        for (int tiles = 1; tiles <= MOST_TILES; tiles++)
            for (int64_t negatives = 0; negatives < 4; negatives++) {
                check_links(&g, tiles, 0, VERTICES, negatives, 0, VERTICES);
                check_links(&g, tiles, 13, 20, negatives, 40, VERTICES);
                check_links(&g, tiles, 7, 1, negatives, 3, 4);
                check_links(&g, tiles, 9, 0, negatives, 0, VERTICES);
            }
        free(g.target);
    }
}

/* Without an order, draw.row is not wanted. */
SL_TEST(test_no_order)
{
    static const int64_t cut[] = {0, 30, VERTICES};
    struct graph g = make_graph(false);
    struct part part;
    int64_t count, wanted;
    take_part(&g, 0, VERTICES, &part);
    struct sl_link_draw draw = make_draw(&g, 2, cut, 2);
    draw.row = NULL;
    struct made m = make_blocks(&part.list, &draw, NULL);
    struct found *got = find_links(&g, &part.list, &draw, &m, &count),
                 *want = expected_links(&g, &part.list, &draw, &wanted);
    assert_int_equal(count, wanted);
    assert_memory_equal(got, want, (size_t)count * sizeof *got);
    free(got);
    free(want);
    free_blocks(&draw, &m);
    free(g.target);
}

/* All links of a graph whose row tiles have lists of their own, sorted (free). */
static struct found *links_of_tiles(const struct graph *g, int tiles, int64_t *count)
{
    int64_t cut[MOST_TILES + 1];
    struct found *all = calloc((size_t)g->count * 4, sizeof *all);
    assert_non_null(all);
    cut_rows(tiles, cut);
    *count = 0;
    for (int t = 0; t < tiles; t++) {
        struct part part;
        int64_t some;
        take_part(g, cut[t], cut[t + 1] - cut[t], &part);
        const struct sl_link_draw draw = make_draw(g, tiles, cut, 3);
        struct made m = make_blocks(&part.list, &draw, NULL);
        struct found *found = find_links(g, &part.list, &draw, &m, &some);
        assert_true(*count + some <= g->count * 4);
        memcpy(all + *count, found, (size_t)some * sizeof *found);
        *count += some;
        free(found);
        free_blocks(&draw, &m);
    }
    qsort(all, (size_t)*count, sizeof *all, compare_found);
    return all;
}

/* The same pairs in any tiles and any order. */
SL_TEST(test_alike)
{
    struct graph g = make_graph(false);
    int64_t count, other_count;
    struct found *links = links_of_tiles(&g, 1, &count);
    assert_int_equal(count, 4 * g.count);
    for (int i = 0; i < 12; i++) {
        struct graph shuffled = make_graph(i > 2);
        struct found *others = links_of_tiles(&shuffled, 1 + i % MOST_TILES, &other_count);
        assert_int_equal(other_count, count);
        assert_memory_equal(others, links, (size_t)count * sizeof *links);
        free(others);
        free(shuffled.target);
    }
    free(links);
    free(g.target);
}

/* A full block has its first links, and no other block changes. make_blocks looks behind. */
SL_TEST(test_full)
{
    static const int64_t less[] = {0, 1, 2, 5, 17};
    struct graph g = make_graph(true);
    int64_t cut[MOST_TILES + 1], room[MOST_TILES];
    struct part part;
    cut_rows(4, cut);
    take_part(&g, 10, 30, &part);
    const struct sl_link_draw draw = make_draw(&g, 4, cut, 2);
    struct made all = make_blocks(&part.list, &draw, NULL);
    for (size_t i = 0; i < SL_COUNT(less); i++) {
        for (int t = 0; t < 4; t++) {
            room[t] = sl_link_count(all.block[t]) - (t == 1 || t == 3 ? 0 : less[i]);
            room[t] = room[t] < 0 ? 0 : room[t];
        }
        struct made m = make_blocks(&part.list, &draw, room);
        expect_sorted(&draw, &m);
        for (int t = 0; t < 4; t++) {
            assert_int_equal(sl_link_count(m.block[t]), room[t]);
            for (int64_t e = 1; e <= room[t]; e++) {
                assert_int_equal(m.block[t][e].source, all.block[t][e].source);
                assert_int_equal(m.block[t][e].target, all.block[t][e].target);
                assert_int_equal(m.block[t][e].number, all.block[t][e].number);
            }
        }
        free_blocks(&draw, &m);
    }
    free_blocks(&draw, &all);
    free(g.target);
}

/* ---- Chance ---- */

/* Σ (count - mean)² / mean, which has the mean `cells` and the variance 2 · cells. */
static void expect_chance(int64_t cells, const int64_t *count)
{
    double all = 0.0, chi = 0.0;
    for (int64_t i = 0; i < cells; i++)
        all += (double)count[i];
    const double mean = all / (double)cells;
    for (int64_t i = 0; i < cells; i++)
        chi += ((double)count[i] - mean) * ((double)count[i] - mean) / mean;
    const double off = (chi - (double)cells) * (chi - (double)cells) / (2.0 * (double)cells);
    if (!(mean > 20.0 && off < 16.0))
        fail_msg("chi-square %.1f of %lld cells of %.1f", chi, (long long)cells, mean);
}

/* Targets are uniform. Pairs are uniform, too: of a target and the target before, of a target and
 * the previous source's target, and of targets with two keys. */
SL_TEST(test_chance)
{
    enum { LEAST = 20, SPAN = 12, KEYS = 250, NEGATIVES = 4 };
    static const int64_t cut[] = {0, VERTICES};
    static int64_t last[VERTICES * VERTICES];
    int64_t alone[SPAN] = {0}, before[SPAN * SPAN] = {0}, of_source[SPAN * SPAN] = {0},
            of_key[SPAN * SPAN] = {0};
    struct graph g = make_graph(false);
    struct part part;
    take_part(&g, 0, VERTICES, &part);
    struct sl_link_draw draw = make_draw(&g, 1, cut, NEGATIVES);
    draw.least = LEAST;
    draw.end = LEAST + SPAN;
    for (int key = 0; key < KEYS; key++) {
        draw.key = sl_rng_key(1, SL_RNG_LINKS, (uint32_t)key, 1);
        struct made m = make_blocks(&part.list, &draw, NULL);
        const struct sl_scored_link *link = m.block[0] + 1;
        int64_t n = 0, first_before = 0, source = -1;
        for (int64_t e = 0, target = -1; e < sl_link_count(m.block[0]); e++) {
            if (link[e].number >= 0)
                continue;
            const int64_t now = link[e].target - LEAST;
            alone[now]++;
            if (target >= 0)
                before[target * SPAN + now]++;
            if (link[e].source != source && source >= 0)
                of_source[first_before * SPAN + now]++;
            if (link[e].source != source)
                first_before = now;
            if (key > 0)
                of_key[last[n] * SPAN + now]++;
            last[n++] = target = now;
            source = link[e].source;
        }
        free_blocks(&draw, &m);
    }
    expect_chance(SPAN, alone);
    expect_chance(SPAN * SPAN, before);
    expect_chance(SPAN * SPAN, of_source);
    expect_chance(SPAN * SPAN, of_key);
    free(g.target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links), cmocka_unit_test(test_no_order), cmocka_unit_test(test_alike),
        cmocka_unit_test(test_full),  cmocka_unit_test(test_chance),
    };
    sl_random_seed(22);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
