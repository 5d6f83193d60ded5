/* How degrees are spread over vertices, and the vertex weights that give these degrees. */
#ifndef SL_DATA_DEGREES_H
#define SL_DATA_DEGREES_H

/* Degrees of 1 + Lomax's law (Pareto type II), cut at `max`: a share (1 + (d - 1) / scale)^-shape
 * of the vertices has a degree above d. A power law in the tail, rounded off where most vertices
 * are.
 */
struct sl_degree_law {
    double scale, shape, max;
};

/* The law of that mean; 1 < mean < max, shape > 1. */
struct sl_degree_law sl_degree_law_make(double mean, double shape, double max);

/* The degree that a share `tail` in (0, 1] of the vertices exceeds. */
double sl_degree_law_at(const struct sl_degree_law *law, double tail);

enum { SL_WEIGHT_BINS = 64 };

/* Weights x such that joining u and v with probability 1 - exp(-x_u x_v) gives every vertex its
 * target degree in expectation (the Norros-Reittu model). As long as pairs are seldom joined, x is
 * target / sqrt(sum of targets); towards dense graphs it must be more, by a ratio that is kept for
 * classes of targets. */
struct sl_weight_curve {
    double count[SL_WEIGHT_BINS]; /* vertices of each class of targets */
    double sum[SL_WEIGHT_BINS];   /* and their targets */
    double ratio[SL_WEIGHT_BINS], root;
    double far[SL_WEIGHT_BINS], near[SL_WEIGHT_BINS]; /* of sl_weight_curve_close */
};

/* Adds `count` vertices (any positive number) to a curve that was all zero at first. */
void sl_weight_curve_add(struct sl_weight_curve *curve, double target, double count);

/* Finds the ratios, once all vertices are added. No target may come near the number of vertices.
 * Where the others' targets are too small for all that some want, these get less. */
void sl_weight_curve_solve(struct sl_weight_curve *curve);

/* The weight of a vertex of that target; 0 for all in a curve that is not solved. */
double sl_weight_curve_at(const struct sl_weight_curve *curve, double target);

/* Finds out, for a solved curve, how often two neighbours of a vertex are joined. */
void sl_weight_curve_close(struct sl_weight_curve *curve);

/* How likely, by these weights alone, two neighbours of a vertex of that target are joined: `far`;
 * and one of them to another vertex of that target: `near`. 0 in a curve that is not closed. */
double sl_weight_curve_far(const struct sl_weight_curve *curve, double target);
double sl_weight_curve_near(const struct sl_weight_curve *curve, double target);

#endif
