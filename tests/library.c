/* The library as a program meets it, linked with the shared one alone. Usage:
 *
 *     library losses DATASET NAME VALUE ...
 *         losses of the epochs, as %.17g, then a line of result; the model goes to $SAVE
 *     library arrays DATASET NAME VALUE ...
 *         the same of a graph from borrowed copies of the arrays
 *     library talk DATASET
 *         what calls print, before and after a line "quiet" on stderr
 *     library all DATASET DIRECTORY
 *         everything else, asserted
 */
#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starling.h>

static int failures;

#define EXPECT(condition)                                                         \
    do {                                                                          \
        if (!(condition)) {                                                       \
            printf("line %d: %s (%s)\n", __LINE__, #condition, starling_error()); \
            failures++;                                                           \
        }                                                                         \
    } while (0)

static int print_loss(void *context, const struct starling_epoch *e)
{
    (void)context;
    printf("%" PRId64 " %.17g\n", e->epoch, e->loss);
    return 0;
}

/* Three losses in an array, then stop. */
static int stop_at_three(void *context, const struct starling_epoch *e)
{
    double *loss = context;
    loss[e->epoch < 8 ? e->epoch : 0] = e->loss;
    return e->epoch == 3;
}

/* ---- Arrays of a dataset directory, read as plain files ---- */

struct arrays {
    int64_t vertices, entries;
    int64_t *indptr;
    int32_t *indices, *labels;
    int64_t *split[4], count[4];
};

static void *read_npy(const char *directory, const char *name, size_t size, int64_t *count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.npy", directory, name);
    FILE *file = fopen(path, "rb");
    unsigned char head[10];
    assert(file && fread(head, 1, 10, file) == 10);
    const long data = 10 + head[8] + 256 * head[9];
    fseek(file, 0, SEEK_END);
    *count = (ftell(file) - data) / (long)size;
    void *array = malloc((size_t)*count * size + 1);
    fseek(file, data, SEEK_SET);
    assert(array && fread(array, size, (size_t)*count, file) == (size_t)*count);
    fclose(file);
    return array;
}

static struct arrays read_arrays(const char *directory)
{
    static const char *const names[] = {NULL, "train_idx", "val_idx", "test_idx"};
    struct arrays a = {0};
    int64_t n;
    a.indptr = read_npy(directory, "indptr", sizeof *a.indptr, &n);
    a.vertices = n - 1;
    a.indices = read_npy(directory, "indices", sizeof *a.indices, &a.entries);
    a.labels = read_npy(directory, "labels", sizeof *a.labels, &n);
    for (int s = 1; s < 4; s++)
        a.split[s] = read_npy(directory, names[s], sizeof *a.split[s], &a.count[s]);
    return a;
}

static void free_arrays(struct arrays *a)
{
    free(a->indptr);
    free(a->indices);
    free(a->labels);
    for (int s = 1; s < 4; s++)
        free(a->split[s]);
}

static starling_graph *make_graph(const struct arrays *a)
{
    starling_graph *graph;
    EXPECT(starling_graph_create(a->vertices, a->entries, a->indptr, a->indices, &graph) == 0);
    EXPECT(starling_graph_set_classes(graph, 0, a->labels) == 0);
    for (int s = 1; s < 4; s++)
        EXPECT(starling_graph_set_split(graph, (enum starling_split)s, a->count[s], a->split[s]) ==
               0);
    return graph;
}

/* ---- Losses ---- */

static starling_options *make_options(int words, char **word)
{
    starling_options *options;
    EXPECT(starling_options_create(&options) == 0);
    for (int w = 0; w + 1 < words; w += 2)
        EXPECT(starling_options_set(options, word[w], word[w + 1]) == 0);
    return options;
}

static int print_losses(starling_graph *graph, int words, char **word)
{
    starling_options *options = make_options(words, word);
    starling_model *model = NULL;
    const int code = starling_train(graph, options, print_loss, NULL, &model);
    if (code && starling_error()[0])
        fprintf(stderr, "library: %s\n", starling_error());
    if (model && starling_rank() == 0) {
        const struct starling_result *r = starling_model_result(model);
        if (getenv("SAVE"))
            EXPECT(starling_model_save(model, getenv("SAVE")) == 0);
        printf("test %.17g best %" PRId64 "\n", r->test_accuracy, r->best_epoch);
    }
    starling_model_free(model);
    starling_options_free(options);
    starling_graph_free(graph);
    starling_finish();
    return code;
}

/* ---- Everything else ---- */

static void refuse_options(void)
{
    starling_options *options = make_options(0, NULL);
    EXPECT(starling_options_set(options, "lr", "fast") == STARLING_ERR_USAGE);
    EXPECT(strstr(starling_error(), "--lr"));
    EXPECT(starling_options_set(options, "hiden", "5") == STARLING_ERR_USAGE);
    EXPECT(strstr(starling_error(), "--hidden"));
    EXPECT(starling_options_set(options, "plan", "yes") == STARLING_ERR_USAGE);
    EXPECT(starling_options_set(options, NULL, "yes") == STARLING_ERR_USAGE);
    starling_options_free(options);
}

/* Training must refuse the graph, with a sentence about `array`, and leave the process alone. */
static void refuse_graph(starling_graph *graph, int code, const char *array)
{
    starling_model *model = NULL;
    EXPECT(starling_train(graph, NULL, NULL, NULL, &model) == code);
    EXPECT(model == NULL && strstr(starling_error(), array));
    starling_graph_free(graph);
}

static void refuse_graphs(const struct arrays *a)
{
    starling_graph *graph;
    EXPECT(starling_graph_create(0, 0, a->indptr, a->indices, &graph) == STARLING_ERR_USAGE);
    EXPECT(starling_graph_create(5, 3, NULL, a->indices, &graph) == STARLING_ERR_USAGE);
    EXPECT(starling_graph_open("/nonexistent/graph", &graph) == STARLING_ERR_DATA && !graph);
    const int64_t falls[] = {0, 2, 1, 3}, repeated[] = {1, 1}, outside[] = {7};
    const int32_t columns[] = {1, 2, 0}, wild[] = {1, 2, 9}, classes[] = {0, 1, 1};
    const int64_t fine[] = {0, 1, 2, 3}, one[] = {0};
    const float nan[] = {1.0f, NAN, 0.0f};
    const struct {
        const int64_t *indptr;
        const int32_t *indices;
        int64_t entries, count;
        const int64_t *train;
        const float *features;
        const char *array;
    } wrong[] = {{falls, columns, 3, 1, one, NULL, "indptr"},
                 {fine, wild, 3, 1, one, NULL, "indices"},
                 {fine, columns, 2, 1, one, NULL, "indptr"},
                 {fine, columns, 3, 2, repeated, NULL, "training"},
                 {fine, columns, 3, 1, outside, NULL, "training"},
                 {fine, columns, 3, 1, one, nan, "features"}};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        EXPECT(starling_graph_create(3, wrong[w].entries, wrong[w].indptr, wrong[w].indices,
                                     &graph) == 0);
        EXPECT(starling_graph_set_classes(graph, 2, classes) == 0);
        EXPECT(starling_graph_set_split(graph, STARLING_TRAIN, wrong[w].count, wrong[w].train) ==
               0);
        if (wrong[w].features)
            EXPECT(starling_graph_set_features(graph, 1, wrong[w].features) == 0);
        refuse_graph(graph, STARLING_ERR_DATA, wrong[w].array);
    }
    EXPECT(starling_graph_create(3, 3, fine, columns, &graph) == 0);
    EXPECT(starling_graph_set_split(graph, (enum starling_split)9, 1, one) == STARLING_ERR_USAGE);
    refuse_graph(graph, STARLING_ERR_DATA, "training");
}

