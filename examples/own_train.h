/* The common part of the programs own_*.c: train with a loss, a layer or a reducer of one's own.
 */
#include <starling.h>
#include <stdio.h>

/* Train on the dataset argv[1] with options, whose names and values end with NULL, and print the
 * loss. On any number of ranks it has the same bits where options have tiles and the distribution
 * 1d. `code`: of what came before. Return the status of the program. */
static int own_train(int code, int argc, char **argv, const char *const words[][2])
{
    starling_graph *graph = NULL;
    starling_options *options = NULL;
    starling_model *model = NULL;
    if (!code)
        code = starling_graph_open(argc > 1 ? argv[1] : "examples/karate", &graph);
    if (!code)
        code = starling_options_create(&options);
    for (int w = 0; !code && words[w][0]; w++)
        code = starling_options_set(options, words[w][0], words[w][1]);
    if (!code)
        code = starling_train(graph, options, NULL, NULL, &model);
    if (!code && starling_rank() == 0)
        printf("loss %.17g, test accuracy %.4f\n", starling_model_result(model)->loss,
               starling_model_result(model)->test_accuracy);
    if (code && starling_error()[0])
        fprintf(stderr, "%s: %s\n", argv[0], starling_error());
    starling_model_free(model);
    starling_options_free(options);
    starling_graph_free(graph);
    starling_finish();
    return code != 0;
}
