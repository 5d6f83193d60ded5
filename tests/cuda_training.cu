/* Loss, accuracy and optimizers on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/clip.h"
#include "codelets/confusion.h"
#include "codelets/init.h"
#include "codelets/label_counts.h"
#include "codelets/label_scores.h"
#include "codelets/optimizer.h"
#include "codelets/ranking.h"
#include "codelets/softmax.h"
#include "codelets/value_errors.h"
#include "codelets/value_loss.h"
#include "codelets/weighted_softmax.h"
}

/* ---- Loss and accuracy ---- */

static std::vector<int32_t> random_targets(int64_t rows, int64_t classes)
{
    std::vector<int32_t> target((size_t)rows * 2);
    for (size_t r = 0; r < (size_t)rows; r++) {
        target[2 * r] = (int32_t)(random_below(classes + 1) - 1);
        target[2 * r + 1] = (int32_t)random_below(4);
    }
    return target;
}

enum { TRAIN = 1 };

static bool close(double got, double want, double bound)
{
    return got == want || (std::isnan(got) && std::isnan(want)) || std::fabs(got - want) <= bound;
}

/* The logits are at most `size` large. The error of a row's loss comes from its terms, their sum,
 * and adding the largest logit back. The error of a probability comes from one term and the sum. */
static void check_softmax(const matrix &z, const std::vector<int32_t> &target, layout how,
                          double size, bool has_factor = false)
{
    const float scale = 1.0f / 140.0f;
    const double row_bound = 2.0 * ((double)z.cols + 8.0 + 4.0 * size) * UNIT;
    matrix want = empty_matrix(z.rows, z.cols, how, CANARY);
    const array<int32_t> dt(target);
    const matrix factor = random_matrix(1, z.rows, TIGHT, NONE, REALS);
    const device_matrix dz(z), dg(want), df(factor);
    const array<double> training(std::vector<double>(SL_METRICS, -1.0)),
        all(std::vector<double>(SL_METRICS, -1.0)), again(std::vector<double>(SL_METRICS, -1.0));
    struct sl_softmax softmax = {
        z.rows, z.cols, scale, has_factor ? df.at : nullptr, dt.data, dz.at, dz.ld, dg.at, dg.ld};
    sl_cuda_softmax_loss(&softmax, training.data, queue);
    sl_cuda_accuracy(z.rows, z.cols, dt.data, dz.at, dz.ld, all.data, queue);
    const device_matrix in_place(moved(z, how, CANARY));
    softmax.z = softmax.g = in_place.at;
    softmax.ldz = softmax.ldg = in_place.ld;
    sl_cuda_softmax_loss(&softmax, again.data, queue);
    expect_same_bits("softmax in place", dg.download(), in_place.download());
    expect(memcmp(training.download().data(), again.download().data(),
                  sizeof(double) * SL_METRICS) == 0,
           "training loss in place");
    sl_cuda_accuracy(z.rows, z.cols, dt.data, dz.at, dz.ld, again.data, queue);

    double loss, correct, losses[4], corrects[4];
    softmax = {z.rows, z.cols,    scale,  has_factor ? factor.at() : nullptr, target.data(), z.at(),
               z.ld,   want.at(), want.ld};
    sl_kernel_softmax_loss(&softmax, &loss, &correct);
    sl_kernel_accuracy(z.rows, z.cols, target.data(), z.at(), z.ld, corrects, losses);

    const std::vector<double> got = training.download(), got_all = all.download();
    const double bound = row_bound * (double)z.rows;
    expect(close(got[SL_METRIC_LOSS + TRAIN], loss, bound), "training loss");
    expect(got[SL_METRIC_CORRECT + TRAIN] == correct, "training correct");
    for (size_t i = 0; i < SL_METRICS; i++)
        expect(i == SL_METRIC_LOSS + TRAIN || i == SL_METRIC_CORRECT + TRAIN || got[i] == 0.0,
               "other metrics");
    for (size_t s = 0; s < 4; s++) {
        expect(close(got_all[SL_METRIC_LOSS + s], losses[s], bound), "loss of a split");
        expect(got_all[SL_METRIC_CORRECT + s] == corrects[s], "correct of a split");
    }
    for (size_t i = 8; i < SL_METRICS; i++)
        expect(got_all[i] == 0.0, "metrics behind");
    expect(memcmp(got_all.data(), again.download().data(), sizeof(double) * SL_METRICS) == 0,
           "accuracy is not the same again");
    matrix scales = want;
    for (int64_t r = 0; r < z.rows; r++)
        for (int64_t j = 0; j < z.cols; j++)
            scales(r, j) =
                std::fabs(want(r, j)) + (j == target[2 * (size_t)r] ? 3.0f * scale : 1e-37f);
    expect_close("softmax gradient", dg.download(), want, 2.0 * ((double)z.cols + 16.0) * UNIT,
                 &scales);
}

