/* Attention by pairs of rows: what tiles leave in states, states merged and closed, and the walks
 * back. Rows and parameters: test_kernels_pair_rows.c. Features of entries:
 * test_kernels_pair_edges.c. How kernels are judged: tests/kernels.h.
 *
 * The naive result is that of graphs/reduce_pair.c in double, with coefficients and dropout for
 * each entry and head. Gradients are central differences of Σ G·Z. K has multiples of 1/64, and T
 * odd multiples of 1/128: K + T is exact in float, and never near the kink of LeakyReLU.
 *
 * A score e, a sum of F terms, is off by F u of the sum of their sizes, and so is the log of the
 * sum. Every coefficient is off by as much of itself. The sums add their roundings. */
#include "tests/kernels_attention.h"

/* Exponentials below 2^-126 may become 0. Weights far from 1 make that as much of a result. */
static const double LOST = 1e-24;

enum {
    DIFFERENCES = 40, /* at most, of each matrix; else some at random */
    FIRST_HEAD = 3,   /* of the part: its heads share random bits with those of other parts */
    FAR = 128         /* factor of some K if logits are large */
};

struct problem {
    struct sl_pair pair;
    int64_t rows, cols, most;                  /* most: the larger one */
    int64_t all, room;                         /* columns of all heads: H·F and H·R */
    bool large;                                /* logits of some hundreds */
    double size;                               /* of a logit's terms */
    struct sl_guarded_sparse a;                // (rows, cols)
    struct sl_guarded vectors, source, target; // `most` rows, so that they can be one's both ends
    struct sl_guarded g;                       // (rows, H·F)
    uint32_t *to, *from;                       // vertices
    struct sl_entry *entry;                    // (entries)
    int64_t entries;
    double *k, *v, *t, *factor; // K, V (K of GATv2), T, a, without room: one block
};

/* Results of the formulas. */
struct naive {
    double *alpha, *mask; // (H, entries)
    double *log_sum;      // (H, rows); -inf without entries
    double *z, *z_size;   // (rows, H·F): and the sum of its terms' sizes
};

/* ---- Problems ---- */

static struct sl_pair pair_of(int32_t heads, int64_t width, bool products)
{
    struct sl_pair pair = {.width = width, .products = products, .scale = products ? 0.375f : 1.0f};
    pair.attention =
        (struct sl_attention){heads, FIRST_HEAD, sl_pair_room(width), 0.2f, {.scale = 1.0f}, true};
    return pair;
}

/* Of `pieces` matrices side by side. */
static void clear_room(const struct sl_pair *pair, int pieces, struct sl_guarded *m)
{
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < pieces * sl_pair_all(pair); k++)
            if (k % pair->attention.width >= pair->width)
                *sl_element(m, r, k) = 0.0f;
}

static void expect_room(const char *what, const struct sl_pair *pair, int pieces,
                        const struct sl_guarded *m)
{
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t k = 0; k < pieces * sl_pair_all(pair); k++)
            if (k % pair->attention.width >= pair->width && *sl_element(m, r, k) != 0.0f)
                fail_msg("%s (%s): column %lld of row %lld is room, but not 0", what,
                         sl_level_name(), (long long)k, (long long)r);
}

/* Logits have the sizes of sums of four terms. */
static float share_of(const struct problem *p)
{
    return 1.0f / (float)((p->pair.width + 3) / 4);
}

static float coordinate(bool odd)
{
    return (float)(sl_random_below(257) - 128) / 64.0f + (odd ? 1.0f / 128.0f : 0.0f);
}

static void fill_rows(struct problem *p)
{
    const struct sl_pair *pair = &p->pair;
    for (int64_t r = 0; r < p->most; r++) {
        const float far = p->large && sl_random_below(3) == 0 ? FAR : 1.0f;
        for (int64_t k = 0; k < p->all; k++) {
            float *const source = sl_element(&p->source, r, place(pair, k)),
                         *const target = sl_element(&p->target, r, place(pair, k));
            *source = far * coordinate(false);
            *target = coordinate(true) * (pair->products ? share_of(p) : 1.0f);
            p->k[r * p->all + k] = (double)*source;
            p->t[r * p->all + k] = (double)*target;
            if (pair->products)
                p->v[r * p->all + k] = (double)source[p->room];
        }
        for (int64_t h = 0; h < pair->attention.heads; h++)
            *sl_element(&p->target, r, p->room + h) = 0.0f;
        put_vertex(sl_element(&p->source, r, p->source.cols - 1), p->from[r]);
        put_vertex(sl_element(&p->target, r, p->target.cols - 1), p->to[r]);
    }
    clear_room(pair, pair->products ? 2 : 1, &p->source);
    clear_room(pair, 1, &p->target);
}

