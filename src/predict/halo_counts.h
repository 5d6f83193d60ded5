/* How many rows travel in a halo (graphs/halo.c), before any rank trains. Each rank receives only
 * the rows that its edges touch. */
#ifndef SL_PREDICT_HALO_COUNTS_H
#define SL_PREDICT_HALO_COUNTS_H

#include "assembly/partition.h"
#include "graphs/halo.h"

struct sl_halo_counts {
    struct sl_halo halo[2]; /* S, and its transpose unless S is symmetric */
    const struct sl_partition *partition;
    int numbers;
    int *rank, *message; // (tiles): whose it is, and which message it goes in
    int *reader;         // (rows): the last rank that was seen to touch the row, plus one
    int *met;            // (ranks · numbers): the last rank that got the message, plus one
    int64_t *row;        // (ranks): the last row that the rank was seen to touch back, plus one
    int *back;           // (ranks): the last message that the rank got back, plus one
};

/* Count the halos of a partition, which stays the caller's. Messages are the distribution's. Return
 * 0 or SL_ERR_SYSTEM; sl_halo_counts_destroy in either case. */
int sl_halo_counts_create(struct sl_halo_counts *counts, const struct sl_runtime *rt,
                          const struct sl_partition *partition, int64_t row_bytes);
void sl_halo_counts_destroy(struct sl_halo_counts *counts);

/* Row r of S, which is of row tile `at`; tile (rows) has that of each column. Rows come in
 * ascending order. */
void sl_halo_counts_add(struct sl_halo_counts *counts, const int32_t *tile, int at, int64_t r,
                        int64_t count, const int32_t *columns);

/* Count rows of message `message`, which goes to rank `to`: of S, or of its transpose. */
void sl_halo_counts_message(struct sl_halo_counts *counts, bool transposed, int64_t rows,
                            int message, int to, bool new_message);

/* Makes them those of the rows of all ranks. Collective. */
void sl_halo_counts_sum(struct sl_runtime *rt, struct sl_halo_counts *counts);

/* Estimate the halos of vertices in random order: nnz (tiles, tiles) entries of S, which is
 * symmetric. */
void sl_halo_counts_expect(struct sl_halo_counts *counts, const int64_t *nnz);

#endif
