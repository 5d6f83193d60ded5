/* The readers that are tried, and an input for the chosen one. */
#ifndef SL_TESTS_FUZZ_READERS_H
#define SL_TESTS_FUZZ_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print a line for each reader: its name, and the pieces of its inputs. */
void readers_list(void);

/* Choose a reader; false: there is none of that name. */
bool readers_choose(const char *name);

/* Give the chosen reader an input. Aborts where something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
