/* Mirroring needs no sort, because entries are taken in order and arrive in order:
 *
 *     in parallel, for each block: count its entries (u, v) by the block of v
 *     give each block its place in the result: room for its box, which is for mirrored entries, and
 *         for its own
 *     in parallel, for each block: put each of its entries (u, v) into the box of v's block
 *     in parallel, for each block:
 *         count the entries of its box by row v, and put each u in its place of row v
 *         append row v itself
 *
 * Without mirroring, all boxes are empty. */
#include "data/block_rows.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"

/* Threads take blocks, and each block scatters entries to a box for every block. Blocks are more
 * than threads, and few enough that the cache holds the open end of each box. But 16 bits number
 * the rows of a block. */
enum { MANY_BLOCKS = 512, LEAST_BLOCK_BITS = 6, MOST_BLOCK_BITS = 16 };

bool sl_ids_reserve(struct sl_ids *list, int64_t more)
{
    if (list->ids && list->count + more <= list->capacity)
        return true;
    const int64_t capacity = list->count + more + list->capacity / 2 + 1024;
    int32_t *ids = realloc(list->ids, (size_t)capacity * sizeof *ids);
    if (!ids)
        return false;
    list->ids = ids;
    list->capacity = capacity;
    return true;
}

void sl_ids_free(struct sl_ids *list)
{
    free(list->ids);
    *list = (struct sl_ids){0};
}

int sl_block_rows_create(int64_t rows, struct sl_block_rows *out)
{
    *out = (struct sl_block_rows){.rows = rows, .bits = LEAST_BLOCK_BITS};
    while (out->bits < MOST_BLOCK_BITS && (rows - 1) >> out->bits >= MANY_BLOCKS)
        out->bits++;
    out->block_count = ((rows - 1) >> out->bits) + 1;
    out->length = sl_block_array(&out->memory, rows, sizeof *out->length);
    out->blocks = sl_block_array(&out->memory, out->block_count, sizeof *out->blocks);
    if (out->blocks)
        memset(out->blocks, 0, (size_t)out->block_count * sizeof *out->blocks);
    return out->length && out->blocks ? SL_OK : SL_ERR_SYSTEM;
}

void sl_block_rows_destroy(struct sl_block_rows *rows)
{
    for (int64_t block = 0; rows->blocks && block < rows->block_count; block++)
        sl_ids_free(&rows->blocks[block]);
    sl_block_free_all(&rows->memory);
    *rows = (struct sl_block_rows){0};
}

int64_t sl_block_rows_begin(const struct sl_block_rows *rows, int64_t block)
{
    const int64_t begin = block << rows->bits;
    return begin < rows->rows ? begin : rows->rows;
}

struct assembly {
    struct sl_block_rows *rows;
    int threads;
    struct sl_block *scratch;
    int64_t *position;    // (block_count from, block_count to): entries, then their places
    int64_t *entry_start; // (block_count + 1): place of each block's rows in the result
    int64_t *box_end;     // (block_count): end of the box, which starts at the block's rows
    uint16_t *box_row;    // (entries): row of each mirrored entry, within its block
    int64_t *indptr;      // (rows + 1)
    int32_t *indices;     // (entries): the columns of mirrored entries first
    atomic_bool failed;
};

static void count_block(void *context, int64_t block)
{
    struct assembly *a = context;
    const struct sl_ids *list = &a->rows->blocks[block];
    int64_t *count = a->position + block * a->rows->block_count;
    memset(count, 0, (size_t)a->rows->block_count * sizeof *count);
    for (int64_t k = 0; k < list->count; k++)
        count[list->ids[k] >> a->rows->bits]++;
}

/* Turn numbers of entries into places. The columns of a box lie at the place of its block's rows,
 * in the order of the blocks they come from. */
static void place_boxes(struct assembly *a)
{
    const int64_t block_count = a->rows->block_count;
    int64_t entries = 0;
    for (int64_t to = 0; to < block_count; to++) {
        int64_t at = a->entry_start[to] = entries;
        for (int64_t from = 0; from < block_count; from++) {
            const int64_t count = a->position[from * block_count + to];
            a->position[from * block_count + to] = at;
            at += count;
        }
        a->box_end[to] = at;
        entries = at + a->rows->blocks[to].count;
    }
    a->entry_start[block_count] = entries;
}

