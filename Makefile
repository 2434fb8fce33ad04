# Everything that is done here, one word each; `make` alone lists it.
# Each target first sets up .venv from the pinned versions, unless that is done. Your own pip settings are used as they
# are. To choose the Python: make test PYTHON=/path/to/python3

PY    := .venv/bin/python
READY := .venv/.ready
PINS  := tests/constraints.txt
PIP   := -m pip --disable-pip-version-check

# Python keeps what it compiled, also where the surroundings forbid it: a notebook then imports learnkit in a fifth of the time
unexport PYTHONDONTWRITEBYTECODE

# Tests run in parallel, in one process more than there are cores (nine at most), as they wait for processes, signals and
# files in a fifth of their time. A dot is a test; in the end: which failed, and which ten took longest.
TESTS := -m pytest tests -q -rfE --disable-warnings --durations=10 --durations-min=1 \
  -n $$($(PY) -c 'import os; print(min(os.cpu_count(), 8) + 1)') --dist worksteal

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## train on handwritten digits, save, load in a fresh process, predict, draw
	$(PY) nbs/examples/digits.py

# Python compiles learnkit once here, and not in each of the parallel processes.
test: $(READY)  ## run the notebooks and the tests, but not what is slow: 6 minutes on two cores
	@$(PY) -m compileall -q -j 0 learnkit
	$(PY) $(TESTS) -m 'not slow'

test-slow: $(READY)  ## run the slow and exhaustive tests alone
	$(PY) $(TESTS) -m slow

test-all: test test-slow  ## run `make test`, then the slow and exhaustive tests, as continuous integration does: 20 minutes on two cores

device: $(READY)  ## train on a simulated accelerator, which finds races and counts each wait (it is compiled once: a minute), and on a GPU if there is one
	@include=$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
	if command -v "$${CXX:-c++}" >/dev/null && [ -f "$$include/Python.h" ]; then $(PY) -m pytest -q tests/device/on_device.py; \
	else echo "The simulated accelerator is left out: it needs a C++ compiler and Python's headers (on Debian and Ubuntu: g++ and python3-dev)."; fi
	@if $(PY) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
	export CUDA_VISIBLE_DEVICES=$${CUDA_VISIBLE_DEVICES:-0}; LEARNKIT_DEVICE=cuda $(PY) -m pytest -q tests/device/on_device.py && $(PY) -m pytest -q tests/device/on_gpu.py && \
	$(PY) -m pytest -q tests/parts/data/test_device.py tests/parts/optim/test_optimizer.py tests/parts/speed/test_fused.py -k cuda; \
	else echo 'The tests on a GPU are left out: PyTorch finds none.'; fi

