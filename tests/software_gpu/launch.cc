/* Launches: blocks of threads, which execute.cc runs, on a stream. */
#include "runtime.h"

#include <cuda_runtime.h>

using namespace software_gpu;

void software_gpu_launch(const char *kernel, dim3 grid, dim3 block, size_t shared,
                         cudaStream_t handle, const std::function<void()> &body)
{
    const std::shared_ptr<queue> stream = find_stream(handle);
    if (device_of(*stream) != current_device())
        stop("kernel %s: a stream of device %d, expected one of the current device %d", kernel,
             device_of(*stream), current_device());
    if (report(software_gpu_check_launch(grid, block, shared)) != cudaSuccess)
        return;
    add(KERNELS);
    enqueue(stream, [=] { software_gpu_execute(kernel, grid, block, shared, body); });
}
