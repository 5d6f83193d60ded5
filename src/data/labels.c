#include "data/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/words.h"
#include "data/block.h"
#include "data/dataset.h"
#include "data/formats/string_ids.h"
#include "data/formats/text.h"

/* ---- Kinds ---- */

/* Count different whole numbers, as far as BUCKETS tell them apart, and labels -1, which mean no
 * label where no label is less. */
static int count_values(struct sl_runtime *rt, const struct sl_npy *labels,
                        struct sl_whole_numbers *out)
{
    enum { BUCKETS = 1 << 16 };
    const int64_t end = labels->count * (rt->rank + 1) / rt->ranks;
    int64_t *seen = calloc(BUCKETS + 2, sizeof *seen), *known = &seen[BUCKETS],
            *minus = &seen[BUCKETS + 1];
    const int rc = sl_runtime_agree(
        rt, seen ? SL_OK : sl_error(SL_ERR_SYSTEM, "%s: out of memory", labels->name));
    int64_t least = 0;
    *out = (struct sl_whole_numbers){0};
    for (int64_t k = labels->count * rt->rank / rt->ranks; !rc && k < end; k++) {
        const double label = sl_npy_get(labels, k);
        least = label < -1.0 ? -1 : least;
        if (label == -1.0) {
            ++*minus;
        } else if (isfinite(label)) {
            seen[(int64_t)fmod(fabs(label), BUCKETS)] = 1;
            ++*known;
        }
    }
    if (!rc) {
        sl_runtime_sum(rt, seen, BUCKETS + 2);
        least = sl_runtime_least(rt, least);
        out->known = least < 0 ? *known + *minus : *known;
        out->missing = least < 0 ? 0 : *minus;
        for (int b = 0; b < BUCKETS; b++)
            out->values += seen[b] > 0;
    }
    free(seen);
    return rc;
}

/* Count the values of floats without fractions if they are too many for classes: over a thousand,
 * or over a hundred with few vertices each. Else set out->values to 0. */
static int find_many(struct sl_runtime *rt, const struct sl_npy *labels,
                     struct sl_whole_numbers *out)
{
    enum { MANY = 1000, SOME = 100, FEW_VERTICES = 50 };
    *out = (struct sl_whole_numbers){0};
    if (labels->kind != 'f' || labels->dims != 1)
        return SL_OK;
    const int rc = count_values(rt, labels, out);
    const bool many =
        out->values > MANY || (out->values > SOME && out->known < FEW_VERTICES * out->values);
    if (!many)
        *out = (struct sl_whole_numbers){0};
    return rc;
}

/* Replace -1 by NaN, in a copy. */
static int leave_out(struct sl_runtime *rt, struct sl_npy *labels, struct sl_block **blocks)
{
    float *copy = sl_block_array(blocks, labels->count, sizeof *copy);
    const int rc = sl_runtime_agree(rt, copy ? SL_OK : SL_ERR_SYSTEM);
    if (rc)
        return rc;
    for (int64_t k = 0; k < labels->count; k++) {
        const double label = sl_npy_get(labels, k);
        copy[k] = label == -1.0 ? NAN : (float)label;
    }
    *labels = sl_npy_view(labels->name, SL_NPY_FLOAT32, 1, labels->count, 0, copy);
    return SL_OK;
}

/* Make a list of several labels or numbers a matrix of one column. */
static void shape(struct sl_npy *labels, enum sl_label_kind kind)
{
    if (kind == SL_LABELS_CLASS || labels->dims != 1)
        return;
    labels->dims = 2;
    labels->shape[1] = 1;
}

static bool have_fractions(struct sl_runtime *rt, const struct sl_npy *labels)
{
    const bool matrix = labels->dims == 2;
    const int64_t end = labels->count * (rt->rank + 1) / rt->ranks;
    bool numbers = false;
    for (int64_t k = labels->count * rt->rank / rt->ranks;
         labels->kind == 'f' && !numbers && k < end; k++) {
        const double label = sl_npy_get(labels, k);
        const bool usual = matrix ? label == 0.0 || label == 1.0 : label == floor(label);
        numbers = isfinite(label) && !usual;
    }
    return sl_runtime_least(rt, -(int64_t)numbers) < 0;
}

