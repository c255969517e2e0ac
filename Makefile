# make build   the program, into bin/
# make test    the tests of the product; says what it installs. go test ./... runs those that need Go alone
# make quick   go test of what has changed since BASE (main), and of what depends on it
# make check-release  everything else: lint, every fuzz test for FUZZTIME, the tests of benchmarks, packages, image, SBOM, Helm chart and releases
# make size    lines, folders, keys and words: see .ci/size.sh
# make lint    formatting, vet and golangci-lint
# make fuzz    every fuzz test for FUZZTIME
# make bench   sequins beside its peers: see bench/README.md
# make rules   the alert rules, by promtool
# make package a deb and an rpm for this machine, into dist/
# make image   the image for containers, into dist/
# make release everything that a release has, for all systems, into dist/: see docs/RELEASING.md
# make pictures the pictures of the README, from real runs, into docs/pictures/
# make manifests packaging/kubernetes/, from the Helm chart, with what else is made from the chart

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO       ?= go
# Tests that need more than Go (Java, ZooKeeper, HDFS, S3, Azurite, Chromium, Prometheus, Python) or minutes have this build tag.
TAGS     := -tags integration
FUZZTIME ?= 3s
# The packages that start no goroutine, also in their tests, and much to compute: there is nothing for the race detector.
SEQUENTIAL := . ./blocks/internal/filter ./blocks/internal/fsst ./blocks/internal/index ./input/avro ./input/finished ./input/parquet ./input/sequencefile ./input/sparkey ./internal/bzip2 ./internal/content ./internal/human ./internal/merge ./internal/names ./internal/nearest ./internal/render ./internal/unpack ./node/turns ./observe/status ./server/internal/batchkeys ./server/internal/negotiate ./server/statuspage ./shard ./version/gate ./version/pin ./version/report
# What these packages test are programs that they start, which have no race detector. The first ones take longest: at the end,
# they would run alone.
PROGRAMS := ./test/writers ./cmd/sequins ./test/copies ./test/single ./test/browser ./test/hdfs ./test/...
# Those that wait longest of all others.
LONGEST := ./node ./load ./zk ./source/s3
# Whole clusters under faults are tested after everything else: beside that, what a test sees is a machine that stands still.
ALONE := ./test/cluster
# What is made for a release is tested by make check-release, which builds Helm, nfpm and cyclonedx-gomod first.
RELEASE := ./test/chart ./test/kubernetes ./test/packaging ./test/release ./test/cost
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .cache/golangci-lint-$(GOLANGCI_VERSION)
DIST   ?= dist
BINARY ?=
BASE   ?= main

NFPM_VERSION := v2.45.2
NFPM := .cache/nfpm-$(NFPM_VERSION)

SBOM_VERSION := v1.10.0
SBOM := .cache/cyclonedx-gomod-$(SBOM_VERSION)

HELM_VERSION := v3.22.0
HELM := .cache/helm-$(HELM_VERSION)

.PHONY: build test quick check-release lint size fuzz tools bench package image release rules pictures helm manifests

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.release=$(VERSION)' -o bin/sequins ./cmd/sequins

# The tests come last, so that what they say is what one sees. Their log is kept, and summed up: a package
# that passes is one line, one that fails is shown whole, and a skipped test is a failure. Lint vets their code.
# Most tests wait for others more than they compute: four packages run at a time, also on two cores, and eight on four.
test: AT_ONCE = $(shell [ $$(nproc) -lt 4 ] && echo 4 || echo 8)
test: tools rules
	mkdir -p .cache
	status=0; { \
	  CGO_ENABLED=0 $(GO) test $(TAGS) -vet off -p $(AT_ONCE) -timeout 30m -v $$($(GO) list $(TAGS) $(PROGRAMS) $(SEQUENTIAL) | grep -vxF "$$($(GO) list $(TAGS) $(ALONE) $(RELEASE))") || status=$$?; \
	  CGO_ENABLED=1 $(GO) test $(TAGS) -vet off -race -p $(AT_ONCE) -timeout 30m -v $$($(GO) list $(LONGEST) ./... | grep -vxF "$$($(GO) list $(TAGS) $(SEQUENTIAL) $(PROGRAMS))") || status=$$?; \
	  CGO_ENABLED=0 $(GO) test $(TAGS) -vet off -timeout 30m -v $(ALONE) || status=$$?; \
	  exit $$status; } 2>&1 | tee .cache/test.log | awk -f .ci/testlog.awk

quick:
	@.ci/quick.sh $(BASE)

