/* The exchange on the ranks that an MPI launcher started (tests/exchange.sh). Rows of each rank are
 * added to rows of other ranks, and replace rows. This happens three times without a wait, while
 * the rows change. Some pairs of ranks have nothing for one another. Then matrices travel whose
 * columns are on ranks of their own, and tiles whose rows lie apart. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starpu.h>

#include "codelets/accumulate.h"
#include "core/error.h"
#include "core/handle.h"
#include "core/message.h"
#include "core/task.h"
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

/* Return row r of Z after all rounds. */
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

/* ---- Rows that lie apart ---- */

/* A tile of `rows` rows of `cols` elements of `size` bytes, `ld` elements apart. Where little is
 * between rows, a message is one piece with what is between. */
struct shape {
    int64_t rows, cols, ld, size;
    bool one_piece;
};

static const struct shape shapes[] = {
    {37, 128, 144, 4, true},  {37, 256, 288, 2, true},   {9, 64, 72, 8, true},
    {1, 128, 144, 4, true},   {37, 7, 7, 4, true},       {3000, 128, 144, 4, true},
    {37, 5, 16, 4, false},    {37, 5, 16, 2, false},     {11, 3, 10, 8, false},
    {37, 128, 384, 4, false}, {3000, 64, 192, 4, false},
};

/* Bytes that no tile's element has: around a tile and between its rows, of a sender and of others;
 * and what a task writes before a message comes. */
enum { GUARD = 256, SENDERS = 254, OTHERS = 255, WRITTEN = 253 };

static int byte_of(int rank, int turn, int64_t row, int64_t byte)
{
    return (int)((row * 37 + byte * 11 + rank * 101 + turn * 53) % 251);
}

/* Tiles of one shape, one of each rank, over memory that this rank's has bytes around. */
struct tiles {
    const struct shape *shape;
    int64_t bytes;
    unsigned char *memory;
    struct sl_tile of[MOST];
};

static struct tiles *make_tiles(struct world *w, const struct shape *shape, int between)
{
    struct tiles *t = calloc(1, sizeof *t);
    const int64_t bytes = shape->rows * shape->ld * shape->size;
    unsigned char *memory = malloc((size_t)(bytes + 2 * GUARD));
    if (!t || !memory)
        sl_fatal("no memory for tiles");
    memset(memory, between, (size_t)(bytes + 2 * GUARD));
    t->shape = shape;
    t->bytes = bytes;
    t->memory = memory;
    for (int r = 0; r < w->rt.ranks; r++)
        sl_tile_describe(&w->rt, &t->of[r], shape->rows, shape->cols, shape->ld,
                         (size_t)shape->size, r, r == w->rt.rank ? memory + GUARD : NULL);
    return t;
}

static void free_tiles(struct world *w, struct tiles *t)
{
    for (int r = 0; r < w->rt.ranks; r++)
        sl_tile_forget(&t->of[r]);
    free(t->memory);
    free(t);
}

static void write_values(struct world *w, struct tiles *t, int turn)
{
    unsigned char *to = sl_tile_acquire(&w->rt, &t->of[w->rt.rank], true);
    for (int64_t r = 0; r < t->shape->rows; r++)
        for (int64_t b = 0; b < t->shape->cols * t->shape->size; b++)
            to[r * t->shape->ld * t->shape->size + b] =
                (unsigned char)byte_of(w->rt.rank, turn, r, b);
    sl_tile_release(&t->of[w->rt.rank]);
}

static void expect_values(struct world *w, const struct shape *shape, const unsigned char *got,
                          int from, int turn, const char *what)
{
    int64_t wrong = 0;
    for (int64_t r = 0; r < shape->rows; r++)
        for (int64_t b = 0; b < shape->cols * shape->size; b++)
            wrong += got[r * shape->ld * shape->size + b] != byte_of(from, turn, r, b);
    if (wrong && w->failures++ < 5)
        printf("rank %d, %lld rows of %lld, %lld apart, %lld bytes each: %lld bytes of %s are "
               "wrong\n",
               w->rt.rank, (long long)shape->rows, (long long)shape->cols, (long long)shape->ld,
               (long long)shape->size, (long long)wrong, what);
}

/* Bytes around a tile are as they were. So are bytes between rows, unless the message was one
 * piece: then they are the sender's. */
static void expect_between(struct world *w, const struct tiles *t)
{
    const struct shape *shape = t->shape;
    const int64_t row = shape->cols * shape->size, apart = shape->ld * shape->size,
                  end = t->bytes - (apart - row);
    const bool one_piece = shape->one_piece && starpu_memory_nodes_get_count() == 1;
    int64_t wrong = 0;
    for (int64_t b = -GUARD; b < t->bytes + GUARD; b++) {
        const bool between = b >= 0 && b < end && b % apart >= row, outside = b < 0 || b >= end;
        if (between || outside)
            wrong += t->memory[GUARD + b] != (between && one_piece ? SENDERS : OTHERS);
    }
    if (wrong && w->failures++ < 5)
        printf("rank %d, %lld rows of %lld, %lld apart, %lld bytes each: %lld bytes beside rows "
               "are wrong\n",
               w->rt.rank, (long long)shape->rows, (long long)shape->cols, (long long)shape->ld,
               (long long)shape->size, (long long)wrong);
}

static atomic_bool goes_on;

/* Task: the last buffer becomes the first one, or, where it is the only one, WRITTEN, once the test
 * goes on. */