int sl_labels_settle(struct sl_runtime *rt, struct sl_npy *labels, enum sl_label_kind *kind,
                     struct sl_whole_numbers *whole, struct sl_block **blocks)
{
    int rc = SL_OK;
    if (*kind == SL_LABELS_UNKNOWN) {
        *whole = (struct sl_whole_numbers){0};
        *kind = labels->dims == 2 ? SL_LABELS_SEVERAL : SL_LABELS_CLASS;
        if (have_fractions(rt, labels))
            *kind = SL_LABELS_NUMBERS;
        else
            rc = find_many(rt, labels, whole);
        if (!rc && whole->values > 0)
            *kind = SL_LABELS_NUMBERS;
        if (!rc && whole->missing > 0)
            rc = leave_out(rt, labels, blocks);
    }
    shape(labels, *kind);
    return rc;
}

int sl_labels_become_numbers(struct sl_runtime *rt, struct sl_npy *labels, struct sl_block **blocks)
{
    struct sl_whole_numbers whole;
    int rc = count_values(rt, labels, &whole);
    if (!rc && whole.missing > 0)
        rc = leave_out(rt, labels, blocks);
    shape(labels, SL_LABELS_NUMBERS);
    return rc;
}

void sl_labels_note_numbers(const char *name, const struct sl_whole_numbers *whole)
{
    char missing[64] = "";
    if (whole->values == 0)
        return;
    if (whole->missing > 0)
        snprintf(missing, sizeof missing, "; %" PRId64 "%s -1, no label", whole->missing,
                 sl_plural(whole->missing, " is", " are"));
    sl_note("%s: %" PRId64 " different whole numbers of %" PRId64
            " vertices are numbers to predict, no classes%s (starling train --loss cross-entropy "
            "makes them classes)",
            name, whole->values, whole->known, missing);
}

bool sl_labels_can_be_classes(struct sl_runtime *rt, const struct sl_npy *labels)
{
    const int64_t end = labels->count * (rt->rank + 1) / rt->ranks;
    bool whole = labels->dims == 2 && labels->shape[1] == 1;
    for (int64_t k = labels->count * rt->rank / rt->ranks; whole && k < end; k++) {
        const double label = sl_npy_get(labels, k);
        whole = isnan(label) || (label >= -1.0 && label <= INT32_MAX && label == floor(label));
    }
    return sl_runtime_least(rt, whole) > 0;
}

bool sl_labels_known(const float *row, int64_t count)
{
    for (int64_t j = 0; j < count; j++)
        if (!isnan(row[j]))
            return true;
    return false;
}

int32_t sl_labels_find(const struct sl_dataset *data, int64_t k)
{
    if (data->labels)
        return data->labels[k];
    return data->multilabels &&
                   sl_labels_known(data->multilabels + k * data->classes, data->classes)
               ? 0
               : -1;
}

/* ---- No label ---- */

/* The share of a list that this rank reads. */
struct share {
    int64_t first, end;
};

static struct share share_of(const struct sl_runtime *rt, const struct sl_npy *labels)
{
    return (struct share){labels->count * rt->rank / rt->ranks,
                          labels->count * (rt->rank + 1) / rt->ranks};
}