/* A transformer has no vectors: they stay NaN. */
static void fill_vectors(struct problem *p)
{
    const float slope = p->pair.attention.slope;
    for (int64_t k = 0; k < p->room && !p->pair.products; k++) {
        const int64_t j = k % p->pair.attention.width;
        const float a = j < p->pair.width ? sl_random_value(SL_REALS) * share_of(p) : 0.0f;
        *sl_element(&p->vectors, SL_PAIR_EVEN, k) = a * (1.0f + slope) / 2.0f;
        *sl_element(&p->vectors, SL_PAIR_ODD, k) = a * (1.0f - slope) / 2.0f;
        *sl_element(&p->vectors, SL_PAIR_PLAIN, k) = a;
        if (j < p->pair.width)
            p->factor[k / p->pair.attention.width * p->pair.width + j] = (double)a;
    }
}

static double logits_size(const struct problem *p)
{
    double most = 0.0;
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t i = p->entry[e].row * p->all, j = p->entry[e].col * p->all;
        double size = 0.0;
        for (int64_t k = 0; k < p->all; k++) {
            const double x = fabs(p->k[j + k]), y = fabs(p->t[i + k]);
            size = k % p->pair.width ? size : 0.0;
            size += p->pair.products ? x * y : fabs(p->factor[k]) * (x + y);
            most = fmax(most, size);
        }
    }
    return most;
}

static struct problem make_problem(int64_t rows, int64_t cols, const struct sl_pair *pair,
                                   bool large, double dropped, enum sl_layout layout)
{
    const int64_t most = rows > cols ? rows : cols, all = sl_pair_columns(pair);
    struct problem p = {
        .pair = *pair,
        .rows = rows,
        .cols = cols,
        .most = most,
        .all = all,
        .room = sl_pair_all(pair),
        .large = large,
        .a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, layout != SL_TIGHT, SL_REALS),
        .vectors =
            sl_guarded_empty(SL_PAIR_VECTORS, sl_pair_all(pair), sl_other_layout(layout), NAN),
        .source = sl_guarded_random(most, sl_pair_source(pair), layout, NAN, SL_REALS),
        .target = sl_guarded_empty(most, sl_pair_target(pair), sl_other_layout(layout), SL_CANARY),
        .g = sl_guarded_random(rows, all, layout, NAN, SL_REALS),
        .to = sl_row_numbers(most, most + 1, true),
        .from = sl_row_numbers(most, most + 1, true),
        .k = sl_doubles(3 * most * all + all),
    };
    p.v = pair->products ? p.k + most * all : p.k;
    p.t = p.k + 2 * most * all;
    p.factor = p.t + most * all;
    if (dropped > 0.0)
        p.pair.attention.drop = sl_dropout_make(dropped, sl_rng_key(5, SL_RNG_ATTENTION, 2, 1));
    p.entry = sl_sparse_entries(&p.a.view, &p.entries);
    for (int64_t c = 0; c < cols; c += 3)
        p.from[c] = (uint32_t)sl_random_bits(); /* numbers that would be NaN, too */
    vary_weights(&p.a, rows, p.entry, p.entries);
    fill_rows(&p);
    fill_vectors(&p);
    p.size = logits_size(&p);
    return p;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->vectors);
    sl_guarded_free(&p->source);
    sl_guarded_free(&p->target);
    sl_guarded_free(&p->g);
    free(p->to);
    free(p->from);
    free(p->entry);
    free(p->k);
}

