/* Versions, errors, ranks. */
#include <math.h>
#include <stdatomic.h>

#include "api/api.h"
#include "config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number.h"

static struct sl_runtime ranks = {.ranks = 1}; /* ranks of MPI, for exchanges without StarPU */
static bool started;
static atomic_bool busy;
static locale_t before; /* locale of the thread before its current call */

const char *starling_version(void)
{
    return SL_VERSION;
}

const char *starling_error(void)
{
    return sl_error_message();
}

int starling_start(void)
{
    if (started)
        return 0;
    const int code = sl_runtime_hold_mpi(&ranks);
    started = code == 0;
    return code;
}

int starling_rank(void)
{
    return ranks.rank;
}

int starling_ranks(void)
{
    return ranks.ranks;
}

void starling_finish(void)
{
    if (started)
        sl_runtime_release_mpi();
    started = false;
}

int sl_api_lock(void)
{
    if (atomic_exchange(&busy, true))
        return sl_error(SL_ERR_USAGE, "another call of the library is on its way in this process "
                                      "(expected one at a time, and none in a callback)");
    before = uselocale(sl_number_locale()); /* StarPU must read numbers with a decimal point, too */
    sl_talk(false, false);                  /* each call's options say how much it prints */
    return 0;
}

int sl_api_enter(void)
{
    if (sl_api_lock())
        return SL_ERR_USAGE;
    const int code = starling_start();
    if (code)
        sl_api_leave();
    return code;
}

void sl_api_leave(void)
{
    uselocale(before);
    atomic_store(&busy, false);
}

locale_t sl_api_locale(void)
{
    return before;
}

int sl_api_agree(int code)
{
    return sl_runtime_agree(&ranks, code);
}

struct starling_result sl_api_result(const struct sl_outcome *outcome)
{
    return (struct starling_result){
        .loss = NAN,
        .train_accuracy = outcome->train_accuracy,
        .val_accuracy = outcome->val_accuracy,
        .test_accuracy = outcome->test_accuracy,
        .train_score = outcome->score.of[SL_SPLIT_TRAIN],
        .val_score = outcome->score.of[SL_SPLIT_VAL],
        .test_score = outcome->score.of[SL_SPLIT_TEST],
        .metric = outcome->metric->name,
        .epoch_seconds = NAN,
        .seconds = NAN,
    };
}
