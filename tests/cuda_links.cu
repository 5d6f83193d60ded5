/* Scores of links and their gradients on a GPU, against the kernels of cores. */
#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/links.h"
}

/* Links of a block with that much room, ascending by source. Most rows have no link where there are
 * fewer links than rows; a third of the links have the first target. What follows the links points
 * far outside. */
static std::vector<sl_scored_link> random_block(int64_t sources, int64_t targets, int64_t links,
                                                int64_t room, kind k)
{
    std::vector<sl_scored_link> block((size_t)(1 + room));
    for (sl_scored_link &link : block)
        link = {1 << 30, -(1 << 30), 7, 1 << 30, NONE};
    block[0].source = (int32_t)links;
    for (int64_t e = 0; e < links; e++) {
        const bool hub = random_below(3) == 0;
        block[(size_t)(1 + e)] = {(int32_t)random_below(sources),
                                  hub ? 0 : (int32_t)random_below(targets), (int32_t)e, -1,
                                  random_value(k)};
    }
    std::stable_sort(
        block.begin() + 1, block.begin() + 1 + links,
        [](const sl_scored_link &a, const sl_scored_link &b) { return a.source < b.source; });
    std::vector<int32_t> work((size_t)targets + 1);
    sl_link_order(targets, block.data(), work.data());
    return block;
}

/* A block on the device, between guard bands. */
struct device_block {
    std::vector<sl_scored_link> host;
    array<sl_scored_link> all;
    sl_scored_link *at;

    static std::vector<sl_scored_link> guarded(const std::vector<sl_scored_link> &block)
    {
        std::vector<sl_scored_link> all(block.size() + 2, sl_scored_link{-3, -3, -3, -3, CANARY});
        std::copy(block.begin(), block.end(), all.begin() + 1);
        return all;
    }
    explicit device_block(const std::vector<sl_scored_link> &block)
        : host(guarded(block)), all(host), at(all.data + 1)
    {
    }
    /* The values of the links, as one column; nothing else has changed. */
    matrix values(int64_t links) const
    {
        std::vector<sl_scored_link> got = all.download();
        matrix m = empty_matrix(links, 1, TIGHT, CANARY);
        for (int64_t e = 0; e < links; e++) {
            m(e, 0) = got[(size_t)(2 + e)].value;
            got[(size_t)(2 + e)].value = host[(size_t)(2 + e)].value;
        }
        expect(memcmp(got.data(), host.data(), got.size() * sizeof got[0]) == 0,
               "link_scores: changed more than values");
        return m;
    }
};

/* Operands. Numbers are integers, whose sums are exact, or reals. Sums of the mlp may be at the
 * kink of relu, on which both sides agree. */
struct ends {
    enum sl_decoder decoder;
    bool one;
    int64_t cols;
    matrix x, y, w;

    /* targets < 0: the sources. */
    ends(enum sl_decoder which, int64_t sources, int64_t targets, int64_t columns, layout how,
         kind k)
        : decoder(which), one(targets < 0), cols(columns),
          x(random_matrix(sources, columns, how, NONE, k)),
          y(random_matrix(one ? 0 : targets, columns, other(how), NONE, k)),
          w(random_matrix(1, columns, how, NONE, k))
    {
    }
    int64_t targets() const
    {
        return one ? x.rows : y.rows;
    }
    sl_link_rows host()
    {
        return {decoder, cols, floats(x), one ? floats(x) : floats(y),
                decoder == SL_DECODER_DOT ? nullptr : w.at()};
    }
};

struct device_ends {
    device_matrix x, y, w;
    sl_link_rows rows;

    explicit device_ends(const ends &e)
        : x(e.x), y(e.y), w(e.w), rows{e.decoder, e.cols, floats(x), e.one ? floats(x) : floats(y),
                                       e.decoder == SL_DECODER_DOT ? nullptr : w.at}
    {
    }
};

typedef std::vector<sl_scored_link> links_of_block;

