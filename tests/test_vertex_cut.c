/* Training on a vertex-cut, on the ranks that an MPI launcher started (tests/vertex-cut.sh),
 * against a slow simulation of all ranks (tests/simulation.h). What bytes travelled is compared
 * with what the partition implies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/message.h"
#include "graphs/vertex_cut.h"
#include "tests/fixtures.h"
#include "tests/simulation.h"
#include "tests/trained.h"
#include "train/trainer.h"

static const double CURVE = 2e-5;
enum { STEPS = 20, EVALUATIONS = STEPS / 3 + 2 };

/* Kinds of layers, with the options that choose them. */
struct model {
    enum sl_reference_norm norm;
    const char *options;
};

static const struct model models[] = {
    {SL_REFERENCE_SYM, "--model gcn"},
    {SL_REFERENCE_GCN, "--model sage --aggregator gcn"},
    {SL_REFERENCE_MEAN, "--model sage --aggregator mean"},
};
enum { MODELS = sizeof models / sizeof *models, MEAN = 2 };

struct world {
    struct sl_runtime rt;
    int failures, cases;
};

static void parse(struct world *w, const struct model *model, const char *delay,
                  const char *partial_sums, bool gemm_first, struct sl_config *config)
{
    char line[512];
    snprintf(
        line, sizeof line,
        "--distribution vertex-cut --partition libra --delay %s --exact-epochs 0 --partial-sums %s "
        "--product-order %s --epochs %d --layers %d "
        "--hidden %d --seed 1 --dropout 0 --no-cache-aggregate --optimizer sgd --momentum 0 "
        "--lr %g --weight-decay 0 --eval-every 3 --tiles %d %s",
        delay, partial_sums, gemm_first ? "gemm" : "spmm", STEPS, SL_SIMULATED_LAYERS,
        SL_SIMULATED_HIDDEN, SL_SIMULATED_RATE, 2 * w->rt.ranks + 1, model->options);
    sl_test_configure(config, line);
}

/* Bytes of rows that all ranks received. */
static int64_t received(struct world *w, const struct sl_traffic *traffic)
{
    int64_t bytes = traffic->rows_received + traffic->sums_received;
    sl_runtime_sum(&w->rt, &bytes, 1);
    return bytes;
}

/* Losses of all epochs, and what was received in the last cycle, and in the whole run. */
static void train(struct world *w, const struct sl_dataset *data, const struct sl_config *config,
                  double *losses, int64_t *cycle, int64_t *run)
{
    struct sl_source source;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    const struct sl_traffic before = w->rt.traffic;
    if (sl_source_of(data, &source) || sl_trainer_create(&trainer, &w->rt, &source, config, NULL) ||
        sl_report_open(&report, NULL, false, true) || sl_trainer_run(&trainer, &report, &outcome)) {
        printf("%s\n", sl_error_message());
        abort();
    }
    for (int64_t e = 1; e <= config->training.epochs; e++)
        losses[e - 1] =
            trainer.records.record[e].train_loss / (double)trainer.whole.network.graph->train_count;
    const struct sl_traffic all = sl_traffic_since(&w->rt, &before);
    *cycle = received(w, &trainer.traffic.sum[0]);
    *run = received(w, &all);
    sl_outcome_free(&outcome);
    sl_trainer_destroy(&trainer);
    sl_report_close(&report);
    sl_source_close(&source);
}

/* For each leaf that meets: it sends its row and gets the total, in every aggregation of this
 * direction. */
static int64_t bytes_of(const struct sl_dataset *data, bool gemm_first, bool back)
{
    const int64_t f = data->features, h = SL_SIMULATED_HIDDEN, k = data->classes;
    return 2 * 4 * (gemm_first ? h + h + k : back ? h + h : f + h + h);
}

/* Scaled gradients do not meet, unless all clones meet. */
static int64_t bytes_of_step(const struct sl_simulated *what)
{
    const bool back = !what->scaled || what->delay == 0;
    return bytes_of(what->data, what->gemm_first, false) +
           (back ? bytes_of(what->data, what->gemm_first, true) : 0);
}

/* In r steps that follow one another each bin meets once: as much as in one step of all. Roots
 * have nothing to send in the first r. */