static void test_softmax()
{
    each_shape([](int64_t rows, int64_t classes, layout how) {
        for (const kind k : {INTEGERS, REALS}) /* integer logits: many ties for the largest */
            for (const bool has_factor : {false, true}) {
                static one_in sample(13);
                if (sample.leaves_out())
                    continue;
                check_softmax(random_matrix(rows, classes, how, NONE, k),
                              random_targets(rows, classes), other(how), 4.0, has_factor);
            }
    });
    /* More rows than one pass of the grid takes. */
    static const int64_t sizes[][2] = {{8301, 41}, {33001, 7}};
    for (const auto &size : sizes) {
        static one_in sample(2);
        if (!sample.leaves_out_in_software())
            check_softmax(random_matrix(size[0], size[1], TIGHT, NONE, REALS),
                          random_targets(size[0], size[1]), TIGHT, 2.0);
    }
}

static void test_softmax_large_logits()
{
    random_state = 9;
    for (int trial = 0; trial < 20; trial++) {
        matrix z = empty_matrix(40, 41, LOOSE, NONE);
        std::vector<int32_t> target = random_targets(40, 41);
        for (int64_t r = 0; r < 40; r++)
            for (int64_t j = 0; j < 41; j++)
                z(r, j) = r < 2 || random_below(3) == 0
                              ? (r == 0 || (r > 1 && random_bits() & 1) ? 1e4f : -1e4f)
                              : random_value(REALS);
        check_softmax(z, target, PADDED, 1e4);
    }
}

/* NaN at the start, behind the largest, before it and alone; all logits -inf; +inf. */
static void test_softmax_not_finite()
{
    const float bad[] = {NONE, INFINITY, -INFINITY};
    for (const int64_t classes : {1, 3, 9, 41})
        for (const float value : bad) {
            matrix z = random_matrix(4 * classes + 1, classes, TIGHT, NONE, REALS);
            std::vector<int32_t> target((size_t)z.rows * 2);
            for (int64_t r = 0; r < z.rows; r++) {
                target[2 * (size_t)r] = (int32_t)(r % 4 == 3 ? -1 : r % classes);
                target[2 * (size_t)r + 1] = (int32_t)(r % 4);
                if (r < 4 * classes)
                    z(r, r / 4) = value;
            }
            for (int64_t j = 0; j < classes; j++)
                z(z.rows - 1, j) = value;
            check_softmax(z, target, TIGHT, 4.0);
        }
}

static void test_first_largest_wins()
{
    static const float logits[][4] = {
        {1, 3, 3, 3}, {5, 5, 5, 5}, {-2, -3, -2, -9}, {0, 1, 2, 2}, {-1, -1, -1, 0}};
    static const int32_t first[] = {1, 0, 0, 2, 3};
    for (size_t i = 0; i < 5; i++)
        for (int32_t label = 0; label < 4; label++) {
            matrix z = empty_matrix(1, 4, TIGHT, NONE);
            std::copy(logits[i], logits[i] + 4, z.at());
            const device_matrix dz(z);
            const array<int32_t> dt(std::vector<int32_t>{label, TRAIN});
            const array<double> metrics(std::vector<double>(SL_METRICS, -1.0));
            sl_cuda_accuracy(1, 4, dt.data, dz.at, dz.ld, metrics.data, queue);
            expect(metrics.download()[SL_METRIC_CORRECT + TRAIN] == (label == first[i]),
                   "first largest");
        }
}

/* ---- Optimizers ---- */

/* How far step number t may be from the exact one in float: a few roundings of each term, and of
 * the corrections where a parameter has a t of its own. */
