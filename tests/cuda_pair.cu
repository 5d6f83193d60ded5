/* Attention by rows of both ends on a GPU. Where signs cancel, sums of absolute values bound an
 * error. The bound of a walk back is computed with the weights of the walk, as if dropout kept all
 * entries. Scores are sums of about four, so their errors are small. */
#include "tests/cuda_attention.h"

extern "C" {
#include "codelets/pair.h"
}

/* ---- Operands ---- */

/* Widths around a team's columns, with and without room; heads of a warp, and of more. */
static const sizes SIZES[] = {{1, 1},  {1, 5},  {1, 7},   {1, 8},  {1, 16}, {1, 33}, {1, 150},
                              {2, 64}, {3, 1},  {3, 5},   {3, 7},  {3, 8},  {3, 16}, {3, 33},
                              {2, 3},  {1, 23}, {3, 132}, {8, 1},  {8, 5},  {8, 7},  {8, 8},
                              {8, 16}, {8, 33}, {1, 300}, {9, 1},  {9, 5},  {9, 7},  {9, 8},
                              {9, 16}, {9, 33}, {5, 2},   {40, 3}, {256, 1}};

static int64_t some_edges(int64_t option)
{
    static const int64_t edges[] = {0, 1, 3, 8, 17, 40, 9};
    return edges[option % 7];
}

static struct sl_pair pair_of(const sizes &size, bool products, double p, int64_t edges = 0)
{
    struct sl_pair pair = {};
    pair.attention.heads = size.heads;
    pair.attention.first_head = (int32_t)random_below(2) * 5;
    pair.attention.width = sl_pair_room(size.width);
    pair.attention.slope = 0.2f;
    pair.attention.training = true;
    if (p > 0.0)
        pair.attention.drop = sl_dropout_make(p, sl_rng_key(7, SL_RNG_ATTENTION, 3, 1));
    pair.width = size.width;
    pair.products = products;
    pair.scale = products ? 0.375f : 1.0f;
    pair.edges = edges;
    return pair;
}

/* Features of entries, whose sizes add up to about one. */
struct features {
    int64_t count;
    std::vector<float> all; // (nnz, count)
    const array<float> on_device;

    features(const struct sl_pair &pair, const sparse &a)
        : count(pair.edges), all(some(a.nnz() * pair.edges, pair.edges)), on_device(all)
    {
    }
    static std::vector<float> some(int64_t many, int64_t count)
    {
        std::vector<float> x((size_t)many);
        for (float &f : x)
            f = random_value(REALS) / (float)count;
        return x;
    }
    struct sl_sparse of(struct sl_sparse view, bool device) const
    {
        view.edge_features = count;
        view.edge = count == 0 ? nullptr : device ? on_device.data : all.data();
        return view;
    }
    const float *at(uint32_t e) const
    {
        return all.data() + (int64_t)e * count;
    }
};

static bool is_room(const struct sl_pair &pair, int64_t j)
{
    return j % pair.attention.width >= pair.width;
}

/* A matrix that begins with `pieces` matrices of all heads, whose room is 0. */
static matrix random_heads(const struct sl_pair &pair, int64_t rows, int pieces, int64_t cols,
                           layout l, float pad)
{
    matrix m = random_matrix(rows, cols, l, pad, REALS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < pieces * sl_pair_all(&pair); j++)
            if (is_room(pair, j))
                m(r, j) = 0.0f;
    return m;
}

static void number_rows(matrix *m, int64_t column)
{
    for (int64_t r = 0; r < m->rows; r++) {
        const uint32_t vertex = ((uint32_t)random_bits() >> 8) ^ SL_ATTENTION_VERTEX;
        memcpy(&(*m)(r, column), &vertex, sizeof vertex);
    }
}

static int sources(const struct sl_pair &pair)
{
    return pair.products ? 2 : 1;
}

static matrix random_source(const struct sl_pair &pair, int64_t rows, layout l, float pad)
{
    matrix m = random_heads(pair, rows, sources(pair), sl_pair_source(&pair), l, pad);
    number_rows(&m, m.cols - 1);
    return m;
}

/* Terms of a product's score add up to about four. L is about what closing makes of scores. */
static matrix random_target(const struct sl_pair &pair, int64_t rows, layout l, float pad)
{
    const int64_t all = sl_pair_all(&pair);
    matrix m = random_heads(pair, rows, 1, sl_pair_target(&pair), l, pad);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < all && pair.products; j++)
            m(r, j) *= 4.0f / (float)pair.width;
        for (int64_t h = 0; h < pair.attention.heads; h++)
            m(r, all + h) += 4.0f;
    }
    number_rows(&m, all + pair.attention.heads);
    return m;
}

static matrix random_vectors(const struct sl_pair &pair, layout l)
{
    matrix m = random_heads(pair, sl_pair_vector_rows(&pair), 1, sl_pair_all(&pair), l, NONE);
    for (int64_t j = 0; j < m.cols; j++) {
        const float a = m(SL_PAIR_PLAIN, j) * 2.0f / (float)pair.width;
        m(SL_PAIR_PLAIN, j) = a;
        m(SL_PAIR_EVEN, j) = a * 0.5f * (1.0f + pair.attention.slope);
        m(SL_PAIR_ODD, j) = a * 0.5f * (1.0f - pair.attention.slope);
    }
    return m;
}

/* ---- Forward ---- */

