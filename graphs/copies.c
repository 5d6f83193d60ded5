#include "graphs/copies.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/view.h"

/* ---- Who owns which vertex ---- */

/* A row of a rank. Each column of a matrix has vertices of its own. */
struct place {
    int64_t vertex, row;
    int32_t rank, tile; /* tile: number among the rank's row tiles, from 0 */
};

/* A copy and its owner. */
struct pair {
    struct place copy, owner;
};

/* Return a vertex's home: the rank that keeps its entry of the directory. */
static int home_of(const struct sl_runtime *all, int64_t vertex)
{
    return (int)(vertex % all->ranks);
}

static int no_memory(int64_t rows)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %lld rows of vertices of other groups",
                    (long long)rows);
}

/* Send each item (size bytes) to rank rank_of(item), in the order of the items. */
static int send_items(struct sl_runtime *all, const void *items, int64_t count, size_t size,
                      int (*rank_of)(const struct sl_runtime *all, const void *item),
                      void **received, int64_t *arrived)
{
    int64_t *first = calloc((size_t)(all->ranks + 2), sizeof *first);
    char *sorted = malloc((size_t)(count + 1) * size);
    int code = sl_runtime_agree(all, first && sorted ? 0 : no_memory(count));
    for (int64_t k = 0; !code && k < count; k++)
        first[rank_of(all, (const char *)items + (size_t)k * size) + 2]++;
    for (int r = 0; !code && r < all->ranks; r++)
        first[r + 2] += first[r + 1];
    for (int64_t k = 0; !code && k < count; k++) {
        const char *item = (const char *)items + (size_t)k * size;
        memcpy(sorted + (size_t)first[rank_of(all, item) + 1]++ * size, item, size);
    }
    *received = NULL;
    if (!code)
        code = sl_runtime_exchange(all, sorted, first, size, received, arrived);
    free(first);
    free(sorted);
    return code;
}

static int home_of_place(const struct sl_runtime *all, const void *item)
{
    return home_of(all, ((const struct place *)item)->vertex);
}

static int rank_of_copy(const struct sl_runtime *all, const void *item)
{
    (void)all;
    return ((const struct pair *)item)->copy.rank;
}

static int rank_of_owner(const struct sl_runtime *all, const void *item)
{
    (void)all;
    return ((const struct pair *)item)->owner.rank;
}

