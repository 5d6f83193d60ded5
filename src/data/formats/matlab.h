/* The parts of the reader of MATLAB files that need no matio. */
#ifndef SL_DATA_FORMATS_MATLAB_H
#define SL_DATA_FORMATS_MATLAB_H

#include "data/dataset.h"

/* Return whether a file with these first bytes is a MATLAB file of level 5. */
bool sl_matlab_sniff(const char *head, size_t bytes);

/* Check a MATLAB file before matio reads it. SL_ERR_DATA: the level is not 5, the file ends within
 * a variable, or an element has another type or size than MATLAB writes. */
int sl_matlab_check(const char *path);

/* Columns of local_info: status, gender, major, second major, dormitory, year, high school; 0: not
 * known. */
enum { SL_LOCAL_INFO = 7 };

/* Set labels and features from `info` (vertices, 7), as LINKX does (Lim et al., NeurIPS 2021). The
 * label is the gender. Every other value in a column is a feature of its own. */
int sl_matlab_local_info(const char *path, const float *info, struct sl_dataset *out);

#endif
