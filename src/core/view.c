#include "core/view.h"

#include "core/error.h"
#include "core/handle.h"
#include "core/message.h"
#include "core/ranks.h"

/* Return the number of a new view, whose range of tags no view of its ranks has. Ranks that share
 * two views have seen both numbers, and the later one is the largest that its ranks have seen. */
static int64_t number_of_last;

static int64_t next_number(struct sl_runtime *parent)
{
    number_of_last = -sl_runtime_least(parent, -number_of_last) + 1;
    return number_of_last;
}

int sl_view_split(struct sl_runtime *parent, int colour, struct sl_runtime *view)
{
    const int64_t number = next_number(parent);
    *view = *parent;
    view->next_tag = number * SL_VIEW_TAGS;
    view->tasks = 0;
    view->traffic = (struct sl_traffic){0};
    view->stages_asked = view->stages_dropped = view->stops_heard = 0;
    for (int s = 0; s < SL_MOST_STAGES; s++)
        view->stage_token[s] = NULL;
    view->messages_asked = 0;
    for (int w = 0; w < SL_WAYS; w++)
        view->way[w] = NULL;
    view->world = NULL;
    view->comm = NULL;
    view->spmm.kept = NULL; /* the reservations stay the parent's */
    sl_spmm_choice_reset(&view->spmm);
    const int code = sl_ranks_split(parent, colour, view);
    if (code)
        return code;
    sl_runtime_share_facts(view);
    return 0;
}

void sl_view_free(struct sl_runtime *view)
{
    sl_runtime_wait(view);
    sl_stage_stop(view);
    sl_ranks_unite(view);
    *view = (struct sl_runtime){0};
}

void sl_view_lend(const struct sl_runtime *view, struct sl_tile *tile, struct sl_tile *alias)
{
    if (alias->ld != tile->ld)
        sl_fatal("a lent tile has rows %lld elements apart, and other ranks expect %lld",
                 (long long)tile->ld, (long long)alias->ld);
    alias->handle = sl_tile_handle(view, tile);
}

struct sl_runtime sl_view_planned(int rank, int ranks, int stages)
{
    return (struct sl_runtime){.rank = rank, .ranks = ranks, .plans = true, .stages = stages};
}
