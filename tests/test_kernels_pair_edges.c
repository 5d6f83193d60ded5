/* Attention by pairs of rows whose entries have features: a layer from its parameters to its
 * output, and back, by the kernels of codelets/pair.h. How kernels are judged: tests/kernels.h.
 *
 * The naive layer is in double, with the row of each edge, e = f·W_e, for each entry: scores,
 * coefficients with dropout, Z. Gradients are central differences of Σ G·Z. K and e have multiples
 * of 1/64, and T odd multiples of 1/128: K + T + e is exact in float, and never near the kink of
 * LeakyReLU. */
#include "tests/kernels_attention.h"

enum {
    DIFFERENCES = 12, /* at most, of each matrix; else some at random */
    IN = 2,           /* rows of each weight matrix */
    SKIPPED = 1,
    FIRST = 3, /* the part's first column of parameters */
    AT = 2,    /* and of the weights that products see */
    FIRST_HEAD = 3
};

/* The layer in double; columns without room. */
struct layer {
    double *k, *v, *t; // (most, H·F), scaled T; V of GATv2 is K
    double *w, *a;     // (K, H·F), (H·F)
};

struct problem {
    struct sl_pair pair;
    struct sl_pair_shape shape;
    int64_t rows, cols, most, all, room, features;
    struct sl_guarded_sparse a;                 // (rows, cols)
    struct sl_guarded parameters, projected, g; // (…), (most, …), (rows, H·F)
    struct sl_guarded vectors, source, target;  /* what kernels make of them */
    struct sl_guarded vertex;                   /* of both ends */
    float *feature;                             // (rows, cols, K)
    struct sl_entry *entry;                     // (entries)
    int64_t entries;
    struct layer layer;
    double *alpha, *mask; // (H, entries)
    double *z, *z_size;   // (rows, H·F)
    double size;          /* of a score's terms */
    const char *name;
};

/* ---- The naive layer ---- */

static const float *feature_of(const struct problem *p, const struct sl_entry *e)
{
    return p->feature + (e->row * p->cols + e->col) * p->features;
}

/* The row of an edge, and the sum of its terms' sizes. */
struct edge {
    double row, size;
};

static struct edge edge_of(const struct problem *p, const struct sl_entry *e, int64_t k)
{
    struct edge sum = {0.0, 0.0};
    for (int64_t f = 0; f < p->features; f++) {
        const double term = (double)feature_of(p, e)[f] * p->layer.w[f * p->all + k];
        sum.row += term;
        sum.size += fabs(term);
    }
    return sum;
}

/* The value of an entry, of column k of all heads. */
static struct edge value_at(const struct problem *p, const struct sl_entry *e, int64_t k)
{
    const struct edge edge = p->pair.products ? edge_of(p, e, k) : (struct edge){0.0, 0.0};
    const double v = p->layer.v[e->col * p->all + k];
    return (struct edge){v + edge.row, fabs(v) + edge.size};
}

static double score_of(const struct problem *p, const struct sl_entry *e, int64_t h, double *size)
{
    double sum = 0.0;
    *size = 0.0;
    for (int64_t k = h * p->pair.width; k < (h + 1) * p->pair.width; k++) {
        const struct edge edge = edge_of(p, e, k);
        const double key = p->layer.k[e->col * p->all + k], query = p->layer.t[e->row * p->all + k],
                     x = key + query + edge.row, a = p->layer.a[k],
                     slope = x > 0.0 ? 1.0 : (double)p->pair.attention.slope;
        sum += p->pair.products ? (key + edge.row) * query : a * slope * x;
        *size += p->pair.products ? (fabs(key) + edge.size) * fabs(query)
                                  : fabs(a) * (fabs(key) + fabs(query) + edge.size);
    }
    return sum;
}