const float LARGEST = 1.5f; /* of V */

/* What bounds a state's sums of absolute values: Z by the sum of weights. A maximum of 0 has an
 * error as well, once it is a logarithm. */
static matrix size_of_state(const struct sl_pair &pair, const matrix &state)
{
    const int64_t all = sl_pair_all(&pair), heads = pair.attention.heads;
    const float scale = pair.attention.drop.threshold ? pair.attention.drop.scale : 1.0f;
    matrix size = state;
    for (int64_t r = 0; r < size.rows; r++) {
        for (int64_t j = 0; j < all; j++)
            size(r, j) = is_room(pair, j)
                             ? 0.0f
                             : LARGEST * scale * size(r, all + heads + j / pair.attention.width);
        for (int64_t h = 0; h < heads; h++)
            size(r, all + h) = std::fabs(size(r, all + h)) + 1.0f;
        for (int64_t i = 0; i < sl_pair_numbers(&pair); i++)
            size(r, all + 2 * heads + i) = LARGEST * scale * size(r, all + heads + i % heads);
    }
    return size;
}

/* A state, then more of it, then closed; the same with other layouts. */
static void check_pair(const struct sl_pair &pair, const sparse &first, const sparse &more,
                       layout l)
{
    const int64_t rows = first.rows, all = sl_pair_all(&pair);
    const double bound =
        tolerance(first.longest(false) + more.longest(false) + 4 * pair.width + 8 * pair.edges);
    matrix vectors = random_vectors(pair, l), target = random_target(pair, rows, l, CANARY),
           state = empty_matrix(rows, sl_pair_state(&pair), other(l), CANARY);
    const device_matrix dvectors(vectors), dtarget(target), dstate(state),
        vectors_again(moved(vectors, other(l), NONE)), target_again(moved(target, other(l), NONE)),
        again(empty_matrix(rows, sl_pair_state(&pair), l, CANARY));
    const struct sl_floats_at v = floats(vectors), t = floats(target), s = floats(state),
                              dv = floats(dvectors), dt = floats(dtarget), ds = floats(dstate),
                              va = floats(vectors_again), ta = floats(target_again),
                              sa = floats(again);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        const sparse &a = accumulate ? more : first;
        const device_sparse on_device(a);
        const features f(pair, a);
        const struct sl_sparse view = f.of(a.view(), false), dview = f.of(on_device.view, true);
        matrix source = random_source(pair, a.cols, l, NONE);
        const device_matrix dsource(source), source_again(moved(source, other(l), NONE));
        const struct sl_floats_at p = floats(source), dp = floats(dsource),
                                  pa = floats(source_again);
        sl_kernel_pair(&pair, &view, &v, &p, &t, accumulate, &s);
        sl_cuda_pair(&pair, &dview, &dv, &dp, &dt, accumulate, &ds, queue);
        sl_cuda_pair(&pair, &dview, &va, &pa, &ta, accumulate, &sa, queue);
        const matrix size = size_of_state(pair, state);
        expect_close("pair", state_of(pair.attention, dstate.download()),
                     state_of(pair.attention, state), bound, &size);
        expect_same_bits("pair", dstate.download(), again.download());
    }
    sl_kernel_pair_close(&pair, rows, &v, &t, &s);
    sl_cuda_pair_close(&pair, rows, &dv, &dt, &ds, queue);
    matrix size = size_of_state(pair, state), want = dtarget.host;
    for (int64_t r = 0; r < rows && pair.products && pair.edges; r++)
        for (int64_t j = 0; j < all; j++)
            size(r, j) *= 4.0f; /* with rows of edges */
    const matrix got = dstate.download(), got_target = dtarget.download();
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < pair.attention.heads; h++)
            want(r, all + h) = got(r, all + h);
    expect_close("pair_close", got, state, 2.0 * bound, &size);
    expect_same_bits("pair_close, L of TARGET", got_target, want);
    expect_padding_kept("pair_close, L of TARGET", got_target);
}

static double some_p(int64_t option)
{
    return option % 3 == 2 ? 0.5 : option % 3 == 1 ? 0.3 : 0.0;
}

static void test_pair()
{
    random_state = 31;
    for (const sizes &size : SIZES)
        for (int option = 0; option < 96; option++) {
            static one_in sample(37);
            if (sample.leaves_out())
                continue;
            const bool values = option & 1, narrow = option & 2;
            const struct sl_pair pair =
                pair_of(size, option & 16, some_p(option), some_edges(option / 2));
            const sparse first = of_degrees({3, 0, 65, 1, 0, 130, 9, 33, 4}, 211, values,
                                            option & 4 ? 80 : 0, narrow),
                         more = of_degrees({0, 0, 7, 65, 1, 4, 100, 0, 5}, 111, values,
                                           option & 8 ? 50 : 0, narrow);
            check_pair(pair, first, more, (layout)(option % LAYOUTS));
        }
}

/* A graph whose every row is alike, and whose last block of threads has rows left over. */
static void test_pair_rows()
{
    random_state = 32;
    for (const sizes &size : {sizes{8, 8}, sizes{1, 7}, sizes{3, 4}})
        for (int products = 0; products < 2; products++) {
            const struct sl_pair pair = pair_of(size, products, 0.5);
            const sparse a = random_sparse(333, 90, 5, 7, false, INTEGERS);
            check_pair(pair, a, random_sparse(333, 40, 3, 9, false, INTEGERS, 11, true), TIGHT);
        }
}

