/* Graph attention: what tiles leave in states, states merged and closed, the walk back, and what is
 * done to rows and parameters. How kernels are judged: tests/kernels.h.
 *
 * The naive result is that of the paper (Velickovic et al., section 2.1) in double, with a tensor
 * of logits, coefficients and dropout for each entry and head. Entries have weights:
 *
 *     e = LeakyReLU(s(row) + t(column))     alpha = w e^e / Σ w e^e     Z = Σ alpha μ P(column)
 *
 * Entries may have features f, and then e = LeakyReLU(s(row) + t(column) + f·EDGE).
 *
 * Gradients are central differences of Σ G·Z. Logits before LeakyReLU are odd multiples of 1/128:
 * exact in float, and never near the kink.
 *
 * A logit e of size B is off by B u, and so is the log of the sum. Every coefficient is off by some
 * B u of itself. The sums add their roundings. */
#include "codelets/attention_rows.h"
#include "tests/kernels_attention.h"

static const double STEP = 1e-5;
enum { DIFFERENCES = 60 }; /* at most, of each matrix; else some at random */

struct problem {
    struct sl_attention attention;
    int64_t rows, cols, all;
    double size;                 /* of the largest logit */
    struct sl_guarded_sparse a;  // (rows, cols)
    struct sl_guarded projected; // (cols)
    struct sl_guarded scores;    // (rows)
    struct sl_guarded g;         // (rows, H·F)
    uint32_t *to, *from;         // (rows), (cols): vertices
    struct sl_entry *entry;      // (entries)
    int64_t entries;
    double *p, *t, *s;      // (cols, H·F), (cols, H), (rows, H)
    int64_t features;       /* of an entry; 0: none */
    struct sl_guarded edge; // (features, H)
    double *v;              // (features, H): the same
};

/* Results of the paper's formulas. */
struct naive {
    double *logit, *slope, *mask, *alpha; // (entries, H); `slope` that of LeakyReLU
    double *log_sum;                      // (rows, H)
    double *z, *z_size;                   // (rows, H·F): and the sum of its terms' sizes
};

/* ---- Problems ---- */

static float logit_part(double size, bool odd)
{
    const int64_t far = size > 100.0 ? sl_random_below(3) - 1 : 0;
    const int64_t near = sl_random_below(257) - 128;
    return (float)((double)far * size + (double)near / 64.0 + (odd ? 1.0 / 128.0 : 0.0));
}

static void fill(struct problem *p, double size)
{
    const int64_t heads = p->attention.heads;
    for (int64_t c = 0; c < p->cols; c++) {
        float *const row = sl_element(&p->projected, c, 0);
        for (int64_t k = 0; k < p->all; k++)
            p->p[c * p->all + k] = (double)row[k];
        for (int64_t h = 0; h < heads; h++) {
            row[p->all + h] = logit_part(size, false);
            p->t[c * heads + h] = (double)row[p->all + h];
            row[p->all + heads + h] = NAN; /* another vertex's s does not matter */
        }
        put_vertex(row + p->all + heads, p->from[c]);
    }
    for (int64_t r = 0; r < p->rows; r++) {
        float *const row = sl_element(&p->scores, r, 0);
        for (int64_t h = 0; h < heads; h++) {
            row[h] = logit_part(size, true);
            p->s[r * heads + h] = (double)row[h];
            row[heads + h] = 0.0f;
        }
        put_vertex(row + 2 * heads, p->to[r]);
    }
}

static struct problem make_problem(int64_t rows, int64_t cols, int32_t heads, int64_t width,
                                   double size, double dropped, enum sl_layout layout)
{
    struct problem p = {
        .attention = {.heads = heads,
                      .width = width,
                      .slope = 0.2f,
                      .drop = {.scale = 1.0f},
                      .training = true},
        .rows = rows,
        .cols = cols,
        .all = heads * width,
        .size = 2.0 * size + 5.0,
        .a = sl_guarded_sparse_random(rows, cols, 5, rows / 2, layout != SL_TIGHT, SL_REALS),
        .to = sl_row_numbers(rows, rows + 1, true),
        .from = sl_row_numbers(cols, cols + 1, true),
    };
    if (dropped > 0.0)
        p.attention.drop = sl_dropout_make(dropped, sl_rng_key(5, SL_RNG_ATTENTION, 2, 1));
    p.projected =
        sl_guarded_random(cols, sl_attention_projected(&p.attention), layout, NAN, SL_REALS);
    p.scores = sl_guarded_empty(rows, sl_attention_scores(&p.attention), sl_other_layout(layout),
                                SL_CANARY);
    p.g = sl_guarded_random(rows, p.all, layout, NAN, SL_REALS);
    p.entry = sl_sparse_entries(&p.a.view, &p.entries);
    p.p = sl_doubles(cols * p.all);
    p.t = sl_doubles(cols * heads);
    p.s = sl_doubles(rows * heads);
    for (int64_t c = 0; c < cols; c += 3)
        p.from[c] = (uint32_t)sl_random_bits(); /* numbers that would be NaN, too */
    vary_weights(&p.a, rows, p.entry, p.entries);
    fill(&p, size);
    return p;
}

/* Return feature f of the entry in a row and a column of A: -2 … 2. */
static double feature_of(int64_t row, int64_t col, int64_t f)
{
    return (double)((row * 7 + col * 11 + f * 5 + row * col + f * col) % 5 - 2);
}

/* Give the entries features; EDGE has multiples of 1/64. */
static struct problem with_features(struct problem p, int64_t features)
{
    const int64_t heads = p.attention.heads;
    p.features = features;
    p.size += (double)features;
    p.edge = sl_guarded_empty(features, heads, sl_other_layout(p.g.layout), NAN);
    p.v = sl_doubles(features * heads);
    for (int64_t i = 0; i < features * heads; i++) {
        p.v[i] = (double)(sl_random_below(33) - 16) / 64.0;
        *sl_element(&p.edge, i / heads, i % heads) = (float)p.v[i];
    }
    return p;
}

/* Give the entries of a tile of A, or of Aᵀ, their features. Row 0 and column 0 of the tile are
 * those of the matrix at `row` and `col`. */