static int64_t bytes_of_run(const struct sl_simulated *what, int64_t all)
{
    const int delay = what->delay;
    const int64_t forward = bytes_of(what->data, what->gemm_first, false),
                  step = bytes_of_step(what);
    const int64_t training = delay < 0    ? 0
                             : delay == 0 ? STEPS * step
                                          : STEPS / delay * step - step / 2;
    return all * (training + EVALUATIONS * forward);
}

/* `degrees`: against the rule of DistGNN's code. */
static void compare(struct world *w, const char *fixture, const struct model *model,
                    const char *delay, const char *partial_sums, bool degrees, bool gemm_first)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(fixture));
    struct sl_config config;
    double wanted[STEPS], got[STEPS], worst = 0.0;
    int64_t all, bytes, run;
    parse(w, model, delay, partial_sums, gemm_first, &config);
    const struct sl_simulated what = {.data = &data,
                                      .norm = model->norm,
                                      .ranks = w->rt.ranks,
                                      .delay = config.ranks.delay,
                                      .scaled = strcmp(partial_sums, "scaled") == 0,
                                      .degrees = degrees,
                                      .gemm_first = gemm_first};
    sl_simulate(&what, STEPS, wanted, &all);
    train(w, &data, &config, got, &bytes, &run);
    for (int e = 0; e < STEPS; e++)
        worst = fmax(worst, fabs(got[e] - wanted[e]) / fabs(wanted[e]));
    /* Each leaf meets once in a cycle. */
    const int64_t implied = what.delay < 0 ? 0 : all * bytes_of_step(&what),
                  implied_run = bytes_of_run(&what, all);
    w->cases++;
    if (!(worst <= CURVE) || bytes != implied || run != implied_run || all == 0) {
        w->failures++;
        if (w->rt.rank == 0)
            printf(
                "%s, %s, %s, %s%s, %s first: losses differ by %g; %lld bytes, not %lld, and in the "
                "run %lld, not %lld\n",
                fixture, model->options, delay, partial_sums, degrees ? ", degrees" : "",
                gemm_first ? "GEMM" : "SpMM", worst, (long long)bytes, (long long)implied,
                (long long)run, (long long)implied_run);
    }
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
}

/* ---- Messages ---- */

enum { ROWS = 40, FIT = 7 }; /* rows of a rank, and those that fit into a message */

static int owner_of(const void *rank_cut, int i, int j)
{
    (void)rank_cut;
    (void)j;
    return i / 2;
}

/* Every row of this rank, in two tiles, is a leaf of the same one of the next rank. */
static int create_ring(struct world *w, int delay, int64_t *row_cut, struct sl_vertex_cut *cut)
{
    const int ranks = w->rt.ranks, rank = w->rt.rank;
    int rank_cut[SL_SIMULATED_RANKS + 1];
    struct sl_clone leaf[ROWS], root[ROWS];
    for (int t = 0; t <= 2 * ranks; t++)
        row_cut[t] = (int64_t)t * ROWS / 2;
    for (int r = 0; r <= ranks; r++)
        rank_cut[r] = 2 * r;
    for (int k = 0; k < ROWS; k++) {
        leaf[k] = (struct sl_clone){rank * ROWS + k, (rank + 1) % ranks, k % 2, 0};
        root[k] = (struct sl_clone){rank * ROWS + k, (rank + ranks - 1) % ranks, k % 2, 0};
    }
    return sl_vertex_cut_create(cut, &w->rt,
                                &(struct sl_clone_lists){
                                    .delay = delay,
                                    .row_bytes = (1 << 30) / FIT,
                                    .row_cut = row_cut,
                                    .rank_cut = rank_cut,
                                    .leaves = ROWS,
                                    .roots = ROWS,
                                    .leaf = leaf,
                                    .root = root,
                                });
}

/* Whether so many rows go in messages that are full but for the last of them. */
static bool is_cut_up(const struct sl_exchange *x, int64_t rows)
{
    bool good = x->sends == (rows + FIT - 1) / FIT && x->receives == x->sends &&
                sl_exchange_rows_sent(x) == rows && sl_exchange_rows_received(x) == rows;
    for (int p = 0; good && p < x->sends; p++)
        good = x->send[p].rows > 0 && x->send[p].rows <= FIT;
    return good;
}

