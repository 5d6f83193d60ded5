/* Normalisation and its gradient on a GPU. */
#include "tests/cuda_epilogue.h"

extern "C" {
#include "codelets/norm_parts.h"
}

/* Rows as layers have them; far from 0; all alike. */
enum numbers { USUAL, FAR, CONSTANT, NUMBERS };

/* What is normalised; of rows that are cut, some columns are there, and numbers of all. */
enum form { OF_ROWS, OF_COLUMNS, CUT_ROWS, FORMS };

enum { ELSEWHERE = 5 /* columns of cut rows */ };

struct problem {
    int64_t rows, cols;
    bool columns, cut;
    stored h, g;
    matrix weight, bias, mean, variance, root, after, sums, moments, products;
};

static float number(numbers what, int64_t r, int64_t j, bool columns)
{
    if (what == CONSTANT)
        return 1000.1f + (float)(columns ? j : r);
    return random_value(REALS) + (what == FAR ? 1000.0f : 0.0f);
}

static problem make(int64_t rows, int64_t cols, layout how, form of, numbers what)
{
    const bool columns = of == OF_COLUMNS;
    matrix h = empty_matrix(rows, cols, how, NONE);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            h(r, j) = number(what, r, j, columns);
    problem p = {rows,
                 cols,
                 columns,
                 of == CUT_ROWS,
                 stored(of_type(some_type(), h)),
                 stored(of_type(some_type(), random_matrix(rows, cols, other(how), NONE, REALS))),
                 random_matrix(1, cols, other(how), NONE, REALS),
                 random_matrix(1, cols, how, NONE, REALS),
                 random_matrix(1, cols, how, NONE, REALS),
                 absolute(random_matrix(1, cols, TIGHT, NONE, REALS)),
                 empty_matrix(1, rows, TIGHT, NONE),
                 random_matrix(1, rows, TIGHT, NONE, REALS),
                 random_matrix(2, cols, LOOSE, NONE, REALS),
                 random_matrix(SL_NORM_MOMENTS, rows, how, NONE, REALS),
                 random_matrix(SL_NORM_PRODUCTS, rows, LOOSE, NONE, REALS)};
    for (int64_t r = 0; r < rows; r++) {
        p.moments(0, r) += what == USUAL ? 0.0f : 1000.0f;
        p.moments(1, r) *= 1e-5f;
        p.moments(2, r) = std::fabs(p.moments(2, r));
    }
    for (int64_t j = 0; j < cols; j++)
        p.mean(0, j) += what == USUAL ? 0.0f : 1000.0f;
    for (int64_t r = 0; r < rows; r++)
        p.root(0, r) = random_below(3) ? 1.0f : 0.0f;
    return p;
}

static struct sl_norm view_of(const problem &p, const struct sl_rows &h, const float *weight,
                              const float *bias, const float *mean, const float *variance,
                              const float *root, const float *moments, int64_t ldm)
{
    struct sl_norm n = {};
    n.rows = p.rows;
    n.cols = p.cols;
    n.epsilon = 1e-5f;
    n.h = h;
    n.mean = p.columns ? mean : nullptr;
    n.variance = p.columns ? variance : nullptr;
    n.moments = p.cut ? moments : nullptr;
    n.ldm = ldm;
    n.whole = p.cols + ELSEWHERE;
    n.weight = weight;
    n.bias = bias;
    n.root = p.columns ? root : nullptr;
    return n;
}

static struct sl_norm host_norm(problem &p)
{
    return view_of(p, p.h.rows(), p.weight.at(), p.bias.at(), p.mean.at(), p.variance.at(),
                   p.root.at(), p.moments.at(), p.moments.ld);
}

/* On the device, with the rows of H in any layout. */
struct device_problem {
    device_matrix h, g, weight, bias, mean, variance, root, after, sums, moments, products;
    struct sl_norm norm;

