/* The software GPU itself: what kernels get from it, and that it tells their mistakes. */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static int failures;

static void expect(bool condition, const char *what)
{
    if (!condition)
        printf("FAIL %s\n", what);
    failures += !condition;
}

static void run(dim3 grid, dim3 block, const std::function<void()> &body, size_t shared = 0)
{
    software_gpu_execute("test", grid, block, shared, body);
}

static unsigned own()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

/* ---- Mistakes ---- */

/* That the program ends in there, and that what it says has the words in it. */
static void expect_mistake(const char *what, const char *words,
                           const std::function<void()> &mistake)
{
    int ends[2];
    fflush(stdout);
    const pid_t child = pipe(ends) ? -1 : fork();
    if (child == 0) {
        dup2(ends[1], 2);
        mistake();
        _exit(0);
    }
    close(ends[1]);
    std::string said;
    char piece[256];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;)
        said.append(piece, (size_t)n);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    expect(!WIFEXITED(status) || WEXITSTATUS(status) != 0, what);
    if (said.find(words) == std::string::npos) {
        printf("FAIL %s: it says \"%s\", expected \"%s\"\n", what, said.c_str(), words);
        failures++;
    }
}

static void test_mistakes()
{
    expect_mistake(
        "a barrier that some do not reach",
        "kernel test, block (1, 0, 0): deadlock: thread (0, 0, 0) waits in __syncthreads, "
        "thread (3, 0, 0) has ended",
        [] {
            run(2, 40, [] {
                if (blockIdx.x == 0 || threadIdx.x != 3)
                    __syncthreads();
            });
        });
    expect_mistake("two barriers at once", "__syncthreads_or while", [] {
        run(1, 8, [] {
            if (threadIdx.x == 2)
                __syncthreads_or(1);
            else
                __syncthreads();
        });
    });
    expect_mistake("a mask without the lane", "where it is missing",
                   [] { run(1, 32, [] { __syncwarp(threadIdx.x == 7 ? 0x7Fu : 0xFFFFFFFFu); }); });
    expect_mistake("a mask with a lane that is elsewhere",
                   "waits in __ballot_sync with mask 0xffffffff, thread (9, 0, 0) has ended", [] {
                       run(1, 32, [] {
                           if (threadIdx.x != 9)
                               __ballot_sync(0xFFFFFFFFu, 1);
                       });
                   });
    expect_mistake("masks that differ",
                   "with mask 0x00000003, thread (1, 0, 0) waits in "
                   "__shfl_xor_sync with mask 0x00000006",
                   [] {
                       run(1, 3, [] {
                           const unsigned masks[] = {3, 6, 6};
                           if (threadIdx.x == 2)
                               __syncthreads();
                           __shfl_xor_sync(masks[threadIdx.x], 1, 1);
                       });
                   });
    expect_mistake("a shuffle from outside the mask", "reads from lane 4, which is not in", [] {
        run(1, 32, [] {
            if (threadIdx.x < 4)
                __shfl_down_sync(0xFu, 1, 1);
        });
    });
    expect_mistake("a mask of more lanes than there are", "the warp has 8 lanes",
                   [] { run(1, 40, [] { __syncwarp(); }); });
    expect_mistake("too much shared memory", "more than 49152 bytes", [] {
        run(
            1, 1, [] { software_gpu_shared<float[4096]>()[0] = 0; }, 40000);
    });
    expect_mistake("too many threads", "does not launch", [] { run(1, 1025, [] {}); });
#ifdef __SANITIZE_ADDRESS__
    expect_mistake("behind what is shared", "use-after-poison",
                   [] { run(1, 1, [] { (&software_gpu_shared<float[8]>()[0])[8] = 0; }); });
#endif
}

static void test_limits()
{
    expect(software_gpu_check_launch({0x7FFFFFFF, 65535, 65535}, {16, 1, 64}, 49152) == cudaSuccess,
           "the largest launch");
    const struct {
        dim3 grid, block;
        size_t shared;
    } wrong[] = {{0, 1, 0},          {1, {1, 0}, 0},        {0x80000000, 1, 0},
                 {{1, 65536}, 1, 0}, {{1, 1, 65536}, 1, 0}, {1, {1, 1, 65}, 0},
                 {1, {32, 33}, 0},   {1, 1, 49153}};
    for (const auto &w : wrong)
        expect(software_gpu_check_launch(w.grid, w.block, w.shared) ==
                   cudaErrorInvalidConfiguration,
               "a launch that no GPU takes");
}

/* ---- What works ---- */

/* Every thread of every block once, whatever the order. */
static void test_places()
{
    for (int launch = 0; launch < 6; launch++) {
        std::vector<int> times(2 * 3 * 5 * 30);
        run({2, 3, 5}, {5, 2, 3}, [&] {
            const unsigned at = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
            times[at * 30 + own()]++;
        });
        for (const int t : times)
            expect(t == 1, "a thread ran once");
    }
}

