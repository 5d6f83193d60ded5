/* Small random datasets in memory, for tests. */
#ifndef SL_TESTS_FIXTURES_H
#define SL_TESTS_FIXTURES_H

#include "data/dataset.h"
#include "tests/reference.h"

/* Properties of a random dataset. Equal specifications give equal datasets. */
struct sl_fixture {
    const char *name;
    int64_t vertices, features, classes; /* features: ignored for identity */
    double degree;                       /* neighbours per vertex, on average */
    bool directed;                       /* A need not equal its transpose */
    bool weighted;         /* weights k/8, k = 1 … 16: exact in float; else all 1, none stored */
    bool self_loops;       /* about every third vertex has one */
    int64_t isolated;      /* so many vertices have no edge at all, not even to themselves */
    int64_t edge_features; /* features of each entry; 0: none */
    int64_t relations;     /* of entries, and some vertices have two entries; 0: none */
    enum sl_feature_form form;
    bool unit_features;    /* CSR: all stored features are 1, none stored */
    bool unlabelled_train; /* training vertices may have label -1 */
    uint64_t seed;
};

/* The first members of a fixture: its name, vertices, features, classes and degree. */
#define SL_FIXTURE(title, n, width, labels, mean) \
    .name = (title), .vertices = (n), .features = (width), .classes = (labels), .degree = (mean)

/* One of every kind, no size a multiple of anything: to run a test over all of them. */
extern const struct sl_fixture sl_fixtures[];
extern const int sl_fixture_count;

/* The specification of that name in sl_fixtures; aborts if there is none. */
const struct sl_fixture *sl_fixture_find(const char *name);

/* Build the dataset and set every field. About a tenth of the labels is -1. About half of the
 * vertices train, a fifth validates, a fifth tests, and the others are in no split. If there is a
 * vertex, there is a training vertex with a label. Abort without memory. The dataset is freed by
 * sl_fixture_close, not by sl_dataset_close: its `blocks` is NULL. */
struct sl_dataset sl_fixture_open(const struct sl_fixture *fixture);
void sl_fixture_close(struct sl_dataset *data);

/* Dense copies of a dataset's arrays, out (n, n) and (n, features). */
void sl_fixture_dense_adjacency(const struct sl_dataset *data, double *out);
void sl_fixture_dense_features(const struct sl_dataset *data, double *out);

/* The reference network on a dataset: `hidden` (layers - 1) widths between the features and the
 * classes. Weights are 0, dropout is 0. The caller destroys it. */
struct sl_reference *sl_fixture_reference(const struct sl_dataset *data, int layers,
                                          const int64_t *hidden, enum sl_reference_norm norm);

/* mask (n): whether a vertex is in the set. */
void sl_fixture_mask(const struct sl_index_set *set, int64_t n, bool *mask);

#endif
