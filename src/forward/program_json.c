/* Forward programs as JSON:
 *
 *   {"version": 1, "model": "gcn", "features": 20, "outputs": 4, "output": "classes", "identity":
 *    false, "edge_features": 0, "relations": 0, "steps": [
 *      {"step": "product", "of": [0], "tensors": ["layer.0.weight"]}, …]}
 *
 * A member of a step that is 0 or false is left out. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "forward/program.h"

enum { VERSION = 1, MOST_STEPS = 65536 };

#define NAMED(constant, name) [constant] = name,
static const char *const outputs[] = {SL_PROGRAM_OUTPUTS(NAMED)},
                         *const reduces[] = {"sum", "max", "min"},
                         *const norms[] = {"none", "sym", "row", "count"};

/* ---- Write ---- */

static void set_integer(json_t *object, const char *key, int64_t value)
{
    if (value)
        json_object_set_new(object, key, json_integer(value));
}

static void set_real(json_t *object, const char *key, double value)
{
    if (value != 0.0)
        json_object_set_new(object, key, json_real(value));
}

static json_t *write_step(const struct sl_step *step)
{
    json_t *of = json_array(), *tensors = json_array();
    for (int v = 0; v < sl_step_values(step->kind); v++)
        json_array_append_new(of, json_integer(step->of[v]));
    for (int t = 0; t < SL_STEP_TENSORS && step->tensor[t]; t++)
        json_array_append_new(tensors, json_string(step->tensor[t]));
    json_t *object = json_pack("{s:s, s:o, s:o}", "step", sl_step_name(step->kind), "of", of,
                               "tensors", tensors);
    if (step->kind == SL_STEP_AGGREGATE) {
        json_object_set_new(object, "reduce", json_string(reduces[step->reduce]));
        json_object_set_new(object, "norm", json_string(norms[step->norm]));
    }
    if (step->loops)
        json_object_set_new(object, "loops", json_true());
    set_integer(object, "row", step->row);
    set_integer(object, "rows", step->rows);
    set_integer(object, "heads", step->heads);
    set_integer(object, "unit", step->unit);
    set_integer(object, "relations", step->relations);
    set_integer(object, "bases", step->bases);
    set_real(object, "slope", step->slope);
    set_real(object, "x", step->x);
    set_real(object, "y", step->y);
    set_real(object, "epsilon", step->epsilon);
    return object;
}

json_t *sl_program_to_json(const struct sl_program *program)
{
    json_t *steps = json_array();
    for (int s = 0; s < program->count; s++)
        json_array_append_new(steps, write_step(&program->step[s]));
    return json_pack("{s:i, s:s, s:I, s:I, s:s, s:b, s:I, s:I, s:o}", "version", VERSION, "model",
                     program->model, "features", (json_int_t)program->features, "outputs",
                     (json_int_t)program->outputs, "output", outputs[program->output], "identity",
                     program->identity, "edge_features", (json_int_t)program->edge_features,
                     "relations", (json_int_t)program->relations, "steps", steps);
}

/* ---- Read ---- */

/* Return the place of a word in a list; -1: it is not there. */
static int find(const char *const *words, int count, const json_t *word)
{
    const char *text = json_string_value(word);
    for (int w = 0; text && w < count; w++)
        if (strcmp(words[w], text) == 0)
            return w;
    return -1;
}

static int refuse(const char *name, int step, const char *what)
{
    return sl_error(SL_ERR_DATA, "%s: step %d of its forward program has %s", name, step, what);
}

/* Read an optional whole number of 0 to 2^31 - 1. Return whether it is one. */
static bool read_integer(const json_t *object, const char *key, int64_t *out)
{
    const json_t *number = json_object_get(object, key);
    *out = json_integer_value(number);
    return !number || (json_is_integer(number) && *out >= 0 && *out <= INT32_MAX);
}

static bool read_real(const json_t *object, const char *key, double *out)
{
    const json_t *number = json_object_get(object, key);
    *out = json_number_value(number);
    return !number || (json_is_number(number) && isfinite(*out));
}

/* Read the numbers of a step. Return whether all are numbers in range. */
static bool read_numbers(const json_t *object, struct sl_step *step)
{
    int64_t unit;
    const bool good =
        read_integer(object, "row", &step->row) && read_integer(object, "rows", &step->rows) &&
        read_integer(object, "heads", &step->heads) && read_integer(object, "unit", &unit) &&
        read_integer(object, "relations", &step->relations) &&
        read_integer(object, "bases", &step->bases) && read_real(object, "slope", &step->slope) &&
        read_real(object, "x", &step->x) && read_real(object, "y", &step->y) &&
        read_real(object, "epsilon", &step->epsilon);
    const json_t *loops = json_object_get(object, "loops");
    step->unit = good ? (int)unit : 0;
    step->loops = json_is_true(loops);
    return good && (!loops || json_is_boolean(loops));
}

