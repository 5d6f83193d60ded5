/* What training knows of each row: what normalises it, its vertex, its label and split. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/making.h"
#include "codelets/operation.h"
#include "core/error.h"

/* What divides row k of S: its sum, or the number of its entries. */
static double row_divisor(const struct sl_making *m, enum sl_norm norm, int64_t k)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    const int64_t count = a->indptr[k + 1] - a->indptr[k] + m->how->loops;
    double degree = m->how->loops;
    if (norm == SL_NORM_NONE)
        return 1.0;
    if (norm == SL_NORM_COUNT) /* nothing is divided by 1 where there is nothing */
        return count ? (double)count : 1.0;
    for (int64_t e = a->indptr[k]; e < a->indptr[k + 1]; e++)
        degree += a->values ? (double)a->values[e] : 1.0;
    return degree;
}

/* Attention divides by sums of weights. */
static int check_weights(const struct sl_making *m)
{
    const struct sl_csr *a = &m->part.data.adjacency;
    for (int64_t k = 0; a->values && m->how->positive && k < a->rows; k++)
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
    const enum sl_norm norm = m->how->norm;
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

int sl_making_facts(struct sl_making *m)
{
    const struct sl_partition *p = sl_making_partition(m);
    struct sl_tile *facts = m->o->facts[m->row_order] = calloc((size_t)p->tiles, sizeof *facts);
    if (!facts)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", p->tiles);
    for (int i = 0; i < p->tiles; i++) {
        const int64_t rows = p->row_cut[i + 1] - p->row_cut[i];
        if (sl_tile_create(m->rt, &facts[i], SL_ROW_FACTS, rows, sizeof(float),
                           sl_distribution_whole_owner(sl_making_distribution(m), i, 0)))
            return SL_ERR_SYSTEM;
        float *fact = facts[i].memory;
        for (int64_t r = 0; fact && r < rows; r++) {
            const int64_t k = sl_making_local(m, p->row_cut[i] + r);
            const double left = m->left[k], right = m->right[k];
            ((uint32_t *)fact)[SL_ROW_VERTEX * rows + r] = (uint32_t)sl_making_vertex(m, k);
            fact[SL_ROW_LEFT * rows + r] = (float)left;
            fact[SL_ROW_RIGHT * rows + r] = (float)right;
            fact[SL_ROW_BOTH * rows + r] = (float)(left * right);
            fact[SL_ROW_INVERSE_LEFT * rows + r] = (float)(1.0 / left);
            fact[SL_ROW_INVERSE_RIGHT * rows + r] = (float)(1.0 / right);
        }
    }
    return 0;
}

static void mark_split(const struct sl_making *m, const struct sl_index_set *set,
                       enum sl_split split, int32_t *split_of)
{
    for (int64_t k = 0; k < set->count; k++)
        split_of[sl_making_local(m, set->ids[k])] = split;
}

static int create_target(struct sl_making *m, int i, const int32_t *split_of)
{
    const struct sl_partition *p = sl_making_partition(m);
    const struct sl_loss *loss = m->how->loss;
    const int32_t *labels = m->part.data.labels;
    const int64_t rows = p->row_cut[i + 1] - p->row_cut[i],
                  first = sl_making_local(m, p->row_cut[i]);
    struct sl_tile *tile = &m->o->target[m->row_order][i];
    const int code = sl_tile_create(m->rt, tile, rows, loss->targets, sizeof(int32_t),
                                    sl_distribution_whole_owner(sl_making_distribution(m), i, 0));
    int32_t *target = tile->memory;
    for (int64_t r = 0; target && r < rows; r++)
        loss->set(target + r * loss->targets, labels ? labels[first + r] : -1, split_of[first + r]);
    return code;
}

/* The same in any order. */
static int count_labels(struct sl_making *m, const int32_t *split_of)
{
    struct sl_operands *o = m->o;
    const struct sl_dataset *data = &m->part.data;
    const int64_t classes = m->source.classes;
    int64_t *count = calloc((size_t)classes + 1, sizeof *count);
    const int code = sl_runtime_agree(
        m->rt, count ? 0
                     : sl_error(SL_ERR_SYSTEM, "no memory for the sizes of %lld classes",
                                (long long)classes));
    memset(o->split_count, 0, sizeof o->split_count);
    o->largest_class = 0;
    for (int64_t k = 0; !code && data->labels && k < data->adjacency.rows; k++)
        if (data->labels[k] >= 0) {
            o->split_count[split_of[k]]++;
            count[data->labels[k]] += split_of[k] == SL_SPLIT_TRAIN;
        }
    if (!code) {
        sl_runtime_sum(m->rt, o->split_count, SL_SPLITS);
        sl_runtime_sum(m->rt, count, classes);
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
    o->loss = m->how->loss;
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
