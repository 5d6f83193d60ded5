/* Makes a call fail that the program, or a library that reads and writes files for it, makes: for
 * LD_PRELOAD, by tests/faults.py.
 *
 *     FAULT_KIND   memory, open, write, sync, rename or map
 *     FAULT_AT     which call of this kind fails, from 1; 0: none
 *     FAULT_ON     set: all later ones, too
 *     FAULT_COUNT  the file for the number of calls, at the end
 *
 * A program may call fault_set and fault_calls instead, where FAULT_KIND is set.
 *
 * Calls of other libraries, such as StarPU and MPI, do not count: they end the process themselves.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const callers[] = {"starling", "lt-starling", "libstarling", "libjansson",
                                      "libzip",   "libz.",       "libmetis"};

static struct {
    uintptr_t from, to;
} code[64]; /* of the callers */
static int codes;
static const char *kind, *count_file;
static long at;
static bool later, ready;
static atomic_long calls;

static void add_code(const char *line)
{
    unsigned long from, to;
    char access[8];
    const char *file = strchr(line, '/');
    if (!file || sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3 || access[2] != 'x')
        return;
    const char *name = strrchr(file, '/') + 1;
    for (size_t c = 0; c < sizeof callers / sizeof *callers; c++)
        if (strncmp(name, callers[c], strlen(callers[c])) == 0 &&
            codes < (int)(sizeof code / sizeof *code)) {
            code[codes].from = from;
            code[codes++].to = to;
            return;
        }
}

__attribute__((constructor)) static void start(void)
{
    static char maps[1 << 20];
    size_t size = 0;
    ssize_t got;
    kind = getenv("FAULT_KIND");
    if (!kind)
        return;
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    later = getenv("FAULT_ON") != NULL;
    count_file = getenv("FAULT_COUNT");
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while ((got = read(file, maps + size, sizeof maps - 1 - size)) > 0)
        size += (size_t)got;
    close(file);
    for (char *line = maps, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        add_code(line);
    }
    ready = true;
}

__attribute__((destructor)) static void stop(void)
{
    char text[32];
    if (!ready || !count_file)
        return;
    ready = false;
    const int length = snprintf(text, sizeof text, "%ld\n", (long)calls);
    const int file = open(count_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (write(file, text, (size_t)length) != length)
        _exit(99);
    close(file);
}

/* From now on, the call `number` of a kind fails, and if `on` all later ones; 0: none. */
void fault_set(const char *what, long number, int on)
{
    kind = what;
    at = number;
    later = on;
    calls = 0;
}

long fault_calls(void)
{
    return calls;
}

/* Whether this call, which returns to `to`, fails. */
static bool fails(const char *what, const void *to, int reason)
{
    bool own = false;
    if (!ready || strcmp(what, kind) != 0)
        return false;
    for (int c = 0; c < codes; c++)
        own = own || ((uintptr_t)to >= code[c].from && (uintptr_t)to < code[c].to);
    if (!own)
        return false;
    const long call = atomic_fetch_add(&calls, 1) + 1;
    if (at == 0 || call < at || (call > at && !later))
        return false;
    errno = reason;
    return true;
}

#define FAILS(what, reason) fails(what, __builtin_return_address(0), reason)

/* The function that this one stands before. */
#define NEXT(name)                 \
    static __typeof__(&name) next; \
    if (!next)                     \
    next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
    return FAILS("memory", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return FAILS("memory", ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return FAILS("memory", ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t all;
    if (FAILS("memory", ENOMEM) || __builtin_mul_overflow(count, bytes, &all))
        return NULL;
    return __libc_realloc(memory, all);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return FAILS("memory", ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (FAILS("memory", ENOMEM))
        return ENOMEM;
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = FAILS("memory", ENOMEM) ? NULL : __libc_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void *mmap(void *place, size_t bytes, int protection, int flags, int file, off_t offset)
{
    NEXT(mmap);
    return FAILS("map", ENOMEM) ? MAP_FAILED : next(place, bytes, protection, flags, file, offset);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    NEXT(open);
    va_start(rest, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return FAILS("open", EMFILE) ? -1 : next(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(fopen);
    return FAILS("open", EMFILE) ? NULL : next(path, mode);
}

DIR *opendir(const char *path)
{
    NEXT(opendir);
    return FAILS("open", EMFILE) ? NULL : next(path);
}

/* The stream is in error from now on, as after a real failure: the GNU C library's mark. */
static void mark(FILE *file)
{
    enum { ERR_SEEN = 0x20 };
    file->_flags |= ERR_SEEN;
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file)
{
    NEXT(fwrite);
    if (!FAILS("write", ENOSPC))
        return next(bytes, size, count, file);
    mark(file);
    return 0;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    NEXT(write);
    return FAILS("write", ENOSPC) ? -1 : next(file, bytes, count);
}

int fflush(FILE *file)
{
    NEXT(fflush);
    if (!FAILS("write", ENOSPC))
        return next(file);
    if (file)
        mark(file);
    return EOF;
}

int fclose(FILE *file)
{
    NEXT(fclose);
    const bool failed = FAILS("write", ENOSPC);
    const int status = next(file);
    if (!failed)
        return status;
    errno = ENOSPC;
    return EOF;
}

int fsync(int file)
{
    NEXT(fsync);
    return FAILS("sync", EIO) ? -1 : next(file);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return FAILS("rename", EACCES) ? -1 : next(from, to);
}
