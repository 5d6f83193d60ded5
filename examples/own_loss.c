/* A loss of one's own: the focal loss of Lin et al. (ICCV 2017), -(1 - p)^g log p, where p is the
 * probability of the right class. Usage: own_loss DATASET
 *
 *     cc own_loss.c $(pkg-config --cflags --libs starling) -lm -o own_loss */
#include <math.h>
#include <starling.h>
#include <stdio.h>

/* Row r: dL/dz_j = (g (1 - p)^(g - 1) p log p - (1 - p)^g) (1 or 0 - p_j). */
static void focal_loss(void *context, const struct starling_loss_rows *rows)
{
    const double g = *(const double *)context;
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *z = rows->logits + r * rows->columns;
        const int32_t right = rows->classes[r];
        double most = z[0], sum = 0.0;
        for (int64_t j = 1; j < rows->columns; j++)
            most = fmax(most, z[j]);
        for (int64_t j = 0; j < rows->columns; j++)
            sum += exp(z[j] - most);
        const double log_p = z[right] - most - log(sum), p = exp(log_p), rest = -expm1(log_p);
        const double slope = g * pow(rest, g - 1.0) * p * log_p - pow(rest, g);
        rows->loss[r] = -pow(rest, g) * log_p;
        for (int64_t j = 0; rows->gradient && j < rows->columns; j++)
            rows->gradient[r * rows->columns + j] =
                (float)(slope * ((j == right) - exp(z[j] - most) / sum));
    }
}

int main(int argc, char **argv)
{
    double focus = 2.0;
    starling_graph *graph = NULL;
    starling_options *options = NULL;
    starling_model *model = NULL;
    int code = starling_loss_register("focal", STARLING_CLASSES, focal_loss, &focus);
    if (!code)
        code = starling_graph_open(argc > 1 ? argv[1] : "examples/karate", &graph);
    if (!code)
        code = starling_options_create(&options);
    if (!code)
        code = starling_options_set(options, "loss", "focal");
    if (!code)
        code = starling_options_set(options, "epochs", "50");
    if (!code) /* the same bits on any number of ranks */
        code = starling_options_set(options, "distribution", "1d");
    if (!code)
        code = starling_options_set(options, "tiles", "4");
    if (!code)
        code = starling_train(graph, options, NULL, NULL, &model);
    if (!code && starling_rank() == 0)
        printf("loss %.17g, test accuracy %.4f\n", starling_model_result(model)->loss,
               starling_model_result(model)->test_accuracy);
    if (code && starling_error()[0])
        fprintf(stderr, "own_loss: %s\n", starling_error());
    starling_model_free(model);
    starling_options_free(options);
    starling_graph_free(graph);
    starling_finish();
    return code != 0;
}
