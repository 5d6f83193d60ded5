/* Imitate published datasets by the rows of a table. Classes consist of communities. A vertex draws
 * its degree from the row's law. The row's share of its edges goes to its community, the rest
 * anywhere. Its features lie around the centre of its class. */
#include "data/generate/generate_like.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/degrees.h"
#include "data/generate/draw_graph.h"
#include "data/generate/draw_vertices.h"

/* Published: vertices, adjacency entries (both directions of an edge), features, classes and
 * splits, and the largest degree and homophily as reported. Chosen: `shape`, for which the law of
 * degrees reaches about the largest degree by itself; `community`; `skew`, by which the largest
 * class has about its published share. Also chosen: `signal`, with which features alone say little
 * and neighbours much. MAG has vertices of one type here, and each edge has one of four
 * relations at random; the reverse of the edge has another relation. Proteins (CAGNET: Tripathy,
 * Yelick, Buluc, SC'20) has no features, labels or reported largest degree to imitate. It gets the
 * usual 60/20/20 split. Nearly all its edges stay within communities, like the protein families
 * that make its partitions so good (DistGNN, table 4). */
static const struct row {
    const char *name;
    int64_t vertices, entries, features, classes;
    int64_t train, val, test; /* vertices without a split have no label */
    double max_degree, shape; /* arguments of sl_degree_law_make */
    double inside;            /* share of edges within communities: homophily or a little less */
    double community;         /* vertices of a community; at most a class */
    double skew;              /* class c has a share proportional to (c + 1)^-skew */
    double signal;            /* length of a class centre; noise is 1 in each column */
    int64_t relations;        /* of edges, and as many of their reverses; 0: edges have none */
} rows[] = {
    {"reddit", 232965, 114615892, 602, 41, 153431, 23831, 55703, .max_degree = 21657, .shape = 5.0,
     .inside = 0.75, .community = 6000, .skew = 0.8, .signal = 1.0},
    {"products", 2449029, 123718280, 100, 47, 196615, 39323, 2213091, .max_degree = 17481,
     .shape = 2.9, .inside = 0.79, .community = 1000, .skew = 1.1, .signal = 0.9},
    {"proteins", 8745542, 1309240502, 128, 256, 5247326, 1749108, 1749108, .max_degree = 25000,
     .shape = 4.0, .inside = 0.97, .community = 1000, .skew = 0.0, .signal = 1.0},
    {"arxiv", 169343, 2315598, 128, 40, 90941, 29799, 48603, .max_degree = 13161, .shape = 1.8,
     .inside = 0.65, .community = 500, .skew = 0.9, .signal = 1.4},
    {"papers", 111059956, 1615685872, 128, 172, 1207179, 125265, 214338, .max_degree = 251471,
     .shape = 1.9, .inside = 0.55, .community = 1000, .skew = 0.6, .signal = 1.4},
    {"mag", 1939743, 42222014, 128, 349, 629571, 64879, 41939, .max_degree = 50000, .shape = 2.0,
     .inside = 0.4, .community = 500, .skew = 0.6, .signal = 1.4, .relations = 4},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* Sub-streams of SL_RNG_GENERATE, so that no choice depends on another. */
enum stream { CLASSES = 16, RANKS, SPLITS, INSIDE, ANYWHERE, CENTRES, NOISE, RELATIONS };

struct recipe {
    const struct row *row;
    int64_t vertices;
    uint64_t seed;
    int threads;
    int64_t train, val, test;
    struct sl_degree_law law;
    int64_t *class_first;           // (classes + 1): places of a class in random order
    int64_t *community_first;       // (classes + 1): communities of a class
    struct sl_weight_curve *inside; // (classes)
    struct sl_weight_curve *anywhere;
    int32_t *community;                     // (vertices)
    float *inside_weight, *anywhere_weight; // (vertices)
    uint8_t *split;                         // (vertices): enum sl_split
    int32_t *labels;                        // (vertices)
    float *centres, *x;                     // (classes, features), (vertices, features)
    struct sl_block *scratch;
};

static uint64_t stream_key(const struct recipe *r, enum stream stream)
{
    return sl_rng_key(r->seed, SL_RNG_GENERATE, 0, (uint32_t)stream);
}

/* Return the place of vertex v in the random order of a stream. */
static int64_t permute(const struct recipe *r, enum stream stream, int64_t v)
{
    return sl_rng_permute(stream_key(r, stream), (uint32_t)r->vertices, (uint32_t)v);
}

/* Return the range of `first` (ranges + 1) that holds `value`. */
static int64_t find_range(const int64_t *first, int64_t ranges, int64_t value)
{
    int64_t low = 0, high = ranges;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (first[middle] <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- Options --- */

static int refuse_name(const char *name)
{
    char list[128] = "";
    for (int i = 0; i < ROWS; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                 rows[i].name);
    struct sl_guess guess = sl_guess_begin(name ? name : "");
    sl_guess_consider_list(&guess, list, ", ");
    return sl_error(SL_ERR_USAGE, "name is \"%s\", expected one of: %s%s", guess.typed, list,
                    sl_guess_hint(&guess).text);
}

/* Return the row of a dataset; NULL: there is none. */
static const struct row *find_row(const char *name)
{
    for (int i = 0; name && i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static int choose(const struct sl_like_options *o, struct recipe *r)
{
    const struct row *row = find_row(o->name);
    if (!row)
        return refuse_name(o->name);
    if (!(o->scale > 0.0 && o->scale <= 1.0))
        return sl_error(SL_ERR_USAGE, "scale is %g, expected above 0 and at most 1", o->scale);
    const double all = (double)row->vertices, degree = (double)row->entries / all;
    const int64_t room = (int64_t)ceil(4.0 * degree);
    const int64_t least = room > row->classes ? room : row->classes;
    *r = (struct recipe){.row = row,
                         .vertices = llround(o->scale * all),
                         .seed = o->seed,
                         .threads = sl_parallel_threads(o->threads)};
    if (r->vertices < least || r->vertices > INT32_MAX)
        return sl_error(SL_ERR_USAGE,
                        "scale %g leaves %" PRId64 " vertices of %s, expected %" PRId64
                        " (four times the average degree, and one per class) to 2^31 - 1",
                        o->scale, r->vertices, row->name, least);
    r->law = sl_degree_law_make(degree, row->shape,
                                fmin(row->max_degree, (double)(r->vertices - 1) / 2.0));
    r->train = llround(o->scale * (double)row->train);
    r->val = llround(o->scale * (double)row->val);
    r->test = row->train + row->val + row->test == row->vertices
                  ? r->vertices - r->train - r->val
                  : llround(o->scale * (double)row->test);
    return SL_OK;
}

/* --- Classes, communities, weights --- */

/* Choose the sizes of classes; every class has at least one vertex. */
static void size_classes(struct recipe *r)
{
    const int64_t classes = r->row->classes;
    double total = 0.0, sum = 0.0;
    for (int64_t c = 0; c < classes; c++)
        total += pow((double)(c + 1), -r->row->skew);
    r->class_first[0] = r->community_first[0] = 0;
    for (int64_t c = 0; c < classes; c++) {
        sum += pow((double)(c + 1), -r->row->skew);
        r->class_first[c + 1] = c + 1 + llround((double)(r->vertices - classes) * sum / total);
        const int64_t size = r->class_first[c + 1] - r->class_first[c];
        const int64_t parts = llround((double)size / r->row->community);
        r->community_first[c + 1] = r->community_first[c] + (parts > 0 ? parts : 1);
    }
}

static double community_size(const struct recipe *r, int64_t c)
{
    return (double)(r->class_first[c + 1] - r->class_first[c]) /
           (double)(r->community_first[c + 1] - r->community_first[c]);
}

/* Return how many neighbours of a vertex are inside its community: at most 70 % of the members, for
 * small communities and large degrees. */
static double degree_inside(const struct recipe *r, int64_t c, double degree)
{
    return fmin(r->row->inside * degree, 0.7 * (community_size(r, c) - 1.0));
}

/* Add the vertices of a class to the weight curves, in slices of their degrees: four slices per
 * octave of the tail. */
static void fit_class(struct recipe *r, int64_t c)
{
    const double size = community_size(r, c);
    const double vertices = (double)(r->class_first[c + 1] - r->class_first[c]);
    const double last = 0.5 / (double)r->vertices;
    for (double high = 1.0; high > 0.0;) {
        const double low = high > last ? high * 0.8408964 : 0.0;
        const double degree = sl_degree_law_at(&r->law, (low + high) / 2.0);
        const double inside = degree_inside(r, c, degree);
        sl_weight_curve_add(&r->inside[c], inside, size * (high - low));
        sl_weight_curve_add(r->anywhere, degree - inside, vertices * (high - low));
        high = low;
    }
}

static void solve_class(void *context, int64_t c)
{
    struct recipe *r = context;
    sl_weight_curve_solve(c < r->row->classes ? &r->inside[c] : r->anywhere);
}

static void fit_weights(struct recipe *r)
{
    const int64_t classes = r->row->classes;
    r->anywhere = &r->inside[classes];
    memset(r->inside, 0, (size_t)(classes + 1) * sizeof *r->inside);
    for (int64_t c = 0; c < classes; c++)
        fit_class(r, c);
    sl_parallel_for(r->threads, classes + 1, solve_class, r);
}

static enum sl_split split_of(const struct recipe *r, int64_t rank)
{
    if (rank < r->train)
        return SL_SPLIT_TRAIN;
    if (rank < r->train + r->val)
        return SL_SPLIT_VAL;
    return rank < r->train + r->val + r->test ? SL_SPLIT_TEST : SL_SPLIT_NONE;
}

static void make_vertex(struct recipe *r, int64_t v)
{
    const int64_t at = permute(r, CLASSES, v);
    const int64_t c = find_range(r->class_first, r->row->classes, at);
    const int64_t size = r->class_first[c + 1] - r->class_first[c];
    const int64_t parts = r->community_first[c + 1] - r->community_first[c];
    const double tail = ((double)permute(r, RANKS, v) + 0.5) / (double)r->vertices;
    const double degree = sl_degree_law_at(&r->law, tail), inside = degree_inside(r, c, degree);
    r->community[v] = (int32_t)(r->community_first[c] + (at - r->class_first[c]) * parts / size);
    r->inside_weight[v] = (float)sl_weight_curve_at(&r->inside[c], inside);
    r->anywhere_weight[v] = (float)sl_weight_curve_at(r->anywhere, degree - inside);
    r->split[v] = (uint8_t)split_of(r, permute(r, SPLITS, v));
    r->labels[v] = r->split[v] == SL_SPLIT_NONE ? -1 : (int32_t)c;
}

static void make_vertices(void *context, int64_t begin, int64_t end)
{
    for (int64_t v = begin; v < end; v++)
        make_vertex(context, v);
}

static int prepare(struct recipe *r, struct sl_dataset *out)
{
    const int64_t n = r->vertices, classes = r->row->classes;
    r->class_first = sl_block_array(&r->scratch, classes + 1, sizeof *r->class_first);
    r->community_first = sl_block_array(&r->scratch, classes + 1, sizeof *r->community_first);
    r->inside = sl_block_array(&r->scratch, classes + 1, sizeof *r->inside);
    r->community = sl_block_array(&r->scratch, n, sizeof *r->community);
    r->inside_weight = sl_block_array(&r->scratch, n, sizeof *r->inside_weight);
    r->anywhere_weight = sl_block_array(&r->scratch, n, sizeof *r->anywhere_weight);
    r->split = sl_block_array(&r->scratch, n, sizeof *r->split);
    r->labels = sl_block_array(&out->blocks, n, sizeof *r->labels);
    if (!r->class_first || !r->community_first || !r->inside || !r->community ||
        !r->inside_weight || !r->anywhere_weight || !r->split || !r->labels)
        return SL_ERR_SYSTEM;
    size_classes(r);
    fit_weights(r);
    sl_progress_phase("vertices");
    sl_parallel_for_ranges(r->threads, n, make_vertices, r);
    out->labels = r->labels;
    return SL_OK;
}

/* --- Graph, features --- */

static int draw_graph(const struct recipe *r, struct sl_dataset *out)
{
    const struct sl_draw_graph graph = {
        .vertices = r->vertices,
        .communities = r->community_first[r->row->classes],
        .community = r->community,
        .inside = r->inside_weight,
        .anywhere = r->anywhere_weight,
        .inside_key = stream_key(r, INSIDE),
        .anywhere_key = stream_key(r, ANYWHERE),
        .threads = r->threads,
    };
    return sl_graph_draw(&graph, &out->blocks, &out->adjacency);
}

/* Relations of a graph's edges. */
struct relations {
    const struct sl_csr *adjacency;
    int64_t count;
    uint64_t key;
    float *edge; // (entries)
};

static void draw_rows(void *context, int64_t begin, int64_t end)
{
    const struct recipe *r = context;
    const int64_t f = r->row->features;
    const uint64_t key = stream_key(r, NOISE);
    for (int64_t v = begin; v < end; v++) {
        const int64_t c = find_range(r->community_first, r->row->classes, r->community[v]);
        sl_draw_normals(key, v, f, r->centres + c * f, 1.0f, r->x + v * f);
    }
}

static int draw_features(struct recipe *r, struct sl_dataset *out)
{
    const int64_t f = r->row->features;
    r->centres = sl_block_array(&r->scratch, r->row->classes, (size_t)f * sizeof *r->centres);
    r->x = sl_block_array(&out->blocks, r->vertices, (size_t)f * sizeof *r->x);
    if (!r->centres || !r->x)
        return SL_ERR_SYSTEM;
    const float sd = (float)(r->row->signal / sqrt((double)f));
    for (int64_t c = 0; c < r->row->classes; c++)
        sl_draw_normals(stream_key(r, CENTRES), c, f, NULL, sd, r->centres + c * f);
    sl_progress_phase("features");
    sl_parallel_for_ranges(r->threads, r->vertices, draw_rows, r);
    out->features_dense = r->x;
    return SL_OK;
}

/* An edge to a vertex of a higher number has relation k, and its reverse relations + k. */
static void draw_relations_of_rows(void *context, int64_t begin, int64_t end)
{
    const struct relations *d = context;
    const struct sl_csr *a = d->adjacency;
    for (int64_t v = begin; v < end; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            const int64_t u = a->indices[e], low = u < v ? u : v, high = u < v ? v : u,
                          k = sl_rng_bits(d->key, (uint32_t)low, (uint32_t)high) % d->count;
            d->edge[e] = (float)(u < v ? k : d->count + k);
        }
}

static int draw_relations(const struct recipe *r, struct sl_dataset *out)
{
    const struct sl_csr *a = &out->adjacency;
    struct relations d = {.adjacency = a,
                          .count = r->row->relations,
                          .key = stream_key(r, RELATIONS),
                          .edge = sl_block_array(&out->blocks, a->indptr[a->rows], sizeof(float))};
    if (!d.edge)
        return SL_ERR_SYSTEM;
    sl_progress_phase("relations");
    sl_parallel_for_ranges(r->threads, a->rows, draw_relations_of_rows, &d);
    out->edge = d.edge;
    out->edge_features = 1;
    out->relations = 2 * d.count;
    out->symmetric = false;
    return SL_OK;
}

static int describe(const struct recipe *r, double scale, struct sl_dataset *out)
{
    out->vertices = r->vertices;
    out->features = r->row->features;
    out->classes = r->row->classes;
    out->feature_form = SL_FEATURES_DENSE;
    out->symmetric = true;
    return sl_dataset_name(out, "like %s %g", r->row->name, scale);
}

int sl_generate_like(const struct sl_like_options *options, struct sl_dataset *out)
{
    *out = (struct sl_dataset){0};
    struct recipe r = {0};
    int rc = choose(options, &r);
    if (!rc)
        rc = describe(&r, options->scale, out);
    if (!rc)
        rc = prepare(&r, out);
    if (!rc)
        rc = draw_graph(&r, out);
    if (!rc && r.row->relations > 0)
        rc = draw_relations(&r, out);
    if (!rc)
        rc = sl_draw_list_splits(r.split, out);
    if (!rc)
        rc = draw_features(&r, out);
    sl_block_free_all(&r.scratch);
    if (rc)
        sl_dataset_close(out);
    return rc;
}

/* --- Sizes --- */

int sl_like_source(const char *name, struct sl_source *out)
{
    const struct row *row = find_row(name);
    *out = (struct sl_source){0};
    if (!row)
        return refuse_name(name);
    out->name = strdup(name);
    out->path = strdup(name);
    out->vertices = row->vertices;
    out->features = row->features;
    out->classes = row->classes;
    out->feature_form = SL_FEATURES_DENSE;
    out->undirected = true;
    out->adjacency.indices.count = row->entries;
    out->relations.count = 2 * row->relations;
    return out->name && out->path ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a name");
}
