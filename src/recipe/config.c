/* The table of options, one row each. */
#include "recipe/config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/attention.h"
#include "codelets/optimizer.h"
#include "core/error.h"
#include "data/order/order.h"
#include "graphs/distribution.h"

static const char MODEL[] = "Model";
static const char OPTIMISATION[] = "Optimisation";
static const char BATCHES[] = "Batches";
static const char SUBMODELS[] = "Sub-models";
static const char SPLITS[] = "Splits";
static const char LINKS[] = "Links";
static const char EXECUTION[] = "Execution";
static const char FILES[] = "Files";

static const void *find_model(const char *name)
{
    return sl_model_find(name);
}

static const void *find_loss(const char *name)
{
    return sl_loss_find(name);
}

static const void *find_metric(const char *name)
{
    return sl_metric_find(name);
}

static const void *find_aggregator(const char *name)
{
    return sl_aggregator_find(name);
}

static const void *find_norm(const char *name)
{
    return strcmp(name, "none") == 0 ? NULL : sl_block_norm_find(name);
}

static const void *find_block(const char *name)
{
    return sl_block_norm_find(name);
}

const void *sl_config_find_distribution(const char *name)
{
    return sl_distribution_find(name);
}

const struct sl_order sl_order_double = {"double", "rows and columns apart, at random", NULL,
                                         false};

static const void *find_order(const char *name)
{
    return strcmp(name, "auto") == 0                 ? NULL
           : strcmp(name, sl_order_double.name) == 0 ? &sl_order_double
                                                     : sl_order_find(name);
}

#define FIELD(name) offsetof(struct sl_config, name)

