/* Fibers: functions with a stack each, of which one runs at a time until it leaves for another. A
 * switch is a few loads and stores, no system call. They stay on the thread that made them. */
#ifndef SL_TESTS_SOFTWARE_GPU_FIBER_H
#define SL_TESTS_SOFTWARE_GPU_FIBER_H

#include <cstddef>

/* Defined already where this is not checked itself, but what runs on it is. */
#ifdef __SANITIZE_ADDRESS__
#define SOFTWARE_GPU_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SOFTWARE_GPU_ASAN
#endif
#endif

namespace software_gpu
{

class fiber
{
  public:
    /* The thread's own stack. */
    fiber() = default;

    /* Goes on at `function`, which never returns. Throws std::bad_alloc. */
    fiber(size_t bytes, void (*function)());
    fiber(const fiber &) = delete;
    ~fiber();

    /* From this one, which runs, to another. */
    void leave_for(fiber &to);

  private:
    static void enter();

    void *place[5] = {};   /* where it left, for __builtin_longjmp */
    char *stack = nullptr; /* of the thread itself: unknown until someone leaves it */
    size_t size = 0;
    void *shadow = nullptr; /* of AddressSanitizer */
    void (*function)() = nullptr;
    bool mapped = false, begun = false;
};

} // namespace software_gpu

#endif