static const char *name_of(const struct problem *p, const char *what)
{
    static char name[160];
    snprintf(name, sizeof name, "%s: %s, %lldx%lld, %d heads of %lld, logits of %g, %s%s", what,
             p->pair.products ? "transformer" : "GATv2", (long long)p->rows, (long long)p->cols,
             p->pair.attention.heads, (long long)p->pair.width, p->size,
             p->a.view.value ? "weighted" : "unweighted",
             p->pair.attention.drop.threshold ? ", dropout" : "");
    return name;
}

/* ---- Naive ---- */

static double logit_of(const struct problem *p, const struct sl_entry *e, int64_t h)
{
    double sum = 0.0;
    for (int64_t k = h * p->pair.width; k < (h + 1) * p->pair.width; k++) {
        const double source = p->k[e->col * p->all + k], target = p->t[e->row * p->all + k],
                     x = source + target;
        sum += p->pair.products
                   ? source * target
                   : p->factor[k] * (x > 0.0 ? x : (double)p->pair.attention.slope * x);
    }
    return sum;
}

/* Set coefficients and dropout of all entries for head h, and the logs of sums of all rows. */
static void naive_head(const struct problem *p, int64_t h, double *alpha, double *mask,
                       double *log_sum)
{
    double *most = sl_doubles(p->rows), *sum = sl_doubles(p->rows);
    for (int64_t r = 0; r < p->rows; r++)
        most[r] = -INFINITY;
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t r = p->entry[e].row;
        alpha[e] = logit_of(p, &p->entry[e], h);
        mask[e] = mask_between(&p->pair.attention.drop, p->to[r], p->from[p->entry[e].col],
                               p->pair.attention.first_head + h);
        if (p->entry[e].value > 0.0f)
            most[r] = fmax(most[r], alpha[e]);
    }
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t r = p->entry[e].row;
        const double weight = (double)p->entry[e].value;
        alpha[e] = weight > 0.0 ? weight * exp(alpha[e] - most[r]) : 0.0;
        sum[r] += alpha[e];
    }
    for (int64_t e = 0; e < p->entries; e++)
        alpha[e] /= sum[p->entry[e].row] > 0.0 ? sum[p->entry[e].row] : 1.0;
    for (int64_t r = 0; r < p->rows; r++)
        log_sum[r] = most[r] + (sum[r] > 0.0 ? log(sum[r]) : 0.0);
    free(most);
    free(sum);
}

/* In one block, which begins with alpha. */
static struct naive make_naive(const struct problem *p)
{
    const int64_t heads = p->pair.attention.heads, all = p->all;
    double *const block = sl_doubles(heads * (2 * p->entries + p->rows) + 2 * p->rows * all);
    struct naive n = {.alpha = block, .mask = block + heads * p->entries};
    n.log_sum = n.mask + heads * p->entries;
    n.z = n.log_sum + heads * p->rows;
    n.z_size = n.z + p->rows * all;
    for (int64_t h = 0; h < heads; h++)
        naive_head(p, h, n.alpha + h * p->entries, n.mask + h * p->entries,
                   n.log_sum + h * p->rows);
    for (int64_t e = 0; e < p->entries; e++)
        for (int64_t k = 0; k < all; k++) {
            const int64_t at = k / p->pair.width * p->entries + e, to = p->entry[e].row * all + k;
            const double term = n.alpha[at] * n.mask[at] * p->v[p->entry[e].col * all + k];
            n.z[to] += term;
            n.z_size[to] += fabs(term);
        }
    return n;
}

/* How far sums of coefficients may be off, relative to their terms. */
static double relative(const struct problem *p)
{
    const double width = (double)p->pair.width;
    return SL_UNIT * (60.0 + 2.0 * width + (double)p->most + 3.0 * (width + 6.0) * p->size);
}

/* ---- States ---- */

/* The entries of columns [first, last). */
static void meet(const struct problem *p, int64_t first, int64_t last, int64_t block_cols,
                 bool wide, bool accumulate, struct sl_guarded *state)
{
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
    const struct sl_floats_at vectors = floats(&p->vectors, 0), source = floats(&p->source, first),
                              target = floats(&p->target, 0), to = floats(state, 0);
    sl_kernel_pair(&p->pair, &a.view, &vectors, &source, &target, accumulate, &to);
    sl_guarded_sparse_free(&a);
}

