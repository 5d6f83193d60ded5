/* The halo of a cut of rows: each rank receives only the rows of other ranks that its edges touch.
 *
 * A rank packs the rows that another rank needs into a message (graphs/exchange.h), and sends it as
 * soon as they are there. While messages travel, it multiplies its own columns. Then it multiplies
 * each message as it came: columns of the adjacency are numbered so that they meet its buffer, and
 * nothing is unpacked. Results are bitwise the same in every run on as many ranks. */
#ifndef SL_GRAPHS_HALO_H
#define SL_GRAPHS_HALO_H

#include "graphs/distribution.h"
#include "graphs/exchange.h"

/* What travels in a product with one sparse matrix. */
struct sl_halo {
    int64_t *received, *sent; // (ranks): rows of each rank
    int64_t *messages;        // (ranks): that each receives
    /* where one plans: */
    int numbers;   /* of messages, at most, from one rank to another */
    int64_t *rows; // (ranks · numbers, ranks): of each message, by its reader; NULL: too many
    /* where one trains, this rank's: */
    struct sl_sparse_matrix *matrix;
    struct sl_exchange exchange;
    struct sl_tile *listed; // (exchange.receives): (1, rows) of int32, which rows of the graph
                            // come; NULL unless walks are numbered
};

/* Zeroed counts. SL_ERR_SYSTEM; sl_halo_destroy in either case. */
int sl_halo_allocate(struct sl_halo *halo, int ranks);

/* A rank works on what it receives in so many stages. Where ranks are few, each sends as many
 * messages. */
enum { SL_HALO_STAGES = 4 };

/* Messages that rows come in from one rank to another, where no row that travels has more than
 * `row_bytes`; and the row tiles of the sender that message `number` of them is of. */
int sl_halo_numbers(const struct sl_runtime *rt, const struct sl_distribution *d,
                    int64_t row_bytes);
struct sl_tile_run sl_halo_run(const struct sl_distribution *d, int numbers, int rank, int number);

/* Makes the exchange, and the matrix, of which each rank reads its own rows. The matrix has a
 * column for each row of this rank. The rows of a message have columns in the place of the first
 * tile that the message is of. All ranks call this. SL_ERR_SYSTEM; sl_halo_destroy in either case.
 */
int sl_halo_create(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_adjacency_source *source, struct sl_halo *halo,
                   struct sl_sparse_matrix *matrix);
void sl_halo_destroy(struct sl_halo *halo);

#endif