static int compare_vertices(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

/* List this rank's rows that have the role. Return how many. */
static int64_t list_rows(const struct sl_copies *copies, const struct sl_copies_rows *rows,
                         enum sl_copies_role role, struct place *list)
{
    const int64_t first = rows->row_cut[rows->from];
    int64_t count = 0;
    for (int t = rows->from; t < rows->to; t++)
        for (int64_t r = rows->row_cut[t]; r < rows->row_cut[t + 1]; r++)
            if (rows->role[r - first] == role)
                list[count++] = (struct place){
                    .vertex = (int64_t)rows->vertex[r - first] * rows->columns + rows->column,
                    .row = r,
                    .rank = copies->groups->all->rank,
                    .tile = t - rows->from};
    return count;
}

/* Pair each copy with the owner of its vertex, on the vertices' home rank. */
static int match(int columns, struct place *owner, int64_t owners, const struct place *copy,
                 int64_t count, struct pair *pair)
{
    qsort(owner, (size_t)owners, sizeof *owner, compare_vertices);
    for (int64_t k = 0; k < count; k++) {
        const struct place *found =
            bsearch(&copy[k], owner, (size_t)owners, sizeof *owner, compare_vertices);
        if (!found)
            return sl_error(SL_ERR_SYSTEM, "vertex %lld belongs to no group",
                            (long long)copy[k].vertex / columns);
        pair[k] = (struct pair){copy[k], *found};
    }
    return 0;
}

/* Find the pairs of this rank's copies, and the pairs of the rows that it owns, through the home
 * ranks. */
static int find_pairs(const struct sl_copies *copies, const struct sl_copies_rows *rows,
                      struct pair *of_copies[1], int64_t *n_copies, struct pair *of_owners[1],
                      int64_t *n_owners)
{
    struct sl_runtime *all = copies->groups->all;
    const int64_t own = rows->row_cut[rows->to] - rows->row_cut[rows->from];
    struct place *list = malloc((size_t)(own + 1) * sizeof *list);
    void *owner = NULL, *copy = NULL, *one = NULL, *two = NULL;
    int64_t owners = 0, count = 0;
    struct pair *pair = NULL;
    int code = sl_runtime_agree(all, list ? 0 : no_memory(own));
    if (!code)
        code = send_items(all, list, list_rows(copies, rows, SL_COPIES_OWNER, list), sizeof *list,
                          home_of_place, &owner, &owners);
    if (!code)
        code = send_items(all, list, list_rows(copies, rows, SL_COPIES_COPY, list), sizeof *list,
                          home_of_place, &copy, &count);
    if (!code) {
        pair = malloc((size_t)(count + 1) * sizeof *pair);
        code = pair ? match(rows->columns, owner, owners, copy, count, pair) : no_memory(count);
        code = sl_runtime_agree(all, code);
    }
    if (!code)
        code = send_items(all, pair, count, sizeof *pair, rank_of_copy, &one, n_copies);
    if (!code)
        code = send_items(all, pair, count, sizeof *pair, rank_of_owner, &two, n_owners);
    *of_copies = one;
    *of_owners = two;
    free(list);
    free(owner);
    free(copy);
    free(pair);
    return code;
}

/* ---- Lists of rows ---- */

/* Order pairs by message, alike on both ends. A message goes to one tile of a rank with copies; its
 * rows ascend at the owner. */
static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    const int64_t key[][2] = {{x->owner.rank, y->owner.rank},
                              {x->copy.rank, y->copy.rank},
                              {x->copy.tile, y->copy.tile},
                              {x->owner.row, y->owner.row}};
    for (size_t k = 0; k < sizeof key / sizeof *key; k++)
        if (key[k][0] != key[k][1])
            return key[k][0] < key[k][1] ? -1 : 1;
    return 0;
}

static bool one_message(const struct pair *x, const struct pair *y)
{
    return x->owner.rank == y->owner.rank && x->copy.rank == y->copy.rank &&
           x->copy.tile == y->copy.tile;
}

/* Make the lists of one end. `at_copies`: a list has rows of copies, in one tile; else rows of
 * owners, in any of this rank's tiles. */
static struct sl_exchange_list *make_lists(const struct sl_copies_rows *rows, struct pair *pair,
                                           int64_t count, bool at_copies, int *lists,
                                           int64_t **numbers)
{
    struct sl_exchange_list *list = calloc((size_t)count + 1, sizeof *list);
    int64_t *number = *numbers = malloc((size_t)(count + 1) * sizeof *number);
    *lists = 0;
    if (!list || !number)
        return list;
    qsort(pair, (size_t)count, sizeof *pair, compare_pairs);
    for (int64_t k = 0; k < count; k++) {
        number[k] = at_copies ? pair[k].copy.row : pair[k].owner.row;
        if (k == 0 || !one_message(&pair[k - 1], &pair[k])) {
            const int tile = rows->from + pair[k].copy.tile;
            list[(*lists)++] = (struct sl_exchange_list){
                .peer = at_copies ? pair[k].owner.rank : pair[k].copy.rank,
                .number = pair[k].copy.tile,
                .from = at_copies ? tile : rows->from,
                .to = at_copies ? tile + 1 : rows->to,
                .rows = &number[k],
            };
        }
        list[*lists - 1].count++;
    }
    return list;
}

/* Return SL_ERR_USAGE on all ranks if groups have unlike columns, as groups of unlike sizes may. */
static int check_columns(struct sl_runtime *all, int columns)
{
    const int64_t least = sl_runtime_least(all, columns), most = -sl_runtime_least(all, -columns);
    return least == most
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--preload-hops: groups have grids of %d to %d columns (expected as many "
                          "columns in each group, or --preload-hops all)",
                          (int)least, (int)most);
}

