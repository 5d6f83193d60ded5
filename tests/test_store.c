/* The store of sub-models, on the ranks that an MPI launcher started (tests/submodels.sh). Blocks
 * of shards of a few rows are compared with loops over entries, and so are the bytes that travel.
 * Trainings with such shards, in which each rank is a group, have the tensors of one rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/message.h"
#include "core/view.h"
#include "tests/every.h"
#include "tests/fixtures.h"
#include "tests/trained.h"
#include "train/state.h"

enum { FEATURES = 11, CLASSES = 4, PARTS = 3, ROUNDS = 3, MOST_LAYERS = 16 };

static int failures;

static void fail(const char *line, const char *what, int64_t at)
{
    printf("%s: %s %lld\n", line, what, (long long)at);
    failures++;
}

/* ---- Blocks ---- */

struct blocks {
    const char *line;
    struct sl_runtime *rt;
    struct sl_config config;
    struct sl_model model;
    struct sl_store store;
    struct sl_layer_list list;
    struct sl_axes axes;
    struct sl_rounds rounds;
    float *whole[MOST_LAYERS][SL_STORE_KINDS]; // (rows, cols), on each rank: what the store has
};

/* Different ones, without rounding. */
static float value(int l, int k, int64_t row, int64_t col)
{
    return (float)((((l * 3 + k) * 64 + row) * 64) + col);
}

static void open_blocks(struct blocks *b, bool features, int64_t most_bytes)
{
    sl_test_configure(&b->config, b->line);
    struct sl_model_shape shape = sl_config_shape(&b->config, FEATURES, CLASSES);
    shape.options.holds = SL_MODEL_HOLDS_NOTHING;
    shape.model->list(&shape, &b->list);
    bool splits[MOST_LAYERS] = {false};
    if (sl_axes_find(&b->list, &b->axes) || sl_model_create(&b->model, b->rt, &shape) ||
        sl_store_create(&b->store, &b->model, NULL, most_bytes))
        sl_fatal("%s", sl_error_message());
    for (int a = 0; a < b->axes.count; a++)
        splits[a] = b->axes.axis[a].hidden || (features && a == 0);
    if (sl_rounds_create(&b->rounds, &b->axes, SL_ROUNDS_RANDOM, PARTS, ROUNDS, 5, splits))
        sl_fatal("%s", sl_error_message());
    for (int l = 0; l < b->list.count; l++)
        for (int k = 0; k < b->store.kinds; k++) {
            const struct sl_tile *w = &b->model.layer[l].parameters;
            float *to = b->whole[l][k] = calloc((size_t)(w->rows * w->cols) + 1, sizeof *to);
            for (int64_t i = 0; i < w->rows * w->cols; i++)
                to[i] = value(l, k, i / w->cols, i % w->cols);
            for (int n = b->store.first[l]; n < b->store.first[l + 1]; n++)
                sl_store_load_rows(b->store.shard[n].tile[k], 0, b->store.shard[n].rows, w->cols,
                                   to + b->store.shard[n].first * w->cols);
        }
}

static void close_blocks(struct blocks *b)
{
    for (int l = 0; l < b->list.count; l++)
        for (int k = 0; k < b->store.kinds; k++)
            free(b->whole[l][k]);
    sl_store_destroy(&b->store);
    sl_model_destroy(&b->model);
    sl_rounds_free(&b->rounds);
    sl_axes_free(&b->axes);
    free(b->list.layer);
    sl_options_free(sl_config_options, &b->config);
}

