/* Streams, events, launches. */
#include "runtime.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace software_gpu
{

struct operation {
    std::vector<mark> after;
    std::function<void()> work;
};

/* A stream. Its thread takes operations in order. */
struct queue {
    const int device;
    const bool blocking; /* it and the default stream wait for one another */
    std::mutex mutex;
    std::condition_variable more, less;
    std::deque<operation> operations;
    uint64_t put = 0, done = 0;
    bool ended = false;
    std::minstd_rand random;
    std::thread thread;

    queue(int on_device, bool is_blocking) : device(on_device), blocking(is_blocking)
    {
        static std::atomic<unsigned> streams{0};
        const char *seed = getenv("SOFTWARE_GPU_SEED");
        random.seed((seed ? (unsigned)atoi(seed) : 1u) * 1000u + ++streams);
        thread = std::thread([this] { run(); });
    }

    ~queue()
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            ended = true;
        }
        more.notify_one();
        thread.join();
    }

    void lag()
    {
        static const char *const text = getenv("SOFTWARE_GPU_DELAY");
        static const unsigned most = text ? (unsigned)atoi(text) : 0;
        if (most > 0 && random() % 2)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % (most + 1)));
    }

    void run()
    {
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            more.wait(lock, [this] { return ended || !operations.empty(); });
            if (operations.empty())
                return;
            operation next = std::move(operations.front());
            operations.pop_front();
            lock.unlock();
            for (const mark &m : next.after)
                m.wait();
            next.after.clear();
            lag();
            next.work();
            next.work = nullptr;
            lock.lock();
            done++;
            less.notify_all();
        }
    }
};

bool mark::done() const
{
    if (!on)
        return true;
    std::lock_guard<std::mutex> lock(on->mutex);
    return on->done >= ticket;
}

void mark::wait() const
{
    if (!on)
        return;
    std::unique_lock<std::mutex> lock(on->mutex);
    on->less.wait(lock, [this] { return on->done >= ticket; });
}

namespace
{

/* All streams. Never destroyed: threads may use it until the process is gone. */
struct registry {
    std::mutex mutex; /* held before that of a queue */
    std::map<cudaStream_t, std::shared_ptr<queue>> streams;
    std::map<int, std::shared_ptr<queue>> default_streams; /* of devices that used theirs */
};

registry &all()
{
    static registry *r = new registry;
    return *r;
}

mark last(const std::shared_ptr<queue> &stream)
{
    std::lock_guard<std::mutex> lock(stream->mutex);
    return {stream, stream->put};
}

/* What the rules of the default stream have an operation on `stream` wait for. */
std::vector<mark> others(const registry &r, const std::shared_ptr<queue> &stream)
{
    std::vector<mark> marks;
    const auto at = r.default_streams.find(stream->device);
    if (at == r.default_streams.end() || !stream->blocking)
        return marks;
    if (at->second != stream)
        return {last(at->second)};
    for (const auto &s : r.streams)
        if (s.second->device == stream->device && s.second->blocking)
            marks.push_back(last(s.second));
    return marks;
}

std::atomic<size_t> counts[COUNTS];

void write_counts()
{
    static const char *const names[COUNTS] = {
        "mallocs",       "frees",         "host_mallocs",    "synchronizations",
        "kernels",       "gemms",         "sparse_products", "bytes_to_device",
        "bytes_to_host", "bytes_to_peer", "bytes_on_device", "bytes_pageable"};
    const char *path = getenv("SOFTWARE_GPU_COUNTS");
    if (!path)
        return;
    std::string line = "{";
    for (int i = 0; i < COUNTS; i++)
        line += std::string(i ? ", \"" : "\"") + names[i] + "\": " + std::to_string(counts[i]);
    line += "}\n";
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line.data(), line.size()) != (ssize_t)line.size())
        fprintf(stderr, "software GPU: cannot write %s\n", path);
    if (file >= 0)
        close(file);
}

} // namespace

void add(count what, size_t amount)
{
    static const int registered = atexit(write_counts);
    (void)registered;
    counts[what] += amount;
}

std::shared_ptr<queue> find_stream(cudaStream_t handle)
{
    registry &r = all();
    std::lock_guard<std::mutex> lock(r.mutex);
    if (!handle || handle == cudaStreamLegacy) {
        auto &stream = r.default_streams[current_device()];
        if (!stream)
            stream = std::make_shared<queue>(current_device(), true);
        return stream;
    }
    const auto at = r.streams.find(handle);
    if (at == r.streams.end())
        stop("%p is not a stream, or one that was destroyed", (void *)handle);
    return at->second;
}

int device_of(const queue &stream)
{
    return stream.device;
}

mark enqueue(const std::shared_ptr<queue> &stream, std::function<void()> work, mark also)
{
    registry &r = all();
    std::lock_guard<std::mutex> order(r.mutex);
    operation o{others(r, stream), std::move(work)};
    if (also.on)
        o.after.push_back(std::move(also));
    std::lock_guard<std::mutex> lock(stream->mutex);
    stream->operations.push_back(std::move(o));
    stream->more.notify_one();
    return {stream, ++stream->put};
}

void drain(const std::shared_ptr<queue> &stream)
{
    last(stream).wait();
}

void drain_device(int device)
{
    std::vector<mark> marks;
    {
        registry &r = all();
        std::lock_guard<std::mutex> lock(r.mutex);
        for (const auto &s : r.streams)
            if (s.second->device == device)
                marks.push_back(last(s.second));
        const auto at = r.default_streams.find(device);
        if (at != r.default_streams.end())
            marks.push_back(last(at->second));
    }
    for (const mark &m : marks)
        m.wait();
}

} // namespace software_gpu

using namespace software_gpu;

/* ---- Streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags)
{
    static std::atomic<uintptr_t> handles{0x1000};
    registry &r = all();
    auto stream = std::make_shared<queue>(current_device(), !(flags & cudaStreamNonBlocking));
    std::lock_guard<std::mutex> lock(r.mutex);
    *handle = (cudaStream_t)(handles += 16);
    r.streams[*handle] = std::move(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *handle)
{
    return cudaStreamCreateWithFlags(handle, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    std::shared_ptr<queue> stream = find_stream(handle);
    drain(stream);
    registry &r = all();
    std::lock_guard<std::mutex> lock(r.mutex);
    return report(r.streams.erase(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    add(SYNCHRONIZATIONS);
    drain(find_stream(handle));
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    return report(last(find_stream(handle)).done() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize(void)
{
    add(SYNCHRONIZATIONS);
    drain_device(current_device());
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument)
{
    enqueue(find_stream(handle), [=] { function(argument); });
    return cudaSuccess;
}

/* ---- Events ---- */

struct CUevent_st {
    using clock = std::chrono::steady_clock;
    int device;
    bool timed;
    mark at;
    std::shared_ptr<clock::time_point> time;
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new CUevent_st{current_device(), !(flags & cudaEventDisableTiming), {}, {}};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    const std::shared_ptr<queue> stream = find_stream(handle);
    if (stream->device != event->device)
        return report(cudaErrorInvalidResourceHandle);
    const auto time = std::make_shared<CUevent_st::clock::time_point>();
    event->time = time;
    event->at = enqueue(stream, [time] { *time = CUevent_st::clock::now(); });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return report(event->at.done() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    add(SYNCHRONIZATIONS);
    event->at.wait();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    if (!begin->timed || !end->timed || !begin->time || !end->time)
        return report(cudaErrorInvalidResourceHandle);
    if (!begin->at.done() || !end->at.done())
        return report(cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    enqueue(
        find_stream(handle), [] {}, event->at);
    return cudaSuccess;
}
