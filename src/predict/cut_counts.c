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

static int allocate(struct sl_cut_counts *c, const struct sl_source *source, int ranks)
{
    const int hops = source->selection.hop_cut ? source->selection.hops + 1 : 1;
    const size_t count = (size_t)ranks * (size_t)hops;
    *c = (struct sl_cut_counts){
        .ranks = ranks,
        .hops = {hops, calloc(count, sizeof *c->hops.rows)},
        .bounds = calloc((size_t)ranks + 1, sizeof *c->bounds),
        .entries = calloc(count * (size_t)hops, sizeof *c->entries),
        .symmetric = source->undirected && source->reads_edges != SL_READS_RELATIONS,
        .numbers = source->reads_edges ? sl_source_edge_numbers(source)
                                       : source->adjacency.values.data != NULL,
    };
    return c->hops.rows && c->bounds && c->entries ? 0 : no_memory(source);
}

void sl_cut_counts_forget_leaves(struct sl_cut_counts *c)
{
    free(c->leaf);
    c->leaf = NULL;
    c->leaves = 0;
}

void sl_cut_counts_destroy(struct sl_cut_counts *c)
{
    free(c->hops.rows);
    free(c->bounds);
    free(c->entries);
    free(c->leaf);
    *c = (struct sl_cut_counts){0};
}

static void settle(struct sl_cut_counts *c)
{
    for (int r = 0; r < c->ranks; r++) {
        c->bounds[r + 1] = c->bounds[r];
        for (int h = 0; h < c->hops.count; h++)
            c->bounds[r + 1] += c->hops.rows[r * c->hops.count + h];
    }
}

static int64_t feature_entries(const struct sl_source *source, int64_t v)
{
    const struct sl_npy *indptr = &source->features_csr.indptr;
    return source->feature_form == SL_FEATURES_CSR && indptr->data
               ? sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v)
               : 1;
}

/* ---- Counted ---- */

struct counting {
    struct sl_cut_counts *c;
    const struct sl_source *source;
    const struct sl_csr *a;
    const int32_t *part; // (entries)
    bool loops;
    uint64_t seed;
    int64_t *in;      // (n + 1): of a directed graph, the entries of column v: in_part[in[v]] …
    int32_t *in_part; // (entries)
    int64_t *seen;    // (ranks): the last vertex that the rank was seen to have, plus one
    int32_t *holder;  // (ranks): the ranks that have the vertex
    int64_t room;     /* for leaves */
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

static bool add_leaf(struct counting *m, const struct sl_cut_leaf *leaf)
{
    struct sl_cut_counts *c = m->c;
    if (c->leaves == m->room) {
        m->room = 2 * m->room + 1024;
        struct sl_cut_leaf *longer = realloc(c->leaf, (size_t)m->room * sizeof *longer);
        if (!longer)
            return false;
        c->leaf = longer;
    }
    c->leaf[c->leaves++] = *leaf;
    return true;
}

static void add_entry(struct counting *m, int32_t rank, int row_hop, int hop)
{
    const int hops = m->c->hops.count;
    m->c->entries[((int64_t)rank * hops + row_hop) * hops + hop]++;
}

/* Loops, stored or added, are at the root. */
static bool count_vertex(struct counting *m, int64_t v)
{
    const struct sl_source *source = m->source;
    const int64_t original = sl_source_number(source, v);
    const uint64_t drawn = sl_cloning_draw(m->seed, original);
    const int found = find_holders(m, v), clones = found > 0 ? found : 1,
              hop = sl_source_hop(source, v);
    const int32_t root =
        found > 0 ? m->holder[drawn % (uint64_t)found] : (int32_t)(drawn % (uint64_t)m->c->ranks);
    bool room = true;
    m->c->feature_entries += clones * feature_entries(source, v);
    m->c->hops.rows[root * m->c->hops.count + hop]++;
    if (m->loops)
        add_entry(m, root, hop, hop);
    for (int h = 0; room && h < found; h++) {
        const struct sl_cut_leaf leaf = {root, m->holder[h], hop, original};
        if (leaf.rank == root)
            continue;
        m->c->hops.rows[leaf.rank * m->c->hops.count + hop]++;
        room = add_leaf(m, &leaf);
    }
    for (int64_t e = m->a->indptr[v]; e < m->a->indptr[v + 1]; e++)
        if (m->a->indices[e] != v)
            add_entry(m, m->part[e], hop, sl_source_hop(source, m->a->indices[e]));
        else if (!m->loops) /* an added loop is such an entry already */
            add_entry(m, root, hop, hop);
    return room;
}

/* Leaves by the ranks of their roots. */
static bool sort_leaves(struct sl_cut_counts *c)
{
    int64_t *place = calloc((size_t)c->ranks + 1, sizeof *place);
    struct sl_cut_leaf *sorted = malloc((size_t)(c->leaves + 1) * sizeof *sorted);
    const bool room = place && sorted;
    for (int64_t k = 0; room && k < c->leaves; k++)
        place[c->leaf[k].root + 1]++;
    for (int r = 0; room && r < c->ranks; r++)
        place[r + 1] += place[r];
    for (int64_t k = 0; room && k < c->leaves; k++)
        sorted[place[c->leaf[k].root]++] = c->leaf[k];
    free(place);
    if (!room) {
        free(sorted);
        return false;
    }
    free(c->leaf);
    c->leaf = sorted;
    return true;
}

int sl_cut_counts_create(struct sl_cut_counts *c, const struct sl_source *source,
                         const struct sl_dataset *graph, int ranks, const int32_t *part,
                         const struct sl_assembly *assembly)
{
    struct counting m = {
        .c = c,
        .source = source,
        .a = &graph->adjacency,
        .part = part,
        .loops = assembly->loops,
        .seed = assembly->seed,
        .seen = calloc((size_t)ranks, sizeof *m.seen),
        .holder = malloc((size_t)ranks * sizeof *m.holder),
    };
    const int code = allocate(c, source, ranks);
    bool room = !code && m.seen && m.holder && (graph->symmetric || turn(&m));
    c->symmetric = graph->symmetric;
    for (int64_t v = 0; room && v < m.a->rows; v++)
        room = count_vertex(&m, v);
    room = room && sort_leaves(c);
    if (room)
        settle(c);
    free(m.in);
    free(m.in_part);
    free(m.seen);
    free(m.holder);
    return code ? code : room ? 0 : no_memory(source);
}

/* ---- Expected ---- */

/* Clones of a vertex with so many edges. */
static double expected_clones(double edges, int ranks)
{
    return edges > 0.0 ? ranks * (1.0 - pow(1.0 - 1.0 / ranks, edges)) : 1.0;
}

int sl_cut_counts_expect(struct sl_cut_counts *c, const struct sl_source *source, int ranks,
                         const struct sl_assembly *assembly)
{
    const struct sl_npy *indptr = &source->adjacency.indptr;
    const int64_t n = source->vertices, entries = source->adjacency.indices.count;
    const double mean = (double)entries / (double)n, back = source->undirected ? 0.0 : mean;
    struct sl_source flat = *source; /* all hops alike */
    flat.selection.hop_cut = NULL;
    const int code = allocate(c, &flat, ranks);
    double clones = indptr->data ? 0.0 : (double)n * expected_clones(mean, ranks), features = 0.0;
    if (code)
        return code;
    for (int64_t v = 0; indptr->data && v < n; v++) {
        const int64_t degree = sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v);
        const double own = expected_clones((double)degree + back, ranks);
        clones += own;
        features += own * (double)feature_entries(source, v);
    }
    for (int r = 0; r < ranks; r++) {
        c->hops.rows[r] = llround(clones / ranks);
        c->entries[r] = (entries + (assembly->loops ? n : 0)) / ranks;
    }
    c->expected = (clones - (double)n) / ranks;
    c->feature_entries = llround(indptr->data ? features : clones);
    settle(c);
    return 0;
}

