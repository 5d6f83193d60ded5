/* Writes messages of Protocol Buffers: a field is its number and its kind as a varint, then a
 * varint, 4 bytes, or a length and bytes (protobuf.dev, "Encoding"). Why no library: an ONNX model
 * is one kind of message, which is written and never read, by the functions below. */
#ifndef SL_DEPLOY_PROTOBUF_H
#define SL_DEPLOY_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that grows. */
struct sl_message {
    unsigned char *bytes;
    size_t size, room;
    bool failed; /* memory ran out, or the message has 2 GiB, the most of the format */
};

/* Append a field: a whole number, a number, a text, or bytes. */
void sl_message_integer(struct sl_message *message, int field, int64_t value);
void sl_message_float(struct sl_message *message, int field, float value);
void sl_message_text(struct sl_message *message, int field, const char *text);
void sl_message_bytes(struct sl_message *message, int field, const void *bytes, size_t size);

/* Append a field that is a message, and free the inner message. */
void sl_message_inner(struct sl_message *message, int field, struct sl_message *inner);

/* Append all fields of a message, and free it. */
void sl_message_join(struct sl_message *message, struct sl_message *fields);

void sl_message_free(struct sl_message *message);

#endif
