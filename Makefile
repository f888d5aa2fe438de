# SPDX-License-Identifier: GPL-2.0
# The targets call scripts/; the output is in build/.
# Another base: make BASE=version. Another source: make KERNEL_SRC=directory.

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
export BASE KERNEL_SRC SCRIPT APPEND CPUS MEM TIMEOUT FLAVOUR ONLY FROM CONFIG MODULES RUNS LOOPS NGROUPS HERE

help:
	@echo "make demo      [FLAVOUR=x86_64|arm64|i386|s390x]: measure the stack map against full stacks in a booted kernel,"
	@echo "               print a table"
	@echo "make test      all checks but the long ones; the last line is: N passed, N failed, N skipped"
	@echo "               ONLY=step,step of: $$(scripts/test --steps)"
	@echo "make test-full make test and long checks: the largest models, long guest tests, and"
	@echo "               $$(scripts/test --steps full)"
	@echo "make test-arch ARCHS=\"arm64 i386 s390x\": the selftests on other machines, also a part of test-full"
	@echo "make test-upstream compare the kernel's whole ftracetest without and with the stack map"
	@echo "make guest     SCRIPT=path [APPEND=\"kernel arguments\"] [CPUS=n] [MEM=n] [TIMEOUT=seconds]"
	@echo "               [FLAVOUR=x86_64|debug|arm64|i386|s390x]: run a script in the guest, end with its exit status"
	@echo "make stress    [MINUTES=60] [SEED=n] [CPUS=4]: stress-ng and a fuzzer of tracefs under KASAN and lockdep"
	@echo "make flamegraph record the demo's workload and draw build/flamegraph.svg from the recording"
	@echo "make pictures  draw pictures/hits.svg, growth.svg and soak.svg from README.md's table and pictures/*.csv"
	@echo "make series    [FROM=\"name <address>\"]: two mail series, the kernel's and the tool's, checked, in"
	@echo "               build/<base>/series/ and series/tool/"
	@echo "make mutants   break the stack map on purpose; a test must notice each time"
	@echo "make bench     measure the stack map and its peers on User-Mode Linux: table, CSV and plot"
	@echo "make hackbench [RUNS=n] [LOOPS=n] [NGROUPS=n]: the time of hackbench, traced with full stacks and with the map,"
	@echo "               in the guest and on User-Mode Linux; HERE=1: on the running kernel, if it has the stack map"
	@echo "make shell     an interactive shell in the guest"
	@echo "make kernel    source, tree and kernel (FLAVOUR=x86_64|pristine|debug|kcsan|startup|off|nofunc|arm64|i386|s390x|uml)"
	@echo "make tree      source and tree only: the pristine kernel joined with this repository"
	@echo "make deb       [CONFIG=running|debian|file] [MODULES=file]: Debian packages of a kernel with the stack map, and"
	@echo "               of the tools; scripts/test-deb boots them in a fresh Debian"
	@echo "make clean     remove what was built; the downloaded source stays"
	@echo "make distclean remove build/"

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
test-upstream:
	@ONLY=upstream scripts/test
guest:
	@[ -n "$$SCRIPT" ] || { echo "make guest: please give SCRIPT=path" >&2; exit 2; }
	@scripts/prepare $(or $(FLAVOUR),x86_64) rootfs >&2
	@scripts/guest -f $(or $(FLAVOUR),x86_64) -a "$$APPEND" -c $(or $(CPUS),2) -m $(or $(MEM),1024) \
		-t $(or $(TIMEOUT),600) "$$SCRIPT"
stress:
	@scripts/prepare debug rootfs
	@scripts/packages stress
	@scripts/guest -f debug -p stress-ng -j multi -c $(or $(CPUS),4) -m $(or $(MEM),3072) \
		-t $$(($(or $(MINUTES),60) * 300 + 600)) guest/stress.sh $(or $(MINUTES),60) $(SEED)
shell:
	@scripts/prepare $(or $(FLAVOUR),x86_64) rootfs
	@scripts/guest -i -f $(or $(FLAVOUR),x86_64) -a "$$APPEND" -c $(or $(CPUS),2) -m $(or $(MEM),1024)
flamegraph:
	@scripts/prepare x86_64 rootfs
	@scripts/guest -o build/flamegraph guest/demo.sh 512 kmem_cache_alloc
	@scripts/flamegraph build/flamegraph/map
pictures:
	@scripts/pictures
series:
	@scripts/prepare tree
	@scripts/series
bench:
	@scripts/prepare tree
	@scripts/bench
hackbench:
	@$(if $(HERE),,scripts/prepare x86_64 pristine uml uml-pristine rootfs)
	@scripts/hackbench
mutants:
	@scripts/mutants
deb:
	@scripts/prepare tree
	@scripts/deb
clean:
	rm -rf build/log build/stackmap_dump build/flamegraph* build/guest build/bench build/bench-dump build/hackbench build/plugin build/kernelshark build/model build/suite build/viewers build/*/{bench,deb,*+*,x86_64,plain,debug,kcsan,startup,off,nofunc,arm64,i386,s390x,uml,static,kunit,kunit-all,linux,linux.ok,changed,series,stackmap_dump}
distclean:
	rm -rf build

.PHONY: help tree kernel rootfs demo test test-full test-arch test-upstream guest stress shell flamegraph pictures series bench hackbench mutants deb clean distclean
