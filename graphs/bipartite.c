/* The cover is a minimum cut, and a maximum flow finds the cut. Flow goes from the source to rows,
 * along entries to columns, and to the sink. A row lets row_weight units pass, a column col_weight
 * units, an entry any number. The algorithm is Dinic's; with equal weights it is the matching of
 * Hopcroft and Karp ("An n^5/2 algorithm for maximum matchings in bipartite graphs", 1973):
 *
 *     flow = greedy
 *     while levels from rows with room reach a column with room
 *         for each row with room
 *             while a path of rising levels leads to a column with room
 *                 add flow along the path
 *     cover = rows without a level, columns with a level
 *
 * A path goes from a row to a column along any entry, and back to a row that feeds the column. */
#include "graphs/bipartite.h"

#include <stdlib.h>

#include "core/error.h"

struct row {
    int64_t next;  /* the entry to try next in this phase */
    int32_t room;  /* units that may still come from the source */
    int32_t level; /* returns on the shortest path to the row; -1: no path */
};

struct column {
    int64_t first;  /* place of its first share */
    int32_t shares; /* rows that feed the column */
    int32_t next;   /* the share to try next in this phase */
    int32_t room;   /* units that may still go to the sink */
    int32_t level;  /* level of the row before it; -1: no path */
};

/* Flow along an entry. A column has places for as many shares as its entries, or its units where
 * those are fewer. */
struct share {
    int32_t row, units; /* units > 0 */
};

