#include "core/error.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"

static _Thread_local char message[1024];

int sl_error(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

int sl_error_about(int code, const char *subject)
{
    char reason[sizeof message];
    if (message[0] == '\0' || strstr(message, subject))
        return code;
    snprintf(reason, sizeof reason, "%s", message);
    return sl_error(code, "%s: %s", subject, reason);
}

const char *sl_error_message(void)
{
    return message;
}

/* ---- Failures while tasks are submitted, and in tasks ---- */

static _Thread_local jmp_buf *way_out; /* target of sl_fatal's jump: this thread's sl_guard */
static atomic_bool guarded;            /* sl_guard was called */
static atomic_bool failed;
static char failure[sizeof message]; /* sentence of the first failure */
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*end_process)(void) = abort;

void sl_fatal_ends(void (*end)(void))
{
    end_process = end;
}

int sl_guard(int (*work)(void *argument), void *argument)
{
    jmp_buf place, *const before = way_out;
    volatile int code = 0;
    atomic_store(&guarded, true);
    atomic_store(&failed, false);
    way_out = &place;
    if (setjmp(place) == 0)
        code = work(argument);
    way_out = before;
    return sl_guard_failed() ? sl_error(SL_ERR_SYSTEM, "%s", failure) : code;
}

void sl_guard_task(void (*task)(void *buffers[], void *argument), void *buffers[], void *argument)
{
    jmp_buf place, *const before = way_out;
    if (!atomic_load_explicit(&guarded, memory_order_relaxed)) {
        task(buffers, argument);
        return;
    }
    if (sl_guard_failed()) /* a task that failed may have left its memory half made */
        return;
    way_out = &place;
    if (setjmp(place) == 0)
        task(buffers, argument);
    way_out = before;
}

void sl_guard_check(void)
{
    if (way_out && sl_guard_failed())
        longjmp(*way_out, 1);
}

bool sl_guard_failed(void)
{
    return atomic_load(&failed);
}

/* Keep the sentence of the first failure. */
static void keep(const char *format, va_list args)
{
    pthread_mutex_lock(&failure_lock);
    if (!sl_guard_failed())
        vsnprintf(failure, sizeof failure, format, args);
    atomic_store(&failed, true);
    pthread_mutex_unlock(&failure_lock);
}

void sl_fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (way_out)
        keep(format, args);
    else
        sl_plain_say(format, args);
    va_end(args);
    if (way_out)
        longjmp(*way_out, 1);
    end_process();
    abort();
}
