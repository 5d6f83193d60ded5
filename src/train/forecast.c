#include "train/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/submit.h"
#include "core/error.h"
#include "graphs/layer.h"
#include "graphs/product.h"

/* ---- What groups meet ---- */

/* What the ranks of a group (r, l) have to do with in a product with S, or its transpose. */
struct meeting {
    int64_t need_rows, need_tiles; /* of other groups' H */
    int64_t sum_rows, sum_tiles;   /* parts of its own rows' sums, of other layers */
    int64_t nnz, tiles, row_tiles; /* of tiles that meet its H; rows with such */
    int64_t kept;                  /* bytes of these */
};

/* Where on the grid the owner of a whole row tile is. */
struct place {
    int rank, row, column, layer;
};

struct forecasting {
    const struct sl_network *net;
    const struct sl_distribution *d;
    const struct sl_tile_counts *counts;
    const struct sl_rates *rates;
    struct sl_grid grid;
    int groups;
    struct place *at;         // (tiles)
    struct meeting *met[2];   // (groups) each: of S and of its transpose
    int64_t *sparse_bytes[2]; // (ranks) each: of the tiles that a rank owns
    int64_t *sparse_tiles[2]; // (ranks)
    int *seen;                // (tiles): the last panel that met column k, plus one
    int *touched;             // (layers): the last row that layer l has part of, plus one
};

static int64_t rows_of(const struct forecasting *f, int i)
{
    return f->d->row_cut[i + 1] - f->d->row_cut[i];
}

static int64_t width_of(const int64_t *cut, int j)
{
    return cut[j + 1] - cut[j];
}

static int group_of(const struct forecasting *f, int rank)
{
    return rank / f->grid.columns;
}

/* The packed bytes of one more piece of row tile i, or of entries of a piece (core/sparse.h). */
static int64_t piece_bytes(const struct forecasting *f, int i)
{
    return (rows_of(f, i) + 1) * (int64_t)sizeof(uint32_t) + 64;
}

static int64_t entry_bytes(const struct forecasting *f, int k)
{
    enum { NARROW = 65536 };
    return (rows_of(f, k) <= NARROW ? 2 : 4) + (f->counts->has_values ? 4 : 0);
}

/* Row tile i with entries in column tile k. */
static void meet(struct forecasting *f, int t, int i, int k, int64_t nnz, bool new_piece)
{
    const int row = f->at[i].row, layer = f->at[k].layer;
    const int group = row * f->grid.layers + layer;
    struct meeting *m = &f->met[t][group];
    const int64_t bytes = nnz * entry_bytes(f, k) + (new_piece ? piece_bytes(f, i) : 0);
    const int holder = group * f->grid.columns + f->at[k].column;
    m->nnz += nnz;
    m->tiles++;
    m->kept += bytes;
    f->sparse_bytes[t][holder] += bytes;
    f->sparse_tiles[t][holder] += new_piece;
    if (f->touched[layer] != i + 1) {
        f->touched[layer] = i + 1;
        m->row_tiles++;
        if (layer != f->at[i].layer) {
            struct meeting *own = &f->met[t][group_of(f, f->at[i].rank)];
            own->sum_rows += rows_of(f, i);
            own->sum_tiles++;
        }
    }
    if (f->at[k].row != row && f->seen[k] != row + 1) {
        f->seen[k] = row + 1;
        m->need_rows += rows_of(f, k);
        m->need_tiles++;
    }
}

/* Tiles of one rank are one where they are in the rows of its own panel (sl_grid_span). */
static void meet_row(struct forecasting *f, int t, int i)
{
    const int64_t *nnz_of = t && f->counts->back ? f->counts->back : f->counts->nnz;
    const bool flipped = t && !f->counts->back;
    const int64_t tiles = f->counts->tiles, first = flipped ? i : i * tiles;
    const int64_t step = flipped ? tiles : 1;
    int piece = -1; /* the rank whose tiles are one at present */
    for (int k = 0; k < tiles; k++) {
        const int64_t nnz = nnz_of[first + k * step];
        const bool joins = f->at[k].row == f->at[i].row && !f->d->tiles_alone;
        if (k == i)
            piece = -1;
        if (!nnz)
            continue;
        meet(f, t, i, k, nnz, !joins || piece != f->at[k].rank);
        piece = joins ? f->at[k].rank : -1;
    }
}

