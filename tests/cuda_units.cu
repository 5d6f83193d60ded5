/* Blocks of parameters of sub-models, ensembles and the best epoch on a GPU. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/mean_probabilities.h"
#include "codelets/metrics.h"
#include "codelets/record.h"
#include "codelets/units.h"
#include "core/split.h"
}

static struct sl_parameters on_host(matrix &m)
{
    return {m.at(), m.rows, m.cols, m.ld};
}

static struct sl_parameters on_device(const device_matrix &m)
{
    return {m.at, m.host.rows, m.host.cols, m.ld};
}

/* ---- Blocks ---- */

static std::vector<uint8_t> random_parts(int64_t units, int parts)
{
    std::vector<uint8_t> part((size_t)units);
    for (uint8_t &p : part)
        p = (uint8_t)random_below(parts);
    return part;
}

/* A block of the whole from a row `first` of the layer on, on the host, and on the device. */
struct some_block {
    std::vector<uint8_t> in, out;
    array<uint8_t> device_in, device_out;
    struct sl_unit_block host, device;
    int64_t rows, cols, shared;

    some_block(int64_t units, int64_t columns, int64_t vectors, int64_t first, bool in_split,
               bool out_split, bool all_rows, int shift)
        : in(random_parts(units, 3)), out(random_parts(columns, 3)), device_in(in), device_out(out)
    {
        host = {2,
                {units, in_split ? in.data() : nullptr},
                {columns, out_split ? out.data() : nullptr},
                1,
                shift,
                all_rows,
                first};
        device = host;
        device.in.part = in_split ? device_in.data : nullptr;
        device.out.part = out_split ? device_out.data : nullptr;
        rows = 2 * units + vectors - first;
        cols = out_split ? std::count(out.begin(), out.end(), 1) : columns;
        shared = sl_unit_block_shared(&host, rows);
    }
    int64_t part_rows() const
    {
        return sl_unit_block_rows(&host, rows);
    }
};

static const double ENDED[] = {0.0, 5.0, 4.0};

/* Tasks in epoch 5 do nothing if the run ended with epoch 4. */
template <class Run> static void each_end(Run run)
{
    for (const double &ended : ENDED) {
        const array<double> end(std::vector<double>{ended});
        run(sl_units_end{end.data, 5}, ended == 4.0);
    }
    run(sl_units_end{nullptr, 5}, false);
}

static void check_moves(const some_block &b, layout how)
{
    matrix whole = random_matrix(b.rows, b.host.out.width, how, CANARY, REALS),
           kept = random_matrix(b.shared, b.host.out.width, other(how), CANARY, REALS),
           part = random_matrix(b.part_rows(), b.cols, how, CANARY, REALS);
    const device_matrix dwhole(whole), dkept(kept);
    const struct sl_parameters from = on_device(dwhole), shared = on_device(dkept);
    each_end([&](const sl_units_end &when, bool ended) {
        const device_matrix dpart(part);
        const struct sl_parameters to = on_device(dpart);
        matrix want = part;
        const struct sl_parameters hwhole = on_host(whole), hkept = on_host(kept),
                                   hwant = on_host(want);
        sl_cuda_take(&when, &b.device, &from, &shared, &to, queue);
        if (!ended)
            sl_kernel_take(&b.host, &hwhole, &hkept, &hwant);
        expect_equal("take", dpart.download(), want);
    });
    const sl_units_end always = {};
    for (const bool first : {false, true}) {
        const device_matrix dpart(part);
        const struct sl_parameters to = on_device(dpart);
        matrix want = part;
        const struct sl_parameters hwhole = on_host(whole), hwant = on_host(want);
        sl_cuda_take_block(&always, &b.device, first, &from, &to, queue);
        sl_kernel_take_block(&b.host, first, &hwhole, &hwant);
        expect_equal("take block", dpart.download(), want);
    }
    each_end([&](const sl_units_end &when, bool ended) {
        const device_matrix back(whole), kept_back(kept), dpart(part);
        const struct sl_parameters to = on_device(back), rest = on_device(kept_back),
                                   source = on_device(dpart);
        matrix want = whole, want_kept = kept;
        const struct sl_parameters hwant = on_host(want), hkept = on_host(want_kept),
                                   hpart = on_host(part);
        sl_cuda_put(&when, &b.device, &source, &rest, &to, queue);
        if (!ended)
            sl_kernel_put(&b.host, &hpart, &hkept, &hwant);
        expect_equal("put", back.download(), want);
        expect_equal("put, what is kept", kept_back.download(), want_kept);
    });
    const device_matrix cleared(part);
    const struct sl_parameters to = on_device(cleared), hpart = on_host(part);
    if (b.host.all_rows || !b.host.in.part) {
        sl_cuda_clear_others(&b.device, &to, queue);
        sl_kernel_clear_others(&b.host, &hpart);
        expect_equal("clear others", cleared.download(), part);
    }
}

