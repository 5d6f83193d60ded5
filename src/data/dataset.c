#include "data/dataset.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/words.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/edge_features.h"
#include "data/formats/formats.h"
#include "data/links.h"
#include "data/relations.h"
#include "data/source.h"

/* The runtime of a rank that reads everything by itself. */
static struct sl_runtime alone = {.ranks = 1};

/* Set the vertices' names, row by row. */
static int take_vertex_ids(const struct sl_source *source, struct sl_part *part)
{
    const struct sl_npy *ids = &source->vertex_ids;
    struct sl_npy *own = &part->data.vertex_ids;
    *own = *ids;
    if (!ids->data || !source->order.vertex)
        return SL_OK;
    unsigned char *items = sl_block_array(&part->data.blocks, ids->count, ids->item_bytes);
    own->name = sl_block_print(&part->data.blocks, "%s", ids->name);
    own->data = items;
    for (int64_t r = 0; items && r < ids->count; r++)
        memcpy(items + (size_t)r * ids->item_bytes,
               ids->data + (size_t)source->order.vertex[r] * ids->item_bytes, ids->item_bytes);
    return items && own->name ? SL_OK : SL_ERR_SYSTEM;
}

/* Read all rows of a source into a dataset, which takes over the source's blocks, too. The source
 * keeps its name and path; on any error it keeps everything. */
static int read_whole(struct sl_source *source, struct sl_dataset *out)
{
    struct sl_part part;
    source->reads_edges = source->edge_features.data ? SL_READS_EDGE_ROWS : SL_READS_NO_EDGES;
    int rc = sl_source_read(&alone, source, 0, source->vertices, &part);
    if (!rc)
        rc = take_vertex_ids(source, &part);
    if (!rc)
        rc = sl_links_take(source, &part.data.blocks, &part.data.links);
    if (!rc && source->reads_edges)
        rc =
            sl_edge_features_take(&source->edge_features, &part.data.adjacency,
                                  source->order.vertex != NULL, &part.data.blocks, &part.data.edge);
    part.data.adjacency.edges = NULL; /* entry e has row e */
    if (rc) {
        sl_part_close(&part);
        return rc;
    }
    part.data.name = out->name;
    part.data.path = out->path;
    sl_block_move(&part.data.blocks, &source->blocks);
    sl_block_move(&part.data.blocks, &out->blocks);
    *out = part.data;
    return SL_OK;
}

int sl_dataset_of(const struct sl_source *source, struct sl_dataset *out)
{
    struct sl_source borrowed;
    *out = (struct sl_dataset){0};
    int rc = sl_source_borrow(source, &borrowed);
    if (!rc)
        rc = read_whole(&borrowed, out);
    if (!rc) {
        out->name = borrowed.name;
        out->path = borrowed.path;
        borrowed.name = borrowed.path = NULL;
    }
    sl_source_close(&borrowed);
    return rc;
}

int sl_dataset_validate(struct sl_dataset *data)
{
    struct sl_source source;
    int rc = sl_source_of(data, &source);
    if (!rc)
        rc = read_whole(&source, data);
    sl_source_close(&source);
    return rc;
}

int sl_dataset_reorder(struct sl_dataset *data, const char *order, uint64_t seed)
{
    struct sl_source source;
    struct sl_dataset ordered = {.name = data->name, .path = data->path};
    int rc = sl_source_of(data, &source);
    if (!rc)
        rc = sl_source_order(&alone, &source, order, seed);
    if (!rc && source.order.vertex) {
        rc = read_whole(&source, &ordered);
        if (!rc) {
            sl_block_free_all(&data->blocks); /* all arrays have moved to other blocks */
            *data = ordered;
        }
    }
    sl_source_close(&source);
    return rc ? sl_error_about(rc, data->path) : SL_OK;
}

