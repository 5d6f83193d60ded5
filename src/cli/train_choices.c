#include "cli/train_choices.h"

#include <stdio.h>

void sl_train_print_memory(const struct sl_plan *plan)
{
    static const double MIB = 1 << 20;
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        printf("  %-12s %12.1f\n", sl_plan_names[k], (double)plan->bytes[k] / MIB);
    printf("  %-12s %12.1f\n", "total", (double)plan->total / MIB);
}

void sl_train_print_evaluation(const struct sl_config *config, const struct sl_plan *plan)
{
    if (!sl_config_has_submodels(config) || sl_config_is_ensemble(config) ||
        !sl_config_evaluates(config))
        return;
    if (plan->block_columns > 0)
        printf("  hidden layers are evaluated by blocks of %lld columns\n",
               (long long)plan->block_columns);
    else
        printf("  hidden layers are evaluated whole\n");
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* Print a choice. `reason` names the choice, too; "": the command line made the choice. */
static void print_choice(const char *option, const char *chosen, const char *reason)
{
    printf("  %-14s %s\n", option, *reason ? reason : chosen ? chosen : "-");
}

/* Print the first product of each layer: "gemm spmm". */
static void print_products(const json_t *orders)
{
    printf("  %-14s", "first product");
    for (size_t l = 0; l < json_array_size(orders); l++)
        printf(" %s", json_string_value(json_array_get(orders, l)));
    putchar('\n');
}

static void print_epoch(const json_t *prediction)
{
    const json_t *seconds = json_object_get(prediction, "epoch_seconds");
    if (json_is_real(seconds))
        printf("  %-14s %.3g s\n", "predicted epoch", json_real_value(seconds));
}

static void print_rows(const struct sl_train_run *run)
{
    const struct sl_needed_choice *rows = &run->choice.rows;
    const int64_t validation = run->trainer.batches.validation.outer;
    print_choice("rows", sl_config_word(&run->config, "rows").text, rows->reason);
    if (run->config.steps.rows == SL_ROWS_NEEDED && !rows->reason[0])
        printf("  %-14s %.2g of the rows and %.2g of the adjacency entries, in the mean of the "
               "layers\n",
               "", rows->rows, rows->entries);
    if (validation > 0)
        printf("  %-14s %lld vertices in evaluations between epochs\n", "", (long long)validation);
}

void sl_train_print_choices(const struct sl_train_run *run)
{
    const struct sl_config *config = &run->config;
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
    const struct sl_process *process = run->rt.process;
    printf("choices\n");
    print_choice("order", sl_config_word(config, "order").text,
                 text_of(run->start, "order_reason"));
    print_rows(run);
    print_choice("distribution", sl_config_word(config, "distribution").text,
                 text_of(run->start, "grid_reason"));
    if (config->steps.groups.given)
        print_choice("preload hops", sl_config_text(config, "preload-hops").text,
                     text_of(run->start, "preload_reason"));
    if (run->choice.parts[0])
        print_choice("parts", "of vertices", text_of(run->start, "parts_reason"));
    printf("  %-14s %d, in blocks of %lld columns\n", "tiles", partition->tiles,
           (long long)partition->block_cols);
    print_products(json_object_get(run->start, "product_orders"));
    printf("  %-14s %s, %d workers, %d GPUs\n", "scheduler", process->scheduler, process->workers,
           process->gpus);
    print_epoch(json_object_get(run->start, "prediction"));
    sl_train_print_evaluation(config, &run->plan);
    printf("memory plan in MiB, the most of any rank\n");
    sl_train_print_memory(&run->plan);
    fflush(stdout);
}
