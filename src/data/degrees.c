#include "data/degrees.h"

#include <math.h>

/* --- The law --- */

static double mean_of(const struct sl_degree_law *law)
{
    const double tail = pow(1.0 + (law->max - 1.0) / law->scale, 1.0 - law->shape);
    return 1.0 + law->scale / (law->shape - 1.0) * (1.0 - tail);
}

struct sl_degree_law sl_degree_law_make(double mean, double shape, double max)
{
    struct sl_degree_law law = {.shape = shape, .max = max};
    double low = 0.0, high = 1e12; /* the mean grows with the scale, towards `max` */
    for (int step = 0; step < 100; step++) {
        law.scale = low + (high - low) / 2.0;
        if (mean_of(&law) < mean)
            low = law.scale;
        else
            high = law.scale;
    }
    return law;
}

double sl_degree_law_at(const struct sl_degree_law *law, double tail)
{
    return fmin(law->max, 1.0 + law->scale * (pow(tail, -1.0 / law->shape) - 1.0));
}

/* --- The weights --- */

/* Two classes of targets per octave, from 2^-8; the centre of class b is at b + 0.5. */
static double position(double target)
{
    return fmin(fmax(2.0 * log2(target) + 16.0, 0.0), SL_WEIGHT_BINS - 1);
}

void sl_weight_curve_add(struct sl_weight_curve *curve, double target, double count)
{
    if (target <= 0.0)
        return;
    const int b = (int)position(target);
    curve->count[b] += count;
    curve->sum[b] += target * count;
}

/* Expected degree in class b: all vertices but itself, of every class in proportion. */
static double expect(const struct sl_weight_curve *curve, const double *x, int b)
{
    double degree = 0.0, vertices = 0.0;
    for (int c = 0; c < SL_WEIGHT_BINS; c++)
        if (curve->count[c] > 0.0) {
            degree -= curve->count[c] * expm1(-x[b] * x[c]);
            vertices += curve->count[c];
        }
    return degree * (vertices - 1.0) / vertices;
}

/* Classes without vertices take the ratio of the nearest class below that has some, else above. */
static void fill_gaps(struct sl_weight_curve *curve)
{
    for (int b = 1; b < SL_WEIGHT_BINS; b++)
        if (curve->ratio[b] == 0.0)
            curve->ratio[b] = curve->ratio[b - 1];
    for (int b = SL_WEIGHT_BINS - 2; b >= 0; b--)
        if (curve->ratio[b] == 0.0)
            curve->ratio[b] = curve->ratio[b + 1];
}

void sl_weight_curve_solve(struct sl_weight_curve *curve)
{
    enum { STEPS = 40 };
    double x[SL_WEIGHT_BINS] = {0}, next[SL_WEIGHT_BINS] = {0}, total = 0.0;
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        total += curve->sum[b];
    curve->root = sqrt(total);
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        if (curve->count[b] > 0.0)
            x[b] = curve->sum[b] / curve->count[b] / curve->root;
    /* All weights enter each expectation, so that the square root of the error is a full step. */
    for (int step = 0; step < STEPS; step++) {
        for (int b = 0; b < SL_WEIGHT_BINS; b++)
            if (curve->count[b] > 0.0)
                next[b] = x[b] * sqrt(curve->sum[b] / curve->count[b] / expect(curve, x, b));
        for (int b = 0; b < SL_WEIGHT_BINS; b++)
            x[b] = next[b];
    }
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        curve->ratio[b] =
            curve->count[b] > 0.0 ? x[b] * curve->root * curve->count[b] / curve->sum[b] : 0.0;
    fill_gaps(curve);
}

double sl_weight_curve_at(const struct sl_weight_curve *curve, double target)
{
    if (target <= 0.0 || curve->root <= 0.0)
        return 0.0;
    const double at = fmin(fmax(position(target) - 0.5, 0.0), SL_WEIGHT_BINS - 2);
    const int b = (int)at;
    const double ratio = curve->ratio[b] + (at - b) * (curve->ratio[b + 1] - curve->ratio[b]);
    return ratio * target / curve->root;
}
