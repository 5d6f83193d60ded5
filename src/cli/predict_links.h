/* Scores of pairs of vertices, for starling predict. */
#ifndef SL_CLI_PREDICT_LINKS_H
#define SL_CLI_PREDICT_LINKS_H

#include "run/apply.h"

/* The file of pairs, and the files to write; NULL: none. */
struct sl_predict_links {
    const char *links, *output, *table, *probabilities;
};

/* Read the pairs, score them on rank 0, and write the files: scores (k) and probabilities (k) as
 * .npy of float32; a table with source, target and score. Without pairs, do nothing. Names of
 * vertices must be in apply->named. Collective. SL_ERR_DATA names file and line or row;
 * SL_ERR_SYSTEM. */
int sl_predict_links(struct sl_apply *apply, const struct sl_predict_links *files);

#endif
