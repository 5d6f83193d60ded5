/* The kernels of `starling bench kernels` and their operands. To add a kernel: its row in
 * kernel_rows.c, its plain loop in loops.c. */
#ifndef SL_BENCH_KERNELS_H
#define SL_BENCH_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "codelets/gine.h"
#include "codelets/links.h"
#include "codelets/pair.h"
#include "codelets/relations.h"

enum {
    SL_KERNEL_WIDTH = 1024, /* most columns */
    SL_KERNEL_BLOCKS = 80,  /* most blocks */
    SL_KERNEL_FEATURES = 8, /* of an entry of A and its transpose */
    SL_KERNEL_RELATIONS = 4,
};

/* Operands of attention. */
struct sl_kernel_attention {
    struct sl_attention attention;
    struct sl_floats_at projected, scores, gradient, closed, edge; /* see codelets/attention.h */
};

/* Operands of attention whose scores need both ends' rows: of GATv2 and of transformers. */
struct sl_kernel_pair {
    struct sl_pair sums, products;
    struct sl_floats_at vectors, source, target, gradient; /* see codelets/pair.h */
};

/* Operands of GINE. Sums of X and messages are odd multiples of 2^-7: no level rounds one to the
 * other side of 0. */
struct sl_kernel_gine {
    struct sl_sparse a, at;      /* A and its transpose, with features */
    struct sl_floats_at x, edge; // (rows, width), (features + 1, width)
};

/* Operands of relational graph convolutions, from `width` to `width` columns. */
struct sl_kernel_relations {
    struct sl_sparse a, at; /* A and its transpose, with relations and factors */
    struct sl_relations of;
};

/* Operands of pairs, with features of entries. */
struct sl_kernel_edges {
    struct sl_pair sums, products;
    struct sl_sparse a, at;
    struct sl_floats_at vectors, target, gradient;
};

/* Entries of A as links, from a row to a column, with values. */
struct sl_kernel_links {
    struct sl_link_rows dot, distmult, mlp; /* of H and G; weights are `weight` */
    const struct sl_scored_link *block;     // (1 + entries)
};

/* Results of all kernels. */
struct sl_kernel_results {
    float *z, *y, *v;
    uint16_t *half_z;
    int32_t *argmax;
    double *sums; // (2, ld), and at least 32
    struct sl_floats_at state, back;
    struct sl_floats_at edge, edge_back; /* of GINE (features + 1, width); of attention */
    struct sl_floats_at edge_rows; // (rows, …): a state with B, or [C | A], of codelets/pair.h
    struct sl_floats_at pair_edge_back; // (features, …): M
    const void *start;                  /* values of all results before a kernel runs */
    size_t result_bytes;                /* bytes of these results, which lie one after another */
    /* Large, so it lies apart: (SL_KERNEL_RELATIONS · width, width). */
    struct sl_floats_at weight_back;
    struct sl_scored_link *links; // (1 + entries): the values are scores
    int64_t most;                 /* numbers that all results have, at most */
};

/* The memory of operands and results. */
struct sl_kernel_room {
    int errors, blocks; /* failed allocations; blocks to free */
    struct {
        void *memory;
        size_t bytes;
    } block[SL_KERNEL_BLOCKS];
};

/* Operands that have an item for each row. */
struct sl_kernel_rows {
    const float *factor;            // (rows), positive
    const uint32_t *vertex, *index; // (rows): random numbers; a random order of the rows
    const int32_t *target;          // (rows, 2): class and split; all rows train
    const int32_t *values;          // (rows, 2 + width): label, split, values; all rows train
    const int32_t *chosen;          // (rows, width): row that each maximum comes from
};

/* Operands of all kernels. Matrices are (rows, width) with leading dimension `ld`, unless said
 * otherwise. Each row of A has as many entries, without values but with features. */
