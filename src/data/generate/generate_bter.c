/* Block two-level Erdos-Renyi (Seshadhri, Kolda, Pinar, "Community structure and scale-free
 * collections of Erdos-Renyi graphs", Phys. Rev. E 85, 2012; Kolda, Pinar, Plantenga, Seshadhri,
 * "A scalable generative graph model with community structure", SISC 36, 2014):
 *
 *     degrees of `from` times the scale, and its clustering coefficients by degree
 *     vertices by rising degree, cut into affinity blocks: the d + 1 next ones, if the first has
 *         degree d
 *     a few times:
 *         each block becomes a random graph, so dense that its vertices get their triangles
 *         what blocks leave of the degrees is for edges to anywhere (Chung, Lu)
 *     both are drawn at once, as a random graph whose communities are the blocks
 *
 * Unlike in the papers, triangles that edges to anywhere close are allowed for, from the second
 * time on: these are few in sparse graphs, but most of all where degrees are multiplied. */
#include "data/generate/generate_bter.h"

#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/clustering.h"
#include "data/csr.h"
#include "data/degrees.h"
#include "data/generate/draw_graph.h"
#include "data/generate/draw_vertices.h"

/* Sub-streams of SL_RNG_GENERATE, so that no choice depends on another. */
enum stream { CLUSTERING = 48, TIES, INSIDE, ANYWHERE };

enum { ROUNDS = 5 };
static const double MOST_DENSITY = 0.999; /* in a block: hitting all pairs takes endless draws */

struct affinity {
    int64_t first, size; /* places of the block's vertices in the order of degrees */
    int64_t low, high;   /* degrees of the block's first and last vertex */
    double density;
};

struct recipe {
    const struct sl_bter_options *options;
    int threads;
    int64_t vertices;
    struct sl_csr graph; /* graph of `from` made symmetric, without loops */
    struct sl_clustering clustering;
    double factor, most; /* degree d becomes min(factor * d, most) */
    int64_t block_count;
    struct affinity *blocks;                // (block_count)
    struct sl_weight_curve anywhere;        /* targets: degrees that blocks leave */
    int32_t *community;                     // (vertices)
    float *inside_weight, *anywhere_weight; // (vertices)
    struct sl_block *scratch;
};

static uint64_t stream_key(const struct recipe *r, enum stream stream)
{
    return sl_rng_key(r->options->seed, SL_RNG_GENERATE, 0, (uint32_t)stream);
}

/* --- The graph to imitate --- */

static int drop_loops(struct sl_csr *graph, struct sl_block **blocks)
{
    const int64_t n = graph->rows;
    int64_t *indptr = sl_block_array(blocks, n + 1, sizeof *indptr), at = 0;
    int32_t *indices = sl_block_array(blocks, graph->indptr[n], sizeof *indices);
    if (!indptr || !indices)
        return SL_ERR_SYSTEM;
    for (int64_t v = 0; v < n; v++) {
        indptr[v] = at;
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            if (graph->indices[k] != v)
                indices[at++] = graph->indices[k];
    }
    indptr[n] = at;
    *graph = (struct sl_csr){n, n, indptr, indices, NULL};
    return SL_OK;
}

static int simplify(struct recipe *r)
{
    const struct sl_dataset *from = r->options->from;
    int rc = sl_csr_pattern(&from->adjacency, from->symmetric, &r->scratch, &r->graph);
    if (!rc && sl_csr_diagonal_count(&r->graph) > 0)
        rc = drop_loops(&r->graph, &r->scratch);
    if (!rc && r->graph.indptr[r->vertices] == 0)
        rc = sl_error(SL_ERR_DATA, "%s: has no edges, expected a graph to imitate", from->path);
    return rc;
}

static int64_t degree_of(const struct recipe *r, int32_t v)
{
    return r->graph.indptr[v + 1] - r->graph.indptr[v];
}

/* --- Degrees --- */

static double target_of(const struct recipe *r, int64_t degree)
{
    return fmin(r->factor * (double)degree, r->most);
}

static double sum_targets(const struct recipe *r)
{
    double sum = 0.0;
    for (int64_t d = 1; d <= r->clustering.max_degree; d++)
        sum += (double)(r->clustering.first[d + 1] - r->clustering.first[d]) * target_of(r, d);
    return sum;
}

/* Scale the degrees so that the average is as asked. No vertex may be joined to more than half of
 * the others. Where this cuts large degrees, all others grow a little more. */
