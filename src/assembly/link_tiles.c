#include "assembly/link_tiles.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/log.h"
#include "data/links.h"
#include "data/neighbours.h"

/* Links while they are made. */
struct making {
    struct sl_links *links;
    struct sl_runtime *rt;
    const struct sl_source *source;
    const struct sl_operands *operands;
    const struct sl_distribution *d;
    const struct sl_link_choice *choice;
    int32_t *row_of;    // (n): row of each vertex of the files; of clones, the root
    int32_t *vertex_of; // (rows): vertex of each row; -1: a clone that is no root
    bool undirected;
    int64_t first_target;
    uint64_t direction;
    int64_t *expected; // (T, T): training links of each block
};

static int no_memory(const struct making *m)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for the links of %s", m->source->path);
}

/* Return the most elements of a block, which may travel in one message. */
static int64_t most_elements(const struct making *m)
{
    return m->rt->ranks > 1 ? INT32_MAX / (int64_t)sizeof(struct sl_scored_link) : INT32_MAX;
}

static int refuse_block(const struct making *m, int64_t links)
{
    return sl_error(SL_ERR_USAGE,
                    "%s: %lld pairs from one row tile to the rows of a rank (expected at most "
                    "%lld: more --tiles, fewer --negatives)",
                    m->source->path, (long long)links, (long long)most_elements(m));
}

static int tile_of(const struct making *m, int64_t row)
{
    return sl_cut_find(m->d->tiles, m->d->row_cut, row);
}

static bool is_here(const struct making *m, int tile)
{
    return sl_distribution_whole_owner(m->d, tile, 0) == m->rt->rank;
}

/* Return the number of the vertex of row r; -1: the row is a clone that is no root. */
static int64_t number_of(const struct making *m, int64_t r)
{
    return m->vertex_of[r] < 0 ? -1 : sl_source_number(m->source, m->vertex_of[r]);
}

/* ---- Rows ---- */

/* Set vertex (n) to the vertex of the files that has each number. */
static int number_vertices(const struct making *m, int32_t **vertex)
{
    const int64_t n = m->source->vertices;
    *vertex = malloc((size_t)n * sizeof **vertex + 1);
    for (int64_t v = 0; *vertex && v < n; v++)
        (*vertex)[sl_source_number(m->source, v)] = (int32_t)v;
    return *vertex ? 0 : no_memory(m);
}

/* Add 1 + the row of each vertex whose root is in row tile i of this rank. */
static void add_roots(const struct making *m, int i, const int32_t *vertex, int64_t *rows)
{
    struct sl_tile *tile = &m->operands->scales[0][i];
    const float *scales = sl_tile_acquire(m->rt, tile, false);
    const uint32_t *number = (const uint32_t *)scales + SL_ROW_VERTEX * tile->ld;
    const float *root = scales + SL_ROW_ROOT * tile->ld;
    for (int64_t r = 0; r < tile->cols; r++)
        if (root[r] > 0.0f)
            rows[vertex[number[r]]] = m->d->row_cut[i] + r + 1;
    sl_tile_release(tile);
}

/* Find the roots of clones. A plan has no rows: any rows do there. Collective. */
static int find_roots(struct making *m)
{
    const int64_t n = m->source->vertices;
    int64_t *rows = calloc((size_t)n, sizeof *rows);
    int32_t *vertex = NULL;
    int code = number_vertices(m, &vertex);
    code = sl_runtime_agree(m->rt, rows ? code : no_memory(m));
    for (int i = 0; !code && !m->rt->plans && i < m->d->tiles; i++)
        if (is_here(m, i))
            add_roots(m, i, vertex, rows);
    if (!code && !m->rt->plans)
        sl_runtime_sum(m->rt, rows, n);
    for (int64_t v = 0; !code && v < n; v++) {
        m->row_of[v] = (int32_t)(m->rt->plans ? v : rows[v] - 1);
        if (m->row_of[v] < 0)
            code = sl_error(SL_ERR_SYSTEM, "%s: vertex %lld has no row", m->source->path,
                            (long long)v);
        else
            m->vertex_of[m->row_of[v]] = (int32_t)v;
    }
    free(vertex);
    free(rows);
    return code;
}

