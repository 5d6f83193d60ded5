/* Tries every reader of the program on files that a program has made up. libFuzzer makes the files
 * (tests/fuzz.sh), or tests/fuzz/replay.c takes those of tests/fuzz/corpus. $SL_FUZZ_READER is the
 * name of one of `readers`.
 *
 * An input is a byte of options and a file. A reader of several files, or of arrays of an archive,
 * takes pieces after the byte: 0xF5, 0xF6, a piece's number, and its bytes.
 *
 * A reader ends with 0 or with a sentence. A dataset that is read holds what docs/DATASETS.md
 * demands; written in another format, it is read again. Memory is at most 1,100 times the input,
 * which is what deflate can hide, and ALLOWANCE.
 */
#include "readers.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zip.h>

#include "checkpoint/checkpoint.h"
#include "cli/train_verify.h"
#include "core/error.h"
#include "core/log.h"
#include "core/options.h"
#include "core/program.h"
#include "core/rates.h"
#include "core/remembered.h"
#include "data/dataset.h"
#include "data/formats/formats.h"
#include "data/formats/npy.h"
#include "data/partition/parts.h"
#include "deploy/bound.h"
#include "log/epoch_table.h"
#include "recipe/config.h"
#include "report/page.h"

static char folder[64]; /* of the files of an input, in $TMPDIR */
static uint8_t mode;    /* the byte of options */

#define WRONG(...)                    \
    do {                              \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        abort();                      \
    } while (0)

/* ---- Memory ---- */

enum { TIMES = 1100, ALLOWANCE = 96 << 20 };

static atomic_llong held, most_held;

/* Functions of the sanitizers' runtime: NULL without a sanitizer. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *) __attribute__((weak));

static void on_malloc(const volatile void *memory, size_t bytes)
{
    (void)memory;
    const long long now = atomic_fetch_add(&held, (long long)bytes) + (long long)bytes;
    if (now > atomic_load(&most_held))
        atomic_store(&most_held, now);
}

static void on_free(const volatile void *memory)
{
    if (memory)
        atomic_fetch_sub(&held, (long long)__sanitizer_get_allocated_size(memory));
}

/* ---- What is read ---- */

/* least: how far columns of a row ascend, 0 where entries have relations. */
static void check_csr(const struct sl_csr *m, int64_t rows, int64_t cols, int32_t least,
                      const char *name)
{
    if (m->rows != rows || m->cols != cols || m->indptr[0] != 0)
        WRONG("%s: shape", name);
    for (int64_t r = 0; r < rows; r++)
        if (m->indptr[r + 1] < m->indptr[r])
            WRONG("%s: indptr", name);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = m->indptr[r]; k < m->indptr[r + 1]; k++)
            if (m->indices[k] < 0 || m->indices[k] >= cols ||
                (k > m->indptr[r] && m->indices[k] - m->indices[k - 1] < least) ||
                (m->values && !isfinite(m->values[k])))
                WRONG("%s: entry %lld", name, (long long)k);
}

static void check_splits(const struct sl_dataset *d)
{
    const struct sl_index_set *const sets[] = {&d->train, &d->val, &d->test};
    char *taken = calloc(1, (size_t)d->vertices + 1);
    for (int s = 0; taken && s < 3; s++)
        for (int64_t k = 0; k < sets[s]->count; k++) {
            const int64_t v = sets[s]->ids[k];
            if (v < 0 || v >= d->vertices || taken[v]++)
                WRONG("split %d: item %lld", s, (long long)k);
        }
    free(taken);
}

/* Features of edges are finite. Relations are whole numbers; of one column they ascend. */
static void check_edges(const struct sl_dataset *d)
{
    const struct sl_csr *a = &d->adjacency;
    const int64_t width = d->edge_features;
    if (d->relations < 0 || d->relations > SL_RELATIONS || (d->relations > 0 && !d->edge))
        WRONG("%lld relations", (long long)d->relations);
    for (int64_t k = 0; d->edge && k < a->indptr[a->rows] * width; k++)
        if (!isfinite(d->edge[k]))
            WRONG("feature %lld of edges", (long long)k);
    for (int64_t r = 0; d->relations > 0 && r < a->rows; r++)
        for (int64_t k = a->indptr[r]; k < a->indptr[r + 1]; k++) {
            const float *own = d->edge + (k + 1) * width - 1;
            if (*own < 0.0f || *own >= (float)d->relations || *own != truncf(*own) ||
                (k > a->indptr[r] && a->indices[k] == a->indices[k - 1] && *own <= own[-width]))
                WRONG("relation of entry %lld", (long long)k);
        }
}

