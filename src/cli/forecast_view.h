/* What `starling plan` and `starling bench distributions` show of a forecast. */
#ifndef SL_CLI_FORECAST_VIEW_H
#define SL_CLI_FORECAST_VIEW_H

#include <jansson.h>

#include "predict/forecast.h"

/* Its figures, of the rank with most and of all ranks on average. */
json_t *sl_forecast_to_json(const struct sl_forecast *forecast);

json_t *sl_plan_to_json(const struct sl_plan *plan);

/* Every rank's traffic as planned, a list for each kind. */
json_t *sl_forecast_traffic(const struct sl_forecast *forecast, int ranks);

#endif
