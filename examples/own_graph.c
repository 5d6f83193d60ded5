/* A program with MPI of its own brings a graph: two rings of vertices, which a model tells apart.
 *
 *     mpicc own_graph.c $(pkg-config --cflags --libs starling) -o own_graph
 *     mpirun -n 2 ./own_graph */
#include <stdio.h>

#include <mpi.h>
#include <starling.h>

enum { N = 200, DEGREE = 4, FEATURES = 8 };

/* Keep the vertices of one parity of each ring. All ranks make the same arrays, and each reads its
 * rows. */
static int64_t indptr[N + 1];
static int32_t indices[N * DEGREE], labels[N];
static float features[N * FEATURES];
static uint8_t train[N], test[N];

static void make_graph(void)
{
    static const int steps[DEGREE] = {N - 4, N - 2, 2, 4};
    for (int v = 0; v < N; v++) {
        indptr[v + 1] = indptr[v] + DEGREE;
        for (int k = 0; k < DEGREE; k++)
            indices[v * DEGREE + k] = (v + steps[k]) % N;
        labels[v] = v % 2;
        train[v] = v % 5 < 2;
        test[v] = !train[v];
        for (int j = 0; j < FEATURES; j++) /* noise, and a little of the class */
            features[v * FEATURES + j] = (float)((v * 37 + j * 101) % 64) / 64.0f +
                                         (j == 0 ? 0.5f * (float)labels[v] : 0.0f);
    }
}

static int run(int rank)
{
    starling_graph *graph = NULL;
    starling_options *options = NULL;
    starling_model *model = NULL;
    make_graph();
    int code = starling_graph_create(N, indptr[N], indptr, indices, &graph);
    if (!code)
        code = starling_graph_set_features(graph, FEATURES, features);
    if (!code)
        code = starling_graph_set_classes(graph, 2, labels);
    if (!code)
        code = starling_graph_set_mask(graph, STARLING_TRAIN, train);
    if (!code)
        code = starling_graph_set_mask(graph, STARLING_TEST, test);
    if (!code)
        code = starling_options_create(&options);
    if (!code)
        code = starling_options_set(options, "tiles", "4");
    if (!code) /* the same bits on any number of ranks */
        code = starling_options_set(options, "distribution", "1d");
    if (!code)
        code = starling_train(graph, options, NULL, NULL, &model);
    if (!code && rank == 0)
        printf("loss %.17g, test accuracy %.4f\n", starling_model_result(model)->loss,
               starling_model_result(model)->test_accuracy);
    if (code && starling_error()[0])
        fprintf(stderr, "own_graph: %s\n", starling_error());
    starling_model_free(model);
    starling_options_free(options);
    starling_graph_free(graph);
    return code;
}

int main(int argc, char **argv)
{
    int provided, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int code = run(rank);
    starling_finish();
    MPI_Barrier(MPI_COMM_WORLD); /* MPI is still the program's */
    MPI_Finalize();
    return code != 0;
}
