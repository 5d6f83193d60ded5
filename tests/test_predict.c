/* libstarling-predict on checkpoints that are made here: every kind of step counts; damaged files
 * and wrong graphs are refused, with one sentence. tests/predict.sh compares trained models. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include <starling-predict.h>

#include "checkpoint/checkpoint.h"
#include "core/json_file.h"
#include "tests/unit.h"

enum { VERTICES = 7, ENTRIES = 12, WIDTH = 4, EDGE_FEATURES = 2, RELATIONS = 2, MOST = 64 };

static const int64_t indptr[VERTICES + 1] = {0, 3, 5, 5, 7, 9, 11, ENTRIES};
static const int32_t indices[ENTRIES] = {0, 1, 4, 2, 5, 1, 3, 0, 6, 2, 4, 5},
                     types[ENTRIES] = {0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1};
static float edge_features[ENTRIES * EDGE_FEATURES], features[VERTICES * WIDTH], weights[ENTRIES];
static char path[64];

static float draw(void)
{
    static uint32_t state = 5;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 23) - 1.0f;
}

static struct starling_predictor_graph graph(void)
{
    return (struct starling_predictor_graph){.size = sizeof(struct starling_predictor_graph),
                                             .vertices = VERTICES,
                                             .entries = ENTRIES,
                                             .indptr = indptr,
                                             .indices = indices,
                                             .feature_columns = WIDTH,
                                             .features = features,
                                             .edge_columns = EDGE_FEATURES,
                                             .edge_features = edge_features,
                                             .edge_types = types};
}

/* ---- The checkpoint ---- */

/* All kinds of step, each on the value of the step before. */
static const char steps[] =
    "[{'step':'unit_rows','of':[0],'tensors':[],'unit':1},"
    "{'step':'standardize','of':[1],'tensors':[]},"
    "{'step':'unit_rows','of':[2],'tensors':[],'unit':2},"
    "{'step':'product','of':[3],'tensors':['W'],'row':4,'rows':4},"
    "{'step':'aggregate','of':[4],'tensors':[],'reduce':'sum','norm':'sym','loops':true},"
    "{'step':'aggregate','of':[5],'tensors':[],'reduce':'sum','norm':'row','loops':true},"
    "{'step':'aggregate','of':[6],'tensors':[],'reduce':'sum','norm':'count'},"
    "{'step':'add','of':[7,4],'tensors':[],'x':0.9,'y':1.5},"
    "{'step':'aggregate','of':[8],'tensors':[],'reduce':'max','norm':'none','loops':true},"
    "{'step':'aggregate','of':[9],'tensors':[],'reduce':'min','norm':'none','loops':true},"
    "{'step':'larger','of':[10,4],'tensors':[]},"
    "{'step':'bias','of':[11],'tensors':['b']},"
    "{'step':'elu','of':[12],'tensors':[]},"
    "{'step':'row_norm','of':[13],'tensors':['w','b'],'epsilon':1e-5},"
    "{'step':'batch_norm','of':[14],'tensors':['w','b','m','v'],'epsilon':1e-5},"
    "{'step':'gat','of':[15],'tensors':['w','b','E','a'],'heads':2,'slope':0.2,'loops':true},"
    "{'step':'gatv2','of':[16,15],'tensors':['a','E'],'heads':2,'slope':0.2,'loops':true},"
    "{'step':'dot_attention','of':[17,15,14],'tensors':['E'],'heads':1},"
    "{'step':'gine','of':[18],'tensors':['E','b']},"
    "{'step':'relations','of':[19],'tensors':['W'],'relations':2},"
    "{'step':'relations','of':[20],'tensors':['W','C'],'relations':2,'bases':2},"
    "{'step':'product','of':[21],'tensors':['V']},"
    "{'step':'mean_heads','of':[22],'tensors':[],'heads':2},"
    "{'step':'relu','of':[23],'tensors':[]}]";

