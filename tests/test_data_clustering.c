/* Clustering coefficients, and generated graphs that keep them. */
#include "data_files.h"

#include "core/log.h"
#include "core/rng.h"
#include "data/clustering.h"
#include "data/generate/generate_bter.h"
#include "data/generate/generate_community.h"
#include "data/statistics.h"

static int64_t degree_of(const struct sl_csr *a, int64_t v)
{
    return a->indptr[v + 1] - a->indptr[v];
}

/* local[v] (rows): the share of pairs of v's neighbours that are joined, by marking the neighbours
 * and walking along all their rows; 0 without pairs. */
static double *count_triangles(const struct sl_csr *a)
{
    double *local = calloc((size_t)a->rows, sizeof *local);
    bool *mark = calloc((size_t)a->rows, sizeof *mark);
    for (int64_t v = 0; v < a->rows; v++) {
        const double degree = (double)degree_of(a, v);
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++)
            mark[a->indices[k]] = true;
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++) {
            const int32_t u = a->indices[k];
            for (int64_t j = a->indptr[u]; j < a->indptr[u + 1]; j++)
                local[v] += mark[a->indices[j]];
        }
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++)
            mark[a->indices[k]] = false;
        local[v] /= degree > 1.0 ? degree * (degree - 1.0) : 1.0;
    }
    free(mark);
    return local;
}

static void community(int64_t vertices, double degree, struct sl_dataset *data)
{
    struct sl_community_options options = SL_COMMUNITY_DEFAULTS;
    options.vertices = vertices;
    options.classes = vertices / 40;
    options.degree = degree;
    options.features = 1;
    if (sl_generate_community(&options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

/* Every degree's coefficient against the mean of its vertices: exact where that is promised. */
static void assert_coefficients(const struct sl_csr *a, double *worst)
{
    struct sl_clustering c;
    double *local = count_triangles(a), sum = 0.0, vertices = 0.0;
    assert_int_equal(sl_clustering_compute(a, 5, 2, &c), SL_OK);
    assert_int_equal(c.first[0], 0);
    assert_int_equal(c.first[c.max_degree + 1], a->rows);
    for (int64_t d = 0; d <= c.max_degree; d++) {
        double mean = 0.0;
        const double count = (double)(c.first[d + 1] - c.first[d]);
        for (int64_t k = c.first[d]; k < c.first[d + 1]; k++) {
            assert_int_equal(degree_of(a, c.vertices[k]), d);
            mean += local[c.vertices[k]] / count;
        }
        const double error = fabs(c.coefficient[d] - mean);
        assert_true(error < (count * (double)(d * (d - 1)) / 2.0 <= 2048 ? 1e-9 : 0.045));
        *worst = error > *worst ? error : *worst;
        sum += d > 1 ? count * mean : 0.0;
        vertices += d > 1 ? count : 0.0;
    }
    assert_near(sl_clustering_mean(&c), sum / vertices, 0.01);
    free(local);
    sl_clustering_free(&c);
}

SL_TEST(test_coefficients)
{
    const struct {
        int64_t vertices;
        double degree;
        bool sampled;
    } graphs[] = {{60, 3, false}, {400, 5, false}, {3000, 20, true}};
    for (int k = 0; k < 3; k++) {
        struct sl_dataset data;
        double worst = 0.0;
        community(graphs[k].vertices, graphs[k].degree, &data);
        assert_coefficients(&data.adjacency, &worst);
        assert_int_equal(worst > 1e-9, graphs[k].sampled);
        sl_dataset_close(&data);
    }
}

/* Samples look at all pairs: 3000 stars of four rays, the first two of which are joined. */
SL_TEST(test_samples)
{
    static const int edges[][2] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}};
    struct sl_triples triples = {0};
    struct sl_block *blocks = NULL;
    struct sl_csr graph;
    struct sl_clustering c;
    int64_t merged = 0;
    for (int64_t v = 0; v < 15000; v += 5)
        for (int e = 0; e < 5; e++) {
            assert_int_equal(sl_triples_add(&triples, v + edges[e][0], v + edges[e][1], 1), SL_OK);
            assert_int_equal(sl_triples_add(&triples, v + edges[e][1], v + edges[e][0], 1), SL_OK);
        }
    assert_int_equal(sl_csr_build(&triples, 15000, 15000, &blocks, &graph, &merged), SL_OK);
    assert_int_equal(sl_clustering_compute(&graph, 5, 2, &c), SL_OK);
    assert_int_equal(c.max_degree, 4);
    assert_near(c.coefficient[2], 1.0, 0.0);
    assert_near(c.coefficient[4], 1.0 / 6.0, 0.035);
    sl_clustering_free(&c);
    sl_triples_free(&triples);
    sl_block_free_all(&blocks);
}

SL_TEST(test_threads_change_no_coefficient)
{
    struct sl_dataset data;
    struct sl_clustering one, many;
    community(3000, 20, &data);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 5, 1, &one), SL_OK);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 5, 4, &many), SL_OK);
    assert_memory_equal(one.coefficient, many.coefficient,
                        (size_t)(one.max_degree + 1) * sizeof *one.coefficient);
    sl_clustering_free(&many);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 6, 4, &many), SL_OK);
    assert_memory_not_equal(one.coefficient, many.coefficient,
                            (size_t)(one.max_degree + 1) * sizeof *one.coefficient);
    sl_clustering_free(&many);
    sl_clustering_free(&one);
    sl_dataset_close(&data);
}

