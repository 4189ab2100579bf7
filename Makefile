# The commands of a checkout.  Each does its own set-up, in ./.venv, and nothing outside this
# folder is touched.  A second run is quick: stamp files remember what was done and from what.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# Candidates, best first; the first that is new enough makes the environment.
PYTHON ?= python3 python3.13 python3.12 python3.11 python3.14
# Processes that compute, and processes for the tests, which wait for a third of their time.
JOBS ?= 2
TESTERS ?= $(shell expr $(JOBS) \* 3 / 2)
# Seeds of the simulation, and those of replicated groups.
SEEDS ?= 0..9999
GROUPS ?= 0..9999
# What a soak may take, in seconds, and the seed it begins with; the seeds of the simulation's,
# whose million takes more than an hour of two idle processors.
SOAK_SECONDS ?= 600
SOAK_SEED ?= 1
SOAK_SEEDS ?= 1000000..1999999
# Handed to pytest: make test ARGS='-k frames -x'
ARGS ?=
# The foreign clients that make interop runs, which must be there; all that are there if empty.
CLIENTS ?=
# The nats-server that bench-peers builds.
NATS_SERVER ?= v2.15.3
# Not empty: the environment gets exactly the versions of constraints.txt, with their hashes, or
# none; otherwise the newest that pyproject.toml allows and the package index has.
LOCKED ?=
# Handed by bench-peers to bench-kafka, which it ends with.
KAFKA_ARGS ?=

# Tests start hundreds of processes; each would translate every module it imports again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
MADE := $(VENV)/.stamp-made
RUNS := $(VENV)/.stamp-runs
READY := $(VENV)/.stamp-ready

# The simulation, compiled.
MARKS = PYTHONPATH=build/simulator $(PY) -m tmqp_sim marks --seeds $(SOAK_SEEDS) --jobs $(JOBS)

# The simulation, watched by coverage.
define sim_coverage
	PYTHONPATH=src:fuzz $(PY) -m coverage run --rcfile=fuzz/tmqp_sim/coverage.ini \
	  -m tmqp_sim run --seeds $(1) --jobs 1 --no-bar
	$(PY) -m coverage report --rcfile=fuzz/tmqp_sim/coverage.ini
endef

# Where tests.interop.spark.packages puts it.
OLDEST_SPARK := $(CURDIR)/build/cache/interop/spark/packages

NO_NETWORK = echo 'make: that needs the network, or a package cache that pip knows' >&2; exit 1;

# What is type-checked and linted, as far as it exists.
CODE := $(wildcard setup.py src tests fuzz examples tools)
# What a build is made of; and a list of it, written anew when it differs, so that a file that is
# gone counts as a change.  (A folder changes whenever Python puts a __pycache__ into it.)
FIND_SOURCES := find src $(wildcard fuzz/tmqp_conformance) \
	\( -name __pycache__ -o -name '*.egg-info' \) -prune -o -type f -print | sort
LIST := build/sources.txt
$(shell mkdir -p build; $(FIND_SOURCES) | cmp -s - $(LIST) || $(FIND_SOURCES) > $(LIST))
SOURCES := pyproject.toml setup.py $(LIST) $(shell cat $(LIST))

.PHONY: help demo test test-long test-wheel interop spark-oldest quick spark-demo setup wheel \
	compiled test-compiled lint format typecheck imports tidy lock lock-check sbom reproduce \
	coverage sim sim-compiled sim-coverage sim-replicas soak soak-sim attacks bench bench-clients \
	bench-kafka bench-peers bench-codec bench-spark docs pictures screenshots terminal ci clean \
	distclean

help:
	@echo 'tmqp: TMQP/2.0 in Python - protocol, broker and client. Start with one of the first two.'
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile \
	  | awk -F'|' '{ printf "%-19s %s\n", $$1, $$2 }'
	@echo
	@echo 'Settings:  PYTHON=python3.12 (for a new .venv)   JOBS=4   ARGS="-k frames -x" (for pytest)'
	@echo 'Compiled or not: TMQP_COMPILE=0|1|auto, explained at the top of setup.py.'

