#include "data/partition/vertex_parts.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <metis.h>

#include "core/error.h"
#include "core/free_memory.h"
#include "core/rng.h"
#include "core/stop.h"
#include "data/block.h"

void sl_vertex_parts_random(int64_t vertices, int parts, uint64_t seed, int32_t *part)
{
    const uint64_t key = sl_rng_key(seed, SL_RNG_PARTS, 0, 0);
    for (int64_t v = 0; v < vertices; v++)
        part[v] = (int32_t)(sl_rng_permute(key, (uint32_t)vertices, (uint32_t)v) % (uint32_t)parts);
}

/* ---- METIS ---- */

struct graph {
    idx_t vertices;
    idx_t *indptr;  // (vertices + 1)
    idx_t *indices; // (indptr[vertices]), without self-loops, which METIS does not take
    idx_t classes;
    idx_t *weights; // (vertices, classes), or NULL: all 1
    idx_t *part;    // (vertices)
};

int64_t sl_vertex_parts_bytes(int64_t vertices, int64_t entries)
{
    enum { OF_ENTRY = 52, OF_VERTEX = 64 };
    return (OF_ENTRY * entries + OF_VERTEX * vertices) * (int64_t)(sizeof(idx_t) / sizeof(int32_t));
}

int64_t sl_vertex_weight(int64_t entries, int64_t sum, int64_t most)
{
    const int64_t weight = (entries + SL_VERTEX_WORK) / (1 + sum / most);
    return weight > 0 ? weight : 1;
}

/* Copy a graph for METIS; `classes` 0: equal weights. */
static int copy_graph(const struct sl_csr *csr, int classes, const int64_t *cut,
                      struct sl_block **scratch, struct graph *out)
{
    const int64_t n = csr->rows, nnz = csr->indptr[n];
    const bool weighted = classes > 0;
    const int64_t sum = nnz + SL_VERTEX_WORK * n; /* METIS adds up the weights of all vertices */
    if ((idx_t)(n + nnz) != n + nnz)
        return sl_error(SL_ERR_DATA,
                        "METIS, built with %d-bit numbers, takes at most %" PRId64
                        " vertices and adjacency entries together, and the graph has %" PRId64,
                        IDXTYPEWIDTH, (int64_t)IDX_MAX, n + nnz);
    out->vertices = (idx_t)n;
    out->indptr = sl_block_array(scratch, n + 1, sizeof *out->indptr);
    out->indices = sl_block_array(scratch, nnz, sizeof *out->indices);
    out->part = sl_block_array(scratch, n, sizeof *out->part);
    out->classes = weighted ? classes : 1;
    out->weights = weighted ? sl_block_array(scratch, n * classes, sizeof *out->weights) : NULL;
    if (!out->indptr || !out->indices || !out->part || (weighted && !out->weights))
        return SL_ERR_SYSTEM;
    if (weighted)
        memset(out->weights, 0, (size_t)(n * classes) * sizeof *out->weights);
    idx_t kept = 0;
    for (int64_t v = 0, class = 0; v < n; v++) {
        out->indptr[v] = kept;
        for (int64_t k = csr->indptr[v]; k < csr->indptr[v + 1]; k++)
            if (csr->indices[k] != v)
                out->indices[kept++] = csr->indices[k];
        while (weighted && v >= cut[class + 1])
            class ++;
        if (weighted)
            out->weights[v * classes + class] =
                (idx_t)sl_vertex_weight(kept - out->indptr[v], sum, IDX_MAX);
    }
    out->indptr[n] = kept;
    return SL_OK;
}

/* The handler of SIGTERM, which METIS replaces, more than once in a cut. */
struct handler {
    struct sigaction own;
    atomic_bool over; /* METIS has returned */
};

