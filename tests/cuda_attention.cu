/* Graph attention on a GPU. Where signs cancel, an error is judged by the same sums of absolute
 * values: those the CPU's kernel makes of the absolute rows, with the same logits. */
#include "tests/cuda_attention.h"

/* ---- Operands ---- */

/* Widths around a vector and a team's columns; heads of all their slots, and of more teams. */
static const sizes SIZES[] = {
    {1, 1},  {1, 5}, {1, 7},  {1, 8},  {1, 16},  {1, 33}, {1, 150}, {2, 64}, {3, 1},  {3, 5},
    {3, 7},  {3, 8}, {3, 16}, {3, 33}, {3, 132}, {8, 1},  {8, 5},   {8, 7},  {8, 8},  {8, 16},
    {8, 33}, {9, 1}, {9, 5},  {9, 7},  {9, 8},   {9, 16}, {9, 33},  {40, 3}, {256, 1}};

static struct sl_attention attention_of(const sizes &size, double p, bool training)
{
    struct sl_attention how = {};
    how.heads = size.heads;
    how.width = size.width;
    how.slope = 0.2f;
    how.training = training;
    if (p > 0.0)
        how.drop = sl_dropout_make(p, sl_rng_key(7, SL_RNG_ATTENTION, 3, 1));
    return how;
}

static void number_rows(matrix *m, int64_t column)
{
    for (int64_t r = 0; r < m->rows; r++) {
        const uint32_t vertex = (uint32_t)random_bits() >> 8;
        memcpy(&(*m)(r, column), &vertex, sizeof vertex);
    }
}

/* The logits of a row reach some way from 0. */
static matrix random_projected(const struct sl_attention &how, int64_t rows, layout l)
{
    const int64_t all = sl_attention_all(&how);
    matrix m = random_matrix(rows, sl_attention_projected(&how), l, NONE, REALS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < how.heads; h++)
            m(r, all + h) *= 4.0f;
    number_rows(&m, all + how.heads);
    return m;
}

/* L is about what closing makes of such logits. */
static matrix random_scores(const struct sl_attention &how, int64_t rows, layout l, float pad)
{
    matrix m = random_matrix(rows, sl_attention_scores(&how), l, pad, REALS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < how.heads; h++)
            m(r, how.heads + h) += 6.0f;
    number_rows(&m, 2 * how.heads);
    return m;
}

/* A maximum of 0 has an error as well, once it is a logarithm. */
static matrix with_maxima(const struct sl_attention &how, matrix size)
{
    const int64_t all = sl_attention_all(&how);
    for (int64_t r = 0; r < size.rows; r++)
        for (int64_t h = 0; h < how.heads; h++)
            size(r, all + h) = std::fabs(size(r, all + h)) + 1.0f;
    return size;
}

/* Features of entries, not below 0. */
static std::vector<float> random_features(const sparse &a, int64_t features)
{
    std::vector<float> all((size_t)(a.nnz() * features));
    for (float &x : all)
        x = std::fabs(random_value(REALS)) - 0.5f;
    return all;
}

static void give_features(struct sl_sparse *a, int64_t count, const float *features)
{
    a->edge_features = count;
    a->edge = count ? features : nullptr;
}

/* Numbers of features, around those of a lane and of a group of lanes. */
static int64_t some_features(int turn)
{
    static const int64_t counts[] = {1, 3, 8, 17, 65, 0};
    return turn % 2 ? 0 : counts[turn / 2 % 6];
}

/* ---- Forward ---- */