/* Make coefficients, dropout and Z of head h; return Σ G·Z. */
static double run_head(struct problem *p, int64_t h)
{
    double *const alpha = p->alpha + h * p->entries, *const mask = p->mask + h * p->entries,
                  value = 0.0, size;
    const int64_t first = h * p->pair.width, end = first + p->pair.width;
    for (int64_t r = 0; r < p->rows; r++) {
        double top = -INFINITY, sum = 0.0;
        for (int64_t e = 0; e < p->entries; e++)
            if (p->entry[e].row == r) {
                alpha[e] = score_of(p, &p->entry[e], h, &size);
                mask[e] = mask_between(&p->pair.attention.drop, sl_vertices_of(&p->vertex)[r],
                                       sl_vertices_of(&p->vertex)[p->entry[e].col],
                                       p->pair.attention.first_head + h);
                p->size = fmax(p->size, size);
                if (p->entry[e].value > 0.0f)
                    top = fmax(top, alpha[e]);
            }
        for (int64_t e = 0; e < p->entries; e++)
            if (p->entry[e].row == r) {
                const double weight = (double)p->entry[e].value;
                alpha[e] = weight > 0.0 ? weight * exp(alpha[e] - top) : 0.0;
                sum += alpha[e];
            }
        for (int64_t k = first; k < end; k++)
            p->z[r * p->all + k] = p->z_size[r * p->all + k] = 0.0;
        for (int64_t e = 0; e < p->entries; e++)
            if (p->entry[e].row == r) {
                alpha[e] /= sum > 0.0 ? sum : 1.0;
                for (int64_t k = first; k < end; k++) {
                    const struct edge v = value_at(p, &p->entry[e], k);
                    p->z[r * p->all + k] += alpha[e] * mask[e] * v.row;
                    p->z_size[r * p->all + k] += alpha[e] * mask[e] * v.size;
                }
            }
        for (int64_t k = first; k < end; k++)
            value += (double)*sl_element(&p->g, r, k) * p->z[r * p->all + k];
    }
    return value;
}

/* ---- Problems ---- */

static float multiple(int64_t most, float of, bool odd)
{
    return of * (float)(sl_random_below(2 * most + 1) - most) + (odd ? of / 2.0f : 0.0f);
}

static int64_t parameter_rows(const struct sl_pair *pair)
{
    return SKIPPED + (IN + 1) * sl_pair_weights(pair) + pair->edges + !pair->products + 1;
}

static int64_t edges_row(const struct sl_pair *pair)
{
    return SKIPPED + IN * sl_pair_weights(pair);
}

/* W_e, a and biases; the weights mean nothing. Scores have the sizes of sums of four terms. */
static void fill_parameters(struct problem *p)
{
    const int64_t first = edges_row(&p->pair), a = first + p->features,
                  biases = a + !p->pair.products;
    const float share = 1.0f / (float)((p->pair.width + 3) / 4);
    for (int64_t r = first; r < p->parameters.rows; r++)
        for (int64_t k = 0; k < p->all; k++)
            *sl_element(&p->parameters, r, FIRST + k) = r < a ? multiple(12, 1.0f / 16.0f, false)
                                                        : r < biases
                                                            ? sl_random_value(SL_REALS) * share
                                                            : multiple(64, 1.0f / 64.0f, false);
    for (int64_t r = 0; r < p->most; r++)
        for (int64_t k = 0; k < sl_pair_projected(&p->pair); k++)
            *sl_element(&p->projected, r, k) =
                multiple(64, 1.0f / 64.0f, k >= sl_pair_projected(&p->pair) - p->all) *
                (p->pair.products && k < p->all ? share : 1.0f);
    for (int64_t i = 0; i < p->rows * p->cols * p->features; i++)
        p->feature[i] = multiple(4, 0.25f, false);
}

