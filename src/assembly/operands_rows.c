/* Makes the row scales that training reads: normalisation, vertex, label and split. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/making.h"
#include "codelets/operation.h"
#include "core/error.h"
#include "data/labels.h"

/* Return the number of entries in row k of A. If the dataset is a selection, count the row in the
 * whole graph. */
static int64_t row_entries(const struct sl_making *m, int64_t k)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const struct sl_source *source = &m->source;
    return source->selection.row_entries
               ? source->selection.row_entries[sl_source_vertex(source, m->part.first + k)]
               : a->indptr[k + 1] - a->indptr[k];
}

/* Return `sum` plus the entries of row k. */
static double add_row(const struct sl_making *m, int64_t k, double sum)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const struct sl_source *source = &m->source;
    if (source->selection.row_entries)
        return sum +
               (source->selection.row_weight
                    ? source->selection.row_weight[sl_source_vertex(source, m->part.first + k)]
                    : (double)row_entries(m, k));
    for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
        sum += a->values ? (double)a->values[e] : 1.0;
    return sum;
}

/* Return the divisor of row k of S: its sum, or the number of its entries. */
static double row_divisor(const struct sl_making *m, enum sl_norm norm, int64_t k)
{
    const int64_t count = row_entries(m, k) + m->assembly->loops;
    if (norm == SL_NORM_NONE)
        return 1.0;
    if (norm == SL_NORM_COUNT) /* a vertex without neighbours is divided by 1 */
        return count ? (double)count : 1.0;
    return add_row(m, k, m->assembly->loops);
}

/* Refuse negative edge weights where attention divides by sums of weights. */
static int check_weights(const struct sl_making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    for (int64_t k = 0; a->values && m->assembly->positive && k < a->rows; k++)
        for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
            if (!(a->values[e] >= 0.0f))
                return sl_error(SL_ERR_DATA,
                                "%s: vertex %lld has an edge of weight %g, which --model gat "
                                "cannot take (expected no weights below 0)",
                                m->part.data.path, (long long)sl_making_vertex(m, k),
                                (double)a->values[e]);
    return 0;
}

int sl_making_diagonals(struct sl_making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const enum sl_norm norm = m->assembly->norm;
    if (check_weights(m))
        return SL_ERR_DATA;
    m->left = malloc((size_t)(a->rows + 1) * sizeof *m->left);
    m->right = malloc((size_t)(a->rows + 1) * sizeof *m->right);
    if (!m->left || !m->right)
        return sl_error(SL_ERR_SYSTEM, "no memory for the degrees of %lld vertices",
                        (long long)a->rows);
    for (int64_t k = 0; k < a->rows; k++) {
        const double degree = row_divisor(m, norm, k);
        if (!(degree > 0.0))
            return sl_error(
                SL_ERR_DATA,
                "%s: the edge weights of vertex %lld and its self-loop sum to %g, which cannot "
                "normalise the adjacency (expected a positive sum)",
                m->part.data.path, (long long)sl_making_vertex(m, k), degree);
        m->left[k] = norm == SL_NORM_SYM ? 1.0 / sqrt(degree) : 1.0 / degree;
        m->right[k] = norm == SL_NORM_SYM ? m->left[k] : 1.0;
    }
    return 0;
}

/* Whether row k counts in sums over all vertices. Leaves of a vertex-cut do not count, nor do
 * vertices around a selection. */
static bool is_root(const struct sl_making *m, int64_t k)
{
    const struct sl_source *source = &m->source;
    const bool clones = m->assembly->owners.kind->clones;
    if (clones && m->diagonal[k] < 0)
        return false;
    return !source->selection.whole ||
           sl_source_vertex(source, clones ? m->row[k] : m->part.first + k) <
               source->selection.inner;
}

int sl_making_row_scales(struct sl_making *m)
{
    const struct sl_partition *p = sl_making_partition(m);
    struct sl_tile *scales = m->o->scales[m->row_order] = calloc((size_t)p->tiles, sizeof *scales);
    if (!scales)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", p->tiles);
    for (int i = 0; i < p->tiles; i++) {
        const int64_t rows = p->row_cut[i + 1] - p->row_cut[i];
        if (sl_tile_create(m->rt, &scales[i], SL_ROW_SCALES, rows, sizeof(float),
                           sl_distribution_whole_owner(sl_making_distribution(m), i, 0)))
            return SL_ERR_SYSTEM;
        float *scale = scales[i].memory;
        for (int64_t r = 0; scale && r < rows; r++) {
            const int64_t k = sl_making_local(m, p->row_cut[i] + r);
            const double left = m->left[k], right = m->right[k];
            ((uint32_t *)scale)[SL_ROW_VERTEX * rows + r] = (uint32_t)sl_making_vertex(m, k);
            scale[SL_ROW_LEFT * rows + r] = (float)left;
            scale[SL_ROW_RIGHT * rows + r] = (float)right;
            scale[SL_ROW_BOTH * rows + r] = (float)(left * right);
            scale[SL_ROW_INVERSE_LEFT * rows + r] = (float)(1.0 / left);
            scale[SL_ROW_INVERSE_RIGHT * rows + r] = (float)(1.0 / right);
            scale[SL_ROW_ROOT * rows + r] = is_root(m, k) ? 1.0f : 0.0f;
        }
    }
    return 0;
}

