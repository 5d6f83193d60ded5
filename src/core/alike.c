#include "core/alike.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "core/error.h"
#include "core/json_file.h"

/* ---- Hash ---- */

enum { PIECE = 1 << 20, PIECES = 256, LANES = 4 };

static uint64_t mix(uint64_t hash, uint64_t word)
{
    const uint64_t x = hash ^ word;
    return (x << 29 | x >> 35) * 0x9E3779B97F4A7C15u;
}

/* Four lanes, so that a product need not wait for the one before. Clang 14 takes all memory where
 * it puts the loop into its callers. */
__attribute__((noinline)) static uint64_t hash_piece(uint64_t hash, const unsigned char *bytes,
                                                     size_t size)
{
    uint64_t lane[LANES] = {hash + 1, hash + 2, hash + 3, hash + 4}, word[LANES] = {0};
    size_t at = 0;
    for (; size - at >= sizeof word; at += sizeof word) {
        memcpy(word, bytes + at, sizeof word);
        for (int l = 0; l < LANES; l++)
            lane[l] = mix(lane[l], word[l]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, bytes + at, size - at);
    for (int l = 0; l < LANES; l++)
        hash = mix(mix(hash, lane[l]), word[l]);
    return mix(hash, size);
}

uint64_t sl_alike_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    if (size <= (size_t)PIECE * PIECES)
        return hash_piece(hash, from, size);
    for (size_t p = 0; p < PIECES; p++)
        hash = hash_piece(hash, from + (size - PIECE) * p / (PIECES - 1), PIECE);
    return mix(hash, size);
}

uint64_t sl_alike_hash_text(uint64_t hash, const char *text)
{
    return hash_piece(hash, (const unsigned char *)text, strlen(text));
}

/* ---- Lists ---- */

void sl_alike_add(struct sl_alike *alike, const char *name, uint64_t hash, const char *words, ...)
{
    if (alike->count == SL_ALIKE_MOST)
        sl_fatal("more than %d things to compare between ranks", SL_ALIKE_MOST);
    struct sl_alike_thing *thing = &alike->thing[alike->count++];
    va_list args;
    va_start(args, words);
    vsnprintf(thing->words, sizeof thing->words, words, args);
    va_end(args);
    thing->name = name;
    thing->hash = sl_alike_hash_text(sl_alike_hash_text(hash, name), thing->words);
}

/* Return whether an option changes only what one rank does or prints, and nothing that other ranks
 * wait for. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"workers", "scheduler", "quiet", "verbose", "config",
                                      "log",     "report",    "dag",   "json"};
    for (size_t o = 0; o < sizeof own / sizeof *own; o++)
        if (strcmp(name, own[o]) == 0)
            return true;
    return false;
}

static bool add_option(struct sl_alike *alike, const struct sl_option *option, const json_t *value)
{
    const bool file = option->argument && (strcmp(option->argument, "FILE") == 0 ||
                                           strcmp(option->argument, "DIR") == 0);
    char *text = value ? sl_json_print(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
    const bool whole = json_is_string(value) || text;
    const char *plain = json_string_value(value) ? json_string_value(value) : text ? text : "";
    if (!value)
        sl_alike_add(alike, option->name, 0, "no --%s", option->name);
    else if (option->type == SL_OPTION_FLAG)
        sl_alike_add(alike, option->name, 0, json_is_true(value) ? "--%s" : "--no-%s",
                     option->name);
    else if (file)
        sl_alike_add(alike, option->name, 0, "--%s", option->name);
    else
        sl_alike_add(alike, option->name, sl_alike_hash_text(0, plain), "--%s %s", option->name,
                     plain);
    free(text);
    return !value || whole;
}

void sl_alike_add_command(struct sl_alike *alike, const char *command)
{
    sl_alike_add(alike, "version", 0, "version %s", SL_VERSION);
    sl_alike_add(alike, "command", 0, "the command %s", command);
}

void sl_alike_add_options(struct sl_alike *alike, const char *command,
                          const struct sl_option *table, const void *config, const bool *given)
{
    const long failures = sl_json_failures();
    bool whole = true;
    sl_alike_add_command(alike, command);
    json_t *all = sl_options_to_json(table, config);
    for (int o = 0; table[o].name; o++)
        if (!is_own(table[o].name)) {
            const json_t *value = given[o] ? json_object_get(all, table[o].name) : NULL;
            whole = add_option(alike, &table[o], value) && whole;
        }
    json_decref(all);
    if (!all || !whole || sl_json_failures() > failures)
        alike->code = sl_error(SL_ERR_SYSTEM, "no memory to compare the options of ranks");
}

void sl_alike_add_alone(struct sl_alike *alike, const char *command)
{
    sl_alike_add_command(alike, command);
    alike->thing[alike->count - 1].hash = 0; /* ranks may run different commands of this kind */
}

/* ---- Comparison ---- */

bool sl_alike_same(struct sl_runtime *rt, const struct sl_alike *alike)
{
    uint64_t hash = 0;
    for (int t = 0; t < alike->count; t++)
        hash = mix(hash, alike->thing[t].hash);
    const int64_t all = (int64_t)hash;
    return sl_runtime_least(rt, all) == ~sl_runtime_least(rt, ~all); /* smallest and largest hash */
}

/* The list of rank 0 as a message. */
struct letter {
    char host[64];
    uint64_t hash[SL_ALIKE_MOST];
    char words[SL_ALIKE_MOST][SL_ALIKE_WORDS];
};

static void write_letter(const struct sl_alike *alike, struct letter *letter)
{
    memset(letter, 0, sizeof *letter);
    gethostname(letter->host, sizeof letter->host - 1);
    for (int t = 0; t < alike->count; t++) {
        letter->hash[t] = alike->thing[t].hash;
        memcpy(letter->words[t], alike->thing[t].words, SL_ALIKE_WORDS);
    }
}

static int compare(int rank, const struct letter *own, const struct letter *first,
                   const struct sl_alike *alike, int code, const char *expected)
{
    int t = 0;
    while (t < alike->count && own->hash[t] == first->hash[t])
        t++;
    if (t == alike->count)
        return 0;
    const char *words = own->words[t], *others = first->words[t];
    if (strcmp(words, others) == 0)
        return sl_error(code,
                        "rank %d on host %s has other %s than rank 0 on host %s (expected %s)",
                        rank, own->host, alike->thing[t].name, first->host, expected);
    return sl_error(code, "rank %d on host %s has %s, and rank 0 on host %s has %s (expected %s)",
                    rank, own->host, words, first->host, others, expected);
}

int sl_alike_check(struct sl_runtime *rt, const struct sl_alike *alike, int code,
                   const char *expected)
{
    if (rt->ranks == 1)
        return 0;
    struct letter own, first;
    write_letter(alike, &own);
    write_letter(alike, &first);
    sl_runtime_broadcast(rt, 0, &first, sizeof first);
    return sl_runtime_agree(rt, compare(rt->rank, &own, &first, alike, code, expected));
}
