"""`python -m misscnf`: the command line, where its script is not on the path."""

from misscnf.cli import app

__all__ = ["app"]

if __name__ == "__main__":
    app(prog_name="misscnf")