static int find_rows(struct making *m)
{
    const int64_t n = m->source->vertices, rows = m->d->row_cut[m->d->tiles];
    m->row_of = malloc((size_t)n * sizeof *m->row_of + 1);
    m->vertex_of = malloc((size_t)rows * sizeof *m->vertex_of + 1);
    const int code = sl_runtime_agree(m->rt, m->row_of && m->vertex_of ? 0 : no_memory(m));
    if (code)
        return code;
    for (int64_t r = 0; r < rows; r++)
        m->vertex_of[r] = m->d->kind->clones ? -1 : (int32_t)sl_source_vertex(m->source, r);
    if (m->d->kind->clones)
        return find_roots(m);
    for (int64_t v = 0; v < n; v++)
        m->row_of[v] = (int32_t)sl_source_place(m->source, v);
    return 0;
}

/* ---- Training links ---- */

/* A link whose source is in a row tile of this rank: its rows in the order. */
typedef void take_link(struct making *m, int tile, int64_t source, int64_t target);

/* Call take for each link of this rank's row tiles, in any order. */
static int each_link(struct making *m, take_link *take)
{
    struct sl_neighbours neighbours = {0};
    int code = 0;
    for (int64_t v = 0; !code && v < m->source->vertices; v++) {
        const int64_t r = m->row_of[v], number = sl_source_number(m->source, v);
        const int own = tile_of(m, r);
        if (m->undirected && !is_here(m, own)) /* the row of the source has the link, too */
            continue;
        code = sl_neighbours_read(m->source, v, &neighbours);
        for (int64_t k = 0; !code && k < neighbours.count; k++) {
            const int64_t other = m->row_of[neighbours.vertex[k]];
            const int tile = m->undirected ? own : tile_of(m, other);
            const bool again = k > 0 && neighbours.vertex[k] == neighbours.vertex[k - 1];
            if (other == r || again || !is_here(m, tile)) /* again: by another relation */
                continue;
            const int64_t u = sl_source_number(m->source, neighbours.vertex[k]);
            const int64_t least = u < number ? u : number, most = u < number ? number : u;
            if (!m->undirected)
                take(m, tile, other, r);
            else if (sl_links_source_first(m->direction, m->first_target, least, most) ==
                     (number == least))
                take(m, tile, r, other);
        }
    }
    sl_neighbours_free(&neighbours);
    return code;
}

static int64_t *starts_of(const struct making *m, int tile)
{
    return (int64_t *)m->links->list[tile].start;
}

static void count_link(struct making *m, int tile, int64_t source, int64_t target)
{
    starts_of(m, tile)[source - m->links->list[tile].first + 1]++;
    m->expected[tile * m->d->tiles + tile_of(m, target)]++;
}

/* Starts move to the ends of their rows. */
static void put_link(struct making *m, int tile, int64_t source, int64_t target)
{
    int32_t *targets = (int32_t *)m->links->list[tile].target;
    targets[starts_of(m, tile)[source - m->links->list[tile].first]++] = (int32_t)target;
}

