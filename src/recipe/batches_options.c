#include "recipe/batches_options.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/vertex_cut.h"

static const struct sl_batches_kind kinds[] = {
    {"full", "full", 0, false},
    {"co", "co:R", 1, false},
    {"clusters", "clusters:K,B", 2, true},
};

/* "NAME:N,M" with so many numbers as the kind has. */
static bool parse_kind(const struct sl_batches_kind *kind, const char *text, int64_t number[2])
{
    const size_t length = strlen(kind->name);
    if (strncmp(text, kind->name, length) != 0)
        return false;
    text += length;
    for (int n = 0; n < kind->numbers; n++) {
        char *end;
        if (*text != (n ? ',' : ':') || text[1] < '1' || text[1] > '9')
            return false;
        number[n] = strtoll(text + 1, &end, 10);
        if (number[n] > INT32_MAX)
            return false;
        text = end;
    }
    return *text == '\0';
}

/* --fanout alone samples, too. Earlier programs had the usual one with all hops. */
static int parse_hops(const struct sl_config *config, struct sl_batches_options *o)
{
    enum { USUAL_FANOUT = 15 };
    char *end;
    const bool usual = config->fanout < 0 || config->fanout == USUAL_FANOUT;
    const char *text = config->max_hop;
    if (!text && config->fanout < 0)
        return 0;
    if (!text)
        text = "1";
    if (strcmp(text, "all") == 0)
        return usual ? 0
                     : sl_error(SL_ERR_USAGE, "--fanout %lld: expected no --max-hop all with it",
                                (long long)config->fanout);
    const long hops = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || hops > 1000)
        return sl_error(SL_ERR_USAGE, "--max-hop %s: expected all, or 0 to 1000 hops", text);
    o->sampled = true;
    o->hops = (int)hops;
    o->fanout = config->fanout < 0 ? USUAL_FANOUT : config->fanout;
    return 0;
}

static int parse_preload(const struct sl_config *config, struct sl_batches_options *o)
{
    char *end;
    const char *text = config->preload_hops;
    if (strcmp(text, "all") == 0)
        return 0;
    o->chooses_preload = strcmp(text, "auto") == 0;
    const long hops = o->chooses_preload ? 1 : strtol(text, &end, 10);
    if (!o->chooses_preload && (text[0] < '1' || text[0] > '9' || *end || hops > 1000))
        return sl_error(SL_ERR_USAGE, "--preload-hops %s: expected all, auto, or 1 to 1000 hops",
                        text);
    if (!config->groups || o->sampled || o->kind->numbers > 0)
        return sl_error(SL_ERR_USAGE,
                        "--preload-hops %s: expected --groups GxP with it, --max-hop all and "
                        "--batches full",
                        text);
    o->preload = (int)hops;
    return 0;
}

static const char automatic[] = "co:auto";

int sl_batches_parse(const struct sl_config *config, struct sl_batches_options *o)
{
    *o = (struct sl_batches_options){
        .sets = 1, .each = 1, .hops = SL_ALL_HOPS, .needed = config->rows == SL_ROWS_NEEDED};
    int64_t number[2] = {1, 1};
    o->automatic = strcmp(config->batches, automatic) == 0;
    const char *text = o->automatic ? "co:1" : config->batches;
    for (size_t k = 0; !o->kind && k < sizeof kinds / sizeof *kinds; k++)
        if (parse_kind(&kinds[k], text, number))
            o->kind = &kinds[k];
    if (!o->kind)
        return sl_error(SL_ERR_USAGE,
                        "--batches %s: expected full, co:R with R batches, co:auto, or "
                        "clusters:K,B with K clusters, B of them in a batch",
                        config->batches);
    o->sets = number[0];
    o->each = number[1];
    if (o->each > o->sets)
        return sl_error(SL_ERR_USAGE, "--batches %s: expected at most as many clusters in a batch",
                        config->batches);
    const int code = parse_hops(config, o);
    return code ? code : parse_preload(config, o);
}

int sl_batches_check(const struct sl_config *config, const struct sl_source *source)
{
    struct sl_batches_options how;
    if (sl_batches_parse(config, &how))
        return SL_ERR_USAGE;
    return how.sets <= source->vertices || how.sets == 1
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "%s%s%s--batches %s: %s has %lld vertices (expected at most %lld %s)",
                          config->resume ? "--resume " : "", config->resume ? config->resume : "",
                          config->resume ? ": " : "", config->batches, source->path,
                          (long long)source->vertices, (long long)source->vertices,
                          how.kind->alone ? "clusters" : "batches");
}

bool sl_batches_differ(const struct sl_config *config)
{
    return config->groups || strcmp(config->batches, "full") != 0 || config->rows == SL_ROWS_NEEDED;
}

struct sl_assembly sl_batches_whole(const struct sl_config *config)
{
    struct sl_assembly how = sl_config_assembly(config);
    if (!config->groups)
        return how;
    how.kind = &sl_distribution_block;
    how.distribution = "1d";
    how.grid = how.partition = NULL;
    how.replication = 0;
    return how;
}

int sl_batches_options_steps(const struct sl_batches_options *o)
{
    return (int)((o->sets + o->each - 1) / o->each);
}

/* Samples and clusters have sums with their own degrees; clones that never meet, of their own
 * edges. */
bool sl_batches_read_aggregated(const struct sl_config *config,
                                const struct sl_batches_options *options)
{
    const bool meets = !sl_config_kind(config)->clones || sl_config_delay(config) == SL_DELAY_EXACT;
    return sl_config_aggregates(config) && meets && !options->kind->alone && !options->sampled;
}