/* A maximum far above all others, and entries of weight 0 whose scores are far above it. */
static void test_pair_far()
{
    random_state = 33;
    for (int products = 0; products < 2; products++) {
        const struct sl_pair pair = pair_of({3, 8}, products, 0.0);
        sparse a = of_degrees({40, 7, 1, 90, 3}, 100, true, 0, false);
        const sparse more = of_degrees({4, 7, 1, 0, 3}, 30, true, 0, false);
        for (size_t e = 0; e < a.value.size(); e += 5)
            a.value[e] = 0.0f;
        matrix vectors = random_vectors(pair, TIGHT), target = random_target(pair, 5, TIGHT, NONE),
               source = random_source(pair, a.cols, TIGHT, NONE),
               state = empty_matrix(5, sl_pair_state(&pair), TIGHT, CANARY);
        for (size_t e = 0; e < a.value.size(); e++) /* K of large scores */
            for (int64_t j = 0; j < sl_pair_all(&pair); j++)
                if (a.value[e] == 0.0f && a.row_ptr[0] <= e && e < a.row_ptr[1])
                    source(a.col[e], j) *= 1e4f;
        const device_sparse on_device(a);
        const struct sl_sparse view = a.view();
        const device_matrix dv(vectors), dt(target), dp(source), ds(state);
        const struct sl_floats_at v = floats(vectors), t = floats(target), p = floats(source),
                                  s = floats(state), dva = floats(dv), dta = floats(dt),
                                  dpa = floats(dp), dsa = floats(ds);
        sl_kernel_pair(&pair, &view, &v, &p, &t, false, &s);
        sl_cuda_pair(&pair, &on_device.view, &dva, &dpa, &dta, false, &dsa, queue);
        const matrix got = ds.download(), size = size_of_state(pair, state);
        for (int64_t j = 0; j < got.cols; j++)
            expect(std::isfinite(got(0, j)), "pair: entries of weight 0 do not count");
        for (int64_t h = 0; h < pair.attention.heads; h++)
            expect(std::fabs(got(0, sl_pair_all(&pair) + h)) < 100.0f,
                   "pair: the maximum of entries with a weight");
        for (int64_t j = 0; j < got.cols; j++)
            expect(std::fabs(got(0, j) - state(0, j)) <= tolerance(200) * size(0, j),
                   "pair: a row with entries of weight 0");
        check_pair(pair, a, more, LOOSE);
    }
}

static matrix some_state(const struct sl_pair &pair, const sparse &a, layout l, float pad)
{
    const features f(pair, a);
    matrix vectors = random_vectors(pair, TIGHT), target = random_target(pair, a.rows, TIGHT, NONE),
           source = random_source(pair, a.cols, TIGHT, NONE),
           state = empty_matrix(a.rows, sl_pair_state(&pair), l, pad);
    const struct sl_sparse view = f.of(a.view(), false);
    const struct sl_floats_at v = floats(vectors), t = floats(target), p = floats(source),
                              s = floats(state);
    sl_kernel_pair(&pair, &view, &v, &p, &t, false, &s);
    return state;
}

static void test_pair_merge()
{
    random_state = 34;
    for (const sizes &size : SIZES)
        for (int option = 0; option < 8; option++) {
            static one_in sample(7);
            if (sample.leaves_out())
                continue;
            const struct sl_pair pair =
                pair_of(size, option & 2, 0.0, some_edges(option + size.width));
            const int64_t rows = 13;
            const layout l = (layout)(option % LAYOUTS);
            matrix sent = some_state(pair, random_sparse(rows, 20, 3, 4, false, INTEGERS), l, NONE),
                   state = some_state(pair, random_sparse(2 * rows, 20, 3, 4, false, INTEGERS),
                                      other(l), CANARY);
            std::vector<uint32_t> index((size_t)rows);
            for (int64_t r = 0; r < rows; r++)
                index[(size_t)r] = (uint32_t)((7 * r + 3) % (2 * rows));
            const array<uint32_t> dindex(index);
            const device_matrix dsent(sent), dstate(state);
            const bool listed = option & 1;
            const struct sl_floats_at from = floats(sent), to = floats(state),
                                      dfrom = floats(dsent), dto = floats(dstate);
            sl_kernel_pair_merge(&pair, rows, listed ? index.data() : nullptr, &from, &to);
            sl_cuda_pair_merge(&pair, rows, listed ? dindex.data : nullptr, &dfrom, &dto, queue);
            const matrix most = size_of_state(pair, state);
            expect_close("pair_merge", state_of(pair.attention, dstate.download()),
                         state_of(pair.attention, state), tolerance(0), &most);
        }
}

/* ---- Backward ---- */

/* The rows that meet in a walk back. */
struct ends {
    const matrix &vectors, &source, &target, &gradient;
};

/* Return e, the score of head h. */
static double score_of(const struct sl_pair &pair, const ends &of, int64_t s, int64_t t, int64_t h,
                       const float *feature)
{
    const int64_t numbers = sl_pair_all(&pair) + pair.attention.heads + 1;
    double e = 0.0;
    for (int64_t j = h * pair.attention.width, k = 0; k < pair.width; j++, k++) {
        const double key = of.source(s, j), query = of.target(t, j);
        double x = key + query;
        for (int64_t f = 0; f < pair.edges; f++)
            x += feature[f] * of.vectors(SL_PAIR_VECTORS + f, j);
        e += pair.products
                 ? key * query
                 : of.vectors(SL_PAIR_EVEN, j) * x + of.vectors(SL_PAIR_ODD, j) * std::fabs(x);
    }
    for (int64_t f = 0; f < pair.edges && pair.products; f++)
        e += feature[f] * of.target(t, numbers + f * pair.attention.heads + h);
    return e;
}

