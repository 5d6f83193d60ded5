#include "deploy/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

static void append(struct sl_message *message, const void *bytes, size_t size)
{
    static const size_t most = ((size_t)1 << 31) - 1;
    message->failed = message->failed || size > most - message->size;
    if (!message->failed && message->size + size > message->room) {
        const size_t room = 2 * message->room > message->size + size ? 2 * message->room
                                                                     : message->size + size + 64;
        unsigned char *longer = realloc(message->bytes, room);
        message->failed = !longer;
        if (longer) {
            message->bytes = longer;
            message->room = room;
        }
    }
    if (message->failed || size == 0)
        return;
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

/* Append seven bits a byte, the lowest first; the highest bit of a byte says that more follow. */
static void append_varint(struct sl_message *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    append(message, bytes, count);
}

static void append_key(struct sl_message *message, int field, int kind)
{
    append_varint(message, (uint64_t)field << 3 | (uint64_t)kind);
}

void sl_message_integer(struct sl_message *message, int field, int64_t value)
{
    append_key(message, field, VARINT);
    append_varint(message, (uint64_t)value);
}

void sl_message_float(struct sl_message *message, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char bytes[] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                   (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
    append_key(message, field, FIXED32);
    append(message, bytes, sizeof bytes);
}

void sl_message_bytes(struct sl_message *message, int field, const void *bytes, size_t size)
{
    append_key(message, field, LENGTH);
    append_varint(message, size);
    append(message, bytes, size);
}

void sl_message_text(struct sl_message *message, int field, const char *text)
{
    sl_message_bytes(message, field, text, strlen(text));
}

void sl_message_inner(struct sl_message *message, int field, struct sl_message *inner)
{
    message->failed = message->failed || inner->failed;
    sl_message_bytes(message, field, inner->bytes, inner->size);
    sl_message_free(inner);
}

void sl_message_join(struct sl_message *message, struct sl_message *fields)
{
    message->failed = message->failed || fields->failed;
    append(message, fields->bytes, fields->size);
    sl_message_free(fields);
}

void sl_message_free(struct sl_message *message)
{
    free(message->bytes);
    *message = (struct sl_message){0};
}
