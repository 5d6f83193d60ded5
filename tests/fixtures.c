#include "tests/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_fixture sl_fixtures[] = {
    {SL_FIXTURE("undirected", 37, 11, 5, 4), .form = SL_FEATURES_DENSE, .seed = 1},
    {SL_FIXTURE("undirected-weighted", 41, 13, 3, 5), .weighted = true, .form = SL_FEATURES_CSR,
     .seed = 2},
    {SL_FIXTURE("directed", 43, 9, 4, 3), .directed = true, .form = SL_FEATURES_CSR,
     .unit_features = true, .seed = 3},
    {SL_FIXTURE("directed-weighted", 53, 17, 7, 4), .directed = true, .weighted = true,
     .form = SL_FEATURES_DENSE, .seed = 4},
    {SL_FIXTURE("self-loops", 37, 7, 3, 4), .self_loops = true, .form = SL_FEATURES_DENSE,
     .seed = 5},
    {SL_FIXTURE("directed-weighted-self-loops", 29, 19, 6, 5), .directed = true, .weighted = true,
     .self_loops = true, .form = SL_FEATURES_CSR, .seed = 6},
    {SL_FIXTURE("isolated", 47, 5, 4, 3), .isolated = 9, .form = SL_FEATURES_DENSE, .seed = 7},
    {SL_FIXTURE("identity", 53, 0, 5, 4), .form = SL_FEATURES_IDENTITY, .seed = 8},
    {SL_FIXTURE("unlabelled-train", 37, 6, 4, 3), .form = SL_FEATURES_CSR, .unlabelled_train = true,
     .seed = 9},
    {SL_FIXTURE("dense-graph", 23, 3, 2, 22), .form = SL_FEATURES_DENSE, .seed = 10},
    {SL_FIXTURE("no-edges", 31, 8, 3, 0), .isolated = 31, .form = SL_FEATURES_DENSE, .seed = 11},
    {SL_FIXTURE("one-vertex", 1, 3, 2, 0), .isolated = 1, .form = SL_FEATURES_DENSE, .seed = 12},
    {.name = "no-vertices", .features = 4, .classes = 2, .form = SL_FEATURES_DENSE, .seed = 13},
};
const int sl_fixture_count = (int)(sizeof sl_fixtures / sizeof sl_fixtures[0]);

const struct sl_fixture *sl_fixture_find(const char *name)
{
    for (int i = 0; i < sl_fixture_count; i++)
        if (strcmp(sl_fixtures[i].name, name) == 0)
            return &sl_fixtures[i];
    fprintf(stderr, "fixtures: there is no \"%s\"\n", name);
    abort();
}

static void *array(int64_t count, size_t size)
{
    void *memory =
        calloc((size_t)count + 1, size); /* never empty: an empty array has an address too */
    if (!memory) {
        fprintf(stderr, "fixtures: no memory for %lld elements\n", (long long)count);
        abort();
    }
    return memory;
}

static char *text(const char *string)
{
    char *copy = array((int64_t)strlen(string), 1);
    return strcpy(copy, string);
}

static uint64_t random_bits(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static int64_t random_below(uint64_t *state, int64_t bound)
{
    return (int64_t)(random_bits(state) % (uint64_t)bound);
}

static bool random_chance(uint64_t *state, double p)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53 < p;
}

/* The CSR matrix of the nonzero entries of dense (rows, cols). */
static struct sl_csr compress(int64_t rows, int64_t cols, const float *dense, bool has_values)
{
    int64_t *indptr = array(rows + 1, sizeof *indptr), nnz = 0;
    int32_t *indices = array(rows * cols, sizeof *indices);
    float *values = has_values ? array(rows * cols, sizeof *values) : NULL;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            if (dense[r * cols + c] == 0.0f)
                continue;
            indices[nnz] = (int32_t)c;
            if (values)
                values[nnz] = dense[r * cols + c];
            nnz++;
        }
        indptr[r + 1] = nnz;
    }
    return (struct sl_csr){rows, cols, indptr, indices, values};
}

/* Dense adjacency (n, n); the isolated vertices are spread over the numbers. */
static float *make_adjacency(const struct sl_fixture *f, uint64_t *state)
{
    const int64_t n = f->vertices;
    float *a = array(n * n, sizeof *a);
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u <= v; u++) {
            const double p =
                u == v ? (f->self_loops ? 1.0 / 3.0 : 0.0) : f->degree / (double)(n - 1);
            const bool there = random_chance(state, p), back = random_chance(state, p);
            const float weight = f->weighted ? (float)(1 + random_below(state, 16)) / 8.0f : 1.0f;
            const float other = f->weighted ? (float)(1 + random_below(state, 16)) / 8.0f : 1.0f;
            a[u * n + v] = f->directed ? (back ? other : 0.0f) : (there ? weight : 0.0f);
            a[v * n + u] = there ? weight : 0.0f;
        }
    for (int64_t i = 0; i < f->isolated; i++) {
        const int64_t v = i * n / f->isolated;
        for (int64_t u = 0; u < n; u++)
            a[u * n + v] = a[v * n + u] = 0.0f;
    }
    return a;
}

