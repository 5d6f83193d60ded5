# SL_RIVALS
# Libraries that `starling bench spmm` compares its kernel with; nothing else uses them. Defines SL_HAVE_MKL_SPARSE and
# SL_HAVE_GRAPHBLAS, sets the conditionals of those names and RIVAL_CFLAGS, RIVAL_LIBS.
AC_DEFUN([SL_RIVALS], [
  AC_ARG_WITH([mkl], [AS_HELP_STRING([--with-mkl=NAME],
    [pkg-config name of an MKL to compare with in bench spmm; auto (default) takes mkl-dynamic-lp64-seq if it is there])],
    [], [with_mkl=auto])
  AS_CASE([$with_mkl], [yes|auto], [sl_name=mkl-dynamic-lp64-seq], [sl_name=$with_mkl])
  sl_mkl_sparse=no
  AC_MSG_CHECKING([for MKL to compare with])
  dnl The header only: linked, MKL's CBLAS would take the place of the one that was chosen.
  AS_IF([test "$with_mkl" != no && $PKG_CONFIG --exists $sl_name], [
    sl_save_CPPFLAGS=$CPPFLAGS
    MKL_CFLAGS=`$PKG_CONFIG --cflags $sl_name`
    SL_AS_SYSTEM([MKL_CFLAGS])
    CPPFLAGS="$CPPFLAGS $MKL_CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <mkl_spblas.h>], [return mkl_sparse_destroy(0);])],
      [sl_mkl_sparse="$sl_name `$PKG_CONFIG --modversion $sl_name`"
       sl_mkl_folder=`$PKG_CONFIG --variable=libdir $sl_name`
       RIVAL_CFLAGS="$RIVAL_CFLAGS $MKL_CFLAGS"
       AC_DEFINE_UNQUOTED([SL_MKL_FOLDER], ["$sl_mkl_folder"], [Where its libraries are])
       AC_DEFINE([SL_HAVE_MKL_SPARSE], [1], [bench spmm compares with MKL])])
    CPPFLAGS=$sl_save_CPPFLAGS])
  AC_MSG_RESULT([$sl_mkl_sparse])
  AS_IF([test "$sl_mkl_sparse" = no && test "$with_mkl" != no && test "$with_mkl" != auto],
    [AC_MSG_ERROR([--with-mkl=$with_mkl: pkg-config knows no MKL of that name])])

  AC_ARG_WITH([graphblas], [AS_HELP_STRING([--with-graphblas@<:@=PREFIX@:>@],
    [SuiteSparse:GraphBLAS to compare with in bench spmm; by default if it is there])], [], [with_graphblas=auto])
  AS_CASE([$with_graphblas],
    [yes|no|auto], [GRAPHBLAS_CFLAGS="" GRAPHBLAS_LIBS="-lgraphblas"],
    [GRAPHBLAS_CFLAGS="-isystem $with_graphblas/include"
     GRAPHBLAS_LIBS="-L$with_graphblas/lib -Wl,-rpath,$with_graphblas/lib -lgraphblas"])
  sl_graphblas=no
  AC_MSG_CHECKING([for SuiteSparse:GraphBLAS to compare with])
  AS_IF([test "$with_graphblas" != no], [
    sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $GRAPHBLAS_CFLAGS"; LIBS="$GRAPHBLAS_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <GraphBLAS.h>],
      [GrB_Matrix m = 0; void *x = 0; return GxB_Matrix_pack_FullR(m, &x, 0, 0, 0);])],
      [sl_graphblas=yes
       RIVAL_CFLAGS="$RIVAL_CFLAGS $GRAPHBLAS_CFLAGS"; RIVAL_LIBS="$RIVAL_LIBS $GRAPHBLAS_LIBS"
       AC_DEFINE([SL_HAVE_GRAPHBLAS], [1], [bench spmm compares with SuiteSparse:GraphBLAS])])
    CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS])
  AC_MSG_RESULT([$sl_graphblas])
  AS_IF([test "$sl_graphblas" = no && test "$with_graphblas" != no && test "$with_graphblas" != auto],
    [AC_MSG_ERROR([--with-graphblas: no SuiteSparse:GraphBLAS 6 or later there])])
  AM_CONDITIONAL([SL_MKL_SPARSE], [test "$sl_mkl_sparse" != no])
  AM_CONDITIONAL([SL_GRAPHBLAS], [test "$sl_graphblas" != no])
  AC_SUBST([RIVAL_CFLAGS])
  AC_SUBST([RIVAL_LIBS])
])
