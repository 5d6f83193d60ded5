#include "tests/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)(count > 0 ? count : 1), size);
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

int sl_reference_weights(const struct sl_reference *net)
{
    return net->norm >= SL_REFERENCE_MEAN ? 2 : 1;
}

/* Of W_l. */
static int64_t rows_of(const struct sl_reference *net, int l)
{
    return sl_reference_weights(net) * net->widths[l];
}

struct sl_reference *sl_reference_create(int64_t n, int layers, const int64_t *widths,
                                         enum sl_reference_norm norm)
{
    struct sl_reference *net = zeros(1, sizeof *net);
    net->norm = norm;
    net->n = n;
    net->features = widths[0];
    net->classes = widths[layers];
    net->layers = layers;
    net->widths = zeros(layers + 1, sizeof *net->widths);
    memcpy(net->widths, widths, ((size_t)layers + 1) * sizeof *widths);
    net->a = doubles(n * n);
    net->x = doubles(n * net->features);
    net->labels = zeros(n, sizeof *net->labels);
    net->train = zeros(n, sizeof *net->train);
    net->dropout = doubles(layers);
    net->keys = zeros(layers, sizeof *net->keys);
    for (int l = 0; l < layers; l++)
        net->parameters += (rows_of(net, l) + 1) * widths[l + 1];
    net->theta = doubles(net->parameters);
    return net;
}

void sl_reference_destroy(struct sl_reference *net)
{
    if (!net)
        return;
    free(net->widths);
    free(net->a);
    free(net->x);
    free(net->labels);
    free(net->train);
    free(net->dropout);
    free(net->keys);
    free(net->theta);
    free(net);
}

double *sl_reference_weight(const struct sl_reference *net, double *flat, int layer)
{
    for (int l = 0; l < layer; l++)
        flat += (rows_of(net, l) + 1) * net->widths[l + 1];
    return flat;
}

double *sl_reference_bias(const struct sl_reference *net, double *flat, int layer)
{
    return sl_reference_weight(net, flat, layer) + rows_of(net, layer) * net->widths[layer + 1];
}

void sl_reference_initialize(struct sl_reference *net, uint64_t seed)
{
    memset(net->theta, 0, (size_t)net->parameters * sizeof *net->theta);
    for (int l = 0; l < net->layers; l++) {
        const int64_t rows = rows_of(net, l), cols = net->widths[l + 1];
        const double limit = sqrt(6.0 / (double)(net->widths[l] + cols));
        const uint64_t key = sl_rng_key(seed, SL_RNG_INIT, 0, (uint32_t)l);
        double *w = sl_reference_weight(net, net->theta, l);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < cols; j++) {
                const double u = sl_rng_uniform(key, (uint32_t)r, (uint32_t)j);
                w[r * cols + j] = (double)(float)(limit * (2.0 * u - 1.0));
            }
    }
}

void sl_reference_set_epoch(struct sl_reference *net, uint64_t seed, uint32_t epoch)
{
    for (int l = 0; l < net->layers; l++)
        net->keys[l] = sl_rng_key(seed, SL_RNG_DROPOUT, epoch, (uint32_t)l);
}

/* C (m, n) = A (m, k) · B (k, n). */
static void product(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = 0.0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * k + l] * b[l * n + j];
}

static double *transposed(int64_t rows, int64_t cols, const double *a)
{
    double *t = doubles(rows * cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            t[c * rows + r] = a[r * cols + c];
    return t;
}

void sl_reference_normalize(const struct sl_reference *net, double *normalized)
{
    const int64_t n = net->n;
    const bool loops = sl_reference_weights(net) == 1;
    double *degree = doubles(n), *count = doubles(n);
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u < n; u++) {
            const double entry = net->a[v * n + u], loop = loops && u == v ? 1.0 : 0.0;
            normalized[v * n + u] = entry + loop;
            degree[v] += entry + loop;
            count[v] += (entry != 0.0 ? 1.0 : 0.0) + loop;
        }
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u < n; u++) {
            double *entry = &normalized[v * n + u];
            if (net->norm == SL_REFERENCE_SYM)
                *entry /= sqrt(degree[v]) * sqrt(degree[u]);
            else if (net->norm == SL_REFERENCE_ROW)
                *entry /= degree[v];
            else if (net->norm < SL_REFERENCE_SUM && *entry != 0.0)
                *entry /= count[v];
        }
    free(degree);
    free(count);
}