int sl_copies_create(struct sl_copies *copies, const struct sl_groups *groups, int hops, int delay,
                     const struct sl_copies_rows *rows)
{
    struct sl_runtime *all = groups->all;
    struct pair *of_copies = NULL, *of_owners = NULL;
    int64_t n_copies = 0, n_owners = 0, *number[2] = {NULL, NULL};
    struct sl_exchange_list *come = NULL, *go = NULL;
    int comes = 0, goes = 0;
    *copies =
        (struct sl_copies){.groups = groups, .hops = hops, .delay = delay, .column = rows->column};
    int code = check_columns(all, rows->columns);
    if (!code)
        code = find_pairs(copies, rows, &of_copies, &n_copies, &of_owners, &n_owners);
    if (!code) {
        come = make_lists(rows, of_copies, n_copies, true, &comes, &number[0]);
        go = make_lists(rows, of_owners, n_owners, false, &goes, &number[1]);
        code = come && go && number[0] && number[1] ? 0 : no_memory(n_copies + n_owners);
    }
    code = sl_runtime_agree(all, code);
    const int numbers = (int)-sl_runtime_least(all, -(int64_t)(rows->to - rows->from));
    if (!code)
        code = sl_exchange_create(&copies->to_copies, all, numbers, rows->row_cut, goes, go, comes,
                                  come);
    if (!code)
        code = sl_exchange_create(&copies->to_owners, all, numbers, rows->row_cut, comes, come,
                                  goes, go);
    for (int k = 0; k < 2; k++)
        free(number[k]);
    free(come);
    free(go);
    free(of_copies);
    free(of_owners);
    return sl_runtime_agree(all, code);
}

void sl_copies_destroy(struct sl_copies *copies)
{
    sl_exchange_destroy(&copies->to_copies);
    sl_exchange_destroy(&copies->to_owners);
    for (int z = 0; z < copies->zeros; z++)
        sl_tile_destroy(&copies->zero[z]);
    free(copies->zero);
    *copies = (struct sl_copies){0};
}

/* ---- Memory ---- */

static int64_t messages_bytes(int count, const struct sl_exchange_part *parts, int64_t row)
{
    int64_t bytes = 0;
    for (int p = 0; p < count; p++)
        bytes += (int64_t)sl_memory_taken((size_t)(parts[p].rows * row));
    return bytes;
}

static int64_t most_rows(const struct sl_exchange *x)
{
    int64_t rows = 1;
    for (int p = 0; p < x->receives; p++)
        rows = x->receive[p].rows > rows ? x->receive[p].rows : rows;
    return rows;
}

static int64_t own_width(const struct sl_copies *copies, const struct sl_matrix *matrix)
{
    return matrix->col_cut[copies->column + 1] - matrix->col_cut[copies->column];
}

int64_t sl_copies_bytes(const struct sl_copies *copies, const struct sl_matrix *matrix, bool again)
{
    const struct sl_exchange *there = &copies->to_copies, *back = &copies->to_owners;
    const int64_t row = own_width(copies, matrix) * (int64_t)sl_type_size(matrix->type),
                  sent = messages_bytes(there->sends, there->send, row),
                  sent_back = messages_bytes(back->sends, back->send, row);
    const int64_t received = messages_bytes(there->receives, there->receive, row);
    const int64_t late = copies->delay > 0 ? 2 * received : 0;
    return late + (again ? 0
                         : received + messages_bytes(back->receives, back->receive, row) +
                               most_rows(there) * row + (sent > sent_back ? sent : sent_back));
}

int64_t sl_copies_list_bytes(const struct sl_copies *copies)
{
    const struct sl_exchange *x[] = {&copies->to_copies, &copies->to_owners};
    int64_t rows = 0;
    for (int k = 0; k < 2; k++)
        rows += sl_exchange_rows_sent(x[k]) + sl_exchange_rows_received(x[k]);
    return rows * (int64_t)sizeof(uint32_t);
}

/* ---- Exchange ---- */

/* Return the matrix as the view of all groups sees it: this rank owns its tiles, and no rank owns
 * the others. The caller frees the tiles. */