struct flow {
    const struct sl_bipartite *graph;
    struct row *rows;     // (graph->rows)
    struct column *cols;  // (graph->cols)
    struct share *shares; // (places of all columns)
    int32_t *path;        // (graph->rows): rows of a path, or the queue of rows that have a level
};

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int common_divisor(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct column *column_of(const struct flow *flow, int64_t entry)
{
    return &flow->cols[flow->graph->columns[entry]];
}

/* ---- Memory ---- */

/* Give each column its places. Return the places of all columns. */
static int64_t place_shares(struct flow *flow, int col_units)
{
    int64_t places = 0;
    for (int64_t e = 0; e < flow->graph->indptr[flow->graph->rows]; e++) {
        struct column *column = column_of(flow, e);
        column->shares += column->shares < col_units;
    }
    for (int64_t c = 0; c < flow->graph->cols; c++) {
        flow->cols[c].first = places;
        places += flow->cols[c].shares;
        flow->cols[c].shares = 0;
        flow->cols[c].room = col_units;
    }
    return places;
}

static bool create_flow(struct flow *flow, int row_units, int col_units)
{
    const size_t rows = (size_t)flow->graph->rows, cols = (size_t)flow->graph->cols;
    flow->rows = malloc(rows * sizeof *flow->rows + 1);
    flow->cols = calloc(cols + 1, sizeof *flow->cols);
    flow->path = malloc(rows * sizeof *flow->path + 1);
    if (!flow->rows || !flow->cols || !flow->path)
        return false;
    for (size_t r = 0; r < rows; r++)
        flow->rows[r] = (struct row){.room = row_units};
    const int64_t places = place_shares(flow, col_units);
    flow->shares = malloc((size_t)places * sizeof *flow->shares + 1);
    return flow->shares != NULL;
}

static void destroy(struct flow *flow)
{
    free(flow->rows);
    free(flow->cols);
    free(flow->shares);
    free(flow->path);
}

/* ---- Flow ---- */

static void feed(struct flow *flow, struct column *column, int32_t row, int32_t units)
{
    struct share *share = flow->shares + column->first;
    int32_t s = 0;
    while (s < column->shares && share[s].row != row)
        s++;
    if (s == column->shares)
        share[column->shares++] = (struct share){.row = row};
    share[s].units += units;
}

/* Take units from the share to try next. The last share takes the place of an empty share. */
static void take(struct flow *flow, struct column *column, int32_t units)
{
    struct share *share = flow->shares + column->first;
    share[column->next].units -= units;
    if (share[column->next].units == 0)
        share[column->next] = share[--column->shares];
}

/* ---- Greedy start ---- */

/* The rule of Karp and Sipser ("Maximum matching in sparse random graphs", 1981): fill a leaf
 * first, that is a row or column with one open neighbour. A neighbour is open while it has room.
 * Fill the next row only where no leaf is left. */
struct start {
    struct flow *flow;
    int64_t *first;     // (cols + 2): places of a column's rows
    int32_t *rows_of;   // (entries): the rows of each column
    int32_t *open_cols; // (rows): entries with an open column
    int32_t *open_rows; // (cols): entries with an open row
    int32_t *leaves;    // (rows + cols): row r as r, column c as ~c
    int64_t leaf_count;
};

/* Group the rows by column. */
static void transpose(struct start *start)
{
    const struct sl_bipartite *graph = start->flow->graph;
    int64_t *end = start->first +
                   1; /* end of each column's rows so far; at first the end of the column before */
    for (int64_t e = 0; e < graph->indptr[graph->rows]; e++)
        end[graph->columns[e] + 1]++;
    for (int64_t c = 1; c <= graph->cols; c++)
        end[c] += end[c - 1];
    for (int32_t r = 0; r < graph->rows; r++)
        for (int64_t e = graph->indptr[r]; e < graph->indptr[r + 1]; e++)
            start->rows_of[end[graph->columns[e]]++] = r;
}

/* Remember a row or column with one open entry. The number only falls, so each comes once. */
static void note_leaf(struct start *start, int32_t open, int32_t leaf)
{
    if (open == 1)
        start->leaves[start->leaf_count++] = leaf;
}

static void close_row(struct start *start, int32_t r)
{
    const struct sl_bipartite *graph = start->flow->graph;
    for (int64_t e = graph->indptr[r]; e < graph->indptr[r + 1]; e++)
        note_leaf(start, --start->open_rows[graph->columns[e]], ~graph->columns[e]);
}

static void close_column(struct start *start, int32_t c)
{
    for (int64_t e = start->first[c]; e < start->first[c + 1]; e++)
        note_leaf(start, --start->open_cols[start->rows_of[e]], start->rows_of[e]);
}

/* Send what fits along an entry. */
static void fill_entry(struct start *start, int32_t r, int32_t c)
{
    struct row *row = &start->flow->rows[r];
    struct column *column = &start->flow->cols[c];
    const int32_t units = smaller(row->room, column->room);
    if (units == 0)
        return;
    feed(start->flow, column, r, units);
    row->room -= units;
    column->room -= units;
    if (row->room == 0)
        close_row(start, r);
    if (column->room == 0)
        close_column(start, c);
}

static void fill_row(struct start *start, int32_t r)
{
    const struct sl_bipartite *graph = start->flow->graph;
    const struct row *row = &start->flow->rows[r];
    for (int64_t e = graph->indptr[r]; e < graph->indptr[r + 1] && row->room > 0; e++)
        fill_entry(start, r, graph->columns[e]);
}

static void fill_column(struct start *start, int32_t c)
{
    const struct column *column = &start->flow->cols[c];
    for (int64_t e = start->first[c]; e < start->first[c + 1] && column->room > 0; e++)
        fill_entry(start, start->rows_of[e], c);
}

static void fill_leaves(struct start *start)
{
    while (start->leaf_count > 0) {
        const int32_t leaf = start->leaves[--start->leaf_count];
        if (leaf >= 0)
            fill_row(start, leaf);
        else
            fill_column(start, ~leaf);
    }
}

static void fill_all(struct start *start)
{
    const struct sl_bipartite *graph = start->flow->graph;
    for (int32_t r = 0; r < graph->rows; r++) {
        start->open_cols[r] = (int32_t)(graph->indptr[r + 1] - graph->indptr[r]);
        note_leaf(start, start->open_cols[r], r);
    }
    for (int32_t c = 0; c < graph->cols; c++) {
        start->open_rows[c] = (int32_t)(start->first[c + 1] - start->first[c]);
        note_leaf(start, start->open_rows[c], ~c);
    }
    for (int32_t r = 0; r < graph->rows; r++) {
        fill_leaves(start);
        fill_row(start, r);
    }
    fill_leaves(start);
}

static bool start_greedily(struct flow *flow)
{
    const size_t rows = (size_t)flow->graph->rows, cols = (size_t)flow->graph->cols;
    struct start start = {
        .flow = flow,
        .first = calloc(cols + 2, sizeof *start.first),
        .rows_of = malloc((size_t)flow->graph->indptr[rows] * sizeof *start.rows_of + 1),
        .open_cols = malloc(rows * sizeof *start.open_cols + 1),
        .open_rows = malloc(cols * sizeof *start.open_rows + 1),
        .leaves = malloc((rows + cols) * sizeof *start.leaves + 1),
    };
    const bool fits =
        start.first && start.rows_of && start.open_cols && start.open_rows && start.leaves;
    if (fits) {
        transpose(&start);
        fill_all(&start);
    }
    free(start.first);
    free(start.rows_of);
    free(start.open_cols);
    free(start.open_rows);
    free(start.leaves);
    return fits;
}

/* ---- Levels ---- */

/* Queue rows that feed the column and have no level. Return the length of the queue. */
static int64_t queue_feeding(struct flow *flow, const struct column *column, int64_t queued)
{
    const struct share *share = flow->shares + column->first;
    for (int32_t s = 0; s < column->shares; s++)
        if (flow->rows[share[s].row].level < 0) {
            flow->rows[share[s].row].level = column->level + 1;
            flow->path[queued++] = share[s].row;
        }
    return queued;
}

/* Begin a phase: rows with room have level 0. Return the length of the queue. */
static int64_t forget_levels(struct flow *flow)
{
    int64_t queued = 0;
    for (int64_t c = 0; c < flow->graph->cols; c++) {
        flow->cols[c].level = -1;
        flow->cols[c].next = 0;
    }
    for (int32_t r = 0; r < flow->graph->rows; r++) {
        struct row *row = &flow->rows[r];
        row->next = flow->graph->indptr[r];
        row->level = row->room > 0 ? 0 : -1;
        if (row->room > 0)
            flow->path[queued++] = r;
    }
    return queued;
}

/* Find all levels, in the order of the queue. Return whether a column with room has one. A search
 * that stops at the nearest such column finds fewer paths and needs more phases: five times the
 * time on a grid graph of 500,000 rows. */
static bool find_levels(struct flow *flow)
{
    const int64_t *indptr = flow->graph->indptr;
    int64_t queued = forget_levels(flow);
    bool found = false;
    for (int64_t q = 0; q < queued; q++) {
        const int32_t row = flow->path[q];
        for (int64_t e = indptr[row]; e < indptr[row + 1]; e++) {
            struct column *column = column_of(flow, e);
            if (column->level >= 0)
                continue;
            column->level = flow->rows[row].level;
            if (column->room > 0)
                found = true;
            else
                queued = queue_feeding(flow, column, queued);
        }
    }
    return found;
}

/* ---- Paths ---- */

/* Add flow along the path of `length` rows, as much as fits. */
static void add_flow(struct flow *flow, int64_t length)
{
    struct row *rows = flow->rows;
    const int32_t *path = flow->path;
    struct column *end = column_of(flow, rows[path[length - 1]].next);
    int32_t units = smaller(rows[path[0]].room, end->room);
    for (int64_t p = 0; p < length - 1; p++) {
        const struct column *column = column_of(flow, rows[path[p]].next);
        units = smaller(units, flow->shares[column->first + column->next].units);
    }
    for (int64_t p = 0; p < length; p++) {
        struct column *column = column_of(flow, rows[path[p]].next);
        if (p < length - 1)
            take(flow, column, units);
        feed(flow, column, path[p], units);
    }
    rows[path[0]].room -= units;
    end->room -= units;
}

/* Return the next row that feeds the column and has the next level, or -1. */
static int32_t row_behind(const struct flow *flow, struct column *column)
{
    for (; column->next < column->shares; column->next++) {
        const int32_t row = flow->shares[column->first + column->next].row;
        if (flow->rows[row].level == column->level + 1)
            return row;
    }
    return -1;
}

/* Look for a path from a row with room, and add flow along it. Return whether there was a path. A
 * row that leads nowhere loses its level for this phase. */
static bool follow_path(struct flow *flow, int32_t from)
{
    int64_t length = 1;
    flow->path[0] = from;
    while (length > 0) {
        const int32_t at = flow->path[length - 1];
        struct row *row = &flow->rows[at];
        if (row->next == flow->graph->indptr[at + 1]) {
            row->level = -1;
            length--;
            continue;
        }
        struct column *column = column_of(flow, row->next);
        const bool rising = column->level == row->level;
        if (rising && column->room > 0) {
            add_flow(flow, length);
            return true;
        }
        const int32_t behind = rising ? row_behind(flow, column) : -1;
        if (behind >= 0)
            flow->path[length++] = behind;
        else
            row->next++;
    }
    return false;
}

/* Send as much as the graph lets pass, from the greedy flow on. */
static void complete(struct flow *flow)
{
    while (find_levels(flow))
        for (int32_t r = 0; r < flow->graph->rows; r++)
            while (flow->rows[r].room > 0 && follow_path(flow, r))
                ;
}

/* ---- Cover ---- */

int sl_bipartite_cover(const struct sl_bipartite *graph, int row_weight, int col_weight, bool *row,
                       bool *col, int64_t *weight)
{
    const int divisor = common_divisor(row_weight, col_weight); /* fewer units need fewer paths */
    struct flow flow = {.graph = graph};
    int code = 0;
    if (create_flow(&flow, row_weight / divisor, col_weight / divisor) && start_greedily(&flow)) {
        complete(&flow);
        *weight = 0;
        for (int64_t r = 0; r < graph->rows; r++) {
            row[r] = flow.rows[r].level < 0;
            *weight += row[r] ? row_weight : 0;
        }
        for (int64_t c = 0; c < graph->cols; c++) {
            col[c] = flow.cols[c].level >= 0;
            *weight += col[c] ? col_weight : 0;
        }
    } else
        code = sl_error(SL_ERR_SYSTEM, "no memory to cover %lld entries of a bipartite graph",
                        (long long)graph->indptr[graph->rows]);
    destroy(&flow);
    return code;
}