/* Put the handler back whenever METIS has replaced it. */
static void *put_back(void *argument)
{
    struct handler *h = argument;
    const struct timespec pause = {.tv_nsec = 1000000};
    struct sigaction now;
    while (!atomic_load(&h->over)) {
        sigaction(SIGTERM, NULL, &now);
        if (now.sa_handler != h->own.sa_handler)
            sigaction(SIGTERM, &h->own, NULL);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Let METIS cut. METIS takes SIGTERM and SIGABRT for errors of its own, and may leave them blocked:
 * restore how they are handled. METIS' handler jumps out of any function, malloc among them, whose
 * lists it leaves broken. So another thread puts our handler of SIGTERM back within a millisecond.
 */
static int call_metis(struct graph *g, idx_t parts, idx_t *options)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* handlers are the process's */
    idx_t edges_cut;
    struct handler term = {.over = false};
    struct sigaction abortion;
    sigset_t mask;
    pthread_t thread;
    pthread_mutex_lock(&lock);
    sigaction(SIGTERM, NULL, &term.own);
    sigaction(SIGABRT, NULL, &abortion);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    const bool watched = pthread_create(&thread, NULL, put_back, &term) == 0;
    const int status =
        METIS_PartGraphKway(&g->vertices, &g->classes, g->indptr, g->indices, g->weights, NULL,
                            NULL, &parts, NULL, NULL, options, &edges_cut, g->part);
    atomic_store(&term.over, true);
    if (watched)
        pthread_join(thread, NULL);
    sigaction(SIGTERM, &term.own, NULL);
    sigaction(SIGABRT, &abortion, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Whether METIS had twice the memory that it takes. */
static bool had_memory(const struct graph *g)
{
    int64_t left[SL_MEMORY_BOUNDS], room = INT64_MAX;
    sl_free_memory("", left);
    for (int b = 0; b < SL_MEMORY_BOUNDS; b++)
        room = left[b] < room ? left[b] : room;
    return room > 2 * sl_vertex_parts_bytes(g->vertices, g->indptr[g->vertices]);
}

/* METIS gives one status where it gives up, lacks memory inside, or took a SIGTERM. With memory
 * left, it was a SIGTERM: a checked graph gives METIS no other reason. */
static int cut_graph(struct graph *g, idx_t parts, uint64_t seed)
{
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(seed & 0x7FFFFFFF);
    const int status = call_metis(g, parts, options);
    if (status == METIS_OK)
        return SL_OK;
    if (status == METIS_ERROR && had_memory(g))
        sl_stop_request();
    const int stopped = sl_stop_error();
    return stopped
               ? stopped
               : sl_error(SL_ERR_SYSTEM, "METIS cannot cut the graph into %" PRId64 " parts: %s",
                          (int64_t)parts,
                          status == METIS_ERROR_MEMORY ? "out of memory"
                                                       : "it gave up, has no memory, or SIGTERM "
                                                         "came");
}

static int find_parts(const struct sl_csr *graph, int classes, const int64_t *cut, int parts,
                      uint64_t seed, int32_t *part)
{
    struct sl_block *scratch = NULL;
    struct graph g = {0};
    int rc = copy_graph(graph, classes, cut, &scratch, &g);
    /* Skip METIS where there is nothing to choose: it does not always answer then. */
    const bool trivial = rc || parts < 2 || parts >= g.vertices || g.indptr[g.vertices] == 0;
    if (!rc && !trivial)
        rc = cut_graph(&g, (idx_t)parts, seed);
    for (int64_t v = 0; !rc && v < graph->rows; v++)
        part[v] = trivial ? (int32_t)(v * parts / graph->rows) : (int32_t)g.part[v];
    sl_block_free_all(&scratch);
    return rc;
}

int sl_vertex_parts_metis(const struct sl_csr *graph, enum sl_vertex_weights weights, int parts,
                          uint64_t seed, int32_t *part)
{
    const int64_t all[] = {0, graph->rows};
    return find_parts(graph, weights == SL_VERTICES_BY_WORK, all, parts, seed, part);
}

int sl_vertex_parts_metis_classes(const struct sl_csr *graph, int classes, const int64_t *cut,
                                  int parts, uint64_t seed, int32_t *part)
{
    struct sl_block *scratch = NULL;
    int64_t *filled = sl_block_array(&scratch, (int64_t)classes + 1, sizeof *filled);
    int count = 0, rc = SL_ERR_SYSTEM;
    if (filled)
        filled[0] = cut[0];
    for (int c = 1; filled && c <= classes; c++)
        if (cut[c] > filled[count])
            filled[++count] = cut[c];
    if (filled)
        rc = find_parts(graph, count, filled, parts, seed, part);
    sl_block_free_all(&scratch);
    return rc;
}

/* ---- The report ---- */

double sl_parts_balance(const int64_t *load, int parts)
{
    int64_t sum = 0, most = 0;
    for (int p = 0; p < parts; p++) {
        sum += load[p];
        most = load[p] > most ? load[p] : most;
    }
    return sum > 0 ? (double)most * parts / (double)sum : 1.0;
}

struct counting {
    const struct sl_csr *graph;
    int parts;
    const int32_t *part;
    int64_t *vertices, *entries; // (parts)
    int64_t *end;                // (parts): end of the part's vertices in `member`
    int32_t *member;             // (rows): vertices, part after part
    int32_t *reader;             // (rows): last part that was found to read the vertex
};

static int prepare(struct counting *c, struct sl_block **scratch)
{
    const int64_t n = c->graph->rows;
    c->vertices = sl_block_array(scratch, c->parts, sizeof *c->vertices);
    c->entries = sl_block_array(scratch, c->parts, sizeof *c->entries);
    c->end = sl_block_array(scratch, c->parts, sizeof *c->end);
    c->member = sl_block_array(scratch, n, sizeof *c->member);
    c->reader = sl_block_array(scratch, n, sizeof *c->reader);
    if (!c->vertices || !c->entries || !c->end || !c->member || !c->reader)
        return SL_ERR_SYSTEM;
    memset(c->vertices, 0, (size_t)c->parts * sizeof *c->vertices);
    memset(c->entries, 0, (size_t)c->parts * sizeof *c->entries);
    memset(c->reader, -1, (size_t)n * sizeof *c->reader);
    for (int64_t v = 0; v < n; v++)
        c->vertices[c->part[v]]++;
    int64_t first = 0;
    for (int p = 0; p < c->parts; first += c->vertices[p++])
        c->end[p] = first;
    for (int64_t v = 0; v < n; v++)
        c->member[c->end[c->part[v]]++] = (int32_t)v;
    return SL_OK;
}

/* Count the entries of row v for its part. Add entries in other parts to *cut. Add their vertices
 * to *halo when the part reads them for the first time. */
static void count_row(struct counting *c, int32_t v, int64_t *cut, int64_t *halo)
{
    const int32_t here = c->part[v];
    c->entries[here]++; /* the loop of A + I */
    for (int64_t k = c->graph->indptr[v]; k < c->graph->indptr[v + 1]; k++) {
        const int32_t u = c->graph->indices[k];
        c->entries[here] += u != v;
        if (c->part[u] == here)
            continue;
        ++*cut;
        *halo += c->reader[u] != here;
        c->reader[u] = here;
    }
}

int sl_vertex_parts_report(const struct sl_csr *graph, int parts, const int32_t *part,
                           struct sl_vertex_parts_report *out)
{
    struct sl_block *scratch = NULL;
    struct counting c = {.graph = graph, .parts = parts, .part = part};
    const int64_t n = graph->rows;
    const int rc = prepare(&c, &scratch);
    int64_t cut_entries = 0, halo = 0, all = -n;
    for (int64_t m = 0; !rc && m < n; m++)
        count_row(&c, c.member[m], &cut_entries, &halo);
    for (int p = 0; !rc && p < parts; p++)
        all += c.entries[p];
    if (!rc)
        *out = (struct sl_vertex_parts_report){
            .cut = all > 0 ? (double)cut_entries / (double)all : 0.0,
            .vertex_balance = sl_parts_balance(c.vertices, parts),
            .entry_balance = sl_parts_balance(c.entries, parts),
            .halo = n > 0 ? (double)halo / (double)n : 0.0,
        };
    sl_block_free_all(&scratch);
    return rc;
}
