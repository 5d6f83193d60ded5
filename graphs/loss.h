/* Losses compare the outputs of the last layer, its logits, with the targets of vertices. */
#ifndef SL_GRAPHS_LOSS_H
#define SL_GRAPHS_LOSS_H

#include "codelets/link_loss.h"
#include "codelets/operation.h"
#include "codelets/own_loss.h"
#include "codelets/target.h"
#include "core/names.h"

/* Tiles of one row tile's vertices, on which a loss works. */
struct sl_loss_tiles {
    struct sl_tile *scales, *target, *metrics;
    const struct sl_own_loss *own; /* the program's loss, where it is one */
    struct sl_tile *weights; /* (2, columns) on this rank: weights of the values 0 and 1; NULL: 1 */
    struct sl_tile *z;       /* the logits */
};

/* Parameters of the loss that a training step reduces. */
struct sl_loss_options {
    int64_t train_count;
    double smoothing; /* share of a label that all classes split evenly */
};

struct sl_loss {
    const char *name; /* name for --loss */
    enum sl_target_form form;
    bool classes;                  /* logits decide on labels; else they are numbers */
    bool weighted;                 /* may have weights of classes, and smooth labels */
    const struct sl_own_loss *own; /* a program's loss (graphs/loss_own.c); NULL: built in */
    bool links;                    /* of links (graphs/links.h): no other functions are called */
    enum sl_link_loss link_loss;
    /* Submit metrics = the sums over the training vertices, Z = the gradient of their mean loss,
     * times the scale `factor` of each row. */
    void (*differentiate)(struct sl_runtime *rt, const struct sl_loss_options *options,
                          enum sl_row_scale factor, const struct sl_loss_tiles *tiles);
    /* Submit metrics = the sums over all vertices, for each split, without weights and smoothing.
     */
    void (*count)(struct sl_runtime *rt, const struct sl_loss_tiles *tiles);
};

/* The losses. Each has an entry and a file loss_<id>.c with sl_loss_<id>. --loss takes the name in
 * quotes.
 *
 *   softmax   cross-entropy of the softmax over classes
 *   sigmoid   mean over labels of the cross-entropy of each label's sigmoid
 *   mse       mean over columns of the squared error
 *   bce, bpr  of links: cross-entropy and pairwise (codelets/link_loss.h) */
#define SL_LOSSES(ENTRY)            \
    ENTRY(softmax, "cross-entropy") \
    ENTRY(sigmoid, "sigmoid")       \
    ENTRY(mse, "mse")               \
    ENTRY(bce, "bce")               \
    ENTRY(bpr, "bpr")

#define SL_LOSS_DECLARED(id, name) extern const struct sl_loss sl_loss_##id;
SL_LOSSES(SL_LOSS_DECLARED)
#undef SL_LOSS_DECLARED

/* Names of built-in losses: "|cross-entropy|…". */
#define SL_LOSS_NAMED(id, name) "|" name
#define SL_LOSS_NAMES           SL_LOSSES(SL_LOSS_NAMED)

/* Names that --loss takes: "auto|cross-entropy|…", with the names that a program adds. */
extern char sl_loss_names[SL_NAMES_ROOM];

/* Return the loss of that name, or NULL. */
const struct sl_loss *sl_loss_find(const char *name);

/* ---- loss_own.c ---- */

/* Add a program's loss, or replace its loss of this name. No training may be running. Return 0, or
 * SL_ERR_USAGE for an impossible name. */
int sl_loss_add(const char *name, enum sl_target_form form, bool classes, starling_loss *function,
                void *context);
const struct sl_loss *sl_loss_own_find(const char *name);

#endif
