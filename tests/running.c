#include "tests/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *sl_running_device(void)
{
    return getenv("SL_TEST_DEVICE");
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