/* Add the absolute values that the entry of source s and target t adds to row r of D and E, or, not
 * `back`, of [C | A], and to M. */
static void add_sizes(const struct sl_pair &pair, const ends &of, int64_t s, int64_t t,
                      double weight, const float *feature, bool back, int64_t r, matrix *size,
                      matrix *m)
{
    const int64_t all = sl_pair_all(&pair), heads = pair.attention.heads,
                  values = pair.products ? all : 0;
    const double scale = pair.attention.drop.threshold ? pair.attention.drop.scale : 1.0;
    for (int64_t h = 0; h < pair.attention.heads; h++) {
        const double alpha = std::min(
            1.0, weight * std::exp(score_of(pair, of, s, t, h, feature) - of.target(t, all + h)));
        double change = std::fabs((double)of.gradient(t, all + h));
        const int64_t first = h * pair.attention.width;
        for (int64_t j = first; j < first + pair.width; j++)
            change += scale * std::fabs((double)of.gradient(t, j) * of.source(s, values + j));
        for (int64_t f = 0; f < pair.edges && pair.products; f++)
            change +=
                scale * std::fabs((double)feature[f] * of.gradient(t, all + heads + f * heads + h));
        for (int64_t f = 0; f < pair.edges && !back; f++) {
            const float each = (float)(alpha * change * std::fabs(feature[f]));
            if (pair.products)
                (*size)(r, all + f * heads + h) += each;
            for (int64_t j = first; j < first + pair.width && !pair.products; j++)
                (*m)(f, j) += each;
        }
        for (int64_t j = first; j < first + pair.width; j++) {
            const double other = back ? of.target(t, j) : of.source(s, j);
            (*size)(r, j) += (float)(alpha * change * (pair.products ? std::fabs(other) : 1.0));
            if (back)
                (*size)(r, all + j) += (float)(alpha * scale * std::fabs(of.gradient(t, j)));
        }
    }
}

static void add_all_sizes(const struct sl_pair &pair, const ends &of, const sparse &a,
                          const features &f, bool back, matrix *size, matrix *m)
{
    for (int64_t b = 0; b < a.blocks; b++)
        for (int64_t r = 0; r < a.rows; r++)
            for (uint32_t e = a.row_ptr[(size_t)(b * a.rows + r)];
                 e < a.row_ptr[(size_t)(b * a.rows + r + 1)]; e++) {
                const int64_t c = b * a.block_cols + a.col[e];
                add_sizes(pair, of, back ? r : c, back ? c : r, a.has_values ? a.value[e] : 1.0,
                          f.at(e), back, r, size, m);
            }
}

/* Both walks back: over A, or over a transpose A. */
static void check_back(const struct sl_pair &pair, const sparse &a, bool back, layout l)
{
    const int64_t sources = back ? a.rows : a.cols, targets = back ? a.cols : a.rows,
                  all = sl_pair_all(&pair);
    matrix vectors = random_vectors(pair, l), source = random_source(pair, sources, other(l), NONE),
           target = random_target(pair, targets, l, NONE),
           gradient = random_heads(pair, targets, 1, sl_pair_gradient(&pair), other(l), NONE),
           out = random_heads(pair, a.rows, 1 + back, back ? 2 * all : sl_pair_target_back(&pair),
                              l, CANARY),
           m = random_heads(pair, pair.edges, 1, all, other(l), CANARY), size = absolute(out),
           m_size = absolute(m);
    const device_sparse on_device(a);
    const features f(pair, a);
    const struct sl_sparse view = f.of(a.view(), false), dview = f.of(on_device.view, true);
    const bool sums = pair.edges > 0 && !pair.products;
    const device_matrix dm(m), m_again(moved(m, l, CANARY));
    const struct sl_floats_at to_m = floats(m), dto_m = floats(dm), toa_m = floats(m_again);
    const device_matrix dvectors(vectors), dsource(source), dtarget(target), dgradient(gradient),
        dout(out), vectors_again(moved(vectors, other(l), NONE)),
        source_again(moved(source, l, NONE)), target_again(moved(target, other(l), NONE)),
        gradient_again(moved(gradient, l, NONE)), again(moved(out, other(l), CANARY));
    const struct sl_floats_at v = floats(vectors), s = floats(source), t = floats(target),
                              g = floats(gradient), to = floats(out), dv = floats(dvectors),
                              ds = floats(dsource), dt = floats(dtarget), dg = floats(dgradient),
                              dto = floats(dout), va = floats(vectors_again),
                              sa = floats(source_again), ta = floats(target_again),
                              ga = floats(gradient_again), toa = floats(again);
    const char *const name = back ? "pair_back" : "pair_again";
    for (int accumulate = 1; accumulate >= 0; accumulate--) {
        for (int64_t r = 0; r < size.rows && !accumulate; r++)
            for (int64_t j = 0; j < size.cols; j++)
                size(r, j) = 0.0f;
        for (int64_t r = 0; r < m.rows && !accumulate; r++)
            for (int64_t j = 0; j < m.cols; j++)
                m_size(r, j) = 0.0f;
        add_all_sizes(pair, {vectors, source, target, gradient}, a, f, back, &size, &m_size);
        if (back) {
            sl_kernel_pair_back(&pair, &view, &v, &g, &t, &s, accumulate, &to);
            sl_cuda_pair_back(&pair, &dview, &dv, &dg, &dt, &ds, accumulate, &dto, queue);
            sl_cuda_pair_back(&pair, &dview, &va, &ga, &ta, &sa, accumulate, &toa, queue);
        } else {
            sl_kernel_pair_again(&pair, &view, &v, &s, &t, &g, accumulate, &to, accumulate,
                                 sums ? &to_m : nullptr);
            sl_cuda_pair_again(&pair, &dview, &dv, &ds, &dt, &dg, accumulate, &dto, accumulate,
                               sums ? &dto_m : nullptr, queue);
            sl_cuda_pair_again(&pair, &dview, &va, &sa, &ta, &ga, accumulate, &toa, accumulate,
                               sums ? &toa_m : nullptr, queue);
            expect_close("pair_again, M", dm.download(), m, tolerance(a.nnz() + 4 * pair.width),
                         &m_size);
            expect_same_bits("pair_again, M", dm.download(), m_again.download());
        }
        const matrix got = dout.download();
        expect_close(name, got, out, tolerance(a.longest(false) + 4 * pair.width + 8 * pair.edges),
                     &size);
        expect_same_bits(name, got, again.download());
    }
}

