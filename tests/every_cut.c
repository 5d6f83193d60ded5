/* Train on cuts of vertices (halo, cover) and of edges (vertex-cut, cd-0) of several kinds, in one
 * process for each rank. Losses, gradients, parameters and the predictions of all clones equal the
 * results of one rank, to rounding (tests/trained.h). The bytes that travel follow from the edges.
 * tests/every-cut.sh runs this program on several numbers of ranks; `every_cut NAME` takes one case
 * alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "data/partition/parts.h"
#include "tests/every_cut.h"
#include "tests/own.h"

static const struct test_case cases[] = {
    {.every = {.name = "GCN, directed, weighted",
               .fixture = {SL_EVERY_DENSE(61, 5, 3), SL_EVERY_WEIGHTED, .seed = 31},
               .options = "--product-order gemm --dropout 0.25"},
     .order = GEMM},
    {.every = {.name = "GraphSAGE, gcn",
               .fixture = {SL_EVERY_SPARSE(67, 7, 4, 4), .seed = 32},
               .options = "--product-order spmm --model sage --aggregator gcn --dropout 0.25"},
     .order = SPMM},
    {.every = {.name = "GraphSAGE, mean, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 33},
               .options = "--product-order gemm --model sage --aggregator mean --dropout 0.25",
               .apart = true},
     .order = GEMM},
    {.every = {.name = "GraphSAGE, mean of kept features",
               .fixture = {.vertices = 53,
                           .features = 13,
                           .classes = 5,
                           .degree = 4,
                           .directed = true,
                           .form = SL_FEATURES_DENSE,
                           .seed = 34},
               .options = "--product-order gemm --model sage --aggregator mean --dropout 0"},
     .order = KEPT},
    {.every = {.name = "GraphSAGE, sum, loops",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 2), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 35},
               .options = "--product-order spmm --model sage --aggregator sum --dropout 0.25 --lr "
                          "0.01 --no-overlap"},
     .order = SPMM},
    {.every = {.name = "GraphSAGE, max, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 36},
               .options =
                   "--product-order spmm --model sage --aggregator max --dropout 0.25 --lr 0.1"},
     .order = SPMM,
     .largest = true},
    {.every = {.name = "GraphSAGE, max, one stage at a time",
               .fixture = {SL_EVERY_SPARSE(61, 7, 5, 0), .seed = 37},
               .options = "--product-order spmm --model sage --aggregator max --dropout 0 --lr 0.1 "
                          "--no-overlap"},
     .order = SPMM,
     .largest = true},
    {.every = {.name = "GraphSAGE, a reducer of a program, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 58},
               .options = "--product-order spmm --model sage --aggregator own-power --dropout 0.25 "
                          "--lr 0.03",
               .apart = true},
     .order = SPMM,
     .largest = true,
     .operands = true},
    {.every = {.name = "graph attention, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 38},
               .options = "--model gat --heads 3 --hidden 5 --out-heads 2 --dropout 0.25 "
                          "--attention-dropout 0.4"},
     .order = GEMM,
     .heads = 3,
     .hidden = 5,
     .out_heads = 2},
    {.every = {.name = "graph attention, one stage at a time",
               .fixture = {SL_EVERY_SPARSE(61, 7, 5, 2), .seed = 39},
               .options = "--model gat --heads 2 --hidden 4 --out-heads 3 --dropout 0 "
                          "--attention-dropout 0.25 --no-bias --no-overlap"},
     .order = GEMM,
     .heads = 2,
     .hidden = 4,
     .out_heads = 3},
    {.every = {.name = "graph attention, edge features",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), .directed = true, .edge_features = 3,
                           .self_loops = true, .seed = 85},
               .options = "--model gat --heads 3 --hidden 5 --out-heads 2 --dropout 0.25 "
                          "--attention-dropout 0.4"},
     .order = GEMM,
     .heads = 3,
     .hidden = 5,
     .out_heads = 2},
    {.every = {.name = "attention of GATv2, edge features",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), .directed = true, .edge_features = 3,
                           .self_loops = true, .seed = 89},
               .options = "--model gatv2 --heads 3 --hidden 5 --classifier linear --dropout 0.25 "
                          "--attention-dropout 0.4"},
     .order = GEMM,
     .operands = true,
     .heads = 3,
     .hidden = 5,
     .classifier = true,
     .sources = 1},
    {.every = {.name = "attention of transformers, edge features",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), .directed = true, .edge_features = 3,
                           .self_loops = true, .seed = 90},
               .options = "--model transformer --heads 3 --hidden 5 --classifier linear --dropout "
                          "0.25 --attention-dropout 0.4"},
     .order = GEMM,
     .operands = true,
     .heads = 3,
     .hidden = 5,
     .classifier = true,
     .sources = 2},
    {.every = {.name = "sums of edges",
               .fixture = {SL_EVERY_DENSE(61, 4, 3), .edge_features = 2, .self_loops = true,
                           .seed = 86},
               .options = "--model gine --encoder none --dropout 0.25 --lr 1e-3",
               .apart = true},
     .order = EDGES,
     .operands = true},
    {.every = {.name = "relations",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), .directed = true, .relations = 5,
                           .self_loops = true, .seed = 91},
               .options = "--model rgcn --dropout 0.25 --lr 0.1",
               .apart = true},
     .order = ENDS,
     .operands = true},
    {.every = {.name = "relations beside features of edges, sparse, one stage at a time",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 0), .edge_features = 2, .relations = 3,
                           .self_loops = true, .seed = 92},
               .options = "--model rgcn --residual identity --dropout 0.25 --no-overlap --lr 0.1"},
     .order = ENDS,
     .operands = true},
    {.every = {.name = "residual blocks, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 40},
               .options = "--model resgcn --product-order gemm --dropout 0.25",
               .apart = true},
     .order = BLOCKS,
     .blocks = 3,
     .late = 0.5},
    {.every = {.name = "residual blocks, made again",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 2), SL_EVERY_WEIGHTED, .seed = 41},
               .options = "--model resgcn --layers 7 --recompute 3 --product-order spmm "
                          "--dropout 0.25"},
     .order = BLOCKS,
     .blocks = 7,
     .recompute = 3},
    {.every = {.name = "residual blocks, normalised columns",
               .fixture = {SL_EVERY_SPARSE(67, 7, 4, 4), .seed = 42},
               .options = "--model resgcn --block-norm batch --product-order spmm --dropout 0.25"},
     .order = BLOCKS,
     .blocks = 3,
     .late = 0.5},
    {.every = {.name = "residual blocks, normalised columns, made again, one stage at a time",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 43},
               .options = "--model resgcn --block-norm batch --layers 5 --recompute 2 "
                          "--product-order gemm --dropout 0.25 --no-overlap",
               .apart = true},
     .order = BLOCKS,
     .blocks = 5,
     .recompute = 2},
    {.every = {.name = "residual blocks, a layer of a program, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 56},
               .options = "--model resgcn --block-norm own-blend --layers 4 --recompute 2 "
                          "--dropout 0.25"},
     .order = BLOCKS,
     .blocks = 4,
     .recompute = 2},
    {.every = {.name = "residual blocks, a layer of a program",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 2), .seed = 57},
               .options = "--model resgcn --block-norm own-blend --dropout 0.25 --product-order "
                          "gemm",
               .apart = true},
     .order = BLOCKS,
     .blocks = 3,
     .late = 0.5},
    {.every = {.name = "linear residual, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 71},
               .options = "--residual linear --product-order spmm --dropout 0.25"},
     .order = SPMM},
    {.every = {.name = "linear residual, aggregated features",
               .fixture = {.vertices = 53,
                           .features = 13,
                           .classes = 5,
                           .degree = 4,
                           .directed = true,
                           .form = SL_FEATURES_DENSE,
                           .seed = 72},
               .options = "--residual linear --product-order gemm --dropout 0"},
     .order = KEPT},
    {.every = {.name = "attention, linear residual, an encoder",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 2), .seed = 77},
               .options = "--model gat --residual linear --classifier linear --encoder linear "
                          "--heads 3 --hidden 5 --dropout 0.25"},
     .order = GEMM,
     .heads = 3,
     .hidden = 5,
     .classifier = true},
    {.every = {.name = "attention of GATv2, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 79},
               .options = "--model gatv2 --heads 3 --hidden 5 --classifier linear --dropout 0.25 "
                          "--attention-dropout 0.4"},
     .order = GEMM,
     .operands = true,
     .heads = 3,
     .hidden = 5,
     .classifier = true,
     .sources = 1},
    {.every = {.name = "attention of transformers, one stage at a time",
               .fixture = {SL_EVERY_SPARSE(61, 7, 5, 2), .seed = 80},
               .options = "--model transformer --heads 2 --hidden 4 --classifier linear --dropout "
                          "0.25 --no-overlap"},
     .order = GEMM,
     .operands = true,
     .heads = 2,
     .hidden = 4,
     .classifier = true,
     .sources = 2},
    {.every = {.name = "elu after an encoder, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 78},
               .options = "--encoder linear --activation elu --product-order gemm --dropout 0.25",
               .apart = true},
     .order = GEMM},
    {.every = {.name = "isomorphism network, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 44},
               .options = "--model gin --product-order spmm --dropout 0.25 --lr 1e-3"},
     .order = SPMM,
     .late = 3.0},
    {.every = {.name = "hops, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 45},
               .options = "--model sgc --hops 3 --dropout 0.25"},
     .order = HOPS,
     .blocks = 3,
     .late = 0.5},
    {.every = {.name = "hops that return",
               .fixture = {SL_EVERY_SPARSE(61, 7, 4, 2), SL_EVERY_WEIGHTED, .self_loops = true,
                           .seed = 46},
               .options = "--model appnp --hops 4 --teleport 0.2 --dropout 0.25 --norm row",
               .apart = true},
     .order = HOPS,
     .blocks = 4,
     .late = 0.5},
    {.every = {.name = "jumping knowledge, directed, weighted",
               .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 47},
               .options = "--model jknet --product-order spmm --dropout 0.25",
               .apart = true},
     .order = SPMM,
     .late = 0.5},
};

/* The bytes of every rank have to be the bytes that the edges imply. */
static void judge(const struct checking *k, const char *what, bool apart, int code,
                  const struct sl_trained *got, int64_t bytes, int64_t implied)
{
    char text[160];
    int64_t other = bytes != implied;
    sl_runtime_sum(k->every->rt, &other, 1);
    snprintf(text, sizeof text,
             ", %lld bytes here, %lld implied, others than implied on %lld ranks", (long long)bytes,
             (long long)implied, (long long)other);
    sl_every_judge(k->every, what, apart, code, got, !other, text);
}

