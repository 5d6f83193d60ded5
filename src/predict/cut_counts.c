#include "predict/cut_counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/cloning.h"
#include "assembly/operands.h"
#include "core/error.h"

static int no_memory(const struct sl_source *source)
{
    return sl_error(SL_ERR_SYSTEM, "%s: no memory to count the clones of %lld vertices",
                    source->path, (long long)source->vertices);
}

static int allocate(struct sl_cut_counts *c, const struct sl_source *source,
                    const struct sl_assembly *how, int ranks, int delay)
{
    *c = (struct sl_cut_counts){
        .ranks = ranks,
        .bounds = calloc((size_t)ranks + 1, sizeof *c->bounds),
        .entries = calloc((size_t)ranks, sizeof *c->entries),
        .symmetric = source->undirected,
        .has_values = source->adjacency.values.data != NULL,
    };
    const bool scaled = delay != SL_DELAY_EXACT && how->scales_partials && how->reducer->linear;
    const int code =
        sl_vertex_cut_allocate(&c->cut, delay, scaled, ranks, sl_operands_row_bytes(source, how));
    return c->bounds && c->entries ? code : no_memory(source);
}

void sl_cut_counts_destroy(struct sl_cut_counts *c)
{
    sl_vertex_cut_destroy(&c->cut);
    free(c->bounds);
    free(c->entries);
    *c = (struct sl_cut_counts){0};
}

static int bins_of(const struct sl_cut_counts *c)
{
    return c->cut.delay > 0 ? c->cut.delay : 1;
}

/* Counts become sums. */
static void settle(struct sl_cut_counts *c)
{
    for (int r = 0; r < c->ranks; r++)
        c->bounds[r + 1] += c->bounds[r];
}

static int64_t feature_entries(const struct sl_source *source, int64_t v)
{
    const struct sl_npy *indptr = &source->features_csr.indptr;
    return source->feature_form == SL_FEATURES_CSR && indptr->data
               ? sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v)
               : 1;
}

/* ---- Counted ---- */

/* A clone whose root is elsewhere. */
struct leaf {
    int32_t root, rank, bin;
};

struct counting {
    struct sl_cut_counts *c;
    const struct sl_source *source;
    const struct sl_csr *a;
    const int32_t *part; // (entries)
    bool loops;
    uint64_t seed;
    int delay;
    int64_t *in;      // (n + 1): of a directed graph, the entries of column v: in_part[in[v]] …
    int32_t *in_part; // (entries)
    int64_t *seen;    // (ranks): the last vertex that the rank was seen to have, plus one
    int32_t *holder;  // (ranks): the ranks that have the vertex
    int64_t leaves, room;
    struct leaf *leaf; // (leaves)
};

static bool turn(struct counting *m)
{
    const struct sl_csr *a = m->a;
    m->in = calloc((size_t)a->rows + 2, sizeof *m->in);
    m->in_part = malloc((size_t)(a->indptr[a->rows] + 1) * sizeof *m->in_part);
    if (!m->in || !m->in_part)
        return false;
    for (int64_t e = 0; e < a->indptr[a->rows]; e++)
        m->in[a->indices[e] + 2]++;
    for (int64_t v = 0; v < a->rows; v++)
        m->in[v + 2] += m->in[v + 1];
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            m->in_part[m->in[a->indices[e] + 1]++] = a->indices[e] == v ? -1 : m->part[e];
    return true;
}

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void add_holder(struct counting *m, int64_t v, int32_t rank, int *count)
{
    if (rank >= 0 && m->seen[rank] != v + 1) {
        m->seen[rank] = v + 1;
        m->holder[(*count)++] = rank;
    }
}

/* In ascending order, as homes hear of them. */
static int find_holders(struct counting *m, int64_t v)
{
    int count = 0;
    for (int64_t e = m->a->indptr[v]; e < m->a->indptr[v + 1]; e++)
        if (m->a->indices[e] != v)
            add_holder(m, v, m->part[e], &count);
    for (int64_t e = m->in ? m->in[v] : 0; m->in && e < m->in[v + 1]; e++)
        add_holder(m, v, m->in_part[e], &count);
    qsort(m->holder, (size_t)count, sizeof *m->holder, compare);
    return count;
}

static bool add_leaf(struct counting *m, const struct leaf *leaf)
{
    if (m->leaves == m->room) {
        m->room = 2 * m->room + 1024;
        struct leaf *longer = realloc(m->leaf, (size_t)m->room * sizeof *longer);
        if (!longer)
            return false;
        m->leaf = longer;
    }
    m->leaf[m->leaves++] = *leaf;
    m->c->cut.to_root[leaf->root]++;
    m->c->cut.to_leaves[leaf->rank]++;
    return true;
}

/* Loops, stored or added, are at the root. */
static bool count_vertex(struct counting *m, int64_t v)
{
    const struct sl_source *source = m->source;
    const int64_t original = source->original.data ? sl_npy_integer(&source->original, v) : v;
    const uint64_t drawn = sl_cloning_draw(m->seed, original);
    const int found = find_holders(m, v), clones = found > 0 ? found : 1;
    const int32_t root =
        found > 0 ? m->holder[drawn % (uint64_t)found] : (int32_t)(drawn % (uint64_t)m->c->ranks);
    const int32_t bin = sl_cloning_bin(m->seed, original, m->delay);
    bool room = true;
    m->c->feature_entries += clones * feature_entries(source, v);
    m->c->bounds[root + 1]++;
    m->c->entries[root] += m->loops;
    for (int h = 0; room && h < found; h++) {
        const struct leaf leaf = {root, m->holder[h], bin};
        if (leaf.rank == root)
            continue;
        m->c->bounds[leaf.rank + 1]++;
        room = add_leaf(m, &leaf);
    }
    for (int64_t e = m->a->indptr[v]; e < m->a->indptr[v + 1]; e++)
        if (m->a->indices[e] != v)
            m->c->entries[m->part[e]]++;
        else if (!m->loops) /* else it is in the one that is added */
            m->c->entries[root]++;
    return room;
}

