/* Submissions of links. What comes out is, bit by bit, what the kernel makes of copies of the same
 * buffers (tests/operands.h). All numbers are small integers, so that a GPU's sums are exact, too.
 * The kernels have tests of their own (test_kernels_link*.c). */
#include "codelets/link_lists.h"
#include "codelets/link_ranking.h"
#include "tests/operands.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { TARGETS = 23, BLOCKS = 3 };

/* ---- Operands ---- */

static struct sl_operand integers(int64_t rows, int64_t cols)
{
    const int64_t ld = cols + 1 + sl_random_below(5);
    float *contents = calloc((size_t)(rows * ld), sizeof *contents);
    assert_non_null(contents);
    for (int64_t i = 0; i < rows * ld; i++)
        contents[i] = i % ld < cols ? sl_random_value(SL_INTEGERS) : NAN;
    return sl_operand_over(contents, rows, cols, ld, sizeof *contents);
}

/* A result: numbers, or, where the task sets it, NaN. */
static struct sl_operand result(bool first, int64_t rows, int64_t cols)
{
    const int64_t ld = cols + 2;
    float *contents = calloc((size_t)(rows * ld), sizeof *contents);
    assert_non_null(contents);
    for (int64_t i = 0; i < rows * ld; i++)
        contents[i] = first ? NAN : sl_random_value(SL_INTEGERS);
    return sl_operand_over(contents, rows, cols, ld, sizeof *contents);
}

static struct sl_operand operand_of(struct sl_scored_link *block, int64_t room)
{
    struct sl_operand o = sl_operand_over(block, 1 + room, 1, 1, sizeof *block);
    o.exact = true;
    return o;
}

static struct sl_scored_link *empty_block(int64_t room)
{
    struct sl_scored_link *block = malloc((size_t)(1 + room) * sizeof *block);
    assert_non_null(block);
    memset(block, 0x5A, (size_t)(1 + room) * sizeof *block);
    block->source = 0;
    block->target = (int32_t)room;
    return block;
}

/* Append a segment with less links than room to a block that has `size` elements. Return its place.
 */
static int64_t add_segment(struct sl_scored_link **block, int64_t *size, int64_t sources,
                           int64_t targets, int64_t links)
{
    const int64_t place = *size, room = links + 1 + sl_random_below(4);
    int32_t *work = calloc((size_t)targets + 1, sizeof *work);
    *size += 1 + room;
    *block = realloc(*block, (size_t)*size * sizeof **block);
    assert_true(work && *block);
    struct sl_scored_link *const segment = *block + place;
    memset(segment, 0x5A, (size_t)(1 + room) * sizeof *segment);
    segment->source = (int32_t)links;
    segment->target = (int32_t)room;
    for (int64_t e = 0; e < links; e++)
        segment[1 + e] = (struct sl_scored_link){.source = (int32_t)(e * sources / links),
                                                 .target = (int32_t)sl_random_below(targets),
                                                 .number = (int32_t)e,
                                                 .value = sl_random_value(SL_INTEGERS)};
    sl_link_order(targets, segment, work);
    free(work);
    return place;
}

/* ---- Scores and gradients ---- */

enum { ROWS = 3, OTHERS = 2 }; /* tiles of rows; the last two of them are the others */

/* Operands of a decoder. `own` is the first tile of rows, or one of the others. */
struct ends {
    struct sl_operand rows[ROWS], w, block[OTHERS];
    struct sl_tile tile[ROWS], blocks[OTHERS];
    int64_t place[OTHERS];
    int own, blocks_count;
    struct sl_link_tiles tiles;
};

/* Blocks of one source tile, or, of targets, with a segment of other targets before. */
static void make_blocks(enum sl_link_end end, struct ends *e)
{
    const int64_t own = e->rows[e->own].tile.rows;
    struct sl_scored_link *block = NULL;
    int64_t size = 0;
    e->blocks_count = end == SL_LINK_TARGET ? OTHERS : 1;
    for (int k = 0; k < OTHERS; k++) {
        const int64_t other = e->rows[1 + k].tile.rows;
        if (end == SL_LINK_TARGET) {
            block = NULL;
            size = 0;
            add_segment(&block, &size, other, 5, 3);
            e->place[k] = add_segment(&block, &size, other, own, 2 * other);
        } else {
            e->place[k] = add_segment(&block, &size, own, other, 2 * own - k);
        }
        if (end == SL_LINK_TARGET || k == OTHERS - 1)
            e->block[end == SL_LINK_TARGET ? k : 0] = operand_of(block, size - 1);
    }
}