static int scale_degrees(struct recipe *r)
{
    const double wanted = r->options->scale * (double)r->graph.indptr[r->vertices];
    const double connected = (double)(r->vertices - r->clustering.first[1]);
    r->most = (connected - 1.0) / 2.0;
    if (wanted > connected * r->most)
        return sl_error(SL_ERR_USAGE,
                        "scale %g makes the average degree %g, expected at most %g: half of the "
                        "vertices of %s that have edges",
                        r->options->scale, wanted / connected, r->most, r->options->from->path);
    double low = r->options->scale, high = r->most;
    r->factor = low;
    for (int step = 0; step < 60 && low < high; step++) {
        r->factor = low + (high - low) / 2.0;
        if (sum_targets(r) < wanted)
            low = r->factor;
        else
            high = r->factor;
    }
    return SL_OK;
}

/* --- Blocks --- */

/* Shuffle vertices of equal degree: their numbers must not decide the blocks. */
static void shuffle_ties(struct recipe *r)
{
    const uint64_t key = stream_key(r, TIES);
    int32_t *vertices = r->clustering.vertices;
    for (int64_t d = 1; d <= r->clustering.max_degree; d++)
        for (int64_t first = r->clustering.first[d], k = first; k < r->clustering.first[d + 1];
             k++) {
            const double u = sl_rng_uniform(key, (uint32_t)k, 0);
            const int64_t at = first + (int64_t)(u * (double)(k - first + 1));
            const int32_t moved = vertices[at];
            vertices[at] = vertices[k];
            vertices[k] = moved;
        }
}

/* Cut the next block from `first` on. A vertex without pairs of neighbours is a block alone. */
static struct affinity cut_block(const struct recipe *r, int64_t first)
{
    const int32_t *vertices = r->clustering.vertices;
    const int64_t low = degree_of(r, vertices[first]), left = r->vertices - first;
    const double target = target_of(r, low);
    const int64_t wanted = target < 2.0 ? 1 : (int64_t)target + 1;
    const int64_t size = wanted < left ? wanted : left;
    return (struct affinity){first, size, low, degree_of(r, vertices[first + size - 1]), 0.0};
}

static int cut_blocks(struct recipe *r)
{
    for (int64_t first = 0; first < r->vertices; first += cut_block(r, first).size)
        r->block_count++;
    r->blocks = sl_block_array(&r->scratch, r->block_count, sizeof *r->blocks);
    if (!r->blocks)
        return SL_ERR_SYSTEM;
    for (int64_t b = 0, first = 0; b < r->block_count; first += r->blocks[b++].size)
        r->blocks[b] = cut_block(r, first);
    return SL_OK;
}

/* Return how many vertices of the block have this degree. */
static double count_vertices(const struct recipe *r, const struct affinity *block, int64_t degree)
{
    const int64_t *first = r->clustering.first, end = block->first + block->size;
    const int64_t from = first[degree] > block->first ? first[degree] : block->first;
    const int64_t to = first[degree + 1] < end ? first[degree + 1] : end;
    return (double)(to - from);
}

/* Return how many more pairs of neighbours are joined at `density` than should be, over the block's
 * vertices. Each pair counts both ways. */
static double surplus(const struct recipe *r, const struct affinity *block, double density)
{
    const double mates = (double)(block->size - 1), inside = density * mates;
    double sum = 0.0;
    for (int64_t d = block->low; d <= block->high; d++) {
        const double count = count_vertices(r, block, d), target = target_of(r, d);
        const double outside = fmax(target - inside, 0.0);
        if (count > 0.0)
            sum += count * (inside * (mates - 1.0) * density * density +
                            2.0 * inside * outside * sl_weight_curve_near(&r->anywhere, outside) +
                            outside * outside * sl_weight_curve_far(&r->anywhere, outside) -
                            target * (target - 1.0) * r->clustering.coefficient[d]);
    }
    return sum;
}

/* Choose the largest density without surplus; where there is always a surplus, take the density of
 * the smallest surplus. */
static void choose_density(void *context, int64_t b)
{
    enum { STEPS = 32, HALVINGS = 20 };
    struct recipe *r = context;
    struct affinity *block = &r->blocks[b];
    double low = 0.0, high = MOST_DENSITY, least = INFINITY;
    if (block->size < 3)
        return;
    for (int step = STEPS; step >= 0 && least > 0.0; step--) {
        const double density = MOST_DENSITY * step / STEPS, sum = surplus(r, block, density);
        if (sum < least) {
            least = sum;
            low = density;
            high = fmin(density + MOST_DENSITY / STEPS, MOST_DENSITY);
        }
    }
    for (int halving = 0; halving < HALVINGS && least <= 0.0; halving++) {
        const double middle = low + (high - low) / 2.0;
        if (surplus(r, block, middle) <= 0.0)
            low = middle;
        else
            high = middle;
    }
    block->density = low;
}

