/* Trains every model on a small graph, with the options that change its forward pass. Compares the
 * logits of libstarling-predict with those of starling_predict. Prints a line for each case, with
 * the largest difference. Usage: predict_models DIRECTORY [NAME]. DIRECTORY gets a
 * checkpoint of each case, and inputs and logits as JSON, for tests/onnx-models.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starling-predict.h>
#include <starling.h>

enum { VERTICES = 41, FEATURES = 9, CLASSES = 4, EDGE_FEATURES = 3, RELATIONS = 3, MOST = 512 };

/* ---- Graphs ---- */

/* The kinds of graph: directed, with loops, and vertices without neighbours. `plain` and `weighted`
 * have duplicates; columns of `far` are a million from 0. */
enum kind { PLAIN, WEIGHTED, EDGES, TYPES, IDENTITY, SPARSE, NUMBERS, SEVERAL, LINKS, FAR };

struct graph {
    int64_t entries;
    int64_t indptr[VERTICES + 1];
    int32_t indices[MOST], types[MOST], labels[VERTICES];
    float weights[MOST], edge_features[MOST * EDGE_FEATURES], features[VERTICES * FEATURES],
        targets[VERTICES * CLASSES];
    uint8_t train[VERTICES], val[VERTICES];
};

static uint32_t state = 1;

static double draw(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24);
}

static void make_graph(enum kind kind, struct graph *g)
{
    state = 7;
    g->entries = 0;
    for (int v = 0; v < VERTICES; v++) {
        g->indptr[v] = g->entries;
        for (int u = 0; u < VERTICES; u++) {
            const int copies = v % 9 == 4 || u == 20  ? 0 /* without neighbours; nobody's */
                               : kind == TYPES        ? (draw() < 0.1) + (draw() < 0.05)
                               : draw() < 0.12        ? 1
                               : u == v && v % 5 == 1 ? 1
                                                      : 0;
            const int again = copies && kind < EDGES && draw() < 0.15 ? 2 : copies;
            for (int k = 0; k < again && g->entries < MOST; k++) {
                g->types[g->entries] = kind == TYPES ? k : 0;
                g->weights[g->entries] = (float)(0.25 + 2.0 * draw());
                g->indices[g->entries++] = u;
            }
        }
    }
    g->indptr[VERTICES] = g->entries;
    for (int k = 0; k < MOST * EDGE_FEATURES; k++)
        g->edge_features[k] = (float)(2.0 * draw() - 1.0);
    for (int k = 0; k < VERTICES * FEATURES; k++)
        g->features[k] = kind == SPARSE && draw() < 0.8 ? 0.0f : (float)(2.0 * draw() - 1.0);
    for (int k = 0; kind == FAR && k < VERTICES * FEATURES; k++)
        g->features[k] = (float)(1e6 + k % FEATURES / 3.0 + 4.0 * draw());
    for (int v = 0; v < VERTICES; v++) {
        g->labels[v] = (int32_t)(CLASSES * draw());
        for (int c = 0; c < CLASSES; c++)
            g->targets[v * CLASSES + c] = kind == NUMBERS ? (float)draw() : (float)(draw() < 0.4);
        g->train[v] = v % 3 != 0;
        g->val[v] = v % 3 == 0;
    }
}

static int open_graph(enum kind kind, const struct graph *g, starling_graph **graph)
{
    int code = starling_graph_create(VERTICES, g->entries, g->indptr, g->indices, graph);
    if (!code && kind == WEIGHTED)
        code = starling_graph_set_weights(*graph, g->weights);
    if (!code && kind == EDGES)
        code = starling_graph_set_edge_features(*graph, EDGE_FEATURES, g->edge_features);
    if (!code && kind == TYPES)
        code = starling_graph_set_edge_types(*graph, g->types);
    if (!code && kind != IDENTITY)
        code = starling_graph_set_features(*graph, FEATURES, g->features);
    static const int64_t pairs[] = {0, 1, 2, 3, 5, 8}, others[] = {1, 2, 3, 4, 9, 7};
    for (int split = STARLING_VAL; kind == LINKS && !code && split <= STARLING_TEST; split++)
        code = starling_graph_set_links(*graph, (enum starling_split)split, 3, pairs, 3, others);
    if (kind == LINKS)
        return code;
    if (!code && kind == NUMBERS)
        code = starling_graph_set_numbers(*graph, CLASSES, g->targets);
    else if (!code && kind == SEVERAL)
        code = starling_graph_set_labels(*graph, CLASSES, g->targets);
    else if (!code)
        code = starling_graph_set_classes(*graph, CLASSES, g->labels);
    if (!code)
        code = starling_graph_set_mask(*graph, STARLING_TRAIN, g->train);
    return code ? code : starling_graph_set_mask(*graph, STARLING_VAL, g->val);
}

