/* The steps of reading edge lists: parse a file's edges, then number their vertices and build the
 * adjacency. */
#ifndef SL_DATA_FORMATS_EDGE_LINES_H
#define SL_DATA_FORMATS_EDGE_LINES_H

#include "data/dataset.h"
#include "data/formats/csv.h"
#include "data/formats/edge_layout.h"
#include "data/formats/edge_rows.h"
#include "data/formats/edges.h"
#include "data/formats/string_ids.h"
#include "data/formats/vertex_map.h"

/* A pass has found that vertices are names, or that the header is an edge: read the file again. */
enum { SL_EDGES_AGAIN = 1 };

/* A file of a relation's edges. */
struct sl_relation_file {
    const char *name, *path; /* of the relation; of the file */
    int64_t relation;
    bool is_array;  /* an array (edges, 2), else text */
    bool no_header; /* other edges have the vertices of line 1: it is no header, but an edge */
    struct sl_edge_layout layout;
    int64_t first, end; /* the edges of the file */
};

/* How a pass over the file treats edges. */
enum sl_edge_pass { SL_EDGES_HOLD, SL_EDGES_SURVEY, SL_EDGES_COUNT, SL_EDGES_PUT };

/* Findings of a first pass over a large file. */
struct sl_edge_survey {
    int64_t count, most, least; /* number of edges; largest and smallest vertex */
    int64_t source, target[2];  /* largest source; smallest and largest target */
    int64_t first_target[2];    /* targets of the first two edges */
    float weight[2];            /* smallest and largest weight */
};

/* Data of the steps of reading. */
struct sl_edge_lines {
    const struct sl_read_options *options;
    const struct sl_vertex_map *map; /* names of vertices; NULL: the file itself names them */
    struct sl_edge_layout layout;
    const struct sl_relation_file *file; /* the file of the layout; NULL: the only file */
    bool weighted;                       /* some file of a relation has weights */
    int64_t stated;                      /* vertices that lines with sizes tell; 0: none does */
    struct sl_string_ids names;
    struct sl_edges edges;
    enum sl_edge_pass pass;
    struct sl_edge_survey survey;
    struct sl_edge_rows rows;
};

/* Read the edges of the file whose layout is found. Return SL_EDGES_AGAIN, or a code below 0 with
 * an error.
 */
int sl_edge_lines_parse(struct sl_csv *csv, struct sl_edge_lines *r);
int sl_edge_lines_parse_again(struct sl_csv *csv, struct sl_edge_lines *r, enum sl_edge_pass pass);

/* Set the relation of the edge that was held last: its last feature. */
void sl_edge_lines_relate(struct sl_edge_lines *r, int64_t relation);

/* Return whether the record taken for a header is an edge: other edges have its vertices. */
bool sl_edge_lines_is_edge(const struct sl_edge_layout *layout, const struct sl_string_ids *names);

/* Read the record as an edge from now on, which a note says. */
void sl_edge_lines_take_header(const char *path, struct sl_edge_layout *layout);

/* Say in a note how a third column was read, of the edges from `first` to `end`. */
void sl_edge_lines_note_columns(const char *path, const struct sl_edge_lines *r, int64_t first,
                                int64_t end);

/* Drop a line "vertices edges" among the first two lines of a file's edges. Return its number of
 * vertices, or 0. */
int64_t sl_edge_lines_drop_size(const char *path, const struct sl_edge_layout *layout,
                                struct sl_edges *edges);

/* Number the vertices, unless they have numbers, and make the adjacency of the edges that are held.
 * SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_edge_lines_build(const char *path, struct sl_edge_lines *r, struct sl_dataset *out);
void sl_edge_lines_free(struct sl_edge_lines *r);

#endif