static struct sl_guarded give_features(const struct problem *p, int64_t row, int64_t col,
                                       bool transposed, struct sl_guarded_sparse *a)
{
    int64_t count;
    struct sl_entry *entry = sl_sparse_entries(&a->view, &count);
    struct sl_guarded features = sl_guarded_empty(count, p->features, SL_EDGE, NAN);
    for (int64_t e = 0; e < count; e++)
        for (int64_t f = 0; f < p->features; f++) {
            const int64_t r = row + entry[e].row, c = col + entry[e].col;
            *sl_element(&features, e, f) =
                (float)feature_of(transposed ? c : r, transposed ? r : c, f);
        }
    a->view.edge_features = p->features;
    a->view.edge = features.at;
    free(entry);
    return features;
}

static void free_problem(struct problem *p)
{
    sl_guarded_sparse_free(&p->a);
    sl_guarded_free(&p->projected);
    sl_guarded_free(&p->scores);
    sl_guarded_free(&p->g);
    free(p->to);
    free(p->from);
    free(p->entry);
    free(p->p);
    free(p->t);
    free(p->s);
    if (p->features)
        sl_guarded_free(&p->edge);
    free(p->v);
}

static const char *name_of(const struct problem *p, const char *what)
{
    static char name[160];
    snprintf(name, sizeof name,
             "%s: %lldx%lld, %d heads of %lld, %lld features, logits of %g, %s%s", what,
             (long long)p->rows, (long long)p->cols, p->attention.heads,
             (long long)p->attention.width, (long long)p->features, p->size,
             p->a.view.value ? "weighted" : "unweighted",
             p->attention.drop.threshold ? ", dropout" : "");
    return name;
}

/* ---- Naive ---- */

/* The logits of head h, and their exponentials over the sum. */
static void naive_head(const struct problem *p, int64_t h, struct naive *n)
{
    const int64_t heads = p->attention.heads;
    double *most = sl_doubles(p->rows), *sum = sl_doubles(p->rows);
    for (int64_t r = 0; r < p->rows; r++)
        most[r] = -INFINITY;
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t r = p->entry[e].row, c = p->entry[e].col, k = e * heads + h;
        double x = p->s[r * heads + h] + p->t[c * heads + h];
        for (int64_t f = 0; f < p->features; f++)
            x += feature_of(r, c, f) * p->v[f * heads + h];
        n->slope[k] = x > 0.0 ? 1.0 : (double)p->attention.slope;
        n->logit[k] = x > 0.0 ? x : (double)p->attention.slope * x;
        n->mask[k] = p->attention.drop.threshold
                         ? mask_between(&p->attention.drop, p->to[r], p->from[c], h)
                         : 1.0;
        if (p->entry[e].value > 0.0f)
            most[r] = fmax(most[r], n->logit[k]);
    }
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t r = p->entry[e].row, k = e * heads + h;
        n->alpha[k] =
            p->entry[e].value > 0.0f ? (double)p->entry[e].value * exp(n->logit[k] - most[r]) : 0.0;
        sum[r] += n->alpha[k];
    }
    for (int64_t e = 0; e < p->entries; e++) {
        const int64_t r = p->entry[e].row;
        n->alpha[e * heads + h] /= sum[r] > 0.0 ? sum[r] : 1.0;
    }
    for (int64_t r = 0; r < p->rows; r++)
        n->log_sum[r * heads + h] = sum[r] > 0.0 ? most[r] + log(sum[r]) : 0.0;
    free(most);
    free(sum);
}

static struct naive make_naive(const struct problem *p)
{
    const int64_t count = p->entries * p->attention.heads;
    struct naive n = {sl_doubles(count),
                      sl_doubles(count),
                      sl_doubles(count),
                      sl_doubles(count),
                      sl_doubles(p->rows * p->attention.heads),
                      sl_doubles(p->rows * p->all),
                      sl_doubles(p->rows * p->all)};
    for (int64_t h = 0; h < p->attention.heads; h++)
        naive_head(p, h, &n);
    for (int64_t e = 0; e < p->entries; e++)
        for (int64_t k = 0; k < p->all; k++) {
            const int64_t at = e * p->attention.heads + k / p->attention.width,
                          to = p->entry[e].row * p->all + k;
            const double term = n.alpha[at] * n.mask[at] * p->p[p->entry[e].col * p->all + k];
            n.z[to] += term;
            n.z_size[to] += fabs(term);
        }
    return n;
}

static void free_naive(struct naive *n)
{
    free(n->logit);
    free(n->slope);
    free(n->mask);
    free(n->alpha);
    free(n->log_sum);
    free(n->z);
    free(n->z_size);
}

/* How far sums of coefficients may be off, relative to their terms. */
static double relative(const struct problem *p)
{
    return SL_UNIT * (60.0 + 6.0 * p->size + (double)p->cols / 16.0);
}

/* ---- States ---- */

/* The entries of columns [first, last). */
static void meet(const struct problem *p, int64_t first, int64_t last, int64_t block_cols,
                 bool wide, bool accumulate, struct sl_guarded *state)
{
    struct sl_guarded_sparse a = sl_guarded_sparse_cut(&p->a.view, first, last, block_cols, wide);
    struct sl_guarded features = {0};
    if (p->features)
        features = give_features(p, 0, first, false, &a);
    const struct sl_floats_at projected = floats(&p->projected, first),
                              scores = floats(&p->scores, 0), edge = floats(&p->edge, 0),
                              to = floats(state, 0);
    sl_kernel_attention(&p->attention, &a.view, &projected, &scores, p->features ? &edge : NULL,
                        accumulate, &to);
    sl_guarded_sparse_free(&a);
    if (p->features)
        sl_guarded_free(&features);
}

static struct sl_guarded empty_state(const struct problem *p, enum sl_layout layout)
{
    return sl_guarded_empty(p->rows, sl_attention_state(&p->attention), layout, SL_CANARY);
}

static void expect_close(const struct problem *p, const char *what, int64_t r, int64_t k,
                         double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s (%s): element (%lld, %lld) is %.9g, not %.9g (within %.2g)", name_of(p, what),
                 sl_level_name(), (long long)r, (long long)k, got, want, bound);
}

