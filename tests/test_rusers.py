"""The page for users of R runs as it is printed: `make neighbours`, wherever R is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs" / "howto"
PACKAGES = ("jsonlite", "mice", "reticulate")


def blocks(name):
    """Returns the R of a page."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return re.findall(r"^```r\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def rscript(code, folder, **about):
    """Runs R in a folder, with the Python and the command of this environment."""
    (folder / "page.R").write_text(code, encoding="utf-8")
    scripts = Path(sys.executable).parent
    home = subprocess.run(["R", "RHOME"], capture_output=True, text=True, check=True).stdout
    libraries = [sysconfig.get_config_var("LIBDIR") or "", f"{home.strip()}/lib"]
    environment = {
        **os.environ,
        "R_LD_LIBRARY_PATH": os.pathsep.join(libraries),  # R puts the system's Python first
        "RETICULATE_PYTHON": sys.executable,
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(DOCS.parents[1]), *sys.path])),
    }
    command = [shutil.which("Rscript"), "--vanilla", "page.R"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, **about
    )


def require(folder):
    if not os.environ.get("NEIGHBOURS"):
        pytest.skip("`make neighbours` runs it: R starts Python and the command several times")
    if shutil.which("Rscript") is None:
        pytest.skip(
            "R is not installed: apt-get install r-base-core r-cran-mice r-cran-reticulate"
        )
    code = f"stopifnot(sapply(c{PACKAGES}, requireNamespace, quietly = TRUE))"
    if rscript(code, folder).returncode:
        pytest.skip(f"R lacks one of {', '.join(PACKAGES)}: apt-get install r-cran-…")


@pytest.mark.slow
def test_the_page_runs_as_it_is_printed(tmp_path):
    """And what reticulate makes of a whole number's NA is refused, while the page's way is not."""
    require(tmp_path)
    code = blocks("rusers.md")
    assert len(code) == 5
    closing = """
        stopifnot(abs(answer$estimate + 2) < 0.3, length(answer$interval) == 2)
        stopifnot(abs(pooled$estimate[2] + 2) < 0.3, nrow(pooled) == 3)
        stopifnot(is.data.frame(as_r(effect$to_frame())))

        table <- data.frame(dose = rep(c(0:9, NA), 20), days = rnorm(220))
        said <- tryCatch(misscnf$check(table, "dose -> days"), error = conditionMessage)
        stopifnot(grepl("NA of R's whole numbers", said))
        table[] <- lapply(table, keep_holes)
        stopifnot(misscnf$check(table, "dose -> days")$rows == 220L)
    """
    done = rscript("\n".join([*code, closing]), tmp_path, timeout=500)
    assert done.returncode == 0, done.stderr