/* Add the messages of `clones` leaves whose roots are on one rank. `rows` (ranks · bins) counts
 * these leaves by rank and bin, and is all 0 again afterwards. */
static void settle_messages(const struct counting *m, int64_t clones, const struct leaf *leaf,
                            int64_t *rows)
{
    const int ranks = m->c->ranks, bins = bins_of(m->c);
    for (int64_t k = 0; k < clones; k++) {
        int64_t *own = &rows[(int64_t)leaf[k].rank * bins + leaf[k].bin];
        const int messages = sl_vertex_cut_messages(&m->c->cut, ranks, *own, m->c->cut.delay > 0);
        m->c->cut.to_root_messages[leaf[k].root] += messages;
        m->c->cut.to_leaves_messages[leaf[k].rank] += messages;
        *own = 0;
    }
}

static bool count_messages(struct counting *m)
{
    const int ranks = m->c->ranks, bins = bins_of(m->c);
    int64_t *place = calloc((size_t)ranks + 1, sizeof *place);
    int64_t *rows = calloc((size_t)ranks * (size_t)bins, sizeof *rows);
    struct leaf *sorted = malloc((size_t)(m->leaves + 1) * sizeof *sorted);
    const bool room = place && rows && sorted;
    for (int r = 0; room && r < ranks; r++)
        place[r + 1] = place[r] + m->c->cut.to_root[r];
    for (int64_t k = 0; room && k < m->leaves; k++)
        sorted[place[m->leaf[k].root]++] = m->leaf[k];
    for (int64_t k = 0, first = 0; room && k < m->leaves; k++) {
        rows[(int64_t)sorted[k].rank * bins + sorted[k].bin]++;
        if (k + 1 < m->leaves && sorted[k + 1].root == sorted[k].root)
            continue;
        settle_messages(m, k + 1 - first, sorted + first, rows);
        first = k + 1;
    }
    free(place);
    free(rows);
    free(sorted);
    return room;
}

int sl_cut_counts_create(struct sl_cut_counts *c, const struct sl_source *source,
                         const struct sl_dataset *graph, int ranks, const int32_t *part,
                         const struct sl_assembly *how, int delay)
{
    struct counting m = {
        .c = c,
        .source = source,
        .a = &graph->adjacency,
        .part = part,
        .loops = how->loops,
        .seed = how->seed,
        .delay = delay,
        .seen = calloc((size_t)ranks, sizeof *m.seen),
        .holder = malloc((size_t)ranks * sizeof *m.holder),
    };
    const int code = allocate(c, source, how, ranks, delay);
    bool room = !code && m.seen && m.holder && (graph->symmetric || turn(&m));
    c->symmetric = graph->symmetric;
    for (int64_t v = 0; room && v < m.a->rows; v++)
        room = count_vertex(&m, v);
    room = room && count_messages(&m);
    if (room)
        settle(c);
    free(m.in);
    free(m.in_part);
    free(m.seen);
    free(m.holder);
    free(m.leaf);
    return code ? code : room ? 0 : no_memory(source);
}

/* ---- Expected ---- */

/* Clones of a vertex with so many edges. */
static double expected_clones(double edges, int ranks)
{
    return edges > 0.0 ? ranks * (1.0 - pow(1.0 - 1.0 / ranks, edges)) : 1.0;
}

int sl_cut_counts_expect(struct sl_cut_counts *c, const struct sl_source *source, int ranks,
                         const struct sl_assembly *how, int delay)
{
    const struct sl_npy *indptr = &source->adjacency.indptr;
    const int64_t n = source->vertices, entries = source->adjacency.indices.count;
    const double mean = (double)entries / (double)n, back = source->undirected ? 0.0 : mean;
    const int code = allocate(c, source, how, ranks, delay), bins = bins_of(c);
    double clones = indptr->data ? 0.0 : (double)n * expected_clones(mean, ranks), features = 0.0;
    if (code)
        return code;
    for (int64_t v = 0; indptr->data && v < n; v++) {
        const int64_t degree = sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v);
        const double own = expected_clones((double)degree + back, ranks);
        clones += own;
        features += own * (double)feature_entries(source, v);
    }
    const double leaves = (clones - (double)n) / ranks, others = ranks - 1.0;
    const double pair = others > 0.0 ? leaves / others / bins : 0.0; /* rows of two ranks */
    const int messages = sl_vertex_cut_messages(&c->cut, ranks, llround(pair) + 1, delay > 0);
    for (int r = 0; r < ranks; r++) {
        c->bounds[r + 1] = llround(clones / ranks);
        c->entries[r] = (entries + (how->loops ? n : 0)) / ranks;
        c->cut.to_root[r] = c->cut.to_leaves[r] = llround(leaves);
        c->cut.to_root_messages[r] = c->cut.to_leaves_messages[r] =
            llround(others * bins * messages * (1.0 - exp(-pair)));
    }
    c->feature_entries = llround(indptr->data ? features : clones);
    settle(c);
    return 0;
}