demo: $(RUNS) ## watch messages go through a real broker (less than a minute)
	@PYTHONPATH=src:fuzz $(PY) examples/demo.py

test: $(READY) ## run the tests, except the long ones (minutes)
	$(call run_tests,src,interpreted,not long)

test-long: $(READY) ## run the tests that take long: floods, kills, clusters (eight minutes)
	$(call run_tests,src,interpreted,long)

interop: $(READY) ## run other projects' clients against the server; CLIENTS='go-nsq' selects some
	PYTHONPATH=src TMQP_EXPECT_BUILD=interpreted TMQP_CLIENTS='$(CLIENTS)' $(PY) -m pytest -q \
	  -m interop -o python_files='test_*.py interop_*.py' -n $(TESTERS) --dist loadgroup $(ARGS) \
	  tests/interop $(if $(CLIENTS),,$(call marked,interop))

spark-oldest: $(READY) ## run the essential tests with the oldest supported PySpark
	@$(PY) tools/waiting.py 'Fetching the oldest PySpark (once, about 500 MB)' \
	  -- $(PY) -m tests.interop.spark.packages
	PYTHONPATH=$(OLDEST_SPARK):$(CURDIR)/src \
	  TMQP_EXPECT_PYSPARK=$$(sed -n 's/^pyspark==//p' tests/interop/spark/requirements.txt) \
	  $(PY) -m pytest -q -m 'not long' \
	  $(foreach name,batch stream sink,tests/tmqp_spark/test_$(name).py) $(ARGS)

quick: $(READY) ## run the tests that need neither a broker nor Spark (less than a minute)
	PYTHONPATH=src $(PY) -m pytest -q -n $(TESTERS) --dist worksteal \
	  tests/tmqp tests/tmqp_client/test_machine*.py tests/tmqp_client/test_answers.py \
	  tests/tmqp_server/engine tests/tmqp_server/doors tests/test_tidy.py tests/test_public.py \
	  -m 'not alone and not long' $(ARGS)

spark-demo: build/auto/.stamp ## watch Spark archive, replay and measure 122,137 real records
	@PYTHONPATH=build/auto $(PY) examples/spark_demo.py

setup: $(READY) ## make or refresh ./.venv with everything the other commands need

compiled: build/compiled/.stamp ## compile the hot modules: use it with PYTHONPATH=build/compiled

test-compiled: build/compiled/.stamp ## run the hot modules' tests on the compiled build
	$(call run_tests,build/compiled,compiled,hot and not long)

wheel: dist/.stamp ## build the source archive and the compiled wheel in dist/, in isolation

test-wheel: dist/.stamp ## install the wheel in empty environments and test it
	PYTHONPATH= $(PY) -m pytest -q --timeout 300 -o python_files='wheel_*.py' tests/wheel $(ARGS)

lint: $(READY) ## check style and formatting (make format fixes most problems)
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)

format: $(READY) ## fix style and formatting
	$(PY) -m ruff check --fix $(CODE)
	$(PY) -m ruff format $(CODE)

typecheck: $(READY) ## mypy, strict
	$(PY) -m mypy $(CODE)

imports: $(READY) ## check who may import whom (.importlinter)
	$(VENV)/bin/lint-imports --cache-dir build/cache/imports

tidy: $(READY) ## check sizes, public names and banned words
	PYTHONPATH=src $(PY) -m pytest -q tests/test_tidy.py tests/test_public.py $(ARGS)

coverage: $(READY) ## run the tests and show the lines and branches they miss
	PYTHONPATH=src $(PY) -m coverage erase
	PYTHONPATH=src $(PY) -m coverage run -m pytest -q -m 'not alone' $(ARGS)
	PYTHONPATH=src $(PY) -m coverage combine -q
	PYTHONPATH=src $(PY) -m coverage report

sim: $(READY) ## run ten thousand simulated histories of broker and clients: SEEDS=0..9999
	PYTHONPATH=src:fuzz $(PY) -m tmqp_sim run --seeds $(SEEDS) --jobs $(JOBS) $(ARGS)