/* Vertices of links and of negatives are in the graph. A split has both or neither. */
static void check_links(const struct sl_dataset *d)
{
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const struct sl_npy *const pairs[] = {&d->links.pairs[s], &d->links.negatives[s]};
        int64_t pair[2];
        for (int which = 0; which < 2; which++)
            for (int64_t k = 0; pairs[which]->data && k < pairs[which]->shape[0]; k++) {
                sl_links_get(pairs[which], k, pair);
                for (int end = 0; end < 2; end++)
                    if (pair[end] < 0 || pair[end] >= d->vertices)
                        WRONG("split %d: pair %lld", s, (long long)k);
            }
        if ((pairs[0]->count > 0) != (pairs[1]->count > 0))
            WRONG("split %d: links or negatives alone", s);
    }
}

/* Draw links where there are none. Each of them leaves the adjacency. */
static void draw_links(struct sl_dataset *d)
{
    const struct sl_link_rule rule = {.given = true, .shares = {40, 20, 40}, .negatives = 2};
    const int64_t before = d->adjacency.indptr[d->vertices];
    if (sl_links_given(&d->links))
        return;
    if (sl_dataset_split_links(d, &rule)) {
        sl_error(SL_OK, "%s", ""); /* a small graph may refuse, but it was read */
        return;
    }
    const struct sl_npy *const val = &d->links.pairs[SL_SPLIT_VAL], *const test =
                                                                        &d->links
                                                                             .pairs[SL_SPLIT_TEST];
    const int64_t drawn = (val->data ? val->shape[0] : 0) + (test->data ? test->shape[0] : 0);
    if (d->adjacency.indptr[d->vertices] + drawn > before)
        WRONG("%lld links of %lld entries stay there", (long long)drawn, (long long)before);
}

static void check_dataset(const struct sl_dataset *d)
{
    check_csr(&d->adjacency, d->vertices, d->vertices, d->relations == 0, "adjacency");
    check_edges(d);
    if (d->feature_form == SL_FEATURES_CSR)
        check_csr(&d->features_csr, d->vertices, d->features, 1, "features");
    const int64_t dense = d->feature_form == SL_FEATURES_DENSE ? d->vertices * d->features : 0;
    for (int64_t k = 0; k < dense; k++)
        if (!isfinite(d->features_dense[k]))
            WRONG("feature %lld", (long long)k);
    for (int64_t v = 0; d->labels && v < d->vertices; v++)
        if (d->labels[v] < -1 || d->labels[v] >= d->classes)
            WRONG("label %lld", (long long)v);
    check_splits(d);
    check_links(d);
}

/* Small graphs are written in another format and read again. */
static void write_again(const struct sl_dataset *d)
{
    static const char *const ends[] = {".npz", ".mtx", ".graph"};
    char path[96];
    if (d->vertices < 2 || d->vertices > 2000 || mode >> 6 >= 3)
        return;
    snprintf(path, sizeof path, "%s%s", folder, ends[mode >> 6]);
    if (!sl_dataset_write_as(d, path)) {
        struct sl_dataset again;
        if (sl_dataset_open(path, &again))
            WRONG("written, but not read: %s", sl_error_message());
        if (again.vertices != d->vertices)
            WRONG("%lld vertices are written, %lld read", (long long)d->vertices,
                  (long long)again.vertices);
        check_dataset(&again);
        sl_dataset_close(&again);
    }
    unlink(path);
}

