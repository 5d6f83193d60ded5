/* The minimum cover of rows and columns (graphs/bipartite.h). Small graphs are compared with all
 * covers, large ones with a flow that searches one path at a time. Both know the one right cover:
 * the one with the most rows. */
#include <sys/resource.h>

#include <malloc.h>

#include "core/error.h"
#include "core/rng.h"
#include "graphs/bipartite.h"
#include "tests/unit.h"

static const struct weights {
    int row, col;
} all_weights[] = {{1, 1}, {1, 2}, {4, 2}, {2, 3}, {602, 41}, {999983, 1000003}, {1, 1000}};

enum { WEIGHTS = sizeof all_weights / sizeof *all_weights };

/* ---- Graphs ---- */

struct entry {
    int32_t row, col;
};

struct graph {
    struct sl_bipartite view;
    int64_t *indptr;  // (rows + 1)
    int32_t *columns; // (entries)
};

/* The entries of a row keep their order. */
static struct graph create(int64_t rows, int64_t cols, const struct entry *entries, int64_t count)
{
    struct graph graph = {
        .indptr = calloc((size_t)rows + 2, sizeof *graph.indptr),
        .columns = malloc((size_t)count * sizeof *graph.columns + 1),
    };
    assert_true(graph.indptr && graph.columns);
    int64_t *end = graph.indptr + 1;
    for (int64_t e = 0; e < count; e++)
        end[entries[e].row + 1]++;
    for (int64_t r = 1; r <= rows; r++)
        end[r] += end[r - 1];
    for (int64_t e = 0; e < count; e++)
        graph.columns[end[entries[e].row]++] = entries[e].col;
    graph.view = (struct sl_bipartite){rows, cols, graph.indptr, graph.columns};
    return graph;
}

static void destroy(struct graph *graph)
{
    free(graph->indptr);
    free(graph->columns);
}

static int64_t entries_of(const struct graph *graph)
{
    return graph->indptr[graph->view.rows];
}

/* ---- Covers ---- */

struct cover {
    bool *row, *col; // (rows), (cols)
    int64_t weight;
};

/* All rows and columns are in the cover if `filled`, none if not. */
static struct cover create_cover(const struct sl_bipartite *graph, bool filled)
{
    const size_t rows = (size_t)graph->rows, cols = (size_t)graph->cols;
    struct cover cover = {malloc(rows + 1), malloc(cols + 1), -1};
    assert_true(cover.row && cover.col);
    memset(cover.row, filled, rows + 1);
    memset(cover.col, filled, cols + 1);
    return cover;
}

static void destroy_cover(struct cover *cover)
{
    free(cover->row);
    free(cover->col);
}

static void assert_covers(const struct graph *graph, struct weights weights,
                          const struct cover *cover)
{
    int64_t weight = 0;
    for (int64_t r = 0; r < graph->view.rows; r++) {
        weight += cover->row[r] ? weights.row : 0;
        for (int64_t e = graph->indptr[r]; e < graph->indptr[r + 1]; e++)
            assert_true(cover->row[r] || cover->col[graph->columns[e]]);
    }
    for (int64_t c = 0; c < graph->view.cols; c++)
        weight += cover->col[c] ? weights.col : 0;
    assert_int_equal(cover->weight, weight);
}

static void assert_same(const struct graph *graph, const struct cover *a, const struct cover *b)
{
    assert_int_equal(a->weight, b->weight);
    assert_memory_equal(a->row, b->row, graph->view.rows);
    assert_memory_equal(a->col, b->col, graph->view.cols);
}

/* The cover; a second call finds the same one. */
static struct cover find(const struct graph *graph, struct weights weights)
{
    struct cover cover[2];
    for (int call = 0; call < 2; call++) {
        cover[call] = create_cover(&graph->view, call);
        assert_int_equal(sl_bipartite_cover(&graph->view, weights.row, weights.col, cover[call].row,
                                            cover[call].col, &cover[call].weight),
                         0);
        assert_covers(graph, weights, &cover[call]);
    }
    assert_same(graph, &cover[0], &cover[1]);
    destroy_cover(&cover[1]);
    return cover[0];
}