static void fill_layer(struct problem *p)
{
    const int64_t row = edges_row(&p->pair), a = row + p->features, biases = a + !p->pair.products;
    const int last = sl_pair_weights(&p->pair) - 1;
    double *const of[] = {p->layer.k, p->pair.products ? p->layer.v : p->layer.t, p->layer.t};
    for (int64_t r = 0; r < p->most; r++)
        for (int64_t k = 0; k < p->all; k++)
            for (int m = 0; m <= last; m++)
                of[m][r * p->all + k] =
                    (double)(m == last ? p->pair.scale : 1.0f) *
                    ((double)*sl_element(&p->projected, r, m * p->all + k) +
                     (double)*sl_element(&p->parameters, biases + m, FIRST + k));
    for (int64_t k = 0; k < p->all; k++) {
        for (int64_t f = 0; f < p->features; f++)
            p->layer.w[f * p->all + k] = (double)*sl_element(&p->parameters, row + f, FIRST + k);
        if (!p->pair.products)
            p->layer.a[k] = (double)*sl_element(&p->parameters, a, FIRST + k);
    }
}

/* One in seven weights, and all of row 0, are 0. */
static void weigh_entries(struct problem *p)
{
    float *value = (float *)p->a.view.value;
    for (int64_t e = 0; value && e < p->entries; e++)
        p->entry[e].value = value[e] =
            e % 7 == 2 || (p->entry[e].row == 0 && p->rows > 2) ? 0.0f : fabsf(value[e]);
}

static void make_rows(struct problem *p)
{
    struct sl_guarded weights =
        sl_guarded_empty(IN, AT + sl_pair_projected(&p->pair), SL_LOOSE, SL_CANARY);
    const struct sl_floats_at parameters = floats(&p->parameters, 0), w = floats(&weights, 0),
                              vectors = floats(&p->vectors, 0),
                              projected = floats(&p->projected, 0), source = floats(&p->source, 0),
                              target = floats(&p->target, 0);
    sl_kernel_pair_weights(&p->pair, &p->shape, &parameters, &w, &vectors);
    sl_kernel_pair_ends(&p->pair, &p->shape, p->most, sl_vertices_of(&p->vertex), &parameters,
                        &projected, &vectors, &source, &target);
    sl_guarded_free(&weights);
}

static struct problem make_problem(int64_t rows, int64_t cols, const struct sl_pair *pair,
                                   enum sl_layout layout)
{
    const int64_t most = rows > cols ? rows : cols, all = sl_pair_columns(pair),
                  heads = pair->attention.heads;
    static char name[160];
    snprintf(name, sizeof name, "%s, %lldx%lld, %d heads of %lld, %lld features",
             pair->products ? "transformer" : "GATv2", (long long)rows, (long long)cols, (int)heads,
             (long long)pair->width, (long long)pair->edges);
    struct problem p = {
        .pair = *pair,
        .shape = {.in = IN,
                  .columns = FIRST + all + 1,
                  .skipped = SKIPPED,
                  .first = FIRST,
                  .at = AT,
                  .bias = true,
                  .out = all,
                  .out_column = FIRST},
        .rows = rows,
        .cols = cols,
        .most = most,
        .all = all,
        .room = sl_pair_all(pair),
        .features = pair->edges,
        .a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, layout == SL_LOOSE, SL_REALS),
        .parameters =
            sl_guarded_random(parameter_rows(pair), FIRST + all + 1, layout, NAN, SL_REALS),
        .projected = sl_guarded_empty(most, sl_pair_projected(pair), layout, NAN),
        .g = sl_guarded_random(rows, all, layout, NAN, SL_REALS),
        .vectors =
            sl_guarded_empty(sl_pair_vector_rows(pair), sl_pair_all(pair), layout, SL_CANARY),
        .source = sl_guarded_empty(most, sl_pair_source(pair), layout, SL_CANARY),
        .target = sl_guarded_empty(most, sl_pair_target(pair), sl_other_layout(layout), SL_CANARY),
        .vertex = sl_guarded_vertices(most),
        .feature = calloc((size_t)(rows * cols * pair->edges), sizeof(float)),
        .name = name,
    };
    assert_non_null(p.feature);
    p.entry = sl_sparse_entries(&p.a.view, &p.entries);
    p.layer.k = sl_doubles(3 * most * all + (pair->edges + 1) * all);
    p.layer.t = p.layer.k + most * all;
    p.layer.v = pair->products ? p.layer.t + most * all : p.layer.k;
    p.layer.w = p.layer.k + 3 * most * all;
    p.layer.a = p.layer.w + pair->edges * all;
    p.alpha = sl_doubles(2 * heads * p.entries + 2 * rows * all);
    p.mask = p.alpha + heads * p.entries;
    p.z = p.mask + heads * p.entries;
    p.z_size = p.z + rows * all;
    weigh_entries(&p);
    fill_parameters(&p);
    fill_layer(&p);
    return p;
}