/* Links as keys that sort by the numbers of their targets. */
struct numbered {
    int64_t number;
    int32_t row;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int sort_targets(const struct making *m, int64_t count, int32_t *targets)
{
    bool sorted = true;
    for (int64_t k = 1; k < count; k++)
        sorted = sorted && number_of(m, targets[k - 1]) < number_of(m, targets[k]);
    if (sorted)
        return 0;
    struct numbered *keys = malloc((size_t)count * sizeof *keys);
    if (!keys)
        return no_memory(m);
    for (int64_t k = 0; k < count; k++)
        keys[k] = (struct numbered){number_of(m, targets[k]), targets[k]};
    qsort(keys, (size_t)count, sizeof *keys, compare_numbers);
    for (int64_t k = 0; k < count; k++)
        targets[k] = keys[k].row;
    free(keys);
    return 0;
}

static int open_list(struct making *m, int tile)
{
    struct sl_link_list *list = &m->links->list[tile];
    list->first = m->d->row_cut[tile];
    list->rows = m->d->row_cut[tile + 1] - list->first;
    uint32_t *numbers = malloc((size_t)list->rows * sizeof *numbers + 1);
    list->start = calloc((size_t)list->rows + 1, sizeof *list->start);
    list->source = numbers;
    if (!list->start || !numbers)
        return no_memory(m);
    for (int64_t r = 0; r < list->rows; r++)
        numbers[r] = (uint32_t)number_of(m, list->first + r);
    return 0;
}

static int open_targets(struct making *m, int tile)
{
    struct sl_link_list *list = &m->links->list[tile];
    int64_t *start = starts_of(m, tile);
    for (int64_t r = 0; r < list->rows; r++)
        start[r + 1] += start[r];
    if (start[list->rows] > INT32_MAX)
        return refuse_block(m, start[list->rows]);
    list->target = malloc((size_t)start[list->rows] * sizeof *list->target + 1);
    return list->target ? 0 : no_memory(m);
}

/* Move the starts back to the starts of their rows, and sort the rows. */
static int close_targets(struct making *m, int tile)
{
    struct sl_link_list *list = &m->links->list[tile];
    int64_t *start = starts_of(m, tile);
    for (int64_t r = list->rows; r > 0; r--)
        start[r] = start[r - 1];
    start[0] = 0;
    int code = 0;
    for (int64_t r = 0; !code && r < list->rows; r++)
        code = sort_targets(m, start[r + 1] - start[r], (int32_t *)list->target + start[r]);
    return code;
}

/* Do one step for the row tiles of this rank. */
static int each_tile(struct making *m, int (*step)(struct making *, int))
{
    int code = 0;
    for (int i = 0; !code && i < m->d->tiles; i++)
        if (is_here(m, i))
            code = step(m, i);
    return code;
}

static int list_links(struct making *m)
{
    int code = each_tile(m, open_list);
    if (!code)
        code = each_link(m, count_link);
    if (!code)
        code = each_tile(m, open_targets);
    if (!code)
        code = each_link(m, put_link);
    return code ? code : each_tile(m, close_targets);
}

/* ---- Tiles ---- */

int64_t sl_links_room(double count, double share)
{
    const double mean = count * share, most = mean + 8.0 * sqrt(mean) + 32.0;
    return (int64_t)(share >= 1.0 || most > count ? count : most);
}

/* Count the vertices of a row tile that may be targets. */
static double targets_of(const struct making *m, int tile)
{
    double count = 0.0;
    for (int64_t r = m->d->row_cut[tile]; r < m->d->row_cut[tile + 1]; r++)
        count += number_of(m, r) >= m->first_target;
    return count;
}

/* Find the runs of row tiles of one rank: the parts of the blocks. */
static void find_parts(struct making *m)
{
    struct sl_links *links = m->links;
    links->parts = 0;
    for (int i = 0; i < links->tiles; i++)
        if (i == 0 ||
            sl_distribution_whole_owner(m->d, i, 0) != sl_distribution_whole_owner(m->d, i - 1, 0))
            links->part_cut[links->parts++] = i;
    links->part_cut[links->parts] = links->tiles;
}

/* Make the blocks of row tile i: room (tiles) for the links to each row tile. Headers of segments
 * say their room. */
static int create_row_of_blocks(struct making *m, int i, const int64_t *room, int64_t *segment,
                                struct sl_tile *blocks)
{
    const struct sl_links *links = m->links;
    int code = 0;
    for (int r = 0; !code && r < links->parts; r++) {
        int64_t elements = 0;
        for (int k = links->part_cut[r]; k < links->part_cut[r + 1]; k++) {
            segment[k] = elements;
            elements += 1 + room[k];
        }
        if (elements > most_elements(m))
            return refuse_block(m, elements);
        code = sl_tile_create(m->rt, &blocks[r], elements, 1, sizeof(struct sl_scored_link),
                              sl_distribution_whole_owner(m->d, i, 0));
        struct sl_scored_link *const block = blocks[r].memory;
        for (int k = links->part_cut[r]; !code && block && k < links->part_cut[r + 1]; k++)
            block[segment[k]] = (struct sl_scored_link){.target = (int32_t)room[k]};
    }
    return code;
}

/* Return the training links of row tile i. */
static int64_t links_of(const struct making *m, int i)
{
    int64_t count = 0;
    for (int k = 0; k < m->links->tiles; k++)
        count += m->expected[i * m->links->tiles + k];
    return count;
}

static int create_blocks(struct making *m)
{
    struct sl_links *links = m->links;
    const int tiles = links->tiles;
    const double all = (double)(m->source->vertices - m->first_target);
    double *share = calloc((size_t)tiles + 1, sizeof *share);
    int64_t *room = calloc((size_t)tiles + 1, sizeof *room);
    int code = share && room ? 0 : no_memory(m);
    for (int k = 0; !code && k < tiles; k++)
        share[k] = targets_of(m, k) / all;
    for (int i = 0; !code && i < tiles; i++) {
        const double drawn = (double)(links_of(m, i) * links->negatives);
        for (int k = 0; k < tiles; k++)
            room[k] = m->expected[i * tiles + k] + sl_links_room(drawn, share[k]);
        code = create_row_of_blocks(m, i, room, &links->segment[i * tiles],
                                    &links->block[i * links->parts]);
    }
    free(room);
    free(share);
    return code;
}

/* Make a tile for each row tile, on its owner. */
static int create_row_tiles(const struct making *m, int64_t rows, const int64_t *cols,
                            struct sl_tile *tiles)
{
    int code = 0;
    for (int i = 0; !code && i < m->d->tiles; i++)
        code = sl_tile_create(m->rt, &tiles[i], rows, cols[i], sizeof(float),
                              sl_distribution_whole_owner(m->d, i, 0));
    return code;
}

/* Make scratch for the lists, and for the pairwise loss; and parts of the decoder's gradient. */
static int create_scratch(struct making *m)
{
    struct sl_links *links = m->links;
    const int tiles = links->tiles;
    int64_t *cols = calloc((size_t)tiles + 1, sizeof *cols), most = 0;
    if (!cols)
        return no_memory(m);
    for (int i = 0; i < tiles; i++) {
        const int64_t rows = m->d->row_cut[i + 1] - m->d->row_cut[i];
        most = rows > most ? rows : most;
    }
    for (int i = 0; i < tiles; i++)
        cols[i] = most + 1;
    int code = create_row_tiles(m, 1, cols, links->work);
    for (int i = 0; i < tiles; i++) {
        cols[i] = 1;
        for (int k = 0; k < tiles; k++)
            cols[i] += m->expected[i * tiles + k];
    }
    if (!code && links->pairs)
        code = create_row_tiles(m, 2, cols, links->pairs);
    for (int i = 0; i < tiles; i++)
        cols[i] = m->choice->width;
    if (!code && links->parameters)
        code = create_row_tiles(m, 1, cols, links->parameters);
    free(cols);
    return code ? code
                : sl_distribution_create_whole(m->rt, m->d, &links->gradient, SL_FLOAT32,
                                               m->choice->width);
}

/* ---- Measured links ---- */

/* Call take(place, source, target) with the pairs of validation and test, in the order of the
 * lists. */
static void each_measured(struct making *m,
                          void (*take)(struct making *, int32_t, int64_t, int64_t))
{
    int32_t place = 0;
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++)
        for (int negative = 0; negative < 2; negative++) {
            const struct sl_npy *pairs =
                negative ? &m->source->links.negatives[s] : &m->source->links.pairs[s];
            for (int64_t k = 0; pairs->data && k < pairs->shape[0]; k++) {
                int64_t pair[2];
                sl_links_get(pairs, k, pair);
                take(m, place++, m->row_of[pair[0]], m->row_of[pair[1]]);
            }
        }
}

