/* StarPU keeps its measurements of this machine in files: in STARPU_HOME or HOME, under
 * .starpu/sampling. StarPU aborts where the files cannot be written, and where a file is empty. */
#ifndef SL_CORE_STARPU_FILES_H
#define SL_CORE_STARPU_FILES_H

/* Set STARPU_HOME to /tmp/starling-UID where STARPU_HOME and HOME have no room for files; say so in
 * a note. */
void sl_starpu_files_find_room(void);

/* Remove empty files, which a full disk left there. StarPU measures again. No other process may be
 * starting StarPU. */
void sl_starpu_files_remove_empty(void);

#endif
