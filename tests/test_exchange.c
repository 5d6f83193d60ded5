/* The exchange on the ranks that an MPI launcher started (tests/exchange.sh). Rows of each rank are
 * added to rows of other ranks, and replace rows. This happens three times without a wait, while
 * the rows change. Some pairs of ranks have nothing for one another. Then matrices travel whose
 * columns are on ranks of their own. */
#include <stdio.h>
#include <stdlib.h>

#include "codelets/accumulate.h"
#include "core/error.h"
#include "core/temporary.h"
#include "graphs/copies.h"
#include "graphs/exchange.h"

enum { TILES = 2, WIDTH = 5, ROUNDS = 3, MOST = 64 };

struct world {
    struct sl_runtime rt;
    int64_t row_cut[TILES * MOST + 1];
    struct sl_matrix h, z, one;
    struct sl_exchange exchange;
    int failures;
};

static int own(const void *world, int i, int j)
{
    (void)world;
    (void)j;
    return i / TILES;
}

static float value(int64_t row, int64_t column, int round)
{
    return (float)((row * 13 + column * 7) % 31) + (float)round;
}

static float start(int64_t row, int64_t column)
{
    return (float)(row % 9) - (float)column;
}

/* Whether row r, of tile `tile` of rank `from`, goes to rank `to`. */
static bool goes(int64_t r, int tile, int from, int to)
{
    return from != to && (from + to) % 4 != 3 && tile + from != 1 && (r * 7 + from + to) % 3 == 0;
}

/* List the rows of tile `tile` of rank `from` that go to rank `to`. They arrive in the first rows
 * of the receiver. Return how many. */
static int64_t list_rows(const struct world *w, int from, int tile, int to, int64_t *source,
                         int64_t *target)
{
    const int i = from * TILES + tile;
    int64_t count = 0;
    for (int64_t r = w->row_cut[i]; r < w->row_cut[i + 1]; r++)
        if (goes(r, tile, from, to)) {
            source[count] = r;
            target[count] = w->row_cut[to * TILES] + count;
            count++;
        }
    return count;
}

static int create_exchange(struct world *w)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank;
    struct sl_exchange_list send[TILES * MOST], receive[TILES * MOST];
    int64_t rows[4][TILES * MOST][16];
    int lists = 0;
    for (int hop = 1; hop < ranks; hop++)
        for (int tile = 0; tile < TILES; tile++, lists++) {
            const int to = (rank + ranks - hop) % ranks, from = (rank + hop) % ranks;
            const int64_t sent = list_rows(w, rank, tile, to, rows[0][lists], rows[1][lists]),
                          got = list_rows(w, from, tile, rank, rows[2][lists], rows[3][lists]);
            const int first = rank * TILES;
            send[lists] = (struct sl_exchange_list){
                to, tile, first + tile, first + tile + 1, rows[0][lists], sent};
            receive[lists] =
                (struct sl_exchange_list){from, tile, first, first + TILES, rows[3][lists], got};
        }
    return sl_exchange_create(&w->exchange, &w->rt, TILES, w->row_cut, lists, send, lists, receive);
}

static int create(struct world *w)
{
    const int tiles = TILES * w->rt.ranks;
    for (int i = 0; i < tiles; i++)
        w->row_cut[i + 1] = w->row_cut[i] + 6 + i % 3;
    struct sl_matrix *matrices[] = {&w->h, &w->z, &w->one};
    for (int m = 0; m < 3; m++)
        if (sl_matrix_create(
                &w->rt, matrices[m], SL_FLOAT32,
                &(struct sl_cuts){tiles, 1, w->row_cut, (const int64_t[]){0, WIDTH}, own, NULL}))
            return SL_ERR_SYSTEM;
    for (int i = 0; i < tiles; i++)
        for (int64_t r = w->row_cut[i]; own(NULL, i, 0) == w->rt.rank && r < w->row_cut[i + 1]; r++)
            for (int j = 0; j < WIDTH; j++) {
                const int64_t at = (r - w->row_cut[i]) * w->h.tiles[i].ld + j;
                ((float *)w->h.tiles[i].memory)[at] = value(r, j, 0);
                ((float *)w->z.tiles[i].memory)[at] = start(r, j);
                ((float *)w->one.tiles[i].memory)[at] = 1.0f;
            }
    return create_exchange(w);
}

