/* Trains on every grid of the ranks, and as a halo with parts of several kinds, in one process
 * each: losses, gradients, parameters and predictions are those of one rank, to rounding.
 * tests/every-grid.sh runs it on several numbers of ranks; `every_grid NAME` takes one of the cases
 * alone.
 *
 * Differences are relative to the largest number of a tensor. Losses and sums are off by some 1e-7
 * of themselves; a pre-activation that passes relu's kink on one side only adds its own size. Plain
 * steps with momentum keep parameters linear in the gradients, where Adam would divide them by
 * their own size. Another order of terms is 1e-7 to 1e-6, one term that is missing, over 1e-3.
 *
 * Hidden layers, and features and classes of the made graphs, are of prime widths, and so are
 * vertices and tiles: no grid divides them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/message.h"
#include "tests/fixtures.h"
#include "train/trainer.h"

static const double TOLERANCE = 1e-4;

enum { EPOCHS = 2, LAYERS = 4, HIDDEN = 13, MOST_WORDS = 32 };

struct test_case {
    const char *name;
    struct sl_fixture fixture; /* without classes: the real dataset of that name */
    const char *options;
};

static const struct test_case cases[] = {
    {.name = "cora", .options = "--dropout 0.5"},
    {.name = "directed",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 21},
     .options = "--dropout 0.25 --norm row --product-order spmm --broadcast tree"},
    {.name = "directed, one stage at a time",
     .fixture = {.vertices = 59,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 22},
     .options = "--dropout 0 --product-order gemm --no-overlap --no-cache-adjacency"},
    {.name = "sparse",
     .fixture = {.vertices = 67,
                 .features = 19,
                 .classes = 11,
                 .degree = 4,
                 .form = SL_FEATURES_CSR,
                 .seed = 23},
     .options = "--dropout 0.25 --product-order gemm --broadcast direct"},
};

/* What is left of a run, on rank 0. */
struct result {
    double loss[EPOCHS];
    int64_t parameters, logits; /* numbers of each */
    float *gradient;            // (parameters): of the last step, all layers'
    float *parameter;           // (parameters)
    float *logit;               // (logits): after it
};

static void *array(int64_t count)
{
    void *memory = calloc((size_t)count + 1, sizeof(float));
    if (!memory)
        sl_fatal("no memory for %lld numbers", (long long)count);
    return memory;
}

static void result_free(struct result *result)
{
    free(result->gradient);
    free(result->parameter);
    free(result->logit);
}

/* ---- One run ---- */

static void configure(struct sl_config *config, const struct test_case *c, const char *how)
{
    char line[512], *words[MOST_WORDS], *rest = line;
    int count = 0, positionals;
    snprintf(line, sizeof line,
             "--epochs %d --layers %d --hidden %d --tiles 13 --optimizer sgd --lr 0.3 "
             "--weight-decay-all %s %s",
             EPOCHS, LAYERS, HIDDEN, how, c->options);
    for (char *word; count < MOST_WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    if (sl_options_defaults(sl_config_options, config) ||
        sl_options_parse(sl_config_options, config, count, words, &positionals, NULL) ||
        sl_config_check(config))
        sl_fatal("%s: %s", c->name, sl_error_message());
}

/* A tile that is here, into a matrix with rows of `ld` numbers. */
static void copy_tile(struct sl_runtime *rt, struct sl_tile *tile, float *to, int64_t ld)
{
    const float *from = sl_tile_acquire(rt, tile, false);
    const int64_t from_ld = tile->memory ? tile->ld : tile->cols;
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + r * ld, from + r * from_ld, (size_t)tile->cols * sizeof *to);
    sl_tile_release(tile);
}

/* Those of rank 0, which sums gradients and keeps the parameters. */
static void keep_layers(struct result *result, struct sl_network *net)
{
    int64_t at = 0;
    for (int l = 0; l < net->layers; l++)
        result->parameters += net->layer[l].parameters.rows * net->layer[l].out;
    result->gradient = array(result->parameters);
    result->parameter = array(result->parameters);
    for (int l = 0; l < net->layers; l++) {
        struct sl_layer *layer = &net->layer[l];
        struct sl_tile *gradient =
            layer->gradient.rows ? &layer->gradient : sl_matrix_tile(&layer->gradients, 0, 0);
        copy_tile(net->rt, gradient, result->gradient + at, layer->out);
        copy_tile(net->rt, &layer->parameters, result->parameter + at, layer->out);
        at += layer->parameters.rows * layer->out;
    }
}

