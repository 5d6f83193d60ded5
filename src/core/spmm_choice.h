/* Whose kernel multiplies sparse tiles on a GPU: ours or cuSPARSE's. It depends on the tile's shape
 * and on what was measured before, never on the time that a task took in this run: the two add in
 * different orders, and a run is to give the same bits again. */
#ifndef SL_CORE_SPMM_CHOICE_H
#define SL_CORE_SPMM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum sl_spmm_kernel { SL_SPMM_OWN, SL_SPMM_CUSPARSE, SL_SPMM_FASTEST };

enum { SL_SPMM_MEASURED = 64 };

/* Tiles of `degree` entries per row, times rows of `width`: cuSPARSE's time over ours. */
struct sl_spmm_measured {
    int64_t width;
    double degree, times;
};

struct sl_spmm_choice {
    enum sl_spmm_kernel kernel;
    int64_t room; /* bytes of a GPU's memory that cuSPARSE's forms of tiles may still take */
    int count;
    struct sl_spmm_measured measured[SL_SPMM_MEASURED];
};

/* What `starling bench spmm --device cuda --remember` measured on this machine; perhaps nothing. */
void sl_spmm_choice_read(struct sl_spmm_choice *choice);

/* Remembers `count` measurements in place of those of the same shapes. SL_ERR_SYSTEM. */
int sl_spmm_choice_remember(const struct sl_spmm_measured *measured, int count);

/* Whether cuSPARSE is wanted for a tile: always or never, or where it was faster in the nearest
 * measurement, if that is within a factor of two in both width and degree. */
bool sl_spmm_choice_wants(const struct sl_spmm_choice *choice, int64_t rows, int64_t nnz,
                          int64_t width);

#endif