/* ---- Cases ---- */

static const struct test_case {
    const char *name;
    enum kind kind;
    const char *options; /* "name value name value …" */
} cases[] = {
    {"gcn", PLAIN, "model gcn"},
    {"gcn-weighted", WEIGHTED, "model gcn"},
    {"gcn-row", WEIGHTED, "model gcn norm row bias no"},
    {"gcn-identity", IDENTITY, "model gcn"},
    {"gcn-sparse-l1", SPARSE, "model gcn normalize-features l1"},
    {"gcn-l2", PLAIN, "model gcn normalize-features l2 hidden 23"},
    {"gcn-standard", PLAIN, "model gcn normalize-features standard"},
    {"gcn-far", FAR, "model gcn normalize-features standard"},
    {"gcn-best", PLAIN, "model gcn keep best eval-every 1 epochs 12 lr 0.3"},
    {"gcn-residuals", WEIGHTED,
     "model gcn layers 3 residual identity encoder linear classifier linear activation elu"},
    {"gcn-linear", WEIGHTED, "model gcn layers 3 residual linear norm-layers row jump concat"},
    {"gcn-numbers", NUMBERS, "model gcn loss mse"},
    {"gcn-labels", SEVERAL, "model gcn loss sigmoid"},
    {"sage-mean", PLAIN, "model sage aggregator mean"},
    {"sage-sum", WEIGHTED, "model sage aggregator sum normalize-features l1 lr 0.001"},
    {"sage-weighted-mean", WEIGHTED, "model sage aggregator mean norm-layers batch"},
    {"sage-gcn", WEIGHTED, "model sage aggregator gcn"},
    {"sage-max", WEIGHTED, "model sage aggregator max jump max"},
    {"sage-min", PLAIN, "model sage aggregator min hidden 5"},
    {"sage-max-identity", IDENTITY, "model sage aggregator max"},
    {"gat", WEIGHTED, "model gat heads 3 out-heads 2 hidden 4"},
    {"gat-edges", EDGES, "model gat heads 2 hidden 4 residual identity layers 3"},
    {"gat-options", PLAIN, "model gat heads 2 hidden 4 residual linear norm-layers batch jump sum"},
    {"gatv2", WEIGHTED, "model gatv2 heads 2 out-heads 3 hidden 4"},
    {"gatv2-edges", EDGES, "model gatv2 heads 2 hidden 4 bias no residual linear"},
    {"transformer", WEIGHTED, "model transformer heads 2 out-heads 2 hidden 4 residual none"},
    {"transformer-edges", EDGES,
     "model transformer heads 2 hidden 4 residual linear encoder linear"},
    {"resgcn", WEIGHTED, "model resgcn layers 3 block-norm row"},
    {"resgcn-batch", PLAIN, "model resgcn layers 2 block-norm batch block-aggregator mean"},
    {"gin", WEIGHTED, "model gin normalize-features l1 lr 0.001"},
    {"gin-norm", PLAIN, "model gin norm-layers batch normalize-features l2"},
    {"gine", EDGES, "model gine normalize-features l1 lr 0.001"},
    {"gine-bias", EDGES, "model gine bias no encoder linear hidden 5 lr 0.001"},
    {"rgcn", TYPES, "model rgcn"},
    {"rgcn-bases", TYPES, "model rgcn bases 2 norm-layers row residual identity layers 3"},
    {"sgc", WEIGHTED, "model sgc hops 3"},
    {"appnp", WEIGHTED, "model appnp hops 4 teleport 0.2"},
    {"jknet", PLAIN, "model jknet layers 3 norm-layers row"},
    {"links", LINKS, "model gcn task links decoder dot"},
    {"links-distmult", LINKS, "model gat heads 2 hidden 4 task links decoder distmult"},
    {"links-mlp", LINKS, "model sage task links decoder mlp"},
};