static bool is_symmetric(int64_t n, const float *a)
{
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u < v; u++)
            if (a[v * n + u] != a[u * n + v])
                return false;
    return true;
}

/* In (-1, 1), multiples of 2^-10; CSR: about a quarter of them nonzero, some rows empty. */
static void make_features(const struct sl_fixture *f, uint64_t *state, struct sl_dataset *data)
{
    const int64_t n = f->vertices, width = f->features;
    if (f->form == SL_FEATURES_IDENTITY)
        return;
    float *x = array(n * width, sizeof *x);
    for (int64_t v = 0; v < n; v++) {
        const bool empty = f->form == SL_FEATURES_CSR && v % 7 == 2;
        for (int64_t j = 0; j < width; j++) {
            const float value = (float)(random_below(state, 2047) - 1023) / 1024.0f;
            const bool stored =
                f->form == SL_FEATURES_DENSE || (!empty && random_chance(state, 0.25));
            x[v * width + j] = !stored ? 0.0f : f->unit_features ? 1.0f : value;
        }
    }
    if (f->form == SL_FEATURES_DENSE) {
        data->features_dense = x;
        return;
    }
    data->features_csr = compress(n, width, x, !f->unit_features);
    free(x);
}

static struct sl_index_set collect(int64_t n, const enum sl_split *split, enum sl_split which)
{
    int64_t *ids = array(n, sizeof *ids), count = 0;
    for (int64_t v = 0; v < n; v++)
        if (split[v] == which)
            ids[count++] = v;
    return (struct sl_index_set){ids, count};
}

static void make_labels(const struct sl_fixture *f, uint64_t *state, struct sl_dataset *data)
{
    const int64_t n = f->vertices;
    int32_t *labels = array(n, sizeof *labels);
    enum sl_split *split = array(n, sizeof *split);
    for (int64_t v = 0; v < n; v++) {
        const int64_t draw = random_below(state, 10);
        split[v] = draw < 5   ? SL_SPLIT_TRAIN
                   : draw < 7 ? SL_SPLIT_VAL
                   : draw < 9 ? SL_SPLIT_TEST
                              : SL_SPLIT_NONE;
        labels[v] = (int32_t)random_below(state, f->classes);
        if (random_chance(state, 0.1) && (split[v] != SL_SPLIT_TRAIN || f->unlabelled_train))
            labels[v] = -1;
    }
    if (n > 0) {
        split[n - 1] = SL_SPLIT_TRAIN;
        labels[n - 1] = (int32_t)(f->classes - 1);
    }
    if (f->unlabelled_train && n > 1) { /* not left to chance */
        split[0] = SL_SPLIT_TRAIN;
        labels[0] = -1;
    }
    data->labels = labels;
    data->train = collect(n, split, SL_SPLIT_TRAIN);
    data->val = collect(n, split, SL_SPLIT_VAL);
    data->test = collect(n, split, SL_SPLIT_TEST);
    free(split);
}

static void csr_free(struct sl_csr *csr)
{
    free((void *)csr->indptr);
    free((void *)csr->indices);
    free((void *)csr->values);
}

/* Two entries in place of every third one, loops included: both get relations later. */
static void double_entries(const struct sl_fixture *f, uint64_t *state, struct sl_csr *a)
{
    const int64_t nnz = a->indptr[a->rows];
    int64_t *indptr = array(a->rows + 1, sizeof *indptr), count = 0;
    int32_t *indices = array(2 * nnz, sizeof *indices);
    float *values = a->values ? array(2 * nnz, sizeof *values) : NULL;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
            const int64_t end = count + 1 + (f->relations > 1 && random_chance(state, 1.0 / 3.0));
            for (; count < end; count++) {
                indices[count] = a->indices[e];
                if (values)
                    values[count] = a->values[e];
            }
        }
        indptr[r + 1] = count;
    }
    csr_free(a);
    *a = (struct sl_csr){a->rows, a->cols, indptr, indices, values};
}