/* Values that a forward pass leaves for the backward pass. */
struct pass {
    double *normalized; // (n, n): Â
    double **mask;      // [layers] (n, widths[l]): 0 or the scale
    double **spread;    // [layers] (n, rows of W_l): Â·drop(H_l), or drop(H_l) and that
    double **z;         // [layers] (n, widths[l+1])
};

static double *make_mask(const struct sl_reference *net, int l)
{
    const int64_t n = net->n, width = net->widths[l];
    const struct sl_dropout drop = sl_dropout_make(net->dropout[l], net->keys[l]);
    double *mask = doubles(n * width);
    for (int64_t v = 0; v < n; v++)
        for (int64_t j = 0; j < width; j++)
            mask[v * width + j] = (double)sl_dropout_factor(&drop, (uint32_t)v, (uint32_t)j);
    return mask;
}

static double relu(double x)
{
    return x > 0.0 ? x : 0.0;
}

static bool chooses(const struct sl_reference *net)
{
    return net->norm == SL_REFERENCE_MAX || net->norm == SL_REFERENCE_MIN;
}

/* The compared value of a neighbour: a(v, u)·h, or, for the least, less than nothing by as much. */
static double sent(const struct sl_reference *net, int64_t v, int64_t u, double h)
{
    return (net->norm == SL_REFERENCE_MIN ? -1.0 : 1.0) * net->a[v * net->n + u] * h;
}

/* The first neighbour u of v that sends the largest of h (n, width); -1 without neighbours. */
static int64_t chosen(const struct sl_reference *net, int64_t v, int64_t width, const double *h)
{
    int64_t best = -1;
    for (int64_t u = 0; u < net->n; u++) {
        if (net->a[v * net->n + u] != 0.0 &&
            (best < 0 || sent(net, v, u, h[u * width]) > sent(net, v, best, h[best * width])))
            best = u;
    }
    return best;
}

/* Y = [H | Â·H], or Â·H alone. H (n, in). */
static void spread(const struct sl_reference *net, const double *normalized, int64_t in,
                   const double *h, double *y)
{
    const int64_t n = net->n, width = sl_reference_weights(net) * in;
    double *neighbours = doubles(n * in);
    product(n, in, n, normalized, h, neighbours);
    for (int64_t v = 0; chooses(net) && v < n; v++)
        for (int64_t j = 0; j < in; j++) {
            const int64_t u = chosen(net, v, in, h + j);
            neighbours[v * in + j] = u < 0 ? 0.0 : net->a[v * n + u] * h[u * in + j];
        }
    for (int64_t v = 0; v < n; v++)
        for (int64_t j = 0; j < in; j++) {
            y[v * width + j] = h[v * in + j];
            y[v * width + width - in + j] = neighbours[v * in + j];
        }
    free(neighbours);
}

/* The gradient of H from that of Y. */
static void spread_back(const struct sl_reference *net, const double *normalized, int64_t in,
                        const double *y, const double *dy, double *dh)
{
    const int64_t n = net->n, width = sl_reference_weights(net) * in;
    double *back = transposed(n, n, normalized), *neighbours = doubles(n * in);
    for (int64_t v = 0; v < n; v++)
        for (int64_t j = 0; j < in; j++)
            neighbours[v * in + j] = dy[v * width + width - in + j];
    product(n, in, n, back, neighbours, dh);
    if (chooses(net)) {
        memset(dh, 0, (size_t)(n * in) * sizeof *dh);
        for (int64_t v = 0; v < n; v++)
            for (int64_t j = 0; j < in; j++) {
                const int64_t u = chosen(net, v, width, y + j); /* Y begins with H */
                if (u >= 0)
                    dh[u * in + j] += net->a[v * n + u] * neighbours[v * in + j];
            }
    }
    for (int64_t v = 0; width > in && v < n; v++)
        for (int64_t j = 0; j < in; j++)
            dh[v * in + j] += dy[v * width + j];
    free(back);
    free(neighbours);
}

