/* Performance models: tasks share a history if, and only if, they last about as long as one
 * another. No task runs here, so that tiles can be large and have no memory. */
#include <dlfcn.h>

#include <starpu.h>

#include "codelets/epilogue.h"
#include "codelets/gemm.h"
#include "codelets/spmm.h"
#include "tests/running.h"
#include "tests/unit.h"

static uint32_t submitted; /* the footprint of the last task */

/* In place of StarPU's, to which only its own tasks go. */
int starpu_task_submit(struct starpu_task *task)
{
    if (!task->cl || !task->cl->model) {
        int (*submit)(struct starpu_task *);
        *(void **)&submit = dlsym(RTLD_NEXT, "starpu_task_submit");
        return submit(task);
    }
    submitted = task->cl->model->footprint(task);
    task->destroy = 0;
    starpu_task_destroy(task);
    return 0;
}

static struct sl_tile some_tile(int64_t rows, int64_t cols, size_t element_size)
{
    struct sl_tile tile;
    sl_tile_describe(&sl_running, &tile, rows, cols, cols, element_size, sl_running.rank, NULL);
    return tile;
}

/* ---- Dense products ---- */

struct gemm {
    int64_t m, n, k;
    size_t a_size, b_size, c_size;
    bool transpose_a, transpose_b, tf32;
    struct sl_epilogue_tiles epilogue;
};

static uint32_t footprint_of_gemm(struct gemm g)
{
    struct sl_tile a = g.transpose_a ? some_tile(g.k, g.m, g.a_size)
                                     : some_tile(g.m, g.k, g.a_size),
                   b = g.transpose_b ? some_tile(g.n, g.k, g.b_size)
                                     : some_tile(g.k, g.n, g.b_size),
                   c = some_tile(g.m, g.n, g.c_size), scales = some_tile(SL_ROW_SCALES, g.m, 4);
    if (g.epilogue.scale != 0.0f)
        g.epilogue.scales = &scales;
    sl_running.tf32 = g.tf32;
    sl_submit_gemm(&sl_running, &(struct sl_gemm_tiles){
                                    .transpose_a = g.transpose_a,
                                    .transpose_b = g.transpose_b,
                                    .m = g.m,
                                    .n = g.n,
                                    .k = g.k,
                                    .a = &a,
                                    .b = &b,
                                    .epilogue = g.epilogue.scale != 0.0f ? &g.epilogue : NULL,
                                    .c = &c,
                                });
    sl_running.tf32 = false;
    struct sl_tile *const all[] = {&a, &b, &c, &scales};
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
        sl_tile_forget(all[t]);
    return submitted;
}

static const struct gemm layer = {
    .m = 100000, .n = 64, .k = 256, .a_size = 4, .b_size = 4, .c_size = 4};

SL_TEST(test_gemm_tells_apart)
{
    enum { WAYS = 12 };
    uint32_t footprint[WAYS];
    struct gemm way[WAYS];
    for (int w = 0; w < WAYS; w++)
        way[w] = layer;
    way[1].tf32 = true;
    way[2].a_size = 2; /* bfloat16 */
    way[3].c_size = 2;
    way[4].a_size = way[4].c_size = 2;
    way[5].transpose_b = true;
    way[6] = (struct gemm){.m = 256, .n = 64, .k = 100000, .a_size = 4, .b_size = 4, .c_size = 4};
    way[7] = way[6];
    way[7].transpose_a = true;
    way[8].epilogue = SL_EPILOGUE_NONE;
    way[9].epilogue = SL_EPILOGUE_NONE;
    way[9].epilogue.drop = sl_dropout_make(0.5, 1);
    way[10].b_size = 2;
    way[11].a_size = way[11].b_size = 2;
    for (int w = 0; w < WAYS; w++)
        footprint[w] = footprint_of_gemm(way[w]);
    for (int a = 0; a < WAYS; a++)
        for (int b = 0; b < a; b++)
            if (footprint[a] == footprint[b])
                fail_msg("ways %d and %d of a dense product share a model", b, a);
}

SL_TEST(test_gemm_shares)
{
    struct gemm other = layer;
    other.m = 101000;
    assert_int_equal(footprint_of_gemm(layer), footprint_of_gemm(other));
    other.m = 25000;
    assert_int_not_equal(footprint_of_gemm(layer), footprint_of_gemm(other));
    assert_int_equal(footprint_of_gemm(layer), footprint_of_gemm(layer));
}

/* ---- Sparse products ---- */

struct spmm {
    int64_t rows, nnz, width;
    int span; /* tiles of H */
    bool has_values;
    size_t h_size, z_size;
};

static uint32_t footprint_of_spmm(struct spmm s)
{
    enum { MOST = 4, HEIGHT = 30000 };
    struct sl_sparse_tile a = {.shape = {.rows = s.rows,
                                         .cols = s.span * HEIGHT,
                                         .nnz = s.nnz,
                                         .block_cols = s.span * HEIGHT,
                                         .has_values = s.has_values},
                               .span = s.span};
    struct sl_tile h[MOST], *h_list[MOST], z = some_tile(s.rows, s.width, s.z_size);
    a.tile = some_tile(1, (int64_t)sl_sparse_bytes(&a.shape), 1);
    for (int t = 0; t < s.span; t++) {
        h[t] = some_tile(HEIGHT, s.width, s.h_size);
        h_list[t] = &h[t];
    }
    sl_submit_spmm(&sl_running,
                   &(struct sl_spmm_tiles){
                       .parts = 1, .a = (struct sl_sparse_tile *[]){&a}, .h = h_list, .z = &z});
    for (int t = 0; t < s.span; t++)
        sl_tile_forget(&h[t]);
    sl_tile_forget(&a.tile);
    sl_tile_forget(&z);
    return submitted;
}

static const struct spmm aggregation = {
    .rows = 30000, .nnz = 3000000, .width = 64, .span = 1, .h_size = 4, .z_size = 4};

SL_TEST(test_spmm_tells_apart)
{
    enum { WAYS = 6 };
    uint32_t footprint[WAYS];
    struct spmm way[WAYS];
    for (int w = 0; w < WAYS; w++)
        way[w] = aggregation;
    way[1].h_size = 2;
    way[2].h_size = way[2].z_size = 2;
    way[3].width = 256, way[3].nnz /= 4; /* the same work */
    way[4].has_values = true;
    way[5].rows /= 4; /* longer rows */
    for (int w = 0; w < WAYS; w++)
        footprint[w] = footprint_of_spmm(way[w]);
    for (int a = 0; a < WAYS; a++)
        for (int b = 0; b < a; b++)
            if (footprint[a] == footprint[b])
                fail_msg("ways %d and %d of a sparse product share a model", b, a);
}

/* How an irregular tile differs from its neighbour, and how many tiles H is cut into. */
SL_TEST(test_spmm_shares)
{
    struct spmm other = aggregation;
    other.nnz += other.nnz / 50;
    other.rows += 500;
    other.span = 3;
    assert_int_equal(footprint_of_spmm(aggregation), footprint_of_spmm(other));
    other.nnz *= 3;
    assert_int_not_equal(footprint_of_spmm(aggregation), footprint_of_spmm(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm_tells_apart),
        cmocka_unit_test(test_gemm_shares),
        cmocka_unit_test(test_spmm_tells_apart),
        cmocka_unit_test(test_spmm_shares),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
