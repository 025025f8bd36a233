// Messages outside the views: temporary notices, with an undo if possible, and questions before
// irreversible actions.
import { h } from "./dom";
import type { Child } from "./dom";

const NOTICE_MS = 6000;
const UNDO_MS = 12_000;

// A part of the page from its start, so that screen readers hear what comes into it.
export const notices = h("div.notices", { role: "status", "aria-live": "polite" });

export function notice(text: string, options: { bad?: boolean; undo?: () => void } = {}): void {
  const box = h(options.bad ? "div.notice.bad" : "div.notice", {}, h("span", {}, text));
  const gone = () => box.remove();
  if (options.undo) {
    const undo = options.undo;
    box.append(h("button.link", { click: () => { gone(); undo(); } }, "Undo"));
  }
  box.append(h("button.icon", { click: gone, "aria-label": "Dismiss" }, "×"));
  notices.append(box);
  while (notices.childElementCount > 4) notices.firstElementChild?.remove();
  setTimeout(gone, options.undo ? UNDO_MS : NOTICE_MS);
}

export function words_of_error(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function failure(what: string, error: unknown): void {
  notice(`${what}: ${words_of_error(error)}`, { bad: true });
}

// Runs an action and reports the result.
export async function act(what: string, failed: string, change: () => Promise<unknown>,
                          undo?: () => void): Promise<boolean> {
  try {
    await change();
  } catch (error) {
    failure(failed, error);
    return false;
  }
  notice(what, { undo });
  return true;
}

export interface Question {
  title: string;
  content?: Child[];
  confirm: string;
  danger?: boolean;
  // If it throws, the dialog stays open and shows the error. `stopped`: whether it was closed.
  done: (stopped: () => boolean) => Promise<void>;
}

let open_dialog: HTMLDialogElement | null = null;

export function dialog_is_open(): boolean {
  return open_dialog?.open === true;
}

export function close_dialog(): void {
  open_dialog?.close();
}

function open_it(dialog: HTMLDialogElement): void {
  close_dialog();
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (open_dialog === dialog) open_dialog = null;
  });
  // A click on the dialog element itself is outside its content.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  open_dialog = dialog;
  dialog.showModal();
}

export function ask(question: Question): void {
  const fault = h("p.fault", { role: "alert", hidden: true });
  const confirm = h(question.danger ? "button.primary.danger" : "button.primary",
    { type: "submit" }, question.confirm);
  const dialog = h("dialog", { "aria-label": question.title });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    confirm.disabled = true;
    fault.hidden = true;
    try {
      await question.done(() => !dialog.open);
      dialog.close();
    } catch (error) {
      if (!dialog.open) return failure(question.title, error);
      fault.textContent = words_of_error(error);
      fault.hidden = false;
      confirm.disabled = false;
    }
  };
  dialog.append(h("form", { submit, novalidate: true },
    h("h2", {}, question.title), ...(question.content ?? []).map((child) =>
      child instanceof Node ? child : h("p", {}, String(child ?? ""))),
    fault,
    h("div.buttons", {},
      h("button", { type: "button", click: () => dialog.close() }, "Back"), confirm)));
  open_it(dialog);
  const field = dialog.querySelector<HTMLElement>("input, textarea, select");
  (field ?? confirm).focus();
}

export function tell(title: string, ...content: Child[]): void {
  const dialog = h("dialog", { "aria-label": title });
  dialog.append(h("h2", {}, title), ...content.filter((each): each is Node =>
    each instanceof Node), h("div.buttons", {},
    h("button.primary", { click: () => dialog.close() }, "Close")));
  open_it(dialog);
}

export function field(label: string, input: HTMLElement, hint = ""): HTMLElement {
  return h("label.field", {}, h("span", {}, label), input,
    hint ? h("small", {}, hint) : null);
}

// Copies the text as it is at the click.
export function copy_button(text: () => string): HTMLElement {
  return h("button.copy", { type: "button", click: () => {
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error(
      "the browser allows this only on https and on localhost"));
    void act("Copied.", "Not copied", () => copied);
  } }, "Copy");
}
