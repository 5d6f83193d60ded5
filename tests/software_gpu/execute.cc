/* Kernels on the host: one block after the other, a block's threads as fibers of the calling
 * thread, each of which runs until it waits for others. A block in which nothing waits is a loop of
 * calls.
 *
 * What a GPU would not forgive is a mistake here: it is told, with the kernel, the block and the
 * threads, and the program aborts. Shared memory is NaN at the start of each block, and under
 * AddressSanitizer nothing but what was asked for can be touched.
 *
 * SOFTWARE_GPU_ORDER: in which order blocks and threads run, `forward`, `backward` or `shuffled`;
 * otherwise each launch takes the next of the three, so that results which depend on it differ from
 * one time to the other. */
#include <cuda_runtime.h>

#include "fiber.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#ifdef SOFTWARE_GPU_ASAN
#include <sanitizer/asan_interface.h>
#endif

using software_gpu::fiber;

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace
{

enum {
    WARP = 32,
    MOST_THREADS = 1024,     /* of a block */
    MOST_SHARED = 48 * 1024, /* bytes of a block */
    STACK = 256 * 1024,      /* bytes of a fiber */
    APART = 64,              /* bytes between variables in shared memory */
    MOST_VARIABLES = 16,
};

/* ---- A block ---- */

enum state { READY, WAITS_FOR_BLOCK, WAITS_FOR_LANES, DONE };

/* A thread that has begun. */
struct thread {
    state now;
    fiber *on;
    software_gpu_barrier barrier; /* what it waits for */
    software_gpu_exchange exchange;
    unsigned mask, argument, width;
    uint64_t value; /* given to the others, then what came of it */
};

struct variable {
    const void *which;
    char *at;
};

struct block {
    const char *kernel;
    const std::function<void()> *body;
    int threads, begun, done;
    int current;                          /* the thread that runs */
    int at_barrier;                       /* threads */
    int at_exchange[MOST_THREADS / WARP]; /* of each warp */
    std::vector<int> order;
    int turn; /* place in the order of the thread that runs, once all have begun */
    thread all[MOST_THREADS];

    fiber host, *running;
    std::vector<std::unique_ptr<fiber>> fibers;
    std::vector<fiber *> idle;

    alignas(64) char shared[MOST_SHARED + MOST_VARIABLES * 2 * APART];
    variable variables[MOST_VARIABLES];
    int variable_count;
    size_t launched, used, asked; /* launched with; used of `shared`; asked for */
    unsigned launches;
};

thread_local std::unique_ptr<block> here;

/* ---- Mistakes ---- */

std::string name_of(int t)
{
    const unsigned n = (unsigned)t;
    return "thread (" + std::to_string(n % blockDim.x) + ", " +
           std::to_string(n / blockDim.x % blockDim.y) + ", " +
           std::to_string(n / blockDim.x / blockDim.y) + ")";
}

[[noreturn]] void __attribute__((format(printf, 1, 2))) mistake(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "software GPU: kernel %s, block (%u, %u, %u): ", here->kernel, blockIdx.x,
            blockIdx.y, blockIdx.z);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

const char *const BARRIERS[] = {"__syncthreads", "__syncthreads_or", "__syncthreads_and",
                                "__syncthreads_count"};
const char *const EXCHANGES[] = {"__syncwarp",       "__shfl_sync",     "__shfl_up_sync",
                                 "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync",
                                 "__any_sync",       "__all_sync"};

std::string doing(const thread &t)
{
    char mask[16];
    snprintf(mask, sizeof mask, "0x%08x", t.mask);
    switch (t.now) {
    case WAITS_FOR_BLOCK:
        return std::string("waits in ") + BARRIERS[t.barrier];
    case WAITS_FOR_LANES:
        return std::string("waits in ") + EXCHANGES[t.exchange] + " with mask " + mask;
    default:
        return "has ended";
    }
}

/* One thread of each that does the same. */
[[noreturn]] void nobody_goes_on(const block &b)
{
    std::string all;
    std::vector<std::string> said;
    for (int t = 0; t < b.threads; t++) {
        const std::string what = doing(b.all[t]);
        bool known = false;
        for (const std::string &s : said)
            known = known || s == what;
        if (known)
            continue;
        said.push_back(what);
        all += (all.empty() ? "" : ", ") + name_of(t) + " " + what;
    }
    mistake("deadlock: %s", all.c_str());
}

/* ---- Running ---- */

void place(int t)
{
    const unsigned n = (unsigned)t;
    here->current = t;
    threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
}

/* The fiber that runs next; the host's own at the end of a round. First all threads begin, then
 * those that are READY go on, round after round. */
fiber &next_fiber(block &b);

/* What a fiber does: a thread to its end, and the next that has not begun. */
void run_threads()
{
    block &b = *here;
    fiber *const self = b.running;
    for (;;) {
        if (b.begun < b.threads) {
            const int t = b.order[(size_t)b.begun++];
            b.all[t].on = self;
            b.all[t].now = READY;
            place(t);
            (*b.body)();
            b.all[b.current].now = DONE;
            b.done++;
        } else {
            b.idle.push_back(self);
            self->leave_for(next_fiber(b));
        }
    }
}

fiber &idle_fiber(block &b)
{
    if (b.idle.empty()) {
        b.fibers.push_back(std::make_unique<fiber>(STACK, run_threads));
        b.idle.push_back(b.fibers.back().get());
    }
    b.running = b.idle.back();
    b.idle.pop_back();
    return *b.running;
}

fiber &next_fiber(block &b)
{
    if (b.begun < b.threads)
        return idle_fiber(b);
    while (++b.turn < b.threads) {
        const int t = b.order[(size_t)b.turn];
        if (b.all[t].now == READY) {
            place(t);
            return *b.all[t].on;
        }
    }
    return b.host;
}

/* The running thread waits until another makes it READY. */
void wait(block &b, state why)
{
    thread &t = b.all[b.current];
    t.now = why;
    t.on->leave_for(next_fiber(b));
}

void run_block(block &b)
{
    b.begun = b.done = b.at_barrier = b.variable_count = 0;
    b.used = 0;
    b.asked = b.launched;
#ifdef SOFTWARE_GPU_ASAN
    __asan_poison_memory_region(b.shared, sizeof b.shared);
#endif
    while (b.done < b.threads) {
        b.turn = -1;
        fiber &next = next_fiber(b);
        if (&next == &b.host)
            nobody_goes_on(b);
        b.host.leave_for(next);
    }
}

enum order { FORWARD, BACKWARD, SHUFFLED, ORDERS };

order choose_order(unsigned launch)
{
    const char *const wanted = getenv("SOFTWARE_GPU_ORDER");
    const char *const names[] = {"forward", "backward", "shuffled"};
    for (int o = 0; o < ORDERS; o++)
        if (wanted && !strcmp(wanted, names[o]))
            return (order)o;
    if (wanted && *wanted)
        mistake("SOFTWARE_GPU_ORDER=%s: expected forward, backward or shuffled", wanted);
    return (order)(launch % ORDERS);
}

/* Where block i comes: with a step that has no divisor in common with the count, all do. */
uint64_t nth_block(order o, uint64_t i, uint64_t count, uint64_t step)
{
    return o == FORWARD ? i : o == BACKWARD ? count - 1 - i : (i * step + step / 2) % count;
}

} // namespace