static void step_bounds(const struct sl_optimizer_step &s, double t, double g, double w, double m,
                        double v, double bound[3])
{
    const double rate = s.rate, decay = s.decay, beta1 = s.beta1, beta2 = s.beta2,
                 momentum = s.momentum;
    if (s.method == SL_SGD) {
        bound[1] = 4.0 * UNIT * (std::fabs(momentum * m) + std::fabs(g) + std::fabs(decay * w));
        bound[0] = 4.0 * UNIT * (std::fabs(w) + rate * std::fabs(momentum * m + g + decay * w)) +
                   rate * bound[1];
        bound[2] = 0.0;
        return;
    }
    const double g_bound =
        s.method == SL_ADAM ? 4.0 * UNIT * (std::fabs(g) + 3.0 * std::fabs(decay * w)) : 0.0;
    if (s.method == SL_ADAM)
        g += decay * w;
    const double new_m = beta1 * m + (1.0 - beta1) * g, new_v = beta2 * v + (1.0 - beta2) * g * g;
    const double correction1 = 1.0 - std::pow(beta1, t), correction2 = 1.0 - std::pow(beta2, t);
    const double root = std::sqrt(new_v / correction2) + (double)s.epsilon;
    const double move = rate * new_m / correction1 / root;
    bound[1] = 4.0 * UNIT * (std::fabs(beta1 * m) + std::fabs((1.0 - beta1) * g)) +
               (1.0 - beta1) * g_bound;
    bound[2] = 6.0 * UNIT * new_v + 2.0 * (1.0 - beta2) * std::fabs(g) * g_bound;
    bound[0] = 4.0 * UNIT * std::fabs(w) +
               std::fabs(move) *
                   ((s.local ? 17.0 : 12.0) * UNIT + (new_v > 0.0 ? bound[2] / new_v : 0.0)) +
               rate * bound[1] / correction1 / root;
}

/* Each step is judged from the CPU's state before it. Counted: each parameter has had another
 * number of steps before the first one. */
static void check_optimizer(struct sl_optimizer_step step, bool counted, int64_t rows, int64_t cols,
                            layout how, int steps)
{
    matrix w = random_matrix(rows, cols, how, CANARY, REALS),
           m = empty_matrix(rows, cols, other(how), CANARY), v = m,
           counts = empty_matrix(rows, cols, (layout)random_below(LAYOUTS), NONE);
    sl_kernel_fill(rows, cols, 0.0f, m.at(), m.ld);
    sl_kernel_fill(rows, cols, 0.0f, v.at(), v.ld);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            counts(r, j) = (float)random_below(random_below(2) ? 10 : 100000);
    const bool two = sl_optimizer_states(step.method) > 1;
    const int64_t averages = rows < 5 ? 0 : 2 * random_below(2);
    step.average_rate = 0.1f;
    for (int t = 1; t <= steps; t++) {
        step.correction1 = counted ? NONE : (float)(1.0 - std::pow((double)step.beta1, t));
        step.correction2 = counted ? NONE : (float)(1.0 - std::pow((double)step.beta2, t));
        step.local = counted ? t : 0;
        matrix g = random_matrix(rows, cols, how, NONE, REALS), w_bound = w, m_bound = m,
               v_bound = v;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++) {
                g(r, j) =
                    random_below(5) ? 0.01f * g(r, j) : 0.0f; /* features that never occur: 0 */
                double bound[3];
                step_bounds(step, t + (counted ? (double)counts(r, j) : 0.0), g(r, j), w(r, j),
                            m(r, j), v(r, j), bound);
                w_bound(r, j) = r < rows - averages ? (float)bound[0]
                                                    : (float)(4.0 * UNIT) *
                                                          (std::fabs(w(r, j)) + std::fabs(g(r, j)));
                m_bound(r, j) = (float)bound[1];
                v_bound(r, j) = (float)bound[2];
            }
        const device_matrix dc(counts), dg(g), dw(w), dm(m), dv(v);
        const array<double> end(
            std::vector<double>{t == steps ? steps / 2.0 : 0.0}), /* the next is none */
            metrics(std::vector<double>(SL_METRICS, 0.0));
        for (int epoch = t; epoch <= (t == steps ? t + 1 : t); epoch++) {
            const sl_cuda_parameters parameters = {
                rows,     cols,
                averages, counted ? dc.at : nullptr,
                dg.at,    dw.at,
                dm.at,    two ? dv.at : nullptr,
                dc.ld,    dg.ld,
                dw.ld,    dm.ld,
                dv.ld,    {end.data, metrics.data, epoch / 2.0, 2}};
            sl_cuda_optimizer(&step, &parameters, queue);
        }
        expect(metrics.download() == std::vector<double>(SL_METRICS, 0.0), "all is finite");
        for (int64_t r = 0; r < rows - averages; r++)
            sl_kernel_optimizer(&step, cols, counted ? counts.at() + r * counts.ld : nullptr,
                                g.at() + r * g.ld, w.at() + r * w.ld, m.at() + r * m.ld,
                                v.at() + r * v.ld);
        for (int64_t r = rows - averages; r < rows; r++)
            sl_kernel_average(step.average_rate, cols, g.at() + r * g.ld, w.at() + r * w.ld);
        expect_close("optimizer, w", dw.download(), w, 2.01, &w_bound);
        expect_close("optimizer, m", dm.download(), m, 2.01, &m_bound);
        expect_close("optimizer, v", dv.download(), v, 2.01, &v_bound);
    }
}

