#include "core/remembered.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

/* Write the path of a subject's file; return false if the user has no home. */
static bool file_of(const char *subject, char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = PATH_MAX;
    if (cache && cache[0] == '/') /* the XDG standard says to ignore relative paths */
        length = snprintf(path, PATH_MAX, "%s/starling/%s.json", cache, subject);
    else if (home && home[0])
        length = snprintf(path, PATH_MAX, "%s/.cache/starling/%s.json", home, subject);
    return length < PATH_MAX;
}

static void host_name(char name[256])
{
    name[0] = '\0';
    gethostname(name, 255);
    name[255] = '\0';
}

static json_int_t processors(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

json_t *sl_remembered_get(const char *subject)
{
    char path[PATH_MAX], host[256];
    json_t *file = file_of(subject, path) ? sl_json_read_file(path, NULL) : NULL;
    host_name(host);
    json_t *value = json_incref(json_object_get(file, host));
    json_decref(file);
    if (json_integer_value(json_object_get(value, "processors")) == processors())
        return value;
    json_decref(value);
    return NULL;
}

static void make_directories(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0700); /* if it cannot be made, creating the file says so */
    }
}

int sl_remembered_probe(const char *subject)
{
    char path[PATH_MAX];
    if (!file_of(subject, path))
        return sl_error(SL_ERR_SYSTEM, "--remember: neither XDG_CACHE_HOME nor HOME says where");
    make_directories(path);
    return sl_file_probe(path);
}

int sl_remembered_set(const char *subject, json_t *value)
{
    char path[PATH_MAX], host[256], date[32];
    const time_t now = time(NULL);
    const int found = sl_remembered_probe(subject);
    if (found) {
        json_decref(value);
        return found;
    }
    file_of(subject, path);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    json_object_set_new(value, "processors", json_integer(processors()));
    json_object_set_new(value, "date", json_string(date));
    json_t *file = sl_json_read_file(path, NULL); /* the file with all machines; NULL: a new file */
    if (!json_is_object(file)) {
        json_decref(file);
        file = json_object();
    }
    host_name(host);
    json_object_set_new(file, host, value);
    const int code = sl_json_write(file, path);
    json_decref(file);
    return code;
}

static void read_pair(const json_t *object, const char *key, double pair[2])
{
    const json_t *list = json_object_get(object, key);
    for (size_t i = 0; i < 2; i++)
        pair[i] = json_number_value(json_array_get(list, i));
}

bool sl_remembered_machine(struct sl_remembered_machine *machine)
{
    json_t *object = sl_remembered_get("machine");
    *machine = (struct sl_remembered_machine){
        .threads = (int)json_integer_value(json_object_get(object, "threads"))};
    read_pair(object, "read", machine->read);
    read_pair(object, "copy", machine->copy);
    read_pair(object, "triad", machine->triad);
    read_pair(object, "gemm", machine->gemm);
    read_pair(object, "gemm_tall", machine->gemm_tall);
    read_pair(object, "features", machine->features);
    read_pair(object, "draws", machine->draws);
    size_t index;
    const json_t *row;
    json_array_foreach(json_object_get(object, "gather"), index, row)
    {
        if (index == SL_REMEMBERED_GATHERS)
            break;
        machine->gather[index].width = json_integer_value(json_object_get(row, "width"));
        read_pair(row, "core_rate", machine->gather[index].rate[0]);
        read_pair(row, "last_rate", machine->gather[index].rate[1]);
        read_pair(row, "rate", machine->gather[index].rate[2]);
        machine->gathers++;
    }
    json_decref(object);
    return machine->threads > 0;
}

bool sl_remembered_scheduler(bool gpus, char name[32])
{
    json_t *object = sl_remembered_get("scheduler");
    const char *text = json_string_value(json_object_get(object, "scheduler"));
    const bool found =
        text && strlen(text) < 32 && json_is_true(json_object_get(object, "gpus")) == gpus;
    if (found)
        strcpy(name, text);
    json_decref(object);
    return found;
}
