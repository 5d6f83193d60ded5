/* How fast a rank and its messages are: measured on this machine, or as a file says. */
#ifndef SL_TRAIN_RATES_H
#define SL_TRAIN_RATES_H

#include <stdbool.h>
#include <stdint.h>

/* Latency and bandwidth of a message. */
struct sl_link {
    double seconds, bytes_per_second;
};

struct sl_rates {
    char name[96]; /* of the machine, as people call it */
    int cores;     /* of a rank */
    int64_t memory_bytes, cache_bytes;
    double gemm;      /* flops per second of dense products, of a rank with all its cores */
    double stream;    /* bytes per second of memory */
    double gather[2]; /* likewise, of random rows of 64 and of 1024 bytes */
    double task;      /* seconds of a core that a task costs beside its work */
    int node_ranks;   /* ranks of a node, whose messages have a link of their own */
    struct sl_link node, network;
    bool link_measured;
};

/* What `starling bench machine --remember` found here, shared by `ranks_here` ranks of `cores`
 * cores each; what was not measured has documented values (docs/DISTRIBUTIONS.md). */
void sl_rates_of_machine(int cores, int ranks_here, int64_t cache_bytes, struct sl_rates *out);

/* Those of a machine file. SL_ERR_DATA names the file, the key and what was expected. */
int sl_rates_read(const char *path, struct sl_rates *out);

/* The link of messages among so many ranks: the node's where all are on one. */
struct sl_link sl_rates_link(const struct sl_rates *rates, int ranks);

#endif
