/* A program of a user in whose library calls fail, one by one: for LD_PRELOAD of
 * tests/fault_shim.c, by tests/library-faults.sh. Usage:
 *
 *     library_faults DATASET KIND POINTS [OPTION VALUE]...
 *
 * It opens the dataset, trains, saves, loads and predicts. POINTS calls of the kind fail (0: every
 * one; =N: call N), each in a process of its own, once alone and once with all later ones. Each
 * time the program must get an error with a sentence, or the results of a run without a failure.
 * The same process then does all again, and must get these results. Of the options, `loss own` is
 * this program's. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <starling.h>

/* In tests/fault_shim.c: the call `at` fails, and if `later` all after it; 0: none. */
extern void fault_set(const char *kind, long at, int later) __attribute__((weak));
extern long fault_calls(void) __attribute__((weak));

enum { SECONDS = 60, MOST_SHOWN = 5 };

static const char *dataset, *kind;
static char **word; /* names and values of options */
static int words;

/* Memory in which the other processes tell this process their results. */
static struct {
    uint64_t hash; /* of the results without a failure */
    long calls;
    char sentence[512];
} * told;

/* Half the squared distance from a 1 at the class. */
static void own_loss(void *context, const struct starling_loss_rows *rows)
{
    (void)context;
    for (int64_t r = 0; r < rows->rows; r++)
        for (int64_t j = 0; j < rows->columns; j++) {
            const int64_t at = r * rows->columns + j;
            const float d = rows->logits[at] - (float)(rows->classes[r] == j);
            rows->loss[r] += 0.5 * (double)d * (double)d;
            if (rows->gradient)
                rows->gradient[at] = d;
        }
}

static void add(uint64_t *hash, const void *bytes, size_t count)
{
    for (size_t b = 0; b < count; b++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[b]) * UINT64_C(0x100000001b3);
}

static int predict(const starling_model *model, starling_graph *graph, uint64_t *hash)
{
    starling_prediction *prediction;
    int64_t rows = 0, columns = 0;
    const int code = starling_predict(model, graph, NULL, 1, &prediction);
    if (code)
        return code;
    const float *logits = starling_prediction_output(prediction, STARLING_LOGITS, &rows, &columns);
    add(hash, logits, (size_t)(rows * columns) * sizeof *logits);
    starling_prediction_free(prediction);
    return 0;
}

static int train(starling_graph *graph, const starling_options *options, uint64_t *hash)
{
    starling_model *model = NULL, *loaded = NULL;
    int64_t rows, columns;
    int code = starling_train(graph, options, NULL, NULL, &model);
    for (int64_t w = 0; !code && w < starling_model_weights(model); w++) {
        const float *weight = starling_model_weight(model, w, NULL, &rows, &columns);
        add(hash, weight, (size_t)(rows * columns) * sizeof *weight);
    }
    if (!code)
        code = starling_model_save(model, "out.model");
    if (!code)
        code = starling_model_load("out.model", &loaded);
    if (!code)
        code = predict(loaded, graph, hash);
    starling_model_free(model);
    starling_model_free(loaded);
    return code;
}

/* All that the program does with the library, from opening to freeing. */
static int use(uint64_t *hash)
{
    starling_graph *graph = NULL;
    starling_options *options = NULL;
    *hash = 0;
    int code = starling_loss_register("own", STARLING_CLASSES, own_loss, NULL);
    if (!code)
        code = starling_graph_open(dataset, &graph);
    if (!code)
        code = starling_options_create(&options);
    for (int w = 0; !code && w + 1 < words; w += 2)
        code = starling_options_set(options, word[w], word[w + 1]);
    if (!code)
        code = train(graph, options, hash);
    starling_options_free(options);
    starling_graph_free(graph);
    return code;
}

static int say(const char *what)
{
    snprintf(told->sentence, sizeof told->sentence, "%s (%.400s)", what, starling_error());
    return 1;
}

static int leaves_file(void)
{
    DIR *folder = opendir(".");
    int found = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        found = found || strstr(entry->d_name, ".tmp");
    if (folder)
        closedir(folder);
    return found;
}

/* Return the status of a process in which the call `at` fails. */
static int fail_at(long at, int later)
{
    uint64_t hash;
    alarm(SECONDS);
    fault_set(kind, at, later);
    const int code = use(&hash);
    if (at == 0) {
        told->hash = hash;
        told->calls = fault_calls();
    }
    fault_set("", 0, 0);
    if (at == 0)
        return code ? say("an error without a failure") : 0;
    if (code && !starling_error()[0])
        return say("an error without a sentence");
    if (!code && hash != told->hash)
        return say("other results without an error");
    if (leaves_file())
        return say("a temporary file is left");
    if (use(&hash))
        return say("an error afterwards");
    return hash == told->hash ? 0 : say("other results afterwards");
}

/* Return whether a process in which the call `at` fails ends as it must. */
static int passes(long at, int later)
{
    int status;
    told->sentence[0] = '\0';
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(fail_at(at, later));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return 1;
    if (WIFSIGNALED(status))
        snprintf(told->sentence, sizeof told->sentence, "signal %d", WTERMSIG(status));
    else if (!told->sentence[0])
        snprintf(told->sentence, sizeof told->sentence, "ends with status %d", WEXITSTATUS(status));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4 || !fault_set)
        return 2;
    dataset = argv[1];
    kind = argv[2];
    const long only = argv[3][0] == '=' ? atol(argv[3] + 1) : 0, points = only ? 1 : atol(argv[3]);
    word = argv + 4;
    words = argc - 4;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED || !passes(0, 0)) {
        printf("%s\n", told == MAP_FAILED ? "no memory" : told->sentence);
        return 1;
    }
    const long calls = told->calls, all = points == 0 || calls < points ? calls : points;
    long wrong = 0;
    for (long p = 0; p < all; p++)
        for (int later = 0; later < 2; later++) {
            const long at = only ? only : all > 1 ? 1 + p * (calls - 1) / (all - 1) : 1;
            if (passes(at, later))
                continue;
            if (wrong++ < MOST_SHOWN)
                printf("          %s %ld%s: %s\n", kind, at, later ? " and later" : "",
                       told->sentence);
        }
    printf("%s: %ld failures of %ld calls, %ld wrong\n", kind, 2 * all, calls, wrong);
    return wrong > 0;
}