int sl_labels_mend(struct sl_runtime *rt, struct sl_npy *labels, int64_t classes,
                   struct sl_block **blocks)
{
    enum { NONE = 255 };
    if (labels->dims != 1 || labels->kind != 'u' || labels->item_bytes != 1)
        return SL_OK;
    const struct share share = share_of(rt, labels);
    int64_t most = -1, marked = 0;
    for (int64_t k = share.first; k < share.end; k++) {
        const int64_t label = labels->data[k];
        marked += label == NONE;
        most = label != NONE && label > most ? label : most;
    }
    most = -sl_runtime_least(rt, -most);
    sl_runtime_sum(rt, &marked, 1);
    if (marked == 0 || classes > NONE || (classes == 0 && most == NONE - 1))
        return SL_OK;
    int32_t *copy = sl_block_array(blocks, labels->count, sizeof *copy);
    const int rc = sl_runtime_agree(rt, copy ? SL_OK : SL_ERR_SYSTEM);
    if (rc)
        return rc;
    for (int64_t k = 0; k < labels->count; k++)
        copy[k] = labels->data[k] == NONE ? -1 : labels->data[k];
    sl_note("%s: %" PRId64 " label%s 255, which -1 is in uint8: no label (\"classes\": 256 in "
            "meta.json makes it a class)",
            labels->name, marked, sl_plural(marked, " is", "s are"));
    *labels = sl_npy_view(labels->name, SL_NPY_INT32, 1, labels->count, 0, copy);
    return SL_OK;
}

static int64_t count_missing(const struct sl_npy *labels, struct share share)
{
    char *text = malloc(labels->item_bytes + 1);
    int64_t missing = 0;
    for (int64_t k = share.first; text && k < share.end; k++)
        missing += sl_npy_text(labels, k, text) > 0 && sl_text_is_missing(text);
    free(text);
    return missing;
}

void sl_labels_note(struct sl_runtime *rt, const struct sl_npy *labels, int64_t classes)
{
    const struct share share = share_of(rt, labels);
    const bool text = sl_npy_is_text(labels), two = !text && classes == 2;
    int64_t count[2] = {0}; /* labels that are missing, or -1; labels that are 0 */
    if (labels->dims != 1 || (!text && !two))
        return;
    if (text)
        count[0] = count_missing(labels, share);
    for (int64_t k = share.first; two && k < share.end; k++) {
        const double label = sl_npy_get(labels, k);
        count[0] += label == -1.0;
        count[1] += label == 0.0;
    }
    sl_runtime_sum(rt, count, 2);
    if (text && count[0] > 0)
        sl_note("%s: %" PRId64 " label%s a word such as NaN, None or ?: no label", labels->name,
                count[0], sl_plural(count[0], " is", "s are"));
    if (two && count[0] > 0 && count[1] == 0)
        sl_note("%s: labels are -1 and 1 alone: %" PRId64 " label%s -1, no label (0 and 1 are two "
                "classes)",
                labels->name, count[0], sl_plural(count[0], " is", "s are"));
}

/* ---- Names ---- */