static void test_optimizer()
{
    struct sl_optimizer_step adam = {}, decayed, decoupled, sgd = {}, plain = {};
    adam.method = SL_ADAM;
    adam.rate = 0.01f;
    adam.beta1 = 0.9f;
    adam.beta2 = 0.999f;
    adam.epsilon = 1e-8f;
    decayed = decoupled = adam;
    decayed.decay = 5e-4f;
    decoupled.method = SL_ADAMW;
    decoupled.decay = 0.1f;
    sgd.method = plain.method = SL_SGD;
    sgd.rate = plain.rate = 0.1f;
    sgd.decay = 5e-3f;
    sgd.momentum = 0.9f;
    random_state = 4;
    for (const struct sl_optimizer_step &step : {adam, decayed, decoupled, sgd, plain})
        for (const int64_t rows : {0, 1, 5})
            for (const int64_t cols : {1, 7, 16, 33, 64, 602})
                for (int how = 0; how < 2 * LAYOUTS; how++) {
                    static one_in sample(7);
                    if (!sample.leaves_out())
                        check_optimizer(step, how % 2, rows, cols, (layout)(how / 2), 12);
                }
    check_optimizer(adam, false, 66000, 1, LOOSE, 1); /* more rows than a grid has blocks */
}

/* Layer 2, of which one number of the gradient, or of the state, is not finite; or a number of
 * another layer or the loss is not, and then the weights stay. Running averages have no state. */
static void test_not_finite()
{
    struct sl_optimizer_step step = {};
    step.method = SL_ADAM;
    step.rate = 0.01f;
    step.beta1 = 0.9f;
    step.beta2 = 0.999f;
    step.epsilon = 1e-8f;
    step.correction1 = step.correction2 = 1.0f;
    const int64_t rows = 70, cols = 33;
    for (const float value : {NAN, INFINITY, -INFINITY})
        for (const int option : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}) {
            const int what = option % 7;
            const int64_t averages = option < 7 ? 0 : 4;
            matrix g = random_matrix(rows, cols, LOOSE, NONE, REALS), w = g, m = g, v = g;
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < cols; j++)
                    v(r, j) = std::fabs(v(r, j));
            std::vector<double> want(SL_METRICS, 0.0);
            if (what < 4)
                (what == 0 ? g : what == 1 ? w : what == 2 ? m : v)(rows - 3, 5) = value;
            else
                want[what == 4   ? SL_METRIC_LOSS + TRAIN
                     : what == 5 ? SL_METRIC_BAD_GRADIENT
                                 : SL_METRIC_BAD_UPDATE] = what == 4 ? (double)value : 3.0;
            const array<double> metrics(want);
            const device_matrix dg(g), dw(w), dm(m), dv(v);
            const sl_cuda_parameters parameters = {
                rows,  cols, averages, nullptr, dg.at, dw.at, dm.at,
                dv.at, 0,    dg.ld,    dw.ld,   dm.ld, dv.ld, {nullptr, metrics.data, 1, 2}};
            sl_cuda_optimizer(&step, &parameters, queue);
            if (what == 0)
                want[SL_METRIC_BAD_GRADIENT] = 2.0;
            if (what < (averages ? 2 : 4))
                want[SL_METRIC_BAD_UPDATE] = 2.0;
            else if (what >= 4)
                expect_same_bits("weights of an epoch that broke down", dw.download(), w);
            expect(memcmp(metrics.download().data(), want.data(), sizeof(double) * SL_METRICS) == 0,
                   "what is not finite");
        }
}

