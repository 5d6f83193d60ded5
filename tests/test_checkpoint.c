/* Checkpoint files: what is written comes back, and whatever is not that is refused. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "train/trainer.h"

/* ---- Files ---- */

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The whole file (malloc). */
static char *read_bytes(const char *path, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static int count_files(void)
{
    DIR *all = opendir(sl_running_dir);
    int count = 0;
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all));)
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

/* ---- Checkpoints ---- */

/* All kinds of floats, a matrix without rows, and a description with every kind of value. */
static struct sl_checkpoint sample(void)
{
    static const float odd[6] = {0.0f, -0.0f, 1e-42f, -3.5f, 3e38f, 0x1.fffffep-1f};
    struct sl_checkpoint checkpoint = {
        .description = json_pack("{s:i, s:f, s:s, s:b, s:{s:i}}", "epoch", 12, "best_value", 0.1,
                                 "name", "a \"name\" with \xc3\xa4", "flag", 1, "inner", "x", -3),
    };
    memcpy(sl_checkpoint_add(&checkpoint, "layer0.parameters", 2, 3), odd, sizeof odd);
    memcpy(sl_checkpoint_add(&checkpoint, "layer0.best", 3, 1), odd + 2, 3 * sizeof *odd);
    sl_checkpoint_add(&checkpoint, "layer1.parameters", 0, 4);
    memcpy(sl_checkpoint_add(&checkpoint, "layer1.moment1", 1, 1), odd + 5, sizeof *odd);
    return checkpoint;
}

static bool same(const struct sl_checkpoint *a, const struct sl_checkpoint *b)
{
    if (a->count != b->count || !json_equal(a->description, b->description))
        return false;
    for (int t = 0; t < a->count; t++) {
        const struct sl_tensor *x = &a->tensors[t], *y = sl_checkpoint_find(b, x->name);
        if (!y || x->rows != y->rows || x->cols != y->cols ||
            memcmp(x->data, y->data, (size_t)(x->rows * x->cols) * sizeof *x->data) != 0)
            return false;
    }
    return true;
}

static void write_sample(const char *path)
{
    struct sl_checkpoint checkpoint = sample();
    if (sl_checkpoint_write(&checkpoint, path))
        fail_msg("%s", sl_error_message());
    sl_checkpoint_free(&checkpoint);
}

/* The file is the sample. */
static bool reads_as_sample(const char *path)
{
    struct sl_checkpoint checkpoint = {0}, expected = sample();
    const bool good = sl_checkpoint_read(path, &checkpoint) == 0 && same(&expected, &checkpoint);
    sl_checkpoint_free(&checkpoint);
    sl_checkpoint_free(&expected);
    return good;
}

/* Reading fails, with a sentence that names the file, and leaves nothing behind. */
static void assert_refused(const char *path, const char *what)
{
    struct sl_checkpoint checkpoint;
    if (sl_checkpoint_read(path, &checkpoint) != SL_ERR_DATA)
        fail_msg("%s: not refused", what);
    if (strncmp(sl_error_message(), path, strlen(path)) != 0 || strchr(sl_error_message(), '\n'))
        fail_msg("%s: the sentence is \"%s\"", what, sl_error_message());
    assert_null(checkpoint.tensors);
    assert_null(checkpoint.description);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = sl_running_path("model");
    write_sample(path);
    assert_true(reads_as_sample(path));
    write_sample(path); /* over the old one */
    assert_true(reads_as_sample(path));
    assert_int_equal(count_files(), 1);
    unlink(path);
}

static void test_find(void **state)
{
    (void)state;
    struct sl_checkpoint checkpoint = sample();
    assert_int_equal(sl_checkpoint_find(&checkpoint, "layer0.best")->rows, 3);
    assert_null(sl_checkpoint_find(&checkpoint, "layer0"));
    assert_null(sl_checkpoint_find(&checkpoint, "layer0.best2"));
    sl_checkpoint_free(&checkpoint);
    assert_null(sl_checkpoint_find(&checkpoint, "layer0.best"));
}