# Without the race detector: what these tests test are programs that they start.
check-release: tools lint fuzz $(NFPM) $(HELM) $(SBOM)
	$(MAKE) -C bench test
	$(GO) test $(TAGS) -vet off -p 4 -timeout 30m -v $(RELEASE) 2>&1 | tee .cache/check-release.log | awk -f .ci/testlog.awk

# All with the same flags, those of a release, and without cgo, so that what they have in common is compiled once. The tables for debuggers,
# which a release has not, are a sixth of the compilation and of the linking, and the compilation of large modules which only tests use takes less time without optimization: half of it, of Helm's 15 % less.
# A compiler that collects its garbage at five times what it uses, and not at twice, takes a seventh to a quarter less of the processor, and half as much memory again.
test lint fuzz check-release $(GOLANGCI) $(NFPM) $(HELM) $(SBOM): export GOFLAGS := $(GOFLAGS) '-toolexec=env GOGC=400' -trimpath -ldflags=-s -gcflags=all=-dwarf=false $(foreach from,github.com/cockroachdb github.com/getkin github.com/grafana github.com/redis helm.sh k8s.io sigs.k8s.io,'-gcflags=$(from)/...=-N -l -dwarf=false')
lint fuzz check-release $(GOLANGCI) $(NFPM) $(HELM) $(SBOM): export CGO_ENABLED := 0
lint: $(GOLANGCI)
	@unformatted=$$(gofmt -l .); \
	  if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) -C packaging/image vet ./...
	GOGC=200 $(GOLANGCI) run ./...

# As many at a time as there are cores, each on one: most are bound by one anyway. The program of a package is linked once
# for all its fuzz tests, and only our own packages tell which of their lines an input reaches: with -fuzz, the standard library and all modules would
# be compiled once more, to tell it, too. At times the fuzzer takes the end of its own time for a failure, "context deadline exceeded",
# without an input that fails: that is none.
fuzz:
	@mkdir -p .cache/fuzz; \
	targets=$$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/func //' | sort); \
	cut -d: -f1 <<< "$$targets" | xargs -n 1 dirname | sort -u | xargs -P $$(nproc) -I '{}' bash -euc ' \
	    $(GO) test $(TAGS) -vet off -c -gcflags=sequins/...="-d=libfuzzer -dwarf=false" -o .cache/fuzz/$$(tr / - <<< $$1).test $$1 || exit 255' _ '{}'; \
	xargs -P $$(nproc) -I '{}' bash -euc 'file=$${1%%:*} fuzz=$${1##*:} dir=$$(dirname $$file) log=$$PWD/.cache/fuzz/$$(tr /: -- <<< $$1).log; \
	    binary=$$PWD/.cache/fuzz/$$(tr / - <<< $$dir).test corpus=$$($(GO) env GOCACHE)/fuzz/sequins/$$dir; \
	    (cd $$dir && $$binary -test.run "^$$" -test.fuzz "^$$fuzz\$$" -test.fuzzcachedir $$corpus -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 1s \
	        -test.parallel 1 -test.paniconexit0) </dev/null > $$log 2>&1 \
	      || { grep -q "^    context deadline exceeded" $$log && ! grep -q "Failing input" $$log; } || { cat $$log; exit 255; }; \
	    grep -q "^fuzz: elapsed" $$log || { echo "$$fuzz: nothing was tried"; exit 255; }; \
	    echo "$$fuzz ($$dir): $$(grep -o "execs: [0-9]*" $$log | tail -1) in $(FUZZTIME)"' _ '{}' <<< "$$targets"

size:
	@.ci/size.sh

rules: .cache/promtool
	.cache/promtool check rules packaging/contrib/prometheus/alerts.yml
	.cache/promtool test rules packaging/contrib/prometheus/alerts_test.yml

# Both are of Debian's package of Prometheus, which would start a server if it were installed.
.cache/promtool .cache/prometheus &:
	mkdir -p .cache/prometheus.deb
	as_root=$$([ $$(id -u) = 0 ] || echo sudo); cd .cache/prometheus.deb; \
	  apt-get download prometheus || { $$as_root apt-get update -q && apt-get download prometheus; }; \
	  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool ./usr/bin/prometheus
	touch .cache/prometheus.deb/prom*
	mv .cache/prometheus.deb/promtool .cache/prometheus.deb/prometheus .cache
	rm -r .cache/prometheus.deb

bench:
	$(MAKE) -C bench FLAGS='$(FLAGS)'

