#include "core/plain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char DIGITS[] = "0123456789abcdef";

/* Return the bytes of a UTF-8 character that begins with this byte; 0: no character begins so. */
static size_t length_of(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xC0 ? 0
           : first < 0xE0 ? 2
           : first < 0xF0 ? 3
           : first < 0xF5 ? 4
                          : 0;
}

/* Return the bytes of the character at `text` and set *number to its code point; 0: the text is no
 * UTF-8. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *number)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = text[0];
    const size_t length = length_of(first);
    if (length == 0 || length > left)
        return 0;
    *number = length == 1 ? first : first & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        *number = *number << 6 | (text[i] & 0x3F);
    }
    const bool surrogate = *number >= 0xD800 && *number < 0xE000;
    return *number < least[length] || *number > 0x10FFFF || surrogate ? 0 : length;
}

size_t sl_plain_next(const char *text, size_t left, char piece[SL_PLAIN_PIECE])
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t number = 0;
    const size_t length = decode(bytes, left, &number);
    const size_t taken = length ? length : 1;
    char *end = piece;
    const bool shown = length > 0 && number >= 0x20 && !(number >= 0x7F && number < 0xA0);
    for (size_t b = 0; b < taken; b++) {
        if (shown) {
            *end++ = text[b];
            continue;
        }
        memcpy(end, "\\x", 2);
        end[2] = DIGITS[bytes[b] >> 4];
        end[3] = DIGITS[bytes[b] & 0xF];
        end += 4;
    }
    *end = '\0';
    return taken;
}

void sl_plain_copy(char *to, size_t size, const char *text)
{
    char piece[SL_PLAIN_PIECE];
    size_t used = 0;
    for (size_t left = strlen(text); left > 0;) {
        const size_t taken = sl_plain_next(text, left, piece), length = strlen(piece);
        if (used + length >= size)
            break;
        memcpy(to + used, piece, length);
        used += length;
        text += taken;
        left -= taken;
    }
    to[used] = '\0';
}

void sl_plain_say(const char *format, va_list arguments)
{
    enum { SENTENCE = 2048 };
    char text[SENTENCE], plain[SENTENCE];
    vsnprintf(text, sizeof text, format, arguments);
    sl_plain_copy(plain, sizeof plain, text);
    fprintf(stderr, "starling: %s\n", plain);
}

/* ---- stdout ---- */

/* Text on its way to stdout: `begun` waits for the other bytes of a character, `ready` for write. A
 * buffer of the stream may end within a character. */
struct out {
    char begun[4], ready[1024];
    size_t begun_count, ready_count;
};

static bool write_ready(struct out *out)
{
    while (out->ready_count > 0) {
        const ssize_t written = write(STDOUT_FILENO, out->ready, out->ready_count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        out->ready_count -= (size_t)written;
        memmove(out->ready, out->ready + written, out->ready_count);
    }
    return true;
}

/* Return whether the begun character may lack bytes. */
static bool is_open(const struct out *out)
{
    const unsigned char first = (unsigned char)out->begun[0];
    const unsigned char last = (unsigned char)out->begun[out->begun_count - 1];
    return out->begun_count < length_of(first) && (out->begun_count == 1 || (last & 0xC0) == 0x80);
}

static void add_byte(struct out *out, char byte)
{
    char *begun = out->begun, *end = out->ready + out->ready_count;
    begun[out->begun_count++] = byte;
    while (out->begun_count > 0 && !is_open(out)) {
        size_t taken = 1;
        if (begun[0] == '\n' || begun[0] == '\t')
            memcpy(end, (char[]){begun[0], '\0'}, 2);
        else
            taken = sl_plain_next(begun, out->begun_count, end);
        end += strlen(end);
        out->begun_count -= taken;
        memmove(begun, begun + taken, out->begun_count);
    }
    out->ready_count = (size_t)(end - out->ready);
}

static ssize_t write_plain(void *cookie, const char *text, size_t size)
{
    /* The most bytes that a begun character takes: each of its four bytes becomes \xHH. */
    enum { MOST = 4 * (SL_PLAIN_PIECE - 1) + 1 };
    struct out *out = cookie;
    for (size_t i = 0; i < size; i++) {
        if (sizeof out->ready - out->ready_count < MOST && !write_ready(out))
            return 0;
        add_byte(out, text[i]);
    }
    return write_ready(out) ? (ssize_t)size : 0;
}

void sl_plain_stdout(void)
{
    static struct out out;
    FILE *plain = fopencookie(&out, "w", (cookie_io_functions_t){.write = write_plain});
    if (!plain)
        return;
    setvbuf(plain, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = plain;
}