/* The layout that other tools read: length, JSON, data at a multiple of 64 bytes. */
static void test_layout(void **state)
{
    (void)state;
    const char *path = sl_running_path("model");
    size_t size;
    write_sample(path);
    char *bytes = read_bytes(path, &size);
    const size_t length = (size_t)(unsigned char)bytes[0] + 256 * (size_t)(unsigned char)bytes[1];
    for (int b = 2; b < 8; b++)
        assert_int_equal(bytes[b], 0);
    assert_int_equal((8 + length) % 64, 0);
    assert_int_equal(size, 8 + length + 10 * sizeof(float));
    json_t *header = json_loadb(bytes + 8, length, 0, NULL);
    json_int_t begin, end;
    const char *dtype;
    assert_non_null(header);
    assert_int_equal(json_unpack(header, "{s:{s:s, s:[I, I]}}", "layer0.best", "dtype", &dtype,
                                 "data_offsets", &begin, &end),
                     0);
    assert_string_equal(dtype, "F32");
    assert_int_equal(begin, 24);
    assert_int_equal(end, 36);
    json_decref(header);
    free(bytes);
    unlink(path);
}

static void test_truncated(void **state)
{
    (void)state;
    const char *path = sl_running_path("model");
    size_t size;
    write_sample(path);
    free(read_bytes(path, &size));
    assert_true(reads_as_sample(path));
    for (size_t length = size; length-- > 0;) {
        char what[64];
        snprintf(what, sizeof what, "the first %zu of %zu bytes", length, size);
        assert_int_equal(truncate(path, (off_t)length), 0);
        assert_refused(path, what);
    }
    unlink(path);
}

static void put_byte(int file, size_t at, int byte)
{
    const char value = (char)byte;
    assert_int_equal(pwrite(file, &value, 1, (off_t)at), 1);
}

/* One byte is wrong: the file is refused, or it still says the same. */
static void test_damaged(void **state)
{
    (void)state;
    static const int flips[] = {0x01, 0x02, 0x03, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x7f, 0xff};
    const char *path = sl_running_path("model");
    size_t size, silent = 0;
    write_sample(path);
    char *bytes = read_bytes(path, &size);
    const int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    for (size_t at = 0; at < size; at++) {
        for (size_t f = 0; f < sizeof flips / sizeof *flips; f++) {
            struct sl_checkpoint read;
            put_byte(file, at, bytes[at] ^ flips[f]);
            if (sl_checkpoint_read(path, &read) == 0) {
                sl_checkpoint_free(&read);
                if (!reads_as_sample(path) && silent++ == 0)
                    print_error("byte %zu xor 0x%02x is read as something else\n", at, flips[f]);
            }
        }
        put_byte(file, at, bytes[at]);
    }
    close(file);
    free(bytes);
    unlink(path);
    if (silent)
        fail_msg("%zu damages of one byte were not seen", silent);
}

/* ---- Other files ---- */

static void write_safetensors(const char *path, const char *header, size_t data)
{
    char bytes[1024] = {0};
    const size_t length = strlen(header);
    assert_true(8 + length + data <= sizeof bytes);
    bytes[0] = (char)(length & 255);
    bytes[1] = (char)(length >> 8);
    memcpy(bytes + 8, header, length);
    write_bytes(path, bytes, 8 + length + data);
}

static void test_foreign(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{}",
        "[]",
        "null",
        "{\"__metadata__\":{\"format\":\"pt\"}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"w\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]}}",
        "{\"__metadata__\":{\"format\":\"starling-checkpoint-9\",\"description\":\"{}\","
        "\"crc32\":\"00000000\"}}",
        "{\"__metadata__\":{\"format\":\"starling-checkpoint-1\",\"description\":\"{}\","
        "\"crc32\":\"00000000\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
        "{\"__metadata__\":{\"format\":\"starling-checkpoint-1\",\"description\":\"[]\","
        "\"crc32\":\"00000000\"}}",
    };
    const char *path = sl_running_path("foreign");
    for (size_t h = 0; h < sizeof headers / sizeof *headers; h++) {
        write_safetensors(path, headers[h], 16);
        assert_refused(path, headers[h]);
    }
    /* Our own, of a format to come: no checksum is wrong. */
    size_t size;
    write_sample(path);
    char *bytes = read_bytes(path, &size);
    char *version = memmem(bytes, size, "starling-checkpoint-1", 21);
    assert_non_null(version);
    version[20] = '2';
    write_bytes(path, bytes, size);
    free(bytes);
    assert_refused(path, "format 2");
    write_bytes(path, "", 0);
    assert_refused(path, "an empty file");
    write_bytes(path, "\x93NUMPY\x01\x00v\x00{'descr': '<f4', }", 28);
    assert_refused(path, "an array of NumPy's");
    unlink(path);
    assert_refused(path, "no file");
    assert_refused(sl_running_dir, "a directory");
    assert_refused("/dev/null", "a device");
}