static void count_measured(struct making *m, int32_t place, int64_t source, int64_t target)
{
    (void)place;
    m->expected[tile_of(m, source) * m->d->tiles + tile_of(m, target)]++;
}

static void put_measured(struct making *m, int32_t place, int64_t source, int64_t target)
{
    const int i = tile_of(m, source), k = tile_of(m, target);
    const struct sl_links *links = m->links;
    const int r = sl_links_part(links, k);
    struct sl_scored_link *const block = links->measured[i * links->parts + r].memory,
                                 *const segment =
                                     block ? block + links->measured_segment[i * links->tiles + k]
                                           : NULL;
    if (segment)
        segment[1 + segment->source++] = (struct sl_scored_link){
            .source = (int32_t)(source - m->d->row_cut[i]),
            .target = (int32_t)(target - m->d->row_cut[k]),
            .number = place,
        };
}

static int measure_links(struct making *m)
{
    struct sl_links *links = m->links;
    const int tiles = links->tiles;
    int64_t places = 0;
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const struct sl_source_links *from = &m->source->links;
        links->lists.links[s] = from->pairs[s].data ? from->pairs[s].shape[0] : 0;
        links->lists.negatives[s] = from->negatives[s].data ? from->negatives[s].shape[0] : 0;
        places += links->lists.links[s] + links->lists.negatives[s];
    }
    if (places > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: %lld links and negatives of validation and test (expected at most "
                        "%d)",
                        m->source->path, (long long)places, INT32_MAX);
    for (int b = 0; b < tiles * tiles; b++)
        m->expected[b] = 0;
    each_measured(m, count_measured);
    int code = sl_tile_create(m->rt, &links->scores, 2, places + 1, sizeof(float), 0);
    for (int i = 0; !code && i < tiles; i++)
        code =
            create_row_of_blocks(m, i, &m->expected[i * tiles], &links->measured_segment[i * tiles],
                                 &links->measured[i * links->parts]);
    if (!code)
        each_measured(m, put_measured);
    return code;
}

