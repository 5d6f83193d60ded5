/* starling convert: any readable format to the directory layout or a file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/talk.h"
#include "core/error.h"
#include "core/log.h"
#include "core/words.h"
#include "data/dataset.h"
#include "data/formats/formats.h"
#include "data/links.h"
#include "data/order/order.h"

#define DUPLICATES(ENTRY)  ENTRY(DUPLICATES_ONE, "one") ENTRY(DUPLICATES_SUM, "sum")
#define EMPTY_CELLS(ENTRY) ENTRY(EMPTY_REFUSED, "refuse") ENTRY(EMPTY_IS_MEAN, "mean")
enum duplicates { DUPLICATES(SL_CHOICE_CONSTANT) };
enum empty_cells { EMPTY_CELLS(SL_CHOICE_CONSTANT) };

struct config {
    int symmetrize; /* place in SL_SYMMETRIES */
    enum duplicates duplicates;
    enum empty_cells empty_cells;
    enum sl_weight_column weights;
    char *label_separator, *label, *categorical, *edge_features, *edge_types, *split, *split_edges;
    int64_t first_vertex, negatives;
    const struct sl_order *order;
    int64_t seed, split_seed;
    bool reverse;
    struct sl_talk talk;
};

static const void *find_order(const char *name)
{
    return sl_order_find(name);
}

static const struct sl_option options[] = {
    {"symmetrize", SL_OPTION_WAY, offsetof(struct config, symmetrize), NULL, 0, 0,
     SL_CHOICES(SL_SYMMETRIES), "[WAY]",
     "add the reverse of every edge; the weight of an edge that goes both ways is the larger one, "
     "the sum or the mean. Alone: max",
     "Conversion"},
    {"reverse", SL_OPTION_FLAG, offsetof(struct config, reverse), "no", 0, 0, NULL, NULL,
     "turn all edges round: of an edge u -> v of SOURCE, u aggregates from v, instead of v from u",
     "Conversion"},
    {"weights", SL_OPTION_CHOICE, offsetof(struct config, weights), "auto", 0, 0,
     SL_CHOICES(SL_WEIGHT_COLUMNS), "WHICH",
     "column of an edge list that has weights; none: columns after the second are ignored; auto: "
     "the column that the header calls weight, or the third, where there are three",
     "Conversion"},
    {"edge-features", SL_OPTION_STRING, offsetof(struct config, edge_features), NULL, 0, 0, NULL,
     "COLUMNS",
     "columns of an edge list, between commas, that become features of edges; --symmetrize treats "
     "them as it treats weights, and features of duplicates are summed",
     "Conversion"},
    {"edge-types", SL_OPTION_STRING, offsetof(struct config, edge_types), NULL, 0, 0, NULL,
     "COLUMN",
     "the column of an edge list with the number of each edge's relation, from 0 on; with "
     "--symmetrize, the reverse of relation r of R is relation R + r. A folder relations/ in "
     "SOURCE has a file of edges for each relation instead",
     "Conversion"},
    {"duplicates", SL_OPTION_CHOICE, offsetof(struct config, duplicates), "one", 0, 0,
     SL_CHOICES(DUPLICATES), "KIND",
     "an edge without weights that is there k times; one: it is one edge; sum: it has the weight "
     "k. "
     "Weights are summed either way",
     "Conversion"},
    {"first-vertex", SL_OPTION_INT, offsetof(struct config, first_vertex), "0", 0, 1, NULL, "N",
     "number of the first vertex of an edge list", "Conversion"},
    {"label-separator", SL_OPTION_STRING, offsetof(struct config, label_separator), NULL, 0, 0,
     NULL, "C",
     "character between several labels of a vertex in a folder of tables; without it, a text with "
     "such a character is one class",
     "Conversion"},
    {"label", SL_OPTION_STRING, offsetof(struct config, label), NULL, 0, 0, NULL, "COLUMN",
     "column of labels in a table of vertices, whatever it is called", "Conversion"},
    {"categorical", SL_OPTION_STRING, offsetof(struct config, categorical), NULL, 0, 0, NULL,
     "COLUMNS",
     "columns of a table of vertices, between commas, each of whose values becomes a feature of 0 "
     "and 1",
     "Conversion"},
    {"empty-cells", SL_OPTION_CHOICE, offsetof(struct config, empty_cells), "refuse", 0, 0,
     SL_CHOICES(EMPTY_CELLS), "WAY",
     "an empty number in a table of vertices; refuse: it is an error; mean: it is the mean of its "
     "column",
     "Conversion"},
    {"order", SL_OPTION_KIND, offsetof(struct config, order), "none", 0, 0, SL_ORDER_CHOICES,
     "NAME",
     "store the vertices in another order, neighbours close together; predictions keep the old one",
     "Conversion", find_order},
    {"seed", SL_OPTION_INT, offsetof(struct config, seed), "0", 0, 9e15, NULL, "N",
     "seed of --order metis and random", "Conversion"},
    {"split", SL_OPTION_STRING, offsetof(struct config, split), NULL, 0, 0, NULL, "RULE",
     "store splits that are drawn as in starling train: 20/30/rest per class, or 60/20/20 per cent",
     "Conversion"},
    {"split-seed", SL_OPTION_INT, offsetof(struct config, split_seed), "0", 0, 9e15, NULL, "N",
     "seed of --split and --split-edges", "Conversion"},
    {"split-edges", SL_OPTION_STRING, offsetof(struct config, split_edges), NULL, 0, 0, NULL,
     "SHARES",
     "take edges out of the adjacency that become links of validation and test, pairs of vertices "
     "that a model is to predict: 85/5/10 per cent train, validate and test",
     "Conversion"},
    {"eval-negatives", SL_OPTION_INT, offsetof(struct config, negatives), "1", 1, 10000, NULL, "N",
     "pairs that are no links, drawn by --split-edges for each link of validation and test",
     "Conversion"},
    SL_TALK_OPTIONS(config, "print nothing", "Conversion"),
    {0},
};

