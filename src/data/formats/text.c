#include "data/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/number.h"
#include "core/progress.h"

/* The longest line: a METIS line of a vertex with some 10^8 neighbours. A longer line is not text.
 */
#define MAX_LINE ((size_t)1 << 30)

enum { HEAD = 8 }; /* bytes that tell the kind of a file */

/* Return the bytes of the file, compressed or not; 0: it is no regular file. */
static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

int sl_text_open_file(const char *path, gzFile *file)
{
    const char *why;
    const int descriptor = sl_file_open(path, &why);
    *file = descriptor >= 0 ? gzdopen(descriptor, "rb") : NULL;
    if (*file)
        return SL_OK;
    if (descriptor < 0)
        return sl_error(SL_ERR_DATA, "%s: %s", path, why);
    close(descriptor);
    return sl_error(SL_ERR_SYSTEM, "%s: cannot open: out of memory", path);
}

int sl_text_open(struct sl_text *text, const char *path)
{
    *text = (struct sl_text){.path = path};
    const int rc = sl_text_open_file(path, &text->file);
    if (rc)
        return rc;
    text->packed = size_of(path);
    text->cost = SL_TEXT_COST_EDGES;
    sl_progress_count(text->packed);
    return SL_OK;
}

int sl_text_rewind(struct sl_text *text)
{
    text->begin = text->end = 0;
    text->at_end = false;
    text->line_number = 0;
    if (gzrewind(text->file) != 0)
        return sl_error(SL_ERR_DATA, "%s: cannot read a second time", text->path);
    sl_progress_count(text->packed);
    return SL_OK;
}

void sl_text_close(struct sl_text *text)
{
    if (text->file)
        gzclose(text->file);
    free(text->buffer);
    *text = (struct sl_text){0};
}

/* ---- Bytes that are no text ---- */

/* Recognize bzip2 by its level and the mark of the first block after "BZh", since a name may begin
 * with "BZh". */
static bool is_bzip2(const char *head, size_t bytes)
{
    static const char mark[] = "1AY&SY";
    return bytes >= 4 + strlen(mark) && head[3] >= '1' && head[3] <= '9' &&
           memcmp(head + 4, mark, strlen(mark)) == 0;
}

const char *sl_text_objection(const char *head, size_t bytes)
{
    static const struct {
        const char *start, *objection;
    } marks[] = {
        {"BZh", "is compressed by bzip2, expected text or gzip (bzcat FILE | gzip >FILE.gz)"},
        {"\xFD"
         "7zXZ",
         "is compressed by xz, expected text or gzip (xzcat FILE | gzip >FILE.gz)"},
        {"\x28\xB5\x2F\xFD",
         "is compressed by zstd, expected text or gzip (zstdcat FILE | gzip >FILE.gz)"},
        {"\xFF\xFE", "is UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)"},
        {"\xFE\xFF", "is UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)"},
    };
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        const size_t length = strlen(marks[k].start);
        const bool begins = bytes >= length && memcmp(head, marks[k].start, length) == 0;
        if (begins && (k > 0 || is_bzip2(head, bytes)))
            return marks[k].objection;
    }
    return NULL;
}

size_t sl_text_plain_length(const char *path)
{
    static const char *const ends[] = {".gz", ".bz2", ".xz", ".zst"};
    const size_t length = strlen(path);
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        const size_t end = strlen(ends[k]);
        if (length > end && strcasecmp(path + length - end, ends[k]) == 0)
            return length - end;
    }
    return length;
}

/* Begin at the first line: skip its byte order mark. */
static int begin(struct sl_text *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const char *head = text->buffer + text->begin;
    const size_t bytes = text->end - text->begin;
    const char *objection = sl_text_objection(head, bytes);
    if (objection)
        return sl_error(SL_ERR_DATA, "%s: %s", text->path, objection);
    if (bytes >= 3 && memcmp(head, mark, 3) == 0)
        text->begin += 3;
    return SL_OK;
}

/* ---- Lines ---- */

