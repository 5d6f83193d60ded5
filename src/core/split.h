/* The splits of vertices: training, validation, test. */
#ifndef SL_CORE_SPLIT_H
#define SL_CORE_SPLIT_H

enum sl_split { SL_SPLIT_NONE, SL_SPLIT_TRAIN, SL_SPLIT_VAL, SL_SPLIT_TEST, SL_SPLITS };

#endif
