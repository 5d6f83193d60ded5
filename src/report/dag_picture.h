/* The picture of tasks (core/dag.h), drawn by Graphviz. */
#ifndef SL_REPORT_DAG_PICTURE_H
#define SL_REPORT_DAG_PICTURE_H

/* Return 0 if the program `dot` is in PATH. SL_ERR_SYSTEM names it and its package. */
int sl_dag_picture_probe(void);

/* Draw the picture that sl_dag_end left as an SVG file. SL_ERR_SYSTEM: there are more tasks and
 * arrows than `dot` draws in a minute, or `dot` fails. The sentence names a new file of text. */
int sl_dag_picture_draw(const char *svg);

#endif
