/* The edges of a text file before they become a graph: check that they are edges, and number their
 * vertices. */
#ifndef SL_DATA_FORMATS_EDGES_H
#define SL_DATA_FORMATS_EDGES_H

#include "data/dataset.h"
#include "data/formats/string_ids.h"

/* Vertices as the file has them: 64 bits, since sparse numbers may be large. */
struct sl_edges {
    int64_t *ends;     // (count, 2)
    float *weights;    // (count), or NULL
    int64_t columns;   /* features of an edge; 0: none */
    int64_t relations; /* the last feature is the edge's relation, of so many; 0: it is none */
    float *features;   // (count, columns), or NULL
    int64_t count, capacity;
};

/* Append the edge u -> v, with room for its features; all edges have a weight, or none has.
 * SL_ERR_SYSTEM. */
int sl_edges_add(struct sl_edges *edges, int64_t u, int64_t v, const float *weight);

/* Return whether a column of this name holds labels. */
bool sl_edges_is_label_word(const char *word);

/* Return SL_ERR_DATA where the lines are labels: each line has another vertex and one of a few
 * classes. `names` counts the different names, numbered as they appear; 0: vertices are numbers. */
int sl_edges_check(const char *path, const struct sl_edges *edges, int64_t names);

/* The three functions below set the number of vertices, and vertex_ids to their names or numbers in
 * the file. SL_ERR_SYSTEM: out of memory. */

/* Renumber the ends to 0, 1, … in ascending order. */
int sl_edges_compact(struct sl_edges *edges, struct sl_dataset *out);

/* Count the ends from 0 instead of `base`; out->vertices is set. */
int sl_edges_shift(struct sl_edges *edges, int64_t base, struct sl_dataset *out);

/* Keep the ends, which are numbers of names already. */
int sl_edges_keep_names(const char *path, const struct sl_string_ids *names,
                        struct sl_dataset *out);

#endif
