# Copyright 2026 The Starling authors. SPDX-License-Identifier: BSD-3-Clause
"""In the source tree: spack repo add packaging/spack && spack dev-build starling@0.1.0"""
try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    from spack.build_systems.autotools import AutotoolsPackage
    from spack.build_systems.cuda import CudaPackage

from spack.package import *


class Starling(AutotoolsPackage, CudaPackage):
    """Trains graph neural networks on whole graphs as one StarPU task graph, on the cores and GPUs of one or many nodes."""

    license("BSD-3-Clause")

    # No archive is published yet: `spack dev-build` builds the source tree it is called in.
    version("0.1.0")

    variant("mpi", default=True, description="Train on several ranks")
    variant("onednn", default=False, description="Multiply bfloat16, and most shapes of float32, by oneDNN")
    variant("ptscotch", default=False, description="Partition on all ranks together")
    variant("toml", default=True, description="Read options in TOML")
    variant("python", default=True, description="Install the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("starpu@1.3.9:+mpi", when="+mpi")
    depends_on("starpu@1.3.9:~mpi", when="~mpi")
    depends_on("starpu+cuda", when="+cuda")
    depends_on("mpi", when="+mpi")
    depends_on("hwloc@2.1:")
    depends_on("openblas")
    depends_on("metis@5:")
    depends_on("zlib-api")
    depends_on("libzip")
    depends_on("jansson@2.10:")
    depends_on("onednn", when="+onednn")
    depends_on("scotch+mpi", when="+ptscotch")
    depends_on("tomlplusplus@3:", when="+toml")
    depends_on("cmocka", type="test")

    depends_on("python@3.9:", when="+python", type=("build", "run"))
    depends_on("py-numpy", when="+python", type="run")
    extends("python", when="+python")

    conflicts("+ptscotch", when="~mpi", msg="PT-Scotch partitions on the ranks of MPI")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    def autoreconf(self, spec, prefix):
        autoreconf("--install", "--force")

    def configure_args(self):
        spec = self.spec
        args = [
            f"--with-starpu={spec['starpu'].prefix}",
            f"--with-metis={spec['metis'].prefix}",
            "--with-blas=openblas",
            "--with-mkl=no",
            "--without-graphblas",
            f"--with-toml={spec['tomlplusplus'].prefix}" if spec.satisfies("+toml") else "--without-toml",
            f"--with-onednn={spec['onednn'].prefix}" if spec.satisfies("+onednn") else "--without-onednn",
            f"--with-ptscotch={spec['scotch'].prefix}" if spec.satisfies("+ptscotch") else "--without-ptscotch",
            f"--with-python={spec['python'].command.path}" if spec.satisfies("+python") else "--without-python",
        ]
        if spec.satisfies("~mpi"):
            args.append("--without-mpi")
        if spec.satisfies("+cuda"):
            args.append(f"--with-cuda={spec['cuda'].prefix}")
            args.append("NVCCFLAGS=-O3 " + " ".join(self.cuda_flags(spec.variants["cuda_arch"].value)))
        if not self.run_tests:
            args.append("--disable-tests")
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def trains(self):
        Executable(join_path(self.prefix.bin, "starling"))(
            "train", join_path(self.prefix.share, "starling", "examples", "karate"), "--epochs", "20"
        )
