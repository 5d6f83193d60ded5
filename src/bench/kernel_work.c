/* Makes operands of kernels and room for their results. */
#include "bench/kernels.h"

#include <math.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/rng.h"

enum { MOST_HEADS = 8 };

/* Return zeroed memory, freed by sl_kernel_work_destroy. Count a failure in `errors`. */
static void *take(struct sl_kernel_work *k, size_t bytes)
{
    void *memory = sl_memory_alloc(bytes);
    k->room.block[k->room.blocks].memory = memory;
    k->room.block[k->room.blocks++].bytes = bytes;
    k->room.errors += !memory;
    return memory;
}

void sl_kernel_work_destroy(struct sl_kernel_work *k)
{
    for (; k->room.blocks > 0; k->room.blocks--)
        sl_memory_free(k->room.block[k->room.blocks - 1].memory,
                       k->room.block[k->room.blocks - 1].bytes);
}

static float *take_floats(struct sl_kernel_work *k, int64_t rows, int64_t ld)
{
    return take(k, (size_t)(rows * ld) * sizeof(float));
}

/* Return a matrix of random numbers from `least` to `most`. */
static float *draw(struct sl_kernel_work *k, int64_t rows, int64_t ld, double least, double most)
{
    float *x = take_floats(k, rows, ld);
    const uint64_t key = sl_rng_key((uint64_t)k->room.blocks, SL_RNG_GENERATE, 0, 0);
    for (int64_t r = 0; x && r < rows; r++)
        for (int64_t j = 0; j < ld; j++)
            x[r * ld + j] =
                (float)(least + (most - least) * sl_rng_uniform(key, (uint32_t)r, (uint32_t)j));
    return x;
}

static struct sl_floats_at draw_at(struct sl_kernel_work *k, int64_t cols)
{
    const int64_t ld = sl_leading(cols, SL_FLOAT32);
    return (struct sl_floats_at){draw(k, k->rows, ld, -1.0, 1.0), ld};
}

static uint16_t *take_halves(struct sl_kernel_work *k, const float *from)
{
    const int64_t count = k->rows * k->ld;
    uint16_t *x = take(k, (size_t)count * sizeof *x);
    for (int64_t i = 0; x && from && i < count; i++)
        x[i] = sl_narrow(from[i]);
    return x;
}

/* Draw a graph. Neighbour d of a row is a random vertex of the d-th of `degree` equal parts of all
 * vertices. So columns ascend, and each vertex is equally likely. */
static struct sl_sparse draw_graph(struct sl_kernel_work *k)
{
    const int64_t n = k->rows, degree = k->entries / n;
    const uint64_t key = sl_rng_key(1, SL_RNG_GENERATE, 0, 1);
    uint32_t *row_ptr = take(k, (size_t)(n + 1) * sizeof *row_ptr),
             *col = take(k, (size_t)(n * degree) * sizeof *col);
    for (int64_t e = 0; row_ptr && col && e < n * degree; e++) {
        const int64_t r = e / degree, first = n * (e % degree) / degree,
                      last = n * (e % degree + 1) / degree;
        const double u = sl_rng_uniform(key, (uint32_t)r, (uint32_t)(e % degree));
        row_ptr[r + 1] = (uint32_t)((r + 1) * degree);
        col[e] = (uint32_t)(first + (int64_t)(u * (double)(last - first)));
    }
    return (struct sl_sparse){
        .rows = n, .cols = n, .block_cols = n, .blocks = 1, .row_ptr = row_ptr, .col = col};
}

static struct sl_sparse transpose(struct sl_kernel_work *k, const struct sl_sparse *a)
{
    const int64_t n = a->rows;
    uint32_t *row_ptr = take(k, (size_t)(n + 2) * sizeof *row_ptr),
             *col = take(k, (size_t)k->entries * sizeof *col);
    struct sl_sparse at = *a;
    at.row_ptr = row_ptr;
    at.col = col;
    if (k->room.errors)
        return at;
    for (int64_t e = 0; e < k->entries; e++)
        row_ptr[sl_sparse_col(a, (uint32_t)e) + 2]++;
    for (int64_t r = 0; r < n; r++)
        row_ptr[r + 2] += row_ptr[r + 1];
    for (int64_t r = 0; r < n; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++)
            col[row_ptr[sl_sparse_col(a, e) + 1]++] = (uint32_t)r;
    return at;
}

