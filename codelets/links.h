/* Links: pairs of vertices, a source and a target, with a score. A decoder makes the score from the
 * rows of both ends:
 *
 *     dot        Σ_c x_c · y_c
 *     distmult   Σ_c w_c · x_c · y_c                     (Yang et al., ICLR 2015)
 *     mlp        b + Σ_c w_c · relu(x_c + y_{h + c})     h = cols / 2, 0 <= c < h
 *
 * x is the row of the source, y the row of the target, w the row of parameters. The mlp is a
 * product with both rows side by side, which each row has had already, relu, and a product with w;
 * b stands behind the h weights.
 *
 * Links are in blocks. The sources of a block are rows of one tile. A block has a segment for each
 * of some tiles of targets. A segment is a header and room for links; segments follow one another.
 */
#ifndef SL_CODELETS_LINKS_H
#define SL_CODELETS_LINKS_H

#include "codelets/operation.h"
#include "core/names.h"

#define SL_DECODERS(ENTRY)                 \
    ENTRY(SL_DECODER_DOT, "dot")           \
    ENTRY(SL_DECODER_DISTMULT, "distmult") \
    ENTRY(SL_DECODER_MLP, "mlp")
enum sl_decoder { SL_DECODERS(SL_CHOICE_CONSTANT) };

struct sl_scored_link {
    int32_t source, target; /* rows of the two tiles */
    int32_t number;         /* its number in a list; a negative of link k has ~k */
    int32_t by_target;      /* of place p: the link that is p-th in the order of targets */
    float value;            /* its score, or the gradient of the loss by its score */
};

/* The header of a segment is an element, too: `source` is the number of links, `target` the number
 * of links that it has room for. The links follow, ascending by source where their gradients are
 * made.
 */
static inline int64_t sl_link_count(const struct sl_scored_link *segment)
{
    return segment->source;
}

static inline struct sl_scored_link *sl_link_next(struct sl_scored_link *segment)
{
    return segment + 1 + segment->target;
}

/* Rows that the links of a segment join. */
struct sl_link_rows {
    enum sl_decoder decoder;
    int64_t cols;
    struct sl_floats_at x, y; /* rows of sources, rows of targets */
    const float *w;           // (cols): the parameters; NULL: the decoder has none
};

/* The ends of links whose gradients are made. */
enum sl_link_end { SL_LINK_SOURCE, SL_LINK_TARGET };

/* Set the places of a segment's links in the order of targets, where `rows` is the number of rows
 * of targets. room (rows + 1). */
void sl_link_order(int64_t rows, struct sl_scored_link *segment, int32_t *room);

/* Set the value of each link to its score. */
void sl_kernel_link_scores(const struct sl_link_rows *rows, struct sl_scored_link *segment);

/* G += the gradient of the loss by the rows of one end. Values are gradients by the scores. G has
 * as many rows as there are rows of this end: `count`. */
void sl_kernel_link_back(const struct sl_link_rows *rows, enum sl_link_end end, int64_t count,
                         const struct sl_scored_link *segment, struct sl_floats_at g);

/* dw (cols) += the gradient of the loss by the parameters. */
void sl_kernel_link_parameters(const struct sl_link_rows *rows,
                               const struct sl_scored_link *segment, float *dw);

/* Do the work of these kernels on a GPU. `links`: the most links of the segment. */
void sl_cuda_link_scores(const struct sl_link_rows *rows, int64_t links,
                         struct sl_scored_link *segment, struct sl_cuda_queue queue);
void sl_cuda_link_back(const struct sl_link_rows *rows, enum sl_link_end end, int64_t count,
                       const struct sl_scored_link *segment, struct sl_floats_at g,
                       struct sl_cuda_queue queue);
void sl_cuda_link_parameters(const struct sl_link_rows *rows, int64_t links,
                             const struct sl_scored_link *segment, float *dw,
                             struct sl_cuda_queue queue);

/* The tiles of links between the rows of one tile, `own`, and of `count` tiles, `others`. `own` may
 * be one of the others. Where `own` has the sources, there is one block, with a segment for each
 * other tile. Where `own` has the targets, there is a block for each other tile, `apart` tiles
 * further. */
struct sl_link_tiles {
    enum sl_decoder decoder;
    struct sl_tile *w; /* its first row has the parameters; NULL: the decoder has none */
    struct sl_tile *own;
    int count;
    struct sl_tile *others; // (count)
    struct sl_tile *blocks;
    int apart;
    const int64_t *segment; // (count), `apart_segments` items apart: the elements before the
                            // segment in its block
    int apart_segments;
};

/* Submit scores of a block; `own` has the sources. */
void sl_submit_link_scores(struct sl_runtime *rt, const struct sl_link_tiles *tiles);

/* Submit G += the gradient by the rows `own`, which are at that end; with `first`, G = this
 * gradient. The task runs on the owner of G. */
void sl_submit_link_back(struct sl_runtime *rt, const struct sl_link_tiles *tiles,
                         enum sl_link_end end, bool first, struct sl_tile *g);

/* Submit dw (1, cols) += the gradient by the parameters, or, with `first`, dw = this gradient.
 * `own` has the sources. */
void sl_submit_link_parameters(struct sl_runtime *rt, const struct sl_link_tiles *tiles, bool first,
                               struct sl_tile *dw);

/* Argument of the tasks link_scores, link_back and link_parameters. The places of the segments
 * (count, int64_t) stand behind it. */
struct link_argument {
    enum sl_decoder decoder;
    enum sl_link_end end;
    bool first, weighted;
    int self;      /* which of the others `own` is; -1: none */
    int64_t count; /* of the others; its size aligns the places behind the struct */
};

/* List the segments of blocks (count) of a task on the host, at most `most`. Return how many there
 * are.
 */
int sl_link_segments(void *blocks[], int count, int most, struct sl_scored_link **segments);

/* Set the rows and the segment of other tile k from the buffers of a task. Return the number of its
 * buffers before the output. */
int sl_link_task(void *buffers[], const struct link_argument *argument, int64_t k,
                 struct sl_link_rows *rows, struct sl_scored_link **segment);

#endif
