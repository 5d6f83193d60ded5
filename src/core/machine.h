/* The hardware of this machine, as hwloc sees it. */
#ifndef SL_CORE_MACHINE_H
#define SL_CORE_MACHINE_H

#include <stdint.h>

enum { SL_MACHINE_CACHES = 8, SL_MACHINE_DEVICES = 32 };

struct sl_machine_cache {
    int level;
    char kind; /* 'd' data, 'i' instructions, 'u' both */
    int count;
    int64_t bytes; /* bytes of each cache of this kind */
};

/* A GPU or a network link. */
struct sl_machine_device {
    char name[64];
    char detail[192]; /* model, memory, address, speed as far as known; "": nothing is known */
};

struct sl_machine {
    char host[128], processor[128];
    int packages, cores, threads, numa_nodes;
    int cores_allowed; /* cores that this process may run on */
    int64_t memory_bytes;
    int cache_count, gpu_count, link_count;
    struct sl_machine_cache caches[SL_MACHINE_CACHES];
    struct sl_machine_device gpus[SL_MACHINE_DEVICES];
    struct sl_machine_device links[SL_MACHINE_DEVICES];
};

/* Fill in *machine. Return 0 or SL_ERR_SYSTEM. */
int sl_machine_probe(struct sl_machine *machine);

#endif
