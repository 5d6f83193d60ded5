#include "data/partition/scotch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#include <ptscotch.h>

#include "core/error.h"
#include "core/ranks.h"

bool sl_scotch_exists(void)
{
    return true;
}

/* Copy numbers to PT-Scotch's type. NULL: no memory. */
static SCOTCH_Num *numbers(const int64_t *from, int64_t count)
{
    SCOTCH_Num *to = malloc((size_t)(count + 1) * sizeof *to);
    for (int64_t k = 0; to && k < count; k++)
        to[k] = (SCOTCH_Num)from[k];
    return to;
}

/* Partition by PT-Scotch; return 0 if it has made the parts. */
static int partition(const struct sl_runtime *rt, SCOTCH_Num rows, SCOTCH_Num *start,
                     SCOTCH_Num *column, SCOTCH_Num *weight, int parts, SCOTCH_Num *part)
{
    SCOTCH_Dgraph graph;
    SCOTCH_Strat strategy;
    MPI_Comm comm;
    sl_ranks_copy_comm(rt, &comm);
    int bad = SCOTCH_dgraphInit(&graph, comm);
    if (!bad) {
        bad = SCOTCH_dgraphBuild(&graph, 0, rows, rows, start, NULL, weight, NULL, start[rows],
                                 start[rows], column, NULL, NULL);
        SCOTCH_stratInit(&strategy);
        if (!bad)
            bad = SCOTCH_dgraphPart(&graph, parts, &strategy, part);
        SCOTCH_stratExit(&strategy);
        SCOTCH_dgraphExit(&graph);
    }
    MPI_Comm_free(&comm);
    return bad;
}

int sl_scotch_partition(struct sl_runtime *rt, const struct sl_scotch_rows *rows, int parts,
                        uint64_t seed, int32_t *part)
{
    const int64_t edges = rows->start[rows->count];
    int64_t sums[] = {edges, 0};
    SCOTCH_Num *start = numbers(rows->start, rows->count + 1),
               *column = numbers(rows->column, edges), *weight = numbers(rows->weight, rows->count),
               *found = malloc((size_t)(rows->count + 1) * sizeof *found);
    int code =
        start && column && weight && found
            ? 0
            : sl_error(SL_ERR_SYSTEM, "no memory to partition %lld rows", (long long)rows->count);
    for (int64_t r = 0; r < rows->count; r++)
        sums[1] += rows->weight[r];
    sl_runtime_sum(rt, sums, 2);
    const bool narrow = sizeof *start < sizeof *sums;
    if (!code && narrow && sums[0] > INT32_MAX)
        code = sl_error(SL_ERR_SYSTEM,
                        "this PT-Scotch counts in 32 bits, and the graph has %lld edges (expected "
                        "one that counts in 64 bits, or --partition FILE)",
                        (long long)sums[0]);
    for (int64_t r = 0; !code && narrow && r < rows->count; r++) /* it adds weights in 32 bits */
        weight[r] = (SCOTCH_Num)fmax(1.0, (double)(rows->weight[r] / (1 + sums[1] / INT32_MAX)));
    code = sl_runtime_agree(rt, code);
    if (!code) {
        SCOTCH_randomSeed((SCOTCH_Num)(seed & INT32_MAX));
        SCOTCH_randomReset();
        if (partition(rt, (SCOTCH_Num)rows->count, start, column, weight, parts, found))
            code = sl_error(SL_ERR_SYSTEM, "PT-Scotch cannot make %d parts of the graph", parts);
        code = sl_runtime_agree(rt, code);
    }
    for (int64_t r = 0; !code && r < rows->count; r++)
        part[r] = (int32_t)found[r];
    free(start);
    free(column);
    free(weight);
    free(found);
    return code;
}
