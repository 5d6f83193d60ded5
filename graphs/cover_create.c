/* Find the entries that are served by row and by result (graphs/cover.h), and hand over the entries
 * served by result. Each rank decides for its own rows; no rank has the graph. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/temporary.h"
#include "graphs/cover.h"
#include "graphs/crossing.h"
#include "graphs/halo.h"

struct finding {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    const struct sl_adjacency_source *source;
    struct sl_cover *cover;
    bool *by_row; // (rows of the graph)
    int numbers;
    int64_t first, end;       /* rows of this rank */
    int64_t *bounds;          // (ranks + 1): rank r has the rows bounds[r] … bounds[r + 1] - 1
    struct sl_crossings sent; /* entries of own rows that other ranks serve */
    struct sl_crossing *came; // (came_count): entries that this rank serves
    int64_t came_count;
    int64_t *result_first; // (ranks · numbers + 1): results of each message
    int64_t *row_entry;    // (results + 1): the first entry of each result
    int64_t *rows;         // (results): the graph's row of each result
    int64_t *own_rows;     // rows here whose results come, message by message
    int64_t *own_first;    // (ranks · numbers + 1)
    int32_t *columns;      // (longest result)
    float *values;
};

static int no_memory(const struct finding *f, int64_t items)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %lld entries of a cover of %lld rows",
                    (long long)items, (long long)(f->end - f->first));
}

static int rank_of(const struct finding *f, int64_t row)
{
    return sl_cut_find(f->rt->ranks, f->bounds, row);
}

/* ---- Covers ---- */

static int list(const struct finding *f, const bool *by_row, struct sl_crossings *out)
{
    return sl_crossings_list(out, f->rt->ranks, f->bounds, f->first, f->end, f->source->row,
                             f->source->context, by_row);
}

static int find_covers(struct finding *f)
{
    const int64_t rows = f->d->row_cut[f->d->tiles];
    struct sl_crossings all;
    int32_t *place = malloc((size_t)(rows + 1) * sizeof *place);
    int code = list(f, NULL, &all);
    if (!code && !place)
        code = no_memory(f, rows);
    if (!code)
        code = sl_crossings_cover_all(&all, f->source->weights, place, f->by_row);
    sl_crossings_free(&all);
    free(place);
    return code ? code : list(f, f->by_row, &f->sent);
}

/* ---- Results and their messages ---- */

/* Return the number of the run of rank `rank`'s row tiles that has the row. */
static int number_of(const struct finding *f, int rank, int64_t row)
{
    int number = 0;
    while (row >= f->d->row_cut[sl_halo_run(f->d, f->numbers, rank, number).to])
        number++;
    return number;
}

/* Number results and messages. They come by rank, then by row, as the received entries do. */
static int number_results(struct finding *f)
{
    const int runs = f->rt->ranks * f->numbers;
    const size_t room = (size_t)f->came_count + 1;
    int64_t results = 0, longest = 0;
    int run = 0;
    f->result_first = calloc((size_t)runs + 1, sizeof *f->result_first);
    f->row_entry = malloc(room * sizeof *f->row_entry);
    f->rows = malloc(room * sizeof *f->rows);
    if (!f->result_first || !f->row_entry || !f->rows)
        return no_memory(f, f->came_count);
    for (int64_t k = 0; k < f->came_count; k++) {
        const int64_t row = f->came[k].row;
        if (k > 0 && row == f->came[k - 1].row)
            continue;
        const int rank = rank_of(f, row), now = rank * f->numbers + number_of(f, rank, row);
        while (run < now)
            f->result_first[++run] = results;
        f->row_entry[results] = k;
        f->rows[results++] = row;
    }
    while (run < runs)
        f->result_first[++run] = results;
    f->row_entry[results] = f->came_count;
    for (int64_t k = 0; k < results; k++) {
        const int64_t count = f->row_entry[k + 1] - f->row_entry[k];
        longest = count > longest ? count : longest;
    }
    f->columns = malloc((size_t)(longest + 1) * sizeof *f->columns);
    f->values = malloc((size_t)(longest + 1) * sizeof *f->values);
    return f->columns && f->values ? 0 : no_memory(f, longest);
}

