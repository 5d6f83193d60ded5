#include "graphs/ring.h"

static int index_of(const struct sl_ring *ring, int rank)
{
    return (rank - ring->first) / ring->stride;
}

static int round_by(const struct sl_ring *ring, int from, int steps)
{
    return (from - steps + ring->count) % ring->count;
}

int sl_ring_rank(const struct sl_ring *ring, int owner, int position)
{
    return ring->first + round_by(ring, index_of(ring, owner), position) * ring->stride;
}

int sl_ring_position(const struct sl_ring *ring, int owner, int rank)
{
    return round_by(ring, index_of(ring, owner), index_of(ring, rank));
}

/* Return whether position q > 0 may hand tiles to position p > q. In the tree, the parent of p is p
 * without its lowest bit. So q must be p without some of its lowest bits. */
static bool hands_on(enum sl_broadcast_form form, int q, int p)
{
    return form == SL_BROADCAST_RING || (form == SL_BROADCAST_TREE && p - q < (q & -q));
}

int sl_ring_parent(const struct sl_ring *ring, int owner, int position, sl_ring_needs *needs,
                   const void *context)
{
    for (int q = position - 1; q > 0 && position - q <= ring->reach; q--)
        if (hands_on(ring->form, q, position) &&
            (!needs || needs(context, sl_ring_rank(ring, owner, q))))
            return q;
    return 0;
}

int sl_ring_last(const struct sl_ring *ring, int position)
{
    const int reach = ring->form == SL_BROADCAST_DIRECT ? 0 : ring->reach;
    return position == 0 || position + reach >= ring->count ? ring->count - 1 : position + reach;
}
