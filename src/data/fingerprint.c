#include "data/fingerprint.h"

bool sl_fingerprint_agree(struct sl_runtime *rt, uint64_t difference)
{
    int64_t sum = (int64_t)difference;
    sl_runtime_sum(rt, &sum, 1);
    return sum == 0;
}

void sl_fingerprint_narrow(struct sl_runtime *rt, int64_t range[2],
                           uint64_t (*difference)(const void *context), const void *context)
{
    while (range[1] - range[0] > 1) {
        const int64_t end = range[1];
        range[1] = (range[0] + end) / 2;
        if (sl_fingerprint_agree(rt, difference(context))) {
            range[0] = range[1];
            range[1] = end;
        }
    }
}