/* Return the role of a row. The first vertices of a selection are inner ones; others are copies. */
static enum sl_copies_role role_of(const struct sl_making *m, int64_t row, bool leaf)
{
    return row >= m->source.selection.inner ? SL_COPIES_COPY
           : leaf                           ? SL_COPIES_LEAF
                                            : SL_COPIES_OWNER;
}

/* List the vertices of a group of columns. All its ranks have the same vertices. */
static void list_vertices(struct sl_making *m, int64_t first, int64_t count)
{
    struct sl_copies_rows *rows = &m->o->rows;
    for (int64_t r = 0; r < count; r++) {
        const int64_t row = sl_source_vertex(&m->source, first + r);
        rows->vertex[r] = (uint32_t)sl_source_number(&m->source, row);
        rows->role[r] = (uint8_t)role_of(m, row, false);
    }
}

static void list_clones(struct sl_making *m, int64_t first, int64_t count)
{
    struct sl_copies_rows *rows = &m->o->rows;
    for (int64_t r = 0; r < count; r++) {
        const int64_t k = sl_making_local(m, first + r);
        rows->vertex[r] = (uint32_t)sl_making_vertex(m, k);
        rows->role[r] =
            (uint8_t)role_of(m, sl_source_vertex(&m->source, m->row[k]), m->diagonal[k] < 0);
    }
}

int sl_making_copies(struct sl_making *m)
{
    const struct sl_partition *p = sl_making_partition(m);
    const struct sl_distribution *d = sl_making_distribution(m);
    const struct sl_tile_run own = sl_grid_group(d, m->rt->rank);
    const int64_t first = p->row_cut[own.from], count = p->row_cut[own.to] - first;
    m->o->rows = (struct sl_copies_rows){
        .from = own.from,
        .to = own.to,
        .column = sl_grid_column(&d->grid, m->rt->rank),
        .columns = d->grid.columns,
        .row_cut = p->row_cut,
        .vertex = malloc((size_t)(count + 1) * sizeof *m->o->rows.vertex),
        .role = malloc((size_t)(count + 1) * sizeof *m->o->rows.role),
    };
    if (!m->o->rows.vertex || !m->o->rows.role)
        return sl_error(SL_ERR_SYSTEM, "no memory for the numbers of %lld rows", (long long)count);
    (m->assembly->owners.kind->clones ? list_clones : list_vertices)(m, first, count);
    return 0;
}

void sl_operands_forget_rows(struct sl_operands *o)
{
    free(o->rows.vertex);
    free(o->rows.role);
    o->rows = (struct sl_copies_rows){0};
}

static void mark_split(const struct sl_making *m, const struct sl_index_set *set,
                       enum sl_split split, int32_t *split_of)
{
    for (int64_t k = 0; k < set->count; k++)
        split_of[sl_making_local(m, set->ids[k])] = split;
}

/* Write the values of row k: the dataset's, or 1 for the row's class and 0 for other classes. */
static void set_values(const struct sl_dataset *data, int64_t columns, int64_t k, int32_t *value)
{
    for (int64_t j = 0; j < columns; j++) {
        const float one = data->multilabels ? data->multilabels[k * columns + j]
                          : data->labels    ? (float)(data->labels[k] == j)
                                            : NAN;
        memcpy(value + j, &one, sizeof one);
    }
}

static int create_target(struct sl_making *m, int i, const int32_t *split_of)
{
    const struct sl_partition *p = sl_making_partition(m);
    const struct sl_dataset *data = &m->part.data;
    const enum sl_target_form form = m->assembly->objective.loss->form;
    const int64_t columns = m->source.classes, width = sl_target_width(form, columns);
    const int64_t rows = p->row_cut[i + 1] - p->row_cut[i],
                  first = sl_making_local(m, p->row_cut[i]);
    struct sl_tile *tile = &m->o->target[m->row_order][i];
    const int code = sl_tile_create(m->rt, tile, rows, width, sizeof(int32_t),
                                    sl_distribution_whole_owner(sl_making_distribution(m), i, 0));
    int32_t *target = tile->memory;
    for (int64_t r = 0; target && r < rows; r++) {
        target[r * width + SL_TARGET_LABEL] = sl_labels_find(data, first + r);
        target[r * width + SL_TARGET_SPLIT] = split_of[first + r];
        if (form == SL_TARGET_VALUES)
            set_values(data, columns, first + r, target + r * width + SL_TARGET_FIRST);
    }
    return code;
}

