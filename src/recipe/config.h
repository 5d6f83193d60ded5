/* The configuration of a training run and its table of options. */
#ifndef SL_RECIPE_CONFIG_H
#define SL_RECIPE_CONFIG_H

#include "codelets/instructions.h"
#include "codelets/links.h"
#include "codelets/optimizer.h"
#include "core/options.h"
#include "core/runtime.h"
#include "core/spmm_choice.h"
#include "core/tile.h"
#include "data/links.h"
#include "data/order/order.h"
#include "graphs/network.h"
#include "predict/scenario.h"
#include "recipe/values.h"

/* ---- Choices: constants and words (core/names.h). The table of options says what they mean. ----
 */

#define SL_PRESETS(ENTRY)               \
    ENTRY(SL_PRESET_DEFAULT, "default") \
    ENTRY(SL_PRESET_KIPF, "kipf")       \
    ENTRY(SL_PRESET_STRONG, "strong")
enum sl_preset { SL_PRESETS(SL_CHOICE_CONSTANT) };

#define SL_FEATURE_NORMS(ENTRY)         \
    ENTRY(SL_FEATURE_NORM_AUTO, "auto") \
    ENTRY(SL_FEATURE_NORM_NONE, "none") \
    ENTRY(SL_FEATURE_NORM_L1, "l1")     \
    ENTRY(SL_FEATURE_NORM_L2, "l2")     \
    ENTRY(SL_FEATURE_NORM_STANDARD, "standard")
enum sl_feature_norm { SL_FEATURE_NORMS(SL_CHOICE_CONSTANT) };

#define SL_FORMS(ENTRY) \
    ENTRY(SL_FORM_AUTO, "auto") ENTRY(SL_FORM_CSR, "csr") ENTRY(SL_FORM_DENSE, "dense")
enum sl_form { SL_FORMS(SL_CHOICE_CONSTANT) };

#define SL_FIRST_PRODUCTS(ENTRY) \
    ENTRY(SL_FIRST_AUTO, "auto") \
    ENTRY(SL_FIRST_GEMM, "gemm") \
    ENTRY(SL_FIRST_SPMM, "spmm")
enum sl_first_product { SL_FIRST_PRODUCTS(SL_CHOICE_CONSTANT) };

#define SL_PRECISIONS(ENTRY)         \
    ENTRY(SL_PRECISION_FP32, "fp32") \
    ENTRY(SL_PRECISION_TF32, "tf32") \
    ENTRY(SL_PRECISION_BF16, "bf16")
enum sl_precision { SL_PRECISIONS(SL_CHOICE_CONSTANT) };

#define SL_CLASS_WEIGHTS(ENTRY) \
    ENTRY(SL_CLASS_WEIGHTS_NONE, "none") ENTRY(SL_CLASS_WEIGHTS_BALANCED, "balanced")
enum sl_class_weights { SL_CLASS_WEIGHTS(SL_CHOICE_CONSTANT) };

#define SL_SCHEDULES(ENTRY)                 \
    ENTRY(SL_SCHEDULE_CONSTANT, "constant") \
    ENTRY(SL_SCHEDULE_STEP, "step")         \
    ENTRY(SL_SCHEDULE_COSINE, "cosine")
enum sl_schedule { SL_SCHEDULES(SL_CHOICE_CONSTANT) };

#define SL_KEEPS(ENTRY) \
    ENTRY(SL_KEEP_AUTO, "auto") ENTRY(SL_KEEP_BEST, "best") ENTRY(SL_KEEP_LAST, "last")
enum sl_keep { SL_KEEPS(SL_CHOICE_CONSTANT) };

#define SL_SHARES(ENTRY)             \
    ENTRY(SL_SHARE_BLOCKS, "blocks") \
    ENTRY(SL_SHARE_COPIES, "copies") \
    ENTRY(SL_SHARE_NONE, "none")
enum sl_share { SL_SHARES(SL_CHOICE_CONSTANT) };

#define SL_UNIT_SUMS(ENTRY) \
    ENTRY(SL_UNIT_SUMS_PUBLISHED, "published") ENTRY(SL_UNIT_SUMS_SCALED, "scaled")
