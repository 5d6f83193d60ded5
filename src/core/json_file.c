#include "core/json_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/file.h"

static atomic_long failures;
static json_malloc_t take; /* jansson's malloc before: the calling program's, or the C library's */
static json_free_t give;

static void *count(size_t bytes)
{
    void *memory = take(bytes);
    if (!memory)
        atomic_fetch_add(&failures, 1);
    return memory;
}

static void watch(void)
{
    json_get_alloc_funcs(&take, &give);
    json_set_alloc_funcs(count, give);
}

long sl_json_failures(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return atomic_load(&failures);
}

int sl_json_write(const json_t *document, const char *path)
{
    struct sl_new_file out;
    if (!document || sl_json_failures())
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for what goes into it", path);
    const int code = sl_file_create(&out, path);
    if (code)
        return code;
    errno = 0; /* failures of jansson itself set no errno */
    return sl_file_commit(&out, json_dumpf(document, out.file, JSON_INDENT(1)) == 0 &&
                                    fputc('\n', out.file) != EOF);
}