static struct sl_guarded empty_state(const struct problem *p, enum sl_layout layout)
{
    return sl_guarded_empty(p->rows, sl_pair_state(&p->pair), layout, SL_CANARY);
}

static void expect_close(const struct problem *p, const char *what, int64_t r, int64_t k,
                         double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s (%s): element (%lld, %lld) is %.9g, not %.9g (within %.2g)", name_of(p, what),
                 sl_level_name(), (long long)r, (long long)k, got, want, bound);
}

/* m may be any number for which l and Z are neither too large nor too small. */
static void check_state(const struct problem *p, const struct naive *n, const char *what,
                        const struct sl_guarded *state, bool closed)
{
    const int64_t heads = p->pair.attention.heads, width = p->pair.width;
    for (int64_t i = 0; i < p->rows * heads; i++) {
        const int64_t r = i / heads, h = i % heads;
        const double m = (double)*sl_element(state, r, p->room + h),
                     l = closed ? 1.0 : (double)*sl_element(state, r, p->room + heads + h),
                     log_sum = n->log_sum[h * p->rows + r];
        const bool any = log_sum > -INFINITY;
        if (!closed && (any ? !(l > 0.0) : l != 0.0))
            fail_msg("%s (%s): l of row %lld, head %lld is %g", name_of(p, what), sl_level_name(),
                     (long long)r, (long long)h, l);
        if (!closed && !any)
            continue;
        expect_close(p, "log of the sum", r, h, m + log(l), any ? log_sum : 0.0, relative(p));
        for (int64_t k = h * width; k < (h + 1) * width; k++)
            expect_close(p, what, r, k, (double)*sl_element(state, r, place(&p->pair, k)) / l,
                         n->z[r * p->all + k], relative(p) * n->z_size[r * p->all + k] + LOST);
    }
    sl_expect_padding_kept(name_of(p, what), state);
}

/* Closes, and compares before and after. Of targets, L alone changes. */
static void close_and_check(const struct problem *p, const struct naive *n, const char *what,
                            struct sl_guarded *state)
{
    struct sl_guarded before = sl_guarded_copy(&p->target, SL_EDGE, NAN);
    const struct sl_floats_at vectors = floats(&p->vectors, 0), target = floats(&p->target, 0),
                              to = floats(state, 0);
    check_state(p, n, what, state, false);
    sl_kernel_pair_close(&p->pair, p->rows, &vectors, &target, &to);
    check_state(p, n, what, state, true);
    expect_room(name_of(p, what), &p->pair, 1, state);
    for (int64_t r = 0; r < p->rows; r++)
        memcpy(sl_element(&before, r, p->room), sl_element(state, r, p->room),
               (size_t)p->pair.attention.heads * sizeof(float));
    sl_expect_same_bits(name_of(p, what), &p->target, &before);
    sl_guarded_free(&before);
    sl_expect_padding_kept(name_of(p, what), &p->target);
}

/* Tiles from the last to the first. */
static void check_parts(const struct problem *p, const struct naive *n, int parts,
                        int64_t block_cols, bool wide, enum sl_layout layout)
{
    struct sl_guarded state = empty_state(p, layout);
    for (int i = parts - 1; i >= 0; i--)
        meet(p, p->cols * i / parts, p->cols * (i + 1) / parts, block_cols, wide, i < parts - 1,
             &state);
    close_and_check(p, n, parts > 1 ? "Z of tiles" : "Z", &state);
    sl_guarded_free(&state);
}

static void check_forward(const struct problem *p, const struct naive *n)
{
    check_parts(p, n, 1, 0, false, p->g.layout);
    check_parts(p, n, 1, 7, true, SL_TIGHT);
    check_parts(p, n, 3, 0, true, SL_LOOSE);
    check_parts(p, n, 4, p->cols / 9 + 1, false, SL_EDGE);
}

/* Columns before and after `cut`; rows of a list come in another order, and those without entries
 * do not come. */
