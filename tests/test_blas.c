/* Kernels of an OpenBLAS that does not know the processor: sl_blas_start replaces them, unless the
 * user chose them. The products of the kernels that it takes are right. */
#include <dlfcn.h>

#include "config.h"
#include SL_CBLAS_HEADER
#include "core/blas.h"
#include "tests/unit.h"

static const char variable[] = "OPENBLAS_CORETYPE", oldest[] = "Prescott";

static char *(*name)(void);
static void (*forget)(void), (*choose)(void);

/* Let OpenBLAS take its oldest kernels, as on a processor that it does not know. */
static void take_oldest(void)
{
    *(void **)&name = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    *(void **)&forget = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit");
    *(void **)&choose = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init");
    if (!name || !forget || !choose)
        skip();
    setenv(variable, oldest, 1);
    forget();
    choose();
    if (strcmp(name(), oldest) != 0)
        skip();
}

/* The largest error of C = A·B, where all numbers are small integers. */
static double multiply(void)
{
    enum { M = 67, N = 33, K = 129 };
    static float a[M * K], b[K * N], c[M * N];
    double worst = 0.0;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i % 5 - 2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1.0f, a, K, b, N, 0.0f, c, N);
    for (int i = 0; i < M * N; i++) {
        double sum = 0.0;
        for (int k = 0; k < K; k++)
            sum += (double)a[i / N * K + k] * (double)b[k * N + i % N];
        worst = fmax(worst, fabs(sum - (double)c[i]));
    }
    return worst;
}

SL_TEST(replaces)
{
    take_oldest();
    unsetenv(variable);
    assert_true(multiply() == 0.0);
    assert_int_equal(sl_blas_start(1), 0);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_string_not_equal(name(), oldest);
#endif
    assert_null(getenv(variable));
    assert_true(multiply() == 0.0);
}

SL_TEST(keeps_a_choice)
{
    take_oldest();
    assert_int_equal(sl_blas_start(1), 0);
    assert_string_equal(name(), oldest);
    unsetenv(variable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_a_choice),
        cmocka_unit_test(replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
