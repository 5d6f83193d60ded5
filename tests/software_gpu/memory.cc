/* Devices, their memory, and the host's as far as it is page-locked. */
#include "runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace software_gpu
{

namespace
{

struct allocation {
    size_t bytes;
    int device;
};

/* Never destroyed: threads may use it until the process is gone. */
struct state {
    std::mutex mutex;
    std::map<uintptr_t, allocation> memory;
    std::map<uintptr_t, size_t> pinned, host_allocations;
    std::map<int, size_t> used;          /* bytes of each device */
    std::set<std::pair<int, int>> peers; /* (device, the one whose memory it may use) */
};

state &all()
{
    static state *s = new state;
    return *s;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;

size_t environment(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

size_t device_memory()
{
    static const size_t bytes = environment("SOFTWARE_GPU_MEMORY", 1024) << 20;
    return bytes;
}

/* NaN as float, double and bfloat16, and, as an index, out of every range. */
void poison(void *memory, size_t bytes)
{
    static const uint32_t nan = 0x7FFFFFFF;
    const size_t words = bytes / sizeof nan;
    for (size_t i = 0; i < words; i++)
        ((uint32_t *)memory)[i] = nan;
    memset((char *)memory + words * sizeof nan, 0xFF, bytes % sizeof nan);
}

/* The entry of a map from first byte to bytes that has the pointer. */
template <class Map> auto find(Map &map, const void *pointer)
{
    auto at = map.upper_bound((uintptr_t)pointer);
    return at == map.begin() ? map.end() : std::prev(at);
}

size_t bytes_of(size_t entry)
{
    return entry;
}

size_t bytes_of(const allocation &entry)
{
    return entry.bytes;
}

template <class Map> bool covers(Map &map, const void *pointer, size_t bytes)
{
    const auto at = find(map, pointer);
    return at != map.end() && (uintptr_t)pointer + bytes <= at->first + bytes_of(at->second);
}

/* ---- Memory of a device ----
 *
 * Under the address sanitizer, of its heap. Otherwise up to a page that nobody may touch, in
 * addresses that are not used again. */

#ifdef __SANITIZE_ADDRESS__

void *take(size_t bytes)
{
    void *memory;
    return posix_memalign(&memory, 256, bytes) ? NULL : memory;
}

void give_back(void *memory, size_t)
{
    free(memory);
}

#else

size_t up_to_pages(size_t bytes)
{
    static const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

size_t up_to_alignment(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

void *take(size_t bytes)
{
    const size_t inside = up_to_pages(bytes), all_bytes = inside + up_to_pages(1);
    char *pages = (char *)mmap(NULL, all_bytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    if (mprotect(pages, inside, PROT_READ | PROT_WRITE)) {
        munmap(pages, all_bytes);
        return NULL;
    }
    return pages + (inside - up_to_alignment(bytes));
}

void give_back(void *memory, size_t bytes)
{
    const size_t inside = up_to_pages(bytes);
    char *pages = (char *)memory - (inside - up_to_alignment(bytes));
    if (mmap(pages, inside, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0) == MAP_FAILED)
        stop("the host takes no memory back");
}

#endif

} // namespace

cudaError_t report(cudaError_t code)
{
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("software GPU: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

int device_count()
{
    static const int count = (int)environment("SOFTWARE_GPU_COUNT", 1);
    return count;
}

int current_device()
{
    return device;
}

int device_of(const void *pointer)
{
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    return covers(s.memory, pointer, 1) ? find(s.memory, pointer)->second.device : -1;
}

void check_device_range(const char *call, const void *pointer, size_t bytes, int on)
{
    if (bytes == 0)
        return;
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!covers(s.memory, pointer, bytes))
        stop("%s: %zu bytes from %p on are not, or not all, memory of a device", call, bytes,
             pointer);
    const int device_of_it = find(s.memory, pointer)->second.device;
    if (device_of_it != on)
        stop("%s: %p is memory of device %d, expected device %d", call, pointer, device_of_it, on);
}

bool is_pinned(const void *pointer, size_t bytes)
{
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    return covers(s.pinned, pointer, bytes);
}

} // namespace software_gpu

using namespace software_gpu;

/* A StarPU that was compiled with NVIDIA's headers reads these. */
#if CUDART_VERSION >= 13000
static_assert(sizeof(cudaDeviceProp) == 1008 && offsetof(cudaDeviceProp, totalGlobalMem) == 288 &&
                  offsetof(cudaDeviceProp, major) == 360 &&
                  offsetof(cudaDeviceProp, concurrentKernels) == 560 &&
                  offsetof(cudaDeviceProp, pciBusID) == 568,
              "cudaDeviceProp is that of CUDA 13");
#endif

/* ---- Errors ---- */

cudaError_t cudaGetLastError(void)
{
    return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
};

const char *cudaGetErrorString(cudaError_t code)
{
    for (const auto &e : errors)
        if (e.code == code)
            return e.text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
    for (const auto &e : errors)
        if (e.code == code)
            return e.name;
    return "unrecognized error code";
}

/* ---- Devices ---- */

static bool is_device(int d)
{
    return d >= 0 && d < device_count();
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_count();
    return report(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int d)
{
    if (!is_device(d))
        return report(cudaErrorInvalidDevice);
    device = d;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *d)
{
    *d = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d)
{
    if (!is_device(d))
        return report(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "software GPU");
    p->totalGlobalMem = device_memory();
    p->sharedMemPerBlock = 48 << 10;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->major = 9;
    p->multiProcessorCount = 1;
    p->asyncEngineCount = 2;
    p->concurrentKernels = 1;
    p->unifiedAddressing = 1;
    p->pciBusID = d + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int d)
{
    if (!is_device(d))
        return report(cudaErrorInvalidDevice);
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)(d + 1));
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    drain_device(device);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    *total = device_memory();
    *unused = *total - s.used[device];
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int d, int peer)
{
    if (!is_device(d) || !is_device(peer))
        return report(cudaErrorInvalidDevice);
    *can = d != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    if (!is_device(peer) || peer == device)
        return report(cudaErrorInvalidDevice);
    if (flags)
        return report(cudaErrorInvalidValue);
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    return report(s.peers.insert({device, peer}).second ? cudaSuccess
                                                        : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    return report(s.peers.erase({device, peer}) ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

/* ---- Memory ---- */

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    if (!is_device(device))
        return report(cudaErrorNoDevice);
    add(MALLOCS);
    *pointer = NULL;
    if (bytes == 0)
        return cudaSuccess;
    state &s = all();
    {
        std::lock_guard<std::mutex> lock(s.mutex);
        if (bytes > device_memory() - s.used[device])
            return report(cudaErrorMemoryAllocation);
        s.used[device] += bytes;
    }
    void *memory = take(bytes);
    if (!memory)
        stop("the host has no %zu bytes to be a device's", bytes);
    poison(memory, bytes);
    std::lock_guard<std::mutex> lock(s.mutex);
    s.memory[(uintptr_t)memory] = {bytes, device};
    *pointer = memory;
    return cudaSuccess;
}

/* Waits for the device, as the real one does. */
cudaError_t cudaFree(void *pointer)
{
    if (!pointer)
        return cudaSuccess;
    add(FREES);
    state &s = all();
    const int on = device_of(pointer);
    if (on >= 0)
        drain_device(on);
    std::lock_guard<std::mutex> lock(s.mutex);
    const auto at = s.memory.find((uintptr_t)pointer);
    if (at == s.memory.end())
        return report(cudaErrorInvalidValue);
    const size_t bytes = at->second.bytes;
    s.used[on] -= bytes;
    s.memory.erase(at);
    give_back(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned)
{
    add(HOST_MALLOCS);
    if (posix_memalign(pointer, 4096, bytes ? bytes : 1))
        return report(cudaErrorMemoryAllocation);
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    s.pinned[(uintptr_t)*pointer] = s.host_allocations[(uintptr_t)*pointer] = bytes;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

/* Waits for all devices: copies may be on their way to it. */
cudaError_t cudaFreeHost(void *pointer)
{
    if (!pointer)
        return cudaSuccess;
    for (int d = 0; d < device_count(); d++)
        drain_device(d);
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.host_allocations.erase((uintptr_t)pointer))
        return report(cudaErrorInvalidValue);
    s.pinned.erase((uintptr_t)pointer);
    free(pointer);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned)
{
    if (!pointer || bytes == 0)
        return report(cudaErrorInvalidValue);
    add(HOST_MALLOCS);
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    const uintptr_t first = (uintptr_t)pointer;
    const auto next = s.pinned.lower_bound(first);
    const bool overlaps =
        (next != s.pinned.end() && next->first < first + bytes) ||
        (next != s.pinned.begin() && std::prev(next)->first + std::prev(next)->second > first);
    if (overlaps)
        return report(cudaErrorHostMemoryAlreadyRegistered);
    s.pinned[first] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer)
{
    for (int d = 0; d < device_count(); d++)
        drain_device(d);
    state &s = all();
    std::lock_guard<std::mutex> lock(s.mutex);
    if (s.host_allocations.count((uintptr_t)pointer) || !s.pinned.erase((uintptr_t)pointer))
        return report(cudaErrorHostMemoryNotRegistered);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    memset(attributes, 0, sizeof *attributes);
    const int on = device_of(pointer);
    attributes->device = on >= 0 ? on : device;
    if (on >= 0) {
        attributes->type = cudaMemoryTypeDevice;
        attributes->devicePointer = (void *)pointer;
    } else {
        attributes->type = is_pinned(pointer, 1) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
        attributes->hostPointer = (void *)pointer;
        if (attributes->type == cudaMemoryTypeHost)
            attributes->devicePointer = (void *)pointer;
    }
    return cudaSuccess;
}
