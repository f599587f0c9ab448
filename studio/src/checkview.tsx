// What the holes leave identified, in words, as one draws.

import { store, useStore } from "./store";
import type { Report } from "./types";

export function CheckView() {
  const { check, history: { now: drawing } } = useStore();
  const { report, refused, busy } = check;
  if (!drawing.nodes.length) return <p class="quiet">As you draw, what the holes leave identified stands here.</p>;
  return (
    <div class="check" aria-live="polite" aria-busy={busy}>
      <h2>
        Check {busy && <span class="quiet">…</span>}
      </h2>
      {refused !== null && (
        <div class="verdict careful">
          <strong>Nothing can be said yet</strong>
          <p>{refused}</p>
        </div>
      )}
      {report && refused === null && <Told report={report} />}
    </div>
  );
}

function about(report: Report): string {
  return report.effect ? `the effect ${report.effect[0]} → ${report.effect[1]}` : "all families";
}

function Told({ report }: { report: Report }) {
  const open = report.nodes.filter((family) => family.status !== "covered");
  const seen = report.nodes.filter((family) => family.status === "covered");
  const verdict = report.ok
    ? "Nothing in these rows speaks against it"
    : open.length
      ? `Not guaranteed for ${open.map((family) => family.node).join(", ")}`
      : report.estimand && !report.estimand.identified
        ? "Not identified by this graph"
        : "The rows speak against this graph";
  const denied = report.facts["rows against the graph"];
  return (
    <>
      <div class={`verdict ${report.ok ? "fine" : "careful"}`}>
        <strong>{verdict}</strong>
        <p>
          Asked: {about(report)}. {report.ok ? "Every family that it needs is seen whole." : ""}
        </p>
      </div>
      {report.checked < report.among && (
        <p class="quiet">
          From {report.checked.toLocaleString("en")} of {report.among.toLocaleString("en")} rows, drawn at random.{" "}
          <button class="link" onClick={() => { store.look(true); }}>Check all rows</button>
        </p>
      )}
      {report.quick && <p class="quiet" role="status">Whether the rows speak against the graph in finer ways is still being looked at…</p>}
      {report.estimand && <p>{report.estimand.sentence}</p>}
      {denied && <p class="flag">{denied}</p>}
      {report.recovery.map((sentence) => <p key={sentence}>{sentence}</p>)}
      {report.structural_holes.map((hole) => <p key={hole.question}><strong>Please ask:</strong> {hole.question}</p>)}
      {report.unlikely.map((sentence) => <p key={sentence}>Unlikely value: {sentence}.</p>)}
      {open.length > 0 && (
        <ul class="families">
          {open.map((family) => (
            <li key={family.node}>
              <span class="tag careful">look</span>
              <span>{family.sentence}</span>
            </li>
          ))}
        </ul>
      )}
      {seen.length > 0 && (
        <details class="seen">
          <summary>
            <span class="tag fine">covered</span> {seen.map((family) => family.node).join(", ")}
          </summary>
          <ul class="families">
            {seen.map((family) => <li key={family.node}><strong>{family.node}</strong><span>{family.sentence}</span></li>)}
          </ul>
        </details>
      )}
      <p class="quiet">{report.full_pattern}</p>
      <details>
        <summary>All that was found</summary>
        <pre>{report.summary}</pre>
      </details>
    </>
  );
}