    device_problem(const problem &p, layout how)
        : h(moved(p.h.floats, how, CANARY)), g(moved(p.g.floats, other(how), CANARY)),
          weight(p.weight), bias(p.bias), mean(p.mean), variance(p.variance), root(p.root),
          after(p.after), sums(p.sums), moments(moved(p.moments, how, CANARY)),
          products(p.products), norm(view_of(p, h.rows(), weight.at, bias.at, mean.at, variance.at,
                                             root.at, moments.at, moments.ld))
    {
    }
};

/* What X may be off by on either side, in units of `lost`. */
static double lost(const problem &p)
{
    return ((double)p.cols / 8.0 + 64.0) * UNIT;
}

struct exact {
    std::vector<double> size, x, inverse; // (rows, cols)
};

static exact exact_of(const problem &p)
{
    exact e;
    for (int64_t r = 0; r < p.rows; r++) {
        double mean = 0.0, variance = 0.0, apart = 0.0, size = 0.0;
        for (int64_t j = 0; j < p.cols; j++) {
            mean += (double)p.h.floats(r, j) / (double)p.cols;
            size += std::fabs((double)p.h.floats(r, j)) / (double)p.cols;
        }
        if (p.cut)
            mean = (double)p.moments(0, r) + (double)p.moments(1, r);
        for (int64_t j = 0; j < p.cols; j++) {
            const double off = (double)p.h.floats(r, j) - mean;
            variance += off * off / (double)p.cols;
            apart += std::fabs(off) / (double)p.cols;
        }
        if (p.cut)
            variance = (double)p.moments(2, r);
        for (int64_t j = 0; j < p.cols; j++) {
            const double off = (double)p.h.floats(r, j) - (p.columns ? p.mean(0, j) : mean);
            const double inverse =
                1.0 / std::sqrt((p.columns ? (double)p.variance(0, j) : variance) + 1e-5);
            e.inverse.push_back(inverse);
            e.x.push_back(off * inverse);
            e.size.push_back((std::fabs(off) + (p.columns ? 0.0 : apart + lost(p) * size)) *
                             inverse);
        }
    }
    return e;
}

static void check_forward(problem &p, layout how)
{
    const exact e = exact_of(p);
    const int steps = some_steps() & ~(BIAS | MASK);
    const bool plain = random_below(4) == 0;
    finish f = random_finish(p.rows, p.cols, plain ? 0 : steps, how, REALS);
    finish positive = absolute(f);
    const device_finish df(f);
    const struct sl_epilogue epilogue = f.view(), of_sizes = positive.view();
    stored want(of_type(some_type(), empty_matrix(p.rows, p.cols, how, CANARY)));
    matrix size = empty_matrix(p.rows, p.cols, TIGHT, CANARY);
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t j = 0; j < p.cols; j++)
            size(r, j) =
                (float)(std::fabs((double)p.weight(0, j)) * e.size[(size_t)(r * p.cols + j)] +
                        std::fabs((double)p.bias(0, j)));
    const struct sl_rows sizes = sl_float_rows(size.at(), size.ld), to = want.rows();
    sl_kernel_epilogue(p.rows, p.cols, &of_sizes, &sizes, &sizes);
    const struct sl_norm n = host_norm(p);
    const device_problem on_device(p, how), elsewhere(p, other(how));
    const device_matrix first(want.floats), again(moved(want.floats, other(how), CANARY));
    sl_kernel_norm(&n, plain ? nullptr : &epilogue, &to);
    const struct sl_rows at = first.rows(), again_at = again.rows();
    sl_cuda_norm(&on_device.norm, plain ? nullptr : &df.view, &at, queue);
    sl_cuda_norm(&elsewhere.norm, plain ? nullptr : &df.view, &again_at, queue);
    expect_close("norm", first.download(), moved(want.result(), how, CANARY), 8.0 * lost(p), &size);
    expect_same_bits("norm", first.download(), again.download());
    if (p.h.floats.type == want.floats.type) {
        sl_cuda_norm(&on_device.norm, plain ? nullptr : &df.view, &on_device.norm.h, queue);
        expect_same_bits("norm in place", first.download(), on_device.h.download());
        expect_padding_kept("norm in place", on_device.h.download());
    }
}

