r"""The studio: a table, a graph drawn by hand and what the holes leave identified, in a browser.

`misscnf studio` serves one page to its own machine. Whoever draws a graph sees beside it what
`check` says of it; a fit, a question, the report and the code that gives the same number again
follow in the same window.

    page  ⇄  server  ⇄  workers
              │
              project: a folder, of which every file is written whole or not at all

The server itself only passes on (`server`), guards the door (`guard`) and keeps the project
(`project`). All that takes long or can crash is done by processes of their own (`workers`), which
know the verbs of the page (`tasks`) and ask the public face of misscnf alone. What the page draws
is data, read and checked in one place (`drawing`); it is never run.

The page is written in TypeScript under studio/ in the repository; `make studio` builds it into
static/.
"""