static int read_words(const json_t *object, const char *name, int s, struct sl_step *step)
{
    static const char *const kinds[] = {SL_STEPS(NAMED)};
    const json_t *word = json_object_get(object, "step");
    const int kind = find(kinds, SL_STEP_KINDS, word);
    if (kind < 0)
        return sl_error(SL_ERR_DATA,
                        "%s: step %d of its forward program is \"%s\", which this version does not "
                        "know (expected a newer version, or another file)",
                        name, s, json_string_value(word) ? json_string_value(word) : "");
    step->kind = (enum sl_step_kind)kind;
    if (step->kind != SL_STEP_AGGREGATE)
        return 0;
    const int reduce = find(reduces, SL_REDUCES, json_object_get(object, "reduce")),
              norm = find(norms, SL_STEP_NORMS, json_object_get(object, "norm"));
    if (reduce < 0 || norm < 0)
        return refuse(name, s, "an unknown sum over neighbours (expected \"reduce\", \"norm\")");
    step->reduce = (enum sl_step_reduce)reduce;
    step->norm = (enum sl_step_norm)norm;
    return 0;
}

/* Read the values and tensors that step s, from 0, reads: value v is there before step v. */
static int read_operands(const json_t *object, const char *name, int s, struct sl_step *step)
{
    const json_t *of = json_object_get(object, "of"), *tensors = json_object_get(object, "tensors");
    const size_t values = (size_t)sl_step_values(step->kind), count = json_array_size(tensors);
    if (json_array_size(of) != values || count > SL_STEP_TENSORS)
        return refuse(name, s, "other numbers of values or tensors than its kind reads");
    for (size_t v = 0; v < values; v++) {
        const json_t *value = json_array_get(of, v);
        const json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < 0 || number > s)
            return refuse(name, s, "a value that no step before it makes");
        step->of[v] = (int)number;
    }
    for (size_t t = 0; t < count; t++) {
        const char *tensor = json_string_value(json_array_get(tensors, t));
        if (!tensor)
            return refuse(name, s, "a tensor without a name");
        step->tensor[t] = strdup(tensor);
        if (!step->tensor[t])
            return sl_error(SL_ERR_SYSTEM, "%s: no memory for its forward program", name);
    }
    return 0;
}

static int read_step(const json_t *object, const char *name, int s, struct sl_program *program)
{
    struct sl_step step = {.of = {-1, -1, -1}};
    int code = read_words(object, name, s, &step);
    if (!code)
        code = read_numbers(object, &step) ? 0 : refuse(name, s, "a number that is wrong");
    if (!code)
        code = read_operands(object, name, s, &step);
    sl_program_add(program, &step); /* its names are freed with the program */
    return code || !program->failed
               ? code
               : sl_error(SL_ERR_SYSTEM, "%s: no memory for its forward program", name);
}

static int read_sizes(const json_t *object, const char *name, struct sl_program *program)
{
    const char *model = json_string_value(json_object_get(object, "model"));
    const int output = find(outputs, SL_PROGRAM_KINDS, json_object_get(object, "output"));
    if (!model || output < 0 || !read_integer(object, "features", &program->features) ||
        !read_integer(object, "outputs", &program->outputs) ||
        !read_integer(object, "edge_features", &program->edge_features) ||
        !read_integer(object, "relations", &program->relations) || program->features < 1 ||
        program->outputs < 1)
        return sl_error(SL_ERR_DATA, "%s: its forward program lacks sizes, or has wrong ones",
                        name);
    snprintf(program->model, sizeof program->model, "%s", model);
    program->output = (enum sl_program_output)output;
    program->identity = json_is_true(json_object_get(object, "identity"));
    return 0;
}

int sl_program_from_json(const json_t *object, const char *name, struct sl_program *program)
{
    const json_t *steps = json_object_get(object, "steps");
    const size_t count = json_array_size(steps);
    *program = (struct sl_program){0};
    if (json_integer_value(json_object_get(object, "version")) != VERSION)
        return sl_error(SL_ERR_DATA, "%s: its forward program has another version (expected %d)",
                        name, VERSION);
    if (count < 1 || count > MOST_STEPS)
        return sl_error(SL_ERR_DATA, "%s: its forward program has %zu steps (expected 1 to %d)",
                        name, count, MOST_STEPS);
    int code = read_sizes(object, name, program);
    for (size_t s = 0; !code && s < count; s++)
        code = read_step(json_array_get(steps, s), name, (int)s, program);
    return code;
}