enum sl_unit_sums { SL_UNIT_SUMS(SL_CHOICE_CONSTANT) };

#define SL_RESIDUALS(ENTRY)                 \
    ENTRY(SL_RESIDUAL_NONE, "none")         \
    ENTRY(SL_RESIDUAL_IDENTITY, "identity") \
    ENTRY(SL_RESIDUAL_LINEAR, "linear")
enum sl_residual { SL_RESIDUALS(SL_CHOICE_CONSTANT) };

/* auto: the model reads the edge features of a dataset that has them. */
#define SL_EDGES(ENTRY) ENTRY(SL_EDGES_AUTO, "auto") ENTRY(SL_EDGES_NONE, "none")
enum sl_edges { SL_EDGES(SL_CHOICE_CONSTANT) };

#define SL_ENCODERS(ENTRY) ENTRY(SL_ENCODER_NONE, "none") ENTRY(SL_ENCODER_LINEAR, "linear")
enum sl_encoder { SL_ENCODERS(SL_CHOICE_CONSTANT) };

/* auto: the model's own. */
#define SL_ACTIVATIONS(ENTRY) \
    ENTRY(SL_HIDDEN_AUTO, "auto") ENTRY(SL_HIDDEN_RELU, "relu") ENTRY(SL_HIDDEN_ELU, "elu")
enum sl_hidden_activation { SL_ACTIVATIONS(SL_CHOICE_CONSTANT) };

#define SL_CLASSIFIERS(ENTRY) \
    ENTRY(SL_CLASSIFIER_NONE, "none") ENTRY(SL_CLASSIFIER_LINEAR, "linear")
enum sl_classifier { SL_CLASSIFIERS(SL_CHOICE_CONSTANT) };

#define SL_STEP_ROWS(ENTRY) \
    ENTRY(SL_ROWS_AUTO, "auto") ENTRY(SL_ROWS_ALL, "all") ENTRY(SL_ROWS_NEEDED, "needed")
enum sl_step_rows { SL_STEP_ROWS(SL_CHOICE_CONSTANT) };

/* links: pairs of vertices have scores, and edges are known links. */
#define SL_TASKS(ENTRY) ENTRY(SL_TASK_VERTICES, "vertices") ENTRY(SL_TASK_LINKS, "links")
enum sl_task_kind { SL_TASKS(SL_CHOICE_CONSTANT) };

#define SL_PARTIAL_SUMS(ENTRY) \
    ENTRY(SL_PARTIAL_SUMS_SCALED, "scaled") ENTRY(SL_PARTIAL_SUMS_UNSCALED, "unscaled")
enum sl_partial_sums { SL_PARTIAL_SUMS(SL_CHOICE_CONSTANT) };

#define SL_SUM_ORDERS(ENTRY) \
    ENTRY(SL_SUM_ORDER_TILES, "tiles") ENTRY(SL_SUM_ORDER_OWN_FIRST, "own-first")
enum sl_sum_order { SL_SUM_ORDERS(SL_CHOICE_CONSTANT) };

/* random: parts are drawn anew in every round. latin: units have blocks, drawn anew every `parts`
 * rounds; within them, each block of an axis meets each block of the next axis once. fixed: the
 * parts of the first round stay. */
#define SL_ROUNDS_KINDS(ENTRY)        \
    ENTRY(SL_ROUNDS_RANDOM, "random") \
    ENTRY(SL_ROUNDS_LATIN, "latin")   \
    ENTRY(SL_ROUNDS_FIXED, "fixed")
enum sl_rounds_kind { SL_ROUNDS_KINDS(SL_CHOICE_CONSTANT) };

enum { SL_MOST_PARTS = 255, SL_MOST_BASES = 4096 };

/* --order double: rows and columns in two orders of their own (MG-GCN). */
extern const struct sl_order sl_order_double;

/* The model. */
struct sl_config_network {
    enum sl_preset preset;
    const struct sl_model_kind *model;
    const struct sl_aggregator *aggregator, *block_aggregator;
    const struct sl_block_norm *block_norm, *norm_layers; /* norm_layers NULL: none */
    enum sl_encoder encoder;
    enum sl_edges edges;
    enum sl_residual residual;
    enum sl_hidden_activation activation;
    enum sl_jump jump;
    enum sl_linear_init linear_init;
    enum sl_classifier classifier;
    int64_t layers, hidden, hops, heads, out_heads, bases;
    double teleport;
    bool bias;
    enum sl_norm norm;
};

