#include "core/binding.h"

#include <stdbool.h>

#include <hwloc.h>

#include "core/error.h"

/* Return the next core after `core` (NULL: the first) that has a hardware thread in the set. */
static hwloc_obj_t next_core(const struct sl_binding *binding, hwloc_obj_t core)
{
    do
        core = hwloc_get_next_obj_by_type(binding->topology, HWLOC_OBJ_CORE, core);
    while (core && !hwloc_bitmap_intersects(core->cpuset, binding->set));
    return core;
}

/* Walk up from the first core. The last cache on the way is the last-level cache. The last cache
 * with the cpuset of the core alone is the core's own. */
static void find_caches(struct sl_binding *binding)
{
    const hwloc_obj_t core = next_core(binding, NULL);
    binding->cache_bytes = binding->own_bytes = 0;
    for (hwloc_obj_t object = core; object; object = object->parent)
        if (hwloc_obj_type_is_dcache(object->type)) {
            binding->cache_bytes = (int64_t)object->attr->cache.size;
            if (hwloc_bitmap_isequal(object->cpuset, core->cpuset))
                binding->own_bytes = binding->cache_bytes;
        }
}

static void describe(struct sl_binding *binding)
{
    find_caches(binding);
    binding->cores = 0;
    for (hwloc_obj_t core = next_core(binding, NULL); core; core = next_core(binding, core))
        binding->cores++;
    if (binding->cores == 0) /* a machine that hides its cores */
        binding->cores = hwloc_bitmap_weight(binding->set);
    hwloc_bitmap_list_snprintf(binding->text, sizeof binding->text, binding->set);
}

int sl_binding_open(struct sl_binding *binding)
{
    *binding = (struct sl_binding){0};
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        return sl_error(SL_ERR_SYSTEM, "hwloc does not start");
    binding->topology = topology;
    binding->set = hwloc_bitmap_alloc();
    if (!binding->set || hwloc_topology_load(topology)) {
        sl_binding_close(binding);
        return sl_error(SL_ERR_SYSTEM, "hwloc cannot read the machine's topology");
    }
    if (hwloc_get_cpubind(topology, binding->set, HWLOC_CPUBIND_PROCESS))
        hwloc_bitmap_copy(binding->set, hwloc_topology_get_allowed_cpuset(topology));
    describe(binding);
    return 0;
}

void sl_binding_keep_share(struct sl_binding *binding, int parts, int index)
{
    const int first = binding->cores * index / parts, last = binding->cores * (index + 1) / parts;
    hwloc_bitmap_t share = hwloc_bitmap_alloc();
    int seen = 0;
    for (hwloc_obj_t core = next_core(binding, NULL); core && share;
         core = next_core(binding, core), seen++)
        if (seen >= first && seen < last)
            hwloc_bitmap_or(share, share, core->cpuset);
    if (share && !hwloc_bitmap_iszero(share)) {
        hwloc_bitmap_and(binding->set, binding->set, share);
        hwloc_set_cpubind(binding->topology, binding->set, HWLOC_CPUBIND_PROCESS);
        describe(binding);
    }
    hwloc_bitmap_free(share);
}

void sl_binding_bind_thread(const struct sl_binding *binding, int index)
{
    hwloc_obj_t core = next_core(binding, NULL);
    while (core && index-- > 0)
        core = next_core(binding, core);
    if (core)
        hwloc_set_cpubind(binding->topology, core->cpuset, HWLOC_CPUBIND_THREAD);
}

void sl_binding_close(struct sl_binding *binding)
{
    if (binding->set)
        hwloc_bitmap_free(binding->set);
    if (binding->topology)
        hwloc_topology_destroy(binding->topology);
    *binding = (struct sl_binding){0};
}
