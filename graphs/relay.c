#include "graphs/relay.h"

static int index_of(const struct sl_relay *relay, int rank)
{
    return (rank - relay->first) / relay->stride;
}

static int round_by(const struct sl_relay *relay, int from, int steps)
{
    return (from - steps + relay->count) % relay->count;
}

int sl_relay_rank(const struct sl_relay *relay, int owner, int position)
{
    return relay->first + round_by(relay, index_of(relay, owner), position) * relay->stride;
}

int sl_relay_position(const struct sl_relay *relay, int owner, int rank)
{
    return round_by(relay, index_of(relay, owner), index_of(relay, rank));
}

/* Return whether position q > 0 may hand tiles to position p > q. In the tree, the parent of p is p
 * without its lowest bit. So q must be p without some of its lowest bits. */
static bool hands_on(enum sl_relay_form form, int q, int p)
{
    return form == SL_RELAY_CHAIN || (form == SL_RELAY_TREE && p - q < (q & -q));
}

int sl_relay_parent(const struct sl_relay *relay, int owner, int position, sl_relay_needs *needs,
                    const void *context)
{
    for (int q = position - 1; q > 0 && position - q <= relay->reach; q--)
        if (hands_on(relay->form, q, position) &&
            (!needs || needs(context, sl_relay_rank(relay, owner, q))))
            return q;
    return 0;
}

int sl_relay_last(const struct sl_relay *relay, int position)
{
    const int reach = relay->form == SL_RELAY_DIRECT ? 0 : relay->reach;
    return position == 0 || position + reach >= relay->count ? relay->count - 1 : position + reach;
}