/* A callback that calls the library again. */
static int call_again(void *context, const struct starling_epoch *e)
{
    starling_model *model;
    EXPECT(starling_train(context, NULL, NULL, NULL, &model) == STARLING_ERR_USAGE);
    return e->epoch == 1;
}

static void stop_early(starling_graph *graph)
{
    char *words[] = {"epochs", "100000"};
    starling_options *options = make_options(2, words);
    starling_model *model;
    double loss[8] = {0};
    EXPECT(starling_train(graph, options, stop_at_three, loss, &model) == 0);
    const struct starling_result *r = starling_model_result(model);
    EXPECT(r->stopped && r->epochs >= 3 && r->epochs < 100);
    EXPECT(loss[1] > 0.0 && loss[3] < loss[1]);
    starling_model_free(model);
    EXPECT(starling_train(graph, options, call_again, graph, &model) == 0);
    starling_model_free(model);
    starling_options_free(options);
}

/* A request before a training, and during one, counts until somebody asks. */
static int request_at_three(void *context, const struct starling_epoch *e)
{
    (void)context;
    if (e->epoch == 3)
        starling_stop(0);
    return 0;
}

static void stop_by_request(starling_graph *graph)
{
    char *words[] = {"epochs", "100000"};
    starling_options *options = make_options(2, words);
    starling_callback *const callbacks[] = {request_at_three, NULL};
    for (int c = 0; c < 2; c++) {
        starling_model *model;
        EXPECT(starling_train(graph, options, callbacks[c], NULL, &model) == 0);
        const struct starling_result *r = starling_model_result(model);
        EXPECT(r->stopped && r->epochs < 100 && r->epochs >= (c == 0 ? 3 : 1));
        starling_model_free(model);
    }
    EXPECT(starling_stopped() && !starling_stopped());
    starling_options_free(options);
}

