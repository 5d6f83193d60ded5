/* Draw the links of validation and test among the edges: every link gets a random number. The
 * smallest numbers test, and the next ones validate. A link's number depends only on the seed and
 * on the original numbers of its vertices, and equal numbers are ordered by them.
 *
 * A link is recognised again by its number, so that only the drawn links need memory:
 *
 *     count the links by the upper bits of their numbers
 *     list the links up to the upper bits that the last drawn link has, and sort them
 *     leave out each entry whose link is not behind the last drawn link */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/edge_features.h"
#include "data/links.h"
#include "data/source.h"

enum { BINS = 1 << 16, BIN_SHIFT = 64 - 16 }; /* links are counted by 16 bits */
enum { TRIES = 500 };                         /* of drawing a negative */

/* A link by the original numbers of its ends: the smaller first, or, where the graph is directed,
 * the source first. */
struct link {
    uint64_t bits;
    uint32_t end[2];
};

struct drawing {
    const struct sl_source *source; /* in the order of its files */
    struct sl_link_rule rule;
    struct sl_part part; /* all rows of the adjacency */
    const int32_t *row;  // (n): row of the files by original number; NULL: the same
    bool undirected;
    int64_t first_target; /* see sl_links_first_target */
    uint64_t key, direction_key, negatives_key;
    struct sl_block *scratch;
    struct link *links;         // (listed): the drawn links come first
    int64_t all, listed, drawn; /* links of the graph, in the list, and to leave the adjacency */
};

uint64_t sl_links_direction_key(uint64_t seed)
{
    return sl_rng_key(seed, SL_RNG_LINKS, 0, SL_LINKS_DIRECTION);
}

/* ---- Links ---- */

static struct link link_of(const struct drawing *d, int64_t source, int64_t target)
{
    uint32_t a = (uint32_t)sl_source_number(d->source, source),
             b = (uint32_t)sl_source_number(d->source, target);
    if (d->undirected && a > b) {
        const uint32_t swapped = a;
        a = b;
        b = swapped;
    }
    return (struct link){sl_rng_bits(d->key, a, b), {a, b}};
}

static int compare_links(const void *x, const void *y)
{
    const struct link *a = x, *b = y;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    if (a->end[0] != b->end[0])
        return a->end[0] < b->end[0] ? -1 : 1;
    return (a->end[1] > b->end[1]) - (a->end[1] < b->end[1]);
}

/* Return whether entry e of a row is the first of a link. Of the two entries of an undirected link,
 * the one in the later row counts. */
static bool begins_link(const struct drawing *d, int64_t row, int64_t e)
{
    const struct sl_csr *a = &d->part.data.adjacency;
    const bool first = e == a->indptr[row] || a->indices[e - 1] != a->indices[e];
    return first && (d->undirected ? a->indices[e] < row : a->indices[e] != row);
}

/* Count links in the bins of their numbers, or, where there is a list, list the links of the bins
 * up to `last`. */
static void pass_links(struct drawing *d, int64_t *bins, uint64_t last)
{
    const struct sl_csr *a = &d->part.data.adjacency;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
            if (!begins_link(d, r, e))
                continue;
            const struct link link = link_of(d, a->indices[e], r);
            if (!d->links)
                bins[link.bits >> BIN_SHIFT]++;
            else if (link.bits >> BIN_SHIFT <= last)
                d->links[d->listed++] = link;
        }
}

/* Return the links of a share; a share of 0.57 per cent of 10,000 links is 57 links, not 56. */
static int64_t count_share(const struct drawing *d, int split)
{
    return (int64_t)floor((double)d->all * d->rule.shares[split] / 100.0 + 1e-6);
}

/* List the links that are drawn, in the order of their numbers. */
static int draw(struct drawing *d)
{
    int64_t *bins = sl_block_array(&d->scratch, BINS, sizeof *bins), room = 0;
    uint64_t last = 0;
    if (!bins)
        return SL_ERR_SYSTEM;
    memset(bins, 0, BINS * sizeof *bins);
    pass_links(d, bins, 0);
    for (int b = 0; b < BINS; b++)
        d->all += bins[b];
    d->drawn = count_share(d, 1) + count_share(d, 2);
    if (d->drawn >= d->all)
        return sl_error(SL_ERR_DATA,
                        "%s: --split-edges leaves no link to train on, of %" PRId64
                        " (expected at least one)",
                        d->source->path, d->all);
    for (; last < BINS && room + bins[last] < d->drawn; last++)
        room += bins[last];
    room += bins[last];
    d->links = sl_block_array(&d->scratch, room, sizeof *d->links);
    if (!d->links)
        return SL_ERR_SYSTEM;
    pass_links(d, bins, last);
    qsort(d->links, (size_t)d->listed, sizeof *d->links, compare_links);
    return SL_OK;
}

/* ---- Arrays of the splits ---- */

static int64_t row_of(const struct drawing *d, int64_t number)
{
    return d->row ? d->row[number] : number;
}

