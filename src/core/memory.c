#include "core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/error.h"

enum { HUGE_PAGE = 2 << 20 };

static atomic_size_t in_use, peak;

static void account(size_t bytes)
{
    const size_t now = atomic_fetch_add(&in_use, bytes) + bytes;
    size_t seen = atomic_load(&peak);
    while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now))
        ;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* A mapping that starts on a huge-page boundary: map one page more and trim both ends. */
static void *map_huge(size_t bytes)
{
    const size_t length = round_up(bytes, HUGE_PAGE);
    char *base =
        mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *start = (char *)round_up((size_t)base, HUGE_PAGE);
    if (start > base)
        munmap(base, (size_t)(start - base));
    munmap(start + length, (size_t)(base + HUGE_PAGE - start));
    madvise(start, length, MADV_HUGEPAGE); /* a wish: slower without, never wrong */
    return start;
}

void *sl_memory_alloc(size_t bytes)
{
    void *memory;
    if (bytes >= HUGE_PAGE) {
        memory = map_huge(bytes);
    } else {
        const size_t size = round_up(bytes ? bytes : 1, 64);
        memory = aligned_alloc(64, size);
        if (memory)
            memset(memory, 0, size);
    }
    if (!memory)
        sl_error(SL_ERR_SYSTEM, "no memory for %zu bytes more (%zu are in use)", bytes,
                 sl_memory_in_use());
    else
        account(bytes);
    return memory;
}

void sl_memory_free(void *memory, size_t bytes)
{
    if (!memory)
        return;
    if (bytes >= HUGE_PAGE)
        munmap(memory, round_up(bytes, HUGE_PAGE));
    else
        free(memory);
    atomic_fetch_sub(&in_use, bytes);
}

/* ---- Memory that comes and goes ---- */

/* A block that was given back; its header is in its own first bytes. It stays in use. */
struct kept {
    struct kept *next;
    size_t bytes;
};

static struct kept *kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* Tiles of nearly the same size share blocks: an eighth of a power of two apart. */
static size_t block_bytes(size_t bytes)
{
    size_t step = HUGE_PAGE;
    while (step * 16 <= bytes)
        step *= 2;
    return round_up(bytes, step);
}

size_t sl_memory_taken(size_t bytes)
{
    return bytes < HUGE_PAGE ? bytes : block_bytes(bytes);
}

void *sl_memory_take(size_t bytes)
{
    if (bytes < HUGE_PAGE)
        return sl_memory_alloc(bytes);
    const size_t size = block_bytes(bytes);
    struct kept **place = &kept, *block;
    pthread_mutex_lock(&kept_lock);
    while (*place && (*place)->bytes != size)
        place = &(*place)->next;
    block = *place;
    if (block)
        *place = block->next;
    pthread_mutex_unlock(&kept_lock);
    return block ? block : sl_memory_alloc(size);
}

void sl_memory_return(void *memory, size_t bytes)
{
    struct kept *block = memory;
    if (!memory)
        return;
    if (bytes < HUGE_PAGE) {
        sl_memory_free(memory, bytes);
        return;
    }
    block->bytes = block_bytes(bytes);
    pthread_mutex_lock(&kept_lock);
    block->next = kept;
    kept = block;
    pthread_mutex_unlock(&kept_lock);
}

void sl_memory_return_all(void)
{
    while (kept) {
        struct kept *block = kept;
        kept = block->next;
        sl_memory_free(block, block->bytes);
    }
    atomic_store(&peak, atomic_load(&in_use));
}

size_t sl_memory_in_use(void)
{
    return atomic_load(&in_use);
}

size_t sl_memory_peak(void)
{
    return atomic_load(&peak);
}

size_t sl_memory_resident_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}
