/* Write graphs as text: Matrix Market, METIS, edge lists. These have no features, labels and
 * splits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "data/csr.h"
#include "data/formats/formats.h"

/* ---- Lines ---- */

/* Most bytes of two numbers, a weight and the separators. */
enum { LINE = 96 };

struct out {
    struct sl_new_file file;
    char buffer[1 << 16];
    size_t used;
    bool good;
};

static int open_out(struct out *out, const char *path)
{
    out->used = 0;
    out->good = true;
    return sl_file_create(&out->file, path);
}

static void flush(struct out *out)
{
    out->good = out->good && fwrite(out->buffer, 1, out->used, out->file.file) == out->used;
    out->used = 0;
}

static int close_out(struct out *out)
{
    flush(out);
    return sl_file_commit(&out->file, out->good);
}

static void put_char(struct out *out, char c)
{
    if (out->used + LINE > sizeof out->buffer)
        flush(out);
    out->buffer[out->used++] = c;
}

static void put_number(struct out *out, int64_t number)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        put_char(out, digits[--count]);
}

/* Print a weight with enough digits to read the same float back. */
static void put_weight(struct out *out, float weight)
{
    if (weight >= 0.0f && weight < 1e6f && weight == floorf(weight)) {
        put_number(out, (int64_t)weight);
        return;
    }
    put_char(out, ' '); /* makes room */
    out->used--;
    out->used += (size_t)snprintf(out->buffer + out->used, LINE, "%.9g", (double)weight);
}

static void put_text(struct out *out, const char *text)
{
    for (; *text; text++)
        put_char(out, *text);
}

/* Say in a note which parts of a dataset the format leaves out. */
static void note_rest(const struct sl_dataset *data, const char *path)
{
    if (data->feature_form != SL_FEATURES_IDENTITY || data->labels || data->multilabels ||
        data->train.count + data->val.count + data->test.count > 0)
        sl_note("%s: has the graph alone, without features, labels and splits", path);
}

/* ---- Matrix Market ---- */

/* Write a Matrix Market file; a symmetric matrix by its lower triangle. */
int sl_matrix_market_write(const struct sl_dataset *data, const char *path)
{
    const struct sl_csr *a = &data->adjacency;
    const int64_t entries = a->indptr[a->rows], loops = sl_csr_diagonal_count(a);
    const int64_t stored = data->symmetric ? (entries + loops) / 2 : entries;
    struct out out;
    const int rc = open_out(&out, path);
    if (rc)
        return rc;
    note_rest(data, path);
    put_text(&out, "%%MatrixMarket matrix coordinate ");
    put_text(&out, a->values ? "real " : "pattern ");
    put_text(&out, data->symmetric ? "symmetric\n" : "general\n");
    const int64_t sizes[] = {a->rows, a->cols, stored};
    for (int k = 0; k < 3; k++) {
        put_number(&out, sizes[k]);
        put_char(&out, k < 2 ? ' ' : '\n');
    }
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = a->indptr[r]; k < a->indptr[r + 1]; k++) {
            if (data->symmetric && a->indices[k] > r)
                break;
            put_number(&out, r + 1);
            put_char(&out, ' ');
            put_number(&out, a->indices[k] + 1);
            if (a->values) {
                put_char(&out, ' ');
                put_weight(&out, a->values[k]);
            }
            put_char(&out, '\n');
        }
    return close_out(&out);
}

/* ---- METIS ---- */

static int check_metis(const struct sl_dataset *data, const char *path)
{
    const struct sl_csr *a = &data->adjacency;
    if (!data->symmetric)
        return sl_error(SL_ERR_DATA,
                        "%s: METIS graphs are undirected, expected --symmetrize or a graph that is",
                        path);
    for (int64_t k = 0; a->values && k < a->indptr[a->rows]; k++)
        if (!(a->values[k] >= 1.0f && a->values[k] < 0x1p31f) ||
            a->values[k] != floorf(a->values[k]))
            return sl_error(SL_ERR_DATA,
                            "%s: weight %g of entry %" PRId64
                            ", expected whole numbers from 1 to 2^31 - 1 in a METIS graph",
                            path, (double)a->values[k], k);
    return SL_OK;
}

/* Write a METIS file without loops: METIS has none. */
int sl_metis_graph_write(const struct sl_dataset *data, const char *path)
{
    const struct sl_csr *a = &data->adjacency;
    const int64_t loops = sl_csr_diagonal_count(a);
    struct out out;
    int rc = check_metis(data, path);
    if (!rc)
        rc = open_out(&out, path);
    if (rc)
        return rc;
    note_rest(data, path);
    if (loops > 0)
        sl_note("%s: %" PRId64 " self-loops are left out, as METIS graphs have none", path, loops);
    put_number(&out, a->rows);
    put_char(&out, ' ');
    put_number(&out, (a->indptr[a->rows] - loops) / 2);
    put_text(&out, a->values ? " 001\n" : "\n");
    for (int64_t r = 0; r < a->rows; r++) {
        const char *between = "";
        for (int64_t k = a->indptr[r]; k < a->indptr[r + 1]; k++) {
            if (a->indices[k] == r)
                continue;
            put_text(&out, between);
            put_number(&out, a->indices[k] + 1);
            if (a->values) {
                put_char(&out, ' ');
                put_number(&out, (int64_t)a->values[k]);
            }
            between = " ";
        }
        put_char(&out, '\n');
    }
    return close_out(&out);
}

/* ---- Edge lists ---- */

/* Write a line per entry; vertices are row numbers. */
int sl_edge_list_write(const struct sl_dataset *data, const char *path)
{
    const struct sl_csr *a = &data->adjacency;
    const char *dot = strrchr(path, '.');
    const char between = dot && strcasecmp(dot, ".csv") == 0   ? ','
                         : dot && strcasecmp(dot, ".tsv") == 0 ? '\t'
                                                               : ' ';
    struct out out;
    const int rc = open_out(&out, path);
    if (rc)
        return rc;
    note_rest(data, path);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t k = a->indptr[r]; k < a->indptr[r + 1]; k++) {
            put_number(&out, r);
            put_char(&out, between);
            put_number(&out, a->indices[k]);
            if (a->values) {
                put_char(&out, between);
                put_weight(&out, a->values[k]);
            }
            put_char(&out, '\n');
        }
    return close_out(&out);
}
