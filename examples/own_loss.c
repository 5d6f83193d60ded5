/* A loss of one's own: the focal loss of Lin et al. (ICCV 2017), -(1 - p)^g log p, where p is the
 * probability of the right class. Usage: own_loss DATASET
 *
 *     cc own_loss.c $(pkg-config --cflags --libs starling) -lm -o own_loss */
#include <math.h>
#include <starling.h>

#include "own_train.h"

/* Row r: dL/dz_j = (g (1 - p)^(g - 1) p log p - (1 - p)^g) (1 or 0 - p_j). */
static void focal_loss(void *context, const struct starling_loss_rows *rows)
{
    const double g = *(const double *)context;
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *z = rows->logits + r * rows->columns;
        const int32_t right = rows->classes[r];
        double most = z[0], sum = 0.0;
        for (int64_t j = 1; j < rows->columns; j++)
            most = z[j] > most ? z[j] : most;
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
    static const char *const words[][2] = {
        {"loss", "focal"}, {"epochs", "50"}, {"tiles", "4"}, {"distribution", "1d"}, {NULL}};
    double focus = 2.0;
    const int code = starling_loss_register("focal", STARLING_CLASSES, focal_loss, &focus);
    return own_train(code, argc, argv, words);
}
