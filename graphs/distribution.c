#include "graphs/distribution.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

const struct sl_distribution_name *sl_distribution_find(const char *name)
{
    const struct sl_distribution_name *row = sl_distribution_names;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

int sl_distribution_create_nothing(struct sl_distribution *d)
{
    (void)d;
    return 0;
}

void sl_distribution_destroy_nothing(struct sl_distribution *d)
{
    (void)d;
}

bool sl_distribution_is_exact(const struct sl_distribution *d)
{
    (void)d;
    return true;
}

double sl_distribution_share_all(const struct sl_distribution *d, bool transposed)
{
    (void)d;
    (void)transposed;
    return 1.0;
}

struct sl_states_size sl_distribution_states(const struct sl_distribution *d,
                                             const struct sl_reducer *reducer, enum sl_type moved,
                                             bool back)
{
    if (d->kind->clones && back)
        return (struct sl_states_size){1, (int64_t)sizeof(float)};
    return (struct sl_states_size){reducer->outputs, sl_reducer_bytes(reducer, moved)};
}

int sl_distribution_whole_owner(const void *distribution, int i, int j)
{
    (void)j;
    const struct sl_distribution *d = distribution;
    return d->kind->whole_owner(d, i);
}

int sl_distribution_dense_owner(const void *distribution, int i, int j)
{
    const struct sl_distribution *d = distribution;
    return d->kind->dense_owner(d, i, j);
}

int sl_distribution_sparse_owner(const void *distribution, int i, int k)
{
    const struct sl_distribution *d = distribution;
    return d->kind->sparse_owner(d, i, k);
}

int sl_distribution_span(const void *distribution, int i, int k)
{
    const struct sl_distribution *d = distribution;
    const int first = d->tiles_alone ? k : d->kind->span(d, i, k);
    int joined = k;
    while (joined > first && (!d->hop || d->hop[joined - 1] == d->hop[k]))
        joined--;
    return joined;
}

int sl_distribution_tiles(const struct sl_distribution *d, int hops, int **tile)
{
    int count = 0;
    *tile = malloc((size_t)(d->tiles + 1) * sizeof **tile);
    if (!*tile)
        sl_fatal("no memory for a list of %d tiles", d->tiles);
    for (int i = 0; i < d->tiles; i++)
        if (!d->hop || d->hop[i] <= hops)
            (*tile)[count++] = i;
    return count;
}

int sl_distribution_describe_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, const int64_t *cut)
{
    const struct sl_cuts cuts = {
        d->tiles, d->grid.columns, d->row_cut, cut, sl_distribution_dense_owner, d};
    const int code = sl_matrix_describe(rt, matrix, type, &cuts);
    matrix->row_order = d->row_order;
    return code;
}

int sl_distribution_create_cut(struct sl_runtime *rt, const struct sl_distribution *d,
                               struct sl_matrix *matrix, enum sl_type type, const int64_t *cut)
{
    const int code = sl_distribution_describe_cut(rt, d, matrix, type, cut);
    return code ? code : sl_matrix_allocate(rt, matrix);
}

int sl_distribution_describe_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                  struct sl_matrix *matrix, enum sl_type type, int64_t width)
{
    int64_t *cut = sl_grid_cut(&d->grid, width);
    const int code = cut ? sl_distribution_describe_cut(rt, d, matrix, type, cut) : SL_ERR_SYSTEM;
    free(cut);
    return code;
}

int sl_distribution_create_rows(struct sl_runtime *rt, const struct sl_distribution *d,
                                struct sl_matrix *matrix, enum sl_type type, int64_t width)
{
    const int code = sl_distribution_describe_rows(rt, d, matrix, type, width);
    return code ? code : sl_matrix_allocate(rt, matrix);
}

int sl_distribution_create_whole(struct sl_runtime *rt, const struct sl_distribution *d,
                                 struct sl_matrix *matrix, enum sl_type type, int64_t width)
{
    const int64_t cut[] = {0, width};
    const struct sl_cuts cuts = {d->tiles, 1, d->row_cut, cut, sl_distribution_whole_owner, d};
    const int code = sl_matrix_create(rt, matrix, type, &cuts);
    matrix->row_order = d->row_order;
    return code;
}

int64_t sl_distribution_taken(const struct sl_distribution *d, struct sl_tile_run run, int64_t row)
{
    int64_t bytes = 0;
    for (int i = run.from; i < run.to; i++)
        bytes += (int64_t)sl_memory_taken((size_t)((d->row_cut[i + 1] - d->row_cut[i]) * row));
    return bytes;
}
