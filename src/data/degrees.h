/* Distributions of degrees, and the vertex weights that give these degrees. */
#ifndef SL_DATA_DEGREES_H
#define SL_DATA_DEGREES_H

/* Degrees of 1 + Lomax's law (Pareto type II), cut at `max`: a share (1 + (d - 1) / scale)^-shape
 * of the vertices has a degree above d. A power law in the tail, rounded off where most vertices
 * are. */
struct sl_degree_law {
    double scale, shape, max;
};

/* Return the law with this mean; 1 < mean < max, shape > 1. */
struct sl_degree_law sl_degree_law_make(double mean, double shape, double max);

/* Return the degree that a share `tail` in (0, 1] of the vertices exceeds. */
double sl_degree_law_at(const struct sl_degree_law *law, double tail);

enum { SL_WEIGHT_BINS = 64 };

/* Weights x such that joining u and v with probability 1 - exp(-x_u x_v) gives every vertex its
 * target degree in expectation (the Norros-Reittu model). As long as pairs are seldom joined, x is
 * target / sqrt(sum of targets); towards dense graphs it must be more, by a ratio that is kept for
 * classes of targets. */
struct sl_weight_curve {
    double count[SL_WEIGHT_BINS]; /* vertices of each class of targets */
    double sum[SL_WEIGHT_BINS];   /* sum of the targets in each class */
    double ratio[SL_WEIGHT_BINS], root;
    double far[SL_WEIGHT_BINS], near[SL_WEIGHT_BINS]; /* results of sl_weight_curve_close */
};

/* Add `count` vertices (any positive number) to a curve that was all zero at first. */
void sl_weight_curve_add(struct sl_weight_curve *curve, double target, double count);

/* Find the ratios, once all vertices are added. No target may come near the number of vertices.
 * Where other targets are too small for a large target, it gets a smaller degree. */
void sl_weight_curve_solve(struct sl_weight_curve *curve);

/* Return the weight of a vertex with this target; 0 for a curve that is not solved. */
double sl_weight_curve_at(const struct sl_weight_curve *curve, double target);

/* Compute, for a solved curve, how often two neighbours of a vertex are joined. */
void sl_weight_curve_close(struct sl_weight_curve *curve);

/* Return probabilities by these weights alone, for a vertex with this target; 0 in a curve that is
 * not closed. far: two of its neighbours are joined. near: one of its neighbours is joined to
 * another vertex with this target. */
double sl_weight_curve_far(const struct sl_weight_curve *curve, double target);
double sl_weight_curve_near(const struct sl_weight_curve *curve, double target);

#endif