/* List the rows of this rank whose results other ranks make, from the entries that it sent. */
static int number_own(struct finding *f)
{
    const int runs = f->rt->ranks * f->numbers;
    const int64_t sent = f->sent.rank_first[f->rt->ranks];
    int64_t count = 0;
    f->own_first = calloc((size_t)runs + 1, sizeof *f->own_first);
    f->own_rows = malloc((size_t)(sent + 1) * sizeof *f->own_rows);
    if (!f->own_first || !f->own_rows)
        return no_memory(f, sent);
    for (int q = 0; q < f->rt->ranks; q++) {
        int64_t k = f->sent.rank_first[q];
        for (int s = 0; s < f->numbers; s++) {
            const int64_t to = f->d->row_cut[sl_halo_run(f->d, f->numbers, f->rt->rank, s).to];
            for (; k < f->sent.rank_first[q + 1] && f->sent.entry[k].row < to; k++)
                if (k == f->sent.rank_first[q] || f->sent.entry[k].row != f->sent.entry[k - 1].row)
                    f->own_rows[count++] = f->sent.entry[k].row;
            f->own_first[q * f->numbers + s + 1] = count;
        }
    }
    return 0;
}

/* Results of own rows come round from the next rank; results for others go round backward. */
static int create_exchanges(struct finding *f)
{
    const struct sl_halo_messages come = {f->numbers, true, f->own_first, f->own_rows},
                                  go = {f->numbers, false, f->result_first, NULL};
    const size_t lists = (size_t)f->rt->ranks * (size_t)f->numbers;
    struct sl_exchange_list *own = calloc(lists, sizeof *own),
                            *other = calloc(lists, sizeof *other);
    int code = own && other ? 0 : no_memory(f, (int64_t)lists);
    if (!code) {
        const int owns = sl_halo_list(f->d, f->rt->rank, &come, own),
                  others = sl_halo_list(f->d, f->rt->rank, &go, other);
        code = sl_exchange_create(&f->cover->results, f->rt, f->numbers, f->d->row_cut, others,
                                  other, owns, own);
        if (!code)
            code = sl_exchange_create(&f->cover->operands, f->rt, f->numbers, f->d->row_cut, owns,
                                      own, others, other);
    }
    free(own);
    free(other);
    return code;
}

static int list_vertices(struct finding *f)
{
    const struct sl_exchange *x = &f->cover->results;
    f->cover->listed = calloc((size_t)x->sends + 1, sizeof *f->cover->listed);
    if (!f->cover->listed)
        return no_memory(f, x->sends);
    for (int p = 0; p < x->sends; p++) {
        const int64_t count = x->send[p].rows,
                      first = f->result_first[x->send[p].peer * f->numbers + x->send[p].number];
        if (sl_tile_create_own(&f->cover->listed[p], 1, count, sizeof(int32_t), f->rt->rank))
            return no_memory(f, count);
        for (int64_t k = 0; k < count; k++)
            ((int32_t *)f->cover->listed[p].memory)[k] = (int32_t)f->rows[first + k];
    }
    return 0;
}

/* ---- The matrix ---- */

/* Context of result_row, from which the matrix's rows are read. */
struct reading {
    const struct finding *f;
    const int64_t *row_cut; // (results.sends + 1)
    const int64_t *first;   // (results.sends): the first result of each message
    int messages;
};

static void result_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                       const float **values)
{
    const struct reading *reading = context;
    const struct finding *f = reading->f;
    const int p = sl_cut_find(reading->messages, reading->row_cut, r);
    const int64_t result = reading->first[p] + r - reading->row_cut[p], at = f->row_entry[result];
    *count = f->row_entry[result + 1] - at;
    for (int64_t e = 0; e < *count; e++) {
        f->columns[e] = f->came[at + e].col - (int32_t)f->first;
        f->values[e] = f->came[at + e].value;
    }
    *columns = f->columns;
    *values = f->values;
}

