/* Options as one typed table: parsing, --help, the man page, the log's configuration and the
 * checkpoint's all come from it. A row says name, type, where the value lives in a configuration
 * struct, default, range and help. */
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
    SL_OPTION_NAME,   /* the same, one of `choices` */
    SL_OPTION_CHOICE, /* int or an enum: the place in `choices`; SL_NO_CHOICE when absent */
    SL_OPTION_WAY,    /* the same; `--name` alone means the first choice */
    SL_OPTION_VALUE,  /* what `value` reads the text as */
    SL_OPTION_KIND,   /* a pointer to a row, found by its name, one of `choices`; a row begins with
                         `const char *name`. NULL: the first choice, which has no row */
};

/* The text of any option: 255 numbers of 8 digits, with commas between them, are the longest. */
struct sl_text {
    char text[255 * 9 + 1];
};

/* How a text and a value of `size` bytes become each other. The value points to nothing that must
 * be freed. */
struct sl_option_value {
    size_t size;
    const char *expected; /* for an error, after "expected" */
    /* Return whether the text is a value; if not, the value may have changed. NULL: the value of an
     * option that is not given and has no default. */
    bool (*read)(const char *text, void *value);
    /* Append to the text; nothing where the option is not given. */
    void (*write)(const void *value, struct sl_text *text);
};

struct sl_option {
    const char *name; /* without the dashes; NULL ends the table */
    enum sl_option_type type;
    size_t offset;             /* of the field in the configuration struct */
    const char *default_value; /* as a user would type it ("yes"/"no" for flags); NULL: absent */
    double min, max;           /* inclusive range for INT and REAL; both 0: any */
    const char *choices;       /* "a|b|c" for CHOICE */
    const char *argument;      /* what --help calls the value, e.g. "N", "FILE" */
    const char *help;          /* one sentence, no final period */
    const char *group;         /* heading it stands under in --help and the man page */
    const void *(*find)(const char *name); /* of KIND; NULL without a row of that name */
    const struct sl_option_value *value;   /* of VALUE */
};

/* Fills `config` with every default. Returns 0 or a negative code. */
int sl_options_defaults(const struct sl_option *table, void *config);

/* Parses argv[0..argc) (`--name value`, `--name=value`, flags, `--` ends options) into `config`,
 * which holds its defaults already; positional arguments are moved to the front of argv in order
 * and counted in *positionals. `given`, if not NULL, has one bool per row, set where the user gave
 * that option. Errors (SL_ERR_USAGE): unknown option (names the nearest one), missing or malformed
 * value, out of range. */
int sl_options_parse(const struct sl_option *table, void *config, int argc, char **argv,
                     int *positionals, bool *given);

/* How far `typed` is from the nearest name of an option, or from a name that other programs have
 * for one; `nearest` becomes the option's name. SIZE_MAX: the table has no options. */
size_t sl_options_nearest(const struct sl_option *table, const char *typed, char *nearest,
                          size_t size);

/* Sets one option from text, as the command line would. */
int sl_options_set(const struct sl_option *table, void *config, const char *name,
                   const char *value);

/* A JSON string (a new reference); "?" for NULL and for bytes that are not UTF-8, which a file name
 * may have. */
json_t *sl_json_text(const char *text);

/* Return a new list of texts, which NULL ends; NULL without memory. */
json_t *sl_json_list(const char *const *texts);

/* Return the word of a CHOICE, WAY or KIND of the table. */
struct sl_word sl_options_word(const struct sl_option *table, const void *config, const char *name);

/* Return the text of a VALUE of the table; "" where it is not given. */
struct sl_text sl_options_text(const struct sl_option *table, const void *config, const char *name);

/* The configuration as a JSON object, every row by name (a new reference). */
json_t *sl_options_to_json(const struct sl_option *table, const void *config);

/* Sets every option that `object` has and that `skip` (one bool per row, or NULL) does not mark.
 * Values may have the names that older programs gave them.
 * Members that the table lacks are an SL_ERR_DATA naming them and `source`, the file that the
 * object came from. */
int sl_options_from_json(const struct sl_option *table, void *config, const json_t *object,
                         const bool *skip, const char *source);

/* Frees the strings that the configuration owns. */
void sl_options_free(const struct sl_option *table, void *config);

/* "1 to 64", "at least 1", "at most 0", or "" when any value will do. */
void sl_option_describe_range(const struct sl_option *option, char *text, size_t size);

#endif
