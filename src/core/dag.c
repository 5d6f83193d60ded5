#include "core/dag.h"

#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/file.h"

struct node {
    char label[40];
    unsigned colour;
    bool message;
};

struct arrow {
    int from, to;
};

/* The last writer of a tile. A freed handle's address may serve another tile, which is written
 * first. */
struct writer {
    const void *handle;
    int node;
};

static struct {
    bool drawing;
    struct node *nodes;
    struct arrow *arrows;
    void *writers; /* a tree of struct writer */
    int count, room, arrow_count, arrow_room;
} dag;

/* Return the list with room for one element more than `count`. */
static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    const int more = *room ? 2 * *room : 256;
    list = realloc(list, (size_t)more * size);
    if (!list)
        sl_fatal("no memory for a picture of %d tasks", more);
    *room = more;
    return list;
}

static int compare(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct writer *)a)->handle,
                    y = (uintptr_t)((const struct writer *)b)->handle;
    return (x > y) - (x < y);
}

static void set_writer(const void *handle, int node)
{
    struct writer *writer = malloc(sizeof *writer);
    if (writer)
        *writer = (struct writer){handle, node};
    struct writer **found = writer ? tsearch(writer, &dag.writers, compare) : NULL;
    if (!found)
        sl_fatal("no memory for a picture of %d tasks", dag.count);
    (*found)->node = node;
    if (*found != writer)
        free(writer);
}

void sl_dag_begin(void)
{
    dag.drawing = true;
}

void sl_dag_task(const char *name, unsigned colour)
{
    static const char prefix[] = "starling_";
    const size_t skip = strncmp(name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    if (!dag.drawing)
        return;
    dag.nodes = grown(dag.nodes, dag.count, &dag.room, sizeof *dag.nodes);
    struct node *node = &dag.nodes[dag.count++];
    *node = (struct node){.colour = colour};
    snprintf(node->label, sizeof node->label, "%s", name + skip);
}

/* Add an arrow unless the picture has it. */
static void add_arrow(int from, int to)
{
    for (int a = dag.arrow_count - 1; a >= 0 && dag.arrows[a].to == to; a--)
        if (dag.arrows[a].from == from)
            return;
    dag.arrows = grown(dag.arrows, dag.arrow_count, &dag.arrow_room, sizeof *dag.arrows);
    dag.arrows[dag.arrow_count++] = (struct arrow){from, to};
}

void sl_dag_touch(const void *handle, unsigned access)
{
    const struct writer key = {.handle = handle};
    const int node = dag.count - 1;
    if (!dag.drawing)
        return;
    struct writer **writer = tfind(&key, &dag.writers, compare);
    if ((access & SL_DAG_READS) && writer && (*writer)->node != node)
        add_arrow((*writer)->node, node);
    if (access & SL_DAG_WRITES)
        set_writer(handle, node);
}

void sl_dag_message(const void *handle, int rank, enum sl_dag_access access)
{
    char name[32];
    if (!dag.drawing)
        return;
    snprintf(name, sizeof name, "%s rank %d", access == SL_DAG_READS ? "to" : "from", rank);
    sl_dag_task(name, 0xE0E0E0);
    dag.nodes[dag.count - 1].message = true;
    sl_dag_touch(handle, access);
}

/* Return whether letters on this colour must be white. */
static bool is_dark(unsigned colour)
{
    return 3 * (colour >> 16) + 6 * (colour >> 8 & 0xFF) + (colour & 0xFF) < 1200;
}

static void print(FILE *file)
{
    fputs("digraph epoch {\n"
          "  node [shape=box style=filled fontname=Helvetica fontsize=10 height=0.25 "
          "margin=\"0.06,0.03\" penwidth=0];\n"
          "  edge [arrowsize=0.5 color=\"#808080\"];\n  nodesep=0.12;\n  ranksep=0.25;\n",
          file);
    for (int n = 0; n < dag.count; n++)
        fprintf(file, "  t%d [label=\"%s\" fillcolor=\"#%06X\"%s%s];\n", n, dag.nodes[n].label,
                dag.nodes[n].colour, is_dark(dag.nodes[n].colour) ? " fontcolor=white" : "",
                dag.nodes[n].message ? " shape=cds" : "");
    for (int a = 0; a < dag.arrow_count; a++)
        fprintf(file, "  t%d -> t%d;\n", dag.arrows[a].from, dag.arrows[a].to);
    fputs("}\n", file);
}

bool sl_dag_is_drawn(const char *path)
{
    const size_t length = path ? strlen(path) : 0;
    return length > 4 && strcasecmp(path + length - 4, ".svg") == 0;
}

void sl_dag_end(void)
{
    dag.drawing = false;
    tdestroy(dag.writers, free);
    dag.writers = NULL;
}

int sl_dag_size(void)
{
    return dag.count + dag.arrow_count;
}

int sl_dag_write(const char *path)
{
    struct sl_new_file out;
    int code = sl_file_create(&out, path);
    if (!code) {
        print(out.file);
        code = sl_file_commit(&out, true);
    }
    free(dag.nodes);
    free(dag.arrows);
    memset(&dag, 0, sizeof dag);
    return code;
}