/* ---- Small graphs: all covers ---- */

enum { MOST = 14 }; /* rows and columns together */

static uint32_t columns_of(const struct graph *graph, uint32_t rows)
{
    uint32_t columns = 0;
    for (int64_t r = 0; r < graph->view.rows; r++)
        for (int64_t e = graph->indptr[r]; rows >> r & 1 && e < graph->indptr[r + 1]; e++)
            columns |= 1u << graph->columns[e];
    return columns;
}

/* A set of rows needs the columns of all other rows. The union of the best sets is a best set. */
static struct cover best_of_all(const struct graph *graph, struct weights weights)
{
    const uint32_t sets = 1u << graph->view.rows;
    struct cover best = create_cover(&graph->view, false);
    uint32_t best_rows = 0;
    best.weight = INT64_MAX;
    for (uint32_t rows = 0; rows < sets; rows++) {
        const uint32_t columns = columns_of(graph, ~rows);
        const int64_t weight = (int64_t)__builtin_popcount(rows) * weights.row +
                               (int64_t)__builtin_popcount(columns) * weights.col;
        if (weight < best.weight)
            best_rows = 0;
        if (weight <= best.weight) {
            best.weight = weight;
            best_rows |= rows;
        }
    }
    const uint32_t best_columns = columns_of(graph, ~best_rows);
    for (int64_t r = 0; r < graph->view.rows; r++)
        best.row[r] = best_rows >> r & 1;
    for (int64_t c = 0; c < graph->view.cols; c++)
        best.col[c] = best_columns >> c & 1;
    assert_covers(graph, weights, &best);
    return best;
}

static void compare_with_all(const struct graph *graph)
{
    for (int w = 0; w < WEIGHTS; w++) {
        struct cover best = best_of_all(graph, all_weights[w]), cover = find(graph, all_weights[w]);
        assert_same(graph, &cover, &best);
        destroy_cover(&best);
        destroy_cover(&cover);
    }
}

/* An entry may come twice. */
SL_TEST(small_at_random)
{
    enum { ROUNDS = 3000 };
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t key = sl_rng_key(1, SL_RNG_ORDER, round, 0);
        const int32_t all = (int32_t)(round % (MOST + 1)),
                      rows = (int32_t)((all + 1) * sl_rng_uniform(key, 0, MOST)), cols = all - rows;
        const double density = sl_rng_uniform(key, 1, MOST);
        struct entry entries[MOST * MOST];
        int64_t count = 0;
        for (int32_t r = 0; r < rows; r++)
            for (int32_t c = 0; c < cols; c++) {
                const double at = sl_rng_uniform(key, (uint32_t)r, (uint32_t)c);
                for (int copy = 0; copy < (at < density) + (at < density / 8); copy++)
                    entries[count++] = (struct entry){r, c};
            }
        struct graph graph = create(rows, cols, entries, count);
        compare_with_all(&graph);
        destroy(&graph);
    }
}

/* Every graph of three rows and three columns. */
SL_TEST(small_all)
{
    enum { SIDE = 3, GRAPHS = 1 << SIDE * SIDE };
    for (int pattern = 0; pattern < GRAPHS; pattern++) {
        struct entry entries[SIDE * SIDE];
        int64_t count = 0;
        for (int32_t at = 0; at < SIDE * SIDE; at++)
            if (pattern >> at & 1)
                entries[count++] = (struct entry){at / SIDE, at % SIDE};
        struct graph graph = create(SIDE, SIDE, entries, count);
        compare_with_all(&graph);
        destroy(&graph);
    }
}

/* ---- Graphs whose covers are known ---- */

