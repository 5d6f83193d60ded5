/* Copies and memsets. */
#include "runtime.h"

#include <cstring>
#include <vector>

using namespace software_gpu;

namespace
{

/* Rows of bytes, of one side of a copy. */
struct side {
    const char *data;
    size_t pitch;
    int device; /* -1: the host's */
};

struct block {
    const char *call;
    side to, from;
    size_t width, height;
};

size_t extent(const side &s, const block &b)
{
    return b.width && b.height ? s.pitch * (b.height - 1) + b.width : 0;
}

void move(const block &b)
{
    for (size_t r = 0; r < b.height; r++)
        memmove((char *)b.to.data + r * b.to.pitch, b.from.data + r * b.from.pitch, b.width);
}

void check_side(const side &s, const block &b)
{
    if (s.device >= 0)
        check_device_range(b.call, s.data, extent(s, b), s.device);
    else if (device_of(s.data) >= 0)
        stop("%s: %p is memory of a device, expected the host's", b.call, s.data);
}

count direction(const block &b)
{
    return b.to.device < 0                ? BYTES_TO_HOST
           : b.from.device < 0            ? BYTES_TO_DEVICE
           : b.to.device == b.from.device ? BYTES_ON_DEVICE
                                          : BYTES_TO_PEER;
}

/* A copy from or to memory of the host that is not page-locked makes the host wait, as NVIDIA
 * documents ("API synchronization behavior"): from it until it is read, to it until all is done. */
cudaError_t copy(const block &b, cudaStream_t handle, bool wait)
{
    const std::shared_ptr<queue> stream = find_stream(handle);
    check_side(b.to, b);
    check_side(b.from, b);
    const size_t bytes = b.width * b.height;
    add(direction(b), bytes);
    if (bytes == 0)
        return cudaSuccess;
    const side *host = b.to.device < 0 ? &b.to : b.from.device < 0 ? &b.from : NULL;
    const bool pageable = host && !is_pinned(host->data, extent(*host, b));
    if (pageable)
        add(BYTES_PAGEABLE, bytes);
    const auto work = [b] {
        check_side(b.to, b);
        check_side(b.from, b);
        move(b);
    };
    const mark m = enqueue(stream, work);
    if (pageable || wait)
        m.wait();
    return cudaSuccess;
}

/* Which side is where. */
bool sides(block *b, cudaMemcpyKind kind, cudaStream_t stream)
{
    const int device = device_of(*find_stream(stream));
    b->to.device = b->from.device = -1;
    switch (kind) {
    case cudaMemcpyHostToHost:
        return true;
    case cudaMemcpyHostToDevice:
        b->to.device = device;
        return true;
    case cudaMemcpyDeviceToHost:
        b->from.device = device;
        return true;
    case cudaMemcpyDeviceToDevice:
        b->to.device = b->from.device = device;
        return true;
    case cudaMemcpyDefault:
        b->to.device = device_of(b->to.data);
        b->from.device = device_of(b->from.data);
        return true;
    }
    return false;
}

cudaError_t copy_rows(const char *call, void *to, size_t to_pitch, const void *from,
                      size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                      cudaStream_t stream, bool wait)
{
    block b = {call,
               {(const char *)to, to_pitch, -1},
               {(const char *)from, from_pitch, -1},
               width,
               height};
    if (height > 1 && (width > to_pitch || width > from_pitch))
        return report(cudaErrorInvalidValue);
    if (!sides(&b, kind, stream))
        return report(cudaErrorInvalidValue);
    return copy(b, stream, wait);
}

cudaError_t copy_peer(const char *call, void *to, int to_device, const void *from, int from_device,
                      size_t bytes, cudaStream_t stream, bool wait)
{
    return copy({call,
                 {(const char *)to, bytes, to_device},
                 {(const char *)from, bytes, from_device},
                 bytes,
                 1},
                stream, wait);
}

cudaError_t copy_peer_3d(const char *call, const cudaMemcpy3DPeerParms *p, cudaStream_t stream,
                         bool wait)
{
    if (p->extent.depth != 1 || p->srcArray || p->dstArray || p->srcPos.x || p->srcPos.y ||
        p->srcPos.z || p->dstPos.x || p->dstPos.y || p->dstPos.z)
        stop("%s: only rows from the beginning of a pitched pointer are written here", call);
    return copy({call,
                 {(const char *)p->dstPtr.ptr, p->dstPtr.pitch, p->dstDevice},
                 {(const char *)p->srcPtr.ptr, p->srcPtr.pitch, p->srcDevice},
                 p->extent.width,
                 p->extent.height},
                stream, wait);
}

cudaError_t fill(void *to, int value, size_t bytes, cudaStream_t handle)
{
    const std::shared_ptr<queue> stream = find_stream(handle);
    const int device = device_of(*stream);
    check_device_range("cudaMemset", to, bytes, device);
    enqueue(stream, [=] {
        check_device_range("cudaMemset", to, bytes, device);
        memset(to, value, bytes);
    });
    return cudaSuccess;
}

} // namespace

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy_rows("cudaMemcpy", to, bytes, from, bytes, bytes, 1, kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return copy_rows("cudaMemcpyAsync", to, bytes, from, bytes, bytes, 1, kind, stream, false);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return copy_rows("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind, NULL,
                     true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    return copy_rows("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind,
                     stream, false);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return copy_peer("cudaMemcpyPeer", to, to_device, from, from_device, bytes, NULL, true);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    return copy_peer("cudaMemcpyPeerAsync", to, to_device, from, from_device, bytes, stream, false);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
    return copy_peer_3d("cudaMemcpy3DPeer", p, NULL, true);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    return copy_peer_3d("cudaMemcpy3DPeerAsync", p, stream, false);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return fill(to, value, bytes, stream);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return fill(to, value, bytes, NULL);
}