static int read_dataset(const char *path)
{
    struct sl_dataset d;
    struct sl_read_options options = {.symmetrize = (mode & 1) * SL_SYMMETRIZE_MAX,
                                      .reverse = mode >> 1 & 1,
                                      .large_file = mode >> 2 & 1};
    int rc = sl_dataset_open_with(path, &options, &d);
    if (rc == SL_ERR_USAGE)
        WRONG("refused with options of every format: %s", sl_error_message());
    if (!rc) {
        check_dataset(&d);
        if (!(mode >> 3 & 1)) {
            draw_links(&d);
            check_dataset(&d);
        }
        write_again(&d);
    }
    sl_dataset_close(&d);
    return rc;
}

/* With the options of edge lists. */
static int read_edges(const char *path)
{
    struct sl_dataset d;
    struct sl_read_options options = {.symmetrize = mode & 3,
                                      .large_file = mode >> 2 & 1,
                                      .weights = (mode >> 3 & 3) % 3,
                                      .count_duplicates = mode >> 5 & 1,
                                      .first_vertex = mode >> 6 & 1,
                                      .edge_types = mode >> 7 ? "r" : NULL};
    const int rc = sl_dataset_open_with(path, &options, &d);
    if (!rc)
        check_dataset(&d);
    sl_dataset_close(&d);
    return rc;
}

static int read_tables(const char *path)
{
    struct sl_dataset d;
    struct sl_read_options options = {.symmetrize = mode & 1,
                                      .label_separator = mode & 2 ? ';' : 0,
                                      .label = mode & 4 ? "c" : NULL,
                                      .categorical = mode & 8 ? "c" : NULL,
                                      .empty_means = mode & 16};
    const int rc = sl_dataset_open_with(path, &options, &d);
    if (!rc)
        check_dataset(&d);
    sl_dataset_close(&d);
    return rc;
}

static int read_npy(const char *path)
{
    struct sl_block *blocks = NULL;
    struct sl_npy npy;
    int rc = sl_npy_map(path, &blocks, &npy);
    const int64_t count = rc ? 0 : npy.count < 1000 ? npy.count : 1000;
    char text[4096];
    for (int64_t k = 0; k < count; k++)
        if (!sl_npy_is_text(&npy)) {
            sl_npy_get(&npy, k);
            sl_npy_integer(&npy, k);
        } else if (npy.item_bytes < sizeof text)
            sl_npy_text(&npy, k, text);
    if (!rc) {
        const void *items;
        rc = sl_npy_take(&npy, mode % 3, 0, npy.count, &blocks, &items);
    }
    sl_block_free_all(&blocks);
    return rc;
}

static int read_config(const char *path)
{
    struct sl_config config = {0};
    bool given[SL_MOST_OPTIONS] = {0};
    int rc = sl_config_defaults(&config);
    if (!rc)
        rc = sl_config_set_text(&config.files.config, path);
    if (!rc)
        rc = sl_config_read_file(&config, given);
    if (!rc)
        rc = sl_config_check_given(&config, given);
    if (!rc)
        rc = sl_config_check(&config);
    sl_options_free(sl_config_options, &config);
    return rc;
}

static int read_checkpoint(const char *path)
{
    struct sl_checkpoint checkpoint;
    struct sl_config config = {0};
    int rc = sl_checkpoint_read(path, &checkpoint);
    for (int t = 0; !rc && t < checkpoint.count; t++)
        for (int64_t k = 0; k < checkpoint.tensors[t].rows * checkpoint.tensors[t].cols; k++)
            if (!isfinite(checkpoint.tensors[t].data[k]))
                WRONG("tensor %s, number %lld", checkpoint.tensors[t].name, (long long)k);
    const json_t *options = rc ? NULL : json_object_get(checkpoint.description, "configuration");
    if (options && !sl_config_defaults(&config)) {
        rc = sl_options_from_json(sl_config_options, &config, options, NULL, path);
        if (!rc)
            rc = sl_config_check(&config);
    }
    sl_options_free(sl_config_options, &config);
    const bool has_program = json_object_get(checkpoint.description, "forward");
    sl_checkpoint_free(&checkpoint);
    if (!rc && has_program) {
        struct sl_bound bound;
        rc = sl_bound_read(&bound, path);
        sl_bound_free(&bound);
    }
    return rc;
}

static int read_parts(const char *path)
{
    struct sl_parts parts;
    char file[96];
    snprintf(file, sizeof file, "%s/f.npy", path);
    int rc = sl_parts_open(file, &parts);
    if (!rc)
        rc = sl_parts_check(&parts, file);
    sl_parts_close(&parts);
    return rc;
}

