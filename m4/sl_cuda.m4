# SL_CUDA
# nvcc, the CUDA libraries and a StarPU that knows CUDA (so after SL_STARPU), only when asked for. Sets NVCC, NVCCFLAGS, CUDA_CFLAGS, CUDA_LIBS, and defines
# SL_HAVE_CUDA. NVCC alone is set wherever there is one, so that the tests can compile the kernels.
# --with-cuda=software: the kernels are compiled by CXX and run on the software GPU (tests/software_gpu).
AC_DEFUN([SL_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [build the CUDA kernels, with the CUDA in DIR; --with-cuda=software: for GPUs in software, for tests])],
    [], [with_cuda=no])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags of the CUDA compiler])
  sl_cuda=no
  AS_CASE([$with_cuda], [yes|no|software], [sl_cuda_path=$PATH$PATH_SEPARATOR/usr/local/cuda/bin],
    [sl_cuda_path=$with_cuda/bin])
  AC_PATH_PROG([NVCC], [nvcc], [], [$sl_cuda_path])
  AS_IF([test -n "$NVCC" && test -z "$NVCCFLAGS"], [
    AS_IF([nvidia-smi -L >/dev/null 2>&1], [sl_arch=native], [sl_arch=all-major])
    NVCCFLAGS="-O3 -arch=$sl_arch"])
  AS_IF([test "x$with_cuda" != xno], [
    AS_IF([ls "$srcdir"/codelets/*_cuda.cu >/dev/null 2>&1], [],
      [AC_MSG_ERROR([--with-cuda: this version has no CUDA kernels yet])])
    sl_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS"
    AC_MSG_CHECKING([whether StarPU knows CUDA])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <starpu_config.h>], [return STARPU_USE_CUDA;])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       SL_MISSING([a StarPU with CUDA], [libstarpu-contrib-dev], [StarPU with CUDA from source],
         [run ./bootstrap --own-starpu and give --with-starpu=PREFIX])])
    CPPFLAGS=$sl_save_CPPFLAGS
    AS_IF([test "x$with_cuda" = xsoftware],
      [sl_cuda="software GPU"
       CUDA_CFLAGS='-I$(top_srcdir)/tests/software_gpu/include'
       CUDA_LIBS=-lstdc++
       AC_DEFINE([SL_HAVE_CUDA], [1], [CUDA kernels])],
      [test -z "$NVCC"],
      [SL_MISSING([nvcc, the CUDA compiler,], [nvidia-cuda-toolkit], [cuda-nvcc], [give --with-cuda=DIR])],
      [sl_dir=`dirname "$NVCC"`/..
       AS_IF([test -d "$with_cuda"], [sl_dir=$with_cuda])
       for sl_lib in lib lib64 targets/x86_64-linux/lib targets/sbsa-linux/lib; do
         AS_IF([test -f "$sl_dir/$sl_lib/libcudart.so"], [sl_cuda_lib=`cd "$sl_dir/$sl_lib" && pwd -P`])
       done
       AS_IF([test -d "$sl_dir/include"], [CUDA_CFLAGS="-isystem `cd "$sl_dir/include" && pwd -P`"])
       AS_IF([test -n "$sl_cuda_lib"], [CUDA_LIBS="-L$sl_cuda_lib -Wl,-rpath,$sl_cuda_lib"])
       sl_cuda_libraries="-lcublas -lcusparse -lcudart"
       sl_save_CPPFLAGS=$CPPFLAGS; sl_save_LIBS=$LIBS
       CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"; LIBS="$CUDA_LIBS $sl_cuda_libraries $LIBS"
       AC_MSG_CHECKING([whether CUDA programs link])
       AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <cuda_runtime_api.h>], [int n; return cudaGetDeviceCount(&n);])],
         [sl_cuda=`"$NVCC" --version | sed -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`],
         [])
       CPPFLAGS=$sl_save_CPPFLAGS; LIBS=$sl_save_LIBS
       AC_MSG_RESULT([$sl_cuda])
       AS_IF([test "$sl_cuda" = no],
         [SL_MISSING([the CUDA libraries (cudart, cublas, cusparse)], [nvidia-cuda-toolkit], [cuda-toolkit],
           [give --with-cuda=DIR])],
         [CUDA_LIBS="$CUDA_LIBS $sl_cuda_libraries -lstdc++"
          AC_DEFINE([SL_HAVE_CUDA], [1], [CUDA kernels])])])])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AM_CONDITIONAL([SL_CUDA], [test "$sl_cuda" != no])
  AM_CONDITIONAL([SL_SOFTWARE_GPU], [test "$sl_cuda" = "software GPU"])
])