static void merge_at(const struct problem *p, const struct naive *n, int64_t cut, bool listed)
{
    struct sl_guarded state = empty_state(p, SL_LOOSE), other = empty_state(p, SL_EDGE),
                      moved = empty_state(p, SL_PADDED);
    uint32_t *index = sl_row_numbers(p->rows, p->rows, true);
    int64_t count = 0;
    meet(p, cut, p->cols, 0, false, false, &state);
    meet(p, 0, cut, 6 + p->cols / 8, true, false, &other);
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t from = listed ? index[r] : r;
        bool any = !listed;
        for (int64_t h = 0; h < p->pair.attention.heads; h++)
            any = any || *sl_element(&other, from, p->room + p->pair.attention.heads + h) > 0.0f;
        if (!any)
            continue;
        memcpy(sl_element(&moved, count, 0), sl_element(&other, from, 0),
               (size_t)other.cols * sizeof(float));
        index[count++] = (uint32_t)from;
    }
    const struct sl_floats_at from = floats(&moved, 0), to = floats(&state, 0);
    sl_kernel_pair_merge(&p->pair, count, listed ? index : NULL, &from, &to);
    close_and_check(p, n, listed ? "Z merged, listed" : "Z merged", &state);
    sl_guarded_free(&state);
    sl_guarded_free(&other);
    sl_guarded_free(&moved);
    free(index);
}

static void check_merge(const struct problem *p, const struct naive *n)
{
    for (int listed = 0; listed < 2; listed++) {
        merge_at(p, n, p->cols / 2, listed);
        merge_at(p, n, 0, listed);
        merge_at(p, n, p->cols, listed);
    }
}

/* ---- Gradients ---- */

/* Sums of the sizes of the terms that gradients are made of, and Σ |G·Z| of heads. */
struct sizes {
    double *k, *v, *t, *factor, *value;
};

/* In one block, which begins with k. */
static struct sizes make_sizes(const struct problem *p, const struct naive *n)
{
    const int64_t all = p->all, width = p->pair.width;
    double *const block = sl_doubles(3 * p->most * all + all + p->pair.attention.heads);
    struct sizes s = {.k = block, .v = block + p->most * all};
    s.t = s.v + p->most * all;
    s.factor = s.t + p->most * all;
    s.value = s.factor + all;
    for (int64_t i = 0; i < p->rows * all; i++)
        s.value[i % all / width] +=
            fabs((double)*sl_element(&p->g, i / all, i % all)) * n->z_size[i];
    for (int64_t at = 0; at < p->pair.attention.heads * p->entries; at++) {
        const struct sl_entry *e = &p->entry[at % p->entries];
        const int64_t first = at / p->entries * width;
        const double *const z = n->z_size + e->row * all, *const v = p->v + e->col * all,
                            *const source = p->k + e->col * all, *const t = p->t + e->row * all;
        const float *const g = sl_element(&p->g, e->row, 0);
        double de = 0.0;
        for (int64_t k = first; k < first + width; k++)
            de += n->alpha[at] * fabs((double)g[k]) * (n->mask[at] * fabs(v[k]) + z[k]);
        for (int64_t k = first; k < first + width; k++) {
            const double share = n->alpha[at] * n->mask[at] * fabs((double)g[k]),
                         a = fabs(p->factor[k]);
            s.k[e->col * all + k] += p->pair.products ? de * fabs(t[k]) : de * a + share;
            s.t[e->row * all + k] += de * (p->pair.products ? fabs(source[k]) : a);
            s.v[e->col * all + k] += share;
            s.factor[k] += de * (fabs(source[k]) + fabs(t[k]));
        }
    }
    return s;
}

/* Σ G·Z of head h over the rows. */
static double value_of(const struct problem *p, int64_t h)
{
    double *alpha = sl_doubles(2 * p->entries + p->rows), *mask = alpha + p->entries, sum = 0.0;
    naive_head(p, h, alpha, mask, mask + p->entries);
    for (int64_t e = 0; e < p->entries; e++)
        for (int64_t k = h * p->pair.width; k < (h + 1) * p->pair.width; k++)
            sum += (double)*sl_element(&p->g, p->entry[e].row, k) * alpha[e] * mask[e] *
                   p->v[p->entry[e].col * p->all + k];
    free(alpha);
    return sum;
}

/* Some elements of a matrix (rows, H·F) of the naive problem against `by` of the columns of BACK
 * from `column` on. A difference has its own error, of the step and of cancellation. */