static void check_clip(int64_t rows, int64_t cols, layout how)
{
    const matrix x = random_matrix(rows, cols, how, NONE, REALS);
    const array<double> sum(std::vector<double>{0.5}), again(std::vector<double>{NONE});
    const double own = sl_kernel_square_sum(rows, cols, x.at(), x.ld);
    const device_matrix dx(x);
    sl_cuda_square_sum(rows, cols, dx.at, dx.ld, true, sum.data, queue);
    sl_cuda_square_sum(rows, cols, dx.at, dx.ld, false, again.data, queue);
    expect(close(sum.download()[0], own + 0.5, 1e-11 * (own + 0.5)), "squares, added");
    expect(close(again.download()[0], own, 1e-11 * own), "squares");
    for (const double share : {1.0, 0.3}) {
        const double limit = share * std::sqrt(own);
        const array<double> squares(std::vector<double>{own});
        matrix want = x;
        const device_matrix clipped(x);
        sl_cuda_clip(rows, cols, limit, squares.data, clipped.at, clipped.ld, queue);
        sl_kernel_clip(rows, cols, limit, own, want.at(), want.ld);
        expect_same_bits("clip", clipped.download(), want);
    }
}

static void test_clip()
{
    random_state = 11;
    for (const int64_t rows : {0, 1, 5, 300})
        for (const int64_t cols : {1, 7, 16, 33, 602})
            for (int how = 0; how < LAYOUTS; how++)
                check_clip(rows, cols, (layout)how);
    check_clip(70000, 3, LOOSE); /* more than one pass of the grid */
    check_clip(2100, 2048, TIGHT);
}

/* ---- Losses on values, weighted softmax, metrics of labels ---- */

static std::vector<int32_t> random_values(int64_t rows, int64_t columns)
{
    const size_t width = (size_t)columns + SL_TARGET_FIRST;
    std::vector<int32_t> target((size_t)rows * width);
    for (size_t r = 0; r < (size_t)rows; r++) {
        target[width * r] = random_below(8) ? 0 : -1;
        target[width * r + 1] = (int32_t)random_below(4);
        for (size_t j = SL_TARGET_FIRST; j < width; j++) {
            const int64_t kind = random_below(8);
            const float value = kind == 0 ? NONE : (float)(kind % 2);
            memcpy(&target[width * r + j], &value, sizeof value);
        }
    }
    return target;
}

static std::vector<float> random_positive(int64_t count)
{
    std::vector<float> all((size_t)count);
    for (float &x : all)
        x = std::fabs(random_value(REALS)) + 0.1f;
    return all;
}

/* Losses of rows with logits of at most `size`, and correct counts, of all splits. */
static void expect_metrics(const char *what, const std::vector<double> &got, const double *loss,
                           const double *correct, double bound)
{
    for (size_t s = 0; s < 4; s++) {
        expect(close(got[SL_METRIC_LOSS + s], loss[s], bound), what);
        expect(got[SL_METRIC_CORRECT + s] == correct[s], what);
    }
    for (size_t i = 8; i < SL_METRICS; i++)
        expect(got[i] == 0.0, what);
}

