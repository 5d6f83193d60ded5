/* Covers: rows are cut among the ranks as for a halo (graphs/halo.h). An entry (v, u) of S between
 * two ranks is served in one of two ways:
 *
 *     by row       row u of H travels to the rank of v, as in a halo
 *     by result    the rank of u sums entries of row v, and the result travels to the rank of v
 *
 * For each pair of ranks, the entries form a bipartite graph of rows v and columns u. A minimum
 * vertex cover of the graph (König) says what travels: rows of H for its columns, results for its
 * rows. Weights are bytes: no choice moves fewer. An entry whose row and column are both in the
 * cover is on the rank of its row. Results are bitwise the same in every run on as many ranks, and
 * equal other distributions up to rounding. */
#ifndef SL_GRAPHS_COVER_H
#define SL_GRAPHS_COVER_H

#include "graphs/distribution.h"
#include "graphs/exchange.h"

/* The results that a rank makes for rows of other ranks. A message has the results for rows of a
 * run of row tiles of its receiver (sl_halo_run). */
struct sl_cover {
    int64_t *received, *sent;     // (ranks): results that each rank receives, and makes for others
    int64_t *messages, *made;     // (ranks): messages of results that each rank receives, and sends
    int64_t *nnz, *tiles, *bytes; // (ranks): size of each rank's matrix
    /* Counts for a prediction. */
    int64_t *rows, *entries; // (ranks, ranks · numbers): results that each rank makes for each
                             // receiver's messages, and their entries; NULL: not counted
    /* Exchanges and matrix of this rank, for training. */
    struct sl_exchange results;     /* from ranks of columns to ranks of rows */
    struct sl_exchange operands;    /* row operands of the result rows, in the opposite direction */
    struct sl_sparse_matrix matrix; /* a tile row for each message of results that this rank sends,
                                       a column for each own row; its tiles never travel */
    struct sl_tile *listed; // (results.sends): (1, rows) of int32, the graph's numbers of the rows;
                            // NULL unless walks are numbered
};

/* Make zeroed counts. Return 0 or SL_ERR_SYSTEM; sl_cover_destroy in either case. */
int sl_cover_allocate(struct sl_cover *cover, int ranks);

/* Make a halo with its cover: create_adjacency of sl_distribution_kind. */
int sl_cover_create_adjacency(struct sl_runtime *rt, struct sl_distribution *d,
                              const struct sl_adjacency_source *source,
                              struct sl_sparse_matrix *matrix);
void sl_cover_destroy(struct sl_cover *cover);

/* Add results and their entries to the counts (ranks) of a walk. From one rank to another there are
 * at most `numbers` messages. */
void sl_cover_count(const struct sl_cover *cover, const struct sl_distribution *d,
                    const struct sl_counted_walk *walk, int numbers, struct sl_walk_counts *rank);

/* A walk's results for other ranks. */
struct sl_cover_walk {
    struct sl_runtime *rt;
    const struct sl_distribution *d;
    struct sl_cover *cover;
    const struct sl_reduction *reduction;
    struct sl_tile **const *own; // [moved][own row tiles]: tiles of this rank
};

/* Submit the results of this rank and send them. */
void sl_cover_send(const struct sl_cover_walk *walk);

/* Return whether results come for row tile i. */
bool sl_cover_merges(const struct sl_cover *cover, int i);

/* sl_cover_stages: return the number of stages in which results come. sl_cover_stage: list the
 * tiles of stage s in `tiles` (outputs · results.receives). sl_cover_merge: merge them into
 * complete states of the own row tiles. */
int sl_cover_stages(const struct sl_runtime *rt, const struct sl_cover *cover);
struct sl_stage sl_cover_stage(const struct sl_cover_walk *walk, int s, struct sl_tile **tiles);
void sl_cover_merge(const struct sl_cover_walk *walk, int s, struct sl_states *states,
                    struct sl_tile **tiles);

#endif