/* A state, then more of it, then closed; the same with other layouts. */
static void check_attention(const struct sl_attention &how, const sparse &first, const sparse &more,
                            layout l, int64_t features = 0)
{
    const int64_t rows = first.rows, cols = sl_attention_state(&how), all = sl_attention_all(&how);
    const double bound = tolerance(first.nnz() + more.nnz());
    matrix scores = random_scores(how, rows, l, CANARY), closed_scores = scores,
           state = empty_matrix(rows, cols, other(l), CANARY), size = state,
           edge = random_matrix(features, how.heads, l, NONE, REALS);
    const device_matrix dscores(scores), dstate(state), dedge(edge),
        edge_again(moved(edge, other(l), NONE)), scores_again(moved(scores, other(l), CANARY)),
        again(empty_matrix(rows, cols, l, CANARY));
    const struct sl_floats_at s = floats(scores), ds = floats(dscores), sa = floats(scores_again),
                              at = floats(state), dat = floats(dstate), ata = floats(again),
                              size_at = floats(size), v = floats(edge), dv = floats(dedge),
                              va = floats(edge_again);
    const bool has = features > 0;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const sparse &a = accumulate ? more : first;
        const std::vector<float> feature = random_features(a, features);
        const array<float> dfeature(feature);
        device_sparse on_device(a);
        struct sl_sparse view = a.view();
        give_features(&view, features, feature.data());
        give_features(&on_device.view, features, dfeature.data);
        matrix projected = random_projected(how, a.cols, l),
               positive = absolute_until(projected, all);
        const device_matrix dp(projected), dp_again(moved(projected, other(l), NONE));
        const struct sl_floats_at p = floats(projected), pp = floats(positive), dpp = floats(dp),
                                  pa = floats(dp_again);
        sl_kernel_attention(&how, &view, &p, &s, has ? &v : nullptr, accumulate, &at);
        sl_kernel_attention(&how, &view, &pp, &s, has ? &v : nullptr, accumulate, &size_at);
        sl_cuda_attention(&how, &on_device.view, &dpp, &ds, has ? &dv : nullptr, accumulate, &dat,
                          queue);
        sl_cuda_attention(&how, &on_device.view, &pa, &sa, has ? &va : nullptr, accumulate, &ata,
                          queue);
        const matrix most = with_maxima(how, size);
        expect_close("attention", state_of(how, dstate.download()), state_of(how, state), bound,
                     &most);
        expect_same_bits("attention", dstate.download(), again.download());
    }
    sl_kernel_attention_close(&how, rows, &s, &at);
    struct sl_floats_at unused = floats(closed_scores);
    sl_kernel_attention_close(&how, rows, &unused, &size_at);
    sl_cuda_attention_close(&how, rows, &ds, &dat, queue);
    const matrix most = with_maxima(how, size), got = dstate.download(),
                 got_scores = dscores.download();
    expect_close("attention_close", got, state, 2.0 * bound, &most);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < how.heads; h++)
            expect(got_scores(r, how.heads + h) == got(r, all + h), "L of SCORES");
    expect_padding_kept("attention_close", got_scores);
}

static void test_attention()
{
    random_state = 21;
    for (const sizes &size : SIZES)
        for (int option = 0; option < 48; option++) {
            static one_in sample(23);
            if (sample.leaves_out())
                continue;
            const bool values = option & 1, narrow = option & 2, training = option % 3;
            const struct sl_attention how = attention_of(size,
                                                         option % 3 == 2 ? 0.5
                                                         : option % 2    ? 0.3
                                                                         : 0.0,
                                                         training);
            const sparse first = of_degrees({3, 0, 65, 1, 0, 1000, 9, 33}, 1013, values,
                                            option & 4 ? 400 : 0, narrow),
                         more = of_degrees({0, 0, 7, 65, 1, 4, 130, 0}, 211, values,
                                           option & 8 ? 50 : 0, narrow);
            static int turn;
            check_attention(how, first, more, (layout)(option % LAYOUTS), some_features(turn++));
        }
}

/* A graph whose every row is alike, and whose last block of threads has rows left over. */
static void test_attention_rows()
{
    random_state = 22;
    for (const sizes &size : {sizes{8, 8}, sizes{1, 7}, sizes{3, 4}}) {
        const struct sl_attention how = attention_of(size, 0.5, true);
        const sparse a = random_sparse(333, 90, 5, 7, false, INTEGERS);
        check_attention(how, a, random_sparse(333, 40, 3, 9, false, INTEGERS, 11, true), TIGHT);
    }
}

static matrix some_state(const struct sl_attention &how, const sparse &a, layout l, float pad,
                         matrix *size)
{
    matrix scores = random_scores(how, a.rows, TIGHT, NONE),
           projected = random_projected(how, a.cols, TIGHT),
           positive = absolute_until(projected, sl_attention_all(&how)),
           state = empty_matrix(a.rows, sl_attention_state(&how), l, pad);
    *size = state;
    const struct sl_sparse view = a.view();
    const struct sl_floats_at s = floats(scores), p = floats(projected), pp = floats(positive),
                              to = floats(state), size_to = floats(*size);
    sl_kernel_attention(&how, &view, &p, &s, nullptr, false, &to);
    sl_kernel_attention(&how, &view, &pp, &s, nullptr, false, &size_to);
    return state;
}

