/* Seconds of the work of a layer, and of an epoch by its row tiles, by the rates of a machine
 * (core/rates.h). Every choice that compares seconds asks here. */
#ifndef SL_GRAPHS_COST_H
#define SL_GRAPHS_COST_H

#include "core/rates.h"
#include "graphs/network.h"

/* The work of a layer in a training step. */
struct sl_layer_work {
    const struct sl_rates *rates;
    double n, nnz;     /* vertices, entries of the adjacency */
    double entries;    /* entries of the sparse input; 0: it is dense */
    double aggregated; /* entries of Â·X where X is sparse; 0: dense */
    double in, out;    /* widths */
    double weights;    /* weight matrices of the kind of layer */
    double kept;       /* the share that dropout keeps */
    double bytes;      /* bytes of an element of the input */
    double back[2];    /* bytes of an element of the aggregated gradient, GEMM and SpMM first */
    bool first;
};

/* Return the seconds of the products in that order, without the work that all orders share. */
double sl_cost_layer(const struct sl_layer_work *work, enum sl_product_order order);

/* Return the seconds of the products in that order for an input that is stored dense. They include
 * all products of the input, and the passes that drop it out. */
double sl_cost_dense_layer(const struct sl_layer_work *work, enum sl_product_order order);

/* Return the seconds of all products with one weight matrix: `passes` forward, one for the gradient
 * of the weight and, except in a first layer, one for the gradient of the input. nnz, aggregated,
 * weights, bytes and back do not count. */
double sl_cost_weight(const struct sl_layer_work *work, int passes);

/* Return the seconds of all passes of a step over `rows` rows of a layer's output, whose elements
 * have `bytes` bytes. */
double sl_cost_passes(const struct sl_rates *rates, const struct sl_layer_shape *shape, double rows,
                      double bytes);

/* Return the seconds of a walk that sums rows of `row_bytes` from a table of `table_rows` rows, and
 * of what the layer computes on entries: sl_cost_entries. */
double sl_cost_walk(const struct sl_layer_shape *shape, const struct sl_walk_size *walk,
                    double row_bytes, double table_rows);

/* Return the seconds of a walk beside the sums of the rows that entries meet: the kind's, and of
 * reading the features of entries. All columns of the layer are on one rank. */
double sl_cost_entries(const struct sl_layer_shape *shape, const struct sl_walk_size *walk);

/* Return the bytes of a layer's parameters, and the seconds of two binomial trees of messages: the
 * layer's gradient goes from all ranks to one, and the parameters come back. */
double sl_cost_parameter_bytes(const struct sl_layer_shape *shape);
double sl_cost_trees(const struct sl_layer_shape *shape, const struct sl_link *link, double ranks);

/* An epoch of a network of two layers, for the choice of row tiles (assembly/tile_choice.h). */
struct sl_epoch_work {
    double vertices, entries; /* of the graph; entries with self-loops */
    double width;             /* columns of the hidden layer */
    double features;          /* multiplications of a column of the first weights */
    double rows;              /* rows of the first weights */
    bool identity;            /* the input is the identity */
    double link;              /* bytes per second of messages; 0: not measured */
    int64_t workers, ranks;
    bool gpus; /* the workers are GPUs */
};

/* Return the seconds of the epoch's multiplications, on one worker. */
double sl_cost_multiplications(const struct sl_epoch_work *epoch);

/* Return the seconds of tasks of T row tiles, without their work. A task has T tiles of its row. */
double sl_cost_tasks(double tiles);

/* Return the seconds of the epoch with T row tiles, each of which meets `met` tiles of other ranks.
 * More tiles feed more workers, balance them and hide messages, but cost tasks, gradients and
 * visits. */
double sl_cost_epoch(const struct sl_epoch_work *epoch, double tiles, double met);

#endif