/* Draw numbers, order, targets and values of the rows. */
static void draw_scales(struct sl_kernel_work *k)
{
    const int64_t n = k->rows, w = k->width;
    uint32_t *vertex = take(k, (size_t)n * sizeof *vertex),
             *index = take(k, (size_t)n * sizeof *index);
    int32_t *target = take(k, (size_t)(2 * n) * sizeof *target),
            *values = take(k, (size_t)(n * (2 + w)) * sizeof *values);
    const uint64_t key = sl_rng_key(1, SL_RNG_GENERATE, 0, 2);
    k->row.vertex = vertex;
    k->row.index = index;
    k->row.target = target;
    k->row.values = values;
    for (int64_t r = 0; !k->room.errors && r < n; r++) {
        vertex[r] = (uint32_t)sl_rng_bits(key, (uint32_t)r, 0);
        index[r] = sl_rng_permute(key, (uint32_t)n, (uint32_t)r);
        target[2 * r] = (int32_t)(vertex[r] % (uint64_t)w);
        target[2 * r + 1] = values[r * (2 + w) + 1] = 1; /* the row trains */
        for (int64_t j = 0; j < w; j++) {
            const float value = (float)(sl_rng_bits(key, (uint32_t)r, 1 + (uint32_t)j) & 1);
            memcpy(values + r * (2 + w) + 2 + j, &value, sizeof value);
        }
    }
}

/* Clear the room behind the columns of each head of `matrices` matrices side by side. */
static void clear_room(const struct sl_kernel_work *k, int64_t rows, int matrices,
                       const struct sl_floats_at *of)
{
    const struct sl_pair *pair = &k->pair.sums;
    for (int64_t r = 0; of->data && r < rows; r++)
        for (int64_t j = 0; j < matrices * sl_pair_all(pair); j++)
            if (j % pair->attention.width >= pair->width)
                of->data[r * of->ld + j] = 0.0f;
}

static void draw_pair(struct sl_kernel_work *k)
{
    struct sl_pair *pair = &k->pair.sums;
    *pair = (struct sl_pair){
        .attention = k->gat.attention, .width = k->gat.attention.width, .scale = 1.0f};
    pair->attention.width = sl_pair_room(pair->width);
    k->pair.products = *pair;
    k->pair.products.products = true;
    const int64_t ld = sl_leading(sl_pair_all(pair), SL_FLOAT32);
    k->pair.vectors = (struct sl_floats_at){draw(k, SL_PAIR_VECTORS, ld, -0.5, 0.5), ld};
    k->pair.source = draw_at(k, sl_pair_source(&k->pair.products));
    k->pair.target = draw_at(k, sl_pair_target(pair));
    k->pair.gradient = draw_at(k, sl_pair_gradient(pair));
    clear_room(k, SL_PAIR_VECTORS, 1, &k->pair.vectors);
    clear_room(k, k->rows, 2, &k->pair.source);
    clear_room(k, k->rows, 1, &k->pair.target);
    clear_room(k, k->rows, 1, &k->pair.gradient);
}

/* Return a matrix of random multiples of `unit` below 1 in size, plus `more`. */
static struct sl_floats_at draw_units(struct sl_kernel_work *k, int64_t rows, int64_t ld,
                                      float unit, float more)
{
    float *x = draw(k, rows, ld, -1.0, 1.0);
    for (int64_t i = 0; x && i < rows * ld; i++)
        x[i] = unit * truncf(x[i] / unit) + more;
    return (struct sl_floats_at){x, ld};
}

static void draw_gine(struct sl_kernel_work *k)
{
    const float *const edge = draw_units(k, k->entries, SL_KERNEL_FEATURES, 0x1p-3f, 0.0f).data;
    k->gine.a = k->a;
    k->gine.at = k->at;
    k->gine.a.edge = k->gine.at.edge = edge;
    k->gine.a.edge_features = k->gine.at.edge_features = SL_KERNEL_FEATURES;
    k->gine.x = draw_units(k, k->rows, k->ld, 0x1p-6f, 0x1p-7f);
    k->gine.edge = draw_units(k, SL_KERNEL_FEATURES + 1, k->ld, 0x1p-3f, 0.0f);
}