/* ---- Pairs that training sees ---- */

enum { CHECKED = 100000 }; /* pairs of a list that are looked up */

/* Set *count to how many of the first pairs of a list are edges of the graph. Ranks share the
 * pairs. Collective. */
static int count_edges(struct making *m, const struct sl_npy *pairs, int64_t *count)
{
    struct sl_neighbours neighbours = {0};
    const int64_t all = pairs->data ? pairs->shape[0] : 0, most = all < CHECKED ? all : CHECKED;
    int code = 0;
    *count = 0;
    for (int64_t k = m->rt->rank; !code && k < most; k += m->rt->ranks) {
        int64_t pair[2];
        sl_links_get(pairs, k, pair);
        code = sl_neighbours_read(m->source, pair[1], &neighbours);
        bool found = false;
        for (int64_t e = 0; !code && e < neighbours.count; e++)
            found = found || neighbours.vertex[e] == pair[0];
        *count += found;
    }
    sl_neighbours_free(&neighbours);
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        sl_runtime_sum(m->rt, count, 1);
    return code;
}

/* Note links that are edges, over which training aggregates, and negatives that are links. */
static int note_edges(struct making *m)
{
    int code = 0;
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++)
        for (int negative = 0; !code && negative < 2; negative++) {
            const struct sl_npy *pairs =
                negative ? &m->source->links.negatives[s] : &m->source->links.pairs[s];
            int64_t count;
            code = count_edges(m, pairs, &count);
            if (!code && count > 0 && m->rt->rank == 0)
                sl_note("%s: %lld of %s%lld pairs are edges of the graph%s", pairs->name,
                        (long long)count, pairs->shape[0] > CHECKED ? "the first " : "",
                        (long long)(pairs->shape[0] > CHECKED ? CHECKED : pairs->shape[0]),
                        negative ? " (expected pairs that are no links)"
                                 : ", which training sees (starling convert --split-edges takes "
                                   "links out)");
        }
    return code;
}

/* ---- All ---- */