/* Return whether the graph has the edge, of two rows of the files. */
static bool is_edge(const struct drawing *d, int64_t source, int64_t target)
{
    const struct sl_csr *a = &d->part.data.adjacency;
    int64_t low = a->indptr[target], high = a->indptr[target + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->indices[middle] < source)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->indptr[target + 1] && a->indices[low] == source;
}

/* Write the negatives of a link. `source` is the number of its source. */
static int draw_negatives(const struct drawing *d, const struct link *link, int64_t source,
                          int64_t *out)
{
    const uint64_t key = sl_rng_bits(d->negatives_key, link->end[0], link->end[1]);
    const int64_t targets = d->source->vertices - d->first_target;
    for (int64_t j = 0; j < d->rule.negatives; j++) {
        int64_t target = source;
        uint32_t tries = 0;
        while (target == source || is_edge(d, row_of(d, source), row_of(d, target))) {
            if (tries == TRIES)
                return sl_error(SL_ERR_DATA,
                                "%s: vertex %" PRId64
                                " is joined to nearly all, expected targets without an edge for "
                                "its negatives",
                                d->source->path, source);
            target = d->first_target +
                     (int64_t)(sl_rng_uniform(key, (uint32_t)j, tries++) * (double)targets);
        }
        out[2 * j] = row_of(d, source);
        out[2 * j + 1] = row_of(d, target);
    }
    return SL_OK;
}

/* Make the arrays of a split of `count` drawn links. */
static int make_split(const struct drawing *d, const struct link *links, int64_t count,
                      struct sl_block **blocks, struct sl_npy *pairs, struct sl_npy *negatives)
{
    const int64_t each = d->rule.negatives;
    if (count == 0)
        return SL_OK;
    int64_t *pair = sl_block_array(blocks, count, 2 * sizeof *pair),
            *negative = sl_block_array(blocks, count * each, 2 * sizeof *negative);
    if (!pair || !negative)
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t *const end = links[k].end;
        const bool first = !d->undirected ||
                           sl_links_source_first(d->direction_key, d->first_target, end[0], end[1]);
        pair[2 * k] = row_of(d, end[!first]);
        pair[2 * k + 1] = row_of(d, end[first]);
        const int rc = draw_negatives(d, &links[k], end[!first], negative + 2 * each * k);
        if (rc)
            return rc;
    }
    *pairs = sl_npy_view("--split-edges", SL_NPY_INT64, 2, count, 2, pair);
    *negatives = sl_npy_view("--split-edges", SL_NPY_INT64, 2, count * each, 2, negative);
    return SL_OK;
}

static int make_splits(const struct drawing *d, struct sl_block **blocks,
                       struct sl_source_links *out)
{
    const int64_t test = count_share(d, 2);
    const int rc = make_split(d, d->links, test, blocks, &out->pairs[SL_SPLIT_TEST],
                              &out->negatives[SL_SPLIT_TEST]);
    return rc ? rc
              : make_split(d, d->links + test, d->drawn - test, blocks, &out->pairs[SL_SPLIT_VAL],
                           &out->negatives[SL_SPLIT_VAL]);
}

/* ---- The adjacency that is left ---- */

static bool leaves(const struct drawing *d, int64_t row, int64_t e)
{
    const int64_t column = d->part.data.adjacency.indices[e];
    if (column == row || d->drawn == 0)
        return false;
    const struct link link = link_of(d, column, row);
    return compare_links(&link, &d->links[d->drawn - 1]) <= 0;
}

/* Make the matrix without the drawn links in new arrays. */
static int keep_rest(const struct drawing *d, struct sl_block **blocks, struct sl_csr *out)
{
    const struct sl_csr *a = &d->part.data.adjacency;
    int64_t *indptr = sl_block_array(blocks, a->rows + 1, sizeof *indptr), at = 0;
    if (!indptr)
        return SL_ERR_SYSTEM;
    indptr[0] = 0;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++)
            at += !leaves(d, r, e);
        indptr[r + 1] = at;
    }
    int32_t *indices = sl_block_array(blocks, at, sizeof *indices), *edges = NULL;
    float *values = a->values ? sl_block_array(blocks, at, sizeof *values) : NULL;
    if (a->edges)
        edges = sl_block_array(blocks, at, sizeof *edges);
    if (!indices || (a->values && !values) || (a->edges && !edges))
        return SL_ERR_SYSTEM;
    *out = (struct sl_csr){a->rows, a->cols, indptr, indices, values, edges};
    at = 0;
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
            if (leaves(d, r, e))
                continue;
            indices[at] = a->indices[e];
            if (values)
                values[at] = a->values[e];
            if (edges)
                edges[at] = a->edges[e];
            at++;
        }
    return SL_OK;
}

/* Give a source with relations the rows of edge features of the entries that are left: relations
 * are counted in rows of the files (sl_relations_count). */
