/* The frame of every_grid.c and every_cut.c, which train small datasets in every way, in one
 * process for each rank. It has the loop over cases, the training of one rank, verdicts and counts.
 */
#ifndef SL_TESTS_EVERY_H
#define SL_TESTS_EVERY_H

#include "tests/fixtures.h"
#include "tests/trained.h"

/* Hidden layers, and features and classes of most fixtures, are of prime widths, and so are
 * vertices and tiles: nothing divides them. */
enum { SL_EVERY_HIDDEN = 13 };
#define SL_EVERY_DENSE(n, mean, alone)                                                     \
    .vertices = (n), .features = 17, .classes = 11, .degree = (mean), .isolated = (alone), \
    .form = SL_FEATURES_DENSE
#define SL_EVERY_SPARSE(n, labels, mean, alone)                                                  \
    .vertices = (n), .features = 19, .classes = (labels), .degree = (mean), .isolated = (alone), \
    .form = SL_FEATURES_CSR
#define SL_EVERY_WEIGHTED .directed = true, .weighted = true

struct sl_every_case {
    const char *name;
    struct sl_fixture fixture; /* without classes: the real dataset of that name */
    const char *options;
    bool apart; /* train with small matrices apart, too */
};

/* One case, opened. */
struct sl_every {
    struct sl_runtime *rt;
    const struct sl_every_case *c;
    int number, layers;
    bool all; /* ways: for a case on the command line, SL_GRID_RANKS or SL_EVERY=all */
    struct sl_dataset data; /* of a fixture */
    struct sl_source source;
    struct sl_trained expected; /* on rank 0: what one rank gets */
    int done, failures;
};

struct sl_every_program {
    const void *cases;  /* structs that begin with a sl_every_case */
    size_t count, size; /* of cases; of one in bytes */
    int layers;
    void (*check)(
        struct sl_every *every); /* train in all ways, with sl_every_train and a verdict */
};

/* Train on `source` with the options of the case and `how`; else as sl_train. */
int sl_every_train(const struct sl_every *every, const struct sl_source *source, const char *how,
                   bool apart, struct sl_trained *out);

/* Count and print a verdict, on all ranks. */
void sl_every_say(struct sl_every *every, bool good, const char *how, const char *text);

/* Compare a training with the training of one rank, and say so. good: what else was right; `text`
 * is printed beside. */
void sl_every_judge(struct sl_every *every, const char *how, bool apart, int code,
                    const struct sl_trained *got, bool good, const char *text);

/* Whether SL_EVERY=all is in the environment: all ranks check each case in all ways. */
bool sl_every_all(void);

/* Whether so many ranks check the case with this number. Of five cases, up to 2 ranks check three,
 * 3 and 4 ranks two, and more ranks one. Other numbers of ranks check other cases, and of the next
 * five cases others have their turn. */
bool sl_every_wants(int number, int ranks);

/* Check the case that the command line names, or those that are wanted. Return the exit status. */
int sl_every_run(const struct sl_every_program *program, int argc, char **argv);

#endif
