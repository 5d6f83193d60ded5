#include "deploy/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Return `count` numbers (malloc), or NULL without memory (sl_error set). */
static double *numbers_of(int64_t count)
{
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " numbers", count);
    return numbers;
}

static const float *row_of(const struct sl_value *x, int64_t i)
{
    return x->data + i * x->width;
}

/* ---- Features ---- */

static int unit_rows(const struct sl_computing *c)
{
    for (int64_t i = 0; i < c->graph->vertices; i++) {
        const float *x = row_of(c->value[0], i);
        double sum = 0.0;
        for (int64_t j = 0; j < c->width; j++)
            sum += c->step->unit == 1 ? fabs((double)x[j]) : (double)x[j] * (double)x[j];
        sum = c->step->unit == 1 ? sum : sqrt(sum);
        for (int64_t j = 0; j < c->width; j++)
            c->z[i * c->width + j] = (float)((double)x[j] * (sum > 0.0 ? 1.0 / sum : 1.0));
    }
    return 0;
}

static int standardize(const struct sl_computing *c)
{
    for (int64_t i = 0; i < c->graph->vertices; i++)
        for (int64_t j = 0; j < c->width; j++)
            c->z[i * c->width + j] =
                (float)(((double)row_of(c->value[0], i)[j] - c->bound->mean[j]) /
                        c->bound->deviation[j]);
    return 0;
}

/* ---- Products ---- */

/* Add x·W to sum (columns of W): x (rows) a row, W rows of a tensor from `first` on. */
static void add_product(const struct sl_tensor *w, int64_t first, int64_t rows, const float *x,
                        double *sum)
{
    for (int64_t k = 0; k < rows; k++) {
        const float *from = w->data + (first + k) * w->cols;
        for (int64_t j = 0; x[k] != 0.0f && j < w->cols; j++)
            sum[j] += (double)x[k] * (double)from[j];
    }
}

static void store(const double *sum, int64_t width, float *z)
{
    for (int64_t j = 0; j < width; j++)
        z[j] = (float)sum[j];
}

/* The product of the identity is the tensor itself. */
static int product(const struct sl_computing *c)
{
    const struct sl_tensor *w = c->tensor[0];
    const struct sl_value *x = c->value[0];
    if (!x->data) {
        memcpy(c->z, w->data + c->step->row * w->cols,
               (size_t)(c->graph->vertices * w->cols) * sizeof *c->z);
        return 0;
    }
    double *sum = numbers_of(c->width);
    for (int64_t i = 0; sum && i < c->graph->vertices; i++) {
        memset(sum, 0, (size_t)c->width * sizeof *sum);
        add_product(w, c->step->row, x->width, row_of(x, i), sum);
        store(sum, c->width, c->z + i * c->width);
    }
    free(sum);
    return sum ? 0 : SL_ERR_SYSTEM;
}

/* ---- Sums over neighbours ---- */

/* Set left and right (vertices) to the factors of a sum (enum sl_step_norm). */
static int find_factors(const struct sl_computing *c, double *left, double *right)
{
    const struct sl_graph_rows *a = c->graph;
    const enum sl_step_norm norm = c->step->norm;
    for (int64_t i = 0; i < a->vertices; i++) {
        const int64_t count = a->start[i + 1] - a->start[i] + c->step->loops;
        double degree = c->step->loops;
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            degree += sl_graph_rows_weight(a, e);
        if (norm == SL_STEP_NORM_NONE)
            degree = 1.0;
        if (norm == SL_STEP_NORM_COUNT)
            degree = count ? (double)count : 1.0;
        if (!(degree > 0.0))
            return sl_error(SL_ERR_DATA,
                            "the edge weights of vertex %" PRId64 " and its self-loop sum to %g, "
                            "which cannot normalise the adjacency (expected a positive sum)",
                            i, degree);
        left[i] = norm == SL_STEP_NORM_SYM ? 1.0 / sqrt(degree) : 1.0 / degree;
        right[i] = norm == SL_STEP_NORM_SYM ? left[i] : 1.0;
    }
    return 0;
}

static void add_row(double factor, const float *x, int64_t width, double *sum)
{
    for (int64_t j = 0; j < width; j++)
        sum[j] += factor * (double)x[j];
}

static void sum_rows(const struct sl_computing *c, const double *left, const double *right,
                     double *sum)
{
    const struct sl_graph_rows *a = c->graph;
    for (int64_t i = 0; i < a->vertices; i++) {
        memset(sum, 0, (size_t)c->width * sizeof *sum);
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            add_row(left[i] * sl_graph_rows_weight(a, e) * right[a->column[e]],
                    row_of(c->value[0], a->column[e]), c->width, sum);
        if (c->step->loops)
            add_row(left[i] * right[i], row_of(c->value[0], i), c->width, sum);
        store(sum, c->width, c->z + i * c->width);
    }
}

