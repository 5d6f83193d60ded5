#include "graphs/loss.h"

#include <string.h>

#define ADDRESS(id, name) &sl_loss_##id,
static const struct sl_loss *const losses[] = {SL_LOSSES(ADDRESS)};
#undef ADDRESS

char sl_loss_names[SL_NAMES_ROOM] = "auto" SL_LOSS_NAMES;

const struct sl_loss *sl_loss_find(const char *name)
{
    for (size_t l = 0; l < sizeof losses / sizeof *losses; l++)
        if (strcmp(losses[l]->name, name) == 0)
            return losses[l];
    return sl_loss_own_find(name);
}
