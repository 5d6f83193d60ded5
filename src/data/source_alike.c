/* Compare the datasets of all ranks. */
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "core/alike.h"
#include "core/error.h"
#include "data/source.h"

/* Hash an array by its file, or by its numbers. */
static uint64_t hash_array(uint64_t hash, const struct sl_npy *npy, bool by_file)
{
    char descr[24];
    if (!npy->data)
        return hash;
    if (by_file && npy->file)
        return sl_alike_hash(hash, &npy->file, sizeof npy->file);
    sl_npy_descr(npy, descr);
    hash = sl_alike_hash_text(hash + npy->fortran_order, descr);
    hash = sl_alike_hash(hash, npy->shape, (size_t)npy->dims * sizeof *npy->shape);
    return sl_alike_hash(hash, npy->data, (size_t)npy->count * npy->item_bytes);
}

static void add_array(struct sl_alike *alike, const char *name, const struct sl_npy *npy,
                      bool by_file)
{
    sl_alike_add(alike, name, hash_array(0, npy, by_file), npy->data ? "%s" : "no %s", name);
}

/* Add the links of a split, and their negatives. */
static void add_links(struct sl_alike *alike, const struct sl_source_links *links,
                      enum sl_split split, bool by_file)
{
    const bool val = split == SL_SPLIT_VAL;
    add_array(alike, val ? "validation links" : "test links", &links->pairs[split], by_file);
    add_array(alike, val ? "validation negatives" : "test negatives", &links->negatives[split],
              by_file);
}

static uint64_t hash_csr(const struct sl_stored_csr *csr, bool by_file)
{
    return hash_array(hash_array(0, &csr->indptr, by_file), &csr->indices, by_file);
}

static void add_sizes(struct sl_alike *alike, const struct sl_source *source)
{
    const int64_t entries = source->adjacency.indices.count, features = source->features;
    sl_alike_add(alike, "vertices", 0, "%" PRId64 " vertices", source->vertices);
    sl_alike_add(alike, "entries", 0, "%" PRId64 " adjacency entries", entries);
    if (source->feature_form == SL_FEATURES_IDENTITY)
        sl_alike_add(alike, "features", 0, "no features");
    else
        sl_alike_add(alike, "features", 0, "%" PRId64 " features, %s", features,
                     source->feature_form == SL_FEATURES_CSR ? "sparse" : "dense");
}

static void add_names(struct sl_alike *alike, const struct sl_source *source)
{
    uint64_t hash = 0;
    int64_t count = 0;
    for (; source->targets.class_names && source->targets.class_names[count]; count++)
        hash = sl_alike_hash_text(hash, source->targets.class_names[count]);
    sl_alike_add(alike, "names of classes", hash, "%" PRId64 " names of classes", count);
}

/* Add the facts of the files beside arrays. */
static void add_marks(struct sl_alike *alike, const struct sl_source *source)
{
    sl_alike_add(alike, "edges", 0, source->undirected ? "undirected edges" : "directed edges");
    sl_alike_add(alike, "classes", 0, "%" PRId64 " classes", source->classes);
    sl_alike_add(alike, "relations", 0, "%" PRId64 " relations", source->relations.count);
    sl_alike_add(alike, "labels", (uint64_t)source->targets.label_kind, "labels");
    sl_alike_add(alike, "features", source->columns.bag_of_words, "features");
}

static void describe(struct sl_alike *alike, const struct sl_source *source, bool by_file)
{
    const struct sl_npy *split = source->splits.split;
    add_sizes(alike, source);
    add_array(alike, "labels", &source->targets.labels, by_file);
    add_array(alike, "training vertices", &split[SL_SPLIT_TRAIN], by_file);
    add_array(alike, "validation vertices", &split[SL_SPLIT_VAL], by_file);
    add_array(alike, "test vertices", &split[SL_SPLIT_TEST], by_file);
    add_links(alike, &source->links, SL_SPLIT_VAL, by_file);
    add_links(alike, &source->links, SL_SPLIT_TEST, by_file);
    sl_alike_add(alike, "edges", hash_csr(&source->adjacency, by_file), "edges");
    add_array(alike, "edge weights", &source->adjacency.values, by_file);
    add_array(alike, "edge features", &source->edge_features, by_file);
    sl_alike_add(alike, "features", hash_csr(&source->features_csr, by_file), "features");
    add_array(alike, "values of features", &source->features_csr.values, by_file);
    add_array(alike, "features", &source->features_dense, by_file);
    add_array(alike, "original_ids", &source->order.original, by_file);
    add_array(alike, "vertex_ids", &source->vertex_ids, by_file);
    add_names(alike, source);
    add_marks(alike, source);
}

int sl_source_check_alike(struct sl_runtime *rt, const struct sl_source *source)
{
    struct sl_alike files = {.count = 0}, numbers = {.count = 0};
    char expected[256];
    if (rt->ranks == 1)
        return SL_OK;
    describe(&files, source, true);
    if (sl_alike_same(rt, &files))
        return SL_OK;
    describe(&numbers, source, false);
    sl_block_unload(source->blocks);
    snprintf(expected, sizeof expected, "the same %s on all ranks", source->path);
    return sl_alike_check(rt, &numbers, SL_ERR_DATA, expected);
}

json_t *sl_source_hashes(const struct sl_source *source)
{
    struct sl_alike numbers = {.count = 0};
    json_t *hashes = json_object();
    describe(&numbers, source, false);
    sl_block_unload(source->blocks);
    for (int t = 0; t < numbers.count; t++) {
        const struct sl_alike_thing *thing = &numbers.thing[t];
        char text[20];
        /* Things of one name have one hash. */
        const char *before = json_string_value(json_object_get(hashes, thing->name));
        const uint64_t hash = before ? sl_alike_hash_text(thing->hash, before) : thing->hash;
        snprintf(text, sizeof text, "%016" PRIx64, hash);
        json_object_set_new(hashes, thing->name, json_string(text));
    }
    return hashes;
}

int sl_source_borrow_alike(struct sl_runtime *rt, const struct sl_source *whole,
                           struct sl_source *out)
{
    const int code = sl_runtime_agree(rt, sl_source_borrow(whole, out));
    return code ? code : sl_source_check_alike(rt, out);
}