static void make_ends(int64_t rows, int64_t cols, int option, enum sl_link_end end, struct ends *e)
{
    const enum sl_decoder decoder = (enum sl_decoder)(option / ROWS);
    const int64_t count[ROWS] = {rows, TARGETS, rows + 2};
    *e = (struct ends){.own = option % ROWS};
    for (int t = 0; t < ROWS; t++)
        e->rows[t] = integers(count[t], cols);
    e->w = integers(3, cols);
    make_blocks(end, e);
    for (int t = 0; t < ROWS; t++)
        e->tile[t] = e->rows[t].tile;
    for (int b = 0; b < e->blocks_count; b++)
        e->blocks[b] = e->block[b].tile;
    e->tiles = (struct sl_link_tiles){.decoder = decoder,
                                      .w = decoder == SL_DECODER_DOT ? NULL : &e->w.tile,
                                      .own = &e->tile[e->own],
                                      .count = OTHERS,
                                      .others = &e->tile[1],
                                      .blocks = e->blocks,
                                      .apart = 1,
                                      .segment = e->place,
                                      .apart_segments = 1};
}

/* Return the rows of segment k, of the copies; set *segment. */
static struct sl_link_rows copied(struct ends *e, enum sl_link_end end, int k,
                                  struct sl_scored_link **segment)
{
    const struct sl_operand *own = &e->rows[e->own], *other = &e->rows[1 + k];
    const struct sl_floats_at mine = {own->copy, own->tile.ld}, met = {other->copy, other->tile.ld};
    *segment = (struct sl_scored_link *)e->block[end == SL_LINK_TARGET ? k : 0].copy + e->place[k];
    return (struct sl_link_rows){e->tiles.decoder, own->tile.cols,
                                 end == SL_LINK_TARGET ? met : mine,
                                 end == SL_LINK_TARGET ? mine : met, e->tiles.w ? e->w.copy : NULL};
}

/* Compare all operands, and an output, unless it is NULL. */
static void settle_ends(const char *operation, struct ends *e, struct sl_operand *out)
{
    struct sl_operand *list[ROWS + OTHERS + 2];
    int count = 0;
    for (int t = 0; t < ROWS; t++) {
        e->rows[t].tile = e->tile[t];
        list[count++] = &e->rows[t];
    }
    for (int b = 0; b < e->blocks_count; b++) {
        e->block[b].tile = e->blocks[b];
        list[count++] = &e->block[b];
    }
    list[count++] = &e->w;
    if (out)
        list[count++] = out;
    sl_settle_all(operation, count, list);
}

enum { OPTIONS = 3 * ROWS };

static void check_scores(int64_t rows, int64_t cols)
{
    for (int option = 0; option < OPTIONS; option++) {
        struct ends e;
        struct sl_scored_link *segment;
        make_ends(rows, cols, option, SL_LINK_SOURCE, &e);
        sl_submit_link_scores(&sl_running, &e.tiles);
        for (int k = 0; k < OTHERS; k++) {
            const struct sl_link_rows of = copied(&e, SL_LINK_SOURCE, k, &segment);
            sl_kernel_link_scores(&of, segment);
        }
        settle_ends("scores", &e, NULL);
    }
}

static void clear(struct sl_operand *o)
{
    for (int64_t r = 0; r < o->tile.rows; r++)
        memset(sl_copied_row(o, r), 0, (size_t)o->tile.cols * sizeof(float));
}

static void check_back(int64_t rows, int64_t cols)
{
    for (int option = 0; option < 4 * OPTIONS; option++) {
        const bool first = option & 1;
        const enum sl_link_end end = option & 2 ? SL_LINK_TARGET : SL_LINK_SOURCE;
        struct ends e;
        struct sl_scored_link *segment;
        make_ends(rows, cols, option / 4, end, &e);
        const int64_t count = e.rows[e.own].tile.rows;
        struct sl_operand g = result(first, count, cols);
        sl_submit_link_back(&sl_running, &e.tiles, end, first, &g.tile);
        if (first)
            clear(&g);
        for (int k = 0; k < OTHERS; k++) {
            const struct sl_link_rows of = copied(&e, end, k, &segment);
            sl_kernel_link_back(&of, end, count, segment, (struct sl_floats_at){g.copy, g.tile.ld});
        }
        settle_ends("back", &e, &g);
    }
}

