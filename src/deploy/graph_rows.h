/* The graph of a prediction: rows of neighbours with duplicates merged, as training reads them. */
#ifndef SL_DEPLOY_GRAPH_ROWS_H
#define SL_DEPLOY_GRAPH_ROWS_H

#include <starling-predict.h>
#include <stdbool.h>
#include <stdint.h>

#include "forward/program.h"

/* An entry e of row i has column column[e], start[i] <= e < start[i + 1]. */
struct sl_graph_rows {
    int64_t vertices, longest; /* `longest`: most entries of a row */
    const int64_t *start;      // (vertices + 1)
    const int32_t *column;     // (entries)
    const float *weight;       // (entries); NULL: all 1
    int64_t edge_columns;
    const float *edge;   // (entries, edge_columns); NULL: no step reads any
    const int32_t *type; // (entries): relations; NULL: no step reads any
    int64_t *own_start;  /* merged rows, owned; NULL: the caller's arrays */
    int32_t *own_column;
    float *own_weight;
};

/* Check a graph against a program, and merge duplicates: weights are summed; entries without
 * weights stay 1. Borrow the arrays. Return 0, SL_ERR_DATA where an array is wrong, SL_ERR_USAGE
 * where one is missing, or SL_ERR_SYSTEM; sl_graph_rows_free in either case. */
int sl_graph_rows_take(struct sl_graph_rows *rows, const struct sl_program *program,
                       const struct starling_predictor_graph *graph);
void sl_graph_rows_free(struct sl_graph_rows *rows);

/* Return the weight of entry e. */
static inline double sl_graph_rows_weight(const struct sl_graph_rows *a, int64_t e)
{
    return a->weight ? (double)a->weight[e] : 1.0;
}

/* Set features (edge_columns) to those of the entry of I in row i: the mean of the features of the
 * row's other entries, without loops; 0 without any. */
void sl_graph_rows_loop(const struct sl_graph_rows *a, int64_t i, float *features);

#endif
