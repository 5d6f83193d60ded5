#include "tests/parts_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/operation.h"
#include "core/rng.h"
#include "tests/fixtures.h"

static const double STEP = 1e-6, EPSILON = 1e-5;

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (!memory) {
        fprintf(stderr, "reference: no memory for %lld elements\n", (long long)count);
        abort();
    }
    return memory;
}

static double *doubles(int64_t count)
{
    return zeros(count, sizeof(double));
}

/* Whether a layer sums the means of the neighbours, without the vertex. */
static bool takes_means(const struct sl_parts_model *m)
{
    return m->kind == SL_PARTS_SAGE || m->means;
}

/* ---- The graph ---- */

static double weight_of(const struct sl_csr *a, int64_t entry)
{
    return a->values ? (double)a->values[entry] : 1.0;
}

/* A + I, and the degrees of its rows; for sage A, and the entries of its rows. */
static void add_loops(struct sl_parts_reference *ref, const struct sl_csr *a, double *degree)
{
    ref->entries = 0;
    for (int64_t v = 0; v < ref->n; v++) {
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            ref->row[ref->entries] = v;
            ref->col[ref->entries] = a->indices[e];
            ref->value[ref->entries++] = weight_of(a, e);
            degree[v] += weight_of(a, e);
        }
        if (takes_means(&ref->model)) {
            degree[v] = (double)(a->indptr[v + 1] - a->indptr[v]);
            continue;
        }
        ref->row[ref->entries] = ref->col[ref->entries] = v;
        ref->value[ref->entries++] = 1.0;
        degree[v] += 1.0;
    }
}

static void open_graph(struct sl_parts_reference *ref, const struct sl_csr *a)
{
    const int64_t most = a->indptr[ref->n] + ref->n;
    double *degree = doubles(ref->n);
    ref->row = zeros(most, sizeof *ref->row);
    ref->col = zeros(most, sizeof *ref->col);
    ref->value = doubles(most);
    add_loops(ref, a, degree);
    for (int64_t e = 0; ref->model.kind != SL_PARTS_GIN && e < ref->entries; e++)
        ref->value[e] /= ref->model.row || takes_means(&ref->model)
                             ? degree[ref->row[e]]
                             : sqrt(degree[ref->row[e]]) * sqrt(degree[ref->col[e]]);
    free(degree);
}

/* ---- Parameters ---- */

static void add_part(struct sl_parts_reference *ref, int64_t rows, int64_t cols, int64_t learned,
                     bool norm)
{
    ref->part = realloc(ref->part, (size_t)(ref->parts + 1) * sizeof *ref->part);
    ref->part[ref->parts++] = (struct sl_parts_part){
        rows, cols, learned, norm, doubles(rows * cols), doubles(cols), doubles(cols)};
}

static void add_linear(struct sl_parts_reference *ref, int64_t in, int64_t out)
{
    add_part(ref, in + ref->model.bias, out, in + ref->model.bias, false);
}

static void add_norm(struct sl_parts_reference *ref)
{
    add_part(ref, ref->model.batch ? 4 : 2, ref->model.hidden, 2, true);
}

/* Whether layers have a weight for the vertex's own values. */
static bool has_own(const struct sl_parts_model *m)
{
    return m->kind == SL_PARTS_SAGE || m->residual;
}

/* Whether the last layer reads the outputs of all others. */
static bool jumps(const struct sl_parts_model *m)
{
    return m->kind == SL_PARTS_JKNET || m->jump;
}

/* Whether a layer without neighbours follows all others. */
static bool has_classifier(const struct sl_parts_model *m)
{
    return jumps(m) || m->classifier;
}

/* Columns that the last product reads. */
static int64_t jump_width(const struct sl_parts_model *m)
{
    return jumps(m) && !m->sums && !m->largest ? m->layers * m->hidden : m->hidden;
}

