/* Losses that a program brings: entries that are added at run time. */
#include <stdio.h>
#include <string.h>

#include "codelets/own_loss.h"
#include "core/error.h"
#include "graphs/loss.h"

static struct entry {
    char name[SL_NAME_ROOM];
    struct sl_own_loss own;
    struct sl_loss loss;
} entries[SL_NAMES_ADDED];
static int count;

static void differentiate(struct sl_runtime *rt, const struct sl_loss_options *options,
                          enum sl_row_scale factor, const struct sl_loss_tiles *tiles)
{
    sl_submit_own_loss(rt, tiles->own, options->train_count, factor, tiles->scales, tiles->target,
                       tiles->metrics, tiles->z);
}

static void count_all(struct sl_runtime *rt, const struct sl_loss_tiles *tiles)
{
    sl_submit_own_count(rt, tiles->own, tiles->scales, tiles->target, tiles->z, tiles->metrics);
}

static struct entry *find(const char *name)
{
    for (int e = 0; name && e < count; e++)
        if (strcmp(entries[e].name, name) == 0)
            return &entries[e];
    return NULL;
}

const struct sl_loss *sl_loss_own_find(const char *name)
{
    const struct entry *entry = find(name);
    return entry ? &entry->loss : NULL;
}

int sl_loss_add(const char *name, enum sl_target_form form, bool classes, starling_loss *function,
                void *context)
{
    struct entry *entry = find(name);
    if (!entry && sl_names_add(sl_loss_names, &count, "a loss", name))
        return SL_ERR_USAGE;
    if (!entry)
        entry = &entries[count - 1];
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->own = (struct sl_own_loss){function, context, form, (uint32_t)(entry - entries)};
    entry->loss = (struct sl_loss){
        .name = entry->name,
        .form = form,
        .classes = classes,
        .own = &entry->own,
        .differentiate = differentiate,
        .count = count_all,
    };
    return 0;
}