static void submit_round(struct world *w, bool accumulate)
{
    struct sl_tile *tiles[TILES * MOST];
    sl_exchange_send(&w->rt, &w->exchange, &w->h, 0, 0);
    const struct sl_stage stage =
        sl_exchange_stage(&w->rt, &w->exchange, &w->h, 0, 0, 0, w->exchange.receives, tiles);
    sl_stage_ask(&w->rt, &stage, 0, NULL);
    for (int p = 0; p < stage.count; p++)
        sl_exchange_unpack(&w->rt, &w->exchange, p, tiles[p], accumulate, &w->z, 0);
    sl_stage_drop(&w->rt, &stage);
    for (int i = 0; i < w->h.tile_rows; i++)
        sl_submit_accumulate(&w->rt, &w->one.tiles[i], &w->h.tiles[i]);
}

/* What row r of Z is after all rounds. */
static float expected(const struct world *w, int64_t r, int64_t column)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank;
    int64_t source[16], target[16];
    float z = start(r, column);
    for (int round = 0; round < ROUNDS; round++)
        for (int hop = 1; hop < ranks; hop++)
            for (int tile = 0; tile < TILES; tile++) {
                const int64_t count =
                    list_rows(w, (rank + hop) % ranks, tile, rank, source, target);
                for (int64_t k = 0; k < count; k++)
                    if (target[k] == r)
                        z = (round == 1 ? 0.0f : z) + value(source[k], column, round);
            }
    return z;
}

static void compare(struct world *w)
{
    int64_t different = 0;
    for (int i = w->rt.rank * TILES; i < (w->rt.rank + 1) * TILES; i++) {
        const float *z = sl_tile_acquire(&w->rt, &w->z.tiles[i], false);
        for (int64_t r = w->row_cut[i]; r < w->row_cut[i + 1]; r++)
            for (int j = 0; j < WIDTH; j++) {
                const float got = z[(r - w->row_cut[i]) * w->z.tiles[i].ld + j],
                            want = expected(w, r, j);
                different += want != start(r, j);
                if (got != want && w->failures++ < 5)
                    printf("rank %d: element (%lld, %d) is %g, not %g\n", w->rt.rank, (long long)r,
                           j, (double)got, (double)want);
            }
        sl_tile_release(&w->z.tiles[i]);
    }
    if (!different && w->exchange.receives && w->failures++ == 0)
        printf("rank %d: nothing would have changed\n", w->rt.rank);
}

/* Columns of a matrix on ranks of their own: even ranks have the first, odd ranks the second. */
static int own_column(const void *world, int i, int j)
{
    const int rank = own(world, i, 0);
    return rank % 2 == j ? rank : -1;
}

static int64_t post_cut(struct world *w, struct sl_exchange *x, const int64_t *col_cut)
{
    const int mine = w->rt.rank % 2, tiles = TILES * w->rt.ranks;
    const int64_t first = col_cut[mine], width = col_cut[mine + 1] - first;
    int64_t wrong = 0;
    struct sl_matrix m;
    if (sl_matrix_create(&w->rt, &m, SL_FLOAT32,
                         &(struct sl_cuts){tiles, 2, w->row_cut, col_cut, own_column, NULL}))
        sl_fatal("%s", sl_error_message());
    for (int i = w->rt.rank * TILES; i < (w->rt.rank + 1) * TILES; i++)
        for (int64_t k = 0; k < (w->row_cut[i + 1] - w->row_cut[i]) * width; k++)
            ((float *)sl_matrix_tile(&m, i, mine)
                 ->memory)[k / width * sl_matrix_tile(&m, i, mine)->ld + k % width] =
                value(w->row_cut[i] + k / width, first + k % width, 0);
    sl_exchange_post(&w->rt, x, &m, mine, 0);
    for (int p = 0; p < x->receives; p++)
        sl_exchange_unpack(&w->rt, x, p, sl_exchange_arrived(&w->rt, x, &m, mine, 0, p), false, &m,
                           mine);
    /* The first row of each rank went to the second row of the rank after the next. */
    const int from = (w->rt.rank + w->rt.ranks - 2) % w->rt.ranks, i = w->rt.rank * TILES;
    const float *got = sl_tile_acquire(&w->rt, sl_matrix_tile(&m, i, mine), false);
    for (int64_t c = 0; c < width; c++)
        wrong += got[sl_matrix_tile(&m, i, mine)->ld + c] !=
                 value(w->row_cut[from * TILES], first + c, 0);
    sl_tile_release(sl_matrix_tile(&m, i, mine));
    sl_matrix_destroy(&m);
    return wrong;
}