static void check_statistics(problem &p, layout how)
{
    const int64_t ld = p.cols + 3;
    const std::vector<double> none((size_t)(2 * ld), -1.0);
    std::vector<double> want = none;
    const array<double> sums(none), again(none);
    const device_problem on_device(p, how), elsewhere(p, other(how));
    const struct sl_norm n = host_norm(p);
    sl_kernel_norm_sums(p.rows, p.cols, n.root, &n.h, want.data(), ld);
    sl_cuda_norm_sums(p.rows, p.cols, on_device.norm.root, &on_device.norm.h, sums.data, ld, queue);
    sl_cuda_norm_sums(p.rows, p.cols, elsewhere.norm.root, &elsewhere.norm.h, again.data, ld,
                      queue);
    const std::vector<double> got = sums.download();
    expect(got == again.download(), "norm sums are the same again");
    bool good = true;
    for (int64_t k = 0; k < 2 * ld; k++) {
        const double w = want[(size_t)k], g = got[(size_t)k],
                     size = std::fabs(want[(size_t)(k % ld + ld)]) + std::fabs(w);
        good = good && (k % ld < p.cols ? std::fabs(g - w) <= 1e-13 * size : g == -1.0);
    }
    expect(good, "norm sums");

    const double count = (double)(p.rows > 0 ? p.rows : 1);
    matrix statistics = empty_matrix(2, p.cols, how, CANARY), averages = statistics, size;
    const device_matrix ds(statistics), da(averages);
    const array<double> from(want);
    sl_kernel_norm_statistics(p.cols, count, want.data(), ld, statistics.at(), statistics.ld);
    sl_cuda_norm_statistics(p.cols, count, from.data, ld, ds.at, ds.ld, queue);
    size = statistics;
    for (int64_t j = 0; j < p.cols; j++) /* a difference, in double */
        size(1, j) += 1e-7f * (float)(want[(size_t)(ld + j)] / count);
    expect_close("norm statistics", ds.download(), statistics, 2.0 * UNIT, &size);
    const device_matrix same(statistics);
    for (const double rows : {1.0, 2.0, count}) {
        sl_kernel_norm_averages(p.cols, rows, statistics.at(), statistics.ld, averages.at(),
                                averages.ld);
        sl_cuda_norm_averages(p.cols, rows, same.at, same.ld, da.at, da.ld, queue);
        expect_equal("norm averages", da.download(), averages);
    }
}

/* A mean and its rest are one number: rounded means may differ, and the rest says so. */
static void expect_means(const char *operation, const matrix &got, const matrix &want,
                         const std::vector<double> &allowed)
{
    bool good = true;
    for (int64_t r = 0; r < got.cols; r++)
        good = good && std::fabs(((double)got(0, r) - (double)want(0, r)) +
                                 ((double)got(1, r) - (double)want(1, r))) <= allowed[(size_t)r];
    expect(good, operation);
}