static int set_options(const char *text, starling_options *options)
{
    char copy[256], *rest, *name;
    snprintf(copy, sizeof copy, "%s", text);
    int code = 0;
    for (name = strtok_r(copy, " ", &rest); !code && name; name = strtok_r(NULL, " ", &rest))
        code = starling_options_set(options, name, strtok_r(NULL, " ", &rest));
    return code;
}

static int train(const struct test_case *test, starling_graph *graph, starling_model **model)
{
    starling_options *options = NULL;
    int code = starling_options_create(&options);
    const char *epochs = "epochs 6 hidden 6 lr 0.05 seed 3 workers 1 patience 0 dropout 0.1";
    if (!code)
        code = set_options(epochs, options);
    if (!code)
        code = set_options(test->options, options);
    if (!code)
        code = starling_train(graph, options, NULL, NULL, model);
    starling_options_free(options);
    return code;
}

/* ---- Compare ---- */

static int say(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static int fill(enum kind kind, const struct graph *g, struct starling_predictor_graph *out)
{
    *out = (struct starling_predictor_graph){.size = sizeof *out,
                                             .vertices = VERTICES,
                                             .entries = g->entries,
                                             .indptr = g->indptr,
                                             .indices = g->indices};
    if (kind == WEIGHTED)
        out->weights = g->weights;
    if (kind == EDGES) {
        out->edge_columns = EDGE_FEATURES;
        out->edge_features = g->edge_features;
    }
    if (kind == TYPES)
        out->edge_types = g->types;
    if (kind != IDENTITY) {
        out->feature_columns = FEATURES;
        out->features = g->features;
    }
    return 0;
}

static void put_list(FILE *file, const char *name, int64_t count, const float *numbers)
{
    fprintf(file, ",\n\"%s\": [", name);
    for (int64_t k = 0; k < count; k++)
        fprintf(file, "%s%.9g", k ? ", " : "", (double)numbers[k]);
    fprintf(file, "]");
}

/* Edges, each once, as numbers of float32. */
struct edges {
    int64_t count;
    float source[MOST], target[MOST], weight[MOST], type[MOST];
};

static void list_edges(const struct starling_predictor_graph *graph, struct edges *edges)
{
    edges->count = 0;
    for (int64_t v = 0; v < VERTICES; v++)
        for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
            const int again = !graph->edge_types && e > graph->indptr[v] &&
                              graph->indices[e] == graph->indices[e - 1];
            const int64_t at = again ? edges->count - 1 : edges->count++;
            edges->source[at] = (float)graph->indices[e];
            edges->target[at] = (float)v;
            edges->weight[at] =
                (graph->weights ? graph->weights[e] : 1.0f) + (again ? edges->weight[at] : 0.0f);
            edges->type[at] = graph->edge_types ? (float)graph->edge_types[e] : 0.0f;
        }
}

/* Write inputs and logits. */
static int dump(const char *path, const struct starling_predictor_graph *graph, int64_t columns,
                const float *logits)
{
    char name[600];
    static struct edges edges;
    snprintf(name, sizeof name, "%s.json", path);
    FILE *file = fopen(name, "w");
    if (!file)
        return say("no file");
    list_edges(graph, &edges);
    fprintf(file, "{\"vertices\": %d", VERTICES);
    put_list(file, "edge_source", edges.count, edges.source);
    put_list(file, "edge_target", edges.count, edges.target);
    if (graph->weights)
        put_list(file, "edge_weight", edges.count, edges.weight);
    if (graph->edge_types)
        put_list(file, "edge_type", edges.count, edges.type);
    put_list(file, "edge_features", graph->entries * graph->edge_columns, graph->edge_features);
    put_list(file, "features", graph->features ? VERTICES * FEATURES : 0, graph->features);
    put_list(file, "logits", VERTICES * columns, logits);
    fprintf(file, "}\n");
    return fclose(file) != 0;
}

