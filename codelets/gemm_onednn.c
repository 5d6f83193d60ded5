/* Dense products by oneDNN.
 *
 * For products of bfloat16, oneDNN compiles a program for each shape. Each thread makes and keeps
 * programs of its own, because a program's working memory belongs to the thread that made it. All
 * threads share the compiled code, which oneDNN remembers. For products of float32, oneDNN has one
 * function for all shapes, as a BLAS has. */
#include "codelets/gemm_onednn.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/instructions.h"
#include "config.h"
#include "core/error.h"

/* The shape on which a program depends. The struct has no padding: it is compared byte by byte. */
struct shape {
    int64_t m, n, k;
    int64_t transpose_a, transpose_b, accumulate;
};

enum { A, B, C, OPERANDS };
static const int argument_of[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};

struct program {
    struct shape shape;
    dnnl_primitive_t primitive; /* NULL: the place is free */
    dnnl_memory_t memory[OPERANDS];
};

/* A shape's place is among WAYS from its hash on. */
enum { PLACES = 512, WAYS = 8 };

struct programs {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct program place[PLACES + WAYS];
};

static _Thread_local struct programs *own;

/* State that start() sets once for the process. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static void (*set_threads)(
    int);                 /* function of OpenMP that sets the number of threads; NULL: no OpenMP */
static bool able;         /* the processor multiplies bfloat16 */
static bool able_float32; /* oneDNN has code of its own for the processor's vectors */
static bool blas_likes_small; /* OpenBLAS has kernels for small products on this processor */

static void check(const char *call, dnnl_status_t status)
{
    if (status != dnnl_success)
        sl_fatal("oneDNN: %s: status %d", call, (int)status);
}

/* ---- What oneDNN 2 and 3 say differently ---- */

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t description;

static description describe(const dnnl_dims_t dims, dnnl_data_type_t type,
                            const dnnl_dims_t strides)
{
    description d;
    check("dnnl_memory_desc_init_by_strides",
          dnnl_memory_desc_init_by_strides(&d, 2, dims, type, strides));
    return d;
}

static void forget(description *d)
{
    (void)d;
}

static dnnl_memory_t memory_of(const description *d, dnnl_engine_t engine)
{
    dnnl_memory_t memory;
    check("dnnl_memory_create", dnnl_memory_create(&memory, d, engine, DNNL_MEMORY_NONE));
    return memory;
}

static void add_to_result(dnnl_post_ops_t steps)
{
    check("dnnl_post_ops_append_sum", dnnl_post_ops_append_sum(steps, 1.0f));
}

static dnnl_primitive_desc_t product_of(const description *d, dnnl_primitive_attr_t attributes,
                                        dnnl_engine_t engine)
{
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t made;
    check("dnnl_matmul_desc_init", dnnl_matmul_desc_init(&product, &d[A], &d[B], NULL, &d[C]));
    check("dnnl_primitive_desc_create",
          dnnl_primitive_desc_create(&made, &product, attributes, engine, NULL));
    return made;
}
#else
typedef dnnl_memory_desc_t description;

static description describe(const dnnl_dims_t dims, dnnl_data_type_t type,
                            const dnnl_dims_t strides)
{
    description d;
    check("dnnl_memory_desc_create_with_strides",
          dnnl_memory_desc_create_with_strides(&d, 2, dims, type, strides));
    return d;
}

static void forget(description *d)
{
    dnnl_memory_desc_destroy(*d);
}

static dnnl_memory_t memory_of(const description *d, dnnl_engine_t engine)
{
    dnnl_memory_t memory;
    check("dnnl_memory_create", dnnl_memory_create(&memory, *d, engine, DNNL_MEMORY_NONE));
    return memory;
}

static void add_to_result(dnnl_post_ops_t steps)
{
    check("dnnl_post_ops_append_sum",
          dnnl_post_ops_append_sum(steps, 1.0f, 0, dnnl_data_type_undef));
}

static dnnl_primitive_desc_t product_of(const description *d, dnnl_primitive_attr_t attributes,
                                        dnnl_engine_t engine)
{
    dnnl_primitive_desc_t made;
    check("dnnl_matmul_primitive_desc_create",
          dnnl_matmul_primitive_desc_create(&made, engine, d[A], d[B], NULL, d[C], attributes));
    return made;
}
#endif

/* ---- Programs ---- */

static description describe_operand(int64_t rows, int64_t cols, bool transposed,
                                    dnnl_data_type_t type)
{
    const dnnl_dims_t dims = {rows, cols}, strides = {transposed ? 1 : cols, transposed ? rows : 1};
    return describe(dims, type, strides);
}

/* Make the program of a shape. After a failure, its place stays free. */
static struct program make_program(const struct programs *programs, const struct shape *s)
{
    description d[OPERANDS] = {
        describe_operand(s->m, s->k, s->transpose_a, dnnl_bf16),
        describe_operand(s->k, s->n, s->transpose_b, dnnl_bf16),
        describe_operand(s->m, s->n, false, dnnl_f32),
    };
    struct program made = {.shape = *s};
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t steps;
    check("dnnl_primitive_attr_create", dnnl_primitive_attr_create(&attributes));
    check("dnnl_post_ops_create", dnnl_post_ops_create(&steps));
    if (s->accumulate)
        add_to_result(steps);
    check("dnnl_primitive_attr_set_post_ops", dnnl_primitive_attr_set_post_ops(attributes, steps));
    dnnl_primitive_desc_t product = product_of(d, attributes, programs->engine);
    check("dnnl_primitive_create", dnnl_primitive_create(&made.primitive, product));
    for (int o = 0; o < OPERANDS; o++) {
        made.memory[o] = memory_of(&d[o], programs->engine);
        forget(&d[o]);
    }
    dnnl_primitive_desc_destroy(product);
    dnnl_post_ops_destroy(steps);
    dnnl_primitive_attr_destroy(attributes);
    return made;
}

