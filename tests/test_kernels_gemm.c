/* Dense products of float32 and bfloat16 in all combinations, against sums in double. Where one
 * operand is bfloat16 the kernel may round the other one (codelets/gemm.h). So there are two
 * bounds. The sums of the operands as the kernel rounds them are float32's. The sums of the
 * operands as they are may be off by 2^-8 of each term. */
#include <dirent.h>
#include <pthread.h>

#include "codelets/bfloat16.h"
#include "codelets/gemm.h"
#include "codelets/gemm_onednn.h"
#include "tests/kernels.h"
#include "tests/sample.h"
#include "tests/unit.h"

#define HALF_UNIT 0x1p-8 /* relative error of one rounding to bfloat16 */

/* ---- Operands of either type ---- */

struct operand {
    bool half;
    struct sl_guarded floats; /* what they say */
    struct sl_narrowed halves;
    struct sl_rows rows;
};

static struct operand operand_of(struct sl_guarded floats, bool half)
{
    struct operand o = {.half = half, .floats = floats, .rows = sl_rows_of(&floats)};
    if (half) {
        o.halves = sl_narrowed_of(&o.floats, sl_some_spare());
        o.rows = o.halves.rows;
    }
    return o;
}

static enum sl_layout some_layout(void)
{
    return (enum sl_layout)sl_random_below(SL_LAYOUTS);
}

static struct operand some_operand(int64_t rows, int64_t cols, bool half, float pad,
                                   enum sl_kind kind)
{
    return operand_of(sl_guarded_random(rows, cols, some_layout(), pad, kind), half);
}

static void free_operand(struct operand *o)
{
    sl_guarded_free(&o->floats);
    if (o->half)
        sl_guarded_free(&o->halves.words);
}

/* ---- A product and what it should be ---- */

struct product {
    bool transpose_a, transpose_b, accumulate, own_mask;
    int64_t m, n, k;
    struct operand a, b, c, mask;
    struct sl_guarded_epilogue epilogue;
    bool finishes;
};

enum { OPTIONS = 128 };

/* Option bits: transposes, accumulate, types, epilogue. */
static struct product make_product(int64_t m, int64_t n, int64_t k, int option)
{
    struct product p = {
        .transpose_a = option & 1, .transpose_b = option & 2, .accumulate = option & 4};
    const enum sl_kind kind = sl_random_below(3) ? SL_REALS : SL_INTEGERS;
    const bool plain = p.transpose_a || p.accumulate, half_c = !plain && (option & 32);
    p.m = m;
    p.n = n;
    p.k = k;
    p.finishes = !plain && (option & 64);
    p.own_mask = p.finishes && sl_random_below(2);
    p.a = p.transpose_a ? some_operand(k, m, option & 8, NAN, kind)
                        : some_operand(m, k, option & 8, NAN, kind);
    p.b = p.transpose_b ? some_operand(n, k, option & 16, NAN, kind)
                        : some_operand(k, n, option & 16, NAN, kind);
    p.c = some_operand(m, n, half_c, SL_CANARY, p.own_mask ? SL_INTEGERS : kind);
    p.mask = some_operand(m, n, half_c, NAN, SL_INTEGERS);
    const int steps = p.finishes ? (int)sl_random_below(SL_STEPS_ALL + 1) & ~SL_STEP_MASK : 0;
    p.epilogue = sl_guarded_epilogue_random(steps, m, n, SL_PADDED);
    return p;
}

static void free_product(struct product *p)
{
    struct operand *const all[] = {&p->a, &p->b, &p->c, &p->mask};
    for (size_t o = 0; o < SL_COUNT(all); o++)
        free_operand(all[o]);
    sl_guarded_epilogue_free(&p->epilogue);
}

static struct sl_gemm gemm_of(const struct product *p)
{
    return (struct sl_gemm){.transpose_a = p->transpose_a,
                            .transpose_b = p->transpose_b,
                            .accumulate = p->accumulate,
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .a = p->a.rows,
                            .b = p->b.rows,
                            .c = p->c.rows};
}

/* Element (r, i) of op(X), rounded if `rounds`. */
static double element_of(const struct operand *x, bool transposed, bool rounds, int64_t r,
                         int64_t i)
{
    const float value = transposed ? *sl_element(&x->floats, i, r) : *sl_element(&x->floats, r, i);
    return (double)(rounds && !x->half ? sl_widen(sl_narrow(value)) : value);
}

static bool is_mixed(const struct product *p)
{
    return p->a.half != p->b.half;
}

/* The sums, and by how much they may be off: as float32's, and by `slack` of each term. `rounds`:
 * of operands that were rounded. */