/* Layers of neighbours; in a GIN, a second product follows each. */
static void open_layers(struct sl_parts_reference *ref)
{
    const struct sl_parts_model *m = &ref->model;
    const bool gin = m->kind == SL_PARTS_GIN;
    if (m->encoder)
        add_linear(ref, ref->features, m->hidden);
    for (int l = 0; l < m->layers; l++) {
        const bool last = l == m->layers - 1 && !has_classifier(m);
        const int64_t in = l == 0 && !m->encoder ? ref->features : m->hidden,
                      out = last ? ref->classes : m->hidden;
        add_linear(ref, has_own(m) ? 2 * in : in, gin ? m->hidden : out);
        if (m->normed && (gin || !last))
            add_norm(ref);
        if (gin)
            add_linear(ref, m->hidden, out);
        if (m->normed && gin && !last)
            add_norm(ref);
    }
    if (m->largest)
        add_part(ref, 0, m->hidden, 0, false);
    if (has_classifier(m))
        add_linear(ref, jump_width(m), ref->classes);
}

static void open_parts(struct sl_parts_reference *ref)
{
    const struct sl_parts_model *m = &ref->model;
    const int64_t hidden = m->hidden;
    if (m->kind == SL_PARTS_RESGCN) {
        add_linear(ref, ref->features, hidden);
        for (int l = 0; l < m->layers; l++) {
            add_norm(ref);
            add_linear(ref, m->means ? 2 * hidden : hidden, hidden);
        }
        add_norm(ref);
        add_linear(ref, hidden, ref->classes);
        return;
    }
    if (m->kind != SL_PARTS_SGC && m->kind != SL_PARTS_APPNP) {
        open_layers(ref);
        return;
    }
    for (int l = 0; l < (m->kind == SL_PARTS_SGC ? 1 : m->layers); l++) {
        const bool last = m->kind == SL_PARTS_SGC || l == m->layers - 1;
        const int64_t in = l == 0 ? ref->features : hidden, out = last ? ref->classes : hidden;
        add_linear(ref, in, out);
    }
    for (int k = 0; k < m->hops; k++)
        add_part(ref, 0, ref->classes, 0, false);
}

struct sl_parts_reference *sl_parts_reference_open(const struct sl_parts_model *model,
                                                   const struct sl_dataset *data)
{
    struct sl_parts_reference *ref = zeros(1, sizeof *ref);
    ref->model = *model;
    ref->n = data->vertices;
    ref->features = data->features;
    ref->classes = data->classes;
    ref->x = doubles(ref->n * ref->features);
    ref->label = zeros(ref->n, sizeof *ref->label);
    ref->train = zeros(ref->n, sizeof *ref->train);
    sl_fixture_dense_features(data, ref->x);
    memcpy(ref->label, data->labels, (size_t)ref->n * sizeof *ref->label);
    sl_fixture_mask(&data->train, ref->n, ref->train);
    open_graph(ref, &data->adjacency);
    open_parts(ref);
    return ref;
}

void sl_parts_reference_close(struct sl_parts_reference *ref)
{
    for (int p = 0; p < ref->parts; p++) {
        free(ref->part[p].theta);
        free(ref->part[p].mean);
        free(ref->part[p].variance);
    }
    free(ref->part);
    free(ref->row);
    free(ref->col);
    free(ref->value);
    free(ref->x);
    free(ref->label);
    free(ref->train);
    free(ref);
}

/* ---- Operations ---- */

/* A pass: what is at each vertex, of `width` numbers. */
struct pass {
    struct sl_parts_reference *ref;
    bool training;
    int64_t width;
    double *h; // (n, width)
};

static void take(struct pass *pass, double *h, int64_t width)
{
    free(pass->h);
    pass->h = h;
    pass->width = width;
}

/* Dropout on the input of a part. */
static void drop(struct pass *pass, int part)
{
    const struct sl_parts_reference *ref = pass->ref;
    const struct sl_dropout how = sl_dropout_make(
        ref->model.dropout, sl_rng_key(ref->seed, SL_RNG_DROPOUT, ref->epoch, (uint32_t)part));
    for (int64_t k = 0; pass->training && ref->model.dropout > 0.0 && k < ref->n * pass->width; k++)
        pass->h[k] *= (double)sl_dropout_factor(&how, (uint32_t)(k / pass->width),
                                                (uint32_t)(k % pass->width));
}