static void test_blocks()
{
    static const int64_t units[] = {1, 3, 40, 1500}, columns[] = {1, 20, 1030};
    for (const int64_t in : units)
        for (const int64_t out : columns)
            for (int option = 0; option < 16; option++) {
                static one_in sample(3), large(7);
                if (sample.leaves_out() || (in * out > 20000 && large.leaves_out_in_software()))
                    continue;
                const bool in_split = option & 1, all_rows = in_split && option & 4;
                const int64_t first = option & 8 ? random_below(2 * in) : 0;
                check_moves(some_block(in, out, random_below(4), first, in_split, option & 2,
                                       all_rows, (int)random_below(4)),
                            (layout)random_below(LAYOUTS));
            }
}

static void test_shared()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        static one_in sample(3);
        if (sample.leaves_out())
            return;
        each_end([&](const sl_units_end &when, bool ended) {
            matrix kept = random_matrix(rows, cols, how, CANARY, REALS),
                   whole = random_matrix(rows + 2, cols, other(how), CANARY, REALS);
            const device_matrix dkept(kept), dwhole(whole), dcopy(whole), dzero(whole);
            const struct sl_parameters x = on_device(dkept), y = on_device(dwhole),
                                       copy = {dcopy.at, rows, cols, dcopy.ld},
                                       zero = {dzero.at, rows, cols, dzero.ld}, nothing = {};
            matrix want = whole, copied = whole, zeroed = whole;
            const struct sl_parameters hkept = on_host(kept), hwant = on_host(want);
            const int before = (int)random_below(3);
            sl_cuda_merge(&when, before, &x, &y, queue);
            sl_cuda_copy_parameters(&when, &x, &copy, queue);
            sl_cuda_copy_parameters(&when, &nothing, &zero, queue);
            if (!ended)
                sl_kernel_merge(before, &hkept, &hwant);
            for (int64_t r = 0; !ended && r < rows; r++)
                for (int64_t j = 0; j < cols; j++) {
                    copied(r, j) = kept(r, j);
                    zeroed(r, j) = 0.0f;
                }
            const matrix size = absolute(want);
            expect_close("merge", dwhole.download(), want, 8.0 * UNIT, &size);
            expect_equal("copy parameters", dcopy.download(), copied);
            expect_equal("zero parameters", dzero.download(), zeroed);
        });
    });
}

/* Rounds in two pieces, as a task hands them. */
static void check_counts(const some_block &b, int64_t rounds, layout how)
{
    const int64_t stride = rounds + 3, first = rounds / 3;
    const std::vector<uint8_t> in = random_parts(b.host.in.width * stride, 3),
                               out = random_parts(b.host.out.width * stride, 3);
    const array<uint8_t> din(in), dout(out);
    matrix want = empty_matrix(b.part_rows(), b.cols, how, CANARY);
    const device_matrix got(want);
    const struct sl_parameters to = on_device(got), hwant = on_host(want);
    const bool ins = b.host.in.part, outs = b.host.out.part;
    const struct sl_rounds_past all = {rounds, 7, stride, ins ? in.data() : nullptr,
                                       outs ? out.data() : nullptr},
                                before = {first, 7, stride, ins ? din.data : nullptr,
                                          outs ? dout.data : nullptr},
                                after = {rounds - first, 7, stride,
                                         ins ? din.data + first : nullptr,
                                         outs ? dout.data + first : nullptr};
    sl_cuda_count_steps(&b.device, &before, false, &to, queue);
    sl_cuda_count_steps(&b.device, &after, true, &to, queue);
    sl_kernel_count_steps(&b.host, &all, &hwant);
    expect_equal("count steps", got.download(), want);
}

