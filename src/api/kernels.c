/* Kernels on a caller's own matrices: each call shares its rows out among threads of its own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "codelets/attention.h"
#include "codelets/attention_rows.h"
#include "codelets/max.h"
#include "codelets/spmm.h"
#include "core/error.h"
#include "core/rng.h"

enum {
    THREADS = 64,       /* most threads beside the caller's */
    PIECES = 8,         /* pieces of rows for each thread */
    FEW_TERMS = 100000, /* additions that are not worth a thread */
};

/* ---- Adjacency ---- */

struct starling_adjacency {
    int64_t rows, columns, entries;
    struct sl_sparse way[2]; /* A, and its transpose */
};

/* Order entries by `key`, of which there are `keys`, and by `other` (`others`) where keys are
 * equal. Set row_ptr (keys + 1), and `order` (entries). `spare` is (entries). */
static int sort_entries(int64_t entries, const int64_t *key, int64_t keys, const int64_t *other,
                        int64_t others, uint32_t *row_ptr, uint32_t *order, uint32_t *spare)
{
    uint32_t *next = calloc((size_t)(others > keys ? others : keys) + 1, sizeof *next);
    if (!next)
        return sl_error(SL_ERR_SYSTEM, "no memory to sort %lld entries", (long long)entries);
    for (int64_t e = 0; e < entries; e++)
        next[other[e] + 1]++;
    for (int64_t k = 0; k < others; k++)
        next[k + 1] += next[k];
    for (int64_t e = 0; e < entries; e++)
        spare[next[other[e]]++] = (uint32_t)e;
    memset(row_ptr, 0, (size_t)(keys + 1) * sizeof *row_ptr);
    for (int64_t e = 0; e < entries; e++)
        row_ptr[key[e] + 1]++;
    for (int64_t k = 0; k < keys; k++)
        row_ptr[k + 1] += row_ptr[k];
    memcpy(next, row_ptr, (size_t)(keys + 1) * sizeof *row_ptr);
    for (int64_t e = 0; e < entries; e++)
        order[next[key[spare[e]]]++] = spare[e];
    free(next);
    return 0;
}

/* Fill A or its transpose with entries (key, other). */
static int fill(struct sl_sparse *a, int64_t rows, int64_t columns, int64_t entries,
                const int64_t *key, const int64_t *other, const float *weights, uint32_t *spare)
{
    const bool narrow = columns <= SL_NARROW_COLS;
    const size_t count = entries ? (size_t)entries : 1;
    uint32_t *row_ptr = malloc((size_t)(rows + 1) * sizeof *row_ptr),
             *order = malloc(count * sizeof *order);
    void *col = malloc(count * (narrow ? sizeof(uint16_t) : sizeof(uint32_t)));
    float *value = weights ? malloc(count * sizeof *value) : NULL;
    *a = (struct sl_sparse){.rows = rows,
                            .cols = columns,
                            .block_cols = columns,
                            .blocks = 1,
                            .narrow = narrow,
                            .row_ptr = row_ptr,
                            .col = col,
                            .value = value};
    int code = row_ptr && order && col && (value || !weights)
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for an adjacency of %lld entries",
                              (long long)entries);
    if (!code)
        code = sort_entries(entries, key, rows, other, columns, row_ptr, order, spare);
    for (int64_t e = 0; !code && e < entries; e++) {
        if (narrow)
            ((uint16_t *)col)[e] = (uint16_t)other[order[e]];
        else
            ((uint32_t *)col)[e] = (uint32_t)other[order[e]];
        if (value)
            value[e] = weights[order[e]];
    }
    free(order);
    return code;
}

static int check_entries(int64_t entries, const char *name, const int64_t *vertex, int64_t end)
{
    for (int64_t e = 0; e < entries; e++)
        if (vertex[e] < 0 || vertex[e] >= end)
            return sl_error(SL_ERR_DATA, "%s[%lld] is %lld (expected 0 to %lld)", name,
                            (long long)e, (long long)vertex[e], (long long)end - 1);
    return 0;
}

