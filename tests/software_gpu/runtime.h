/* A CUDA runtime without a GPU: devices are memory of the host, streams are threads. memory.cc,
 * copy.cc, stream.cc, cublas.cc and cusparse.cc define the functions that CUDA programs call, as
 * NVIDIA documents them. So a program linked with these files, StarPU included, runs without a GPU.
 * The files share this header.
 *
 * Mistakes that a quick GPU hides show here:
 *
 *     memory    Fresh device memory is NaN. Freed device memory is gone.
 *     copies    A copy stops the program unless every byte on the device side lies in live memory
 *               of the device, and the host pointer does not.
 *     streams   Streams run late, each by itself. With SOFTWARE_GPU_DELAY, a stream waits a random
 *               time before every operation.
 *
 * Environment:
 *
 *     SOFTWARE_GPU_COUNT    devices (1)
 *     SOFTWARE_GPU_MEMORY   MiB of memory of each (1024)
 *     SOFTWARE_GPU_DELAY    most microseconds that a stream waits before an operation (0)
 *     SOFTWARE_GPU_SEED     seed of these times (1)
 *     SOFTWARE_GPU_COUNTS   a file: at its end a process appends a line of JSON with the numbers of
 *                           `enum count` */
#ifndef SL_TESTS_SOFTWARE_GPU_RUNTIME_H
#define SL_TESTS_SOFTWARE_GPU_RUNTIME_H

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace software_gpu
{

/* ---- Errors ---- */

/* Make `code` the value of cudaGetLastError of this thread, and return it. */
cudaError_t report(cudaError_t code);

/* A mistake of the program: says what, and aborts. */
[[noreturn]] void __attribute__((format(printf, 1, 2))) stop(const char *format, ...);

/* ---- Devices and memory ---- */

int device_count();
int current_device();

/* Stops unless [pointer, pointer + bytes) is live memory of the device. */
void check_device_range(const char *call, const void *pointer, size_t bytes, int device);

/* The device that has the pointer's memory, or -1. */
int device_of(const void *pointer);

/* Whether all of it is page-locked memory of the host. */
bool is_pinned(const void *pointer, size_t bytes);

/* ---- Streams ---- */

struct queue;

/* The work that was put on a stream until some moment. */
struct mark {
    std::shared_ptr<queue> on; /* NULL: nothing */
    uint64_t ticket = 0;
    bool done() const;
    void wait() const;
};

/* The stream behind a handle; NULL is the current device's default stream. */
std::shared_ptr<queue> find_stream(cudaStream_t handle);
int device_of(const queue &stream);

/* Has the stream do `work` after all that it was given before, after what the default stream's
 * rules ask for, and after `also`. */
mark enqueue(const std::shared_ptr<queue> &stream, std::function<void()> work, mark also = {});

/* Until all that the stream was given is done. */
void drain(const std::shared_ptr<queue> &stream);

/* The same for all streams of a device. */
void drain_device(int device);

/* ---- Counts ---- */

enum count {
    MALLOCS,
    FREES,
    HOST_MALLOCS,     /* and registrations of the host's memory */
    SYNCHRONIZATIONS, /* of streams, devices, events: the host waits */
    KERNELS,          /* launched */
    GEMMS,
    SPARSE_PRODUCTS, /* of cuSPARSE */
    BYTES_TO_DEVICE, /* from the host */
    BYTES_TO_HOST,   /* from a device */
    BYTES_TO_PEER,   /* from one device to another */
    BYTES_ON_DEVICE, /* from one place to another of the same device */
    BYTES_PAGEABLE,  /* to or from pageable memory of the host: such a copy makes the host wait */
    COUNTS
};
void add(count what, size_t amount = 1);

} // namespace software_gpu

#endif
