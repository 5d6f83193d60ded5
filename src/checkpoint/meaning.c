#include "checkpoint/meaning.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/json_file.h"
#include "core/options.h"
#include "data/formats/string_ids.h"

static const char NAMES[] = "class_names", COLUMNS[] = "feature_names",
                  IDENTITY[] = "identity_features", MEANS[] = "feature_means",
                  DEVIATIONS[] = "feature_deviations", ROWS[] = "rows", EDGES[] = "edge_features",
                  RELATIONS[] = "relations", PROJECTED[] = "projected_features";

/* ---- Describe ---- */

/* Set *readable to whether names stay distinct when they are read again: JSON holds UTF-8 only.
 * Classes with other names keep their numbers. Return whether there was memory to find out. */
static bool check_names(const char *const *names, bool *readable)
{
    struct sl_string_ids ids = {0};
    bool memory = true;
    *readable = names != NULL;
    for (int64_t c = 0; memory && *readable && names[c]; c++) {
        json_t *text = json_string(names[c]);
        const int64_t number = text ? sl_string_ids_get(&ids, names[c]) : c;
        memory = number >= 0;
        *readable = text && number == c;
        json_decref(text);
    }
    sl_string_ids_free(&ids);
    return memory;
}

static json_t *list_numbers(const double *numbers, int64_t count)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (int64_t k = 0; good && k < count; k++)
        good = json_array_append_new(list, json_real(numbers[k])) == 0;
    if (!good)
        json_decref(list);
    return good ? list : NULL;
}

json_t *sl_meaning_describe(const struct sl_source *source)
{
    const long failures = sl_json_failures();
    const int64_t stored = source->change.projection.columns;
    json_t *dataset = json_pack(
        "{s:o, s:I, s:I, s:I, s:b, s:s, s:b}", "name", sl_json_text(source->name), "vertices",
        (json_int_t)source->vertices, "features",
        (json_int_t)(stored > 0 ? stored : source->features), "classes",
        (json_int_t)source->classes, IDENTITY, source->feature_form == SL_FEATURES_IDENTITY, ROWS,
        "sources of edges", "edge_weights", source->adjacency.values.data != NULL);
    bool readable, good = dataset && check_names(source->targets.class_names, &readable);
    if (good && readable)
        good = json_object_set_new(dataset, NAMES, sl_json_list(source->targets.class_names)) == 0;
    if (good && source->reads_edges == SL_READS_EDGE_FEATURES)
        good =
            json_object_set_new(dataset, EDGES, json_integer(sl_source_edge_features(source))) == 0;
    if (good && source->reads_edges == SL_READS_RELATIONS)
        good = json_object_set_new(dataset, RELATIONS, json_integer(source->relations.count)) == 0;
    if (good && source->columns.names)
        good = json_object_set_new(dataset, COLUMNS, sl_json_list(source->columns.names)) == 0;
    if (good && stored > 0)
        good = json_object_set_new(dataset, PROJECTED, json_integer(source->features)) == 0;
    if (good && source->change.moments.mean)
        good =
            json_object_set_new(dataset, MEANS,
                                list_numbers(source->change.moments.mean, source->features)) == 0 &&
            json_object_set_new(dataset, DEVIATIONS,
                                list_numbers(source->change.moments.deviation, source->features)) ==
                0;
    if (good && sl_json_failures() == failures)
        return dataset;
    json_decref(dataset);
    return NULL;
}

/* ---- Adopt ---- */

/* Read the names of a model's classes, and give each name its number. */
static int read_names(struct sl_source *source, const json_t *list, const char *model,
                      const char *const **names, struct sl_string_ids *numbers)
{
    const int64_t count = (int64_t)json_array_size(list);
    const char **copy = sl_block_array(&source->blocks, count + 1, sizeof *copy);
    if (!copy)
        return SL_ERR_SYSTEM;
    for (int64_t c = 0; c < count; c++) {
        const char *name = json_string_value(json_array_get(list, (size_t)c));
        if (!name || sl_string_ids_find(numbers, name) >= 0)
            return sl_error(SL_ERR_DATA,
                            "%s: class %" PRId64 " is called %s (expected a name of its own)",
                            model, c, name ? name : "nothing");
        copy[c] = sl_block_print(&source->blocks, "%s", name);
        if (!copy[c] || sl_string_ids_get(numbers, name) != c)
            return SL_ERR_SYSTEM;
    }
    copy[count] = NULL;
    *names = copy;
    return SL_OK;
}

