/* Read folders of the Open Graph Benchmark for node properties (Hu et al., NeurIPS 2020), as they
 * are unpacked. raw/ has a line per edge, per vertex's features and per vertex's labels;
 * split/SCHEME/ has the three lists of vertices. The files are CSV without headers, gzipped or
 * plain.
 *
 * Edges are read twice and never held, so reading takes no more memory than the dataset. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "data/arrays.h"
#include "data/block.h"
#include "data/edge_features.h"
#include "data/formats/edge_rows.h"
#include "data/formats/formats.h"
#include "data/formats/number_rows.h"
#include "data/formats/ogb.h"

const char *sl_ogb_file(const struct sl_ogb_folder *folder, const char *name)
{
    const char *stem = sl_block_print(&folder->out->blocks, "%s/%s", folder->path, name);
    return stem ? sl_text_find(stem, &folder->out->blocks) : NULL;
}

bool sl_ogb_has(const char *path, const char *name)
{
    struct sl_block *scratch = NULL;
    const char *stem = sl_block_print(&scratch, "%s/%s", path, name);
    const bool found = stem && sl_text_exists(stem);
    sl_block_free_all(&scratch);
    return found;
}

int sl_ogb_read_count(const struct sl_ogb_folder *folder, const char *name, int64_t least,
                      int64_t most, int64_t *count)
{
    const char *path = sl_ogb_file(folder, name);
    struct sl_text text;
    char *line;
    int rc = path ? sl_text_open(&text, path) : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    int got = sl_text_next_data(&text, "", &line);
    const char *word = got > 0 ? sl_text_word(&line) : NULL;
    const bool number = word && sl_text_to_int64(word, count) && !sl_text_word(&line);
    if (got >= 0 && (!number || *count < least || *count > most))
        rc = sl_error(SL_ERR_DATA,
                      "%s: line 1: '%.40s' is no size, expected a number from %" PRId64
                      " to %" PRId64,
                      path, word ? word : "", least, most);
    if (got > 0 && !rc)
        got = sl_text_next_data(&text, "", &line);
    if (got > 0 && !rc)
        rc = sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": another number, expected one graph", path,
                      text.line_number);
    sl_text_close(&text);
    return rc ? rc : got < 0 ? got : SL_OK;
}

static int read_sizes(struct sl_ogb_folder *folder)
{
    struct sl_dataset *out = folder->out;
    const int rc = sl_ogb_read_count(folder, "raw/num-node-list.csv", 1, INT32_MAX, &out->vertices);
    return rc ? rc
              : sl_ogb_read_count(folder, "raw/num-edge-list.csv", 0, INT64_MAX / 64,
                                  &folder->edges);
}

/* ---- Edges ---- */

static int read_edge(const struct sl_text *text, const char *line, const struct sl_ogb_ends *ends,
                     int64_t *u, int64_t *v)
{
    const char *at = line;
    bool ok = sl_text_read_int64(&at, u);
    at += strspn(at, " \t");
    ok = ok && *at++ == ',';
    at += ok ? strspn(at, " \t") : 0;
    ok = ok && sl_text_read_int64(&at, v) && at[strspn(at, " \t")] == '\0';
    if (!ok)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": '%.40s' is no edge, expected \"source,target\"",
                        text->path, text->line_number, line);
    if (*u < 0 || *u >= ends->sources || *v < 0 || *v >= ends->targets)
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64 ": edge %" PRId64 " -> %" PRId64
                        ", expected vertices 0 to %" PRId64,
                        text->path, text->line_number, *u, *v,
                        (*u < 0 || *u >= ends->sources ? ends->sources : ends->targets) - 1);
    *u += ends->source;
    *v += ends->target;
    return SL_OK;
}

int sl_ogb_pass_edges(struct sl_text *text, const struct sl_ogb_ends *ends,
                      struct sl_edge_rows *rows, bool put, int64_t *edges, int64_t *upward)
{
    char *line;
    int64_t u = 0, v = 0;
    int got;
    *edges = *upward = 0;
    while ((got = sl_text_next_data(text, "", &line)) > 0) {
        const int rc = read_edge(text, line, ends, &u, &v);
        if (rc)
            return rc;
        ++*edges;
        *upward += u < v;
        if (!put)
            sl_edge_rows_count(rows, u, v);
        else if (!sl_edge_rows_put(rows, u, v, 1.0f))
            return sl_error(SL_ERR_DATA, "%s: line %" PRId64 ": changed while it was read",
                            text->path, text->line_number);
    }
    return got;
}

