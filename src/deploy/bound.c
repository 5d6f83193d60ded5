#include "deploy/bound.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { MOST_COLUMNS = INT32_MAX };

/* ---- Tensors ---- */

static double number(const struct sl_bound *bound, const char *key)
{
    return json_number_value(json_object_get(bound->checkpoint.description, key));
}

bool sl_bound_uses_best(const struct sl_bound *bound)
{
    return number(bound, "best_epoch") > 0.0 &&
           number(bound, "kept_epoch") < number(bound, "epoch");
}

static const struct sl_tensor *find_tensor(const struct sl_bound *bound, const char *name)
{
    char best[256];
    snprintf(best, sizeof best, "%s.best", name);
    const struct sl_tensor *found =
        sl_bound_uses_best(bound) ? sl_checkpoint_find(&bound->checkpoint, best) : NULL;
    return found ? found : sl_checkpoint_find(&bound->checkpoint, name);
}

/* ---- Sizes ---- */

/* A step whose sizes are checked. */
struct checking {
    const struct sl_bound *bound;
    const struct sl_step *step;
    int s;
    const struct sl_tensor *const *tensor; // (SL_STEP_TENSORS)
    int64_t width[SL_STEP_VALUES];         /* columns of the values that the step reads */
};

/* Return whether tensor t is there with that shape. */
static bool has_shape(const struct checking *c, int t, int64_t rows, int64_t cols)
{
    return c->tensor[t] && c->tensor[t]->rows == rows && c->tensor[t]->cols == cols;
}

/* Return whether the step has just so many tensors. */
static bool has_count(const struct checking *c, int count)
{
    return (count == 0 || c->tensor[count - 1]) && (count == SL_STEP_TENSORS || !c->tensor[count]);
}

/* Return whether the first `count` tensors are all there is, and have a row of `cols` each. */
static bool has_rows(const struct checking *c, int count, int64_t cols)
{
    bool good = has_count(c, count);
    for (int t = 0; good && t < count; t++)
        good = has_shape(c, t, 1, cols);
    return good;
}

/* Each function returns the columns of the value that a kind of step writes; 0: a size is wrong. */

static int64_t width_kept(const struct checking *c)
{
    return has_count(c, 0) ? c->width[0] : 0;
}

static int64_t width_unit_rows(const struct checking *c)
{
    return has_count(c, 0) && (c->step->unit == 1 || c->step->unit == 2) ? c->width[0] : 0;
}

static int64_t width_standardize(const struct checking *c)
{
    return has_count(c, 0) && c->bound->mean && c->width[0] == c->bound->program.features
               ? c->width[0]
               : 0;
}

static int64_t width_product(const struct checking *c)
{
    const struct sl_tensor *w = c->tensor[0];
    const int64_t rows = !w ? 0 : c->step->rows ? c->step->rows : w->rows;
    return has_count(c, 1) && rows == c->width[0] && c->step->row <= w->rows - rows ? w->cols : 0;
}

static int64_t width_two(const struct checking *c)
{
    return has_count(c, 0) && c->width[0] == c->width[1] ? c->width[0] : 0;
}

static int64_t width_bias(const struct checking *c)
{
    return has_rows(c, 1, c->width[0]) ? c->width[0] : 0;
}

static int64_t width_row_norm(const struct checking *c)
{
    return has_rows(c, 2, c->width[0]) && c->step->epsilon > 0.0 ? c->width[0] : 0;
}

static int64_t width_batch_norm(const struct checking *c)
{
    bool good = has_rows(c, 4, c->width[0]) && c->step->epsilon > 0.0;
    for (int64_t j = 0; good && j < c->width[0]; j++)
        good = c->tensor[3]->data[j] >= 0.0f; /* a variance */
    return good ? c->width[0] : 0;
}

static bool splits(const struct checking *c)
{
    return c->step->heads > 0 && c->width[0] % c->step->heads == 0;
}

/* Return whether the tensors behind the first `count` weigh features of edges, as the program has
 * any: a weight, and `vectors` rows of its columns. */