/* Expect a weight for each pair of weights: the least of these numbers of rows and columns. */
static void expect(int64_t rows, int64_t cols, const struct entry *entries, int64_t count,
                   const int64_t (*choices)[2], int choice_count)
{
    struct graph graph = create(rows, cols, entries, count);
    for (int w = 0; w < WEIGHTS; w++) {
        int64_t least = INT64_MAX;
        for (int k = 0; k < choice_count; k++) {
            const int64_t weight =
                choices[k][0] * all_weights[w].row + choices[k][1] * all_weights[w].col;
            least = weight < least ? weight : least;
        }
        struct cover cover = find(&graph, all_weights[w]);
        assert_int_equal(cover.weight, least);
        destroy_cover(&cover);
    }
    destroy(&graph);
}

SL_TEST(without_entries)
{
    expect(0, 0, NULL, 0, (int64_t[][2]){{0, 0}}, 1);
    expect(0, 9, NULL, 0, (int64_t[][2]){{0, 0}}, 1);
    expect(9, 0, NULL, 0, (int64_t[][2]){{0, 0}}, 1);
    expect(9, 7, NULL, 0, (int64_t[][2]){{0, 0}}, 1);
    /* one entry between rows and columns that have none */
    expect(9, 7, &(struct entry){4, 3}, 1, (int64_t[][2]){{1, 0}, {0, 1}}, 2);
}

/* A row of all columns, a column of all rows, both in one graph, and all entries. */
SL_TEST(hubs)
{
    enum { LEAVES = 100000, ROWS = 60, COLS = 90 };
    static struct entry entries[2 * LEAVES];
    for (int32_t e = 0; e < LEAVES; e++)
        entries[e] = (struct entry){7, e};
    expect(9, LEAVES, entries, LEAVES, (int64_t[][2]){{1, 0}, {0, LEAVES}}, 2);
    for (int32_t e = 0; e < LEAVES; e++)
        entries[LEAVES + e] = (struct entry){e, 5};
    expect(LEAVES, 9, entries + LEAVES, LEAVES, (int64_t[][2]){{0, 1}, {LEAVES, 0}}, 2);
    expect(LEAVES, LEAVES, entries, 2L * LEAVES, (int64_t[][2]){{1, 1}, {LEAVES, 0}, {0, LEAVES}},
           3);
    for (int32_t e = 0; e < ROWS * COLS; e++)
        entries[e] = (struct entry){e % ROWS, e / ROWS};
    expect(ROWS, COLS, entries, (int64_t)ROWS * COLS, (int64_t[][2]){{ROWS, 0}, {0, COLS}}, 2);
}

/* ---- Large graphs: a flow, path by path ---- */

/* Vertices are rows, then columns. */
struct slow {
    const struct graph *graph;
    int64_t *first;  // (cols + 2): places of a column's entries
    int64_t *entry;  // (entries), by column
    int32_t *row_of; // (entries)
    int64_t *units;  // (entries): flow
    int64_t *room;   // (vertices)
    int64_t *parent; // (vertices): the entry before a vertex on the path
    int32_t *queue;  // (vertices)
    bool *reached;   // (vertices)
    int64_t vertices;
};

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

static struct slow create_slow(const struct graph *graph, struct weights weights)
{
    const int64_t rows = graph->view.rows, cols = graph->view.cols, count = entries_of(graph);
    struct slow slow = {.graph = graph, .vertices = rows + cols};
    slow.first = zeros(cols + 1, sizeof *slow.first);
    slow.entry = zeros(count, sizeof *slow.entry);
    slow.row_of = zeros(count, sizeof *slow.row_of);
    slow.units = zeros(count, sizeof *slow.units);
    slow.room = zeros(slow.vertices, sizeof *slow.room);
    slow.parent = zeros(slow.vertices, sizeof *slow.parent);
    slow.queue = zeros(slow.vertices, sizeof *slow.queue);
    slow.reached = zeros(slow.vertices, sizeof *slow.reached);
    for (int64_t v = 0; v < slow.vertices; v++)
        slow.room[v] = v < rows ? weights.row : weights.col;
    int64_t *end = slow.first + 1;
    for (int64_t e = 0; e < count; e++)
        end[graph->columns[e] + 1]++;
    for (int64_t c = 1; c <= cols; c++)
        end[c] += end[c - 1];
    for (int32_t r = 0; r < rows; r++)
        for (int64_t e = graph->indptr[r]; e < graph->indptr[r + 1]; e++) {
            slow.row_of[e] = r;
            slow.entry[end[graph->columns[e]]++] = e;
        }
    return slow;
}

