/* The picture of tasks (core/dag.h), drawn by Graphviz. */
#ifndef SL_REPORT_DAG_PICTURE_H
#define SL_REPORT_DAG_PICTURE_H

/* Return 0 if the program `dot` is in PATH. SL_ERR_SYSTEM names it and its package. */
int sl_dag_picture_probe(void);

/* Draw the text of sl_dag_end as an SVG file, and remove the text. SL_ERR_SYSTEM: there are more
 * tasks and arrows than `dot` draws in a minute, or `dot` fails. The sentence names the text, which
 * stays. */
int sl_dag_picture_draw(const char *text, const char *svg);

#endif