/* Another program need not know the checksum. A wrong one is refused. */
static void test_no_checksum(void **state)
{
    (void)state;
    static const char *const checksums[] = {"", ",\"crc32\":\"00000000\"", ",\"crc32\":null",
                                            ",\"crc32\":0"};
    const char *path = sl_running_path("no-checksum");
    for (size_t c = 0; c < sizeof checksums / sizeof *checksums; c++) {
        struct sl_checkpoint read;
        char header[512];
        snprintf(
            header, sizeof header,
            "{\"__metadata__\":{\"format\":\"starling-checkpoint-1\",\"description\":\"{}\"%s},"
            "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
            checksums[c]);
        write_safetensors(path, header, 24);
        if (c > 0) {
            assert_refused(path, checksums[c]);
            continue;
        }
        assert_int_equal(sl_checkpoint_read(path, &read), 0);
        assert_int_equal(read.count, 1);
        assert_int_equal(sl_checkpoint_find(&read, "w")->cols, 3);
        sl_checkpoint_free(&read);
    }
    unlink(path);
}

/* Sizes and offsets that would overflow or point outside the file. */
static void test_wild_offsets(void **state)
{
    (void)state;
    static const char *const tensors[] = {
        "[2,2],\"data_offsets\":[0,32]",
        "[2,2],\"data_offsets\":[16,32]",
        "[2,2],\"data_offsets\":[16,0]",
        "[2,2],\"data_offsets\":[-16,0]",
        "[-2,-2],\"data_offsets\":[0,16]",
        "[4294967296,4294967296],\"data_offsets\":[0,0]",
        "[2147483647,2147483647],\"data_offsets\":[0,16]",
        "[4611686018427387905,1],\"data_offsets\":[0,4]",
        "[2,2],\"data_offsets\":[9223372036854775791,9223372036854775807]",
        "[4],\"data_offsets\":[0,16]",
        "[2,2,1],\"data_offsets\":[0,16]",
        "[2,2],\"data_offsets\":[0,16,32]",
        "[2.0,2],\"data_offsets\":[0,16]",
        "\"2\",\"data_offsets\":[0,16]",
    };
    const char *path = sl_running_path("wild");
    for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++) {
        char header[512];
        snprintf(header, sizeof header,
                 "{\"__metadata__\":{\"format\":\"starling-checkpoint-1\",\"description\":\"{}\"},"
                 "\"w\":{\"dtype\":\"F32\",\"shape\":%s}}",
                 tensors[t]);
        write_safetensors(path, header, 16);
        assert_refused(path, tensors[t]);
    }
    /* A header longer than the file. */
    char bytes[16] = {0};
    memset(bytes, 0xff, 8);
    write_bytes(path, bytes, sizeof bytes);
    assert_refused(path, "a header of 2^64 - 1 bytes");
    unlink(path);
}

/* ---- Disks that refuse ---- */

/* The disk is full after `bytes` bytes of a file. */
static int write_with_limit(const struct sl_checkpoint *checkpoint, const char *path, rlim_t bytes)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const int code = sl_checkpoint_write(checkpoint, path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    return code;
}

static void test_full_disk(void **state)
{
    (void)state;
    const char *path = sl_running_path("model");
    struct sl_checkpoint next = {.description = json_pack("{s:i}", "epoch", 13)};
    float *data = sl_checkpoint_add(&next, "layer0.parameters", 100, 100);
    for (int i = 0; i < 10000; i++)
        data[i] = (float)i;
    write_sample(path);
    for (rlim_t bytes = 0; bytes < 40000; bytes += 3001) {
        assert_int_equal(write_with_limit(&next, path, bytes), SL_ERR_SYSTEM);
        assert_non_null(strstr(sl_error_message(), path));
        assert_true(reads_as_sample(path));
        assert_int_equal(count_files(), 1);
    }
    assert_int_equal(write_with_limit(&next, path, 1 << 20), 0);
    assert_false(reads_as_sample(path));
    assert_int_equal(count_files(), 1);
    sl_checkpoint_free(&next);
    unlink(path);
}

