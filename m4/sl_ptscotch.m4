# SL_PTSCOTCH
# PT-Scotch, which partitions a graph that no rank can hold (src/data/partition/parallel_scotch.c). Sets the conditional
# SL_PTSCOTCH, PTSCOTCH_CFLAGS and PTSCOTCH_LIBS. Comes after SL_MPI.
AC_DEFUN([SL_PTSCOTCH], [
  AC_ARG_WITH([ptscotch], [AS_HELP_STRING([--with-ptscotch@<:@=PREFIX@:>@],
    [partitions by all ranks together by the PT-Scotch installed (in PREFIX); auto (default) takes it if it is there; no: without])],
    [], [with_ptscotch=auto])
  AS_CASE([$with_ptscotch],
    [yes|no|auto], [PTSCOTCH_CFLAGS="-isystem /usr/include/scotch" sl_scotch_libs=""],
    [PTSCOTCH_CFLAGS="-isystem $with_ptscotch/include"
     sl_scotch_libs="-L$with_ptscotch/lib -Wl,-rpath,$with_ptscotch/lib"])
  PTSCOTCH_LIBS="$sl_scotch_libs -lptscotch -lscotch -lptscotcherr"
  sl_ptscotch=no
  AC_MSG_CHECKING([for PT-Scotch])
  AS_IF([test "$with_ptscotch" != no && test "$sl_mpi" != no], [
    sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS $PTSCOTCH_CFLAGS"; LIBS="$PTSCOTCH_LIBS $MPI_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <stdio.h>
#include <mpi.h>
#include <ptscotch.h>],
      [SCOTCH_Dgraph graph; return SCOTCH_dgraphInit(&graph, MPI_COMM_WORLD);])],
      [AC_COMPUTE_INT([sl_major], [SCOTCH_VERSION], [#include <stdio.h>
#include <mpi.h>
#include <ptscotch.h>])
       sl_ptscotch=$sl_major])
    CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS])
  AC_MSG_RESULT([$sl_ptscotch])
  AS_IF([test "$sl_ptscotch" = no && test "$with_ptscotch" != no && test "$with_ptscotch" != auto],
    [SL_MISSING([PT-Scotch], [libptscotch-dev], [ptscotch-openmpi-devel], [give --with-ptscotch=no])])
  AS_IF([test "$sl_ptscotch" = no], [PTSCOTCH_CFLAGS="" PTSCOTCH_LIBS=""])
  AM_CONDITIONAL([SL_PTSCOTCH], [test "$sl_ptscotch" != no])
  AC_SUBST([PTSCOTCH_CFLAGS])
  AC_SUBST([PTSCOTCH_LIBS])
])