static void multiply(struct pass *pass, int part, bool bias)
{
    const struct sl_parts_part *p = &pass->ref->part[part];
    const int64_t in = pass->width, out = p->cols;
    double *z = doubles(pass->ref->n * out);
    for (int64_t v = 0; v < pass->ref->n; v++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < out; j++)
                z[v * out + j] += pass->h[v * in + i] * p->theta[i * out + j];
    for (int64_t k = 0; bias && k < pass->ref->n * out; k++)
        z[k] += p->theta[in * out + k % out];
    take(pass, z, out);
}

static void add_bias(struct pass *pass, int part)
{
    const struct sl_parts_part *p = &pass->ref->part[part];
    for (int64_t k = 0; pass->ref->model.bias && k < pass->ref->n * p->cols; k++)
        pass->h[k] += p->theta[(p->rows - 1) * p->cols + k % p->cols];
}

static void aggregate(struct pass *pass)
{
    const struct sl_parts_reference *ref = pass->ref;
    const int64_t width = pass->width;
    double *z = doubles(ref->n * width);
    for (int64_t e = 0; e < ref->entries; e++)
        for (int64_t j = 0; j < width; j++)
            z[ref->row[e] * width + j] += ref->value[e] * pass->h[ref->col[e] * width + j];
    take(pass, z, width);
}

/* relu, or elu in its place. */
static void rectify(struct pass *pass)
{
    struct sl_parts_reference *ref = pass->ref;
    for (int64_t k = 0; ref->model.elu && k < ref->n * pass->width; k++)
        pass->h[k] = pass->h[k] > 0.0 ? pass->h[k] : expm1(pass->h[k]);
    if (ref->model.elu)
        return;
    for (int64_t k = 0; k < ref->n * pass->width; k++) {
        const double z = pass->h[k];
        if (z != 0.0)
            ref->kink = fmin(ref->kink, fabs(z));
        ref->pattern = ref->pattern * UINT64_C(0x9E3779B97F4A7C15) + (z > 0.0);
        pass->h[k] = z > 0.0 ? z : 0.0;
    }
}

/* (h - mean) / sqrt(variance + epsilon) of `count` numbers that are `apart`, times weight, and
 * bias; the weight of number k is at k · step. */
struct norming {
    int64_t count, apart, step;
    const double *weight, *bias;
};

static void moments(const struct norming *how, const double *h, double *mean, double *variance)
{
    *mean = *variance = 0.0;
    for (int64_t k = 0; k < how->count; k++)
        *mean += h[k * how->apart] / (double)how->count;
    for (int64_t k = 0; k < how->count; k++)
        *variance += pow(h[k * how->apart] - *mean, 2.0) / (double)how->count;
}

static void normalise(const struct norming *how, double mean, double variance, double *h)
{
    for (int64_t k = 0; k < how->count; k++) {
        double *x = &h[k * how->apart];
        *x = how->weight[k * how->step] * (*x - mean) / sqrt(variance + EPSILON) +
             how->bias[k * how->step];
    }
}

static void norm_rows(struct pass *pass, const struct sl_parts_part *p)
{
    const struct norming how = {pass->width, 1, 1, p->theta, p->theta + pass->width};
    for (int64_t v = 0; v < pass->ref->n; v++) {
        double mean, variance, *h = pass->h + v * pass->width;
        moments(&how, h, &mean, &variance);
        normalise(&how, mean, variance, h);
    }
}

static void norm_columns(struct pass *pass, const struct sl_parts_part *p)
{
    for (int64_t j = 0; j < pass->width; j++) {
        const struct norming how = {pass->ref->n, pass->width, 0, p->theta + j,
                                    p->theta + pass->width + j};
        if (pass->training)
            moments(&how, pass->h + j, &p->mean[j], &p->variance[j]);
        normalise(&how, pass->training ? p->mean[j] : p->theta[2 * pass->width + j],
                  pass->training ? p->variance[j] : p->theta[3 * pass->width + j], pass->h + j);
    }
}

static void norm(struct pass *pass, int part)
{
    if (pass->ref->model.batch)
        norm_columns(pass, &pass->ref->part[part]);
    else
        norm_rows(pass, &pass->ref->part[part]);
    rectify(pass);
}