static struct sl_matrix seen_by_all(const struct sl_groups *groups, const struct sl_matrix *matrix)
{
    const int count = matrix->tile_rows * matrix->tile_cols;
    struct sl_matrix seen = *matrix;
    seen.tiles = malloc((size_t)(count + 1) * sizeof *seen.tiles);
    if (!seen.tiles)
        sl_fatal("no memory for a list of %d tiles", count);
    for (int t = 0; t < count; t++) {
        seen.tiles[t] = matrix->tiles[t];
        seen.tiles[t].owner = -1;
        if (matrix->tiles[t].owner != groups->own->rank)
            continue;
        seen.tiles[t].owner = groups->all->rank;
        sl_view_lend(groups->own, &matrix->tiles[t], &seen.tiles[t]);
    }
    return seen;
}

static bool is_exact(const struct sl_copies *copies, const struct sl_copies_step *step)
{
    return copies->delay == 0 || step->exact || step->before < copies->delay;
}

/* Return the exchange's place for the messages of a period of `delay` steps. Messages that are read
 * at once have place 0. */
static int place_of(const struct sl_copies_step *step, int64_t period)
{
    return 1 + 2 * step->number + (int)(period % 2);
}

static void unpack_all(struct sl_copies *copies, struct sl_exchange *x, int place, bool accumulate,
                       const struct sl_matrix *z)
{
    struct sl_runtime *all = copies->groups->all;
    for (int p = 0; p < x->receives; p++)
        sl_exchange_unpack(all, x, p, sl_exchange_arrived(all, x, z, copies->column, place, p),
                           accumulate, z, copies->column);
}

void sl_copies_refresh(struct sl_copies *copies, const struct sl_copies_step *step,
                       const struct sl_matrix *h)
{
    struct sl_runtime *all = copies->groups->all;
    struct sl_exchange *x = &copies->to_copies;
    struct sl_matrix seen = seen_by_all(copies->groups, h);
    const bool exact = is_exact(copies, step);
    const int64_t period = copies->delay ? step->before / copies->delay : 0;
    if (copies->delay && step->before % copies->delay == 0)
        sl_exchange_post(all, x, &seen, copies->column, place_of(step, period));
    if (exact)
        sl_exchange_post(all, x, &seen, copies->column, 0);
    unpack_all(copies, x, exact ? 0 : place_of(step, period - 1), false, &seen);
    free(seen.tiles);
}

/* Return zeros for the rows of any message, made on the first call for a width and type. */
static struct sl_tile *zeros_like(struct sl_copies *copies, const struct sl_matrix *g)
{
    const int64_t rows = most_rows(&copies->to_copies), width = own_width(copies, g);
    for (int z = 0; z < copies->zeros; z++)
        if (copies->zero[z].cols == width && copies->zero[z].element_size == sl_type_size(g->type))
            return &copies->zero[z];
    struct sl_tile *longer = realloc(copies->zero, (size_t)(copies->zeros + 1) * sizeof *longer);
    if (!longer)
        sl_fatal("no memory for %d tiles of zeros", copies->zeros + 1);
    copies->zero = longer;
    struct sl_tile *zero = &copies->zero[copies->zeros++];
    /* no tag: ranks may have unlike columns, and so unlike zeros */
    if (sl_tile_create_own(zero, rows, width, sl_type_size(g->type), copies->groups->all->rank))
        sl_fatal("no memory for %lld zeros", (long long)(rows * width));
    return zero;
}

/* Clear copies when their gradients are packed, before owners add other groups' gradients. */
void sl_copies_return(struct sl_copies *copies, const struct sl_copies_step *step,
                      const struct sl_matrix *g)
{
    struct sl_runtime *all = copies->groups->all;
    struct sl_matrix seen = seen_by_all(copies->groups, g);
    struct sl_tile *zero = zeros_like(copies, g);
    const bool exact = is_exact(copies, step);
    if (exact)
        sl_exchange_post(all, &copies->to_owners, &seen, copies->column, 0);
    for (int p = 0; p < copies->to_copies.receives; p++)
        sl_exchange_unpack(all, &copies->to_copies, p, zero, false, &seen, copies->column);
    if (exact)
        unpack_all(copies, &copies->to_owners, 0, true, &seen);
    free(seen.tiles);
}
