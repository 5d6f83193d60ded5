/* Find the vertices of a selection:
 *
 *     hop 0 = inner vertices
 *     for h = 0, 1, … until h = hops, or hop h is empty:
 *         for all v in hop h, on all threads:
 *             next = next + neighbours of v, or a draw of them
 *         hop h + 1 = next, in order; selected = selected + next */
#include "data/select.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "data/selecting.h"

/* ---- Passes over neighbours ---- */

struct pass {
    const struct sl_selecting *s;
    sl_selecting_body *body;
    void *context;
    int64_t first, end;
    atomic_bool failed;
};

enum { CHUNK = 256 };

static int pass_chunk(const struct pass *pass, int64_t i)
{
    const struct sl_selecting *s = pass->s;
    struct sl_neighbours neighbours = {0};
    const int64_t first = pass->first + CHUNK * i, left = pass->end - first;
    int rc = SL_OK;
    for (int64_t k = first; !rc && k < first + (left < CHUNK ? left : CHUNK); k++) {
        rc = sl_neighbours_read(s->source, s->row[k], &neighbours);
        if (!rc)
            rc = pass->body(s, pass->context, k, &neighbours);
    }
    sl_neighbours_free(&neighbours);
    return rc;
}

static void try_chunk(void *context, int64_t i)
{
    struct pass *pass = context;
    if (pass_chunk(pass, i))
        atomic_store(&pass->failed, true);
}

int sl_selecting_pass(const struct sl_selecting *s, int64_t first, int64_t end,
                      sl_selecting_body *body, void *context)
{
    struct pass pass = {s, body, context, first, end, false};
    const int64_t chunks = (end - first + CHUNK - 1) / CHUNK;
    int rc = SL_OK;
    sl_parallel_for(sl_parallel_threads(s->options->threads), chunks, try_chunk, &pass);
    for (int64_t i = 0; !rc && atomic_load(&pass.failed) && i < chunks; i++)
        rc = pass_chunk(&pass, i);
    return rc;
}

/* ---- Hops ---- */

static int add_inner(const struct sl_selecting *s, const int64_t *inner, int64_t count,
                     struct sl_vertex_set *next)
{
    for (int64_t i = 0; i < count; i++) {
        if (inner[i] < 0 || inner[i] >= s->source->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: inner vertex %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64,
                            s->source->path, i, inner[i], s->source->vertices - 1);
        sl_vertex_set_add(next, sl_source_place(s->source, inner[i]));
    }
    return SL_OK;
}

/* Add the neighbours of vertex k to the next hop; `context`: its set. */
static int find_next(const struct sl_selecting *s, void *context, int64_t k,
                     struct sl_neighbours *n)
{
    const bool draws = s->options->fanout > 0 && !s->within.bits;
    int rc = SL_OK;
    if (draws)
        rc = sl_neighbours_draw(
            s->source, s->row[k],
            &(struct sl_neighbour_draw){
                .fanout = s->options->fanout,
                .key = sl_rng_key(s->options->seed, SL_RNG_SELECT, s->options->draw, 0),
                .inner = &s->inner},
            n);
    for (int64_t e = 0; !rc && e < n->count; e++) {
        const int64_t place = sl_source_place(s->source, n->vertex[e]);
        if (!sl_vertex_set_has(&s->selected, place) &&
            (!s->within.bits || sl_vertex_set_has(&s->within, place)))
            sl_vertex_set_add(context, place);
    }
    return rc;
}

/* Make the vertices in `next` hop number `hop`. */
static int take_next(struct sl_selecting *s, struct sl_vertex_set *next, int hop)
{
    const int64_t count = s->count + sl_vertex_set_count(next);
    int32_t *row = reallocarray(s->row, (size_t)count + 1, sizeof *row);
    s->row = row ? row : s->row;
    int64_t *cut = reallocarray(s->hop_cut, (size_t)hop + 2, sizeof *cut);
    s->hop_cut = cut ? cut : s->hop_cut;
    if (!row || !cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " selected vertices", count);
    cut[hop] = s->count;
    cut[hop + 1] = count;
    for (int64_t w = 0; w < next->words; w++)
        for (uint64_t word = sl_vertex_set_word(next, w); word; word &= word - 1)
            row[s->count++] = (int32_t)sl_source_vertex(s->source, 64 * w + __builtin_ctzll(word));
    sl_vertex_set_move(next, &s->selected, hop == 0 && s->inner.bits ? &s->inner : NULL);
    return SL_OK;
}

static int find_hops(struct sl_selecting *s, const int64_t *inner, int64_t count, int hops)
{
    const int64_t n = s->source->vertices;
    struct sl_vertex_set next;
    int hop = 0;
    int rc = sl_vertex_set_create(&next, n);
    s->count = 0;
    if (!rc)
        rc = sl_vertex_set_create(&s->selected, n);
    if (!rc && s->options->fanout > 0 && !s->within.bits)
        rc = sl_vertex_set_create(&s->inner, n);
    if (!rc)
        rc = add_inner(s, inner, count, &next);
    if (!rc)
        rc = take_next(s, &next, 0);
    while (!rc && hop != hops) {
        rc = sl_selecting_pass(s, s->hop_cut[hop], s->hop_cut[hop + 1], find_next, &next);
        if (!rc && sl_vertex_set_count(&next) == 0)
            break;
        if (!rc)
            rc = take_next(s, &next, ++hop);
    }
    s->out->hops = hop;
    sl_vertex_set_free(&next);
    return rc;
}

