/* A picture of the tasks and messages that this rank submits between sl_dag_begin and sl_dag_end.
 * An arrow goes from the last writer of a tile to each reader. */
#ifndef SL_CORE_DAG_H
#define SL_CORE_DAG_H

#include <stdbool.h>

enum sl_dag_access { SL_DAG_READS = 1, SL_DAG_WRITES = 2 };

/* Draw all tasks and messages submitted from now on. */
void sl_dag_begin(void);

/* End the picture, which stays in memory. */
void sl_dag_end(void);

/* Return the number of tasks and arrows in the picture. */
int sl_dag_size(void);

/* Write the picture's text for Graphviz, and free the picture. Return 0 or SL_ERR_SYSTEM. */
int sl_dag_write(const char *path);

/* Return whether Graphviz is to draw the file of --dag (report/dag_picture.h): its name ends in
 * .svg. */
bool sl_dag_is_drawn(const char *path);

/* Add a task with its colour, 0xRRGGBB, or a message that reads a tile for a rank or writes a tile
 * of a rank. task.c and message.c call these on the submitting thread. Tiles are known by their
 * data handles. Without an open picture, do nothing. */
void sl_dag_task(const char *name, unsigned colour);
void sl_dag_message(const void *handle, int rank, enum sl_dag_access access);

/* Add an access of the last task to a tile: bits of enum sl_dag_access. */
void sl_dag_touch(const void *handle, unsigned access);

#endif
