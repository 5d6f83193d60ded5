/* A planted-partition graph (Condon, Karp 2001) drawn edge by edge, with Gaussian features around
 * class centres. */
#include "data/generate/generate_community.h"

#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/formats/formats.h"

/* Sub-streams of SL_RNG_GENERATE, so that no choice depends on another. */
enum stream { LABELS, EDGES, CENTRES, NOISE, SPLITS };

static uint64_t stream_key(const struct sl_community_options *o, enum stream stream)
{
    return sl_rng_key(o->seed, SL_RNG_GENERATE, 0, (uint32_t)stream);
}

/* Return a uniform number in 0 … count - 1, for count below 2^31. */
static int64_t draw(uint64_t key, uint32_t a, uint32_t b, int64_t count)
{
    return (int64_t)(sl_rng_uniform(key, a, b) * (double)count);
}

static int check_options(const struct sl_community_options *o)
{
    if (o->vertices < 1 || o->vertices > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "vertices is %" PRId64 ", expected 1 to 2^31 - 1",
                        o->vertices);
    if (o->classes < 1 || o->classes > o->vertices)
        return sl_error(SL_ERR_USAGE,
                        "classes is %" PRId64 ", expected 1 to %" PRId64 " (vertices)", o->classes,
                        o->vertices);
    if (!(o->degree >= 0.0 && o->degree <= (double)(o->vertices - 1)))
        return sl_error(SL_ERR_USAGE, "degree is %g, expected 0 to %" PRId64 " (vertices - 1)",
                        o->degree, o->vertices - 1);
    if (o->features < 1 || o->features > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "features is %" PRId64 ", expected 1 to 2^31 - 1",
                        o->features);
    if (!(o->homophily >= 0.0 && o->homophily <= 1.0))
        return sl_error(SL_ERR_USAGE, "homophily is %g, expected 0 to 1", o->homophily);
    if (!(o->feature_noise >= 0.0 && o->feature_noise <= 1e6))
        return sl_error(SL_ERR_USAGE, "feature noise is %g, expected 0 to 10^6", o->feature_noise);
    return SL_OK;
}

static int draw_labels(const struct sl_community_options *o, struct sl_dataset *out)
{
    int32_t *labels = sl_block_array(&out->blocks, o->vertices, sizeof *labels);
    if (!labels)
        return SL_ERR_SYSTEM;
    const uint64_t key = stream_key(o, LABELS);
    for (int64_t v = 0; v < o->vertices; v++)
        labels[v] = (int32_t)draw(key, (uint32_t)v, 0, o->classes);
    out->labels = labels;
    return SL_OK;
}

/* Make the vertices of each class a (classes x vertices) CSR matrix. */
static int group_by_class(const struct sl_dataset *data, struct sl_block **scratch,
                          struct sl_csr *members)
{
    struct sl_triples triples = {0};
    int64_t merged = 0;
    int rc = SL_OK;
    for (int64_t v = 0; v < data->vertices && !rc; v++)
        rc = sl_triples_add(&triples, data->labels[v], v, 1.0f);
    if (!rc)
        rc = sl_csr_build(&triples, data->classes, data->vertices, scratch, members, &merged);
    sl_triples_free(&triples);
    return rc;
}

/* Draw the other end of edge `e` at `u`. Members of u's class are members[first … end-1]; the
 * others come before and after. Where the wanted side has no other vertex, draw from the other
 * side. */
static int64_t draw_neighbour(const struct sl_community_options *o, const struct sl_csr *members,
                              uint64_t key, int64_t e, int64_t u, int32_t label)
{
    const uint32_t low = (uint32_t)e, high = (uint32_t)(e >> 32) * 4;
    const int64_t first = members->indptr[label], end = members->indptr[label + 1];
    const int64_t inside = end - first - 1, outside = o->vertices - (end - first);
    bool same = sl_rng_uniform(key, low, high + 1) < o->homophily;
    same = (same && inside > 0) || outside == 0;
    int64_t at = draw(key, low, high + 2, same ? inside : outside);
    if (!same)
        return members->indices[at < first ? at : at + (end - first)];
    /* The class's last member, which `at` never reaches, takes u's own place. */
    const int64_t v = members->indices[first + at];
    return v == u ? members->indices[end - 1] : v;
}