/* All rows, in order, and each rank has about as much as any other. */
static void check_shards(struct blocks *b, int64_t most_bytes)
{
    int64_t all = 0, own = 0;
    for (int l = 0; l < b->list.count; l++) {
        const struct sl_tile *w = &b->model.layer[l].parameters;
        int64_t row = 0;
        for (int n = b->store.first[l]; n < b->store.first[l + 1]; n++) {
            const struct sl_shard *shard = &b->store.shard[n];
            const int64_t bytes = 4 * shard->rows * w->cols;
            if (shard->layer != l || shard->first != row || shard->rows < 1 || shard->owner < 0 ||
                shard->owner >= b->rt->ranks)
                fail(b->line, "the wrong shard", n);
            if (bytes > most_bytes && shard->rows > 1 && b->list.layer[l].kind->weights.count > 0)
                fail(b->line, "a shard is too large", n);
            row += shard->rows;
            all += bytes;
            own += shard->owner == b->rt->rank ? bytes : 0;
        }
        if (row != w->rows)
            fail(b->line, "shards have other rows than layer", l);
    }
    if (own > all / b->rt->ranks + 4 * 64)
        fail(b->line, "this rank has more than its share:", own);
}

static bool has(const struct sl_units *units, int part, int64_t unit)
{
    return !units->part || units->part[unit] == part;
}

/* The place in a block of each entry of the whole matrix. */
struct naive {
    int64_t rows, cols, words;
    int64_t *place; // (rows, cols of the whole): -1 where the block does not have it
    bool *shared;   // (rows of the whole)
};

static struct naive naive_of(const struct blocks *b, int l, const struct sl_unit_block *u, int root)
{
    const struct sl_tile *w = &b->model.layer[l].parameters;
    struct naive n = {.place = calloc((size_t)(w->rows * w->cols) + 1, sizeof *n.place),
                      .shared = calloc((size_t)w->rows + 1, 1)};
    for (int64_t r = 0; r < w->rows; r++) {
        const bool unit = r < u->weights * u->in.width;
        const bool row = !unit || has(&u->in, u->part, r % u->in.width);
        int owner = 0;
        for (int p = b->store.first[l]; p < b->store.first[l + 1]; p++)
            owner = b->store.shard[p].first <= r ? b->store.shard[p].owner : owner;
        n.shared[r] = !u->out.part && (!unit || !u->in.part);
        n.cols = 0;
        for (int64_t c = 0; c < w->cols; c++) {
            const bool column = has(&u->out, u->part, c);
            n.place[r * w->cols + c] = row && column ? n.rows : -1;
            n.words += column && (row || u->all_rows) && owner != root;
            n.cols += column;
        }
        for (int64_t c = 0, at = 0; c < w->cols; c++)
            if (n.place[r * w->cols + c] >= 0)
                n.place[r * w->cols + c] = n.rows * 64 + at++;
        n.rows += row || u->all_rows;
    }
    return n;
}

static void create_kept(struct blocks *b, int l, int k, const struct sl_unit_block *units,
                        struct sl_tile *kept)
{
    struct sl_unit_block block = *units;
    for (int n = b->store.first[l]; n < b->store.first[l + 1]; n++) {
        const struct sl_shard *shard = &b->store.shard[n];
        block.first = shard->first;
        const int64_t rows = sl_unit_block_shared(&block, shard->rows);
        const int64_t cols = shard->tile[k]->cols, first = shard->first + shard->rows - rows;
        kept[n] = (struct sl_tile){0};
        if (rows > 0 && sl_tile_create(b->rt, &kept[n], rows, cols, sizeof(float), shard->owner))
            sl_fatal("%s", sl_error_message());
        for (int64_t i = 0; rows > 0 && kept[n].memory && i < rows * cols; i++)
            ((float *)kept[n].memory)[i] = value(l, k, first + i / cols, i % cols) + 0.5f;
    }
}

static int64_t bytes_since(struct sl_runtime *rt, const struct sl_traffic *before)
{
    int64_t bytes = sl_traffic_since(rt, before).bytes_sent;
    sl_runtime_sum(rt, &bytes, 1);
    return bytes;
}

/* The numbers that rank 0 should receive. */
struct expected {
    const float *wanted;
    int64_t others;
};

