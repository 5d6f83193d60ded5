/* Rules that draw splits in place of stored ones: --split. */
#ifndef SL_DATA_SPLIT_RULE_H
#define SL_DATA_SPLIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct sl_split_rule {
    bool given;        /* splits are drawn; else the dataset's own splits are read */
    bool per_class;    /* counts of each class, and the rest for the test; else shares */
    int64_t counts[2]; /* vertices of each class to train and to validate on */
    double shares[3];  /* per cent of the labelled vertices, to train, validate and test on */
    uint64_t seed;
};

#define SL_SPLIT_RULE_FORM "numbers per class as 20/30/rest, or per cent as 60/20/20"

/* Read a rule, with seed 0; NULL: no rule. Return whether the text is a rule. */
bool sl_split_rule_read(const char *text, struct sl_split_rule *out);

/* Read a rule with a seed. SL_ERR_USAGE: the text is no rule. */
int sl_split_rule_parse(const char *text, int64_t seed, struct sl_split_rule *out);

/* Cut a group of `size` vertices in random order: vertices before cut[0] are for training, then
 * those before cut[1] for validation, and those before cut[2] for the test. */
void sl_split_rule_cut(const struct sl_split_rule *rule, int64_t size, int64_t cut[3]);

#endif
