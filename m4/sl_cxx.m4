# SL_CXX
# A compiler of C++17, with which the tests build CUDA kernels for the software GPU, and its address and undefined-behaviour
# sanitizers. Sets CXX_SANITIZERS and CXX_WARNINGS; after --enable-werror.
AC_DEFUN([SL_CXX], [
  AC_LANG_PUSH([C++])
  sl_save_CXXFLAGS=$CXXFLAGS
  sl_cxx=no
  CXX_SANITIZERS=
  AC_MSG_CHECKING([for a compiler of C++17])
  CXXFLAGS="-std=c++17 -pthread"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <functional>], [if constexpr (sizeof(int) > 1) std::function<void()>{}])],
    [sl_cxx=$CXX])
  AC_MSG_RESULT([$sl_cxx])
  AS_IF([test "x$enable_tests" = xno], [sl_cxx=no])
  AS_IF([test "x$sl_cxx" != xno], [
    AC_MSG_CHECKING([for sanitizers])
    CXXFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([#include <sanitizer/asan_interface.h>])],
      [CXX_SANITIZERS=$CXXFLAGS; CXX_ASAN=-DSOFTWARE_GPU_ASAN; sl_cxx="$sl_cxx with sanitizers"], [], [:])
    AC_MSG_RESULT([${CXX_SANITIZERS:-no}])])
  CXXFLAGS=$sl_save_CXXFLAGS
  AC_LANG_POP([C++])
  CXX_WARNINGS="-Wall -Wno-unknown-pragmas"
  AS_IF([test "x$enable_werror" != xno], [CXX_WARNINGS="$CXX_WARNINGS -Werror"])
  AC_SUBST([CXX_SANITIZERS])
  AC_SUBST([CXX_ASAN])
  AC_SUBST([CXX_WARNINGS])
  AM_CONDITIONAL([SL_CXX], [test "x$sl_cxx" != xno])
])
