/* Splits that are drawn, not read: --split. */
#ifndef SL_DATA_SPLIT_RULE_H
#define SL_DATA_SPLIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct sl_split_rule {
    bool given;        /* else the dataset's own splits are read */
    bool per_class;    /* counts of each class, and the rest to test on; else shares */
    int64_t counts[2]; /* to train and to validate on */
    double shares[3];  /* per cent of the labelled vertices, to train, validate and test on */
    uint64_t seed;
};

/* "20/30/rest" per class, or "60/20/20" per cent; NULL: no rule. SL_ERR_USAGE. */
int sl_split_rule_parse(const char *text, int64_t seed, struct sl_split_rule *out);

/* Of a group of `size` vertices in random order, those before cut[0] are for training, those before
 * cut[1] for validation, those before cut[2] for the test. */
void sl_split_rule_cut(const struct sl_split_rule *rule, int64_t size, int64_t cut[3]);

#endif