/* ---- Halos ---- */

/* METIS'; few edges inside any; the last one of vertices without any edge, or of one vertex, and,
 * where there are three, one without any vertex. */
enum vertex_parts { METIS, STREWN, APART, VERTEX_KINDS };

static void mark_ends(void *alone, int64_t entry, int64_t row, int64_t col)
{
    (void)entry;
    if (row != col)
        ((bool *)alone)[row] = ((bool *)alone)[col] = false;
}

static int cut_vertices(const struct checking *k, enum vertex_parts kind, int32_t *part)
{
    const int ranks = sl_cut_ranks(k), others = ranks > 2 ? ranks - 2 : 1;
    const int64_t n = k->data->vertices;
    bool *alone = sl_cut_array(n, sizeof *alone);
    for (int64_t v = 0; v < n; v++)
        alone[v] = true;
    sl_cut_each_entry(k, alone, mark_ends);
    alone[7] = k->c->every.fixture.isolated == 0;
    for (int64_t v = 0; v < n; v++)
        part[v] = (int32_t)(kind == STREWN ? v % ranks : alone[v] ? ranks - 1 : v % others);
    free(alone);
    return kind == METIS
               ? sl_source_find_parts(k->every->rt, &k->every->source, ranks, 5, NULL, part)
               : 0;
}