/* Find the hops again as distances by the edges that are kept. A vertex that one vertex leaves out
 * may be drawn by another, farther away. */
static int find_distances(struct sl_selecting *s, const int64_t *inner, int64_t count)
{
    sl_vertex_set_free(&s->inner);
    s->within = s->selected;
    s->selected = (struct sl_vertex_set){0};
    const int rc = find_hops(s, inner, count, SL_ALL_HOPS);
    sl_vertex_set_free(&s->within);
    return rc;
}

static int find_vertices(struct sl_selecting *s, const int64_t *inner, int64_t count)
{
    const struct sl_selection_options *o = s->options;
    int rc = find_hops(s, inner, count, o->hops);
    if (!rc && o->keeps_last_rows && o->fanout > 0 && s->out->hops > 1)
        rc = find_distances(s, inner, count);
    sl_vertex_set_free(&s->inner);
    return rc;
}

/* ---- Numbers ---- */

static void number_range(void *context, int64_t begin, int64_t end)
{
    const struct sl_selecting *s = context;
    for (int64_t k = begin; k < end; k++) {
        const int64_t place = sl_source_place(s->source, s->row[k]);
        s->number[sl_vertex_set_rank(&s->selected, place)] = (int32_t)k;
    }
}

/* Give the selection its lists and number its vertices. */
static int number_vertices(struct sl_selecting *s, struct sl_block **scratch)
{
    struct sl_selection *out = s->out;
    const bool alone = s->options->keeps_last_rows && s->options->hops == 0;
    const size_t rows = (size_t)s->count * sizeof *s->row,
                 cuts = ((size_t)out->hops + 2) * sizeof *s->hop_cut;
    const bool row = sl_block_adopt(&out->blocks, s->row, rows, false) == SL_OK,
               cut = sl_block_adopt(&out->blocks, s->hop_cut, cuts, false) == SL_OK;
    s->number = sl_block_array(scratch, s->count, sizeof *s->number);
    if (!row || !cut || !s->number || sl_vertex_set_seal(&s->selected))
        return SL_ERR_SYSTEM;
    out->row = s->row;
    out->hop_cut = s->hop_cut;
    out->source.selection.inner = out->hop_cut[1];
    out->source.selection.hops = out->hops;
    out->source.selection.hop_cut = alone ? NULL : out->hop_cut;
    sl_parallel_for_ranges(sl_parallel_threads(s->options->threads), s->count, number_range, s);
    return SL_OK;
}

/* ---- All of it ---- */

int sl_selecting_view(struct sl_selecting *s, const struct sl_npy *from, enum sl_npy_type type,
                      int64_t rows, int64_t cols, const void *data, struct sl_npy *out)
{
    struct sl_block **blocks = &s->out->source.blocks;
    const char *name = sl_block_print(blocks, "%s, selected", from->name ? from->name : "vertices");
    if (name && data)
        *out = sl_npy_view(name, type, cols ? 2 : 1, rows, cols, data);
    return name && data ? SL_OK : SL_ERR_SYSTEM;
}

static int begin(const struct sl_source *source, struct sl_selection *out)
{
    *out = (struct sl_selection){
        .source = {
            .name = strdup(source->name ? source->name : "selection"),
            .path = strdup(source->path ? source->path : "selection"),
            .features = source->features,
            .classes = source->classes,
            .feature_form = source->feature_form,
            .columns = source->columns,
            .change = source->change,
            .targets.label_kind = source->targets.label_kind,
            .targets.class_names = source->targets.class_names,
            .selection.whole = source->selection.whole ? source->selection.whole : source->vertices,
        }};
    if (!out->source.name || !out->source.path)
        return sl_error(SL_ERR_SYSTEM, "out of memory");
    if (source->splits.split_rule.given)
        return sl_error(SL_ERR_USAGE,
                        "%s: the splits of a selection are those of the whole graph, which are not "
                        "drawn yet (expected sl_source_settle_splits)",
                        source->path);
    return SL_OK;
}

int sl_select(const struct sl_source *source, const int64_t *inner, int64_t count,
              const struct sl_selection_options *options, struct sl_selection *out)
{
    struct sl_selecting s = {.source = source, .options = options, .out = out};
    struct sl_block *scratch = NULL;
    int rc = begin(source, out);
    if (!rc)
        rc = find_vertices(&s, inner, count);
    if (rc) {
        free(s.row);
        free(s.hop_cut);
    } else {
        rc = number_vertices(&s, &scratch);
    }
    if (!rc && !options->vertices_alone)
        rc = sl_selecting_edges(&s);
    if (!rc && !options->vertices_alone)
        rc = sl_selecting_vertices(&s);
    sl_vertex_set_free(&s.selected);
    sl_block_free_all(&scratch);
    return rc;
}

void sl_selection_join_hops(struct sl_selection *selection, int hops)
{
    if (selection->hops <= hops)
        return;
    selection->hops = selection->source.selection.hops = hops;
    selection->hop_cut[hops + 1] = selection->source.vertices;
}

void sl_selection_free(struct sl_selection *selection)
{
    sl_source_close(&selection->source);
    sl_block_free_all(&selection->blocks);
    *selection = (struct sl_selection){0};
}