/* Return the value of a text with ' for ". */
static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = sl_json_parse(copy, strlen(copy), JSON_DECODE_ANY, NULL);
    free(copy);
    assert_non_null(value);
    return value;
}

static void add_tensor(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                       int64_t cols)
{
    float *data = sl_checkpoint_add(checkpoint, name, rows, cols);
    assert_non_null(data);
    for (int64_t k = 0; k < rows * cols; k++)
        data[k] = *name == 'v' ? draw() + 1.5f : *name == 'm' ? draw() - 1.0f : draw();
}

/* Make the checkpoint with the program of `list`, which the checkpoint takes over. */
static struct sl_checkpoint make(json_t *list)
{
    struct sl_checkpoint checkpoint = {
        .description = json_pack(
            "{s:i, s:i, s:i, s:o, s:{s:i, s:s, s:i, s:i, s:s, s:b, s:i, s:i, s:o}}", "epoch", 3,
            "best_epoch", 0, "kept_epoch", 3, "dataset",
            parse("{'feature_means':[0.1,0.2,-0.1,0],'feature_deviations':[0.4,2,0.3,0.2],"
                  "'class_names':['one','two','three','four']}"),
            "forward", "version", 1, "model", "many", "features", WIDTH, "outputs", WIDTH, "output",
            "classes", "identity", 0, "edge_features", EDGE_FEATURES, "relations", RELATIONS,
            "steps", list)};
    assert_non_null(checkpoint.description);
    add_tensor(&checkpoint, "W", 8, WIDTH);
    add_tensor(&checkpoint, "V", WIDTH, 8);
    add_tensor(&checkpoint, "C", RELATIONS, 2);
    add_tensor(&checkpoint, "E", EDGE_FEATURES, WIDTH);
    for (const char *name = "wbmva"; *name; name++)
        add_tensor(&checkpoint, (char[]){*name, '\0'}, 1, WIDTH);
    return checkpoint;
}

static void write_and_free(struct sl_checkpoint *checkpoint)
{
    assert_int_equal(sl_checkpoint_write(checkpoint, path), 0);
    sl_checkpoint_free(checkpoint);
}

static starling_predictor *open_predictor(void)
{
    struct starling_predictor_error error;
    starling_predictor *predictor;
    if (starling_predictor_open(path, &predictor, &error))
        fail_msg("%s", error.text);
    return predictor;
}

static void run(float logits[VERTICES * WIDTH])
{
    struct starling_predictor_error error;
    const struct starling_predictor_graph whole = graph();
    starling_predictor *predictor = open_predictor();
    if (starling_predictor_run(predictor, &whole, logits, &error))
        fail_msg("%s", error.text);
    starling_predictor_close(predictor);
}

/* ---- Steps ---- */

/* Leave step s out: later steps read what it reads. */
static json_t *without(size_t s)
{
    json_t *list = parse(steps), *step, *value;
    size_t place, v;
    const json_int_t read =
        json_integer_value(json_array_get(json_object_get(json_array_get(list, s), "of"), 0));
    json_array_foreach(list, place, step)
    {
        json_t *of = json_object_get(step, "of");
        json_array_foreach(of, v, value)
        {
            if (json_integer_value(value) == (json_int_t)s + 1)
                json_array_set_new(of, v, json_integer(read));
        }
    }
    if (s + 1 == json_array_size(list))
        json_array_remove(list, s);
    return list;
}