static void check_backs(bool back)
{
    for (const sizes &size : SIZES)
        for (int option = 0; option < 96; option++) {
            static one_in sample(89);
            if (sample.leaves_out())
                continue;
            const struct sl_pair pair =
                pair_of(size, option & 16, some_p(option), some_edges(option / 2));
            const sparse a = of_degrees({3, 0, 65, 1, 0, 130, 9, 33, 4}, 211, option & 1,
                                        option & 4 ? 80 : 0, option & 2);
            check_back(pair, a, back, (layout)(option % LAYOUTS));
        }
}

static void test_pair_again()
{
    random_state = 35;
    check_backs(false);
}

/* Chunks of rows whose sums M are added, and a tile without rows. */
static void test_pair_again_rows()
{
    random_state = 40;
    for (const sizes &size : {sizes{8, 8}, sizes{1, 7}, sizes{3, 33}, sizes{1, 150}})
        for (const int64_t rows : {0, 16, 17, 333}) {
            static one_in large(2);
            if (rows < 300 || !large.leaves_out_in_software())
                check_back(pair_of(size, false, 0.5, 9),
                           random_sparse(rows, 90, 3, 7, false, INTEGERS, 11, true), false, LOOSE);
        }
}

static void test_pair_back()
{
    random_state = 36;
    check_backs(true);
}

/* ---- Parameters ---- */

static void check_part(const struct sl_pair &pair, const struct sl_pair_shape &shape,
                       bool accumulate, matrix *parameters, matrix *weights, matrix *gradient,
                       matrix *back)
{
    matrix vectors =
        empty_matrix(sl_pair_vector_rows(&pair), sl_pair_all(&pair), back->how, CANARY);
    const device_matrix dparameters(*parameters), dweights(*weights), dvectors(vectors),
        dgradient(*gradient), dback(*back);
    const struct sl_floats_at p = floats(*parameters), w = floats(*weights), v = floats(vectors),
                              g = floats(*gradient), b = floats(*back), dp = floats(dparameters),
                              dw = floats(dweights), dv = floats(dvectors), dg = floats(dgradient),
                              db = floats(dback);
    sl_kernel_pair_weights(&pair, &shape, &p, &w, &v);
    sl_cuda_pair_weights(&pair, &shape, &dp, &dw, &dv, queue);
    expect_same_bits("pair_weights", dweights.download(), *weights);
    expect_padding_kept("pair_weights", dweights.download());
    const matrix size = absolute(vectors);
    expect_close("pair_weights, vectors", dvectors.download(), vectors, 4.0 * UNIT, &size);
    sl_kernel_pair_weights_back(&pair, &shape, &p, &g, accumulate, &b);
    sl_cuda_pair_weights_back(&pair, &shape, &dp, &dg, accumulate, &db, queue);
    if (pair.edges == 0 || pair.products) {
        expect_equal("pair_weights_back", dback.download(), *back);
        return;
    }
    matrix bound = *back; /* da is a sum over the features */
    const int64_t row = shape.skipped + 2 * shape.in + pair.edges;
    for (int64_t r = 0; r < bound.rows; r++)
        for (int64_t j = 0; j < bound.cols; j++)
            bound(r, j) = r == row ? 2.25f * (float)(pair.edges + 1) : 0.0f;
    expect_close("pair_weights_back", dback.download(), *back, (double)(pair.edges + 1) * UNIT,
                 &bound);
}