static double *copy_of(const struct pass *pass)
{
    double *copy = doubles(pass->ref->n * pass->width);
    return memcpy(copy, pass->h, (size_t)(pass->ref->n * pass->width) * sizeof *copy);
}

/* h = a · h + b · earlier, which is freed. */
static void mix(struct pass *pass, double a, double b, double *earlier)
{
    for (int64_t k = 0; k < pass->ref->n * pass->width; k++)
        pass->h[k] = a * pass->h[k] + b * earlier[k];
    free(earlier);
}

/* ---- Models ---- */

/* The values of a vertex and the mean of its neighbours, side by side. */
static void put_beside(struct pass *pass)
{
    const int64_t width = pass->width, n = pass->ref->n;
    double *own = copy_of(pass), *beside = doubles(n * 2 * width);
    aggregate(pass);
    for (int64_t k = 0; k < n * width; k++) {
        beside[k / width * 2 * width + k % width] = own[k];
        beside[k / width * 2 * width + width + k % width] = pass->h[k];
    }
    free(own);
    take(pass, beside, 2 * width);
}

static void run_resgcn(struct pass *pass)
{
    const struct sl_parts_reference *ref = pass->ref;
    int part = 0;
    drop(pass, part);
    multiply(pass, part++, ref->model.bias);
    for (int l = 0; l < ref->model.layers; l++) {
        double *skipped = copy_of(pass);
        norm(pass, part++);
        drop(pass, part);
        if (ref->model.means) {
            put_beside(pass);
            multiply(pass, part++, ref->model.bias);
        } else {
            multiply(pass, part, false);
            aggregate(pass);
            add_bias(pass, part++);
        }
        mix(pass, 1.0, 1.0, skipped);
    }
    norm(pass, part++);
    drop(pass, part);
    multiply(pass, part, ref->model.bias);
}

/* relu, after the norm, if there is one, of the next part. */
static void activate(struct pass *pass, int *part)
{
    if (pass->ref->model.normed)
        norm(pass, (*part)++);
    else
        rectify(pass);
}

/* The encoder, if there is one. Return the number of the next part. */
static int encode(struct pass *pass)
{
    if (!pass->ref->model.encoder)
        return 0;
    drop(pass, 0);
    multiply(pass, 0, pass->ref->model.bias);
    return 1;
}

static void run_gin(struct pass *pass)
{
    const struct sl_parts_reference *ref = pass->ref;
    int part = encode(pass);
    for (int l = 0; l < ref->model.layers; l++) {
        drop(pass, part);
        aggregate(pass);
        multiply(pass, part++, ref->model.bias);
        activate(pass, &part);
        multiply(pass, part++, ref->model.bias);
        if (l + 1 < ref->model.layers)
            activate(pass, &part);
    }
}

/* One layer of H after dropout; a last one has no activation. */
static void run_layer(struct pass *pass, int l, bool last, int *part)
{
    const struct sl_parts_model *m = &pass->ref->model;
    const bool adds = m->identity && !last && (l > 0 || m->encoder);
    double *input = adds ? copy_of(pass) : NULL;
    if (has_own(m))
        put_beside(pass);
    else
        aggregate(pass);
    multiply(pass, (*part)++, m->bias);
    if (adds)
        mix(pass, 1.0, 1.0, input);
    if (!last)
        activate(pass, part);
}

/* Put the output of layer l beside those before it, or add it, or keep the largest: `pattern` knows
 * which layers it came from. */
static void join_output(struct pass *pass, int l, double *joint)
{
    struct sl_parts_reference *ref = pass->ref;
    const struct sl_parts_model *m = &ref->model;
    const int64_t hidden = m->hidden, all = jump_width(m), at = all > hidden ? l * hidden : 0;
    for (int64_t k = 0; k < ref->n * hidden; k++) {
        double *to = &joint[k / hidden * all + at + k % hidden];
        const double far = fabs(pass->h[k] - *to);
        if (!m->largest || l == 0) {
            *to += pass->h[k];
            continue;
        }
        ref->kink = far > 0.0 ? fmin(ref->kink, far) : ref->kink;
        ref->pattern = ref->pattern * UINT64_C(0x9E3779B97F4A7C15) + (pass->h[k] > *to);
        *to = fmax(*to, pass->h[k]);
    }
}

