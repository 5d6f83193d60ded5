/* A picture of the tasks and messages that this rank submits between sl_dag_begin and sl_dag_end.
 * An arrow goes from the last writer of a tile to each reader. */
#ifndef SL_CORE_DAG_H
#define SL_CORE_DAG_H

#include <stdint.h>

#include "core/tile.h"

enum sl_dag_access { SL_DAG_READS = 1, SL_DAG_WRITES = 2 };

/* Open the file of the picture. Return 0 or SL_ERR_SYSTEM. */
int sl_dag_open(const char *path);

/* Draw what is submitted from now on, if a file is open. */
void sl_dag_begin(void);

/* Write the picture for Graphviz (`dot -Tsvg`), and close the file. Return 0 or SL_ERR_SYSTEM. */
int sl_dag_end(void);

/* For task.c and message.c: add a task with its colour, 0xRRGGBB, or a message to or from a rank.
 * Without a picture, nothing happens. */
void sl_dag_task(const char *name, unsigned colour);
void sl_dag_message(const struct sl_tile *tile, int rank, enum sl_dag_access access);

/* Say that the task added last accesses that tile. */
void sl_dag_access(const struct sl_tile *tile, unsigned access);

#endif