/* A tile of rank 0, rows where their vertices are. */
static void spread_tile(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_matrix *matrix, int i, int j, float *to)
{
    struct sl_tile *tile = sl_matrix_tile(matrix, i, j);
    float *rows = array(tile->rows * tile->cols);
    copy_tile(rt, tile, rows, tile->cols);
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(to + sl_source_vertex(source, matrix->row_cut[i] + r) * matrix->cols +
                   matrix->col_cut[j],
               rows + r * tile->cols, (size_t)tile->cols * sizeof *to);
    free(rows);
}

/* From all ranks. */
static void keep_logits(struct result *result, struct sl_network *net,
                        const struct sl_source *source)
{
    struct sl_matrix *logits = &net->layer[net->layers - 1].output;
    result->logits = logits->rows * logits->cols;
    result->logit = array(result->logits);
    for (int i = 0; i < logits->tile_rows; i++)
        for (int j = 0; j < logits->tile_cols; j++) {
            struct sl_tile *tile = sl_matrix_tile(logits, i, j);
            sl_tile_send(net->rt, tile, tile->owner, 0);
            if (net->rt->rank == 0)
                spread_tile(net->rt, source, logits, i, j, result->logit);
            sl_tile_drop(net->rt, tile);
        }
}

static int train(struct sl_runtime *rt, const struct test_case *c, const struct sl_source *source,
                 const char *how, struct result *result)
{
    struct sl_config config = {0};
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    *result = (struct result){.parameters = 0};
    configure(&config, c, how);
    rt->stages = sl_config_stages(&config);
    int code = sl_trainer_create(&trainer, rt, source, &config, NULL);
    if (!code)
        code = sl_report_open(&report, NULL, false, true);
    if (!code) {
        code = sl_trainer_run(&trainer, &report, &outcome);
        sl_report_close(&report);
    }
    for (int e = 0; !code && e < EPOCHS; e++)
        result->loss[e] = trainer.records[e + 1].train_loss / (double)trainer.network.train_count;
    if (!code && rt->rank == 0)
        keep_layers(result, &trainer.network);
    if (!code)
        keep_logits(result, &trainer.network, source);
    sl_trainer_destroy(&trainer);
    sl_options_free(sl_config_options, &config);
    return code;
}

/* ---- Comparison ---- */

/* The largest difference, relative to the largest number; of nothing but zeros, or of numbers that
 * are none, infinite. */
