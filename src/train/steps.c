#include "train/steps.h"

#include <math.h>
#include <string.h>

#include "core/message.h"
#include "core/task.h"
#include "graphs/vertex_cut.h"

static struct sl_optimizer_step optimizer_step(const struct sl_config *config, int64_t epoch,
                                               int64_t update)
{
    const float beta1 = 0.9f, beta2 = 0.999f;
    return (struct sl_optimizer_step){
        .method = config->training.optimizer,
        .rate = (float)sl_config_rate(config, epoch),
        .momentum = (float)config->training.momentum,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = 1e-8f,
        .average_rate = 0.1f,
        .correction1 = (float)(1.0 - pow((double)beta1, (double)update)),
        .correction2 = (float)(1.0 - pow((double)beta2, (double)update)),
    };
}

static bool is_exact(const struct sl_config *config, int64_t epoch)
{
    return epoch > sl_config_epochs(config) - sl_config_exact_epochs(config);
}

static void train_network(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch,
                          const struct sl_optimizer_step *step)
{
    const struct sl_config *config = trainer->config;
    net->step.epoch = (uint32_t)epoch;
    net->step.update = (uint32_t)trainer->updates;
    net->step.exact = is_exact(config, epoch);
    sl_network_train(net, step);
}

static void train_model(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch,
                        int number)
{
    const int steps = trainer->batches.steps;
    net->step.left = (double)(steps - 1 - number) / steps;
    const struct sl_optimizer_step step =
        optimizer_step(trainer->config, epoch, ++trainer->updates);
    train_network(trainer, net, epoch, &step);
}

/* A step of GIST's Algorithm 1 (Wolfe and others 2021), whose lines stand on the right. The loops
 * over t and z are the loop over steps. Adam counts the steps of all rounds, or of a round. */
static void train_submodels(struct sl_trainer *trainer, int64_t epoch, int number)
{
    struct sl_submodels *s = &trainer->submodels;
    const int64_t update = trainer->updates++, round = sl_submodels_round_of(s, update),
                  local = sl_submodels_local_step(s, update);
    if (round != s->round) {               /* for t = 0, ..., T - 1 */
        sl_submodels_aggregate(s);         /*     Θ <- subAgg({Θ(i)}), of round t - 1 */
        sl_submodels_cut(s, round, epoch); /*     {Θ(i)} <- subGCNs(Θ, m) */
        sl_submodels_distribute(s, epoch); /*     distribute each Θ(i) to a different worker */
    }
    sl_submodels_begin_step(s, epoch);
    struct sl_optimizer_step step = optimizer_step(
        trainer->config, epoch, trainer->config->units.reset_optimizer ? local : update + 1);
    step.local = local;
    for (int p = s->first; p < s->first + s->here; p++) { /* for i = 1, ..., m: of this group */
        const int slot = sl_submodels_enter(s, p);        /*     for z = 1, ..., Z: `local` */
        struct sl_network *net = sl_batches_network(&trainer->batches, epoch, number, slot);
        train_network(trainer, net, epoch, &step); /*         Θ(i) <- subTrain(Θ(i), G) */
        sl_submodels_leave(s, p, net);
    }
}

void sl_trainer_train_group(struct sl_trainer *trainer, int64_t epoch)
{
    for (int s = 0; s < trainer->batches.steps; s++)
        if (sl_batches_network(&trainer->batches, epoch, s, 0)) {
            train_submodels(trainer, epoch, s);
            sl_runtime_wait_for_room(trainer->rt, SL_PENDING_TASKS);
        }
    sl_batches_leave(&trainer->batches);
}

/* Whether the run has ended after `submitted` steps of the epoch, so the next step need not be
 * submitted. Wait until few steps lie ahead of the last known metrics, the same number on all
 * ranks. Two steps may overlap: a batch is made and read while another one trains. Sub-models end
 * with epochs only. */
static bool has_ended(struct sl_trainer *trainer, int64_t epoch, int submitted)
{
    enum { LEAST = 1, UNKNOWN = 2, MOST = 8 };
    static const double SECONDS = 0.5;
    const double most = trainer->step_seconds > 0.0 ? SECONDS / trainer->step_seconds : UNKNOWN;
    const int ahead = most < LEAST ? LEAST : most > MOST ? MOST : (int)most;
    return !sl_config_has_submodels(trainer->config) && submitted > ahead &&
           sl_records_end(&trainer->records, epoch, submitted - ahead);
}