const struct sl_option sl_config_options[] = {
    {"preset", SL_OPTION_CHOICE, FIELD(network.preset), "default", 0, 0, SL_CHOICES(SL_PRESETS),
     "NAME",
     "values of the options that are not given; kipf: the published GCN (hidden 16, 200 epochs); "
     "strong: gcn, sage or gat with norms, residuals and a classifier (docs/DEFAULTS.md)",
     MODEL},
    {"model", SL_OPTION_KIND, FIELD(network.model), "gcn", 0, 0, &SL_MODEL_NAMES[1], "NAME",
     "model; gcn, sage, gat, gatv2, transformer: layers of graph convolution, GraphSAGE or "
     "attention; resgcn: an encoder, --layers residual blocks of a graph convolution, a decoder; "
     "gin: sums and two products per layer; gine: gin with edge features; rgcn: graph convolution "
     "with a weight for each "
     "relation of edges; sgc: --hops hops and one "
     "product; appnp: --layers "
     "layers and --hops hops; jknet: gcn with --jump concat. Each has its own defaults "
     "(docs/DEFAULTS.md)",
     MODEL, find_model},
    {"aggregator", SL_OPTION_KIND, FIELD(network.aggregator), "mean", 0, 0, sl_aggregator_names,
     "NAME",
     "with --model sage: gcn, the mean of neighbours and vertex (DistGNN's), with one weight; "
     "mean, "
     "sum, maximum or minimum of the neighbours, with a weight for them and one for the vertex",
     MODEL, find_aggregator},
    {"block-aggregator", SL_OPTION_KIND, FIELD(network.block_aggregator), "gcn", 0, 0,
     "gcn|mean|sum", "NAME",
     "--aggregator of the blocks of --model resgcn: gcn, its graph convolution; mean or sum of the "
     "neighbours, with a weight for them and one for the vertex",
     MODEL, find_aggregator},
    {"layers", SL_OPTION_INT, FIELD(network.layers), "2", 1, 1000, NULL, "N",
     "number of layers; with --model resgcn of blocks; sgc has one", MODEL},
    {"hidden", SL_OPTION_INT, FIELD(network.hidden), "64", 1, 1 << 20, NULL, "N",
     "width of the hidden layers; with --model gat of a head", MODEL},
    {"hops", SL_OPTION_INT, FIELD(network.hops), "2", 1, 1000, NULL, "K",
     "with --model sgc and appnp: hops along the edges", MODEL},
    {"bases", SL_OPTION_INT, FIELD(network.bases), "0", 0, SL_MOST_BASES, NULL, "B",
     "with --model rgcn: weights of relations are sums of B matrices; 0: each relation has its own",
     MODEL},
    {"teleport", SL_OPTION_REAL, FIELD(network.teleport), "0.1", 0, 1, NULL, "A",
     "with --model appnp: the share of its own values that a vertex keeps in each hop", MODEL},
    {"block-norm", SL_OPTION_KIND, FIELD(network.block_norm), "row", 0, 0, sl_block_names, "KIND",
     "another name of --norm-layers. Blocks of --model resgcn always have a norm, and take a "
     "program's, too",
     MODEL, find_block},
    {"encoder", SL_OPTION_CHOICE, FIELD(network.encoder), "none", 0, 0, SL_CHOICES(SL_ENCODERS),
     "KIND",
     "linear: a linear layer without activation turns features into hidden values before the "
     "first layer",
     MODEL},
    {"edge-features", SL_OPTION_CHOICE, FIELD(network.edges), "auto", 0, 0, SL_CHOICES(SL_EDGES),
     "WAY",
     "auto: gat, gatv2, transformer and gine read the edge features of a dataset that has them; "
     "none: no model reads them",
     MODEL},
    {"activation", SL_OPTION_CHOICE, FIELD(network.activation), "auto", 0, 0,
     SL_CHOICES(SL_ACTIVATIONS), "NAME",
     "activation of the hidden layers; auto: elu for gat, gatv2 and transformer, else relu", MODEL},
    {"norm-layers", SL_OPTION_KIND, FIELD(network.norm_layers), "none", 0, 0, "none|row|batch",
     "KIND",
     "norm before the activation of hidden layers. row: of the values of a vertex (LayerNorm). "
     "batch: of a value of all vertices (BatchNorm)",
     MODEL, find_norm},
    {"residual", SL_OPTION_CHOICE, FIELD(network.residual), "none", 0, 0, SL_CHOICES(SL_RESIDUALS),
     "KIND",
     "a term that layers add to their sums. identity: the vertex's own values, in hidden layers "
     "but "
     "the first. linear: a product of these values, in every layer; sage does not take it",
     MODEL},
    {"jump", SL_OPTION_CHOICE, FIELD(network.jump), "none", 0, 0, SL_CHOICES(SL_JUMPS), "KIND",
     "a linear layer reads all --layers outputs: side by side (concat), their sum, or, for each "
     "value of a vertex, the largest of them (max; jumping knowledge)",
     MODEL},
    {"linear-init", SL_OPTION_CHOICE, FIELD(network.linear_init), "glorot", 0, 0,
     SL_CHOICES(SL_LINEAR_INITS), "KIND",
     "first values of linear layers: encoder, residual, jump, classifier, products of sage and "
     "transformer, the second of gin. pytorch: those of torch.nn.Linear, biases as well",
     MODEL},
    {"classifier", SL_OPTION_CHOICE, FIELD(network.classifier), "none", 0, 0,
     SL_CHOICES(SL_CLASSIFIERS), "KIND",
     "linear: all --layers layers are hidden ones, and a linear layer follows", MODEL},
    {"heads", SL_OPTION_INT, FIELD(network.heads), "8", 1, SL_ATTENTION_HEADS, NULL, "H",
     "with --model gat, gatv2, transformer: heads of hidden layers, side by side", MODEL},
    {"out-heads", SL_OPTION_INT, FIELD(network.out_heads), "1", 1, SL_ATTENTION_HEADS, NULL, "K",
     "of attention: heads of the last layer, whose output is their mean", MODEL},
    {"bias", SL_OPTION_FLAG, FIELD(network.bias), "yes", 0, 0, NULL, NULL,
     "add a bias in every layer", MODEL},
    {"norm", SL_OPTION_CHOICE, FIELD(network.norm), "sym", 0, 0, SL_CHOICES(SL_NORMS), "KIND",
     "adjacency of graph convolutions and hops: sym D^-1/2 (A+I) D^-1/2, row D^-1 (A+I)", MODEL},
    {"normalize-features", SL_OPTION_CHOICE, FIELD(features.normalize_features), "auto", 0, 0,
     SL_CHOICES(SL_FEATURE_NORMS), "NORM",
     "l1, l2: norm that every feature row is divided by. standard: columns lose their mean over "
     "the "
     "training vertices and are divided by their deviation. auto: l2 for bags of words, standard "
     "for dense columns of scales over tenfold apart, else none",
     MODEL},
    {"project-features", SL_OPTION_INT, FIELD(features.project_features), "0", 0, 1000000, NULL,
     "N",
     "multiply normalised features by a random matrix with N columns, whose Gaussian numbers have "
     "variance 1/N and depend on --seed. 0: features stay as they are",
     MODEL},
    {"feature-form", SL_OPTION_CHOICE, FIELD(features.feature_form), "auto", 0, 0,
     SL_CHOICES(SL_FORMS), "FORM",
     "form of the features in memory, whatever form they are stored in. With auto, CSR features "
     "are "
     "dense where the rates of one core predict less time, and memory allows. Both forms drop out "
     "the same entries, and results are the same up to rounding",
     MODEL},
    {"cache-aggregate", SL_OPTION_FLAG, FIELD(features.cache_aggregate), "yes", 0, 0, NULL, NULL,
     "compute the aggregated features once when the input is not dropped out; by default only "
     "where that is predicted to take less time",
     MODEL},
    {"product-order", SL_OPTION_CHOICE, FIELD(features.product_order), "auto", 0, 0,
     SL_CHOICES(SL_FIRST_PRODUCTS), "KIND",
     "product that comes first in a layer, where both are possible. With auto, the rates of one "
     "core decide: remembered by starling bench machine, or usual rates",
     MODEL},
    {"precision", SL_OPTION_CHOICE, FIELD(machine.precision), "fp32", 0, 0,
     SL_CHOICES(SL_PRECISIONS), "TYPE",
     "number format of features, activations and their gradients: fp32 or bf16. Sums, "
     "weights and gradients of weights are fp32. tf32: fp32, but GPUs multiply dense matrices with "
     "10 bits of their fractions",
     MODEL},

    {"epochs", SL_OPTION_INT, FIELD(training.epochs), "200", 1, 10000000, NULL, "N",
     "training epochs; without it, up to 500 with --patience", OPTIMISATION},
    {"seed", SL_OPTION_INT, FIELD(training.seed), "0", 0, 9e15, NULL, "N",
     "seed of initialisation and dropout", OPTIMISATION},
    {"dropout", SL_OPTION_REAL, FIELD(training.dropout), "0.5", 0, 0.9999, NULL, "P",
     "dropout on the input of every layer", OPTIMISATION},
    {"input-dropout", SL_OPTION_REAL, FIELD(training.input_dropout), "-1", -1, 0.9999, NULL, "P",
     "dropout on the features; -1: as --dropout", OPTIMISATION},
    {"attention-dropout", SL_OPTION_REAL, FIELD(training.attention_dropout), "-1", -1, 0.9999, NULL,
     "P", "of attention: dropout on the weights of neighbours; -1: as --dropout", OPTIMISATION},
    {"loss", SL_OPTION_KIND, FIELD(training.loss), "auto", 0, 0, sl_loss_names, "NAME",
     "loss that training reduces; cross-entropy: of the softmax over classes; sigmoid: the mean "
     "cross-entropy of each label's sigmoid; mse: the mean squared error; of links, bce: the "
     "cross-entropy of links and of other pairs, bpr: of their differences. With auto: sigmoid for "
     "several labels per vertex, mse for numbers, bce for links, else cross-entropy",
     OPTIMISATION, find_loss},
    {"class-weights", SL_OPTION_CHOICE, FIELD(training.class_weights), "none", 0, 0,
     SL_CHOICES(SL_CLASS_WEIGHTS), "KIND",
     "weights of vertices in the loss. With balanced: n / (classes x count) for a class that count "
     "of n training vertices have; of several labels, for the two values of each",
     OPTIMISATION},
    {"label-smoothing", SL_OPTION_REAL, FIELD(training.label_smoothing), "0", 0, 0.9999, NULL, "E",
     "part of a vertex's weight in the loss that all classes share equally", OPTIMISATION},
    {"metric", SL_OPTION_KIND, FIELD(training.metric), "auto", 0, 0, "auto" SL_METRIC_NAMES, "NAME",
     "measure of the validation vertices that --patience and the best epoch follow. With auto: "
     "accuracy for classes, micro-f1 with --decision top, roc-auc for links, else loss. "
     "label-accuracy, macro-f1, "
     "roc-auc and average-precision are means over the labels; mae and r2, of numbers, over the "
     "columns; hits@K and mrr, of links, are OGB's",
     OPTIMISATION, find_metric},
    {"decision", SL_OPTION_CHOICE, FIELD(training.decision), "half", 0, 0,
     SL_CHOICES(SL_LABEL_DECISIONS), "KIND",
     "labels that count as predicted, of several: half, those with a probability over 1/2; top, as "
     "many as the vertex has, with the largest probabilities",
     OPTIMISATION},
    {"optimizer", SL_OPTION_CHOICE, FIELD(training.optimizer), "adam", 0, 0, &SL_OPTIMIZER_NAMES[1],
     "NAME", "update rule", OPTIMISATION},
    {"lr", SL_OPTION_REAL, FIELD(training.lr), "0.01", 0, 1e6, NULL, "RATE", "learning rate",
     OPTIMISATION},
    {"momentum", SL_OPTION_REAL, FIELD(training.momentum), "0.9", 0, 0.9999, NULL, "M",
     "momentum of sgd", OPTIMISATION},
    {"weight-decay", SL_OPTION_REAL, FIELD(training.weight_decay), "5e-4", 0, 1e6, NULL, "L2",
     "L2 decay of the first layer's parameters", OPTIMISATION},
    {"weight-decay-all", SL_OPTION_FLAG, FIELD(training.weight_decay_all), "no", 0, 0, NULL, NULL,
     "apply the decay to every layer", OPTIMISATION},
    {"clip-norm", SL_OPTION_REAL, FIELD(training.clip_norm), "0", 0, 1e30, NULL, "N",
     "scale the gradient of all parameters down to norm N where it is longer; 0: never",
     OPTIMISATION},
    {"schedule", SL_OPTION_CHOICE, FIELD(training.schedule), "constant", 0, 0,
     SL_CHOICES(SL_SCHEDULES), "NAME", "learning rate over the epochs", OPTIMISATION},
    {"milestones", SL_OPTION_VALUE, FIELD(training.milestones), NULL, 0, 0, NULL, "E,E",
     "after each of these epochs, multiply the rate with --step-factor", OPTIMISATION, NULL,
     &sl_value_milestones},
    {"step-epochs", SL_OPTION_INT, FIELD(training.step_epochs), "100", 1, 10000000, NULL, "N",
     "epochs between steps of --schedule step", OPTIMISATION},
    {"step-factor", SL_OPTION_REAL, FIELD(training.step_factor), "0.1", 0, 1, NULL, "F",
     "what --schedule step multiplies the rate with", OPTIMISATION},
    {"patience", SL_OPTION_INT, FIELD(training.patience), "-1", -1, 10000000, NULL, "N",
     "stop when --metric of the validation vertices has not improved for N epochs. 0: never. -1: "
     "50 with at least 100 validation vertices, else 0. With --epochs, --allow-inexact or exact "
     "last epochs, -1 is 0",
     OPTIMISATION},
    {"keep", SL_OPTION_CHOICE, FIELD(training.keep), "auto", 0, 0, SL_CHOICES(SL_KEEPS), "WHICH",
     "keep the best or the last weights. best: of the evaluated epoch with the best --metric of "
     "the validation vertices. auto: best where there is a validation split, but for --share none "
     "and --eval-every -1",
     OPTIMISATION},
    {"eval-every", SL_OPTION_INT, FIELD(training.eval_every), "0", -1, 10000000, NULL, "N",
     "epochs between evaluations; 0: a tenth of --patience, or 10 without; -1: none, not even of "
     "the last epoch",
     OPTIMISATION},

    {"batches", SL_OPTION_VALUE, FIELD(steps.batches), "full", 0, 0, NULL, "KIND",
     "graph of an optimizer step. full: the whole graph. co:R: one of R sets of each group's "
     "vertices, and the vertices that the set depends on. co:auto: the least R that fits into "
     "memory. clusters:K,B: the graph that B of K clusters induce",
     BATCHES, NULL, &sl_value_batches},
    {"max-hop", SL_OPTION_VALUE, FIELD(steps.max_hop), NULL, 0, 0, NULL, "N",
     "with --groups or --batches co:R: sample vertices at most N hops from the set that is trained "
     "on. all: take every vertex that the set depends on, which is exact. Default: 1 with "
     "--fanout, else all",
     BATCHES, NULL, &sl_value_max_hop},
    {"fanout", SL_OPTION_INT, FIELD(steps.fanout), "-1", -1, INT32_MAX, NULL, "K",
     "sample: each vertex adds at most K of its outer neighbours; 0: all; -1: 15 with --max-hop N, "
     "else no sample",
     BATCHES},
    {"resample", SL_OPTION_INT, FIELD(steps.resample), "0", 0, 10000000, NULL, "E",
     "with --max-hop or --fanout: draw the sampled vertices anew every E epochs; 0: never",
     BATCHES},

    {"submodels", SL_OPTION_INT, FIELD(units.submodels), "0", 0, SL_MOST_PARTS, NULL, "M",
     "sub-models with 1/M of the units of every hidden layer, which train independently (GIST); "
     "with --groups each group has some of them, and the whole graph. An epoch of each is M "
     "of --epochs, --milestones and --step-epochs, and one of all other options. 0: none",
     SUBMODELS},
    {"local-steps", SL_OPTION_INT, FIELD(units.local_steps), "1", 1, 10000000, NULL, "Z",
     "steps of the optimizer in a round of --submodels: then their parameters meet, and units are "
     "cut anew",
     SUBMODELS},
    {"rounds", SL_OPTION_INT, FIELD(units.rounds), "0", 0, 10000000, NULL, "T",
     "rounds of --submodels, instead of --epochs; the last epoch of the loop is a whole one. 0: as "
     "many as --epochs has",
     SUBMODELS},
    {"share", SL_OPTION_CHOICE, FIELD(units.share), "blocks", 0, 0, SL_CHOICES(SL_SHARES), "WHAT",
     "parts of the model that sub-models have. With blocks: disjoint units. With copies: all "
     "units, and parameters "
     "become their mean after each round (local SGD). With none: an ensemble. Units are cut once, "
     "and each sub-model trains by itself to the end. Its prediction is the mean of their softmax "
     "probabilities",
     SUBMODELS},
    {"submodel-share", SL_OPTION_VALUE, FIELD(units.submodel_share), "equal", 0, 0, NULL, "N,N",
     "units of each sub-model, in proportion to these numbers. equal: as many each. auto: by the "
     "speed of their groups, which is measured before the run; the log has the numbers",
     SUBMODELS, NULL, &sl_value_unit_shares},
    {"unit-sums", SL_OPTION_CHOICE, FIELD(units.unit_sums), "published", 0, 0,
     SL_CHOICES(SL_UNIT_SUMS), "KIND",
     "sums over units of a hidden layer in a sub-model. With published: of its units alone, "
     "smaller "
     "than those of the whole network. With scaled: times M, rounded to a power of two, which is "
     "better with one step in a round (docs/SUBMODELS.md)",
     SUBMODELS},
    {"partition-units", SL_OPTION_CHOICE, FIELD(units.partition_units), "random", 0, 0,
     SL_CHOICES(SL_ROUNDS_KINDS), "KIND",
     "how units are cut. With random: anew in each round. With latin: so that all blocks of two "
     "neighbouring layers meet once in M rounds. With fixed: once",
     SUBMODELS},
    {"split-layers", SL_OPTION_VALUE, FIELD(units.split_layers), "all", 0, 0, NULL, "N,N",
     "hidden layers whose units are cut, from 1; 0: the features. All others are whole in every "
     "sub-model",
     SUBMODELS, NULL, &sl_value_split_layers},
    {"reset-optimizer", SL_OPTION_FLAG, FIELD(units.reset_optimizer), "no", 0, 0, NULL, NULL,
     "each round begins without optimizer state", SUBMODELS},

    {"split", SL_OPTION_VALUE, FIELD(splits.split), NULL, 0, 0, NULL, "RULE",
     "draw the splits instead of reading them. 20/30/rest trains on 20 vertices of each class, "
     "validates on 30 and tests on the rest; 60/20/20: per cent of the labelled vertices",
     SPLITS, NULL, &sl_value_split},
    {"split-seed", SL_OPTION_INT, FIELD(splits.split_seed), "0", 0, 9e15, NULL, "N",
     "seed of --split and --split-edges", SPLITS},

    {"task", SL_OPTION_CHOICE, FIELD(links.task), "vertices", 0, 0, SL_CHOICES(SL_TASKS), "WHAT",
     "what the model predicts. vertices: labels. links: whether a pair of vertices has an edge. "
     "Edges of the graph are known links; drawn pairs are none (docs/LINKS.md)",
     LINKS},
    {"split-edges", SL_OPTION_VALUE, FIELD(links.split), NULL, 0, 0, NULL, "RULE",
     "with --task links: per cent of the edges to train, validate and test on, as 85/5/10, where "
     "the dataset has no links of its own. Nothing aggregates over the last two",
     LINKS, NULL, &sl_value_split_edges},
    {"decoder", SL_OPTION_CHOICE, FIELD(links.decoder), "dot", 0, 0, SL_CHOICES(SL_DECODERS),
     "NAME",
     "with --task links: score of a pair of embeddings. dot: their product. distmult: their "
     "product with a weight for each column. mlp: a product with both side by side, relu, and a "
     "product with a vector",
     LINKS},
    {"embedding", SL_OPTION_INT, FIELD(links.embedding), "0", 0, 1 << 20, NULL, "N",
     "with --task links: columns of the last layer, or of the hidden values of mlp; 0: as --hidden",
     LINKS},
    {"negatives", SL_OPTION_INT, FIELD(links.negatives), "1", 1, 10000, NULL, "N",
     "with --task links: pairs for each training link with its source and a target that is drawn "
     "anew in each step",
     LINKS},
    {"eval-negatives", SL_OPTION_INT, FIELD(links.eval_negatives), "1", 1, 10000, NULL, "N",
     "with --split-edges: pairs for each link of validation and test, drawn once, which are no "
     "edges",
     LINKS},

    {"store", SL_OPTION_STRING, FIELD(units.store), NULL, 0, 0, NULL, "DIR",
     "with --submodels: keep the parameters of all units, the state of the optimizer and sums of "
     "evaluations in files without a name in DIR instead of memory; each rank has its own",
     EXECUTION},
    {"preload-hops", SL_OPTION_VALUE, FIELD(steps.preload_hops), "all", 0, 0, NULL, "N",
     "with --groups: a group preloads the vertices at most N hops from its own vertices. After "
     "every N layers, their rows come anew from other groups. all: as many hops as layers, and no "
     "rows travel. With --cache-aggregate the first layer does not count. auto: the N with the "
     "least predicted time of an epoch",
     EXECUTION, NULL, &sl_value_preload},
    {"rows", SL_OPTION_CHOICE, FIELD(steps.rows), "auto", 0, 0, SL_CHOICES(SL_STEP_ROWS), "WHICH",
     "rows that a training step computes. needed: rows the loss depends on. auto: needed, where "
     "that saves time. Results are the same but for rounding",
     EXECUTION},
    {"groups", SL_OPTION_VALUE, FIELD(steps.groups), NULL, 0, 0, NULL, "GxP",
     "groups of ranks that train on graphs of their own: G groups of P ranks each; servers: ranks "
     "that share a node. Each preloads what its vertices depend on, so that only sums travel "
     "between groups. --distribution, --grid and --replication are of a group then",
     EXECUTION, NULL, &sl_value_groups},
    {"distribution", SL_OPTION_KIND, FIELD(ranks.distribution), "auto", 0, 0,
     "auto|" SL_DISTRIBUTION_NAMES, "KIND",
     "how ranks share the graph: 1d cuts rows, 1.5d also the sum over neighbours, 2d rows and "
     "features, 3d all three. Without a grid: halo cuts rows where few edges cross. It sends only "
     "rows that edges touch. cover sends rows or sums over them, whichever are fewer. vertex-cut "
     "shares edges and clones vertices. With auto: as starling plan chooses, on one rank 1d",
     EXECUTION, sl_config_find_distribution},
    {"allow-inexact", SL_OPTION_FLAG, FIELD(ranks.allow_inexact), "no", 0, 0, NULL, NULL,
     "--distribution auto may take a vertex-cut with --delay, or with 0c where that is cd-0: "
     "results are others than on one rank. Maxima and minima: only with --delay 0c",
     EXECUTION},
    {"partition", SL_OPTION_STRING, FIELD(ranks.partition), NULL, 0, 0, NULL, "NAME",
     "with --distribution halo or cover, or --groups: a file of starling partition, the rank (the "
     "group) of every vertex, instead of parts by metis; or ptscotch, whose parts all ranks find "
     "together. With vertex-cut: edges follow metis (the default) or random parts "
     "of the vertices; or libra, hdrf, or a file",
     EXECUTION},
    {"delay", SL_OPTION_VALUE, FIELD(ranks.delay), "cd-0", 0, 0, NULL, "KIND",
     "with --distribution vertex-cut, or --allow-inexact: when clones of a vertex meet: cd-0 in "
     "every aggregation, cd-R a part of them in each epoch, R epochs late, 0c never",
     EXECUTION, NULL, &sl_value_delay},
    {"partial-sums", SL_OPTION_CHOICE, FIELD(ranks.partial_sums), "scaled", 0, 0,
     SL_CHOICES(SL_PARTIAL_SUMS), "KIND",
     "sums of clones that have not met, with --delay cd-R or 0c. With scaled, as DistGNN does: to "
     "the weight of all neighbours, and gradients never meet. With unscaled: as they are, and "
     "gradients meet late, too",
     EXECUTION},
    {"exact-epochs", SL_OPTION_INT, FIELD(ranks.exact_epochs), "-1", -1, 10000000, NULL, "N",
     "with --delay cd-R or 0c: in the last N of --epochs, clones meet as with cd-0; -1: a tenth "
     "of --epochs with scaled sums, with 0c a fifth, else none",
     EXECUTION},
    {"replication", SL_OPTION_INT, FIELD(ranks.replication), "0", 0, 65536, NULL, "C",
     "depth of --distribution 1.5d, which divides the ranks; 0: 2", EXECUTION},
    {"grid", SL_OPTION_VALUE, FIELD(ranks.grid), NULL, 0, 0, NULL, "RxCxD",
     "any grid of ranks instead of --distribution: R cut rows, C features, D sums over neighbours",
     EXECUTION, NULL, &sl_value_grid},
    {"cache-adjacency", SL_OPTION_FLAG, FIELD(machine.cache_adjacency), "yes", 0, 0, NULL, NULL,
     "keep tiles of the adjacency that other ranks of a grid sent; without, they travel in every "
     "product",
     EXECUTION},
    {"broadcast", SL_OPTION_CHOICE, FIELD(ranks.broadcast), "chain", 0, 0,
     SL_CHOICES(SL_BROADCAST_FORMS), "KIND",
     "how a rank's rows reach the ranks that need them. With chain, each rank sends them to the "
     "next. With tree, they follow a binomial tree while its ranks still have them. With direct, "
     "the rank itself sends all",
     EXECUTION},
    {"sum-order", SL_OPTION_CHOICE, FIELD(ranks.sum_order), "tiles", 0, 0,
     SL_CHOICES(SL_SUM_ORDERS), "KIND",
     "order of the terms of a row's sums. With tiles, each row begins at its own tile: 1d has the "
     "same bits on any number of ranks. With own-first, rows begin with all tiles of their rank "
     "while other ranks' tiles travel: the same bits in every run on as many ranks",
     EXECUTION},
    {"order", SL_OPTION_KIND, FIELD(ranks.order), "auto", 0, 0, "auto|double|" SL_ORDER_CHOICES,
     "NAME",
     "vertex order in memory, which results do not show; neighbours close together are read "
     "faster. With auto: rabbit where it is predicted to save more in --epochs than it takes and "
     "no "
     "rank reads the whole graph for it alone, else none. With auto and 1d on several ranks: "
     "random (MG-GCN's) where an epoch is predicted to be a tenth shorter, else none. With double: "
     "rows "
     "and columns of the "
     "adjacency in two random orders, which "
     "makes all its tiles equally full",
     EXECUTION, find_order},
    {"balance", SL_OPTION_CHOICE, FIELD(ranks.balance), "nnz", 0, 0, SL_CHOICES(SL_BALANCES),
     "NAME",
     "row tiles get equal shares of nonzeros or of rows; MG-GCN is --order random --balance "
     "rows",
     EXECUTION},
    {"tiles", SL_OPTION_INT, FIELD(machine.tiles), "0", 0, 65536, NULL, "T",
     "row tiles of the graph; 0: from the work", EXECUTION},
    {"block-columns", SL_OPTION_INT, FIELD(machine.block_columns), "0", 0, INT32_MAX, NULL, "N",
     "columns of a block of the adjacency; 0: from the cores' cache, where blocks move fewer "
     "bytes, and one block with GPUs",
     EXECUTION},
    {"workers", SL_OPTION_INT, FIELD(machine.workers), "0", 0, 65536, NULL, "N",
     "CPU workers per rank; 0: every core but those that serve GPUs; where GPUs are alone, one",
     EXECUTION},
    {"device", SL_OPTION_CHOICE, FIELD(machine.device), "auto", 0, 0, SL_CHOICES(SL_DEVICES),
     "NAME",
     "workers of the training: cpu, the cores; cuda, the GPUs, with one core for the host's work; "
     "both; auto, cuda where there are GPUs and no --workers, else all there are. Cores and GPUs "
     "round sums differently, so that both gives other bits in other runs",
     EXECUTION},
    {"spmm", SL_OPTION_CHOICE, FIELD(machine.spmm), "fastest", 0, 0, SL_CHOICES(SL_SPMM_KERNELS),
     "NAME",
     "kernel that multiplies sparse tiles on GPUs: Starling's; cuSPARSE's, where it can; for each "
     "shape the one that starling bench spmm --device cuda remembered as faster, or Starling's",
     EXECUTION},
    {"scheduler", SL_OPTION_STRING, FIELD(machine.scheduler), NULL, 0, 0, NULL, "NAME",
     "scheduling policy, one of StarPU's or home; default: STARPU_SCHED, else the one that "
     "starling bench schedulers "
     "remembered, else lws; on several ranks of one worker eager, or prio with --sum-order "
     "own-first; dmdas with GPUs",
     EXECUTION},
    {"instructions", SL_OPTION_CHOICE, FIELD(machine.instructions), "auto", 0, 0,
     SL_CHOICES(SL_INSTRUCTION_CHOICES), "LEVEL",
     "instruction set of the kernels; base: that of every processor, v3: with AVX2, v4: with "
     "AVX-512, v4-bf16: also with AVX512_BF16, auto: the largest that this processor has",
     EXECUTION},
    {"overlap", SL_OPTION_FLAG, FIELD(machine.overlap), "yes", 0, 0, NULL, NULL,
     "let the tiles of the next rank travel while those of one are worked on; without, one rank's "
     "at "
     "a time",
     EXECUTION},
    {"stop-after", SL_OPTION_INT, FIELD(files.stop_after), "0", 0, 10000000, NULL, "N",
     "end after N epochs of this run, as on Ctrl-C: --resume goes on up to --epochs; 0: not",
     EXECUTION},
    {"recompute", SL_OPTION_VALUE, FIELD(machine.recompute), "auto", 0, 0, NULL, "N",
     "with --model resgcn, keep the output of every N-th block. Going back, the others and all "
     "normalised rows are made again. none: keep all, which is fastest. auto: none if memory "
     "allows, else the least N that fits",
     EXECUTION, NULL, &sl_value_recompute},
    {"plan", SL_OPTION_FLAG, FIELD(files.plan), "no", 0, 0, NULL, NULL,
     "print the memory that training will take, by kind, and end", EXECUTION},
    {"profile", SL_OPTION_FLAG, FIELD(files.profile), "no", 0, 0, NULL, NULL,
     "time every task: where the workers' time goes, by operation and by worker, in a table and in "
     "the log's last line",
     EXECUTION},

    {"config", SL_OPTION_STRING, FIELD(files.config), NULL, 0, 0, NULL, "FILE",
     "take the options of FILE that the command line does not give; FILE: a JSON object, "
     "{\"hidden\": 16, \"bias\": false}, options in TOML (FILE.toml), or a log, whose run is "
     "repeated without its files",
     FILES},
    {"verify", SL_OPTION_FLAG, FIELD(files.verify), "no", 0, 0, NULL, NULL,
     "with --config LOG: repeat the run of the log, and compare the data, the loss and scores of "
     "each epoch and the weights, bit for bit. DATASET may be left out: the log names it",
     FILES},
    {"log", SL_OPTION_STRING, FIELD(files.log), NULL, 0, 0, NULL, "FILE",
     "write one JSON object per line to FILE; FILE.csv: a table with a row for each epoch", FILES},
    {"dag", SL_OPTION_STRING, FIELD(files.dag), NULL, 0, 0, NULL, "FILE",
     "write the tasks and messages of rank 0 in the first epoch, with arrows from a tile's writer "
     "to its readers. FILE.svg: a picture, by Graphviz; any other name: text for Graphviz",
     FILES},
    {"trace", SL_OPTION_STRING, FIELD(files.trace), NULL, 0, 0, NULL, "FILE",
     "write some epochs of all ranks over time into FILE, for Perfetto; tasks and messages, also "
     "for chrome://tracing",
     FILES},
    {"trace-epochs", SL_OPTION_VALUE, FIELD(files.trace_epochs), NULL, 0, 0, NULL, "A-B",
     "epochs of --trace; three after the first two unless given", FILES, NULL,
     &sl_value_epoch_range},
    {"report", SL_OPTION_STRING, FIELD(files.report), NULL, 0, 0, NULL, "FILE",
     "draw the run as a page of HTML, at the end; needs gnuplot. Without --log, the log is "
     "FILE.jsonl",
     FILES},
    {"checkpoint", SL_OPTION_STRING, FIELD(files.checkpoint), NULL, 0, 0, NULL, "FILE",
     "write the trained model to FILE (safetensors), at the end and on Ctrl-C; if FILE cannot be "
     "written then, to a new directory in TMPDIR or /tmp",
     FILES},
    {"checkpoint-every", SL_OPTION_INT, FIELD(files.checkpoint_every), "0", 0, 10000000, NULL, "N",
     "also write it every N epochs, which are evaluated; 0: never", FILES},
    {"resume", SL_OPTION_STRING, FIELD(files.resume), NULL, 0, 0, NULL, "FILE",
     "continue the run of checkpoint FILE up to --epochs; its model, training, distribution, "
     "partition, delay, partial-sums, exact-epochs, sum-order, order, balance, tiles, rows "
     "and instructions hold. Options on the command line win: --tiles 0 and --distribution auto "
     "choose "
     "anew",
     FILES},
    {"quiet", SL_OPTION_FLAG, FIELD(files.quiet), "no", 0, 0, NULL, NULL,
     "print nothing but errors", FILES},
    {"verbose", SL_OPTION_FLAG, FIELD(files.verbose), "no", 0, 0, NULL, NULL,
     "print the memory plan and why each automatic choice was made; note the seconds of each step "
     "before the first epoch on stderr",
     FILES},
    {0},
};

_Static_assert(sizeof sl_config_options / sizeof *sl_config_options <= SL_MOST_OPTIONS,
               "more options than SL_MOST_OPTIONS");

int sl_config_defaults(struct sl_config *config)
{
    *config = (struct sl_config){.predicts = false};
    return sl_options_defaults(sl_config_options, config);
}

bool sl_config_is_execution(const struct sl_option *option)
{
    return option->group == EXECUTION || option->group == FILES;
}

bool sl_config_is_file(const struct sl_option *option)
{
    return option->group == FILES;
}

bool sl_config_is_given(const bool *given, const char *name)
{
    for (int o = 0; given && sl_config_options[o].name; o++)
        if (strcmp(sl_config_options[o].name, name) == 0)
            return given[o];
    return false;
}

struct sl_text sl_config_text(const struct sl_config *config, const char *option)
{
    return sl_options_text(sl_config_options, config, option);
}

struct sl_word sl_config_word(const struct sl_config *config, const char *option)
{
    return sl_options_word(sl_config_options, config, option);
}

int sl_config_set_text(char **option, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return sl_error(SL_ERR_SYSTEM, "no memory for the option %s", text);
    free(*option);
    *option = copy;
    return 0;
}