static void free_problem(struct problem *p)
{
    struct sl_guarded *const of[] = {&p->parameters, &p->projected, &p->g,     &p->vectors,
                                     &p->source,     &p->target,    &p->vertex};
    for (size_t i = 0; i < SL_COUNT(of); i++)
        sl_guarded_free(of[i]);
    sl_guarded_sparse_free(&p->a);
    free(p->feature);
    free(p->entry);
    free(p->layer.k);
    free(p->alpha);
}

/* How far sums of coefficients may be off, relative to their terms. */
static double relative(const struct problem *p)
{
    const double terms = (double)(p->pair.width + p->features);
    return SL_UNIT *
           (100.0 + 4.0 * terms + (double)(p->most + p->entries) + 6.0 * (terms + 6.0) * p->size);
}

static void expect_close(const struct problem *p, const char *what, int64_t r, int64_t k,
                         double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s of %s (%s): element (%lld, %lld) is %.9g, not %.9g (within %.2g)", what,
                 p->name, sl_level_name(), (long long)r, (long long)k, got, want, bound);
}

/* ---- Tiles ---- */

/* A tile and the features of its entries, which end at a forbidden page. */
struct tile {
    struct sl_guarded_sparse a;
    struct sl_guarded edge;
};

/* Columns [first, last) of FROM; `turned`: of the transpose. */
static struct tile cut(const struct problem *p, const struct sl_sparse *from, bool turned,
                       int64_t first, int64_t last, int64_t block_cols, bool wide)
{
    struct tile t = {.a = sl_guarded_sparse_cut(from, first, last, block_cols, wide)};
    int64_t count;
    struct sl_entry *entry = sl_sparse_entries(&t.a.view, &count);
    t.edge = sl_guarded_empty(count, p->features, SL_EDGE, NAN);
    for (int64_t e = 0; e < count; e++) {
        const int64_t col = first + entry[e].col;
        const struct sl_entry at = {turned ? col : entry[e].row, turned ? entry[e].row : col, 0.0f};
        memcpy(sl_element(&t.edge, e, 0), feature_of(p, &at), (size_t)p->features * sizeof(float));
    }
    t.a.view.edge = t.edge.at;
    t.a.view.edge_features = p->features;
    free(entry);
    return t;
}

static void free_tile(struct tile *t)
{
    sl_guarded_sparse_free(&t->a);
    sl_guarded_free(&t->edge);
}

/* How the entries are divided. */
struct division {
    int tiles;
    int64_t block_cols;
    bool wide;
    bool merged; /* the last tile has a state of its own */
};

static void expect_room(const struct problem *p, const char *what, int pieces,
                        const struct sl_guarded *m)
{
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < pieces * p->room; k++)
            if (k % p->pair.attention.width >= p->pair.width && *sl_element(m, r, k) != 0.0f)
                fail_msg("%s of %s (%s): column %lld of row %lld is room, but not 0", what, p->name,
                         sl_level_name(), (long long)k, (long long)r);
    sl_expect_padding_kept(what, m);
}

