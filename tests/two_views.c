/* Trainings on views, on the ranks that an MPI launcher started (tests/views.sh). Two ranks train
 * one dataset, the first or the second. Four ranks are two views of two, every other rank, and
 * train both at the same time. What each rank sees is printed: it must be the same. One rank trains
 * on a view of itself, and without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/init.h"
#include "core/error.h"
#include "core/message.h"
#include "core/view.h"
#include "data/fingerprint.h"
#include "tests/fixtures.h"
#include "tests/trained.h"

static const struct {
    const char *fixture, *options;
} trainings[] = {
    {"undirected", "--model gcn --distribution 1d --dropout 0.5"},
    {"directed-weighted", "--model sage --aggregator max --grid 1x1x2 --dropout 0.25"},
};

static uint64_t words_of(const float *numbers, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; numbers && i < count; i++) {
        uint32_t word;
        memcpy(&word, &numbers[i], sizeof word);
        sum = sl_fingerprint_mix(sum ^ word);
    }
    return sum;
}

static void train(struct sl_runtime *rt, int which)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find(trainings[which].fixture));
    struct sl_source source;
    struct sl_trained trained;
    if (sl_source_of(&data, &source) ||
        sl_train(rt, &source, trainings[which].options, false, &trained))
        sl_fatal("%s", sl_error_message());
    printf("training %d rank %d of %d: loss %a %a, parameters %016llx, gradient %016llx, "
           "%lld bytes received, %lld sent in %lld messages\n",
           which, rt->rank, rt->ranks, trained.loss[0], trained.loss[1],
           (unsigned long long)words_of(trained.parameter, trained.parameters),
           (unsigned long long)words_of(trained.gradient, trained.parameters),
           (long long)trained.traffic.bytes_received, (long long)trained.traffic.bytes_sent,
           (long long)trained.traffic.messages);
    sl_trained_free(&trained);
    sl_source_close(&source);
    sl_fixture_close(&data);
}

static float value_in(struct sl_runtime *rt, struct sl_tile *tile)
{
    const float value = *(const float *)sl_tile_acquire(rt, tile, false);
    sl_tile_release(tile);
    return value;
}

/* Two processes share two views. In each view, rank 1 receives the message of rank 0 of the same
 * view. Rank 1 asks for the messages in the other order. */
static void send_apart(struct sl_runtime *first, struct sl_runtime *second, int to)
{
    struct sl_tile x, y;
    if (sl_tile_create(first, &x, 1, 1, sizeof(float), 0) ||
        sl_tile_create(second, &y, 1, 1, sizeof(float), 0))
        sl_fatal("%s", sl_error_message());
    sl_submit_fill(first, 1.0f, &x);
    sl_submit_fill(second, 2.0f, &y);
    if (second->rank == 0)
        sl_tile_send(first, &x, 0, to);
    sl_tile_send(second, &y, 0, 1);
    if (second->rank == 1)
        sl_tile_send(first, &x, 0, to);
    if (second->rank == 1 && (value_in(first, &x) != 1.0f || value_in(second, &y) != 2.0f))
        sl_fatal("the message of one view went to another");
    sl_tile_destroy(&x);
    sl_tile_destroy(&y);
}

/* A view of a view, in which the ranks have other numbers than the processes. */
static void train_both(struct sl_runtime *rt)
{
    struct sl_runtime all, half;
    if (sl_view_split(rt, 0, &all) || sl_view_split(&all, all.rank % 2, &half))
        sl_fatal("%s", sl_error_message());
    if (all.ranks != rt->ranks || all.rank != rt->rank || half.ranks != rt->ranks / 2 ||
        half.rank != rt->rank / 2 || half.all_cores < 1)
        sl_fatal("rank %d of %d is rank %d of a view of %d", rt->rank, rt->ranks, half.rank,
                 half.ranks);
    if (rt->rank % 2 == 0) /* processes 0 and 2 */
        send_apart(&all, &half, 2);
    const struct sl_traffic before = all.traffic;
    train(&half, rt->rank % 2);
    if (rt->traffic.messages || all.traffic.messages != before.messages)
        sl_fatal("messages of a view are counted in another one");
    sl_view_free(&half);
    sl_view_free(&all);
}

/* Without a launcher there is one process, and a view of it. */
static void train_alone(struct sl_runtime *rt)
{
    struct sl_runtime one, again;
    if (sl_view_split(rt, 3, &one) || sl_view_split(&one, 0, &again))
        sl_fatal("%s", sl_error_message());
    if (again.ranks != 1 || again.rank != 0 || again.all_cores < 1)
        sl_fatal("rank %d of %d", again.rank, again.ranks);
    train(&again, 0);
    sl_view_free(&again);
    sl_view_free(&one);
    train(rt, 0);
}

int main(int count, char **words)
{
    struct sl_runtime rt;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    if (rt.ranks == 4)
        train_both(&rt);
    else if (rt.ranks == 1)
        train_alone(&rt);
    else
        train(&rt, count > 1 ? atoi(words[1]) : 0);
    sl_runtime_stop(&rt);
    return 0;
}