/* Moments of a part, merged with others, and its products. */
static void check_parts(problem &p, layout how)
{
    const exact e = exact_of(p);
    matrix want = empty_matrix(SL_NORM_MOMENTS, p.rows, how, CANARY), size = want;
    matrix products = empty_matrix(SL_NORM_PRODUCTS, p.rows, how, CANARY), product_size = products;
    std::vector<double> allowed;
    for (int64_t r = 0; r < p.rows; r++) {
        double largest = 0.0, apart = 0.0, first = 0.0, second = 0.0;
        for (int64_t j = 0; j < p.cols; j++) {
            const double wg = std::fabs((double)p.weight(0, j) * (double)p.g.floats(r, j));
            largest = std::max(largest, std::fabs((double)p.h.floats(r, j)));
            apart = std::max(apart, std::fabs((double)p.h.floats(r, j) - (double)p.moments(0, r)));
            first += wg;
            second += wg * e.size[(size_t)(r * p.cols + j)];
        }
        largest += std::fabs((double)p.moments(0, r));
        size(0, r) = size(1, r) = (float)largest;
        size(2, r) = (float)(apart * apart + 4.0);
        allowed.push_back(8.0 * lost(p) * (apart + lost(p) * largest));
        product_size(0, r) = (float)first;
        product_size(1, r) = (float)second;
    }
    const device_problem on_device(p, how), elsewhere(p, other(how));
    const device_matrix first(want), again(moved(want, other(how), CANARY)), of_g(products),
        of_g_again(moved(products, other(how), CANARY));
    const struct sl_norm n = host_norm(p);
    const struct sl_rows g = p.g.rows(), dg = on_device.g.rows(), ag = elsewhere.g.rows();
    const double cols = (double)p.cols, more = ELSEWHERE;
    sl_kernel_norm_moments(p.rows, p.cols, &n.h, want.at(), want.ld);
    sl_cuda_norm_moments(p.rows, p.cols, &on_device.norm.h, first.at, first.ld, queue);
    sl_cuda_norm_moments(p.rows, p.cols, &elsewhere.norm.h, again.at, again.ld, queue);
    expect_close("norm moments", first.download(), want, 8.0 * lost(p), &size);
    expect_means("norm moments", first.download(), want, allowed);
    expect_same_bits("norm moments", first.download(), again.download());
    sl_kernel_norm_merge(p.rows, cols, more, p.moments.at(), p.moments.ld, want.at(), want.ld);
    sl_cuda_norm_merge(p.rows, cols, more, on_device.moments.at, on_device.moments.ld, first.at,
                       first.ld, queue);
    sl_cuda_norm_merge(p.rows, cols, more, elsewhere.moments.at, elsewhere.moments.ld, again.at,
                       again.ld, queue);
    expect_close("norm merge", first.download(), want, 8.0 * lost(p), &size);
    expect_means("norm merge", first.download(), want, allowed);
    expect_same_bits("norm merge", first.download(), again.download());
    sl_kernel_norm_products(&n, &g, products.at(), products.ld);
    sl_cuda_norm_products(&on_device.norm, &dg, of_g.at, of_g.ld, queue);
    sl_cuda_norm_products(&elsewhere.norm, &ag, of_g_again.at, of_g_again.ld, queue);
    expect_close("norm products", of_g.download(), products, 8.0 * lost(p), &product_size);
    expect_same_bits("norm products", of_g.download(), of_g_again.download());
}

static void check_gradient(problem &p, layout how)
{
    const exact e = exact_of(p);
    matrix want = empty_matrix(2, p.cols, how, CANARY), size = empty_matrix(2, p.cols, TIGHT, NONE);
    for (int64_t j = 0; j < p.cols; j++) {
        double weight = 0.0, bias = 0.0;
        for (int64_t r = 0; r < p.rows; r++) {
            const double g = std::fabs((double)p.g.floats(r, j));
            weight += g * e.size[(size_t)(r * p.cols + j)];
            bias += g;
        }
        size(0, j) = (float)weight;
        size(1, j) = (float)bias;
    }
    const device_problem on_device(p, how), elsewhere(p, other(how));
    const device_matrix first(want), again(moved(want, other(how), CANARY));
    const struct sl_norm n = host_norm(p);
    const struct sl_rows g = p.g.rows(), dg = on_device.g.rows(), ag = elsewhere.g.rows();
    sl_kernel_norm_gradient(&n, &g, want.at(), want.ld);
    sl_cuda_norm_gradient(&on_device.norm, &dg, first.at, first.ld, queue);
    sl_cuda_norm_gradient(&elsewhere.norm, &ag, again.at, again.ld, queue);
    expect_close("norm gradient", first.download(), want,
                 8.0 * lost(p) + 2.0 * (double)p.rows * UNIT, &size);
    expect_same_bits("norm gradient", first.download(), again.download());
}

