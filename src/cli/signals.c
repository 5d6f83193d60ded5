#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/plain.h"

/* The functions run in a signal handler: they allocate nothing and take no locks. */

static void say(const char *text)
{
    const ssize_t said = write(STDERR_FILENO, text, strlen(text));
    (void)said; /* a failure cannot be told */
}

/* Say a file's name, whose control characters must not reach the terminal. */
static void say_name(const char *name)
{
    char piece[SL_PLAIN_PIECE];
    for (size_t left = strlen(name); left > 0;) {
        const size_t taken = sl_plain_next(name, left, piece);
        say(piece);
        name += taken;
        left -= taken;
    }
}

/* Read a hexadecimal number. Return the text behind the next character. */
static const char *read_hex(const char *text, uintptr_t *number)
{
    for (*number = 0;; text++)
        if (*text >= '0' && *text <= '9')
            *number = *number * 16 + (uintptr_t)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            *number = *number * 16 + (uintptr_t)(*text - 'a' + 10);
        else
            return *text ? text + 1 : text;
}

/* Return the file that a line of /proc/self/maps names, if the address is in its range; else NULL.
 */
static const char *file_in(const char *line, uintptr_t address)
{
    uintptr_t first, end;
    read_hex(read_hex(line, &first), &end);
    return address >= first && address < end ? strchr(line, '/') : NULL;
}

/* Find the file of an address in /proc/self/maps. `line` holds the name. */
static const char *find_file(uintptr_t address, char *line, size_t size)
{
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    char c;
    while (maps >= 0 && read(maps, &c, 1) == 1)
        if (c != '\n') {
            line[length] = c;
            length += length + 1 < size;
        } else {
            line[length] = '\0';
            length = 0;
            const char *file = file_in(line, address);
            if (file)
                return file;
        }
    return NULL;
}

static void tell_bus_error(int number, siginfo_t *info, void *context)
{
    static char line[8192];
    (void)number, (void)context;
    const char *file = find_file((uintptr_t)info->si_addr, line, sizeof line);
    say("starling: ");
    say_name(file ? file : "memory");
    say(": a page is gone (SIGBUS): the file became shorter, or its disk is full or failed\n");
    _exit(1);
}

void sl_signals_catch(void)
{
    struct sigaction bus = {.sa_sigaction = tell_bus_error, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &bus, NULL);
    signal(SIGXFSZ, SIG_IGN);
}