static int allocate(struct making *m)
{
    struct sl_links *links = m->links;
    const size_t tiles = (size_t)m->d->tiles, blocks = tiles * tiles;
    const bool trains = !m->choice->measures_alone;
    links->tiles = m->d->tiles;
    links->list = calloc(tiles, sizeof *links->list);
    links->block = calloc(blocks, sizeof *links->block);
    links->measured = calloc(blocks, sizeof *links->measured);
    links->work = calloc(tiles, sizeof *links->work);
    links->part_cut = calloc(tiles + 1, sizeof *links->part_cut);
    links->segment = calloc(blocks, sizeof *links->segment);
    links->measured_segment = calloc(blocks, sizeof *links->measured_segment);
    m->expected = calloc(blocks, sizeof *m->expected);
    if (trains && m->choice->loss == SL_LINK_PAIRWISE)
        links->pairs = calloc(tiles, sizeof *links->pairs);
    if (trains && m->choice->decoder != SL_DECODER_DOT)
        links->parameters = calloc(tiles, sizeof *links->parameters);
    if (!links->list || !links->block || !links->measured || !links->work || !m->expected ||
        !links->part_cut || !links->segment || !links->measured_segment ||
        (trains && m->choice->loss == SL_LINK_PAIRWISE && !links->pairs) ||
        (trains && m->choice->decoder != SL_DECODER_DOT && !links->parameters))
        return no_memory(m);
    find_parts(m);
    return 0;
}

/* Find directions and targets, from this rank's share of the rows. Collective. */
static int find_directions(struct making *m)
{
    const int64_t n = m->source->vertices, ranks = m->rt->ranks, rank = m->rt->rank;
    const int64_t first = n * rank / ranks, end = n * (rank + 1) / ranks;
    struct sl_part part = {0};
    const int code = sl_source_read_adjacency(m->rt, m->source, first, end - first, &part);
    if (!code) {
        m->undirected = sl_links_are_undirected(m->rt, &part);
        m->first_target = sl_links_first_target(m->rt, m->source, &part, m->undirected);
        m->direction = sl_links_direction_key(m->choice->seed);
    }
    sl_part_close(&part);
    return code;
}

/* Set the rows of the vertices' numbers, where these are not the same. */
static int number_rows(struct making *m)
{
    struct sl_links *links = m->links;
    const int64_t n = m->source->vertices;
    links->draw = (struct sl_link_draw){.least = m->first_target,
                                        .end = n,
                                        .negatives = links->negatives,
                                        .tiles = m->d->tiles,
                                        .row_cut = m->d->row_cut};
    if (!m->source->order.vertex && !m->source->order.original.data && !m->d->kind->clones)
        return 0;
    links->row = malloc((size_t)n * sizeof *links->row);
    if (!links->row)
        return no_memory(m);
    for (int64_t v = 0; v < n; v++)
        links->row[sl_source_number(m->source, v)] = m->row_of[v];
    links->draw.row = links->row;
    return 0;
}

/* Add the links up, and the blocks' links over all ranks. Collective. */
static int count_links(struct making *m)
{
    struct sl_links *links = m->links;
    const int blocks = links->tiles * links->tiles;
    sl_runtime_sum(m->rt, m->expected, blocks);
    links->count = 0;
    for (int b = 0; b < blocks; b++)
        links->count += m->expected[b];
    if (links->count == 0)
        return sl_error(SL_ERR_DATA, "%s: there is no edge to train on", m->source->path);
    return 0;
}

/* Make what training needs. Collective. */
static int make_training(struct making *m)
{
    int code = find_directions(m);
    if (code)
        return code;
    code = number_rows(m);
    if (!code)
        code = list_links(m);
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = count_links(m);
    if (code)
        return code;
    code = create_blocks(m);
    if (!code)
        code = create_scratch(m);
    return sl_runtime_agree(m->rt, code);
}

int sl_links_make(struct sl_links *links, struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_operands *operands, const struct sl_link_choice *choice)
{
    struct making m = {.links = links,
                       .rt = rt,
                       .source = source,
                       .operands = operands,
                       .d = operands->distribution,
                       .choice = choice};
    *links = (struct sl_links){
        .decoder = choice->decoder, .negatives = choice->negatives, .seed = choice->seed};
    int code = sl_runtime_agree(rt, allocate(&m));
    if (!code)
        code = sl_runtime_agree(rt, find_rows(&m));
    if (!code && !choice->measures_alone)
        code = make_training(&m);
    if (!code)
        code = sl_runtime_agree(rt, measure_links(&m));
    if (!code && !rt->plans)
        code = note_edges(&m);
    free(m.expected);
    free(m.row_of);
    free(m.vertex_of);
    return sl_runtime_agree(rt, code);
}