static void compare(void *context, const float *numbers, int64_t count)
{
    struct expected *of = context;
    of->others += memcmp(numbers, of->wanted, (size_t)count * sizeof *numbers) != 0;
    of->wanted += count;
}

static void expect_whole(struct blocks *b, int l, int k)
{
    struct expected of = {.wanted = b->whole[l][k]};
    for (int n = b->store.first[l]; n < b->store.first[l + 1]; n++)
        sl_saved_take_rows(b->rt, b->store.shard[n].tile[k], 0, b->store.shard[n].rows,
                           b->store.shard[n].tile[k]->cols, compare, &of);
    if (of.others)
        fail(b->line, "put has left other entries in so many shards:", of.others);
}

static void check_take(struct blocks *b, const struct sl_store_block *block, const struct naive *n)
{
    const struct sl_tile *w = &b->model.layer[block->layer].parameters;
    const int l = block->layer, k = block->kind;
    float *wanted = calloc((size_t)(n->rows * n->cols) + 1, sizeof *wanted);
    for (int64_t i = 0; i < w->rows * w->cols; i++)
        if (n->place[i] >= 0)
            wanted[n->place[i] / 64 * n->cols + n->place[i] % 64] =
                n->shared[i / w->cols] ? value(l, k, i / w->cols, i % w->cols) + 0.5f
                                       : b->whole[l][k][i];
    const float *got = sl_tile_acquire(b->rt, block->tile, false);
    for (int64_t i = 0; i < n->rows * n->cols; i++)
        if (got[i] != wanted[i]) {
            fail(b->line, "take has another entry at", i);
            break;
        }
    sl_tile_release(block->tile);
    free(wanted);
}

/* Entries that one block alone has become -1 - entry. */
static void change(struct blocks *b, const struct sl_store_block *block, const struct naive *n)
{
    const struct sl_tile *w = &b->model.layer[block->layer].parameters;
    float *whole = b->whole[block->layer][block->kind];
    if (block->tile->owner == b->rt->rank) {
        float *to = sl_tile_acquire(b->rt, block->tile, true);
        for (int64_t i = 0; i < n->rows * n->cols; i++)
            to[i] = -1.0f - to[i];
        sl_tile_release(block->tile);
    }
    for (int64_t i = 0; i < w->rows * w->cols; i++)
        if (n->place[i] >= 0 && !n->shared[i / w->cols])
            whole[i] = -1.0f - whole[i];
}

static void check_block(struct blocks *b, int64_t round, int part, int l, int k, int root)
{
    const struct sl_unit_block units =
        sl_rounds_block(&b->rounds, round, part, l, sl_layer_shape_weights(&b->list.layer[l]));
    struct naive n = naive_of(b, l, &units, root);
    struct sl_tile tile, *kept = calloc((size_t)b->store.shards + 1, sizeof *kept);
    create_kept(b, l, k, &units, kept);
    if (sl_tile_create(b->rt, &tile, n.rows, n.cols, sizeof(float), root))
        sl_fatal("%s", sl_error_message());
    const struct sl_store_block block = {
        .layer = l, .kind = k, .epoch = 1, .units = units, .tile = &tile, .kept = kept};
    const int64_t words = sl_store_words(&b->store, l, &units, n.cols, root);
    struct sl_traffic before = b->rt->traffic;
    sl_store_load(&b->store, &block);
    if (words != n.words || bytes_since(b->rt, &before) != 4 * words)
        fail(b->line, "take sends other bytes than four times", n.words);
    if (root == b->rt->rank)
        check_take(b, &block, &n);
    change(b, &block, &n);
    before = b->rt->traffic;
    sl_store_save(&b->store, &block);
    if (bytes_since(b->rt, &before) != 4 * words)
        fail(b->line, "put sends other bytes than four times", n.words);
    expect_whole(b, l, k);
    for (int p = 0; p < b->store.shards; p++)
        sl_tile_destroy(&kept[p]);
    sl_tile_destroy(&tile);
    free(kept);
    free(n.place);
    free(n.shared);
}

