#include "core/error.h"
#include "data/partition/parallel_parts.h"

bool sl_parallel_parts_exist(void)
{
    return false;
}

int sl_parallel_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                      uint64_t seed, int32_t *part)
{
    (void)rt, (void)source, (void)parts, (void)seed, (void)part;
    return sl_error(SL_ERR_USAGE, "--partition ptscotch: this program was built without PT-Scotch "
                                  "(expected libptscotch-dev, or another partition)");
}