/* Print how many links each split has. */
static void print_links(const struct sl_source_links *links)
{
    static const char *const names[] = {[SL_SPLIT_VAL] = "validation", [SL_SPLIT_TEST] = "test"};
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++)
        if (links->pairs[s].data)
            printf(", %" PRId64 " %s link%s", links->pairs[s].shape[0], names[s],
                   sl_s(links->pairs[s].shape[0]));
}

static void print_result(const struct config *config, const struct sl_dataset *data,
                         const char *source, const char *target)
{
    const int64_t entries = data->adjacency.indptr[data->vertices];
    printf("%s: %" PRId64 " %s, %" PRId64 " adjacency %s", target, data->vertices,
           sl_vertices(data->vertices), entries, sl_entries(entries));
    if (sl_is_directory_layout(target)) /* files of other formats have no links */
        print_links(&data->links);
    if (!data->symmetric)
        printf(", directed: v aggregates from u of an edge u -> v");
    if (!data->symmetric && config->reverse)
        printf(", which is v -> u in %s", source);
    if (config->order->compute)
        printf(", ordered %s", config->order->summary);
    printf("\n");
}

static int read_options(const struct config *config, struct sl_read_options *out)
{
    const char *separator = config->label_separator ? config->label_separator : "";
    *out = (struct sl_read_options){
        .tell = true,
        .symmetrize = SL_SYMMETRIZE_MAX + config->symmetrize, /* SL_NO_CHOICE: SL_DIRECTED */
        .reverse = config->reverse,
        .count_duplicates = config->duplicates == DUPLICATES_SUM,
        .first_vertex = config->first_vertex,
        .weights = config->weights,
        .label_separator = separator[0],
        .label = config->label,
        .categorical = config->categorical,
        .edge_features = config->edge_features,
        .edge_types = config->edge_types,
        .empty_means = config->empty_cells == EMPTY_IS_MEAN,
    };
    if (config->label_separator && strlen(separator) != 1)
        return sl_error(SL_ERR_USAGE, "--label-separator: expected one character, not \"%s\"",
                        separator);
    return sl_split_rule_parse(config->split, config->split_seed, &out->split);
}

static int read_link_rule(const struct config *config, struct sl_link_rule *out)
{
    const bool reads = sl_link_rule_read(config->split_edges, out);
    out->seed = (uint64_t)config->split_seed;
    out->negatives = config->negatives;
    return reads ? SL_OK
                 : sl_error(SL_ERR_USAGE, "--split-edges %s: expected " SL_LINK_RULE_FORM,
                            config->split_edges);
}

/* Refuse negatives of no links, and links that the target cannot hold. */
static int check_links(const struct config *config, const char *target)
{
    if (config->negatives > 1 && !config->split_edges)
        return sl_error(SL_ERR_USAGE,
                        "--eval-negatives %" PRId64 ": expected --split-edges with it",
                        config->negatives);
    if (config->split_edges && !sl_is_folder_target(target))
        return sl_error(SL_ERR_USAGE,
                        "--split-edges %s: %s is no folder, and other targets have no links "
                        "(expected a folder)",
                        config->split_edges, target);
    return 0;
}

static int convert(const struct config *config, const char *source, const char *target)
{
    struct sl_dataset data = {0};
    struct sl_read_options reading;
    struct sl_link_rule links;
    int code = read_options(config, &reading);
    if (!code)
        code = read_link_rule(config, &links);
    if (!code)
        code = check_links(config, target);
    if (!code)
        code = sl_dataset_open_with(source, &reading, &data);
    if (code)
        return code;
    if (data.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edge%s merged", source, data.merged_edges,
                sl_plural(data.merged_edges, " was", "s were"));
    code = sl_dataset_split_links(&data, &links);
    if (!code && links.given && !sl_links_given(&data.links))
        sl_note(
            "%s: no link is left for validation and test: the shares of its few edges are below "
            "one",
            source);
    if (!code)
        code = sl_dataset_reorder(&data, config->order->name, (uint64_t)config->seed);
    if (!code)
        code = sl_dataset_write_as(&data, target);
    if (!code && !config->talk.quiet)
        print_result(config, &data, source, target);
    sl_dataset_close(&data);
    return code;
}

static int run_convert(int argc, char **argv)
{
    struct config config;
    int positionals;
    int code = sl_command_parse(&sl_command_convert, &config, argc, argv, 2, 2, &positionals, NULL);
    if (!code)
        sl_talk_begin(&config.talk, true);
    if (!code)
        code = convert(&config, argv[0], argv[1]);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_convert = {
    .name = "convert",
    .synopsis = "SOURCE TARGET [--symmetrize [WAY]] [--reverse] [--order NAME]",
    .summary =
        "Write a dataset of any known format (docs/DATASETS.md) as a directory of NumPy arrays, or "
        "as the file that TARGET's end names: .npz, .mtx, .graph, .metis, .txt, .csv, .tsv",
    .options = options,
    .run = run_convert,
};