static void sum_up(const struct product *p, bool rounds, double slack, double *want, double *bound)
{
    for (int64_t r = 0; r < p->m; r++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->accumulate ? (double)*sl_element(&p->c.floats, r, j) : 0.0;
            double size = fabs(sum);
            for (int64_t i = 0; i < p->k; i++) {
                const double term = element_of(&p->a, p->transpose_a, rounds, r, i) *
                                    element_of(&p->b, p->transpose_b, rounds, i, j);
                sum += term;
                size += fabs(term);
            }
            want[r * p->n + j] = sum;
            bound[r * p->n + j] = (((double)p->k + 4.0) * SL_UNIT + slack) * size;
        }
}

static double got_at(const struct product *p, int64_t r, int64_t j)
{
    return (double)(p->c.half ? sl_widen(*sl_narrowed_at(&p->c.halves, r, j))
                              : *sl_element(&p->c.floats, r, j));
}

static void compare(const struct product *p, const char *what, const double *want,
                    const double *bound)
{
    for (int64_t r = 0; r < p->m; r++)
        for (int64_t j = 0; j < p->n; j++) {
            const double x = want[r * p->n + j], b = bound[r * p->n + j];
            const double off = b + (p->c.half ? HALF_UNIT * (fabs(x) + b) : SL_UNIT * fabs(x));
            if (!(fabs(got_at(p, r, j) - x) <= off))
                fail_msg("%s (%s), %s%s%s%s%s: element (%lld, %lld) of %lld x %lld x %lld is %.9g, "
                         "not %.9g within %.3g",
                         what, sl_level_name(), p->a.half ? "bfloat16 " : "float32 ",
                         p->b.half ? "bfloat16" : "float32", p->transpose_a ? ", A'" : "",
                         p->transpose_b ? ", B'" : "", p->finishes ? ", epilogue" : "",
                         (long long)r, (long long)j, (long long)p->m, (long long)p->n,
                         (long long)p->k, got_at(p, r, j), x, off);
        }
    if (!p->c.half && p->finishes)
        sl_expect_vectors_only(what, &p->c.floats);
    else if (!p->c.half)
        sl_expect_padding_kept(what, &p->c.floats);
}

/* ---- All combinations ---- */

/* The right C, and the bound of its error. */
struct expectation {
    double *want, *bound; // (m, n)
};

static struct expectation expectation_of(const struct product *p,
                                         const struct sl_epilogue *epilogue, bool rounds,
                                         double slack)
{
    const struct expectation e = {sl_doubles(p->m * p->n), sl_doubles(p->m * p->n)};
    sum_up(p, rounds, slack, e.want, e.bound);
    if (epilogue)
        sl_naive_epilogue(epilogue, p->m, p->n, e.want, e.bound);
    return e;
}

static void expect(const struct product *p, const char *what, struct expectation *e)
{
    compare(p, what, e->want, e->bound);
    free(e->want);
    free(e->bound);
}

static void check_product(int64_t m, int64_t n, int64_t k, int option)
{
    static int64_t place;
    if (!sl_takes(m * n * k) || !sl_in_sample(place++))
        return;
    struct product p = make_product(m, n, k, option);
    const struct operand *mask = p.own_mask ? &p.c : &p.mask;
    struct sl_epilogue there = p.epilogue.view, here = p.epilogue.view;
    there.mask = mask->rows;
    here.mask = sl_rows_of(&mask->floats);
    const struct sl_epilogue *finish = p.finishes ? &here : NULL;
    struct expectation plain = expectation_of(&p, finish, false, is_mixed(&p) ? HALF_UNIT : 0.0),
                       rounded = expectation_of(&p, finish,
                                                is_mixed(&p) && sl_gemm_bfloat16_is_fast(), 0.0);
    struct sl_gemm gemm = gemm_of(&p);
    gemm.epilogue = p.finishes ? &there : NULL;
    sl_kernel_gemm(&gemm);
    expect(&p, "product", &plain);
    expect(&p, "product of rounded operands", &rounded);
    free_product(&p);
}

SL_TEST(test_sizes)
{
    static const int64_t sizes[] = {1, 2, 3, 15, 16, 17, 63, 65, 129, 300, 2049};
    enum { SIZES = SL_COUNT(sizes), MOST = 400000 };
    sl_random_seed(21);
    for (int level = 0; sl_next_level(&level);)
        for (int s = 0; s < SIZES * SIZES * SIZES; s++) {
            const int64_t m = sizes[s % SIZES], n = sizes[s / SIZES % SIZES],
                          k = sizes[s / SIZES / SIZES];
            if (m * n * k <= MOST)
                check_product(m, n, k, (int)sl_random_below(OPTIONS));
        }
}

