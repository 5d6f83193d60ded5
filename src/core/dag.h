/* A picture of the tasks and messages that this rank submits between sl_dag_begin and sl_dag_end.
 * An arrow goes from the last writer of a tile to each reader. */
#ifndef SL_CORE_DAG_H
#define SL_CORE_DAG_H

#include <limits.h>
#include <stdbool.h>

enum sl_dag_access { SL_DAG_READS = 1, SL_DAG_WRITES = 2 };

/* Draw what is submitted from now on. */
void sl_dag_begin(void);

/* End the picture, and write its text to a file for Graphviz. Return 0 or SL_ERR_SYSTEM. */
int sl_dag_end(const char *path);

/* Whether Graphviz draws the file of --dag: the name ends in .svg. The text is then in FILE.dot
 * until the picture is drawn (report/dag_picture.h), else in FILE. */
bool sl_dag_is_drawn(const char *path);
void sl_dag_text_path(const char *path, char text[PATH_MAX]);

/* For task.c and message.c, on the submitting thread: add a task with its colour, 0xRRGGBB, or a
 * message that reads a tile for a rank, or writes a tile of a rank. Tiles are known by their data
 * handles. Nothing happens where nothing is drawn. */
void sl_dag_task(const char *name, unsigned colour);
void sl_dag_message(const void *handle, int rank, enum sl_dag_access access);

/* Say how the task that was added last accesses a tile: bits of enum sl_dag_access. */
void sl_dag_touch(const void *handle, unsigned access);

#endif