static void test_counts()
{
    for (const int64_t rounds : {0, 1, 31, 33, 300})
        for (int option = 0; option < 8; option++) {
            static one_in sample(3);
            if (!sample.leaves_out())
                check_counts(some_block(1 + random_below(40), 1 + random_below(60), random_below(4),
                                        0, option & 1, option & 2, option & 1 && option & 4, 0),
                             rounds, (layout)random_below(LAYOUTS));
        }
}

/* ---- Metrics and logits ---- */

static void test_metrics_join()
{
    for (int option = 0; option < 9; option++) {
        std::vector<double> x(SL_METRICS), y(SL_METRICS);
        for (int i = 0; i < SL_METRICS; i++) {
            x[(size_t)i] = (double)random_below(100);
            y[(size_t)i] = (double)random_below(100);
        }
        x[SL_METRIC_BAD_GRADIENT] = option % 3;
        y[SL_METRIC_BAD_GRADIENT] = option / 3;
        std::vector<double> want = y;
        for (int i = 0; i < SL_METRICS; i++)
            want[(size_t)i] += x[(size_t)i];
        for (const int i : {(int)SL_METRIC_BAD_GRADIENT, (int)SL_METRIC_BAD_UPDATE}) {
            const double a = x[(size_t)i], b = y[(size_t)i];
            want[(size_t)i] = a == 0.0 ? b : b == 0.0 ? a : std::min(a, b);
        }
        const array<double> dx(x), dy(y);
        sl_cuda_metrics_join(dx.data, dy.data, queue);
        expect(dy.download() == want, "metrics join");
    }
}

static void test_mean_probabilities()
{
    each_shape([](int64_t rows, int64_t cols, layout how) {
        static one_in sample(5);
        if (sample.leaves_out())
            return;
        matrix want = empty_matrix(rows, cols, how, CANARY);
        const device_matrix dy(want);
        for (int before = 0; before < 3; before++) {
            matrix x = random_matrix(rows, cols, other(how), NONE, REALS);
            for (int64_t r = 0; r < rows; r += 3)
                for (int64_t j = 0; j < cols; j++)
                    x(r, j) *= 800.0f; /* probabilities would be rounded to 0 */
            const device_matrix dx(x);
            const struct sl_logits from = {dx.at, rows, cols, dx.ld},
                                   to = {dy.at, rows, cols, dy.ld},
                                   hfrom = {x.at(), rows, cols, x.ld},
                                   hto = {want.at(), rows, cols, want.ld};
            sl_cuda_mean_probabilities(before, &from, &to, queue);
            sl_kernel_mean_probabilities(before, &hfrom, &hto);
        }
        matrix size = absolute(want);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++)
                size(r, j) += 1.0f;
        expect_close("mean probabilities", dy.download(), want, 8.0 * UNIT, &size);
    });
}

static void test_keep_best()
{
    const int index = SL_METRIC_CORRECT + SL_SPLIT_VAL;
    for (int option = 0; option < 64; option++) {
        const struct keep_argument keep = {index, 1 + option % 4, 2, (option & 4) != 0};
        std::vector<double> metrics(SL_METRICS, 9.0), best = {0.5, (double)(option / 8 % 4)},
                                                      end = {option & 32 ? 2.0 : 0.0};
        metrics[(size_t)index] = option % 7 == 0 ? NAN : 0.1 * (double)random_below(10) - 0.5;
        const array<double> dmetrics(metrics), dbest(best), dend(end);
        sl_cuda_keep_best(&keep, dmetrics.data, dbest.data, dend.data, queue);
        sl_keep_best(&keep, metrics.data(), best.data(), end.data());
        expect(dbest.download() == best && dend.download() == end, "keep best");
    }
}

const std::vector<test> units_tests = {
    {"blocks of units", test_blocks},
    {"shared entries", test_shared},
    {"counts of steps", test_counts},
    {"metrics_join", test_metrics_join},
    {"mean_probabilities", test_mean_probabilities},
    {"keep_best", test_keep_best},
};