static void check_parameters(int64_t rows, int64_t cols)
{
    for (int option = 2 * ROWS; option < 2 * OPTIONS; option++) {
        const bool first = option & 1;
        struct ends e;
        struct sl_scored_link *segment;
        make_ends(rows, cols, option / 2, SL_LINK_SOURCE, &e);
        struct sl_operand dw = result(first, 1, cols);
        sl_submit_link_parameters(&sl_running, &e.tiles, first, &dw.tile);
        if (first)
            clear(&dw);
        for (int k = 0; k < OTHERS; k++) {
            const struct sl_link_rows of = copied(&e, SL_LINK_SOURCE, k, &segment);
            sl_kernel_link_parameters(&of, segment, dw.copy);
        }
        settle_ends("parameters", &e, &dw);
    }
}

/* ---- Lists, losses, metrics ---- */

/* Tiles of operands side by side, and back in their operands once they have handles. */
static void put_side_by_side(int count, const struct sl_operand *all, struct sl_tile *tiles)
{
    for (int t = 0; t < count; t++)
        tiles[t] = all[t].tile;
}

static void put_back(int count, struct sl_operand *all, const struct sl_tile *tiles)
{
    for (int t = 0; t < count; t++)
        all[t].tile = tiles[t];
}

static void settle(const char *operation, int more, struct sl_operand *const *others, int count,
                   struct sl_operand *all)
{
    struct sl_operand *list[SL_MOST_OPERANDS];
    for (int i = 0; i < more; i++)
        list[i] = others[i];
    for (int i = 0; i < count; i++)
        list[more + i] = &all[i];
    sl_settle_all(operation, more + count, list);
}

/* `rows` rows with up to two links each, three tiles of targets. The last block is full. */
static void check_lists(int64_t rows, int64_t cols)
{
    const int64_t cut[] = {0, 9, 9, TARGETS}, negatives = cols % 3;
    int64_t *start = calloc((size_t)rows + 1, sizeof *start), room[BLOCKS];
    int32_t *target = calloc((size_t)rows * 2, sizeof *target);
    uint32_t *source = calloc((size_t)rows, sizeof *source);
    struct sl_scored_link *copies[BLOCKS];
    struct sl_tile tiles[BLOCKS];
    struct sl_operand work = sl_operand_over(calloc(TARGETS + 1, sizeof(int32_t)), 1, TARGETS + 1,
                                             TARGETS + 1, sizeof(int32_t)),
                      blocks[BLOCKS];
    assert_true(start && target && source);
    work.exact = true;
    for (int64_t r = 0; r < rows; r++) {
        start[r + 1] = start[r] + r % 3;
        source[r] = (uint32_t)(r * 5 + 1);
    }
    for (int64_t k = 0; k < start[rows]; k++)
        target[k] = (int32_t)sl_random_below(TARGETS);
    for (int t = 0; t < BLOCKS; t++) {
        room[t] = t == 2 ? rows / 2 : rows * 6;
        blocks[t] = operand_of(empty_block(room[t]), room[t]);
        copies[t] = blocks[t].copy;
    }
    const struct sl_link_list list = {0, rows, start, target, source};
    const struct sl_link_draw draw = {.end = TARGETS,
                                      .negatives = negatives,
                                      .key = (uint64_t)cols,
                                      .tiles = BLOCKS,
                                      .row_cut = cut};
    put_side_by_side(BLOCKS, blocks, tiles);
    sl_submit_link_lists(&sl_running, &list, &draw, &work.tile, BLOCKS, tiles);
    put_back(BLOCKS, blocks, tiles);
    sl_link_lists_make(&list, &draw, copies, work.copy);
    settle("lists", 1, (struct sl_operand *[]){&work}, BLOCKS, blocks);
    free(start);
    free(target);
    free(source);
}

/* Links 0 … links - 1 and two negatives of each, in three blocks, of which the second is empty. */
static void deal_links(int64_t links, struct sl_operand *blocks)
{
    struct sl_scored_link *block[BLOCKS];
    for (int b = 0; b < BLOCKS; b++)
        block[b] = empty_block(3 * links);
    for (int64_t i = 0; i < 3 * links; i++) {
        struct sl_scored_link *to = block[sl_random_below(2) * 2];
        to[1 + to->source++] =
            (struct sl_scored_link){.source = (int32_t)i,
                                    .number = i % 3 ? ~(int32_t)(i / 3) : (int32_t)(i / 3),
                                    .value = sl_random_value(SL_REALS)};
    }
    for (int b = 0; b < BLOCKS; b++)
        blocks[b] = operand_of(block[b], 3 * links);
}

