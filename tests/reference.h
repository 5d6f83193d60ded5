/* A graph convolutional network, or GraphSAGE, in double precision, dense and slow, to compare the
 * program with. It shares nothing with the program but the random numbers, so that dropout masks
 * and initial weights can be the same.
 *
 *   H_0 = X,   Z_l = Â·drop_l(H_l)·W_l + b_l,   H_{l+1} = relu(Z_l),   logits = Z_{layers-1}
 *   with two weights: Z_l = drop_l(H_l)·V_l + Â·drop_l(H_l)·W_l + b_l
 *   loss = mean of -log softmax(logits_v)[label_v] over the training vertices v that have a label
 *
 * All parameters stand in one flat array: [V_0,] W_0, b_0, [V_1,] W_1, b_1, … each
 * row-major. Gradients and
 * optimizer state have the same form, so that a test can walk over all of them or over those of one
 * layer.
 *
 * Finite differences need a loss without kinks nearby: relu has one where a pre-activation is 0. A
 * test takes weights for which sl_reference_kink_distance is well above the difference's step times
 * the size of the activations, and another seed otherwise. */
#ifndef SL_TESTS_REFERENCE_H
#define SL_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum sl_reference_norm {
    SL_REFERENCE_SYM,  /* Â = D^-1/2 (A + I) D^-1/2, D = diag of the row sums of A + I */
    SL_REFERENCE_ROW,  /* Â = D^-1 (A + I) */
    SL_REFERENCE_GCN,  /* GraphSAGE's: Â = (C + I)^-1 (A + I), C = diag of the entries of rows of A
                        */
    SL_REFERENCE_MEAN, /* Â = C^-1 A, 0 where C is, and two weights */
    SL_REFERENCE_SUM,  /* Â = A, and two weights */
    SL_REFERENCE_MAX,  /* Â·H is the largest of a(v, u) h(u), 0 of none, and two weights */
    SL_REFERENCE_MIN,  /* the least */
    SL_REFERENCE_NORMS,
};

/* Losses of a training vertex; y_j is 1 for its label, else 0; w_j is 1, or n / (values · count)
 * if balanced. */
enum sl_reference_loss {
    SL_REFERENCE_SOFTMAX, /* Σ t_j · -log softmax(z)_j, t_j = w_j ((1 - E) y_j + E / classes) */
    SL_REFERENCE_SIGMOID, /* mean of w(y_j) (log(1 + e^z_j) - z_j ((1 - E) y_j + E / 2)) */
    SL_REFERENCE_SQUARE,  /* mean of (z_j - y_j)² */
    SL_REFERENCE_LOSSES,
};

/* The arrays belong to the network and start as 0; a test fills them. */
struct sl_reference {
    int64_t n, features, classes;
    int layers;
    int64_t *widths; // (layers + 1): features, hidden widths, classes
    enum sl_reference_norm norm;
    double *a;       // (n, n): entry (v, u) is the weight with which v aggregates from u
    double *x;       // (n, features)
    int32_t *labels; // (n), -1: none
    bool *train;     // (n)
    enum sl_reference_loss loss;
    double smoothing; /* E */
    bool balanced;
    double *dropout;    // (layers): p on the input of each layer; 0 for evaluation
    uint64_t *keys;     // (layers): of the masks
    int64_t parameters; /* in total */
    double *theta;      // (parameters)
};

struct sl_reference *sl_reference_create(int64_t n, int layers, const int64_t *widths,
                                         enum sl_reference_norm norm);
void sl_reference_destroy(struct sl_reference *net);

/* How many weights a layer has: 1, or 2, the vertex's own and its neighbours'. */
int sl_reference_weights(const struct sl_reference *net);

/* W_l (weights · widths[l], widths[l+1]) and b_l (widths[l+1]) inside a flat array: theta, a
 * gradient, a moment. */
double *sl_reference_weight(const struct sl_reference *net, double *flat, int layer);
double *sl_reference_bias(const struct sl_reference *net, double *flat, int layer);

/* Glorot-uniform weights, rounded to float, from sl_rng_key(seed, SL_RNG_INIT, 0, layer); zero
 * biases. */
void sl_reference_initialize(struct sl_reference *net, uint64_t seed);

/* The keys of all layers' masks in an epoch: sl_rng_key(seed, SL_RNG_DROPOUT, epoch, layer). */
void sl_reference_set_epoch(struct sl_reference *net, uint64_t seed, uint32_t epoch);

/* Â (n, n) into `normalized`. */
void sl_reference_normalize(const struct sl_reference *net, double *normalized);

/* logits (n, classes), with the dropout that the network has. */
void sl_reference_forward(const struct sl_reference *net, double *logits);

double sl_reference_loss(const struct sl_reference *net);

/* The share of the labelled vertices of `mask` (n) whose first largest logit is their label; 0 if
 * there are none. */
double sl_reference_accuracy(const struct sl_reference *net, const double *logits,
                             const bool *mask);

/* d loss / d theta by backpropagation into `gradient` (parameters). Returns the loss. */
double sl_reference_gradient(const struct sl_reference *net, double *gradient);

/* The scale of rounding errors: for each parameter the sum of the sizes of all terms of its
 * gradient, as backpropagation adds them, into `terms` (parameters). Another order of sums, or
 * float in place of double, moves a gradient by some roundings of its terms, however small both are
 * beside those of other parameters. Weights of the adjacency are taken as positive. */
void sl_reference_terms(const struct sl_reference *net, double *terms);

/* d loss / d theta[p] by the central difference of step h: (loss(θ_p + h) - loss(θ_p - h)) / 2h.
 * Its error is about h² + 1e-16/h for a loss and curvature near 1: h = 1e-5 is a good choice. theta
 * is as before afterwards. */
double sl_reference_difference(struct sl_reference *net, int64_t p, double h);

/* Return the smallest lead of a largest neighbour above the next smaller one, for SL_REFERENCE_MAX
 * and _MIN. Only layers whose input depends on parameters count; infinite without such layers. */
double sl_reference_lead(const struct sl_reference *net);

/* The smallest |pre-activation| of the hidden layers; infinite if there are none. */
double sl_reference_kink_distance(const struct sl_reference *net);

enum sl_reference_method { SL_REFERENCE_ADAM, SL_REFERENCE_ADAMW, SL_REFERENCE_SGD };

struct sl_reference_optimizer {
    enum sl_reference_method method;
    double rate;
    double
        decay; /* L2 added to the gradient (Adam, SGD), or decoupled: w -= rate·decay·w (AdamW) */
    int decay_layers;    /* the decay is for the first so many layers */
    bool decay_bias;     /* and for their biases too */
    double beta1, beta2; /* Adam; SGD's momentum is beta1 */
    double epsilon;
    double clip_norm; /* most of the gradient's norm, without the decay; 0: no limit */
    int64_t step;     /* taken so far */
    double *m, *v;    // (parameters), NULL before the first step
};

/* One training step from the gradient at theta. Returns the loss before it. */
double sl_reference_step(struct sl_reference *net, struct sl_reference_optimizer *optimizer);

/* Steps with the masks of epochs 0 … epochs - 1; losses (epochs) of each before its step. */
void sl_reference_train(struct sl_reference *net, struct sl_reference_optimizer *optimizer,
                        uint64_t seed, int epochs, double *losses);

void sl_reference_optimizer_clear(struct sl_reference_optimizer *optimizer);

#endif
