/* Files in which StarPU keeps measurements of this machine, under .starpu/sampling in a home.
 * StarPU aborts where a file cannot be written or is empty. */
#ifndef SL_CORE_STARPU_FILES_H
#define SL_CORE_STARPU_FILES_H

/* Return StarPU's home: XDG_CACHE_HOME, else STARPU_HOME, else HOME; NULL: none is set. */
const char *sl_starpu_files_home(void);

/* Make /tmp/starling-UID StarPU's home where its home has no room for files; say so in a note. */
void sl_starpu_files_find_room(void);

/* Remove empty files, which a full disk left there. StarPU measures again. No other process may be
 * starting StarPU. */
void sl_starpu_files_remove_empty(void);

#endif