/* Σ alpha σ and Σ alpha σ μ P, which gradients need. */
static void check_sloped(const struct problem *p, const struct naive *n,
                         const struct sl_guarded *state)
{
    const int64_t heads = p->attention.heads, first = p->all + 2 * heads;
    double *q = sl_doubles(p->rows * heads), *z = sl_doubles(p->rows * p->all);
    for (int64_t e = 0; e < p->entries; e++)
        for (int64_t k = 0; k < p->all; k++) {
            const int64_t h = k / p->attention.width, at = e * heads + h, r = p->entry[e].row;
            const double sloped = n->alpha[at] * n->slope[at];
            z[r * p->all + k] += sloped * n->mask[at] * p->p[p->entry[e].col * p->all + k];
            q[r * heads + h] += k % p->attention.width ? 0.0 : sloped;
        }
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t k = 0; k < p->all; k++)
            expect_close(p, "Z'", r, k, (double)*sl_element(state, r, first + k), z[r * p->all + k],
                         relative(p) * n->z_size[r * p->all + k] + 1e-30);
        for (int64_t h = 0; h < heads; h++)
            expect_close(p, "q", r, h, (double)*sl_element(state, r, first + p->all + h),
                         q[r * heads + h], relative(p));
    }
    free(q);
    free(z);
}

/* Closes, and compares. */
static void close_and_check(const struct problem *p, const struct naive *n, const char *what,
                            struct sl_guarded *state)
{
    const int64_t heads = p->attention.heads;
    const struct sl_floats_at scores = floats(&p->scores, 0), to = floats(state, 0);
    sl_kernel_attention_close(&p->attention, p->rows, &scores, &to);
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t k = 0; k < p->all; k++)
            expect_close(p, what, r, k, (double)*sl_element(state, r, k), n->z[r * p->all + k],
                         relative(p) * n->z_size[r * p->all + k] + 1e-30);
        for (int64_t h = 0; h < heads; h++) {
            const float l = *sl_element(&p->scores, r, heads + h);
            assert_true(sl_same_bits(l, *sl_element(state, r, p->all + h)));
            expect_close(p, "log of the sum", r, h, (double)l, n->log_sum[r * heads + h],
                         relative(p));
        }
        uint32_t vertex;
        memcpy(&vertex, sl_element(&p->scores, r, 2 * heads), sizeof vertex);
        assert_int_equal(vertex ^ SL_ATTENTION_VERTEX, p->to[r]);
    }
    if (p->attention.training)
        check_sloped(p, n, state);
    sl_expect_padding_kept(name_of(p, what), state);
    sl_expect_padding_kept(name_of(p, what), &p->scores);
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
    struct problem evaluated = *p;
    evaluated.attention.training = false;
    evaluated.attention.drop.threshold = 0;
    struct naive exact = make_naive(&evaluated);
    check_parts(&evaluated, &exact, 3, 5 + p->cols / 4, false, SL_PADDED);
    free_naive(&exact);
}

/* ---- Merged ---- */

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
        for (int64_t h = 0; h < p->attention.heads; h++)
            any = any || *sl_element(&other, from, p->all + p->attention.heads + h) > 0.0f;
        if (!any)
            continue;
        memcpy(sl_element(&moved, count, 0), sl_element(&other, from, 0),
               (size_t)other.cols * sizeof(float));
        index[count++] = (uint32_t)from;
    }
    const struct sl_floats_at from = floats(&moved, 0), to = floats(&state, 0);
    sl_kernel_attention_merge(&p->attention, count, listed ? index : NULL, &from, &to);
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

/* Σ G·Z of head h over the rows. */
static double value_of(const struct problem *p, int64_t h)
{
    struct naive n = {sl_doubles(p->entries * p->attention.heads),
                      sl_doubles(p->entries * p->attention.heads),
                      sl_doubles(p->entries * p->attention.heads),
                      sl_doubles(p->entries * p->attention.heads),
                      sl_doubles(p->rows * p->attention.heads),
                      NULL,
                      NULL};
    double sum = 0.0;
    naive_head(p, h, &n);
    for (int64_t e = 0; e < p->entries; e++)
        for (int64_t j = h * p->attention.width; j < (h + 1) * p->attention.width; j++)
            sum += (double)*sl_element(&p->g, p->entry[e].row, j) *
                   n.alpha[e * p->attention.heads + h] * n.mask[e * p->attention.heads + h] *
                   p->p[p->entry[e].col * p->all + j];
    free_naive(&n);
    return sum;
}

/* Some elements of a matrix (rows, heads · width) of the naive problem against the columns of BACK
 * from `column` on, which began with `begin`. */
static void check_differences(const struct problem *p, const char *what, double *matrix,
                              int64_t rows, int64_t width, int64_t column, double begin,
                              const struct sl_guarded *back)
{
    const int64_t cols = p->attention.heads * width, count = rows * cols;
    const double bound = relative(p) * (p->size > 100.0 || matrix == p->v ? 4.0 : 1.0);
    for (int64_t i = 0; i < count && i < DIFFERENCES; i++) {
        const int64_t at = count <= DIFFERENCES ? i : sl_random_below(count), h = at % cols / width;
        const double before = matrix[at];
        matrix[at] = before + STEP;
        const double above = value_of(p, h);
        matrix[at] = before - STEP;
        const double below = value_of(p, h);
        matrix[at] = before;
        const double want = begin + (above - below) / (2.0 * STEP);
        /* a difference has its own error, of the step and of cancellation in the sum */
        expect_close(p, what, at / cols, at % cols,
                     (double)*sl_element(back, at / cols, column + at % cols), want,
                     bound * (double)(2 * p->rows) * (double)(8 + p->attention.width) +
                         1e-9 * (fabs(want) + (double)p->all));
    }
}