static bool is_stored_one_way(const char *name)
{
    return strcasecmp(name, "ogbn_products") == 0 || strcasecmp(name, "ogbn-products") == 0 ||
           strcasecmp(name, "ogbn_proteins") == 0 || strcasecmp(name, "ogbn-proteins") == 0;
}

/* Return whether each edge gets its reverse here. With count_duplicates or features of edges,
 * --symmetrize comes later, so that a reverse edge does not count as a duplicate. */
bool sl_ogb_goes_both_ways(const struct sl_read_options *options, const char *name, bool features)
{
    return (options->symmetrize && !options->count_duplicates && !features) ||
           is_stored_one_way(name);
}

void sl_ogb_note_one_way(const char *path, const struct sl_edge_rows *rows, int64_t edges,
                         int64_t upward)
{
    if (!rows->both && 2 * upward != edges)
        sl_note("%s: edges go one way, as they are stored (starling convert --symmetrize adds the "
                "reverse of each)",
                path);
}

static int count_edges(const struct sl_ogb_folder *folder, struct sl_text *text,
                       struct sl_edge_rows *rows)
{
    int64_t edges, upward;
    const struct sl_ogb_ends all = {0, 0, rows->vertices, rows->vertices};
    const int rc = sl_ogb_pass_edges(text, &all, rows, false, &edges, &upward);
    if (rc)
        return rc;
    if (edges != folder->edges)
        return sl_error(SL_ERR_DATA,
                        "%s: has %" PRId64 " edges, expected %" PRId64 " as in num-edge-list.csv",
                        text->path, edges, folder->edges);
    sl_ogb_note_one_way(text->path, rows, edges, upward);
    return SL_OK;
}

/* Read the features of the edges, a line for each; without such a file, an edge has none. */
static int read_edge_features(const struct sl_ogb_folder *folder, struct sl_number_rows *features)
{
    if (!sl_ogb_has(folder->path, "raw/edge-feat.csv"))
        return SL_OK;
    const char *path = sl_ogb_file(folder, "raw/edge-feat.csv");
    const int rc =
        path ? sl_number_rows_read(path, folder->edges, false, &folder->out->blocks, features)
             : (int)SL_ERR_SYSTEM;
    if (!rc && features->columns > SL_EDGE_FEATURES)
        return sl_error(SL_ERR_DATA, "%s: has %" PRId64 " columns, expected 1 to %d", path,
                        features->columns, SL_EDGE_FEATURES);
    return rc;
}

static int read_edges(const struct sl_ogb_folder *folder)
{
    struct sl_dataset *out = folder->out;
    struct sl_text text;
    struct sl_edge_rows rows = {
        .vertices = out->vertices,
        .weighted = folder->options->count_duplicates,
    };
    int64_t edges, upward;
    struct sl_number_rows features = {.columns = 0};
    const char *path = sl_ogb_file(folder, "raw/edge.csv");
    int rc = path ? read_edge_features(folder, &features) : (int)SL_ERR_SYSTEM;
    if (!rc)
        rc = sl_text_open(&text, path);
    if (rc)
        return rc;
    rows.numbered = features.columns > 0;
    rows.both = sl_ogb_goes_both_ways(folder->options, out->name, rows.numbered);
    sl_edge_rows_say(folder->path, folder->options, folder->edges, out->vertices,
                     8 * out->vertices + (rows.both ? 8 : 4) * folder->edges +
                         4 * out->vertices * out->features +
                         sl_edge_features_bytes(folder->edges, features.columns, rows.both));
    rc = sl_edge_rows_open(&rows, &out->blocks);
    if (!rc)
        rc = count_edges(folder, &text, &rows);
    if (!rc)
        rc = sl_edge_rows_allocate(&rows, &out->blocks);
    if (!rc)
        rc = sl_text_rewind(&text);
    if (!rc)
        rc = sl_ogb_pass_edges(&text, &(struct sl_ogb_ends){0, 0, rows.vertices, rows.vertices},
                               &rows, true, &edges, &upward);
    if (!rc)
        rc = sl_edge_rows_close(&rows, features.columns, features.item, out);
    sl_text_close(&text);
    return rc;
}

/* ---- Vertices ---- */

