# SL_PYTHON
# Where `make install` puts the Python package: the folder under the prefix that the Python found reads packages from, or the
# usual one. Sets PYTHON and pythondir. The package has no compiled part, so nothing of Python is needed to build.
AC_DEFUN([SL_PYTHON], [
  AC_ARG_WITH([python], [AS_HELP_STRING([--with-python@<:@=PROGRAM@:>@],
    [install the Python package for this Python 3.9 or later; auto (default) takes python3 if it is there; no: do not install it])],
    [], [with_python=auto])
  AC_ARG_VAR([pythondir], [folder of Python packages, where make install puts starling/])
  AS_CASE([$with_python],
    [no], [PYTHON=],
    [yes|auto], [AC_PATH_PROGS([PYTHON], [python3 python])],
    [PYTHON=$with_python])
  sl_python=no
  AS_IF([test -n "$PYTHON"], [
    AC_MSG_CHECKING([for Python 3.9 or later])
    sl_python=`"$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info@<:@:2@:>@ if sys.version_info >= (3, 9) else "no")' 2>/dev/null`
    test -n "$sl_python" || sl_python=no
    AC_MSG_RESULT([$sl_python])])
  AS_IF([test "$sl_python" = no],
    [AS_CASE([$with_python], [no|auto], [],
      [AC_MSG_ERROR([--with-python=$with_python: no Python 3.9 or later])])],
    [test -z "$pythondir"], [
      sl_prefix=$prefix
      test "$sl_prefix" != NONE || sl_prefix=$ac_default_prefix
      sl_folder=`"$PYTHON" -c 'import sys
prefix = sys.argv@<:@1@:>@ + "/"
print(*@<:@p.removeprefix(prefix) for p in sys.path if p.startswith(prefix) and p.endswith("-packages")@:>@@<:@:1@:>@)' "$sl_prefix"`
      pythondir='${prefix}'/${sl_folder:-lib/python$sl_python/site-packages}])
  AM_CONDITIONAL([SL_PYTHON], [test "$sl_python" != no])
])
