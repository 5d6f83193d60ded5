/* Memory in a file, for arrays larger than the main memory: the system writes pages to the disk and
 * reads them back. The file has no name and disappears with the process. */
#ifndef SL_CORE_MAPPED_H
#define SL_CORE_MAPPED_H

#include <stddef.h>

struct sl_mapped {
    void *memory;
    size_t bytes, taken;
};

/* Make `bytes` of zeros in a file in `directory`. The disk has room for all of them: writing never
 * fails later. SL_ERR_SYSTEM names the directory, the size and the reason. */
int sl_mapped_open(struct sl_mapped *mapped, const char *directory, size_t bytes);

/* Return the next `bytes`, 64-byte aligned; NULL where too few are left. Alignment costs up to 63
 * bytes a call. */
void *sl_mapped_take(struct sl_mapped *mapped, size_t bytes);

void sl_mapped_close(struct sl_mapped *mapped);

#endif
