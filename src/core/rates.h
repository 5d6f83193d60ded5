/* How fast a rank and its messages are: measured on this machine, or as a file says. Every choice
 * that predicts time takes its seconds from here. */
#ifndef SL_CORE_RATES_H
#define SL_CORE_RATES_H

#include <stdbool.h>
#include <stdint.h>

/* Latency and bandwidth of a message. */
struct sl_link {
    double seconds, bytes_per_second;
};

/* Where random rows come from: a core's own cache, the last-level cache, memory. */
enum sl_level { SL_LEVEL_CORE, SL_LEVEL_LAST, SL_LEVEL_MEMORY, SL_LEVELS };

/* All rates are of a rank with all its cores. */
struct sl_rates {
    char name[96]; /* of the machine, as people call it */
    int cores;     /* of a rank */
    int64_t memory_bytes, cache_bytes;
    double gemm;                 /* flops per second of dense products */
    double stream;               /* bytes per second of memory */
    double gather[SL_LEVELS][2]; /* likewise, of random rows of 64 and of 1024 bytes */
    double features; /* flops per second of products with sparse features, without dropout */
    double draws;    /* entries of sparse features per second that dropout decides on */
    double task;     /* seconds of a core that a task costs beside its work */
    int node_ranks;  /* ranks of a node, whose messages have a link of their own */
    struct sl_link node, network;
    bool link_measured;
};

/* Those of one core where nothing was measured. */
extern const struct sl_rates sl_rates_usual;

/* What `starling bench machine --remember` found here, shared by `ranks_here` ranks of `workers`
 * CPU workers each (0: as with 1); what was not measured has documented values
 * (docs/DISTRIBUTIONS.md). */
void sl_rates_of_machine(int workers, int ranks_here, int64_t cache_bytes, struct sl_rates *out);

/* Bytes per second of messages, as `mpirun -n 2 starling bench machine --remember` found here; 0:
 * not measured. */
int64_t sl_rates_remembered_link(void);

/* Those of one core alone, which do not depend on workers and ranks. */
void sl_rates_of_core(int64_t cache_bytes, struct sl_rates *out);

/* Those of a machine file. SL_ERR_DATA names the file, the key and what was expected. */
int sl_rates_read(const char *path, struct sl_rates *out);

/* The link of messages among so many ranks: the node's where all are on one. */
struct sl_link sl_rates_link(const struct sl_rates *rates, int ranks);

/* Return the seconds of messages. The busy seconds are those in which a processor is at work on
 * them: at most the seconds of the same messages in one memory. Nothing is hidden then. */
double sl_link_seconds(const struct sl_link *link, double bytes, double messages);
double sl_link_busy_seconds(const struct sl_link *link, double bytes, double messages);

/* Return the seconds in which so many bytes go from all ranks to one along a binomial tree, and
 * back along another tree: the gradient of a layer's weights, and the weights. */
double sl_link_tree_seconds(const struct sl_link *link, double bytes, double ranks);

/* ---- Seconds of operations ---- */

/* `rows` random rows of `row_bytes` each, from a table of `table_bytes`. */
double sl_rates_gather_seconds(const struct sl_rates *rates, double rows, double row_bytes,
                               double table_bytes);

/* A sparse product: `entries` of the matrix meet rows of `row_bytes` of a table of `table_rows`
 * rows, and make `rows` rows. */
double sl_rates_spmm_seconds(const struct sl_rates *rates, double entries, double rows,
                             double row_bytes, double table_rows);

/* One product of `entries` sparse features, of which dropout keeps the share `kept` (1: no
 * dropout), with rows of `width` floats. */
double sl_rates_features_seconds(const struct sl_rates *rates, double entries, double width,
                                 double kept);

/* `entries` sparse features made a dense matrix of `bytes`; dropout keeps the share `kept`. */
double sl_rates_densify_seconds(const struct sl_rates *rates, double entries, double bytes,
                                double kept);

/* Dropout of a dense matrix of `items` of so many bytes, which keeps the share `kept`. */
double sl_rates_dropout_seconds(const struct sl_rates *rates, double items, double bytes,
                                double kept);

#endif
