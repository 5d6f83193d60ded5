/* A forward program as an ONNX model, of operators that onnxruntime runs on cores (opset 18).
 *
 * Inputs: features (V, features), edge_source and edge_target (E) of int64, without the loops that
 * the model adds, each edge once. Where steps read them: edge_weight (E), if the edges of the
 * training had weights, edge_features (E, features), edge_type (E) of int64. Output: logits (V,
 * outputs). */
#ifndef SL_DEPLOY_ONNX_H
#define SL_DEPLOY_ONNX_H

#include "deploy/onnx_graph.h"

/* Append the nodes of step s, whose output is o->value[s + 1] (onnx_steps.c). */
void sl_onnx_step(struct sl_onnx *o, int s);

/* Write the model to a file, which appears whole or not at all. Return 0; SL_ERR_USAGE where the
 * model does not fit into 2 GiB, the most of the format; SL_ERR_SYSTEM names `path`. */
int sl_onnx_write(const struct sl_bound *bound, const char *path);

#endif