cudaError_t software_gpu_check_launch(dim3 grid, dim3 block, size_t shared)
{
    const bool some = grid.x && grid.y && grid.z && block.x && block.y && block.z;
    const bool fits = grid.x < 0x80000000u && grid.y < 65536 && grid.z < 65536 &&
                      block.x <= MOST_THREADS && block.y <= MOST_THREADS && block.z <= 64 &&
                      block.x * block.y * block.z <= MOST_THREADS;
    return some && fits && shared <= MOST_SHARED ? cudaSuccess : cudaErrorInvalidConfiguration;
}

void software_gpu_execute(const char *kernel, dim3 grid, dim3 block_size, size_t shared,
                          const std::function<void()> &body)
{
    if (!here)
        here = std::make_unique<block>();
    block &b = *here;
    b.kernel = kernel;
    b.body = &body;
    b.launched = shared;
    gridDim = grid;
    blockDim = block_size;
    blockIdx = {};
    if (software_gpu_check_launch(grid, block_size, shared) != cudaSuccess)
        mistake("a GPU does not launch a grid of %u x %u x %u blocks of %u x %u x %u threads with "
                "%zu bytes of shared memory",
                grid.x, grid.y, grid.z, block_size.x, block_size.y, block_size.z, shared);
    b.threads = (int)(block_size.x * block_size.y * block_size.z);
    const unsigned launch = b.launches++;
    const order o = choose_order(launch);
    b.order.resize((size_t)b.threads);
    std::iota(b.order.begin(), b.order.end(), 0);
    if (o == BACKWARD)
        std::reverse(b.order.begin(), b.order.end());
    else if (o == SHUFFLED)
        std::shuffle(b.order.begin(), b.order.end(), std::minstd_rand(launch + 1));

    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    uint64_t step = blocks / 3 + launch % 17 + 1;
    while (std::gcd(step, blocks) != 1)
        step++;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t n = nth_block(o, i, blocks, step);
        blockIdx = {(unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y),
                    (unsigned)(n / grid.x / grid.y)};
        run_block(b);
    }
}

/* ---- Shared memory ---- */

static char *allocate_shared(const void *which, size_t bytes, size_t alignment)
{
    block &b = *here;
    for (int i = 0; i < b.variable_count; i++)
        if (b.variables[i].which == which)
            return b.variables[i].at;
    b.used = (b.used + alignment - 1) / alignment * alignment;
    b.asked += which ? bytes : 0;
    if (b.asked > MOST_SHARED || b.variable_count == MOST_VARIABLES)
        mistake("more than %d bytes, or %d variables, in shared memory", (int)MOST_SHARED,
                (int)MOST_VARIABLES);
    char *const at = b.shared + b.used;
    b.used += (bytes + APART - 1) / APART * APART + APART;
    b.variables[b.variable_count++] = {which, at};
#ifdef SOFTWARE_GPU_ASAN
    __asan_unpoison_memory_region(at, bytes);
#endif
    memset(at, 0xFF, bytes);
    return at;
}