/* Add this rank's counts: count[0 … classes - 1], training vertices of each class or with value 1
 * in each column; the next `classes`, with value 0; labelled vertices of each split. */
static void count_part(const struct sl_making *m, const int32_t *split_of, int64_t *count)
{
    const struct sl_dataset *data = &m->part.data;
    const int64_t classes = m->source.classes;
    for (int64_t k = 0; k < data->adjacency.rows; k++) {
        const int32_t label = sl_labels_find(data, k);
        m->o->split_count[split_of[k]] += label >= 0;
        if (label < 0 || split_of[k] != SL_SPLIT_TRAIN)
            continue;
        for (int64_t j = 0; data->multilabels && j < classes; j++) {
            const float value = data->multilabels[k * classes + j];
            count[j] += value == 1.0f;
            count[classes + j] += value == 0.0f;
        }
        if (data->labels)
            count[label]++;
    }
}

/* Return n / (k · count): n vertices have k values, and `count` of them this value. Return 1 for a
 * value without vertices. */
static float balanced(double vertices, double present, int64_t count)
{
    return count > 0 ? (float)(vertices / (present * (double)count)) : 1.0f;
}

/* Make the weights of scikit-learn's "balanced". Classes are balanced over all classes that
 * training vertices have, several labels over the values 0 and 1 of each label. */
static int create_weights(struct sl_making *m, const int64_t *count)
{
    struct sl_tile *tile = &m->o->weights;
    const int64_t classes = m->source.classes;
    const bool several = m->source.targets.labels.data && m->source.targets.labels.dims == 2;
    int64_t present = 0;
    if (sl_tile_create(m->rt, tile, 2, classes, sizeof(float), m->rt->rank))
        return SL_ERR_SYSTEM;
    float *weight = tile->memory;
    for (int64_t c = 0; c < classes; c++)
        present += count[c] > 0;
    for (int64_t c = 0; weight && c < classes; c++) {
        const int64_t zeros =
            several ? count[classes + c] : m->o->split_count[SL_SPLIT_TRAIN] - count[c];
        const double all = (double)(zeros + count[c]);
        const double values = (zeros > 0) + (count[c] > 0);
        const bool one = m->assembly->objective.loss->form == SL_TARGET_CLASS;
        weight[c] = balanced(all, values, zeros);
        weight[classes + c] = balanced(all, one ? (double)present : values, count[c]);
    }
    return 0;
}

/* Count labels and splits. The counts do not depend on the order of the rows. */
static int count_labels(struct sl_making *m, const int32_t *split_of)
{
    struct sl_operands *o = m->o;
    const int64_t classes = m->source.classes;
    int64_t *count = calloc(2 * (size_t)classes + 1, sizeof *count);
    int code = sl_runtime_agree(m->rt, count ? 0
                                             : sl_error(SL_ERR_SYSTEM,
                                                        "no memory for the sizes of %lld classes",
                                                        (long long)classes));
    memset(o->split_count, 0, sizeof o->split_count);
    o->largest_class = 0;
    if (!code) {
        count_part(m, split_of, count);
        sl_runtime_sum(m->readers, o->split_count, SL_SPLITS);
        sl_runtime_sum(m->readers, count, 2 * classes);
        if (m->assembly->objective.balanced && !o->weights.rows)
            code = sl_runtime_agree(m->rt, create_weights(m, count));
    }
    for (int64_t c = 0; !code && c < classes; c++)
        o->largest_class = count[c] > o->largest_class ? count[c] : o->largest_class;
    free(count);
    return code;
}

int sl_making_targets(struct sl_making *m)
{
    struct sl_operands *o = m->o;
    const struct sl_dataset *data = &m->part.data;
    const int tiles = sl_making_partition(m)->tiles;
    o->objective = m->assembly->objective;
    int32_t *split_of = calloc((size_t)data->adjacency.rows + 1, sizeof *split_of);
    struct sl_tile *target = o->target[m->row_order] = calloc((size_t)tiles, sizeof *target);
    int code = split_of && target
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for the targets of %lld vertices",
                              (long long)data->adjacency.rows);
    if (!code) {
        mark_split(m, &data->train, SL_SPLIT_TRAIN, split_of);
        mark_split(m, &data->val, SL_SPLIT_VAL, split_of);
        mark_split(m, &data->test, SL_SPLIT_TEST, split_of);
    }
    for (int i = 0; !code && i < tiles; i++)
        code = create_target(m, i, split_of);
    code = sl_runtime_agree(m->rt, code);
    if (!code)
        code = count_labels(m, split_of);
    free(split_of);
    return code;
}
