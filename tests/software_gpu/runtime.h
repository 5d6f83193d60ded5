/* A CUDA runtime without a GPU: devices are memory of the host, streams are threads. The functions
 * that CUDA programs call are in memory.cc, copy.cc, stream.cc, cublas.cc and cusparse.cc under
 * their own names, as NVIDIA documents them, so that a program linked with these files runs on it,
 * StarPU included; this header is what the files share.
 *
 * What a careless program gets away with on a quick GPU shows here:
 *   - device memory is NaN when it is fresh, and gone when it is freed;
 *   - copies stop the program unless device pointers lie in live memory of the device, with every
 *     byte that is copied, and host pointers do not;
 *   - streams run behind, each by itself: with SOFTWARE_GPU_DELAY, by a random time before
 *     everything that they do.
 *
 * Environment:
 *   SOFTWARE_GPU_COUNT    devices (1)
 *   SOFTWARE_GPU_MEMORY   MiB of memory of each (1024)
 *   SOFTWARE_GPU_DELAY    microseconds, at most, that a stream waits before an operation (0)
 *   SOFTWARE_GPU_SEED     of those times (1)
 *   SOFTWARE_GPU_COUNTS   a file to which a process appends what it did, at its end: a line of
 *                         JSON with the numbers of `enum count` */
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

/* What cudaGetLastError of this thread returns; `code` again. */
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

/* What has been put on a stream until some moment. */
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
    BYTES_PAGEABLE,  /* of those to or from the host, what is not page-locked: such a copy makes
                        the host wait */
    COUNTS
};
void add(count what, size_t amount = 1);

} // namespace software_gpu

#endif