/* What a halo has in the place of whole tiles of others. */
static void take_halo(struct forecasting *f, int t)
{
    const struct sl_halo *halo = &f->d->halo[t];
    for (int r = 0; r < f->d->ranks; r++) {
        struct meeting *m = &f->met[t][r];
        const int64_t most = m->row_tiles * (1 + halo->messages[r]);
        m->need_rows = halo->received[r];
        m->need_tiles = halo->messages[r];
        m->tiles = m->tiles < most ? m->tiles : most;
    }
}

static struct place place_of(const struct forecasting *f, int rank)
{
    return (struct place){rank, sl_grid_row(&f->grid, rank), sl_grid_column(&f->grid, rank),
                          sl_grid_layer(&f->grid, rank)};
}

static int meet_all(struct forecasting *f)
{
    const int ranks = f->d->ranks, tiles = f->counts->tiles, kinds = f->counts->symmetric ? 1 : 2;
    f->at = malloc((size_t)tiles * sizeof *f->at);
    f->seen = malloc((size_t)tiles * sizeof *f->seen);
    f->touched = malloc((size_t)f->grid.layers * sizeof *f->touched);
    bool room = f->at && f->seen && f->touched;
    for (int t = 0; t < kinds; t++) {
        f->met[t] = calloc((size_t)f->groups, sizeof *f->met[t]);
        f->sparse_bytes[t] = calloc((size_t)ranks, sizeof(int64_t));
        f->sparse_tiles[t] = calloc((size_t)ranks, sizeof(int64_t));
        room = room && f->met[t] && f->sparse_bytes[t] && f->sparse_tiles[t];
    }
    if (!room)
        return sl_error(SL_ERR_SYSTEM, "no memory for the forecast of %d ranks", ranks);
    for (int i = 0; i < tiles; i++)
        f->at[i] = place_of(f, sl_grid_whole_owner(f->d, i));
    for (int t = 0; t < kinds; t++) {
        memset(f->seen, 0, (size_t)tiles * sizeof *f->seen);
        memset(f->touched, 0, (size_t)f->grid.layers * sizeof *f->touched);
        for (int i = 0; i < tiles; i++)
            meet_row(f, t, i);
        if (f->d->halo)
            take_halo(f, t);
    }
    return 0;
}

/* ---- Traffic ---- */

static void add_rows(struct sl_rank_forecast *rank, int64_t bytes, int64_t messages)
{
    rank->rows += bytes;
    rank->received += bytes;
    rank->messages += messages;
}

static void add_sums(struct sl_rank_forecast *rank, int64_t bytes, int64_t messages)
{
    rank->sums += bytes;
    rank->received += bytes;
    rank->messages += messages;
}

static void add_rest(struct sl_rank_forecast *rank, int64_t bytes, int64_t messages)
{
    rank->received += bytes;
    rank->messages += messages;
}

/* The tiles of the adjacency that the others of the group own. */
static void add_adjacency(const struct forecasting *f, int t, int r, struct sl_rank_forecast *rank)
{
    const int first = r - sl_grid_column(&f->grid, r);
    for (int other = first; other < first + f->grid.columns; other++)
        if (other != r) {
            rank->adjacency += f->sparse_bytes[t][other];
            add_rest(rank, f->sparse_bytes[t][other], f->sparse_tiles[t][other]);
        }
}