static void check_rows(const struct checking *k, enum vertex_parts kind, bool cover, bool apart)
{
    static const char *const names[] = {"halo, METIS",  "halo, strewn",  "halo, apart",
                                        "cover, METIS", "cover, strewn", "cover, apart"};
    struct sl_source source = k->every->source;
    struct sl_trained got = {.parameters = 0};
    int32_t *part = sl_cut_array(k->data->vertices, sizeof *part);
    source.blocks = NULL;
    int code = cut_vertices(k, kind, part);
    if (!code)
        code = sl_source_order_by_parts(&source, sl_cut_ranks(k), part);
    if (!code)
        code = sl_every_train(k->every, &source,
                              cover ? "--distribution cover" : "--distribution halo", apart, &got);
    const int64_t received = got.traffic.rows_received + got.traffic.sums_received;
    const bool attention =
        cover && k->c->heads && !k->c->sources; /* weights are not words: bytes are of some cover */
    const bool counts = cover && k->c->largest && k->data->symmetric && !k->c->operands;
    judge(k, names[kind + (cover ? VERTEX_KINDS : 0)], apart, code, &got,
          counts ? sl_cut_served(k, &got.traffic) : received,
          counts      ? sl_cut_cover_rows(k, part)
          : attention ? (sl_cut_covers_attention(k, part, &got.traffic) ? received : -1)
          : cover     ? (k->c->operands ? received : sl_cut_cover_bytes(k, part))
                      : sl_cut_halo_bytes(k, part));
    sl_trained_free(&got);
    free(part);
    sl_block_free_all(&source.blocks);
}