static void check_blocks(struct sl_runtime *rt, const char *line, bool features, int64_t most_bytes)
{
    struct blocks b = {.line = line, .rt = rt};
    open_blocks(&b, features, most_bytes);
    check_shards(&b, most_bytes);
    sl_rounds_draw(&b.rounds, ROUNDS - 1);
    for (int64_t t = 0; t < ROUNDS; t++)
        for (int p = 0; p < PARTS; p++)
            for (int l = 0; l < b.list.count; l++)
                for (int k = 0; b.model.layer[l].parameters.rows > 0 && k < b.store.kinds; k++)
                    check_block(&b, t, p, l, k, (int)(t + p) % rt->ranks);
    close_blocks(&b);
}

/* ---- Trainings ---- */

static const struct sl_fixture fixture = {SL_FIXTURE("store", 97, FEATURES, CLASSES, 5),
                                          .form = SL_FEATURES_DENSE, .seed = 12};

/* Blocks of the last round came, those of the round before went back, and metrics went both ways.
 * An evaluation in between has put them back before. */
static void check_words(struct sl_trainer *trainer, const char *line)
{
    struct sl_submodels *s = &trainer->submodels;
    int64_t bytes = trainer->traffic.sum[0].bytes_sent;
    const int64_t metrics = 2 * (s->count - 1) * (int64_t)(SL_METRICS * sizeof(double));
    sl_runtime_sum(trainer->rt, &bytes, 1);
    if (s->steps == 1 && s->groups && trainer->epoch % 2 == 0 &&
        bytes !=
            2 * (sl_submodels_words(s, s->round - 1) + sl_submodels_words(s, s->round)) + metrics)
        fail(line, "an epoch sends other bytes than its rounds say:", bytes);
}

/* Train, from a checkpoint or from the beginning, and collect the state on rank 0. */
static void train(struct sl_runtime *rt, const struct sl_source *source, const char *line,
                  int64_t shard_bytes, const char *from, const char *path,
                  struct sl_checkpoint *out)
{
    struct sl_config config;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    struct sl_checkpoint checkpoint = {0};
    sl_test_configure(&config, line);
    config.units.shard_bytes = shard_bytes;
    if ((from && sl_checkpoint_read(from, &checkpoint)) ||
        sl_trainer_create(&trainer, rt, source, &config, from ? &checkpoint : NULL) ||
        sl_report_open(&report, NULL, false, true) || sl_trainer_run(&trainer, &report, &outcome) ||
        sl_trainer_save(&trainer, path) || sl_checkpoint_read(path, out))
        sl_fatal("%s: %s", line, sl_error_message());
    check_words(&trainer, line);
    if (!config.training.patience &&
        outcome.epochs != config.training.epochs / config.units.submodels &&
        !config.files.stop_after)
        fail(line, "it has ended after epoch", outcome.epochs);
    sl_report_close(&report);
    sl_outcome_free(&outcome);
    sl_trainer_destroy(&trainer);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
}

static void expect_same(const struct sl_checkpoint *a, const struct sl_checkpoint *b,
                        const char *line)
{
    if (a->count != b->count || a->count < 4)
        fail(line, "another number of tensors:", b->count);
    for (int t = 0; t < a->count && a->count == b->count; t++) {
        const struct sl_tensor *x = &a->tensors[t], *y = &b->tensors[t];
        if (strcmp(x->name, y->name) || x->rows != y->rows || x->cols != y->cols ||
            memcmp(x->data, y->data, (size_t)(x->rows * x->cols) * sizeof(float)))
            fail(line, x->name, t);
    }
}

/* `alone` is this rank's own view. `limit`: of the bytes of a shard, of three. Who goes on has
 * another one, but for the second. */
