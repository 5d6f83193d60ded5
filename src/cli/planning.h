/* The options, the state and the report of starling plan. */
#ifndef SL_CLI_PLANNING_H
#define SL_CLI_PLANNING_H

#include "batches/needed.h"
#include "core/options.h"
#include "groups/group_plan.h"
#include "predict/scenario.h"
#include "recipe/config.h"
#include "train/trainer.h"

struct sl_plan_options {
    int64_t ranks, machine_ranks, rows;
    int delay;                                       /* see recipe/values.h */
    const struct sl_distribution_name *distribution; /* NULL: any */
    char *machine, *partition, *like, *json;
    enum sl_partial_sums partial_sums;
    bool quiet;
};

/* The predictions of all distributions, and the one that `auto` takes. */
struct sl_plan_choice {
    struct sl_prediction *list;
    int count;
    const struct sl_prediction *winner;
    char reason[256]; /* why the winner won */
};

struct sl_planning {
    struct sl_plan_options config;
    struct sl_config options;    /* options of train */
    bool given[SL_MOST_OPTIONS]; /* options of train that were given */
    struct sl_training training;
    struct sl_process process; /* with --ranks-per-machine ranks */
    struct sl_runtime rt;
    struct sl_source source;
    struct sl_selection needed;       /* a step's graph of needed rows; no rows: the whole graph */
    struct sl_needed_size validation; /* graph of evaluations between epochs; zero: none */
    struct sl_rates rates, core;
    struct sl_scenario_counts counts;
    int64_t space;
    struct sl_plan_choice choice;
    struct sl_partition_options cuts;
    struct sl_group_plan *group; // (groups): plans of --groups and --batches
    int groups;
    struct sl_needed_choice rows;
};

/* Print the plan, and write all figures to the file of --json. Return 0 or SL_ERR_SYSTEM. */
int sl_planning_report(const struct sl_planning *p);

#endif