void sl_trainer_pass_on_stop(struct sl_trainer *trainer)
{
    if (trainer->rt->rank == 0 || trainer->stop_passed_on ||
        !sl_records_stop_asked(&trainer->records))
        return;
    sl_runtime_ask_stop(trainer->rt);
    trainer->stop_passed_on = true;
}

/* Open the record of an epoch. Return how many of its steps the checkpoint has, and count their
 * metrics. */
static int open_epoch(struct sl_trainer *trainer, int64_t epoch)
{
    const struct sl_unfinished *before = &trainer->start.unfinished;
    const int steps = trainer->batches.steps,
              first = epoch == trainer->start.first_epoch ? before->steps : 0;
    struct sl_record *record =
        sl_records_open(&trainer->records, epoch, steps - first, trainer->updates);
    if (first > 0) {
        record->train_loss = before->loss;
        record->train_correct = before->correct;
    }
    return first;
}

static void record_step(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch)
{
    if (sl_config_has_submodels(trainer->config))
        sl_submodels_record(&trainer->submodels, epoch, sl_records_train, &trainer->records);
    else
        sl_network_record(net, sl_records_train, &trainer->records);
}

/* Add the traffic of an epoch to its kind. `warming_up`: the epoch is in the run's first cycle. */
static void count_traffic(struct sl_epoch_traffic *t, int64_t cycle, bool warming_up,
                          const struct sl_traffic epoch[2])
{
    const bool whole = ++t->epochs == cycle;
    for (int v = 0; v < 2; v++)
        t->under_way[v] = sl_traffic_add(&t->under_way[v], &epoch[v]);
    if (whole || t->sum_epochs < cycle) {
        memcpy(t->sum, t->under_way, sizeof t->sum);
        t->sum_epochs = t->epochs;
        t->warming_up = warming_up;
    }
    if (whole) {
        memset(t->under_way, 0, sizeof t->under_way);
        t->epochs = 0;
    }
}

/* Count the traffic of an epoch whose steps are all submitted. */
static void count_epoch(struct sl_trainer *trainer, int64_t epoch, const struct sl_traffic sent[2])
{
    const int delay = trainer->config->ranks.delay;
    if (delay != SL_DELAY_EXACT && is_exact(trainer->config, epoch))
        count_traffic(&trainer->exact_traffic, 1, false, sent);
    else
        count_traffic(&trainer->traffic, delay > 0 ? delay : 1, epoch < 2 * (int64_t)delay, sent);
}

bool sl_trainer_submit_steps(struct sl_trainer *trainer, int64_t epoch)
{
    struct sl_batches *batches = &trainer->batches;
    const int64_t tasks = trainer->rt->tasks + batches->own.tasks;
    const struct sl_traffic traffic = trainer->rt->traffic, inside = batches->own.traffic;
    const int first = open_epoch(trainer, epoch);
    int submitted = 0, s = first;
    int64_t taken = 0;
    for (; s < batches->steps; s++) {
        struct sl_network *net = sl_batches_network(batches, epoch, s, 0);
        if (!net) {
            sl_records_skip(&trainer->records, epoch, 1);
            continue;
        }
        sl_trainer_pass_on_stop(trainer);
        if (has_ended(trainer, epoch, submitted))
            break;
        if (sl_config_has_submodels(trainer->config))
            train_submodels(trainer, epoch, s);
        else
            train_model(trainer, net, epoch, s);
        taken = trainer->rt->tasks + batches->own.tasks - tasks;
        record_step(trainer, net, epoch);
        submitted++;
        if (batches->steps > 1) /* an epoch may have many steps */
            sl_runtime_wait_for_room(trainer->rt, SL_PENDING_TASKS);
    }
    sl_batches_leave(batches);
    if (s < batches->steps) {
        sl_records_skip(&trainer->records, epoch, batches->steps - s);
        return false;
    }
    if (first > 0 && epoch < sl_config_epochs(trainer->config)) /* the next is whole */
        return true;
    trainer->tasks_per_epoch = taken;
    count_epoch(trainer, epoch,
                (const struct sl_traffic[]){sl_traffic_since(trainer->rt, &traffic),
                                            sl_traffic_since(&batches->own, &inside)});
    return true;
}