/* Write the first names of a list into an error's text. */
static void list_names(const char *const *names, char *text, size_t size)
{
    enum { MOST = 10 };
    size_t length = 0;
    text[0] = '\0';
    for (int c = 0; c <= MOST && length < size && names[c]; c++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", c ? ", " : "",
                                   c < MOST ? names[c] : "...");
}

/* Set number[c] to the model's number of class c of the dataset. */
static int number_classes(const struct sl_source *source, const char *const *names,
                          const struct sl_string_ids *numbers, const char *model, int32_t *number,
                          bool *same)
{
    char known[512];
    *same = true;
    for (int64_t c = 0; source->targets.class_names[c]; c++) {
        const int64_t found = sl_string_ids_find(numbers, source->targets.class_names[c]);
        list_names(names, known, sizeof known);
        if (found < 0)
            return sl_error(SL_ERR_DATA,
                            "%s: %s has a class \"%s\" (expected classes that the model knows: "
                            "%s)",
                            model, source->path, source->targets.class_names[c], known);
        number[c] = (int32_t)found;
        *same = *same && found == c;
    }
    return SL_OK;
}

static int adopt_names(struct sl_source *source, const char *const *names,
                       const struct sl_string_ids *numbers, const char *model)
{
    const int64_t count = sl_labels_count_names(source->targets.class_names);
    int32_t *number = sl_block_array(&source->blocks, count, sizeof *number);
    bool same = true;
    int code = number ? SL_OK : SL_ERR_SYSTEM;
    if (!code && source->targets.class_names)
        code = number_classes(source, names, numbers, model, number, &same);
    if (code)
        return code;
    const bool several =
        count > 0 && source->targets.labels.data && source->targets.labels.dims == 2;
    if (several && (!same || count != numbers->count))
        return sl_error(SL_ERR_DATA,
                        "%s: the columns of labels of %s are others, or have another order "
                        "(expected those of the model's classes, in their order)",
                        model, source->path);
    if (!same) {
        source->targets.label_classes.number = number;
        source->targets.label_classes.count = count;
    }
    if (count > 0 && source->targets.labels.data)
        source->classes = numbers->count;
    source->targets.class_names = names;
    return SL_OK;
}

static int adopt_classes(struct sl_source *source, const json_t *list, const char *model)
{
    const char *const *names = NULL;
    struct sl_string_ids numbers = {0};
    int code = read_names(source, list, model, &names, &numbers);
    if (!code)
        code = adopt_names(source, names, &numbers, model);
    sl_string_ids_free(&numbers);
    return code;
}

static int refuse_columns(const struct sl_source *source, int64_t count, const char *model)
{
    return sl_error(SL_ERR_DATA,
                    "%s: the model was trained with %" PRId64 " columns of features, and %s has "
                    "%" PRId64 " (expected the same columns)",
                    model, count, source->path, source->features);
}

static int check_features(const struct sl_source *source, const json_t *dataset, const char *model)
{
    const json_t *said = json_object_get(dataset, IDENTITY);
    const bool identity = source->feature_form == SL_FEATURES_IDENTITY;
    const json_int_t columns = json_integer_value(json_object_get(dataset, "features"));
    if (said && json_is_true(said) != identity)
        return sl_error(SL_ERR_DATA,
                        identity ? "%s: the model was trained with columns of features, and %s has "
                                   "none (expected the same columns)"
                                 : "%s: the model was trained without features, one vertex by one, "
                                   "and %s has features (expected the graph of the training)",
                        model, source->path);
    /* other columns of plain features do not fit the first layer's parameters */
    return json_object_get(dataset, PROJECTED) && columns != source->features
               ? refuse_columns(source, columns, model)
               : SL_OK;
}

/* Check that columns have the model's names in the model's order. Columns are not sorted by name.
 */
