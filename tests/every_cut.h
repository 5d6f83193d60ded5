/* Cuts of every_cut.c, and the bytes that the edges imply for them (every_cut_bytes.c). */
#ifndef SL_TESTS_EVERY_CUT_H
#define SL_TESTS_EVERY_CUT_H

#include "tests/every.h"

enum { LAYERS = 3 };

/* Which matrices are aggregated. */
enum order {
    GEMM,
    SPMM,
    KEPT,   /* the features once, GEMM first else */
    BLOCKS, /* of --hidden columns each, some of them again going back */
    HOPS,   /* of the classes' columns each */
    EDGES,  /* inputs of layers, forward and back */
    ENDS,   /* inputs of layers forward, gradients of their outputs back */
};

struct test_case {
    struct sl_every_case every; /* first */
    enum order order;
    bool largest; /* where elements come from travels, too: of a halo's gradients, of clones' states
                   */
    bool operands; /* the gradient needs the row's own H: bytes of a cover are not counted */
    int heads, hidden, out_heads; /* of attention: rows of codelets/attention.h */
    bool classifier;              /* all layers of attention are hidden ones */
    int sources; /* of attention whose rows are those of codelets/pair.h: K alone, or K and V */
    int blocks, recompute; /* of BLOCKS, --recompute; of HOPS */
    double late; /* trains with clones that meet late or never, too: how far losses may be off */
};

struct checking {
    struct sl_every *every;
    const struct test_case *c;
    const struct sl_dataset *data;
    char file[200], description[200]; /* for parts of edges */
};

/* Return the number of ranks. */
int sl_cut_ranks(const struct checking *k);

/* Call `visit` with every entry (row, column) of the adjacency, in order. */
void sl_cut_each_entry(const struct checking *k, void *context,
                       void (*visit)(void *context, int64_t entry, int64_t row, int64_t col));

/* Return `count` zeroed elements (free). */
void *sl_cut_array(int64_t count, size_t size);

/* Return the bytes that this rank receives in an epoch where `part` (vertices) says the rank of
 * each vertex: of a halo, and of a cover. */
int64_t sl_cut_halo_bytes(const struct checking *k, const int32_t *part);
int64_t sl_cut_cover_bytes(const struct checking *k, const int32_t *part);

/* Of a maximum on a symmetric graph, one cover serves both directions. Return the rows and results
 * of a minimum cover, and those that traffic was, or -1. */
int64_t sl_cut_cover_rows(const struct checking *k, const int32_t *part);
int64_t sl_cut_served(const struct checking *k, const struct sl_traffic *traffic);

/* Return whether the traffic of all ranks is of minimum covers of attention. All ranks call this.
 */
bool sl_cut_covers_attention(const struct checking *k, const int32_t *part,
                             const struct sl_traffic *traffic);

/* Return the bytes that all ranks receive where `part` (entries) says the rank of each edge. */
int64_t sl_cut_clone_bytes(const struct checking *k, const int32_t *part);

#endif