static int read_machine(const char *path)
{
    struct sl_rates rates;
    return sl_rates_read(path, &rates);
}

static int read_log(const char *path)
{
    char log[96], trace[96], page[96];
    struct sl_logged_run run;
    struct sl_verify verify;
    snprintf(log, sizeof log, "%s/f.jsonl", path);
    snprintf(trace, sizeof trace, "%s/f.trace", path);
    snprintf(page, sizeof page, "%s/page", path);
    int rc = sl_logged_run_read(log, mode & 1 ? trace : NULL, &run);
    sl_logged_run_kept(&run);
    if (!rc)
        rc = sl_page_write(&run, 1, page);
    sl_logged_run_free(&run);
    unlink(page);
    if (!rc) {
        rc = sl_verify_read(&verify, log);
        sl_verify_close(&verify);
    }
    return rc;
}

static int read_epoch_table(const char *path)
{
    FILE *file = fopen(path, "a");
    const int rc = sl_epoch_table_check(path);
    if (!rc)
        sl_epoch_table_cut(file, path, mode);
    fclose(file);
    return rc;
}

/* The measurements of a machine, which nobody but the user writes: no sentence is promised. */
static int read_remembered(const char *path)
{
    setenv("XDG_CACHE_HOME", path, 1);
    struct sl_rates rates;
    sl_rates_of_machine(2, 1, 1 << 20, &rates);
    sl_rates_remembered_link();
    return 0;
}

/* In the place of core/program.c: a gnuplot that draws nothing, at once. */
int sl_program_probe(const char *name, const char *task, const char *package)
{
    (void)name, (void)task, (void)package;
    return 0;
}

int sl_program_run(char *const *arguments, int seconds, char **text)
{
    (void)arguments, (void)seconds;
    *text = strdup("<svg></svg>");
    return *text ? 0 : SL_ERR_SYSTEM;
}

/* ---- The readers ---- */

/* Files of an input, or arrays of an archive: "FILE:ARRAY". A single file is the whole input. */
static const char *const npz[] = {"f.npz", NULL}, *const matlab[] = {"f.mat", NULL},
                         *const matrix_market[] = {"f.mtx", NULL},
                         *const metis_graph[] = {"f.graph", NULL},
                         *const edge_list[] = {"f.txt", NULL};
static const char *const ogb[] = {
    "raw/num-node-list.csv", "raw/num-edge-list.csv", "raw/edge.csv",
    "raw/node-feat.csv",     "raw/node-label.csv",    "split/time/train.csv",
    "split/time/valid.csv",  "split/time/test.csv",   NULL};
static const char *const ogb_typed[] = {"raw/num-node-dict.csv",
                                        "raw/triplet-type-list.csv",
                                        "raw/relations/a___w___p/edge.csv",
                                        "raw/relations/a___w___p/num-edge-list.csv",
                                        "raw/node-feat/p/node-feat.csv",
                                        "raw/node-label/p/node-label.csv",
                                        "split/time/p/train.csv",
                                        "split/time/p/valid.csv",
                                        "split/time/p/test.csv",
                                        NULL};
static const char *const ogb_binary[] = {
    "raw/data.npz:edge_index",     "raw/data.npz:node_feat",        "raw/data.npz:num_nodes_list",
    "raw/data.npz:num_edges_list", "raw/node-label.npz:node_label", "split/time/train.csv",
    "split/time/valid.csv",        "split/time/test.csv",           NULL};
static const char *const graphsaint[] = {"adj_full.npz:data",
                                         "adj_full.npz:indices",
                                         "adj_full.npz:indptr",
                                         "adj_full.npz:shape",
                                         "adj_full.npz:format",
                                         "feats.npy",
                                         "class_map.json",
                                         "role.json",
                                         NULL};
static const char *const tables[] = {"edges.csv", "nodes.csv", "labels.csv", "features.txt",
                                     "train.csv", "val.csv",   "test.csv",   NULL};
static const char *const relations[] = {
    "relations/a.csv", "relations/b.npy", "relations/c.csv", "labels.csv",
    "train.csv",       "meta.json",       "labels.npy",      NULL};

