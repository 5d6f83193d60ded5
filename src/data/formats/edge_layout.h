/* Find the columns of an edge list (ends of edges, weights) from its first records. */
#ifndef SL_DATA_FORMATS_EDGE_LAYOUT_H
#define SL_DATA_FORMATS_EDGE_LAYOUT_H

#include "data/dataset.h"
#include "data/edge_features.h"
#include "data/formats/csv.h"
#include "data/formats/vertex_map.h"

/* A copy of a record's fields. */
struct sl_edge_record {
    char **field; // (count)
    int64_t count;
    struct sl_block *blocks;
};

struct sl_edge_layout {
    struct sl_edge_record first;
    int64_t first_line;
    bool header;                    /* the first record names the columns */
    bool ends_named;                /* the header names both ends of an edge */
    bool names;                     /* vertices are names, else numbers */
    bool words_alone;               /* the only record has words alone: an edge or a header */
    int64_t columns;                /* columns of a record */
    bool more;                      /* further columns may follow */
    int64_t source, target, weight; /* column numbers; weight -1: none */
    int64_t shift;                  /* columns that rows have before those of the header */
    int64_t features;               /* columns that are features of edges, and their numbers */
    bool related;                   /* the last one is the relation of the edge */
    int16_t feature[SL_EDGE_FEATURES + 1];
    int64_t first_vertex; /* number of the first vertex in the file */
    bool konect;
};

/* Decide from the first two records; `map` as for sl_edge_list_read. Leave `csv` at its start.
 * SL_ERR_DATA names line and column. sl_edge_layout_free in either case. */
int sl_edge_layout_find(struct sl_csv *csv, const struct sl_read_options *options,
                        const struct sl_vertex_map *map, struct sl_edge_layout *out);
void sl_edge_layout_free(struct sl_edge_layout *layout);

/* Read the next record; cut a comment at its end. */
int sl_edge_layout_next(struct sl_csv *csv);

/* Return whether a field can only be a name: it is no number of any kind. */
bool sl_edge_layout_is_name(const char *field);

/* Say in a note how the header was read, where this is not plain. */
void sl_edge_layout_note(const char *path, const struct sl_edge_layout *layout, bool mapped);

#endif