/* P(root) += P(leaf) in all those messages. */
static bool adds_up(struct world *w, struct sl_exchange *to_root, const int64_t *row_cut)
{
    struct sl_matrix p;
    bool good = true;
    if (sl_matrix_create(&w->rt, &p, SL_FLOAT32,
                         &(struct sl_cuts){2 * w->rt.ranks, 1, row_cut, (const int64_t[]){0, 3},
                                           owner_of, NULL}))
        return false;
    for (int t = 2 * w->rt.rank; t < 2 * w->rt.rank + 2; t++)
        for (int64_t k = 0; k < ROWS / 2; k++)
            ((float *)p.tiles[t].memory)[k * p.tiles[t].ld] = (float)(row_cut[t] + k);
    sl_exchange_send(&w->rt, to_root, &p, 0, 0);
    for (int part = 0; part < to_root->receives; part++) {
        struct sl_tile *tile;
        const struct sl_stage stage =
            sl_exchange_stage(&w->rt, to_root, &p, 0, 0, part, part + 1, &tile);
        sl_stage_ask(&w->rt, &stage, 0, NULL);
        sl_exchange_unpack(&w->rt, to_root, part, tile, true, &p, 0);
        sl_stage_drop(&w->rt, &stage);
    }
    const int before = (w->rt.rank + w->rt.ranks - 1) % w->rt.ranks;
    for (int t = 2 * w->rt.rank; t < 2 * w->rt.rank + 2; t++) {
        const float *got = sl_tile_acquire(&w->rt, &p.tiles[t], false);
        const int64_t leaf = row_cut[t] + (int64_t)(before - w->rt.rank) * ROWS;
        for (int64_t k = 0; k < ROWS / 2; k++)
            good = good && got[k * p.tiles[t].ld] == (float)(row_cut[t] + leaf + 2 * k);
        sl_tile_release(&p.tiles[t]);
    }
    sl_matrix_destroy(&p);
    return good;
}

/* No message is over 1 GiB: rows that are said to be wide are cut up. */
static void check_limit(struct world *w)
{
    int64_t row_cut[2 * SL_SIMULATED_RANKS + 1], failed;
    struct sl_vertex_cut exact, late;
    const bool made = !create_ring(w, 0, row_cut, &exact) && !create_ring(w, 2, row_cut, &late);
    const bool good =
        made && is_cut_up(&exact.all.to_root, ROWS) && is_cut_up(&exact.all.to_leaves, ROWS) &&
        is_cut_up(&late.bin[0].to_root, ROWS / 2) && is_cut_up(&late.bin[1].to_leaves, ROWS / 2);
    failed = !good;
    sl_runtime_sum(&w->rt, &failed, 1);
    failed = failed || !adds_up(w, &exact.all.to_root, row_cut);
    w->cases++;
    w->failures += failed != 0;
    if (failed)
        printf("rank %d: messages are not cut up at 1 GiB\n", w->rt.rank);
    sl_vertex_cut_destroy(&exact);
    sl_vertex_cut_destroy(&late);
}

int main(void)
{
    static const char *const fixtures[] = {"undirected", "directed-weighted", "isolated",
                                           "directed-weighted-self-loops"};
    static const char *const unweighted[] = {"undirected", "isolated"};
    static const char *const delays[] = {"cd-0", "cd-1", "cd-2", "cd-5", "0c"};
    static const char *const sums[] = {"scaled", "unscaled"};
    static struct world w;
    if (sl_runtime_start(&w.rt, &(struct sl_runtime_options){.scheduler = "lws", .workers = 1}) ||
        w.rt.ranks > SL_SIMULATED_RANKS) {
        printf("%s\n", sl_error_message());
        return 2;
    }
    w.rt.stages = 2;
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++)
        for (size_t d = 0; d < sizeof delays / sizeof *delays; d++)
            for (size_t s = 0; s < (d ? 2 : 1); s++)
                compare(&w, fixtures[f], &models[(f + d + s) % MODELS], delays[d], sums[s], false,
                        (f + d) % 2 == 0);
    for (size_t d = 1; d < sizeof delays / sizeof *delays; d++) /* edges without weights */
        for (size_t f = 0; f < 2; f++)
            compare(&w, unweighted[f], &models[MEAN], delays[d], "scaled", true, (f + d) % 2 == 0);
    if (w.rt.ranks > 1) /* a ring */
        check_limit(&w);
    if (w.rt.rank == 0)
        printf("%d cases on %d ranks, %d failures\n", w.cases, w.rt.ranks, w.failures);
    const int failures = w.failures;
    sl_runtime_stop(&w.rt);
    return failures != 0;
}