static void destroy_slow(struct slow *slow)
{
    free(slow->first);
    free(slow->entry);
    free(slow->row_of);
    free(slow->units);
    free(slow->room);
    free(slow->parent);
    free(slow->queue);
    free(slow->reached);
}

static void reach(struct slow *slow, int64_t vertex, int64_t entry, int64_t *queued)
{
    if (slow->reached[vertex])
        return;
    slow->reached[vertex] = true;
    slow->parent[vertex] = entry;
    slow->queue[(*queued)++] = (int32_t)vertex;
}

static void reach_next(struct slow *slow, int64_t vertex, int64_t *queued)
{
    const struct graph *graph = slow->graph;
    const int64_t rows = graph->view.rows, c = vertex - rows;
    if (vertex < rows)
        for (int64_t e = graph->indptr[vertex]; e < graph->indptr[vertex + 1]; e++)
            reach(slow, rows + graph->columns[e], e, queued);
    else
        for (int64_t at = slow->first[c]; at < slow->first[c + 1]; at++)
            if (slow->units[slow->entry[at]] > 0)
                reach(slow, slow->row_of[slow->entry[at]], slow->entry[at], queued);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Send what fits along the path from a row to a column. */
static void send_along(struct slow *slow, int64_t from, int64_t to)
{
    const int64_t rows = slow->graph->view.rows;
    int64_t units = least(slow->room[from], slow->room[to]);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t v = to; v != from;) {
            const int64_t e = slow->parent[v];
            if (pass == 0)
                units = v < rows ? least(units, slow->units[e]) : units;
            else
                slow->units[e] += v < rows ? -units : units;
            v = v < rows ? rows + slow->graph->columns[e] : slow->row_of[e];
        }
    slow->room[from] -= units;
    slow->room[to] -= units;
}

/* Search a path. What a search without success reached stays reached: no path leaves it. */
static bool search(struct slow *slow, int64_t from)
{
    int64_t queued = 0;
    reach(slow, from, -1, &queued);
    for (int64_t q = 0; q < queued; q++) {
        const int64_t vertex = slow->queue[q];
        if (vertex >= slow->graph->view.rows && slow->room[vertex] > 0) {
            send_along(slow, from, vertex);
            for (int64_t back = 0; back < queued; back++)
                slow->reached[slow->queue[back]] = false;
            return true;
        }
        reach_next(slow, vertex, &queued);
    }
    return false;
}

static struct cover find_slowly(const struct graph *graph, struct weights weights)
{
    const int64_t rows = graph->view.rows;
    struct slow slow = create_slow(graph, weights);
    struct cover cover = create_cover(&graph->view, false);
    cover.weight = 0; /* all flow: no cover is lighter */
    for (int64_t r = 0; r < rows; r++) {
        while (slow.room[r] > 0 && search(&slow, r))
            ;
        cover.weight += weights.row - slow.room[r];
    }
    for (int64_t v = 0; v < slow.vertices; v++)
        if (v < rows)
            cover.row[v] = !slow.reached[v];
        else
            cover.col[v - rows] = slow.reached[v];
    destroy_slow(&slow);
    assert_covers(graph, weights, &cover);
    return cover;
}