static int keep_relations(struct sl_source *source, const struct sl_csr *rest)
{
    const int64_t nnz = rest->indptr[rest->rows], width = source->edge_features.shape[1];
    const float *edge = NULL;
    const int rc =
        sl_edge_features_take(&source->edge_features, rest, true, &source->blocks, &edge);
    if (rc)
        return rc;
    source->edge_features =
        sl_npy_view(source->edge_features.name, SL_NPY_FLOAT32, 2, nnz, width, edge);
    source->relations = (struct sl_source_relations){.count = source->relations.count};
    return SL_OK;
}

/* Give the source the adjacency that is left. */
static int replace_adjacency(struct sl_source *source, const struct sl_csr *rest)
{
    struct sl_stored_csr *a = &source->adjacency;
    const char *const names[] = {a->indptr.name, a->indices.name};
    const int64_t nnz = rest->indptr[rest->rows];
    const bool relations = source->relations.count > 0;
    const int rc = relations ? keep_relations(source, rest) : SL_OK;
    if (rc)
        return rc;
    *a = (struct sl_stored_csr){.cols = rest->cols};
    a->indptr = sl_npy_view(names[0], SL_NPY_INT64, 1, rest->rows + 1, 0, rest->indptr);
    a->indices = sl_npy_view(names[1], SL_NPY_INT32, 1, nnz, 0, rest->indices);
    if (rest->values)
        a->values = sl_npy_view(names[1], SL_NPY_FLOAT32, 1, nnz, 0, rest->values);
    if (rest->edges && !relations)
        a->edges = sl_npy_view(names[1], SL_NPY_INT32, 1, nnz, 0, rest->edges);
    return SL_OK;
}

/* ---- All of it ---- */

static int refuse_links(const struct sl_source *source)
{
    const bool val = source->links.pairs[SL_SPLIT_VAL].data != NULL;
    return sl_error(SL_ERR_USAGE,
                    "--split-edges: %s has %s_links.npy already (expected no --split-edges)",
                    source->path, sl_links_split_name(val ? SL_SPLIT_VAL : SL_SPLIT_TEST));
}

/* Find the row of each original number, and check that the numbers are a permutation. */
static int find_rows(struct drawing *d)
{
    const int64_t n = d->source->vertices;
    const struct sl_npy *original = &d->source->order.original;
    if (!original->data)
        return SL_OK;
    int32_t *row = sl_block_array(&d->scratch, n, sizeof *row);
    if (!row)
        return SL_ERR_SYSTEM;
    memset(row, -1, (size_t)n * sizeof *row);
    for (int64_t v = 0; v < n; v++) {
        const int64_t number = sl_npy_integer(original, v);
        if (number < 0 || number >= n || row[number] >= 0)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64
                            ", expected every vertex from 0 to %" PRId64 " once",
                            original->name, v, number, n - 1);
        row[number] = (int32_t)v;
    }
    d->row = row;
    return SL_OK;
}

/* Read the whole adjacency, and find what its links have in common. */
static int begin(struct drawing *d)
{
    struct sl_runtime alone = {.ranks = 1};
    const uint64_t seed = d->rule.seed;
    int rc = sl_source_read_adjacency(&alone, d->source, 0, d->source->vertices, &d->part);
    if (!rc)
        rc = find_rows(d);
    if (rc)
        return rc;
    d->undirected = sl_links_are_undirected(&alone, &d->part);
    d->first_target = sl_links_first_target(&alone, d->source, &d->part, d->undirected);
    d->key = sl_rng_key(seed, SL_RNG_LINKS, 0, SL_LINKS_SPLIT);
    d->direction_key = sl_links_direction_key(seed);
    d->negatives_key = sl_rng_key(seed, SL_RNG_LINKS, 0, SL_LINKS_NEGATIVES);
    return SL_OK;
}

int sl_links_split(struct sl_source *source, const struct sl_link_rule *rule)
{
    struct sl_source stored = sl_source_as_stored(source);
    struct drawing d = {.source = &stored, .rule = *rule};
    struct sl_source_links links = {0};
    struct sl_csr rest;
    if (!rule->given)
        return SL_OK;
    if (sl_links_given(&source->links))
        return refuse_links(source);
    d.rule.negatives = rule->negatives > 0 ? rule->negatives : 1;
    stored.reads_edges = source->edge_features.data ? SL_READS_EDGE_ROWS : SL_READS_NO_EDGES;
    int rc = begin(&d);
    if (!rc)
        rc = draw(&d);
    if (!rc)
        rc = make_splits(&d, &source->blocks, &links);
    if (!rc)
        rc = keep_rest(&d, &source->blocks, &rest);
    if (!rc)
        rc = replace_adjacency(source, &rest);
    if (!rc) {
        source->links = links;
        source->merged_edges = d.part.data.merged_edges;
    }
    sl_part_close(&d.part);
    sl_block_free_all(&d.scratch);
    return rc;
}
