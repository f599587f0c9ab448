// The table: what each column is taken for and why, what it looks like, where the holes are.

import { useState } from "preact/hooks";
import { Bars } from "./charts";
import { store, useStore } from "./store";
import type { Table } from "./types";

const KINDS = [
  "binary",
  "ordinal",
  "categorical",
  "count",
  "continuous",
  "positive",
  "proportion",
  "semicontinuous",
  "heavy-tailed",
];

/** Kinds that there are over time only. */
const OVER_TIME = ["event"];

export function TableView() {
  const { table } = useStore();
  return table ? <Shown table={table} /> : <Welcome />;
}

function Welcome() {
  const { busy } = useStore();
  const [over, setOver] = useState(false);
  return (
    <section class="welcome">
      <h1>A table, a graph, a question</h1>
      <p class="lead">
        Draw what causes what, see at once what the holes of your table leave identified, and ask. Everything stays on
        this machine.
      </p>
      <div
        class={over ? "dropzone over" : "dropzone"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => {
          setOver(false);
        }}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          const file = event.dataTransfer?.files[0];
          if (file) void store.drop(file);
        }}
      >
        <p><strong>Drop a table here</strong></p>
        <p class="quiet">CSV, TSV, Parquet, Stata, SPSS or SAS; empty cells are holes</p>
        <Choose words="Choose a file" />
      </div>
      <p>
        No table at hand?{" "}
        <button class="link" disabled={!!busy} onClick={() => void store.example()}>
          Open the guided example
        </button>
        : does quitting smoking make people gain weight? It takes two minutes.
      </p>
      {busy && <p role="status">{busy}…</p>}
    </section>
  );
}

export function Choose({ words }: { words: string }) {
  return (
    <label class="button file">
      {words}
      <input
        type="file"
        accept=".csv,.tsv,.gz,.parquet,.dta,.sav,.sas7bdat,.xpt"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) void store.drop(file);
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}

function share(part: number, whole: number): string {
  if (!part) return "none";
  const percent = (100 * part) / whole;
  return percent < 1 ? "below 1 %" : `${percent.toFixed(0)} %`;
}

function Shown({ table }: { table: Table }) {
  const { kinds, history, busy } = useStore();
  const cells = table.rows * table.columns.length;
  const drawn = new Set(history.now.nodes.map((node) => node.name));
  return (
    <section class="page wide">
      <div class="head">
        <div>
          <h1>{table.name}</h1>
          <p class="quiet">
            {table.rows.toLocaleString("en")} rows, {table.columns.length} columns; {share(table.holes, cells)} of the cells
            are holes, {table.complete.toLocaleString("en")} rows are complete
          </p>
        </div>
        <div class="actions">
          <Choose words="Another table" />
          <button class="primary" onClick={() => { store.go("graph"); }}>
            Draw the graph
          </button>
        </div>
      </div>
      <div class="scroll">
        <table class="columns">
          <thead>
            <tr>
              <th scope="col">Column</th>
              <th scope="col">Looks like</th>
              <th scope="col">Holes</th>
              <th scope="col">Taken as</th>
              <th scope="col">Because</th>
            </tr>
          </thead>
          <tbody>
            {table.columns.map((column) => {
              const kind = kinds?.find((one) => one.column === column.name);
              const asked = history.now.kinds[column.name];
              return (
                <tr key={column.name}>
                  <th scope="row">
                    {column.name}
                    {drawn.has(column.name) && <span class="dot" title="in the graph" />}
                  </th>
                  <td><Bars column={column} /></td>
                  <td class={column.holes ? "flag" : "quiet"}>{share(column.holes, table.rows)}</td>
                  <td>
                    <select
                      aria-label={`kind of ${column.name}`}
                      disabled={!kinds}
                      value={typeof asked === "string" ? asked : ""}
                      onChange={(event) => void store.setKind(column.name, event.currentTarget.value || null)}
                    >
                      <option value="">{kind ? (typeof asked === "string" ? "as inferred" : kind.kind) : "…"}</option>
                      {[...KINDS, ...(history.now.panel ? OVER_TIME : [])].map((name) => <option key={name} value={name}>{name}</option>)}
                    </select>
                  </td>
                  <td class="why">
                    {kind ? kind.why : busy ? "being read…" : ""}
                    {kind?.levels && <span class="quiet"> ({kind.levels})</span>}
                    {kind?.offer && <div class="quiet">{kind.offer}</div>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <Panel table={table} />
      <h2>Which rows show what</h2>
      <Patterns table={table} />
      <h2>The first rows</h2>
      <div class="scroll">
        <table class="cells">
          <thead>
            <tr>{table.columns.map((column) => <th scope="col" key={column.name}>{column.name}</th>)}</tr>
          </thead>
          <tbody>
            {table.first.slice(0, 12).map((row, i) => (
              <tr key={i}>
                {row.map((cell, j) => (cell === null ? <td key={j} class="hole" aria-label="hole" /> : <td key={j}>{cell}</td>))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Whether the table has a row a person and visit, and which columns say so. */
function Panel({ table }: { table: Table }) {
  const { history: { now } } = useStore();
  const [who, when] = now.panel ?? ["", ""];
  const [chosen, choose] = useState<[string, string]>([who, when]);
  const set = (pair: [string, string]) => {
    choose(pair);
    const both = pair[0] && pair[1] && pair[0] !== pair[1];
    if (both) store.draw({ ...now, panel: pair });
    else if (now.panel) store.draw({ ...now, panel: null });
  };
  return (
    <details open={!!now.panel}>
      <summary>Is it a row a person and visit?</summary>
      <p class="quiet">
        Then say which columns hold who and when. The graph is drawn for one visit: L[t] is a column now, L[t-1] at the visit
        before.
      </p>
      <div class="row">
        {(["who", "when"] as const).map((part, i) => (
          <label class="field" key={part}>{part}
            <select value={chosen[i]} onChange={(e) => { set(i === 0 ? [e.currentTarget.value, chosen[1]] : [chosen[0], e.currentTarget.value]); }}>
              <option value="">a row a person</option>
              {table.columns.map((column) => <option key={column.name} value={column.name}>{column.name}</option>)}
            </select>
          </label>
        ))}
      </div>
    </details>
  );
}

function Patterns({ table }: { table: Table }) {
  const { shown, count } = table.patterns;
  return (
    <>
      <p class="quiet">
        {count === 1 ? "All rows show the same columns." : `${String(count)} patterns of holes; the frequent ones, a line each.`}
      </p>
      <div class="scroll">
        <table class="patterns">
          <thead>
            <tr>
              <th scope="col">Rows</th>
              {table.columns.map((column) => <th scope="col" key={column.name}><span>{column.name}</span></th>)}
            </tr>
          </thead>
          <tbody>
            {shown.map((pattern, i) => (
              <tr key={i}>
                <th scope="row">{pattern.rows.toLocaleString("en")}</th>
                {pattern.shows.map((there, j) => (
                  <td key={j} class={there ? "seen" : "hole"} aria-label={there ? "seen" : "hole"} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
