/* Checkpoints: named float32 tensors and a JSON description in one safetensors file, which other
 * tools can open, too. */
#ifndef SL_CHECKPOINT_CHECKPOINT_H
#define SL_CHECKPOINT_CHECKPOINT_H

#include <stdint.h>

#include <jansson.h>

struct sl_runtime;

struct sl_tensor {
    char *name;
    int64_t rows, cols;
    float *data; // (rows, cols), owned; NULL: the source writes the numbers
};

/* A callback that writes all numbers of a tensor, in order, with sl_checkpoint_write_numbers. */
struct sl_checkpoint_sink;
typedef void sl_checkpoint_source(void *context, int tensor, struct sl_checkpoint_sink *sink);

struct sl_checkpoint {
    json_t *description; /* object: configuration, epoch, shapes of the dataset; owned */
    int count;
    struct sl_tensor *tensors;
    sl_checkpoint_source *source; /* for tensors without data, in order; NULL: all have data */
    void *context;                /* the source's argument */
    uint32_t checksum;            /* checksum of the file that was read; 0: none was read */
};

/* Append a tensor with room for its data, which the caller fills. Return the room, or NULL without
 * memory (sl_error set). */
float *sl_checkpoint_add(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                         int64_t cols);

/* Append a tensor whose numbers the source writes later. Return 0 or SL_ERR_SYSTEM. */
int sl_checkpoint_add_later(struct sl_checkpoint *checkpoint, const char *name, int64_t rows,
                            int64_t cols);

/* Write a source's numbers to the file. After a failure, write nothing, but let the source go on.
 */
void sl_checkpoint_write_numbers(struct sl_checkpoint_sink *sink, const float *numbers,
                                 int64_t count);

/* Return the tensor with a name, or NULL. */
const struct sl_tensor *sl_checkpoint_find(const struct sl_checkpoint *checkpoint,
                                           const char *name);

/* Write to a temporary file beside `path`, sync it and rename it. Whatever happens, `path` holds
 * the old checkpoint or the whole new one. The file carries a CRC-32 of all tensor bytes and of the
 * description. Return 0 or SL_ERR_SYSTEM. */
int sl_checkpoint_write(const struct sl_checkpoint *checkpoint, const char *path);

/* Write to `path` or, where that fails, to a new directory in TMPDIR or /tmp: a trained model is
 * not lost because its place is gone or full. Return 0 only if `path` was written. The sentence of
 * an error says where the model is. */
int sl_checkpoint_write_somewhere(const struct sl_checkpoint *checkpoint, const char *path);

/* Read and verify a checkpoint. A file without a checksum is read, too. Return 0, SL_ERR_SYSTEM, or
 * SL_ERR_DATA for a file that is absent, truncated, damaged, of another format, or has a number
 * that is not finite. */
int sl_checkpoint_read(const char *path, struct sl_checkpoint *out);

/* Return 0 if all ranks have read the same checkpoint, or none has; else SL_ERR_DATA on all ranks.
 * `name`: the checkpoint's name, for the sentence. Collective. */
int sl_checkpoint_check_alike(struct sl_runtime *rt, const struct sl_checkpoint *checkpoint,
                              const char *name);

void sl_checkpoint_free(struct sl_checkpoint *checkpoint);

#endif