sim-compiled: build/simulator/.stamp ## the same, five times as fast, after compiling for minutes
	PYTHONPATH=build/simulator $(PY) -m tmqp_sim run --seeds $(SEEDS) --jobs $(JOBS) $(ARGS)

sim-replicas: build/simulator/.stamp ## run ten thousand simulated groups of servers: GROUPS=7
	PYTHONPATH=build/simulator $(PY) -m tmqp_sim.replicas --seeds $(GROUPS) --jobs $(JOBS) $(ARGS)

sim-coverage: $(READY) ## show which branches of the server's shell 2,000 simulated histories reach
	$(call sim_coverage,0..1999)

soak: $(READY) build/simulator/.stamp ## run the randomised tests for five times SOAK_SECONDS=600
	PYTHONPATH=src TMQP_SOAK_SECONDS=$(SOAK_SECONDS) TMQP_SOAK_SEED=$(SOAK_SEED) \
	  $(PY) -m pytest -q -s --timeout 0 -o python_files='soak_*.py' tests/soak $(ARGS)
	$(MARKS) --seconds $(SOAK_SECONDS)

soak-sim: build/simulator/.stamp ## run a million simulated histories, compiled: SOAK_SEEDS=0..9
	$(MARKS) $(ARGS)

bench-codec: build/compiled/.stamp ## measure both builds of the codec, and other projects' parsers
	PYTHONPATH=fuzz/bench $(PY) -m tmqp_bench codec $(ARGS)

attacks: build/compiled/.stamp ## attack the compiled server beside a healthy client (minutes)
	PYTHONPATH=build/compiled $(PY) -m tests.tmqp_server.attacks $(ARGS)

bench: build/compiled/.stamp ## measure both builds of the broker under every load (minutes)
	PYTHONPATH=fuzz/bench $(PY) -m tmqp_bench brokers $(ARGS)

bench-clients: build/compiled/.stamp ## measure the client, and other libraries with their servers
	$(PIP) install --quiet --editable '.[bench-peers]'
	PYTHONPATH=fuzz/bench $(PY) -m tmqp_bench clients --peers $(ARGS)

bench-peers: build/compiled/.stamp build/peers/.stamp ## measure tmqp and other brokers (an hour)
	$(PIP) install --quiet --editable '.[bench-peers]'
	PYTHONPATH=fuzz/bench $(PY) -m tmqp_bench brokers --peers --plot build/brokers.svg $(ARGS)
	@$(MAKE) bench-kafka ARGS='$(KAFKA_ARGS)'

# The distribution's is years older than what people run.
build/peers/.stamp:
	@mkdir -p $(@D)
	@if command -v go >/dev/null; then \
	  GOBIN='$(CURDIR)/$(@D)' go install github.com/nats-io/nats-server/v2@$(NATS_SERVER); \
	else echo 'go is not here: nats-server is the one that is installed, if any'; fi
	@touch $@

bench-spark: build/compiled/.stamp ## measure reading and writing with Spark, and alternatives
	PYTHONPATH=build/compiled:fuzz/bench $(PY) -m tmqp_bench spark --json-logs $(ARGS)

bench-kafka: build/compiled/.stamp ## measure queues in Spark, and Spark's Kafka connector (Maven)
	PYTHONPATH=fuzz/bench $(PY) -m tmqp_bench kafka $(ARGS)

lock: $(READY) ## find newer versions of the locked packages: constraints.txt, the image
	$(call locked,--upgrade,constraints.txt,dev bench)
	$(call locked,--upgrade,deploy/docker/requirements.txt,$(IMAGE_EXTRAS))

lock-check: $(READY) ## check that the locked versions satisfy pyproject.toml
	$(call compare_lock,constraints.txt,dev bench)
	$(call compare_lock,deploy/docker/requirements.txt,$(IMAGE_EXTRAS))

sbom: $(READY) ## write the bill of materials: build/tmqp.cdx.json (CycloneDX)
	$(PY) -m tools.make_sbom build/tmqp.cdx.json

reproduce: $(READY) ## build source archive and wheel twice and compare (minutes; TMQP_COMPILE=0|1)
	$(PY) -m tools.reproduce $(ARGS)