/* Two parts, of some heads each. Other columns, and skipped rows, stay as they are. */
static void check_weights(const sizes &size, bool products, int64_t in, layout l)
{
    struct sl_pair pair = pair_of(size, products, 0.0, some_edges(in + size.width));
    const int64_t all = sl_pair_columns(&pair), columns = all + random_below(3),
                  cols = 2 * sl_pair_projected(&pair) + random_below(3);
    const int count = sl_pair_weights(&pair);
    struct sl_pair_shape shape = {};
    shape.in = in;
    shape.columns = columns;
    shape.skipped = random_below(3);
    shape.bias = random_below(4) > 0;
    const int64_t rows =
        shape.skipped + count * in + pair.edges + !products + (shape.bias ? count + 1 : 0);
    matrix parameters = random_matrix(rows, columns, l, NONE, REALS),
           weights = empty_matrix(in, cols, other(l), CANARY),
           gradient =
               random_matrix(in + pair.edges + !products + 2 * shape.bias, cols, l, NONE, REALS),
           back = empty_matrix(rows, columns, other(l), CANARY);
    const int32_t heads = pair.attention.heads, first = (heads + 1) / 2;
    pair.attention.heads = first;
    shape.at = random_below(2);
    shape.out = sl_pair_columns(&pair);
    check_part(pair, shape, false, &parameters, &weights, &gradient, &back);
    if (first == heads)
        return;
    shape.at += sl_pair_projected(&pair);
    shape.first = shape.out_column = sl_pair_columns(&pair);
    pair.attention.heads = heads - first;
    pair.attention.first_head += first;
    shape.out = sl_pair_columns(&pair);
    check_part(pair, shape, true, &parameters, &weights, &gradient, &back);
}

static void test_pair_parameters()
{
    random_state = 37;
    for (const sizes &size : SIZES)
        for (const int64_t in : {1, 7, 40})
            for (int products = 0; products < 2; products++) {
                static one_in sample(5);
                if (!sample.leaves_out())
                    check_weights(size, products, in, (layout)random_below(LAYOUTS));
            }
}

/* ---- Rows ---- */

/* Compare numbers from column `first` on: sums of products of W_e with rows whose sizes are at most
 * `most`. The columns before have the same bits. */
static void expect_numbers(const char *name, const struct sl_pair &pair, int64_t first, float most,
                           const matrix &got, const matrix &want)
{
    matrix size = want;
    for (int64_t r = 0; r < size.rows; r++)
        for (int64_t j = 0; j < size.cols; j++)
            size(r, j) = j < first ? 0.0f : 1.5f * most * (float)pair.width;
    expect_close(name, got, want, tolerance(pair.width), &size);
}

static void check_ends(const struct sl_pair &pair, int64_t rows, layout l)
{
    const int count = sl_pair_weights(&pair);
    struct sl_pair_shape shape = {};
    shape.in = random_below(3);
    shape.skipped = random_below(3);
    shape.first = random_below(4);
    shape.columns = shape.first + sl_pair_columns(&pair);
    shape.bias = random_below(2);
    matrix parameters = random_matrix(shape.skipped + count * shape.in + pair.edges +
                                          !pair.products + (shape.bias ? count + 1 : 0),
                                      shape.columns, l, NONE, REALS),
           vectors = random_vectors(pair, l),
           projected = random_matrix(rows, sl_pair_projected(&pair), other(l), NONE, REALS),
           source = empty_matrix(rows, sl_pair_source(&pair), l, CANARY),
           target = empty_matrix(rows, sl_pair_target(&pair), other(l), CANARY);
    const std::vector<uint32_t> vertex = random_vertices(rows);
    const array<uint32_t> dvertex(vertex);
    const device_matrix dparameters(parameters), dprojected(projected), dsource(source),
        dtarget(target), dvectors(vectors);
    const struct sl_floats_at v = floats(vectors), dv = floats(dvectors);
    const struct sl_floats_at p = floats(parameters), x = floats(projected), s = floats(source),
                              t = floats(target), dp = floats(dparameters), dx = floats(dprojected),
                              ds = floats(dsource), dt = floats(dtarget);
    sl_kernel_pair_ends(&pair, &shape, rows, vertex.data(), &p, &x, &v, &s, &t);
    sl_cuda_pair_ends(&pair, &shape, rows, dvertex.data, &dp, &dx, &dv, &ds, &dt, queue);
    expect_same_bits("pair_ends, source", dsource.download(), source);
    if (sl_pair_numbers(&pair) == 0)
        expect_same_bits("pair_ends, target", dtarget.download(), target);
    else
        expect_numbers("pair_ends, target", pair, sl_pair_target(&pair) - sl_pair_numbers(&pair),
                       3.0f * pair.scale, dtarget.download(), target);
    expect_padding_kept("pair_ends, source", dsource.download());
    expect_padding_kept("pair_ends, target", dtarget.download());
}

static void check_output(const struct sl_pair &pair, int64_t rows, bool mean, layout l)
{
    const int64_t out = mean ? pair.width : sl_pair_columns(&pair);
    finish f = random_finish(rows, out, some_steps(), l, REALS), positive = absolute(f);
    const device_finish df(f);
    matrix state = random_heads(pair, rows, 1, sl_pair_state(&pair), l, NONE),
           size_state = absolute(state), size = empty_matrix(rows, out, TIGHT, NONE);
    const matrix z = of_type(some_type(), empty_matrix(rows, out, other(l), CANARY));
    stored want(z);
    const device_matrix dstate(state), dz(z), again(moved(state, other(l), NONE)), z_again(z);
    const struct sl_floats_at from = floats(state), size_from = floats(size_state),
                              dfrom = floats(dstate), from_again = floats(again);
    const struct sl_rows to = want.rows(), dto = dz.rows(), to_again = z_again.rows(),
                         size_to = sl_float_rows(size.at(), size.ld);
    const struct sl_epilogue e = f.view(), bound = positive.view();
    sl_kernel_pair_output(&pair, rows, mean, &from, &e, &to);
    sl_kernel_pair_output(&pair, rows, mean, &size_from, &bound, &size_to);
    sl_cuda_pair_output(&pair, rows, mean, &dfrom, &df.view, &dto, queue);
    sl_cuda_pair_output(&pair, rows, mean, &from_again, &df.view, &to_again, queue);
    expect_close("pair_output", dz.download(), want.result(), tolerance(pair.attention.heads),
                 &size);
    expect_same_bits("pair_output", dz.download(), z_again.download());
}