/* ---- Vertex-cuts ---- */

/* Libra's; edges here and there; none on the last rank. */
enum edge_parts { LIBRA, SCATTERED, EDGELESS, EDGE_KINDS };

struct cutting {
    enum edge_parts kind;
    int ranks;
    int32_t *part; // (entries)
};

/* An edge is in one part both ways. */
static void cut_entry(void *cutting, int64_t entry, int64_t row, int64_t col)
{
    const struct cutting *c = cutting;
    const int64_t least = row < col ? row : col;
    const int others = c->ranks > 1 ? c->ranks - 1 : 1;
    c->part[entry] =
        (int32_t)(c->kind == EDGELESS ? least % others : (5 * least + row + col) % c->ranks);
}

static void cut_edges(const struct checking *k, enum edge_parts kind, int32_t *part)
{
    struct sl_parts parts;
    const struct sl_parts_options options = {&sl_parts_libra, sl_cut_ranks(k), 0, 1.0};
    const int64_t entries = k->data->adjacency.indptr[k->data->vertices];
    if (sl_parts_make(k->data, &options, &parts))
        sl_fatal("%s", sl_error_message());
    memcpy(part, parts.part, (size_t)entries * sizeof *part);
    if (kind != LIBRA) {
        sl_cut_each_entry(k, &(struct cutting){kind, sl_cut_ranks(k), part}, cut_entry);
        parts.part = part;
        parts.checksum = sl_parts_checksum(part, 0, entries);
        if (k->every->rt->rank == 0 && sl_parts_write(&parts, NULL, k->file))
            sl_fatal("%s", sl_error_message());
    }
    sl_parts_close(&parts);
    sl_runtime_agree(k->every->rt, 0); /* the file is there */
}

