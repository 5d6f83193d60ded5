/* Attention by pairs of rows: what is done to rows and parameters. The walks: test_kernels_pair.c.
 * How kernels are judged: tests/kernels.h. */
#include "tests/kernels_attention.h"

static struct sl_pair pair_of(int32_t heads, int64_t width, bool products, int64_t edges)
{
    return (struct sl_pair){
        .attention = {.heads = heads, .width = sl_pair_room(width), .slope = 0.2f},
        .width = width,
        .products = products,
        .scale = products ? 0.375f : 1.0f,
        .edges = edges};
}

/* Random rows with room: `pieces` matrices side by side, and `more` columns. */
static struct sl_guarded rows_of(const struct sl_pair *pair, int64_t rows, int pieces, int64_t more,
                                 enum sl_layout layout)
{
    struct sl_guarded m =
        sl_guarded_random(rows, pieces * sl_pair_all(pair) + more, layout, NAN, SL_REALS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < pieces * sl_pair_all(pair); k++)
            if (k % pair->attention.width >= pair->width)
                *sl_element(&m, r, k) = 0.0f;
    return m;
}

static double at(const struct sl_guarded *m, int64_t r, int64_t j)
{
    return (double)*sl_element(m, r, j);
}

/* Vectors of which only a itself and W_e are numbers. A transformer has no a. */
static struct sl_guarded some_vectors(const struct sl_pair *pair, enum sl_layout layout)
{
    const int64_t rows = sl_pair_vector_rows(pair);
    struct sl_guarded random = rows_of(pair, rows, 1, 0, layout),
                      m = sl_guarded_empty(rows, sl_pair_all(pair), layout, NAN);
    for (int64_t r = pair->products ? SL_PAIR_VECTORS : SL_PAIR_PLAIN; r < rows; r++)
        memcpy(sl_element(&m, r, 0), sl_element(&random, r, 0), (size_t)m.cols * sizeof(float));
    sl_guarded_free(&random);
    return m;
}

/* Set the numbers WANT of a row, and bounds, to products of W_e and x (H·F). */
static void want_numbers(const struct sl_pair *pair, const struct sl_guarded *vectors,
                         const double *x, const double *x_bound, double *want, double *bound)
{
    const int64_t heads = pair->attention.heads;
    for (int64_t i = 0; i < sl_pair_numbers(pair) * pair->width; i++) {
        const int64_t n = i / pair->width, k = n % heads * pair->width + i % pair->width;
        const double w = at(vectors, SL_PAIR_VECTORS + n / heads, place(pair, k));
        want[n] += w * x[k];
        bound[n] += fabs(w) * ((double)(pair->width + 4) * SL_UNIT * fabs(x[k]) + x_bound[k]);
    }
}

/* ---- Rows ---- */

/* All heads side by side, or their mean. */
static void check_output(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    const int64_t all = sl_pair_columns(pair), heads = pair->attention.heads;
    struct sl_guarded state = rows_of(pair, rows, 1, 2 * heads, layout);
    const struct sl_floats_at from = floats(&state, 0);
    for (int mean = 0; mean < 2; mean++) {
        const int64_t out = mean ? pair->width : all;
        struct sl_guarded_epilogue e = sl_guarded_epilogue_random(
            (int)sl_random_below(SL_STEPS_ALL + 1), rows, out, sl_other_layout(layout));
        struct sl_guarded z = sl_guarded_empty(rows, out, sl_other_layout(layout), SL_CANARY);
        const struct sl_rows to = sl_rows_of(&z);
        double *want = sl_doubles(rows * out), *bound = sl_doubles(rows * out);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < all; k++) {
                const double term = at(&state, r, place(pair, k)) / (mean ? (double)heads : 1.0);
                want[r * out + k % out] += term;
                bound[r * out + k % out] += mean ? (double)(heads + 2) * SL_UNIT * fabs(term) : 0.0;
            }
        sl_naive_epilogue(&e.view, rows, out, want, bound);
        sl_kernel_pair_output(pair, rows, mean, &from, &e.view, &to);
        sl_expect_vectors(mean ? "mean of heads" : "heads", &z, want, bound);
        free(want);
        free(bound);
        sl_guarded_free(&z);
        sl_guarded_epilogue_free(&e);
    }
    sl_guarded_free(&state);
}