/* Operands of which a sum has the sizes of the terms. */
static ends absolute(const ends &e)
{
    ends sizes(e.decoder, e.x.rows, e.one ? -1 : e.y.rows, e.cols, TIGHT, INTEGERS);
    sizes.x = absolute(e.x);
    sizes.y = absolute(e.y);
    sizes.w = absolute(e.w);
    return sizes;
}

static links_of_block absolute(links_of_block block)
{
    for (sl_scored_link &link : block)
        link.value = std::fabs(link.value);
    return block;
}

static matrix scores_of(const ends &of, const links_of_block &block)
{
    ends e = of;
    links_of_block scored = block;
    const int64_t links = sl_link_count(block.data());
    matrix m = empty_matrix(links, 1, TIGHT, CANARY);
    const sl_link_rows rows = e.host();
    sl_kernel_link_scores(&rows, scored.data());
    for (int64_t l = 0; l < links; l++)
        m(l, 0) = scored[(size_t)(1 + l)].value;
    return m;
}

static void check_scores(const ends &e, const links_of_block &block, kind k)
{
    const device_block there(block);
    const device_ends down(e);
    const matrix want = scores_of(e, block), size = scores_of(absolute(e), block);
    sl_cuda_link_scores(&down.rows, (int64_t)block.size() - 1, there.at, queue);
    expect_close("link_scores", there.values(want.rows), want, 2.0 * UNIT * (double)(e.cols + 3),
                 k == REALS ? &size : nullptr);
}

static matrix back_of(const ends &of, enum sl_link_end end, const links_of_block &block, matrix g)
{
    ends e = of;
    const sl_link_rows rows = e.host();
    sl_kernel_link_back(&rows, end, g.rows, block.data(), floats(g));
    return g;
}

static void check_back(const ends &e, const links_of_block &block, layout how, kind k)
{
    const device_block there(block);
    const device_ends down(e);
    const double factor = 2.0 * UNIT * (double)(sl_link_count(block.data()) + 3);
    for (const enum sl_link_end end : {SL_LINK_SOURCE, SL_LINK_TARGET}) {
        const matrix g = random_matrix(end == SL_LINK_SOURCE ? e.x.rows : e.targets(), e.cols, how,
                                       CANARY, INTEGERS),
                     size = back_of(absolute(e), end, absolute(block), absolute(g));
        const device_matrix dg(g);
        sl_cuda_link_back(&down.rows, end, g.rows, there.at, floats(dg), queue);
        expect_close(end == SL_LINK_SOURCE ? "link_back, sources" : "link_back, targets",
                     dg.download(), back_of(e, end, block, g), factor,
                     k == REALS ? &size : nullptr);
    }
}

static matrix parameters_of(const ends &of, const links_of_block &block, matrix g)
{
    ends e = of;
    const sl_link_rows rows = e.host();
    sl_kernel_link_parameters(&rows, block.data(), g.at());
    return g;
}

static void check_parameters(const ends &e, const links_of_block &block, layout how, kind k)
{
    const device_block there(block);
    const device_ends down(e);
    const matrix g = random_matrix(1, e.cols, how, CANARY, INTEGERS),
                 size = parameters_of(absolute(e), absolute(block), absolute(g));
    const device_matrix dg(g);
    sl_cuda_link_parameters(&down.rows, (int64_t)block.size() - 1, there.at, dg.at, queue);
    expect_close("link_parameters", dg.download(), parameters_of(e, block, g),
                 2.0 * UNIT * (double)(sl_link_count(block.data()) + 3),
                 k == REALS ? &size : nullptr);
}

/* targets < 0: the sources. */
static void check_links(int64_t sources, int64_t targets, int64_t links, int64_t room, int64_t cols,
                        layout how)
{
    for (const kind k : {INTEGERS, REALS})
        for (const enum sl_decoder decoder :
             {SL_DECODER_DOT, SL_DECODER_DISTMULT, SL_DECODER_MLP}) {
            const ends e(decoder, sources, targets, cols, how, k);
            const links_of_block block = random_block(sources, e.targets(), links, room, k);
            check_scores(e, block, k);
            check_back(e, block, how, k);
            if (decoder != SL_DECODER_DOT)
                check_parameters(e, block, how, k);
        }
}