/* Of one rank, all bytes are its own. */
static void check_cut(const struct checking *k, enum edge_parts kind, bool apart)
{
    static const char *const names[] = {"vertex-cut, Libra", "vertex-cut, scattered",
                                        "vertex-cut, a rank without edges"};
    struct sl_trained got;
    char how[300];
    const int64_t entries = k->data->adjacency.indptr[k->data->vertices];
    int32_t *part = sl_cut_array(entries, sizeof *part);
    cut_edges(k, kind, part);
    snprintf(how, sizeof how, "--distribution vertex-cut --partition %s",
             kind == LIBRA ? "libra" : k->file);
    const int code = sl_every_train(k->every, &k->every->source, how, apart, &got);
    int64_t bytes = got.traffic.rows_received + got.traffic.sums_received;
    sl_runtime_sum(k->every->rt, &bytes, 1);
    judge(k, names[kind], apart, code, &got, bytes, sl_cut_clone_bytes(k, part));
    sl_trained_free(&got);
    free(part);
}

/* Parts of vertices that edges follow. */
static void check_following(const struct checking *k, const char *partition)
{
    struct sl_trained got;
    char how[100];
    snprintf(how, sizeof how, "--distribution vertex-cut --partition %s", partition);
    const int code = sl_every_train(k->every, &k->every->source, how, false, &got);
    sl_every_judge(k->every, how, false, code, &got, true, "");
    sl_trained_free(&got);
}

/* Numbers are finite, losses are near the exact ones, and clones agree in an evaluation. */
static void check_late(const struct checking *k, const char *delay)
{
    struct sl_trained got;
    char how[100], text[200];
    double off = 0.0;
    snprintf(how, sizeof how, "--distribution vertex-cut --delay %s", delay);
    const int code = sl_every_train(k->every, &k->every->source, how, false, &got);
    bool good = !code;
    if (good && k->every->rt->rank == 0) {
        const double far = sl_trained_difference(&got, &k->every->expected);
        for (int e = 0; e < SL_TRAINED_EPOCHS; e++)
            off = fmax(off, fabs(got.loss[e] / k->every->expected.loss[e] - 1.0));
        good = isfinite(far) && off < k->c->late && got.apart < 1e-4;
    }
    snprintf(text, sizeof text, "losses off by %.2g, clones by %.1e%s%s", off, got.apart,
             code ? "; " : "", code ? sl_error_message() : "");
    sl_every_say(k->every, sl_runtime_least(k->every->rt, good) > 0, how, text);
    sl_trained_free(&got);
}

/* ---- All of it ---- */

static void check_cuts(struct sl_every *every)
{
    struct checking k = {
        .every = every, .c = (const struct test_case *)every->c, .data = &every->data};
    const char *folder = getenv("TMPDIR");
    int64_t number = getpid();
    sl_runtime_broadcast(every->rt, 0, &number, sizeof number);
    snprintf(k.file, sizeof k.file, "%s/cut-%lld.npy", folder ? folder : "/tmp", (long long)number);
    snprintf(k.description, sizeof k.description, "%s/cut-%lld.json", folder ? folder : "/tmp",
             (long long)number);
    for (int apart = 0; apart <= every->c->apart; apart++) {
        for (enum vertex_parts kind = METIS; kind < VERTEX_KINDS; kind++)
            for (int cover = 0; cover < 2; cover++)
                check_rows(&k, kind, cover, apart);
        for (enum edge_parts kind = LIBRA; kind < EDGE_KINDS; kind++)
            check_cut(&k, kind, apart);
    }
    check_following(&k, "metis");
    check_following(&k, "random");
    for (int late = 0; k.c->late > 0.0 && late < 3; late++)
        check_late(&k, (const char *const[]){"0c", "cd-1", "cd-2"}[late]);
    if (every->rt->rank == 0) {
        remove(k.file);
        remove(k.description);
    }
}

int main(int argc, char **argv)
{
    static const struct sl_every_program program = {
        .cases = cases,
        .count = sizeof cases / sizeof *cases,
        .size = sizeof *cases,
        .layers = LAYERS,
        .check = check_cuts,
    };
    sl_test_add_own();
    return sl_every_run(&program, argc, argv);
}
