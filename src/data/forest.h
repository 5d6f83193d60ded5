/* Trees as an array of parents, in which a root is its own parent. */
#ifndef SL_DATA_FOREST_H
#define SL_DATA_FOREST_H

#include <stdint.h>

/* The root of v's tree; halves the path on the way. */
static inline int32_t sl_forest_root(int32_t *parent, int32_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

#endif