/* Matrices whose columns have equal widths on some ranks, and unlike widths on others: all ranks
 * make the same buffers, and go on with the same tags. */
static void exchange_columns(struct world *w)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank;
    static const int64_t cuts[][3] = {{0, 4, 8}, {0, 4, 11}, {0, 4, 13}, {0, 4, 8}};
    struct sl_exchange x;
    int64_t first = w->row_cut[rank * TILES], second = first + 1, wrong = 0;
    const int next = (rank + 2) % ranks, before = (rank + ranks - 2) % ranks;
    if (ranks % 2 || ranks < 4)
        return;
    const struct sl_exchange_list send = {next, 0, rank * TILES, rank * TILES + 1, &first, 1},
                                  receive = {before, 0, rank * TILES, rank * TILES + 1, &second, 1};
    if (sl_exchange_create(&x, &w->rt, 1, w->row_cut, 1, &send, 1, &receive))
        sl_fatal("%s", sl_error_message());
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
        wrong += post_cut(w, &x, cuts[c]);
    sl_exchange_destroy(&x);
    const int64_t tag = sl_temporary_tags(&w->rt, 1), least = sl_runtime_least(&w->rt, tag),
                  most = -sl_runtime_least(&w->rt, -tag);
    if (wrong || least != most)
        printf("rank %d: %lld numbers of columns are wrong; tags %lld to %lld\n", rank,
               (long long)wrong, (long long)least, (long long)most);
    w->failures += wrong || least != most;
}

/* Groups of unlike sizes may have grids of unlike columns. */
static void refuse_columns(struct world *w)
{
    uint32_t vertex = (uint32_t)w->rt.rank;
    uint8_t role = SL_COPIES_OWNER;
    struct sl_copies copies;
    const struct sl_groups groups = {.all = &w->rt};
    const struct sl_copies_rows rows = {.to = 1,
                                        .columns = w->rt.rank == 0 ? 2 : 1,
                                        .row_cut = (const int64_t[]){0, 1},
                                        .vertex = &vertex,
                                        .role = &role};
    const int code = sl_copies_create(&copies, &groups, 1, 0, &rows);
    if (code != SL_ERR_USAGE) {
        printf("rank %d: unlike columns are taken\n", w->rt.rank);
        w->failures++;
    }
    sl_copies_destroy(&copies);
}

/* Ranks ask to stop when the run is over: nothing of that is left for the next run. In the second
 * round fewer ask. */
static void settle_stops(struct world *w)
{
    for (int round = 0; round < 2; round++) {
        const bool asks = w->rt.rank > round;
        int64_t everyone = 1;
        if (asks)
            sl_runtime_ask_stop(&w->rt);
        sl_runtime_settle_stops(&w->rt, asks);
        sl_runtime_sum(&w->rt, &everyone, 1);
        if (sl_runtime_stop_asked(&w->rt)) {
            printf("rank %d: a stop of round %d is left\n", w->rt.rank, round);
            w->failures++;
        }
        sl_runtime_sum(&w->rt, &everyone, 1); /* none asks anew before all have looked */
    }
}

int main(void)
{
    static struct world w;
    if (sl_runtime_start(&w.rt, &(struct sl_runtime_options){.scheduler = "lws", .workers = 1}) ||
        w.rt.ranks > MOST || create(&w)) {
        printf("%s\n", sl_error_message());
        return 2;
    }
    w.rt.stages = 2;
    for (int round = 0; round < ROUNDS; round++)
        submit_round(&w, round != 1);
    compare(&w);
    settle_stops(&w);
    exchange_columns(&w);
    refuse_columns(&w);
    int64_t sums[] = {w.failures, sl_exchange_rows_sent(&w.exchange),
                      sl_exchange_rows_received(&w.exchange)};
    sl_runtime_sum(&w.rt, sums, 3);
    sl_exchange_destroy(&w.exchange);
    sl_matrix_destroy(&w.h);
    sl_matrix_destroy(&w.z);
    sl_matrix_destroy(&w.one);
    if (w.rt.rank == 0)
        printf("%lld rows sent and %lld received each time on %d ranks, %lld failures\n",
               (long long)sums[1], (long long)sums[2], w.rt.ranks, (long long)sums[0]);
    const bool failed = sums[0] || sums[1] != sums[2] || (w.rt.ranks > 1 && !sums[1]);
    sl_runtime_stop(&w.rt);
    return failed;
}
