/* Memory that matrices share: places grow, matrices wait for one another, parts of gradients of
 * batches take memory once, wait for their readers, and stay idle beyond what a layer reads. */
#include <time.h>

#include "codelets/epilogue.h"
#include "run/fits.h"
#include "tests/batch_run.h"

static int first_rank(const void *context, int i, int j)
{
    (void)context;
    return 0 * i * j;
}

/* Memory that is too small for a later matrix is replaced: matrices must not keep the old one. */
SL_TEST(test_place_grows)
{
    static const int64_t small[] = {0, 10}, large[] = {0, 100}, cols[] = {0, 8};
    struct sl_place place = {.shared = true};
    struct sl_matrix a, b;
    struct sl_cuts cuts = {1, 1, small, cols, first_rank, NULL};
    assert_int_equal(sl_matrix_describe(&sl_running, &a, SL_FLOAT32, &cuts), 0);
    assert_int_equal(sl_place_add(&place, &a), 0);
    assert_int_equal(sl_place_allocate(&sl_running, &place), 0);
    sl_place_take(&sl_running, &place, &a);
    sl_tile_acquire(&sl_running, &a.tiles[0], true);
    sl_tile_release(&a.tiles[0]);
    cuts.row_cut = large;
    assert_int_equal(sl_matrix_describe(&sl_running, &b, SL_FLOAT32, &cuts), 0);
    assert_int_equal(sl_place_add(&place, &b), 0);
    assert_int_equal(sl_place_allocate(&sl_running, &place), 0);
    sl_place_take(&sl_running, &place, &b);
    sl_place_take(&sl_running, &place, &a);
    const void *after = sl_tile_acquire(&sl_running, &a.tiles[0], true);
    sl_tile_release(&a.tiles[0]);
    assert_ptr_equal(after, place.memory);
    sl_place_remove(&place, &a);
    sl_place_remove(&place, &b);
    sl_matrix_destroy(&a);
    sl_matrix_destroy(&b);
    sl_place_free(&place);
}

static void fill(struct sl_matrix *matrix, float value)
{
    float *x = sl_tile_acquire(&sl_running, &matrix->tiles[0], true);
    for (int64_t i = 0; i < matrix->tiles[0].rows * matrix->tiles[0].ld; i++)
        x[i] = value;
    sl_tile_release(&matrix->tiles[0]);
}

/* A rank may have no rows of a batch. The batch after it still waits for the batch before it. */
SL_TEST(test_no_rows_between)
{
    static const int64_t none[] = {0, 0}, some[] = {0, 10}, cols[] = {0, 8};
    const struct timespec long_enough_to_write = {.tv_nsec = 200 * 1000 * 1000};
    struct sl_place place = {.shared = true};
    struct sl_matrix a, empty, b, x, *of_place[] = {&a, &empty, &b};
    for (int m = 0; m < 3; m++) {
        const struct sl_cuts cuts = {1, 1, m == 1 ? none : some, cols, first_rank, NULL};
        assert_int_equal(sl_matrix_describe(&sl_running, of_place[m], SL_FLOAT32, &cuts), 0);
        assert_int_equal(sl_place_add(&place, of_place[m]), 0);
    }
    const struct sl_cuts cuts = {1, 1, some, cols, first_rank, NULL};
    assert_int_equal(sl_matrix_create(&sl_running, &x, SL_FLOAT32, &cuts), 0);
    fill(&x, 7.0f);
    assert_int_equal(sl_place_allocate(&sl_running, &place), 0);
    sl_place_take(&sl_running, &place, &a);
    fill(&a, 1.0f);
    const float *before = sl_tile_acquire(&sl_running, &a.tiles[0], false);
    sl_place_take(&sl_running, &place, &empty);
    assert_ptr_equal(place.current, &empty);
    sl_place_take(&sl_running, &place, &b);
    sl_submit_epilogue(&sl_running, NULL, &x.tiles[0], &b.tiles[0]);
    nanosleep(&long_enough_to_write, NULL);
    const float seen = before[0];
    sl_tile_release(&a.tiles[0]);
    assert_true(seen == 1.0f);
    const float *after = sl_tile_acquire(&sl_running, &b.tiles[0], false);
    assert_true(after == before && after[0] == 7.0f);
    sl_tile_release(&b.tiles[0]);
    for (int m = 0; m < 3; m++) {
        sl_place_remove(&place, of_place[m]);
        sl_matrix_destroy(of_place[m]);
    }
    sl_matrix_destroy(&x);
    sl_place_free(&place);
}

