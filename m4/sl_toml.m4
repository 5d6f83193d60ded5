# SL_TOML
# toml++, which reads options in TOML (src/core/toml.cc), and a compiler of C++17 whose standard library C can link. Sets the
# conditional SL_TOML, TOML_CFLAGS and TOML_LIBS.
AC_DEFUN([SL_TOML], [
  AC_ARG_WITH([toml], [AS_HELP_STRING([--with-toml@<:@=PREFIX@:>@],
    [options in TOML by the toml++ installed (in PREFIX); auto (default) takes it if it is there; no: without])],
    [], [with_toml=auto])
  AS_CASE([$with_toml],
    [yes|no|auto|/usr], [TOML_CFLAGS=""],
    [TOML_CFLAGS="-isystem $with_toml/include"])
  TOML_LIBS="-lstdc++"
  sl_toml=no
  AC_MSG_CHECKING([for toml++])
  AS_IF([test "$with_toml" != no], [
    sl_save_CPPFLAGS=$CPPFLAGS; sl_save_CXXFLAGS=$CXXFLAGS; sl_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $TOML_CFLAGS"; CXXFLAGS="$CXXFLAGS -std=c++17"; LIBS="$TOML_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [
      AC_LANG_PUSH([C++])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <toml++/toml.h>
#if TOML_LIB_MAJOR < 3
#error too old
#endif
#ifndef __GLIBCXX__
#error another standard library
#endif],
        [return toml::parse("").is_table() ? 0 : 1;])],
        [AC_COMPUTE_INT([sl_toml], [TOML_LIB_MAJOR * 100 + TOML_LIB_MINOR], [#include <toml++/toml.h>])
         sl_toml=`expr $sl_toml / 100`.`expr $sl_toml % 100`])
      AC_LANG_POP([C++])])
    CPPFLAGS=$sl_save_CPPFLAGS; CXXFLAGS=$sl_save_CXXFLAGS; LIBS=$sl_save_LIBS])
  AC_MSG_RESULT([$sl_toml])
  AS_IF([test "$sl_toml" = no && test "$with_toml" != no && test "$with_toml" != auto],
    [SL_MISSING([toml++ 3 or later, with a compiler of C++17,], [libtomlplusplus-dev g++], [tomlplusplus-devel gcc-c++],
      [give --with-toml=no])])
  AS_IF([test "$sl_toml" = no], [TOML_CFLAGS="" TOML_LIBS=""])
  AM_CONDITIONAL([SL_TOML], [test "$sl_toml" != no])
  AC_SUBST([TOML_CFLAGS])
  AC_SUBST([TOML_LIBS])
])
