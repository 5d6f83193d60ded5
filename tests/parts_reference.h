/* clang-format off */
/* Models of parts in double precision, slow, to compare the program with. Written from the papers:
 *
 *   resgcn   DeeperGCN (Li et al. 2020, section 3, "res+"): H_0 = drop(X)·W + b,
 *            H_{k+1} = H_k + Â·drop(relu(norm(H_k)))·W_k + b_k,  logits = drop(relu(norm(H_L)))·W + b
 *   norm     LayerNorm (Ba et al. 2016) or BatchNorm (Ioffe & Szegedy 2015, algorithm 1 and 2)
 *   gin      Xu et al. 2019, equation 4.1, epsilon = 0: H = MLP(h_v + Σ_u w_vu h_u), two products
 *   sgc      Wu et al. 2019, equation 8: Â^K·(X·W + b)
 *   appnp    Gasteiger et al. 2019, equation 4: Z_{k+1} = (1 - a)·Â·Z_k + a·H, H = MLP(X)
 *   jknet    Xu et al. 2018, section 4: H_l = drop(relu(Â·H_{l-1}·W_l + b_l)),
 *            logits = [H_1 | … | H_L]·W + b
 *   gcn      Kipf & Welling 2017: H_l = relu(norm(Â·drop(H_{l-1})·W_l + b_l)), the last one alone
 *   sage     Hamilton et al. 2017, mean: H·V + C^-1·A·H·W + b, C the entries of each row
 *
 * gcn, sage and gin have a norm before each relu, or none. A linear residual of gcn adds drop(H)·V to
 * the sums. With a classifier, all layers of gcn and sage are hidden ones, and logits = drop(H)·W + b.
 * With an encoder, layers of gcn, sage, gin and jknet follow H_0 = drop(X)·W + b. elu takes relu's place
 * in gcn, sage and gin. An identity residual of gcn and sage adds drop(H) to the sums of layers of one
 * width. With a jump, gcn and sage have the last layer of jknet.
 *
 * The reference shares two things with the program: the random numbers, so that dropout is the
 * same, and the order of parameters. Each layer of the program's list has a part: a matrix with a
 * bias as its last row, or, of a norm, the rows weight and bias. BatchNorm adds running mean and
 * variance. Sums follow the entries of the adjacency: a hub of many entries takes little time. */
/* clang-format on */
#ifndef SL_TESTS_PARTS_REFERENCE_H
#define SL_TESTS_PARTS_REFERENCE_H

#include "data/dataset.h"

enum sl_parts_kind {
    SL_PARTS_RESGCN,
    SL_PARTS_GIN,
    SL_PARTS_SGC,
    SL_PARTS_APPNP,
    SL_PARTS_JKNET,
    SL_PARTS_GCN,
    SL_PARTS_SAGE,
};

/* Properties of a model. */
struct sl_parts_model {
    enum sl_parts_kind kind;
    int layers, hops;
    int64_t hidden;
    bool batch, bias, row;     /* row: Â = D^-1 (A + I) */
    bool normed;               /* gcn, sage, gin: has norms */
    bool means;                /* resgcn: GraphSAGE's layer with the mean */
    bool residual, classifier; /* gcn: a linear residual; gcn, sage: a classifier */
    bool encoder, elu;         /* gcn, sage, gin; encoder: jknet, too */
    bool identity, jump;       /* gcn, sage */
    bool sums, largest; /* the jump reads the sum of all outputs, or the largest of each element */
    double teleport, dropout;
};

/* The parameters of a layer of the program's list. */
struct sl_parts_part {
    int64_t rows, cols, learned; /* the rows after `learned` are running averages */
    bool norm;
    double *theta;           // (rows, cols)
    double *mean, *variance; // (cols): of the last training pass, of columns that are normalised
};

struct sl_parts_reference {
    struct sl_parts_model model;
    int64_t n, features, classes, entries;
    int64_t *row, *col; // (entries): of the aggregated matrix
    double *value;      // (entries)
    double *x;          // (n, features)
    int32_t *label;     // (n), -1: none
    bool *train;        // (n)
    int parts;
    struct sl_parts_part *part; // (parts)
    uint64_t seed;
    uint32_t epoch;
    double kink;      /* the least distance of a relu from its kink in the last pass */
    uint64_t pattern; /* of the relus that were open in it */
};

struct sl_parts_reference *sl_parts_reference_open(const struct sl_parts_model *model,
                                                   const struct sl_dataset *data);
void sl_parts_reference_close(struct sl_parts_reference *ref);

/* logits (n, classes); `training`: with dropout and the statistics of this pass. */
void sl_parts_reference_forward(struct sl_parts_reference *ref, bool training, double *logits);

/* Return the mean cross-entropy of the training vertices. */
double sl_parts_reference_loss(struct sl_parts_reference *ref, bool training);

/* Set *difference to the central difference of the loss for a parameter. Return whether no relu has
 * opened or closed in it. */
bool sl_parts_reference_difference(struct sl_parts_reference *ref, double *parameter,
                                   double *difference);

#endif