/* Bytes of the parts of a layer's gradients, in the batch that has most. */
static size_t most_parts(const struct sl_batches *b, int l)
{
    size_t most = 0;
    for (int k = 0; k < b->count; k++) {
        const struct sl_matrix *parts = &b->batch[k].pass.network.layer[l].back.gradients;
        const size_t bytes = sl_matrix_own_bytes(&sl_running, parts);
        assert_true(parts->lent || bytes == 0);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Parts of gradients take memory once, whatever the number of batches, and so says the plan. */
SL_TEST(test_parts_of_gradients_are_shared)
{
    enum { LINE = 64 };
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_opened run;
    size_t most = 0;
    open_run(&run, &data, "--model resgcn --layers 3 --dropout 0", "co:5");
    struct sl_batches *b = &run.trainer.batches;
    assert_int_equal(b->count, 5);
    for (int l = 0; l < run.trainer.model.layers; l++)
        most += (most_parts(b, l) + LINE - 1) / LINE * LINE;
    assert_true(most > 0);
    assert_int_equal(sl_places_bytes(&b->places, SL_PLACE_GRADIENTS), most);
    assert_int_equal(sl_trainer_plan(&run.trainer).bytes[SL_PLAN_GRADIENTS], most);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

/* A batch writes its gradients once nobody reads those of the batch before. */
SL_TEST(test_parts_of_gradients_wait)
{
    const struct timespec long_enough_to_write = {.tv_nsec = 200 * 1000 * 1000};
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_opened run;
    open_run(&run, &data, "--dropout 0", "co:2");
    struct sl_tile *tile = step(&run, 1, 0, 1)->layer[0].back.summed;
    const size_t bytes = (size_t)(tile->rows * tile->ld) * sizeof(float);
    float *before = malloc(bytes);
    const float *g = sl_tile_acquire(&sl_running, tile, false);
    memcpy(before, g, bytes);
    struct sl_network *next = step(&run, 1, 1, 2);
    nanosleep(&long_enough_to_write, NULL);
    assert_memory_equal(g, before, bytes);
    sl_tile_release(tile);
    g = sl_tile_acquire(&sl_running, next->layer[0].back.summed, false);
    assert_memory_not_equal(g, before, bytes);
    sl_tile_release(next->layer[0].back.summed);
    free(before);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

/* A batch computes no parts of rows that its layers do not read, whoever had the memory before. */
SL_TEST(test_parts_of_gradients_stay_idle)
{
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_opened run;
    int idle = 0;
    open_run(&run, &data, "--dropout 0 --layers 3 --tiles 12", "co:4");
    for (int s = 0; s < 2 * run.trainer.batches.steps; s++) {
        const int steps = run.trainer.batches.steps;
        const struct sl_network *net = step(&run, 1 + s / steps, s % steps, 1);
        const struct sl_layer *last = net ? &net->layer[net->layers - 1] : NULL;
        const int *hop = net ? net->graph->distribution->hop : NULL;
        const int tiles = net ? net->graph->distribution->tiles : 0;
        for (int i = 0; i < tiles; i++) {
            const struct sl_tile *part =
                &last->back.gradients.tiles[i * (last->back.gradients.tile_rows / tiles)];
            const int hops = last->order == SL_GEMM_FIRST ? 1 : 0;
            assert_int_equal(part->idle, hop && hop[i] > hops);
            idle += part->idle;
        }
    }
    assert_true(idle > 0);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

/* A layer writes its output while it reads the output of the layer before. The output of the layer
 * before that one is free: an evaluation needs two places. */
SL_TEST(test_outputs_take_turns)
{
    struct sl_dataset data = sl_fixture_open(&fixtures[0]);
    struct sl_opened run;
    int again = 0;
    open_run(&run, &data, "--dropout 0 --layers 5", "co:2");
    const struct sl_network *net = &run.trainer.whole.network;
    for (int l = 1; l < net->layers; l++) {
        const struct sl_place *own = net->layer[l].output.place;
        assert_non_null(own);
        assert_ptr_not_equal(own, net->layer[l - 1].output.place);
        again += l > 1 && own == net->layer[l - 2].output.place;
    }
    assert_true(again > 0);
    sl_opened_close(&run);
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_grows),
        cmocka_unit_test(test_no_rows_between),
        cmocka_unit_test(test_parts_of_gradients_are_shared),
        cmocka_unit_test(test_parts_of_gradients_wait),
        cmocka_unit_test(test_parts_of_gradients_stay_idle),
        cmocka_unit_test(test_outputs_take_turns),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
