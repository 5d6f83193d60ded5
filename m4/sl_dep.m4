# SL_MISSING(WHAT, DEBIAN-PACKAGE, FEDORA-PACKAGE, OPTION)
# One line per missing dependency; SL_STOP_IF_MISSING ends configure after all of them were looked for.
AC_DEFUN([SL_MISSING], [
  AS_ECHO(["configure: error: $1 not found: install $2 (Debian) or $3 (Fedora), or $4"]) >&2
  AS_ECHO(["$as_me:${as_lineno-$LINENO}: error: $1 not found"]) >&AS_MESSAGE_LOG_FD
  sl_missing=yes
])

AC_DEFUN([SL_STOP_IF_MISSING], [
  AS_IF([test "x$sl_missing" = xyes], [AS_EXIT([1])])
])

# SL_AS_SYSTEM(VARIABLE)
# Headers of others are system headers: their warnings are not ours.
AC_DEFUN([SL_AS_SYSTEM], [
  sl_flags=
  for sl_word in $$1; do
    AS_CASE([$sl_word], [-I*], [sl_word="-isystem `AS_ECHO(["$sl_word"]) | sed 's/^-I//'`"])
    sl_flags="$sl_flags $sl_word"
  done
  $1=$sl_flags
])

# SL_PKG(PREFIX, MODULE, WHAT, DEBIAN-PACKAGE, FEDORA-PACKAGE)
# A library that pkg-config knows; sets PREFIX_CFLAGS and PREFIX_LIBS.
AC_DEFUN([SL_PKG], [
  PKG_CHECK_MODULES([$1], [$2], [SL_AS_SYSTEM([$1_CFLAGS])],
    [SL_MISSING([$3], [$4], [$5], [set $1_CFLAGS and $1_LIBS])])
])