/* Up, then down: exact sums come as such, late ones as rows. */
static void add_copies(const struct forecasting *f, int64_t row, int outputs, int r,
                       struct sl_rank_forecast *rank)
{
    const struct sl_vertex_cut *cut = f->d->cut;
    const double share = sl_vertex_cut_share(cut);
    const int64_t up = llround(share * (double)(cut->up[r] * row)),
                  down = llround(share * (double)(cut->down[r] * row)),
                  up_messages = llround(share * (double)(outputs * cut->up_messages[r])),
                  down_messages = llround(share * (double)(outputs * cut->down_messages[r]));
    if (cut->delay == SL_DELAY_EXACT)
        add_sums(rank, up, up_messages);
    else
        add_rows(rank, up, up_messages);
    add_rows(rank, down, down_messages);
}

static void add_aggregations(const struct forecasting *f, const struct sl_layer *layer, int r,
                             struct sl_rank_forecast *rank)
{
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int count = sl_layer_aggregations(f->net, layer, list);
    for (int a = 0; a < count; a++) {
        const int t = list[a].transposed && !f->counts->symmetric;
        const struct meeting *m = &f->met[t][group_of(f, r)];
        const int64_t width = width_of(list[a].cut, sl_grid_column(&f->grid, r));
        const struct sl_reducer *reducer = list[a].reducer;
        const int64_t moved = reducer->moved * width * (int64_t)sl_type_size(list[a].type),
                      states = width * sl_reducer_bytes(reducer, list[a].type);
        add_rows(rank, m->need_rows * moved, reducer->moved * m->need_tiles);
        add_sums(rank, m->sum_rows * states, reducer->outputs * m->sum_tiles);
        if (f->d->cut && f->d->ranks > 1 && list[a].transposed) /* gradients alone */
            add_copies(f, width * (int64_t)sizeof(float), 1, r, rank);
        else if (f->d->cut && f->d->ranks > 1)
            add_copies(f, states, reducer->outputs, r, rank);
        if (f->d->drops_adjacency)
            add_adjacency(f, t, r, rank);
    }
}

/* Of the products with a weight. */
static void add_product(const struct forecasting *f, const struct sl_layer *layer, int weight,
                        int r, struct sl_rank_forecast *rank)
{
    const struct sl_tile_run run = sl_grid_group(f->d, r);
    const int64_t n = f->d->row_cut[run.to] - f->d->row_cut[run.from];
    const int64_t others = f->grid.columns - 1, messages = others * (run.to - run.from);
    const int64_t size = (int64_t)sl_type_size(f->net->type);
    const int c = sl_grid_column(&f->grid, r);
    const int64_t in = width_of(layer->in_cut, c), out = width_of(layer->out_cut, c);
    if (sl_product_sends_input(f->net, layer, weight))
        add_rows(rank, n * (layer->in - in) * size, messages);
    else
        add_sums(rank, others * n * out * 4, messages);
    if (sl_product_sends_gradient(f->net, layer, weight)) {
        add_rows(rank, n * (layer->out - out) * 4, messages);
    } else {
        add_rows(rank, n * (layer->in - in) * size, messages);
        if (layer->index > 0)
            add_sums(rank, others * n * in * 4, messages);
    }
}

/* The logits, whole and cut again. */
static void add_logits(const struct forecasting *f, int r, struct sl_rank_forecast *rank)
{
    const struct sl_layer *last = &f->net->layer[f->net->layers - 1];
    const struct sl_tile_run run = sl_grid_group(f->d, r);
    const int64_t own = width_of(last->out_cut, sl_grid_column(&f->grid, r));
    for (int i = run.from; i < run.to; i++)
        if (f->at[i].rank == r)
            add_rest(rank, rows_of(f, i) * (last->out - own) * 4, f->grid.columns - 1);
        else
            add_rest(rank, rows_of(f, i) * own * 4, 1);
}

