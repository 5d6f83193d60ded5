/* OpenBLAS maps a buffer for each thread at its first product, 128 MiB in most builds. Where
 * ulimit -v has no room for it, OpenBLAS asks again and again, for ever. So a process with such a
 * limit maps all buffers at its start, first in a child that may hang. OpenBLAS's own threads,
 * which start when it is loaded, want buffers, too: the process starts anew without them.
 *
 * OpenBLAS knows processors by their numbers. An older OpenBLAS takes a newer processor for a
 * Prescott of 2004, and dense products take three to five times as long. OPENBLAS_CORETYPE names
 * kernels that the processor can run; OpenBLAS reads it when it chooses again. */
#include "core/blas.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/free_memory.h"

const char *sl_blas_core(void)
{
    const char *(*name)(void);
    *(void **)&name = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    return name ? name() : NULL;
}

/* Return the name of the kernels that OpenBLAS should take; NULL: keep its choice. */
static const char *find_better_core(void)
{
    const char *core = sl_blas_core();
    if (!core || strcmp(core, "Prescott") != 0 || getenv("OPENBLAS_CORETYPE"))
        return NULL;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

void sl_blas_choose_kernels(void)
{
    const char *core = find_better_core();
    void (*forget)(void), (*choose)(void);
    *(void **)&forget = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit");
    *(void **)&choose = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init");
    if (!core || !forget || !choose)
        return;
    setenv("OPENBLAS_CORETYPE", core, 1);
    forget();
    choose();
    unsetenv("OPENBLAS_CORETYPE");
}

static void use_one_thread(void)
{
    static const char *const setters[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads"};
    for (size_t s = 0; s < sizeof setters / sizeof *setters; s++) {
        void (*set)(int);
        *(void **)&set = dlsym(RTLD_DEFAULT, setters[s]);
        if (set)
            set(1);
    }
    void (*set_blis)(int64_t);
    *(void **)&set_blis = dlsym(RTLD_DEFAULT, "bli_thread_set_num_threads");
    if (set_blis)
        set_blis(1);
}

/* OpenBLAS's own functions for a buffer. A released buffer stays mapped and serves the next thread.
 */
struct buffers {
    void *(*take)(int);
    void (*release)(void *);
};

static bool map_buffers(const struct buffers *buffers, int threads)
{
    void **taken = malloc((size_t)threads * sizeof *taken);
    if (!taken)
        return false;
    for (int t = 0; t < threads; t++)
        taken[t] = buffers->take(0);
    for (int t = 0; t < threads; t++)
        buffers->release(taken[t]);
    free(taken);
    return true;
}

/* Return whether a copy of this process can map the buffers. The child takes a millisecond, or
 * hangs until its limit of one second of processor time. */
static bool child_maps_buffers(const struct buffers *buffers, int threads)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct itimerval second = {.it_value = {.tv_sec = 1}};
        signal(SIGPROF, SIG_DFL);
        setitimer(ITIMER_PROF, &second, NULL);
        _exit(map_buffers(buffers, threads) ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void sl_blas_load_alone(char *const *argv)
{
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    const char *value = getenv(variable);
    if (!sl_free_memory_is_limited() || (value && strcmp(value, "1") == 0))
        return;
    setenv(variable, "1", 1);
    execv("/proc/self/exe", argv);
}

int sl_blas_start(int threads)
{
    struct buffers buffers;
    sl_blas_choose_kernels();
    use_one_thread();
    *(void **)&buffers.take = dlsym(RTLD_DEFAULT, "blas_memory_alloc");
    *(void **)&buffers.release = dlsym(RTLD_DEFAULT, "blas_memory_free");
    if (!sl_free_memory_is_limited() || !buffers.take || !buffers.release)
        return 0;
    if (!child_maps_buffers(&buffers, threads) || !map_buffers(&buffers, threads))
        return sl_error(
            SL_ERR_SYSTEM,
            "ulimit -v or -d leaves no room for the buffers of OpenBLAS, usually 128 "
            "MiB per thread, with --workers %d: expected a higher limit or fewer --workers",
            threads);
    return 0;
}