static void check_gradient(const struct sl_pair &pair, int64_t rows, bool mean, layout l)
{
    const int64_t out = mean ? pair.width : sl_pair_columns(&pair);
    const matrix g = of_type(some_type(), random_matrix(rows, out, other(l), NONE, REALS));
    stored g_stored(g), g_positive(absolute(g));
    matrix state = random_heads(pair, rows, 1, sl_pair_state(&pair), l, NONE),
           positive_state = absolute(state), vectors = random_vectors(pair, other(l)),
           positive_vectors = absolute(vectors),
           gradient = empty_matrix(rows, sl_pair_gradient(&pair), l, CANARY), size = gradient;
    const device_matrix dg(g), dstate(state), dgradient(gradient), dvectors(vectors);
    const struct sl_floats_at v = floats(vectors), vp = floats(positive_vectors),
                              dv = floats(dvectors);
    const struct sl_rows from = g_stored.rows(), size_from = g_positive.rows(), dfrom = dg.rows();
    const struct sl_floats_at s = floats(state), sp = floats(positive_state), to = floats(gradient),
                              size_to = floats(size), ds = floats(dstate), dto = floats(dgradient);
    sl_kernel_pair_gradient(&pair, rows, mean, &from, &s, &v, &to);
    sl_kernel_pair_gradient(&pair, rows, mean, &size_from, &sp, &vp, &size_to);
    sl_cuda_pair_gradient(&pair, rows, mean, &dfrom, &ds, &dv, &dto, queue);
    expect_close("pair_gradient", dgradient.download(), gradient, tolerance(pair.width), &size);
}

static void check_join(const struct sl_pair &pair, int64_t rows, layout l)
{
    const int64_t all = sl_pair_all(&pair);
    matrix vectors = random_vectors(pair, l),
           c = random_heads(pair, rows, 1, sl_pair_target_back(&pair), other(l), NONE),
           d = random_heads(pair, rows, 2, 2 * all, l, NONE), positive_vectors = absolute(vectors),
           positive_c = absolute(c), positive_d = absolute(d),
           projected = empty_matrix(rows, sl_pair_projected(&pair), other(l), CANARY),
           size = projected;
    const device_matrix dv(vectors), dc(c), dd(d), dprojected(projected);
    const struct sl_floats_at v = floats(vectors), at_c = floats(c), at_d = floats(d),
                              vp = floats(positive_vectors), cp = floats(positive_c),
                              dp = floats(positive_d), to = floats(projected),
                              size_to = floats(size), dva = floats(dv), dca = floats(dc),
                              dda = floats(dd), dto = floats(dprojected);
    sl_kernel_pair_join(&pair, rows, &v, &at_c, &at_d, &to);
    sl_kernel_pair_join(&pair, rows, &vp, &cp, &dp, &size_to);
    sl_cuda_pair_join(&pair, rows, &dva, &dca, &dda, &dto, queue);
    expect_close("pair_join", dprojected.download(), projected, (double)(4 + 2 * pair.edges) * UNIT,
                 &size);
    if (pair.products || pair.width != pair.attention.width)
        return;
    sl_cuda_pair_join(&pair, rows, &dva, &dca, &dda, &dda, queue); /* in place */
    const matrix in_place = dd.download(), apart = dprojected.download();
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < 2 * all; j++)
            expect(in_place(r, j) == apart(r, j), "pair_join in place");
}

static void check_vector_back(const struct sl_pair &pair, int64_t rows, layout l)
{
    const int64_t all = sl_pair_all(&pair);
    matrix source = random_source(pair, rows, l, NONE),
           target = random_target(pair, rows, other(l), NONE),
           c = random_heads(pair, rows, 1, all, l, NONE),
           d = random_heads(pair, rows, 2, 2 * all, other(l), NONE),
           positive_source = absolute_until(source, all),
           positive_target = absolute_until(target, all), positive_c = absolute(c),
           positive_d = absolute(d), a = empty_matrix(1, sl_pair_columns(&pair), l, CANARY),
           size = a;
    const device_matrix ds(source), dt(target), dc(c), dd(d), da(a),
        s_again(moved(source, other(l), NONE)), d_again(moved(d, l, NONE)), again(a);
    const struct sl_floats_at s = floats(source), t = floats(target), at_c = floats(c),
                              at_d = floats(d), sp = floats(positive_source),
                              tp = floats(positive_target), cp = floats(positive_c),
                              dp = floats(positive_d), dsa = floats(ds), dta = floats(dt),
                              dca = floats(dc), dda = floats(dd), sa = floats(s_again),
                              dag = floats(d_again);
    sl_kernel_pair_vector_back(&pair, rows, &s, &t, &at_c, &at_d, a.at());
    sl_kernel_pair_vector_back(&pair, rows, &sp, &tp, &cp, &dp, size.at());
    sl_cuda_pair_vector_back(&pair, rows, &dsa, &dta, &dca, &dda, da.at, queue);
    sl_cuda_pair_vector_back(&pair, rows, &sa, &dta, &dca, &dag, again.at, queue);
    expect_close("pair_vector_back", da.download(), a, 2.0 * (double)(2 * rows + 4) * UNIT, &size);
    expect_same_bits("pair_vector_back", da.download(), again.download());
}

