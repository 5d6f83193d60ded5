/* The steps of a selection (data/select.h). Each step returns a code of sl_select. */
#ifndef SL_DATA_SELECTING_H
#define SL_DATA_SELECTING_H

#include "data/neighbours.h"
#include "data/select.h"

struct sl_selecting {
    const struct sl_source *source;
    const struct sl_selection_options *options;
    struct sl_selection *out;
    int64_t count;                 /* selected vertices so far */
    int32_t *row;                  // (count): rows of the selected vertices in the files
    int64_t *hop_cut;              // (hops + 2)
    struct sl_vertex_set selected; /* selected vertices, by rows of the order */
    struct sl_vertex_set inner;    /* inner vertices by rows of the order; empty without a fanout */
    struct sl_vertex_set within;   /* all selected vertices, while distances are found */
    int32_t *number; // (count): the numbers of the selected vertices, by rows of the order
};

/* Call body(s, context, k, neighbours) with the neighbours of each vertex k of first … end - 1, on
 * all threads. Return the error that one thread alone would find first. */
typedef int sl_selecting_body(const struct sl_selecting *s, void *context, int64_t k,
                              struct sl_neighbours *neighbours);
int sl_selecting_pass(const struct sl_selecting *s, int64_t first, int64_t end,
                      sl_selecting_body *body, void *context);

/* Return the number of the vertex in row v of the files; -1: the vertex is not selected. */
static inline int32_t sl_selecting_number(const struct sl_selecting *s, int64_t v)
{
    const int64_t place = sl_source_place(s->source, v);
    return sl_vertex_set_has(&s->selected, place)
               ? s->number[sl_vertex_set_rank(&s->selected, place)]
               : -1;
}

/* Make out->source of the numbered vertices: edges in select_edges.c, other arrays in
 * select_vertices.c. */
int sl_selecting_edges(struct sl_selecting *s);
int sl_selecting_vertices(struct sl_selecting *s);

/* Set *out to an array of the selection; its name tells which array of the files it stems from. */
int sl_selecting_view(struct sl_selecting *s, const struct sl_npy *from, enum sl_npy_type type,
                      int64_t rows, int64_t cols, const void *data, struct sl_npy *out);

#endif