static const char *const archive[] = {"f.npz:adj_data",
                                      "f.npz:adj_indices",
                                      "f.npz:adj_indptr",
                                      "f.npz:adj_shape",
                                      "f.npz:attr_data",
                                      "f.npz:attr_indices",
                                      "f.npz:attr_indptr",
                                      "f.npz:attr_shape",
                                      "f.npz:attr_matrix",
                                      "f.npz:labels",
                                      "f.npz:train_masks",
                                      "f.npz:val_masks",
                                      "f.npz:test_masks",
                                      "f.npz:data",
                                      "f.npz:indices",
                                      "f.npz:indptr",
                                      "f.npz:row",
                                      "f.npz:col",
                                      "f.npz:shape",
                                      "f.npz:format",
                                      "f.npz:edges",
                                      "f.npz:directed",
                                      "f.npz:node_features",
                                      "f.npz:node_labels",
                                      "f.npz:adj_matrix.data",
                                      "f.npz:adj_matrix.indices",
                                      "f.npz:adj_matrix.indptr",
                                      "f.npz:adj_matrix.shape",
                                      NULL};
static const char *const directory[] = {"meta.json",
                                        "indptr.npy",
                                        "indices.npy",
                                        "weights.npy",
                                        "features.npy",
                                        "features_indptr.npy",
                                        "features_indices.npy",
                                        "features_data.npy",
                                        "labels.npy",
                                        "train_idx.npy",
                                        "val_idx.npy",
                                        "test_idx.npy",
                                        "train_mask.npy",
                                        "vertex_ids.npy",
                                        "original_ids.npy",
                                        "edge_features.npy",
                                        "edge_types.npy",
                                        "val_links.npy",
                                        "val_negatives.npy",
                                        "test_links.npy",
                                        "test_negatives.npy",
                                        NULL};
static const char *const
    compressed[] = {"f.txt.gz", NULL},
    *const unnamed[] = {"f", NULL}, *const npy[] = {"f.npy", NULL},
    *const toml[] = {"f.toml", NULL}, *const json[] = {"f.json", NULL},
    *const checkpoint[] = {"f.ckpt", NULL}, *const parts[] = {"f.npy", "f.json", NULL},
    *const log_files[] = {"f.jsonl", "f.trace", NULL}, *const epoch_table[] = {"f.csv", NULL},
    *const remembered[] = {"starling/machine.json", "starling/link.json", NULL};

/* A format without an array of its name above does not compile. */
#define read_npz           read_dataset
#define read_matlab        read_dataset
#define read_matrix_market read_dataset
#define read_metis_graph   read_dataset
#define read_edge_list     read_edges
#define read_ogb           read_dataset
#define read_ogb_typed     read_dataset
#define read_ogb_binary    read_dataset
#define read_graphsaint    read_dataset
#define FORMAT(id)         {#id, id, read_##id},

static const struct reader {
    const char *name, *const *pieces;
    int (*read)(const char *path); /* of the file, or of the folder of several */
} readers[] = {SL_FORMATS(FORMAT){"archive", archive, read_dataset},
               {"directory", directory, read_dataset},
               {"relations", relations, read_edges},
               {"compressed", compressed, read_edges},
               {"unnamed", unnamed, read_dataset},
               {"npy", npy, read_npy},
               {"toml", toml, read_config},
               {"json", json, read_config},
               {"checkpoint", checkpoint, read_checkpoint},
               {"parts", parts, read_parts},
               {"machine", json, read_machine},
               {"remembered", remembered, read_remembered},
               {"log", log_files, read_log},
               {"epoch_table", epoch_table, read_epoch_table},
               {NULL, NULL, NULL}};

static const struct reader *reader;

void readers_list(void)
{
    for (const struct reader *r = readers; r->name; r++) {
        printf("%s", r->name);
        for (const char *const *piece = r->pieces; *piece; piece++)
            printf(" %s", *piece);
        putchar('\n');
    }
}

bool readers_choose(const char *name)
{
    for (reader = readers; reader->name && strcmp(reader->name, name) != 0;)
        reader++;
    return reader->name != NULL;
}

/* ---- Files ---- */