/* Return the degree that edges to anywhere must give a vertex of degree `target`. Some of these
 * edges join the vertex to its block, too. */
static double excess_of(const struct recipe *r, const struct affinity *block, double target)
{
    const double mates = (double)(block->size - 1);
    const double weight = sl_weight_curve_at(&r->anywhere, target - block->density * mates);
    const double by_chance = -expm1(-weight * weight);
    return fmax(target - fmax(block->density - by_chance, 0.0) * mates, 0.0);
}

static void fit_anywhere(struct recipe *r)
{
    struct sl_weight_curve curve = {0};
    for (int64_t b = 0; b < r->block_count; b++)
        for (int64_t d = r->blocks[b].low; d <= r->blocks[b].high; d++)
            sl_weight_curve_add(&curve, excess_of(r, &r->blocks[b], target_of(r, d)),
                                count_vertices(r, &r->blocks[b], d));
    sl_weight_curve_solve(&curve);
    sl_weight_curve_close(&curve);
    r->anywhere = curve;
}

static void weigh_block(void *context, int64_t b)
{
    struct recipe *r = context;
    const struct affinity *block = &r->blocks[b];
    for (int64_t k = block->first; k < block->first + block->size; k++) {
        const int32_t v = r->clustering.vertices[k];
        const double excess = excess_of(r, block, target_of(r, degree_of(r, v)));
        const double weight = sl_weight_curve_at(&r->anywhere, excess);
        r->community[v] = (int32_t)b;
        r->inside_weight[v] = (float)sqrt(fmax(-log1p(-block->density) - weight * weight, 0.0));
        r->anywhere_weight[v] = (float)weight;
    }
}

static int make_blocks(struct recipe *r)
{
    const int64_t n = r->vertices;
    shuffle_ties(r);
    const int rc = cut_blocks(r);
    r->community = sl_block_array(&r->scratch, n, sizeof *r->community);
    r->inside_weight = sl_block_array(&r->scratch, n, sizeof *r->inside_weight);
    r->anywhere_weight = sl_block_array(&r->scratch, n, sizeof *r->anywhere_weight);
    if (rc || !r->community || !r->inside_weight || !r->anywhere_weight)
        return SL_ERR_SYSTEM;
    for (int round = 0; round < ROUNDS; round++) {
        sl_parallel_for(r->threads, r->block_count, choose_density, r);
        fit_anywhere(r);
    }
    sl_parallel_for(r->threads, r->block_count, weigh_block, r);
    return SL_OK;
}

/* --- All of it --- */

static int draw_graph(const struct recipe *r, struct sl_dataset *out)
{
    const struct sl_draw_graph graph = {
        .vertices = r->vertices,
        .communities = r->block_count,
        .community = r->community,
        .inside = r->inside_weight,
        .anywhere = r->anywhere_weight,
        .inside_key = stream_key(r, INSIDE),
        .anywhere_key = stream_key(r, ANYWHERE),
        .threads = r->threads,
    };
    out->vertices = r->vertices;
    out->symmetric = true;
    return sl_graph_draw(&graph, &out->blocks, &out->adjacency);
}

static int check_options(const struct sl_bter_options *o)
{
    if (!(o->scale > 0.0 && o->scale <= 1e6))
        return sl_error(SL_ERR_USAGE, "scale is %g, expected above 0 and at most 10^6", o->scale);
    return sl_draw_check_vertices(o->features, o->classes);
}

static int imitate(struct recipe *r, struct sl_dataset *out)
{
    int rc = simplify(r);
    if (!rc)
        rc =
            sl_clustering_compute(&r->graph, stream_key(r, CLUSTERING), r->threads, &r->clustering);
    if (!rc)
        rc = scale_degrees(r);
    if (!rc)
        rc = make_blocks(r);
    if (!rc)
        rc = draw_graph(r, out);
    sl_clustering_free(&r->clustering);
    sl_block_free_all(&r->scratch);
    return rc;
}

int sl_generate_bter(const struct sl_bter_options *options, struct sl_dataset *out)
{
    *out = (struct sl_dataset){0};
    int rc = check_options(options);
    if (rc)
        return rc;
    struct recipe r = {.options = options,
                       .threads = sl_parallel_threads(options->threads),
                       .vertices = options->from->vertices};
    rc = sl_dataset_name(out, "bter %s %g", options->from->name, options->scale);
    if (!rc)
        rc = imitate(&r, out);
    if (!rc)
        rc = sl_draw_random_vertices(&(struct sl_draw_vertices){options->features, options->classes,
                                                                options->seed, r.threads},
                                     out);
    if (rc)
        sl_dataset_close(out);
    return rc;
}
