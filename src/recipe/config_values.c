/* Options whose text stands for numbers. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/vertex_cut.h"
#include "recipe/config.h"

bool sl_config_parse_delay(const char *text, int *delay)
{
    char *end;
    if (strcmp(text, "0c") == 0) {
        *delay = SL_DELAY_NEVER;
        return true;
    }
    if (strncmp(text, "cd-", 3) != 0 || text[3] < '0' || text[3] > '9')
        return false;
    const long epochs = strtol(text + 3, &end, 10);
    *delay = (int)epochs;
    return !*end && epochs <= SL_MOST_DELAY;
}

int sl_config_delay(const struct sl_config *config)
{
    int delay = SL_DELAY_EXACT;
    sl_config_parse_delay(config->delay, &delay);
    return delay;
}

bool sl_config_parse_recompute(const char *text, int *blocks)
{
    enum { MOST = 1000 };
    char *end;
    *blocks = strcmp(text, "auto") == 0 ? -1 : 0;
    if (*blocks || strcmp(text, "none") == 0)
        return true;
    const long count = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : 0;
    *blocks = (int)count;
    return count >= 2 && count <= MOST && !*end;
}

int sl_config_recompute(const struct sl_config *config)
{
    int blocks = 0;
    sl_config_parse_recompute(config->recompute, &blocks);
    return blocks;
}

int sl_config_trace_epochs(const struct sl_config *config, int64_t *first, int64_t *last)
{
    const char *text = config->trace_epochs;
    char *end;
    if (!config->trace)
        return sl_error(SL_ERR_USAGE, "--trace-epochs %s: expected --trace FILE with it", text);
    errno = 0;
    *first = *last = strtoll(text, &end, 10);
    const bool two = *end == '-' && isdigit((unsigned char)end[1]);
    if (two)
        *last = strtoll(end + 1, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno == ERANGE || *first < 1 ||
        *last < *first)
        return sl_error(
            SL_ERR_USAGE,
            "--trace-epochs %s: expected an epoch, or the first and the last one: 10-12", text);
    return 0;
}