static void check_forward(struct problem *p, const struct division *d, struct sl_guarded *state)
{
    struct sl_guarded other = sl_guarded_empty(p->rows, state->cols, SL_EDGE, SL_CANARY);
    const struct sl_floats_at vectors = floats(&p->vectors, 0), target = floats(&p->target, 0),
                              to = floats(state, 0), beside = floats(&other, 0);
    for (int i = 0; i < d->tiles; i++) {
        const int64_t first = p->cols * i / d->tiles, last = p->cols * (i + 1) / d->tiles;
        const bool apart = d->merged && i > 0 && i == d->tiles - 1;
        struct tile t = cut(p, &p->a.view, false, first, last, d->block_cols, d->wide);
        const struct sl_floats_at source = floats(&p->source, first);
        sl_kernel_pair(&p->pair, &t.a.view, &vectors, &source, &target, i > 0 && !apart,
                       apart ? &beside : &to);
        if (apart)
            sl_kernel_pair_merge(&p->pair, p->rows, NULL, &beside, &to);
        free_tile(&t);
    }
    sl_kernel_pair_close(&p->pair, p->rows, &vectors, &target, &to);
    for (int64_t i = 0; i < p->rows * p->all; i++)
        expect_close(p, "Z", i / p->all, i % p->all,
                     (double)*sl_element(state, i / p->all, place(&p->pair, i % p->all)), p->z[i],
                     relative(p) * p->z_size[i]);
    expect_room(p, "Z", 1, state);
    sl_expect_padding_kept("target", &p->target);
    sl_guarded_free(&other);
}

/* ---- Gradients ---- */

/* An element of a matrix of the naive layer, and the sum of its gradient's terms. */
struct difference {
    int matrix; /* K, T, V, W_e, a */
    int64_t at;
    double want, size;
};

enum { MATRICES = 5 };

struct sizes {
    double *of[MATRICES], value;
};

static void add_sizes(const struct problem *p, const struct sl_entry *e, double alpha, double mask,
                      int64_t h, struct sizes *s)
{
    const int64_t all = p->all, first = h * p->pair.width, end = first + p->pair.width;
    const double *const k = p->layer.k + e->col * all, *const t = p->layer.t + e->row * all,
                        *const z = p->z_size + e->row * all;
    const float *const g = sl_element(&p->g, e->row, 0), *const feature = feature_of(p, e);
    const bool products = p->pair.products;
    double de = 0.0;
    for (int64_t j = first; j < end; j++)
        de += alpha * fabs((double)g[j]) * (mask * value_at(p, e, j).size + z[j]);
    for (int64_t j = first; j < end; j++) {
        const double share = alpha * mask * fabs((double)g[j]), a = fabs(p->layer.a[j]),
                     edge = edge_of(p, e, j).size;
        for (int64_t f = 0; f < p->features; f++)
            s->of[3][f * all + j] +=
                fabs((double)feature[f]) * (products ? de * fabs(t[j]) + share : de * a);
        s->of[0][e->col * all + j] += products ? de * fabs(t[j]) : de * a + share;
        s->of[1][e->row * all + j] += products ? de * (fabs(k[j]) + edge) : de * a;
        s->of[2][e->col * all + j] += share;
        s->of[4][j] += de * (fabs(k[j]) + fabs(t[j]) + edge);
        s->value += share * value_at(p, e, j).size;
    }
}