/* FOLDER/FILE of a piece, without the array. */
static void path_of(const char *piece, char path[160])
{
    snprintf(path, 160, "%s/%.*s", folder, (int)strcspn(piece, ":"), piece);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size)
        WRONG("%s: %s", path, strerror(errno));
    close(file);
}

/* The archives that pieces are added to; they are written when all pieces are placed. */
static struct {
    char path[160];
    zip_t *zip;
} archives[4];

static zip_t *archive_of(const char *path)
{
    size_t a = 0;
    while (archives[a].zip && strcmp(archives[a].path, path) != 0)
        a++;
    if (!archives[a].zip) {
        snprintf(archives[a].path, sizeof archives[a].path, "%s", path);
        archives[a].zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    }
    return archives[a].zip;
}

static void add_to_archive(const char *path, const char *array, const void *bytes, size_t size)
{
    char name[80];
    zip_t *zip = archive_of(path);
    snprintf(name, sizeof name, "%s.npy", array);
    zip_source_t *source = zip ? zip_source_buffer(zip, bytes, size, 0) : NULL;
    const zip_int64_t at = source ? zip_file_add(zip, name, source, ZIP_FL_OVERWRITE) : -1;
    if (at < 0 || zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0))
        WRONG("%s: cannot add %s", path, name);
}

static void write_archives(void)
{
    for (size_t a = 0; archives[a].zip; a++) {
        if (zip_close(archives[a].zip))
            WRONG("%s: cannot write", archives[a].path);
        archives[a].zip = NULL;
    }
}

static void place_piece(const char *piece, const void *bytes, size_t size)
{
    char path[160];
    path_of(piece, path);
    if (strchr(piece, ':'))
        add_to_archive(path, strchr(piece, ':') + 1, bytes, size);
    else
        write_file(path, bytes, size);
}

static const uint8_t *next_piece(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 3 && (at[0] != 0xF5 || at[1] != 0xF6))
        at++;
    return end - at >= 3 ? at : end;
}

static void place_pieces(const uint8_t *at, const uint8_t *end)
{
    size_t count = 0;
    while (reader->pieces[count])
        count++;
    if (count == 1) {
        place_piece(reader->pieces[0], at, (size_t)(end - at));
        return;
    }
    for (at = next_piece(at, end); at != end;) {
        const uint8_t *next = next_piece(at + 3, end);
        place_piece(reader->pieces[at[2] % count], at + 3, (size_t)(next - at - 3));
        at = next;
    }
    write_archives();
}

static void make_folders(const char *piece)
{
    char path[160];
    path_of(piece, path);
    for (char *slash = path + strlen(folder); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void remove_pieces(void)
{
    char path[160];
    for (const char *const *piece = reader->pieces; *piece; piece++) {
        path_of(*piece, path);
        unlink(path);
    }
}

/* ---- An input ---- */

static void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command))
        perror(folder);
}

static void start(void)
{
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(folder, sizeof folder, "%s/starling-fuzz-XXXXXX", base);
    if (!mkdtemp(folder))
        WRONG("%s: %s", folder, strerror(errno));
    atexit(remove_folder);
    sl_log_enable(false);
    if (__sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[160];
    if (!*folder)
        start();
    if (!reader && !readers_choose(getenv("SL_FUZZ_READER") ? getenv("SL_FUZZ_READER") : ""))
        WRONG("SL_FUZZ_READER names no reader");
    for (const char *const *piece = reader->pieces; *piece; piece++)
        make_folders(*piece);
    mode = size ? data[0] : 0;
    place_pieces(data + (size > 0), data + size);
    if (reader->pieces[1])
        snprintf(path, sizeof path, "%s", folder);
    else
        path_of(reader->pieces[0], path);
    const long long before = atomic_load(&held);
    atomic_store(&most_held, before);
    sl_error(SL_OK, "%s", "");
    if (reader->read(path) && !*sl_error_message())
        WRONG("an error without a sentence");
    if (atomic_load(&most_held) - before > (long long)(TIMES * size + ALLOWANCE))
        WRONG("%lld bytes of memory for %zu bytes of input", atomic_load(&most_held) - before,
              size);
    remove_pieces();
    return 0;
}
