// Builds the page into the Python package: one script, one style, one document, nothing fetched.
import { build } from "esbuild";
import { cp } from "node:fs/promises";

const out = new URL("../misscnf/studio/static/", import.meta.url).pathname;
await build({
  entryPoints: ["src/main.tsx"],
  outfile: `${out}app.js`,
  bundle: true,
  minify: true,
  target: "es2022",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
  logLevel: "warning",
});
for (const name of ["index.html", "style.css"]) await cp(`src/${name}`, `${out}${name}`);