static int read_features(const struct sl_ogb_folder *folder)
{
    struct sl_dataset *out = folder->out;
    struct sl_number_rows features;
    if (!sl_ogb_has(folder->path, "raw/node-feat.csv"))
        return SL_OK;
    const char *path = sl_ogb_file(folder, "raw/node-feat.csv");
    const int rc = path ? sl_number_rows_read(path, out->vertices, false, &out->blocks, &features)
                        : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    out->feature_form = SL_FEATURES_DENSE;
    out->features = features.columns;
    out->features_dense = features.item;
    return SL_OK;
}

static int read_labels(const struct sl_ogb_folder *folder)
{
    struct sl_dataset *out = folder->out;
    struct sl_number_rows labels;
    if (!sl_ogb_has(folder->path, "raw/node-label.csv"))
        return SL_OK;
    const char *path = sl_ogb_file(folder, "raw/node-label.csv");
    const int rc = path ? sl_number_rows_read(path, out->vertices, true, &out->blocks, &labels)
                        : (int)SL_ERR_SYSTEM;
    if (rc)
        return rc;
    struct sl_npy npy =
        sl_npy_view(path, SL_NPY_FLOAT32, 2, out->vertices, labels.columns, labels.item);
    return sl_arrays_labels(&npy, out);
}

int sl_ogb_check_size(const char *path, const struct sl_dataset *out, int64_t edges)
{
    enum { FEW = 1 << 20, MOST_PER_EDGE = 1000 };
    if (out->labels || out->multilabels || out->features_dense || out->vertices <= FEW ||
        out->vertices / MOST_PER_EDGE <= edges)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: %" PRId64 " vertices with %" PRId64
                    " edges, expected at least one for every %d vertices",
                    path, out->vertices, edges, MOST_PER_EDGE);
}

static int check_size(const struct sl_ogb_folder *folder)
{
    const char *path =
        sl_block_print(&folder->out->blocks, "%s/raw/num-node-list.csv", folder->path);
    return path ? sl_ogb_check_size(path, folder->out, folder->edges) : (int)SL_ERR_SYSTEM;
}

/* ---- Splits ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct dirent *)a)->d_name, ((const struct dirent *)b)->d_name);
}

const char *sl_ogb_scheme(const struct sl_ogb_folder *folder)
{
    const char *path = sl_block_print(&folder->out->blocks, "%s/split", folder->path);
    DIR *dir = path ? opendir(path) : NULL;
    struct dirent first = {0};
    int schemes = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            if (schemes++ == 0 || compare_names(entry, &first) < 0)
                first = *entry;
        }
    if (dir)
        closedir(dir);
    if (schemes > 1)
        sl_note("%s: has %d splits, of which '%s' is used", path, schemes, first.d_name);
    return schemes ? sl_block_print(&folder->out->blocks, "%s", first.d_name) : NULL;
}

int sl_ogb_read_splits(const char *path, struct sl_dataset *out)
{
    const struct sl_ogb_folder folder = {.path = path, .out = out};
    struct sl_index_set *const sets[] = {&out->train, &out->val, &out->test};
    static const char *const names[] = {"train", "valid", "test"};
    struct sl_split_lists lists = {.vertices = out->vertices};
    const char *scheme = sl_ogb_scheme(&folder);
    int rc = sl_split_lists_open(&lists, &out->blocks);
    for (int k = 0; scheme && k < 3 && !rc; k++) {
        const char *name = sl_block_print(&out->blocks, "split/%s/%s.csv", scheme, names[k]);
        const char *file = name ? sl_ogb_file(&folder, name) : NULL;
        rc = file ? sl_split_lists_read(&lists, file, false, &out->blocks, sets[k])
                  : (int)SL_ERR_SYSTEM;
    }
    return rc;
}

static int read_folder(const char *path, const struct sl_read_options *options,
                       struct sl_dataset *out)
{
    struct sl_ogb_folder folder = {.path = path, .options = options, .out = out};
    int rc = read_sizes(&folder);
    if (!rc)
        rc = read_labels(&folder);
    if (!rc)
        rc = read_features(&folder);
    if (!rc)
        rc = check_size(&folder);
    if (!rc)
        rc = read_edges(&folder);
    return rc ? rc : sl_ogb_read_splits(path, out);
}

static bool is_ogb(const char *path)
{
    return sl_ogb_has(path, "raw/edge.csv") || sl_ogb_has(path, "raw/num-node-list.csv");
}

const struct sl_format sl_format_ogb = {
    .name = "OGB folder",
    .extensions = "",
    .is_folder = is_ogb,
    .read = read_folder,
};
