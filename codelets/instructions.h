/* The instruction level of kernels: the processor's best one, or the level that was asked for. */
#ifndef SL_CODELETS_INSTRUCTIONS_H
#define SL_CODELETS_INSTRUCTIONS_H

#include "core/names.h"

#define SL_INSTRUCTION_CHOICES(ENTRY)                                                              \
    ENTRY(SL_INSTRUCTIONS_BASE, "base") /* instructions of every processor of this architecture */ \
    ENTRY(SL_INSTRUCTIONS_V3, "v3")     /* x86-64-v3: AVX2 and FMA */                              \
    ENTRY(SL_INSTRUCTIONS_V4, "v4")     /* x86-64-v4: AVX-512 */                                   \
    ENTRY(SL_INSTRUCTIONS_BF16, "v4-bf16") /* v4 and AVX512_BF16, which multiplies bfloat16 */     \
    ENTRY(SL_INSTRUCTIONS_AUTO, "auto")    /* the best level of this processor */

/* auto comes last, so that it is the number of levels. */
enum sl_instructions {
    SL_INSTRUCTION_CHOICES(SL_CHOICE_CONSTANT) SL_INSTRUCTIONS =
        SL_INSTRUCTIONS_AUTO, /* number of levels */
};

/* Return the level in force: the best of this processor unless another one was set. */
enum sl_instructions sl_instructions_get(void);

/* Set the level, which the processor must have. No kernel may be running. */
void sl_instructions_set(enum sl_instructions level);

/* Return the best level of this processor. */
enum sl_instructions sl_instructions_best(void);

/* Set *level to the level of a choice. Return 0, or SL_ERR_USAGE if this processor lacks the level.
 */
int sl_instructions_choose(enum sl_instructions choice, enum sl_instructions *level);

/* Names of the levels: "base", "v3", "v4", "v4-bf16". */
extern const char *const sl_instructions_names[SL_INSTRUCTIONS];

#endif
