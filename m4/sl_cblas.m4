# SL_CBLAS
# A CBLAS that pkg-config knows. Sets CBLAS_CFLAGS, CBLAS_LIBS, and defines SL_CBLAS_HEADER.
AC_DEFUN([SL_CBLAS], [
  AC_ARG_WITH([blas], [AS_HELP_STRING([--with-blas=NAME],
    [openblas, blis, mkl, or the pkg-config name of another CBLAS; auto (default) takes the first of these])],
    [], [with_blas=auto])
  AS_CASE([$with_blas],
    [yes|auto], [sl_tries="openblas blis mkl-dynamic-lp64-seq mkl-sdl cblas"],
    [mkl], [sl_tries="mkl-dynamic-lp64-seq mkl-static-lp64-seq mkl-sdl"],
    [no], [AC_MSG_ERROR([--without-blas: dense products need a BLAS])],
    [sl_tries=$with_blas])
  sl_cblas=no
  AC_MSG_CHECKING([for CBLAS])
  for sl_try in $sl_tries; do
    AS_IF([test "$sl_cblas" = no && $PKG_CONFIG --exists $sl_try], [
      sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
      CBLAS_CFLAGS=`$PKG_CONFIG --cflags $sl_try`
      CBLAS_LIBS=`$PKG_CONFIG --libs $sl_try`
      SL_AS_SYSTEM([CBLAS_CFLAGS])
      AS_CASE([$sl_try], [mkl*], [sl_header=mkl_cblas.h], [sl_header=cblas.h])
      CPPFLAGS="$CPPFLAGS $CBLAS_CFLAGS"; LIBS="$CBLAS_LIBS $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <$sl_header>],
        [cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1);])],
        [sl_cblas="$sl_try `$PKG_CONFIG --modversion $sl_try`"])
      CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS])
  done
  AC_MSG_RESULT([$sl_cblas])
  AS_IF([test "$sl_cblas" = no],
    [SL_MISSING([a CBLAS ($with_blas)], [libopenblas-dev], [openblas-devel], [give --with-blas=NAME])],
    [AC_DEFINE_UNQUOTED([SL_CBLAS_HEADER], [<$sl_header>], [The header that declares cblas_sgemm])])
  AC_SUBST([CBLAS_CFLAGS])
  AC_SUBST([CBLAS_LIBS])
])