/* Make differences of the naive layer: some of each matrix. Return how many. */
static int make_differences(struct problem *p, struct difference *list)
{
    const int64_t all = p->all, count[MATRICES] = {p->cols * all, p->rows * all,
                                                   p->pair.products ? p->cols * all : 0,
                                                   p->features * all, p->pair.products ? 0 : all};
    double *const matrix[MATRICES] = {p->layer.k, p->layer.t, p->layer.v, p->layer.w, p->layer.a},
                  *const block = sl_doubles(3 * p->most * all + (p->features + 1) * all);
    struct sizes s = {.of = {block, block + p->most * all, block + 2 * p->most * all,
                             block + 3 * p->most * all,
                             block + 3 * p->most * all + p->features * all}};
    int made = 0;
    for (int64_t h = 0; h < p->pair.attention.heads; h++)
        for (int64_t e = 0; e < p->entries; e++)
            add_sizes(p, &p->entry[e], p->alpha[h * p->entries + e], p->mask[h * p->entries + e], h,
                      &s);
    for (int m = 0; m < MATRICES; m++)
        for (int64_t i = 0; i < count[m] && i < DIFFERENCES; i++) {
            const int64_t at = count[m] <= DIFFERENCES ? i : sl_random_below(count[m]),
                          h = at % all / p->pair.width;
            const double before = matrix[m][at], step = 1e-5;
            matrix[m][at] = before + step;
            const double above = run_head(p, h);
            matrix[m][at] = before - step;
            list[made++] = (struct difference){m, at, (above - run_head(p, h)) / (2.0 * step),
                                               s.of[m][at] + 1e-6 * s.value};
            matrix[m][at] = before;
            run_head(p, h);
        }
    free(block);
    return made;
}

static struct sl_guarded zeroed(int64_t rows, int64_t cols, int64_t from, enum sl_layout layout)
{
    struct sl_guarded m = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    for (int64_t r = from; r < rows; r++)
        memset(sl_element(&m, r, 0), 0, (size_t)cols * sizeof(float));
    return m;
}

/* Both walks. M begins with ones, which another rank may have left there. */
static void walk_back(const struct problem *p, const struct division *d,
                      const struct sl_guarded *gradient, struct sl_guarded *target_back,
                      struct sl_guarded *source_back, struct sl_guarded *m)
{
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    const struct sl_floats_at vectors = floats(&p->vectors, 0), sources = floats(&p->source, 0),
                              targets = floats(&p->target, 0), gradients = floats(gradient, 0),
                              c = floats(target_back, 0), to = floats(source_back, 0),
                              sums = floats(m, 0);
    for (int i = 0; i < d->tiles; i++) {
        const int64_t first = p->cols * i / d->tiles, row = p->rows * i / d->tiles;
        struct tile a = cut(p, &p->a.view, false, first, p->cols * (i + 1) / d->tiles,
                            d->block_cols, d->wide),
                    at = cut(p, &whole.view, true, row, p->rows * (i + 1) / d->tiles, d->block_cols,
                             !d->wide);
        const struct sl_floats_at source = floats(&p->source, first),
                                  target = floats(&p->target, row), g = floats(gradient, row);
        sl_kernel_pair_again(&p->pair, &a.a.view, &vectors, &source, &targets, &gradients, i > 0,
                             &c, d->merged || i > 0, p->pair.products ? NULL : &sums);
        sl_kernel_pair_back(&p->pair, &at.a.view, &vectors, &g, &target, &sources, i > 0, &to);
        free_tile(&a);
        free_tile(&at);
    }
    sl_guarded_sparse_free(&whole);
    expect_room(p, "C", 1, target_back);
    expect_room(p, "[D | E]", 2, source_back);
    if (!p->pair.products)
        expect_room(p, "M", 1, m);
}

/* Make the gradient of parameters, from rows behind the weights'. */
static void differentiate(const struct problem *p, const struct sl_guarded *gradient,
                          const struct sl_guarded *target_back,
                          const struct sl_guarded *source_back, const struct sl_guarded *state,
                          const struct sl_guarded *m, struct sl_guarded *back)
{
    const struct sl_pair *pair = &p->pair;
    struct sl_guarded weights =
        sl_guarded_random(IN + p->features + !pair->products + 2, AT + sl_pair_projected(pair),
                          SL_EDGE, SL_CANARY, SL_REALS);
    const struct sl_floats_at parameters = floats(&p->parameters, 0), w = floats(&weights, 0),
                              source = floats(&p->source, 0), target = floats(&p->target, 0),
                              g = floats(gradient, 0), c = floats(target_back, 0),
                              d = floats(source_back, 0), closed = floats(state, 0),
                              sums = floats(m, 0), to = floats(back, 0),
                              edges = {sl_element(&weights, IN, AT), weights.ld};
    if (pair->products) {
        sl_kernel_pair_edges_back(pair, p->rows, &target, &g, &c, &closed, &edges);
    } else {
        sl_kernel_pair_vector_back(pair, p->most, &source, &target, &c, &d,
                                   sl_element(&weights, IN + p->features, AT));
        sl_kernel_pair_edges_paste(pair, &sums, &edges);
    }
    sl_expect_padding_kept("weights", &weights);
    sl_kernel_pair_weights_back(pair, &p->shape, &parameters, &w, false, &to);
    sl_guarded_free(&weights);
}

