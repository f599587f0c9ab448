r"""One page about a fitted model and its table: the answer first, then how far to trust it.

    write_report(model, df, "report.html", effect=("dose", "days"))

The page is one HTML file that needs nothing else: no network, no scripts, pictures inside. The
same model, table and seed give the same bytes.

page, settings             the sections, put into page.html, and every number that shapes them
effects, words             what is asked of the model, and the answer in words
verdicts, model_checks     how far to trust it; the checks that the rows themselves can make
pictures                   what is drawn, by `misscnf.plots`
inventory                  what was dropped or inferred, and how to do it again
"""

from misscnf.report.page import write_report

__all__ = ["write_report"]
