#include "core/handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <starpu.h>

#include "core/error.h"

/* An interface like StarPU's matrices, but rows are as far apart in all memories as on the owner,
 * also on GPUs and for received tiles. Kernels read aligned rows faster. */
static struct starpu_data_interface_ops tile_ops;
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* Return the distance between rows, from the allocated size. StarPU keeps the size for every memory
 * node, but not the distance. */
static uint32_t distance(const struct starpu_matrix_interface *matrix)
{
    const size_t row = matrix->ny * matrix->elemsize;
    return row ? (uint32_t)(matrix->allocsize / row) : matrix->nx;
}

static starpu_ssize_t allocate(void *interface, unsigned node)
{
    struct starpu_matrix_interface *matrix = interface;
    const uintptr_t memory = starpu_malloc_on_node(node, matrix->allocsize);
    if (!memory)
        return -ENOMEM;
    matrix->ptr = matrix->dev_handle = memory;
    matrix->offset = 0;
    matrix->ld = distance(matrix);
    return (starpu_ssize_t)matrix->allocsize;
}

#if STARPU_MAJOR_VERSION == 1 && STARPU_MINOR_VERSION < 4

/* Compare shapes and sizes of elements. StarPU reuses free memory for a matrix with the same hash
 * of rows and columns and as many bytes; the memory keeps its old shape and size of elements. */
static int same_shape(void *a, void *b)
{
    const struct starpu_matrix_interface *one = a, *two = b;
    return one->nx == two->nx && one->ny == two->ny && one->elemsize == two->elemsize &&
           one->allocsize == two->allocsize;
}

static void reuse_as_allocated(void)
{
    tile_ops.alloc_compare = same_shape;
}

#else

static void reuse(void *interface, const void *cached, unsigned node)
{
    struct starpu_matrix_interface *matrix = interface;
    starpu_interface_matrix_ops.reuse_data_on_node(interface, cached, node);
    matrix->ld = distance(matrix);
}

static void reuse_as_allocated(void)
{
    tile_ops.reuse_data_on_node = reuse;
}

#endif

static void make_ops(void)
{
    tile_ops = starpu_interface_matrix_ops;
    tile_ops.allocate_data_on_node = allocate;
    reuse_as_allocated();
}

int sl_handles_set_interface(bool own)
{
    pthread_once(&made, make_ops);
    tile_ops.interfaceid = own ? (enum starpu_data_interface_id)starpu_data_interface_get_next_id()
                               : starpu_interface_matrix_ops.interfaceid;
    return (int)tile_ops.interfaceid;
}

struct sl_handle_rows sl_handle_rows(void *handle)
{
    const struct starpu_matrix_interface *matrix =
        starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM);
    const int64_t size = (int64_t)matrix->elemsize;
    return (struct sl_handle_rows){matrix->ny, matrix->nx * size, distance(matrix) * size};
}

/* ---- Idle handles ---- */

/* To register a handle costs StarPU 4 KiB, which heaps of malloc give back in pieces. So a handle
 * that is idle serves the next tile: its interfaces take the shape of the tile. */
struct list {
    int count, room;
    starpu_data_handle_t *handle; // (count)
};

/* spares: idle handles without a home, and with memory of their owner. all: every handle, also of
 * tiles whose functions sl_fatal left. A handle's user data is its place in `all`, and whether it
 * has a home. */
static struct list spares[2], all;
static int64_t registered;

static bool has_room(struct list *list)
{
    if (list->count < list->room)
        return true;
    const int room = 2 * list->room + 64;
    void *longer = realloc(list->handle, (size_t)room * sizeof *list->handle);
    if (!longer)
        return false;
    list->handle = longer;
    list->room = room;
    return true;
}

static void set_place(starpu_data_handle_t handle, int place, bool home)
{
    all.handle[place] = handle;
    starpu_data_set_user_data(handle, (void *)((intptr_t)place * 2 + home));
}

static bool has_home(starpu_data_handle_t handle)
{
    return (intptr_t)starpu_data_get_user_data(handle) % 2;
}

static starpu_data_handle_t register_handle(int home, struct starpu_matrix_interface *matrix)
{
    struct starpu_matrix_interface empty = *matrix; /* StarPU keeps a list of addresses */
    starpu_data_handle_t handle;
    if (!has_room(&all))
        sl_fatal("no memory for a list of %d handles", all.count);
    empty.ptr = empty.dev_handle = 0;
    starpu_data_register(&handle, home, &empty, &tile_ops);
    set_place(handle, all.count++, home >= 0);
    registered++;
    return handle;
}

void sl_handle_unregister(void *unregistered)
{
    starpu_data_handle_t handle = unregistered, last = all.handle[--all.count];
    set_place(last, (int)((intptr_t)starpu_data_get_user_data(handle) / 2), has_home(last));
    starpu_data_unregister_submit(handle);
}

/* Wait for the tasks and messages on the handle. Then a home holds the last value, and all other
 * memory is taken from the handle: memory on GPUs has the old shape. */
static void make_idle(starpu_data_handle_t handle)
{
    if (!has_home(handle)) {
        starpu_data_invalidate(handle);
        return;
    }
    const bool elsewhere = starpu_memory_nodes_get_count() > 1;
    if (elsewhere) {
        starpu_data_acquire(handle, STARPU_R);
        starpu_data_release(handle);
        starpu_data_invalidate(handle);
    }
    starpu_data_acquire(handle, STARPU_W);
    starpu_data_release(handle);
}

void sl_handle_forget(void *forgotten)
{
    starpu_data_handle_t handle = forgotten;
    struct list *spare = &spares[has_home(handle)];
    make_idle(handle);
    if (has_room(spare))
        spare->handle[spare->count++] = handle;
    else
        sl_handle_unregister(handle);
}

void sl_handles_free(void)
{
    for (int h = 0; h < all.count; h++)
        starpu_data_unregister_no_coherency(all.handle[h]); /* a home may be freed */
    free(all.handle);
    free(spares[0].handle);
    free(spares[1].handle);
    all = spares[0] = spares[1] = (struct list){0};
}

int64_t sl_handles_registered(void)
{
    return registered;
}

/* ---- Tiles ---- */

void *sl_tile_handle(const struct sl_runtime *rt, struct sl_tile *tile)
{
    if (tile->handle)
        return tile->handle;
    pthread_once(&made, make_ops);
    const bool owned = tile->owner == rt->rank && tile->memory;
    const uintptr_t memory = owned ? (uintptr_t)tile->memory : 0;
    struct starpu_matrix_interface matrix = {
        .id = STARPU_MATRIX_INTERFACE_ID,
        .ptr = memory,
        .dev_handle = memory,
        .ld = (uint32_t)tile->ld,
        .nx = (uint32_t)tile->cols,
        .ny = (uint32_t)tile->rows,
        .elemsize = tile->element_size,
        .allocsize = (size_t)(tile->rows * tile->ld) * tile->element_size,
    };
    const int home = owned ? STARPU_MAIN_RAM : -1;
    struct list *spare = &spares[owned];
    starpu_data_handle_t handle =
        spare->count ? spare->handle[--spare->count] : register_handle(home, &matrix);
    tile_ops.register_data_handle(handle, home, &matrix);
    tile->handle = handle;
    return handle;
}
