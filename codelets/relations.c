/* Some rows and their entries at a time: entries are sorted by relation, each relation's rows are
 * gathered side by side, and one product serves them. */
#include "codelets/relations.h"

#include <cblas.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/gather.h"
#include "core/memory.h"

enum {
    ENTRIES = 16384,  /* most entries of a chunk */
    MOST_ROWS = 1024, /* most rows of a chunk */
    LEAST_ROWS = 16,
    ROOM = 1 << 17, /* columns of a chunk's rows, of X and G together */
};

/* A chunk of rows. Arrays have one number for each entry. Entries that are sorted lie by relation,
 * and by row within a relation. */
struct chunk {
    int64_t first, rows; /* rows first … first + rows - 1; at most `rows` */
    int count;
    uint32_t *row, *relation, *col;
    float *factor;
    uint32_t *sorted_row, *sorted_col; /* behind the last one, another one */
    float *sorted_factor;
    uint32_t *start;            // (relations + 1)
    uint32_t *row_ptr, *vertex; // (rows + 1), (rows): entries and number of each gathered row
    float *z, *y, *x;           // (rows, in or out): gathered rows, their product, rows of X
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct chunk make_chunk(const struct sl_relations *r)
{
    const int64_t wide = r->in + r->out, fit = ROOM / wide,
                  rows = fit < LEAST_ROWS ? LEAST_ROWS : least(fit, MOST_ROWS),
                  most = r->in > r->out ? r->in : r->out;
    uint32_t *at = sl_memory_of_thread(
        (size_t)(7 * ENTRIES + 2 + r->relations + 1 + 2 * rows + 1 + rows * 3 * most) * sizeof *at);
    struct chunk c = {.rows = rows};
    c.z = (float *)at;
    c.y = c.z + rows * most;
    c.x = c.y + rows * most;
    at += rows * 3 * most;
    c.row = at;
    c.relation = c.row + ENTRIES;
    c.col = c.relation + ENTRIES;
    c.factor = (float *)(c.col + ENTRIES);
    c.sorted_row = c.col + 2 * (int64_t)ENTRIES;
    c.sorted_col = c.sorted_row + ENTRIES;
    c.sorted_factor = (float *)(c.sorted_col + ENTRIES + 1);
    c.start = c.sorted_col + 2 * (int64_t)ENTRIES + 2;
    c.row_ptr = c.start + r->relations + 1;
    c.vertex = c.row_ptr + rows + 1;
    return c;
}

static void clear(int64_t rows, int64_t cols, const struct sl_floats_at *of)
{
    for (int64_t r = 0; r < rows; r++)
        memset(of->data + r * of->ld, 0, (size_t)cols * sizeof *of->data);
}

/* A walk over A or Aᵀ, whose entries meet rows of MET, `width` wide. */
struct walk {
    const struct sl_sparse *a;
    const struct sl_relations *r;
    struct sl_floats_at met;
    int64_t width;
    const struct sl_floats_at *out;           /* forward: OUT; back: BACK or NULL */
    const struct sl_relations_back *backward; /* NULL: forward */
};

/* ---- Products ---- */

/* Add rows of Y to the rows of OUT that they belong to. */
static void add_rows(const struct chunk *c, int64_t count, int64_t cols,
                     const struct sl_floats_at *out)
{
    for (int64_t m = 0; m < count; m++) {
        float *const to = out->data + c->vertex[m] * out->ld;
        const float *const from = c->y + m * cols;
        for (int64_t j = 0; j < cols; j++)
            to[j] += from[j];
    }
}

static void take_rows(const struct chunk *c, int64_t count, int64_t cols,
                      const struct sl_floats_at *x)
{
    for (int64_t m = 0; m < count; m++)
        memcpy(c->x + m * cols, x->data + c->vertex[m] * x->ld, (size_t)cols * sizeof *c->x);
}

/* Multiply `count` gathered rows with the weight of a relation. */
static void multiply(const struct walk *w, const struct chunk *c, int64_t relation, int64_t count)
{
    const struct sl_relations *const r = w->r;
    const int m = (int)count, in = (int)r->in, out = (int)r->out;
    const float *const weight = r->weight.data + relation * r->in * r->weight.ld;
    const struct sl_relations_back *const back = w->backward;
    if (!back) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, out, in, 1.0f, c->z, in, weight,
                    (int)r->weight.ld, 0.0f, c->y, out);
        add_rows(c, count, r->out, w->out);
        return;
    }
    take_rows(c, count, r->in, &back->x);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, out, m, 1.0f, c->x, in, c->z, out,
                1.0f, back->weight_back.data + relation * r->in * back->weight_back.ld,
                (int)back->weight_back.ld);
    if (w->out) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, in, out, 1.0f, c->z, out, weight,
                    (int)r->weight.ld, 0.0f, c->y, in);
        add_rows(c, count, r->in, w->out);
    }
}

