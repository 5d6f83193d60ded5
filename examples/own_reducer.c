/* A reducer of one's own: a smooth maximum of the neighbours, log(Σ w e^h), w the weight of the
 * edge. A state is the largest h so far, and Σ w e^(h - largest). Usage: own_reducer DATASET
 *
 *     cc own_reducer.c $(pkg-config --cflags --libs starling) -lm -o own_reducer */
#include <math.h>
#include <starling.h>

#include "own_train.h"

/* Merge (largest, sum) into the state of one element. */
static void add(float largest, float sum, float *first, float *second)
{
    if (sum == 0.0f)
        return;
    if (largest > *first) {
        *second = *second * expf(*first - largest) + sum;
        *first = largest;
    } else {
        *second += sum * expf(largest - *first);
    }
}

static void combine(void *context, int64_t n, float weight, const float *neighbour, float *first,
                    float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        add(neighbour[j], weight, &first[j], &second[j]);
}

static void merge(void *context, int64_t n, const float *other_first, const float *other_second,
                  float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        add(other_first[j], other_second[j], &first[j], &second[j]);
}

/* The result is 0 without neighbours. Its gradient needs it again. */
static void finish(void *context, int64_t n, float *first, float *second)
{
    (void)context;
    for (int64_t j = 0; j < n; j++) {
        first[j] = second[j] > 0.0f ? first[j] + logf(second[j]) : 0.0f;
        second[j] = first[j];
    }
}

/* dz/dh = w e^(h - z) */
static void differentiate(void *context, int64_t n, float weight, const float *neighbour,
                          const float *gradient, const float *second, float *neighbour_gradient)
{
    (void)context;
    for (int64_t j = 0; j < n; j++)
        neighbour_gradient[j] += gradient[j] * weight * expf(neighbour[j] - second[j]);
}

int main(int argc, char **argv)
{
    static const struct starling_reducer reducer = {.start = {-INFINITY, 0.0f},
                                                    .combine = combine,
                                                    .merge = merge,
                                                    .finish = finish,
                                                    .differentiate = differentiate};
    static const char *const words[][2] = {{"model", "sage"},      {"aggregator", "smooth-max"},
                                           {"epochs", "100"},      {"tiles", "4"},
                                           {"distribution", "1d"}, {NULL}};
    const int code = starling_reducer_register("smooth-max", &reducer);
    return own_train(code, argc, argv, words);
}
