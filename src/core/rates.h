/* Speeds of a rank and of its messages, measured on this machine or read from a file. Every choice
 * that predicts time takes its seconds from here. */
#ifndef SL_CORE_RATES_H
#define SL_CORE_RATES_H

#include <stdbool.h>
#include <stdint.h>

/* Latency and bandwidth of a message. */
struct sl_link {
    double seconds, bytes_per_second;
};

/* Memory level that random rows come from: a core's own cache, the last-level cache, memory. */
enum sl_level { SL_LEVEL_CORE, SL_LEVEL_LAST, SL_LEVEL_MEMORY, SL_LEVELS };

/* Rates of a rank that uses all its cores. */
struct sl_rates {
    char name[96]; /* name of the machine for people */
    int cores;     /* cores of a rank */
    int64_t memory_bytes, cache_bytes;
    double gemm;                 /* flops per second of dense products */
    double stream;               /* bytes per second of memory */
    double gather[SL_LEVELS][2]; /* bytes per second of random rows of 64 and 1024 bytes */
    double features; /* flops per second of products with sparse features, without dropout */
    double draws;    /* entries of sparse features per second that dropout decides on */
    double task;     /* seconds of a core that a task costs beside its work */
    int node_ranks;  /* ranks of a node, whose messages use the link `node` */
    struct sl_link node, network;
    bool link_measured;
};

/* Rates of one core where nothing was measured. */
extern const struct sl_rates sl_rates_usual;

/* Set *out to the rates that `starling bench machine --remember` found here, shared by `ranks_here`
 * ranks of `workers` CPU workers each (0 counts as 1). Rates that were not measured have documented
 * values (docs/DISTRIBUTIONS.md). */
void sl_rates_of_machine(int workers, int ranks_here, int64_t cache_bytes, struct sl_rates *out);

/* Return the bytes per second of messages that `mpirun -n 2 starling bench machine --remember`
 * found here; 0: not measured. */
int64_t sl_rates_remembered_link(void);

/* Set *out to the rates of one core alone: sl_rates_of_machine with one worker and one rank. */
void sl_rates_of_core(int64_t cache_bytes, struct sl_rates *out);

/* Read the rates of a machine file. SL_ERR_DATA names the file, the key and the expected value. */
int sl_rates_read(const char *path, struct sl_rates *out);

/* Return the link between `ranks` ranks: the node's link where one node has them all, else the
 * network. */
struct sl_link sl_rates_link(const struct sl_rates *rates, int ranks);

/* Return the seconds of messages, and the seconds in which a processor works on the messages. The
 * busy seconds are at most the time of the messages within one memory; tasks cannot hide them. */
double sl_link_seconds(const struct sl_link *link, double bytes, double messages);
double sl_link_busy_seconds(const struct sl_link *link, double bytes, double messages);

/* ---- Seconds of operations ---- */

/* Return the seconds of reading `rows` random rows of `row_bytes` each from a table of
 * `table_bytes`. */
double sl_rates_gather_seconds(const struct sl_rates *rates, double rows, double row_bytes,
                               double table_bytes);

/* Return the seconds of a sparse product. `entries` of the matrix meet rows of `row_bytes` of a
 * table of `table_rows` rows, and make `rows` rows. */
double sl_rates_spmm_seconds(const struct sl_rates *rates, double entries, double rows,
                             double row_bytes, double table_rows);

/* Return the seconds of a product of `entries` sparse features with rows of `width` floats. Dropout
 * keeps the share `kept` of the entries (1: no dropout). */
double sl_rates_features_seconds(const struct sl_rates *rates, double entries, double width,
                                 double kept);

/* Return the seconds of making a dense matrix of `bytes` from `entries` sparse features; dropout
 * keeps the share `kept`. */
double sl_rates_densify_seconds(const struct sl_rates *rates, double entries, double bytes,
                                double kept);

/* Return the seconds of dropout on a dense matrix of `items` elements of `bytes` each; dropout
 * keeps the share `kept`. */
double sl_rates_dropout_seconds(const struct sl_rates *rates, double items, double bytes,
                                double kept);

#endif
