#include "predict/tile_counts.h"

#include <math.h>
#include <stdlib.h>

#include "assembly/adjacency_rows.h"
#include "core/error.h"
#include "predict/cover_counts.h"
#include "predict/halo_counts.h"

static int create_counts(int tiles, struct sl_tile_counts *out)
{
    *out = (struct sl_tile_counts){.tiles = tiles, .symmetric = true};
    out->nnz = calloc((size_t)tiles * (size_t)tiles, sizeof *out->nnz);
    return out->nnz
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %d x %d tiles", tiles, tiles);
}

/* The tile of each vertex. */
static int32_t *locate(const struct sl_partition *p)
{
    int32_t *tile = malloc((size_t)p->row_cut[p->tiles] * sizeof *tile);
    for (int t = 0; tile && t < p->tiles; t++)
        for (int64_t r = p->row_cut[t]; r < p->row_cut[t + 1]; r++)
            tile[r] = t;
    if (!tile)
        sl_error(SL_ERR_SYSTEM, "no memory for the tiles of %lld vertices",
                 (long long)p->row_cut[p->tiles]);
    return tile;
}

/* The rows of the partition's ranks from … to - 1. */
struct share {
    const struct sl_partition *partition;
    int from, to;
    const struct sl_part *part;
};

static int count_part(const struct share *share, bool loops, struct sl_halo_counts *halo,
                      struct sl_cover_counts *cover, struct sl_tile_counts *out)
{
    const struct sl_partition *p = share->partition;
    const struct sl_part *part = share->part;
    struct sl_adjacency_rows rows;
    const int64_t end = part->first + part->data.adjacency.rows;
    int32_t *tile = locate(p);
    int code = sl_adjacency_rows_open(&rows, &part->data.adjacency, part->first, loops);
    if (!tile)
        code = SL_ERR_SYSTEM;
    for (int64_t r = part->first; !code && r < end; r++) {
        int64_t *nnz = out->nnz + (int64_t)tile[r] * p->tiles, count;
        const int32_t *columns;
        const float *values;
        sl_adjacency_row(&rows, r, &count, &columns, &values);
        for (int64_t e = 0; e < count; e++)
            nnz[tile[columns[e]]]++;
        if (halo)
            sl_halo_counts_add(halo, tile, tile[r], r, count, columns);
    }
    if (!code && cover)
        code = sl_cover_counts_add(cover, &rows, tile, part->data.symmetric, sl_part_numbers(part),
                                   share->from, share->to);
    sl_adjacency_rows_close(&rows);
    free(tile);
    return code;
}

int sl_tile_counts_read(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_partition *p, bool loops, struct sl_halo_counts *halo,
                        struct sl_cover_counts *cover, struct sl_tile_counts *out)
{
    struct sl_part part = {0};
    const int from = (int)((int64_t)p->ranks * rt->rank / rt->ranks),
              to = (int)((int64_t)p->ranks * (rt->rank + 1) / rt->ranks);
    const int64_t first = p->row_cut[p->rank_cut[from]], end = p->row_cut[p->rank_cut[to]];
    int code = sl_runtime_agree(rt, create_counts(p->tiles, out));
    if (!code)
        code = sl_source_read_adjacency(rt, source, first, end - first, &part);
    if (!code)
        code = sl_runtime_agree(
            rt, count_part(&(struct share){p, from, to, &part}, loops, halo, cover, out));
    if (!code) {
        const int64_t tiles = (int64_t)p->tiles * p->tiles;
        sl_runtime_sum(rt, out->nnz, tiles);
        for (int64_t t = 0; t < tiles; t++)
            out->entries += out->nnz[t];
        out->symmetric = part.data.symmetric;
        out->numbers = sl_part_numbers(&part);
        if (halo)
            sl_halo_counts_sum(rt, halo);
        if (cover)
            sl_cover_counts_sum(rt, cover, out);
    }
    sl_part_close(&part);
    return code;
}

/* Neighbouring tiles of a rank, which have all its clones of some hops. */
struct hop_tiles {
    int from, to;
    int hop, end; /* these hops */
};

/* The next ones of rank r. `hops`: of the graph, 1 where none are known. */
static bool next_tiles(const struct sl_partition *p, int r, int hops, struct hop_tiles *run)
{
    const int begin = p->rank_cut[r], end = p->rank_cut[r + 1];
    run->from = run->to > begin ? run->to : begin;
    if (run->from >= end)
        return false;
    for (run->to = run->from + 1; run->to < end; run->to++)
        if (p->hop && p->hop[run->to] != p->hop[run->from])
            break;
    run->hop = run->from == begin ? 0 : p->hop[run->from];
    run->end = run->to == end ? hops : p->hop[run->to];
    return true;
}