/* [G | r] of heads side by side or of their mean; `g` in float32 or bfloat16. */
static void check_gradient(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    const int64_t all = sl_pair_columns(pair), room = sl_pair_all(pair),
                  heads = pair->attention.heads, cols = sl_pair_gradient(pair);
    struct sl_guarded state = rows_of(pair, rows, 1, 2 * heads, layout),
                      vectors = some_vectors(pair, layout);
    const struct sl_floats_at closed = floats(&state, 0), v = floats(&vectors, 0);
    for (int option = 0; option < 4; option++) {
        const int64_t out = option & 1 ? pair->width : all;
        struct sl_guarded g = sl_guarded_random(rows, out, layout, NAN, SL_REALS),
                          gradient =
                              sl_guarded_empty(rows, cols, sl_other_layout(layout), SL_CANARY);
        struct sl_narrowed narrow = {.count = 0};
        if (option & 2)
            narrow = sl_narrowed_of(&g, sl_some_spare());
        const struct sl_rows from = option & 2 ? narrow.rows : sl_rows_of(&g);
        const struct sl_floats_at to = floats(&gradient, 0);
        double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols),
               *each_g = sl_doubles(2 * all);
        for (int64_t i = 0; i < rows * all; i++) {
            const int64_t r = i / all, k = i % all, element = r * cols + place(pair, k),
                          product = r * cols + room + k / pair->width;
            const double each = at(&g, r, k % out) / (option & 1 ? (double)heads : 1.0),
                         term = each * at(&state, r, place(pair, k));
            want[element] = each;
            bound[element] = option & 1 ? 2.0 * SL_UNIT * fabs(each) : 0.0;
            want[product] += term;
            bound[product] += (double)(pair->width + 4) * SL_UNIT * fabs(term);
            each_g[k] = each;
            each_g[all + k] = bound[element];
            if (k == all - 1)
                want_numbers(pair, &vectors, each_g, each_g + all, want + r * cols + room + heads,
                             bound + r * cols + room + heads);
        }
        sl_kernel_pair_gradient(pair, rows, option & 1, &from, &closed, &v, &to);
        sl_expect("[G | r | Y]", &gradient, want, bound);
        free(want);
        free(bound);
        free(each_g);
        if (option & 2)
            sl_guarded_free(&narrow.words);
        sl_guarded_free(&g);
        sl_guarded_free(&gradient);
    }
    sl_guarded_free(&state);
    sl_guarded_free(&vectors);
}

/* The number of row r in column j; compared, and set to 0. */
static void take_vertex(const struct sl_guarded *m, int64_t r, int64_t j,
                        const struct sl_guarded *vertex)
{
    const uint32_t number = sl_vertices_of(vertex)[r] ^ SL_ATTENTION_VERTEX;
    assert_memory_equal(sl_element(m, r, j), &number, sizeof number);
    *sl_element(m, r, j) = 0.0f;
}

/* What rows of parameters are, in this order. */
static int64_t edges_row(const struct sl_pair *pair, const struct sl_pair_shape *shape)
{
    return shape->skipped + sl_pair_weights(pair) * shape->in;
}

static int64_t vector_row(const struct sl_pair *pair, const struct sl_pair_shape *shape)
{
    return edges_row(pair, shape) + pair->edges;
}

static int64_t biases_row(const struct sl_pair *pair, const struct sl_pair_shape *shape)
{
    return vector_row(pair, shape) + (pair->products ? 0 : 1);
}

static int64_t parameter_rows(const struct sl_pair *pair, const struct sl_pair_shape *shape)
{
    return biases_row(pair, shape) + (shape->bias ? sl_pair_weights(pair) + 1 : 0);
}

