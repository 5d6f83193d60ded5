/* Choose the kernel that multiplies a sparse tile on a GPU: ours or cuSPARSE's. The choice depends
 * on the tile's shape and on earlier measurements, never on the times of tasks in this run. The two
 * kernels add in different orders, and a run must give the same bits again. */
#ifndef SL_CORE_SPMM_CHOICE_H
#define SL_CORE_SPMM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/names.h"

#define SL_SPMM_KERNELS(ENTRY)          \
    ENTRY(SL_SPMM_OWN, "own")           \
    ENTRY(SL_SPMM_CUSPARSE, "cusparse") \
    ENTRY(SL_SPMM_FASTEST, "fastest")
enum sl_spmm_kernel { SL_SPMM_KERNELS(SL_CHOICE_CONSTANT) };

enum { SL_SPMM_MEASURED = 64 };

/* A measurement of tiles with `degree` entries per row, times rows of `width`: cuSPARSE's time over
 * ours. */
struct sl_spmm_measured {
    int64_t width;
    double degree, times;
};

struct sl_spmm_choice {
    enum sl_spmm_kernel kernel;
    int64_t room;      /* bytes of a GPU's memory for what cuSPARSE keeps of tiles */
    int64_t taken;     /* bytes of `room` that are reserved */
    void *kept;        /* needs that were reserved or refused, a tree of search.h */
    int64_t most_ones; /* entries of the largest tile without values */
    int64_t products;  /* products by cuSPARSE submitted so far */
    int count;
    struct sl_spmm_measured measured[SL_SPMM_MEASURED];
};

/* Read the measurements of `starling bench spmm --device cuda --remember` on this machine; perhaps
 * there are none. */
void sl_spmm_choice_read(struct sl_spmm_choice *choice);

/* Remember all of `count` measurements that have a ratio, in place of older measurements of the
 * same shapes. Return 0, SL_ERR_SYSTEM, or SL_ERR_USAGE where no measurement has a ratio. */
int sl_spmm_choice_remember(const struct sl_spmm_measured *measured, int count);

/* Return whether cuSPARSE is to multiply a tile: always, never, or (fastest) where it was faster in
 * the nearest measurement. A measurement counts within a factor of two in both width and degree. */
bool sl_spmm_choice_wants(const struct sl_spmm_choice *choice, int64_t rows, int64_t nnz,
                          int64_t width);

/* Memory that cuSPARSE keeps on a GPU for a tile, found by its tag: for products of one width, or
 * of all (0). */
struct sl_spmm_need {
    int64_t tag, width;
    int64_t bytes;
};

/* Reserve room for all needs in 1/sharers of a GPU's room, or for none; return whether there is
 * room. Reserved needs stay reserved and refused needs stay refused: a product has one kernel in a
 * run. */
bool sl_spmm_choice_reserve(struct sl_spmm_choice *choice, int sharers, int count,
                            const struct sl_spmm_need *need);

/* Forget all reservations, refusals and counts, when a run begins or has ended. */
void sl_spmm_choice_reset(struct sl_spmm_choice *choice);

#endif
