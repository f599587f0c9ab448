// The page: steps above, one of them below.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { AskView } from "./askview";
import { FitView } from "./fitview";
import { GraphView } from "./graphview";
import { Guide } from "./guide";
import { CodeView, ProjectView, ReportView } from "./restviews";
import { store, STEPS, useStore, type Step } from "./store";
import { TableView } from "./tableview";

const NAMES: Record<Step, string> = {
  table: "Table",
  graph: "Graph",
  fit: "Fit",
  ask: "Ask",
  report: "Report",
  code: "Code",
  project: "Project",
};

const VIEWS: Record<Step, () => preact.JSX.Element | null> = {
  table: TableView,
  graph: GraphView,
  fit: FitView,
  ask: AskView,
  report: ReportView,
  code: CodeView,
  project: ProjectView,
};

function isDone(step: Step): boolean {
  const { project, table, history: { now } } = store.state;
  if (step === "table") return !!table;
  if (step === "graph") return now.nodes.length > 0;
  if (step === "fit") return !!project?.model && store.fitted;
  if (step === "ask") return !!project?.answers.length;
  return step === "report" && !!project?.report;
}

function App() {
  const state = useStore();
  useEffect(() => {
    void store.begin();
    const keys = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest("input:not([type=radio]):not([type=checkbox]), textarea");
      if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      if (event.shiftKey) store.redo();
      else store.undo();
    };
    document.addEventListener("keydown", keys);
    window.addEventListener("beforeunload", () => void store.save());
    return () => { document.removeEventListener("keydown", keys); };
  }, []);
  const View = VIEWS[state.step];
  if (!state.project) return <p class="page quiet" role="status">{state.notice ?? "Opening…"}</p>;
  return (
    <>
      <header class="top">
        <span class="name">misscnf <span>studio</span></span>
        <nav aria-label="Steps">
          {STEPS.map((step) => (
            <button key={step} aria-current={step === state.step ? "step" : undefined} class={isDone(step) ? "done" : ""} onClick={() => { store.go(step); }}>
              {NAMES[step]}
            </button>
          ))}
        </nav>
      </header>
      <Guide />
      {state.gone && <p class="banner careful" role="alert">The studio does not answer. Is it still running in its terminal? What was saved is safe; this page goes on as soon as it is back.</p>}
      {state.conflict && (
        <div class="banner careful" role="alert">
          <p>The drawing was changed in another tab.</p>
          <button onClick={() => void store.takeTheirs()}>Take that one</button>
          <button onClick={() => void store.keepMine()}>Keep mine</button>
        </div>
      )}
      {state.notice && state.step !== "graph" && <p class="banner careful" role="alert">{state.notice}</p>}
      <main id="main"><View /></main>
    </>
  );
}

render(<App />, document.getElementById("app")!);