static int own_rank(const void *context, int i, int k)
{
    (void)i;
    (void)k;
    return ((const struct finding *)context)->rt->rank;
}

static int joined(const void *context, int i, int k)
{
    (void)i;
    return ((const struct finding *)context)->d->tiles_alone ? k : 0;
}

/* Make the matrix, whose tiles belong to this rank alone. Ranks have unlike numbers of tiles, so
 * all take equally many tags. */
static int create_matrix(struct finding *f)
{
    const struct sl_exchange *x = &f->cover->results;
    const struct sl_tile_run own = sl_grid_group(f->d, f->rt->rank);
    const int cols = own.to - own.from;
    const size_t room = (size_t)(x->sends > cols ? x->sends : cols) + 1;
    int64_t *row_cut = calloc(room, sizeof *row_cut), *col_cut = calloc(room, sizeof *col_cut),
            *first = calloc(room, sizeof *first);
    int code = row_cut && col_cut && first ? 0 : no_memory(f, (int64_t)room);
    const int64_t tiles = -sl_runtime_least(f->rt, -(int64_t)x->sends * cols);
    struct sl_runtime alone = *f->rt;
    alone.ranks = 1;
    alone.next_tag = sl_temporary_tags(f->rt, tiles);
    for (int p = 0; !code && p < x->sends; p++) {
        row_cut[p + 1] = row_cut[p] + x->send[p].rows;
        first[p] = f->result_first[x->send[p].peer * f->numbers + x->send[p].number];
    }
    for (int k = 0; !code && k < cols; k++)
        col_cut[k + 1] = f->d->row_cut[own.from + k + 1] - f->first;
    const struct reading reading = {f, row_cut, first, x->sends};
    if (!code)
        code = sl_sparse_matrix_create(
            &alone, &f->cover->matrix,
            &(struct sl_cuts){x->sends, cols, row_cut, col_cut, own_rank, f}, joined,
            f->source->block_cols,
            &(struct sl_sparse_rows){f->source->has_values, result_row, &reading, false, false,
                                     f->source->edges});
    if (alone.spmm.most_ones > f->rt->spmm.most_ones)
        f->rt->spmm.most_ones = alone.spmm.most_ones;
    free(row_cut);
    free(col_cut);
    free(first);
    return code;
}

/* ---- All of it ---- */

int sl_cover_allocate(struct sl_cover *cover, int ranks)
{
    int64_t **const counts[] = {&cover->received, &cover->sent,  &cover->messages, &cover->made,
                                &cover->nnz,      &cover->tiles, &cover->bytes};
    bool room = true;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        *counts[c] = calloc((size_t)ranks, sizeof **counts[c]);
        room = room && *counts[c];
    }
    return room ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d ranks", ranks);
}

static int allocate(struct finding *f)
{
    f->bounds = calloc((size_t)f->rt->ranks + 1, sizeof *f->bounds);
    if (!f->bounds)
        return no_memory(f, f->rt->ranks);
    for (int r = 0; r <= f->rt->ranks; r++)
        f->bounds[r] = f->d->row_cut[f->d->rank_cut[r]];
    return sl_cover_allocate(f->cover, f->rt->ranks);
}

static void share_counts(struct finding *f)
{
    struct sl_cover *cover = f->cover;
    const struct sl_sparse_matrix *a = &cover->matrix;
    int64_t tiles = 0;
    for (int64_t t = 0; t < (int64_t)a->tile_rows * a->tile_cols; t++)
        tiles += a->tiles[t].shape.nnz > 0;
    sl_runtime_gather(f->rt, sl_exchange_rows_received(&cover->results), cover->received);
    sl_runtime_gather(f->rt, sl_exchange_rows_sent(&cover->results), cover->sent);
    sl_runtime_gather(f->rt, cover->results.receives, cover->messages);
    sl_runtime_gather(f->rt, cover->results.sends, cover->made);
    sl_runtime_gather(f->rt, a->nnz, cover->nnz);
    sl_runtime_gather(f->rt, tiles, cover->tiles);
    sl_runtime_gather(f->rt, (int64_t)a->slab_bytes, cover->bytes);
}