static void test_attention_merge()
{
    random_state = 23;
    for (const sizes &size : SIZES)
        for (int option = 0; option < 8; option++) {
            static one_in sample(7);
            if (sample.leaves_out())
                continue;
            const struct sl_attention how = attention_of(size, 0.0, option & 2);
            const int64_t rows = 13;
            const layout l = (layout)(option % LAYOUTS);
            matrix size_of_other, size_of_state,
                sent = some_state(how, random_sparse(rows, 20, 3, 4, false, INTEGERS), l, NONE,
                                  &size_of_other),
                state = some_state(how, random_sparse(2 * rows, 20, 3, 4, false, INTEGERS),
                                   other(l), CANARY, &size_of_state);
            std::vector<uint32_t> index((size_t)rows);
            for (int64_t r = 0; r < rows; r++)
                index[(size_t)r] = (uint32_t)((7 * r + 3) % (2 * rows));
            const array<uint32_t> dindex(index);
            const device_matrix dsent(sent), dstate(state);
            const bool listed = option & 1;
            const struct sl_floats_at from = floats(sent), to = floats(state),
                                      dfrom = floats(dsent), dto = floats(dstate),
                                      size_from = floats(size_of_other),
                                      size_to = floats(size_of_state);
            sl_kernel_attention_merge(&how, rows, listed ? index.data() : nullptr, &from, &to);
            sl_kernel_attention_merge(&how, rows, listed ? index.data() : nullptr, &size_from,
                                      &size_to);
            sl_cuda_attention_merge(&how, rows, listed ? dindex.data : nullptr, &dfrom, &dto,
                                    queue);
            const matrix most = with_maxima(how, size_of_state);
            expect_close("attention_merge", state_of(how, dstate.download()), state_of(how, state),
                         tolerance(0), &most);
        }
}

/* ---- Backward ---- */

/* [G | r], of which r has no other sign than the caller's. */
static matrix random_gradient(const struct sl_attention &how, int64_t rows, layout l, float pad)
{
    return random_matrix(rows, sl_attention_gradient(&how), l, pad, REALS);
}

/* P·U - v with no term below 0. */
static matrix without_signs(const struct sl_attention &how, matrix gradient)
{
    const int64_t all = sl_attention_all(&how);
    for (int64_t r = 0; r < gradient.rows; r++)
        for (int64_t j = 0; j < gradient.cols; j++)
            gradient(r, j) = j < all ? std::fabs(gradient(r, j)) : -std::fabs(gradient(r, j));
    return gradient;
}

