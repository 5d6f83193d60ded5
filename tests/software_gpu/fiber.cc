#include "fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#ifdef SOFTWARE_GPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace software_gpu
{

/* The two of the switch under way. */
static thread_local fiber *leaving, *entering;

/* __builtin_setjmp and its longjmp want to be in two functions, and AddressSanitizer takes a
 * function that does not return for the end of the stack. */
#define PLAIN __attribute__((noinline, no_sanitize("address")))

[[noreturn]] PLAIN static void jump(void **place)
{
    __builtin_longjmp(place, 1);
}

PLAIN static void jump_from(void **from, void **to)
{
    if (!__builtin_setjmp(from))
        jump(to);
}

[[noreturn]] PLAIN static void begin(const ucontext_t *context)
{
    setcontext(context);
    abort();
}

PLAIN static void begin_from(void **from, const ucontext_t *context)
{
    if (!__builtin_setjmp(from))
        begin(context);
}

fiber::fiber(size_t bytes, void (*entry)()) : size(bytes), function(entry), mapped(true)
{
    void *const memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    stack = (char *)memory;
    mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE); /* it overflows into this */
}

fiber::~fiber()
{
    if (!mapped)
        return;
#ifdef SOFTWARE_GPU_ASAN
    __asan_unpoison_memory_region(stack, size);
#endif
    munmap(stack, size);
}

/* At the start of a fiber, and whenever it is back. */
static void arrive([[maybe_unused]] void *shadow, [[maybe_unused]] char **stack,
                   [[maybe_unused]] size_t *size)
{
#ifdef SOFTWARE_GPU_ASAN
    const void *bottom;
    __sanitizer_finish_switch_fiber(shadow, &bottom, size);
    *stack = (char *)bottom;
#endif
}

void fiber::enter()
{
    arrive(nullptr, &leaving->stack, &leaving->size);
    entering->function();
    abort();
}

void fiber::leave_for(fiber &to)
{
    leaving = this;
    entering = &to;
#ifdef SOFTWARE_GPU_ASAN
    __sanitizer_start_switch_fiber(&shadow, to.stack, to.size);
#endif
    if (to.function && !to.begun) {
        to.begun = true;
        ucontext_t context;
        getcontext(&context);
        context.uc_stack.ss_sp = to.stack;
        context.uc_stack.ss_size = to.size;
        context.uc_link = NULL;
        makecontext(&context, enter, 0);
        begin_from(place, &context);
    } else {
        jump_from(place, to.place);
    }
    arrive(shadow, &leaving->stack, &leaving->size);
}

} // namespace software_gpu