static int make(struct finding *f)
{
    int code = allocate(f);
    if (!code)
        code = find_covers(f);
    code = sl_runtime_agree(f->rt, code);
    void *came = NULL;
    if (!code)
        code = sl_runtime_exchange(f->rt, f->sent.entry, f->sent.rank_first, sizeof *f->sent.entry,
                                   &came, &f->came_count);
    f->came = came;
    if (code)
        return code;
    code = number_results(f);
    if (!code)
        code = number_own(f);
    if (!code)
        code = create_exchanges(f);
    if (!code && f->source->numbered)
        code = list_vertices(f);
    code = sl_runtime_agree(f->rt, code);
    if (!code)
        code = sl_runtime_agree(f->rt, create_matrix(f));
    if (!code)
        share_counts(f);
    return code;
}

/* Find the cover of this rank's rows, and hand over the entries that others serve by result. Set
 * by_row (rows of the graph) to which rows of H come to this rank. */
static int create_cover(struct sl_runtime *rt, const struct sl_distribution *d,
                        const struct sl_adjacency_source *source, struct sl_cover *cover,
                        bool *by_row)
{
    struct finding f = {
        .rt = rt,
        .d = d,
        .source = source,
        .cover = cover,
        .by_row = by_row,
        .numbers = sl_halo_numbers(rt, d, source->row_bytes),
        .first = d->row_cut[d->rank_cut[rt->rank]],
        .end = d->row_cut[d->rank_cut[rt->rank + 1]],
    };
    const int code = make(&f);
    free(f.bounds);
    sl_crossings_free(&f.sent);
    free(f.came);
    free(f.result_first);
    free(f.row_entry);
    free(f.rows);
    free(f.own_rows);
    free(f.own_first);
    free(f.columns);
    free(f.values);
    return code;
}

/* Make the cover first: a rank receives only the rows that travel by row. */
int sl_cover_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                              const struct sl_adjacency_source *source,
                              struct sl_sparse_matrix *matrix)
{
    struct sl_halo *halo = (struct sl_halo *)d->own + source->transposed;
    bool *by_row = calloc((size_t)d->row_cut[d->tiles] + 1, sizeof *by_row);
    struct sl_cover *cover = calloc(1, sizeof *cover);
    int code = sl_runtime_agree(
        rt, by_row && cover ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for a cover of rows"));
    if (!code)
        code = create_cover(rt, d, source, cover, by_row);
    if (!code)
        code = sl_halo_create(rt, d, source, by_row, halo, matrix);
    halo->cover = cover;
    free(by_row);
    if (code)
        return code;
    int64_t by_result = cover->matrix.nnz;
    sl_runtime_sum(rt, &by_result, 1);
    matrix->nnz += by_result;
    matrix->apart_bytes = cover->matrix.slab_bytes;
    return 0;
}

void sl_cover_destroy(struct sl_cover *cover)
{
    for (int p = 0; cover->listed && p < cover->results.sends; p++)
        sl_tile_destroy(&cover->listed[p]);
    free(cover->listed);
    sl_sparse_matrix_destroy(&cover->matrix);
    sl_exchange_destroy(&cover->results);
    sl_exchange_destroy(&cover->operands);
    free(cover->received);
    free(cover->sent);
    free(cover->messages);
    free(cover->made);
    free(cover->nnz);
    free(cover->tiles);
    free(cover->bytes);
    free(cover->rows);
    free(cover->entries);
    *cover = (struct sl_cover){0};
}