static void check_attention_back(const struct sl_attention &how, const sparse &a, layout l,
                                 int64_t features)
{
    const int64_t all = sl_attention_all(&how), cols = sl_attention_projected(&how);
    matrix gradient = random_gradient(how, a.cols, l, NONE),
           positive = without_signs(how, gradient),
           scores = random_scores(how, a.cols, other(l), NONE),
           own = random_projected(how, a.rows, l), positive_own = absolute_until(own, all),
           back = random_matrix(a.rows, cols, other(l), CANARY, REALS), size = absolute(back),
           edge = random_matrix(features, how.heads, l, NONE, REALS),
           edge_back = random_matrix(features, how.heads, other(l), CANARY, REALS),
           edge_size = absolute(edge_back);
    const std::vector<float> feature = random_features(a, features);
    const array<float> dfeature(feature);
    device_sparse on_device(a);
    struct sl_sparse view = a.view();
    give_features(&view, features, feature.data());
    give_features(&on_device.view, features, dfeature.data);
    const device_matrix dedge(edge), edge_again(moved(edge, other(l), NONE)), dedge_back(edge_back),
        back_again(moved(edge_back, l, CANARY));
    const struct sl_floats_at v = floats(edge), v_to = floats(edge_back),
                              v_size = floats(edge_size), dv = floats(dedge),
                              dv_to = floats(dedge_back), va = floats(edge_again),
                              va_to = floats(back_again);
    const bool has = features > 0;
    const device_matrix dg(gradient), ds(scores), down(own), dback(back),
        g_again(moved(gradient, other(l), NONE)), s_again(moved(scores, l, NONE)),
        own_again(moved(own, other(l), NONE)), again(moved(back, l, CANARY));
    const struct sl_floats_at g = floats(gradient), gp = floats(positive), s = floats(scores),
                              p = floats(own), pp = floats(positive_own), to = floats(back),
                              size_to = floats(size), dga = floats(dg), dsa = floats(ds),
                              dpa = floats(down), dto = floats(dback), ga = floats(g_again),
                              sa = floats(s_again), pa = floats(own_again), ta = floats(again);
    for (int turn = 3; turn >= 0; turn--) {
        const bool accumulate = turn & 2, more = turn == 3 || turn == 0;
        sl_kernel_attention_back(&how, &view, &g, &s, &p, has ? &v : nullptr, accumulate, &to, more,
                                 has ? &v_to : nullptr);
        sl_kernel_attention_back(&how, &view, &gp, &s, &pp, has ? &v : nullptr, accumulate,
                                 &size_to, more, has ? &v_size : nullptr);
        sl_cuda_attention_back(&how, &on_device.view, &dga, &dsa, &dpa, has ? &dv : nullptr,
                               accumulate, &dto, more, has ? &dv_to : nullptr, queue);
        sl_cuda_attention_back(&how, &on_device.view, &ga, &sa, &pa, has ? &va : nullptr,
                               accumulate, &ta, more, has ? &va_to : nullptr, queue);
        expect_close("attention_back, EDGE_BACK", dedge_back.download(), edge_back,
                     tolerance(a.nnz() + how.width), &edge_size);
        expect_same_bits("attention_back, EDGE_BACK", dedge_back.download(), back_again.download());
        if (!has && more)
            continue;
        expect_close("attention_back", dback.download(), back, tolerance(a.nnz() + how.width),
                     &size);
        expect_same_bits("attention_back", dback.download(), again.download());
    }
}

static void test_attention_back()
{
    random_state = 24;
    for (const sizes &size : SIZES)
        for (int option = 0; option < 48; option++) {
            static one_in sample(43);
            if (sample.leaves_out())
                continue;
            const struct sl_attention how = attention_of(size,
                                                         option % 3 == 2 ? 0.5
                                                         : option % 2    ? 0.3
                                                                         : 0.0,
                                                         true);
            const sparse a = of_degrees({3, 0, 65, 1, 0, 1000, 9, 33}, 1013, option & 1,
                                        option & 4 ? 400 : 0, option & 2);
            static int turn;
            check_attention_back(how, a, (layout)(option % LAYOUTS), some_features(turn++));
        }
}

/* Rows of several blocks of threads, and no rows. */
static void test_attention_edges()
{
    random_state = 27;
    for (const sizes &size : {sizes{8, 8}, sizes{1, 150}, sizes{9, 5}}) {
        const struct sl_attention how = attention_of(size, 0.5, true);
        check_attention_back(how, absolute(random_sparse(333, 90, 5, 7, true, REALS, 40)), TIGHT,
                             9);
        check_attention_back(how, of_degrees({}, 5, false, 0, false), PADDED, 4);
    }
    check_attention_back(attention_of({8, 8}, 0.0, true), of_degrees({3, 0, 40}, 50, true, 0, true),
                         LOOSE, SL_EDGE_FEATURES);
}

/* ---- Rows ---- */