/* ---- What travels ---- */

static int bins_of(const struct sl_vertex_cut *cut)
{
    return cut->delay > 0 ? cut->delay : 1;
}

/* Add the rows and messages of `leaves` leaves whose roots are on one rank. rows (ranks, hops,
 * bins) is all 0, and is so again afterwards. */
static void add_flow(struct sl_vertex_cut *cut, uint64_t seed, int ranks, int64_t leaves,
                     const struct sl_cut_leaf *leaf, int64_t *rows)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < leaves; k++) {
            const int hop = sl_vertex_cut_find_hop(cut, leaf[k].hop);
            const int64_t to = (int64_t)leaf[k].rank * cut->hops + hop;
            const int32_t bin = sl_cloning_bin(seed, leaf[k].original, cut->delay);
            int64_t *own = &rows[to * bins_of(cut) + bin];
            if (pass == 0) {
                ++*own;
                continue;
            }
            struct sl_cut_flow *root = &cut->to_root[(int64_t)leaf[k].root * cut->hops + hop];
            const int messages = sl_vertex_cut_messages(cut, ranks, *own, cut->delay > 0);
            root->rows++;
            root->messages += messages;
            cut->to_leaves[to].rows++;
            cut->to_leaves[to].messages += messages;
            *own = 0;
        }
}

/* Rows and messages between two ranks, where leaves are expected. */
static void expect_flow(const struct sl_cut_counts *c, struct sl_vertex_cut *cut)
{
    const int bins = bins_of(cut);
    const double others = c->ranks - 1.0;
    const double pair = others > 0.0 ? c->expected / others / bins : 0.0;
    const int messages = sl_vertex_cut_messages(cut, c->ranks, llround(pair) + 1, cut->delay > 0);
    for (int r = 0; r < c->ranks; r++)
        cut->to_root[r] = cut->to_leaves[r] = (struct sl_cut_flow){
            llround(c->expected), llround(others * bins * messages * (1.0 - exp(-pair)))};
}

int sl_cut_counts_flow(const struct sl_cut_counts *c, const struct sl_source *source,
                       const struct sl_partition *clones, const struct sl_assembly *assembly,
                       int delay, struct sl_vertex_cut *cut)
{
    const bool scaled =
        delay != SL_DELAY_EXACT && assembly->owners.scales_partials && assembly->reducer->linear;
    const int code =
        sl_vertex_cut_allocate(cut, delay, scaled, c->ranks,
                               sl_operands_row_bytes(source, assembly), clones->tiles, clones->hop);
    if (code)
        return code;
    int64_t *rows = calloc((size_t)c->ranks * (size_t)(cut->hops * bins_of(cut)), sizeof *rows);
    if (!rows)
        return no_memory(source);
    for (int64_t k = 0, first = 0; k < c->leaves; k++) {
        if (k + 1 < c->leaves && c->leaf[k + 1].root == c->leaf[k].root)
            continue;
        add_flow(cut, assembly->seed, c->ranks, k + 1 - first, c->leaf + first, rows);
        first = k + 1;
    }
    if (c->expected > 0.0)
        expect_flow(c, cut);
    free(rows);
    return 0;
}