MINUTES ?= 10
fuzz: $(READY)  ## hunt for faults at random: each program of tests/fuzz for MINUTES=10, with SEED=… again; a failure prints a script
	@failed=; for f in $$(ls tests/fuzz/*.py | grep -v /test_); do \
	  $(PY) $$f --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || failed="$$failed $$f"; done; \
	[ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

check: $(READY)  ## what to run before a commit, in half a minute: export, stubs, links, rules of the house, ruff
	.venv/bin/ruff check -q
	$(PY) -m pytest -q -p no:cacheprovider -m check tests/structure

lib: $(READY)  ## clean the notebooks and export them to learnkit/; write stubs, docstrings, and the READMEs with the loop
	.venv/bin/nbdev_clean
	.venv/bin/nbdev_export
	$(PY) nbs/_stubs.py
	@$(PY) nbs/_build.py build

run: $(READY)  ## run all notebooks in place, to refresh the outputs stored in them
	$(PY) nbs/_build.py run

readme: $(READY)  ## run nbs/index.ipynb and make README.md of it
	$(PY) nbs/_build.py readme

docs: $(READY)  ## build the documentation site, _docs/html/index.html: a minute
	$(PY) -m sphinx -M html nbs _docs -c nbs/_site -j auto -q --fresh-env --fail-on-warning --keep-going
	@echo 'The site is _docs/html/index.html'

dist: $(READY)  ## build sdist and wheel, install each in a fresh environment, and run the code of the README there
	@rm -rf dist; $(PY) -m build -q .
	@$(PY) nbs/_build.py script > dist/readme.py
	@for f in dist/*.whl dist/*.tar.gz; do echo "the README, run with $$f"; $(PY) -m venv --clear dist/venv \
	  && dist/venv/bin/python $(PIP) install -q "$$f[plot,sklearn]" -c $(PINS) \
	  && (cd dist && MPLBACKEND=Agg venv/bin/python readme.py) || exit 1; rm -rf dist/out dist/venv; done

# The first of two equal names wins: what .venv has, then what was pinned before (.venv does not have all extras).
# What only the CUDA build of PyTorch needs is left out: PyTorch pins it itself.
lock: $(READY)  ## write the versions that .venv has back to tests/constraints.txt
	$(PY) $(PIP) list --format=freeze --exclude-editable --exclude pip > $(READY).new
	sed 's/+.*//' $(READY).new | grep -vE '^(nvidia-|cuda-|triton=)' | cat - $(PINS) \
	  | awk -F== '!seen[tolower($$1)]++' | LC_ALL=C sort -f > $(READY).pins
	mv $(READY).pins $(PINS)
	@touch $(READY)

# In an environment of its own: what COMPAT names in the versions that it says, all else as pinned. nbdev needs fastcore 1,
# so the checks that export are skipped here; the notebooks and tests/ run all the same.
# fastprogress 1.1 brings a web framework of 24 packages, so learnkit requires an older one. `pip` reports that conflict here.
COMPAT ?= fastcore==2.2.39
BEYOND ?= fastprogress==1.1.6
OTHER  ?= .venv-compat
compat:  ## run the fast tests on other versions: COMPAT='name==version …' (fastcore 2 and fastprogress 1.1), PYTHON=…
	@echo "Setting up $(OTHER) with $(or $(COMPAT),the pinned versions) (a few minutes the first time) …"
	@$(OTHER)/bin/python -c '' 2>/dev/null || { $(find_python); "$$py" -m venv --clear $(OTHER); }
	@for p in $(COMPAT) $(BEYOND); do echo "^$${p%%[<>=]*}=="; done > $(OTHER)/free.txt; grep -viEf $(OTHER)/free.txt $(PINS) > $(OTHER)/pins.txt
	@$(OTHER)/bin/python $(PIP) install -q -U --use-pep517 -e '.[test]' $(COMPAT) -c $(OTHER)/pins.txt
	@$(if $(BEYOND),$(OTHER)/bin/python $(PIP) install -q $(BEYOND) -c $(OTHER)/pins.txt)
	LEARNKIT_COMPAT=1 $(OTHER)/bin/python $(TESTS) -m 'not slow'

LIBS   := torch fastcore fastprogress
OLDEST := $(foreach l,$(LIBS),$(l)==$(shell sed -nE 's/^requirements =.* $(l)>=([0-9.]+).*/\1/p' settings.ini))
matrix:  ## `make compat` on the oldest and the newest PyTorch and fastcore, and on each Python from 3.11 on that this machine has
	@failed=; all=$$(for v in 3.11 3.12 3.13 3.14 3.15; do \
	  for d in $$(echo "$$PATH" | tr : ' ') "$$HOME"/.pyenv/versions/$$v.*/bin; do \
	    [ ! -x $$d/python$$v ] || ! $$d/python$$v $(usable) || { echo $$d/python$$v; break; }; done; done); \
	try() { echo "== $$1, of $$2"; \
	  $(MAKE) --no-print-directory compat OTHER=.venv-$$1 PYTHON=$$2 COMPAT="$$3" BEYOND= || failed="$$failed $$1"; }; \
	try oldest $$(echo "$$all" | head -n 1) '$(OLDEST)'; try newest $$(echo "$$all" | tail -n 1) '$(LIBS)'; \
	for p in $$all; do try $$(basename $$p) $$p ''; done; \
	[ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

# Others' libraries come one by one, so that one which does not install here is left out. torchvision, which fastai brings
# along but is not needed for this, may be built for another PyTorch: then it would only keep the others from starting.
BENCH  := .venv-bench
bench:  ## measure speed: a hand-written loop, learnkit, and seven other libraries; an hour and a half on two cores. RUN=--quick is shorter
	@echo "Setting up $(BENCH) with the libraries of tests/bench/peers.txt (a few minutes the first time) …"
	@$(BENCH)/bin/python -c '' 2>/dev/null || { $(find_python); "$$py" -m venv --clear $(BENCH); }
	@grep -vE '^(fastcore|fastprogress)==' $(PINS) > $(BENCH)/pins.txt; grep '^fastcore==' tests/bench/peers.txt >> $(BENCH)/pins.txt
	@$(BENCH)/bin/python $(PIP) install -q --use-pep517 -e '.[plot,sklearn]' -c $(BENCH)/pins.txt
	@while read peer; do $(BENCH)/bin/python $(PIP) install -q "$$peer" -c $(BENCH)/pins.txt \
	  || echo "$$peer does not install here, so it does not take part"; done < tests/bench/peers.txt
	@$(BENCH)/bin/python -c 'import torchvision' 2>/dev/null || $(BENCH)/bin/python $(PIP) uninstall -q -y torchvision
	$(BENCH)/bin/python tests/bench/run.py --save $(RUN)

AGAINST ?= HEAD
slower: $(READY)  ## is this tree slower than the commit AGAINST=HEAD? Calls, instructions and times, as a table: a few minutes; RUN=--counts: ten seconds
	$(PY) tests/bench/slower.py $(AGAINST) $(RUN)

bench-gpu:  ## measure on a CUDA device: how often a step waits, idle time, throughput, memory, and steps beside other libraries
	$(MAKE) bench RUN='--rounds 7 syncs idle throughput device_forms device_memory device_peers'

# A .venv that was moved or copied with its folder still points to the old place: set it up anew.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# A package is compiled when it is first imported: half of 12,000 files never are, and pip would take a minute for all.
$(READY): $(PINS) settings.ini setup.py
	@echo "Setting up .venv from the pinned versions (once; a few minutes) …"
	@[ "$$(cat $@ 2>/dev/null)" = '$(CURDIR)' ] && $(PY) -c '' 2>/dev/null || { \
	  $(find_python); echo "  1. a virtual environment, of $$py"; "$$py" -m venv --clear .venv; }
	@echo "  2. PyTorch and the other packages (README: how to get the small PyTorch if this machine has no GPU)"
	@quiet=-q; [ ! -t 1 ] || quiet=; \
	  $(PY) $(PIP) install $$quiet --no-compile --use-pep517 -e '.[dev]' --config-settings editable_mode=compat -c $(PINS)
	@$(MAKE) --no-print-directory merging
	@echo '$(CURDIR)' > $@
	@echo "  .venv is ready"

# Git merges notebooks cell by cell, as .gitattributes says, with nbdev's driver: in this clone only. `compat` above puts the
# folder on the path in the old way, which editors and type checkers understand.
merging:
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
	  git config merge.nbdev-merge.name 'merge notebooks cell by cell'; \
	  git config merge.nbdev-merge.driver '$(CURDIR)/.venv/bin/nbdev_merge %O %A %B %P'; fi

# Sets $py: PYTHON if given, else the first on PATH that is new enough and can make a virtual environment.
usable      = -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
find_python = py='$(PYTHON)'; [ -n "$$py" ] || py=$$(IFS=:; for d in $$PATH; do \
  for n in python3 python3.14 python3.13 python3.12 python3.11 python; do \
    [ ! -x "$$d/$$n" ] || ! "$$d/$$n" $(usable) || { echo "$$d/$$n"; exit; }; done; done); \
  [ -n "$$py" ] && "$$py" $(usable) || { \
    echo "learnkit needs a Python 3.11 or newer that can make virtual environments.$${py:+ $$py is not one.}"; \
    echo "Install one (on Debian and Ubuntu: python3 and python3-venv), or say which: make PYTHON=/path/to/python3"; \
    exit 1; } >&2

.PHONY: help demo test test-slow test-all device fuzz check lib run readme docs dist bench slower bench-gpu lock compat matrix merging
