/* Matrices are dense, (n, width) for every rank, 0 where it has no copy of the vertex. */
#include "tests/simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "data/partition/parts.h"
#include "tests/fixtures.h"

enum {
    LAYERS = SL_SIMULATED_LAYERS,
    HIDDEN = SL_SIMULATED_HIDDEN,
    MOST_RANKS = SL_SIMULATED_RANKS,
    SITES = 2 * LAYERS,
    MOST_STEPS = 64
};

/* ---- The cut ---- */

struct cut {
    int ranks;
    int64_t n;
    double *s[MOST_RANKS];      // (n, n): S of each rank
    bool *has[MOST_RANKS];      // (n)
    double *weight[MOST_RANKS]; // (n): of the rank's entries of the row, absolute values
    int *root, *bin;            // (n)
    double *left, *right;       // (n)
};

static double *doubles(int64_t count)
{
    double *array = calloc((size_t)count + 1, sizeof *array);
    if (!array)
        abort();
    return array;
}

/* Draw roots and bins by the rules of docs/DISTRIBUTIONS.md. */
static void draw(struct cut *c, uint64_t seed, int bins)
{
    const uint64_t roots = sl_rng_key(seed, SL_RNG_PARTS, 0, 2),
                   drawn = sl_rng_key(seed, SL_RNG_PARTS, 0, 3);
    c->root = calloc((size_t)c->n, sizeof *c->root);
    c->bin = calloc((size_t)c->n, sizeof *c->bin);
    for (int64_t v = 0; v < c->n; v++) {
        int holder[MOST_RANKS], holders = 0;
        for (int p = 0; p < c->ranks; p++)
            if (c->has[p][v])
                holder[holders++] = p;
        const uint64_t bits = sl_rng_bits(roots, (uint32_t)v, 0);
        c->root[v] = holders ? holder[bits % (uint64_t)holders] : (int)(bits % (uint64_t)c->ranks);
        c->has[c->root[v]][v] = true;
        c->bin[v] = (int)(sl_rng_bits(drawn, (uint32_t)v, 0) % (uint64_t)bins);
    }
}

static struct cut cut_open(const struct sl_dataset *data, enum sl_reference_norm norm, int ranks,
                           uint64_t seed, int bins)
{
    const double loop = norm == SL_REFERENCE_MEAN ? 0.0 : 1.0; /* added to each vertex */
    const struct sl_csr *a = &data->adjacency;
    const int64_t n = data->vertices;
    struct sl_parts parts;
    struct cut c = {.ranks = ranks, .n = n, .left = doubles(n), .right = doubles(n)};
    const struct sl_parts_options options = {&sl_parts_libra, ranks, seed, 1.0};
    if (sl_parts_make(data, &options, &parts))
        abort();
    for (int p = 0; p < ranks; p++) {
        c.s[p] = doubles(n * n);
        c.has[p] = calloc((size_t)n + 1, sizeof *c.has[p]);
        c.weight[p] = doubles(n);
    }
    for (int64_t v = 0; v < n; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            if (a->indices[e] != v)
                c.has[parts.part[e]][v] = c.has[parts.part[e]][a->indices[e]] = true;
    draw(&c, seed, bins);
    for (int64_t v = 0; v < n; v++) {
        double degree = loop;
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            const int32_t u = a->indices[e];
            const double weight = a->values ? (double)a->values[e] : 1.0;
            degree += weight;
            const int p = u == v ? c.root[v] : parts.part[e];
            c.s[p][v * n + u] += weight;
            c.weight[p][v] += fabs(weight);
        }
        c.s[c.root[v]][v * n + v] += loop;
        c.weight[c.root[v]][v] += loop;
        const double count = (double)(a->indptr[v + 1] - a->indptr[v]) + loop;
        c.right[v] = norm == SL_REFERENCE_SYM ? 1.0 / sqrt(degree) : 1.0;
        c.left[v] = norm == SL_REFERENCE_SYM ? c.right[v] : count > 0.0 ? 1.0 / count : 1.0;
    }
    sl_parts_close(&parts);
    return c;
}

