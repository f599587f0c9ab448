// Report, code and project.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Progress } from "./fitview";
import { Choose } from "./tableview";
import { shellWord } from "./question";
import { store, useStore } from "./store";

export function ReportView() {
  const { project, job, history: { now } } = useStore();
  const running = job?.state === "running";
  const ready = !!project?.model;
  return (
    <section class="page">
      <h1>Report</h1>
      <p>
        One page with the answer and how far to trust it: what identifies it, what the holes do to it, how the model fits,
        what it is against plain estimates. It needs nothing else and can be sent to others.
      </p>
      <p class="quiet">
        {now.effect ? `It opens with the effect ${now.effect[0]} → ${now.effect[1]}.` : "Mark a treatment and an outcome in the graph, and it opens with their effect."}
      </p>
      <div class="row">
        <button class="primary" disabled={running || !ready} onClick={() => void store.job("report")}>
          {project?.report ? "Write it anew" : "Write the report"}
        </button>
        {project?.report && <a class="button" href="/report.html" target="_blank" rel="noopener">Open the report</a>}
        {!ready && <span class="quiet">A fit comes first.</span>}
      </div>
      <Progress task="report" />
    </section>
  );
}

export function CodeView() {
  const { project } = useStore();
  const [code, setCode] = useState<{ python: string; shell: string } | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    store.settled()
      .then(() => get<{ python: string; shell: string }>("/api/code"))
      .then((found) => { setCode(found); setSaid(null); })
      .catch((error: unknown) => { setSaid(error instanceof Error ? error.message : String(error)); });
  }, [project?.answers, project?.model, project?.report, project?.revision]);
  return (
    <section class="page">
      <h1>Code</h1>
      <p>The same again, without this page: the same table, graph, kinds and seed give the same numbers.</p>
      {said && <p class="quiet">{said}</p>}
      {code && (
        <>
          <Listing title="Python" text={code.python} name="analysis.py" />
          <Listing title="Command line" text={code.shell} name="analysis.sh" />
          <p class="quiet">The commands are meant for the folder of the project, where graph.dot and kinds.json of the last fit are.</p>
        </>
      )}
    </section>
  );
}

function Listing({ title, text, name }: { title: string; text: string; name: string }) {
  const [done, setDone] = useState(false);
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <div class="row">
        <h2>{title}</h2>
        <span class="gap" />
        <button
          onClick={() => {
            void navigator.clipboard.writeText(text).then(() => { setDone(true); setTimeout(() => { setDone(false); }, 1500); });
          }}
        >
          {done ? "Copied" : "Copy"}
        </button>
        <button onClick={save}>Save</button>
      </div>
      <pre data-code={title}>{text}</pre>
    </>
  );
}

/** The projects beside this one, and a new one. */
function Others() {
  const { project, job } = useStore();
  const [others, setOthers] = useState<string[]>([]);
  const [name, setName] = useState("");
  useEffect(() => { get<string[]>("/api/projects").then(setOthers).catch(() => { setOthers([]); }); }, [project?.folder]);
  const running = job?.state === "running";
  return (
    <>
      <h2>Other projects</h2>
      <p class="quiet">Those in the same folder as this one. This one stays as it is.</p>
      {others.length > 0 && (
        <ul class="others">
          {others.map((one) => <li key={one}><button disabled={running} onClick={() => void store.open(one, false)}>Open {one}</button></li>)}
        </ul>
      )}
      <form class="row" onSubmit={(event) => { event.preventDefault(); void store.open(name.trim(), true); }}>
        <label class="field">A new project
          <input required placeholder="its name" value={name} onInput={(event) => { setName(event.currentTarget.value); }} />
        </label>
        <button type="submit" disabled={running || !name.trim()}>Begin it</button>
        {running && <span class="quiet">A job is under way; it ends first.</span>}
      </form>
    </>
  );
}

export function ProjectView() {
  const { project } = useStore();
  if (!project) return null;
  const parts: [string, string][] = [
    ["Folder", project.folder],
    ["Table", project.table ? project.table.path : "none yet"],
    ["Graph", `${String(project.drawing.nodes.length)} nodes, ${String(project.drawing.edges.length)} arrows`],
    ["Model", project.model ? `${project.model.folder}, preset ${project.model.drawing.preset}` : "none yet"],
    ["Answers", String(project.answers.length)],
    ["Report", project.report ? "report.html" : "none yet"],
  ];
  return (
    <section class="page">
      <h1>Project</h1>
      <p>Everything is kept as you go, in one folder of this machine. Close the page or stop the studio when you like; the same command opens it again.</p>
      <dl class="facts">
        {parts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <pre>misscnf studio --project {shellWord(project.folder)}</pre>
      <Others />
      <h2>Begin anew</h2>
      <div class="row">
        <Choose words="Begin anew with another table" />
        <button onClick={() => void store.example()}>Open the guided example</button>
      </div>
      <p class="quiet">Both take the place of the table, the graph and the answers here; another folder begins another project.</p>
    </section>
  );
}