int64_t sl_labels_count_names(const char *const *names)
{
    int64_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

/* Collect the names in this rank's share of the labels. */
static int collect_own(const struct sl_runtime *rt, const struct sl_npy *labels,
                       struct sl_string_ids *found)
{
    const int64_t end = labels->count * (rt->rank + 1) / rt->ranks;
    char *text = malloc(labels->item_bytes + 1);
    int rc = text ? SL_OK : sl_error(SL_ERR_SYSTEM, "%s: out of memory", labels->name);
    for (int64_t k = labels->count * rt->rank / rt->ranks; !rc && k < end; k++)
        if (sl_npy_text(labels, k, text) > 0 && !sl_text_is_missing(text) &&
            sl_string_ids_get(found, text) < 0)
            rc = SL_ERR_SYSTEM;
    free(text);
    return rc;
}

/* Add the names that rank `root` has found to `all`. */
static int collect_from(struct sl_runtime *rt, int root, const struct sl_string_ids *own,
                        struct sl_string_ids *all)
{
    int64_t bytes = (int64_t)own->text_bytes;
    sl_runtime_broadcast(rt, root, &bytes, sizeof bytes);
    char *text = malloc((size_t)bytes + 1);
    int rc = sl_runtime_agree(
        rt, text ? SL_OK : sl_error(SL_ERR_SYSTEM, "no memory for the names of classes"));
    if (!rc && rt->rank == root && bytes > 0)
        memcpy(text, own->text, (size_t)bytes);
    if (!rc)
        sl_runtime_broadcast(rt, root, text, bytes);
    for (int64_t at = 0; !rc && at < bytes; at += (int64_t)strlen(text + at) + 1)
        rc = sl_string_ids_get(all, text + at) < 0 ? SL_ERR_SYSTEM : SL_OK;
    free(text);
    return sl_runtime_agree(rt, rc);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_names(const struct sl_string_ids *all, struct sl_block **blocks,
                      const char *const **names)
{
    const char **list = sl_block_array(blocks, all->count + 1, sizeof *list);
    char *text = sl_block_alloc(blocks, all->text_bytes);
    if (!list || !text)
        return SL_ERR_SYSTEM;
    if (all->text_bytes > 0)
        memcpy(text, all->text, all->text_bytes);
    for (int64_t k = 0; k < all->count; k++) {
        list[k] = text;
        text += strlen(text) + 1;
    }
    list[all->count] = NULL;
    qsort(list, (size_t)all->count, sizeof *list, compare_names);
    *names = list;
    return SL_OK;
}

int sl_labels_find_names(struct sl_runtime *rt, const struct sl_npy *labels,
                         struct sl_block **blocks, const char *const **names, int64_t *count)
{
    struct sl_string_ids own = {0}, all = {0};
    int rc = sl_runtime_agree(rt, collect_own(rt, labels, &own));
    for (int root = 0; !rc && root < rt->ranks; root++)
        rc = collect_from(rt, root, &own, &all);
    if (!rc)
        rc = sl_runtime_agree(rt, sort_names(&all, blocks, names));
    *count = all.count;
    sl_string_ids_free(&own);
    sl_string_ids_free(&all);
    return rc;
}

/* ---- Classes ---- */

bool sl_labels_need_copy(const struct sl_npy *labels, const struct sl_label_classes *classes)
{
    return labels->kind == 'f' || sl_npy_is_text(labels) || classes->number;
}

/* Return the place of a name among the classes; -1: the name is no class. */
static int32_t find_name(const struct sl_label_classes *classes, const char *name)
{
    const char *const *found =
        bsearch(&name, classes->name, (size_t)classes->count, sizeof name, compare_names);
    return found ? (int32_t)(found - classes->name) : -1;
}

/* Turn a label into the number of its class. */
static int renumber(const struct sl_npy *labels, const struct sl_label_classes *classes, int64_t at,
                    int32_t *label)
{
    if (!classes->number || *label < 0)
        return SL_OK;
    if (*label >= classes->count)
        return sl_error(SL_ERR_DATA,
                        "%s: class %" PRId32 " at row %" PRId64 ", expected fewer than "
                        "%" PRId64 ", which have names",
                        labels->name, *label, at, classes->count);
    *label = classes->number[*label];
    return SL_OK;
}

int sl_labels_copy(const struct sl_npy *labels, const struct sl_label_classes *classes,
                   const struct sl_label_rows *rows, int32_t *out)
{
    char *text = malloc(labels->item_bytes + 1);
    int rc = text ? SL_OK : sl_error(SL_ERR_SYSTEM, "%s: out of memory", labels->name);
    for (int64_t k = 0; !rc && k < rows->count; k++) {
        const int64_t at = rows->row ? rows->row[k] : rows->first + k;
        if (sl_npy_is_text(labels))
            out[k] = sl_npy_text(labels, at, text) ? find_name(classes, text) : -1;
        else if (isnan(sl_npy_get(labels, at)))
            out[k] = -1;
        else
            rc = sl_npy_copy(labels, SL_NPY_INT32, at, 1, &out[k]);
        if (!rc)
            rc = renumber(labels, classes, at, &out[k]);
    }
    free(text);
    return rc;
}
