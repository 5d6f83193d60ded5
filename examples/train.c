/* Train a model on a dataset, predict, and look at a weight. Usage: train DATASET
 *
 *     cc train.c $(pkg-config --cflags --libs starling) -o train */
#include <inttypes.h>
#include <starling.h>
#include <stdio.h>

static int show(void *context, const struct starling_epoch *e)
{
    (void)context;
    printf("epoch %" PRId64 ": loss %.4f\n", e->epoch, e->loss);
    return 0; /* go on */
}

int main(int argc, char **argv)
{
    starling_graph *graph = NULL;
    starling_options *options = NULL;
    starling_model *model = NULL;
    starling_prediction *prediction = NULL;
    int64_t rows, columns;
    int code = starling_graph_open(argc > 1 ? argv[1] : "examples/karate", &graph);
    if (!code)
        code = starling_options_create(&options);
    if (!code)
        code = starling_options_set(options, "epochs", "50");
    if (!code)
        code = starling_train(graph, options, show, NULL, &model);
    if (!code)
        code = starling_predict(model, graph, options, 0, &prediction);
    if (!code && starling_rank() == 0) {
        const int32_t *classes = starling_prediction_classes(prediction, &rows, &columns);
        const float *weight = starling_model_find(model, "layer.0.weight", NULL, NULL);
        printf("test accuracy %.4f, class of vertex %" PRId64 ": %d, a weight: %g\n",
               starling_model_result(model)->test_accuracy, rows - 1, classes[rows - 1], weight[0]);
    }
    if (code)
        fprintf(stderr, "train: %s\n", starling_error());
    starling_prediction_free(prediction);
    starling_model_free(model);
    starling_options_free(options);
    starling_graph_free(graph);
    starling_finish();
    return code != 0;
}
