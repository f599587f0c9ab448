// The graph as text: what other tools write is read, and back.

import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "./api";
import { isUnplaced, layered } from "./layout";
import { store, useStore } from "./store";
import type { Drawing } from "./types";

const FORMS = [
  ["dot", "DOT"],
  ["dagitty", "dagitty"],
  ["text", "plain text"],
  ["json", "JSON"],
] as const;

/** Draws what a text says; places stay where nothing is new. */
export async function readText(text: string): Promise<void> {
  const now = store.drawing;
  const parts = await send<Pick<Drawing, "nodes" | "edges" | "blocks">>("/api/read", { text });
  const kept = new Map(now.nodes.map((node) => [node.name, node]));
  const nodes = parts.nodes.map((node) => ({ ...node, x: kept.get(node.name)?.x ?? 0, y: kept.get(node.name)?.y ?? 0 }));
  const names = new Set(nodes.map((node) => node.name));
  const effect = now.effect && names.has(now.effect[0]) && names.has(now.effect[1]) ? now.effect : null;
  const auxiliary = now.auxiliary.filter((name) => !names.has(name));
  const next = { ...now, ...parts, nodes, effect, auxiliary };
  const before = new Set(now.edges.map((edge) => JSON.stringify(edge)));
  const same = nodes.every((node) => kept.has(node.name)) && parts.edges.every((edge) => before.has(JSON.stringify(edge)));
  store.draw(same && !isUnplaced(next) ? next : layered(next));
}

export function Exchange({ close }: { close: () => void }) {
  const { history: { now } } = useStore();
  const [text, setText] = useState("");
  const [said, setSaid] = useState<string | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { dialog.current?.showModal(); }, []);

  const write = async (form: string) => {
    try {
      setText((await send<{ text: string }>("/api/write", { drawing: now, form })).text);
      setSaid(null);
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const read = async () => {
    try {
      await readText(text);
      dialog.current?.close();
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <dialog ref={dialog} onClose={close} class="exchange" aria-label="Import and export">
      <h2>The graph as text</h2>
      <p class="quiet">
        Paste what you have: arrows such as <code>age -&gt; dose; dose -&gt; days</code>, DOT, dagitty, lavaan, GML, JSON; or
        open a file. It takes the place of what is drawn; undo brings that back.
      </p>
      <textarea aria-label="text of the graph" rows={12} spellcheck={false} value={text} onInput={(event) => { setText(event.currentTarget.value); }} />
      {said && <p role="alert" class="flag">{said}</p>}
      <div class="row">
        <button class="primary" disabled={!text.trim()} onClick={() => void read()}>Draw this</button>
        <label class="button file">
          Open a file
          <input
            type="file"
            accept=".dot,.gv,.gml,.json,.csv,.txt,.lav"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file) void file.text().then(setText);
            }}
          />
        </label>
        <span class="gap" />
        <span class="quiet">Export as</span>
        {FORMS.map(([form, words]) => <button key={form} onClick={() => void write(form)}>{words}</button>)}
        <button onClick={() => dialog.current?.close()}>Close</button>
      </div>
    </dialog>
  );
}