/* With a jump, the last product reads the outputs after dropout of all layers. */
static void run_layers(struct pass *pass)
{
    const struct sl_parts_reference *ref = pass->ref;
    const struct sl_parts_model *m = &ref->model;
    double *joint = jumps(m) ? doubles(ref->n * jump_width(m)) : NULL;
    int part = encode(pass);
    drop(pass, part);
    for (int l = 0; l < m->layers; l++) {
        const bool last = l == m->layers - 1 && !has_classifier(m);
        run_layer(pass, l, last, &part);
        if (!last)
            drop(pass, part);
        if (joint)
            join_output(pass, l, joint);
    }
    if (joint)
        take(pass, joint, jump_width(m));
    if (has_classifier(m))
        multiply(pass, part + m->largest, m->bias);
}

/* Layers without neighbours, then hops; sgc keeps nothing of its own. */
static void run_hops(struct pass *pass)
{
    const struct sl_parts_reference *ref = pass->ref;
    const bool sgc = ref->model.kind == SL_PARTS_SGC;
    const int layers = sgc ? 1 : ref->model.layers;
    const double a = sgc ? 0.0 : ref->model.teleport;
    for (int l = 0; l < layers; l++) {
        drop(pass, l);
        multiply(pass, l, ref->model.bias);
        if (l + 1 < layers)
            rectify(pass);
    }
    double *own = copy_of(pass);
    for (int k = 0; k < ref->model.hops; k++) {
        double *again = doubles(ref->n * pass->width);
        memcpy(again, own, (size_t)(ref->n * pass->width) * sizeof *again);
        aggregate(pass);
        mix(pass, 1.0 - a, a, again);
    }
    free(own);
}

static struct pass run(struct sl_parts_reference *ref, bool training)
{
    struct pass pass = {ref, training, ref->features, doubles(ref->n * ref->features)};
    memcpy(pass.h, ref->x, (size_t)(ref->n * ref->features) * sizeof *pass.h);
    ref->kink = INFINITY;
    ref->pattern = 0;
    if (ref->model.kind == SL_PARTS_RESGCN)
        run_resgcn(&pass);
    else if (ref->model.kind == SL_PARTS_GIN)
        run_gin(&pass);
    else if (ref->model.kind == SL_PARTS_SGC || ref->model.kind == SL_PARTS_APPNP)
        run_hops(&pass);
    else
        run_layers(&pass);
    return pass;
}

void sl_parts_reference_forward(struct sl_parts_reference *ref, bool training, double *logits)
{
    struct pass pass = run(ref, training);
    memcpy(logits, pass.h, (size_t)(ref->n * ref->classes) * sizeof *logits);
    free(pass.h);
}

double sl_parts_reference_loss(struct sl_parts_reference *ref, bool training)
{
    struct pass pass = run(ref, training);
    double loss = 0.0, count = 0.0;
    for (int64_t v = 0; v < ref->n; v++) {
        const double *z = pass.h + v * ref->classes;
        double most = -INFINITY, sum = 0.0;
        if (!ref->train[v] || ref->label[v] < 0)
            continue;
        for (int64_t c = 0; c < ref->classes; c++)
            most = fmax(most, z[c]);
        for (int64_t c = 0; c < ref->classes; c++)
            sum += exp(z[c] - most);
        loss += log(sum) + most - z[ref->label[v]];
        count++;
    }
    free(pass.h);
    return loss / count;
}

bool sl_parts_reference_difference(struct sl_parts_reference *ref, double *parameter,
                                   double *difference)
{
    const double at = *parameter;
    *parameter = at + STEP;
    const double above = sl_parts_reference_loss(ref, true);
    const uint64_t pattern = ref->pattern;
    *parameter = at - STEP;
    const double below = sl_parts_reference_loss(ref, true);
    *parameter = at;
    *difference = (above - below) / (2.0 * STEP);
    return pattern == ref->pattern;
}
