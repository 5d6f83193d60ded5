/* The cores that a process runs on. Workers are for cores, not for hardware threads: two workers on
 * one core would share the core's units. */
#ifndef SL_CORE_BINDING_H
#define SL_CORE_BINDING_H

#include <stdint.h>

struct sl_binding {
    void *topology, *set; /* hwloc's topology and cpuset */
    int cores;            /* cores in the set */
    int64_t cache_bytes;  /* bytes of the last-level cache of the first core; 0: unknown */
    int64_t own_bytes;    /* bytes of the first core's largest private cache; 0: none */
    char text[512];       /* the set, as text that ranks can compare */
};

/* Find the cores that this process may use. Return 0 or SL_ERR_SYSTEM. */
int sl_binding_open(struct sl_binding *binding);

/* Keep the `index`-th of `parts` equal runs of the binding's cores, parts <= cores, and bind the
 * process to this run. */
void sl_binding_keep_share(struct sl_binding *binding, int parts, int index);

/* Bind the calling thread to the index-th core of the set, as the runtime binds its index-th
 * worker. Do nothing where the system cannot bind threads. */
void sl_binding_bind_thread(const struct sl_binding *binding, int index);

void sl_binding_close(struct sl_binding *binding);

#endif
