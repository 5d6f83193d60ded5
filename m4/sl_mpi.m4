# SL_MPI
# MPI through pkg-config, else by asking the mpicc that MPICC names or PATH has. Sets MPI_CFLAGS, MPI_LIBS, MPIRUN,
# and defines SL_HAVE_MPI.
AC_DEFUN([SL_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--without-mpi], [build a program for one node])], [], [with_mpi=yes])
  AC_ARG_VAR([MPICC], [MPI compiler wrapper to take the flags from, instead of pkg-config])
  AC_ARG_VAR([MPIRUN], [launcher of MPI programs, for the tests])
  sl_mpi=no
  AS_IF([test "x$with_mpi" != xno], [
    AC_MSG_CHECKING([for MPI])
    AS_IF([test -z "$MPICC"], [
      for sl_module in ompi-c mpich mpi-c; do
        AS_IF([test "$sl_mpi" = no && $PKG_CONFIG --exists $sl_module],
          [sl_mpi="$sl_module `$PKG_CONFIG --modversion $sl_module`"
           MPI_CFLAGS=`$PKG_CONFIG --cflags $sl_module`
           MPI_LIBS=`$PKG_CONFIG --libs $sl_module`])
      done])
    AS_IF([test "$sl_mpi" = no], [
      for sl_option in -showme -show; do
        AS_IF([test "$sl_mpi" = no && sl_show=`${MPICC-mpicc} $sl_option 2>/dev/null` && test -n "$sl_show"],
          [sl_mpi=${MPICC-mpicc}
           for sl_word in $sl_show; do
             AS_CASE([$sl_word],
               [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $sl_word"],
               [-L*|-l*|-Wl,*], [MPI_LIBS="$MPI_LIBS $sl_word"])
           done])
      done])
    AC_MSG_RESULT([$sl_mpi])
    AS_IF([test "$sl_mpi" != no], [
      SL_AS_SYSTEM([MPI_CFLAGS])
      sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
      CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"; LIBS="$MPI_LIBS $LIBS"
      AC_MSG_CHECKING([whether MPI programs link])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <mpi.h>], [int p; return MPI_Init_thread(0, 0, MPI_THREAD_MULTIPLE, &p);])],
        [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); sl_mpi=no])
      CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS])
    AS_IF([test "$sl_mpi" = no],
      [SL_MISSING([MPI], [libopenmpi-dev and openmpi-bin], [openmpi-devel], [set MPICC, or give --without-mpi])],
      [AC_DEFINE([SL_HAVE_MPI], [1], [MPI ranks])
       AC_PATH_PROGS([MPIRUN], [mpirun mpiexec])])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([SL_MPI], [test "$sl_mpi" != no])
])