void *software_gpu_shared(const void *which, size_t bytes, size_t alignment)
{
    return allocate_shared(which, bytes, alignment);
}

void *software_gpu_launched_shared()
{
    return allocate_shared(NULL, here->launched, 16);
}

/* ---- Threads together ---- */

int software_gpu_synchronize(software_gpu_barrier what, int value)
{
    block &b = *here;
    thread &self = b.all[b.current];
    self.barrier = what;
    self.value = value != 0;
    if (++b.at_barrier < b.threads) {
        wait(b, WAITS_FOR_BLOCK);
        return (int)self.value;
    }
    b.at_barrier = 0;
    int sum = 0;
    for (int t = 0; t < b.threads; t++) {
        if (b.all[t].barrier != what)
            mistake("%s is in %s while %s is in %s", name_of(t).c_str(), BARRIERS[b.all[t].barrier],
                    name_of(b.current).c_str(), BARRIERS[what]);
        sum += (int)b.all[t].value;
    }
    const int result = what == SOFTWARE_GPU_SYNC_OR    ? sum > 0
                       : what == SOFTWARE_GPU_SYNC_AND ? sum == b.threads
                                                       : sum;
    for (int t = 0; t < b.threads; t++) {
        b.all[t].value = (uint64_t)result;
        b.all[t].now = READY;
    }
    return result;
}

/* The lane that a shuffle reads from. */
static unsigned source_of(const thread &t, unsigned lane)
{
    const unsigned first = lane & ~(t.width - 1), last = first + t.width - 1;
    switch (t.exchange) {
    case SOFTWARE_GPU_SHUFFLE:
        return first + (t.argument & (t.width - 1));
    case SOFTWARE_GPU_SHUFFLE_UP:
        return lane < first + t.argument ? lane : lane - t.argument;
    case SOFTWARE_GPU_SHUFFLE_DOWN:
        return lane + t.argument > last ? lane : lane + t.argument;
    default:
        return (lane ^ t.argument) > last ? lane : lane ^ t.argument;
    }
}

/* All lanes of the mask are here: thread `first` is lane 0. */
static void exchange_values(block &b, int first, unsigned mask, software_gpu_exchange what)
{
    uint64_t given[WARP] = {}, ballot = 0;
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            given[lane] = b.all[first + (int)lane].value;
            ballot |= (uint64_t)(given[lane] != 0) << lane;
        }
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        thread &t = b.all[first + (int)lane];
        t.now = READY;
        if (what == SOFTWARE_GPU_BALLOT)
            t.value = ballot;
        else if (what == SOFTWARE_GPU_ANY)
            t.value = ballot != 0;
        else if (what == SOFTWARE_GPU_ALL)
            t.value = ballot == mask;
        else if (what != SOFTWARE_GPU_SYNC_WARP) {
            const unsigned from = source_of(t, lane);
            if (from >= WARP || !(mask >> from & 1))
                mistake("%s: %s reads from lane %u, which is not in the mask 0x%08x",
                        name_of(first + (int)lane).c_str(), EXCHANGES[what], from, mask);
            t.value = given[from];
        }
    }
}

uint64_t software_gpu_meet(software_gpu_exchange what, unsigned mask, uint64_t value,
                           unsigned argument, unsigned width)
{
    block &b = *here;
    const int lane = b.current % WARP, first = b.current - lane,
              lanes = b.threads - first < WARP ? b.threads - first : (int)WARP;
    if (!(mask >> lane & 1))
        mistake("%s, lane %d, is in %s with the mask 0x%08x, where it is missing",
                name_of(b.current).c_str(), lane, EXCHANGES[what], mask);
    if (lanes < WARP && mask >> lanes)
        mistake("%s: %s with the mask 0x%08x, and the warp has %d lanes",
                name_of(b.current).c_str(), EXCHANGES[what], mask, lanes);
    if (width == 0 || width > WARP || (width & (width - 1)))
        mistake("%s: %s of width %u", name_of(b.current).c_str(), EXCHANGES[what], width);
    thread &self = b.all[b.current];
    self.exchange = what;
    self.mask = mask;
    self.value = value;
    self.argument = argument;
    self.width = width;
    self.now = WAITS_FOR_LANES;
    int &here_now = b.at_exchange[first / WARP];
    bool all = ++here_now >= __builtin_popcount(mask);
    for (int l = 0; all && l < lanes; l++) {
        const thread &other = b.all[first + l];
        if (mask >> l & 1)
            all = other.now == WAITS_FOR_LANES && other.mask == mask && other.exchange == what;
    }
    if (!all) {
        wait(b, WAITS_FOR_LANES);
        return self.value;
    }
    here_now -= __builtin_popcount(mask);
    exchange_values(b, first, mask, what);
    return self.value;
}