docs: $(VENV)/.stamp-docs ## build the site of the documents in build/site, with an API reference
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo 'build/site/index.html'

pictures: $(READY) ## draw the documents' pictures and tables from the sources
	PYTHONPATH=src $(PY) -m tools.make_api
	PYTHONPATH=src $(PY) -m tools.make_map
	PYTHONPATH=src $(PY) -m tools.make_speed
	PYTHONPATH=src $(PY) -m tools.make_state_diagram
	PYTHONPATH=src $(PY) -m tools.make_limits
	PYTHONPATH=src $(PY) -m tools.make_metrics
	PYTHONPATH=src $(PY) -m tools.make_nsq_flags
	PYTHONPATH=src $(PY) -m tools.make_options
	PYTHONPATH=src $(PY) -m tools.make_register
	PYTHONPATH=src $(PY) -m tools.make_rules

screenshots: $(READY) ## take pictures of the console for inspection, in build/screenshots
	PYTHONPATH=src:. $(PY) -m tests.tmqp_server.admin.console_pictures build/screenshots

terminal: $(READY) ## record the terminal session that the README shows
	PYTHONPATH=src $(PY) -m tools.make_terminal

ci: ## run every check that a change must pass
	.ci/run

clean: ## remove built files (keeps .venv)
	rm -rf build dist *.egg-info .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	rm -rf $(VENV)