static void run_layer(const struct sl_reference *net, struct pass *pass, int l)
{
    const int64_t n = net->n, in = net->widths[l], out = net->widths[l + 1];
    const double *b = sl_reference_bias(net, net->theta, l);
    double *dropped = doubles(n * in);
    pass->mask[l] = make_mask(net, l);
    pass->spread[l] = doubles(n * rows_of(net, l));
    pass->z[l] = doubles(n * out);
    for (int64_t i = 0; i < n * in; i++)
        dropped[i] = pass->mask[l][i] * (l == 0 ? net->x[i] : relu(pass->z[l - 1][i]));
    spread(net, pass->normalized, in, dropped, pass->spread[l]);
    product(n, out, rows_of(net, l), pass->spread[l], sl_reference_weight(net, net->theta, l),
            pass->z[l]);
    for (int64_t v = 0; v < n; v++)
        for (int64_t j = 0; j < out; j++)
            pass->z[l][v * out + j] += b[j];
    free(dropped);
}

static struct pass pass_make(const struct sl_reference *net)
{
    struct pass pass = {
        .normalized = doubles(net->n * net->n),
        .mask = zeros(net->layers, sizeof(double *)),
        .spread = zeros(net->layers, sizeof(double *)),
        .z = zeros(net->layers, sizeof(double *)),
    };
    sl_reference_normalize(net, pass.normalized);
    for (int l = 0; l < net->layers; l++)
        run_layer(net, &pass, l);
    return pass;
}

static void pass_free(const struct sl_reference *net, struct pass *pass)
{
    for (int l = 0; l < net->layers; l++) {
        free(pass->mask[l]);
        free(pass->spread[l]);
        free(pass->z[l]);
    }
    free(pass->normalized);
    free(pass->mask);
    free(pass->spread);
    free(pass->z);
}

void sl_reference_forward(const struct sl_reference *net, double *logits)
{
    struct pass pass = pass_make(net);
    memcpy(logits, pass.z[net->layers - 1], (size_t)(net->n * net->classes) * sizeof *logits);
    pass_free(net, &pass);
}

static bool trains(const struct sl_reference *net, int64_t v)
{
    return net->train[v] && net->labels[v] >= 0;
}

static int64_t count_training(const struct sl_reference *net)
{
    int64_t count = 0;
    for (int64_t v = 0; v < net->n; v++)
        count += trains(net, v);
    return count;
}

static int64_t count_class(const struct sl_reference *net, int64_t j)
{
    int64_t count = 0;
    for (int64_t v = 0; v < net->n; v++)
        count += trains(net, v) && net->labels[v] == j;
    return count;
}

/* The weight of class j, or of the value y of column j. */
static double weight_of(const struct sl_reference *net, int64_t j, double y)
{
    const int64_t all = count_training(net), ones = count_class(net, j);
    const int64_t mine = y > 0.5 ? ones : all - ones;
    int64_t values = (ones > 0) + (ones < all);
    if (net->loss == SL_REFERENCE_SOFTMAX) {
        values = 0;
        for (int64_t c = 0; c < net->classes; c++)
            values += count_class(net, c) > 0;
    }
    return net->balanced && mine > 0 ? (double)all / ((double)values * (double)mine) : 1.0;
}

/* w_j ((1 - E) y_j + E / classes) of vertex v, or the like of its loss. */
static double wanted_of(const struct sl_reference *net, int64_t v, int64_t j)
{
    const double y = net->labels[v] == j ? 1.0 : 0.0;
    const double values = net->loss == SL_REFERENCE_SOFTMAX ? (double)net->classes : 2.0;
    const double weight = weight_of(net, j, net->loss == SL_REFERENCE_SOFTMAX ? 1.0 : y);
    return net->loss == SL_REFERENCE_SQUARE
               ? y
               : weight * ((1.0 - net->smoothing) * y + net->smoothing / values);
}