/* A graph of two edges 1 -> 0 without weights, and one back; then the graph as a dataset, and as
 * edges. */
static void count_and_save(const char *directory)
{
    const int64_t indptr[] = {0, 2, 3};
    const int32_t indices[] = {1, 1, 0}, wild[] = {1, 2, 0}, classes[] = {1, 0};
    struct starling_sizes sizes;
    starling_graph *graph;
    char path[512], file[560], bytes[16] = "";
    EXPECT(starling_graph_create(2, 3, indptr, wild, &graph) == 0);
    EXPECT(starling_graph_count_duplicates(graph) == STARLING_ERR_DATA);
    EXPECT(strstr(starling_error(), "indices"));
    starling_graph_free(graph);
    EXPECT(starling_graph_create(2, 3, indptr, indices, &graph) == 0);
    EXPECT(starling_graph_set_classes(graph, 0, classes) == 0);
    EXPECT(starling_graph_count_duplicates(graph) == 0);
    EXPECT(starling_graph_sizes(graph, &sizes) == 0 && sizes.entries == 2 && sizes.classes == 2);
    snprintf(path, sizeof path, "%s/saved", directory);
    snprintf(file, sizeof file, "%s.txt", path);
    EXPECT(starling_graph_save(graph, NULL) == STARLING_ERR_USAGE);
    EXPECT(starling_graph_save(graph, path) == 0);
    EXPECT(starling_graph_save(graph, path) == STARLING_ERR_USAGE);
    starling_graph_free(graph);
    EXPECT(starling_graph_open(path, &graph) == 0);
    EXPECT(starling_graph_save(graph, file) == 0);
    starling_graph_free(graph);
    FILE *text = fopen(file, "r");
    EXPECT(text && fread(bytes, 1, 12, text) == 12 && strncmp(bytes, "0 1 1\n1 0 2\n", 12) == 0);
    if (text)
        fclose(text);
}

static void expect_refused(int code, const char *word)
{
    EXPECT(code == STARLING_ERR_USAGE || code == STARLING_ERR_DATA);
    EXPECT(strstr(starling_error(), word));
}