/* Edges or vertices between two reports of progress. */
enum { TOLD = 4096 };

static int draw_edges(const struct sl_community_options *o, struct sl_dataset *out)
{
    struct sl_block *scratch = NULL;
    struct sl_csr members;
    struct sl_triples triples = {0};
    int64_t merged = 0; /* ignored: no file was read */
    const uint64_t key = stream_key(o, EDGES);
    const int64_t edges = (int64_t)((double)o->vertices * o->degree / 2.0 + 0.5);
    int rc = group_by_class(out, &scratch, &members);
    sl_progress_phase("edges");
    sl_progress_count(edges);
    for (int64_t e = 0; e < edges && !rc; e++) {
        const int64_t u = draw(key, (uint32_t)e, (uint32_t)(e >> 32) * 4, o->vertices);
        const int64_t v = draw_neighbour(o, &members, key, e, u, out->labels[u]);
        rc = sl_triples_add(&triples, u, v, 1.0f);
        if (!rc)
            rc = sl_triples_add(&triples, v, u, 1.0f);
        if (e % TOLD == 0)
            sl_progress_set(e);
    }
    if (!rc)
        rc = sl_csr_build(&triples, o->vertices, o->vertices, &out->blocks, &out->adjacency,
                          &merged);
    sl_triples_free(&triples);
    sl_block_free_all(&scratch);
    return rc;
}

static int draw_features(const struct sl_community_options *o, struct sl_dataset *out)
{
    struct sl_block *scratch = NULL;
    const int64_t f = o->features;
    float *centres = sl_block_array(&scratch, o->classes, (size_t)f * sizeof *centres);
    float *x = sl_block_array(&out->blocks, o->vertices, (size_t)f * sizeof *x);
    if (!centres || !x) {
        sl_block_free_all(&scratch);
        return SL_ERR_SYSTEM;
    }
    uint64_t key = stream_key(o, CENTRES);
    for (int64_t c = 0; c < o->classes; c++)
        for (int64_t j = 0; j < f; j++)
            centres[c * f + j] =
                (float)(sl_rng_normal(key, (uint32_t)c, (uint32_t)j) / sqrt((double)f));
    key = stream_key(o, NOISE);
    sl_progress_phase("features");
    sl_progress_count(o->vertices);
    for (int64_t v = 0; v < o->vertices; v++) {
        if (v % TOLD == 0)
            sl_progress_set(v);
        for (int64_t j = 0; j < f; j++)
            x[v * f + j] = centres[out->labels[v] * f + j] +
                           (float)(o->feature_noise * sl_rng_normal(key, (uint32_t)v, (uint32_t)j));
    }
    sl_block_free_all(&scratch);
    out->features_dense = x;
    return SL_OK;
}

/* Draw the splits: shuffle (Fisher and Yates), then take 60, 20 and 20 %; validation sorts each
 * part. */
static int draw_splits(const struct sl_community_options *o, struct sl_dataset *out)
{
    int64_t *ids = sl_block_array(&out->blocks, o->vertices, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    const uint64_t key = stream_key(o, SPLITS);
    for (int64_t v = 0; v < o->vertices; v++) {
        const int64_t at = draw(key, (uint32_t)v, 0, v + 1);
        ids[v] = ids[at];
        ids[at] = v;
    }
    const int64_t val = o->vertices / 5, test = val, train = o->vertices - val - test;
    out->train = (struct sl_index_set){ids, train};
    out->val = (struct sl_index_set){ids + train, val};
    out->test = (struct sl_index_set){ids + train + val, test};
    return SL_OK;
}

int sl_generate_community(const struct sl_community_options *options, struct sl_dataset *out)
{
    *out = (struct sl_dataset){0};
    int rc = check_options(options);
    if (rc)
        return rc;
    rc = sl_dataset_name(out, "community");
    out->vertices = options->vertices;
    out->features = options->features;
    out->classes = options->classes;
    out->feature_form = SL_FEATURES_DENSE;
    out->symmetric = true;
    if (!rc)
        rc = draw_labels(options, out);
    if (!rc)
        rc = draw_edges(options, out);
    if (!rc)
        rc = draw_features(options, out);
    if (!rc)
        rc = draw_splits(options, out);
    if (!rc)
        rc = sl_dataset_validate(out);
    if (rc)
        sl_dataset_close(out);
    return rc;
}
