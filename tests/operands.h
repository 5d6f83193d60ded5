/* The common part of the tests of submissions (test_tasks*.c): operands, which are tiles with
 * copies for the kernel, and the comparison afterwards.
 *
 * All bytes of all tiles of a task are compared: inputs, padding and rows that are not the task's
 * must stay as they were. Each tile has another row length. Of the tiles that a task overwrites
 * about half have no memory at first, and StarPU stops the program if they are read. With the last
 * shape, one tile at a time is held for reading while the task is submitted. If this tile changes
 * meanwhile, the codelet lacks a write mode.
 *
 * To test a new submission: make its operands with sl_operand_reals and sl_operand_blank, submit,
 * call the kernel on the copies, and give all operands to sl_settle; add a line to main. */
#ifndef SL_TESTS_OPERANDS_H
#define SL_TESTS_OPERANDS_H

#include "codelets/spmm.h"
#include "tests/kernels.h"

/* ---- Operands ---- */

struct sl_operand {
    union {
        struct sl_tile tile;
        struct sl_sparse_tile sparse; /* starts with its tile */
    };
    void *copy;         // (tile.rows, tile.ld): for the kernel
    void *before;       // (tile.rows, tile.ld): as it was
    bool held;          /* for reading, since before the task */
    bool part;          /* of a matrix; the first tile's memory is that of all */
    int64_t free_rows;  /* at the end, in which a task on a GPU may leave anything */
    int64_t free_first; /* rows at the start, likewise */
    double gpu_error;   /* of such a task, where it is more than rounding */
    bool exact;         /* no numbers that round: a GPU leaves the same bits */
};

enum sl_type sl_some_type(void);

/* A tile that starts with `contents` (rows, ld), which it takes. */
struct sl_operand sl_operand_over(void *contents, int64_t rows, int64_t cols, int64_t ld,
                                  size_t size);

/* Finite numbers; the same with rows that far apart; `count` tiles of one matrix, the t-th with
 * rows[t] rows, whose copies are one matrix, too. */
struct sl_operand sl_operand_reals(int64_t rows, int64_t cols);
struct sl_operand sl_operand_reals_of_type(int64_t rows, int64_t cols, enum sl_type type);
struct sl_operand sl_operand_apart(int64_t rows, int64_t cols, int64_t ld, enum sl_type type);
void sl_operand_matrix(struct sl_operand *all, int count, const int64_t *rows, int64_t cols,
                       enum sl_type type);

/* Tiles that a task overwrites. */
struct sl_operand sl_operand_blank(int64_t rows, int64_t cols);
struct sl_operand sl_operand_blank_of_type(int64_t rows, int64_t cols, enum sl_type type);
struct sl_operand sl_operand_blank_metrics(void);

/* Make the row scales of a tile, and make one row of numbers. */
struct sl_operand sl_operand_scales(int64_t rows);
struct sl_operand sl_operand_doubles(int64_t count, const double *values);
struct sl_operand sl_operand_metrics(void);

/* A as a sparse tile that meets `span` dense ones; its copy is not used, since kernels can read A
 * itself. */
struct sl_operand sl_operand_packed(const struct sl_sparse *a, int span);

/* ---- Copies, for the kernel ---- */

struct sl_rows sl_copied_rows(const struct sl_operand *o); /* of either type */
float *sl_copied_row(const struct sl_operand *o, int64_t r);
const float *sl_copied_scale(const struct sl_operand *scales,
                             enum sl_row_scale scale); /* NULL: of none */
const uint32_t *sl_copied_vertices(const struct sl_operand *scales);
void sl_operand_copy(const struct sl_operand *x, struct sl_operand *y);

/* ---- Comparison ---- */

enum {
    SL_MOST_OPERANDS = 2 * SL_SPMM_PARTS + 6,
    SL_TASK_PAUSE = 2000 /* microseconds in which a worker starts a task */
};

/* After the task every tile is as its copy; frees the operands. All that follow, up to NULL. */
void sl_settle(const char *operation, ...);
void sl_settle_all(const char *operation, int count, struct sl_operand *const *all);

/* ---- Operations ---- */

struct sl_operation {
    void (*check)(int64_t rows, int64_t cols);
};

/* As a test of cmocka: over all shapes, then with each operand held. */
/* clang-format off */
#define SL_OPERATION(check) {#check, sl_operation_run, NULL, NULL, &(struct sl_operation){check}}
/* clang-format on */
void sl_operation_run(void **state);

/* Set-up of the group: CPU workers only, because those of a GPU need not give the same bits. */
int sl_operations_start(void **state);

#endif