static double difference(const float *a, const float *b, int64_t count)
{
    double most = 0.0, size = 0.0;
    for (int64_t k = 0; k < count; k++) {
        const double d = fabs((double)a[k] - (double)b[k]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
        size = fmax(size, fabs((double)b[k]));
    }
    return size > 0.0 ? most / size : INFINITY;
}

static double largest_difference(const struct result *a, const struct result *b)
{
    if (a->parameters != b->parameters || a->logits != b->logits)
        return INFINITY;
    double most = fmax(difference(a->gradient, b->gradient, b->parameters),
                       difference(a->parameter, b->parameter, b->parameters));
    most = fmax(most, difference(a->logit, b->logit, b->logits));
    for (int e = 0; e < EPOCHS; e++) {
        const double d = fabs(a->loss[e] - b->loss[e]) / fabs(b->loss[e]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
    }
    return most;
}

/* ---- All grids ---- */

struct checking {
    struct sl_runtime *rt;
    const struct test_case *c;
    struct sl_source source;
    struct result expected;
    int grids, failures;
};

static int64_t narrowest(const struct sl_source *source)
{
    const int64_t least = source->features < source->classes ? source->features : source->classes;
    return least < HIDDEN ? least : HIDDEN;
}

/* More columns than a matrix has: one rank says so. */
static bool is_refused(struct sl_runtime *rt, int code)
{
    const char *said = sl_error_message();
    int64_t sentences = said[0] != '\0';
    const int64_t wrong =
        code != SL_ERR_USAGE || (sentences && !strstr(said, "expected no fewer than the grid's"));
    sl_runtime_sum(rt, &sentences, 1);
    sl_error(0, "%s", "");
    return sl_runtime_least(rt, -wrong) == 0 && sentences == 1;
}

static void check_grid(struct checking *k, int rows, int columns, int layers)
{
    char grid[40];
    struct result got;
    snprintf(grid, sizeof grid, "--grid %dx%dx%d", rows, columns, layers);
    const bool fits = columns <= narrowest(&k->source);
    const int code = train(k->rt, k->c, &k->source, grid, &got);
    const bool refused = !fits && is_refused(k->rt, code);
    const double far = !code && k->rt->rank == 0 ? largest_difference(&got, &k->expected) : 0.0;
    const bool good = fits ? !code && far <= TOLERANCE : refused;
    k->grids++;
    k->failures += !good;
    if (k->rt->rank == 0 && good && !fits)
        printf("ok    %s, %s: refused\n", k->c->name, grid);
    else if (k->rt->rank == 0 && good)
        printf("ok    %s, %s: %.1e\n", k->c->name, grid, far);
    else if (k->rt->rank == 0)
        printf("FAIL  %s, %s: off by %.2g of the largest number; code %d, %s\n", k->c->name, grid,
               far, code, sl_error_message());
    result_free(&got);
}

static void check_grids(struct checking *k)
{
    const int ranks = k->rt->ranks;
    for (int layers = 1; layers <= ranks; layers++)
        for (int columns = 1; ranks % layers == 0 && columns <= ranks / layers; columns++)
            if (ranks / layers % columns == 0)
                check_grid(k, ranks / layers / columns, columns, layers);
}

/* Parts: METIS'; with few edges inside any; of one vertex, and, where there are three, of none. */
enum parts { METIS, STREWN, SMALL, KINDS };

static int find_parts(struct checking *k, enum parts kind, int32_t *part)
{
    const int ranks = k->rt->ranks, others = ranks > 2 ? ranks - 2 : 1;
    for (int64_t v = 0; v < k->source.vertices; v++)
        part[v] = (int32_t)(kind == STREWN ? v % ranks : v == 7 ? ranks - 1 : v % others);
    return kind == METIS ? sl_source_find_parts(k->rt, &k->source, ranks, 5, NULL, part) : 0;
}

static void check_halo(struct checking *k, enum parts kind)
{
    static const char *const names[] = {"METIS", "strewn", "small"};
    struct sl_source source = k->source;
    struct result got = {.parameters = 0};
    int32_t *part = array(source.vertices);
    source.blocks = NULL;
    int code = find_parts(k, kind, part);
    if (!code)
        code = sl_source_order_by_parts(&source, k->rt->ranks, part);
    if (!code)
        code = train(k->rt, k->c, &source, "--distribution halo", &got);
    const double far = !code && k->rt->rank == 0 ? largest_difference(&got, &k->expected) : 0.0;
    const bool good = !code && far <= TOLERANCE;
    k->grids++;
    k->failures += !good;
    if (k->rt->rank == 0)
        printf("%s  %s, halo, parts %s: %.1e; code %d\n", good ? "ok  " : "FAIL", k->c->name,
               names[kind], far, code);
    result_free(&got);
    free(part);
    sl_block_free_all(&source.blocks);
}

/* Rank 0 trains alone first. */
static void check_source(struct checking *k)
{
    struct sl_runtime alone = *k->rt;
    alone.ranks = 1;
    const int code =
        k->rt->rank == 0 ? train(&alone, k->c, &k->source, "--grid 1x1x1", &k->expected) : 0;
    if (sl_runtime_agree(k->rt, code)) {
        k->failures++;
        if (k->rt->rank == 0)
            printf("FAIL  %s, alone: %s\n", k->c->name, sl_error_message());
    } else {
        check_grids(k);
        for (enum parts kind = METIS; kind < KINDS; kind++)
            check_halo(k, kind);
    }
    result_free(&k->expected);
}

/* A made one is a fixture, the other ones are there where the data is. */
static void check_case(struct checking *k)
{
    struct sl_dataset data;
    char path[4096];
    const bool made = k->c->fixture.classes > 0;
    const char *folder = getenv("SL_SHARED_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", k->c->name);
    if (!made && access(path, R_OK)) {
        if (k->rt->rank == 0)
            printf("skip  %s: not there\n", k->c->name);
        return;
    }
    struct sl_fixture fixture = k->c->fixture;
    fixture.name = k->c->name;
    if (made)
        data = sl_fixture_open(&fixture);
    if (made ? sl_source_of(&data, &k->source) : sl_source_open(k->rt, path, &k->source))
        sl_fatal("%s: %s", k->c->name, sl_error_message());
    check_source(k);
    sl_source_close(&k->source);
    if (made)
        sl_fixture_close(&data);
}

int main(int argc, char **argv)
{
    struct sl_runtime rt;
    int grids = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct checking k = {.rt = &rt, .c = &cases[c]};
        if (argc < 2 || strcmp(argv[1], cases[c].name) == 0)
            check_case(&k);
        grids += k.grids;
        failures += k.failures;
    }
    if (rt.rank == 0)
        printf("%d cases on %d ranks, %d failed\n", grids, rt.ranks, failures);
    int64_t all = failures + (grids == 0);
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all > 0;
}