static void compare_with_slow(int64_t rows, int64_t cols, const struct entry *entries,
                              int64_t count)
{
    struct graph graph = create(rows, cols, entries, count);
    for (int w = 0; w < WEIGHTS; w++) {
        struct cover slow = find_slowly(&graph, all_weights[w]),
                     cover = find(&graph, all_weights[w]);
        assert_same(&graph, &cover, &slow);
        destroy_cover(&slow);
        destroy_cover(&cover);
    }
    destroy(&graph);
}

enum { ENTRIES = 100000 };

static struct entry large[ENTRIES];

/* Draw entries; a power from 2 on makes hubs of the first rows and columns. */
static void draw(uint32_t stream, int64_t rows, int64_t cols, int power)
{
    const uint64_t key = sl_rng_key(2, SL_RNG_ORDER, stream, 0);
    for (uint32_t e = 0; e < ENTRIES; e++) {
        double at[2] = {(double)rows, (double)cols};
        for (int factor = 0; factor < power; factor++)
            for (uint32_t side = 0; side < 2; side++)
                at[side] *= sl_rng_uniform(key, e, side);
        large[e] = (struct entry){(int32_t)at[0], (int32_t)at[1]};
    }
}

/* With 2.7 entries a row and a column, paths are long. Uneven sides leave rows or columns over. */
SL_TEST(large_at_random)
{
    draw(0, 9300, 9300, 1);
    compare_with_slow(9300, 9300, large, ENTRIES / 4);
    draw(1, 60000, 60000, 1);
    compare_with_slow(60000, 60000, large, ENTRIES);
    draw(2, 10000, 20000, 1);
    compare_with_slow(10000, 20000, large, ENTRIES);
    draw(3, 30000, 12000, 1);
    compare_with_slow(30000, 12000, large, ENTRIES);
}

SL_TEST(large_power_law)
{
    for (uint32_t power = 2; power < 4; power++) {
        draw(4 + power, 30000, 50000, (int)power);
        compare_with_slow(30000, 50000, large, ENTRIES);
    }
}

/* Row r has columns r and r + 1, under random numbers; the last row has column 0. */
static void draw_cycle(int64_t side)
{
    const uint64_t key = sl_rng_key(3, SL_RNG_ORDER, 0, 0);
    const uint32_t count = (uint32_t)side;
    for (uint32_t e = 0; e < 2 * count; e++)
        large[e] = (struct entry){(int32_t)sl_rng_permute(key, count, e / 2),
                                  (int32_t)sl_rng_permute(key + 1, count, (e + 1) / 2 % count)};
}

/* A cycle; a path from a column to a row; a path from a row to a row. */
SL_TEST(large_path)
{
    enum { SIDE = ENTRIES / 2, SLOW_SIDE = 2000 };
    const int64_t all[][2] = {{SIDE, 0}, {0, SIDE}}, but_one[][2] = {{SIDE, 0}, {0, SIDE - 1}};
    draw_cycle(SIDE);
    expect(SIDE, SIDE, large, 2 * SIDE, all, 2);
    expect(SIDE, SIDE, large, 2 * SIDE - 1, all, 2);
    expect(SIDE, SIDE, large + 1, 2 * SIDE - 2, but_one, 2);
    draw_cycle(SLOW_SIDE);
    compare_with_slow(SLOW_SIDE, SLOW_SIDE, large, 2 * SLOW_SIDE);
    compare_with_slow(SLOW_SIDE, SLOW_SIDE, large, 2 * SLOW_SIDE - 1);
    compare_with_slow(SLOW_SIDE, SLOW_SIDE, large + 1, 2 * SLOW_SIDE - 2);
}

/* White squares of a board are rows, black squares columns, neighbours entries: no leaf, and long
 * paths. A part of all squares is `closed`, and has no neighbours. */
