"""Tables with holes: from a file to the model's numbers, and back to the user's cells.

table           a typed table with holes, standardised and back; its schema
files           tables as files, read and written whole
model_file      what the JSON of a saved model says, before torch is imported
column_names    which column is which: names for arrays, columns for nodes
cells, dtypes   single cells, and the dtypes that they come in and go back to
kinds           what kind each column is, asked for or inferred, and why
codecs          the codec of each kind of column; scales, the links of continuous ones
domains         what the values of a node can be, as mechanisms see them
nhefs           a real table with a published answer
"""