/* The largest or least of the neighbours' rows times their weights, element by element; 0 without
 * neighbours. */
static void select_rows(const struct sl_computing *c)
{
    const struct sl_graph_rows *a = c->graph;
    const float sign = c->step->reduce == SL_REDUCE_MIN ? -1.0f : 1.0f;
    for (int64_t i = 0; i < a->vertices; i++) {
        float *z = c->z + i * c->width;
        bool begun = c->step->loops;
        memset(z, 0, (size_t)c->width * sizeof *z);
        if (begun)
            memcpy(z, row_of(c->value[0], i), (size_t)c->width * sizeof *z);
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++, begun = true) {
            const float *x = row_of(c->value[0], a->column[e]), w = a->weight ? a->weight[e] : 1.0f;
            for (int64_t j = 0; j < c->width; j++)
                z[j] = !begun || sign * w * x[j] > sign * z[j] ? w * x[j] : z[j];
        }
    }
}

static int aggregate(const struct sl_computing *c)
{
    if (c->step->reduce != SL_REDUCE_SUM) {
        select_rows(c);
        return 0;
    }
    const int64_t n = c->graph->vertices;
    double *factors = numbers_of(2 * n + c->width);
    int code = factors ? find_factors(c, factors, factors + n) : SL_ERR_SYSTEM;
    if (!code)
        sum_rows(c, factors, factors + n, factors + 2 * n);
    free(factors);
    return code;
}

/* ---- Sums over edges with features or relations ---- */

void sl_edge_row(const struct sl_tensor *w, const float *features, double *row)
{
    memset(row, 0, (size_t)w->cols * sizeof *row);
    add_product(w, 0, w->rows, features, row);
}

static int gine(const struct sl_computing *c)
{
    const struct sl_graph_rows *a = c->graph;
    const struct sl_tensor *bias = c->tensor[1];
    double *row = numbers_of(c->width), *sum = numbers_of(c->width);
    for (int64_t i = 0; row && sum && i < a->vertices; i++) {
        memset(sum, 0, (size_t)c->width * sizeof *sum);
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const float *x = row_of(c->value[0], a->column[e]);
            sl_edge_row(c->tensor[0], a->edge + e * a->edge_columns, row);
            for (int64_t j = 0; j < c->width; j++) {
                const double met = (double)x[j] + row[j] + (bias ? (double)bias->data[j] : 0.0);
                sum[j] += met > 0.0 ? met : 0.0;
            }
        }
        store(sum, c->width, c->z + i * c->width);
    }
    free(row);
    free(sum);
    return row && sum ? 0 : SL_ERR_SYSTEM;
}

/* Return the weights of all relations (relations · in, out): the tensor, or sums of bases in *made
 * (malloc). Without memory, return a tensor without data. */
static struct sl_tensor relation_weights(const struct sl_computing *c, float **made)
{
    struct sl_tensor w = *c->tensor[0];
    const int64_t relations = c->step->relations, bases = c->step->bases,
                  size = c->value[0]->width * w.cols;
    *made = NULL;
    if (!bases)
        return w;
    *made = calloc((size_t)(relations * size) + 1, sizeof **made);
    for (int64_t r = 0; *made && r < relations; r++)
        for (int64_t k = 0; k < size; k++) {
            double sum = 0.0;
            for (int64_t b = 0; b < bases; b++)
                sum += (double)c->tensor[1]->data[r * bases + b] *
                       (double)c->tensor[0]->data[b * size + k];
            (*made)[r * size + k] = (float)sum;
        }
    w.data = *made;
    return w;
}

/* Each relation's mean of the neighbours is multiplied by its weight. The mean is in `mean`. */
static void sum_relations(const struct sl_computing *c, const struct sl_tensor *w, int64_t *count,
                          double *sum, float *mean)
{
    const struct sl_graph_rows *a = c->graph;
    const int64_t in = c->value[0]->width;
    for (int64_t i = 0; i < a->vertices; i++) {
        memset(sum, 0, (size_t)c->width * sizeof *sum);
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            count[a->type[e]]++;
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const float *x = row_of(c->value[0], a->column[e]);
            for (int64_t j = 0; j < in; j++)
                mean[j] = x[j] / (float)count[a->type[e]];
            add_product(w, a->type[e] * in, in, mean, sum);
        }
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
            count[a->type[e]] = 0;
        store(sum, c->width, c->z + i * c->width);
    }
}

