#include "core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/error.h"

enum { HUGE_PAGE = 2 << 20 };

static atomic_size_t in_use, peak;
static void (*watch_made)(void *, size_t), (*watch_going)(void *, size_t);

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

/* Map memory that starts on a huge-page boundary: map one page more and trim both ends. The end has
 * small pages where a huge page would add over an eighth. */
static void *map_huge(size_t bytes)
{
    const size_t length = round_up(bytes, HUGE_PAGE);
    const size_t huge = length - bytes > bytes / 8 ? length - HUGE_PAGE : length;
    char *base =
        mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *start = (char *)round_up((size_t)base, HUGE_PAGE);
    if (start > base)
        munmap(base, (size_t)(start - base));
    munmap(start + length, (size_t)(base + HUGE_PAGE - start));
    madvise(start, huge, MADV_HUGEPAGE); /* advice only: without it, memory is slower */
    return start;
}

void sl_memory_watch(void (*made)(void *, size_t), void (*going)(void *, size_t))
{
    watch_made = made;
    watch_going = going;
}

void *sl_memory_alloc(size_t bytes)
{
    void *memory;
    if (bytes >= HUGE_PAGE) {
        memory = map_huge(bytes);
        if (memory && watch_made)
            watch_made(memory, round_up(bytes, HUGE_PAGE));
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
    if (bytes >= HUGE_PAGE && watch_going)
        watch_going(memory, round_up(bytes, HUGE_PAGE));
    if (bytes >= HUGE_PAGE)
        munmap(memory, round_up(bytes, HUGE_PAGE));
    else
        free(memory);
    atomic_fetch_sub(&in_use, bytes);
}

/* ---- Memory that comes and goes ---- */

/* Pages that stay in use. They also serve requests of down to a quarter of their size, so that rows
 * of another width reuse them. */
struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    bool taken;
};

enum { QUARTER = 4, LEAST = HUGE_PAGE / QUARTER };

static struct block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

/* Return `bytes` rounded up to an eighth of a power of two: tiles of nearly equal size share
 * blocks. */
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

bool sl_memory_serves(size_t kept, size_t bytes)
{
    return kept >= HUGE_PAGE && bytes >= LEAST && kept >= bytes && kept / QUARTER <= bytes;
}

/* Return the smallest free block that serves `bytes`, or NULL. */
static void *take_block(size_t bytes)
{
    struct block *best = NULL;
    pthread_mutex_lock(&blocks_lock);
    for (struct block *b = blocks; b; b = b->next)
        if (!b->taken && sl_memory_serves(b->bytes, bytes) && (!best || b->bytes < best->bytes))
            best = b;
    if (best)
        best->taken = true;
    pthread_mutex_unlock(&blocks_lock);
    return best ? best->memory : NULL;
}

/* Free all free blocks of less than `bytes`. */
static void release_blocks(size_t bytes)
{
    struct block **place = &blocks;
    while (*place) {
        struct block *block = *place;
        if (block->taken || block->bytes >= bytes) {
            place = &block->next;
            continue;
        }
        *place = block->next;
        sl_memory_free(block->memory, block->bytes);
        free(block);
    }
}

/* Add a block. Release free blocks that are smaller first: the new block replaces them. */
static void *add_block(size_t bytes)
{
    struct block *block = malloc(sizeof *block);
    pthread_mutex_lock(&blocks_lock);
    release_blocks(bytes);
    pthread_mutex_unlock(&blocks_lock);
    void *memory = block ? sl_memory_alloc(bytes) : NULL;
    if (!memory) {
        free(block);
        return NULL;
    }
    pthread_mutex_lock(&blocks_lock);
    *block = (struct block){.next = blocks, .memory = memory, .bytes = bytes, .taken = true};
    blocks = block;
    pthread_mutex_unlock(&blocks_lock);
    return memory;
}

/* Mark the block of `memory` as free; return false if the memory is no block. */
static bool return_block(const void *memory)
{
    pthread_mutex_lock(&blocks_lock);
    struct block *block = blocks;
    while (block && block->memory != memory)
        block = block->next;
    if (block)
        block->taken = false;
    pthread_mutex_unlock(&blocks_lock);
    return block != NULL;
}

void *sl_memory_take(size_t bytes)
{
    void *memory = bytes < LEAST ? NULL : take_block(bytes);
    return memory               ? memory
           : bytes >= HUGE_PAGE ? add_block(block_bytes(bytes))
                                : sl_memory_alloc(bytes);
}

void sl_memory_return(void *memory, size_t bytes)
{
    if (memory && (bytes < LEAST || !return_block(memory)))
        sl_memory_free(memory, bytes);
}

void sl_memory_return_all(void)
{
    release_blocks(SIZE_MAX);
    atomic_store(&peak, atomic_load(&in_use));
}

/* ---- Memory of a thread ---- */

static pthread_key_t room_key; /* its destructor frees the room of a thread that ends */
static pthread_once_t room_once = PTHREAD_ONCE_INIT;
static int no_key;

static void create_key(void)
{
    no_key = pthread_key_create(&room_key, free);
}

void *sl_memory_of_thread(size_t bytes)
{
    static _Thread_local void *room;
    static _Thread_local size_t room_bytes;
    if (bytes <= room_bytes)
        return room;
    pthread_once(&room_once, create_key);
    void *larger = aligned_alloc(64, round_up(bytes, 64));
    if (!larger || no_key || pthread_setspecific(room_key, larger)) {
        free(larger);
        sl_fatal("no memory for %zu bytes of a kernel", bytes);
    }
    free(room);
    room = larger;
    room_bytes = bytes;
    return room;
}

void sl_memory_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
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
