// Modals and the "are you sure" dialog, as real <dialog> elements: focus stays inside, Escape closes.

import { drawBlocks } from "./blocks.js";
import { h } from "./dom.js";
import { textObject } from "./words.js";

const typed = new Map();
let shown = "";
let onTop = [];
let unsent = null; // What the window itself would not send: the view, and the sentence by its field.
let doAct = async () => ({});

/** `act(name, more)` asks the stand-in to act as the chosen person. */
export function startModal(act) {
  doAct = act;
  const dialog = document.getElementById("modal");
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    doAct("dismiss", {});
  });
}

/** Show the view on top, or none. Drawn anew only when it has changed. */
export function drawModal(views) {
  onTop = views;
  const dialog = document.getElementById("modal");
  const view = views.at(-1);
  if (!view) {
    if (dialog.open) dialog.close();
    shown = "";
    unsent = null;
    typed.clear();
    return;
  }
  const errors = unsent?.id === view.id && unsent.hash === view.hash ? unsent.errors : view.errors;
  const now = JSON.stringify([view.id, view.hash, errors]);
  if (now !== shown) {
    const focused = dialog.contains(document.activeElement) ? document.activeElement.dataset.focus : "";
    const top = dialog.querySelector(".modal-body")?.scrollTop ?? 0;
    dialog.replaceChildren(drawView({ ...view, errors }));
    shown = now;
    if (!dialog.open) dialog.showModal();
    dialog.querySelector(".modal-body").scrollTop = top;
    const wrong = dialog.querySelector("[aria-invalid]");
    const again = focused && dialog.querySelector(`[data-focus="${CSS.escape(focused)}"]`);
    (wrong ?? (again || dialog.querySelector("[autofocus], .control, footer button")))?.focus();
  }
}

function fieldsOf(view) {
  if (!typed.has(view.id)) typed.set(view.id, new Map());
  return typed.get(view.id);
}

function drawView(view) {
  const fields = fieldsOf(view);
  const general = h("div", { class: "error", role: "alert" }, view.errors[""] ?? "");
  const context = {
    fields,
    errors: view.errors,
    confirm: confirmDialog,
    press: (index) => doAct("press", { button: index }),
  };
  const submit = view.submit && h("button", { type: "submit", class: "primary" }, textObject(view.submit));
  const form = h(
    "form",
    { class: "view", novalidate: true },
    h("h2", {}, textObject(view.title)),
    h("div", { class: "modal-body" }, drawBlocks(view.blocks, context), general),
    h(
      "footer",
      {},
      h("button", { type: "button", onclick: () => doAct("dismiss", {}) }, view.close ? textObject(view.close) : "Close"),
      submit,
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!submit) return;
    submit.disabled = true;
    const inputs = new Set(view.blocks.filter((block) => block.type === "input").map((block) => block.block_id));
    const values = Object.fromEntries([...fields].filter(([name]) => inputs.has(name)));
    const answer = await doAct("submit", { values }, { quiet: true });
    submit.disabled = false;
    unsent = answer.done === false ? whatIsWrong(view, answer.why) : null;
    shown = ""; // Drawn anew even if the same is wrong again: the sentence is heard, and the field has the focus.
    drawModal(onTop);
  });
  return form;
}

/** What the window would not send, at the field that the stand-in names by its id. */
function whatIsWrong(view, why) {
  const block = view.blocks.find((each) => why.startsWith(`${each.block_id}: `));
  const sentence = block ? why.slice(block.block_id.length + 2) : why;
  return { id: view.id, hash: view.hash, errors: { [block?.block_id ?? ""]: sentence } };
}

/** A button's confirm dialog: true if the person goes on. */
export function confirmDialog(question) {
  const dialog = document.getElementById("confirm");
  return new Promise((resolve) => {
    const answer = (yes) => () => {
      dialog.close();
      resolve(yes);
    };
    dialog.oncancel = () => resolve(false);
    dialog.replaceChildren(
      h(
        "div",
        { class: "view" },
        h("h2", {}, textObject(question.title)),
        h("div", { class: "modal-body para" }, textObject(question.text)),
        h(
          "footer",
          {},
          h("button", { type: "button", onclick: answer(false) }, textObject(question.deny)),
          h(
            "button",
            { type: "button", class: question.style === "danger" ? "danger" : "primary", onclick: answer(true) },
            textObject(question.confirm),
          ),
        ),
      ),
    );
    dialog.showModal();
  });
}