/* Each step changes the logits; a step that was left out, or did nothing, would not. */
static void test_steps_count(void **unused)
{
    float whole[VERTICES * WIDTH], less[VERTICES * WIDTH];
    struct sl_checkpoint checkpoint = make(parse(steps)), other;
    size_t count = json_array_size(
        json_object_get(json_object_get(checkpoint.description, "forward"), "steps"));
    (void)unused;
    assert_int_equal(sl_checkpoint_write(&checkpoint, path), 0);
    run(whole);
    for (size_t s = 0; s < count; s++) {
        json_t *forward = json_object_get(checkpoint.description, "forward");
        double most = 0.0;
        if (s == 21 || s == 22) /* product and mean_heads change the width */
            continue;
        json_object_set_new(forward, "steps", without(s));
        assert_int_equal(sl_checkpoint_write(&checkpoint, path), 0);
        run(less);
        for (int k = 0; k < VERTICES * WIDTH; k++) {
            const double d = (double)whole[k] - (double)less[k];
            most = d > most ? d : -d > most ? -d : most;
        }
        if (most < 1e-4)
            fail_msg("step %zu does nothing", s);
    }
    sl_checkpoint_free(&checkpoint);
    other = make(parse(steps)); /* other weights */
    write_and_free(&other);
    run(less);
    assert_memory_not_equal(whole, less, sizeof whole);
}

/* ---- Damage ---- */

static void refuse(const char *words)
{
    struct starling_predictor_error error = {""};
    starling_predictor *predictor;
    const int code = starling_predictor_open(path, &predictor, &error);
    if (code == 0 || predictor || !strstr(error.text, words) || !strstr(error.text, path))
        fail_msg("code %d, no \"%s\" in: %s", code, words, error.text);
}

static void test_wrong_programs(void **unused)
{
    static const struct {
        int step;
        const char *key, *value, *words;
    } wrong[] = {
        {0, "step", "'spin'", "does not know"},
        {0, "step", "3", "does not know"},
        {0, "of", "[1]", "no step before it makes"},
        {5, "of", "[6]", "no step before it makes"},
        {5, "of", "[24]", "no step before it makes"},
        {5, "of", "[-1]", "no step before it makes"},
        {5, "of", "['x']", "no step before it makes"},
        {5, "of", "[99999999999]", "no step before it makes"},
        {5, "of", "[]", "other numbers of values"},
        {7, "of", "[7]", "other numbers of values"},
        {7, "of", "[7,22]", "no step before it makes"},
        {7, "x", "'one'", "a number that is wrong"},
        {3, "tensors", "['X']", "no tensor X"},
        {3, "tensors", "['V']", "does not fit"},
        {3, "tensors", "[]", "does not fit"},
        {3, "tensors", "['W','W']", "does not fit"},
        {3, "tensors", "[7]", "a tensor without a name"},
        {3, "tensors", "['a','a','a','a','a']", "other numbers of values"},
        {3, "row", "5", "does not fit"},
        {3, "row", "-1", "a number that is wrong"},
        {3, "row", "2147483647", "does not fit"},
        {3, "rows", "3", "does not fit"},
        {3, "rows", "1.5", "a number that is wrong"},
        {2, "of", "[21]", "no step before it makes"},
        {4, "norm", "'none so'", "an unknown sum"},
        {4, "reduce", "'median'", "an unknown sum"},
        {0, "unit", "3", "does not fit"},
        {11, "tensors", "['W']", "does not fit"},
        {13, "epsilon", "0", "does not fit"},
        {14, "tensors", "['w','b','m','E']", "does not fit"},
        {14, "tensors", "['w','b','m','m']", "does not fit"}, /* no variance */
        {15, "heads", "0", "does not fit"},
        {15, "heads", "3", "does not fit"},
        {15, "tensors", "['w','b','E']", "does not fit"},
        {16, "tensors", "['a','W']", "does not fit"},
        {17, "tensors", "['V']", "does not fit"},
        {18, "tensors", "['W','b']", "does not fit"},
        {19, "relations", "3", "does not fit"},
        {20, "bases", "1", "does not fit"},
        {22, "heads", "3", "does not fit"},
        {22, "heads", "4", "ends with 2 columns"},
        {23, "of", "[22]", "ends with 8 columns"},
    };
    (void)unused;
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        json_t *list = parse(steps);
        json_object_set_new(json_array_get(list, (size_t)wrong[w].step), wrong[w].key,
                            parse(wrong[w].value));
        struct sl_checkpoint checkpoint = make(list);
        write_and_free(&checkpoint);
        refuse(wrong[w].words);
    }
}