/* Draw relations and factors of entries, and the relations' weights. */
static void draw_relations(struct sl_kernel_work *k)
{
    float *edge = draw(k, k->entries, SL_RELATION_FEATURES, -1.0, 1.0);
    for (int64_t e = 0; edge && e < k->entries; e++) {
        float *relation = edge + e * SL_RELATION_FEATURES + SL_RELATION;
        *relation =
            fminf(truncf((*relation + 1.0f) * SL_KERNEL_RELATIONS / 2), SL_KERNEL_RELATIONS - 1);
    }
    k->relations.a = k->a;
    k->relations.at = k->at;
    k->relations.a.edge = k->relations.at.edge = edge;
    k->relations.a.edge_features = k->relations.at.edge_features = SL_RELATION_FEATURES;
    float *weight = draw(k, SL_KERNEL_RELATIONS * k->width, k->ld, -1.0, 1.0);
    k->relations.of = (struct sl_relations){.relations = SL_KERNEL_RELATIONS,
                                            .in = k->width,
                                            .out = k->width,
                                            .weight = {weight, k->ld}};
}

/* Make a block of the entries of A. */
static struct sl_scored_link *take_links(struct sl_kernel_work *k, const float *value)
{
    struct sl_scored_link *block = take(k, (size_t)(1 + k->entries) * sizeof *block);
    int32_t *work = take(k, (size_t)(k->rows + 1) * sizeof *work);
    if (k->room.errors)
        return block;
    block->source = (int32_t)k->entries;
    for (int64_t r = 0; r < k->rows; r++)
        for (uint32_t e = k->a.row_ptr[r]; e < k->a.row_ptr[r + 1]; e++)
            block[1 + e] = (struct sl_scored_link){.source = (int32_t)r,
                                                   .target = (int32_t)sl_sparse_col(&k->a, e),
                                                   .number = (int32_t)e,
                                                   .value = value[e]};
    sl_link_order(k->rows, block, work);
    return block;
}

static void draw_links(struct sl_kernel_work *k)
{
    const float *value = draw(k, 1, k->entries, -1.0, 1.0);
    k->links.block = take_links(k, value);
    k->results.links = take_links(k, value);
    k->links.dot = (struct sl_link_rows){
        SL_DECODER_DOT, k->width, {(float *)k->h, k->ld}, {(float *)k->g, k->ld}, NULL};
    k->links.distmult = k->links.mlp = k->links.dot;
    k->links.distmult.decoder = SL_DECODER_DISTMULT;
    k->links.mlp.decoder = SL_DECODER_MLP;
    k->links.distmult.w = k->links.mlp.w = k->weight;
}

/* Draw features of the entries of A and of its transpose. */
static void draw_features(struct sl_kernel_work *k)
{
    k->a.edge_features = k->at.edge_features = SL_KERNEL_FEATURES;
    k->a.edge = draw(k, k->entries, SL_KERNEL_FEATURES, -1.0, 1.0);
    k->at.edge = draw(k, k->entries, SL_KERNEL_FEATURES, -1.0, 1.0);
    k->gat.edge =
        (struct sl_floats_at){draw(k, SL_KERNEL_FEATURES, MOST_HEADS, -0.5, 0.5), MOST_HEADS};
}

/* Draw operands with features of entries. Those of the transpose are others. */
static void draw_edges(struct sl_kernel_work *k)
{
    struct sl_sparse *const of[] = {&k->edges.a, &k->edges.at};
    k->edges.sums = k->pair.sums;
    k->edges.products = k->pair.products;
    k->edges.sums.edges = k->edges.products.edges = SL_KERNEL_FEATURES;
    k->edges.a = k->a;
    k->edges.at = k->at;
    for (int i = 0; i < 2; i++) {
        of[i]->edge_features = SL_KERNEL_FEATURES;
        of[i]->edge = draw(k, k->entries, SL_KERNEL_FEATURES, -0.5, 0.5);
    }
    const int64_t rows = sl_pair_vector_rows(&k->edges.sums), ld = k->pair.vectors.ld;
    k->edges.vectors = (struct sl_floats_at){draw(k, rows, ld, -0.5, 0.5), ld};
    k->edges.target = draw_at(k, sl_pair_target(&k->edges.products));
    k->edges.gradient = draw_at(k, sl_pair_gradient(&k->edges.products));
    clear_room(k, rows, 1, &k->edges.vectors);
    clear_room(k, k->rows, 1, &k->edges.target);
    clear_room(k, k->rows, 1, &k->edges.gradient);
}