/* The gradients of the kernels against differences. */
static void compare(const struct problem *p, const struct difference *list, int count,
                    const struct sl_guarded *projected, const struct sl_guarded *parameters)
{
    static const char *const names[MATRICES] = {"dK", "dT", "dV", "dW_e", "da"};
    const int64_t all = p->all, row = edges_row(&p->pair);
    for (int i = 0; i < count; i++) {
        const struct difference *const x = &list[i];
        const int64_t r = x->at / all, k = x->at % all,
                      last = (sl_pair_weights(&p->pair) - 1) * all;
        const float *const got =
            x->matrix == 0   ? sl_element(projected, r, k)
            : x->matrix == 1 ? sl_element(projected, r, last + k)
            : x->matrix == 2
                ? sl_element(projected, r, all + k)
                : sl_element(parameters, x->matrix == 3 ? row + r : row + p->features, FIRST + k);
        const double by = x->matrix == 1 ? (double)p->pair.scale : 1.0;
        expect_close(p, names[x->matrix], r, k, (double)*got, by * x->want,
                     2.0 * relative(p) * x->size);
    }
}

static void check_back(struct problem *p, const struct division *d, const struct sl_guarded *state,
                       const struct difference *list, int count)
{
    const struct sl_pair *pair = &p->pair;
    struct sl_guarded gradient =
                          sl_guarded_empty(p->rows, sl_pair_gradient(pair), SL_LOOSE, SL_CANARY),
                      target_back = zeroed(p->most, sl_pair_target_back(pair), p->rows, SL_PADDED),
                      source_back = zeroed(p->most, 2 * p->room, p->cols, SL_EDGE),
                      projected =
                          sl_guarded_empty(p->most, sl_pair_projected(pair), SL_LOOSE, SL_CANARY),
                      parameters = sl_guarded_empty(p->parameters.rows, p->parameters.cols,
                                                    SL_TIGHT, SL_CANARY),
                      m = sl_guarded_empty(p->features, p->room, SL_LOOSE, SL_CANARY);
    const struct sl_rows g = sl_rows_of(&p->g);
    const struct sl_floats_at closed = floats(state, 0), to = floats(&gradient, 0),
                              vectors = floats(&p->vectors, 0), c = floats(&target_back, 0),
                              sources = floats(&source_back, 0), x = floats(&projected, 0);
    for (int64_t i = 0; i < p->features * p->room; i++)
        *sl_element(&m, i / p->room, i % p->room) = d->merged ? 1.0f : NAN;
    sl_kernel_pair_gradient(pair, p->rows, false, &g, &closed, &vectors, &to);
    walk_back(p, d, &gradient, &target_back, &source_back, &m);
    for (int64_t i = 0; d->merged && i < p->features * p->room; i++)
        *sl_element(&m, i / p->room, i % p->room) -= 1.0f;
    sl_kernel_pair_join(pair, p->most, &vectors, &c, &sources, &x);
    differentiate(p, &gradient, &target_back, &source_back, state, &m, &parameters);
    compare(p, list, count, &projected, &parameters);
    struct sl_guarded *const of[] = {&gradient,  &target_back, &source_back,
                                     &projected, &parameters,  &m};
    for (size_t i = 0; i < SL_COUNT(of); i++)
        sl_guarded_free(of[i]);
}