/* The walk back over rows [first, last) of A. */
static void meet_back(const struct problem *p, const struct sl_guarded_sparse *whole, int64_t first,
                      int64_t last, int64_t block_cols, const struct sl_guarded *gradient,
                      const struct sl_guarded *back, bool edge_accumulate,
                      const struct sl_guarded *edge_back)
{
    const bool accumulate = first > 0, has_edges = p->features > 0;
    struct sl_guarded_sparse at =
        sl_guarded_sparse_cut(&whole->view, first, last, block_cols, accumulate);
    struct sl_guarded features = {0};
    if (has_edges)
        features = give_features(p, 0, first, true, &at);
    const struct sl_floats_at from = floats(gradient, first), scores = floats(&p->scores, first),
                              projected = floats(&p->projected, 0), edge = floats(&p->edge, 0),
                              to = floats(back, 0), edge_to = floats(edge_back, 0);
    sl_kernel_attention_back(&p->attention, &at.view, &from, &scores, &projected,
                             has_edges ? &edge : NULL, accumulate, &to, edge_accumulate,
                             has_edges ? &edge_to : NULL);
    sl_guarded_sparse_free(&at);
    if (has_edges)
        sl_guarded_free(&features);
}

/* The walk back in two tiles of rows; ds from rows alone. With small blocks, EDGE_BACK begins
 * with 1.
 */
static void check_gradient_in(const struct problem *p, const struct sl_guarded *state,
                              int64_t block_cols)
{
    const int64_t heads = p->attention.heads;
    struct sl_guarded gradient = sl_guarded_empty(p->rows, sl_attention_gradient(&p->attention),
                                                  SL_LOOSE, SL_CANARY),
                      back = sl_guarded_empty(p->cols, sl_attention_projected(&p->attention),
                                              SL_EDGE, SL_CANARY),
                      own = sl_guarded_empty(p->rows, sl_attention_projected(&p->attention),
                                             SL_PADDED, SL_CANARY);
    struct sl_guarded edge_back = sl_guarded_empty(p->features, heads, p->g.layout, SL_CANARY);
    const bool begun = block_cols > 0;
    struct sl_guarded_sparse whole = sl_guarded_sparse_transpose(&p->a.view, 0);
    const struct sl_rows g = sl_rows_of(&p->g);
    const struct sl_floats_at closed = floats(state, 0), to = floats(&gradient, 0),
                              rows = floats(&own, 0);
    sl_kernel_attention_gradient(&p->attention, p->rows, p->all, &g, &closed, &to);
    sl_expect_padding_kept(name_of(p, "gradient"), &gradient);
    for (int64_t i = 0; begun && i < p->features * heads; i++)
        *sl_element(&edge_back, i / heads, i % heads) = 1.0f;
    meet_back(p, &whole, 0, p->rows / 2, block_cols, &gradient, &back, begun, &edge_back);
    meet_back(p, &whole, p->rows / 2, p->rows, block_cols, &gradient, &back, true, &edge_back);
    sl_expect_padding_kept(name_of(p, "back"), &back);
    sl_expect_padding_kept(name_of(p, "EDGE_BACK"), &edge_back);
    for (int64_t c = 0; c < p->cols; c++)
        for (int64_t h = 0; h < heads; h++)
            assert_true(*sl_element(&back, c, p->all + heads + h) == 0.0f);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t k = 0; k < own.cols; k++)
            *sl_element(&own, r, k) = 0.0f;
    sl_kernel_attention_own(&p->attention, p->rows, &to, &closed, &rows);
    sl_expect_padding_kept(name_of(p, "own"), &own);
    check_differences(p, "dP", p->p, p->cols, p->attention.width, 0, 0.0, &back);
    check_differences(p, "dt", p->t, p->cols, 1, p->all, 0.0, &back);
    check_differences(p, "ds", p->s, p->rows, 1, p->all + heads, 0.0, &own);
    if (p->features)
        check_differences(p, "EDGE_BACK", p->v, p->features, 1, 0, begun, &edge_back);
    sl_guarded_free(&gradient);
    sl_guarded_free(&back);
    sl_guarded_free(&own);
    sl_guarded_free(&edge_back);
    sl_guarded_sparse_free(&whole);
}

static void check_gradient(const struct problem *p, const struct naive *n)
{
    struct sl_guarded state = empty_state(p, SL_LOOSE);
    meet(p, 0, p->cols, 0, false, false, &state);
    close_and_check(p, n, "Z", &state);
    check_gradient_in(p, &state, 0);
    check_gradient_in(p, &state, 2);
    sl_guarded_free(&state);
}

/* ---- All of them ---- */

typedef void checking(const struct problem *p, const struct naive *n);

static void check_problem(struct problem p, checking *check)
{
    struct naive n = make_naive(&p);
    for (int level = 0; sl_next_level(&level);)
        check(&p, &n);
    free_naive(&n);
    free_problem(&p);
}

static const int32_t head_counts[] = {1, 2, 3, 8, 9};
static const int64_t head_widths[] = {1, 2, 5, 7, 8, 16, 17, 33};

/* Every number of heads with every width. Row `rows / 2` is full, so that degrees are the numbers
 * of columns; every fifth row is empty. */
static void each_shape(int64_t rows, double size, double dropped, checking *check)
{
    static const int64_t degrees[] = {1, 63, 64, 65, 130};
    int turn = 0;
    for (size_t h = 0; h < SL_COUNT(head_counts); h++)
        for (size_t w = 0; w < SL_COUNT(head_widths); w++, turn++)
            check_problem(make_problem(rows, degrees[(size_t)turn % SL_COUNT(degrees)],
                                       head_counts[h], head_widths[w], size, dropped,
                                       (enum sl_layout)(turn % SL_LAYOUTS)),
                          check);
}

static void each_option(checking *check)
{
    each_shape(9, 0.0, 0.0, check);
    each_shape(9, 0.0, 0.4, check);
    each_shape(7, 500.0, 0.0, check);
    check_problem(make_problem(1, 1, 1, 1, 0.0, 0.0, SL_EDGE), check);
    check_problem(make_problem(1, 130, 3, 5, 500.0, 0.6, SL_EDGE), check);
}

SL_TEST(test_forward)
{
    each_option(check_forward);
    check_problem(make_problem(0, 9, 2, 3, 0.0, 0.0, SL_TIGHT), check_forward);
}

SL_TEST(test_many_heads)
{
    check_problem(make_problem(5, 130, 70, 3, 0.0, 0.3, SL_PADDED), check_forward);
    check_problem(make_problem(5, 130, SL_ATTENTION_HEADS, 2, 0.0, 0.3, SL_EDGE), check_gradient);
}

