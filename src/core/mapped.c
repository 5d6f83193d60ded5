#include "core/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

/* Create a file without a name; some file systems need a name that is removed at once. */
static int create_file(const char *directory)
{
    const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    const size_t length = strlen(directory) + sizeof "/starling-store-XXXXXX";
    char *path = malloc(length);
    if (!path)
        return -1;
    snprintf(path, length, "%s/starling-store-XXXXXX", directory);
    const int named = mkostemp(path, O_CLOEXEC);
    if (named >= 0)
        unlink(path);
    free(path);
    return named;
}

int sl_mapped_open(struct sl_mapped *mapped, const char *directory, size_t bytes)
{
    *mapped = (struct sl_mapped){.bytes = bytes ? bytes : 1};
    const int fd = create_file(directory);
    int failure = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)mapped->bytes);
    if (!failure) {
        mapped->memory = mmap(NULL, mapped->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        failure = mapped->memory == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0)
        close(fd);
    if (!failure)
        return 0;
    *mapped = (struct sl_mapped){0};
    return sl_error(SL_ERR_SYSTEM,
                    "--store %s: %s (expected a directory with room for a file of %.1f MiB)",
                    directory, strerror(failure), (double)bytes / (1 << 20));
}

void *sl_mapped_take(struct sl_mapped *mapped, size_t bytes)
{
    enum { ALIGNMENT = 64 };
    char *next = (char *)mapped->memory + mapped->taken;
    if (bytes > mapped->bytes - mapped->taken)
        return NULL;
    mapped->taken += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (mapped->taken > mapped->bytes)
        mapped->taken = mapped->bytes;
    return next;
}

void sl_mapped_close(struct sl_mapped *mapped)
{
    if (mapped->memory)
        munmap(mapped->memory, mapped->bytes);
    *mapped = (struct sl_mapped){0};
}
