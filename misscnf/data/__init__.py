"""Tables with holes: from a file to the model's numbers, and back to the user's cells.

table           a typed table with holes, standardised and back; its schema
files           tables as files, read and written whole
kinds           what kind each column is, and why; kind_requests, what people ask for
codecs          the codec of each kind of column; scales, the links of continuous ones
domains         what the values of a node can be, as mechanisms see them
cells, dtypes   single values, and the dtypes that they come in; arrays, tables without names
nhefs           a real table with a published answer
"""
