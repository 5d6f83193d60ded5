/* Memory in a file, for arrays that are larger than the memory: pages go to the disk and come back
 * as they are needed. The file has no name, and goes with the process. */
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

/* Return the next `bytes`, 64-byte aligned; NULL where they are not there. Each call takes up to 63
 * more. */
void *sl_mapped_take(struct sl_mapped *mapped, size_t bytes);

void sl_mapped_close(struct sl_mapped *mapped);

#endif