static double softmax_of_row(const struct sl_reference *net, int64_t v, const double *z, double *g)
{
    const int64_t classes = net->classes;
    double largest = -INFINITY, sum = 0.0, all = 0.0, loss = 0.0;
    for (int64_t j = 0; j < classes; j++)
        largest = fmax(largest, z[j]);
    for (int64_t j = 0; j < classes; j++)
        sum += exp(z[j] - largest);
    for (int64_t j = 0; j < classes; j++) {
        all += wanted_of(net, v, j);
        loss += wanted_of(net, v, j) * (log(sum) + largest - z[j]);
    }
    for (int64_t j = 0; g && j < classes; j++)
        g[j] = all * exp(z[j] - largest) / sum - wanted_of(net, v, j);
    return loss;
}

static double values_of_row(const struct sl_reference *net, int64_t v, const double *z, double *g)
{
    const double classes = (double)net->classes;
    double loss = 0.0;
    for (int64_t j = 0; j < net->classes; j++) {
        const double wanted = wanted_of(net, v, j),
                     weight = weight_of(net, j, net->labels[v] == j ? 1.0 : 0.0);
        const bool square = net->loss == SL_REFERENCE_SQUARE;
        loss += (square ? (z[j] - wanted) * (z[j] - wanted)
                        : weight * log(1.0 + exp(z[j])) - z[j] * wanted) /
                classes;
        if (g)
            g[j] =
                (square ? 2.0 * (z[j] - wanted) : weight / (1.0 + exp(-z[j])) - wanted) / classes;
    }
    return loss;
}

/* The mean loss; g (n, classes), unless NULL, gets its gradient with respect to the logits. */
static double loss_of_logits(const struct sl_reference *net, const double *logits, double *g)
{
    const int64_t classes = net->classes, count = count_training(net);
    double loss = 0.0;
    for (int64_t v = 0; v < net->n; v++) {
        if (!trains(net, v))
            continue;
        const double *z = logits + v * classes;
        double *row = g ? g + v * classes : NULL;
        loss += (net->loss == SL_REFERENCE_SOFTMAX ? softmax_of_row(net, v, z, row)
                                                   : values_of_row(net, v, z, row)) /
                (double)count;
        for (int64_t j = 0; row && j < classes; j++)
            row[j] /= (double)count;
    }
    return loss;
}

double sl_reference_loss(const struct sl_reference *net)
{
    struct pass pass = pass_make(net);
    const double loss = loss_of_logits(net, pass.z[net->layers - 1], NULL);
    pass_free(net, &pass);
    return loss;
}

double sl_reference_accuracy(const struct sl_reference *net, const double *logits, const bool *mask)
{
    int64_t count = 0, correct = 0;
    for (int64_t v = 0; v < net->n; v++) {
        if (!mask[v] || net->labels[v] < 0)
            continue;
        const double *z = logits + v * net->classes;
        int64_t best = 0;
        for (int64_t j = 1; j < net->classes; j++)
            if (z[j] > z[best])
                best = j;
        count++;
        correct += best == net->labels[v];
    }
    return count ? (double)correct / (double)count : 0.0;
}

/* A network with what its forward pass has left. */
struct done {
    const struct sl_reference *net;
    struct pass pass;
};

/* From g = d loss / d Z_l: the gradients of W_l and b_l, and d loss / d Z_{l-1}, which is returned
 * (NULL for l = 0). `factors` has H and W, by which g is multiplied; `way` says where relu and the
 * largest neighbour let numbers pass. */
