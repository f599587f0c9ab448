"""What the holes of a table leave identified, before any fit: `check` makes a `Report`.

checking, settings      the check itself, and every number that shapes it
columns, families       what is there: columns, patterns of holes, families and who needs them
scan, regions           where families are not seen: along a column, and of two together
projection, identify, proxies, hidden    whether an effect is identified beside hidden causes
loss, little            how values are lost, and whether they exist at all
independences           the graph against the rows
unlikely                values that no law of their column makes likely
report, words, pictures    how it is told: tables, sentences, a figure
over_time               the same of a table over time, by the families of its template
"""

from misscnf.identification.checking import check, denied_by_rows
from misscnf.identification.families import uncovered_families, warning_sentence
from misscnf.identification.over_time import PanelReport
from misscnf.identification.report import Report
from misscnf.identification.unlikely import Unlikely, unlikely_values

__all__ = ["check", "denied_by_rows", "Report", "uncovered_families", "warning_sentence"]
__all__ += ["Unlikely", "unlikely_values", "PanelReport"]
