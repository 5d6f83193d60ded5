#include "data/split_rule.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/number.h"

/* Read a decimal number that a slash or the end follows; move *text past the slash. */
static bool take_number(const char **text, double *value)
{
    char *end;
    const size_t length = strspn(*text, ".0123456789");
    *value = sl_number_read(*text, &end);
    if (length == 0 || end != *text + length || (*end != '/' && *end != '\0'))
        return false;
    *text = end + (*end == '/');
    return true;
}

static bool is_count(double value)
{
    return value == floor(value) && value <= 1e9;
}

bool sl_split_rule_read(const char *text, struct sl_split_rule *out)
{
    double number[3] = {0.0, 0.0, 0.0};
    *out = (struct sl_split_rule){.seed = 0};
    if (!text)
        return true;
    const char *at = text;
    bool good = take_number(&at, &number[0]) && take_number(&at, &number[1]) && number[0] > 0.0;
    out->given = true;
    out->per_class = good && strcmp(at, "rest") == 0;
    if (out->per_class)
        good = is_count(number[0]) && is_count(number[1]);
    else
        good = good && take_number(&at, &number[2]) && *at == '\0' && at[-1] != '/' &&
               number[0] + number[1] + number[2] <= 100.0 + 1e-9; /* 60.1 + 32.2 + 7.7 */
    for (int s = 0; good && s < 2; s++)
        out->counts[s] = (int64_t)number[s];
    memcpy(out->shares, number, sizeof number);
    return good;
}

int sl_split_rule_parse(const char *text, int64_t seed, struct sl_split_rule *out)
{
    const bool reads = sl_split_rule_read(text, out);
    out->seed = (uint64_t)seed;
    return reads ? SL_OK : sl_error(SL_ERR_USAGE, "--split %s: expected " SL_SPLIT_RULE_FORM, text);
}

static int64_t at_most(int64_t count, int64_t size)
{
    return count < size ? count : size;
}

void sl_split_rule_cut(const struct sl_split_rule *rule, int64_t size, int64_t cut[3])
{
    double share = 0.0;
    for (int s = 0; s < 3; s++) {
        share += rule->shares[s];
        cut[s] = at_most((int64_t)floor((double)size * share / 100.0 + 0.5), size);
    }
    if (rule->per_class) {
        cut[0] = at_most(rule->counts[0], size);
        cut[1] = at_most(rule->counts[0] + rule->counts[1], size);
        cut[2] = size;
    }
}