/* Every combination, of sizes that take several pieces. */
SL_TEST(test_pieces)
{
    static const int64_t sizes[][3] = {{300, 17, 65}, {129, 41, 3}, {17, 2049, 15}, {65, 16, 2049}};
    sl_random_seed(22);
    for (int level = SL_INSTRUCTIONS_V3; sl_next_level(&level);)
        for (size_t s = 0; s < SL_COUNT(sizes); s++)
            for (int option = 0; option < OPTIONS; option++)
                check_product(sizes[s][0], sizes[s][1], sizes[s][2], option);
}

/* Large ones: terms in several pieces of rows, columns and sums. */
SL_TEST(test_large)
{
    static const int64_t sizes[][3] = {{2049, 63, 300}, {300, 129, 2049}, {63, 300, 2049},
                                       {65, 2049, 129}, {2049, 65, 129},  {9, 2100, 2100}};
    sl_random_seed(23);
    for (size_t s = 0; s < SL_COUNT(sizes); s++)
        for (int option = 0; option < OPTIONS; option += 1 + (int)sl_random_below(20))
            check_product(sizes[s][0], sizes[s][1], sizes[s][2], option);
}

/* ---- The same bits ---- */

/* A thread's own result of a product of the same operands, in another layout. */
struct repetition {
    const struct product *product;
    struct sl_guarded a, b, c;
    struct sl_narrowed half_a, half_b;
};

static struct repetition repetition_of(const struct product *p)
{
    struct repetition r = {.product = p,
                           .a = sl_guarded_copy(&p->a.floats, some_layout(), NAN),
                           .b = sl_guarded_copy(&p->b.floats, some_layout(), NAN),
                           .c = sl_guarded_copy(&p->c.floats, some_layout(), SL_CANARY)};
    r.half_a = sl_narrowed_of(&r.a, sl_some_spare());
    r.half_b = sl_narrowed_of(&r.b, sl_some_spare());
    return r;
}

static void free_repetition(struct repetition *r)
{
    struct sl_guarded *const all[] = {&r->a, &r->b, &r->c, &r->half_a.words, &r->half_b.words};
    for (size_t m = 0; m < SL_COUNT(all); m++)
        sl_guarded_free(all[m]);
}

static void *repeat(void *context)
{
    struct repetition *r = context;
    struct sl_gemm gemm = gemm_of(r->product);
    gemm.a = r->product->a.half ? r->half_a.rows : sl_rows_of(&r->a);
    gemm.b = r->product->b.half ? r->half_b.rows : sl_rows_of(&r->b);
    gemm.c = sl_rows_of(&r->c);
    sl_kernel_gemm(&gemm);
    return NULL;
}

/* Here twice, and in two threads at the same time. */
static void check_repetitions(int64_t m, int64_t n, int64_t k, int option)
{
    enum { TIMES = 4, THREADS = 2 };
    if (!sl_takes(m * n * k))
        return;
    struct product p = make_product(m, n, k, option);
    struct repetition r[TIMES];
    pthread_t thread[THREADS];
    for (int t = 0; t < TIMES; t++)
        r[t] = repetition_of(&p);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, repeat, &r[t]), 0);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(thread[t], NULL), 0);
    for (int t = THREADS; t < TIMES; t++)
        repeat(&r[t]);
    for (int t = 1; t < TIMES; t++)
        sl_expect_same_bits("product", &r[0].c, &r[t].c);
    for (int t = 0; t < TIMES; t++)
        free_repetition(&r[t]);
    free_product(&p);
}

SL_TEST(test_same_bits)
{
    static const int64_t sizes[][3] = {{1, 1, 1},       {300, 41, 129}, {65, 256, 300},
                                       {256, 41, 1500}, {2049, 17, 63}, {3, 1, 600},
                                       {1, 5, 600}};
    sl_random_seed(24);
    for (int level = 0; sl_next_level(&level);)
        for (size_t s = 0; s < SL_COUNT(sizes); s++)
            for (int option = 0; option < 8; option++) {
                check_repetitions(sizes[s][0], sizes[s][1], sizes[s][2], option);
                check_repetitions(sizes[s][0], sizes[s][1], sizes[s][2], option | 8 | 16);
            }
}

/* The tasks of this process, one for each thread. */
static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

/* A product is one worker's task: it starts no threads. First of all tests. */
SL_TEST(test_starts_no_threads)
{
    for (int option = 0; option <= (8 | 16); option += 8 | 16) {
        struct product p = make_product(2000, 256, 256, option);
        const struct sl_gemm gemm = gemm_of(&p);
        const int before = count_threads();
        sl_kernel_gemm(&gemm);
        assert_int_equal(count_threads(), before);
        free_product(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_no_threads),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_same_bits),
    };
    printf("bfloat16 is multiplied in %s\n", sl_gemm_bfloat16_is_fast() ? "bfloat16" : "float32");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
