// @vitest-environment happy-dom
// Names of the table are text on the page, whatever they hold.

import { render } from "preact";
import { beforeEach, expect, it, vi } from "vitest";
import { addNode, EMPTY } from "../src/drawing";
import { begin } from "../src/history";
import { GraphView } from "../src/graphview";
import { store } from "../src/store";
import { TableView } from "../src/tableview";
import type { Table } from "../src/types";

const BAD = '<img src=x onerror="window.hurt = true">';

beforeEach(() => {
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no server here")));
  document.body.innerHTML = "<div id='here'></div>";
  const table = {
    name: BAD,
    path: BAD,
    rows: 2,
    complete: 1,
    holes: 1,
    columns: [{ name: BAD, holes: 1, levels: [[BAD, 1]], bars: null }],
    patterns: { count: 1, shown: [{ shows: [true], rows: 2 }] },
    first: [[BAD], [null]],
  } as unknown as Table;
  const kinds = [{ column: BAD, kind: BAD, levels: BAD, holes: 1, why: BAD, offer: BAD }];
  store.set({ table, kinds, history: begin(addNode(EMPTY, { name: BAD })), selected: [BAD] });
});

it.each([["the table", TableView], ["the graph", GraphView]])("in %s", (_, View) => {
  const here = document.getElementById("here")!;
  render(<View />, here);
  expect(here.textContent).toContain(BAD);
  expect(here.querySelector("img")).toBeNull();
});