/* Print the largest difference of logits, as a share of the largest logit where that is over 1. */
static int compare(const struct test_case *test, const char *path,
                   const starling_prediction *prediction, const starling_predictor *predictor,
                   const struct starling_predictor_graph *graph)
{
    struct starling_predictor_error error;
    int64_t rows, columns, label_rows, label_columns;
    const float *wanted = starling_prediction_output(prediction, STARLING_LOGITS, &rows, &columns);
    const int32_t *classes = starling_prediction_classes(prediction, &label_rows, &label_columns);
    if (columns != starling_predictor_info(predictor)->outputs || rows != VERTICES)
        return say("another shape");
    float *logits = malloc((size_t)(rows * columns) * sizeof *logits);
    int32_t *found = malloc((size_t)(rows * columns) * sizeof *found);
    if (!logits || !found)
        return say("no memory");
    if (starling_predictor_run(predictor, graph, logits, &error))
        return say(error.text);
    double largest = 0.0, difference = 0.0;
    for (int64_t k = 0; k < rows * columns; k++) {
        largest = fmax(largest, fabs((double)wanted[k]));
        difference = fmax(difference, fabs((double)wanted[k] - (double)logits[k]));
    }
    int wrong = 0;
    if (starling_predictor_info(predictor)->output <= STARLING_PREDICTOR_LABELS &&
        starling_predictor_classes(predictor, rows, logits, found, &error))
        return say(error.text);
    for (int64_t k = 0; classes && k < label_rows * label_columns; k++)
        wrong += classes[k] != found[k];
    const double error_share = difference / fmax(1.0, largest);
    const int good = error_share <= 1e-6 && wrong == 0 && largest > 0.05;
    printf("%-20s %.1e of %.2f%s\n", test->name, difference, largest, good ? "" : "  FAIL");
    free(logits);
    free(found);
    return !good || dump(path, graph, columns, wanted);
}

static int run_case(const struct test_case *test, const char *directory)
{
    static struct graph arrays;
    starling_graph *graph = NULL;
    starling_model *model = NULL;
    starling_prediction *prediction = NULL;
    starling_predictor *predictor = NULL;
    struct starling_predictor_graph borrowed;
    struct starling_predictor_error error = {""};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, test->name);
    make_graph(test->kind, &arrays);
    fill(test->kind, &arrays, &borrowed);
    int failed = open_graph(test->kind, &arrays, &graph) || train(test, graph, &model) ||
                 starling_model_save(model, path) ||
                 starling_predict(model, graph, NULL, 0, &prediction);
    if (failed)
        fprintf(stderr, "%s: %s\n", test->name, starling_error());
    else if (starling_predictor_open(path, &predictor, &error))
        failed = say(error.text);
    else
        failed = compare(test, path, prediction, predictor, &borrowed);
    starling_predictor_close(predictor);
    starling_prediction_free(prediction);
    starling_model_free(model);
    starling_graph_free(graph);
    return failed;
}

/* ---- A vertex of very many neighbours ---- */

enum { HUB = 60000 };

/* A star: row 0 has all other vertices, and each of them has vertex 0. */
struct star {
    int64_t indptr[HUB + 2];
    int32_t indices[2 * HUB], labels[HUB + 1];
    float features[HUB + 1], logits[(HUB + 1) * CLASSES];
    uint8_t train[HUB + 1];
};

static void make_star(struct star *star)
{
    state = 3;
    for (int v = 0; v <= HUB; v++) {
        star->indptr[v + 1] = HUB + v;
        star->features[v] = (float)draw();
        star->labels[v] = v % CLASSES;
        star->train[v] = 1;
        if (v > 0)
            star->indices[v - 1] = v;
    }
}

