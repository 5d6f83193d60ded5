#include "data/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

/* Large arrays are on huge pages: fewer faults when they are filled, and misses of the TLB when
 * they are read at random. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, LARGE = 4 * HUGE_PAGE };

static int refuse(size_t bytes)
{
    return sl_error(SL_ERR_SYSTEM, "out of memory: cannot have %.1f MiB more for a dataset",
                    (double)bytes / 0x1p20);
}

/* Return whether `bytes` exceed the machine's memory: Linux would grant them and kill the process
 * at first use. */
static bool exceeds_machine(size_t bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && bytes / (size_t)page >= (size_t)pages;
}

void *sl_block_alloc(struct sl_block **list, size_t bytes)
{
    void *base = NULL;
    if (bytes < SIZE_MAX - ALIGNMENT && !exceeds_machine(bytes)) {
        /* Take at least one unit, so that an empty array has an address, too. */
        const size_t unit = bytes >= LARGE ? HUGE_PAGE : ALIGNMENT;
        const size_t units = bytes > 0 ? (bytes + unit - 1) / unit : 1;
        base = aligned_alloc(unit, units * unit);
        if (base && unit == HUGE_PAGE)
            madvise(base, units * unit, MADV_HUGEPAGE); /* advice: without it, memory is slower */
    }
    if (!base) {
        refuse(bytes);
        return NULL;
    }
    return sl_block_adopt(list, base, bytes, false) == SL_OK ? base : NULL;
}

void *sl_block_array(struct sl_block **list, int64_t count, size_t size)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes)) {
        refuse(SIZE_MAX);
        return NULL;
    }
    return sl_block_alloc(list, bytes);
}

char *sl_block_print(struct sl_block **list, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        refuse(0);
        return NULL;
    }
    return sl_block_adopt(list, text, (size_t)length + 1, false) == SL_OK ? text : NULL;
}

static void release(void *base, size_t bytes, bool mapped)
{
    if (mapped)
        munmap(base, bytes);
    else
        free(base);
}

int sl_block_adopt(struct sl_block **list, void *base, size_t bytes, bool mapped)
{
    struct sl_block *block = malloc(sizeof *block);
    if (!block) {
        release(base, bytes, mapped);
        return refuse(sizeof *block);
    }
    *block = (struct sl_block){*list, base, bytes, mapped};
    *list = block;
    return SL_OK;
}

void sl_block_move(struct sl_block **to, struct sl_block **from)
{
    while (*to)
        to = &(*to)->next;
    *to = *from;
    *from = NULL;
}

void sl_block_unload(const struct sl_block *list)
{
    for (; list; list = list->next)
        if (list->mapped)
            madvise(list->base, list->bytes, MADV_DONTNEED);
}

void sl_block_free_all(struct sl_block **list)
{
    while (*list) {
        struct sl_block *block = *list;
        *list = block->next;
        release(block->base, block->bytes, block->mapped);
        free(block);
    }
}
