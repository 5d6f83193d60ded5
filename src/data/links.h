/* Links: pairs of vertices (source, target) that a model is to predict. Links that train are the
 * edges of the adjacency. Links of validation and test are in files of their own, and the adjacency
 * does not have them: nothing aggregates over them.
 *
 * Row v of the adjacency lists the vertices that v aggregates from: an entry of row v and column u
 * is the link (u, v). The two entries of an undirected edge are one link, and so are the entries of
 * several relations between the same vertices. Loops are no links. */
#ifndef SL_DATA_LINKS_H
#define SL_DATA_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"
#include "core/runtime.h"
#include "core/split.h"
#include "data/formats/npy.h"

struct sl_source;
struct sl_part;

/* Links of SL_SPLIT_VAL and SL_SPLIT_TEST, in rows of the files, which no order moves. Negatives
 * are pairs that are no links. Where k divides k', the negatives j k' / k … (j + 1) k' / k - 1
 * belong to link j. An absent array has `data` NULL. */
struct sl_source_links {
    struct sl_npy pairs[SL_SPLITS];     // (k, 2): source and target
    struct sl_npy negatives[SL_SPLITS]; // (k', 2)
};

/* A rule that draws the links of validation and test among the edges: --split-edges. */
struct sl_link_rule {
    bool given;        /* links are drawn; else the dataset has its own, or none */
    double shares[3];  /* per cent of the links, to train, validate and test on; their sum is 100 */
    int64_t negatives; /* negatives of each link of validation and test; 0: 1 */
    uint64_t seed;
};

#define SL_LINK_RULE_FORM "per cent that add up to 100, some of them to train, as 85/5/10"

/* ---- Arrays ---- */

/* Set `pair` to the source and target of row k. */
void sl_links_get(const struct sl_npy *pairs, int64_t k, int64_t pair[2]);

/* Return the name of the splits' files: "val" or "test". */
const char *sl_links_split_name(enum sl_split split);

/* Return the links of a split. */
static inline int64_t sl_links_count(const struct sl_source_links *links, enum sl_split split)
{
    return links->pairs[split].data ? links->pairs[split].shape[0] : 0;
}

/* Return whether a split has links. */
static inline bool sl_links_given(const struct sl_source_links *links)
{
    return sl_links_count(links, SL_SPLIT_VAL) > 0 || sl_links_count(links, SL_SPLIT_TEST) > 0;
}

/* Check shapes, types and vertices of the arrays of the folder `path`. Check that each split has
 * both links and negatives, or neither. SL_ERR_DATA names file and position. */
int sl_links_check(const struct sl_source_links *links, const char *path, int64_t vertices);

/* Set *out to the links of a source, in rows of its order: the source's own arrays, or new arrays
 * where there is an order. SL_ERR_SYSTEM. */
int sl_links_take(const struct sl_source *source, struct sl_block **blocks,
                  struct sl_source_links *out);

/* Turn all pairs round. SL_ERR_SYSTEM. */
int sl_links_reverse(struct sl_source_links *links, struct sl_block **blocks);

/* ---- Directions ---- */

/* Return whether each entry of the adjacency but loops has a reverse entry, whatever their values.
 * `part` has this rank's rows. Collective. */
bool sl_links_are_undirected(struct sl_runtime *rt, const struct sl_part *part);

/* Return the smallest number (sl_source_number) that the target of a link may have. It is 0, unless
 * the graph is bipartite by numbers: the first ends of all links have smaller numbers than all
 * second ends, as where users come before items. Then it is the smallest number of a second end.
 * The first end of an undirected link is the vertex of the smaller number; that of a directed link
 * is its source. Links of validation and test count as edges do. `part` has this rank's rows.
 * Collective.
 */
int64_t sl_links_first_target(struct sl_runtime *rt, const struct sl_source *source,
                              const struct sl_part *part, bool undirected);

/* Return the key of the directions of undirected links. */
uint64_t sl_links_direction_key(uint64_t seed);

/* Return whether u is the source of an undirected link of the numbers u < v. It always is in a
 * graph that is bipartite by numbers; elsewhere a random bit says so. `first_target`: see
 * sl_links_first_target. */
static inline bool sl_links_source_first(uint64_t direction_key, int64_t first_target, int64_t u,
                                         int64_t v)
{
    return first_target > 0 || (sl_rng_bits(direction_key, (uint32_t)u, (uint32_t)v) & 1);
}

/* ---- Rules ---- */

/* Read a rule, with seed 0 and one negative; NULL: no rule. Return whether the text is a rule. */
bool sl_link_rule_read(const char *text, struct sl_link_rule *out);

/* Draw links of validation and test among the edges of a source, with their negatives, and take
 * their entries out of the adjacency. Weights, edge features and relations stay with the entries
 * that are left. Do nothing where no rule is given. Each rank calls it by itself, before it finds
 * parts; all ranks draw the same.
 *
 * Of E links, floor(E share / 100) validate and test. Links with the smallest random numbers test,
 * the next ones validate. A number depends only on the seed and on the numbers of both vertices in
 * the original order. So the draw is the same in any order. The arrays list links in the order
 * of their random numbers. A negative has the source of its link. Its target is drawn uniformly
 * among all possible targets that no edge joins to the source.
 *
 * SL_ERR_USAGE: the source has links already. SL_ERR_DATA: the adjacency is wrong, no link is left
 * to train on, or a vertex is joined to nearly all. SL_ERR_SYSTEM. */
int sl_links_split(struct sl_source *source, const struct sl_link_rule *rule);

#endif