static int check_columns(const struct sl_source *source, const json_t *list, const char *model)
{
    const size_t count = (size_t)sl_labels_count_names(source->columns.names),
                 known = json_array_size(list);
    int code = SL_OK;
    for (size_t c = 0; !code && source->columns.names && (c < count || c < known); c++) {
        json_t *text = sl_json_text(c < count ? source->columns.names[c] : "");
        const char *wanted = json_string_value(json_array_get(list, c)),
                   *found = c < count ? json_string_value(text) : NULL;
        if (!wanted || !found || strcmp(wanted, found) != 0)
            code = sl_error(SL_ERR_DATA,
                            "%s: column %zu of the features of %s is %s, and the model's is %s "
                            "(expected the columns of the training, in their order)",
                            model, c, source->path, found ? found : "absent",
                            wanted ? wanted : "absent");
        json_decref(text);
    }
    return code;
}

static int refuse_moments(const char *model, const char *list)
{
    return sl_error(SL_ERR_DATA, "%s: \"%s\" is damaged (expected a number for each column%s)",
                    model, list, list == DEVIATIONS ? ", above 0" : "");
}

/* Read a number above a bound for each column. */
static int read_moments(struct sl_source *source, const json_t *dataset, const char *list,
                        double above, const char *model, const double **out)
{
    const json_t *items = json_object_get(dataset, list);
    const int64_t count = (int64_t)json_array_size(items);
    double *numbers = sl_block_array(&source->blocks, count, sizeof *numbers);
    *out = numbers;
    if (!numbers)
        return SL_ERR_SYSTEM;
    for (int64_t c = 0; c < count; c++) {
        const json_t *item = json_array_get(items, (size_t)c);
        numbers[c] = json_number_value(item);
        if (!json_is_number(item) || !(numbers[c] > above))
            return refuse_moments(model, list);
    }
    if (count != source->features)
        return refuse_columns(source, count, model);
    return SL_OK;
}

/* Give the dataset the model's means and deviations of columns. Sparse features are expanded row by
 * row. */
static int adopt_moments(struct sl_source *source, const json_t *dataset, bool standardizes,
                         const char *model)
{
    struct sl_moments moments;
    const bool means = json_is_array(json_object_get(dataset, MEANS)),
               deviations = json_is_array(json_object_get(dataset, DEVIATIONS));
    if (!standardizes && !means && !deviations)
        return SL_OK;
    if (!means || !deviations)
        return sl_error(SL_ERR_DATA,
                        "%s: the model standardises columns of features, and \"%s\" of \"dataset\" "
                        "is no list (expected a number for each column)",
                        model, means ? DEVIATIONS : MEANS);
    if (source->feature_form == SL_FEATURES_CSR)
        source->feature_form = SL_FEATURES_DENSE;
    int code = read_moments(source, dataset, MEANS, -INFINITY, model, &moments.mean);
    if (!code)
        code = read_moments(source, dataset, DEVIATIONS, 0.0, model, &moments.deviation);
    if (!code)
        source->change.moments = moments;
    return code;
}

int sl_meaning_adopt(struct sl_source *source, const json_t *dataset, bool standardizes,
                     const char *model)
{
    const json_t *names = json_object_get(dataset, NAMES),
                 *columns = json_object_get(dataset, COLUMNS);
    int code = check_features(source, dataset, model);
    if (!code && json_is_array(columns))
        code = check_columns(source, columns, model);
    if (!code)
        code = adopt_moments(source, dataset, standardizes, model);
    return code || !json_is_array(names) ? code : adopt_classes(source, names, model);
}

struct sl_forward_data sl_meaning_forward(const json_t *dataset)
{
    return (struct sl_forward_data){
        .features = json_integer_value(json_object_get(dataset, "features")),
        .classes = json_integer_value(json_object_get(dataset, "classes")),
        .identity = json_is_true(json_object_get(dataset, IDENTITY))};
}

int64_t sl_meaning_edges(const json_t *dataset)
{
    return json_integer_value(json_object_get(dataset, EDGES));
}

int64_t sl_meaning_relations(const json_t *dataset)
{
    return json_integer_value(json_object_get(dataset, RELATIONS));
}

int sl_meaning_check_direction(const struct sl_source *source, bool symmetric,
                               const json_t *dataset, const char *model)
{
    if (symmetric || !source->of_edges || json_object_get(dataset, ROWS))
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: the model was trained when u aggregated from v of an edge u -> v of a "
                    "file, and v aggregates from u of the directed edges of %s (expected a "
                    "directory that starling convert --reverse makes of it)",
                    model, source->path);
}
