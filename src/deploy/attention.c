/* Attention over the neighbours of a vertex i, head by head (graphs/reduce_attention.c,
 * graphs/reduce_pair.c):
 *
 *     gat             e_ij = LeakyReLU(P_i·a_dst + P_j·a_src + (f_ij·W_e)·a_edge)    values P_j
 *     gatv2           e_ij = a·LeakyReLU(K_j + T_i + f_ij·W_e)                       values K_j
 *     dot_attention   e_ij = (K_j + f_ij·W_e)·Q_i / √F                    values V_j + f_ij·W_e
 *
 *     Z_i = Σ_j α_ij values_j,   α_ij = w_ij e^e_ij / Σ_k w_ik e^e_ik
 *
 * Without weights above 0, Z_i is 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "deploy/steps.h"

/* Memory of a step: scores of a row's entries, the row of an entry's features, sums. */
struct work {
    double *score;   // (longest + 1, heads)
    double *edge;    // (width): f·W_e of an entry, else 0
    double *sum;     // (width)
    float *features; // (edge columns): of an entry of I
};

/* The entry of vertex i that attention meets: j the neighbour. */
struct met {
    int64_t i, j;
    double weight;
    const float *features; /* NULL: the step reads none */
};

/* Return the weight of edge features; NULL: the step reads none. */
static const struct sl_tensor *edge_weight(const struct sl_computing *c)
{
    const int place = c->step->kind == SL_STEP_GAT ? 2 : c->step->kind == SL_STEP_GATV2 ? 1 : 0;
    return c->tensor[place];
}

/* Return entry k of row i; the last one is the loop, where the step has loops. */
static struct met meet(const struct sl_computing *c, int64_t i, int64_t k, float *features)
{
    const struct sl_graph_rows *a = c->graph;
    const int64_t e = a->start[i] + k;
    const bool loop = e == a->start[i + 1], reads = edge_weight(c) != NULL;
    if (loop && reads)
        sl_graph_rows_loop(a, i, features);
    return (struct met){.i = i,
                        .j = loop ? i : a->column[e],
                        .weight = loop ? 1.0 : sl_graph_rows_weight(a, e),
                        .features = !reads ? NULL
                                    : loop ? features
                                           : a->edge + e * a->edge_columns};
}

static double leaky(double x, double slope)
{
    return x > 0.0 ? x : slope * x;
}

/* Return the score of a head, whose columns begin at `from`. `edge`: f·W_e of the entry. */
static double score_of(const struct sl_computing *c, const struct met *m, const double *edge,
                       int64_t from, int64_t count)
{
    const float *x = c->value[0]->data + m->j * c->width + from; /* row of the source */
    double sum = 0.0;
    if (c->step->kind == SL_STEP_GAT) {
        const float *own = c->value[0]->data + m->i * c->width + from,
                    *source = c->tensor[0]->data + from, *target = c->tensor[1]->data + from;
        for (int64_t k = 0; k < count; k++)
            sum += (double)x[k] * (double)source[k] + (double)own[k] * (double)target[k];
        for (int64_t k = 0; c->tensor[3] && k < count; k++)
            sum += edge[from + k] * (double)c->tensor[3]->data[from + k];
        return leaky(sum, c->step->slope);
    }
    const float *own = c->value[1]->data + m->i * c->width + from;
    for (int64_t k = 0; c->step->kind == SL_STEP_GATV2 && k < count; k++)
        sum += (double)c->tensor[0]->data[from + k] *
               leaky((double)x[k] + (double)own[k] + edge[from + k], c->step->slope);
    for (int64_t k = 0; c->step->kind == SL_STEP_DOT_ATTENTION && k < count; k++)
        sum += ((double)x[k] + edge[from + k]) * (double)own[k] / sqrt((double)count);
    return sum;
}

static void find_edge(const struct sl_computing *c, const struct met *m, double *edge)
{
    if (m->features)
        sl_edge_row(edge_weight(c), m->features, edge);
}

/* Turn the scores of `count` entries of row i into the factors α of each head. */
static void find_factors(const struct sl_computing *c, int64_t i, int64_t count, struct work *work)
{
    const int64_t heads = c->step->heads;
    for (int64_t h = 0; h < heads; h++) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t k = 0; k < count; k++)
            most = fmax(most, work->score[k * heads + h]);
        for (int64_t k = 0; k < count; k++) {
            const struct met m = meet(c, i, k, work->features);
            work->score[k * heads + h] = m.weight * exp(work->score[k * heads + h] - most);
            sum += work->score[k * heads + h];
        }
        for (int64_t k = 0; k < count; k++)
            work->score[k * heads + h] /= sum > 0.0 ? sum : 1.0;
    }
}

/* Add the values of an entry, with its factors (heads). */
static void add_values(const struct sl_computing *c, const struct met *m, const double *factor,
                       struct work *work)
{
    const bool dot = c->step->kind == SL_STEP_DOT_ATTENTION;
    const float *value = c->value[dot ? 2 : 0]->data + m->j * c->width;
    const int64_t count = c->width / c->step->heads;
    if (dot)
        find_edge(c, m, work->edge);
    for (int64_t k = 0; k < c->width; k++)
        work->sum[k] += factor[k / count] * ((double)value[k] + (dot ? work->edge[k] : 0.0));
}

static void compute_row(const struct sl_computing *c, int64_t i, struct work *work)
{
    const struct sl_graph_rows *a = c->graph;
    const int64_t heads = c->step->heads, width = c->width / heads,
                  count = a->start[i + 1] - a->start[i] + c->step->loops;
    for (int64_t k = 0; k < count; k++) {
        const struct met m = meet(c, i, k, work->features);
        find_edge(c, &m, work->edge);
        for (int64_t h = 0; h < heads; h++)
            work->score[k * heads + h] = score_of(c, &m, work->edge, h * width, width);
    }
    find_factors(c, i, count, work);
    memset(work->sum, 0, (size_t)c->width * sizeof *work->sum);
    for (int64_t k = 0; k < count; k++) {
        const struct met m = meet(c, i, k, work->features);
        add_values(c, &m, work->score + k * heads, work);
    }
    for (int64_t k = 0; k < c->width; k++)
        c->z[i * c->width + k] = (float)work->sum[k];
}

int sl_attention_compute(const struct sl_computing *c)
{
    struct work work = {
        .score = malloc((size_t)((c->graph->longest + 1) * c->step->heads) * sizeof *work.score),
        .edge = calloc((size_t)c->width, sizeof *work.edge),
        .sum = malloc((size_t)c->width * sizeof *work.sum),
        .features = malloc((size_t)(c->graph->edge_columns + 1) * sizeof *work.features),
    };
    const bool good = work.score && work.edge && work.sum && work.features;
    for (int64_t i = 0; good && i < c->graph->vertices; i++)
        compute_row(c, i, &work);
    free(work.score);
    free(work.edge);
    free(work.sum);
    free(work.features);
    return good ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the scores of a row");
}