static void hold_cpu(void *buffers[], void *argument)
{
    const int last = *(const int *)argument - 1;
    unsigned char *to = (unsigned char *)STARPU_MATRIX_GET_PTR(buffers[last]),
                  *from = (unsigned char *)STARPU_MATRIX_GET_PTR(buffers[0]);
    const size_t size = STARPU_MATRIX_GET_ELEMSIZE(buffers[last]),
                 row = STARPU_MATRIX_GET_NX(buffers[last]) * size,
                 to_apart = STARPU_MATRIX_GET_LD(buffers[last]) * size,
                 from_apart = STARPU_MATRIX_GET_LD(buffers[0]) * size;
    while (!goes_on)
        sched_yield();
    for (size_t r = 0; r < STARPU_MATRIX_GET_NY(buffers[last]); r++)
        if (last)
            memcpy(to + r * to_apart, from + r * from_apart, row);
        else
            memset(to + r * to_apart, WRITTEN, row);
}

static struct starpu_codelet write_codelet = {.name = "write",
                                              .cpu_funcs = {hold_cpu},
                                              .nbuffers = 1,
                                              .modes = {STARPU_W}},
                             copy_codelet = {.name = "copy",
                                             .cpu_funcs = {hold_cpu},
                                             .nbuffers = 2,
                                             .modes = {STARPU_R, STARPU_W}};

/* Let each rank expect a message that nobody sends yet: StarPU takes messages before somebody asks
 * for them only while it expects another one. */
static struct tiles *expect_late(struct world *w)
{
    static const struct shape one = {1, 1, 1, 4, true};
    struct tiles *late = make_tiles(w, &one, SENDERS);
    const int rank = w->rt.rank, before = (rank + w->rt.ranks - 1) % w->rt.ranks;
    sl_tile_send(&w->rt, &late->of[before], before, rank);
    return late;
}

/* Let tasks that are held go on, once messages have come that other ranks have sent meanwhile. */
static void go_on(struct world *w, struct tiles *late)
{
    const int rank = w->rt.rank;
    int64_t everyone = 1;
    sl_runtime_sum(&w->rt, &everyone, 1);
    usleep(5000);
    goes_on = true;
    sl_tile_send(&w->rt, &late->of[rank], rank, (rank + 1) % w->rt.ranks);
    sl_runtime_wait(&w->rt);
    sl_tile_drop(&w->rt, &late->of[(rank + w->rt.ranks - 1) % w->rt.ranks]);
    free_tiles(w, late);
}

/* A message replaces a tile in its owner's memory. It is submitted after a task that writes the
 * tile; `early`: it comes before the task is done. */
static void send_into_memory(struct world *w, const struct shape *shape, bool early)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank, count = 1;
    struct tiles *x = make_tiles(w, shape, SENDERS), *y = make_tiles(w, shape, OTHERS),
                 *late = expect_late(w);
    goes_on = !early;
    write_values(w, x, 0);
    sl_task_submit(&w->rt, &(struct sl_task){.codelet = &write_codelet,
                                             .count = count,
                                             .tiles = {&y->of[rank]},
                                             .argument = &count,
                                             .argument_size = sizeof count});
    for (int r = 0; r < ranks; r++)
        sl_tile_send_into(&w->rt, &x->of[r], &y->of[(r + 1) % ranks]);
    go_on(w, late);
    expect_values(w, shape, sl_tile_acquire(&w->rt, &y->of[rank], false),
                  (rank + ranks - 1) % ranks, 0, "a tile in its owner's memory");
    sl_tile_release(&y->of[rank]);
    expect_between(w, y);
    free_tiles(w, x);
    free_tiles(w, y);
}

/* A tile is sent twice, with other values. A task reads the copy of the first message; `early`: the
 * second message comes before the task is done. */
static void send_twice(struct world *w, const struct shape *shape, bool early)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank, count = 2,
              before = (rank + ranks - 1) % ranks;
    struct tiles *x = make_tiles(w, shape, SENDERS), *y = make_tiles(w, shape, OTHERS),
                 *late = expect_late(w);
    goes_on = !early;
    write_values(w, x, 0);
    for (int r = 0; r < ranks; r++)
        sl_tile_send(&w->rt, &x->of[r], r, (r + 1) % ranks);
    sl_task_submit(&w->rt, &(struct sl_task){.codelet = &copy_codelet,
                                             .count = count,
                                             .tiles = {&x->of[before], &y->of[rank]},
                                             .argument = &count,
                                             .argument_size = sizeof count});
    write_values(w, x, 1);
    for (int r = 0; r < ranks; r++)
        sl_tile_send(&w->rt, &x->of[r], r, (r + 1) % ranks);
    go_on(w, late);
    expect_values(w, shape, sl_tile_acquire(&w->rt, &y->of[rank], false), before, 0,
                  "a copy of the first message");
    sl_tile_release(&y->of[rank]);
    starpu_data_handle_t copy = sl_tile_handle(&w->rt, &x->of[before]);
    starpu_data_acquire(copy, STARPU_R);
    expect_values(w, shape, starpu_data_get_local_ptr(copy), before, 1, "the second message");
    starpu_data_release(copy);
    sl_tile_drop(&w->rt, &x->of[before]);
    free_tiles(w, x);
    free_tiles(w, y);
}

static void send_rows_apart(struct world *w)
{
    for (size_t s = 0; w->rt.ranks > 1 && s < sizeof shapes / sizeof *shapes; s++)
        for (int early = 0; early < 2; early++) {
            send_into_memory(w, &shapes[s], early);
            send_twice(w, &shapes[s], early);
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
    send_rows_apart(&w);
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