static void cut_close(struct cut *c)
{
    for (int p = 0; p < c->ranks; p++) {
        free(c->s[p]);
        free(c->has[p]);
        free(c->weight[p]);
    }
    free(c->root);
    free(c->bin);
    free(c->left);
    free(c->right);
}

/* Copies beside roots. */
static int64_t count_leaves(const struct cut *c)
{
    int64_t leaves = 0;
    for (int64_t v = 0; v < c->n; v++)
        for (int p = 0; p < c->ranks; p++)
            leaves += c->has[p][v] && p != c->root[v];
    return leaves;
}

/* ---- A matrix on all ranks ---- */

struct all {
    int64_t width;
    double *of[MOST_RANKS]; // (n, width)
};

static struct all all_open(const struct cut *c, int64_t width)
{
    struct all x = {.width = width};
    for (int p = 0; p < c->ranks; p++)
        x.of[p] = doubles(c->n * width);
    return x;
}

static struct all all_copy(const struct cut *c, const struct all *from)
{
    struct all x = all_open(c, from->width);
    for (int p = 0; p < c->ranks; p++)
        memcpy(x.of[p], from->of[p], (size_t)(c->n * x.width) * sizeof(double));
    return x;
}

static void all_close(struct all *x)
{
    for (int p = 0; p < MOST_RANKS; p++)
        free(x->of[p]);
    *x = (struct all){0};
}

/* diag(d)·X where the ranks have copies, in place. */
static void scale(const struct cut *c, const double *d, struct all *x)
{
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            for (int64_t j = 0; j < x->width; j++)
                x->of[p][v * x->width + j] *= d[v];
}

/* S·X or Sᵀ·X, each rank with its own. */
static struct all multiply_own(const struct cut *c, bool transposed, const struct all *x)
{
    struct all y = all_open(c, x->width);
    const int64_t n = c->n, w = x->width;
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < n; v++)
            for (int64_t u = 0; u < n; u++) {
                const double s = c->s[p][transposed ? u * n + v : v * n + u];
                for (int64_t j = 0; s != 0.0 && j < w; j++)
                    y.of[p][v * w + j] += s * x->of[p][u * w + j];
            }
    return y;
}

/* X·W (width, out) or, back, X·Wᵀ; W is (rows, cols). */
static struct all multiply_weights(const struct cut *c, const struct all *x, const double *w,
                                   int64_t rows, int64_t cols, bool back)
{
    struct all y = all_open(c, back ? rows : cols);
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < cols; j++)
                    if (back)
                        y.of[p][v * rows + i] += x->of[p][v * cols + j] * w[i * cols + j];
                    else
                        y.of[p][v * cols + j] += x->of[p][v * rows + i] * w[i * cols + j];
    return y;
}

/* X += Y. */
static void add(const struct cut *c, const struct all *y, struct all *x)
{
    for (int p = 0; p < c->ranks; p++)
        for (int64_t k = 0; k < c->n * x->width; k++)
            x->of[p][k] += y->of[p][k];
}

/* dW += Xᵀ·Y, over the copies of all ranks. */
static void add_product(const struct cut *c, const struct all *x, const struct all *y, double *dw)
{
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            for (int64_t i = 0; i < x->width; i++)
                for (int64_t j = 0; j < y->width; j++)
                    dw[i * y->width + j] += x->of[p][v * x->width + i] * y->of[p][v * y->width + j];
}

/* ---- Algorithm 4 ---- */

struct history {
    int delay; /* -1: 0c */
    /* Rows as they were sent: */
    struct all to_root[SITES][MOST_STEPS], to_leaves[SITES][MOST_STEPS];
};

static double *row_of(const struct all *x, int p, int64_t v)
{
    return x->of[p] + v * x->width;
}

