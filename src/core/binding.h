/* Which cores a process runs on. Cores, not hardware threads: two workers on one core share its
 * units. */
#ifndef SL_CORE_BINDING_H
#define SL_CORE_BINDING_H

#include <stdint.h>

struct sl_binding {
    void *topology, *set; /* hwloc's */
    int cores;            /* in the set */
    int64_t cache_bytes;  /* of the last-level cache of the first core; 0: unknown */
    int64_t own_bytes;    /* of its largest cache that no other core shares; 0: unknown */
    char text[512];       /* the set, as text that ranks can compare */
};

/* The cores that this process may use. Returns 0 or SL_ERR_SYSTEM. */
int sl_binding_open(struct sl_binding *binding);

/* Keeps the `index`-th of `parts` equal runs of those cores, parts <= cores, and binds the process
 * to it. */
void sl_binding_keep_share(struct sl_binding *binding, int parts, int index);

/* Binds the calling thread to the index-th core of the set, as the runtime binds its index-th
 * worker. Does nothing where the system does not bind. */
void sl_binding_bind_thread(const struct sl_binding *binding, int index);

void sl_binding_close(struct sl_binding *binding);

#endif