static bool has_edges(const struct checking *c, int count, int vectors)
{
    const int64_t features = c->bound->program.edge_features;
    bool good = has_count(c, c->tensor[count] ? count + 1 + vectors : count);
    if (good && c->tensor[count])
        good = features > 0 && has_shape(c, count, features, c->width[0]);
    for (int v = 0; good && c->tensor[count] && v < vectors; v++)
        good = has_shape(c, count + 1 + v, 1, c->width[0]);
    return good;
}

static int64_t width_gat(const struct checking *c)
{
    return splits(c) && has_shape(c, 0, 1, c->width[0]) && has_shape(c, 1, 1, c->width[0]) &&
                   has_edges(c, 2, 1)
               ? c->width[0]
               : 0;
}

static int64_t width_gatv2(const struct checking *c)
{
    return splits(c) && c->width[1] == c->width[0] && has_shape(c, 0, 1, c->width[0]) &&
                   has_edges(c, 1, 0)
               ? c->width[0]
               : 0;
}

static int64_t width_dot(const struct checking *c)
{
    return splits(c) && c->width[1] == c->width[0] && c->width[2] == c->width[0] &&
                   has_edges(c, 0, 0)
               ? c->width[0]
               : 0;
}

static int64_t width_heads(const struct checking *c)
{
    return has_count(c, 0) && splits(c) ? c->width[0] / c->step->heads : 0;
}

static int64_t width_gine(const struct checking *c)
{
    const bool bias = c->tensor[1] != NULL;
    const int64_t features = c->bound->program.edge_features;
    return has_count(c, 1 + bias) && features > 0 && has_shape(c, 0, features, c->width[0]) &&
                   (!bias || has_shape(c, 1, 1, c->width[0]))
               ? c->width[0]
               : 0;
}

static int64_t width_relations(const struct checking *c)
{
    const struct sl_step *step = c->step;
    const int64_t matrices = step->bases ? step->bases : step->relations;
    const bool good = has_count(c, step->bases ? 2 : 1) && step->relations > 0 &&
                      step->relations == c->bound->program.relations &&
                      c->tensor[0]->rows == matrices * c->width[0] &&
                      (!step->bases || has_shape(c, 1, step->relations, step->bases));
    return good ? c->tensor[0]->cols : 0;
}

static int64_t (*const widths[SL_STEP_KINDS])(const struct checking *) = {
    [SL_STEP_UNIT_ROWS] = width_unit_rows,
    [SL_STEP_STANDARDIZE] = width_standardize,
    [SL_STEP_PRODUCT] = width_product,
    [SL_STEP_AGGREGATE] = width_kept,
    [SL_STEP_ADD] = width_two,
    [SL_STEP_LARGER] = width_two,
    [SL_STEP_BIAS] = width_bias,
    [SL_STEP_RELU] = width_kept,
    [SL_STEP_ELU] = width_kept,
    [SL_STEP_ROW_NORM] = width_row_norm,
    [SL_STEP_BATCH_NORM] = width_batch_norm,
    [SL_STEP_GAT] = width_gat,
    [SL_STEP_GATV2] = width_gatv2,
    [SL_STEP_DOT_ATTENTION] = width_dot,
    [SL_STEP_MEAN_HEADS] = width_heads,
    [SL_STEP_GINE] = width_gine,
    [SL_STEP_RELATIONS] = width_relations,
};

/* ---- Find ---- */

static int find_step(struct sl_bound *bound, const char *name, int s)
{
    const struct sl_step *step = &bound->program.step[s];
    struct checking checking = {bound, step, s, &bound->tensor[s * SL_STEP_TENSORS], {0}};
    for (int t = 0; t < SL_STEP_TENSORS && step->tensor[t]; t++) {
        const struct sl_tensor *tensor = find_tensor(bound, step->tensor[t]);
        if (!tensor)
            return sl_error(SL_ERR_DATA, "%s: the checkpoint has no tensor %s", name,
                            step->tensor[t]);
        bound->tensor[s * SL_STEP_TENSORS + t] = tensor;
    }
    for (int v = 0; v < sl_step_values(step->kind); v++) {
        checking.width[v] = bound->width[step->of[v]];
        bound->last[step->of[v]] = s;
    }
    bound->width[s + 1] = widths[step->kind](&checking);
    if (bound->width[s + 1] > 0 && bound->width[s + 1] <= MOST_COLUMNS)
        return 0;
    return sl_error(SL_ERR_DATA,
                    "%s: step %d of its forward program, %s, does not fit its tensors, or the "
                    "values that it reads",
                    name, s, sl_step_name(step->kind));
}