static void check_loss(int64_t rows, int64_t cols)
{
    for (int loss = SL_LINK_CROSS_ENTROPY; loss <= SL_LINK_PAIRWISE; loss++) {
        const bool pairwise = loss == SL_LINK_PAIRWISE;
        struct sl_operand scratch = result(true, 2, rows), metrics = sl_operand_metrics(),
                          blocks[BLOCKS];
        struct sl_tile tiles[BLOCKS];
        struct sl_scored_link *copies[BLOCKS];
        deal_links(rows, blocks);
        for (int b = 0; b < BLOCKS; b++)
            copies[b] = blocks[b].copy;
        put_side_by_side(BLOCKS, blocks, tiles);
        sl_submit_link_loss(&sl_running, (enum sl_link_loss)loss, 1000 + cols, 2,
                            pairwise ? &scratch.tile : NULL, &metrics.tile, BLOCKS, BLOCKS, tiles);
        put_back(BLOCKS, blocks, tiles);
        const struct sl_link_losses losses = {.loss = (enum sl_link_loss)loss,
                                              .links = (double)(1000 + cols),
                                              .negatives = 2.0,
                                              .blocks = BLOCKS,
                                              .block = copies,
                                              .score = pairwise ? sl_copied_row(&scratch, 0) : NULL,
                                              .slope = pairwise ? sl_copied_row(&scratch, 1) : NULL,
                                              .count = rows};
        memset(metrics.copy, 0, SL_METRICS * sizeof(double));
        ((double *)metrics.copy)[SL_METRIC_LOSS + SL_SPLIT_TRAIN] =
            sl_link_losses_differentiate(&losses);
        settle("loss", 2, (struct sl_operand *[]){&scratch, &metrics}, BLOCKS, blocks);
    }
}

/* Links and negatives of validation, then of test, in two blocks in no order; or none at all. */
static void check_metric(int64_t rows, int64_t cols)
{
    const struct sl_link_lists_measured lists = {
        .links = {[SL_SPLIT_VAL] = rows, [SL_SPLIT_TEST] = cols % 4},
        .negatives = {[SL_SPLIT_VAL] = 2 * rows, [SL_SPLIT_TEST] = cols % 4}};
    const int64_t all = 3 * rows + 2 * (cols % 4);
    for (int measure = SL_LINKS_HITS; measure <= SL_LINKS_AREA; measure++) {
        const struct sl_link_metric metric = {(enum sl_link_measure)measure, 2};
        struct sl_operand scratch = sl_operand_reals(2, all + 1), metrics = sl_operand_metrics();
        struct sl_scored_link *block[2] = {empty_block(all), empty_block(all)};
        float *scores = sl_copied_row(&scratch, 0), *sorted = sl_copied_row(&scratch, 1);
        uint32_t *order = sl_row_numbers(all, all, true);
        for (int64_t i = 0; i < all; i++) {
            struct sl_scored_link *to = block[sl_random_below(2)];
            scores[order[i]] = sl_random_value(SL_INTEGERS);
            to[1 + to->source++] =
                (struct sl_scored_link){.number = (int32_t)order[i], .value = scores[order[i]]};
        }
        free(order);
        struct sl_operand blocks[2] = {operand_of(block[0], all), operand_of(block[1], all)};
        struct sl_tile *tiles[2] = {&blocks[0].tile, &blocks[1].tile};
        double *want = metrics.copy;
        memset(want, 0, SL_METRICS * sizeof *want);
        for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
            const int64_t links = lists.links[s], negatives = lists.negatives[s];
            want[SL_METRIC_LOSS + s] =
                sl_link_loss_value(SL_LINK_PAIRWISE, links, scores, negatives, scores + links);
            want[SL_METRIC_VALUE + s] =
                sl_link_metric_value(&metric, links, scores, negatives, scores + links, sorted);
            scores += links + negatives;
        }
        want[SL_METRIC_VALUE + SL_SPLIT_NONE] = want[SL_METRIC_VALUE + SL_SPLIT_TRAIN] = NAN;
        sl_submit_link_metric(&sl_running, &metric, SL_LINK_PAIRWISE, &lists, 2, tiles,
                              &scratch.tile, &metrics.tile);
        settle("metric", 2, (struct sl_operand *[]){&scratch, &metrics}, 2, blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SL_OPERATION(check_scores), SL_OPERATION(check_back), SL_OPERATION(check_parameters),
        SL_OPERATION(check_lists),  SL_OPERATION(check_loss), SL_OPERATION(check_metric),
    };
    return cmocka_run_group_tests(tests, sl_operations_start, sl_running_stop);
}