static void check_values(const matrix &z, layout how, double size, sl_value_loss_kind kind,
                         bool weighted)
{
    const bool sigmoid = kind == SL_VALUE_SIGMOID;
    const std::vector<int32_t> target = random_values(z.rows, z.cols);
    const std::vector<float> weights = random_positive(2 * z.cols);
    const matrix factor = random_matrix(1, z.rows, TIGHT, NONE, REALS);
    matrix want = empty_matrix(z.rows, z.cols, how, CANARY);
    const array<int32_t> dt(target);
    const array<float> dw(weights);
    const device_matrix dz(z), dg(want), df(factor);
    const array<double> training(std::vector<double>(SL_METRICS, -1.0)),
        all(std::vector<double>(SL_METRICS, -1.0)), again(std::vector<double>(SL_METRICS, -1.0));
    struct sl_value_loss v = {};
    v.kind = kind;
    v.rows = z.rows;
    v.cols = z.cols;
    v.scale = 1.0f / 140.0f;
    v.smoothing = sigmoid && weighted ? 0.1f : 0.0f;
    v.weights = weighted ? dw.data : nullptr;
    v.factor = df.at;
    v.target = dt.data;
    v.z = dz.at;
    v.ldz = dz.ld;
    v.g = dg.at;
    v.ldg = dg.ld;
    sl_cuda_value_loss(&v, training.data, queue);
    sl_cuda_value_count(&v, all.data, queue);
    const device_matrix in_place(moved(z, how, CANARY));
    v.z = v.g = in_place.at;
    v.ldz = v.ldg = in_place.ld;
    sl_cuda_value_loss(&v, again.data, queue);
    expect_same_bits("values in place", dg.download(), in_place.download());
    expect(memcmp(training.download().data(), again.download().data(),
                  sizeof(double) * SL_METRICS) == 0,
           "training loss in place");

    double loss[4] = {}, correct[4] = {};
    v.weights = weighted ? weights.data() : nullptr;
    v.factor = factor.at();
    v.target = target.data();
    v.z = z.at();
    v.ldz = z.ld;
    v.g = want.at();
    v.ldg = want.ld;
    const double bound = 64.0 * (1.0 + size * size) * UNIT * (double)(z.rows + 1);
    sl_kernel_value_loss(&v, &loss[TRAIN], &correct[TRAIN]);
    expect_metrics("value loss", training.download(), loss, correct, bound);
    sl_kernel_value_count(&v, correct, loss);
    expect_metrics("value count", all.download(), loss, correct, bound);
    matrix scales = want;
    for (int64_t r = 0; r < z.rows; r++)
        for (int64_t j = 0; j < z.cols; j++)
            scales(r, j) = std::fabs(want(r, j)) + 3.0f * (1.0f + std::fabs(z(r, j))) *
                                                       std::fabs(factor(0, r)) * v.scale /
                                                       (float)z.cols;
    expect_close("gradient of values", dg.download(), want, 32.0 * UNIT, &scales);
}

static void test_values()
{
    random_state = 12;
    each_shape([](int64_t rows, int64_t cols, layout how) {
        for (const kind k : {INTEGERS, REALS}) {
            static one_in sample(13);
            if (sample.leaves_out())
                continue;
            const matrix z = random_matrix(rows, cols, how, NONE, k);
            check_values(z, other(how), 4.0, SL_VALUE_SIGMOID, false);
            check_values(z, other(how), 4.0, SL_VALUE_SIGMOID, true);
            check_values(z, other(how), 4.0, SL_VALUE_SQUARE, false);
        }
    });
    check_values(random_matrix(33001, 7, TIGHT, NONE, REALS), TIGHT, 2.0, SL_VALUE_SIGMOID, true);
    matrix z = empty_matrix(40, 41, LOOSE, NONE);
    for (int64_t r = 0; r < z.rows; r++)
        for (int64_t j = 0; j < z.cols; j++)
            z(r, j) = random_below(3) ? (random_below(2) ? 500.0f : -500.0f) : random_value(REALS);
    check_values(z, PADDED, 500.0, SL_VALUE_SIGMOID, false);
}

static void check_weighted(const matrix &z, layout how, double size, bool weighted)
{
    const std::vector<int32_t> target = random_targets(z.rows, z.cols);
    const std::vector<float> weights = random_positive(z.cols);
    matrix want = empty_matrix(z.rows, z.cols, how, CANARY);
    const array<int32_t> dt(target);
    const array<float> dw(weights);
    const device_matrix dz(z), dg(want), in_place(moved(z, how, CANARY));
    const array<double> metrics(std::vector<double>(SL_METRICS, -1.0));
    struct sl_weighted_softmax w = {};
    w.softmax = {z.rows, z.cols, 1.0f / 140.0f, nullptr, dt.data, dz.at, dz.ld, dg.at, dg.ld};
    w.smoothing = 0.1f;
    w.weights = weighted ? dw.data : nullptr;
    sl_cuda_weighted_softmax(&w, metrics.data, queue);
    w.softmax.z = w.softmax.g = in_place.at;
    w.softmax.ldz = w.softmax.ldg = in_place.ld;
    sl_cuda_weighted_softmax(&w, metrics.data, queue);
    expect_same_bits("weighted softmax in place", dg.download(), in_place.download());
    double loss[4] = {}, correct[4] = {};
    w.softmax = {z.rows, z.cols, 1.0f / 140.0f, nullptr, target.data(),
                 z.at(), z.ld,   want.at(),     want.ld};
    w.weights = weighted ? weights.data() : nullptr;
    sl_kernel_weighted_softmax(&w, &loss[TRAIN], &correct[TRAIN]);
    const double row_bound = 4.0 * ((double)z.cols + 8.0 + 4.0 * size) * UNIT;
    expect_metrics("weighted softmax", metrics.download(), loss, correct,
                   row_bound * (double)(z.rows + 1));
    matrix scales = want;
    for (int64_t r = 0; r < z.rows; r++)
        for (int64_t j = 0; j < z.cols; j++)
            scales(r, j) = std::fabs(want(r, j)) + 1.0f / 140.0f;
    expect_close("gradient of weighted softmax", dg.download(), want, 8.0 * UNIT, &scales);
}