static void test_unwritable(void **state)
{
    (void)state;
    struct sl_checkpoint checkpoint = sample();
    char longer[6000];
    assert_int_equal(sl_checkpoint_write(&checkpoint, sl_running_path("none/model")),
                     SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "none/model"));
    assert_int_equal(sl_checkpoint_write(&checkpoint, sl_running_dir),
                     SL_ERR_SYSTEM); /* a directory */
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(sl_checkpoint_write(&checkpoint, longer), SL_ERR_SYSTEM);
    assert_int_equal(count_files(), 0);
    char temporary[128];
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", sl_running_dir, (long)getpid());
    assert_int_not_equal(access(temporary, F_OK), 0);
    sl_checkpoint_free(&checkpoint);
}

/* ---- Checkpoints of trainers ---- */

static struct sl_config configuration(const char *hidden, const char *layers, const char *bias)
{
    struct sl_config config = {0};
    assert_int_equal(sl_options_defaults(sl_config_options, &config), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "epochs", "3"), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "patience", "3"), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "hidden", hidden), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "layers", layers), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "bias", bias), 0);
    return config;
}

/* Makes a trainer; with `path` trains and saves it there. */
static int make_trainer(const struct sl_dataset *data, const struct sl_config *config,
                        const struct sl_checkpoint *checkpoint, const char *path)
{
    struct sl_source source;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    assert_int_equal(sl_source_of(data, &source), 0);
    int code = sl_trainer_create(&trainer, &sl_running, &source, config, checkpoint);
    if (!code && path) {
        assert_int_equal(sl_report_open(&report, NULL, false, true), 0);
        assert_int_equal(sl_trainer_run(&trainer, &report, &outcome), 0);
        code = sl_trainer_save(&trainer, path);
        assert_int_equal(sl_report_close(&report), 0);
    }
    sl_trainer_destroy(&trainer);
    sl_source_close(&source);
    return code;
}

static void save_model(const struct sl_dataset *data, const char *path)
{
    struct sl_config config = configuration("5", "2", "yes");
    assert_int_equal(make_trainer(data, &config, NULL, path), 0);
    sl_options_free(sl_config_options, &config);
}