int starling_adjacency_create(int64_t rows, int64_t columns, int64_t entries,
                              const int64_t *targets, const int64_t *sources, const float *weights,
                              starling_adjacency **adjacency)
{
    *adjacency = NULL;
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX || entries < 0 ||
        entries > INT32_MAX)
        return sl_error(SL_ERR_USAGE,
                        "an adjacency of %lld x %lld and %lld entries (expected 1 to %d rows and "
                        "columns, and at most %d entries)",
                        (long long)rows, (long long)columns, (long long)entries, INT32_MAX,
                        INT32_MAX);
    int code = check_entries(entries, "targets", targets, rows);
    if (!code)
        code = check_entries(entries, "sources", sources, columns);
    if (code)
        return code;
    struct starling_adjacency *a = calloc(1, sizeof *a);
    uint32_t *spare = malloc((size_t)(entries ? entries : 1) * sizeof *spare);
    if (!a || !spare) {
        free(a);
        free(spare);
        return sl_error(SL_ERR_SYSTEM, "no memory for an adjacency");
    }
    a->rows = rows;
    a->columns = columns;
    a->entries = entries;
    code = fill(&a->way[0], rows, columns, entries, targets, sources, weights, spare);
    if (!code)
        code = fill(&a->way[1], columns, rows, entries, sources, targets, weights, spare);
    free(spare);
    if (code) {
        starling_adjacency_free(a);
        return code;
    }
    *adjacency = a;
    return 0;
}

void starling_adjacency_free(starling_adjacency *adjacency)
{
    for (int way = 0; adjacency && way < 2; way++) {
        free((void *)adjacency->way[way].row_ptr);
        free((void *)adjacency->way[way].col);
        free((void *)adjacency->way[way].value);
    }
    free(adjacency);
}

/* Return rows first … end - 1 of a sparse operand. */
static struct sl_sparse some_rows(const struct sl_sparse *a, int64_t first, int64_t end)
{
    struct sl_sparse some = *a;
    some.rows = end - first;
    some.row_ptr += first;
    return some;
}

/* ---- Threads ---- */

/* Work on rows first … end - 1 of a call. */
typedef void work_on_rows(const void *call, int64_t first, int64_t end);

/* A call whose rows are shared out. */
struct shared {
    work_on_rows *work;
    const void *call;
    const struct sl_sparse *a; /* whose rows these are */
    int64_t pieces;
    _Atomic int64_t next; /* next piece */
};

