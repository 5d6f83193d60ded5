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

/* Return the position of a target among the classes: two classes per octave, from 2^-8; the centre
 * of class b is at b + 0.5. */
static double position(double target)
{
    return fmin(fmax(2.0 * log2(target) + 16.0, 0.0), SL_WEIGHT_BINS - 1);
}

static int class_of(double target)
{
    return (int)position(target);
}

void sl_weight_curve_add(struct sl_weight_curve *curve, double target, double count)
{
    if (target <= 0.0)
        return;
    const int b = class_of(target);
    curve->count[b] += count;
    curve->sum[b] += target * count;
}

/* Return the expected degree in class b: all other vertices, of every class in proportion. */
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

/* Return the value of class b; 0 beyond the classes. */
static double value_at(const double *value, int b)
{
    return b >= 0 && b < SL_WEIGHT_BINS ? value[b] : 0.0;
}

/* Give classes without vertices the value of the nearest class that has some. */
static void fill_gaps(double *value)
{
    double filled[SL_WEIGHT_BINS] = {0};
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        for (int away = 0; away < SL_WEIGHT_BINS && filled[b] == 0.0; away++)
            filled[b] = value_at(value, b - away) > 0.0 ? value_at(value, b - away)
                                                        : value_at(value, b + away);
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        value[b] = filled[b];
}

/* Return the weight of class b where pairs are seldom joined. */
static double sparse_weight(const struct sl_weight_curve *curve, int b)
{
    return curve->sum[b] / curve->count[b] / curve->root;
}

void sl_weight_curve_solve(struct sl_weight_curve *curve)
{
    enum { STEPS = 40 };
    const double most = 16.0; /* limit of a ratio and of its inverse: targets out of reach would
                                 need endless weights */
    double x[SL_WEIGHT_BINS] = {0}, next[SL_WEIGHT_BINS] = {0}, total = 0.0;
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        total += curve->sum[b];
    curve->root = sqrt(total);
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        if (curve->count[b] > 0.0)
            x[b] = sparse_weight(curve, b);
    /* Every expectation depends on all weights, so a step by the square root of the error is a full
     * step. */
    for (int step = 0; step < STEPS; step++) {
        for (int b = 0; b < SL_WEIGHT_BINS; b++) {
            if (curve->count[b] == 0.0)
                continue;
            const double usual = sparse_weight(curve, b);
            next[b] = x[b] * sqrt(curve->sum[b] / curve->count[b] / expect(curve, x, b));
            next[b] = fmin(fmax(next[b], usual / most), usual * most);
        }
        for (int b = 0; b < SL_WEIGHT_BINS; b++)
            x[b] = next[b];
    }
    for (int b = 0; b < SL_WEIGHT_BINS; b++)
        curve->ratio[b] =
            curve->count[b] > 0.0 ? x[b] * curve->root * curve->count[b] / curve->sum[b] : 0.0;
    fill_gaps(curve->ratio);
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

/* Return the probability that vertices of two classes, neither empty, are joined. */
static double join(const struct sl_weight_curve *curve, int b, int c)
{
    return -expm1(-curve->ratio[b] * sparse_weight(curve, b) * curve->ratio[c] *
                  sparse_weight(curve, c));
}

/* Set share (bins) to the share of each class among the neighbours of a vertex of class b. */
static void share_neighbours(const struct sl_weight_curve *curve, int b, double *share)
{
    double all = 0.0;
    for (int c = 0; c < SL_WEIGHT_BINS; c++) {
        share[c] = curve->count[c] > 0.0 ? curve->count[c] * join(curve, b, c) : 0.0;
        all += share[c];
    }
    for (int c = 0; c < SL_WEIGHT_BINS; c++)
        share[c] /= all;
}

static void close_class(struct sl_weight_curve *curve, int b)
{
    double share[SL_WEIGHT_BINS];
    share_neighbours(curve, b, share);
    for (int c = 0; c < SL_WEIGHT_BINS; c++) {
        if (share[c] == 0.0)
            continue;
        curve->near[b] += share[c] * join(curve, b, c);
        for (int e = 0; e < SL_WEIGHT_BINS; e++)
            if (share[e] > 0.0)
                curve->far[b] += share[c] * share[e] * join(curve, c, e);
    }
}

void sl_weight_curve_close(struct sl_weight_curve *curve)
{
    for (int b = 0; b < SL_WEIGHT_BINS; b++) {
        curve->far[b] = curve->near[b] = 0.0;
        if (curve->count[b] > 0.0)
            close_class(curve, b);
    }
    fill_gaps(curve->far);
    fill_gaps(curve->near);
}

double sl_weight_curve_far(const struct sl_weight_curve *curve, double target)
{
    return curve->far[class_of(target)];
}

double sl_weight_curve_near(const struct sl_weight_curve *curve, double target)
{
    return curve->near[class_of(target)];
}
