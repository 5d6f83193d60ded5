#include "core/dag.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

struct node {
    char label[40];
    unsigned colour;
    bool message;
};

struct arrow {
    int from, to;
};

static struct {
    FILE *file;
    char *path;
    bool drawing;
    struct node *nodes;
    struct arrow *arrows;
    int *writer; // (tags): 1 + the node that wrote the tile last; 0: none
    int count, room, arrow_count, arrow_room;
    int64_t tags;
} dag;

/* More memory for one element more than `count`. */
static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 256;
    list = realloc(list, (size_t)*room * size);
    if (!list)
        sl_fatal("no memory for a picture of %d tasks", *room);
    return list;
}

static int *writer_of(const struct sl_tile *tile)
{
    if (tile->tag >= dag.tags) {
        const int64_t tags = 2 * tile->tag + 256;
        dag.writer = realloc(dag.writer, (size_t)tags * sizeof *dag.writer);
        if (!dag.writer)
            sl_fatal("no memory for a picture of %lld tiles", (long long)tags);
        memset(dag.writer + dag.tags, 0, (size_t)(tags - dag.tags) * sizeof *dag.writer);
        dag.tags = tags;
    }
    return &dag.writer[tile->tag];
}

int sl_dag_open(const char *path)
{
    dag.file = fopen(path, "w");
    if (!dag.file)
        return sl_error(SL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    dag.path = strdup(path);
    return dag.path ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the name of a file");
}

void sl_dag_begin(void)
{
    dag.drawing = dag.file != NULL;
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

/* An arrow that is there already is not drawn twice. */
static void add_arrow(int from, int to)
{
    for (int a = dag.arrow_count - 1; a >= 0 && dag.arrows[a].to == to; a--)
        if (dag.arrows[a].from == from)
            return;
    dag.arrows = grown(dag.arrows, dag.arrow_count, &dag.arrow_room, sizeof *dag.arrows);
    dag.arrows[dag.arrow_count++] = (struct arrow){from, to};
}

void sl_dag_access(const struct sl_tile *tile, unsigned access)
{
    if (!dag.drawing)
        return;
    int *writer = writer_of(tile);
    const int node = dag.count - 1;
    if ((access & SL_DAG_READS) && *writer && *writer - 1 != node)
        add_arrow(*writer - 1, node);
    if (access & SL_DAG_WRITES)
        *writer = node + 1;
}

void sl_dag_message(const struct sl_tile *tile, int rank, enum sl_dag_access access)
{
    char name[32];
    if (!dag.drawing)
        return;
    snprintf(name, sizeof name, "%s rank %d", access == SL_DAG_READS ? "to" : "from", rank);
    sl_dag_task(name, 0xE0E0E0);
    dag.nodes[dag.count - 1].message = true;
    sl_dag_access(tile, access);
}

/* Whether dark letters are hard to read on it. */
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

int sl_dag_end(void)
{
    int code = 0;
    if (dag.drawing)
        print(dag.file);
    if (dag.file) {
        const bool bad = ferror(dag.file);
        if (fclose(dag.file) || bad)
            code = sl_error(SL_ERR_SYSTEM, "%s: %s", dag.path, strerror(errno));
    }
    free(dag.path);
    free(dag.nodes);
    free(dag.arrows);
    free(dag.writer);
    memset(&dag, 0, sizeof dag);
    return code;
}
