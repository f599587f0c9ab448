"""The verbs of the command line, one file each: read the options, ask the model, print or write.

options, arguments, inputs      what people write, as what the model takes
outputs, endings                what they get back: tables and JSON, notes on the way, exit codes

A verb imports what it needs when it runs, so that `misscnf --help` waits for neither torch nor
pandas.
"""