/* Draw the operands that kernels read. */
static void draw_operands(struct sl_kernel_work *k)
{
    const int64_t n = k->rows, ld = k->ld, heads = k->width % MOST_HEADS ? 1 : MOST_HEADS;
    k->a = draw_graph(k);
    k->at = transpose(k, &k->a);
    k->weighted = k->a;
    k->weighted.value = draw(k, 1, k->entries, 0.5, 1.5);
    k->h = draw(k, n, ld, -1.0, 1.0);
    k->g = draw(k, n, ld, -1.0, 1.0);
    k->half_h = take_halves(k, k->h);
    float *mask = draw(k, n, ld, -1.0, 1.0);
    for (int64_t i = 0; mask && i < n * ld; i++)
        mask[i] = fmaxf(mask[i], 0.0f);
    k->mask = mask;
    k->row.factor = draw(k, 1, n, 0.5, 1.5);
    k->weight = draw(k, 3, ld, 0.5, 1.5);
    k->bias = k->weight + ld;
    k->variance = k->weight + 2 * ld;
    draw_scales(k);
    k->half = sl_dropout_make(0.5, 1);
    k->some = sl_dropout_make(0.3, 1);
    k->gat.attention = (struct sl_attention){
        .heads = (int32_t)heads, .width = k->width / heads, .slope = 0.2f, .training = true};
    k->gat.projected = draw_at(k, sl_attention_projected(&k->gat.attention));
    k->gat.scores = draw_at(k, sl_attention_scores(&k->gat.attention));
    k->gat.gradient = draw_at(k, sl_attention_gradient(&k->gat.attention));
    draw_pair(k);
    draw_gine(k);
    draw_relations(k);
    draw_features(k);
    draw_edges(k);
    draw_links(k);
}

/* Make room for the results. They lie one after another, so that one copy resets all. */
static void draw_results(struct sl_kernel_work *k)
{
    const int64_t n = k->rows, ld = k->ld;
    const int64_t state = sl_leading(sl_attention_state(&k->gat.attention), SL_FLOAT32),
                  projected = sl_attention_projected(&k->gat.attention),
                  all = sl_pair_all(&k->pair.sums),
                  back = sl_leading(projected > 2 * all ? projected : 2 * all, SL_FLOAT32),
                  edge_rows = sl_leading(sl_pair_state(&k->edges.products), SL_FLOAT32);
    const int64_t sums = 4 * sl_padded(ld), edge = (SL_KERNEL_FEATURES + 1) * ld,
                  factors = SL_KERNEL_FEATURES * MOST_HEADS,
                  floats = sums + edge + factors + n * (5 * ld + state + back + edge_rows) +
                           SL_KERNEL_FEATURES * all;
    float *at = draw(k, floats, 1, 0.5, 1.5), *start = draw(k, floats, 1, 0.5, 1.5);
    for (int64_t i = 0; start && i < n * ld; i++)
        start[sums + i] -= 1.0f; /* centre Z on 0: relu changes half of the numbers */
    k->results.weight_back =
        (struct sl_floats_at){take_floats(k, SL_KERNEL_RELATIONS * k->width, ld), ld};
    k->results.start = start;
    k->results.result_bytes = (size_t)floats * sizeof *at;
    k->results.most = floats + SL_KERNEL_RELATIONS * k->width * k->width + k->entries;
    k->results.sums = (double *)(void *)at, at += sums;
    k->results.z = at, at += n * ld;
    k->results.y = at, at += n * ld;
    k->results.v = at, at += n * ld;
    k->results.half_z = (uint16_t *)(void *)at, at += n * ld;
    k->results.argmax = (int32_t *)(void *)at, at += n * ld;
    k->results.state = (struct sl_floats_at){at, state}, at += n * state;
    k->results.back = (struct sl_floats_at){at, back}, at += n * back;
    k->results.edge = (struct sl_floats_at){at, ld}, at += edge;
    k->results.edge_back = (struct sl_floats_at){at, MOST_HEADS}, at += factors;
    k->results.edge_rows = (struct sl_floats_at){at, edge_rows}, at += n * edge_rows;
    k->results.pair_edge_back = (struct sl_floats_at){at, all};
}

void sl_kernel_work_reset(const struct sl_kernel_work *k)
{
    memcpy(k->results.sums, k->results.start, k->results.result_bytes);
    for (int64_t r = 0; r < SL_KERNEL_RELATIONS * k->width; r++)
        k->results.weight_back.data[r * k->results.weight_back.ld] = NAN;
    for (int64_t e = 1; e <= k->entries; e++)
        k->results.links[e].value = NAN;
}

/* Make operands that other kernels compute, with plain loops: the argmax, and a state with its
 * logarithms. */
