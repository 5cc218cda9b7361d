# Recipes run the programs of the environment that `just setup` makes; without `just`: .venv/bin/just.

# List the recipes.
default:
    @{{ just_executable() }} --list --unsorted

# Make .venv and install the package with all that tests and checks need.
setup:
    python3 -m venv .venv && .venv/bin/pip install -e '.[dev]'

# Regenerate the migrations of every target of this repository.
build:
    .venv/bin/python build.py

# Prove the migrations again, on every PostgreSQL that this machine has.
check:
    .venv/bin/pgsluice check

# Style and types of the Python code; style, safety and hazards of the SQL.
lint:
    .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/pgsluice lint

# Format Python and SQL, and mend what can be mended.
fmt:
    .venv/bin/ruff format . && .venv/bin/ruff check --fix . && .venv/bin/pgsluice lint --fix

# Are checksums and migrations those of the last proved build? Needs no database.
verify:
    .venv/bin/pgsluice verify

# Run the tests; arguments go to pytest.
test *arguments:
    .venv/bin/python -m pytest {{ arguments }}

# Measure the pipeline beside other tools, and pgflow's SQL beside PGMQ alone.
bench:
    .venv/bin/python benchmarks/pipeline.py && .venv/bin/python benchmarks/flow_sql.py

# pgflow for longer than `test` takes: a minute of everything at once, a million finished tasks, a thousand flows.
soak:
    PGFLOW_SOAK_S=60 PGFLOW_FINISHED_TASKS=1000000 PGFLOW_EXAMPLES=1000 .venv/bin/python -m pytest -n0 \
      tests/sql/pgflow/test_soak.py tests/sql/pgflow/test_cost.py tests/sql/pgflow/test_random_flows.py

# A schema, an edit, the migration it becomes, applied.
demo:
    .venv/bin/pgsluice demo

# Rewrite the golden files from what the code prints now; review that diff.
accept:
    .venv/bin/python -m pytest --accept

# Rewrite the pages that come from the commands' own help and from pgflow's catalog.
docs:
    .venv/bin/python -m pytest --accept tests/test_docs.py tests/sql/pgflow/test_reference.py
