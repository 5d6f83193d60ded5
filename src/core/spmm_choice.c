#include "core/spmm_choice.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "core/remembered.h"

static const double SAME = 0.01, NEAR = 1.0; /* distance in powers of two */

static double distance(double a, double b)
{
    return fabs(log2(a / b));
}

static bool is_valid(const struct sl_spmm_measured *m)
{
    return m->width > 0 && m->degree > 0.0 && m->times > 0.0 && isfinite(m->times);
}

void sl_spmm_choice_read(struct sl_spmm_choice *choice)
{
    json_t *file = sl_remembered_get("spmm");
    size_t index;
    const json_t *row;
    choice->count = 0;
    json_array_foreach(json_object_get(file, "measured"), index, row)
    {
        const struct sl_spmm_measured m = {
            .width = json_integer_value(json_object_get(row, "width")),
            .degree = json_number_value(json_object_get(row, "degree")),
            .times = json_number_value(json_object_get(row, "times")),
        };
        if (choice->count < SL_SPMM_MEASURED && is_valid(&m))
            choice->measured[choice->count++] = m;
    }
    json_decref(file);
}

static bool is_same(const struct sl_spmm_measured *a, const struct sl_spmm_measured *b)
{
    return a->width == b->width && distance(a->degree, b->degree) < SAME;
}

/* Put new measurements first: where there are too many, the oldest are forgotten. */
int sl_spmm_choice_remember(const struct sl_spmm_measured *measured, int count)
{
    struct sl_spmm_choice old;
    int valid = 0;
    for (int n = 0; n < count; n++)
        valid += is_valid(&measured[n]);
    if (!valid)
        return sl_error(SL_ERR_USAGE, "--remember: nothing was measured");
    json_t *list = json_array();
    sl_spmm_choice_read(&old);
    for (int i = 0; i < count + old.count; i++) {
        const struct sl_spmm_measured *m = i < count ? &measured[i] : &old.measured[i - count];
        bool again = !is_valid(m);
        for (int n = 0; i >= count && n < count; n++)
            again = again || (is_valid(&measured[n]) && is_same(m, &measured[n]));
        if (!again && json_array_size(list) < SL_SPMM_MEASURED)
            json_array_append_new(list, json_pack("{s:I, s:f, s:f}", "width", (json_int_t)m->width,
                                                  "degree", m->degree, "times", m->times));
    }
    return sl_remembered_set("spmm", json_pack("{s:o}", "measured", list));
}

bool sl_spmm_choice_wants(const struct sl_spmm_choice *choice, int64_t rows, int64_t nnz,
                          int64_t width)
{
    const double degree = rows > 0 ? (double)nnz / (double)rows : 0.0;
    double least = INFINITY;
    bool faster = false;
    if (choice->kernel != SL_SPMM_FASTEST || !(degree > 0.0) || width < 1)
        return choice->kernel == SL_SPMM_CUSPARSE;
    for (int i = 0; i < choice->count; i++) {
        const struct sl_spmm_measured *m = &choice->measured[i];
        const double across = distance((double)width, (double)m->width);
        const double along = distance(degree, m->degree);
        if (across <= NEAR && along <= NEAR && across + along < least) {
            least = across + along;
            faster = m->times < 1.0;
        }
    }
    return faster;
}

/* ---- Room ---- */

enum answer { ASKED, RESERVED, REFUSED };

struct kept {
    int64_t tag, width;
    enum answer answer;
};

static int compare(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->tag != y->tag ? (x->tag > y->tag) - (x->tag < y->tag)
                            : (x->width > y->width) - (x->width < y->width);
}

static struct kept *find(struct sl_spmm_choice *choice, const struct sl_spmm_need *need,
                         int64_t *bytes)
{
    const struct kept key = {.tag = need->tag, .width = need->width};
    struct kept *const *known = tfind(&key, &choice->kept, compare);
    if (known)
        return *known;
    struct kept *new = malloc(sizeof *new);
    if (new)
        *new = key;
    if (!new || !tsearch(new, &choice->kept, compare))
        sl_fatal("no memory for the choice of kernels");
    *bytes += need->bytes;
    return new;
}

bool sl_spmm_choice_reserve(struct sl_spmm_choice *choice, int sharers, int count,
                            const struct sl_spmm_need *need)
{
    const int64_t room = choice->room / (sharers > 1 ? sharers : 1);
    int64_t bytes = 0;
    bool fits = true;
    for (int n = 0; n < count; n++)
        fits = find(choice, &need[n], &bytes)->answer != REFUSED && fits;
    fits = fits && bytes <= room - choice->taken;
    for (int n = 0; n < count; n++) {
        struct kept *kept = find(choice, &need[n], &bytes);
        if (kept->answer == ASKED)
            kept->answer = fits ? RESERVED : REFUSED;
    }
    choice->taken += fits ? bytes : 0;
    return fits;
}

void sl_spmm_choice_reset(struct sl_spmm_choice *choice)
{
    while (choice->kept) {
        struct kept *kept = *(struct kept **)choice->kept;
        tdelete(kept, &choice->kept, compare);
        free(kept);
    }
    choice->taken = choice->most_ones = choice->products = 0;
}