static int64_t make_board(int32_t side, double closed)
{
    const uint64_t key = sl_rng_key(4, SL_RNG_ORDER, 0, 0);
    static const int32_t steps[4][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}};
    const uint32_t half = (uint32_t)(side * side / 2);
    int64_t count = 0;
    for (int32_t at = 0; at < side * side; at++)
        for (int s = 0; s < 4; s++) {
            const int32_t i = at / side, j = at % side, x = (i + steps[s][0] + side) % side,
                          y = (j + steps[s][1] + side) % side, to = x * side + y;
            if ((i + j) % 2 || sl_rng_uniform(key, (uint32_t)at, 0) < closed ||
                sl_rng_uniform(key, (uint32_t)to, 0) < closed)
                continue;
            large[count++] =
                (struct entry){(int32_t)sl_rng_permute(key + 1, half, (uint32_t)(at / 2)),
                               (int32_t)sl_rng_permute(key + 2, half, (uint32_t)(to / 2))};
        }
    return count;
}

SL_TEST(large_board)
{
    enum { SIDE = 120, HALF = SIDE * SIDE / 2 };
    for (int percent = 0; percent < 20; percent += 5) {
        const int64_t count = make_board(SIDE, percent / 100.0);
        compare_with_slow(HALF, HALF, large, count);
    }
}

/* ---- Order and memory ---- */

/* The cover depends on the graph alone. */
SL_TEST(reordered)
{
    draw(9, 30000, 40000, 2);
    struct graph graph = create(30000, 40000, large, ENTRIES);
    for (int64_t e = 0; e < ENTRIES / 2; e++) {
        const struct entry first = large[e];
        large[e] = large[ENTRIES - 1 - e];
        large[ENTRIES - 1 - e] = first;
    }
    struct graph reversed = create(30000, 40000, large, ENTRIES);
    for (int w = 0; w < WEIGHTS; w++) {
        struct cover a = find(&graph, all_weights[w]), b = find(&reversed, all_weights[w]);
        assert_same(&graph, &a, &b);
        destroy_cover(&a);
        destroy_cover(&b);
    }
    destroy(&graph);
    destroy(&reversed);
}

/* Bytes of this process's addresses. */
static int64_t used(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld", &pages), 1);
    fclose(file);
    return pages * 4096;
}

/* Return the code of a cover that may take `bytes` of memory. All of them are given back. */
static int cover_within(const struct graph *graph, struct cover *cover, int64_t bytes)
{
    struct rlimit before, limit;
    const int64_t used_before = used();
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(used_before + bytes);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    const int code = sl_bipartite_cover(&graph->view, 2, 3, cover->row, cover->col, &cover->weight);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(used(), used_before);
    return code;
}

/* Every array is the first one without memory, some time. */
SL_TEST(no_memory)
{
    enum { STEP = 65536 };
    struct rlimit limit;
    if (getenv("SL_SANITIZED"))
        skip(); /* AddressSanitizer ends the process where memory ends */
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY)
        skip();
    mallopt(M_MMAP_THRESHOLD, STEP);
    draw(10, 40000, 40000, 1);
    struct graph graph = create(40000, 40000, large, ENTRIES);
    struct cover cover = create_cover(&graph.view, false);
    int failures = 0;
    (void)used(); /* a first call may keep memory */
    while (cover_within(&graph, &cover, (int64_t)STEP * failures) != 0) {
        const char *message = "no memory to cover 100000 entries of a bipartite graph";
        assert_string_equal(sl_error_message(), message);
        failures++;
        assert_true(failures < 1000);
    }
    assert_true(failures > 20);
    assert_covers(&graph, (struct weights){2, 3}, &cover);
    destroy_cover(&cover);
    destroy(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_at_random), cmocka_unit_test(small_all),
        cmocka_unit_test(without_entries), cmocka_unit_test(hubs),
        cmocka_unit_test(large_at_random), cmocka_unit_test(large_power_law),
        cmocka_unit_test(large_path),      cmocka_unit_test(large_board),
        cmocka_unit_test(reordered),       cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("bipartite", tests, NULL, NULL);
}