static void check_edges_back(const struct sl_pair &pair, int64_t rows, layout l)
{
    const int64_t all = sl_pair_all(&pair);
    matrix target = random_target(pair, rows, l, NONE),
           gradient = random_heads(pair, rows, 1, sl_pair_gradient(&pair), other(l), NONE),
           c = random_heads(pair, rows, 1, sl_pair_target_back(&pair), l, NONE),
           state = random_heads(pair, rows, 1, sl_pair_state(&pair), other(l), NONE),
           positive_target = absolute_until(target, all), positive_gradient = absolute(gradient),
           positive_c = absolute(c), positive_state = absolute(state),
           back = empty_matrix(pair.edges, sl_pair_columns(&pair), l, CANARY), size = back;
    const device_matrix dt(target), dg(gradient), dc(c), ds(state), dback(back),
        c_again(moved(c, other(l), NONE)), again(moved(back, other(l), CANARY));
    const struct sl_floats_at t = floats(target), g = floats(gradient), cc = floats(c),
                              s = floats(state), to = floats(back), tp = floats(positive_target),
                              gp = floats(positive_gradient), cp = floats(positive_c),
                              sp = floats(positive_state), size_to = floats(size), dta = floats(dt),
                              dga = floats(dg), dca = floats(dc), dsa = floats(ds),
                              dto = floats(dback), ca = floats(c_again), toa = floats(again);
    sl_kernel_pair_edges_back(&pair, rows, &t, &g, &cc, &s, &to);
    sl_kernel_pair_edges_back(&pair, rows, &tp, &gp, &cp, &sp, &size_to);
    sl_cuda_pair_edges_back(&pair, rows, &dta, &dga, &dca, &dsa, &dto, queue);
    sl_cuda_pair_edges_back(&pair, rows, &dta, &dga, &ca, &dsa, &toa, queue);
    expect_close("pair_edges_back", dback.download(), back, 2.0 * (double)(2 * rows + 4) * UNIT,
                 &size);
    expect_same_bits("pair_edges_back", dback.download(), again.download());
}

static void check_edges_paste(const struct sl_pair &pair, layout l)
{
    matrix sums = random_matrix(pair.edges, sl_pair_all(&pair), l, NONE, REALS),
           back = empty_matrix(pair.edges, sl_pair_columns(&pair), other(l), CANARY);
    const device_matrix dsums(sums), dback(back);
    const struct sl_floats_at s = floats(sums), to = floats(back), ds = floats(dsums),
                              dto = floats(dback);
    sl_kernel_pair_edges_paste(&pair, &s, &to);
    sl_cuda_pair_edges_paste(&pair, &ds, &dto, queue);
    expect_equal("pair_edges_paste", dback.download(), back);
}

static void test_pair_edges()
{
    random_state = 41;
    for (const sizes &size : SIZES)
        for (const int64_t rows : {0, 1, 37, 150}) {
            static one_in sample(3);
            if (sample.leaves_out())
                continue;
            const int64_t edges = 1 + random_below(12);
            const layout l = (layout)random_below(LAYOUTS);
            check_edges_back(pair_of(size, true, 0.0, edges), rows, l);
            check_edges_paste(pair_of(size, false, 0.0, edges), l);
        }
}

static void test_pair_before_and_after()
{
    random_state = 38;
    for (const sizes &size : SIZES)
        for (const int64_t rows : {0, 1, 37})
            for (int option = 0; option < 4; option++) {
                static one_in sample(5);
                if (sample.leaves_out())
                    continue;
                const struct sl_pair pair =
                    pair_of(size, option & 1, 0.0, some_edges(random_below(7)));
                const layout l = (layout)random_below(LAYOUTS);
                check_ends(pair, rows, l);
                check_output(pair, rows, option & 2, l);
                check_gradient(pair, rows, option & 2, l);
                check_join(pair, rows, l);
                if (!pair.products)
                    check_vector_back(pair, rows, l);
            }
}

/* Column sums of several chunks of rows. */
static void test_pair_vector_back()
{
    random_state = 39;
    for (const sizes &size : {sizes{1, 1}, sizes{3, 5}, sizes{8, 8}, sizes{1, 33}})
        for (const int64_t rows : {64, 65, 700})
            check_vector_back(pair_of(size, false, 0.0), rows, (layout)random_below(LAYOUTS));
}

const std::vector<test> pair_tests = {
    {"pair", test_pair},
    {"pair, rows", test_pair_rows},
    {"pair, far", test_pair_far},
    {"pair_merge", test_pair_merge},
    {"pair_again", test_pair_again},
    {"pair_again, rows", test_pair_again_rows},
    {"pair_back", test_pair_back},
    {"pair, parameters", test_pair_parameters},
    {"pair, before and after", test_pair_before_and_after},
    {"pair_vector_back", test_pair_vector_back},
    {"pair, edges", test_pair_edges},
};
