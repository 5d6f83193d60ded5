/* The store: parameters of a model and the optimizer's state, in panels.
 *
 * A panel has some rows of a layer's parameters, and the same rows of their state and of the best
 * parameters. Its owner alone has them, in memory or in a file. The model of a plain run is its own
 * store: a panel for each layer, on rank 0. That of sub-models is cut, and spread over all ranks:
 *
 *     rank r owns the rows whose bytes are r, …, r + 1 of `ranks` equal parts of all
 *
 * Blocks of sub-models travel between the owners of panels and the owner of the sub-model: for each
 * panel a message, of the rows and columns that the sub-model has. Such rows have tiles of their
 * own, since there are as many as the round says. */
#ifndef SL_SUBMODELS_STORE_H
#define SL_SUBMODELS_STORE_H

#include "codelets/units.h"
#include "core/mapped.h"
#include "graphs/model.h"
#include "predict/plan.h"

/* What a store has of each entry: parameters, state 1 and 2, the best parameters. */
enum {
    SL_STORE_PARAMETERS = 0,
    SL_STORE_STATE = 1,
    SL_STORE_BEST = SL_STORE_STATE + SL_STATES,
    SL_STORE_KINDS,
};

struct sl_panel {
    int layer, owner;
    int64_t first, rows;
    struct sl_tile *tile[SL_STORE_KINDS]; // (rows, columns of the layer); NULL: not there
};

struct sl_store {
    struct sl_runtime *rt;
    struct sl_model *model;
    int kinds; /* parameters and state */
    int panels, room;
    struct sl_panel *panel; // (panels): by layers, from the first row on
    int *first;             // (layers + 1): the panels of each layer
    struct sl_tile *tiles;  // (panels, SL_STORE_KINDS); NULL: those of the model
    const char *directory;  /* of a file with this rank's panels; NULL: memory */
    struct sl_mapped mapped;
};

/* Let the model, which holds all, be its own store. Return 0 or SL_ERR_SYSTEM; sl_store_destroy in
 * either case. */
int sl_store_of_model(struct sl_store *store, struct sl_model *model);

/* Make the store of a model that holds copies or nothing. Panels have at most `most_bytes`, or one
 * row; 0: SL_PANEL_BYTES. `directory`: of files; NULL: in memory. Collective. Errors likewise, the
 * same on all ranks. */
static const int64_t SL_PANEL_BYTES = (int64_t)256 << 20;
int sl_store_create(struct sl_store *store, struct sl_model *model, const char *directory,
                    int64_t most_bytes);
void sl_store_destroy(struct sl_store *store);

/* Submit the first parameters, and spread them. */
void sl_store_init(struct sl_store *store);

/* Submit copies of all parameters to all ranks, if the model holds any. */
void sl_store_spread(struct sl_store *store);

/* After sl_network_keep_best on a network of the model: keep the parameters of the epoch if it is
 * the best and the model keeps any; tell all ranks with panels so, and whether the run has ended
 * (model.h: `end`). Make the best parameters the current ones, and spread them. */
void sl_store_keep_best(struct sl_store *store, int epoch);
void sl_store_restore_best(struct sl_store *store);

/* A block of a layer, between the store and a tile of the same rows and columns. */
struct sl_store_block {
    int layer, kind, epoch; /* tasks count in this epoch */
    struct sl_unit_block units;
    struct sl_tile *tile;
    struct sl_tile *kept; // (panels): shared rows, where the panels are; NULL: the whole's
    bool zero, shared;    /* struct sl_unit_take */
};

/* Submit the block's way from the store to the tile, and back. */
void sl_store_take(struct sl_store *store, const struct sl_store_block *block);
void sl_store_put(struct sl_store *store, const struct sl_store_block *block);

/* Return the numbers of a block of a layer that travel when rank `root` takes it, for each kind.
 * `cols`: columns of the block. */
int64_t sl_store_words(const struct sl_store *store, int layer, const struct sl_unit_block *units,
                       int64_t cols, int root);

/* From a checkpoint: write rows (rows, cols) to the first columns of a tile, from row `row` on, on
 * its owner, before any task has touched it. */
void sl_store_load_rows(struct sl_tile *tile, int64_t row, int64_t rows, int64_t cols,
                        const float *from);

/* Add this rank's panels to a plan. */
void sl_store_plan(const struct sl_store *store, struct sl_plan *plan);

#endif