static void drop_program(struct program *program)
{
    for (int o = 0; program->primitive && o < OPERANDS; o++)
        dnnl_memory_destroy(program->memory[o]);
    if (program->primitive)
        dnnl_primitive_destroy(program->primitive);
    *program = (struct program){.primitive = NULL};
}

static uint64_t hash_of(const struct shape *shape)
{
    int64_t words[sizeof *shape / sizeof(int64_t)];
    uint64_t hash = 0;
    memcpy(words, shape, sizeof words);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        hash = (hash ^ (uint64_t)words[w]) * 0x9E3779B97F4A7C15;
    return hash >> 32;
}

/* Return the program for a shape. If all its places are taken, a new program replaces the first
 * one. */
static const struct program *find_program(struct programs *programs, const struct shape *shape)
{
    struct program *first = &programs->place[hash_of(shape) % PLACES], *at = first;
    while (at < first + WAYS && at->primitive && memcmp(&at->shape, shape, sizeof *shape) != 0)
        at++;
    if (at < first + WAYS && at->primitive)
        return at;
    if (at == first + WAYS)
        at = first;
    drop_program(at);
    *at = make_program(programs, shape);
    return at;
}

/* ---- Threads ---- */

static void destroy(void *context)
{
    struct programs *programs = context;
    for (int p = 0; p < PLACES + WAYS; p++)
        drop_program(&programs->place[p]);
    dnnl_stream_destroy(programs->stream);
    dnnl_engine_destroy(programs->engine);
    free(programs);
}

static bool has(dnnl_cpu_isa_t wanted)
{
    return ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == (unsigned)wanted;
}

/* Set the process's state. oneDNN runs in order or by OpenMP (m4/sl_onednn.m4), which must be told
 * the number of threads. */
static void start(void)
{
    if (pthread_key_create(&key, destroy))
        return; /* without a key, the BLAS multiplies */
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    const bool alone = set_threads || DNNL_CPU_RUNTIME == DNNL_RUNTIME_SEQ;
    able = alone && has(dnnl_cpu_isa_avx512_core_bf16);
    able_float32 = alone && SL_ONEDNN_FLOAT32 && has(dnnl_cpu_isa_avx2);
    blas_likes_small = has(dnnl_cpu_isa_avx512_core);
}

/* Return the calling thread's programs. OpenMP starts no other threads for it. */
static struct programs *programs_of_thread(void)
{
    if (own)
        return own;
    if (set_threads)
        set_threads(1);
    struct programs *programs = calloc(1, sizeof *programs);
    if (!programs || pthread_setspecific(key, programs))
        sl_fatal("no memory for the products of a thread");
    check("dnnl_engine_create", dnnl_engine_create(&programs->engine, dnnl_cpu, 0));
    check("dnnl_stream_create",
          dnnl_stream_create(&programs->stream, programs->engine, dnnl_stream_default_flags));
    own = programs;
    return own;
}

/* ---- Products of bfloat16 ---- */

bool sl_gemm_bfloat16_is_fast(void)
{
    pthread_once(&once, start);
    return able && sl_instructions_get() == SL_INSTRUCTIONS_BF16;
}

void sl_gemm_bfloat16(const struct sl_gemm *g)
{
    struct programs *programs = programs_of_thread();
    const struct shape shape = {g->m, g->n, g->k, g->transpose_a, g->transpose_b, g->accumulate};
    const struct program *program = find_program(programs, &shape);
    void *const data[OPERANDS] = {g->a.data, g->b.data, g->c.data};
    dnnl_exec_arg_t arguments[OPERANDS];
    for (int o = 0; o < OPERANDS; o++) {
        check("dnnl_memory_set_data_handle",
              dnnl_memory_set_data_handle(program->memory[o], data[o]));
        arguments[o] = (dnnl_exec_arg_t){argument_of[o], program->memory[o]};
    }
    check("dnnl_primitive_execute",
          dnnl_primitive_execute(program->primitive, programs->stream, OPERANDS, arguments));
}

/* ---- Products of float32 ---- */

/* OpenBLAS 0.3.21 takes 1.05 to 2 times as long as oneDNN for most shapes, with AVX2 and with
 * AVX-512. It is as fast or faster where a transposed A has many columns. It has kernels of AVX-512
 * for products of up to 10^6 terms, which are slow only where B is transposed. Bits of a product
 * with a vector would depend on the distance between its elements. Before its first product, oneDNN
 * compiles code for 25 ms: a run whose products are all tiny ends sooner without it. */
bool sl_gemm_float32_is_fast(const struct sl_gemm *g)
{
    enum { MANY = 512, SMALL = 1000000, TINY = 160000 };
    if (g->m * g->n * g->k <= TINY)
        return false;
    pthread_once(&once, start);
    return able_float32 && g->m > 1 && g->n > 1 && !(g->transpose_a && g->m > MANY) &&
           !(blas_likes_small && !g->transpose_b && g->m * g->n * g->k <= SMALL);
}

void sl_gemm_float32(const struct sl_gemm *g)
{
    programs_of_thread();
    check("dnnl_sgemm", dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m,
                                   g->n, g->k, 1.0f, g->a.data, g->a.ld, g->b.data, g->b.ld,
                                   g->accumulate ? 1.0f : 0.0f, g->c.data, g->c.ld));
}