static void check_ends(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    const int64_t all = sl_pair_columns(pair), room = sl_pair_all(pair),
                  weights = sl_pair_weights(pair);
    const struct sl_pair_shape shape = {.in = 2,
                                        .columns = all + 7,
                                        .skipped = rows % 3,
                                        .first = 4,
                                        .at = 11,
                                        .bias = layout % 2,
                                        .out = all};
    struct sl_guarded parameters = sl_guarded_random(parameter_rows(pair, &shape), shape.columns,
                                                     layout, NAN, SL_REALS),
                      projected =
                          sl_guarded_random(rows, sl_pair_projected(pair), layout, NAN, SL_REALS),
                      source = sl_guarded_empty(rows, sl_pair_source(pair), sl_other_layout(layout),
                                                SL_CANARY),
                      target = sl_guarded_empty(rows, sl_pair_target(pair), layout, SL_CANARY),
                      vertex = sl_guarded_vertices(rows), vectors = some_vectors(pair, layout);
    const struct sl_floats_at from = floats(&parameters, 0), p = floats(&projected, 0),
                              v = floats(&vectors, 0), s = floats(&source, 0),
                              t = floats(&target, 0);
    sl_kernel_pair_ends(pair, &shape, rows, sl_vertices_of(&vertex), &from, &p, &v, &s, &t);
    double *sources = sl_doubles(rows * source.cols), *targets = sl_doubles(rows * target.cols),
           *bound = sl_doubles(rows * target.cols), *own = sl_doubles(2 * all);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t numbers = r * target.cols + room + pair->attention.heads + 1;
        for (int64_t k = 0; k < weights * all; k++) {
            const int64_t w = k / all, j = place(pair, k % all);
            const double x = at(&projected, r, k),
                         b = shape.bias ? at(&parameters, biases_row(pair, &shape) + w,
                                             shape.first + k % all)
                                        : 0.0;
            if (w < weights - 1) {
                sources[r * source.cols + w * room + j] = (double)(float)(x + b);
                continue;
            }
            targets[r * target.cols + j] = own[k % all] = (double)pair->scale * (x + b);
            bound[r * target.cols + j] = own[all + k % all] =
                3.0 * SL_UNIT * (double)pair->scale * (fabs(x) + fabs(b));
        }
        want_numbers(pair, &vectors, own, own + all, targets + numbers, bound + numbers);
        take_vertex(&source, r, source.cols - 1, &vertex);
        take_vertex(&target, r, room + pair->attention.heads, &vertex);
    }
    sl_expect("source", &source, sources, NULL);
    sl_expect("target", &target, targets, bound);
    free(sources);
    free(targets);
    free(bound);
    free(own);
    sl_guarded_free(&parameters);
    sl_guarded_free(&projected);
    sl_guarded_free(&vectors);
    sl_guarded_free(&source);
    sl_guarded_free(&target);
    sl_guarded_free(&vertex);
}

/* Add A·W_e, of column k of row r, to WANT. */
static void add_numbers(const struct sl_pair *pair, const struct sl_guarded *vectors,
                        const struct sl_guarded *target_back, int64_t r, int64_t k, double *want,
                        double *size)
{
    const int64_t heads = pair->attention.heads;
    for (int64_t f = 0; pair->products && f < pair->edges; f++) {
        const double term = at(target_back, r, sl_pair_all(pair) + f * heads + k / pair->width) *
                            at(vectors, SL_PAIR_VECTORS + f, place(pair, k));
        *want += term;
        *size += fabs(term);
    }
}

/* [dK | dV | dT] from [C | A] and [D | E]. */
static void check_join(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    const int64_t all = sl_pair_columns(pair), room = sl_pair_all(pair),
                  cols = sl_pair_projected(pair);
    struct sl_guarded vectors = some_vectors(pair, layout),
                      target_back =
                          rows_of(pair, rows, 1, sl_pair_numbers(pair), sl_other_layout(layout)),
                      source_back = rows_of(pair, rows, 2, 0, layout),
                      projected = sl_guarded_empty(rows, cols, layout, SL_CANARY);
    const struct sl_floats_at v = floats(&vectors, 0), c = floats(&target_back, 0),
                              d = floats(&source_back, 0), to = floats(&projected, 0);
    double *want = sl_doubles(rows * cols), *bound = sl_doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < all; k++) {
            const int64_t j = place(pair, k), to_k = r * cols + k, to_t = r * cols + cols - all + k;
            const double a = pair->products ? 1.0 : at(&vectors, SL_PAIR_PLAIN, j),
                         own = a * at(&source_back, r, j), value = at(&source_back, r, room + j);
            want[to_k] = pair->products ? own : own + value;
            bound[to_k] = pair->products ? 0.0 : 2.0 * SL_UNIT * (fabs(own) + fabs(value));
            if (pair->products)
                want[to_k + all] = value;
            double c_k = a * at(&target_back, r, j), size = fabs(c_k);
            add_numbers(pair, &vectors, &target_back, r, k, &c_k, &size);
            want[to_t] = (double)pair->scale * c_k;
            bound[to_t] = (double)(3 + 2 * pair->edges) * SL_UNIT * (double)pair->scale * size;
        }
    sl_kernel_pair_join(pair, rows, &v, &c, &d, &to);
    sl_expect("[dK | dV | dT]", &projected, want, bound);
    if (!pair->products && room == all) {
        sl_kernel_pair_join(pair, rows, &v, &c, &d, &d);
        sl_expect("[dK | dT] in place", &source_back, want, bound);
    }
    free(want);
    free(bound);
    sl_guarded_free(&vectors);
    sl_guarded_free(&target_back);
    sl_guarded_free(&source_back);
    sl_guarded_free(&projected);
}