static void test_wrong_descriptions(void **unused)
{
    static const struct {
        const char *of, *key, *value, *words;
    } wrong[] = {
        {NULL, "forward", "{'refused':'layer 2 is a program\\u2019s own'}",
         "program\xe2\x80\x99s own"},
        {NULL, "forward", "{}", "another version"},
        {"forward", "version", "2", "another version"},
        {"forward", "steps", "[]", "0 steps"},
        {"forward", "steps", "7", "0 steps"},
        {"forward", "steps", "[7]", "does not know"},
        {"forward", "model", "null", "lacks sizes"},
        {"forward", "output", "'none'", "lacks sizes"},
        {"forward", "features", "0", "lacks sizes"},
        {"forward", "features", "-4", "lacks sizes"},
        {"forward", "features", "5", "is damaged"},
        {"forward", "outputs", "3", "ends with 4 columns"},
        {"forward", "edge_features", "3", "does not fit"},
        {"forward", "relations", "1", "does not fit"},
        {"dataset", "feature_means", "[1,2,3]", "is damaged"},
        {"dataset", "feature_means", "null", "alone"},
        {"dataset", "feature_deviations", "[1,2,0,4]", "is damaged"},
    };
    (void)unused;
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        struct sl_checkpoint checkpoint = make(parse(steps));
        json_t *object = wrong[w].of ? json_object_get(checkpoint.description, wrong[w].of)
                                     : checkpoint.description;
        json_object_set_new(object, wrong[w].key, parse(wrong[w].value));
        write_and_free(&checkpoint);
        refuse(wrong[w].words);
    }
    struct sl_checkpoint old = make(parse(steps));
    json_object_del(old.description, "forward");
    write_and_free(&old);
    refuse("an older version wrote it");
}

/* Every shorter file is refused. */
static void test_truncated(void **unused)
{
    struct sl_checkpoint checkpoint = make(parse(steps));
    static char bytes[1 << 16];
    (void)unused;
    write_and_free(&checkpoint);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 1000 && size < sizeof bytes);
    fclose(file);
    for (size_t kept = 0; kept < size; kept += kept < 64 ? 1 : 61) {
        file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, kept, file), kept);
        fclose(file);
        refuse("");
    }
    unlink(path);
    refuse("");
}

/* ---- Memory ---- */

static long calls, fails_at;

