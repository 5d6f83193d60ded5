# SL_MATIO
# matio, which reads MATLAB files (src/data/formats/matlab.c). Sets the conditional SL_MATIO, MATIO_CFLAGS and MATIO_LIBS.
AC_DEFUN([SL_MATIO], [
  AC_ARG_WITH([matio], [AS_HELP_STRING([--with-matio],
    [read MATLAB files by matio; auto (default) does so if it is there; no: they are refused])], [], [with_matio=auto])
  sl_matio=no
  AS_IF([test "x$with_matio" != xno],
    [PKG_CHECK_MODULES([MATIO], [matio >= 1.5.0],
      [SL_AS_SYSTEM([MATIO_CFLAGS])
       sl_matio=`$PKG_CONFIG --modversion matio`], [:])])
  AS_IF([test "$sl_matio" = no && test "x$with_matio" != xno && test "x$with_matio" != xauto],
    [SL_MISSING([matio], [libmatio-dev], [matio-devel], [give --with-matio=no])])
  AM_CONDITIONAL([SL_MATIO], [test "$sl_matio" != no])
  AC_SUBST([MATIO_CFLAGS])
  AC_SUBST([MATIO_LIBS])
])
