#include "tests/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "graphs/place.h"

struct sl_runtime sl_running;
char sl_running_dir[64];

const char *sl_running_path(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", sl_running_dir, name);
    return path;
}

/* A path that all ranks have, in the directory of rank 0. */
static const char *shared_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s", sl_running_path(name));
    sl_runtime_broadcast(&sl_running, 0, path, sizeof path);
    return path;
}

const char *sl_running_store(const struct sl_dataset *data, const char *name)
{
    const char *path = shared_path(name);
    const int code = sl_running.rank == 0 ? sl_dataset_write(data, path) : 0;
    if (sl_runtime_agree(&sl_running, code))
        sl_fatal("%s: %s", path, sl_error_message());
    return path;
}

enum sl_device sl_running_device(void)
{
    const char *device = getenv("SL_TEST_DEVICE");
    return device ? (enum sl_device)sl_choice_find(SL_CHOICES(SL_DEVICES), device) : SL_DEVICE_AUTO;
}

int sl_running_start(void **state)
{
    (void)state;
    sl_place_small = 0;
    strcpy(sl_running_dir, "/tmp/starling-test-XXXXXX");
    if (!mkdtemp(sl_running_dir))
        return -1;
    return sl_runtime_start(&sl_running,
                            &(struct sl_runtime_options){
                                .scheduler = "lws", .workers = 2, .device = sl_running_device()});
}

int sl_running_stop(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", sl_running_dir);
    sl_runtime_stop(&sl_running);
    return system(command);
}
