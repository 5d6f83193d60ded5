#include "graphs/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/pack_rows.h"
#include "core/error.h"
#include "core/temporary.h"

/* Buffers, one for each message. They stay from exchange to exchange: a message is packed after the
 * previous message in the buffer has been sent. Each column of a matrix may be on ranks of its own.
 * All ranks have one cut; `width` is the width of this rank's column. */
struct sl_exchange_buffers {
    struct sl_exchange_buffers *next;
    int columns;
    int64_t *col_cut; // (columns + 1)
    int64_t width;
    size_t element_size;
    int place; /* place of sl_exchange_post; places of other functions are -1, -2, … */
    struct sl_tile *send, *receive; // (sends), (receives)
};

/* ---- Lists ---- */

static int no_memory(int64_t rows)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for a list of %lld rows that travel",
                    (long long)rows);
}

/* Index the rows of a message in their tiles. Only packing and unpacking need the index. */
static int index_rows(int rank, const struct sl_exchange_list *list, const int64_t *row_cut,
                      struct sl_exchange_part *part)
{
    const int tiles = list->to - list->from;
    part->first = malloc((size_t)(tiles + 1) * sizeof *part->first);
    const int code = sl_tile_create_own(&part->index, 1, list->count, sizeof(uint32_t), rank);
    if (!part->first || code)
        return no_memory(list->count);
    uint32_t *const index = part->index.memory;
    int64_t k = 0;
    for (int t = 0; t < tiles; t++) {
        const int64_t begin = row_cut[list->from + t], end = row_cut[list->from + t + 1];
        for (part->first[t] = k; k < list->count && list->rows[k] < end; k++)
            index[k] = (uint32_t)(list->rows[k] - begin);
    }
    part->first[tiles] = list->count;
    return 0;
}

static int create_parts(int rank, int lists, const struct sl_exchange_list *list,
                        const int64_t *row_cut, int *count, struct sl_exchange_part **parts)
{
    int code = 0;
    *parts = calloc((size_t)lists + 1, sizeof **parts);
    if (!*parts)
        return no_memory(0);
    for (int l = 0; !code && l < lists; l++) {
        struct sl_exchange_part *part = &(*parts)[*count];
        if (list[l].count == 0)
            continue;
        ++*count;
        *part = (struct sl_exchange_part){.peer = list[l].peer,
                                          .number = list[l].number,
                                          .from = list[l].from,
                                          .to = list[l].to,
                                          .rows = list[l].count};
        if (list[l].rows)
            code = index_rows(rank, &list[l], row_cut, part);
    }
    return code;
}

int sl_exchange_create(struct sl_exchange *x, const struct sl_runtime *rt, int numbers,
                       const int64_t *row_cut, int sends, const struct sl_exchange_list *send,
                       int receives, const struct sl_exchange_list *receive)
{
    *x = (struct sl_exchange){.numbers = numbers};
    const int code = create_parts(rt->rank, sends, send, row_cut, &x->sends, &x->send);
    return code ? code
                : create_parts(rt->rank, receives, receive, row_cut, &x->receives, &x->receive);
}

static void destroy_parts(int count, struct sl_exchange_part *parts)
{
    for (int p = 0; parts && p < count; p++) {
        sl_tile_destroy(&parts[p].index);
        free(parts[p].first);
    }
    free(parts);
}

static void destroy_tiles(int count, struct sl_tile *tiles)
{
    for (int p = 0; tiles && p < count; p++)
        sl_tile_forget(&tiles[p]);
    free(tiles);
}

void sl_exchange_destroy(struct sl_exchange *x)
{
    for (struct sl_exchange_buffers *buffers = x->buffers, *next; buffers; buffers = next) {
        next = buffers->next;
        destroy_tiles(x->sends, buffers->send);
        destroy_tiles(x->receives, buffers->receive);
        free(buffers->col_cut);
        free(buffers);
    }
    destroy_parts(x->sends, x->send);
    destroy_parts(x->receives, x->receive);
    *x = (struct sl_exchange){0};
}

static int64_t count_rows(int count, const struct sl_exchange_part *parts)
{
    int64_t rows = 0;
    for (int p = 0; p < count; p++)
        rows += parts[p].rows;
    return rows;
}

int64_t sl_exchange_rows_sent(const struct sl_exchange *x)
{
    return count_rows(x->sends, x->send);
}

