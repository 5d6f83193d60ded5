#include "submodels/rounds.h"

#include <stdlib.h>

#include "core/error.h"

/* ---- Sizes ---- */

static int check_axis(const struct sl_rounds *rounds, const struct sl_axis *axis)
{
    const int64_t units = axis->width / axis->heads;
    const char *of = axis->heads > 1 ? " in each head" : "";
    const char *axis_has = axis->hidden ? "a hidden layer has" : "the features have";
    if (units < rounds->parts)
        return sl_error(SL_ERR_USAGE,
                        "--submodels %d: %s %lld units%s (expected at least as many as sub-models)",
                        rounds->parts, axis_has, (long long)units, of);
    if (rounds->kind == SL_ROUNDS_LATIN && units % rounds->parts)
        return sl_error(SL_ERR_USAGE,
                        "--partition-units latin: %d sub-models do not divide the %lld units of "
                        "%s%s (expected a multiple)",
                        rounds->parts, (long long)units,
                        axis->hidden ? "a hidden layer" : "the features", of);
    return 0;
}

int sl_rounds_create(struct sl_rounds *rounds, const struct sl_axes *axes, enum sl_rounds_kind kind,
                     int parts, int64_t count, uint64_t seed, const bool *splits)
{
    const size_t room = (size_t)axes->count + 1;
    *rounds = (struct sl_rounds){.axes = axes,
                                 .kind = kind,
                                 .parts = parts,
                                 .seed = seed,
                                 .count = count,
                                 .split = calloc(room, sizeof *rounds->split),
                                 .first = calloc(room, sizeof *rounds->first)};
    if (!rounds->split || !rounds->first)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d axes of units", axes->count);
    int code = 0;
    for (int a = 0; a < axes->count; a++) {
        rounds->split[a] = splits ? splits[a] : axes->axis[a].hidden;
        rounds->first[a + 1] = rounds->first[a] + (rounds->split[a] ? axes->axis[a].width : 0);
        if (!code && rounds->split[a])
            code = check_axis(rounds, &axes->axis[a]);
    }
    if (code)
        return code;
    rounds->part = calloc((size_t)(count * rounds->first[axes->count] + 1), 1);
    rounds->history = calloc((size_t)(count * rounds->first[axes->count] + 1), 1);
    return rounds->part && rounds->history
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld rounds",
                          (long long)count);
}

void sl_rounds_free(struct sl_rounds *rounds)
{
    free(rounds->split);
    free(rounds->first);
    free(rounds->part);
    free(rounds->history);
    free(rounds->before);
    *rounds = (struct sl_rounds){0};
}

/* Return the first unit of part `part`, of `units` units. */
static int64_t cut(const struct sl_rounds *rounds, int64_t units, int part)
{
    return rounds->before ? units * rounds->before[part] / rounds->before[rounds->parts]
                          : units * part / rounds->parts;
}

static int check_shares(const struct sl_rounds *rounds, int axis)
{
    const struct sl_axis *a = &rounds->axes->axis[axis];
    for (int p = 0; rounds->split[axis] && p < rounds->parts; p++)
        if (sl_rounds_size(rounds, axis, p) == 0)
            return sl_error(SL_ERR_USAGE,
                            "--submodel-share: sub-model %d has none of the %lld units of %s%s "
                            "(expected a larger share)",
                            p + 1, (long long)(a->width / a->heads),
                            a->hidden ? "a hidden layer" : "the features",
                            a->heads > 1 ? " in a head" : "");
    return 0;
}

int sl_rounds_share(struct sl_rounds *rounds, const int64_t *share)
{
    rounds->before = calloc((size_t)rounds->parts + 1, sizeof *rounds->before);
    int code =
        rounds->before ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d shares", rounds->parts);
    for (int p = 0; !code && p < rounds->parts; p++)
        rounds->before[p + 1] = rounds->before[p] + share[p];
    for (int a = 0; !code && a < rounds->axes->count; a++)
        code = check_shares(rounds, a);
    return code;
}

int64_t sl_rounds_size(const struct sl_rounds *rounds, int axis, int part)
{
    const struct sl_axis *a = &rounds->axes->axis[axis];
    const int64_t units = a->width / a->heads;
    return rounds->split[axis]
               ? a->heads * (cut(rounds, units, part + 1) - cut(rounds, units, part))
               : a->width;
}