/* The tree of sl_reduce: what the owners of row tiles receive, where those of a group are one. */
static void add_tree(const struct forecasting *f, int group, int64_t bytes, int64_t messages,
                     struct sl_rank_forecast *rank)
{
    const int tiles = f->counts->tiles;
    for (int step = 1; step < tiles; step *= 2)
        for (int i = 0; i + step < tiles; i += 2 * step)
            if (f->at[i].rank / group != f->at[i + step].rank / group)
                add_rest(&rank[f->at[i].rank / group * group], bytes, messages);
}

/* Blocks of the parameters' gradients, of which a column has each group's, and what rank 0 gets. */
static void add_gradients(const struct forecasting *f, const struct sl_layer *layer,
                          struct sl_rank_forecast *rank)
{
    const int columns = f->grid.columns, blocks = sl_product_blocks(f->net, layer);
    const int64_t all = layer->parameters.rows * layer->out * 4;
    for (int c = 0; c < columns; c++) {
        const int64_t in = width_of(layer->in_cut, c), out = width_of(layer->out_cut, c);
        int64_t own = layer->bias * out * 4;
        for (int w = 0; w < layer->kind->weights; w++)
            own +=
                (sl_product_sends_gradient(f->net, layer, w) ? in * layer->out : layer->in * out) *
                4;
        add_tree(f, columns, own, blocks, rank + c);
        if (f->at[0].rank / columns * columns + c > 0)
            add_rest(&rank[0], own, blocks);
    }
    for (int r = 1; r < f->d->ranks; r++)
        add_rest(&rank[r], all, 1);
}

/* Their sums, and then what all ranks are told of them. */
static void add_metrics(const struct forecasting *f, struct sl_rank_forecast *rank)
{
    const int64_t bytes = SL_METRICS * (int64_t)sizeof(double);
    add_tree(f, 1, bytes, 1, rank);
    if (f->at[0].rank > 0)
        add_rest(&rank[0], bytes, 1);
    for (int r = 1; r < f->d->ranks; r++)
        add_rest(&rank[r], bytes, 1);
}

static void add_traffic(const struct forecasting *f, struct sl_rank_forecast *rank)
{
    for (int r = 0; r < f->d->ranks; r++) {
        for (int l = 0; l < f->net->layers; l++) {
            add_aggregations(f, &f->net->layer[l], r, &rank[r]);
            if (f->grid.columns > 1)
                for (int w = 0; w < f->net->layer[l].kind->weights; w++)
                    add_product(f, &f->net->layer[l], w, r, &rank[r]);
        }
        if (f->grid.columns > 1)
            add_logits(f, r, &rank[r]);
    }
    add_metrics(f, rank);
    for (int l = 0; l < f->net->layers; l++)
        add_gradients(f, &f->net->layer[l], rank);
}

/* ---- Time ---- */

/* One of each row in each stage, of which a rank has two, but no more than there are tiles. */
static double aggregation_tasks(const struct forecasting *f, const struct meeting *m)
{
    const double runs = 2.0 * f->grid.rows, tiles = (double)m->tiles;
    return fmax(fmin(tiles, (double)m->row_tiles * runs), tiles / SL_SPMM_PARTS);
}

/* Rows of H that meet those of rank r. */
static double table_rows(const struct forecasting *f, int t, int r)
{
    const struct sl_tile_run own = sl_grid_group(f->d, r);
    const double rows = (double)(f->d->row_cut[own.to] - f->d->row_cut[own.from]);
    return f->d->cut    ? rows
           : f->d->halo ? rows + (double)f->d->halo[t].received[r]
                        : (double)f->net->adjacency->rows / f->grid.layers;
}

/* Rows that are packed, and those that are unpacked. */
static double moved_rows(const struct forecasting *f, int t, int r)
{
    const struct sl_vertex_cut *cut = f->d->cut;
    if (cut)
        return 2.0 * sl_vertex_cut_share(cut) * (double)(cut->up[r] + cut->down[r]);
    return f->d->halo ? (double)f->d->halo[t].sent[r] : 0.0;
}