/* Three vertices; several edges of different relations between two of them, and two loops. */
static starling_graph *make_related(const int32_t *types, const float *features)
{
    static const int64_t indptr[] = {0, 3, 4, 7}, train[] = {0, 1, 2};
    static const int32_t indices[] = {1, 1, 2, 0, 0, 2, 2}, classes[] = {1, 0, 1};
    starling_graph *graph;
    EXPECT(starling_graph_create(3, 7, indptr, indices, &graph) == 0);
    EXPECT(starling_graph_set_classes(graph, 2, classes) == 0);
    EXPECT(starling_graph_set_split(graph, STARLING_TRAIN, 3, train) == 0);
    if (features)
        EXPECT(starling_graph_set_edge_features(graph, 2, features) == 0);
    if (types)
        EXPECT(starling_graph_set_edge_types(graph, types) == 0);
    return graph;
}

/* The loss after some epochs. */
static double loss_of(starling_graph *graph, const char *name)
{
    char *words[] = {"epochs", "3", "hidden", "4", "dropout", "0", "model", (char *)name};
    starling_options *options = make_options(8, words);
    starling_model *model;
    double loss[8] = {0};
    EXPECT(starling_train(graph, options, stop_at_three, loss, &model) == 0);
    starling_model_free(model);
    starling_options_free(options);
    return loss[3];
}