# The status page and the terminal session are recorded from a node; `docs/pictures/make.sh chart` draws the chart alone.
pictures:
	docs/pictures/make.sh

# For this machine, of another binary than the one that is made for it, if BINARY names one.
package: $(NFPM) $(if $(BINARY),,build)
	files=$$(mktemp -d); trap 'rm -r $$files' EXIT; binary=$(or $(BINARY),bin/sequins) arch=$$($(GO) env GOHOSTARCH); \
	  packaging/notices.sh > $$files/notices; \
	  packaging/files.sh $$files/files $$binary $$files/notices; \
	  packaging/packages.sh $(DIST) '$(VERSION)' $(NFPM) $$files/files $$arch=$$binary
	ls $(DIST)/sequins[-_]*

# With the image of a release, byte for byte.
image:
	stage=$$(mktemp -d); trap 'rm -r $$stage' EXIT; \
	  for arch in amd64 arm64; do packaging/binary.sh $$stage/$$arch '$(VERSION)' linux $$arch; done; \
	  packaging/notices.sh > $$stage/THIRD_PARTY_NOTICES; \
	  packaging/image.sh $(DIST)/sequins-$(VERSION:v%=%)-image.tar '$(VERSION)' $$stage/THIRD_PARTY_NOTICES {amd64=$$stage/amd64,arm64=$$stage/arm64}
	@ls $(DIST)/*-image.tar

# Into dist/, which must be empty; see docs/RELEASING.md.
release: $(NFPM) $(SBOM)
	packaging/release.sh $(DIST) '$(VERSION)' $(NFPM) $(SBOM)

$(SBOM):
	mkdir -p .cache
	GOBIN=$(CURDIR)/.cache $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)
	mv .cache/cyclonedx-gomod $@

$(NFPM):
	mkdir -p .cache
	GOBIN=$(CURDIR)/.cache $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv .cache/nfpm $@

# The manifests, the table of values, the schema of config, and the renderings that tests compare with.
manifests: $(HELM)
	$(GO) test $(TAGS) ./test/chart -count 1 -run 'TestSchemaOfConfig|TestCopies' -update
	$(GO) test $(TAGS) ./test/chart -count 1 -run 'TestRenderings|TestNotes|TestManifests|TestTableOfValues' -update

# Where Helm is.
helm: $(HELM)
	@echo $(HELM)

# Built without a release of Helm's own, it would take the cluster for a very old one when it renders without one.
$(HELM):
	mkdir -p .cache
	GOBIN=$(CURDIR)/.cache $(GO) install -ldflags '-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34' \
	  helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv .cache/helm $@

$(GOLANGCI):
	mkdir -p .cache
	GOBIN=$(CURDIR)/.cache $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .cache/golangci-lint $@

# What the tests need beside Go: a C compiler for the race detector, Java for the real Hadoop, a browser and what
# drives it, tmux for the tests of commands in a terminal, a DNS server for the pods of test/kubernetes, Python for the writers of test/writers, redis and twemproxy (nutcracker) for test/redis and nginx for test/web, which start their own and need no service, and what looks
# into packages and units.
tools:
	@need=""; \
	  for pair in gcc:build-essential ip:iproute2 dnsmasq:dnsmasq-base javac:openjdk-17-jdk-headless mvn:maven \
	      chromium:chromium node:nodejs npm:npm rpm:rpm strace:strace curl:curl openssl:openssl systemd-analyze:systemd python3:python3 redis-server:redis-server redis-benchmark:redis-tools nutcracker:nutcracker nginx:nginx-light tmux:tmux jq:jq qemu-aarch64-static:qemu-user-static skopeo:skopeo umoci:umoci rsync:rsync; do \
	    command -v $${pair%%:*} >/dev/null || need="$$need $${pair##*:}"; \
	  done; \
	  [ -e /usr/share/bash-completion/bash_completion ] || need="$$need bash-completion"; \
	  python3 -c 'import ensurepip, venv' 2>/dev/null || need="$$need python3-venv"; \
	  if [ -n "$$need" ]; then \
	    echo "installing Debian packages:$$need"; \
	    as_root=$$([ $$(id -u) = 0 ] || echo sudo); \
	    $$as_root apt-get update -q && DEBIAN_FRONTEND=noninteractive $$as_root apt-get install -yq --no-install-recommends $$need; \
	    for service in redis-server nutcracker nginx; do \
	      case "$$need" in *$$service*) $$as_root systemctl disable -q --now $$service 2>/dev/null || $$as_root service $$service stop || true;; esac; \
	    done; \
	  fi