int64_t sl_rounds_width(const struct sl_rounds *rounds, int axis, int part)
{
    const struct sl_axis *a = &rounds->axes->axis[axis];
    return a->hidden ? sl_rounds_size(rounds, axis, part) : a->width;
}

bool sl_rounds_alike(const struct sl_rounds *rounds, int a, int b)
{
    bool same = true;
    for (int axis = 0; axis < rounds->axes->count; axis++)
        same = same && sl_rounds_width(rounds, axis, a) == sl_rounds_width(rounds, axis, b);
    return same;
}

/* ---- Draws ---- */

/* Return how many times parts were drawn anew before the round. */
static uint32_t draw_of(const struct sl_rounds *rounds, int64_t round)
{
    return rounds->kind == SL_ROUNDS_FIXED   ? 0
           : rounds->kind == SL_ROUNDS_LATIN ? (uint32_t)(round / rounds->parts)
                                             : (uint32_t)round;
}

/* Return by how many parts an axis is shifted in a round. A Latin round shifts axis a by a parts
 * more than the round before, so two neighbouring axes move apart by one. */
static int shift_of(const struct sl_rounds *rounds, int64_t round, int axis)
{
    return rounds->kind == SL_ROUNDS_LATIN ? (int)(round % rounds->parts * axis % rounds->parts)
                                           : 0;
}

static void draw_axis(struct sl_rounds *rounds, int64_t round, int axis)
{
    const struct sl_axis *a = &rounds->axes->axis[axis];
    const int64_t units = a->width / a->heads;
    uint8_t *part = rounds->part + round * rounds->first[rounds->axes->count] + rounds->first[axis];
    for (int h = 0; h < a->heads; h++) {
        const uint64_t key = sl_rng_key(rounds->seed, SL_RNG_UNITS, draw_of(rounds, round),
                                        (uint32_t)axis << 16 | (uint32_t)h);
        for (int p = 0; p < rounds->parts; p++)
            for (int64_t place = cut(rounds, units, p); place < cut(rounds, units, p + 1); place++)
                part[h * units + sl_rng_permute(key, (uint32_t)units, (uint32_t)place)] =
                    (uint8_t)((p + shift_of(rounds, round, axis)) % rounds->parts);
    }
}

static void keep_history(struct sl_rounds *rounds, int64_t round)
{
    const int64_t units = rounds->first[rounds->axes->count];
    for (int64_t u = 0; u < units; u++)
        rounds->history[u * rounds->count + round] = rounds->part[round * units + u];
}

void sl_rounds_draw(struct sl_rounds *rounds, int64_t round)
{
    if (round >= rounds->count)
        sl_fatal("round %lld of %lld was drawn", (long long)round + 1, (long long)rounds->count);
    for (; rounds->drawn <= round; rounds->drawn++) {
        for (int a = 0; a < rounds->axes->count; a++)
            if (rounds->split[a])
                draw_axis(rounds, rounds->drawn, a);
        keep_history(rounds, rounds->drawn);
    }
}

static struct sl_units units_of(const struct sl_rounds *rounds, int64_t round, int axis)
{
    struct sl_units units = {.width = rounds->axes->axis[axis].width};
    if (rounds->split[axis])
        units.part =
            rounds->part + round * rounds->first[rounds->axes->count] + rounds->first[axis];
    return units;
}

struct sl_unit_block sl_rounds_block(const struct sl_rounds *rounds, int64_t round, int part,
                                     int layer, int weights)
{
    const int in = rounds->axes->in[layer];
    return (struct sl_unit_block){.weights = weights,
                                  .in = units_of(rounds, round, in),
                                  .out = units_of(rounds, round, rounds->axes->out[layer]),
                                  .part = part,
                                  .all_rows = rounds->split[in] && !rounds->axes->axis[in].hidden};
}

static const uint8_t *history_of(const struct sl_rounds *rounds, int axis)
{
    return rounds->split[axis] ? rounds->history + rounds->first[axis] * rounds->count : NULL;
}

struct sl_rounds_past sl_rounds_past(const struct sl_rounds *rounds, int64_t round, int64_t steps,
                                     int layer)
{
    return (struct sl_rounds_past){.round = round,
                                   .steps = steps,
                                   .stride = rounds->count,
                                   .in = history_of(rounds, rounds->axes->in[layer]),
                                   .out = history_of(rounds, rounds->axes->out[layer])};
}

int64_t sl_rounds_bytes(const struct sl_rounds *rounds)
{
    return 2 * rounds->count * rounds->first[rounds->axes->count];
}