static double aggregation_seconds(const struct forecasting *f, const struct sl_layer *layer, int r)
{
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int count = sl_layer_aggregations(f->net, layer, list);
    const struct sl_tile_run own = sl_grid_group(f->d, r);
    double seconds = 0.0;
    for (int a = 0; a < count; a++) {
        const int t = list[a].transposed && !f->counts->symmetric;
        const struct meeting *m = &f->met[t][group_of(f, r)];
        const double row = (double)width_of(list[a].cut, sl_grid_column(&f->grid, r)) *
                           (double)sl_type_size(list[a].type) * list[a].reducer->moved;
        const double rows = (double)(f->d->row_cut[own.to] - f->d->row_cut[own.from]);
        const double moved = moved_rows(f, t, r),
                     clones = f->d->cut && !list[a].transposed ? list[a].reducer->outputs : 1.0;
        seconds += sl_rates_spmm_seconds(f->rates, (double)m->nnz, rows, row, table_rows(f, t, r)) +
                   aggregation_tasks(f, m) * f->rates->task / f->rates->cores +
                   clones * sl_rates_gather_seconds(f->rates, moved, row, moved * row);
    }
    return seconds;
}

/* Products with weights, and passes over what the layer hands on. */
static double product_seconds(const struct forecasting *f, const struct sl_layer *layer, int r)
{
    enum { PASSES = 6, PRODUCTS = 3 };
    const struct sl_tile_run run = sl_grid_group(f->d, r);
    const double n = (double)(f->d->row_cut[run.to] - f->d->row_cut[run.from]);
    const double columns = f->grid.columns, out = (double)layer->out;
    const double share = n / (double)f->net->adjacency->rows / columns;
    const int weights = layer->kind->weights;
    const double tasks = (double)(run.to - run.from) * columns * PRODUCTS * weights + PASSES;
    double seconds = tasks * f->rates->task / f->rates->cores +
                     PASSES * n * out / columns * 4.0 / f->rates->stream;
    for (int w = 0; w < weights; w++) {
        const struct sl_input *input = sl_network_input(f->net, layer, w);
        if (layer->index == 0 && input->sparse && layer->order != SL_SPMM_FIRST)
            seconds += 2.0 * sl_rates_features_seconds(f->rates, share * (double)input->csr.nnz,
                                                       out, 1.0 - layer->dropout);
        else
            seconds += (layer->index ? 3.0 : 2.0) * 2.0 * n * (double)layer->in * out / columns /
                       f->rates->gemm;
    }
    return seconds;
}

/* Gradients go to rank 0 along one tree, parameters come back along another. */
static double tree_seconds(const struct forecasting *f, const struct sl_link *link)
{
    double seconds = 0.0;
    for (int l = 0; l < f->net->layers; l++) {
        const struct sl_layer *layer = &f->net->layer[l];
        const double bytes = 4.0 * (double)(layer->parameters.rows * layer->out);
        seconds += 2.0 * ceil(log2(f->d->ranks)) * (link->seconds + bytes / link->bytes_per_second);
    }
    return seconds;
}

static void add_times(const struct forecasting *f, struct sl_forecast *out)
{
    const struct sl_link link = sl_rates_link(f->rates, f->d->ranks);
    const double trees = tree_seconds(f, &link);
    for (int r = 0; r < f->d->ranks; r++) {
        struct sl_rank_forecast *rank = &out->rank[r];
        for (int l = 0; l < f->net->layers; l++)
            rank->compute += aggregation_seconds(f, &f->net->layer[l], r) +
                             product_seconds(f, &f->net->layer[l], r);
        rank->communication = (double)rank->messages * link.seconds +
                              (double)rank->received / link.bytes_per_second + trees;
        out->seconds = fmax(out->seconds, rank->compute + rank->communication);
    }
}

/* ---- One distribution ---- */

