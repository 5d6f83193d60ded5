#include "core/handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <starpu.h>

#include "core/error.h"

/* StarPU's interface of matrices, but with rows as far apart as on the owner. This holds for memory
 * that StarPU allocates itself, on GPUs and for received tiles. Kernels read aligned rows
 * faster. */
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

/* Memory that is free goes to a matrix with the same hash of rows and columns and as many bytes,
 * and brings its old shape and size of elements with it. */
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

/* ---- Handles that no tile has ---- */

/* To register a handle costs StarPU 4 KiB, which heaps of malloc give back in pieces. So a handle
 * that is idle serves the next tile: its interfaces take the shape of the tile. */
struct spare {
    int count, room;
    starpu_data_handle_t *handle; // (count)
};

/* Without a home, and with memory of its owner. A handle's user data is the list it is for. */
static struct spare spares[2];
static int64_t registered;

static starpu_data_handle_t register_handle(int home, struct starpu_matrix_interface *matrix)
{
    struct starpu_matrix_interface empty = *matrix; /* StarPU keeps a list of addresses */
    starpu_data_handle_t handle;
    empty.ptr = empty.dev_handle = 0;
    starpu_data_register(&handle, home, &empty, &tile_ops);
    starpu_data_set_user_data(handle, &spares[home >= 0]);
    registered++;
    return handle;
}

/* Wait for the tasks and messages on the handle. A home has the last value then; all other memory
 * is not the handle's any more: that of GPUs is of the old shape. */
static void make_idle(const struct spare *spare, starpu_data_handle_t handle)
{
    if (spare == &spares[0]) {
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
    struct spare *spare = starpu_data_get_user_data(handle);
    make_idle(spare, handle);
    if (spare->count == spare->room) {
        spare->room = 2 * spare->room + 64;
        spare->handle = realloc(spare->handle, (size_t)spare->room * sizeof(starpu_data_handle_t));
        if (!spare->handle)
            sl_fatal("no memory for a list of %d handles", spare->room);
    }
    spare->handle[spare->count++] = handle;
}

void sl_handles_free(void)
{
    for (int s = 0; s < 2; s++) {
        for (int h = 0; h < spares[s].count; h++)
            starpu_data_unregister(spares[s].handle[h]);
        free(spares[s].handle);
        spares[s] = (struct spare){0};
    }
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
    struct spare *spare = &spares[owned];
    starpu_data_handle_t handle =
        spare->count ? spare->handle[--spare->count] : register_handle(home, &matrix);
    tile_ops.register_data_handle(handle, home, &matrix);
    tile->handle = handle;
    return handle;
}