/* Make room for at least one byte and the NUL after it. */
static int make_room(struct sl_text *text)
{
    if (text->begin > 0) {
        memmove(text->buffer, text->buffer + text->begin, text->end - text->begin);
        text->end -= text->begin;
        text->begin = 0;
    }
    if (text->end + 1 < text->capacity)
        return SL_OK;
    if (text->capacity >= MAX_LINE)
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " is longer than 1 GiB", text->path,
                        text->line_number + 1);
    const size_t capacity = text->capacity ? 2 * text->capacity : (size_t)1 << 16;
    char *buffer = realloc(text->buffer, capacity);
    if (!buffer)
        return sl_error(SL_ERR_SYSTEM, "%s: out of memory for line %" PRId64, text->path,
                        text->line_number + 1);
    text->buffer = buffer;
    text->capacity = capacity;
    return SL_OK;
}

/* Refuse compressed text that may take more memory than the size of its file allows. */
static int check_cost(const struct sl_text *text)
{
    enum { TIMES = 1100, FREE = 16 << 20 }; /* several files of a folder are free */
    const int64_t most = (TIMES * text->packed + FREE) / text->cost;
    if (gzdirect(text->file) || gztell(text->file) <= most)
        return SL_OK;
    return sl_error(SL_ERR_DATA,
                    "%s: its %" PRId64 " compressed bytes are more than %" PRId64
                    " bytes of text, too many to read safely (expected a file that gunzip has "
                    "unpacked)",
                    text->path, text->packed, most);
}

static int fill(struct sl_text *text)
{
    int rc = make_room(text);
    if (rc)
        return rc;
    const int got =
        gzread(text->file, text->buffer + text->end, (unsigned)(text->capacity - text->end - 1));
    int code;
    const char *message = gzerror(text->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
        return sl_error(SL_ERR_DATA, "%s: cannot read after line %" PRId64 ": %s", text->path,
                        text->line_number,
                        code == Z_BUF_ERROR ? "the compressed data is truncated" : message);
    text->at_end = got == 0;
    sl_progress_set(gzoffset(text->file));
    text->end += (size_t)got;
    return check_cost(text);
}

/* Return the end of a line in the bytes from `from` on, and set *next to the start of the next
 * line. NULL: the line goes on, or the bytes end with a \r that a may follow. Lines end with , \r
 *  or \r. */
static char *find_end(const struct sl_text *text, char *from, char **next)
{
    char *end = text->buffer + text->end, *newline = memchr(from, '\n', (size_t)(end - from));
    char *stop = newline ? newline : end, *cr = memchr(from, '\r', (size_t)(stop - from));
    if (!cr && !newline)
        return NULL;
    if (cr && cr + 1 == end && !text->at_end)
        return NULL;
    *next = cr && cr + 1 != newline ? cr + 1 : newline + 1;
    return cr ? cr : newline;
}

int sl_text_next(struct sl_text *text, char **line)
{
    char *stop = NULL, *next = NULL;
    size_t searched = 0;
    while (text->line_number == 0 && !text->at_end && text->end - text->begin < HEAD) {
        const int rc = fill(text);
        if (rc)
            return rc;
    }
    if (text->line_number == 0) {
        const int rc = begin(text);
        if (rc)
            return rc;
    }
    for (;;) {
        const size_t held = text->end - text->begin;
        if (held > searched)
            stop = find_end(text, text->buffer + text->begin + searched, &next);
        if (stop || text->at_end)
            break;
        searched = held > 0 ? held - 1 : 0; /* the last byte may be a \r */
        const int rc = fill(text);
        if (rc)
            return rc;
    }
    if (text->begin == text->end)
        return 0;
    char *start = text->buffer + text->begin;
    text->begin = stop ? (size_t)(next - text->buffer) : text->end;
    stop = stop ? stop : text->buffer + text->end;
    text->line_number++;
    if (memchr(start, '\0', (size_t)(stop - start)))
        return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " has a NUL byte; expected text",
                        text->path, text->line_number);
    *stop = '\0';
    *line = start;
    return 1;
}

