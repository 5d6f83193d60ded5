/* Targets: a loss compares the logits of a row with a row of int32 of a target tile. */
#ifndef SL_CODELETS_TARGET_H
#define SL_CODELETS_TARGET_H

#include <stdint.h>

enum sl_target_form {
    SL_TARGET_CLASS,  /* {label or -1, split} */
    SL_TARGET_VALUES, /* {0, or -1 if no value is known; split; for each column the bits of a float,
                         NaN: not known} */
    SL_TARGET_NONE,   /* {-1, split}: vertices have no labels, as links are trained on */
};

/* Places in a row of a target tile. */
enum { SL_TARGET_LABEL, SL_TARGET_SPLIT, SL_TARGET_FIRST };

/* Return how many numbers a row of a target tile has. */
static inline int64_t sl_target_width(enum sl_target_form form, int64_t columns)
{
    return form == SL_TARGET_VALUES ? SL_TARGET_FIRST + columns : SL_TARGET_FIRST;
}

#endif