static void check_differences(const struct problem *p, const struct sizes *s, const char *what,
                              double *matrix, int64_t rows, const double *size, double by,
                              int64_t column, const struct sl_guarded *back)
{
    const int64_t count = rows * p->all;
    const double steep = p->large ? 4.0 * FAR : 4.0, step = 1e-5 / steep;
    for (int64_t i = 0; i < count && i < DIFFERENCES; i++) {
        const int64_t at = count <= DIFFERENCES ? i : sl_random_below(count),
                      h = at % p->all / p->pair.width;
        const double before = matrix[at];
        matrix[at] = before + step;
        const double above = value_of(p, h), up = matrix[at];
        matrix[at] = before - step;
        const double want = by * (above - value_of(p, h)) / (up - matrix[at]);
        matrix[at] = before;
        expect_close(p, what, at / p->all, at % p->all,
                     (double)*sl_element(back, at / p->all, column + at % p->all), want,
                     2.0 * relative(p) * size[at] +
                         1e-10 * steep * (1.0 + p->size / 10.0) * s->value[h] + LOST);
    }
}

static struct sl_guarded zeroed(int64_t rows, int64_t cols, int64_t from, enum sl_layout layout)
{
    struct sl_guarded m = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    for (int64_t r = from; r < rows; r++)
        memset(sl_element(&m, r, 0), 0, (size_t)cols * sizeof(float));
    return m;
}

/* Rows and columns in two tiles each. */
static void walk_back(const struct problem *p, int64_t block_cols,
                      const struct sl_guarded *gradient, struct sl_guarded *target_back,
                      struct sl_guarded *source_back)
{
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    const struct sl_floats_at vectors = floats(&p->vectors, 0), sources = floats(&p->source, 0),
                              targets = floats(&p->target, 0), gradients = floats(gradient, 0),
                              c = floats(target_back, 0), d = floats(source_back, 0);
    for (int part = 0; part < 2; part++) {
        const int64_t row = part ? p->rows / 2 : 0, col = part ? p->cols / 2 : 0;
        struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, col,
                                                           part ? p->cols : p->cols / 2, block_cols,
                                                           !part),
                                 at = sl_guarded_sparse_cut(&whole.view, row,
                                                            part ? p->rows : p->rows / 2,
                                                            block_cols, part);
        const struct sl_floats_at source = floats(&p->source, col),
                                  target = floats(&p->target, row), g = floats(gradient, row);
        sl_kernel_pair_again(&p->pair, &a.view, &vectors, &source, &targets, &gradients, part, &c,
                             false, NULL);
        sl_kernel_pair_back(&p->pair, &at.view, &vectors, &g, &target, &sources, part, &d);
        sl_guarded_sparse_free(&a);
        sl_guarded_sparse_free(&at);
    }
    sl_guarded_sparse_free(&whole);
    sl_expect_padding_kept(name_of(p, "again"), target_back);
    sl_expect_padding_kept(name_of(p, "back"), source_back);
    expect_room(name_of(p, "again"), &p->pair, 1, target_back);
    expect_room(name_of(p, "back"), &p->pair, 2, source_back);
}

