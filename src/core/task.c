#include "core/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>

#include "core/dag.h"
#include "core/error.h"
#include "core/handle.h"
#include "core/home.h"
#include "core/log.h"
#include "core/profile.h"
#include "core/trace.h"

void *sl_tile_acquire(struct sl_runtime *rt, struct sl_tile *tile, bool write)
{
    starpu_data_acquire(sl_tile_handle(rt, tile), write ? STARPU_RW : STARPU_R);
    return starpu_data_get_local_ptr(tile->handle);
}

void sl_tile_release(struct sl_tile *tile)
{
    starpu_data_release(tile->handle);
}

static struct sl_tile *const *tiles_of(const struct sl_task *description)
{
    return description->list ? description->list : description->tiles;
}

static enum starpu_data_access_mode mode_of(const struct sl_task *description, int t)
{
    static const enum starpu_data_access_mode modes[] = {
        [SL_TASK_READS] = STARPU_R, [SL_TASK_WRITES] = STARPU_W, [SL_TASK_UPDATES] = STARPU_RW};
    if (!description->output)
        return STARPU_CODELET_GET_MODE(description->codelet, t);
    const int outputs = description->outputs > 1 ? description->outputs : 1;
    const int first = description->count - outputs;
    return t >= first       ? modes[description->output]
           : t == first - 1 ? modes[description->before_output]
                            : STARPU_R;
}

/* Choose the memory for the handles and, if the codelet leaves them open, the access modes: the
 * task itself where it has room. */
static starpu_data_handle_t *make_room(struct starpu_task *task, const struct sl_task *description)
{
    const int count = description->count;
    starpu_data_handle_t *handles = task->handles;
    enum starpu_data_access_mode *modes = task->modes;
    if (count > STARPU_NMAXBUFS) {
        task->dyn_handles = handles = malloc((size_t)count * sizeof *handles);
        task->dyn_modes = modes = malloc((size_t)count * sizeof *modes);
        if (!handles || !modes)
            sl_fatal("no memory for the %d tiles of task %s", count, task->name);
    }
    if (description->output)
        task->nbuffers = count;
    for (int t = 0; t < count; t++)
        modes[t] = mode_of(description, t);
    return handles;
}

/* Return the bytes of the operands, each read or written once. */
static double operand_bytes(const struct sl_task *description)
{
    double bytes = 0.0;
    for (int t = 0; t < description->count; t++) {
        const struct sl_tile *tile = tiles_of(description)[t];
        const enum starpu_data_access_mode mode = mode_of(description, t);
        const int times = !!(mode & STARPU_R) + !!(mode & STARPU_W);
        bytes += times * (double)tile->rows * (double)tile->cols * (double)tile->element_size;
    }
    return bytes;
}

/* ---- Performance models ---- */

static uint32_t mix(uint32_t hash, uint32_t value)
{
    hash = (hash ^ value) * 0x9E3779B1u;
    return hash ^ hash >> 15;
}

/* Hash the types of tiles. A row of tiles of one type counts once: their number follows from the
 * cut, not from the work. */
static uint32_t mix_types(uint32_t hash, const struct sl_task *description)
{
    size_t last = 0;
    for (int t = 0; t < description->count; t++) {
        const size_t size = tiles_of(description)[t]->element_size;
        if (size != last)
            hash = mix(hash, (uint32_t)size);
        last = size;
    }
    return hash;
}

uint32_t sl_task_footprint(const struct sl_task *description)
{
    const struct sl_tile *output = tiles_of(description)[description->count - 1];
    const double work = description->work;
    uint32_t hash = mix(0, work > 1.0 ? (uint32_t)(2.0 * log2(work)) : 0);
    hash = mix(hash, output->rows > 0 ? (uint32_t)log2((double)output->rows) : 0);
    hash = mix(hash, (uint32_t)output->cols);
    return mix(mix_types(hash, description), description->kind);
}

/* Store the codelet's argument with the footprint behind it (codelets/codelet.c). */
static void set_argument(struct starpu_task *task, const struct sl_task *description)
{
    const size_t size = description->argument_size;
    const uint32_t footprint = sl_task_footprint(description);
    char *argument = malloc(size + sizeof footprint);
    if (!argument)
        sl_fatal("no memory for the argument of task %s", task->name);
    if (size)
        memcpy(argument, description->argument, size);
    memcpy(argument + size, &footprint, sizeof footprint);
    task->cl_arg = argument;
    task->cl_arg_size = size + sizeof footprint;
    task->cl_arg_free = 1;
}

/* ---- Where it runs ---- */

bool sl_task_holds(const struct sl_runtime *rt, int64_t bytes)
{
    enum { TASKS = 4 };
    return rt->gpu_bytes == 0 || bytes <= rt->gpu_bytes / TASKS;
}

/* Return whether a GPU has no room for a task's tiles. StarPU would try for ever to find room. */
static bool exceeds_gpus(const struct sl_runtime *rt, const struct sl_task *description)
{
    static bool told;
    const int64_t mib = 1 << 20;
    int64_t bytes = 0;
    for (int t = 0; rt->gpu_bytes && t < description->count; t++)
        bytes += sl_tile_bytes(tiles_of(description)[t]);
    if (sl_task_holds(rt, bytes / 2))
        return false;
    if (!told)
        sl_note("a task of %lld MiB, %s, is for the cores: a GPU has %lld MiB for tiles; more "
                "--tiles make smaller ones",
                (long long)(bytes / mib), description->codelet->name,
                (long long)(rt->gpu_bytes / mib));
    told = true;
    return true;
}