static void take_most(struct sl_rank_forecast *most, const struct sl_rank_forecast *rank)
{
#define SL_TAKE(figure) most->figure = most->figure > rank->figure ? most->figure : rank->figure
    SL_TAKE(rows);
    SL_TAKE(sums);
    SL_TAKE(adjacency);
    SL_TAKE(received);
    SL_TAKE(messages);
    SL_TAKE(compute);
    SL_TAKE(communication);
#undef SL_TAKE
}

static void add_mean(struct sl_forecast *out, int ranks)
{
    struct sl_rank_forecast *mean = &out->mean;
    for (int r = 0; r < ranks; r++) {
        const struct sl_rank_forecast *rank = &out->rank[r];
        take_most(&out->most, rank);
        mean->rows += rank->rows;
        mean->sums += rank->sums;
        mean->adjacency += rank->adjacency;
        mean->received += rank->received;
        mean->messages += rank->messages;
        mean->compute += rank->compute / ranks;
        mean->communication += rank->communication / ranks;
    }
    mean->rows /= ranks, mean->sums /= ranks, mean->adjacency /= ranks;
    mean->received /= ranks, mean->messages /= ranks;
}

/* All columns of a group keep its tiles, or have them in turns. */
static int64_t adjacency_bytes(const struct forecasting *f, int stages)
{
    const struct sl_runtime rt = {.ranks = f->d->ranks, .stages = stages};
    const int turns = f->d->drops_adjacency ? f->d->kind->visits(&rt, f->d) : 1;
    int64_t most = 0;
    for (int r = 0; r < f->d->ranks; r++) {
        int64_t bytes = 0;
        for (int t = 0; t < 2 && f->met[t]; t++) {
            const int64_t own = f->sparse_bytes[t][r];
            bytes += own + (f->met[t][group_of(f, r)].kept - own) / turns;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

int sl_forecast_network(const struct sl_network *net, const struct sl_distribution *d,
                        const struct sl_tile_counts *counts, const struct sl_rates *rates,
                        struct sl_forecast *out)
{
    struct forecasting f = {
        .net = net,
        .d = d,
        .counts = counts,
        .rates = rates,
        .grid = d->grid,
        .groups = d->ranks / d->grid.columns,
    };
    *out = (struct sl_forecast){.grid = d->grid,
                                .halo = d->halo != NULL,
                                .vertex_cut = d->cut != NULL,
                                .delay = d->cut ? d->cut->delay : SL_DELAY_EXACT};
    out->rank = calloc((size_t)d->ranks, sizeof *out->rank);
    int code = meet_all(&f);
    if (!code && !out->rank)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the forecast of %d ranks", d->ranks);
    if (!code) {
        add_traffic(&f, out->rank);
        add_times(&f, out);
        add_mean(out, d->ranks);
        out->adjacency_bytes = adjacency_bytes(&f, net->rt->stages);
    }
    for (int t = 0; t < 2; t++) {
        free(f.met[t]);
        free(f.sparse_bytes[t]);
        free(f.sparse_tiles[t]);
    }
    free(f.at);
    free(f.seen);
    free(f.touched);
    return code;
}

const char *sl_forecast_name(const struct sl_forecast *forecast, char text[32])
{
    if (!forecast->vertex_cut)
        return forecast->halo ? "halo" : sl_grid_name(&forecast->grid, text);
    if (forecast->delay == SL_DELAY_EXACT)
        return "vertex-cut";
    if (forecast->delay == SL_DELAY_NEVER)
        return "vertex-cut 0c";
    snprintf(text, 32, "vertex-cut cd-%d", forecast->delay);
    return text;
}

bool sl_forecast_exact(const struct sl_forecast *forecast)
{
    return forecast->delay == SL_DELAY_EXACT;
}

void sl_forecast_free(struct sl_forecast *forecast)
{
    free(forecast->rank);
    *forecast = (struct sl_forecast){0};
}