# Tests that measure come first, one after the other, while nothing else runs; there may be none of
# them in a selection (pytest's status 5).  The rest share the processors.  What ARGS selects is
# collected once and runs one after the other.
# $(1) where the packages are, $(2) the build that must be found there, $(3) a marker expression
# pytest rewrites each module of the tests, which takes longer than to read all that it has
# rewritten before; in a new checkout each of the processes that test would rewrite all of them.
define rewrite_tests
	@test -e build/cache/rewritten || { echo 'reading the tests'; mkdir -p build/cache; \
	  PYTHONPATH=src $(PY) -m pytest -q --collect-only tests/tmqp_server >/dev/null & \
	  PYTHONPATH=src $(PY) -m pytest -q --collect-only \
	    $(filter-out %__pycache__/ %/tmqp_server/,$(wildcard tests/*/ tests/test_*.py)) >/dev/null; \
	  wait; touch build/cache/rewritten; }
endef

define run_tests
	$(if $(ARGS),\
	PYTHONPATH=$(1) TMQP_EXPECT_BUILD=$(2) $(PY) -m pytest -q -m '$(3)' $(ARGS),\
	PYTHONPATH=$(1) TMQP_EXPECT_BUILD=$(2) $(PY) -m pytest -q -m '$(3) and alone' \
	  $(call marked,alone) || test $$? -eq 5)
	$(if $(ARGS),,$(call rewrite_tests))
	$(if $(ARGS),,\
	PYTHONPATH=$(1) TMQP_EXPECT_BUILD=$(2) $(PY) -m pytest -q -m '$(3) and not alone' \
	  -n $(TESTERS) --dist worksteal $(if $(filter-out long,$(3)),,$(call marked,long)))
endef

# What the image of the server has beside the server.
IMAGE_EXTRAS := server speed http client

# The versions for every Python and system that is supported, each with the digests of its files;
# the index that they come from is not written down.
# $(1) options, $(2) the file, $(3) the extras
locked = $(VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	$(foreach extra,$(3),--extra $(extra)) $(1) --output-file $(2)

# $(1) the file, $(2) the extras
define compare_lock
	@mkdir -p build/lock/$(dir $(1)) && cp $(1) build/lock/$(1)
	@$(call locked,,build/lock/$(1),$(2))
	@cmp $(1) build/lock/$(1) || { echo 'make: $(1) is stale: run make lock' >&2; exit 1; }
endef

# The files with tests that are marked so: to collect all tests takes a quarter of a minute.
marked = $$(grep -rl --include='test_*.py' 'pytest\.mark\.$(1)' tests)

# --- Set-up -------------------------------------------------------------------------------------

$(MADE):
	@chosen=''; for name in $(PYTHON); do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    chosen=$$name; break; \
	  fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	  echo 'make: Python 3.11 or newer is needed, and none of these is it: $(PYTHON)' >&2; \
	  echo 'make: name one with  make setup PYTHON=/path/to/python3.12' >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$chosen ($$($$chosen --version))"; \
	$$chosen -m venv $(VENV) || { \
	  echo "make: $$chosen has no working venv module (Debian, Ubuntu: install python3-venv)" >&2; \
	  exit 1; }
	@touch $@

# What a broker and a client need to run from src/, and nothing else.
$(RUNS): $(MADE) pyproject.toml tools/requirements.py
	@$(PY) tools/requirements.py server client > $(VENV)/runs.txt
	@$(PY) tools/waiting.py \
	  'Fetching what the broker and the client need (some 20 packages, about 8 MB)' \
	  -- $(PIP) install --quiet --requirement $(VENV)/runs.txt || { $(NO_NETWORK) }
	@touch $@

# What builds the site, and nothing else: the API reference is read from the sources.
$(VENV)/.stamp-docs: $(MADE) pyproject.toml tools/requirements.py
	@$(PY) tools/requirements.py docs > $(VENV)/docs.txt
	@$(PY) tools/waiting.py 'Fetching what builds the site (some 30 packages, about 15 MB)' \
	  -- $(PIP) install --quiet --requirement $(VENV)/docs.txt || { $(NO_NETWORK) }
	@touch $@

# The sources are installed in place, uncompiled: an edit counts at once.  (py.typed stands for each
# package, because a new one must be installed; setuptools' note on editable installs is no news.)
# The simulator is in no package, and is found here by import-linter and everybody else.
$(READY): $(MADE) pyproject.toml setup.py $(wildcard src/*/py.typed)
	@$(PY) tools/waiting.py 'Upgrading pip and setuptools' \
	  -- $(PIP) install --quiet --upgrade pip 'setuptools>=77' || { $(NO_NETWORK) }
	$(if $(LOCKED),@$(PY) tools/waiting.py 'Installing the versions of constraints.txt' \
	  -- $(PIP) install --quiet --require-hashes --requirement constraints.txt || { $(NO_NETWORK) })
	@TMQP_COMPILE=0 PYTHONWARNINGS=ignore $(PY) tools/waiting.py \
	  'Installing every tool, with Spark and a Java (once, about 700 MB on disk)' \
	  -- $(PIP) install --quiet --no-build-isolation $(if $(LOCKED),--no-deps) \
	  --editable '.[dev,bench]' || { $(NO_NETWORK) }
	@site=$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  echo '$(CURDIR)/fuzz' > "$$site/fuzz.pth"
	@touch $@

# --- Builds: complete copies of the packages, for PYTHONPATH -------------------------------------

# $(1) TMQP_COMPILE, $(2) the folder
define install_copy
	@rm -rf $(2)
	@TMQP_COMPILE=$(1) $(PY) tools/waiting.py \
	  'Building $(2) (TMQP_COMPILE=$(1); minutes if it compiles)' \
	  -- $(PIP) install --quiet --no-deps --no-build-isolation --target $(2) .
	@cat build/compile-report.txt
	@touch $(2)/.stamp
endef

# The source archive, and from it the wheel, each in an environment of its own, as users get them.
dist/.stamp: $(READY) $(SOURCES)
	@rm -rf dist
	@TMQP_COMPILE=1 $(PY) tools/waiting.py 'Building the source archive and the wheel (minutes)' \
	  -- $(PY) -m build --outdir dist .
	@touch $@

build/compiled/.stamp: dist/.stamp
	@rm -rf build/compiled
	@$(PIP) install --quiet --no-deps --target build/compiled dist/*.whl
	@touch $@

SIMULATOR := tools/compile_simulator.py $(wildcard fuzz/tmqp_sim/*.py fuzz/tmqp_sim/*/*.py)

build/simulator/.stamp: $(READY) $(SOURCES) $(SIMULATOR)
	@echo 'Building build/simulator, product and simulator as one unit (minutes)'
	@$(PY) -m tools.compile_simulator
	@touch $@

build/auto/.stamp: $(READY) $(SOURCES)
	$(call install_copy,auto,build/auto)