static void add_row(const struct all *from, int p, struct all *to, int q, int64_t v)
{
    for (int64_t j = 0; j < to->width; j++)
        row_of(to, q, v)[j] += row_of(from, p, v)[j];
}

static void copy_row(const struct all *from, int p, struct all *to, int q, int64_t v)
{
    memcpy(row_of(to, q, v), row_of(from, p, v), (size_t)to->width * sizeof(double));
}

static void meet(const struct cut *c, struct history *h, int site, int step, struct all *x)
{
    const int r = h->delay, before = step - r;
    if (r < 0)
        return;
    h->to_root[site][step] = all_copy(c, x);
    for (int64_t v = 0; v < c->n; v++)
        for (int p = 0; p < c->ranks; p++)
            if (c->has[p][v] && p != c->root[v] && (r == 0 || step % r == c->bin[v]) && step >= r)
                add_row(&h->to_root[site][before], p, x, c->root[v], v);
    h->to_leaves[site][step] = all_copy(c, x);
    for (int64_t v = 0; v < c->n; v++)
        for (int p = 0; p < c->ranks; p++)
            if (c->has[p][v] && p != c->root[v] && (r == 0 || step % r == c->bin[v]) &&
                step >= 2 * r)
                copy_row(&h->to_leaves[site][before], c->root[v], x, p, v);
}

/* Multiply rows that have not met by (weight of all entries) / (weight of the own entries). */
static void scale_partials(const struct cut *c, int delay, int step, struct all *x)
{
    for (int64_t v = 0; delay != 0 && v < c->n; v++) {
        double all = 0.0;
        for (int p = 0; p < c->ranks; p++)
            all += c->weight[p][v];
        for (int p = 0; p < c->ranks; p++) {
            const bool turn = delay > 0 && step % delay == c->bin[v],
                       met = turn && step >= (p == c->root[v] ? delay : 2 * delay);
            if (!met && c->weight[p][v] > 0.0)
                for (int64_t j = 0; j < x->width; j++)
                    row_of(x, p, v)[j] *= all / c->weight[p][v];
        }
    }
}

/* ---- Known degrees ---- */

/* The numbers of entries of the own edges, by row. */
static struct all own_degrees(const struct cut *c)
{
    struct all degrees = all_open(c, 1);
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            for (int64_t u = 0; u < c->n; u++)
                *row_of(&degrees, p, v) += c->s[p][v * c->n + u] != 0.0;
    return degrees;
}

static void divide(const struct cut *c, const struct all *degrees, struct all *x)
{
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            for (int64_t j = 0; *row_of(degrees, p, v) > 0.0 && j < x->width; j++)
                row_of(x, p, v)[j] /= *row_of(degrees, p, v);
}

/* Divide rows by the numbers of entries behind them: those of the own edges, and what came. */
static void divide_known(const struct cut *c, struct history *h, int site, int step, struct all *x)
{
    struct all degrees = own_degrees(c);
    meet(c, h, site, step, &degrees);
    divide(c, &degrees, x);
    all_close(&degrees);
}

static void divide_own(const struct cut *c, struct all *x)
{
    struct all degrees = own_degrees(c);
    divide(c, &degrees, x);
    all_close(&degrees);
}

/* ---- The network ---- */

struct simulation {
    struct cut cut;
    struct history history;
    struct history of_degrees;
    bool scaled, degrees;
    struct sl_reference *net; /* weights and sizes */
    bool gemm_first;
    struct all own[LAYERS];   /* R·H of each layer */
    struct all input[LAYERS]; /* the same, or, SpMM first, E(S·R·H) */
    struct all z[LAYERS];
    int step;
};

/* With two weights, the vertices' own comes first. */
static bool has_own(const struct simulation *s)
{
    return sl_reference_weights(s->net) > 1;
}

