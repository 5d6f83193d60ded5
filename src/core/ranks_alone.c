/* A build without MPI has one rank. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/ranks.h"

bool sl_runtime_launched(void)
{
    return false;
}

int sl_runtime_hold_mpi(struct sl_runtime *rt)
{
    *rt = (struct sl_runtime){.ranks = 1};
    return 0;
}

void sl_runtime_keep_mpi(void)
{
}

void sl_runtime_release_mpi(void)
{
}

int sl_ranks_start(struct sl_runtime *rt)
{
    (void)rt;
    return 0;
}

bool sl_ranks_use_mpi(void)
{
    return false;
}

void sl_ranks_count_sharers(const char *text, int *sharers, int *index)
{
    (void)text;
    *sharers = 1;
    *index = 0;
}

int sl_ranks_split(struct sl_runtime *parent, int colour, struct sl_runtime *view)
{
    (void)parent, (void)colour, (void)view;
    return 0;
}

void sl_ranks_unite(struct sl_runtime *view)
{
    (void)view;
}

bool sl_ranks_reach_gpus(void)
{
    return false;
}

int sl_ranks_here(void)
{
    return 1;
}

int sl_runtime_node(struct sl_runtime *rt)
{
    (void)rt;
    return 0;
}

int sl_ranks_start_messages(void)
{
    return 0;
}

void sl_ranks_stop_messages(void)
{
}

void sl_ranks_stop(void)
{
}

void sl_runtime_gather(struct sl_runtime *rt, int64_t value, int64_t *values)
{
    values[rt->rank] = value;
}

void sl_runtime_sum(struct sl_runtime *rt, int64_t *values, int64_t count)
{
    (void)rt, (void)values, (void)count;
}

void sl_runtime_broadcast(struct sl_runtime *rt, int root, void *memory, int64_t bytes)
{
    (void)rt, (void)root, (void)memory, (void)bytes;
}

int sl_runtime_exchange(struct sl_runtime *rt, const void *items, const int64_t *first, size_t size,
                        void **received, int64_t *count)
{
    (void)rt;
    const size_t bytes = (size_t)(first[1] - first[0]) * size;
    *count = first[1] - first[0];
    *received = malloc(bytes + 1);
    if (!*received)
        return sl_error(SL_ERR_SYSTEM, "no memory for %lld items", (long long)*count);
    if (bytes > 0)
        memcpy(*received, (const char *)items + (size_t)first[0] * size, bytes);
    return 0;
}

int64_t sl_runtime_least(struct sl_runtime *rt, int64_t value)
{
    (void)rt;
    return value;
}

void sl_runtime_fail_alone(bool alone)
{
    (void)alone;
}

int sl_runtime_agree(struct sl_runtime *rt, int code)
{
    (void)rt;
    return code;
}

void sl_runtime_ask_stop(struct sl_runtime *rt)
{
    (void)rt;
}

bool sl_runtime_stop_asked(struct sl_runtime *rt)
{
    (void)rt;
    return false;
}

void sl_runtime_settle_stops(struct sl_runtime *rt, bool asked)
{
    (void)rt, (void)asked;
}
