/* The store: parameters of a model and the optimizer's state, in shards.
 *
 * A shard is some rows of a layer's parameters, of the optimizer's state and of the best
 * parameters. Its owner alone holds the shard, in memory or in a file. The model of a plain run is
 * its own store: a shard for each layer, on rank 0. The store of sub-models is cut, and spread over
 * all ranks:
 *
 *     rank r owns the rows whose bytes are r, …, r + 1 of `ranks` equal parts of all
 *
 * Blocks of sub-models travel between the owners of shards and the owner of the sub-model: each
 * shard sends one message, the rows and columns that the sub-model has. These rows have temporary
 * tiles, because each round has other numbers of rows. */
#ifndef SL_SUBMODELS_STORE_H
#define SL_SUBMODELS_STORE_H

#include "codelets/units.h"
#include "core/mapped.h"
#include "graphs/model.h"
#include "predict/plan.h"

/* Kinds of numbers that a store keeps for each entry: parameters, state 1 and 2, best parameters.
 */
enum {
    SL_STORE_PARAMETERS = 0,
    SL_STORE_STATE = 1,
    SL_STORE_BEST = SL_STORE_STATE + SL_STATES,
    SL_STORE_KINDS,
};

struct sl_shard {
    int layer, owner;
    int64_t first, rows;
    struct sl_tile *tile[SL_STORE_KINDS]; // (rows, columns of the layer); NULL: kind is absent
};

struct sl_store {
    struct sl_runtime *rt;
    struct sl_model *model;
    int kinds; /* numbers kept for each entry: 1 parameter and the optimizer's states */
    int shards, room;
    struct sl_shard *shard; // (shards): ordered by layer and first row
    int *first;             // (layers + 1): the first shard of each layer
    struct sl_tile *tiles;  // (shards, SL_STORE_KINDS); NULL: the shards are the model's tiles
    const char *directory;  /* folder of this rank's file of shards; NULL: in memory */
    struct sl_mapped mapped;
};

/* Make a model that holds all parameters its own store. Return 0 or SL_ERR_SYSTEM; call
 * sl_store_destroy in either case. */
int sl_store_of_model(struct sl_store *store, struct sl_model *model);

/* Make the store of a model that holds copies or nothing. A shard has at most `most_bytes`, or one
 * row; 0: SL_SHARD_BYTES. `directory`: where files hold the shards; NULL: memory does. Collective.
 * Return 0 or SL_ERR_SYSTEM, the same on all ranks; call sl_store_destroy in either case. */
static const int64_t SL_SHARD_BYTES = (int64_t)256 << 20;
int sl_store_create(struct sl_store *store, struct sl_model *model, const char *directory,
                    int64_t most_bytes);
void sl_store_destroy(struct sl_store *store);

/* Submit the initial parameters, and their copies to all ranks. */
void sl_store_init(struct sl_store *store);

/* Submit copies of all parameters to all ranks, unless the model holds nothing. */
void sl_store_spread(struct sl_store *store);

/* Keep the epoch's parameters if it is the best one and the model keeps any. Tell all ranks with
 * shards so, and whether the run has ended (model.h: `end`). Call it after sl_network_keep_best on
 * a network of the model. sl_store_restore_best makes the best parameters the current ones and
 * spreads them. */
void sl_store_keep_best(struct sl_store *store, int epoch);
void sl_store_restore_best(struct sl_store *store);

/* A copy of a layer's block between the store and a tile of the same rows and columns. */
struct sl_store_block {
    int layer, kind, epoch; /* tasks do nothing if the run ended before `epoch` */
    struct sl_unit_block units;
    struct sl_tile *tile;
    struct sl_tile *kept; // (shards): the sub-model's shared rows, on the shard's owner; NULL:
                          // shared rows are the store's
    bool zero, shared;    /* see struct sl_unit_take */
};

/* Submit the copy of a block from the store to the tile, or back. */
void sl_store_load(struct sl_store *store, const struct sl_store_block *block);
void sl_store_save(struct sl_store *store, const struct sl_store_block *block);

/* Return how many numbers of one kind travel when rank `root` takes a block of a layer. `cols`:
 * columns of the block. */
int64_t sl_store_words(const struct sl_store *store, int layer, const struct sl_unit_block *units,
                       int64_t cols, int root);

/* Write rows (rows, cols) of a checkpoint to the first columns of a tile, from row `row` on. Only
 * the tile's owner writes. No task may have touched the tile before. */
void sl_store_load_rows(struct sl_tile *tile, int64_t row, int64_t rows, int64_t cols,
                        const float *from);

/* Add this rank's shards to a plan. */
void sl_store_plan(const struct sl_store *store, struct sl_plan *plan);

#endif
