#include "data/formats/foreign.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/formats/text.h"

#define NETWORKX(reader)                                                                \
    "not read: networkx." reader " reads it, and networkx.write_edgelist(G, FILE.tsv, " \
    "delimiter='\\t', data=False) writes an edge list"
#define PANDAS(reader) \
    "not read: pandas." reader "(FILE).to_csv('edges.csv', index=False) writes an edge list"

/* Foreign formats. `start`: first text of such a file, after blanks, in any case; NULL: only names
 * tell. */
static const struct {
    const char *extensions, *start, *sentence;
} foreign[] = {
    {".json .jsonl .ndjson", "{", "is JSON, which is " NETWORKX("node_link_graph(json.load(f))")},
    {"", "[", "is JSON or Python, which is " NETWORKX("node_link_graph(json.load(f))")},
    {".gexf", "<gexf", "is GEXF, which is " NETWORKX("read_gexf(FILE)")},
    {".graphml", "<graphml", "is GraphML, which is " NETWORKX("read_graphml(FILE)")},
    {".xml", "<", "is XML, which is " NETWORKX("read_graphml(FILE) or read_gexf(FILE)")},
    {".gml", "graph [", "is GML, which is " NETWORKX("read_gml(FILE)")},
    {".paj", "*vertices", "is Pajek, which is " NETWORKX("read_pajek(FILE)")},
    {".net", "*network", "is Pajek, which is " NETWORKX("read_pajek(FILE)")},
    {".parquet", "PAR1", "is Parquet, which is " PANDAS("read_parquet")},
    {".feather .arrow", "ARROW1", "is Arrow, which is " PANDAS("read_feather")},
    {".xlsx .xls", NULL, "is a workbook, which is " PANDAS("read_excel")},
    {".pt .pth", NULL,
     "is of PyTorch, which alone reads it: in Python, starling.from_pyg(torch.load(FILE))"},
    {".pkl .pickle .gpickle", "\x80",
     "is pickled Python, which alone reads it: starling.from_pyg, from_dgl and from_scipy take "
     "objects"},
    {".h5 .hdf5 .h5ad", "\x89HDF",
     "is HDF5, which is not read: h5py reads it, and starling.from_scipy takes a matrix"},
    {".dot .gv", "digraph", "is Graphviz, which is " NETWORKX("nx_pydot.read_dot(FILE)")},
};
enum { FOREIGN = sizeof foreign / sizeof *foreign };

static const char DIMACS[] =
    "is DIMACS, which is not read: sed -n 's/^[ea] //p' FILE >graph.txt writes an edge list whose "
    "vertices count from 1 (--first-vertex 1)";

static bool has_extension(const char *path, size_t length, const char *extensions)
{
    for (const char *at = extensions; *at;) {
        const size_t size = strcspn(at, " ");
        if (length > size && strncasecmp(path + length - size, at, size) == 0)
            return true;
        at += size + (at[size] == ' ');
    }
    return false;
}

const char *sl_foreign_by_name(const char *path)
{
    const size_t length = sl_text_plain_length(path);
    for (int k = 0; k < FOREIGN; k++)
        if (has_extension(path, length, foreign[k].extensions))
            return foreign[k].sentence;
    return has_extension(path, length, ".col .clq .dimacs") ? DIMACS : NULL;
}

/* Recognize comments "c …", then "p WORD VERTICES EDGES". */
static bool is_dimacs(const char *at)
{
    while (*at == 'c' && (at[1] == ' ' || at[1] == '\n')) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    if (at[0] != 'p' || at[1] != ' ')
        return false;
    at += 2 + strspn(at + 2, " ");
    const size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz");
    if (word == 0)
        return false;
    at += word;
    at += strspn(at, " ");
    const size_t digits = strspn(at, "0123456789");
    return digits > 0 && at[digits] == ' ' && strspn(at + digits + 1, "0123456789") > 0;
}

/* Return whether a file that begins with `start` is of the foreign format: a vertex may have this
 * name, too. Binary files go on with a byte that no text has. A Graphviz graph has a brace in its
 * first line. */
static bool is_meant(const char *at, const char *start)
{
    const char *after = at + strlen(start);
    if (strcmp(start, "PAR1") == 0 || strcmp(start, "ARROW1") == 0)
        return (unsigned char)*after < ' ' && !strchr("\t\r\n", *after ? *after : ' ');
    if (strcmp(start, "digraph") == 0)
        return memchr(after, '{', strcspn(after, "\n")) != NULL;
    return true;
}

const char *sl_foreign_by_head(const char *head, size_t bytes)
{
    static const char mark[] = "\xEF\xBB\xBF";
    head += bytes >= 3 && memcmp(head, mark, 3) == 0 ? 3 : 0;
    const char *at = head + strspn(head, " \t\r\n");
    const bool markup = *at == '<';
    for (int k = 0; k < FOREIGN; k++) {
        const char *start = foreign[k].start;
        if (start && ((strncasecmp(at, start, strlen(start)) == 0 && is_meant(at, start)) ||
                      (markup && start[0] == '<' && strcasestr(at, start))))
            return foreign[k].sentence;
    }
    if (strncasecmp(at, "graph", 5) == 0 && at[5 + strspn(at + 5, " \r\n")] == '[')
        return sl_foreign_by_name("x.gml");
    return is_dimacs(at) ? DIMACS : NULL;
}
