#include "graphs/distribution.h"

#include <string.h>

static const struct sl_distribution_kind *const kinds[] = {
    &sl_distribution_1d,
};

const struct sl_distribution_kind *sl_distribution_find(const char *name)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k]->name, name) == 0)
            return kinds[k];
    return NULL;
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
