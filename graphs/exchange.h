/* The exchange: some rows of a rank's tiles are packed into a buffer, which travels to another
 * rank. There it is read as it is, or its rows are copied into tiles, or added to them. No message
 * goes between two ranks that have no rows for one another.
 *
 *   a halo      rows of H that the other rank's edges touch; a sparse tile meets the buffer itself
 *   a split     partial sums of vertices that several ranks have go to one of them, which adds them
 *               to its own; totals come back, and are copied
 *
 * The order of everything follows from the order of the parts, so that sums do, too. */
#ifndef SL_GRAPHS_EXCHANGE_H
#define SL_GRAPHS_EXCHANGE_H

#include "core/message.h"
#include "core/tile.h"

/* Some rows of a run of row tiles, for one rank or from it. */
struct sl_exchange_list {
    int peer;            /* the other rank */
    int number;          /* of this list among those that go the same way between the two */
    int from, to;        /* row tiles from … to - 1 of this rank */
    const int64_t *rows; // (count), ascending; NULL: the buffer is not unpacked
    int64_t count;
};

/* A list, with tiles: a message. */
struct sl_exchange_part {
    int peer, number;
    int from, to;
    int64_t rows;
    int64_t *first; // (to - from + 1): rows first[t] … first[t + 1] - 1 are of tile from + t
    struct sl_tile index; // (1, rows) of uint32: each row's number in its tile
};

struct sl_exchange {
    int sends, receives;
    struct sl_exchange_part *send, *receive; /* those with rows, in the order of the lists */
    int numbers;                             /* of lists, at most, from one rank to another */
    struct sl_exchange_buffers *buffers;     /* a list, of each width, type and place another */
};

/* What all lists are for: rows are numbered as in `row_cut`. Ranks may have any lists, but each on
 * both its ends. SL_ERR_SYSTEM; sl_exchange_destroy in either case. */
int sl_exchange_create(struct sl_exchange *exchange, const struct sl_runtime *rt, int numbers,
                       const int64_t *row_cut, int sends, const struct sl_exchange_list *send,
                       int receives, const struct sl_exchange_list *receive);

/* Waits for tasks and messages. Safe on a zeroed struct. */
void sl_exchange_destroy(struct sl_exchange *exchange);

/* Packs all parts of column tile j of H and sends them; the buffers are empty again once they have
 * arrived. Matrices that are there at the same time have other places, from 0 on. All ranks call
 * this and the next two for the same matrices and places in the same order, because the first of a
 * width, type and place makes its buffers. */
void sl_exchange_send(struct sl_runtime *rt, struct sl_exchange *exchange,
                      const struct sl_matrix *h, int j, int place);

/* The parts [from, to) that come for column tile j of a matrix such as H, as a stage whose list is
 * `tiles`; `buffer` p - from is that of part p. */
struct sl_stage sl_exchange_stage(struct sl_runtime *rt, struct sl_exchange *exchange,
                                  const struct sl_matrix *h, int j, int place, int from, int to,
                                  struct sl_tile **tiles);

/* As sl_exchange_send, but what comes does not wait for somebody who asks: it has memory at
 * `place`, from 0 on, until the next exchange there; these are others than those above. All ranks
 * call this, too, in the same order. */
void sl_exchange_post(struct sl_runtime *rt, struct sl_exchange *exchange,
                      const struct sl_matrix *h, int j, int place);

/* The buffer there that part p came in, or comes. */
struct sl_tile *sl_exchange_arrived(struct sl_runtime *rt, struct sl_exchange *exchange,
                                    const struct sl_matrix *h, int j, int place, int p);

/* The buffers (receives) there for matrices of float32 of that width, none of which need be at
 * hand. Made where they are not there: all ranks call this, too, in the same order. */
struct sl_tile *sl_exchange_places(struct sl_runtime *rt, struct sl_exchange *exchange,
                                   int64_t width, int place);

/* Rows of Z(:, j) = those of the buffer that part p came in, or, accumulating, += them. */
void sl_exchange_unpack(struct sl_runtime *rt, struct sl_exchange *exchange, int p,
                        struct sl_tile *buffer, bool accumulate, const struct sl_matrix *z, int j);

/* Rows of all parts that this rank sends, and that it receives. */
int64_t sl_exchange_rows_sent(const struct sl_exchange *exchange);
int64_t sl_exchange_rows_received(const struct sl_exchange *exchange);

#endif
