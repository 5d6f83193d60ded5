/* The work that `starling bench machine` times, on each thread: streams and dense products of
 * bench/reference.h, a tall product, sparse features, the draws of dropout, and random rows. A
 * thread works on its own share of every array, which it was the first to touch. Only random rows
 * come from a whole array. */
#ifndef SL_BENCH_MACHINE_WORK_H
#define SL_BENCH_MACHINE_WORK_H

#include <stdbool.h>

#include "bench/reference.h"
#include "bench/team.h"

/* Sizes of a thread's work: a tall product (rows, SL_TALL_K) x (SL_TALL_K, SL_TALL_N), and sparse
 * features with SL_FEATURE_ENTRIES entries times SL_TALL_N columns. */
enum { SL_TALL_K = 256, SL_TALL_N = 64, SL_FEATURE_ENTRIES = 4096 * 64 };

struct sl_machine_work {
    struct sl_team *team;
    int threads;
    int64_t tall_rows; /* rows of a thread's tall product */
    struct sl_reference reference;
    float *table;                         /* an array as in `reference`, but without huge pages */
    struct sl_machine_operands *operands; // (threads)
};

enum sl_pages { SL_HUGE_PAGES, SL_SMALL_PAGES };

/* A measurement: work for a number of threads. */
struct sl_machine_task {
    struct sl_machine_work *on;
    void (*work)(const struct sl_machine_task *task, int index); /* one of sl_work_… */
    const char *measure;
    int threads;
    enum sl_reference_kind kind;
    double amount;    /* bytes or flops of one run over all threads */
    const char *rate; /* "bytes_per_second" or "flops_per_second" */
    int64_t width;    /* gathers: floats in a row */
    size_t table;     /* gathers: bytes of the table; 0: a whole array */
    enum sl_pages pages;
    bool prefetch;
    int64_t times;
};

/* Allocate the arrays of all work. `bytes`: bytes of each of four arrays; `rows`: rows of the tall
 * product over all threads. Return 0 or SL_ERR_SYSTEM; call sl_machine_work_destroy in either case.
 */
int sl_machine_work_create(struct sl_machine_work *work, size_t bytes, int64_t gemm_size,
                           int64_t rows);
void sl_machine_work_destroy(struct sl_machine_work *work);

/* Return how many rows a thread gathers in one run: all threads gather a quarter of an array. */
int64_t sl_machine_gathered_rows(const struct sl_machine_work *work, int64_t width);

/* Do a task's work on thread `index`. */
void sl_work_reference(const struct sl_machine_task *task, int index);
void sl_work_tall(const struct sl_machine_task *task, int index);
void sl_work_features(const struct sl_machine_task *task, int index);
void sl_work_draws(const struct sl_machine_task *task, int index);
void sl_work_gather(const struct sl_machine_task *task, int index);

#endif
