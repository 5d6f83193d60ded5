/* Basis of every codelet file: the StarPU types, the macro that makes a codelet from its kernels'
 * wrappers, and the performance model that codelets share. */
#ifndef SL_CODELETS_CODELET_H
#define SL_CODELETS_CODELET_H

#include <starpu.h>

#include "codelets/operation.h"
#include "config.h"
#include "core/error.h"
#include "core/task.h"

/* Return sl_task_footprint of a submitted task. */
uint32_t sl_codelet_footprint(struct starpu_task *task);

#ifdef SL_HAVE_CUDA
#define SL_CODELET_CUDA(operation) \
    .cuda_funcs = {operation##_guarded_cuda}, .cuda_flags = {STARPU_CUDA_ASYNC},
#define SL_DECLARE_CUDA(operation)                                        \
    void operation##_cuda(void *buffers[], void *argument);               \
    static void operation##_guarded_cuda(void *buffers[], void *argument) \
    {                                                                     \
        sl_guard_task(operation##_cuda, buffers, argument);               \
    }
#else
#define SL_CODELET_CUDA(operation)
#define SL_DECLARE_CUDA(operation)
#endif

#define SL_DEFINE_CODELET(operation, color_, cuda_, count_, ...)                            \
    static struct starpu_perfmodel operation##_model = {.type = STARPU_HISTORY_BASED,       \
                                                        .symbol = "starling_" #operation,   \
                                                        .footprint = sl_codelet_footprint}; \
    static void operation##_guarded(void *buffers[], void *argument)                        \
    {                                                                                       \
        sl_guard_task(operation##_cpu, buffers, argument);                                  \
    }                                                                                       \
    static struct starpu_codelet operation##_codelet = {                                    \
        .name = "starling_" #operation,                                                     \
        .cpu_funcs = {operation##_guarded},                                                 \
        .cpu_funcs_name = {#operation "_cpu"},                                              \
        cuda_.nbuffers = count_,                                                            \
        .modes = {__VA_ARGS__},                                                             \
        .model = &operation##_model,                                                        \
        .color = color_,                                                                    \
    }

/* Define `<operation>_codelet`, which runs `<operation>_cpu` and, in a CUDA build,
 * `<operation>_cuda` of the twin file: name, colour in traces (0xRRGGBB), number of buffers, access
 * mode of each. */
#define SL_CODELET(operation, color_, count_, ...) \
    SL_DECLARE_CUDA(operation)                     \
    SL_DEFINE_CODELET(operation, color_, SL_CODELET_CUDA(operation), count_, __VA_ARGS__)

/* Define a codelet as SL_CODELET does, with any number of buffers. The task gives their access
 * modes (core/task.h). */
#define SL_CODELET_ANY(operation, color_) \
    SL_DECLARE_CUDA(operation)            \
    SL_DEFINE_CODELET(operation, color_, SL_CODELET_CUDA(operation), STARPU_VARIABLE_NBUFFERS, 0)

/* Define a codelet as SL_CODELET does, for an operation that runs on the host alone. */
#define SL_HOST_CODELET(operation, color_, count_, ...) \
    SL_DEFINE_CODELET(operation, color_, , count_, __VA_ARGS__)

/* A dense buffer of float32 inside a codelet function. */
struct sl_dense {
    float *data;
    int64_t rows, cols, ld;
};

static inline struct sl_dense sl_dense_buffer(void *buffer)
{
    return (struct sl_dense){
        .data = (float *)STARPU_MATRIX_GET_PTR(buffer),
        .rows = STARPU_MATRIX_GET_NY(buffer),
        .cols = STARPU_MATRIX_GET_NX(buffer),
        .ld = STARPU_MATRIX_GET_LD(buffer),
    };
}

/* Return the rows of a dense buffer of float32. */
static inline struct sl_floats_at sl_floats_buffer(void *buffer)
{
    const struct sl_dense tile = sl_dense_buffer(buffer);
    return (struct sl_floats_at){tile.data, tile.ld};
}

/* Return the rows of a dense buffer of float32 or bfloat16. */
static inline struct sl_rows sl_rows_buffer(void *buffer)
{
    return sl_rows_of_type((void *)STARPU_MATRIX_GET_PTR(buffer), STARPU_MATRIX_GET_LD(buffer),
                           STARPU_MATRIX_GET_ELEMSIZE(buffer) == 2 ? SL_BFLOAT16 : SL_FLOAT32);
}

/* Return the first byte of a buffer whose elements have another type. */
static inline void *sl_raw_buffer(void *buffer)
{
    return (void *)STARPU_MATRIX_GET_PTR(buffer);
}

/* Return one scale of a tile's rows, (rows); NULL for SL_ROW_NONE. */
static inline const float *sl_row_scale(void *buffer, enum sl_row_scale scale)
{
    const struct sl_dense scales = sl_dense_buffer(buffer);
    return scale == SL_ROW_NONE ? NULL : scales.data + scale * scales.ld;
}

/* Return the vertices of a tile's rows, (rows). */
static inline const uint32_t *sl_vertices(void *buffer)
{
    return (const uint32_t *)sl_row_scale(buffer, SL_ROW_VERTEX);
}

#endif