static void close_operands(struct sl_kernel_work *k)
{
    const int64_t all = k->width, heads = k->gat.attention.heads;
    int32_t *chosen = take(k, (size_t)(k->rows * k->ld) * sizeof *chosen);
    k->gat.closed = draw_at(k, sl_attention_state(&k->gat.attention));
    k->row.chosen = chosen;
    if (k->room.errors)
        return;
    sl_kernel_work_reset(k);
    sl_loop_find("max")(k);
    memcpy(chosen, k->results.argmax, (size_t)(k->rows * k->ld) * sizeof *chosen);
    sl_loop_find("attention")(k);
    memcpy(k->gat.closed.data, k->results.state.data,
           (size_t)(k->rows * k->results.state.ld) * sizeof(float));
    for (int64_t r = 0; r < k->rows; r++)
        for (int64_t h = 0; h < heads; h++) {
            const float *m = k->results.state.data + r * k->results.state.ld + all + h;
            k->gat.scores.data[r * k->gat.scores.ld + heads + h] = m[0] + logf(m[heads]);
        }
}

int sl_kernel_work_create(struct sl_kernel_work *k, int64_t rows, int64_t degree, int64_t width,
                          int64_t ld)
{
    *k = (struct sl_kernel_work){.rows = rows, .entries = rows * degree, .width = width, .ld = ld};
    draw_operands(k);
    draw_results(k);
    close_operands(k);
    return k->room.errors ? SL_ERR_SYSTEM : 0;
}

static double *add_floats(double *to, struct sl_floats_at from, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            *to++ = (double)from.data[r * from.ld + j];
    return to;
}

int64_t sl_kernel_work_results(const struct sl_kernel_work *k, unsigned results, double *to)
{
    double *const begin = to;
    const int64_t n = k->rows, w = k->width;
    float *const matrices[] = {k->results.z, k->results.y, k->results.v};
    for (int m = 0; m < 3; m++)
        if (results & (SL_RESULT_Z << m))
            to = add_floats(to, (struct sl_floats_at){matrices[m], k->ld}, n, w);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = r * k->ld; i < r * k->ld + w; i++) {
            if (results & SL_RESULT_HALF)
                *to++ = (double)sl_widen(k->results.half_z[i]);
            if (results & SL_RESULT_ARGMAX)
                *to++ = k->results.argmax[i];
        }
    for (int64_t i = 0; (results & SL_RESULT_SUMS) && i < 2 * sl_padded(k->ld); i++)
        *to++ = k->results.sums[i];
    if (results & SL_RESULT_STATE)
        to = add_floats(to, k->results.state, n, sl_attention_state(&k->gat.attention));
    if (results & SL_RESULT_BACK)
        to = add_floats(to, k->results.back, n, sl_attention_projected(&k->gat.attention));
    if (results & SL_RESULT_EDGE)
        to = add_floats(to, k->results.edge_back, SL_KERNEL_FEATURES, k->gat.attention.heads);
    if (results & SL_RESULT_PAIR)
        to = add_floats(to, k->results.back, n, 2 * sl_pair_all(&k->pair.sums));
    if (results & SL_RESULT_GINE_EDGE)
        to = add_floats(to, k->results.edge, SL_KERNEL_FEATURES + 1, w);
    if (results & SL_RESULT_EDGES)
        to = add_floats(to, k->results.pair_edge_back, SL_KERNEL_FEATURES,
                        sl_pair_all(&k->pair.sums));
    if (results & SL_RESULT_B)
        to = add_floats(to, k->results.edge_rows, n, sl_pair_state(&k->edges.products));
    if (results & SL_RESULT_A)
        to = add_floats(to, k->results.edge_rows, n, sl_pair_target_back(&k->edges.products));
    if (results & SL_RESULT_WEIGHT)
        to = add_floats(to, k->results.weight_back, SL_KERNEL_RELATIONS * w, w);
    for (int64_t e = 1; (results & SL_RESULT_LINKS) && e <= k->entries; e++)
        *to++ = (double)k->results.links[e].value;
    return to - begin;
}

int64_t sl_kernel_difference(int64_t count, const double *a, const double *b, double tolerance)
{
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++)
        squares += b[i] * b[i] / (double)count;
    for (int64_t i = 0; i < count; i++) {
        const bool near = fabs(a[i] - b[i]) <= tolerance * (1.0 + fabs(b[i]) + sqrt(squares));
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(tolerance > 0.0 && near))
            return i;
    }
    return -1;
}