/* The features, and the order of the products of all layers. */
struct sl_config_features {
    enum sl_feature_norm normalize_features;
    int64_t project_features; /* columns; 0: features are not projected */
    enum sl_form feature_form;
    bool cache_aggregate;
    enum sl_first_product product_order;
};

/* The optimisation. */
struct sl_config_training {
    int64_t epochs, seed;
    double dropout, input_dropout, attention_dropout;
    const struct sl_loss *loss;     /* NULL: auto */
    const struct sl_metric *metric; /* NULL: auto */
    enum sl_class_weights class_weights;
    enum sl_label_decision decision;
    double label_smoothing;
    enum sl_optimizer optimizer;
    double lr, momentum, weight_decay, clip_norm;
    bool weight_decay_all;
    enum sl_schedule schedule;
    struct sl_numbers milestones;
    int64_t step_epochs;
    double step_factor;
    int64_t patience, eval_every;
    enum sl_keep keep;
};

/* The graph of an optimizer step. */
struct sl_config_steps {
    struct sl_batches_choice batches;
    int max_hop, preload_hops; /* recipe/values.h */
    int64_t fanout, resample;
    enum sl_step_rows rows;
    struct sl_group_shape groups;
};

/* Sub-models, which have units of the layers. */
struct sl_config_units {
    int64_t submodels, local_steps, rounds;
    enum sl_share share;
    enum sl_unit_sums unit_sums;
    enum sl_rounds_kind partition_units;
    struct sl_unit_shares submodel_share;
    struct sl_split_layers split_layers;
    char *store;
    int64_t shard_bytes; /* no option: most bytes of a shard of the store, in tests; 0: default */
    bool reset_optimizer;
};

/* The links that a model is to predict. */
struct sl_config_links {
    enum sl_task_kind task;
    enum sl_decoder decoder;
    int64_t embedding, negatives, eval_negatives;
    struct sl_link_rule split; /* with seed 0 and one negative */
};

/* The splits of the vertices. */
struct sl_config_splits {
    struct sl_split_rule split; /* with seed 0; the seed: */
    int64_t split_seed;
};

/* How ranks share the graph. */
struct sl_config_ranks {
    const struct sl_distribution_name *distribution; /* NULL: auto */
    const struct sl_order *order;                    /* NULL: auto */
    char *partition;
    struct sl_grid grid; /* rows 0: none is given */
    int delay;           /* recipe/values.h */
    enum sl_broadcast_form broadcast;
    enum sl_partial_sums partial_sums;
    enum sl_sum_order sum_order;
    enum sl_balance balance;
    int64_t replication, exact_epochs;
    bool allow_inexact;
};

/* How a rank computes. */
struct sl_config_machine {
    bool cache_adjacency;
    int64_t tiles, block_columns, workers;
    enum sl_spmm_kernel spmm;
    enum sl_precision precision;
    enum sl_device device;
    enum sl_instructions instructions;
    char *scheduler;
    bool overlap;
    int recompute; /* recipe/values.h */
};

/* The files of a run, the lines that it prints, and an early end. */
struct sl_config_files {
    char *config, *log, *dag, *trace, *report, *checkpoint, *resume;
    struct sl_epoch_range trace_epochs;
    int64_t checkpoint_every, stop_after;
    bool verify, plan, profile, quiet, verbose;
};

/* All options of a run. */
struct sl_config {
    struct sl_config_network network;
    struct sl_config_features features;
    struct sl_config_training training;
    struct sl_config_steps steps;
    struct sl_config_units units;
    struct sl_config_links links;
    struct sl_config_splits splits;
    struct sl_config_ranks ranks;
    struct sl_config_machine machine;
    struct sl_config_files files;
    bool predicts; /* no option: a trained model is applied, and nothing is trained */
    /* no options: features, or relations, of edges that the model reads (recipe/edges.h) */
    int64_t edge_features, relations;
};

