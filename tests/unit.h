/* Headers that unit tests need: cmocka's, in the order that it wants, and some of C. */
#ifndef SL_TESTS_UNIT_H
#define SL_TESTS_UNIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Define a test that has no state of its group. */
#define SL_TEST(name) static void name(__attribute__((unused)) void **state)

#endif