SL_TEST(test_hub)
{
    check_problem(make_problem(3, 10000, 3, 5, 0.0, 0.0, SL_PADDED), check_forward);
    check_problem(make_problem(3, 10000, 8, 8, 500.0, 0.5, SL_LOOSE), check_forward);
    check_problem(make_problem(2, 10000, 2, 7, 0.0, 0.5, SL_TIGHT), check_merge);
}

SL_TEST(test_merge)
{
    each_option(check_merge);
}

SL_TEST(test_gradient)
{
    each_option(check_gradient);
}

/* Every number of features with every number of heads. */
SL_TEST(test_features)
{
    static const int64_t features[] = {1, 3, 8, 17}, degrees[] = {1, 65, 130};
    static const int32_t heads[] = {1, 3, 8, 13};
    static const int64_t widths[] = {1, 2, 3, 4, 5, 8, 16, 33, 40};
    int turn = 0;
    for (size_t f = 0; f < SL_COUNT(features); f++)
        for (size_t h = 0; h < SL_COUNT(heads); h++)
            for (int i = 0; i < 3; i++, turn++) {
                checking *const check[] = {check_forward, check_merge, check_gradient};
                const int64_t width = widths[(size_t)turn % SL_COUNT(widths)];
                for (int c = 0; c < 3; c++)
                    check_problem(with_features(make_problem(9, degrees[i], heads[h], width, 0.0,
                                                             turn % 2 ? 0.4 : 0.0,
                                                             (enum sl_layout)(turn % SL_LAYOUTS)),
                                                features[f]),
                                  check[c]);
            }
    check_problem(with_features(make_problem(9, 130, 8, 8, 0.0, 0.4, SL_EDGE), 8), check_gradient);
    check_problem(with_features(make_problem(5, 40, 2, 4, 0.0, 0.0, SL_EDGE), SL_EDGE_FEATURES),
                  check_gradient);
    check_problem(with_features(make_problem(5, 40, SL_ATTENTION_HEADS, 2, 0.0, 0.3, SL_LOOSE), 3),
                  check_gradient);
    check_problem(with_features(make_problem(60, 12, SL_ATTENTION_HEADS, 16, 0.0, 0.3, SL_EDGE), 1),
                  check_gradient);
    check_problem(with_features(make_problem(2, 3, 3, 5, 0.0, 0.0, SL_TIGHT), 3), check_gradient);
}

/* Without entries, EDGE_BACK is 0. */
SL_TEST(test_features_of_none)
{
    const struct sl_attention attention = {.heads = 3, .width = 5, .slope = 0.2f};
    const uint32_t row_ptr[] = {0, 0, 0};
    const struct sl_sparse at = {
        .rows = 2, .cols = 1, .block_cols = 1, .blocks = 1, .row_ptr = row_ptr, .edge_features = 4};
    struct sl_guarded empty = sl_guarded_empty(2, 40, SL_EDGE, NAN),
                      back = sl_guarded_empty(2, 21, SL_EDGE, SL_CANARY),
                      edge_back = sl_guarded_empty(4, 3, SL_LOOSE, SL_CANARY);
    const struct sl_floats_at any = floats(&empty, 0), to = floats(&back, 0),
                              edge_to = floats(&edge_back, 0);
    for (int level = 0; sl_next_level(&level);) {
        sl_kernel_attention_back(&attention, &at, &any, &any, &any, &any, false, &to, false,
                                 &edge_to);
        double *zero = sl_doubles(2 * 21);
        sl_expect("back of no entries", &back, zero, NULL);
        sl_expect("EDGE_BACK of no entries", &edge_back, zero, NULL);
        free(zero);
        for (int64_t i = 0; i < 12; i++)
            *sl_element(&edge_back, i / 3, i % 3) = NAN;
    }
    sl_guarded_free(&empty);
    sl_guarded_free(&back);
    sl_guarded_free(&edge_back);
}

/* ---- Dropout ---- */

/* A third is dropped, whichever the head; no two heads drop the same entries. */
SL_TEST(test_dropout_share)
{
    struct problem p = make_problem(40, 600, 9, 1, 0.0, 1.0 / 3.0, SL_TIGHT);
    struct naive n = make_naive(&p);
    for (int64_t h = 0; h < p.attention.heads; h++)
        for (int64_t g = 0; g <= h; g++) {
            int64_t both = 0;
            for (int64_t e = 0; e < p.entries; e++)
                both += n.mask[e * p.attention.heads + h] == 0.0 &&
                        n.mask[e * p.attention.heads + g] == 0.0;
            const double share = (double)both / (double)p.entries,
                         want = g == h ? 1.0 / 3.0 : 1.0 / 9.0;
            assert_true(fabs(share - want) < 5.0 * sqrt(want / (double)p.entries));
        }
    free_naive(&n);
    free_problem(&p);
}

/* ---- Rows ---- */

static void check_scores(int64_t rows, int32_t heads, int64_t width, enum sl_layout layout)
{
    const struct sl_attention attention = {.heads = heads, .width = width};
    const int64_t all = heads * width;
    struct sl_guarded projected = sl_guarded_random(rows, sl_attention_projected(&attention),
                                                    layout, SL_CANARY, SL_REALS),
                      scores = sl_guarded_empty(rows, sl_attention_scores(&attention),
                                                sl_other_layout(layout), SL_CANARY),
                      vertex = sl_guarded_vertices(rows);
    struct sl_guarded before = sl_guarded_copy(&projected, SL_TIGHT, NAN);
    const struct sl_floats_at from = floats(&projected, 0), to = floats(&scores, 0);
    sl_kernel_attention_scores(&attention, rows, sl_vertices_of(&vertex), &from, &to);
    for (int64_t r = 0; r < rows; r++) {
        uint32_t number;
        memcpy(&number, &vertex.at[r], sizeof number);
        number ^= SL_ATTENTION_VERTEX;
        for (int64_t h = 0; h < heads; h++) {
            assert_true(*sl_element(&scores, r, h) == *sl_element(&before, r, all + heads + h));
            assert_true(*sl_element(&scores, r, heads + h) == 0.0f);
        }
        assert_memory_equal(sl_element(&scores, r, 2 * heads), &number, sizeof number);
        assert_memory_equal(sl_element(&projected, r, all + heads), &number, sizeof number);
        assert_memory_equal(sl_element(&projected, r, 0), sl_element(&before, r, 0),
                            (size_t)(all + heads) * sizeof number);
    }
    sl_expect_padding_kept("scores", &scores);
    sl_expect_padding_kept("scores: projected", &projected);
    sl_guarded_free(&projected);
    sl_guarded_free(&before);
    sl_guarded_free(&scores);
    sl_guarded_free(&vertex);
}