static void check_weights(const struct sl_attention &how, int64_t in, int64_t features, layout l)
{
    const int64_t all = sl_attention_all(&how), cols = sl_attention_projected(&how);
    struct sl_attention_shape shape = {};
    shape.in = in;
    shape.edge_features = features;
    shape.columns = all;
    shape.bias = random_below(4) > 0;
    shape.head_width = how.width;
    shape.out = random_below(2) ? all : how.width;
    const int64_t rows = in + features + 2 + (features > 0) + shape.bias;
    matrix parameters = random_matrix(rows, all, l, NONE, REALS), positive = absolute(parameters),
           weights = empty_matrix(in, cols, other(l), CANARY), size = weights,
           edge = empty_matrix(features, how.heads, other(l), CANARY), edge_size = edge,
           gradient = random_matrix(in + features + 1, cols, l, NONE, REALS),
           positive_gradient = absolute(gradient), back = empty_matrix(rows, all, other(l), CANARY),
           back_size = back;
    const device_matrix dedge(edge);
    const struct sl_floats_at v = floats(edge), v_size = floats(edge_size), dv = floats(dedge);
    const device_matrix dp(parameters), dw(weights), dg(gradient), db(back);
    const struct sl_floats_at p = floats(parameters), pp = floats(positive), w = floats(weights),
                              w_size = floats(size), g = floats(gradient),
                              gp = floats(positive_gradient), b = floats(back),
                              b_size = floats(back_size), dpa = floats(dp), dwa = floats(dw),
                              dga = floats(dg), dba = floats(db);
    sl_kernel_attention_weights(&how, &shape, &p, &w);
    sl_kernel_attention_weights(&how, &shape, &pp, &w_size);
    sl_cuda_attention_weights(&how, &shape, &dpa, &dwa, queue);
    expect_close("attention_weights", dw.download(), weights, tolerance(how.width), &size);
    sl_kernel_attention_edge(&how, &shape, &p, &v);
    sl_kernel_attention_edge(&how, &shape, &pp, &v_size);
    sl_cuda_attention_edge(&how, &shape, &dpa, &dv, queue);
    expect_close("attention_edge", dedge.download(), edge, tolerance(how.width), &edge_size);
    sl_kernel_attention_weights_back(&how, &shape, &p, &g, false, &b);
    sl_kernel_attention_weights_back(&how, &shape, &pp, &gp, false, &b_size);
    sl_cuda_attention_weights_back(&how, &shape, &dpa, &dga, false, &dba, queue);
    expect_close("attention_weights_back", db.download(), back, tolerance(in + features),
                 &back_size);
    /* A further part: the last head, of which it has the last columns. */
    struct sl_attention part = how;
    part.first_head = how.heads - 1;
    part.heads = 1;
    part.width = how.width - how.width / 2;
    shape.first_column = how.width / 2;
    shape.at = cols - sl_attention_projected(&part);
    shape.out = part.width;
    shape.out_column = all - part.width;
    sl_kernel_attention_weights(&part, &shape, &p, &w);
    sl_kernel_attention_weights(&part, &shape, &pp, &w_size);
    sl_cuda_attention_weights(&part, &shape, &dpa, &dwa, queue);
    expect_close("attention_weights, a part", dw.download(), weights, tolerance(how.width), &size);
    sl_kernel_attention_edge(&part, &shape, &p, &v);
    sl_kernel_attention_edge(&part, &shape, &pp, &v_size);
    sl_cuda_attention_edge(&part, &shape, &dpa, &dv, queue);
    expect_close("attention_edge, a part", dedge.download(), edge, tolerance(how.width),
                 &edge_size);
    sl_kernel_attention_weights_back(&part, &shape, &p, &g, true, &b);
    sl_kernel_attention_weights_back(&part, &shape, &pp, &gp, true, &b_size);
    sl_cuda_attention_weights_back(&part, &shape, &dpa, &dga, true, &dba, queue);
    expect_close("attention_weights_back, a part", db.download(), back, tolerance(in + features),
                 &back_size);
}

static void check_scores(const struct sl_attention &how, int64_t rows, layout l)
{
    matrix projected = random_matrix(rows, sl_attention_projected(&how), l, CANARY, REALS),
           scores = empty_matrix(rows, sl_attention_scores(&how), other(l), CANARY);
    const std::vector<uint32_t> vertex = random_vertices(rows);
    const array<uint32_t> dvertex(vertex);
    const device_matrix dp(projected), ds(scores);
    const struct sl_floats_at p = floats(projected), s = floats(scores), dpa = floats(dp),
                              dsa = floats(ds);
    sl_kernel_attention_scores(&how, rows, vertex.data(), &p, &s);
    sl_cuda_attention_scores(&how, rows, dvertex.data, &dpa, &dsa, queue);
    expect_same_bits("attention_scores", dp.download(), projected);
    expect_same_bits("attention_scores", ds.download(), scores);
    expect_padding_kept("attention_scores", dp.download());
    expect_padding_kept("attention_scores", ds.download());
}

