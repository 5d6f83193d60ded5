#include "core/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 63 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Compute the optimal string alignment (restricted Damerau-Levenshtein) with three rows of the
 * table. */
size_t sl_nearest_distance(const char *typed, const char *name)
{
    size_t table[3][LONGEST + 1];
    const size_t rows = smaller(strlen(typed), LONGEST), cols = smaller(strlen(name), LONGEST);
    if (rows > 0 && rows < cols && strncmp(typed, name, rows) == 0)
        return 1;
    for (size_t j = 0; j <= cols; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        const size_t *above2 = table[(i + 1) % 3], *above = table[(i + 2) % 3];
        size_t *row = table[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= cols; j++) {
            const size_t replace = above[j - 1] + (typed[i - 1] != name[j - 1]);
            row[j] = smaller(replace, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && typed[i - 1] == name[j - 2] && typed[i - 2] == name[j - 1])
                row[j] = smaller(row[j], above2[j - 2] + 1);
        }
    }
    return table[rows % 3][cols];
}

bool sl_nearest_is_close(const char *typed, size_t distance)
{
    return distance <= 1 || 3 * distance <= strlen(typed);
}

struct sl_guess sl_guess_begin(const char *typed)
{
    return (struct sl_guess){.typed = typed, .distance = SIZE_MAX};
}

void sl_guess_consider(struct sl_guess *guess, const char *theirs, const char *ours)
{
    const size_t distance = sl_nearest_distance(guess->typed, theirs);
    if (distance >= guess->distance)
        return;
    guess->distance = distance;
    snprintf(guess->name, sizeof guess->name, "%s", ours);
}

void sl_guess_consider_list(struct sl_guess *guess, const char *list, const char *between)
{
    char name[sizeof guess->name];
    for (const char *at = list + strspn(list, between); *at; at += strspn(at, between)) {
        const size_t length = strcspn(at, between);
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        sl_guess_consider(guess, name, name);
        at += length;
    }
}

bool sl_guess_is_close(const struct sl_guess *guess)
{
    return guess->name[0] && sl_nearest_is_close(guess->typed, guess->distance);
}

struct sl_hint sl_guess_hint(const struct sl_guess *guess)
{
    struct sl_hint hint = {""};
    if (sl_guess_is_close(guess))
        snprintf(hint.text, sizeof hint.text, "; the nearest is %s", guess->name);
    return hint;
}

const struct sl_alias sl_aliases[] = {
    {"learning-rate", "lr"},
    {"lr-scheduler", "schedule"},
    {"lr-decay", "step-factor"},
    {"gamma", "step-factor"},
    {"step-size", "step-epochs"},
    {"l2", "weight-decay"},
    {"wd", "weight-decay"},
    {"drop-rate", "dropout"},
    {"dropout-rate", "dropout"},
    {"feat-drop", "input-dropout"},
    {"optim", "optimizer"},
    {"early-stopping", "patience"},
    {"early-stop", "patience"},
    {"num-epochs", "epochs"},
    {"n-epochs", "epochs"},
    {"max-epochs", "epochs"},
    {"random-seed", "seed"},
    {"hidden-channels", "hidden"},
    {"hidden-dim", "hidden"},
    {"hidden-size", "hidden"},
    {"hidden-units", "hidden"},
    {"num-hidden", "hidden"},
    {"n-hidden", "hidden"},
    {"num-layers", "layers"},
    {"n-layers", "layers"},
    {"arch", "model"},
    {"conv", "model"},
    {"aggr", "aggregator"},
    {"normalization", "norm"},
    {"dtype", "precision"},
    {"num-workers", "workers"},
    {"num-threads", "workers"},
    {"num-threads", "threads"},
    {"num-ranks", "ranks"},
    {"num-parts", "parts"},
    {"num-nodes", "vertices"},
    {"num-vertices", "vertices"},
    {"num-classes", "classes"},
    {"num-features", "features"},
    {"undirected", "symmetrize"},
    {"to-undirected", "symmetrize"},
    {"save", "checkpoint"},
    {"save-model", "checkpoint"},
    {"log-file", "log"},
    {NULL, NULL},
};

const struct sl_alias sl_value_aliases[] = {
    {"gpu", "cuda"},
    {"gpus", "cuda"},
    {"nvidia", "cuda"},
    {"float32", "fp32"},
    {"float", "fp32"},
    {"single", "fp32"},
    {"bfloat16", "bf16"},
    {"graphsage", "sage"},
    {"graphconv", "gcn"},
    {"softmax", "cross-entropy"},
    {"ce", "cross-entropy"},
    {"nll", "cross-entropy"},
    {"bce", "sigmoid"},
    {"auc", "roc-auc"},
    {"rocauc", "roc-auc"},
    {"both", "sym"},
    {"right", "row"},
    {"add", "sum"},
    {"cosine-annealing", "cosine"},
    {"published", "unscaled"}, /* name of this value of --partial-sums in older programs */
    {NULL, NULL},
};
