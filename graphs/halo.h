/* The halo of a cut of rows: each rank receives only the rows of other ranks that its edges touch.
 *
 * Rows of the adjacency and of all matrices are cut among the ranks. Before training, each rank
 * tells every other rank which rows its edges touch (sl_halo_create). In an aggregation, a rank
 * packs the rows that another rank needs into a message (graphs/exchange.h), and sends the message
 * as soon as the rows are there. While messages travel, the rank multiplies its own columns. Then
 * it multiplies the messages, round from the next rank. Columns of the adjacency are numbered to
 * meet the buffer of a message, so nothing is unpacked. Results are bitwise the same in every run
 * on as many ranks. */
#ifndef SL_GRAPHS_HALO_H
#define SL_GRAPHS_HALO_H

#include "graphs/cover.h"
#include "graphs/distribution.h"
#include "graphs/exchange.h"

/* The rows that travel in an aggregation with one sparse matrix. */
struct sl_halo {
    int64_t *received, *sent; // (ranks): rows that each rank receives, and sends
    int64_t *messages;        // (ranks): messages that each rank receives
    /* Counts for a prediction. */
    int numbers;   /* most messages from one rank to another */
    int64_t *rows; // (ranks · numbers, ranks): rows of each sender's messages for each receiver;
                   // NULL: too many
    struct sl_cover *cover; /* owned by the halo: entries that are served by result; NULL: none */
    /* Matrix and exchange of this rank, for training. */
    struct sl_sparse_matrix *matrix;
    struct sl_exchange exchange;
    struct sl_tile *listed; // (exchange.receives): (1, rows) of int32, the graph's numbers of the
                            // rows that come; NULL unless walks are numbered
};

/* Make zeroed counts. Return 0 or SL_ERR_SYSTEM; sl_halo_destroy in either case. */
int sl_halo_allocate(struct sl_halo *halo, int ranks);

/* Most stages in which a rank works on received messages. Where ranks are few, each rank sends
 * another rank several messages, enough for all stages. */
enum { SL_HALO_STAGES = 4 };

/* Return the most messages from one rank to another. The widest row that travels has `row_bytes`
 * bytes. */
int sl_halo_numbers(const struct sl_runtime *rt, const struct sl_distribution *d,
                    int64_t row_bytes);

/* Return the row tiles of sender `rank` whose rows go into message `number` of `numbers`. Where
 * hops are known, all these tiles have one hop: no message is sent where a layer does not need its
 * rows. */
struct sl_tile_run sl_halo_run(const struct sl_distribution *d, int numbers, int rank, int number);

/* Messages of a rank, `numbers` for each other rank, round from the next rank or backward. Message
 * s for or from rank r has rows first[r · numbers + s] … of `rows`, in tiles of this rank. `rows`
 * NULL: the rows are in tiles of the other rank. */
struct sl_halo_messages {
    int numbers;
    bool forward;
    const int64_t *first; // (ranks · numbers + 1)
    const int64_t *rows;
};

/* List the messages of a rank. Return how many. */
int sl_halo_list(const struct sl_distribution *d, int rank, const struct sl_halo_messages *messages,
                 struct sl_exchange_list *list);

/* Make the exchange and the sparse matrix. Each rank reads its own rows of the adjacency. The
 * matrix has a column for each own row and for each received row. All columns of a message are in
 * the column tile of the first row tile of its run (sl_halo_run). Other ranks' columns are in the
 * matrix only if `by_row` has them (rows of the graph; NULL: all). All ranks call this. Return 0 or
 * SL_ERR_SYSTEM; sl_halo_destroy in either case. */
int sl_halo_create(struct sl_runtime *rt, const struct sl_distribution *d,
                   const struct sl_adjacency_source *source, const bool *by_row,
                   struct sl_halo *halo, struct sl_sparse_matrix *matrix);
void sl_halo_destroy(struct sl_halo *halo);

#endif