static void check_output(const struct sl_attention &how, int64_t rows, bool averaged, layout l)
{
    const int64_t out = averaged ? how.width : sl_attention_all(&how);
    finish f = random_finish(rows, out, some_steps(), l, REALS), positive = absolute(f);
    const device_finish df(f);
    matrix state = random_matrix(rows, sl_attention_state(&how), l, NONE, REALS),
           size_state = absolute(state), size = empty_matrix(rows, out, TIGHT, NONE);
    const matrix z = of_type(some_type(), empty_matrix(rows, out, other(l), CANARY));
    stored want(z);
    const device_matrix dstate(state), dz(z);
    const struct sl_floats_at from = floats(state), size_from = floats(size_state),
                              dfrom = floats(dstate);
    const struct sl_rows to = want.rows(), dto = dz.rows(),
                         size_to = sl_float_rows(size.at(), size.ld);
    const struct sl_epilogue e = f.view(), bound = positive.view();
    sl_kernel_attention_output(&how, rows, out, &from, &e, &to);
    sl_kernel_attention_output(&how, rows, out, &size_from, &bound, &size_to);
    sl_cuda_attention_output(&how, rows, out, &dfrom, &df.view, &dto, queue);
    expect_close("attention_output", dz.download(), want.result(), tolerance(how.heads), &size);
}

static void check_gradient(const struct sl_attention &how, int64_t rows, bool averaged, layout l)
{
    const int64_t out = averaged ? how.width : sl_attention_all(&how);
    const matrix g = of_type(some_type(), random_matrix(rows, out, other(l), NONE, REALS));
    stored g_stored(g), g_positive(absolute(g));
    matrix state = random_matrix(rows, sl_attention_state(&how), l, NONE, REALS),
           positive_state = absolute(state),
           gradient = empty_matrix(rows, sl_attention_gradient(&how), l, CANARY), size = gradient;
    const device_matrix dg(g), dstate(state), dgradient(gradient);
    const struct sl_rows from = g_stored.rows(), size_from = g_positive.rows(), dfrom = dg.rows();
    const struct sl_floats_at s = floats(state), sp = floats(positive_state), to = floats(gradient),
                              size_to = floats(size), ds = floats(dstate), dto = floats(dgradient);
    sl_kernel_attention_gradient(&how, rows, out, &from, &s, &to);
    sl_kernel_attention_gradient(&how, rows, out, &size_from, &sp, &size_to);
    sl_cuda_attention_gradient(&how, rows, out, &dfrom, &ds, &dto, queue);
    expect_close("attention_gradient", dgradient.download(), gradient, tolerance(how.width), &size);

    matrix back = random_matrix(rows, sl_attention_projected(&how), other(l), CANARY, REALS),
           back_size = absolute(back), negative = without_signs(how, gradient);
    const device_matrix dback(back), dmade(gradient);
    const struct sl_floats_at b = floats(back), b_size = floats(back_size), db = floats(dback),
                              n = floats(negative), dm = floats(dmade);
    sl_kernel_attention_own(&how, rows, &to, &s, &b);
    sl_kernel_attention_own(&how, rows, &n, &sp, &b_size);
    sl_cuda_attention_own(&how, rows, &dm, &ds, &db, queue);
    expect_close("attention_own", dback.download(), back, tolerance(how.width), &back_size);
}

static void test_attention_parameters()
{
    random_state = 25;
    for (const sizes &size : SIZES)
        for (const int64_t in : {1, 7, 40}) {
            static one_in sample(5);
            if (!sample.leaves_out())
                check_weights(attention_of(size, 0.0, true), in,
                              random_below(2) ? 0 : 1 + random_below(20),
                              (layout)random_below(LAYOUTS));
        }
}

static void test_attention_before_and_after()
{
    random_state = 26;
    for (const sizes &size : SIZES)
        for (const int64_t rows : {0, 1, 37})
            for (int averaged = 0; averaged < 2; averaged++) {
                static one_in sample(5);
                if (sample.leaves_out())
                    continue;
                const struct sl_attention how = attention_of(size, 0.0, true);
                const layout l = (layout)random_below(LAYOUTS);
                check_scores(how, rows, l);
                check_output(how, rows, averaged, l);
                check_gradient(how, rows, averaged, l);
            }
}

const std::vector<test> attention_tests = {
    {"attention", test_attention},
    {"attention, rows", test_attention_rows},
    {"attention_merge", test_attention_merge},
    {"attention_back", test_attention_back},
    {"attention, features of entries", test_attention_edges},
    {"attention, parameters", test_attention_parameters},
    {"attention, before and after", test_attention_before_and_after},
};