int64_t sl_exchange_rows_received(const struct sl_exchange *x)
{
    return count_rows(x->receives, x->receive);
}

/* ---- Buffers ---- */

/* Message `number` from one rank to another has the same tag in all exchanges of its width. */
static int64_t tag_of(const struct sl_runtime *rt, const struct sl_exchange *x, int64_t tags,
                      int from, int to, int number)
{
    return tags + ((int64_t)from * rt->ranks + to) * x->numbers + number;
}

static struct sl_tile *create_tiles(int count)
{
    struct sl_tile *tiles = calloc((size_t)count + 1, sizeof *tiles);
    if (!tiles)
        sl_fatal("no memory for %d buffers", count);
    return tiles;
}

static void create_buffers(struct sl_runtime *rt, const struct sl_exchange *x,
                           struct sl_exchange_buffers *buffers)
{
    const int64_t tags = sl_temporary_tags(rt, (int64_t)rt->ranks * rt->ranks * x->numbers);
    const int64_t width = buffers->width;
    buffers->send = create_tiles(x->sends);
    buffers->receive = create_tiles(x->receives);
    for (int p = 0; p < x->sends; p++) {
        const struct sl_exchange_part *part = &x->send[p];
        sl_temporary_open_shared(&buffers->send[p], part->rows, width, buffers->element_size,
                                 rt->rank, tag_of(rt, x, tags, rt->rank, part->peer, part->number));
    }
    for (int p = 0; p < x->receives; p++) {
        const struct sl_exchange_part *part = &x->receive[p];
        sl_temporary_open_shared(&buffers->receive[p], part->rows, width, buffers->element_size,
                                 part->peer,
                                 tag_of(rt, x, tags, part->peer, rt->rank, part->number));
    }
}

static bool are_like(const struct sl_exchange_buffers *a, const struct sl_exchange_buffers *b)
{
    return a->width == b->width && a->element_size == b->element_size && a->place == b->place &&
           a->columns == b->columns &&
           memcmp(a->col_cut, b->col_cut, ((size_t)a->columns + 1) * sizeof *a->col_cut) == 0;
}

/* Return the buffers for a cut, width, type and place. Make them if they are not there. */
static struct sl_exchange_buffers *find_buffers(struct sl_runtime *rt, struct sl_exchange *x,
                                                const struct sl_exchange_buffers *like)
{
    const size_t cut_bytes = ((size_t)like->columns + 1) * sizeof *like->col_cut;
    struct sl_exchange_buffers *buffers = x->buffers;
    while (buffers && !are_like(buffers, like))
        buffers = buffers->next;
    if (buffers)
        return buffers;
    buffers = malloc(sizeof *buffers);
    int64_t *cut = malloc(cut_bytes);
    if (!buffers || !cut)
        sl_fatal("no memory for the buffers of an exchange");
    *buffers = *like;
    buffers->col_cut = memcpy(cut, like->col_cut, cut_bytes);
    create_buffers(rt, x, buffers); /* may stop the run (sl_fatal), so buffers join the list only
                                       when they are complete */
    buffers->next = x->buffers;
    x->buffers = buffers;
    return buffers;
}

/* Return the buffers for column tile j of H. */
static struct sl_exchange_buffers *buffers_of(struct sl_runtime *rt, struct sl_exchange *x,
                                              const struct sl_matrix *h, int j, int place)
{
    return find_buffers(rt, x,
                        &(struct sl_exchange_buffers){
                            .columns = h->tile_cols,
                            .col_cut = h->col_cut,
                            .width = h->col_cut[j + 1] - h->col_cut[j],
                            .element_size = sl_type_size(h->type),
                            .place = place,
                        });
}

/* ---- Tasks and messages ---- */

/* Return the buffers of sl_exchange_send and sl_exchange_stage. */
static struct sl_exchange_buffers *passing_buffers(struct sl_runtime *rt, struct sl_exchange *x,
                                                   const struct sl_matrix *h, int j, int place)
{
    return buffers_of(rt, x, h, j, -1 - place);
}