static void scatter_block(void *context, int64_t block)
{
    struct assembly *a = context;
    const struct sl_block_rows *rows = a->rows;
    int64_t *position = a->position + block * rows->block_count;
    const int32_t *id = rows->blocks[block].ids, row_mask = (1 << rows->bits) - 1;
    for (int64_t u = sl_block_rows_begin(rows, block); u < sl_block_rows_begin(rows, block + 1);
         u++)
        for (int32_t k = 0; k < rows->length[u]; k++, id++) {
            const int64_t at = position[*id >> rows->bits]++;
            a->box_row[at] = (uint16_t)(*id & row_mask);
            a->indices[at] = (int32_t)u;
        }
}

/* Put the rows of a block in their places, smaller neighbours before larger ones. `next` is
 * scratch; `column` is a copy of the box's columns. */
static void place_rows(struct assembly *a, int64_t block, int64_t *next, const int32_t *column)
{
    const int64_t begin = sl_block_rows_begin(a->rows, block);
    const int64_t count = sl_block_rows_begin(a->rows, block + 1) - begin;
    const int64_t start = a->entry_start[block], mirrored = a->box_end[block] - start;
    const int32_t *length = a->rows->length + begin;
    const uint16_t *row = a->box_row + start;
    for (int64_t k = 0; k < mirrored; k++)
        next[row[k]]++;
    int64_t at = start;
    for (int64_t i = 0; i < count; i++) {
        const int64_t entries = next[i] + length[i];
        a->indptr[begin + i] = next[i] = at;
        at += entries;
    }
    for (int64_t k = 0; k < mirrored; k++)
        a->indices[next[row[k]]++] = column[k];
    const int32_t *id = a->rows->blocks[block].ids;
    for (int64_t i = 0; i < count; i++) {
        memcpy(a->indices + next[i], id, (size_t)length[i] * sizeof *id);
        id += length[i];
    }
}

static void finish_block(void *context, int64_t block)
{
    struct assembly *a = context;
    const int64_t begin = sl_block_rows_begin(a->rows, block);
    const size_t count = (size_t)(sl_block_rows_begin(a->rows, block + 1) - begin);
    const size_t bytes = (size_t)(a->box_end[block] - a->entry_start[block]) * sizeof *a->indices;
    int64_t *next = calloc(count, sizeof *next);
    int32_t *column = malloc(bytes + 1);
    if (next && column) {
        memcpy(column, a->indices + a->entry_start[block], bytes);
        place_rows(a, block, next, column);
    } else {
        atomic_store(&a->failed, true);
    }
    free(next);
    free(column);
    sl_ids_free(&a->rows->blocks[block]);
}

/* Run one phase on all blocks. */
static int for_blocks(struct assembly *a, void (*phase)(void *context, int64_t block))
{
    sl_parallel_for(a->threads, a->rows->block_count, phase, a);
    return atomic_load(&a->failed) ? sl_error(SL_ERR_SYSTEM, "out of memory for the rows of a "
                                                             "matrix")
                                   : SL_OK;
}

static int prepare(struct assembly *a)
{
    const int64_t count = a->rows->block_count;
    a->position = sl_block_array(&a->scratch, count * count, sizeof *a->position);
    a->entry_start = sl_block_array(&a->scratch, count + 1, sizeof *a->entry_start);
    a->box_end = sl_block_array(&a->scratch, count, sizeof *a->box_end);
    if (!a->position || !a->entry_start || !a->box_end)
        return SL_ERR_SYSTEM;
    memset(a->position, 0, (size_t)(count * count) * sizeof *a->position);
    return SL_OK;
}

static int assemble(struct assembly *a, bool mirror, struct sl_block **blocks)
{
    int rc = mirror ? for_blocks(a, count_block) : SL_OK;
    if (rc)
        return rc;
    place_boxes(a);
    const int64_t n = a->rows->rows, entries = a->entry_start[a->rows->block_count];
    a->box_row = sl_block_array(&a->scratch, mirror ? entries : 0, sizeof *a->box_row);
    a->indptr = sl_block_array(blocks, n + 1, sizeof *a->indptr);
    a->indices = sl_block_array(blocks, entries, sizeof *a->indices);
    if (!a->box_row || !a->indptr || !a->indices)
        return SL_ERR_SYSTEM;
    a->indptr[n] = entries;
    if (mirror)
        rc = for_blocks(a, scatter_block);
    return rc ? rc : for_blocks(a, finish_block);
}

int sl_block_rows_assemble(struct sl_block_rows *rows, bool mirror, int threads,
                           struct sl_block **blocks, struct sl_csr *out)
{
    struct assembly a = {.rows = rows, .threads = threads};
    int rc = prepare(&a);
    if (!rc)
        rc = assemble(&a, mirror, blocks);
    if (!rc)
        *out = (struct sl_csr){rows->rows, rows->rows, a.indptr, a.indices, NULL};
    sl_block_free_all(&a.scratch);
    return rc;
}
