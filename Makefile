# SPDX-License-Identifier: GPL-2.0
# The targets call scripts/; the output is in build/.
# Another base: make BASE=version. Another source: make KERNEL_SRC=directory.

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
export BASE KERNEL_SRC CHECK SCRIPT APPEND CPUS MEM TIMEOUT FLAVOUR ONLY FROM CONFIG MODULES
# They must not reach the kernel's make, which has variables of these names.
unexport PROGRAMS FILES
MAKEOVERRIDES :=

help:
	@echo "make TARGET [BASE=6.12]; WORKING.md says more"
	@echo "  demo                    measure the map against full stacks in a booted kernel [FLAVOUR=x86_64|arm64|i386|s390x]"
	@echo "  test                    all tests but the long ones [ONLY=step,step/name: scripts/test --steps]"
	@echo "  test-full               and the long ones"
	@echo "  test-arch               the selftests on other machines [ARCHS=\"arm64 i386 s390x\"]"
	@echo "  test-kernel-ftracetest  the kernel's whole ftracetest, without and with the stack map"
	@echo "  mutants                 break the stack map on purpose; a test must notice each time"
	@echo "  series                  the mail series, checked, in build/<base>/series/ [FROM=\"name <address>\"] [CHECK=1|part|boot]"
	@echo "  guest                   run a script in the guest SCRIPT=path [FLAVOUR=] [APPEND=] [CPUS=] [MEM=] [TIMEOUT=] [PROGRAMS=\"strace perf\"] [FILES=\"a b\"]"
	@echo "  stress                  loads and fuzzers under KASAN and lockdep [FLAVOUR=arm64+debug] [LOAD=stress|syscalls] [MINUTES=60] [SEED=n] [FAULTS=1] [CPUS=4]"
	@echo "  shell                   an interactive shell in the guest [FLAVOUR=] [APPEND=] [CPUS=] [MEM=] [PROGRAMS=] [FILES=]"
	@echo "  kernel                  build a kernel [FLAVOUR=: see scripts/kernel]"
	@echo "  tree                    the pristine kernel joined with this repository, in build/<base>/linux"
	@echo "  deb                     Debian packages of a kernel and of the tools [CONFIG=running|debian|file] [MODULES=file]"
	@echo "  bench                   measure the map and its peers on User-Mode Linux: table, CSV and plot"
	@echo "  hackbench               what tracing adds to hackbench, in instructions [NGROUPS=] [LOOPS=] [RUNS=]; HERE=1: in time, on this machine"
	@echo "  flamegraph              record the demo's workload and draw build/flamegraph.svg"
	@echo "  pictures                draw the charts in pictures/"
	@echo "  clean                   remove what was built; the downloaded source stays"
	@echo "  distclean               remove build/"

tree:
	@scripts/prepare tree
kernel:
	@scripts/prepare $(or $(FLAVOUR),x86_64)
rootfs:
	@scripts/prepare rootfs
demo:
	@scripts/prepare $(or $(FLAVOUR),x86_64) rootfs
	@scripts/demo -f $(or $(FLAVOUR),x86_64)
test:
	@scripts/test
test-full:
	@FULL=1 scripts/test
test-arch:
	@scripts/prepare tree
	@scripts/test-arch $(ARCHS)
test-kernel-ftracetest:
	@ONLY=kernel-ftracetest scripts/test
guest:
	@[ -n "$$SCRIPT" ] || { echo "make guest: please give SCRIPT=path" >&2; exit 2; }
	@scripts/guest -b -f "$(or $(FLAVOUR),x86_64)" -a "$$APPEND" -c "$(or $(CPUS),2)" -m "$(or $(MEM),1024)" \
		-t "$(or $(TIMEOUT),600)" $(PROGRAMS:%=-p %) $(FILES:%=-x %) -- "$$SCRIPT"
stress:
	@scripts/prepare $(or $(FLAVOUR),debug) rootfs
	@scripts/packages stress
	@scripts/guest -f $(or $(FLAVOUR),debug) -p stress-ng -p perl -p trinity -j multi -c $(or $(CPUS),4) -m $(or $(MEM),3072) \
		-a rcupdate.rcu_cpu_stall_timeout=120 -t $$(($(or $(MINUTES),60) * 60 + 1800)) \
		guest/$(or $(LOAD),stress).sh $(or $(MINUTES),60) $(or $(SEED),$$$$) $(FAULTS)
shell:
	@scripts/guest -b -i -f "$(or $(FLAVOUR),x86_64)" -a "$$APPEND" -c "$(or $(CPUS),2)" -m "$(or $(MEM),1024)" \
		$(PROGRAMS:%=-p %) $(FILES:%=-x %)
flamegraph:
	@scripts/prepare x86_64 rootfs
	@scripts/guest -o build/flamegraph guest/measure/demo.sh 512 kmem_cache_alloc
	@scripts/flamegraph build/flamegraph/map
pictures:
	@scripts/pictures
series:
	@scripts/prepare tree $(if $(filter boot,$(CHECK)),rootfs)
	@scripts/series
bench:
	@scripts/prepare tree
	@scripts/bench
hackbench:
ifdef HERE
	@guest/measure/hackbench.sh $(or $(NGROUPS),50) $(or $(LOOPS),100) $(or $(RUNS),5)
else
	@scripts/packages test
	@scripts/prepare x86_64 rootfs
	@for cache in 0 1; do scripts/guest -j icount -a unwind_cache=$$cache -p perf -t 3000 \
		guest/measure/hackbench.sh $(or $(NGROUPS),1) $(or $(LOOPS),50) $(or $(RUNS),1) || exit; done
endif
mutants:
	@scripts/mutants
deb:
	@scripts/deb
# What says that something is whole goes first: rm may be interrupted.
clean:
	rm -f build/*/{linux.ok,tree.stamp} build/*/*/{.built,ok} build/*/plain/*/.built build/*/bench/with/.objects
	rm -rf build/log build/stackmap_dump build/flamegraph* build/guest build/bench build/plugin build/kernelshark build/model build/suite build/viewers build/livepatch* build/*/{bench,deb,*+*,x86_64,plain,debug,kcsan,startup,off,nofunc,objects,check,arm64,i386,s390x,static,kunit,kunit-all,linux,changed,series,stackmap_dump}
distclean:
	rm -rf build

.PHONY: help tree kernel rootfs demo test test-full test-arch test-kernel-ftracetest guest shell flamegraph pictures series bench hackbench mutants deb clean distclean