static void test_configuration_kept(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_checkpoint checkpoint;
    struct sl_config config = configuration("1", "1", "no");
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    json_t *stored = json_object_get(checkpoint.description, "configuration");
    assert_int_equal(
        sl_options_from_json(sl_config_options, &config, stored, NULL, sl_running_path("model")),
        0);
    assert_int_equal(config.hidden, 5);
    assert_int_equal(config.layers, 2);
    assert_true(config.bias);
    assert_int_equal(json_integer_value(json_object_get(checkpoint.description, "epoch")), 3);
    const struct sl_tensor *first = sl_checkpoint_find(&checkpoint, "layer.0.weight");
    assert_int_equal(first->rows, data.features);
    assert_int_equal(first->cols, 5);
    /* Weight and bias, their two moments and the best of them, of two layers. */
    assert_int_equal(checkpoint.count, 16);
    assert_int_equal(sl_checkpoint_find(&checkpoint, "layer.1.bias.moment2")->rows, 1);
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), 0);
    sl_options_free(sl_config_options, &config);
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* A checkpoint of another network than this dataset and configuration ask for. */
static void test_other_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *fixture, *hidden, *layers, *bias, *names;
    } others[] = {
        {"undirected", "5", "2", "yes", "layer.0"},            /* other features */
        {"directed-weighted", "8", "2", "yes", "layer.0"},     /* another width */
        {"directed-weighted", "5", "3", "yes", "layer.1"},     /* more layers */
        {"directed-weighted", "5", "2", "no", "layer.0.bias"}, /* no biases */
    };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
        struct sl_dataset other = sl_fixture_open(sl_fixture_find(others[o].fixture));
        struct sl_config config = configuration(others[o].hidden, others[o].layers, others[o].bias);
        assert_int_equal(make_trainer(&other, &config, &checkpoint, NULL), SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), others[o].names));
        sl_options_free(sl_config_options, &config);
        sl_fixture_close(&other);
    }
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* Where the optimizer keeps another state, the state starts from 0, and all else is taken. */
static void test_other_optimizer(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"sgd", "adam"}, {"adam", "sgd"}, {"adam", "adamw"}};
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        struct sl_config config = configuration("5", "2", "yes");
        struct sl_checkpoint checkpoint;
        struct sl_source source;
        struct sl_trainer trainer;
        assert_int_equal(sl_options_set(sl_config_options, &config, "optimizer", pairs[p][0]), 0);
        assert_int_equal(make_trainer(&data, &config, NULL, sl_running_path("model")), 0);
        assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
        assert_int_equal(sl_options_set(sl_config_options, &config, "optimizer", pairs[p][1]), 0);
        assert_int_equal(sl_source_of(&data, &source), 0);
        assert_int_equal(sl_trainer_create(&trainer, &sl_running, &source, &config, &checkpoint),
                         0);
        const struct sl_model_layer *layer = &trainer.model.layer[0];
        const struct sl_tensor *saved = sl_checkpoint_find(&checkpoint, "layer.0.weight");
        const int64_t count = saved->rows * saved->cols;
        assert_memory_equal(layer->parameters.memory, saved->data, (size_t)count * sizeof(float));
        const float *moment = layer->state[0].memory;
        int64_t zeros = 0;
        for (int64_t i = 0; i < count; i++)
            zeros += moment[i] == 0.0f;
        assert_true(strcmp(pairs[p][1], "adamw") == 0 ? zeros < count : zeros == count);
        sl_trainer_destroy(&trainer);
        sl_source_close(&source);
        sl_checkpoint_free(&checkpoint);
        sl_options_free(sl_config_options, &config);
    }
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* Weights alone, as of another program: they are taken, and the optimizer's state starts from 0. */
static void test_weights_alone(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint, weights, again;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    weights = (struct sl_checkpoint){.description = json_pack("{s:i}", "epoch", 0)};
    for (int t = 0; t < checkpoint.count; t++) {
        const struct sl_tensor *tensor = &checkpoint.tensors[t];
        if (!strstr(tensor->name, ".moment") && !strstr(tensor->name, ".best"))
            memcpy(sl_checkpoint_add(&weights, tensor->name, tensor->rows, tensor->cols),
                   tensor->data, (size_t)(tensor->rows * tensor->cols) * sizeof(float));
    }
    assert_int_equal(weights.count, 4);
    assert_int_equal(make_trainer(&data, &config, &weights, sl_running_path("again")), 0);
    assert_int_equal(sl_checkpoint_read(sl_running_path("again"), &again), 0);
    assert_int_equal(json_integer_value(json_object_get(again.description, "epoch")), 3);
    assert_int_equal(again.count, checkpoint.count);
    sl_checkpoint_free(&again);
    sl_checkpoint_free(&weights);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
    unlink(sl_running_path("again"));
}

/* Every tensor is needed, and the epoch. */
static void test_incomplete(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    for (int t = 0; t < checkpoint.count; t++) {
        char *name = checkpoint.tensors[t].name;
        if (strcmp(name, "layer.0.weight.best") == 0)
            continue; /* a run without --patience has none */
        checkpoint.tensors[t].name = (char[]){"another"};
        assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), name));
        checkpoint.tensors[t].name = name;
    }
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), 0);
    json_object_del(checkpoint.description, "epoch");
    assert_int_equal(make_trainer(&data, &config, &checkpoint, NULL), SL_ERR_DATA);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

/* ---- Names ---- */

/* As Starling 0.1 first wrote it: all parameters of a layer in one tensor. */
static struct sl_checkpoint with_old_names(const struct sl_checkpoint *checkpoint)
{
    static const char *const kinds[][2] = {
        {"", "parameters"}, {".moment1", "moment1"}, {".moment2", "moment2"}, {".best", "best"}};
    struct sl_checkpoint old = {.description = json_incref(checkpoint->description)};
    for (int layer = 0; layer < 2; layer++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            char name[64];
            snprintf(name, sizeof name, "layer.%d.weight%s", layer, kinds[k][0]);
            const struct sl_tensor *weight = sl_checkpoint_find(checkpoint, name);
            snprintf(name, sizeof name, "layer.%d.bias%s", layer, kinds[k][0]);
            const struct sl_tensor *bias = sl_checkpoint_find(checkpoint, name);
            snprintf(name, sizeof name, "layer%d.%s", layer, kinds[k][1]);
            assert_true(weight && bias);
            const int64_t count = weight->rows * weight->cols;
            float *to = sl_checkpoint_add(&old, name, weight->rows + 1, weight->cols);
            memcpy(to, weight->data, (size_t)count * sizeof *to);
            memcpy(to + count, bias->data, (size_t)bias->cols * sizeof *to);
        }
    return old;
}