/* ---- All of them ---- */

static void check_layer(int64_t rows, int64_t cols, const struct sl_pair *pair,
                        enum sl_layout layout)
{
    static const struct division divisions[] = {
        {1, 0, false, false}, {1, 7, true, false}, {3, 0, false, true}, {2, 9, true, false}};
    struct problem p = make_problem(rows, cols, pair, layout);
    struct difference list[MATRICES * DIFFERENCES];
    if (!sl_takes(p.entries * p.all * p.features)) {
        free_problem(&p);
        return;
    }
    for (int64_t h = 0; h < pair->attention.heads; h++)
        run_head(&p, h);
    const int count = make_differences(&p, list);
    for (int level = 0; sl_next_level(&level);)
        for (size_t i = 0; i < SL_COUNT(divisions); i++) {
            struct sl_guarded state =
                sl_guarded_empty(rows, sl_pair_state(pair), layout, SL_CANARY);
            make_rows(&p);
            check_forward(&p, &divisions[i], &state);
            check_back(&p, &divisions[i], &state, list, count);
            sl_guarded_free(&state);
        }
    free_problem(&p);
}

static void check_shape(int64_t rows, int64_t cols, int32_t heads, int64_t width, int64_t features,
                        double dropped, enum sl_layout layout)
{
    for (int products = 0; products < 2; products++) {
        struct sl_pair pair = {
            .attention = {heads, FIRST_HEAD, sl_pair_room(width), 0.2f, {.scale = 1.0f}, true},
            .width = width,
            .products = products,
            .scale = products ? 0.375f : 1.0f,
            .edges = features};
        if (dropped > 0.0)
            pair.attention.drop = sl_dropout_make(dropped, sl_rng_key(5, SL_RNG_ATTENTION, 2, 1));
        check_layer(rows, cols, &pair, layout);
    }
}

/* Row `rows / 2` is full, so that degrees are the numbers of columns; every fifth row is empty. */
SL_TEST(test_shapes)
{
    static const int64_t degrees[] = {9, 16, 65, 130, 1}, features[] = {1, 3, 8, 17},
                         widths[] = {1, 3, 8, 20};
    static const int32_t heads[] = {1, 3, 8, 13};
    int i = 0;
    for (size_t f = 0; f < SL_COUNT(features); f++)
        for (size_t h = 0; h < SL_COUNT(heads); h++)
            for (size_t w = 0; w < SL_COUNT(widths); w++, i++)
                check_shape(6, degrees[i % 5], heads[h], widths[w], features[f],
                            i % 3 == 2 ? 0.4 : 0.0, (enum sl_layout)(i / 2 % SL_LAYOUTS));
}

/* Rows of edges of few entries at a time; many heads; many features; wide blocks of entries. */
SL_TEST(test_sizes)
{
    check_shape(3, 40, 1, 1000, 2, 0.0, SL_TIGHT);
    check_shape(3, 21, 13, 100, 2, 0.0, SL_LOOSE);
    check_shape(3, 21, 2, 5000, 1, 0.0, SL_PADDED);
    check_shape(1, 5, 1, SL_ATTENTION_COLUMNS, 1, 0.0, SL_EDGE);
    check_shape(1, 5, 200, 81, 1, 0.0, SL_TIGHT); /* with their room, more columns than that */
    check_shape(1, 5, 3, 5461, 1, 0.0, SL_TIGHT);
    check_shape(3, 21, SL_ATTENTION_HEADS, 1, 2, 0.5, SL_LOOSE);
    check_shape(3, 40, 20, 2, 5, 0.0, SL_EDGE);
    check_shape(3, 40, 2, 4, SL_EDGE_FEATURES, 0.0, SL_TIGHT);
    check_shape(2, 3000, 8, 8, 8, 0.0, SL_LOOSE);
    check_shape(0, 9, 2, 3, 4, 0.0, SL_TIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_sizes),
    };
    sl_random_seed(14);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