static void pack(struct sl_runtime *rt, struct sl_exchange_part *part, const struct sl_matrix *h,
                 int j, struct sl_tile *buffer)
{
    const int tiles = part->to - part->from;
    struct sl_tile **x = malloc((size_t)tiles * sizeof *x);
    if (!x)
        sl_fatal("no memory to pack rows of %d tiles", tiles);
    for (int t = 0; t < tiles; t++)
        x[t] = sl_matrix_tile(h, part->from + t, j);
    sl_submit_pack_rows(
        rt, &(struct sl_pack_tiles){
                .index = &part->index, .count = tiles, .x = x, .first = part->first, .y = buffer});
    free(x);
}

void sl_exchange_send_part(struct sl_runtime *rt, struct sl_exchange *x, const struct sl_matrix *h,
                           int j, int place, int p)
{
    struct sl_tile *buffer = &passing_buffers(rt, x, h, j, place)->send[p];
    pack(rt, &x->send[p], h, j, buffer);
    sl_exchange_send_buffer(rt, x, p, buffer);
}

void sl_exchange_send(struct sl_runtime *rt, struct sl_exchange *x, const struct sl_matrix *h,
                      int j, int place)
{
    sl_exchange_outgoing(rt, x, h, j, place);
    for (int p = 0; p < x->sends; p++)
        sl_exchange_send_part(rt, x, h, j, place, p);
}

struct sl_tile *sl_exchange_outgoing(struct sl_runtime *rt, struct sl_exchange *x,
                                     const struct sl_matrix *h, int j, int place)
{
    return passing_buffers(rt, x, h, j, place)->send;
}

void sl_exchange_send_buffer(struct sl_runtime *rt, struct sl_exchange *x, int p,
                             struct sl_tile *buffer)
{
    sl_stage_send(rt, buffer, x->send[p].peer);
    sl_temporary_empty(buffer);
}

struct sl_stage sl_exchange_stage(struct sl_runtime *rt, struct sl_exchange *x,
                                  const struct sl_matrix *h, int j, int place, int from, int to,
                                  struct sl_tile **tiles)
{
    struct sl_exchange_buffers *buffers = passing_buffers(rt, x, h, j, place);
    for (int p = from; p < to; p++)
        tiles[p - from] = &buffers->receive[p];
    return (struct sl_stage){.count = to - from, .tiles = tiles};
}

void sl_exchange_post(struct sl_runtime *rt, struct sl_exchange *x, const struct sl_matrix *h,
                      int j, int place)
{
    struct sl_exchange_buffers *buffers = buffers_of(rt, x, h, j, place);
    const int64_t before = rt->traffic.bytes_received;
    for (int p = 0; p < x->receives; p++)
        sl_tile_send(rt, &buffers->receive[p], x->receive[p].peer, rt->rank);
    rt->traffic.rows_received += rt->traffic.bytes_received - before;
    for (int p = 0; p < x->sends; p++) {
        pack(rt, &x->send[p], h, j, &buffers->send[p]);
        sl_tile_send(rt, &buffers->send[p], rt->rank, x->send[p].peer);
        sl_temporary_empty(&buffers->send[p]);
    }
}

struct sl_tile *sl_exchange_arrived(struct sl_runtime *rt, struct sl_exchange *x,
                                    const struct sl_matrix *h, int j, int place, int p)
{
    return &buffers_of(rt, x, h, j, place)->receive[p];
}

struct sl_tile *sl_exchange_places(struct sl_runtime *rt, struct sl_exchange *x, int64_t width,
                                   int place)
{
    int64_t cut[] = {0, width};
    return find_buffers(rt, x,
                        &(struct sl_exchange_buffers){.columns = 1,
                                                      .col_cut = cut,
                                                      .width = width,
                                                      .element_size = sizeof(float),
                                                      .place = place})
        ->receive;
}

void sl_exchange_unpack(struct sl_runtime *rt, struct sl_exchange *x, int p, struct sl_tile *buffer,
                        bool accumulate, const struct sl_matrix *z, int j)
{
    struct sl_exchange_part *part = &x->receive[p];
    for (int t = 0; t < part->to - part->from; t++)
        if (part->first[t + 1] > part->first[t])
            sl_submit_unpack_rows(
                rt, &(struct sl_unpack_tiles){.index = &part->index,
                                              .x = buffer,
                                              .first = part->first[t],
                                              .rows = part->first[t + 1] - part->first[t],
                                              .accumulate = accumulate,
                                              .y = sl_matrix_tile(z, part->from + t, j)});
}