/* ---- Chunks ---- */

/* Sort the entries by relation; entries of a relation keep their order. */
static void sort(const struct walk *w, struct chunk *c)
{
    memset(c->start, 0, (size_t)(w->r->relations + 1) * sizeof *c->start);
    for (int e = 0; e < c->count; e++)
        c->start[c->relation[e] + 1]++;
    for (int64_t k = 0; k < w->r->relations; k++)
        c->start[k + 1] += c->start[k];
    for (int e = 0; e < c->count; e++) {
        const uint32_t at = c->start[c->relation[e]]++;
        c->sorted_row[at] = c->row[e];
        c->sorted_col[at] = c->col[e];
        c->sorted_factor[at] = c->factor[e];
    }
}

/* Gather the rows of sorted entries from … end - 1, of one relation. Return how many rows. */
static int64_t gather(const struct walk *w, struct chunk *c, uint32_t from, uint32_t end)
{
    int64_t count = 0;
    for (uint32_t e = from; e < end; e++)
        if (e == from || c->sorted_row[e] != c->sorted_row[e - 1]) {
            c->row_ptr[count] = e;
            c->vertex[count++] = c->sorted_row[e];
        }
    c->row_ptr[count] = end;
    const struct sl_gather g = {
        .row_ptr = c->row_ptr,
        .col = c->sorted_col,
        .value = c->sorted_factor,
        .h = sl_float_rows(w->met.data, w->met.ld),
        .z = c->z,
        .ldz = w->width,
        .room = w->width,
        .width = w->width,
        .last = end - 1,
        .ahead = (uint32_t)sl_gather_ahead(w->width * (int64_t)sizeof(float)),
    };
    sl_gather_slices(&g, count);
    return count;
}

static void finish_chunk(const struct walk *w, struct chunk *c)
{
    uint32_t from = 0;
    sort(w, c); /* start[k] is then the end of relation k */
    for (int64_t k = 0; k < w->r->relations; k++) {
        const uint32_t end = c->start[k];
        if (end > from)
            multiply(w, c, k, gather(w, c, from, end));
        from = end;
    }
    c->count = 0;
}

static void walk(const struct walk *w)
{
    const struct sl_sparse *const a = w->a;
    struct chunk c = make_chunk(w->r);
    for (int64_t i = 0; i < a->rows; i++) {
        if (i - c.first == c.rows) {
            finish_chunk(w, &c);
            c.first = i;
        }
        for (int64_t b = 0; b < a->blocks; b++)
            for (uint32_t e = a->row_ptr[b * a->rows + i]; e < a->row_ptr[b * a->rows + i + 1];
                 e++) {
                const float *const feature = a->edge + (int64_t)e * SL_RELATION_FEATURES;
                if (c.count == ENTRIES) {
                    finish_chunk(w, &c);
                    c.first = i;
                }
                c.row[c.count] = (uint32_t)i;
                c.relation[c.count] = (uint32_t)feature[SL_RELATION];
                c.col[c.count] = (uint32_t)(b * a->block_cols) + sl_sparse_col(a, e);
                c.factor[c.count++] = feature[SL_RELATION_FACTOR];
            }
    }
    finish_chunk(w, &c);
}

void sl_kernel_relations(const struct sl_sparse *a, const struct sl_relations *relations,
                         const struct sl_floats_at *x, bool accumulate,
                         const struct sl_floats_at *out)
{
    if (!accumulate)
        clear(a->rows, relations->out, out);
    walk(&(struct walk){.a = a, .r = relations, .met = *x, .width = relations->in, .out = out});
}

void sl_kernel_relations_back(const struct sl_sparse *at, const struct sl_relations *relations,
                              const struct sl_relations_back *of)
{
    if (!of->weight_accumulate)
        clear(relations->relations * relations->in, relations->out, &of->weight_back);
    if (of->back && !of->accumulate)
        clear(at->rows, relations->in, of->back);
    walk(&(struct walk){.a = at,
                        .r = relations,
                        .met = of->g,
                        .width = relations->out,
                        .out = of->back,
                        .backward = of});
}

/* ---- Tasks ---- */

