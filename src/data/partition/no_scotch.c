#include "core/error.h"
#include "data/partition/scotch.h"

bool sl_scotch_exists(void)
{
    return false;
}

int sl_scotch_partition(struct sl_runtime *rt, const struct sl_scotch_rows *rows, int parts,
                        uint64_t seed, int32_t *part)
{
    (void)rt, (void)rows, (void)parts, (void)seed, (void)part;
    return sl_error(SL_ERR_USAGE, "--partition ptscotch: this program was built without PT-Scotch "
                                  "(expected libptscotch-dev, or another partition)");
}
