/* Settings of MPI and Linux that the runtime asks for, as they are after a message: a line each
 * (tests/messages.sh).
 *
 *   NAME VALUE     for every argument: a variable of MPI's tool interface
 *   slices A of B  threads with a slice of 200 microseconds, of all; "refused" before Linux 6.12
 *   mpi no         instead, of a process that no launcher started */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mpi.h>

#include "codelets/paste.h"
#include "core/error.h"
#include "core/message.h"

/* The structure of sched_setattr(2). */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static const uint64_t SLICE = 200000;

static uint64_t slice_of(int thread)
{
    struct attributes attributes = {.size = sizeof attributes};
    return syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) == 0
               ? attributes.runtime
               : 0;
}

/* A rank's message to the next one, which has a thread for that. */
static void exchange(struct sl_runtime *rt)
{
    float memory[2] = {1.0f, 0.0f};
    struct sl_tile all[2];
    const int to = 1;
    for (int r = 0; r < 2; r++)
        sl_tile_describe(rt, &all[r], 1, 1, 1, sizeof *memory, r,
                         rt->rank == r ? &memory[r] : NULL);
    sl_tile_send(rt, &all[0], 0, to);
    sl_submit_paste(rt, &(struct sl_paste_tiles){.x = &all[0], .y = &all[1]});
    sl_runtime_wait(rt);
    sl_tile_drop(rt, &all[0]);
    for (int r = 0; r < 2; r++)
        sl_tile_forget(&all[r]);
    if (rt->rank == to && memory[1] != 1.0f)
        sl_fatal("the message did not come");
}

static void print_slices(void)
{
    struct dirent *entry;
    DIR *threads = opendir("/proc/self/task");
    int all = 0, shortened = 0;
    if (!threads)
        sl_fatal("no /proc/self/task");
    while ((entry = readdir(threads)))
        if (entry->d_name[0] != '.') {
            all++;
            shortened += slice_of(atoi(entry->d_name)) == SLICE;
        }
    closedir(threads);
    /* This thread asks for one, to see whether it gets it. */
    const struct attributes wanted = {.size = sizeof wanted, .runtime = SLICE};
    syscall(SYS_sched_setattr, 0, &wanted, 0);
    if (slice_of(0) == SLICE)
        printf("slices %d of %d\n", shortened, all);
    else
        printf("slices refused\n");
}

static void print_variable(const char *name)
{
    union {
        int number;
        unsigned long long wide;
        char text[4096];
    } value = {.text = ""};
    int index, count, bytes, length = 0, verbosity, bind, scope;
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(index, NULL, &length, &verbosity, &type, NULL, NULL, NULL, &bind,
                            &scope) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) {
        printf("%s none\n", name);
        return;
    }
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    MPI_Type_size(type, &bytes);
    if (type == MPI_CHAR)
        printf("%s %s\n", name, value.text);
    else
        printf("%s %lld\n", name, bytes > 4 ? (long long)value.wide : (long long)value.number);
}

int main(int argc, char **argv)
{
    struct sl_runtime rt;
    int initialized, provided;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.scheduler = "lws", .workers = 1}))
        sl_fatal("%s", sl_error_message());
    MPI_Initialized(&initialized);
    if (!initialized) {
        printf("mpi no\n");
        sl_runtime_stop(&rt);
        return 0;
    }
    exchange(&rt);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int a = 1; rt.rank == 1 && a < argc; a++)
        print_variable(argv[a]);
    if (rt.rank == 1)
        print_slices();
    MPI_T_finalize();
    sl_runtime_stop(&rt);
    return 0;
}
