/* The meaning of a model's numbers: names of its classes and of its features' columns, whether its
 * features were the identity, and moments of columns. A checkpoint keeps the meaning for datasets
 * that the model reads later. */
#ifndef SL_CHECKPOINT_MEANING_H
#define SL_CHECKPOINT_MEANING_H

#include <jansson.h>

#include "data/source.h"
#include "recipe/forward.h"

/* Return the member "dataset" of a checkpoint's description, a new object: name, sizes, and the
 * meaning. Return NULL without memory. */
json_t *sl_meaning_describe(const struct sl_source *source);

/* Give the classes of a dataset the numbers and names of a model's. `dataset`: what
 * sl_meaning_describe returned when the model was trained; `model`: the name of the checkpoint, for
 * errors; `standardizes`: whether its options standardise columns; if so, use the model's means and
 * deviations. Labels without names keep their numbers. SL_ERR_DATA: the model does not know a
 * class. Columns of several labels or of features have other names or another order. Dataset or
 * model alone has the identity as features. Means or deviations are missing. SL_ERR_SYSTEM. */
int sl_meaning_adopt(struct sl_source *source, const json_t *dataset, bool standardizes,
                     const char *model);

/* Return what a forward program depends on. */
struct sl_forward_data sl_meaning_forward(const json_t *dataset);

/* Return how many edge features, and how many relations of edges, the model reads. */
int64_t sl_meaning_edges(const json_t *dataset);
int64_t sl_meaning_relations(const json_t *dataset);

/* Return SL_ERR_DATA where the graph is directed, its edges come from a file, and the model was
 * trained by a program that turned edges of files the other way round: `dataset` does not say what
 * rows are. `symmetric`: whether the adjacency equals its transpose. */
int sl_meaning_check_direction(const struct sl_source *source, bool symmetric,
                               const json_t *dataset, const char *model);

#endif
