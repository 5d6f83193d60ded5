/* The instruction level of kernels: the processor's best one, or the level that was asked for. */
#ifndef SL_CODELETS_INSTRUCTIONS_H
#define SL_CODELETS_INSTRUCTIONS_H

enum sl_instructions {
    SL_INSTRUCTIONS_BASE, /* what every processor of this architecture has */
    SL_INSTRUCTIONS_V3,   /* x86-64-v3: AVX2 and FMA */
    SL_INSTRUCTIONS_V4,   /* x86-64-v4: AVX-512 */
    SL_INSTRUCTIONS_BF16, /* and AVX512_BF16, which rounds to bfloat16 and multiplies it */
    SL_INSTRUCTIONS,
};

/* Return the level in force: the best of this processor unless another one was set. */
enum sl_instructions sl_instructions_get(void);

/* Set the level; the processor must have it. Not while kernels run. */
void sl_instructions_set(enum sl_instructions level);

/* Return the best level of this processor. */
enum sl_instructions sl_instructions_best(void);

#define SL_INSTRUCTIONS_CHOICES "base|v3|v4|v4-bf16"

/* Return 0 and the level that --instructions names in LEVEL; "auto" is the best of this processor.
 * SL_ERR_USAGE for a level that there is not here. */
int sl_instructions_parse(const char *name, enum sl_instructions *level);

/* "base", "v3", "v4", "v4-bf16"; and back, SL_INSTRUCTIONS for another name. */
extern const char *const sl_instructions_names[SL_INSTRUCTIONS];
enum sl_instructions sl_instructions_find(const char *name);

#endif