static void *take(size_t bytes)
{
    if (++calls < fails_at)
        return malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

/* From one allocation on, jansson has no memory: the file is not damaged. */
static void test_no_memory(void **unused)
{
    struct sl_checkpoint checkpoint = make(parse(steps));
    json_malloc_t malloc_before;
    json_free_t free_before;
    long failed = 0;
    (void)unused;
    write_and_free(&checkpoint);
    json_get_alloc_funcs(&malloc_before, &free_before);
    json_set_alloc_funcs(take, free);
    for (bool done = false; !done;) {
        struct starling_predictor_error error;
        starling_predictor *p;
        calls = 0;
        fails_at++;
        const int code = starling_predictor_open(path, &p, &error);
        done = calls < fails_at;
        failed += code != 0;
        starling_predictor_close(p);
        if (code && code != STARLING_PREDICTOR_ERR_SYSTEM) {
            json_set_alloc_funcs(malloc_before, free_before);
            fail_msg("allocation %ld: %s", fails_at, error.text);
        }
    }
    json_set_alloc_funcs(malloc_before, free_before);
    assert_int_equal(failed, fails_at - 1);
    assert_true(failed > 100);
}

/* ---- Graphs ---- */

static void refuse_graph(const starling_predictor *predictor, int wanted,
                         const struct starling_predictor_graph *wrong, const char *words)
{
    struct starling_predictor_error error = {""};
    float logits[VERTICES * WIDTH];
    const int code = starling_predictor_run(predictor, wrong, logits, &error);
    if (code != wanted || !strstr(error.text, words))
        fail_msg("code %d, no \"%s\" in: %s", code, words, error.text);
    assert_int_equal(starling_predictor_run(predictor, wrong, logits, NULL), wanted);
}

static void test_wrong_graphs(void **unused)
{
    static const int64_t falling[VERTICES + 1] = {0, 3, 2, 5, 7, 9, 11, ENTRIES},
                                            late[VERTICES + 1] = {1, 3, 5, 5, 7, 9, 11, ENTRIES};
    static const int32_t outside[ENTRIES] = {0, 1, 4, 2, VERTICES}, negative[ENTRIES] = {-1},
                         twice[ENTRIES] = {0, 1, 1, 2, 5}, two[ENTRIES] = {2};
    float nan[VERTICES * WIDTH] = {0};
    const int data = STARLING_PREDICTOR_ERR_DATA, usage = STARLING_PREDICTOR_ERR_USAGE;
    struct sl_checkpoint checkpoint = make(parse(steps));
    (void)unused;
    write_and_free(&checkpoint);
    starling_predictor *p = open_predictor();
    nan[9] = 0.0f / nan[0];
    const struct starling_predictor_graph good = graph();
    struct starling_predictor_graph g = good;
#define REFUSED(member, value, code, words) \
    do {                                    \
        g = good;                           \
        g.member = value;                   \
        refuse_graph(p, code, &g, words);   \
    } while (0)
    REFUSED(size, 0, usage, "the graph's size is 0");
    REFUSED(size, sizeof g - 1, usage, "the graph's size is");
    REFUSED(vertices, 0, usage, "0 vertices");
    REFUSED(vertices, (int64_t)1 << 31, usage, "2147483648 vertices");
    REFUSED(entries, -1, usage, "-1 entries");
    REFUSED(entries, 11, data, "expected 0 to 11");
    REFUSED(indptr, NULL, usage, "no indptr");
    REFUSED(indptr, falling, data, "falls at row 1");
    REFUSED(indptr, late, data, "goes from 1");
    REFUSED(indices, NULL, usage, "no indices");
    REFUSED(indices, outside, data, "column 7 (expected 0 to 6)");
    REFUSED(indices, negative, data, "column -1");
    REFUSED(edge_columns, 3, usage, "3 features of edges (expected 2");
    REFUSED(edge_features, NULL, usage, "0 features of edges (expected 2");
    REFUSED(edge_types, NULL, usage, "no types of edges");
    REFUSED(edge_types, two, data, "type 2 (expected 0 to 1)");
    REFUSED(edge_types, negative, data, "type -1");
    REFUSED(weights, weights, usage, "beside their features");
    REFUSED(feature_columns, 5, usage, "5 columns of features (expected 4");
    REFUSED(features, NULL, usage, "0 columns of features");
    REFUSED(features, nan, data, "features: row 2, column 1");
    REFUSED(edge_features, nan, data, "edge_features: row 4, column 1");
    g = good;
    g.indices = twice;
    static const int32_t alike[ENTRIES] = {0};
    g.edge_types = alike;
    refuse_graph(p, data, &g, "twice with one type");
    refuse_graph(p, usage, NULL, "NULL");
    refuse_graph(NULL, usage, &good, "NULL");
    starling_predictor_close(p);
    starling_predictor_close(NULL);
}

/* A caller of a later version has members that this one does not know. */
static void test_larger_graph(void **unused)
{
    struct {
        struct starling_predictor_graph graph;
        int64_t later[4];
    } larger = {graph(), {7, 7, 7, 7}};
    struct sl_checkpoint checkpoint = make(parse(steps));
    float wanted[VERTICES * WIDTH], found[VERTICES * WIDTH];
    (void)unused;
    write_and_free(&checkpoint);
    run(wanted);
    starling_predictor *p = open_predictor();
    larger.graph.size = sizeof larger;
    assert_int_equal(starling_predictor_run(p, &larger.graph, found, NULL), 0);
    assert_memory_equal(found, wanted, sizeof found);
    starling_predictor_close(p);
}

/* ---- Threads ---- */

enum { THREADS = 4, RUNS = 25 };

struct caller {
    const starling_predictor *predictor;
    float wanted[VERTICES * WIDTH];
    int wrong;
};

/* Run, and fail, by turns: a sentence is the caller's own. */
static void *call(void *argument)
{
    struct caller *c = argument;
    for (int r = 0; r < RUNS; r++) {
        struct starling_predictor_graph g = graph();
        struct starling_predictor_error error;
        float logits[VERTICES * WIDTH];
        const int code = starling_predictor_run(c->predictor, &g, logits, &error);
        c->wrong += code != 0 || error.text[0] || memcmp(logits, c->wanted, sizeof logits) != 0;
        g.vertices = 0;
        c->wrong += starling_predictor_run(c->predictor, &g, logits, &error) !=
                        STARLING_PREDICTOR_ERR_USAGE ||
                    !strstr(error.text, "0 vertices");
    }
    return NULL;
}

static void test_threads(void **unused)
{
    struct sl_checkpoint checkpoint = make(parse(steps));
    struct caller callers[THREADS];
    pthread_t thread[THREADS];
    (void)unused;
    write_and_free(&checkpoint);
    starling_predictor *p = open_predictor();
    for (int t = 0; t < THREADS; t++) {
        callers[t] = (struct caller){.predictor = p};
        run(callers[t].wanted);
    }
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, call, &callers[t]), 0);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(thread[t], NULL), 0);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(callers[t].wrong, 0);
    starling_predictor_close(p);
}