/* All heads side by side, or their mean. */
static void check_output(int64_t rows, int32_t heads, int64_t width, enum sl_layout layout)
{
    const struct sl_attention attention = {.heads = heads, .width = width};
    struct sl_guarded state =
        sl_guarded_random(rows, sl_attention_state(&attention), layout, NAN, SL_REALS);
    const struct sl_floats_at from = floats(&state, 0);
    for (int mean = 0; mean < 2; mean++) {
        const int64_t out = mean ? width : heads * width;
        struct sl_guarded_epilogue e = sl_guarded_epilogue_random(
            (int)sl_random_below(SL_STEPS_ALL + 1), rows, out, sl_other_layout(layout));
        struct sl_guarded z = sl_guarded_empty(rows, out, sl_other_layout(layout), SL_CANARY);
        const struct sl_rows to = sl_rows_of(&z);
        double *want = sl_doubles(rows * out), *bound = sl_doubles(rows * out);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < heads * width; k++) {
                const int64_t at = r * out + (mean ? k % width : k);
                const double term = (double)*sl_element(&state, r, k) / (mean ? heads : 1);
                want[at] += term;
                bound[at] += mean ? (heads + 2) * SL_UNIT * fabs(term) : 0.0;
            }
        sl_naive_epilogue(&e.view, rows, out, want, bound);
        sl_kernel_attention_output(&attention, rows, out, &from, &e.view, &to);
        sl_expect_vectors(mean ? "mean of heads" : "heads", &z, want, bound);
        free(want);
        free(bound);
        sl_guarded_free(&z);
        sl_guarded_epilogue_free(&e);
    }
    sl_guarded_free(&state);
}

/* [G | r] of heads side by side or of their mean; `g` in float32 or bfloat16. */
static void check_rows_gradient(int64_t rows, int32_t heads, int64_t width, enum sl_layout layout)
{
    const struct sl_attention attention = {.heads = heads, .width = width};
    const int64_t all = heads * width;
    struct sl_guarded state =
        sl_guarded_random(rows, sl_attention_state(&attention), layout, NAN, SL_REALS);
    const struct sl_floats_at closed = floats(&state, 0);
    for (int option = 0; option < 4; option++) {
        const int64_t out = option & 1 ? width : all;
        struct sl_guarded g = sl_guarded_random(rows, out, layout, NAN, SL_REALS),
                          gradient = sl_guarded_empty(rows, sl_attention_gradient(&attention),
                                                      sl_other_layout(layout), SL_CANARY);
        struct sl_narrowed narrow = {.count = 0};
        if (option & 2)
            narrow = sl_narrowed_of(&g, sl_some_spare());
        const struct sl_rows from = option & 2 ? narrow.rows : sl_rows_of(&g);
        const struct sl_floats_at to = floats(&gradient, 0);
        double *want = sl_doubles(rows * gradient.cols), *bound = sl_doubles(rows * gradient.cols);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < all; k++) {
                const double each = (double)*sl_element(&g, r, k % out) / (out < all ? heads : 1),
                             term = each * (double)*sl_element(&state, r, k);
                want[r * gradient.cols + k] = each;
                bound[r * gradient.cols + k] = 2.0 * SL_UNIT * fabs(each);
                want[r * gradient.cols + all + k / width] += term;
                bound[r * gradient.cols + all + k / width] +=
                    (double)(width + 4) * SL_UNIT * fabs(term);
            }
        sl_kernel_attention_gradient(&attention, rows, out, &from, &closed, &to);
        sl_expect("[G | r]", &gradient, want, bound);
        free(want);
        free(bound);
        if (option & 2)
            sl_guarded_free(&narrow.words);
        sl_guarded_free(&g);
        sl_guarded_free(&gradient);
    }
    sl_guarded_free(&state);
}

/* ds goes on from what it is. */
static void check_own(int64_t rows, int32_t heads, int64_t width, enum sl_layout layout)
{
    const struct sl_attention attention = {.heads = heads, .width = width};
    const int64_t all = heads * width, cols = sl_attention_projected(&attention);
    struct sl_guarded state = sl_guarded_random(rows, sl_attention_state(&attention), layout, NAN,
                                                SL_REALS),
                      gradient = sl_guarded_random(rows, sl_attention_gradient(&attention), SL_EDGE,
                                                   NAN, SL_REALS),
                      back = sl_guarded_random(rows, cols, sl_other_layout(layout), SL_CANARY,
                                               SL_REALS);
    const struct sl_floats_at g = floats(&gradient, 0), closed = floats(&state, 0),
                              to = floats(&back, 0);
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < cols; k++)
            want[r * cols + k] = (double)*sl_element(&back, r, k);
        for (int64_t k = 0; k < all; k++) {
            const int64_t h = k / width, at = r * cols + all + heads + h;
            const double rq = (double)*sl_element(&gradient, r, all + h) *
                              (double)*sl_element(&state, r, 2 * all + 2 * heads + h),
                         term = (double)*sl_element(&gradient, r, k) *
                                (double)*sl_element(&state, r, all + 2 * heads + k);
            want[at] += term - (k % width ? 0.0 : rq);
            bound[at] += (double)(width + 6) * SL_UNIT * (fabs(term) + fabs(rq) + 2.0);
        }
    }
    sl_kernel_attention_own(&attention, rows, &g, &closed, &to);
    sl_expect("ds", &back, want, bound);
    free(want);
    free(bound);
    sl_guarded_free(&state);
    sl_guarded_free(&gradient);
    sl_guarded_free(&back);
}

/* ---- Parameters ---- */

