/* The task of links: the rows of the last layer are embeddings of vertices, a decoder scores pairs
 * of them, and the loss compares scores of links with scores of pairs that are drawn
 * (codelets/links.h).
 *
 * A link belongs to the row tile of its source. Block (i, k) has the links with a source in row
 * tile i and a target in row tile k; the owner of i has it. Rows of embeddings come to all ranks,
 * since drawn targets are anywhere. */
#ifndef SL_GRAPHS_LINKS_H
#define SL_GRAPHS_LINKS_H

#include "codelets/link_lists.h"
#include "codelets/link_ranking.h"
#include "graphs/network.h"

/* The links of a graph, on all ranks alike unless said otherwise. src/assembly/link_tiles.h makes
 * them. */
struct sl_links {
    enum sl_decoder decoder;
    int tiles;                /* row tiles T */
    int64_t count, negatives; /* training links; negatives for each of them */
    uint64_t seed;
    struct sl_link_draw draw;   /* how targets are drawn, but for the key of a step */
    int32_t *row;               // (vertices): draw.row; NULL: the number
    struct sl_link_list *list;  // (T): training links of this rank's row tiles
    int parts;                  /* runs of row tiles of one rank, P */
    int *part_cut;              // (P + 1): row tiles of each part
    struct sl_tile *block;      // (T, P): training links and negatives of a step
    int64_t *segment;           // (T, T): elements before each segment in its block
    struct sl_tile *work;       // (T): scratch of the lists
    struct sl_tile *pairs;      // (T): scratch of the pairwise loss; NULL: another loss
    struct sl_tile *parameters; // (T) tiles (1, width): parts of the decoder's gradient; NULL:
                                // it has none
    struct sl_matrix gradient;  // (n, width), whole rows
    struct sl_link_lists_measured lists; /* links that are measured */
    struct sl_tile *measured;            // (T, P): their blocks
    int64_t *measured_segment;           // (T, T)
    struct sl_tile scores;               // (2, places of these lists), on rank 0
};

/* Submit the scores and the loss of a step's links. Set Z, the embeddings, to the gradient of the
 * mean loss by them, times the scale `factor` of each row. Set metrics of row tiles, as
 * sl_loss.differentiate does, and links->parameters. */
void sl_links_train(struct sl_network *net, const struct sl_matrix *z, enum sl_row_scale factor);

/* Submit the scores of measured links, and their loss and metric into sl_network_total. */
void sl_links_measure(struct sl_network *net, const struct sl_matrix *z);

/* Return the part that row tile k is in. */
int sl_links_part(const struct sl_links *links, int k);

/* Return how many tasks all ranks have of a step's links, and of their evaluation. */
int64_t sl_links_tasks(const struct sl_links *links);

/* Return the bytes of links on this rank, and of rows that it receives. */
int64_t sl_links_bytes(const struct sl_network *net);
int64_t sl_links_received_bytes(const struct sl_network *net);

void sl_links_destroy(struct sl_links *links);

#endif
