#include "core/handle.h"

#include <errno.h>
#include <pthread.h>

#include <starpu.h>

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
    starpu_data_handle_t handle;
    starpu_data_register(&handle, owned ? STARPU_MAIN_RAM : -1, &matrix, &tile_ops);
    tile->handle = handle;
    return handle;
}
