/* Options whose text stands for numbers: the values, and how text and value become each other. */
#ifndef SL_RECIPE_VALUES_H
#define SL_RECIPE_VALUES_H

#include "core/options.h"
#include "data/select.h"
#include "data/split_rule.h"
#include "graphs/distribution.h"

/* --delay: an int, SL_DELAY_EXACT for cd-0, R for cd-R, SL_DELAY_NEVER for 0c. */
enum { SL_MOST_DELAY = 1000 }; /* epochs */
extern const struct sl_option_value sl_value_delay;

/* --recompute: an int, the blocks of which one output is kept; 0: all outputs are. */
enum { SL_RECOMPUTE_AUTO = -1 };
extern const struct sl_option_value sl_value_recompute;

/* --preload-hops: an int; 0: all hops. */
enum { SL_PRELOAD_ALL = 0, SL_PRELOAD_AUTO = -1 };
extern const struct sl_option_value sl_value_preload;

/* --max-hop: an int, SL_ALL_HOPS for all. */
enum { SL_NO_HOPS = -2 }; /* not given */
extern const struct sl_option_value sl_value_max_hop;

/* --groups: so many groups of `each` ranks, or the ranks of each node. */
struct sl_group_shape {
    bool given, servers;
    int groups, each;
};
extern const struct sl_option_value sl_value_groups;

/* --grid: a struct sl_grid; rows 0: none is given. */
extern const struct sl_option_value sl_value_grid;

/* A way to make batches: one row in values.c. */
struct sl_batches_kind {
    const char *name; /* NAME of --batches NAME:N,M */
    int numbers;      /* so many after the name */
    bool alone; /* a batch has the vertices of its sets alone, and is normalised by its own edges */
};

/* --batches: a kind with its numbers, sets and sets of a batch. */
struct sl_batches_choice {
    const struct sl_batches_kind *kind;
    bool automatic; /* co:auto: the sets are not counted yet */
    int64_t sets, each;
};
extern const struct sl_option_value sl_value_batches;

/* --trace-epochs: the first and the last epoch; first 0: none are given. */
struct sl_epoch_range {
    int64_t first, last;
};
extern const struct sl_option_value sl_value_epoch_range;

/* Numbers with commas between them. */
enum { SL_MOST_NUMBERS = 255 };
struct sl_numbers {
    int count;
    int64_t number[SL_MOST_NUMBERS];
};

/* --milestones: a struct sl_numbers that rise; none where the option is not given. */
extern const struct sl_option_value sl_value_milestones;

/* --split-layers: hidden layers that rise, 0 for the features; or all hidden layers. */
struct sl_split_layers {
    bool all;
    struct sl_numbers layers;
};
extern const struct sl_option_value sl_value_split_layers;

/* --submodel-share: a number for each sub-model, or all equal. */
enum sl_unit_share { SL_UNITS_EQUAL, SL_UNITS_AUTO, SL_UNITS_GIVEN };
struct sl_unit_shares {
    enum sl_unit_share kind;
    struct sl_numbers given;
};
extern const struct sl_option_value sl_value_unit_shares;

/* --split: a struct sl_split_rule without its seed. */
extern const struct sl_option_value sl_value_split;

/* --split-edges: a struct sl_link_rule without its seed. */
extern const struct sl_option_value sl_value_split_edges;

#endif