/* Read a list of the dataset, a number above a bound for each column. */
static int read_list(const struct sl_bound *bound, const char *name, const char *key, double above,
                     double **out)
{
    const json_t *dataset = json_object_get(bound->checkpoint.description, "dataset"),
                 *list = json_object_get(dataset, key);
    const int64_t count = bound->program.features;
    if (!json_is_array(list))
        return 0;
    bool good = (int64_t)json_array_size(list) == count;
    double *numbers = *out = good ? malloc((size_t)count * sizeof *numbers) : NULL;
    if (good && !numbers)
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for %" PRId64 " numbers", name, count);
    for (int64_t j = 0; good && j < count; j++) {
        const json_t *item = json_array_get(list, (size_t)j);
        numbers[j] = json_number_value(item);
        good = json_is_number(item) && numbers[j] > above && isfinite(numbers[j]);
    }
    return good ? 0
                : sl_error(SL_ERR_DATA, "%s: \"%s\" is damaged (expected a number for each column)",
                           name, key);
}

static int read_moments(struct sl_bound *bound, const char *name)
{
    int code = read_list(bound, name, "feature_means", -INFINITY, &bound->mean);
    if (!code)
        code = read_list(bound, name, "feature_deviations", 0.0, &bound->deviation);
    if (!code && !bound->mean != !bound->deviation)
        code = sl_error(SL_ERR_DATA, "%s: has means or deviations of columns alone", name);
    return code;
}

/* Return whether the edges of the training had weights. */
static enum sl_bound_weights find_weights(const struct sl_bound *bound)
{
    const json_t *dataset = json_object_get(bound->checkpoint.description, "dataset"),
                 *weights = json_object_get(dataset, "edge_weights");
    return !json_is_boolean(weights) ? SL_WEIGHTS_UNKNOWN
           : json_is_true(weights)   ? SL_WEIGHTS_PRESENT
                                     : SL_WEIGHTS_ABSENT;
}

int sl_bound_find(struct sl_bound *bound, const char *name)
{
    const struct sl_program *program = &bound->program;
    const size_t count = (size_t)program->count;
    bound->width = calloc(count + 1, sizeof *bound->width);
    bound->last = calloc(count + 1, sizeof *bound->last);
    bound->tensor = calloc(count * SL_STEP_TENSORS + 1, sizeof *bound->tensor);
    if (!bound->width || !bound->last || !bound->tensor)
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for %zu steps", name, count);
    bound->width[0] = program->features;
    bound->weights = find_weights(bound);
    int code = read_moments(bound, name);
    for (int s = 0; !code && s < program->count; s++)
        code = find_step(bound, name, s);
    if (!code && bound->width[count] != program->outputs)
        code =
            sl_error(SL_ERR_DATA,
                     "%s: its forward program ends with %" PRId64 " columns (expected %" PRId64 ")",
                     name, bound->width[count], program->outputs);
    return code;
}

int sl_bound_read(struct sl_bound *bound, const char *path)
{
    *bound = (struct sl_bound){0};
    const int code = sl_checkpoint_read(path, &bound->checkpoint);
    const json_t *forward = json_object_get(bound->checkpoint.description, "forward");
    const char *refused = json_string_value(json_object_get(forward, "refused"));
    if (code)
        return code;
    if (refused)
        return sl_error(SL_ERR_DATA, "%s: %s", path, refused);
    if (!forward)
        return sl_error(SL_ERR_DATA,
                        "%s: an older version wrote it, without a forward program (expected the "
                        "file that `starling export %s --checkpoint FILE` writes)",
                        path, path);
    const int wrong = sl_program_from_json(forward, path, &bound->program);
    return wrong ? wrong : sl_bound_find(bound, path);
}

void sl_bound_free(struct sl_bound *bound)
{
    sl_checkpoint_free(&bound->checkpoint);
    sl_program_free(&bound->program);
    free(bound->width);
    free(bound->last);
    free(bound->tensor);
    free(bound->mean);
    free(bound->deviation);
    *bound = (struct sl_bound){0};
}