/* Weights: duplicates are summed, and some sums cannot be normalised. */
static void test_weights(void **unused)
{
    struct sl_checkpoint checkpoint =
        make(parse("[{'step':'aggregate','of':[0],'tensors':[],'reduce':'sum','norm':'row'},"
                   "{'step':'gat','of':[1],'tensors':['w','b'],'heads':1,'slope':0.2}]"));
    static const int64_t rows[VERTICES + 1] = {0, 3, 4, 5, 6, 7, 8, 9},
                                         merged_rows[VERTICES + 1] = {0, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t columns[] = {1, 2, 1, 3, 4, 5, 6, 0, 2},
                         merged[] = {1, 2, 3, 4, 5, 6, 0, 2};
    float values[] = {0.5f, 1, 0.25f, 2, 3, 1, 1, 2, 1}, sums[] = {0.75f, 1, 2, 3, 1, 1, 2, 1},
          a[VERTICES * WIDTH], b[VERTICES * WIDTH];
    (void)unused;
    json_t *forward = json_object_get(checkpoint.description, "forward");
    json_object_set_new(forward, "edge_features", json_integer(0));
    json_object_set_new(forward, "relations", json_integer(0));
    write_and_free(&checkpoint);
    starling_predictor *p = open_predictor();
    struct starling_predictor_graph g = {sizeof g, VERTICES, 9,     rows,
                                         columns,  values,   WIDTH, features};
    assert_int_equal(starling_predictor_run(p, &g, a, NULL), 0);
    g = (struct starling_predictor_graph){sizeof g, VERTICES, 8,     merged_rows,
                                          merged,   sums,     WIDTH, features};
    assert_int_equal(starling_predictor_run(p, &g, b, NULL), 0);
    assert_memory_equal(a, b, sizeof a);
    sums[0] = -0.75f;
    refuse_graph(p, STARLING_PREDICTOR_ERR_DATA, &g, "weight -0.75");
    sums[0] = sums[1] = 0.0f;
    refuse_graph(p, STARLING_PREDICTOR_ERR_DATA, &g, "vertex 0");
    g.edge_types = types;
    refuse_graph(p, STARLING_PREDICTOR_ERR_USAGE, &g, "no types of edges (expected none)");
    starling_predictor_close(p);
}

static void test_properties(void **unused)
{
    struct sl_checkpoint checkpoint = make(parse(steps));
    struct starling_predictor_error error = {"before"};
    starling_predictor *p;
    int32_t classes[2];
    (void)unused;
    write_and_free(&checkpoint);
    assert_int_equal(starling_predictor_open(path, &p, &error), 0);
    assert_string_equal(error.text, "");
    const struct starling_predictor_info *info = starling_predictor_info(p);
    assert_string_equal(info->model, "many");
    assert_true(info->features == WIDTH && info->outputs == WIDTH && !info->identity);
    assert_true(info->edge_features == EDGE_FEATURES && info->relations == RELATIONS);
    assert_int_equal(info->output, STARLING_PREDICTOR_CLASSES);
    assert_string_equal(starling_predictor_class_name(p, 2), "three");
    assert_null(starling_predictor_class_name(p, 4));
    assert_null(starling_predictor_class_name(p, -1));
    assert_int_equal(info->edge_weights, -1);
    const float logits[2 * WIDTH] = {0, 3, 3, 1, -4, -3, -2, -1};
    assert_int_equal(starling_predictor_classes(p, 2, logits, classes, NULL), 0);
    assert_true(classes[0] == 1 && classes[1] == 3);
    starling_predictor_close(p);
    assert_int_equal(starling_predictor_open(NULL, &p, &error), STARLING_PREDICTOR_ERR_USAGE);
    for (int with = 0; with < 2; with++) {
        checkpoint = make(parse(steps));
        json_object_set_new(json_object_get(checkpoint.description, "dataset"), "edge_weights",
                            json_boolean(with));
        write_and_free(&checkpoint);
        p = open_predictor();
        assert_int_equal(starling_predictor_info(p)->edge_weights, with);
        starling_predictor_close(p);
    }
    assert_string_equal(starling_predictor_version(), "0.1.0");
}

/* Arguments that are missing, and names with control characters. */
static void test_arguments(void **unused)
{
    const int usage = STARLING_PREDICTOR_ERR_USAGE;
    struct sl_checkpoint checkpoint = make(parse(steps));
    struct starling_predictor_error error;
    const float logits[WIDTH] = {0};
    int32_t classes[1] = {-1};
    starling_predictor *p;
    (void)unused;
    write_and_free(&checkpoint);
    p = open_predictor();
    assert_int_equal(starling_predictor_open(path, NULL, &error), usage);
    assert_non_null(strstr(error.text, "the predictor is NULL"));
    assert_null(starling_predictor_info(NULL));
    assert_null(starling_predictor_class_name(NULL, 0));
    assert_int_equal(starling_predictor_classes(NULL, 1, logits, classes, &error), usage);
    assert_int_equal(starling_predictor_classes(p, 1, NULL, classes, &error), usage);
    assert_int_equal(starling_predictor_classes(p, 1, logits, NULL, &error), usage);
    assert_int_equal(starling_predictor_classes(p, -1, logits, classes, &error), usage);
    assert_non_null(strstr(error.text, "fewer rows than 0"));
    assert_int_equal(starling_predictor_classes(p, 0, NULL, NULL, &error), 0);
    starling_predictor_close(p);
    assert_int_not_equal(starling_predictor_open("none\n\033[2J", &p, &error), 0);
    if (!strstr(error.text, "none\\x0a\\x1b[2J: "))
        fail_msg("%s", error.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_count),
        cmocka_unit_test(test_wrong_programs),
        cmocka_unit_test(test_wrong_descriptions),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_wrong_graphs),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_larger_graph),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_no_memory),
    };
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.32s/starling-predict-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    for (int k = 0; k < ENTRIES * EDGE_FEATURES; k++)
        edge_features[k] = draw();
    for (int k = 0; k < VERTICES * WIDTH; k++)
        features[k] = draw();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
