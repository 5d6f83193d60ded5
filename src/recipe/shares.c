#include "recipe/shares.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

bool sl_shares_given(const struct sl_config *config)
{
    return strcmp(config->submodel_share, "equal") != 0 &&
           strcmp(config->submodel_share, "auto") != 0;
}

int sl_shares_parse(const struct sl_config *config, int64_t *share)
{
    enum { MOST = 1000000 };
    const char *text = config->submodel_share;
    const bool given = sl_shares_given(config);
    for (int64_t p = 0; p < config->submodels; p++) {
        char *end = NULL;
        share[p] = given ? strtoll(text, &end, 10) : 1;
        const char after = p + 1 < config->submodels ? ',' : '\0';
        if (given && (end == text || share[p] < 1 || share[p] > MOST || *end != after))
            return sl_error(SL_ERR_USAGE,
                            "--submodel-share %s: expected equal, auto, or %lld numbers from 1 to "
                            "%d with commas between them",
                            config->submodel_share, (long long)config->submodels, MOST);
        text = given ? end + 1 : text;
    }
    return 0;
}