/* Σ G·[W | W·a_src | W·a_dst] + Σ dEDGE·(W_e·a_edge) + the bias, in double. */
static double product_of_weights(const struct sl_attention *attention,
                                 const struct sl_attention_shape *shape, const struct sl_guarded *g,
                                 const double *theta)
{
    const int64_t all = sl_attention_all(attention), in = shape->in,
                  vectors = in + shape->edge_features,
                  bias = vectors + (shape->edge_features ? 3 : 2);
    double sum = 0.0;
    for (int64_t i = 0; i < in; i++)
        for (int64_t k = 0; k < all; k++) {
            const int64_t h = k / attention->width;
            sum += theta[i * all + k] *
                   ((double)*sl_element(g, i, k) +
                    (double)*sl_element(g, i, all + h) * theta[vectors * all + k] +
                    (double)*sl_element(g, i, all + attention->heads + h) *
                        theta[(vectors + 1) * all + k]);
        }
    for (int64_t i = in; i < vectors; i++)
        for (int64_t k = 0; k < all; k++)
            sum += (double)*sl_element(g, i, k / attention->width) * theta[i * all + k] *
                   theta[(vectors + 2) * all + k];
    for (int64_t j = 0; shape->bias && j < shape->out; j++)
        sum += (double)*sl_element(g, vectors, j) * theta[bias * all + j];
    return sum;
}

/* Part p of two: some of the heads, or, `sliced`, some columns of each head. */
static struct sl_attention part_of(const struct sl_attention *whole,
                                   const struct sl_attention_shape *all, bool sliced, int p,
                                   struct sl_attention_shape *shape)
{
    const int32_t head = whole->heads / 2;
    const int64_t column = whole->width / 2;
    struct sl_attention attention = *whole;
    *shape = *all;
    if (sliced) {
        attention.width = p ? whole->width - column : column;
        shape->first_column = p ? column : 0;
        shape->at = p ? whole->heads * (column + 2) : 0;
        shape->out = all->out == whole->width ? attention.width : 0; /* of the mean */
        shape->out_column = shape->first_column;
    } else {
        attention.first_head = p ? head : 0;
        attention.heads = p ? whole->heads - head : head;
        shape->at = p ? head * (whole->width + 2) : 0;
        shape->out = attention.heads * whole->width;
        shape->out_column = attention.first_head * whole->width;
    }
    return attention;
}

/* Columns of the whole weights in the order of the parts. */
static int64_t column_of(const struct sl_attention *whole, const struct sl_attention *attention,
                         const struct sl_attention_shape *shape, int64_t j)
{
    const int64_t own = sl_attention_all(attention);
    if (j < own)
        return (attention->first_head + j / attention->width) * whole->width + shape->first_column +
               j % attention->width;
    const int64_t v = (j - own) / attention->heads, h = (j - own) % attention->heads;
    return sl_attention_all(whole) + v * whole->heads + attention->first_head + h;
}

/* Two parts give what the whole gives. Of sliced heads, only the first part has gradients of W·a
 * and of EDGE. */
static void check_parted_weights(const struct sl_attention *whole,
                                 const struct sl_attention_shape *all, bool sliced,
                                 const struct sl_guarded *parameters,
                                 const struct sl_guarded *weights, const struct sl_guarded *edge,
                                 const struct sl_guarded *g, const double *slopes,
                                 const double *slack)
{
    const int64_t cols = sl_attention_projected(whole) + (sliced ? 2 * whole->heads : 0);
    struct sl_guarded parted = sl_guarded_empty(all->in, cols, SL_EDGE, SL_CANARY),
                      gradient = sl_guarded_empty(g->rows, cols, SL_EDGE, SL_CANARY),
                      back =
                          sl_guarded_empty(parameters->rows, parameters->cols, SL_EDGE, SL_CANARY),
                      edges = sl_guarded_empty(edge->rows, edge->cols, SL_EDGE, SL_CANARY);
    const struct sl_floats_at from = floats(parameters, 0), to = floats(&parted, 0),
                              given = floats(&gradient, 0), d = floats(&back, 0),
                              edge_to = floats(&edges, 0);
    for (int p = 0; p < 2; p++) {
        struct sl_attention_shape shape;
        const struct sl_attention attention = part_of(whole, all, sliced, p, &shape);
        const int64_t own = sl_attention_projected(&attention), kept = sl_attention_all(&attention);
        sl_kernel_attention_weights(&attention, &shape, &from, &to);
        sl_kernel_attention_edge(&attention, &shape, &from, &edge_to);
        for (int64_t i = 0; i < all->edge_features; i++)
            for (int64_t h = 0; h < attention.heads; h++) {
                const int64_t whole_head = attention.first_head + h;
                assert_true(*sl_element(&edges, i, h) == *sl_element(edge, i, whole_head));
                *sl_element(&gradient, all->in + i, shape.at + h) =
                    sliced && p ? 0.0f : *sl_element(g, all->in + i, whole_head);
            }
        for (int64_t i = 0; i < g->rows; i++)
            for (int64_t j = 0; j < own; j++) {
                const bool bias = i == all->in + all->edge_features;
                if (i >= all->in && !bias)
                    continue;
                const int64_t at =
                    bias ? shape.out_column + j : column_of(whole, &attention, &shape, j);
                if (!bias)
                    assert_true(*sl_element(&parted, i, shape.at + j) ==
                                *sl_element(weights, i, at));
                const bool has = bias ? j < shape.out : j < kept || !sliced || p == 0;
                *sl_element(&gradient, i, shape.at + j) = has ? *sl_element(g, i, at) : 0.0f;
            }
        sl_kernel_attention_weights_back(&attention, &shape, &from, &given, p > 0, &d);
    }
    sl_expect("d[W | W·a] of parts", &back, slopes, slack);
    sl_guarded_free(&parted);
    sl_guarded_free(&gradient);
    sl_guarded_free(&back);
    sl_guarded_free(&edges);
}

