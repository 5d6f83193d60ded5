;;; Copyright 2026 The Starling authors. SPDX-License-Identifier: BSD-3-Clause
;;;
;;; In the source tree:  guix build -f packaging/guix/starling.scm
;;;                      guix shell -f packaging/guix/starling.scm -- starling version
;;;
;;; Packages are looked up by name. StarPU comes from a channel beside Guix's own, such as Guix-HPC.

(use-modules (guix packages)
             (guix gexp)
             (guix git-download)
             (guix build-system gnu)
             ((guix licenses) #:prefix license:)
             (gnu packages))

(define %source (dirname (dirname (dirname (current-filename)))))

(package
  (name "starling")
  (version "0.1.0")
  (source (local-file %source "starling-checkout"
                      #:recursive? #t
                      #:select? (git-predicate %source)))
  (build-system gnu-build-system)
  (arguments
   (list
    #:configure-flags #~(list "--without-onednn" "--without-ptscotch")
    ;; All tests take a quarter of an hour; these two train, and call the library.
    #:make-flags #~(list "TESTS=tests/cli.sh tests/library.sh")
    #:phases
    #~(modify-phases %standard-phases
        (add-before 'check 'prepare-to-run
          (lambda _
            ;; StarPU keeps measurements under HOME; Open MPI starts ranks without rsh, and more than cores.
            (setenv "HOME" (getcwd))
            (setenv "OMPI_MCA_plm_rsh_agent" "false")
            (setenv "OMPI_MCA_rmaps_base_oversubscribe" "1"))))))
  (native-inputs
   (map specification->package
        '("autoconf" "automake" "libtool" "pkg-config" "file" "cmocka" "python")))
  (inputs
   (map specification->package
        '("starpu" "openmpi" "hwloc" "openblas" "metis" "zlib" "libzip" "jansson" "tomlplusplus")))
  (home-page #f)
  (synopsis "Train graph neural networks on whole graphs")
  (description
   "Starling trains graph neural networks on whole graphs as one StarPU task graph, on the cores of one machine or, under
MPI, of many.  It has a program, a C library and a Python package.")
  (license license:bsd-3))