static double *backward_layer(const struct done *way, const struct done *factors, int l,
                              const double *g, double *gradient)
{
    const struct sl_reference *net = way->net;
    const int64_t n = net->n, in = net->widths[l], out = net->widths[l + 1];
    const int64_t rows = rows_of(net, l);
    double *spread_t = transposed(n, rows, factors->pass.spread[l]),
           *db = sl_reference_bias(net, gradient, l);
    product(rows, out, n, spread_t, g, sl_reference_weight(net, gradient, l));
    free(spread_t);
    for (int64_t j = 0; j < out; j++) {
        db[j] = 0.0;
        for (int64_t v = 0; v < n; v++)
            db[j] += g[v * out + j];
    }
    if (l == 0)
        return NULL;
    double *w_t = transposed(rows, out, sl_reference_weight(net, factors->net->theta, l));
    double *d_spread = doubles(n * rows), *d_z = doubles(n * in);
    product(n, rows, out, g, w_t, d_spread);
    spread_back(net, way->pass.normalized, in, way->pass.spread[l], d_spread,
                d_z); /* d loss / d drop(H_l) */
    for (int64_t i = 0; i < n * in; i++)
        d_z[i] *= way->pass.mask[l][i] * (way->pass.z[l - 1][i] > 0.0 ? 1.0 : 0.0);
    free(w_t);
    free(d_spread);
    return d_z;
}

/* All layers, from g, which is freed. */
static void backward(const struct done *way, const struct done *factors, double *g,
                     double *gradient)
{
    for (int l = way->net->layers - 1; l >= 0; l--) {
        double *below = backward_layer(way, factors, l, g, gradient);
        free(g);
        g = below;
    }
}

double sl_reference_gradient(const struct sl_reference *net, double *gradient)
{
    struct done done = {net, pass_make(net)};
    double *g = doubles(net->n * net->classes);
    const double loss = loss_of_logits(net, done.pass.z[net->layers - 1], g);
    backward(&done, &done, g, gradient);
    pass_free(net, &done.pass);
    return loss;
}

static double *sizes_of(const double *a, int64_t count)
{
    double *sizes = doubles(count);
    for (int64_t i = 0; i < count; i++)
        sizes[i] = fabs(a[i]);
    return sizes;
}

/* The error of softmax's gradient: a probability moves by itself times twice what logits are off
 * by. */
static double *loss_terms(const struct sl_reference *net, const double *logits, const double *sizes)
{
    const int64_t classes = net->classes, count = count_training(net);
    double *g = doubles(net->n * classes);
    loss_of_logits(net, logits, g);
    for (int64_t v = 0; v < net->n; v++) {
        double most = 0.0;
        for (int64_t j = 0; j < classes; j++)
            most = fmax(most, sizes[v * classes + j]);
        for (int64_t j = 0; trains(net, v) && j < classes; j++) {
            const bool square = net->loss == SL_REFERENCE_SQUARE;
            const double columns = net->loss == SL_REFERENCE_SOFTMAX ? 1.0 : (double)classes;
            const double label = wanted_of(net, v, j) / columns / (double)count;
            double *term = &g[v * classes + j];
            *term = square ? 2.0 * (sizes[v * classes + j] / columns / (double)count + label)
                           : (*term + label) * (1.0 + 2.0 * most) + label;
        }
    }
    return g;
}

void sl_reference_terms(const struct sl_reference *net, double *terms)
{
    struct sl_reference sizes = *net;
    const int last = net->layers - 1;
    if (net->norm == SL_REFERENCE_MIN) /* what is sent is at most the largest of sizes */
        sizes.norm = SL_REFERENCE_MAX;
    sizes.theta = sizes_of(net->theta, net->parameters);
    sizes.x = sizes_of(net->x, net->n * net->features);
    struct done way = {net, pass_make(net)}, factors = {&sizes, pass_make(&sizes)};
    backward(&way, &factors, loss_terms(net, way.pass.z[last], factors.pass.z[last]), terms);
    pass_free(net, &way.pass);
    pass_free(net, &factors.pass);
    free(sizes.theta);
    free(sizes.x);
}

double sl_reference_difference(struct sl_reference *net, int64_t p, double h)
{
    const double before = net->theta[p];
    const double above = before + h, below = before - h; /* their distance is not exactly 2h */
    net->theta[p] = above;
    const double loss_above = sl_reference_loss(net);
    net->theta[p] = below;
    const double loss_below = sl_reference_loss(net);
    net->theta[p] = before;
    return (loss_above - loss_below) / (above - below);
}

