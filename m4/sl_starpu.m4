# SL_STARPU
# StarPU 1.4, else 1.3 from 1.3.9 on, and its MPI part when with_mpi is not "no". Sets STARPU_CFLAGS, STARPU_LIBS and
# the shell variables sl_starpu (1.4 or 1.3) and sl_starpu_version.
AC_DEFUN([SL_STARPU], [
  AC_ARG_WITH([starpu], [AS_HELP_STRING([--with-starpu=PREFIX],
    [the StarPU installed in PREFIX, instead of the system's])], [], [with_starpu=yes])
  sl_starpu=
  AS_CASE([$with_starpu],
    [no], [AC_MSG_ERROR([--without-starpu: every step is a StarPU task, so it cannot be left out])],
    [yes], [],
    [for sl_lib in lib64 lib/`$CC -print-multiarch 2>/dev/null` lib; do
       AS_IF([test -d "$with_starpu/$sl_lib/pkgconfig"],
         [PKG_CONFIG_PATH="$with_starpu/$sl_lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"])
     done
     export PKG_CONFIG_PATH])
  for sl_try in 1.4 1.3; do
    AS_IF([test -n "$sl_starpu"], [continue])
    AC_MSG_CHECKING([for StarPU $sl_try])
    AS_IF([$PKG_CONFIG --exists "starpu-$sl_try >= 1.3.9" &&
           { test "x$with_starpu" = xyes ||
             $PKG_CONFIG --variable=pcfiledir "starpu-$sl_try" | grep -F "$with_starpu/" >/dev/null; }],
      [sl_starpu=$sl_try
       sl_starpu_version=`$PKG_CONFIG --modversion "starpu-$sl_try"`
       AC_MSG_RESULT([$sl_starpu_version])],
      [AC_MSG_RESULT([no])])
  done
  AS_IF([test -z "$sl_starpu"],
    [SL_MISSING([StarPU >= 1.3.9], [libstarpu-dev], [StarPU from source], [give --with-starpu=PREFIX])],
    [sl_modules="starpu-$sl_starpu"
     AS_IF([test "x$with_mpi" != xno],
       [AS_IF([$PKG_CONFIG --exists "starpumpi-$sl_starpu"], [sl_modules="starpumpi-$sl_starpu $sl_modules"],
         [SL_MISSING([the MPI part of StarPU (starpumpi-$sl_starpu)], [libstarpu-dev], [StarPU with MPI from source],
           [give --without-mpi])])])
     PKG_CHECK_MODULES([STARPU], [$sl_modules])
     SL_AS_SYSTEM([STARPU_CFLAGS])
     AS_IF([test "x$with_starpu" != xyes],
       [STARPU_LIBS="$STARPU_LIBS -Wl,-rpath,`$PKG_CONFIG --variable=libdir starpu-$sl_starpu`"])])
])