/* Relations ascend where a row has a column twice. */
static void relate(const struct sl_fixture *f, uint64_t *state, const struct sl_csr *a,
                   int64_t width, float *edge)
{
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
            const bool second = e > a->indptr[r] && a->indices[e] == a->indices[e - 1],
                       first = e + 1 < a->indptr[r + 1] && a->indices[e] == a->indices[e + 1];
            const int64_t least = second ? (int64_t)edge[e * width - 1] + 1 : 0;
            edge[(e + 1) * width - 1] =
                (float)(least + random_below(state, f->relations - first - least));
        }
}

/* Features of edges, from -1 to 1, and their relations. */
static void make_edge_features(const struct sl_fixture *f, uint64_t *state, struct sl_dataset *data)
{
    const int64_t width = f->edge_features + (f->relations > 0),
                  count = data->adjacency.indptr[data->vertices] * width;
    float *edge = width ? array(count, sizeof *edge) : NULL;
    for (int64_t i = 0; edge && i < count; i++)
        edge[i] = (float)random_below(state, 129) / 64.0f - 1.0f;
    if (f->relations > 0)
        relate(f, state, &data->adjacency, width, edge);
    data->edge = edge;
    data->edge_features = width;
    data->relations = f->relations;
}

struct sl_dataset sl_fixture_open(const struct sl_fixture *fixture)
{
    const int64_t n = fixture->vertices;
    uint64_t state = fixture->seed;
    float *adjacency = make_adjacency(fixture, &state);
    struct sl_dataset data = {
        .name = text(fixture->name),
        .path = text(fixture->name),
        .vertices = n,
        .features = fixture->form == SL_FEATURES_IDENTITY ? n : fixture->features,
        .classes = fixture->classes,
        .adjacency = compress(n, n, adjacency, fixture->weighted),
        .symmetric =
            is_symmetric(n, adjacency) && fixture->edge_features == 0 && fixture->relations == 0,
        .feature_form = fixture->form,
    };
    free(adjacency);
    make_features(fixture, &state, &data);
    make_labels(fixture, &state, &data);
    if (fixture->relations > 0)
        double_entries(fixture, &state, &data.adjacency);
    make_edge_features(fixture, &state, &data);
    return data;
}

void sl_fixture_close(struct sl_dataset *data)
{
    csr_free(&data->adjacency);
    csr_free(&data->features_csr);
    free((void *)data->features_dense);
    free((void *)data->labels);
    free((void *)data->edge);
    free((void *)data->train.ids);
    free((void *)data->val.ids);
    free((void *)data->test.ids);
    free(data->name);
    free(data->path);
    *data = (struct sl_dataset){0};
}

static void expand(const struct sl_csr *csr, double *out)
{
    memset(out, 0, (size_t)(csr->rows * csr->cols) * sizeof *out);
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t e = csr->indptr[r]; e < csr->indptr[r + 1]; e++)
            out[r * csr->cols + csr->indices[e]] = csr->values ? (double)csr->values[e] : 1.0;
}

void sl_fixture_dense_adjacency(const struct sl_dataset *data, double *out)
{
    expand(&data->adjacency, out);
}

void sl_fixture_dense_features(const struct sl_dataset *data, double *out)
{
    const int64_t n = data->vertices, width = data->features;
    switch (data->feature_form) {
    case SL_FEATURES_CSR:
        expand(&data->features_csr, out);
        break;
    case SL_FEATURES_DENSE:
        for (int64_t i = 0; i < n * width; i++)
            out[i] = (double)data->features_dense[i];
        break;
    case SL_FEATURES_IDENTITY:
        for (int64_t i = 0; i < n * n; i++)
            out[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
        break;
    }
}

void sl_fixture_mask(const struct sl_index_set *set, int64_t n, bool *mask)
{
    memset(mask, 0, (size_t)n * sizeof *mask);
    for (int64_t i = 0; i < set->count; i++)
        mask[set->ids[i]] = true;
}

struct sl_reference *sl_fixture_reference(const struct sl_dataset *data, int layers,
                                          const int64_t *hidden, enum sl_reference_norm norm)
{
    int64_t *widths = array(layers + 1, sizeof *widths);
    widths[0] = data->features;
    for (int l = 1; l < layers; l++)
        widths[l] = hidden[l - 1];
    widths[layers] = data->classes;
    struct sl_reference *net = sl_reference_create(data->vertices, layers, widths, norm);
    free(widths);
    sl_fixture_dense_adjacency(data, net->a);
    sl_fixture_dense_features(data, net->x);
    memcpy(net->labels, data->labels, (size_t)data->vertices * sizeof *net->labels);
    sl_fixture_mask(&data->train, data->vertices, net->train);
    return net;
}
