"""`python -m misscnf`: the command line, where its script is not on the path."""

from misscnf.cli.app import app

__all__ = ["app"]

if __name__ == "__main__":
    app(prog_name="misscnf")
