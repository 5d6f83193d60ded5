/* Classes of the vertices of a graph, by a model that `starling train --checkpoint` has written:
 * without StarPU and MPI. The graph is a folder of NumPy files, as `starling convert` writes them.
 *
 *     cc predict.c $(pkg-config --cflags --libs starling-predict) -o predict
 *     ./predict model.ckpt graph */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starling-predict.h>

/* Read the numbers of a .npy file, whatever its header says. Return NULL where there is no file. */
static void *read_npy(const char *folder, const char *name, size_t item, int64_t *count)
{
    char path[4096];
    unsigned char head[10];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    if (fread(head, 1, sizeof head, file) != sizeof head || fseek(file, 0, SEEK_END)) {
        fclose(file);
        return NULL;
    }
    const long start = 10 + head[8] + 256 * head[9], bytes = ftell(file) - start;
    void *numbers = malloc((size_t)bytes + 1);
    *count = bytes / (long)item;
    if (numbers && (fseek(file, start, SEEK_SET) ||
                    fread(numbers, item, (size_t)*count, file) != (size_t)*count)) {
        free(numbers);
        numbers = NULL;
    }
    fclose(file);
    return numbers;
}

static void print_classes(const starling_predictor *predictor, int64_t rows, const int32_t *classes)
{
    for (int64_t v = 0; v < rows && v < 5; v++) {
        const char *name = starling_predictor_class_name(predictor, classes[v]);
        printf("vertex %lld: class %d%s%s\n", (long long)v, (int)classes[v], name ? " " : "",
               name ? name : "");
    }
}

/* Return whether a folder has something that this program does not read, and say so. */
static int has_more(const char *folder)
{
    static const char *const names[] = {"edge_types.npy", "edge_features.npy", "relations"};
    for (int n = 0; n < 3; n++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[n]);
        if (access(path, F_OK) == 0) {
            fprintf(stderr, "predict: %s: this program does not read it\n", path);
            return 1;
        }
    }
    return 0;
}

static int predict(const starling_predictor *predictor, const char *folder)
{
    const struct starling_predictor_info *info = starling_predictor_info(predictor);
    struct starling_predictor_error error;
    int64_t rows = 0, entries = 0, weighted = 0, numbers = 0;
    int64_t *indptr = read_npy(folder, "indptr.npy", sizeof *indptr, &rows);
    int32_t *indices = read_npy(folder, "indices.npy", sizeof *indices, &entries);
    float *weights = read_npy(folder, "weights.npy", sizeof *weights, &weighted);
    float *features = read_npy(folder, "features.npy", sizeof *features, &numbers);
    const struct starling_predictor_graph graph = {
        .size = sizeof graph,
        .vertices = rows - 1,
        .entries = entries,
        .indptr = indptr,
        .indices = indices,
        .weights = weights,
        .feature_columns = rows > 1 ? numbers / (rows - 1) : 0,
        .features = features,
    };
    float *logits = malloc((size_t)(rows * info->outputs) * sizeof *logits + 1);
    int32_t *classes = malloc((size_t)(rows * info->outputs) * sizeof *classes + 1);
    int code = logits && classes ? 0 : STARLING_PREDICTOR_ERR_SYSTEM;
    strcpy(error.text, "no memory");
    if (!code && weights && weighted != entries) {
        code = STARLING_PREDICTOR_ERR_DATA;
        strcpy(error.text, "weights.npy has other entries than indices.npy");
    }
    if (!code)
        code = starling_predictor_run(predictor, &graph, logits, &error);
    if (!code)
        code = starling_predictor_classes(predictor, graph.vertices, logits, classes, &error);
    if (!code)
        print_classes(predictor, graph.vertices, classes);
    else
        fprintf(stderr, "predict: %s\n", error.text);
    free(indptr);
    free(indices);
    free(weights);
    free(features);
    free(logits);
    free(classes);
    return code;
}

int main(int argc, char **argv)
{
    struct starling_predictor_error error;
    starling_predictor *predictor;
    if (argc != 3) {
        fprintf(stderr, "usage: predict CHECKPOINT FOLDER\n");
        return 2;
    }
    if (has_more(argv[2]))
        return 1;
    if (starling_predictor_open(argv[1], &predictor, &error)) {
        fprintf(stderr, "predict: %s\n", error.text);
        return 1;
    }
    const struct starling_predictor_info *info = starling_predictor_info(predictor);
    printf("%s: %lld features, %lld classes\n", info->model, (long long)info->features,
           (long long)info->outputs);
    const int code = predict(predictor, argv[2]);
    starling_predictor_close(predictor);
    return code != 0;
}
