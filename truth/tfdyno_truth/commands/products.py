"""``tfdyno-truth products``."""

from __future__ import annotations

import click

from tfdyno.catalog.tables import DATA
from tfdyno.catalog.time_model import PRODUCTS_FILE, product_rates
from tfdyno.core.base.codec import write_atomic
from tfdyno_truth import product_report
from tfdyno_truth.cells import share
from tfdyno_truth.products import all_products, shipped_errors
from tfdyno_truth.run import ROOT
from tfdyno_truth.sections import markdown

PAGE = ROOT / "docs" / "accuracy-products.md"
HEAD = """\
# Accuracy of single kernels

Written by `tfdyno-truth products --write`; do not edit.
"""
MOST = 0.08
"""Median error of 16-bit products that every measured card has to stay below."""


@click.command()
@click.option("--check", is_flag=True, help="Only score the shipped constants; fit nothing.")
@click.option("--write", is_flag=True, help="Write the constants and the page.")
def products(check: bool, write: bool) -> int:
    """Refit what matrix products and fused attention reach on each kind of card, and score it.

    Exit code 1 where a card's median error in 16 bits is above 8 %; nothing is written then.
    """
    rates = product_rates()
    if check:
        medians = {slug: one.median for slug, one in shipped_errors(rates).items()}
    else:
        found = all_products(rates)
        medians = {slug: one.median for slug, one in found.half.held_out.items()}
    worse = {slug: median for slug, median in medians.items() if median > MOST}
    if check:
        for slug, median in medians.items():
            click.echo(f"{slug}: median error {share(median)}")
    else:
        told = "\n\n".join(markdown(section) for section in product_report.sections(found))
        click.echo(told)
        if write and not worse:
            text = product_report.text_of(rates, product_report.rows_of(found))
            write_atomic(DATA / PRODUCTS_FILE, text.encode())
            write_atomic(PAGE, f"{HEAD}\n{told}\n".encode())
    for slug, median in worse.items():
        click.echo(f"Above {share(MOST)}: {slug} {share(median)}", err=True)
    return 1 if worse else 0
