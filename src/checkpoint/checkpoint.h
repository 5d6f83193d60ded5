/* Checkpoints: named float32 tensors and a JSON description in one safetensors file, which other
 * tools can open too. */
#ifndef SL_CHECKPOINT_CHECKPOINT_H
#define SL_CHECKPOINT_CHECKPOINT_H

#include <stdint.h>

#include <jansson.h>

#include "core/runtime.h"

struct sl_tensor {
    char *name;
    int64_t rows, cols;
    float *data; // (rows, cols), owned; NULL: the source has them
};

/* Write all numbers of a tensor, in order, with sl_checkpoint_write_numbers. */
struct sl_checkpoint_sink;
typedef void sl_checkpoint_source(void *context, int tensor, struct sl_checkpoint_sink *sink);

struct sl_checkpoint {
    json_t *description; /* object: configuration, epoch, shapes of the dataset; owned */
    int count;
    struct sl_tensor *tensors;
    sl_checkpoint_source *source; /* called for each tensor without data, in order; NULL: none is */
    void *context;                /* of the source */
    uint32_t checksum;            /* of the file that it was read from; 0: it was not read */
};

/* Appends a tensor with room for its data, which the caller fills; NULL without memory (sl_error
 * set). */
float *sl_checkpoint_add(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                         int64_t cols);

/* Appends a tensor whose numbers the source has. 0 or SL_ERR_SYSTEM. */
int sl_checkpoint_add_later(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                            int64_t cols);

/* For a source. After a failure nothing is written, but it goes on to the end. */
void sl_checkpoint_write_numbers(struct sl_checkpoint_sink *sink, const float *numbers,
                                 int64_t count);

/* The tensor of that name, or NULL. */
const struct sl_tensor *sl_checkpoint_find(const struct sl_checkpoint *checkpoint,
                                           const char *name);

/* Writes to a temporary file beside `path`, syncs it and renames it: whatever happens, `path` holds
 * the old checkpoint or the whole new one. Carries a CRC-32 of all tensor bytes and of the
 * description. */
int sl_checkpoint_write(const struct sl_checkpoint *checkpoint, const char *path);

/* The same, and where that fails, in a new directory in TMPDIR or /tmp: a trained model is not lost
 * because its place is gone or full. Returns 0 only where `path` was written; the sentence of an
 * error says where the model is. */
int sl_checkpoint_write_somewhere(const struct sl_checkpoint *checkpoint, const char *path);

/* Reads and verifies; a file without a checksum is read, too. SL_ERR_DATA: absent, truncated,
 * damaged, of another format, or with a number that is not finite. */
int sl_checkpoint_read(const char *path, struct sl_checkpoint *out);

/* Return 0 where all ranks have read the same checkpoint, or none has, else SL_ERR_DATA on all
 * ranks. `name`: of the checkpoint, for the sentence. Collective. */
int sl_checkpoint_check_alike(struct sl_runtime *rt, const struct sl_checkpoint *checkpoint,
                              const char *name);

void sl_checkpoint_free(struct sl_checkpoint *checkpoint);

#endif
