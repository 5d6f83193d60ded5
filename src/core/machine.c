#include "core/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hwloc.h>

#include "core/error.h"
#include "core/gpus.h"

static int count_type(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    return count < 0 ? 0 : count;
}

static void probe_caches(hwloc_topology_t topology, struct sl_machine *machine)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE,
                                             HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                             HWLOC_OBJ_L4CACHE};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        hwloc_obj_t first = hwloc_get_obj_by_type(topology, types[t], 0);
        if (!first)
            continue;
        struct sl_machine_cache *cache = &machine->caches[machine->cache_count++];
        const hwloc_obj_cache_type_t kind = first->attr->cache.type;
        cache->level = (int)first->attr->cache.depth;
        cache->kind = kind == HWLOC_OBJ_CACHE_DATA          ? 'd'
                      : kind == HWLOC_OBJ_CACHE_INSTRUCTION ? 'i'
                                                            : 'u';
        cache->count = count_type(topology, types[t]);
        cache->bytes = (int64_t)first->attr->cache.size;
    }
}

/* Append "label value" to the device's detail. */
static void add_detail(struct sl_machine_device *device, const char *label, const char *value)
{
    const size_t used = strlen(device->detail);
    snprintf(device->detail + used, sizeof device->detail - used, "%s%s%s", used ? ", " : "", label,
             value);
}

static struct sl_machine_device *add_device(struct sl_machine_device *list, int *count,
                                            const char *name)
{
    if (*count == SL_MACHINE_DEVICES)
        return NULL;
    struct sl_machine_device *device = &list[(*count)++];
    snprintf(device->name, sizeof device->name, "%s", name);
    return device;
}

/* Return the speed of a network interface in Mbit/s as Linux reports it; 0 if it reports none. */
static long link_speed(const char *interface)
{
    char path[128];
    long speed = 0;
    snprintf(path, sizeof path, "/sys/class/net/%.60s/speed", interface);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &speed) != 1 || speed < 0)
        speed = 0;
    fclose(file);
    return speed;
}

static void probe_link(struct sl_machine *machine, hwloc_obj_t object)
{
    struct sl_machine_device *link = add_device(machine->links, &machine->link_count, object->name);
    if (!link)
        return;
    const char *address = hwloc_obj_get_info_by_name(object, "Address");
    const long speed = link_speed(object->name);
    if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
        add_detail(link, "", "InfiniBand or RoCE");
    if (speed) {
        char text[32];
        snprintf(text, sizeof text, "%ld Mbit/s", speed);
        add_detail(link, "", text);
    }
    if (address)
        add_detail(link, "address ", address);
}

static void probe_gpu(struct sl_machine *machine, hwloc_obj_t object)
{
    static const char *const facts[] = {"GPUModel", "CUDAGlobalMemorySize", "LevelZeroModel",
                                        "OpenCLPlatformName"};
    struct sl_machine_device *gpu = add_device(machine->gpus, &machine->gpu_count, object->name);
    for (size_t f = 0; gpu && f < sizeof facts / sizeof *facts; f++) {
        const char *value = hwloc_obj_get_info_by_name(object, facts[f]);
        if (value && strcmp(facts[f], "CUDAGlobalMemorySize") == 0) {
            char text[32];
            snprintf(text, sizeof text, "%lld MiB", atoll(value) / 1024);
            add_detail(gpu, "", text);
        } else if (value) {
            add_detail(gpu, "", value);
        }
    }
}

/* Find GPUs through CUDA: hwloc knows CUDA's devices only with a plugin of its own. */
static void probe_cuda(struct sl_machine *machine)
{
    const int devices = sl_gpus_count();
    for (int d = 0; d < devices; d++) {
        char name[16], model[64], memory[32];
        int64_t mib;
        sl_gpus_describe(d, model, &mib);
        snprintf(name, sizeof name, "cuda%d", d);
        snprintf(memory, sizeof memory, "%lld MiB", (long long)mib);
        struct sl_machine_device *gpu = add_device(machine->gpus, &machine->gpu_count, name);
        if (gpu) {
            add_detail(gpu, "", model);
            add_detail(gpu, "", memory);
        }
    }
}

/* Add display controllers on the bus for which no driver announced itself. */
static void probe_pci_gpus(hwloc_topology_t topology, struct sl_machine *machine)
{
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(topology, pci));) {
        if (pci->attr->pcidev.class_id >> 8 != 0x03)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%04x:%02x:%02x.%x", pci->attr->pcidev.domain,
                 pci->attr->pcidev.bus, pci->attr->pcidev.dev, pci->attr->pcidev.func);
        struct sl_machine_device *gpu = add_device(machine->gpus, &machine->gpu_count, name);
        const char *vendor = hwloc_obj_get_info_by_name(pci, "PCIVendor");
        const char *model = hwloc_obj_get_info_by_name(pci, "PCIDevice");
        if (gpu && vendor)
            add_detail(gpu, "", vendor);
        if (gpu && model)
            add_detail(gpu, "", model);
    }
}

static void probe_devices(hwloc_topology_t topology, struct sl_machine *machine)
{
    for (hwloc_obj_t object = NULL; (object = hwloc_get_next_osdev(topology, object));) {
        switch (object->attr->osdev.type) {
        case HWLOC_OBJ_OSDEV_NETWORK:
        case HWLOC_OBJ_OSDEV_OPENFABRICS:
            probe_link(machine, object);
            break;
        case HWLOC_OBJ_OSDEV_COPROC:
            probe_gpu(machine, object);
            break;
        default:
            break;
        }
    }
    if (machine->gpu_count == 0)
        probe_cuda(machine);
    if (machine->gpu_count == 0)
        probe_pci_gpus(topology, machine);
}

static void probe_topology(hwloc_topology_t topology, struct sl_machine *machine)
{
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (model)
        snprintf(machine->processor, sizeof machine->processor, "%s", model);
    machine->packages = count_type(topology, HWLOC_OBJ_PACKAGE);
    machine->cores = count_type(topology, HWLOC_OBJ_CORE);
    machine->threads = count_type(topology, HWLOC_OBJ_PU);
    machine->numa_nodes = count_type(topology, HWLOC_OBJ_NUMANODE);
    machine->memory_bytes = (int64_t)root->total_memory;
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages * page >
        machine->memory_bytes) /* memory that was plugged in later has no NUMA node */
        machine->memory_bytes = pages * page;
    machine->cores_allowed = machine->cores;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (mine && hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) == 0)
        machine->cores_allowed =
            hwloc_get_nbobjs_inside_cpuset_by_type(topology, mine, HWLOC_OBJ_CORE);
    hwloc_bitmap_free(mine);
    probe_caches(topology, machine);
    probe_devices(topology, machine);
}

int sl_machine_probe(struct sl_machine *machine)
{
    hwloc_topology_t topology;
    *machine = (struct sl_machine){0};
    gethostname(machine->host, sizeof machine->host - 1);
    if (hwloc_topology_init(&topology))
        return sl_error(SL_ERR_SYSTEM, "hwloc does not start");
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    /* hwloc's "gl" asks X servers for graphics cards, and waits for name servers where there is no
     * "localhost". */
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
    if (hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return sl_error(SL_ERR_SYSTEM, "hwloc cannot read this machine's topology");
    }
    probe_topology(topology, machine);
    hwloc_topology_destroy(topology);
    return 0;
}