static void test_weighted_softmax()
{
    random_state = 13;
    each_shape([](int64_t rows, int64_t cols, layout how) {
        static one_in sample(13);
        if (sample.leaves_out())
            return;
        const matrix z = random_matrix(rows, cols, how, NONE, INTEGERS);
        check_weighted(z, other(how), 4.0, false);
        check_weighted(z, other(how), 4.0, true);
    });
    check_weighted(random_matrix(33001, 7, TIGHT, NONE, REALS), TIGHT, 2.0, true);
}

/* Added to what is there, as on the CPU. */
static void check_confusion(const matrix &z)
{
    const std::vector<int32_t> target = random_targets(z.rows, z.cols);
    const array<int32_t> dt(target);
    const device_matrix dz(z);
    std::vector<double> want((size_t)(z.cols * SL_SPLITS * z.cols), 3.0);
    const array<double> counts(want);
    struct sl_confusion c = {z.rows, z.cols, dt.data, dz.at, dz.ld};
    sl_cuda_confusion(&c, counts.data, queue);
    c.target = target.data();
    c.z = z.at();
    c.ldz = z.ld;
    sl_kernel_confusion(&c, want.data());
    expect(counts.download() == want, "confusion");
}

/* Counts are the CPU's. So are scores, but for the last bits of logarithms. */
static void check_labels(const matrix &z, sl_target_form form)
{
    const std::vector<int32_t> target =
        form == SL_TARGET_VALUES ? random_values(z.rows, z.cols) : random_targets(z.rows, z.cols);
    const array<int32_t> dt(target);
    const device_matrix dz(z);
    std::vector<double> want((size_t)(z.cols * SL_TABLE_COUNTS));
    const array<double> counts(std::vector<double>(want.size(), -1.0));
    for (const sl_label_decision decision : {SL_DECIDE_HALF, SL_DECIDE_TOP}) {
        struct sl_label_counts c = {form, decision, z.rows, z.cols, dt.data, dz.at, dz.ld};
        sl_cuda_label_counts(&c, counts.data, queue);
        c.target = target.data();
        c.z = z.at();
        c.ldz = z.ld;
        sl_kernel_label_counts(&c, want.data());
        expect(counts.download() == want, "label counts");
    }
    const int64_t ranked = sl_ranked_labels(form, z.cols), first = ranked / 3,
                  count = ranked - first;
    std::vector<uint64_t> scores((size_t)(z.rows * count));
    const array<uint64_t> ds(scores);
    struct sl_label_scores s = {form, z.rows, z.cols, first, count, dt.data, dz.at, dz.ld};
    sl_cuda_label_scores(&s, ds.data, queue);
    s.target = target.data();
    s.z = z.at();
    s.ldz = z.ld;
    sl_kernel_label_scores(&s, scores.data());
    const std::vector<uint64_t> got = ds.download();
    bool same = true;
    for (size_t k = 0; k < got.size(); k++) {
        const int64_t apart = (int64_t)(got[k] >> 32) - (int64_t)(scores[k] >> 32);
        same = same && (uint32_t)got[k] == (uint32_t)scores[k] && apart >= -1 && apart <= 1;
    }
    expect(same, "label scores");
}

/* Sums are the CPU's but for the order of additions; counts are the CPU's. The second table joins
 * the first one to itself. */