static void check_vector_back(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    if (pair->products)
        return;
    const int64_t all = sl_pair_columns(pair), heads = pair->attention.heads;
    struct sl_guarded source = rows_of(pair, rows, 1, 1, layout),
                      target = rows_of(pair, rows, 1, heads + 1, sl_other_layout(layout)),
                      target_back = rows_of(pair, rows, 1, 0, SL_LOOSE),
                      source_back = rows_of(pair, rows, 2, 0, layout),
                      gradient = sl_guarded_empty(1, all, SL_EDGE, SL_CANARY);
    const struct sl_floats_at k = floats(&source, 0), t = floats(&target, 0),
                              c = floats(&target_back, 0), d = floats(&source_back, 0);
    double *want = sl_doubles(all), *bound = sl_doubles(all);
    for (int64_t i = 0; i < rows * all; i++) {
        const int64_t r = i / all, j = place(pair, i % all);
        const double from_source = at(&source, r, j) * at(&source_back, r, j),
                     from_target = at(&target, r, j) * at(&target_back, r, j);
        want[i % all] += from_source + from_target;
        bound[i % all] +=
            (double)(2 * rows + 2) * SL_UNIT * (fabs(from_source) + fabs(from_target));
    }
    sl_kernel_pair_vector_back(pair, rows, &k, &t, &c, &d, gradient.at);
    sl_expect("da", &gradient, want, bound);
    free(want);
    free(bound);
    sl_guarded_free(&source);
    sl_guarded_free(&target);
    sl_guarded_free(&target_back);
    sl_guarded_free(&source_back);
    sl_guarded_free(&gradient);
}

/* dW_e of a transformer: A·T + B·G. */
static void check_edges_back(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    if (!pair->products)
        return;
    const int64_t all = sl_pair_columns(pair), room = sl_pair_all(pair),
                  heads = pair->attention.heads, count = pair->edges * all;
    struct sl_guarded target = rows_of(pair, rows, 1, sl_pair_target(pair) - room, layout),
                      gradient = rows_of(pair, rows, 1, sl_pair_gradient(pair) - room,
                                         sl_other_layout(layout)),
                      target_back = rows_of(pair, rows, 1, sl_pair_numbers(pair), SL_LOOSE),
                      state = rows_of(pair, rows, 1, sl_pair_state(pair) - room, layout),
                      back = sl_guarded_empty(pair->edges, all, layout, SL_CANARY);
    const struct sl_floats_at t = floats(&target, 0), g = floats(&gradient, 0),
                              c = floats(&target_back, 0), s = floats(&state, 0),
                              to = floats(&back, 0);
    double *want = sl_doubles(count), *bound = sl_doubles(count);
    for (int64_t i = 0; i < rows * count; i++) {
        const int64_t r = i / count, f = i % count / all, k = i % all, j = place(pair, k),
                      n = f * heads + k / pair->width;
        const double of_t = at(&target_back, r, room + n) * at(&target, r, j),
                     of_g = at(&state, r, room + 2 * heads + n) * at(&gradient, r, j);
        want[i % count] += of_t + of_g;
        bound[i % count] += (double)(2 * rows + 2) * SL_UNIT * (fabs(of_t) + fabs(of_g));
    }
    sl_kernel_pair_edges_back(pair, rows, &t, &g, &c, &s, &to);
    sl_expect("dW_e", &back, want, bound);
    free(want);
    free(bound);
    sl_guarded_free(&target);
    sl_guarded_free(&gradient);
    sl_guarded_free(&target_back);
    sl_guarded_free(&state);
    sl_guarded_free(&back);
}