/* Y apart, and in the place of H or G. */
static void check_back(problem &p, layout how, bool has_d)
{
    const exact e = exact_of(p);
    const bool has_after = random_below(2);
    const double count = (double)p.rows + 3.0;
    matrix size = empty_matrix(p.rows, p.cols, TIGHT, NONE);
    for (int64_t r = 0; r < p.rows; r++) {
        double mean =
                   p.cut ? std::fabs((double)p.products(0, r)) / (double)(p.cols + ELSEWHERE) : 0.0,
               product =
                   p.cut ? std::fabs((double)p.products(1, r)) / (double)(p.cols + ELSEWHERE) : 0.0;
        for (int64_t j = 0; j < p.cols && !p.cut; j++) {
            const double wg = std::fabs((double)p.weight(0, j) * (double)p.g.floats(r, j));
            mean += wg / (double)p.cols;
            product += wg * e.size[(size_t)(r * p.cols + j)] / (double)p.cols;
        }
        for (int64_t j = 0; j < p.cols; j++) {
            const size_t i = (size_t)(r * p.cols + j);
            const double w = std::fabs((double)p.weight(0, j)),
                         g = std::fabs((double)p.g.floats(r, j));
            const double moved_by = p.columns ? w * (std::fabs((double)p.sums(1, j)) +
                                                     e.size[i] * std::fabs((double)p.sums(0, j)))
                                              : mean + e.size[i] * product;
            size(r, j) = (float)((w * g + moved_by) * e.inverse[i] *
                                 (has_after ? std::fabs((double)p.after(0, r)) : 1.0));
        }
    }
    const device_problem on_device(p, how), elsewhere(p, other(how));
    stored want(of_type(some_type(), empty_matrix(p.rows, p.cols, how, CANARY)));
    const device_matrix first(want.floats), again(moved(want.floats, other(how), CANARY));
    const struct sl_norm n = host_norm(p);
    matrix &of_d = p.cut ? p.products : p.sums;
    struct sl_norm_back back = {&n,      p.g.rows(), has_d ? of_d.at() : nullptr,
                                of_d.ld, count,      has_after ? p.after.at() : nullptr,
                                nullptr, 0,          want.rows()};
    sl_kernel_norm_back(&back);
    for (const device_problem *d : {&on_device, &elsewhere}) {
        back.norm = &d->norm;
        back.g = d->g.rows();
        const device_matrix &from = p.cut ? d->products : d->sums;
        back.d = has_d ? from.at : nullptr;
        back.ld = from.ld;
        back.after = has_after ? d->after.at : nullptr;
        back.y = d == &on_device ? first.rows() : again.rows();
        sl_cuda_norm_back(&back, queue);
    }
    expect_close("norm back", first.download(), moved(want.result(), how, CANARY), 8.0 * lost(p),
                 &size);
    expect_same_bits("norm back", first.download(), again.download());
    const bool as_g = p.g.floats.type == want.floats.type;
    if (!as_g && p.h.floats.type != want.floats.type)
        return;
    const device_matrix &place = as_g ? elsewhere.g : elsewhere.h;
    back.y = place.rows();
    sl_cuda_norm_back(&back, queue);
    expect_same_bits("norm back in place", first.download(), place.download());
    expect_padding_kept("norm back in place", place.download());
}

static void check_norm(int64_t rows, int64_t cols, layout how, form of, numbers what)
{
    problem p = make(rows, cols, how, of, what);
    check_forward(p, how);
    check_gradient(p, how);
    check_back(p, how, of == CUT_ROWS || (of == OF_COLUMNS && random_below(4)));
    if (of == CUT_ROWS)
        check_parts(p, how);
    else
        check_statistics(p, how);
}

static void test_norm()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (int option = 0; option < FORMS * NUMBERS; option++) {
            static one_in sample(13);
            if (!sample.leaves_out())
                check_norm(rows, cols, how, (form)(option % FORMS), (numbers)(option / FORMS));
        }
    });
}

/* More rows than chunks hold in one batch each, and columns than a block has threads. */
static void test_large_norm()
{
    random_state = 31;
    static const int64_t sizes[][2] = {{20000, 3}, {17000, 5}, {40, 1000}, {3, 9001}, {33, 65}};
    for (const auto &size : sizes)
        for (int of = 0; of < FORMS; of++) {
            static one_in large(2);
            if (size[0] > 10000 && large.leaves_out_in_software())
                continue;
            check_norm(size[0], size[1], (layout)(of % 2 + 1), (form)of, USUAL);
        }
}

const std::vector<test> norm_tests = {
    {"norm", test_norm},
    {"large norm", test_large_norm},
};