/* Training sums the neighbours of vertex 0 in float32. */
static int run_star(const char *directory)
{
    static struct star star;
    static const struct test_case test = {"gcn-star", PLAIN, "model gcn epochs 2"};
    starling_graph *graph = NULL;
    starling_model *model = NULL;
    starling_prediction *prediction = NULL;
    starling_predictor *predictor = NULL;
    struct starling_predictor_error error = {""};
    int64_t rows, columns;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, test.name);
    make_star(&star);
    if (starling_graph_create(HUB + 1, 2 * HUB, star.indptr, star.indices, &graph) ||
        starling_graph_set_features(graph, 1, star.features) ||
        starling_graph_set_classes(graph, CLASSES, star.labels) ||
        starling_graph_set_mask(graph, STARLING_TRAIN, star.train) || train(&test, graph, &model) ||
        starling_model_save(model, path) || starling_predict(model, graph, NULL, 0, &prediction))
        return say(starling_error());
    const struct starling_predictor_graph borrowed = {.size = sizeof borrowed,
                                                      .vertices = HUB + 1,
                                                      .entries = 2 * HUB,
                                                      .indptr = star.indptr,
                                                      .indices = star.indices,
                                                      .feature_columns = 1,
                                                      .features = star.features};
    if (starling_predictor_open(path, &predictor, &error) ||
        starling_predictor_run(predictor, &borrowed, star.logits, &error))
        return say(error.text);
    const float *wanted = starling_prediction_output(prediction, STARLING_LOGITS, &rows, &columns);
    double largest = 1.0, difference = 0.0;
    for (int64_t k = 0; k < rows * columns; k++) {
        largest = fmax(largest, fabs((double)wanted[k]));
        difference = fmax(difference, fabs((double)wanted[k] - (double)star.logits[k]));
    }
    const int good = difference <= 1e-5 * largest && columns == CLASSES;
    printf("%-20s %.1e of %.2f%s\n", test.name, difference, largest, good ? "" : "  FAIL");
    starling_predictor_close(predictor);
    starling_prediction_free(prediction);
    starling_model_free(model);
    starling_graph_free(graph);
    return !good;
}

/* ---- Models without a forward program ---- */

static void forward_rows(void *context, const struct starling_layer_rows *rows)
{
    (void)context;
    for (int64_t k = 0; k < rows->rows * rows->columns; k++)
        rows->output[k] = 2.0f * rows->input[k];
}

static void backward_rows(void *context, const struct starling_layer_rows *rows)
{
    (void)context;
    for (int64_t k = 0; k < rows->rows * rows->columns; k++)
        rows->input_gradient[k] = 2.0f * rows->output_gradient[k];
}

static void combine(void *context, int64_t n, float weight, const float *neighbour, float *first,
                    float *second)
{
    (void)context;
    (void)second;
    for (int64_t j = 0; j < n; j++)
        first[j] += weight * neighbour[j];
}

static void merge(void *context, int64_t n, const float *other_first, const float *other_second,
                  float *first, float *second)
{
    (void)other_second;
    combine(context, n, 1.0f, other_first, first, second);
}

static void finish(void *context, int64_t n, float *first, float *second)
{
    (void)context;
    (void)n;
    (void)first;
    (void)second;
}

static void differentiate(void *context, int64_t n, float weight, const float *neighbour,
                          const float *gradient, const float *second, float *neighbour_gradient)
{
    (void)neighbour;
    (void)second;
    combine(context, n, weight, gradient, neighbour_gradient, NULL);
}

/* A model with a function of this program is saved, and refused. */
static int refuse_own(const char *directory)
{
    static const struct starling_layer layer = {
        .vectors = {"weight"}, .forward = forward_rows, .backward = backward_rows};
    static const struct starling_reducer reducer = {
        .combine = combine, .merge = merge, .finish = finish, .differentiate = differentiate};
    static const struct test_case own[] = {{"own-layer", PLAIN, "model resgcn block-norm twice"},
                                           {"own-reducer", PLAIN, "model sage aggregator total"}};
    static struct graph arrays;
    int failed =
        starling_layer_register("twice", &layer) || starling_reducer_register("total", &reducer);
    make_graph(PLAIN, &arrays);
    for (int c = 0; !failed && c < 2; c++) {
        starling_graph *graph = NULL;
        starling_model *model = NULL;
        starling_predictor *predictor = NULL;
        struct starling_predictor_error error = {""};
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, own[c].name);
        failed = open_graph(PLAIN, &arrays, &graph) || train(&own[c], graph, &model) ||
                 starling_model_save(model, path);
        if (!failed &&
            (starling_predictor_open(path, &predictor, &error) != STARLING_PREDICTOR_ERR_DATA ||
             !strstr(error.text, "has a function of the program that trained it")))
            failed = say(*error.text ? error.text : "not refused");
        starling_model_free(model);
        starling_graph_free(graph);
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc < 2)
        return say("usage: predict_models DIRECTORY [NAME]");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (argc < 3 || strcmp(argv[2], cases[c].name) == 0)
            failed += run_case(&cases[c], argv[1]);
    if (argc < 3)
        failed += run_star(argv[1]) + refuse_own(argv[1]);
    starling_finish();
    return failed > 0;
}
