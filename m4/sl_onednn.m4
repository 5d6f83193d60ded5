# SL_ONEDNN
# oneDNN, which multiplies bfloat16, and float32 where it is faster than the BLAS (codelets/gemm_onednn.c), where it runs in order or by
# OpenMP: a task has one thread. Sets the conditional SL_ONEDNN, ONEDNN_CFLAGS, ONEDNN_LIBS and ONEDNN_LDFLAGS, and defines
# SL_ONEDNN_FLOAT32.
AC_DEFUN([SL_ONEDNN], [
  AC_ARG_WITH([onednn], [AS_HELP_STRING([--with-onednn@<:@=PREFIX@:>@],
    [dense products by the oneDNN installed (in PREFIX), in bfloat16 and where it is faster than the BLAS; auto (default) takes it if it is there; no: without])],
    [], [with_onednn=auto])
  AS_CASE([$with_onednn],
    [yes|no|auto], [ONEDNN_CFLAGS="" ONEDNN_LIBS="-ldnnl" ONEDNN_LDFLAGS=""],
    [ONEDNN_CFLAGS="-isystem $with_onednn/include"
     ONEDNN_LIBS="-L$with_onednn/lib -ldnnl"
     ONEDNN_LDFLAGS="-R $with_onednn/lib"])
  sl_onednn=no
  AC_MSG_CHECKING([for oneDNN])
  AS_IF([test "$with_onednn" != no], [
    sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $ONEDNN_CFLAGS"; LIBS="$ONEDNN_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <dnnl.h>
#if DNNL_CPU_RUNTIME != DNNL_RUNTIME_SEQ && DNNL_CPU_RUNTIME != DNNL_RUNTIME_OMP
#error a runtime whose threads cannot be counted
#endif
#if DNNL_VERSION_MAJOR < 2
#error too old
#endif],
      [return dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_bf16;])],
      [AC_COMPUTE_INT([sl_major], [DNNL_VERSION_MAJOR], [#include <dnnl.h>])
       AC_COMPUTE_INT([sl_minor], [DNNL_VERSION_MINOR], [#include <dnnl.h>])
       sl_onednn=$sl_major.$sl_minor])
    CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS])
  AC_MSG_RESULT([$sl_onednn])
  AS_IF([test "$sl_onednn" = no && test "$with_onednn" != no && test "$with_onednn" != auto],
    [SL_MISSING([oneDNN of OpenMP, 2 or later,], [libdnnl-dev], [onednn-devel], [give --with-onednn=no])])
  AS_IF([test "$sl_onednn" = no], [ONEDNN_CFLAGS="" ONEDNN_LIBS="" ONEDNN_LDFLAGS=""])
  AM_CONDITIONAL([SL_ONEDNN], [test "$sl_onednn" != no])
  dnl Its code for float32 is for x86-64. MKL has the same code or better.
  AC_CHECK_DECL([__x86_64__], [sl_float32=1], [sl_float32=0], [])
  AS_CASE([$sl_cblas], [mkl*], [sl_float32=0])
  AC_DEFINE_UNQUOTED([SL_ONEDNN_FLOAT32], [$sl_float32], [Whether oneDNN multiplies float32 where it is faster than the BLAS])
  AC_SUBST([ONEDNN_CFLAGS])
  AC_SUBST([ONEDNN_LIBS])
  dnl A path of its own: libtool forgets that of a library that a convenience library needs.
  AC_SUBST([ONEDNN_LDFLAGS])
])
