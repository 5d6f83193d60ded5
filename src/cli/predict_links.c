#include "cli/predict_links.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/links.h"
#include "core/error.h"
#include "core/file.h"
#include "data/pairs_file.h"

/* ---- Score ---- */

/* Set score (count) to the scores of pairs, by rows (vertices, cols). */
static int score_pairs(const struct sl_link_rows *rows, const struct sl_pairs *pairs, float *score)
{
    enum { TOGETHER = 4096 };
    struct sl_scored_link *block = calloc(TOGETHER + 1, sizeof *block);
    if (!block)
        return sl_error(SL_ERR_SYSTEM, "no memory for a block of %d pairs", TOGETHER);
    for (int64_t first = 0; first < pairs->count; first += TOGETHER) {
        const int64_t left = pairs->count - first;
        block->source = (int32_t)(left < TOGETHER ? left : TOGETHER);
        for (int64_t k = 0; k < block->source; k++)
            block[1 + k] = (struct sl_scored_link){.source = pairs->vertex[2 * (first + k)],
                                                   .target = pairs->vertex[2 * (first + k) + 1]};
        sl_kernel_link_scores(rows, block);
        for (int64_t k = 0; k < block->source; k++)
            score[first + k] = block[1 + k].value;
    }
    free(block);
    return 0;
}

/* Score pairs by all rows of the embeddings, on rank 0. */
static int score_all(struct sl_apply *apply, const float *all, const struct sl_pairs *pairs,
                     float *score)
{
    struct sl_network *net = &apply->trainer.whole.network;
    const int64_t cols = apply->logits->cols;
    struct sl_tile *parameters = &net->layer[net->layers - 1].model->parameters;
    struct sl_link_rows rows = {.decoder = net->graph->links->decoder,
                                .cols = cols,
                                .x = {(float *)all, cols},
                                .y = {(float *)all, cols}};
    if (rows.decoder == SL_DECODER_DOT)
        return score_pairs(&rows, pairs, score);
    rows.w = sl_tile_acquire(net->rt, parameters, false);
    const int code = score_pairs(&rows, pairs, score);
    sl_tile_release(parameters);
    return code;
}

/* ---- Write ---- */

static int write_table(const char *path, const struct sl_identities *identities,
                       const struct sl_pairs *pairs, const float *score)
{
    struct sl_new_file out;
    char *text = malloc(sl_identities_room(identities));
    int code = text ? sl_file_create(&out, path)
                    : sl_error(SL_ERR_SYSTEM, "no memory for the ids of vertices");
    bool good = true;
    for (int64_t k = 0; !code && good && k < pairs->count; k++) {
        for (int end = 0; good && end < 2; end++) {
            sl_identities_name(identities, pairs->vertex[2 * k + end], text);
            good = fprintf(out.file, "%s\t", text) > 0;
        }
        good = good && fprintf(out.file, "%.9g\n", (double)score[k]) > 0;
    }
    free(text);
    return code ? code : sl_file_commit(&out, good);
}

static int write_files(const struct sl_predict_links *files, const struct sl_identities *identities,
                       const struct sl_pairs *pairs, float *score)
{
    int code = files->table ? write_table(files->table, identities, pairs, score) : 0;
    if (!code && files->output)
        code = sl_npy_write(files->output, "<f4", sizeof *score, 1, &pairs->count, score);
    for (int64_t k = 0; files->probabilities && k < pairs->count; k++)
        score[k] = 1.0f / (1.0f + expf(-score[k]));
    if (!code && files->probabilities)
        code = sl_npy_write(files->probabilities, "<f4", sizeof *score, 1, &pairs->count, score);
    return code;
}

int sl_predict_links(struct sl_apply *apply, const struct sl_predict_links *files)
{
    struct sl_runtime *rt = apply->trainer.rt;
    struct sl_pairs pairs = {0};
    if (!files->links)
        return 0;
    int code = rt->rank == 0 ? sl_pairs_read(files->links, &apply->named, &pairs) : 0;
    code = sl_runtime_agree(rt, code);
    float *all = code ? NULL : sl_apply_collect(apply, apply->logits);
    if (!code && rt->rank == 0) {
        float *score = malloc((size_t)pairs.count * sizeof *score + 1);
        code = all && score
                   ? score_all(apply, all, &pairs, score)
                   : sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " scores", pairs.count);
        if (!code)
            code = write_files(files, &apply->named, &pairs, score);
        free(score);
    }
    free(all);
    sl_pairs_free(&pairs);
    return sl_runtime_agree(rt, code);
}