/* M without its room. */
static void check_edges_paste(const struct sl_pair *pair, int64_t rows, enum sl_layout layout)
{
    (void)rows;
    const int64_t all = sl_pair_columns(pair);
    struct sl_guarded sums =
                          sl_guarded_random(pair->edges, sl_pair_all(pair), layout, NAN, SL_REALS),
                      back = sl_guarded_empty(pair->edges, all, sl_other_layout(layout), SL_CANARY);
    const struct sl_floats_at from = floats(&sums, 0), to = floats(&back, 0);
    double *want = sl_doubles(pair->edges * all);
    for (int64_t i = 0; i < pair->edges * all; i++)
        want[i] = at(&sums, i / all, place(pair, i % all));
    sl_kernel_pair_edges_paste(pair, &from, &to);
    sl_expect("M", &back, want, NULL);
    free(want);
    sl_guarded_free(&sums);
    sl_guarded_free(&back);
}

/* ---- Parameters ---- */

enum { PARTS = 2, BESIDE = 3 }; /* columns of no part: before, between and behind the parts */

/* Part p of two has some of the heads. */
static struct sl_pair part_of(const struct sl_pair *whole, const struct sl_pair_shape *all,
                              bool mean, int p, struct sl_pair_shape *shape)
{
    const int32_t first = p ? whole->attention.heads / 2 : 0;
    struct sl_pair pair = *whole;
    pair.attention.first_head = first;
    pair.attention.heads = p ? whole->attention.heads - first : whole->attention.heads / 2;
    *shape = *all;
    shape->first = all->first + first * whole->width;
    shape->at = BESIDE + p * (BESIDE + sl_pair_weights(whole) * first * whole->width);
    shape->out = !mean ? sl_pair_columns(&pair)
                 : p   ? whole->width - whole->width / 2
                       : whole->width / 2;
    shape->out_column = mean ? p * (whole->width / 2) : shape->first;
    return pair;
}

/* Of GATv2, a; W_e. */
static void check_vectors(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                          const struct sl_guarded *parameters, const struct sl_guarded *vectors)
{
    double *want = sl_doubles(vectors->rows * vectors->cols),
           *bound = sl_doubles(vectors->rows * vectors->cols);
    const double slope = (double)pair->attention.slope;
    const double by[SL_PAIR_VECTORS] = {[SL_PAIR_EVEN] = (1.0 + slope) / 2.0,
                                        [SL_PAIR_ODD] = (1.0 - slope) / 2.0,
                                        [SL_PAIR_PLAIN] = 1.0};
    for (int64_t f = 0; f < pair->edges; f++)
        for (int64_t k = 0; k < sl_pair_columns(pair); k++)
            want[(SL_PAIR_VECTORS + f) * vectors->cols + place(pair, k)] =
                at(parameters, edges_row(pair, shape) + f, shape->first + k);
    for (int v = 0; v < SL_PAIR_VECTORS && !pair->products; v++)
        for (int64_t k = 0; k < sl_pair_columns(pair); k++) {
            const int64_t to = v * vectors->cols + place(pair, k);
            want[to] = by[v] * at(parameters, vector_row(pair, shape), shape->first + k);
            bound[to] = v == SL_PAIR_PLAIN ? 0.0 : 4.0 * SL_UNIT * fabs(want[to]);
        }
    sl_expect("vectors", vectors, want, bound);
    free(want);
    free(bound);
}