int sl_dataset_split_links(struct sl_dataset *data, const struct sl_link_rule *rule)
{
    struct sl_source source;
    struct sl_dataset split = {.name = data->name, .path = data->path};
    if (!rule->given)
        return SL_OK;
    int rc = sl_source_of(data, &source);
    if (!rc)
        rc = sl_links_split(&source, rule);
    if (!rc)
        rc = read_whole(&source, &split);
    if (!rc) {
        sl_block_move(&split.blocks, &data->blocks); /* most arrays lie there */
        *data = split;
    }
    sl_source_close(&source);
    return rc;
}

static int symmetrize(struct sl_dataset *data, enum sl_symmetrize way)
{
    static const char *const ways[] = {[SL_SYMMETRIZE_MAX] = "the larger one",
                                       [SL_SYMMETRIZE_SUM] = "the sum",
                                       [SL_SYMMETRIZE_MEAN] = "the mean"};
    const struct sl_csr before = data->adjacency;
    int64_t both = 0, different = 0;
    sl_progress_phase("reverse edges");
    if (data->relations > 0) {
        const int code = sl_relations_reverse(data);
        return code ? code : sl_dataset_validate(data);
    }
    int rc = sl_csr_symmetrize_by(&data->adjacency, way, &data->blocks, &both, &different);
    if (!rc && data->edge)
        rc = sl_edge_features_unite(data, &before, way);
    const int64_t count = way == SL_SYMMETRIZE_SUM ? both : different;
    if (!rc && data->adjacency.values && count > 0)
        sl_note("%s: %" PRId64 " edge%s both ways%s: the weight is %s (starling convert "
                "--symmetrize max, sum or mean)",
                data->path, count, sl_plural(count, " goes", "s go"),
                way == SL_SYMMETRIZE_SUM ? "" : " with different weights", ways[way]);
    return rc ? rc : sl_dataset_validate(data);
}

/* Reverse or symmetrize the edges, as the options ask. */
static int turn_edges(struct sl_dataset *data, const struct sl_read_options *options)
{
    const struct sl_csr read = data->adjacency;
    int rc = SL_OK;
    if (data->symmetric)
        return rc;
    if (options->reverse)
        rc = sl_csr_transpose(&read, &data->blocks, &data->adjacency);
    if (!rc && options->reverse && data->edge)
        rc = sl_edge_features_transpose(data, &read);
    if (!rc && options->reverse)
        rc = sl_links_reverse(&data->links, &data->blocks);
    return rc || !options->symmetrize ? rc : symmetrize(data, options->symmetrize);
}

int sl_dataset_open_with(const char *path, const struct sl_read_options *options,
                         struct sl_dataset *out)
{
    static const struct sl_read_options defaults;
    struct sl_source source;
    options = options ? options : &defaults;
    *out = (struct sl_dataset){0};
    sl_progress_begin("reading %s", path);
    int rc = sl_source_open_with(&alone, path, options, &source);
    source.undirected = source.undirected && !options->symmetrize; /* turn_edges settles it */
    source.splits.split_rule = options->split;
    if (!rc)
        rc = read_whole(&source, out);
    if (!rc) {
        sl_labels_note_numbers(source.targets.labels.name, &source.targets.whole_numbers);
        out->name = source.name;
        out->path = source.path;
        source.name = source.path = NULL;
        rc = turn_edges(out, options);
    }
    sl_source_close(&source);
    sl_progress_end();
    if (rc) {
        sl_dataset_close(out);
        return sl_error_about(rc, path);
    }
    return SL_OK;
}

int sl_dataset_open(const char *path, struct sl_dataset *out)
{
    return sl_dataset_open_with(path, NULL, out);
}

int sl_dataset_name(struct sl_dataset *data, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vasprintf(&data->name, format, args) < 0)
        data->name = NULL; /* asprintf leaves it undefined on failure */
    va_end(args);
    data->path = data->name ? strdup(data->name) : NULL;
    return data->path ? SL_OK : sl_error(SL_ERR_SYSTEM, "out of memory for the name of a dataset");
}

void sl_dataset_close(struct sl_dataset *data)
{
    free(data->name);
    free(data->path);
    sl_block_free_all(&data->blocks);
    *data = (struct sl_dataset){0};
}
