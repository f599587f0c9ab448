"""What the holes of a table leave identified, before any fit: `check` makes a `Report`.

columns, patterns, families      what is there
chance, scan, regions, corners, covering      where families are not seen
loss, little, structural_holes      how values are lost
independences, consequences      the graph, and what leans on it
words, tables, curves, pictures, summary, report      how it is told
"""

from misscnf.identification.checking import check
from misscnf.identification.families import uncovered_families, warning_sentence
from misscnf.identification.report import Report

__all__ = ["check", "Report", "uncovered_families", "warning_sentence"]