/* Vertices are both ends; those beyond the rows or columns have no gradient there. */
static void check_gradient_in(const struct problem *p, const struct naive *n,
                              const struct sl_guarded *state, int64_t block_cols)
{
    const struct sl_pair *pair = &p->pair;
    const int64_t all = p->all;
    struct sl_guarded gradient =
                          sl_guarded_empty(p->rows, sl_pair_gradient(pair), SL_LOOSE, SL_CANARY),
                      target_back = zeroed(p->most, p->room, p->rows, SL_PADDED),
                      source_back = zeroed(p->most, 2 * p->room, p->cols, SL_EDGE),
                      back =
                          sl_guarded_empty(p->most, sl_pair_projected(pair), SL_LOOSE, SL_CANARY),
                      vector = sl_guarded_empty(1, all, SL_EDGE, SL_CANARY);
    const struct sl_rows g = sl_rows_of(&p->g);
    const struct sl_floats_at closed = floats(state, 0), to = floats(&gradient, 0),
                              vectors = floats(&p->vectors, 0), source = floats(&p->source, 0),
                              target = floats(&p->target, 0), c = floats(&target_back, 0),
                              d = floats(&source_back, 0), projected = floats(&back, 0);
    sl_kernel_pair_gradient(pair, p->rows, false, &g, &closed, &vectors, &to);
    walk_back(p, block_cols, &gradient, &target_back, &source_back);
    sl_kernel_pair_join(pair, p->most, &vectors, &c, &d, &projected);
    struct sizes s = make_sizes(p, n);
    check_differences(p, &s, "dK", p->k, p->cols, s.k, 1.0, 0, &back);
    if (pair->products)
        check_differences(p, &s, "dV", p->v, p->cols, s.v, 1.0, all, &back);
    check_differences(p, &s, "dT", p->t, p->rows, s.t, (double)pair->scale,
                      pair->products ? 2 * all : all, &back);
    if (!pair->products) {
        sl_kernel_pair_vector_back(pair, p->most, &source, &target, &c, &d, vector.at);
        check_differences(p, &s, "da", p->factor, 1, s.factor, 1.0, 0, &vector);
    }
    free(s.k);
    sl_guarded_free(&gradient);
    sl_guarded_free(&target_back);
    sl_guarded_free(&source_back);
    sl_guarded_free(&back);
    sl_guarded_free(&vector);
}

static void check_gradient(const struct problem *p, const struct naive *n)
{
    struct sl_guarded state = empty_state(p, SL_LOOSE);
    meet(p, 0, p->cols, 0, false, false, &state);
    close_and_check(p, n, "Z", &state);
    for (int64_t h = 0; p->rows == 1 && p->cols == 1 && h < p->pair.attention.heads; h++)
        *sl_element(&p->target, 0, p->room + h) -= 100.0f; /* a coefficient is 1 at most */
    check_gradient_in(p, n, &state, 0);
    check_gradient_in(p, n, &state, 2);
    sl_guarded_free(&state);
}

/* ---- All of them ---- */

typedef void checking(const struct problem *p, const struct naive *n);

static void check_problem(int64_t rows, int64_t cols, int32_t heads, int64_t width, bool large,
                          double dropped, enum sl_layout layout, checking *check)
{
    for (int products = 0; products < 2; products++) {
        const struct sl_pair pair = pair_of(heads, width, products);
        struct problem p = make_problem(rows, cols, &pair, large, dropped, layout);
        struct naive n = make_naive(&p);
        for (int level = 0; sl_takes(p.entries * p.all) && sl_next_level(&level);)
            check(&p, &n);
        free(n.alpha);
        free_problem(&p);
    }
}

/* Row `rows / 2` is full, so that degrees are the numbers of columns; every fifth row is empty. */
static void each_shape(int64_t rows, bool large, double dropped, checking *check)
{
    static const int64_t degrees[] = {1, 63, 64, 65, 130};
    for (size_t s = 0; s < SL_COUNT(pair_shapes); s++)
        check_problem(rows, degrees[s % SL_COUNT(degrees)], pair_shapes[s].heads,
                      pair_shapes[s].width, large, dropped, (enum sl_layout)(s % SL_LAYOUTS),
                      check);
}

static void each_option(checking *check)
{
    each_shape(9, false, 0.0, check);
    each_shape(9, false, 0.4, check);
    each_shape(7, true, 0.0, check);
    check_problem(1, 1, 1, 1, false, 0.0, SL_EDGE, check);
    check_problem(1, 1, 2, 5, true, 0.0, SL_PADDED, check);
    check_problem(1, 130, 3, 5, true, 0.6, SL_EDGE, check);
}

SL_TEST(test_forward)
{
    each_option(check_forward);
    check_problem(0, 9, 2, 3, false, 0.0, SL_TIGHT, check_forward);
}

SL_TEST(test_hub)
{
    check_problem(3, 10000, 3, 5, false, 0.0, SL_PADDED, check_forward);
    check_problem(3, 10000, 8, 8, true, 0.5, SL_LOOSE, check_forward);
    check_problem(2, 10000, 2, 7, false, 0.5, SL_TIGHT, check_merge);
}

SL_TEST(test_merge)
{
    each_option(check_merge);
}

SL_TEST(test_gradient)
{
    each_option(check_gradient);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_gradient),
    };
    sl_random_seed(12);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
