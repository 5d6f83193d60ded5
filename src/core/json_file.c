#include "core/json_file.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/file.h"

static atomic_long failures;
static json_malloc_t take; /* jansson's malloc before: the calling program's, or the C library's */
static json_free_t give;

static _Thread_local jmp_buf *reader; /* where a parser goes that gets no memory */

static void *count(size_t bytes)
{
    void *memory = take(bytes);
    if (!memory)
        atomic_fetch_add(&failures, 1);
    if (!memory && reader)
        longjmp(*reader, 1);
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

/* A parser reads a text or a file. */
struct reading {
    const char *text; /* NULL: `file` */
    size_t bytes;
    FILE *file;
    size_t flags;
    json_error_t *error;
};

static json_t *parse(const struct reading *r)
{
    return r->text ? json_loadb(r->text, r->bytes, r->flags, r->error)
                   : json_loadf(r->file, r->flags, r->error);
}

/* Set an error without a line. Its last byte is its code. */
static void fail(json_error_t *error, enum json_error_code code, const char *text)
{
    *error = (json_error_t){.line = -1};
    snprintf(error->text, sizeof error->text - 1, "%s", text);
    error->text[sizeof error->text - 1] = (char)code;
}

/* Parse. The memory of a parser that stops half-way is lost. */
static json_t *parse_guarded(const struct reading *r)
{
    jmp_buf here;
    json_t *volatile value = NULL;
    sl_json_failures();
    reader = &here;
    if (!setjmp(here)) {
        value = parse(r);
    } else if (r->error) {
        fail(r->error, json_error_out_of_memory, "no memory");
    }
    reader = NULL;
    return value;
}

json_t *sl_json_parse(const char *text, size_t bytes, size_t flags, json_error_t *error)
{
    return parse_guarded(
        &(struct reading){.text = text, .bytes = bytes, .flags = flags, .error = error});
}

json_t *sl_json_read(FILE *file, size_t flags, json_error_t *error)
{
    return parse_guarded(&(struct reading){.file = file, .flags = flags, .error = error});
}

json_t *sl_json_read_file(const char *path, json_error_t *error)
{
    const char *why;
    FILE *file = sl_file_stream(path, &why);
    if (!file) {
        if (error)
            fail(error, json_error_cannot_open_file, why);
        return NULL;
    }
    json_t *value = sl_json_read(file, 0, error);
    fclose(file);
    return value;
}

char *sl_json_print(const json_t *value, size_t flags)
{
    const long before = sl_json_failures();
    char *text = json_dumps(value, flags),
         *copy = text && sl_json_failures() == before ? strdup(text) : NULL;
    if (text)
        give(text);
    return copy;
}

bool sl_json_put(const json_t *value, size_t flags, FILE *file)
{
    errno = 0; /* a failure of jansson sets none */
    char *text = sl_json_print(value, flags);
    const bool put = text && fputs(text, file) != EOF && fputc('\n', file) != EOF;
    const int reason = errno ? errno : ENOMEM;
    free(text);
    errno = put ? 0 : reason;
    return put;
}

int sl_json_write(const json_t *document, const char *path)
{
    struct sl_new_file out;
    if (!document || sl_json_failures())
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for what goes into it", path);
    const int code = sl_file_create(&out, path);
    if (code)
        return code;
    return sl_file_commit(&out, sl_json_put(document, JSON_INDENT(1), out.file));
}