/* Fewer links than room, no link, repeated links, one row. */
static void test_links()
{
    static one_in some(5);
    random_state = 15;
    for (const int64_t cols : {1, 2, 3, 15, 16, 17, 33, 64, 100, 130})
        for (const int64_t links : {0, 1, 40, 300})
            for (const int64_t more : {0, 3, 5000})
                for (const int64_t targets : {-1, 1, 19}) {
                    if (some.leaves_out())
                        continue;
                    check_links(29, targets, links, links + more, cols,
                                (layout)(random_below(LAYOUTS)));
                }
    check_links(1, 1, 9, 9, 7, PADDED);
    check_links(1, -1, 3, 20, 34, EDGE);
    check_links(5000, 7, 200, 200, 5, LOOSE);
    check_links(3, 5, 3000, 70000, 4, TIGHT); /* more chunks than links fill */
    check_links(2, 3, 100, 100, 3000, PADDED);
}

static matrix filled(int64_t rows, int64_t cols, layout how)
{
    matrix m = empty_matrix(rows, cols, how, CANARY);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            m(r, j) = 0.5f;
    return m;
}

/* Results are the same to the bit at each launch, in any layout. */
static void test_links_alike()
{
    enum { SOURCES = 40, TARGETS = 30, COLS = 36, LINKS = 2000, ROOM = 9000 };
    random_state = 16;
    for (const enum sl_decoder decoder : {SL_DECODER_DISTMULT, SL_DECODER_MLP}) {
        const ends e(decoder, SOURCES, TARGETS, COLS, TIGHT, REALS);
        const device_block there(random_block(SOURCES, TARGETS, LINKS, ROOM, REALS));
        std::vector<matrix> first;
        for (const layout how : {PADDED, LOOSE, PADDED}) {
            ends placed = e;
            placed.x = moved(e.x, how, NONE);
            placed.y = moved(e.y, other(how), NONE);
            const device_ends down(placed);
            const device_matrix x_back(filled(SOURCES, COLS, how)),
                y_back(filled(TARGETS, COLS, how)), w_back(filled(1, COLS, how));
            sl_cuda_link_back(&down.rows, SL_LINK_SOURCE, SOURCES, there.at, floats(x_back), queue);
            sl_cuda_link_back(&down.rows, SL_LINK_TARGET, TARGETS, there.at, floats(y_back), queue);
            sl_cuda_link_parameters(&down.rows, ROOM, there.at, w_back.at, queue);
            const std::vector<matrix> got = {x_back.download(), y_back.download(),
                                             w_back.download()};
            if (first.empty())
                first = got;
            for (size_t i = 0; i < got.size(); i++)
                expect_same_bits("links, again", got[i], first[i]);
        }
    }
}

/* A NaN reaches the scores of its links alone. */
static void test_links_nan()
{
    random_state = 17;
    for (const enum sl_decoder decoder : {SL_DECODER_DOT, SL_DECODER_DISTMULT, SL_DECODER_MLP}) {
        ends e(decoder, 9, 9, 20, TIGHT, REALS);
        const std::vector<sl_scored_link> block = random_block(9, 9, 40, 50, REALS);
        e.x(4, 2) = NONE;
        const device_block there(block);
        const device_ends down(e);
        sl_cuda_link_scores(&down.rows, 50, there.at, queue);
        const matrix got = there.values(40);
        for (int64_t l = 0; l < 40; l++)
            expect(std::isnan(got(l, 0)) == (block[(size_t)(1 + l)].source == 4),
                   "link_scores: a NaN reaches the scores of its links alone");
    }
}

const std::vector<test> links_tests = {
    {"links", test_links},
    {"links_alike", test_links_alike},
    {"links_nan", test_links_nan},
};