/* The table of struct sl_config, of at most so many rows. */
enum { SL_MOST_OPTIONS = 128 };
extern const struct sl_option sl_config_options[];

/* Fill `config` with the default of every option; all else is 0. Return 0 or a negative code. */
int sl_config_defaults(struct sl_config *config);

/* Rows of the table that belong to a run and not to the model: a checkpoint brings only those of
 * them back that results depend on, and only to go on (checkpoint/resume.h). */
bool sl_config_is_execution(const struct sl_option *option);

/* Rows that name files of a run. */
bool sl_config_is_file(const struct sl_option *option);

/* sl_distribution_find, for tables of options. */
const void *sl_config_find_distribution(const char *name);

/* Whether the command line had the option; `given` is as of sl_options_parse, or NULL: none. */
bool sl_config_is_given(const bool *given, const char *name);

/* Return the text of an option that recipe/values.h reads. */
struct sl_text sl_config_text(const struct sl_config *config, const char *option);

/* Return the word of a choice, "best" of "keep". */
struct sl_word sl_config_word(const struct sl_config *config, const char *option);

/* Replaces the text of an option by a copy of another one, or by NULL. SL_ERR_SYSTEM. */
int sl_config_set_text(char **option, const char *text);

/* Checks what no single row can (dependences between options). Returns 0 or SL_ERR_USAGE. */
int sl_config_check(const struct sl_config *config);

/* Refuse --batches, --max-hop, --fanout and --preload-hops that do not go together. Part of
 * sl_config_check. Return 0 or SL_ERR_USAGE. */
int sl_config_check_steps(const struct sl_config *config);

/* Check what other graphs than the whole one are for: --groups, --batches, --rows needed. Part of
 * sl_config_check. Return 0 or SL_ERR_USAGE. */
int sl_config_check_batches(const struct sl_config *config);

/* Return the option whose results depend on more rows than the training vertices need; NULL: there
 * is none. */
const char *sl_config_reads_all(const struct sl_config *config);

/* Refuse --rows needed where other rows count, too. Part of sl_config_check. Return 0 or
 * SL_ERR_USAGE. */
int sl_config_check_rows(const struct sl_config *config);

/* The rule that splits are drawn by. */
struct sl_split_rule sl_config_split(const struct sl_config *config);

/* Settings that follow from model and aggregator: the norm, whether a vertex is its own neighbour,
 * the kind of layers that aggregate, and the reducer. */
enum sl_norm sl_config_norm(const struct sl_config *config);
bool sl_config_loops(const struct sl_config *config);

/* Return whether the model has that option, which another model may lack. */
bool sl_config_has(const struct sl_config *config, const char *option);

/* Return the layer that normalises sums before activations (--norm-layers); NULL: none does. */
const struct sl_layer_kind *sl_config_norm_layer(const struct sl_config *config);

/* Return the layer with the parameters of the decoder of links; NULL: there is none. */
const struct sl_layer_kind *sl_config_decoder_layer(const struct sl_config *config);

/* Return whether a layer that does not aggregate follows all others (--classifier, --jump, the mlp
 * of links). */
bool sl_config_classifies(const struct sl_config *config);

/* Return what layers add to their sums: a vertex's own values, or a product of them. */
enum sl_residual sl_config_residual(const struct sl_config *config);

/* Return how a linear layer reads the outputs of all layers (--jump). */
enum sl_jump sl_config_jump(const struct sl_config *config);

/* Return whether a linear layer precedes all layers of the model (--encoder). */
bool sl_config_encodes(const struct sl_config *config);

/* Return whether the first layer does not aggregate. */
bool sl_config_begins_alone(const struct sl_config *config);

/* Return the heads of the last layer; 0: it has no attention. */
int64_t sl_config_out_heads(const struct sl_config *config);
const struct sl_layer_kind *sl_config_layer(const struct sl_config *config);
const struct sl_reducer *sl_config_reducer(const struct sl_config *config);

/* Whether blocks have a layer that a program brought (graphs/layer_own.c). */
bool sl_config_has_own_layer(const struct sl_config *config);

/* Columns of a hidden layer. */
int64_t sl_config_hidden(const struct sl_config *config);

