/* NumPy archives, in the form of gnn-benchmark (adj_*, attr_*, labels), with splits as masks. */
#include <string.h>
#include <sys/stat.h>

#include <zip.h>

#include "core/error.h"
#include "core/file.h"
#include "data/block.h"
#include "data/formats/formats.h"
#include "data/formats/npy.h"

static const zip_uint16_t SECOND_DAY = 1 << 5 | 2; /* 1980-01-02: month and day; years from 1980 */

struct archive {
    const char *path;
    zip_t *zip;
    struct sl_block *blocks; /* owned until the archive is closed */
};

static int add(struct archive *archive, const char *array, const char *descr, size_t item_bytes,
               int dims, const int64_t *shape, const void *items)
{
    enum { HEADER = 512 };
    char *header = sl_block_alloc(&archive->blocks, HEADER);
    const char *member = sl_block_print(&archive->blocks, "%s.npy", array);
    if (!header || !member)
        return SL_ERR_SYSTEM;
    size_t bytes = item_bytes;
    for (int d = 0; d < dims; d++)
        bytes *= (size_t)shape[d];
    zip_buffer_fragment_t parts[] = {
        {(zip_uint8_t *)header, sl_npy_header(header, HEADER, descr, dims, shape)},
        {(zip_uint8_t *)(bytes ? items : header), bytes},
    };
    zip_source_t *source = zip_source_buffer_fragment(archive->zip, parts, 2, 0);
    const zip_int64_t index =
        source ? zip_file_add(archive->zip, member, source, ZIP_FL_ENC_UTF_8) : -1;
    /* A fixed time in the archive's own form makes equal datasets equal files in all time zones. */
    if (index >= 0 &&
        zip_file_set_dostime(archive->zip, (zip_uint64_t)index, 0, SECOND_DAY, 0) == 0)
        return SL_OK;
    if (index < 0)
        zip_source_free(source);
    return sl_error(SL_ERR_SYSTEM, "%s: cannot add %s: %s", archive->path, member,
                    zip_strerror(archive->zip));
}

static int add_csr(struct archive *archive, const char *prefix, const struct sl_csr *csr)
{
    const int64_t nnz = csr->indptr[csr->rows], rows = csr->rows + 1, two = 2;
    int64_t *shape = sl_block_array(&archive->blocks, 2, sizeof *shape);
    const char *names[4];
    static const char *const parts[] = {"data", "indices", "indptr", "shape"};
    const float *values = csr->values;
    for (int k = 0; k < 4; k++)
        if (!(names[k] = sl_block_print(&archive->blocks, "%s%s", prefix, parts[k])))
            return SL_ERR_SYSTEM;
    float *ones = values ? NULL : sl_block_array(&archive->blocks, nnz, sizeof *ones);
    if (!shape || (!values && !ones))
        return SL_ERR_SYSTEM;
    for (int64_t k = 0; ones && k < nnz; k++)
        ones[k] = 1.0f;
    shape[0] = csr->rows;
    shape[1] = csr->cols;
    int rc = add(archive, names[0], "<f4", 4, 1, &nnz, values ? values : ones);
    if (!rc)
        rc = add(archive, names[1], "<i4", 4, 1, &nnz, csr->indices);
    if (!rc)
        rc = add(archive, names[2], "<i8", 8, 1, &rows, csr->indptr);
    return rc ? rc : add(archive, names[3], "<i8", 8, 1, &two, shape);
}

static int add_mask(struct archive *archive, const char *array, const struct sl_index_set *split,
                    int64_t vertices)
{
    const int64_t shape[] = {1, vertices};
    if (split->count == 0)
        return SL_OK;
    char *mask = sl_block_array(&archive->blocks, vertices, 1);
    if (!mask)
        return SL_ERR_SYSTEM;
    memset(mask, 0, (size_t)vertices);
    for (int64_t k = 0; k < split->count; k++)
        mask[split->ids[k]] = 1;
    return add(archive, array, "|b1", 1, 2, shape, mask);
}

static int add_all(struct archive *archive, const struct sl_dataset *data)
{
    const int64_t n = data->vertices;
    const int64_t features[] = {n, data->features}, several[] = {n, data->classes};
    int rc = add_csr(archive, "adj_", &data->adjacency);
    if (!rc && data->feature_form == SL_FEATURES_CSR)
        rc = add_csr(archive, "attr_", &data->features_csr);
    if (!rc && data->feature_form == SL_FEATURES_DENSE)
        rc = add(archive, "attr_matrix", "<f4", 4, 2, features, data->features_dense);
    if (!rc && data->labels)
        rc = add(archive, "labels", "<i4", 4, 1, &n, data->labels);
    if (!rc && data->multilabels)
        rc = add(archive, "labels", "<f4", 4, 2, several, data->multilabels);
    if (!rc)
        rc = add_mask(archive, "train_masks", &data->train, n);
    if (!rc)
        rc = add_mask(archive, "val_masks", &data->val, n);
    return rc ? rc : add_mask(archive, "test_masks", &data->test, n);
}

int sl_npz_write(const struct sl_dataset *data, const char *path)
{
    static const char NAME[] = "archive.zip";
    struct sl_new_folder folder; /* libzip makes temporary files beside the archive */
    struct archive archive = {.path = path};
    struct stat status;
    int code = 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return sl_error(SL_ERR_SYSTEM, "%s: is no regular file (expected one, or a new name)",
                        path);
    int rc = sl_folder_create(&folder, path);
    if (rc)
        return rc;
    const char *inner = sl_block_print(&archive.blocks, "%s/%s", folder.temporary, NAME);
    archive.zip = inner ? zip_open(inner, ZIP_CREATE | ZIP_TRUNCATE, &code) : NULL;
    rc = archive.zip
             ? add_all(&archive, data)
             : sl_error(SL_ERR_SYSTEM, "%s: cannot write an archive (libzip code %d)", path, code);
    if (!rc && zip_close(archive.zip) == 0)
        archive.zip = NULL;
    else if (!rc)
        rc = sl_error(SL_ERR_SYSTEM, "%s: cannot write: %s", path, zip_strerror(archive.zip));
    if (archive.zip)
        zip_discard(archive.zip);
    sl_block_free_all(&archive.blocks);
    if (!rc)
        return sl_folder_commit_file(&folder, NAME);
    sl_folder_discard(&folder);
    return rc;
}
