/* Options as one typed table, which serves parsing, --help, the man page, the log's configuration
 * and the checkpoint's. A row has name, type, offset in a configuration struct, default, range and
 * help. */
#ifndef SL_CORE_OPTIONS_H
#define SL_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "core/names.h"

enum sl_option_type {
    SL_OPTION_FLAG,   /* bool; `--name` sets it, `--no-name` clears it */
    SL_OPTION_INT,    /* int64_t */
    SL_OPTION_REAL,   /* double */
    SL_OPTION_STRING, /* char * (owned by the configuration, NULL when absent) */
    SL_OPTION_NAME,   /* char *, one of `choices` */
    SL_OPTION_CHOICE, /* int or an enum: the place in `choices`; SL_NO_CHOICE when absent */
    SL_OPTION_WAY,    /* SL_OPTION_CHOICE, but `--name` alone means the first choice */
    SL_OPTION_VALUE,  /* a value that `value->read` makes from the text */
    SL_OPTION_KIND,   /* a pointer to a row, found by its name, one of `choices`; a row begins with
                         `const char *name`. NULL: the first choice, which has no row */
};

/* The text of any option. The longest is 255 numbers of 8 digits, with commas between them. */
struct sl_text {
    char text[255 * 9 + 1];
};

/* Convert between a text and a value of `size` bytes. The value owns no memory. */
struct sl_option_value {
    size_t size;
    const char *expected; /* words of the error after "expected" */
    /* Read a value from the text; return whether the text is valid. An invalid text may change the
     * value. NULL: make the value of an option that is not given and has no default. */
    bool (*read)(const char *text, void *value);
    /* Append the value to the text; append nothing where the option is not given. */
    void (*write)(const void *value, struct sl_text *text);
};

struct sl_option {
    const char *name; /* without the dashes; NULL ends the table */
    enum sl_option_type type;
    size_t offset;             /* offset of the field in the configuration struct */
    const char *default_value; /* text as a user types it ("yes"/"no" for flags); NULL: absent */
    double min, max;           /* inclusive range for INT and REAL; both 0: any */
    const char *choices;       /* "a|b|c" for CHOICE */
    const char *argument;      /* name of the value in --help, e.g. "N", "FILE" */
    const char *help;          /* one sentence, no final period */
    const char *group;         /* heading of the option in --help and the man page */
    const void *(*find)(const char *name); /* KIND: return the row of that name, or NULL */
    const struct sl_option_value *value;   /* VALUE: how to read and write the value */
};

/* Fill `config` with every default. Return 0 or a negative code. */
int sl_options_defaults(const struct sl_option *table, void *config);

/* Parse argv[0..argc) (`--name value`, `--name=value`, flags, `--` ends options) into `config`,
 * which holds its defaults already. Move positional arguments to the front of argv in order and
 * count them in *positionals. `given`, if not NULL, has one bool per row, set where the user gave
 * the option. Errors (SL_ERR_USAGE): unknown option (names the nearest one), missing or malformed
 * value, out of range. */
int sl_options_parse(const struct sl_option *table, void *config, int argc, char **argv,
                     int *positionals, bool *given);

/* Return the distance of `typed` from the nearest option name or alias of other programs, and write
 * the option's name to `nearest` (size bytes). SIZE_MAX: the table has no options. */
size_t sl_options_nearest(const struct sl_option *table, const char *typed, char *nearest,
                          size_t size);

/* Set one option from text, as the command line would. */
int sl_options_set(const struct sl_option *table, void *config, const char *name,
                   const char *value);

/* Return `text` as a JSON string (a new reference). Return "?" for NULL and for bytes that are not
 * UTF-8, which a file name may have. */
json_t *sl_json_text(const char *text);

/* Return a new list of texts, which NULL ends; NULL without memory. */
json_t *sl_json_list(const char *const *texts);

/* Return the word of a CHOICE, WAY or KIND of the table. */
struct sl_word sl_options_word(const struct sl_option *table, const void *config, const char *name);

/* Return the text of a VALUE of the table; "" where it is not given. */
struct sl_text sl_options_text(const struct sl_option *table, const void *config, const char *name);

/* Return the configuration as a JSON object with every row by name (a new reference). */
json_t *sl_options_to_json(const struct sl_option *table, const void *config);

/* Set every option that `object` has and `skip` (one bool per row, or NULL) does not mark. Accept
 * values under names that older programs gave them. SL_ERR_DATA names members that the table lacks
 * and `source`, the file that the object came from. */
int sl_options_from_json(const struct sl_option *table, void *config, const json_t *object,
                         const bool *skip, const char *source);

/* Free the strings that the configuration owns. */
void sl_options_free(const struct sl_option *table, void *config);

/* Write the range of an option: "1 to 64", "at least 1", "at most 0", or "" where any value will
 * do. */
void sl_option_describe_range(const struct sl_option *option, char *text, size_t size);

#endif
