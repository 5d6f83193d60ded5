/* Refuse MATLAB files, in a build without matio (matlab.c). */
#include "core/error.h"
#include "data/formats/formats.h"
#include "data/formats/matlab.h"

static int read_file(const char *path, const struct sl_read_options *options,
                     struct sl_dataset *out)
{
    (void)options;
    (void)out;
    return sl_error(SL_ERR_DATA,
                    "%s: MATLAB files are not read by this build, expected one with matio "
                    "(libmatio-dev)",
                    path);
}

const struct sl_format sl_format_matlab = {
    .name = "MATLAB",
    .extensions = ".mat",
    .sniff = sl_matlab_sniff,
    .read = read_file,
};