int sl_text_next_data(struct sl_text *text, const char *marks, char **line)
{
    for (;;) {
        const int got = sl_text_next(text, line);
        if (got <= 0)
            return got;
        const char first = (*line)[strspn(*line, " \t")];
        if (first != '\0' && !strchr(marks, first))
            return 1;
    }
}

/* ---- Words ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool sl_text_read_int64(const char **at, int64_t *value)
{
    enum { SAFE_DIGITS = 18 }; /* no int64 of so many digits overflows */
    const char *digit = *at + (**at == '-' || **at == '+');
    int64_t sum = 0;
    int digits = 0;
    for (; digits < SAFE_DIGITS && is_digit(digit[digits]); digits++)
        sum = 10 * sum + (digit[digits] - '0');
    if (digits == 0)
        return false;
    if (!is_digit(digit[digits])) {
        *value = **at == '-' ? -sum : sum;
        *at = digit + digits;
        return true;
    }
    char *end;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

/* Read a short decimal exactly: up to 15 digits and a power of ten up to 22 are exact in a double,
 * and so is their quotient or product (Clinger, PLDI 1990). Return false where strtod must read it.
 */
static bool read_short_decimal(const char **at, double *value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { EXACT_DIGITS = 15, EXACT_POWER = 22 };
    const char *c = *at + (**at == '-' || **at == '+');
    int64_t mantissa = 0, exponent = 0;
    int digits = 0, fraction = 0;
    for (; is_digit(*c) && digits <= EXACT_DIGITS; c++, digits++)
        mantissa = 10 * mantissa + (*c - '0');
    if (*c == '.')
        for (c++; is_digit(*c) && digits <= EXACT_DIGITS; c++, digits++, fraction++)
            mantissa = 10 * mantissa + (*c - '0');
    if (digits == 0 || digits > EXACT_DIGITS || *c == 'x' || *c == 'X')
        return false;
    if (*c == 'e' || *c == 'E') {
        c++;
        if (!sl_text_read_int64(&c, &exponent))
            return false;
    }
    if (exponent > 2 * EXACT_POWER || exponent < -2 * EXACT_POWER)
        return false;
    exponent -= fraction;
    if (exponent > EXACT_POWER || exponent < -EXACT_POWER)
        return false;
    *value =
        exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
    *value = **at == '-' ? -*value : *value;
    *at = c;
    return true;
}

bool sl_text_read_float(const char **at, float *value)
{
    double number;
    if (read_short_decimal(at, &number)) {
        *value = (float)number;
        return true;
    }
    if (**at == '\0' || strchr(" \t\n\v\f\r", **at))
        return false; /* strtod would skip blanks */
    char *end;
    *value = (float)sl_number_read(*at, &end);
    const bool found = end > *at;
    *at = end;
    return found;
}

bool sl_text_to_int64(const char *word, int64_t *value)
{
    return sl_text_read_int64(&word, value) && *word == '\0';
}

bool sl_text_to_float(const char *word, float *value)
{
    return sl_text_read_float(&word, value) && *word == '\0' && isfinite(*value);
}

bool sl_text_has_decimal_comma(const char *word)
{
    const char *digit = word + (*word == '-' || *word == '+');
    const size_t whole = strspn(digit, "0123456789");
    const char *comma = digit + whole;
    const size_t rest = *comma == ',' ? strspn(comma + 1, "0123456789") : 0;
    return whole > 0 && rest > 0 && comma[1 + rest] == '\0';
}

bool sl_text_is_numbers(const char *word)
{
    int64_t count = 0;
    float unused;
    for (word += strspn(word, " \t"); *word; word += strspn(word, " \t"), count++)
        if (!sl_text_read_float(&word, &unused) || !strchr(" \t", *word))
            return false;
    return count > 1;
}

bool sl_text_is_missing(const char *word)
{
    static const char *const words[] = {"",     "nan",  "na",   "n/a", "#n/a",
                                        "none", "null", "<na>", "?"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(word, words[k]) == 0)
            return true;
    return false;
}

char *sl_text_word(char **line)
{
    char *word = *line + strspn(*line, " \t");
    if (*word == '\0')
        return NULL;
    char *end = word + strcspn(word, " \t");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return word;
}
