/* Draws the picture of tasks (core/dag.h) with Graphviz. */
#ifndef SL_REPORT_DAG_PICTURE_H
#define SL_REPORT_DAG_PICTURE_H

/* Return 0 if the program `dot` is in PATH. The sentence of SL_ERR_SYSTEM names it and its package.
 */
int sl_dag_picture_probe(void);

/* Draw the picture that sl_dag_end left as an SVG file. Return 0, or SL_ERR_SYSTEM if there are
 * more tasks and arrows than `dot` draws in a minute, or `dot` fails. The sentence then names a new
 * file of text. */
int sl_dag_picture_draw(const char *svg);

#endif
