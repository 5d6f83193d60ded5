#include "graphs/distribution.h"

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
    return d->kind->span(d, i, k);
}

struct sl_epilogue_tiles sl_row_epilogue_at(const struct sl_row_epilogue *epilogue, int i)
{
    struct sl_epilogue_tiles tiles = epilogue->common;
    tiles.facts = &epilogue->facts[i];
    tiles.mask = epilogue->mask ? sl_matrix_tile(epilogue->mask, i, 0) : NULL;
    return tiles;
}