/* EDGE = W_e·a_edge of each head. */
static void check_edge(const struct sl_attention *attention, const struct sl_attention_shape *shape,
                       const struct sl_guarded *parameters, struct sl_guarded *edge)
{
    const struct sl_floats_at from = floats(parameters, 0), to = floats(edge, 0);
    double *want = sl_doubles(edge->rows * edge->cols),
           *bound = sl_doubles(edge->rows * edge->cols);
    for (int64_t f = 0; f < edge->rows; f++)
        for (int64_t k = 0; k < shape->columns; k++) {
            const int64_t at = f * edge->cols + k / attention->width,
                          vector = shape->in + shape->edge_features + 2;
            const double term = (double)*sl_element(parameters, shape->in + f, k) *
                                (double)*sl_element(parameters, vector, k);
            want[at] += term;
            bound[at] += (double)(attention->width + 2) * SL_UNIT * fabs(term);
        }
    sl_kernel_attention_edge(attention, shape, &from, &to);
    sl_expect("EDGE", edge, want, bound);
    free(want);
    free(bound);
}

static void check_weights(int64_t in, int64_t features, int32_t heads, int64_t width,
                          enum sl_layout layout)
{
    const struct sl_attention attention = {.heads = heads, .width = width};
    const int64_t all = heads * width, cols = sl_attention_projected(&attention),
                  vectors = in + features, rows = vectors + (features ? 3 : 2);
    for (int option = 0; option < 4; option++) {
        const struct sl_attention_shape shape = {
            .in = in,
            .edge_features = features,
            .columns = all,
            .bias = option & 2,
            .head_width = width,
            .out = option & 1 ? width : all,
        };
        struct sl_guarded parameters =
                              sl_guarded_random(rows + shape.bias, all, layout, NAN, SL_REALS),
                          weights = sl_guarded_empty(in, cols, sl_other_layout(layout), SL_CANARY),
                          edge = sl_guarded_empty(features, heads, layout, SL_CANARY),
                          g = sl_guarded_random(vectors + shape.bias, cols, SL_EDGE, NAN, SL_REALS),
                          back = sl_guarded_empty(parameters.rows, all, sl_other_layout(layout),
                                                  SL_CANARY);
        const struct sl_floats_at from = floats(&parameters, 0), to = floats(&weights, 0),
                                  gradient = floats(&g, 0), d = floats(&back, 0);
        double *theta = sl_doubles(parameters.rows * all), *want = sl_doubles(in * cols),
               *bound = sl_doubles(in * cols), *slopes = sl_doubles(parameters.rows * all),
               *slack = sl_doubles(parameters.rows * all);
        for (int64_t i = 0; i < parameters.rows * all; i++)
            theta[i] = (double)*sl_element(&parameters, i / all, i % all);
        for (int64_t i = 0; i < in; i++)
            for (int64_t k = 0; k < all; k++) {
                want[i * cols + k] = theta[i * all + k];
                for (int v = 0; v < 2; v++) {
                    const int64_t at = i * cols + all + v * heads + k / width;
                    const double term = theta[i * all + k] * theta[(vectors + v) * all + k];
                    want[at] += term;
                    bound[at] += (double)(width + 2) * SL_UNIT * fabs(term);
                }
            }
        sl_kernel_attention_weights(&attention, &shape, &from, &to);
        sl_expect("[W | W·a]", &weights, want, bound);
        check_edge(&attention, &shape, &parameters, &edge);
        for (int64_t i = 0; i < parameters.rows * all; i++) { /* linear in each: exact */
            const double before = theta[i];
            theta[i] = before + 1.0;
            slopes[i] = product_of_weights(&attention, &shape, &g, theta);
            theta[i] = before - 1.0;
            slopes[i] -= product_of_weights(&attention, &shape, &g, theta);
            theta[i] = before;
            slopes[i] /= 2.0;
            slack[i] = (double)(vectors + 8) * SL_UNIT * (double)(vectors + 8) * 2.25;
        }
        sl_kernel_attention_weights_back(&attention, &shape, &from, &gradient, false, &d);
        sl_expect("d[W | W·a]", &back, slopes, slack);
        if (heads > 1 && shape.out == all)
            check_parted_weights(&attention, &shape, false, &parameters, &weights, &edge, &g,
                                 slopes, slack);
        if (width > 1 && shape.out == width)
            check_parted_weights(&attention, &shape, true, &parameters, &weights, &edge, &g, slopes,
                                 slack);
        free(theta);
        free(want);
        free(bound);
        free(slopes);
        free(slack);
        sl_guarded_free(&parameters);
        sl_guarded_free(&weights);
        sl_guarded_free(&edge);
        sl_guarded_free(&g);
        sl_guarded_free(&back);
    }
}

static void each_row_shape(void (*check)(int64_t rows, int32_t heads, int64_t width,
                                         enum sl_layout layout),
                           int64_t most)
{
    const int64_t rows[] = {0, 1, 6, most};
    for (int level = 0; sl_next_level(&level);)
        for (size_t r = 0; r < SL_COUNT(rows); r++)
            for (size_t h = 0; h < SL_COUNT(head_counts); h++)
                for (size_t w = 0; w < SL_COUNT(head_widths); w++)
                    check(rows[r], head_counts[h], head_widths[w],
                          (enum sl_layout)((r + h + w) % SL_LAYOUTS));
}

SL_TEST(test_scores)
{
    each_row_shape(check_scores, 70);
}

SL_TEST(test_output)
{
    each_row_shape(check_output, 70);
    check_output(1200, 2, 33, SL_LOOSE); /* means of several runs of rows */
}

SL_TEST(test_rows_gradient)
{
    each_row_shape(check_rows_gradient, 70);
}

SL_TEST(test_own)
{
    each_row_shape(check_own, 70);
}

SL_TEST(test_weights)
{
    for (int level = 0; sl_next_level(&level);)
        for (size_t h = 0; h < SL_COUNT(head_counts); h++)
            for (size_t w = 0; w < SL_COUNT(head_widths); w++)
                for (int64_t features = 0; features < 5; features += 1 + (int64_t)w % 3)
                    if (head_counts[h] * head_widths[w] < 60)
                        check_weights(1 + 5 * (int64_t)(w % 2), features, head_counts[h],
                                      head_widths[w], (enum sl_layout)((h + w) % SL_LAYOUTS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_many_heads),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_features_of_none),
        cmocka_unit_test(test_dropout_share),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_rows_gradient),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_weights),
    };
    sl_random_seed(11);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
