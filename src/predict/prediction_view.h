/* The rows of `starling plan` and `starling bench distributions` for a prediction. */
#ifndef SL_PREDICT_PREDICTION_VIEW_H
#define SL_PREDICT_PREDICTION_VIEW_H

#include <jansson.h>

#include "predict/prediction.h"

/* Its figures, of the rank with most and of all ranks on average. */
json_t *sl_prediction_to_json(const struct sl_prediction *prediction);

json_t *sl_plan_to_json(const struct sl_plan *plan);

/* Every rank's traffic as planned, a list for each kind. */
json_t *sl_prediction_traffic(const struct sl_prediction *prediction, int ranks);

#endif