/* Columns of no part keep what they were. */
static void check_weights_of(const struct sl_pair *whole, const struct sl_pair_shape *all,
                             bool mean, const struct sl_guarded *parameters, int64_t cols,
                             enum sl_layout layout)
{
    struct sl_guarded weights = sl_guarded_random(all->in, cols, layout, SL_CANARY, SL_REALS);
    const struct sl_floats_at from = floats(parameters, 0), to = floats(&weights, 0);
    double *want = sl_doubles(all->in * cols);
    for (int64_t i = 0; i < all->in * cols; i++)
        want[i] = at(&weights, i / cols, i % cols);
    for (int p = 0; p < PARTS; p++) {
        struct sl_pair_shape shape;
        const struct sl_pair pair = part_of(whole, all, mean, p, &shape);
        const int64_t own = sl_pair_columns(&pair);
        for (int64_t i = 0; i < all->in; i++)
            for (int64_t j = 0; j < sl_pair_projected(&pair); j++)
                want[i * cols + shape.at + j] =
                    at(parameters, shape.skipped + j / own * shape.in + i, shape.first + j % own);
        struct sl_guarded vectors = sl_guarded_empty(sl_pair_vector_rows(&pair), sl_pair_all(&pair),
                                                     sl_other_layout(layout), SL_CANARY);
        const struct sl_floats_at v = floats(&vectors, 0);
        if (pair.attention.heads > 0) {
            sl_kernel_pair_weights(&pair, &shape, &from, &to, &v);
            check_vectors(&pair, &shape, parameters, &vectors);
        }
        sl_guarded_free(&vectors);
    }
    sl_expect("[K | V | T]", &weights, want, NULL);
    free(want);
    sl_guarded_free(&weights);
}

/* A random element of the gradient of weights, and where it is wanted in that of parameters. */
static void give(struct sl_guarded *gradient, int64_t r, int64_t j, double *want)
{
    *sl_element(gradient, r, j) = sl_random_value(SL_REALS);
    *want = at(gradient, r, j);
}

/* dW_e, which is a M of GATv2, and what it adds to da. */
static void give_edges(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                       const struct sl_guarded *parameters, int64_t k, struct sl_guarded *gradient,
                       double *want, double *bound)
{
    const int64_t a = vector_row(pair, shape), to = shape->first + k;
    for (int64_t f = 0; f < pair->edges; f++) {
        const int64_t row = edges_row(pair, shape) + f, element = row * shape->columns + to,
                      vector = a * shape->columns + to;
        double m;
        give(gradient, shape->in + f, shape->at + k, &m);
        want[element] = m;
        if (pair->products)
            continue;
        const double term = at(parameters, row, to) * m;
        want[element] = at(parameters, a, to) * m;
        bound[element] = SL_UNIT * fabs(want[element]);
        want[vector] += term;
        bound[vector] += (double)(pair->edges + 2) * SL_UNIT * (fabs(term) + 1.5);
    }
}

static void give_part(const struct sl_pair *pair, const struct sl_pair_shape *shape,
                      const struct sl_guarded *parameters, struct sl_guarded *gradient,
                      double *want, double *bound)
{
    const int64_t own = sl_pair_columns(pair), columns = shape->columns,
                  a = pair->edges + (pair->products ? 0 : 1);
    for (int64_t j = 0; j < sl_pair_projected(pair); j++) {
        const int64_t w = j / own, to = shape->first + j % own;
        for (int64_t i = 0; i < shape->in; i++)
            give(gradient, i, shape->at + j,
                 &want[(shape->skipped + w * shape->in + i) * columns + to]);
        if (!pair->products && w == 0)
            give(gradient, shape->in + pair->edges, shape->at + j,
                 &want[vector_row(pair, shape) * columns + to]);
        if (w == 0)
            give_edges(pair, shape, parameters, j, gradient, want, bound);
        if (shape->bias)
            give(gradient, shape->in + a, shape->at + j,
                 &want[(biases_row(pair, shape) + w) * columns + to]);
        if (shape->bias && pair->products && w == 0) /* the softmax cancels K's bias */
            want[biases_row(pair, shape) * columns + to] = 0.0;
    }
    for (int64_t j = 0; shape->bias && j < shape->out; j++)
        give(gradient, shape->in + a + 1, shape->at + j,
             &want[(parameter_rows(pair, shape) - 1) * columns + shape->out_column + j]);
}

/* Rows of other weights keep what they were; other columns are 0. Elements of the gradient of
 * weights that mean nothing are NaN. */