/* Dropout on the features, and whether these are aggregated once. */
double sl_config_input_dropout(const struct sl_config *config);
bool sl_config_aggregates(const struct sl_config *config);

/* Return whether a run predicts links (recipe/link_options.h). */
static inline bool sl_config_links(const struct sl_config *config)
{
    return config->links.task == SL_TASK_LINKS;
}

/* Loss and metric; --loss auto is cross-entropy here, unless sl_defaults_settle has chosen. */
struct sl_objective sl_config_objective(const struct sl_config *config);

/* How a dataset becomes tiles; its strings are the configuration's. */
struct sl_assembly sl_config_assembly(const struct sl_config *config);

/* The network, and all that a prediction needs to know; strings are the configuration's. */
struct sl_model_shape sl_config_shape(const struct sl_config *config, int64_t features,
                                      int64_t classes);
int sl_config_product_order(const struct sl_config *config); /* as sl_network_create takes it */
struct sl_training sl_config_training(const struct sl_config *config,
                                      const struct sl_source *source);

/* Whether steps train on batches. */
static inline bool sl_config_has_batches(const struct sl_config *config)
{
    return config->steps.batches.kind->numbers > 0;
}

/* Whether a run trains sub-models, and whether these are an ensemble: one round is the whole run,
 * and nothing meets but predictions. */
bool sl_config_has_submodels(const struct sl_config *config);
bool sl_config_is_ensemble(const struct sl_config *config);

/* Epochs of --epochs that an epoch of the loop is: one for each sub-model. */
int64_t sl_config_work(const struct sl_config *config);

/* Epochs of the loop: --epochs counts work, and an epoch of the loop is one of each sub-model. */
int64_t sl_config_epochs(const struct sl_config *config);

/* Whether a run evaluates at all. */
bool sl_config_evaluates(const struct sl_config *config);

/* Whether a run keeps the weights of its best epoch, and not the last ones. --keep auto, which
 * programs without the option leave: with --patience. */
bool sl_config_keeps_best(const struct sl_config *config);

/* Epochs between evaluations. */
int64_t sl_config_eval_every(const struct sl_config *config);

enum sl_row_norm sl_config_row_norm(const struct sl_config *config);
bool sl_config_standardizes(const struct sl_config *config); /* the columns of features */

/* The kind of distribution. */
const struct sl_distribution_kind *sl_config_kind(const struct sl_config *config);

/* How many of the last epochs of the loop are exact. With --exact-epochs -1 and scaled partial
 * sums: with --delay 0c a fifth of all, with cd-R a tenth, rounded down; else 0. */
int64_t sl_config_exact_epochs(const struct sl_config *config);

/* Set --norm-layers where --block-norm is given, --aggregator where --block-aggregator is, and the
 * other way round, as far as both options have the value: a model has one of the two. Return 0, or
 * SL_ERR_USAGE where both are given and differ. */
int sl_config_pair_names(struct sl_config *config, const bool *given);

/* Return whether the option is given by one of its names. */
bool sl_config_is_given_either(const bool *given, const char *option);

/* SL_ERR_USAGE: an option is given (`given` as above) that the model does not have. */
int sl_config_check_given(const struct sl_config *config, const bool *given);

/* Options that the model does not have are not given. */
void sl_config_forget_others(const struct sl_config *config, bool *given);

/* Set the options that the file of --config has and the command line does not (`given`), and mark
 * them as given. The file is a JSON object, {"hidden": 16, "bias": false}; TOML, if its name ends
 * in .toml; or a log, whose first line has the options of a whole run. A log's files are left out.
 * SL_ERR_DATA names the file and the line or the option. */
int sl_config_read_file(struct sl_config *config, bool *given);

/* SL_ERR_USAGE: the delay is none of the aggregator. Part of sl_config_check. */
int sl_config_check_delay(const struct sl_config *config);
int sl_config_check_attention(const struct sl_config *config);

/* Return the type that stores features and activations, and the stages of received tiles. */
enum sl_type sl_config_type(const struct sl_config *config);
int sl_config_stages(const struct sl_config *config);

/* The learning rate of `epoch` (1, 2, …). */
double sl_config_rate(const struct sl_config *config, int64_t epoch);

#endif