/* relations
 *   argument  struct relations_argument
 *   buffers   0    R      A, sparse tile (rows, columns of A)
 *             1    R      X (columns of A, in)
 *             2    R      WEIGHT (weight_row + relations · in …, out)
 *             3    W/RW   OUT (rows, out) */
static void relations_cpu(void *buffers[], void *argument)
{
    const struct relations_argument *arg = argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at x = sl_floats_buffer(buffers[1]), out = sl_floats_buffer(buffers[3]);
    const struct sl_relations relations =
        sl_relations_of(arg, sl_dense_buffer(buffers[1]).cols, sl_dense_buffer(buffers[3]).cols,
                        sl_floats_buffer(buffers[2]));
    sl_kernel_relations(&a, &relations, &x, arg->accumulate, &out);
}

/* relations_back
 *   argument  struct relations_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, columns of Aᵀ)
 *             1    R      G (columns of Aᵀ, out)
 *             2    R      X (rows, in)
 *             3    R      WEIGHT (weight_row + relations · in …, out)
 *             4    W/RW   WEIGHT_BACK (relations · in, out)
 *             5    W/RW   has_back: BACK (rows, in) */
static void relations_back_cpu(void *buffers[], void *argument)
{
    const struct relations_argument *arg = argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at back = sl_floats_buffer(buffers[4 + arg->has_back]);
    const struct sl_relations relations =
        sl_relations_of(arg, sl_dense_buffer(buffers[2]).cols, sl_dense_buffer(buffers[1]).cols,
                        sl_floats_buffer(buffers[3]));
    sl_kernel_relations_back(
        &at, &relations,
        &(struct sl_relations_back){.g = sl_floats_buffer(buffers[1]),
                                    .x = sl_floats_buffer(buffers[2]),
                                    .back = arg->has_back ? &back : NULL,
                                    .accumulate = arg->accumulate,
                                    .weight_accumulate = arg->weight_accumulate,
                                    .weight_back = sl_floats_buffer(buffers[4])});
}

SL_CODELET_ANY(relations, 0x6B8E23);
SL_CODELET_ANY(relations_back, 0x9ACD32);

static enum sl_task_output access_of(bool accumulate)
{
    return accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
}

/* An entry takes `in` or `out` additions, and at most one row of a product; going back, of two. */
static void submit(struct sl_runtime *rt, const struct relations_argument *arg, int64_t in,
                   int64_t out, struct sl_task task)
{
    task.argument = arg;
    task.argument_size = sizeof *arg;
    task.urgency = SL_TASK_SOON;
    const double all = (double)arg->shape.rows * (double)arg->relations,
                 rows = all < (double)arg->shape.nnz ? all : (double)arg->shape.nnz;
    task.work = (double)arg->shape.nnz * ((double)in + (double)out) +
                rows * (double)in * (double)out * (1.0 + (double)arg->has_back);
    task.kind = arg->accumulate | arg->weight_accumulate << 1 | arg->has_back << 2;
    sl_task_submit(rt, &task);
}

void sl_submit_relations(struct sl_runtime *rt, const struct sl_relations_tiles *t)
{
    const struct relations_argument arg = {.shape = t->a->shape,
                                           .relations = t->relations,
                                           .weight_row = t->weight_row,
                                           .accumulate = t->accumulate,
                                           .tf32 = rt->tf32};
    submit(rt, &arg, t->x->cols, t->out->cols,
           (struct sl_task){.codelet = &relations_codelet,
                            .count = 4,
                            .output = access_of(t->accumulate),
                            .tiles = {&t->a->tile, t->x, t->weight, t->out}});
}

void sl_submit_relations_back(struct sl_runtime *rt, const struct sl_relations_back_tiles *t)
{
    const struct relations_argument arg = {.shape = t->a->shape,
                                           .relations = t->relations,
                                           .weight_row = t->weight_row,
                                           .accumulate = t->accumulate,
                                           .tf32 = rt->tf32,
                                           .weight_accumulate = t->weight_accumulate,
                                           .has_back = t->back != NULL};
    struct sl_task task = {.codelet = &relations_back_codelet,
                           .count = 5,
                           .output = access_of(t->weight_accumulate),
                           .tiles = {&t->a->tile, t->g, t->x, t->weight, t->weight_back}};
    if (t->back) {
        task.before_output = task.output;
        task.output = access_of(t->accumulate);
        task.tiles[task.count++] = t->back;
    }
    submit(rt, &arg, t->x->cols, t->g->cols, task);
}