static bool is_for_cores(const struct sl_task *description)
{
    bool on_cores = description->on_cores;
    for (int t = 0; t < description->count; t++)
        on_cores = on_cores || tiles_of(description)[t]->on_cores;
    return on_cores;
}

static void choose_workers(const struct sl_runtime *rt, const struct sl_task *description,
                           struct starpu_task *task)
{
    if (rt->process->gpus == 0 || !task->cl->cuda_funcs[0])
        return;
    if (is_for_cores(description) || exceeds_gpus(rt, description))
        task->where = STARPU_CPU;
    else if (rt->process->gpus_only)
        task->where = STARPU_CUDA;
}

static unsigned dag_access(enum starpu_data_access_mode mode)
{
    return (mode & STARPU_R ? SL_DAG_READS : 0) | (mode & STARPU_W ? SL_DAG_WRITES : 0);
}

void sl_task_submit(struct sl_runtime *rt, const struct sl_task *description)
{
    const int count = description->count;
    struct sl_tile *const *tiles = tiles_of(description);
    if (tiles[count - 1]->owner != rt->rank || tiles[count - 1]->idle)
        return;
    struct starpu_task *task = starpu_task_create();
    task->cl = description->codelet;
    choose_workers(rt, description, task);
    task->flops = description->work;
    task->priority = rt->ranks > 1 ? (int)description->urgency : 0;
    task->name = description->codelet->name;
    sl_home_set(task, tiles[count - 1]->place);
    starpu_data_handle_t *handles = make_room(task, description);
    sl_dag_task(task->name, task->cl->color);
    for (int t = 0; t < count; t++) {
        struct sl_tile *tile = tiles[t];
        if (tile->owner != rt->rank && !tile->received)
            sl_fatal("task %s on rank %d reads a tile of rank %d that was not sent here",
                     task->name, rt->rank, tile->owner);
        handles[t] = sl_tile_handle(rt, tile);
        sl_dag_touch(handles[t], dag_access(mode_of(description, t)));
    }
    set_argument(task, description);
    sl_profile_watch(task, operand_bytes(description));
    sl_trace_mark(task);
    const int code = starpu_task_submit(task);
    if (code)
        sl_fatal("no worker can run task %s (StarPU error %d)", description->codelet->name, code);
    rt->tasks++;
}

/* ---- Memory that changes hands ---- */

static int list_own(const struct sl_runtime *rt, const struct sl_matrix *matrix,
                    starpu_data_handle_t *handles, enum starpu_data_access_mode *modes)
{
    int count = 0;
    for (int t = 0; t < matrix->tile_rows * matrix->tile_cols; t++) {
        struct sl_tile *tile = &matrix->tiles[t];
        if (tile->owner != rt->rank || tile->rows == 0)
            continue;
        handles[count] = sl_tile_handle(rt, tile);
        modes[count] = STARPU_W;
        sl_dag_touch(handles[count++], SL_DAG_WRITES);
    }
    return count;
}

/* Submit a task that writes all of a matrix in main memory: this ends all copies on GPUs, so that
 * none is written back. */
void sl_task_hand_over(struct sl_runtime *rt, const struct sl_matrix *from,
                       const struct sl_matrix *to)
{
    static struct starpu_codelet nothing = {.name = "starling_hand_over",
                                            .where = STARPU_NOWHERE,
                                            .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                            .color = 0xC0C0C0};
    const size_t most = (size_t)from->tile_rows * (size_t)from->tile_cols +
                        (size_t)to->tile_rows * (size_t)to->tile_cols;
    starpu_data_handle_t *handles = malloc(most * sizeof *handles);
    enum starpu_data_access_mode *modes = malloc(most * sizeof *modes);
    struct starpu_task *task = starpu_task_create();
    if (!handles || !modes)
        sl_fatal("no memory for the tiles of two matrices");
    enum { MOST = 1 << 16 };
    static int main_memory[MOST]; /* STARPU_MAIN_RAM, for each tile */
    if (rt->process->gpus > 0 && most > MOST)
        sl_fatal("a matrix of over %d tiles changes hands on GPUs", MOST / 2);
    nothing.specific_nodes = rt->process->gpus > 0;
    nothing.dyn_nodes = rt->process->gpus > 0 ? main_memory : NULL;
    task->cl = &nothing;
    task->name = nothing.name;
    sl_dag_task(task->name, nothing.color);
    int count = list_own(rt, from, handles, modes);
    count += list_own(rt, to, handles + count, modes + count);
    task->nbuffers = count;
    if (count <= STARPU_NMAXBUFS) {
        memcpy(task->handles, handles, (size_t)count * sizeof *handles);
        memcpy(task->modes, modes, (size_t)count * sizeof *modes);
        free(handles);
        free(modes);
    } else {
        task->dyn_handles = handles;
        task->dyn_modes = modes;
    }
    const int code = starpu_task_submit(task);
    if (code)
        sl_fatal("memory cannot change hands (StarPU error %d)", code);
    rt->tasks++;
}
