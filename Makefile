# Every target sets up what it needs; PYTHON=/path/to/python3.12 picks the interpreter.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check docs clean
export PYTHON

REPORT ?= report.html

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile | expand -t 16

setup: ## Make .venv with all packages, versions and hashes pinned
	@scripts/setup

demo: setup ## Which GPU for ResNet-50 on ImageNet? Table here, page in report.html
	@.venv/bin/tfdyno advise keras:ResNet50 --batch-size 64 --precision mixed_float16 \
		--epochs 90 --samples 1281167 --html $(REPORT)
	@echo "Page: file://$(abspath $(REPORT))"

test: setup ## Run the tests, of the long ones those that a change touches (15 minutes on 2 cores)
	@scripts/test

test-all: setup ## Run all tests (over an hour on 2 cores)
	@scripts/test --all

check: setup ## Format, lint, types, import order, generated files
	@scripts/check

docs: setup ## Build the documentation into site/
	@scripts/docs

clean: ## Remove .venv, caches and everything built
	@rm -rf .venv .venv-serving build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@rm -rf src/*.egg-info report.html .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