/* Spread entries (hops, hops) of a rank over its tiles of some hops of rows and of columns. */
static void spread(const struct hop_tiles *row, const struct hop_tiles *column, int hops,
                   const int64_t *entries, struct sl_tile_counts *out)
{
    const int64_t width = column->to - column->from, all = (row->to - row->from) * width;
    int64_t sum = 0;
    for (int i = row->hop; i < row->end; i++)
        for (int k = column->hop; k < column->end; k++)
            sum += entries[i * hops + k];
    for (int64_t t = 0; t < all; t++)
        out->nnz[(row->from + t / width) * out->tiles + column->from + t % width] =
            sum / all + (t < sum % all);
    out->entries += sum;
}

int sl_tile_counts_spread(const struct sl_partition *p, int hops, const int64_t *entries,
                          bool symmetric, int64_t numbers, struct sl_tile_counts *out)
{
    const int code = create_counts(p->tiles, out);
    out->symmetric = symmetric;
    out->numbers = numbers;
    for (int r = 0; !code && r < p->ranks; r++)
        for (struct hop_tiles row = {0}; next_tiles(p, r, hops, &row);)
            for (struct hop_tiles column = {0}; next_tiles(p, r, hops, &column);)
                spread(&row, &column, hops, entries + (int64_t)r * hops * hops, out);
    return code;
}

static int64_t *copy_counts(const struct sl_sparse_matrix *matrix)
{
    const size_t tiles = (size_t)matrix->tile_rows * (size_t)matrix->tile_cols;
    int64_t *nnz = malloc(tiles * sizeof *nnz);
    for (size_t t = 0; nnz && t < tiles; t++)
        nnz[t] = matrix->tiles[t].shape.nnz;
    if (!nnz)
        sl_error(SL_ERR_SYSTEM, "no memory for the counts of %zu tiles", tiles);
    return nnz;
}

int sl_tile_counts_of(const struct sl_sparse_matrix *matrix,
                      const struct sl_sparse_matrix *transposed, struct sl_tile_counts *out)
{
    *out = (struct sl_tile_counts){
        .tiles = matrix->tile_rows,
        .nnz = copy_counts(matrix),
        .back = transposed->tiles ? copy_counts(transposed) : NULL,
        .entries = matrix->nnz,
        .symmetric = !transposed->tiles,
        .numbers = matrix->tiles[0].shape.has_values + matrix->tiles[0].shape.edge_features,
    };
    return out->nnz && (out->symmetric || out->back) ? 0 : SL_ERR_SYSTEM;
}

int sl_tile_counts_expect(const struct sl_partition *p, int64_t entries, bool loops,
                          struct sl_tile_counts *out)
{
    const int code = create_counts(p->tiles, out);
    const double n = (double)p->row_cut[p->tiles], density = (double)entries / n / n;
    for (int i = 0; !code && i < p->tiles; i++)
        for (int k = 0; k < p->tiles; k++) {
            const int64_t rows = p->row_cut[i + 1] - p->row_cut[i],
                          cols = p->row_cut[k + 1] - p->row_cut[k];
            const int64_t nnz =
                llround(density * (double)rows * (double)cols) + (loops && i == k ? rows : 0);
            out->nnz[(int64_t)i * p->tiles + k] = nnz;
            out->entries += nnz;
        }
    return code;
}

/* Entries of tile rows of one rank in the tile columns of another. */
static int64_t entries_between(const struct sl_tile_counts *counts, const int *rank_cut, int row,
                               int col)
{
    int64_t entries = 0;
    for (int i = rank_cut[row]; i < rank_cut[row + 1]; i++)
        for (int k = rank_cut[col]; k < rank_cut[col + 1]; k++)
            entries += counts->nnz[(int64_t)i * counts->tiles + k];
    return entries;
}

struct sl_stage_balance sl_tile_counts_stages(const struct sl_tile_counts *counts,
                                              const int *rank_cut, int ranks, int window)
{
    struct sl_stage_balance balance = {1.0, 1.0};
    double waited = 0.0, worked = 0.0;
    for (int stage = 0; stage < ranks; stage += window) {
        double most = 0.0, sum = 0.0;
        for (int r = 0; r < ranks; r++) {
            double here = 0.0;
            for (int s = stage; s < stage + window && s < ranks; s++)
                here += (double)entries_between(counts, rank_cut, r, (r + s) % ranks);
            most = fmax(most, here);
            sum += here;
        }
        if (sum > 0.0)
            balance.worst = fmax(balance.worst, most * ranks / sum);
        waited += most * ranks;
        worked += sum;
    }
    if (worked > 0.0)
        balance.all = waited / worked;
    return balance;
}

void sl_tile_counts_destroy(struct sl_tile_counts *counts)
{
    free(counts->nnz);
    free(counts->back);
    *counts = (struct sl_tile_counts){0};
}
