r"""One page about a fitted model and its table: the answer first, then how far to trust it.

    write_report(model, df, "report.html", effect=("dose", "days"))

The page is one HTML file that needs nothing else: no network, no scripts, pictures inside. The
same model, table and seed give the same bytes.
"""

from misscnf.report.page import write_report

__all__ = ["write_report"]