/* The first graph is a triangle with a tail. Its vertices have 1 of 1, 1 of 1, 1 of 3 and 0 of 1
 * pairs of neighbours joined. */
static void test_statistics(void **state)
{
    const struct {
        const char *text;
        double clustering;
    } graphs[] = {
        {"0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 3\n3 2\n3 4\n4 3\n", (1.0 + 1.0 + 1.0 / 3.0 + 0.0) / 4},
        {"0 1\n1 0\n0 3\n3 0\n2 3\n3 2\n", 0.0}, /* 1 is not joined to 3, the next row is */
        {"0 1\n1 0\n", NAN},
        {"0 1\n1 2\n0 2\n", NAN},
        {"0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 2\n", NAN},
    };
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        struct sl_dataset data;
        struct sl_graph_statistics s;
        open_ok(files_text(*state, "graph.txt", graphs[k].text), &data);
        assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
        if (isnan(graphs[k].clustering))
            assert_true(isnan(s.clustering));
        else
            assert_near(s.clustering, graphs[k].clustering, 1e-9);
        sl_graph_statistics_free(&s);
        sl_dataset_close(&data);
    }
}

/* --- Graphs that keep degrees and clustering --- */

static void add_edge(struct sl_triples *triples, int64_t u, int64_t v, bool both)
{
    assert_int_equal(sl_triples_add(triples, u, v, 2.5f), SL_OK);
    if (both)
        assert_int_equal(sl_triples_add(triples, v, u, 2.5f), SL_OK);
}

static void make_dataset(struct sl_triples *triples, int64_t n, bool symmetric,
                         struct sl_dataset *data)
{
    int64_t merged = 0;
    *data = (struct sl_dataset){.vertices = n, .symmetric = symmetric};
    assert_int_equal(sl_dataset_name(data, "source"), SL_OK);
    assert_int_equal(sl_csr_build(triples, n, n, &data->blocks, &data->adjacency, &merged), SL_OK);
    sl_triples_free(triples);
}

/* Cliques of 3 to 40 vertices that lack a tenth of their edges and have 0.4 times as many to
 * anywhere, and ten vertices without any. `messy`: the same graph with each edge in one direction,
 * weights, and loops. */
static void cliques(bool messy, struct sl_dataset *data)
{
    enum { N = 6000, JOINED = N - 10 };
    const uint64_t key = sl_rng_key(3, SL_RNG_GENERATE, 0, 99);
    struct sl_triples triples = {.weighted = messy};
    uint32_t number = 0;
    for (int64_t first = 0, size; first < JOINED; first += size) {
        const double u = sl_rng_uniform(key, number++, 0);
        size = 3 + (int64_t)(38.0 * u * u);
        for (int64_t v = first; v < first + size && v < JOINED; v++) {
            for (int64_t w = first; w < v; w++, number++) {
                const int64_t far = (int64_t)(JOINED * sl_rng_uniform(key, number, 2));
                if (sl_rng_uniform(key, number, 0) < 0.9)
                    add_edge(&triples, v, w, !messy);
                if (far != v && sl_rng_uniform(key, number, 1) < 0.4)
                    add_edge(&triples, v, far, !messy);
            }
            if (messy && v % 3 == 0)
                add_edge(&triples, v, v, false);
        }
    }
    make_dataset(&triples, N, !messy, data);
}

