#include "data/pairs_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/formats/string_ids.h"
#include "data/formats/text.h"

static int add_pair(struct sl_pairs *pairs, const int64_t vertex[2])
{
    if (pairs->count == pairs->room) {
        const int64_t room = pairs->room > 0 ? 2 * pairs->room : 1024;
        int32_t *grown = realloc(pairs->vertex, (size_t)(2 * room) * sizeof *grown);
        if (!grown)
            return sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " pairs", room);
        pairs->vertex = grown;
        pairs->room = room;
    }
    for (int end = 0; end < 2; end++)
        pairs->vertex[2 * pairs->count + end] = (int32_t)vertex[end];
    pairs->count++;
    return 0;
}

/* ---- Read ---- */

static int read_array(const char *path, int64_t vertices, struct sl_pairs *pairs)
{
    struct sl_block *blocks = NULL;
    struct sl_npy npy;
    int code = sl_npy_map(path, &blocks, &npy);
    if (!code && (npy.dims != 2 || npy.shape[1] != 2 || sl_npy_is_text(&npy) || npy.kind == 'f'))
        code =
            sl_error(SL_ERR_DATA, "%s: expected whole numbers of vertices, of shape (k, 2)", path);
    for (int64_t k = 0; !code && k < npy.shape[0]; k++) {
        const int64_t pair[] = {sl_npy_integer(&npy, 2 * k), sl_npy_integer(&npy, 2 * k + 1)};
        for (int end = 0; !code && end < 2; end++)
            if (pair[end] < 0 || pair[end] >= vertices)
                code = sl_error(SL_ERR_DATA,
                                "%s: vertex %" PRId64 " in row %" PRId64 " (expected 0 to %" PRId64
                                ")",
                                path, pair[end], k, vertices - 1);
        code = code ? code : add_pair(pairs, pair);
    }
    sl_block_free_all(&blocks);
    return code;
}

/* Number the vertices by their ids, where they have ids. */
static int number_ids(const struct sl_identities *identities, struct sl_string_ids *ids)
{
    char *text = malloc(sl_identities_room(identities));
    int code = text ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the ids of vertices");
    for (int64_t v = 0; !code && identities->ids.data && v < identities->vertices; v++) {
        sl_identities_name(identities, v, text);
        const int64_t number = sl_string_ids_get(ids, text);
        if (number < 0)
            code = (int)number;
        else if (number != v)
            code = sl_error(SL_ERR_DATA,
                            "vertices %" PRId64 " and %" PRId64
                            " are both called %s (expected --links of a .npy of their "
                            "numbers)",
                            number, v, text);
    }
    free(text);
    return code;
}

/* Set *vertex to the vertex that a word names; -1: there is none. */
static int64_t find_vertex(const struct sl_identities *identities, const struct sl_string_ids *ids,
                           const char *word)
{
    int64_t number = -1;
    if (identities->ids.data)
        return sl_string_ids_find(ids, word);
    return sl_text_to_int64(word, &number) && number < identities->vertices ? number : -1;
}

static int read_line(const struct sl_text *text, char *line, const struct sl_identities *identities,
                     const struct sl_string_ids *ids, struct sl_pairs *pairs)
{
    int64_t pair[2];
    for (char *c = line; *c; c++)
        if (*c == ',' || *c == '\t')
            *c = ' ';
    for (int end = 0; end < 2; end++) {
        const char *word = sl_text_word(&line);
        pair[end] = word ? find_vertex(identities, ids, word) : -1;
        if (pair[end] < 0)
            return sl_error(
                SL_ERR_DATA, "%s: line %" PRId64 ": %s%s (expected a source and a target%s)",
                text->path, text->line_number, word ? "no vertex is called " : "a word is missing",
                word ? word : "",
                identities->ids.data ? ", as vertex_ids calls them" : ": numbers from 0 on");
    }
    if (sl_text_word(&line))
        return sl_error(SL_ERR_DATA,
                        "%s: line %" PRId64
                        ": more than two words (expected a source and a target)",
                        text->path, text->line_number);
    return add_pair(pairs, pair);
}

static int read_text(const char *path, const struct sl_identities *identities,
                     struct sl_pairs *pairs)
{
    struct sl_string_ids ids = {0};
    struct sl_text text;
    char *line;
    int code = number_ids(identities, &ids);
    if (!code)
        code = sl_text_open(&text, path);
    if (!code) {
        int next = 0;
        while (!code &&
               (next = sl_text_next_data(&text, identities->ids.data ? "" : "#%", &line)) > 0)
            code = read_line(&text, line, identities, &ids, pairs);
        code = code ? code : next;
        sl_text_close(&text);
    }
    sl_string_ids_free(&ids);
    return code;
}

int sl_pairs_read(const char *path, const struct sl_identities *identities, struct sl_pairs *pairs)
{
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0
               ? read_array(path, identities->vertices, pairs)
               : read_text(path, identities, pairs);
}

void sl_pairs_free(struct sl_pairs *pairs)
{
    free(pairs->vertex);
    *pairs = (struct sl_pairs){0};
}