struct sl_kernel_work {
    int64_t rows, width, ld, entries;
    struct sl_sparse a, at;                // (rows, rows), and its transpose
    struct sl_sparse weighted;             // A with values
    const float *h, *g;                    /* numbers of both signs */
    const float *mask;                     /* relu's output, half of it 0 */
    const uint16_t *half_h;                /* H as bfloat16 */
    const float *weight, *bias, *variance; // (width), positive; rows of one matrix
    struct sl_kernel_rows row;
    struct sl_dropout half, some; /* dropout by 1 bit an element, by 16 bits */
    struct sl_kernel_attention gat;
    struct sl_kernel_pair pair;
    struct sl_kernel_gine gine;
    struct sl_kernel_relations relations;
    struct sl_kernel_edges edges;
    struct sl_kernel_links links;
    struct sl_kernel_results results;
    struct sl_kernel_room room;
};

/* Make operands with the same random numbers in each run: matrices with `ld` numbers a row, a graph
 * with `degree` <= rows neighbours for each vertex. Return 0 or SL_ERR_SYSTEM. Call
 * sl_kernel_work_destroy in either case; it takes zeros, too. */
int sl_kernel_work_create(struct sl_kernel_work *k, int64_t rows, int64_t degree, int64_t width,
                          int64_t ld);
void sl_kernel_work_destroy(struct sl_kernel_work *k);

/* Reset all results to the values before a kernel runs; of weight_back, a number of each row.
 * Scores of links become NaN. */
void sl_kernel_work_reset(const struct sl_kernel_work *k);

/* Write `results` (SL_RESULT_…) as numbers to TO, which has room for k->results.most numbers.
 * Return how many were written. */
int64_t sl_kernel_work_results(const struct sl_kernel_work *k, unsigned results, double *to);

typedef void sl_kernel_call(const struct sl_kernel_work *k);

/* Return the plain loop with a kernel's name, compiled for the level in force, or NULL. */
sl_kernel_call *sl_loop_find(const char *name);

/* Flags of the results that a kernel writes. */
enum {
    SL_RESULT_Z = 1,
    SL_RESULT_Y = 2,
    SL_RESULT_V = 4,
    SL_RESULT_HALF = 8,
    SL_RESULT_ARGMAX = 16,
    SL_RESULT_SUMS = 32,
    SL_RESULT_STATE = 64,
    SL_RESULT_BACK = 128,
    SL_RESULT_PAIR = 256,       /* source_back, in `back` */
    SL_RESULT_EDGE = 512,       /* edge_back */
    SL_RESULT_GINE_EDGE = 1024, /* edge */
    SL_RESULT_EDGES = 2048,     /* pair_edge_back */
    SL_RESULT_B = 4096,         /* a state with B, in edge_rows */
    SL_RESULT_A = 8192,         /* [C | A], in edge_rows */
    SL_RESULT_WEIGHT = 16384,   /* weight_back */
    SL_RESULT_LINKS = 32768,    /* values of `links` */
};

/* Bytes or operations of a kernel: for each element of a matrix, each entry of A, each element of
 * the rows that entries meet, each head of an entry, and each product of two numbers where the row
 * of each relation meets its weight. */
struct sl_kernel_amount {
    double element, entry, met, head, product;
};

/* Return the index of the first of `count` numbers where A and B differ, or -1. With `tolerance` 0,
 * numbers must have the same bits. Otherwise it bounds the difference, relative to the largest of
 * 1, B's number and the root mean square of B. */
int64_t sl_kernel_difference(int64_t count, const double *a, const double *b, double tolerance);

struct sl_kernel_row {
    const char *name, *what;
    sl_kernel_call *run;
    struct sl_kernel_amount bytes, flops;
    unsigned results;
    double tolerance; /* sl_kernel_difference's, to the plain loop and between levels */
    bool fuses;       /* it adds products: levels with FMA round differently */
};

/* All kernels. A NULL name ends the list. */
extern const struct sl_kernel_row sl_kernel_rows[];

#endif