static double lead_at(const struct sl_reference *net, int64_t v, int64_t width, const double *h)
{
    const int64_t best = chosen(net, v, width, h);
    double lead = INFINITY;
    for (int64_t u = 0; best >= 0 && u < net->n; u++) {
        const double behind = sent(net, v, best, h[best * width]) - sent(net, v, u, h[u * width]);
        if (net->a[v * net->n + u] != 0.0 && behind > 0.0)
            lead = fmin(lead, behind);
    }
    return lead;
}

double sl_reference_lead(const struct sl_reference *net)
{
    struct pass pass = pass_make(net);
    double lead = INFINITY;
    for (int l = 1; chooses(net) && l < net->layers; l++)
        for (int64_t v = 0; v < net->n; v++)
            for (int64_t j = 0; j < net->widths[l]; j++)
                lead = fmin(lead, lead_at(net, v, rows_of(net, l), pass.spread[l] + j));
    pass_free(net, &pass);
    return lead;
}

double sl_reference_kink_distance(const struct sl_reference *net)
{
    struct pass pass = pass_make(net);
    double distance = INFINITY;
    for (int l = 0; l + 1 < net->layers; l++)
        for (int64_t i = 0; i < net->n * net->widths[l + 1]; i++)
            distance = fmin(distance, fabs(pass.z[l][i]));
    pass_free(net, &pass);
    return distance;
}

static void update(struct sl_reference_optimizer *o, double decay, int64_t p, double g, double *w)
{
    double *m = &o->m[p], *v = &o->v[p];
    if (o->method != SL_REFERENCE_ADAMW)
        g += decay * *w;
    else
        *w -= o->rate * decay * *w;
    if (o->method == SL_REFERENCE_SGD) {
        *m = o->beta1 * *m + g;
        *w -= o->rate * *m;
        return;
    }
    *m = o->beta1 * *m + (1.0 - o->beta1) * g;
    *v = o->beta2 * *v + (1.0 - o->beta2) * g * g;
    const double m_hat = *m / (1.0 - pow(o->beta1, (double)o->step));
    const double v_hat = *v / (1.0 - pow(o->beta2, (double)o->step));
    *w -= o->rate * m_hat / (sqrt(v_hat) + o->epsilon);
}

double sl_reference_step(struct sl_reference *net, struct sl_reference_optimizer *optimizer)
{
    double *gradient = doubles(net->parameters);
    const double loss = sl_reference_gradient(net, gradient);
    if (!optimizer->m) {
        optimizer->m = doubles(net->parameters);
        optimizer->v = doubles(net->parameters);
    }
    optimizer->step++;
    double squares = 0.0;
    for (int64_t i = 0; i < net->parameters; i++)
        squares += gradient[i] * gradient[i];
    if (optimizer->clip_norm > 0.0 && sqrt(squares) > optimizer->clip_norm)
        for (int64_t i = 0; i < net->parameters; i++)
            gradient[i] *= optimizer->clip_norm / sqrt(squares);
    int64_t p = 0;
    for (int l = 0; l < net->layers; l++) {
        const double decay = l < optimizer->decay_layers ? optimizer->decay : 0.0;
        const int64_t weights = rows_of(net, l) * net->widths[l + 1];
        for (int64_t i = 0; i < weights; i++, p++)
            update(optimizer, decay, p, gradient[p], &net->theta[p]);
        for (int64_t j = 0; j < net->widths[l + 1]; j++, p++)
            update(optimizer, optimizer->decay_bias ? decay : 0.0, p, gradient[p], &net->theta[p]);
    }
    free(gradient);
    return loss;
}

void sl_reference_train(struct sl_reference *net, struct sl_reference_optimizer *optimizer,
                        uint64_t seed, int epochs, double *losses)
{
    for (int epoch = 0; epoch < epochs; epoch++) {
        sl_reference_set_epoch(net, seed, (uint32_t)epoch);
        losses[epoch] = sl_reference_step(net, optimizer);
    }
}

void sl_reference_optimizer_clear(struct sl_reference_optimizer *optimizer)
{
    free(optimizer->m);
    free(optimizer->v);
    optimizer->m = optimizer->v = NULL;
    optimizer->step = 0;
}