/* It loads, and what is saved then is the same under new names. */
static void test_old_names(void **state)
{
    (void)state;
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint, again;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    struct sl_checkpoint old = with_old_names(&checkpoint);
    assert_int_equal(make_trainer(&data, &config, &old, sl_running_path("again")), 0);
    assert_int_equal(sl_checkpoint_read(sl_running_path("again"), &again), 0);
    assert_int_equal(again.count, checkpoint.count);
    for (int t = 0; t < checkpoint.count; t++) {
        const struct sl_tensor *one = &checkpoint.tensors[t],
                               *other = sl_checkpoint_find(&again, one->name);
        assert_non_null(other);
        assert_int_equal(other->rows, one->rows);
        assert_memory_equal(other->data, one->data,
                            (size_t)(one->rows * one->cols) * sizeof(float));
    }
    sl_checkpoint_free(&again);
    sl_checkpoint_free(&old);
    sl_checkpoint_free(&checkpoint);
    sl_options_free(sl_config_options, &config);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
    unlink(sl_running_path("again"));
}

/* No option whose default is a value is null afterwards, though null is what the checkpoint says.
 */
static void test_null_options(void **state)
{
    (void)state;
    struct sl_config config = configuration("5", "2", "yes");
    int refused = 0;
    for (const struct sl_option *option = sl_config_options; option->name; option++) {
        json_t *stored = json_pack("{s:n}", option->name);
        const int code = sl_options_from_json(sl_config_options, &config, stored, NULL, "it");
        assert_int_equal(code, option->default_value ? SL_ERR_DATA : 0);
        if (code) {
            assert_non_null(strstr(sl_error_message(), option->name));
            refused++;
        }
        json_decref(stored);
    }
    assert_true(refused > 30);
    sl_options_free(sl_config_options, &config);
}

/* Counters of the description that no run has written. */
static void test_wild_counters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value; /* JSON */
        int code;
    } cases[] = {
        {"best_epoch", "1099511627776", SL_ERR_DATA},
        {"best_epoch", "1e300", SL_ERR_DATA},
        {"best_epoch", "-1", SL_ERR_DATA},
        {"best_epoch", "1.5", SL_ERR_DATA},
        {"best_epoch", "4", SL_ERR_DATA}, /* after the last epoch */
        {"best_epoch", "null", SL_ERR_DATA},
        {"best_epoch", "3.0", 0},
        {"best_epoch", "3", 0},
        {"best_value", "\"7\"", SL_ERR_DATA},
        {"best_value", "-2", SL_ERR_DATA},
        {"epoch", "9223372036854775807", SL_ERR_DATA},
        {"epoch", "-1", SL_ERR_DATA},
        {"epoch", "[]", SL_ERR_DATA},
    };
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_config config = configuration("5", "2", "yes");
    struct sl_checkpoint checkpoint;
    save_model(&data, sl_running_path("model"));
    assert_int_equal(sl_checkpoint_read(sl_running_path("model"), &checkpoint), 0);
    json_t *description = checkpoint.description;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        checkpoint.description = json_copy(description);
        json_object_set_new(checkpoint.description, cases[c].name,
                            json_loads(cases[c].value, JSON_DECODE_ANY, NULL));
        const int code = make_trainer(&data, &config, &checkpoint, NULL);
        if (code != cases[c].code || (code && !strstr(sl_error_message(), cases[c].name)))
            fail_msg("%s %s gave %d: %s", cases[c].name, cases[c].value, code, sl_error_message());
        json_decref(checkpoint.description);
    }
    checkpoint.description = description;
    sl_options_free(sl_config_options, &config);
    sl_checkpoint_free(&checkpoint);
    sl_fixture_close(&data);
    unlink(sl_running_path("model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_find),
        cmocka_unit_test(test_layout),          cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),         cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_no_checksum),     cmocka_unit_test(test_weights_alone),
        cmocka_unit_test(test_wild_offsets),    cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unwritable),      cmocka_unit_test(test_configuration_kept),
        cmocka_unit_test(test_other_shapes),    cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_other_optimizer), cmocka_unit_test(test_old_names),
        cmocka_unit_test(test_null_options),    cmocka_unit_test(test_wild_counters),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