static double *own_weight(const struct simulation *s, double *flat, int layer)
{
    return sl_reference_weight(s->net, flat, layer);
}

static double *neighbours_weight(const struct simulation *s, double *flat, int layer)
{
    return sl_reference_weight(s->net, flat, layer) +
           (has_own(s) ? s->net->widths[layer] * s->net->widths[layer + 1] : 0);
}

static void forward(struct simulation *s)
{
    const struct cut *c = &s->cut;
    const struct sl_reference *net = s->net;
    struct all h = all_open(c, net->features);
    for (int p = 0; p < c->ranks; p++)
        for (int64_t v = 0; v < c->n; v++)
            if (c->has[p][v])
                memcpy(row_of(&h, p, v), net->x + v * net->features,
                       (size_t)net->features * sizeof(double));
    for (int l = 0; l < LAYERS; l++) {
        const int64_t in = net->widths[l], out = net->widths[l + 1];
        const double *w = neighbours_weight(s, net->theta, l),
                     *b = sl_reference_bias(net, net->theta, l);
        scale(c, c->right, &h);
        struct all t = s->gemm_first ? multiply_weights(c, &h, w, in, out, false) : all_copy(c, &h);
        struct all u = multiply_own(c, false, &t);
        meet(c, &s->history, l, s->step, &u);
        if (s->degrees) {
            divide_known(c, &s->of_degrees, l, s->step, &u);
        } else if (s->scaled) {
            scale_partials(c, s->history.delay, s->step, &u);
        }
        s->input[l] = all_copy(c, s->gemm_first ? &h : &u);
        struct all z = s->gemm_first ? all_copy(c, &u) : multiply_weights(c, &u, w, in, out, false);
        if (!s->degrees)
            scale(c, c->left, &z);
        if (has_own(s)) {
            struct all own = multiply_weights(c, &h, own_weight(s, net->theta, l), in, out, false);
            add(c, &own, &z);
            all_close(&own);
        }
        s->own[l] = h;
        h = all_open(c, out);
        for (int p = 0; p < c->ranks; p++)
            for (int64_t v = 0; v < c->n; v++)
                for (int64_t j = 0; c->has[p][v] && j < out; j++) {
                    row_of(&z, p, v)[j] += b[j];
                    row_of(&h, p, v)[j] = fmax(row_of(&z, p, v)[j], 0.0);
                }
        s->z[l] = z;
        all_close(&t);
        all_close(&u);
    }
    all_close(&h);
}

/* The mean over training vertices, each at its root; G: its gradient. */
static double loss(const struct simulation *s, struct all *g)
{
    const struct cut *c = &s->cut;
    const int64_t classes = s->net->classes;
    double sum = 0.0;
    int64_t count = 0;
    for (int64_t v = 0; v < c->n; v++)
        count += s->net->train[v] && s->net->labels[v] >= 0;
    for (int64_t v = 0; v < c->n; v++) {
        const double *z = row_of(&s->z[LAYERS - 1], c->root[v], v);
        double total = 0.0;
        if (!s->net->train[v] || s->net->labels[v] < 0)
            continue;
        for (int64_t j = 0; j < classes; j++)
            total += exp(z[j]);
        sum += log(total) - z[s->net->labels[v]];
        for (int64_t j = 0; j < classes; j++)
            row_of(g, c->root[v], v)[j] =
                (exp(z[j]) / total - (j == s->net->labels[v])) / (double)count;
    }
    return sum / (double)count;
}

/* Scaled gradients never meet, unless all clones meet in every step. */
static void meet_back(struct simulation *s, int site, struct all *x)
{
    if (s->degrees)
        divide_own(&s->cut, x);
    else if (s->scaled && s->history.delay != 0)
        scale_partials(&s->cut, -1, s->step, x);
    else
        meet(&s->cut, &s->history, site, s->step, x);
}

