/* Losses, layers and reducers that a program adds to the tables. */
#include "api/api.h"
#include "core/error.h"
#include "graphs/loss.h"
#include "graphs/network.h"

int starling_loss_register(const char *name, enum starling_labels labels, starling_loss *loss,
                           void *context)
{
    const bool classes = labels == STARLING_CLASSES;
    if (!loss)
        return sl_error(SL_ERR_USAGE, "a loss: the function is NULL");
    if (!classes && labels != STARLING_LABELS && labels != STARLING_NUMBERS)
        return sl_error(SL_ERR_USAGE, "a loss: there are no labels %d", (int)labels);
    if (sl_api_lock())
        return SL_ERR_USAGE;
    const int code = sl_loss_add(name, classes ? SL_TARGET_CLASS : SL_TARGET_VALUES,
                                 labels != STARLING_NUMBERS, loss, context);
    sl_api_leave();
    return code;
}

int starling_layer_register(const char *name, const struct starling_layer *layer)
{
    if (!layer || !layer->forward || !layer->backward)
        return sl_error(SL_ERR_USAGE, "a layer: it or a function is NULL");
    if (sl_api_lock())
        return SL_ERR_USAGE;
    const int code = sl_layer_add(name, layer);
    sl_api_leave();
    return code;
}

int starling_reducer_register(const char *name, const struct starling_reducer *reducer)
{
    if (!reducer || !reducer->combine || !reducer->merge || !reducer->finish ||
        !reducer->differentiate)
        return sl_error(SL_ERR_USAGE, "a reducer: it or a function is NULL");
    if (sl_api_lock())
        return SL_ERR_USAGE;
    const int code = sl_reducer_own_add(name, reducer);
    sl_api_leave();
    return code;
}