/* Relations of edges: they count, stay with their edges and features in a file, and are refused. */
static void relate(const char *directory)
{
    const int32_t types[] = {0, 2, 1, 1, 0, 0, 3}, swapped[] = {2, 0, 1, 1, 0, 3, 0},
                  other[] = {0, 2, 1, 1, 1, 0, 3}, last[] = {0, 65535, 1, 1, 0, 0, 3},
                  wrong[][7] = {{0, 2, 1, 1, 0, 0, -1}, {0, 65536, 1, 1, 0, 0, 3}},
                  twice[] = {0, 0, 1, 1, 0, 0, 3};
    const float features[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    char path[512], *words[] = {"model", "rgcn"};
    struct starling_sizes sizes;
    starling_graph *graph = make_related(types, NULL);
    const double loss = loss_of(graph, "rgcn"), plain = loss_of(graph, "gcn");
    EXPECT(loss > 0.0);
    EXPECT(starling_graph_sizes(graph, &sizes) == 0 && sizes.entries == 7);
    EXPECT(starling_graph_count_duplicates(graph) == 0); /* there are none */
    EXPECT(loss_of(graph, "rgcn") == loss && loss_of(graph, "gcn") == plain);
    expect_refused(starling_graph_set_edge_types(graph, types), "are set already");
    expect_refused(starling_graph_set_edge_features(graph, 2, features), "expected them before");
    EXPECT(loss_of(graph, "rgcn") == loss);
    starling_graph_free(graph);

    graph = make_related(swapped, NULL);
    EXPECT(fabs(loss_of(graph, "rgcn") - loss) < 1e-5 * loss);
    starling_graph_free(graph);
    graph = make_related(other, NULL);
    EXPECT(fabs(loss_of(graph, "rgcn") - loss) > 1e-5 * loss && loss_of(graph, "gcn") == plain);
    starling_graph_free(graph);

    graph = make_related(types, features);
    const double gine = loss_of(graph, "gine");
    EXPECT(loss_of(graph, "rgcn") == loss);
    snprintf(path, sizeof path, "%s/related", directory);
    EXPECT(starling_graph_save(graph, path) == 0);
    starling_graph_free(graph);
    EXPECT(starling_graph_open(path, &graph) == 0);
    EXPECT(loss_of(graph, "rgcn") == loss && loss_of(graph, "gine") == gine);
    starling_graph_free(graph);
    int64_t count;
    int32_t *saved = read_npy(path, "edge_types", sizeof *saved, &count);
    EXPECT(saved && count == 7 && memcmp(saved, types, sizeof types) == 0);
    free(saved);

    starling_options *options = make_options(2, words);
    starling_model *model;
    graph = make_related(last, NULL);
    starling_graph_free(graph);
    graph = make_related(NULL, NULL);
    expect_refused(starling_graph_set_edge_types(graph, NULL), "edge_types: the array is NULL");
    for (int w = 0; w < 2; w++)
        expect_refused(starling_graph_set_edge_types(graph, wrong[w]), "expected 0 to 65535");
    expect_refused(starling_train(graph, options, NULL, NULL, &model), "have no relations");
    EXPECT(starling_graph_set_edge_types(graph, types) == 0 && loss_of(graph, "rgcn") == loss);
    starling_graph_free(graph);

    graph = make_related(twice, NULL);
    expect_refused(starling_train(graph, options, NULL, NULL, &model), "twice with one relation");
    starling_graph_free(graph);
    graph = make_related(NULL, NULL);
    EXPECT(starling_graph_count_duplicates(graph) == 0);
    expect_refused(starling_graph_set_edge_types(graph, types), "count_duplicates");
    expect_refused(starling_graph_set_edge_features(graph, 2, features), "count_duplicates");
    starling_graph_free(graph);
    starling_options_free(options);
}

static void check_outputs(const starling_prediction *p)
{
    int64_t rows, columns, r, c, hidden;
    const float *logits = starling_prediction_output(p, STARLING_LOGITS, &rows, &columns);
    const float *odds = starling_prediction_output(p, STARLING_PROBABILITIES, &r, &c);
    const int32_t *classes = starling_prediction_classes(p, &r, &c);
    EXPECT(starling_prediction_output(p, STARLING_EMBEDDINGS, &r, &hidden) && hidden == 5);
    EXPECT(c == 1 && rows == r);
    for (int64_t v = 0; v < rows; v++) {
        double sum = 0.0, largest = 0.0;
        for (int64_t j = 0; j < columns; j++) {
            const double ratio = odds[v * columns + j] / odds[v * columns];
            sum += odds[v * columns + j];
            largest = fmax(largest, odds[v * columns + j]);
            EXPECT(fabs(log(ratio) - (logits[v * columns + j] - logits[v * columns])) < 1e-4);
        }
        EXPECT(fabs(sum - 1.0) < 1e-5 && odds[v * columns + classes[v]] == largest);
    }
}

/* Weights, a file, and the same predictions of both; then other weights, and other predictions. */
static void use_model(starling_graph *graph, const char *directory)
{
    char *words[] = {"hidden", "5", "patience", "10", "eval-every", "1"}, path[512];
    starling_options *options = make_options(6, words);
    starling_model *model, *read;
    starling_prediction *p, *q;
    int64_t rows, columns, r, c;
    const char *name;
    snprintf(path, sizeof path, "%s/model", directory);
    EXPECT(starling_train(graph, options, NULL, NULL, &model) == 0);
    EXPECT(starling_model_result(model)->best_epoch > 0);
    EXPECT(starling_model_weights(model) == 3 || starling_model_weights(model) == 4 ||
           starling_model_weights(model) == 2);
    float *weight = starling_model_weight(model, 0, &name, &rows, &columns);
    EXPECT(weight == starling_model_find(model, name, &r, &c) && r == rows && columns == 5);
    EXPECT(!starling_model_find(model, "layer.9.weight", NULL, NULL));
    EXPECT(!starling_model_weight(model, 99, NULL, NULL, NULL));
    EXPECT(strstr(starling_model_description(model), "\"hidden\":5"));
    EXPECT(starling_model_save(model, path) == 0 && starling_model_load(path, &read) == 0);
    EXPECT(starling_predict(model, graph, NULL, 1, &p) == 0);
    EXPECT(starling_predict(read, graph, options, 0, &q) == 0);
    check_outputs(p);
    EXPECT(starling_prediction_result(p)->test_accuracy ==
           starling_model_result(model)->test_accuracy);
    const float *first = starling_prediction_output(p, STARLING_LOGITS, &rows, &columns);
    const float *second = starling_prediction_output(q, STARLING_LOGITS, &r, &c);
    EXPECT(rows == r && columns == c &&
           memcmp(first, second, (size_t)(rows * columns) * sizeof *first) == 0);
    EXPECT(!starling_prediction_output(q, STARLING_EMBEDDINGS, &r, &c));
    starling_prediction_free(q);
    weight[0] += 1.0f;
    EXPECT(starling_predict(model, graph, NULL, 0, &q) == 0);
    second = starling_prediction_output(q, STARLING_LOGITS, &r, &c);
    EXPECT(memcmp(first, second, (size_t)(rows * columns) * sizeof *first) != 0);
    EXPECT(starling_options_set(options, "distribution", "vertex-cut") == 0);
    starling_prediction *none;
    EXPECT(starling_options_set(options, "grid", "2x2x1") == 0);
    EXPECT(starling_predict(model, graph, options, 0, &none) == STARLING_ERR_USAGE && !none);
    EXPECT(starling_model_load(directory, &read) != 0 && !read);
    starling_prediction_free(p);
    starling_prediction_free(q);
    starling_model_free(model);
    starling_options_free(options);
}

/* A training and a prediction that talk, then calls that do not: stderr has a mark between them. */
static int talk(const char *dataset)
{
    char *aloud[] = {"epochs", "3", "quiet", "no", "verbose", "yes"}, *plainly[] = {"quiet", "no"};
    starling_options *options[] = {make_options(6, aloud), make_options(2, plainly), NULL};
    starling_graph *graph, *again;
    starling_model *model;
    EXPECT(starling_graph_open(dataset, &graph) == 0);
    EXPECT(starling_train(graph, options[0], NULL, NULL, &model) == 0);
    for (int o = 0; o < 3; o++) {
        starling_prediction *p;
        EXPECT(starling_predict(model, graph, options[o], 0, &p) == 0);
        starling_prediction_free(p);
        if (o == 0)
            fputs("quiet\n", stderr);
    }
    EXPECT(starling_graph_open(dataset, &again) == 0);
    starling_graph_free(again);
    starling_graph_free(graph);
    starling_model_free(model);
    starling_options_free(options[0]);
    starling_options_free(options[1]);
    starling_finish();
    return failures;
}

static int check_all(const char *dataset, const char *directory)
{
    struct starling_sizes sizes;
    struct arrays a = read_arrays(dataset);
    starling_graph *graph = make_graph(&a);
    EXPECT(starling_graph_sizes(graph, &sizes) == 0);
    EXPECT(sizes.vertices == a.vertices && sizes.entries == a.entries && sizes.classes == 2 &&
           sizes.features == a.vertices);
    refuse_options();
    refuse_graphs(&a);
    stop_early(graph);
    stop_by_request(graph);
    count_and_save(directory);
    relate(directory);
    use_model(graph, directory);
    starling_graph_free(graph);
    free_arrays(&a);
    starling_finish();
    return failures;
}

int main(int argc, char **argv)
{
    starling_graph *graph;
    setlocale(LC_NUMERIC, "");
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "all") == 0)
        return check_all(argv[2], argv[3]) != 0;
    if (strcmp(argv[1], "talk") == 0)
        return talk(argv[2]) != 0;
    if (strcmp(argv[1], "arrays") == 0) {
        struct arrays a = read_arrays(argv[2]);
        const int code = print_losses(make_graph(&a), argc - 3, argv + 3);
        free_arrays(&a);
        return code != 0 || failures;
    }
    if (starling_graph_open(argv[2], &graph)) {
        fprintf(stderr, "library: %s\n", starling_error());
        return 1;
    }
    return print_losses(graph, argc - 3, argv + 3) != 0 || failures;
}
