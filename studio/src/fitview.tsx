// The fit: its preset, how far it is, and what came of it.

import { store, useStore } from "./store";
import type { Job } from "./types";

const PRESETS = [
  ["auto", "Starts from lines; curves and networks go where rows that were left out ask for them. The default."],
  ["linear", "Full-information maximum likelihood for lines, to convergence. Quick."],
  ["paper", "The algorithm of the paper as printed. For comparison; slow."],
] as const;

export function FitView() {
  const { project, job, history: { now: drawing }, table } = useStore();
  const running = job?.state === "running";
  const model = project?.model;
  return (
    <section class="page">
      <h1>Fit</h1>
      <p>
        A causal flow is fitted to the table as it is, by the likelihood of what each row shows. No row is dropped and
        nothing is imputed first.
      </p>
      <fieldset disabled={running}>
        <legend>Preset</legend>
        {PRESETS.map(([name, words]) => (
          <label class="choice" key={name}>
            <input
              type="radio"
              name="preset"
              checked={drawing.preset === name}
              onChange={() => { store.note({ preset: name }); }}
            />
            <span><strong>{name}</strong> <span class="quiet">{words}</span></span>
          </label>
        ))}
        <label class="field">
          Seed
          <input
            type="number"
            min="0"
            step="1"
            value={drawing.seed}
            onChange={(event) => {
              const seed = Math.round(Number(event.currentTarget.value));
              if (seed >= 0 && seed < 2 ** 31) store.note({ seed });
            }}
          />
          <span class="quiet">the same seed gives the same numbers</span>
        </label>
      </fieldset>
      <div class="row">
        <button class="primary" disabled={running || !table || !drawing.nodes.length} onClick={() => void store.job("fit")}>
          {project?.interrupted && !running ? "Go on with the fit" : model ? "Fit again" : "Fit"}
        </button>
        {(!table || !drawing.nodes.length) && <span class="quiet">A table and a graph come first.</span>}
      </div>
      {project?.interrupted && !running && (
        <p class="quiet">
          A fit was stopped. It goes on where graph, kinds, preset and seed are as they were, and begins anew otherwise.
        </p>
      )}
      <Progress task="fit" />
      {model && !running && (
        <>
          <h2>The fitted model</h2>
          {!store.fitted && <p class="flag">The graph or the kinds have changed since. Answers are about what was fitted; fit again to ask about what is drawn.</p>}
          <p class="quiet">Fitted in {model.seconds} s. What each node earned:</p>
          <div class="scroll">
            <table>
              <thead><tr><th scope="col">Node</th><th scope="col">Form</th></tr></thead>
              <tbody>
                {Object.entries(model.forms).map(([name, form]) => <tr key={name}><th scope="row">{name}</th><td>{form}</td></tr>)}
              </tbody>
            </table>
          </div>
          {model.unlikely.map((sentence) => <p key={sentence} class="flag">Unlikely value: {sentence}.</p>)}
          <details><summary>The model in full</summary><pre>{model.card}</pre></details>
          <button class="primary" onClick={() => { store.go("ask"); }}>Ask</button>
        </>
      )}
    </section>
  );
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(0)} s`;
  return `${String(Math.floor(seconds / 60))} min ${(seconds % 60).toFixed(0)} s`;
}

const WORDS: Record<Job["task"], string> = { fit: "Fitting", ask: "Answering", report: "Writing the report" };

export function Progress({ task }: { task: Job["task"] }) {
  const { job } = useStore();
  if (job?.task !== task) {
    if (job?.state !== "running") return null;
    return <p class="quiet" role="status">{WORDS[job.task]} is under way; one thing at a time.</p>;
  }
  if (job.state === "done") return null;
  if (job.state !== "running") {
    return <p class={job.state === "stopped" ? "notice" : "notice careful"} role="alert">{job.sentence}</p>;
  }
  return (
    <div class="progress" role="status">
      <div class="row">
        <strong>{job.stage || WORDS[task]}</strong>
        <span class="quiet">
          {job.total > 0 && `${String(job.done)} of ${String(job.total)}; `}
          {duration(job.seconds)} so far{job.left !== null && `, about ${duration(job.left)} left in this stage`}
        </span>
        <span class="gap" />
        <button type="button" onClick={() => void store.job("cancel")}>Cancel</button>
      </div>
      {job.total > 0 ? <progress aria-label={job.stage} max={job.total} value={job.done} /> : <progress aria-label="under way" />}
      {job.note && <p class="quiet">{job.note}</p>}
    </div>
  );
}