static void backward(struct simulation *s, struct all *g, double *gradient)
{
    const struct cut *c = &s->cut;
    const struct sl_reference *net = s->net;
    for (int l = LAYERS - 1; l >= 0; l--) {
        const int64_t in = net->widths[l], out = net->widths[l + 1];
        const double *w = neighbours_weight(s, net->theta, l);
        double *db = sl_reference_bias(net, gradient, l), *dw = neighbours_weight(s, gradient, l);
        struct all unscaled = all_copy(c, g);
        for (int p = 0; p < c->ranks; p++)
            for (int64_t v = 0; v < c->n; v++)
                for (int64_t j = 0; j < out; j++)
                    db[j] += row_of(g, p, v)[j];
        if (!s->degrees)
            scale(c, c->left, g);
        const int site = LAYERS + l;
        struct all dh;
        if (s->gemm_first) {
            meet_back(s, site, g);
            struct all v = multiply_own(c, true, g);
            add_product(c, &s->input[l], &v, dw);
            dh = multiply_weights(c, &v, w, in, out, true);
            all_close(&v);
        } else {
            add_product(c, &s->input[l], g, dw);
            struct all du = multiply_weights(c, g, w, in, out, true);
            if (l > 0)
                meet_back(s, site, &du);
            dh = multiply_own(c, true, &du);
            all_close(&du);
        }
        scale(c, c->right, &dh);
        if (has_own(s)) {
            struct all own =
                multiply_weights(c, &unscaled, own_weight(s, net->theta, l), in, out, true);
            add_product(c, &s->own[l], &unscaled, own_weight(s, gradient, l));
            add(c, &own, &dh);
            all_close(&own);
        }
        all_close(&unscaled);
        all_close(g);
        *g = dh;
        for (int p = 0; l > 0 && p < c->ranks; p++)
            for (int64_t k = 0; k < c->n * in; k++)
                if (s->z[l - 1].of[p][k] <= 0.0)
                    g->of[p][k] = 0.0;
    }
}

/* One step of gradient descent. Returns the loss before it. */
static double simulate_step(struct simulation *s)
{
    double *gradient = doubles(s->net->parameters);
    struct all g = all_open(&s->cut, s->net->classes);
    forward(s);
    const double before = loss(s, &g);
    backward(s, &g, gradient);
    for (int64_t p = 0; p < s->net->parameters; p++)
        s->net->theta[p] -= SL_SIMULATED_RATE * gradient[p];
    for (int l = 0; l < LAYERS; l++) {
        all_close(&s->own[l]);
        all_close(&s->input[l]);
        all_close(&s->z[l]);
    }
    all_close(&g);
    free(gradient);
    s->step++;
    return before;
}

void sl_simulate(const struct sl_simulated *what, int steps, double *losses, int64_t *leaves)
{
    static struct simulation s; /* too large for a stack */
    const int64_t hidden[LAYERS - 1] = {HIDDEN, HIDDEN};
    s = (struct simulation){.gemm_first = what->gemm_first,
                            .history.delay = what->delay,
                            .of_degrees.delay = what->delay,
                            .scaled = what->scaled,
                            .degrees = what->degrees};
    s.cut = cut_open(what->data, what->norm, what->ranks, 1, what->delay > 0 ? what->delay : 1);
    s.net = sl_fixture_reference(what->data, LAYERS, hidden, what->norm);
    sl_reference_initialize(s.net, 1);
    for (int e = 0; e < steps; e++)
        losses[e] = simulate_step(&s);
    for (int site = 0; site < SITES; site++)
        for (int e = 0; e < steps; e++) {
            all_close(&s.history.to_root[site][e]);
            all_close(&s.history.to_leaves[site][e]);
            all_close(&s.of_degrees.to_root[site][e]);
            all_close(&s.of_degrees.to_leaves[site][e]);
        }
    *leaves = count_leaves(&s.cut);
    sl_reference_destroy(s.net);
    cut_close(&s.cut);
}