static void check_training(struct sl_runtime *rt, struct sl_runtime *alone,
                           const struct sl_source *source, const char *path, const char *options,
                           size_t limit)
{
    static const int64_t limits[] = {1, 200, 700};
    struct sl_checkpoint one = {0}, all = {0}, first = {0}, rest = {0};
    char line[300], groups[400], part[500];
    snprintf(line, sizeof line,
             "--submodels 3 --epochs 18 --lr 0.02 --tiles 5 --order none --eval-every 2 %s",
             options);
    snprintf(groups, sizeof groups, "%s --distribution 1d%s", line,
             rt->ranks == 3 ? " --groups 3x1" : "");
    snprintf(part, sizeof part, "%s --stop-after 3 --checkpoint %s", groups, path);
    char one_path[300], all_path[300];
    snprintf(one_path, sizeof one_path, "%s-%d", path, rt->rank);
    snprintf(all_path, sizeof all_path, "%s-all", path);
    train(alone, source, line, 0, NULL, one_path, &one);
    train(rt, source, groups, limits[limit], NULL, all_path, &all);
    train(rt, source, part, limits[limit], NULL, all_path, &first);
    train(rt, source, groups, limits[2 - limit], path, all_path, &rest);
    if (rt->rank == 0) {
        expect_same(&one, &all, groups);
        expect_same(&one, &rest, part);
    }
    sl_checkpoint_free(&all);
    sl_checkpoint_free(&first);
    sl_checkpoint_free(&rest);
    sl_checkpoint_free(&one);
}

static void check_trainings(struct sl_runtime *rt, const char *path)
{
    static const char *const lines[] = {
        "--model gcn --layers 3 --hidden 10",
        "--model sage --layers 3 --hidden 11 --local-steps 2 --unit-sums scaled",
        "--model gat --layers 2 --heads 2 --hidden 5 --local-steps 5 --optimizer sgd",
        "--model resgcn --layers 3 --hidden 9 --block-norm batch --dropout 0.2",
        "--model gcn --layers 2 --hidden 10 --share copies --local-steps 2",
        "--model gcn --layers 3 --hidden 10 --share none --patience 0",
        "--model gcn --layers 2 --hidden 10 --split-layers 0,1 --reset-optimizer",
        "--model gcn --layers 2 --hidden 10 --lr 0.5 --patience 2",
    };
    struct sl_dataset data = sl_fixture_open(&fixture);
    struct sl_source source;
    struct sl_runtime alone;
    if (sl_source_of(&data, &source) || sl_view_split(rt, rt->rank, &alone))
        sl_fatal("%s", sl_error_message());
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (size_t limit = 0; limit < 3; limit++)
            if (limit == k % 3 || sl_every_all())
                check_training(rt, &alone, &source, path, lines[k], limit);
    sl_view_free(&alone);
    sl_source_close(&source);
    sl_fixture_close(&data);
}

int main(int count, char **words)
{
    static const char *const lines[] = {
        "--model gcn --layers 3 --hidden 10", "--model sage --layers 2 --hidden 7",
        "--model gat --layers 3 --heads 2 --hidden 5 --optimizer sgd",
        "--model resgcn --layers 3 --hidden 9 --block-norm batch",
        "--model jknet --layers 3 --hidden 8"};
    static const int64_t limits[] = {1, 100, 333, 1 << 20};
    struct sl_runtime rt;
    if (count != 2 ||
        sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("expected the path of a file to write");
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (size_t m = 0; m < sizeof limits / sizeof *limits; m++)
            check_blocks(&rt, lines[k], m % 2, limits[m]);
    check_trainings(&rt, words[1]);
    int64_t sum = failures;
    sl_runtime_sum(&rt, &sum, 1);
    if (rt.rank == 0)
        printf("%d ranks: %lld failures\n", rt.ranks, (long long)sum);
    sl_runtime_stop(&rt);
    return sum > 0;
}