static int relations(const struct sl_computing *c)
{
    float *made;
    const struct sl_tensor w = relation_weights(c, &made);
    int64_t *count = calloc((size_t)c->step->relations, sizeof *count);
    double *sum = numbers_of(c->width);
    float *mean = malloc((size_t)c->value[0]->width * sizeof *mean);
    const bool good = w.data && count && sum && mean;
    if (good)
        sum_relations(c, &w, count, sum, mean);
    free(made);
    free(count);
    free(sum);
    free(mean);
    return good ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the weights of relations");
}

/* ---- Element by element ---- */

static int add(const struct sl_computing *c)
{
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++)
        c->z[k] = (float)(c->step->x * (double)c->value[0]->data[k] +
                          c->step->y * (double)c->value[1]->data[k]);
    return 0;
}

static int larger(const struct sl_computing *c)
{
    const float *x = c->value[0]->data, *y = c->value[1]->data;
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++)
        c->z[k] = y[k] > x[k] ? y[k] : x[k];
    return 0;
}

static int bias(const struct sl_computing *c)
{
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++)
        c->z[k] = c->value[0]->data[k] + c->tensor[0]->data[k % c->width];
    return 0;
}

static int relu(const struct sl_computing *c)
{
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++)
        c->z[k] = c->value[0]->data[k] > 0.0f ? c->value[0]->data[k] : 0.0f;
    return 0;
}

static int elu(const struct sl_computing *c)
{
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++) {
        const float x = c->value[0]->data[k];
        c->z[k] = x > 0.0f ? x : (float)expm1((double)x);
    }
    return 0;
}

/* ---- Norms ---- */

static int row_norm(const struct sl_computing *c)
{
    const double n = (double)c->width;
    for (int64_t i = 0; i < c->graph->vertices; i++) {
        const float *x = row_of(c->value[0], i);
        double mean = 0.0, variance = 0.0;
        for (int64_t j = 0; j < c->width; j++)
            mean += (double)x[j] / n;
        for (int64_t j = 0; j < c->width; j++)
            variance += ((double)x[j] - mean) * ((double)x[j] - mean) / n;
        const double by = 1.0 / sqrt(variance + c->step->epsilon);
        for (int64_t j = 0; j < c->width; j++)
            c->z[i * c->width + j] =
                (float)(((double)x[j] - mean) * by * (double)c->tensor[0]->data[j] +
                        (double)c->tensor[1]->data[j]);
    }
    return 0;
}

static int batch_norm(const struct sl_computing *c)
{
    const float *weight = c->tensor[0]->data, *shift = c->tensor[1]->data,
                *mean = c->tensor[2]->data, *variance = c->tensor[3]->data;
    for (int64_t k = 0; k < c->graph->vertices * c->width; k++) {
        const int64_t j = k % c->width;
        const double by = 1.0 / sqrt((double)variance[j] + c->step->epsilon);
        c->z[k] =
            (float)(((double)c->value[0]->data[k] - (double)mean[j]) * by * (double)weight[j] +
                    (double)shift[j]);
    }
    return 0;
}

static int mean_heads(const struct sl_computing *c)
{
    const int64_t heads = c->step->heads;
    for (int64_t i = 0; i < c->graph->vertices; i++)
        for (int64_t j = 0; j < c->width; j++) {
            double sum = 0.0;
            for (int64_t h = 0; h < heads; h++)
                sum += (double)row_of(c->value[0], i)[h * c->width + j];
            c->z[i * c->width + j] = (float)(sum / (double)heads);
        }
    return 0;
}

/* ---- All kinds ---- */

static int (*const computes[SL_STEP_KINDS])(const struct sl_computing *) = {
    [SL_STEP_UNIT_ROWS] = unit_rows,
    [SL_STEP_STANDARDIZE] = standardize,
    [SL_STEP_PRODUCT] = product,
    [SL_STEP_AGGREGATE] = aggregate,
    [SL_STEP_ADD] = add,
    [SL_STEP_LARGER] = larger,
    [SL_STEP_BIAS] = bias,
    [SL_STEP_RELU] = relu,
    [SL_STEP_ELU] = elu,
    [SL_STEP_ROW_NORM] = row_norm,
    [SL_STEP_BATCH_NORM] = batch_norm,
    [SL_STEP_GAT] = sl_attention_compute,
    [SL_STEP_GATV2] = sl_attention_compute,
    [SL_STEP_DOT_ATTENTION] = sl_attention_compute,
    [SL_STEP_MEAN_HEADS] = mean_heads,
    [SL_STEP_GINE] = gine,
    [SL_STEP_RELATIONS] = relations,
};

int sl_step_compute(const struct sl_computing *c)
{
    return computes[c->step->kind](c);
}