static void bter(const struct sl_dataset *from, double scale, uint64_t seed, int64_t threads,
                 struct sl_dataset *data)
{
    const struct sl_bter_options options = {from, scale, 3, 4, seed, threads};
    if (sl_generate_bter(&options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

static double mean_degree(const struct sl_dataset *data)
{
    return (double)entries(data) / (double)data->vertices;
}

/* The clustering of a graph that joins vertices by their degrees alone (Chung, Lu; as in Newman,
 * "Random graphs as models of networks", 2003). */
static double clustering_by_degrees(const struct sl_csr *a)
{
    double pairs = 0.0;
    const double sum = (double)a->indptr[a->rows];
    for (int64_t v = 0; v < a->rows; v++)
        pairs += (double)degree_of(a, v) * (double)(degree_of(a, v) - 1);
    return pairs * pairs / (sum * sum * sum);
}

enum { OCTAVES = 16 };

struct profile {
    double vertices[OCTAVES], clustering[OCTAVES]; /* by octaves of degree / scale; means */
    double all;                                    /* mean over vertices with pairs */
};

static struct profile profile_of(const struct sl_csr *a, double scale)
{
    struct profile p = {{0}, {0}, 0.0};
    double *local = count_triangles(a), vertices = 0.0;
    for (int64_t v = 0; v < a->rows; v++) {
        const double degree = (double)degree_of(a, v);
        if (degree < 2.0)
            continue;
        const int octave = (int)fmax(log2(degree / scale + 1e-9), 0.0);
        p.vertices[octave]++;
        p.clustering[octave] += local[v];
        p.all += local[v];
        vertices++;
    }
    for (int o = 0; o < OCTAVES; o++)
        p.clustering[o] /= fmax(p.vertices[o], 1.0);
    p.all /= vertices;
    free(local);
    return p;
}

/* The mean coefficient in every octave that has many vertices, within 0.04. */
static void assert_same_clustering(const struct sl_csr *from, const struct sl_csr *to, double scale)
{
    const struct profile wanted = profile_of(from, 1.0), found = profile_of(to, scale);
    int octaves = 0;
    for (int o = 0; o < OCTAVES; o++) {
        if (fmin(wanted.vertices[o], found.vertices[o]) < 500.0)
            continue;
        assert_near(found.clustering[o], wanted.clustering[o], 0.04);
        octaves++;
    }
    assert_true(octaves >= 3);
    assert_true(wanted.all > 0.4 && clustering_by_degrees(from) < 0.02);
    assert_near(found.all, wanted.all, 0.02);
    print_message("scale %g: clustering %.3f of %.3f\n", scale, found.all, wanted.all);
}

/* Compare the shares of vertices with a degree of at most x times the scale, for all x. Degrees
 * grow by `scale`: on average within 3 % in each octave of degrees. */
static void assert_same_degrees(const struct sl_csr *from, const struct sl_csr *to, double scale,
                                double tolerance)
{
    double octave_from[OCTAVES] = {0}, octave_to[OCTAVES] = {0};
    for (int64_t x = 0; x < 100; x++) {
        double below_from = 0.0, below_to = 0.0;
        for (int64_t v = 0; v < from->rows; v++) {
            below_from += degree_of(from, v) <= x;
            below_to += (double)degree_of(to, v) <= scale * ((double)x + 0.5);
        }
        assert_near(below_to / (double)from->rows, below_from / (double)from->rows, tolerance);
    }
    for (int64_t v = 0; v < from->rows; v++) {
        const int octave = (int)log2((double)degree_of(from, v) + 1.0);
        octave_from[octave] += (double)degree_of(from, v) * scale;
        octave_to[octave] += (double)degree_of(to, v);
    }
    for (int o = 0; o < OCTAVES; o++)
        if (octave_from[o] > 3000.0 * scale)
            assert_near(octave_to[o] / octave_from[o], 1.0, 0.03);
    assert_near(octave_to[0], 0.0, 0.0);
}

static void test_profile_is_kept(void **state)
{
    struct sl_dataset from, data;
    const struct {
        double scale, tolerance;
    } cases[] = {{1.0, 0.06}, {4.0, 0.04}};
    cliques(false, &from);
    for (int k = 0; k < 2; k++) {
        bter(&from, cases[k].scale, 1, 0, &data);
        assert_int_equal(data.vertices, from.vertices);
        assert_int_equal(data.features, 3);
        assert_int_equal(data.classes, 4);
        assert_simple(&data);
        assert_same_clustering(&from.adjacency, &data.adjacency, cases[k].scale);
        assert_same_degrees(&from.adjacency, &data.adjacency, cases[k].scale, cases[k].tolerance);
        sl_dataset_close(&data);
    }
    bter(&from, 2.0, 1, 0, &data);
    assert_string_equal(data.name, "bter source 2");
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
    sl_dataset_close(&from);
}

/* Up to a thirteenth of all that there could be. */
SL_TEST(test_scale_multiplies_edges)
{
    struct sl_dataset from, data;
    cliques(false, &from);
    for (double scale = 0.5; scale <= 16.0; scale *= 2.0) {
        bter(&from, scale, 1, 0, &data);
        assert_near(mean_degree(&data) / mean_degree(&from) / scale, 1.0, 0.015);
        sl_dataset_close(&data);
    }
    sl_dataset_close(&from);
}

SL_TEST(test_directions_weights_and_loops_are_ignored)
{
    struct sl_dataset from, messy, one, other;
    cliques(false, &from);
    cliques(true, &messy);
    assert_true(entries(&messy) < entries(&from) && messy.adjacency.values);
    bter(&from, 1.0, 1, 0, &one);
    bter(&messy, 1.0, 1, 0, &other);
    assert_same_csr(&one.adjacency, &other.adjacency);
    sl_dataset_close(&from);
    sl_dataset_close(&messy);
    sl_dataset_close(&one);
    sl_dataset_close(&other);
}

SL_TEST(test_threads_change_nothing)
{
    struct sl_dataset from, one, many;
    cliques(false, &from);
    bter(&from, 2.0, 5, 1, &one);
    for (int64_t threads = 2; threads < 9; threads += 3) {
        bter(&from, 2.0, 5, threads, &many);
        assert_same_dataset(&one, &many);
        sl_dataset_close(&many);
    }
    bter(&from, 2.0, 6, 2, &many);
    assert_memory_not_equal(one.adjacency.indices, many.adjacency.indices, 10000);
    assert_memory_not_equal(one.labels, many.labels, 10000);
    sl_dataset_close(&many);
    sl_dataset_close(&one);
    sl_dataset_close(&from);
}

/* A dense graph has triangles by chance, too. */
SL_TEST(test_triangles_by_chance_count)
{
    struct sl_dataset from, data;
    community(3000, 20, &from);
    bter(&from, 16.0, 1, 0, &data);
    const double wanted = profile_of(&from.adjacency, 1.0).all;
    assert_true(clustering_by_degrees(&data.adjacency) > 0.08);
    assert_near(profile_of(&data.adjacency, 16.0).all, wanted, 0.02);
    sl_dataset_close(&data);
    sl_dataset_close(&from);
}

enum { ODD = 3000 };

/* So many centres are joined to all other vertices, which form cliques of that size. */
static void make_odd(int64_t centres, int64_t clique, struct sl_dataset *data)
{
    struct sl_triples triples = {0};
    for (int64_t v = centres; v < ODD; v++) {
        for (int64_t u = 0; u < centres; u++)
            add_edge(&triples, u, v, true);
        for (int64_t u = v - (v - centres) % clique; u < v; u++)
            add_edge(&triples, u, v, true);
    }
    make_dataset(&triples, ODD, true, data);
}

/* Graphs whose shape blocks and edges to anywhere cannot have still give a graph of the right
 * density. In fans, centres are joined to all pairs of a matching: blocks could make all triangles,
 * but nothing would be left for the degrees of the centres. */
SL_TEST(test_odd_graphs)
{
    static const struct {
        const char *name;
        int64_t centres, clique;
    } graphs[] = {
        {"star", 1, 1}, {"two stars", 2, 1},  {"matching", 0, 2},
        {"fan", 1, 2},  {"three fans", 3, 2}, {"cliques", 0, 30},
    };
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++)
        for (double scale = 1.0; scale < 20.0; scale *= 9.0) {
            struct sl_dataset from, data;
            make_odd(graphs[g].centres, graphs[g].clique, &from);
            bter(&from, scale, 1, 0, &data);
            assert_simple(&data);
            print_message("%s, scale %g\n", graphs[g].name, scale);
            assert_near(mean_degree(&data) / mean_degree(&from) / scale, 1.0, 0.04);
            sl_dataset_close(&data);
            sl_dataset_close(&from);
        }
}

/* Neighbours are close together by number no more than by chance. */
SL_TEST(test_order_is_random)
{
    struct sl_dataset from, data;
    double close = 0.0;
    make_odd(0, 30, &from);
    bter(&from, 1.0, 1, 0, &data);
    for (int64_t v = 0; v < ODD; v++)
        for (int64_t k = data.adjacency.indptr[v]; k < data.adjacency.indptr[v + 1]; k++)
            close += llabs(v - data.adjacency.indices[k]) < 30;
    assert_near(close / (double)entries(&data), 2.0 * 30.0 / ODD, 0.01);
    sl_dataset_close(&data);
    sl_dataset_close(&from);
}

SL_TEST(test_refusals)
{
    struct sl_dataset community_graph, none, loops;
    struct sl_triples triples = {0};
    make_dataset(&triples, 7, true, &none);
    add_edge(&triples, 3, 3, false);
    make_dataset(&triples, 7, true, &loops);
    community(400, 5, &community_graph);
    const struct {
        struct sl_bter_options options;
        int code;
        const char *says;
    } refused[] = {
        {{&community_graph, 0.0, 1, 1, 1, 1}, SL_ERR_USAGE, "scale is 0, expected above 0"},
        {{&community_graph, -1.0, 1, 1, 1, 1}, SL_ERR_USAGE, "scale is -1"},
        {{&community_graph, NAN, 1, 1, 1, 1}, SL_ERR_USAGE, "scale is nan"},
        {{&community_graph, INFINITY, 1, 1, 1, 1}, SL_ERR_USAGE, "scale is inf"},
        {{&community_graph, 50.0, 1, 1, 1, 1}, SL_ERR_USAGE, "scale 50 makes the average degree 2"},
        {{&community_graph, 1.0, 0, 1, 1, 1}, SL_ERR_USAGE, "features is 0"},
        {{&community_graph, 1.0, 1, -3, 1, 1}, SL_ERR_USAGE, "classes is -3"},
        {{&none, 1.0, 1, 1, 1, 1}, SL_ERR_DATA, "source: has no edges"},
        {{&loops, 1.0, 1, 1, 1, 1}, SL_ERR_DATA, "source: has no edges"},
    };
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct sl_dataset data;
        assert_int_equal(sl_generate_bter(&refused[k].options, &data), refused[k].code);
        if (!strstr(sl_error_message(), refused[k].says))
            fail_msg("%s", sl_error_message());
        assert_null(data.blocks);
    }
    sl_dataset_close(&community_graph);
    sl_dataset_close(&none);
    sl_dataset_close(&loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coefficients),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_threads_change_no_coefficient),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_profile_is_kept),
        cmocka_unit_test(test_scale_multiplies_edges),
        cmocka_unit_test(test_directions_weights_and_loops_are_ignored),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_triangles_by_chance_count),
        cmocka_unit_test(test_odd_graphs),
        cmocka_unit_test(test_order_is_random),
        cmocka_unit_test(test_refusals),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