static void test_barriers()
{
    for (int launch = 0; launch < 6; launch++)
        run(3, {32, 3}, [] {
            auto &number = software_gpu_shared<unsigned[96]>();
            for (unsigned round = 1; round < 4; round++) {
                number[own()] = own() * round;
                expect(__syncthreads_count(own() % 3 == 0) == 32, "__syncthreads_count");
                expect(number[(own() + 50) % 96] == (own() + 50) % 96 * round, "__syncthreads");
                expect(__syncthreads_or(own() == 77) == 1, "__syncthreads_or of one");
                expect(__syncthreads_or(0) == 0, "__syncthreads_or of none");
                expect(__syncthreads_and(own() != 77) == 0, "__syncthreads_and of all but one");
                expect(__syncthreads_and(5) == 1, "__syncthreads_and of all");
            }
        });
}

static void test_shared_memory()
{
    run(
        2, 4,
        [] {
            auto &once = software_gpu_shared<float[3]>();
            float *const launched = (float *)software_gpu_launched_shared();
            expect(&once == &software_gpu_shared<float[3]>(), "the same memory again");
            expect((void *)&once != (void *)&software_gpu_shared<double[2]>(), "other memory");
            if (threadIdx.x == 0) {
                expect(once[2] != once[2] && launched[6] != launched[6], "NaN at first");
                once[2] = launched[6] = 1.0f;
            }
            __syncthreads();
            expect(once[2] == 1.0f && launched[6] == 1.0f, "what one wrote all read");
        },
        28);
}

static void test_warps()
{
    for (int launch = 0; launch < 6; launch++)
        run(2, 64, [] {
            const unsigned all = 0xFFFFFFFFu;
            const int lane = (int)threadIdx.x % 32, base = (int)threadIdx.x * 10;
            const int warp = base - 10 * lane;
            expect(__shfl_sync(all, base, 5) == warp + 50, "__shfl_sync");
            expect(__shfl_sync(all, base, 5, 4) == warp + 10 * (lane / 4 * 4 + 1), "its width");
            expect(__shfl_up_sync(all, base, 3) == (lane < 3 ? base : base - 30), "up");
            expect(__shfl_down_sync(all, base, 3) == (lane > 28 ? base : base + 30), "down");
            expect(__shfl_down_sync(all, base, 1, 8) == (lane % 8 == 7 ? base : base + 10),
                   "width");
            expect(__shfl_xor_sync(all, (double)base, 16) == warp + 10 * (lane ^ 16), "xor");
            expect(__ballot_sync(all, lane % 3 == 0) == 0x49249249u, "ballot");
            expect(__any_sync(all, lane == 9) && !__any_sync(all, 0), "any");
            expect(__all_sync(all, lane < 32) && !__all_sync(all, lane != 9), "all");
            /* Halves of a warp, each for itself. */
            const unsigned half = lane < 16 ? 0xFFFFu : 0xFFFF0000u;
            for (int i = 0; i < (lane < 16 ? 3 : 5); i++)
                expect(__ballot_sync(half, lane % 16 == i) == (0x10001u << i & half),
                       "half a warp");
        });
}

/* Without a barrier, what threads read differs from one launch to the next. */
static void test_order_shows()
{
    int right = 0, wrong = 0;
    for (int launch = 0; launch < 3; launch++)
        run(1, 64, [&] {
            auto &value = software_gpu_shared<unsigned[64]>();
            value[own()] = own();
            (value[(own() + 1) % 64] == (own() + 1) % 64 ? right : wrong)++;
        });
    expect(right > 0 && wrong > 0, "a missing barrier shows");
}

static void test_host_threads()
{
    std::atomic<long> sum{0};
    std::vector<std::thread> hosts;
    for (int h = 0; h < 3; h++)
        hosts.emplace_back([&] {
            run(100, 64, [&] {
                auto &value = software_gpu_shared<unsigned[64]>();
                value[own()] = blockIdx.x;
                __syncthreads();
                sum += value[63 - own()];
            });
        });
    for (std::thread &h : hosts)
        h.join();
    expect(sum == 3 * 64 * 4950, "kernels on several threads of the host");
}

static void test_bfloat16()
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const float x = __uint_as_float(bits << 16);
        expect(x != x || __nv_bfloat16(x).bits == bits, "what bfloat16 has stays");
    }
    expect(__nv_bfloat16(__uint_as_float(0x3F808000)).bits == 0x3F80,
           "a tie to the even one below");
    expect(__nv_bfloat16(__uint_as_float(0x3F818000)).bits == 0x3F82,
           "a tie to the even one above");
    expect(__nv_bfloat16(__uint_as_float(0x3F808001)).bits == 0x3F81, "more than a tie");
    expect(__nv_bfloat16(__uint_as_float(0x7F7FFFFF)).bits == 0x7F80, "beyond the largest");
    expect(__nv_bfloat16(__uint_as_float(0x7F800001)).bits == 0x7FFF, "NaN");
}

int main()
{
    test_mistakes();
    test_limits();
    test_places();
    test_barriers();
    test_shared_memory();
    test_warps();
    test_order_shows();
    test_host_threads();
    test_bfloat16();
    printf(failures ? "%d failures\n" : "all right\n", failures);
    return failures != 0;
}