static void check_errors(const matrix &z)
{
    std::vector<int32_t> target = random_values(z.rows, z.cols);
    for (size_t i = 0; i < target.size(); i++) { /* values far from 0 */
        float value;
        if (i % ((size_t)z.cols + SL_TARGET_FIRST) < SL_TARGET_FIRST)
            continue;
        memcpy(&value, &target[i], sizeof value);
        value = 1e6f + (float)random_below(9) * value;
        memcpy(&target[i], &value, sizeof value);
    }
    const array<int32_t> dt(target);
    const device_matrix dz(z);
    std::vector<double> want((size_t)(z.cols * SL_TABLE_ERRORS));
    const array<double> table(std::vector<double>(want.size(), -1.0));
    struct sl_value_errors e = {z.rows, z.cols, dt.data, dz.at, dz.ld};
    sl_cuda_value_errors(&e, table.data, queue);
    e.target = target.data();
    e.z = z.at();
    e.ldz = z.ld;
    sl_kernel_value_errors(&e, want.data());
    for (const char *what : {"value errors", "join errors"}) {
        const std::vector<double> got = table.download();
        bool same = true;
        for (size_t i = 0; i < want.size(); i++)
            same = same && (i % SL_VALUE_ERRORS == SL_KNOWN_VALUES
                                ? got[i] == want[i]
                                : close(got[i], want[i], 1e-12 * (1.0 + std::fabs(want[i]))));
        expect(same, what);
        const array<double> other(want);
        sl_cuda_join_errors(z.cols, other.data, table.data, queue);
        const std::vector<double> from = want;
        sl_kernel_join_errors(z.cols, from.data(), want.data());
    }
}

static void test_labels()
{
    random_state = 14;
    each_shape([](int64_t rows, int64_t labels, layout how) {
        for (const kind k : {INTEGERS, REALS}) {
            static one_in sample(19), large(5);
            if (sample.leaves_out() || (rows * labels > 3000 && large.leaves_out_in_software()))
                continue;
            const matrix z = random_matrix(rows, labels, how, NONE, k);
            check_labels(z, SL_TARGET_CLASS);
            check_labels(z, SL_TARGET_VALUES);
            check_confusion(z);
            check_errors(z);
        }
    });
    check_errors(random_matrix(20000, 2, TIGHT, NONE, REALS));
    check_labels(random_matrix(20000, 2, TIGHT, NONE, REALS), SL_TARGET_CLASS);
    check_labels(random_matrix(3, 300, LOOSE, NONE, INTEGERS), SL_TARGET_VALUES);
}

/* There are `scores` different scores, up to the largest one. */
static void check_ranking(int64_t count, int64_t labels, uint64_t scores)
{
    const int64_t label = labels / 2;
    std::vector<uint64_t> all((size_t)(count * labels));
    for (uint64_t &entry : all) {
        const uint64_t what = (uint64_t)random_below(2 * SL_SPLITS + 1);
        const uint64_t score = UINT32_MAX - random_bits() % scores * (UINT32_MAX / scores);
        entry = score << 32 | (what < 2 * SL_SPLITS ? what : (uint64_t)SL_NO_SCORE);
    }
    std::vector<uint64_t> entries, scratch((size_t)count);
    for (int64_t r = 0; r < count; r++)
        entries.push_back(all[(size_t)(r * labels + label)]);
    std::vector<double> want(SL_TABLE_RANKINGS, -1.0);
    const array<uint64_t> dall(all), dentries(scratch), dscratch(scratch);
    const array<double> first(want), again(want);
    for (const array<double> *result : {&first, &again}) {
        sl_cuda_ranking_gather(count, labels, dall.data + label, dentries.data, queue);
        sl_cuda_ranking(count, dentries.data, dscratch.data, result->data, queue);
    }
    sl_kernel_ranking(count, entries.data(), scratch.data(), want.data());
    const std::vector<double> got = first.download();
    bool same = true;
    for (size_t i = 0; i < want.size(); i++)
        same = same && close(got[i], want[i], 1e-12);
    expect(same, "ranking");
    expect(memcmp(got.data(), again.download().data(), got.size() * sizeof(double)) == 0,
           "ranking again");
}

static void test_ranking()
{
    for (const int64_t count : {0, 1, 2, 31, 256, 257, 1000, 4096, 5000})
        for (const uint64_t scores : {1ull, 2ull, 40ull, 65536ull, 4294967295ull})
            check_ranking(count, 1 + random_below(3), scores);
    static one_in large(2);
    for (const int64_t count : {20000, 300000})
        if (!large.leaves_out_in_software())
            check_ranking(count, 1, 4294967295ull);
}

const std::vector<test> training_tests = {
    {"ranking", test_ranking},
    {"values", test_values},
    {"weighted softmax", test_weighted_softmax},
    {"metrics of labels", test_labels},
    {"softmax", test_softmax},
    {"softmax, large logits", test_softmax_large_logits},
    {"softmax, not finite", test_softmax_not_finite},
    {"first largest", test_first_largest_wins},
    {"optimizer", test_optimizer},
    {"optimizer, not finite", test_not_finite},
    {"clip", test_clip},
};
