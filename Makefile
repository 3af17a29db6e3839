# Every target needs only Python 3.11+, make and sh. `make demo` and `make test` are the two commands of the README.
# Another interpreter: `make test PYTHON=python3.12`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := .venv-compiled
SOURCES := $(shell find src -name '*.py' 2>/dev/null)
NATIVE := $(wildcard src/pullback/native/*.[ch])
RENDERED := $(foreach folder,kernels formulas derivatives,$(wildcard src/pullback/$(folder)/*.py))
TYPED := src tools tests benchmarks
PIP = $$($(BIN)/python -c 'import pip; print("$(BIN)/python -m pip")' 2>/dev/null || echo "$(PYTHON) -m pip --python $(BIN)/python")
CHECK_VERSION = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "pullback needs Python 3.11 or newer; give one with: make PYTHON=python3.12"; exit 1; }

.PHONY: compiled-operations demo test test-browser test-compiled test-notebook check lint format types layers notes codegen conformance fuzz gpu-kernels parity test-gpu bench bench-quick bench-operations size clean

# Trains a small network on the data in examples/data and writes pictures to demo_output/. Nothing is compiled for it; the
# kernels that `make test` compiles are used where they are.
demo: $(VENV)/.numpy
	@PYTHONPATH=src $(BIN)/python examples/demo.py

test: $(VENV)/.developed
	$(BIN)/python -m pytest

# The pages that people open, in a real browser: Chromium and its driver (Debian: chromium, chromium-driver). They are part
# of `make test` where these are installed.
test-browser: $(VENV)/.developed
	@command -v chromedriver >/dev/null || { echo "chromedriver is missing (Debian: apt-get install chromium chromium-driver)"; exit 1; }
	$(BIN)/python -m pytest tests/browser

# A notebook in a real kernel, in an environment of its own.
test-notebook:
	$(PYTHON) -m venv build/notebook
	build/notebook/bin/python -m pip install --quiet numpy ml_dtypes nbclient nbformat ipykernel ipywidgets tqdm pytest hypothesis
	PYTHONPATH=src build/notebook/bin/python -m pytest tests/utils/test_notebook.py

# The same tests on compiled modules, in an environment of their own; needs a C compiler.
test-compiled: $(COMPILED)/.installed
	$(COMPILED)/bin/python -c 'import sys, pullback.backend.configuration as c; sys.exit(not c.compiled_modules())'
	$(COMPILED)/bin/python -m pytest tests --override-ini pythonpath=.

# Everything that must hold before a change is handed in.
check: $(VENV)/.typed
	$(BIN)/python -m tools.codegen --check
	$(BIN)/python -m tools.stubs --check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict $(TYPED)
	$(BIN)/python -m tools.check_layers
	$(BIN)/python -m tools.check_notes
	$(BIN)/python -m tools.check_tables
	$(BIN)/python -m tools.compatibility --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	$(BIN)/python -m pytest

lint: $(VENV)/.tools
	$(BIN)/ruff check .

format: $(VENV)/.tools
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/.tools
	$(BIN)/mypy --strict $(TYPED)

layers: $(VENV)/.tools
	$(BIN)/python -m tools.check_layers

notes: $(VENV)/.tools
	$(BIN)/python -m tools.check_notes

codegen: $(VENV)/.tools
	$(BIN)/python -m tools.codegen
	$(BIN)/python -m tools.stubs

# Both install PyTorch, which is large. The first compares every operation with PyTorch's and writes docs/operations.md
# (one operation or family: `.venv/bin/python -m tests.conformance --op add`); the second runs whole programs on both.
# `make conformance DEVICE=cuda PYTHON=python3` runs ours on a GPU, with the Python that has CuPy and PyTorch, and writes
# docs/operations_on_the_gpu.md.
ifdef DEVICE
conformance:
	PYTHONPATH=src:. PULLBACK_DEVICES=1 $(PYTHON) -m tests.conformance --device $(DEVICE) --processes 15
else
conformance: $(VENV)/.conformance
	$(BIN)/python -m tests.conformance
endif

# Random programs about views, in-place operations and gradients, beside PyTorch: `make fuzz PROGRAMS=20000 SEED=7`.
PROGRAMS ?= 1000
SEED ?= 0
fuzz: $(VENV)/.conformance
	$(BIN)/python -m tests.fuzz --seed $(SEED) --programs $(PROGRAMS)

# The kernels compiled with sanitizers of addresses and of undefined behaviour (gcc, Linux), in a folder of their own: their
# tests, and odd arguments for every one of them. `make sanitize CALLS=1000 SEED=7`: so many odd calls of each kernel.
CALLS ?= 200
SANITIZED := build/sanitize
sanitize: $(VENV)/.developed
	PULLBACK_SANITIZE=1 PULLBACK_COMPILE=kernels $(BIN)/python setup.py -q build --build-base $(SANITIZED)/made --build-lib $(SANITIZED)/lib
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" PYTHONPATH=$(SANITIZED)/lib:. \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1000 PYTHONMALLOC=malloc \
	UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 $(BIN)/python -m tests.sanitizing --seed $(SEED) --calls $(CALLS)

# Changed and malicious files of every kind that can be loaded: `make fuzz-files FILES=20000 SEED=7`, so many of each kind.
FILES ?= 1000
fuzz-files: $(VENV)/.developed
	$(BIN)/python -m tests.file_fuzz --seed $(SEED) --files $(FILES)

# Random functions inside of compile, beside eager execution: `make fuzz-compile PROGRAMS=20000 SEED=7`.
fuzz-compile: $(VENV)/.developed
	$(BIN)/python -m tests.compiling.programs --seed $(SEED) --programs $(PROGRAMS)
	$(BIN)/python -m tests.compiling.random_functions --seed $(SEED) --programs $(PROGRAMS)

# Ctrl-C and memory that runs out, at every place of the public entry points: what is left behind. `make faults EVERY=5`:
# at every fifth place.
EVERY ?= 1
faults: $(VENV)/.developed
	$(BIN)/python -m tests.faults --every $(EVERY)

# Every example with its training step and its functions compiled, beside the example as it stands.
compiled-examples: $(VENV)/.developed
	$(BIN)/python -m tests.compiling.examples

# The programs of tests/parity, every layer, optimizer and transform, with compiled steps, beside eager execution; needs PyTorch.
compiled-parity: $(VENV)/.developed
	$(BIN)/python -m tests.compiling.parity_programs

# Every operation's samples inside of a compiled function, beside eager execution.
compiled-operations: $(VENV)/.developed
	$(BIN)/python -m tests.compiling.operations

# The GPU's own kernels on the CPU, each in two dtypes, alone and together with others, and where nvcc is installed the text
# of all of them compiled for sm_80 and sm_90; `make test` runs a choice of them. No GPU is needed.
gpu-kernels: $(VENV)/.developed
	PULLBACK_GPU_KERNELS=all $(BIN)/python -m pytest tests/devices/test_cuda_kernels.py tests/devices/test_several_gpus.py

# On a machine with an NVIDIA GPU, with the Python that has CuPy: `make test-gpu PYTHON=python3`. The results are in docs/gpu.md.
test-gpu:
	PYTHONPATH=src:. PULLBACK_DEVICES=1 $(PYTHON) -m pytest tests/gpu tests/devices/stand_in/test_parallel.py
	PYTHONPATH=src:. PULLBACK_DEVICES=1 $(PYTHON) -m benchmarks.gpu

parity: $(VENV)/.conformance
	$(BIN)/python -m pytest tests/parity

# Both compare what `pip install .` gives with PyTorch, which they install. The first takes a quarter of an hour and writes
# docs/performance.md; the second takes under three minutes. One workload: `.venv/bin/python -m benchmarks --only LeNet`.
bench: $(VENV)/.conformance $(COMPILED)/.installed
	$(BIN)/python -m benchmarks --python $(COMPILED)/bin/python --threads 1 2 --json docs/performance.json --write

bench-quick: $(VENV)/.conformance $(COMPILED)/.installed
	$(BIN)/python -m benchmarks --python $(COMPILED)/bin/python --quick

# One operation at a time, both in one process: what is installed in the compiled environment comes first on the path.
bench-operations: $(VENV)/.conformance $(COMPILED)/.installed
	PYTHONPATH=$$($(COMPILED)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") \
	$(BIN)/python -m benchmarks.operations --write docs/operation_times.md

# A million small steps, graphs of ten million nodes (up to 7 GB) and the bytes of a node beside PyTorch's: ten minutes. Linux.
.PHONY: memory
memory: $(VENV)/.conformance
	$(BIN)/python -m benchmarks.memory_over_time --write

.PHONY: coverage wheel-pure sdist docs faults fuzz-files fuzz-compile compiled-examples compiled-parity sanitize
# The documentation as a site in build/site; what a page links to must be there.
docs: $(VENV)/.developed
	PULLBACK_COMPILE=0 $(PIP) install --quiet --no-build-isolation --editable '.[docs]'
	$(BIN)/python -m mkdocs build --strict

# Which statements the tests run; takes twice the time of the tests.
coverage: $(VENV)/.developed
	$(PIP) install --quiet 'coverage>=7'
	$(BIN)/python -m coverage run -m pytest -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover | tail -40

# What a release consists of besides the wheels that cibuildwheel makes: the pure wheel and the source archive, in dist/.
wheel-pure: $(VENV)/.numpy
	PULLBACK_COMPILE=0 $(PIP) wheel --quiet --no-deps --wheel-dir dist .

# A page that trains a network in the browser, in build/browser; PYODIDE=FOLDER copies the runtime into it.
.PHONY: browser
browser: wheel-pure
	$(BIN)/python -m tools.browser_page build/browser dist/pullback-*-py3-none-any.whl $(PYODIDE)

sdist: $(VENV)/.numpy
	$(PIP) install --quiet build
	$(BIN)/python -m build --sdist --outdir dist .

size: $(VENV)/.tools
	$(BIN)/python -m tools.size_report

clean:
	rm -rf $(VENV) $(COMPILED) build dist src/*.egg-info demo_output .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: each says that the environment holds what its name says, so that a second run starts at once.
# All that the demo needs, by the pip of PYTHON where it has one (PIP above): to make one for the environment takes longer
# than the rest.
$(VENV)/.numpy:
	@$(CHECK_VERSION)
	@echo "Making the environment $(VENV) with NumPy, the one thing that pullback needs ..."
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --no-compile --disable-pip-version-check 'numpy>=2' 2>/dev/null || \
	  { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check 'numpy>=2'; }
	@touch $@

$(COMPILED)/.installed: pyproject.toml setup.py tools/native_sources.py tools/native_accesses.py tools/native_access.pxd $(NATIVE) $(SOURCES)
	$(PYTHON) -m venv $(COMPILED)
	$(COMPILED)/bin/python -m pip install --quiet '.[dev]'
	touch $@

$(VENV)/.tools: $(VENV)/.numpy pyproject.toml setup.py
	@echo "Installing the tools of development ..."
	@$(PIP) install --quiet --no-compile 'setuptools>=77'
	@PULLBACK_COMPILE=0 $(PIP) install --quiet --no-compile --no-build-isolation --editable '.[dev]'
	@touch $@

# The kernels are compiled in little time, for tests, and those files alone that changed. `PULLBACK_COMPILE=kernels make ...`
# compiles them for speed. Much of their C is rendered from Python text.
$(VENV)/.developed: $(VENV)/.tools $(NATIVE) $(RENDERED)
	@echo "Compiling the kernels for this machine ..."
	@PULLBACK_COMPILE=$${PULLBACK_COMPILE:-quick} $(BIN)/python setup.py -q build_ext --inplace
	@touch $@

# What `make check` needs besides: a second type checker, which the tests of the stubs use, and the tools of the site.
$(VENV)/.typed: $(VENV)/.developed
	PULLBACK_COMPILE=0 $(PIP) install --quiet --no-build-isolation --editable '.[types,docs]'
	touch $@

$(VENV)/.conformance: $(VENV)/.developed
	PULLBACK_COMPILE=0 $(PIP) install --quiet --no-build-isolation --editable '.[conformance]'
	touch $@