/* Return the first row of a piece: pieces have about the same sum of rows and entries. */
static int64_t first_row(const struct shared *s, int64_t piece)
{
    const struct sl_sparse *a = s->a;
    const int64_t wanted = (a->row_ptr[a->rows] + a->rows) * piece / s->pieces;
    int64_t low = 0, high = a->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->row_ptr[middle] + middle < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *work_on_pieces(void *argument)
{
    struct shared *s = argument;
    for (int64_t piece; (piece = atomic_fetch_add(&s->next, 1)) < s->pieces;) {
        const int64_t first = first_row(s, piece), end = first_row(s, piece + 1);
        if (first < end)
            s->work(s->call, first, end);
    }
    return NULL;
}

/* Share the rows of `a` out among at most `threads` threads, this one among them. Where the system
 * has no more threads, those that there are do all. */
static void share(const struct sl_sparse *a, int64_t width, int threads, work_on_rows *work,
                  const void *call)
{
    struct shared s = {work, call, a, 1, 0};
    pthread_t other[THREADS];
    int others = 0, most = threads <= THREADS ? threads : THREADS + 1;
    if ((a->row_ptr[a->rows] + a->rows) * width < FEW_TERMS)
        most = 1;
    s.pieces = most > 1 ? (int64_t)most * PIECES : 1;
    while (others < most - 1 && pthread_create(&other[others], NULL, work_on_pieces, &s) == 0)
        others++;
    work_on_pieces(&s);
    for (int t = 0; t < others; t++)
        pthread_join(other[t], NULL);
}

/* ---- Sums and maxima ---- */

struct product {
    const struct sl_sparse *a;
    int64_t width;
    const float *x;
    float *out;
    struct sl_argmax argmax;
};

static struct sl_rows rows_of(const float *data, int64_t width)
{
    return sl_float_rows(data, width);
}

static void sum_rows(const void *call, int64_t first, int64_t end)
{
    const struct product *p = call;
    const struct sl_sparse a = some_rows(p->a, first, end);
    const struct sl_rows x = rows_of(p->x, p->width),
                         out = rows_of(p->out + first * p->width, p->width);
    sl_kernel_spmm(1, &a, &x, p->width, false, NULL, NULL, &out);
}

static int check_width(int64_t width)
{
    return width > 0 && width <= INT32_MAX
               ? 0
               : sl_error(SL_ERR_USAGE, "a width of %lld (expected 1 to %d)", (long long)width,
                          INT32_MAX);
}

int starling_adjacency_sum(const starling_adjacency *adjacency, int transposed, int64_t width,
                           const float *x, int threads, float *out)
{
    const struct product p = {&adjacency->way[transposed != 0], width, x, out, {0}};
    const int code = check_width(width);
    if (!code)
        share(p.a, width, threads, sum_rows, &p);
    return code;
}

static struct sl_argmax argmax_at(const struct product *p, int64_t row)
{
    struct sl_argmax at = p->argmax;
    at.vertex += row * at.ld;
    return at;
}

static void max_rows(const void *call, int64_t first, int64_t end)
{
    const struct product *p = call;
    struct sl_sparse a = some_rows(p->a, first, end);
    const struct sl_rows x = rows_of(p->x, p->width),
                         out = rows_of(p->out + first * p->width, p->width);
    const struct sl_numbering columns = {0, NULL};
    const struct sl_argmax argmax = argmax_at(p, first);
    a.value = NULL;
    sl_kernel_max(&a, p->width, &x, false, &out, &columns, &argmax);
}

int starling_adjacency_max(const starling_adjacency *adjacency, int minimum, int64_t width,
                           const float *x, int threads, float *out, int32_t *argmax)
{
    const struct product p = {
        &adjacency->way[0], width, x, out, {argmax, width, minimum ? -1.0f : 1.0f}};
    const int code = check_width(width);
    if (!code)
        share(p.a, width, threads, max_rows, &p);
    return code;
}

static void max_rows_back(const void *call, int64_t first, int64_t end)
{
    const struct product *p = call;
    struct sl_sparse a = some_rows(p->a, first, end);
    const struct sl_rows g = rows_of(p->x, p->width),
                         out = rows_of(p->out + first * p->width, p->width);
    const struct sl_numbering rows = {(int32_t)first, NULL};
    a.value = NULL;
    sl_kernel_max_back(&a, p->width, &g, &rows, &p->argmax, false, &out);
}

int starling_adjacency_max_back(const starling_adjacency *adjacency, int64_t width,
                                const float *gradient, const int32_t *argmax, int threads,
                                float *out)
{
    const struct product p = {
        &adjacency->way[1], width, gradient, out, {(int32_t *)argmax, width, 1.0f}};
    const int code = check_width(width);
    if (!code)
        share(p.a, width, threads, max_rows_back, &p);
    return code;
}

/* ---- Attention ---- */

struct starling_attention {
    const struct starling_adjacency *adjacency;
    struct sl_attention how;
    struct sl_floats_at projected, scores, state; /* codelets/attention.h */
};

static struct sl_floats_at floats_of(float *data, int64_t ld)
{
    return (struct sl_floats_at){data, ld};
}

static struct sl_floats_at from_row(const struct sl_floats_at *of, int64_t row)
{
    return (struct sl_floats_at){of->data + row * of->ld, of->ld};
}

/* A pass of attention, forward or back. */
struct pass {
    const struct starling_attention *attention;
    const float *values, *source, *target; /* forward */
    const float *gradient;                 /* back */
    struct sl_floats_at gradients, back;
    float *out[3];
};

static void pack_rows(const void *call, int64_t first, int64_t end)
{
    const struct pass *p = call;
    const struct sl_attention *how = &p->attention->how;
    const int64_t all = sl_attention_all(how), heads = how->heads;
    for (int64_t r = first; r < end; r++) {
        const struct sl_floats_at row = from_row(&p->attention->projected, r),
                                  scores = from_row(&p->attention->scores, r);
        const uint32_t vertex = (uint32_t)r;
        memcpy(row.data, p->values + r * all, (size_t)all * sizeof(float));
        memcpy(row.data + all, p->source + r * heads, (size_t)heads * sizeof(float));
        memcpy(row.data + all + heads, p->target + r * heads, (size_t)heads * sizeof(float));
        sl_kernel_attention_scores(how, 1, &vertex, &row, &scores);
    }
}

static void attend_rows(const void *call, int64_t first, int64_t end)
{
    const struct pass *p = call;
    const struct starling_attention *attention = p->attention;
    const int64_t all = sl_attention_all(&attention->how);
    struct sl_sparse a = some_rows(&attention->adjacency->way[0], first, end);
    const struct sl_floats_at scores = from_row(&attention->scores, first),
                              state = from_row(&attention->state, first);
    sl_kernel_attention(&attention->how, &a, &attention->projected, &scores, NULL, false, &state);
    sl_kernel_attention_close(&attention->how, end - first, &scores, &state);
    for (int64_t r = first; r < end; r++)
        memcpy(p->out[0] + r * all, from_row(&attention->state, r).data,
               (size_t)all * sizeof(float));
}

static int create_attention(const starling_adjacency *adjacency, const struct starling_heads *heads,
                            struct starling_attention *a)
{
    const int64_t n = adjacency->rows;
    a->adjacency = adjacency;
    a->how = (struct sl_attention){
        .heads = heads->heads,
        .width = heads->width,
        .slope = heads->slope,
        .drop = {.scale = 1.0f},
        .training = heads->training != 0,
    };
    if (a->how.training && heads->dropout > 0.0)
        a->how.drop =
            sl_dropout_make(heads->dropout, sl_rng_key(heads->seed, SL_RNG_ATTENTION, 0, 0));
    a->projected.ld = sl_attention_projected(&a->how);
    a->scores.ld = sl_attention_scores(&a->how);
    a->state.ld = sl_attention_state(&a->how);
    a->projected.data = malloc((size_t)(n * a->projected.ld) * sizeof(float));
    a->scores.data = malloc((size_t)(n * a->scores.ld) * sizeof(float));
    a->state.data = malloc((size_t)(n * a->state.ld) * sizeof(float));
    return a->projected.data && a->scores.data && a->state.data
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for attention of %lld rows", (long long)n);
}

static int check_heads(const starling_adjacency *adjacency, const struct starling_heads *heads)
{
    if (adjacency->rows != adjacency->columns)
        return sl_error(SL_ERR_USAGE, "attention: %lld rows and %lld columns (expected as many)",
                        (long long)adjacency->rows, (long long)adjacency->columns);
    if (heads->heads < 1 || heads->heads > SL_ATTENTION_HEADS || heads->width < 1 ||
        heads->width > SL_ATTENTION_COLUMNS / heads->heads)
        return sl_error(SL_ERR_USAGE,
                        "attention: %d heads of %lld columns (expected 1 to %d heads, and at most "
                        "%d columns together)",
                        heads->heads, (long long)heads->width, SL_ATTENTION_HEADS,
                        SL_ATTENTION_COLUMNS);
    if (!(heads->slope >= 0.0f && heads->slope <= 1.0f) ||
        !(heads->dropout >= 0.0 && heads->dropout < 1.0))
        return sl_error(SL_ERR_USAGE,
                        "attention: a slope of %g and dropout %g (expected a slope of 0 to 1, and "
                        "dropout from 0 to below 1)",
                        (double)heads->slope, heads->dropout);
    return 0;
}

int starling_attention_forward(const starling_adjacency *adjacency,
                               const struct starling_heads *heads, const float *values,
                               const float *source, const float *target, int threads, float *out,
                               starling_attention **attention)
{
    *attention = NULL;
    int code = check_heads(adjacency, heads);
    if (code)
        return code;
    struct starling_attention *a = calloc(1, sizeof *a);
    if (!a)
        return sl_error(SL_ERR_SYSTEM, "no memory for attention");
    code = create_attention(adjacency, heads, a);
    if (code) {
        starling_attention_free(a);
        return code;
    }
    const struct pass p = {
        .attention = a, .values = values, .source = source, .target = target, .out = {out}};
    const int64_t width = a->projected.ld;
    share(&adjacency->way[0], width, threads, pack_rows, &p);
    share(&adjacency->way[0], width, threads, attend_rows, &p);
    *attention = a;
    return 0;
}

static void take_gradient(const void *call, int64_t first, int64_t end)
{
    const struct pass *p = call;
    const struct starling_attention *attention = p->attention;
    const int64_t all = sl_attention_all(&attention->how);
    const struct sl_floats_at state = from_row(&attention->state, first),
                              gradient = from_row(&p->gradients, first);
    const struct sl_rows g = rows_of(p->gradient + first * all, all);
    sl_kernel_attention_gradient(&attention->how, end - first, all, &g, &state, &gradient);
}

static void attend_rows_back(const void *call, int64_t first, int64_t end)
{
    const struct pass *p = call;
    const struct starling_attention *attention = p->attention;
    const int64_t all = sl_attention_all(&attention->how), heads = attention->how.heads;
    const struct sl_sparse at = some_rows(&attention->adjacency->way[1], first, end);
    const struct sl_floats_at own = from_row(&attention->projected, first),
                              back = from_row(&p->back, first),
                              gradient = from_row(&p->gradients, first),
                              state = from_row(&attention->state, first);
    sl_kernel_attention_back(&attention->how, &at, &p->gradients, &attention->scores, &own, NULL,
                             false, &back, false, NULL);
    sl_kernel_attention_own(&attention->how, end - first, &gradient, &state, &back);
    for (int64_t r = first; r < end; r++) {
        const float *row = from_row(&p->back, r).data;
        memcpy(p->out[0] + r * all, row, (size_t)all * sizeof *row);
        memcpy(p->out[1] + r * heads, row + all, (size_t)heads * sizeof *row);
        memcpy(p->out[2] + r * heads, row + all + heads, (size_t)heads * sizeof *row);
    }
}

int starling_attention_back(const starling_attention *attention, const float *gradient, int threads,
                            float *values, float *source, float *target)
{
    const struct starling_adjacency *adjacency = attention->adjacency;
    const int64_t n = adjacency->rows, gradients = sl_attention_gradient(&attention->how),
                  back = sl_attention_projected(&attention->how);
    if (!attention->how.training)
        return sl_error(SL_ERR_USAGE, "attention: no gradient of a pass that did not train");
    const struct pass p = {
        .attention = attention,
        .gradient = gradient,
        .gradients = floats_of(malloc((size_t)(n * gradients) * sizeof(float)), gradients),
        .back = floats_of(malloc((size_t)(n * back) * sizeof(float)), back),
        .out = {values, source, target},
    };
    const bool has = p.gradients.data && p.back.data;
    if (has) {
        share(&adjacency->way[0], back, threads, take_gradient, &p);
        share(&adjacency->way[1], back, threads, attend_rows_back, &p);
    }
    free(p.gradients.data);
    free(p.back.data);
    return has ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for attention of %lld rows", (long long)n);
}

void starling_attention_free(starling_attention *attention)
{
    if (!attention)
        return;
    free(attention->projected.data);
    free(attention->scores.data);
    free(attention->state.data);
    free(attention);
}
