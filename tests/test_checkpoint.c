/* Checkpoint files: what is written comes back, and whatever is not that is refused. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/unit.h"
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

SL_TEST(test_round_trip)
{
    const char *path = sl_running_path("model");
    write_sample(path);
    assert_true(reads_as_sample(path));
    write_sample(path); /* over the old one */
    assert_true(reads_as_sample(path));
    assert_int_equal(count_files(), 1);
    unlink(path);
}

SL_TEST(test_find)
{
    struct sl_checkpoint checkpoint = sample();
    assert_int_equal(sl_checkpoint_find(&checkpoint, "layer0.best")->rows, 3);
    assert_null(sl_checkpoint_find(&checkpoint, "layer0"));
    assert_null(sl_checkpoint_find(&checkpoint, "layer0.best2"));
    sl_checkpoint_free(&checkpoint);
    assert_null(sl_checkpoint_find(&checkpoint, "layer0.best"));
}

/* The layout that other tools read: length, JSON, data at a multiple of 64 bytes. */
SL_TEST(test_layout)
{
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

SL_TEST(test_truncated)
{
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
SL_TEST(test_damaged)
{
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

SL_TEST(test_foreign)
{
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
SL_TEST(test_no_checksum)
{
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
SL_TEST(test_wild_offsets)
{
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

/* Tensors that lie on each other: a small file would take any memory. The order of a header's
 * members means nothing. */
SL_TEST(test_layouts)
{
    static const char HEAD[] =
        "\"__metadata__\":{\"format\":\"starling-checkpoint-1\",\"description\":\"{}\"}";
    static const char *const second[] = {"[0,16]", "[4,20]", "[12,28]", "[16,32]"};
    const char *path = sl_running_path("layout");
    for (int last = 0; last < 2; last++)
        for (int s = 0; s < 4; s++) {
            char header[512];
            struct sl_checkpoint read;
            snprintf(header, sizeof header,
                     "{%s%s\"v\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                     "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":%s}%s%s}",
                     last ? "" : HEAD, last ? "" : ",", second[s], last ? "," : "",
                     last ? HEAD : "");
            write_safetensors(path, header, s < 3 ? 28 : 32);
            if (s < 3) {
                assert_refused(path, "w lies on another one");
                continue;
            }
            assert_int_equal(sl_checkpoint_read(path, &read), 0);
            assert_int_equal(read.count, 2);
            sl_checkpoint_free(&read);
        }
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

SL_TEST(test_full_disk)
{
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

SL_TEST(test_unwritable)
{
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
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.*.tmp", sl_running_dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    sl_checkpoint_free(&checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_find),
        cmocka_unit_test(test_layout),      cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_no_checksum), cmocka_unit_test(test_wild_offsets),
        cmocka_unit_test(test_layouts),     cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unwritable),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
