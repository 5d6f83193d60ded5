#include "data/generate/draw_vertices.h"

#include <inttypes.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/rng.h"
#include "data/block.h"

enum { LANES = 16 }; /* normal numbers at a time: two vectors of eight words */

/* Draw LANES numbers near enough to standard normal: each is the sum of four random bytes. */
static void draw_batch(uint64_t key, uint32_t row, uint32_t batch, float *out)
{
    uint32_t words[LANES];
    for (uint32_t i = 0; i < LANES / 2; i++)
        sl_rng_block(key, row, batch * (LANES / 2) + i, &words[i], &words[i + LANES / 2]);
    for (int i = 0; i < LANES; i++) {
        const uint32_t w = words[i];
        const int32_t sum = (int32_t)((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24));
        out[i] = (float)(sum - 510) * (1.0f / 147.8005f);
    }
}

void sl_draw_normals(uint64_t key, int64_t row, int64_t columns, const float *centre, float sd,
                     float *x)
{
    for (int64_t j = 0; j < columns; j += LANES) {
        float normal[LANES];
        draw_batch(key, (uint32_t)row, (uint32_t)(j / LANES), normal);
        for (int64_t i = 0; i < LANES && j + i < columns; i++)
            x[j + i] = (centre ? centre[j + i] : 0.0f) + sd * normal[i];
    }
}

int sl_draw_list_splits(const uint8_t *split, struct sl_dataset *out)
{
    struct sl_index_set *sets[SL_SPLITS] = {NULL, &out->train, &out->val, &out->test};
    int64_t count[SL_SPLITS] = {0}, *next[SL_SPLITS];
    for (int64_t v = 0; v < out->vertices; v++)
        count[split[v]]++;
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++) {
        next[s] = sl_block_array(&out->blocks, count[s], sizeof *next[s]);
        if (!next[s])
            return SL_ERR_SYSTEM;
        *sets[s] = (struct sl_index_set){next[s], count[s]};
    }
    for (int64_t v = 0; v < out->vertices; v++)
        if (split[v] != SL_SPLIT_NONE)
            *next[split[v]]++ = v;
    return SL_OK;
}

int sl_draw_check_vertices(int64_t features, int64_t classes)
{
    if (features < 1 || features > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "features is %" PRId64 ", expected 1 to 2^31 - 1", features);
    if (classes < 1 || classes > INT32_MAX)
        return sl_error(SL_ERR_USAGE, "classes is %" PRId64 ", expected 1 to 2^31 - 1", classes);
    return SL_OK;
}

/* Sub-streams of SL_RNG_GENERATE, so that no choice depends on another. */
enum stream { LABELS = 32, SPLITS, FEATURES };

struct drawing {
    const struct sl_draw_vertices *options;
    int64_t vertices;
    int32_t *labels; // (vertices)
    float *x;        // (vertices, features)
    uint8_t *split;  // (vertices): enum sl_split
};

static uint64_t stream_key(const struct drawing *d, enum stream stream)
{
    return sl_rng_key(d->options->seed, SL_RNG_GENERATE, 0, (uint32_t)stream);
}

static enum sl_split split_of(const struct drawing *d, int64_t rank)
{
    const int64_t fifth = d->vertices / 5;
    if (rank < fifth)
        return SL_SPLIT_VAL;
    return rank < 2 * fifth ? SL_SPLIT_TEST : SL_SPLIT_TRAIN;
}

static void draw_range(void *context, int64_t begin, int64_t end)
{
    const struct drawing *d = context;
    const int64_t features = d->options->features;
    const uint64_t labels = stream_key(d, LABELS), splits = stream_key(d, SPLITS),
                   normals = stream_key(d, FEATURES);
    for (int64_t v = begin; v < end; v++) {
        d->labels[v] =
            (int32_t)(sl_rng_uniform(labels, (uint32_t)v, 0) * (double)d->options->classes);
        d->split[v] =
            (uint8_t)split_of(d, sl_rng_permute(splits, (uint32_t)d->vertices, (uint32_t)v));
        sl_draw_normals(normals, v, features, NULL, 1.0f, d->x + v * features);
    }
}

int sl_draw_random_vertices(const struct sl_draw_vertices *options, struct sl_dataset *out)
{
    struct sl_block *scratch = NULL;
    const int64_t n = out->vertices;
    struct drawing d = {.options = options, .vertices = n};
    d.labels = sl_block_array(&out->blocks, n, sizeof *d.labels);
    d.x = sl_block_array(&out->blocks, n, (size_t)options->features * sizeof *d.x);
    d.split = sl_block_array(&scratch, n, sizeof *d.split);
    int rc = d.labels && d.x && d.split ? SL_OK : SL_ERR_SYSTEM;
    if (!rc) {
        sl_progress_phase("features");
        sl_parallel_for_ranges(options->threads, n, draw_range, &d);
        rc = sl_draw_list_splits(d.split, out);
    }
    out->features = options->features;
    out->classes = options->classes;
    out->feature_form = SL_FEATURES_DENSE;
    out->features_dense = d.x;
    out->labels = d.labels;
    sl_block_free_all(&scratch);
    return rc;
}