static void check_weights_back_of(const struct sl_pair *whole, const struct sl_pair_shape *all,
                                  bool mean, const struct sl_guarded *parameters, int64_t cols,
                                  enum sl_layout layout)
{
    const int64_t rows = parameter_rows(whole, all), columns = all->columns,
                  given = all->in + whole->edges + (whole->products ? 0 : 1) + (all->bias ? 2 : 0);
    struct sl_guarded gradient = sl_guarded_empty(given, cols, sl_other_layout(layout), SL_CANARY),
                      back = sl_guarded_random(rows, columns, layout, SL_CANARY, SL_REALS);
    const struct sl_floats_at of = floats(parameters, 0), from = floats(&gradient, 0),
                              to = floats(&back, 0);
    double *want = sl_doubles(rows * columns), *bound = sl_doubles(rows * columns);
    for (int64_t i = 0; i < all->skipped * columns; i++)
        want[i] = at(&back, i / columns, i % columns);
    bool further = false;
    for (int p = 0; p < PARTS; p++) {
        struct sl_pair_shape shape;
        const struct sl_pair pair = part_of(whole, all, mean, p, &shape);
        if (pair.attention.heads == 0)
            continue;
        give_part(&pair, &shape, parameters, &gradient, want, bound);
        sl_kernel_pair_weights_back(&pair, &shape, &of, &from, further, &to);
        further = true;
        sl_expect("d[K | V | T]", &back, want, bound);
    }
    free(want);
    free(bound);
    sl_guarded_free(&gradient);
    sl_guarded_free(&back);
}

/* With and without a bias, of heads side by side or of their mean. */
static void check_weights(const struct sl_pair *pair, int64_t in, enum sl_layout layout)
{
    const int64_t cols = 3 * BESIDE + sl_pair_projected(pair);
    for (int option = 0; option < 4; option++) {
        const bool mean = option & 1;
        const struct sl_pair_shape shape = {.in = in,
                                            .columns = 5 + sl_pair_columns(pair),
                                            .skipped = in % 3,
                                            .first = 2,
                                            .bias = option & 2};
        struct sl_guarded parameters =
            sl_guarded_random(parameter_rows(pair, &shape), shape.columns, layout, NAN, SL_REALS);
        check_weights_of(pair, &shape, mean, &parameters, cols, layout);
        check_weights_back_of(pair, &shape, mean, &parameters, cols, layout);
        sl_guarded_free(&parameters);
    }
}

/* ---- All of them ---- */

typedef void checking(const struct sl_pair *pair, int64_t rows, enum sl_layout layout);

static void each_row_shape(checking *check, int64_t most)
{
    static const int64_t edges[] = {0, 1, 3, 8, 17};
    const int64_t rows[] = {0, 1, 6, most};
    for (int level = 0; sl_next_level(&level);)
        for (size_t r = 0; r < SL_COUNT(rows); r++)
            for (size_t s = 0; s < 2 * SL_COUNT(pair_shapes); s++) {
                const struct sl_pair pair =
                    pair_of(pair_shapes[s / 2].heads, pair_shapes[s / 2].width, s % 2,
                            edges[(r + s / 2) % SL_COUNT(edges)]);
                check(&pair, rows[r], (enum sl_layout)((r + s / 2) % SL_LAYOUTS));
            }
}

SL_TEST(test_ends)
{
    each_row_shape(check_ends, 70);
}

SL_TEST(test_output)
{
    const struct sl_pair wide = pair_of(2, 33, false, 0);
    each_row_shape(check_output, 70);
    check_output(&wide, 1200, SL_LOOSE); /* means of several runs of rows */
}

SL_TEST(test_gradient)
{
    each_row_shape(check_gradient, 70);
}

SL_TEST(test_join)
{
    each_row_shape(check_join, 70);
}

SL_TEST(test_vector_back)
{
    each_row_shape(check_vector_back, 300);
}

SL_TEST(test_edges_back)
{
    each_row_shape(check_edges_back, 70);
}

SL_TEST(test_edges_paste)
{
    each_row_shape(check_edges_paste, 7);
}

SL_TEST(test_weights)
{
    each_row_shape(check_weights, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_output),
        cmocka_unit_test(test_gradient),    cmocka_unit_test(test_join),
        cmocka_unit_test(test_vector_back), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_edges_back),  cmocka_unit_test(test_edges_paste),
    };
    sl_random_seed(13);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
