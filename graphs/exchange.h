/* The exchange: each rank packs chosen rows of its tiles into messages for other ranks. The
 * receiver reads a message in its buffer, or unpacks the message: copies its rows into tiles, or
 * adds them. No message goes between two ranks without rows for one another.
 *
 *     halo         a rank receives the rows of H that its edges touch; sparse tiles meet the buffer
 *     vertex-cut   leaves send partial sums to their root; the root adds them and sends totals back
 *
 * The order of the lists fixes the order of all messages and tasks, and so of all sums. */
#ifndef SL_GRAPHS_EXCHANGE_H
#define SL_GRAPHS_EXCHANGE_H

#include "core/message.h"
#include "core/tile.h"

/* Rows that travel to one rank, or from one rank. */
struct sl_exchange_list {
    int peer;            /* the other rank */
    int number;          /* number of this list among all lists from one rank to the other */
    int from, to;        /* row tiles from … to - 1 of this rank */
    const int64_t *rows; // (count), ascending; NULL: rows are received and not unpacked
    int64_t count;
};

/* A message: a list and the place of each row in its tile. */
struct sl_exchange_part {
    int peer, number;
    int from, to;
    int64_t rows;
    int64_t *first; // (to - from + 1): rows first[t] … first[t + 1] - 1 are of tile from + t
    struct sl_tile index; // (1, rows) of uint32: each row's number in its tile
};

struct sl_exchange {
    int sends, receives;
    struct sl_exchange_part *send, *receive; /* messages with rows, in the order of the lists */
    int numbers;                             /* most lists from one rank to another */
    struct sl_exchange_buffers *buffers;     /* a list, for each cut, type and place */
};

/* Make an exchange of the listed rows. Rows are numbered as in `row_cut`. A rank may have any
 * lists, but a list must be there on both ends: in `send` of the sender and in `receive` of the
 * receiver. `numbers` is the most lists from one rank to another, the same on all ranks. Return 0
 * or SL_ERR_SYSTEM; sl_exchange_destroy in either case. */
int sl_exchange_create(struct sl_exchange *exchange, const struct sl_runtime *rt, int numbers,
                       const int64_t *row_cut, int sends, const struct sl_exchange_list *send,
                       int receives, const struct sl_exchange_list *receive);

/* Wait for tasks and messages, and free the exchange. Safe on a zeroed struct. */
void sl_exchange_destroy(struct sl_exchange *exchange);

/* Submit the packing and sending of all messages with rows of column tile j of H. Buffers are empty
 * again once their messages have arrived. Matrices whose messages travel at the same time have
 * different places, from 0 on.
 *
 * All ranks call this function and the next two for the same matrices and places in the same order.
 * The first call for a cut of columns, type and place makes the buffers. Ranks may have unlike
 * columns of the matrix; a message goes between ranks that have the same column. */
void sl_exchange_send(struct sl_runtime *rt, struct sl_exchange *exchange,
                      const struct sl_matrix *h, int j, int place);

/* Submit the packing and sending of message p alone, as sl_exchange_send does. sl_exchange_outgoing
 * has made the buffers. */
void sl_exchange_send_part(struct sl_runtime *rt, struct sl_exchange *exchange,
                           const struct sl_matrix *h, int j, int place, int p);

/* Return messages [from, to) that come for column tile j of a matrix like H, as a stage
 * (core/message.h). The stage lists `tiles`: tiles[p - from] is the buffer of message p. */
struct sl_stage sl_exchange_stage(struct sl_runtime *rt, struct sl_exchange *exchange,
                                  const struct sl_matrix *h, int j, int place, int from, int to,
                                  struct sl_tile **tiles);

/* Return the buffers (sends) of sl_exchange_send for a matrix like H, so that tasks of the caller
 * write whole messages. sl_exchange_send_buffer then sends message p. */
struct sl_tile *sl_exchange_outgoing(struct sl_runtime *rt, struct sl_exchange *exchange,
                                     const struct sl_matrix *h, int j, int place);
void sl_exchange_send_buffer(struct sl_runtime *rt, struct sl_exchange *exchange, int p,
                             struct sl_tile *buffer);

/* Submit sending as in sl_exchange_send, and receiving at once, without a stage. A message that
 * comes stays in its buffer at `place` until the next post there. Places are from 0 on, apart from
 * the places of sl_exchange_send. All ranks call this, too, in the same order. */
void sl_exchange_post(struct sl_runtime *rt, struct sl_exchange *exchange,
                      const struct sl_matrix *h, int j, int place);

/* Return the buffer at `place` in which message p came, or will come. */
struct sl_tile *sl_exchange_arrived(struct sl_runtime *rt, struct sl_exchange *exchange,
                                    const struct sl_matrix *h, int j, int place, int p);

/* Return the buffers (receives) at `place` for float32 matrices of that width; no such matrix is
 * needed. Make the buffers if they are not there: all ranks call this, too, in the same order. */
struct sl_tile *sl_exchange_places(struct sl_runtime *rt, struct sl_exchange *exchange,
                                   int64_t width, int place);

/* Submit rows of Z(:, j) = rows of message p, which came in `buffer`; accumulate: +=. */
void sl_exchange_unpack(struct sl_runtime *rt, struct sl_exchange *exchange, int p,
                        struct sl_tile *buffer, bool accumulate, const struct sl_matrix *z, int j);

/* Return the number of rows that this rank sends, or receives, in all messages. */
int64_t sl_exchange_rows_sent(const struct sl_exchange *exchange);
int64_t sl_exchange_rows_received(const struct sl_exchange *exchange);

#endif
