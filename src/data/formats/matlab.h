/* What of MATLAB files needs no matio. */
#ifndef SL_DATA_FORMATS_MATLAB_H
#define SL_DATA_FORMATS_MATLAB_H

#include "data/dataset.h"

/* Whether the first bytes are those of a MATLAB file of level 5. */
bool sl_matlab_sniff(const char *head, size_t bytes);

/* SL_ERR_DATA: another level than 5, or a file that ends within a variable. *bytes is the
 * size of the file. */
int sl_matlab_check(const char *path, size_t *bytes);

/* Columns of local_info: status, gender, major, second major, dormitory, year, high school; 0: not
 * known. */
enum { SL_LOCAL_INFO = 7 };

/* Labels and features of `info` (vertices, 7), as LINKX has them (Lim et al., NeurIPS 2021). The
 * label is the gender. Every other value in a column is a feature of its own. */
int sl_matlab_local_info(const char *path, const float *info, struct sl_dataset *out);

#endif
