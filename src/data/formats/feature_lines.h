/* Sparse features as LIBSVM has them: a line per vertex, "LABEL INDEX:VALUE …" or
 * "ID INDEX:VALUE …". */
#ifndef SL_DATA_FORMATS_FEATURE_LINES_H
#define SL_DATA_FORMATS_FEATURE_LINES_H

#include "data/formats/vertex_map.h"

/* The first word of each line. */
enum sl_line_start {
    SL_LINE_LABEL,  /* a label; the map gets a vertex per line */
    SL_LINE_NEW,    /* a new vertex, which the map gets */
    SL_LINE_VERTEX, /* a vertex of the map; a vertex without a line has no features */
};

/* Read the features. After labels, columns count from 1 unless a column is 0. SL_ERR_DATA names
 * file and line. */
int sl_feature_lines_read(const char *path, enum sl_line_start start, struct sl_vertex_map *map,
                          struct sl_dataset *out);

#endif
