// Dialogs: questions before irreversible actions, forms, and what is told until it is closed.
import { focus_heading, h } from "./dom";
import type { Child } from "./dom";
import { failure, words_of_error } from "./notices";

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

// Takes a dialog with fields away; what is returned brings it back, with all that was entered.
export function put_aside(): (() => void) | null {
  const dialog = open_dialog;
  close_dialog();
  if (dialog === null || dialog.querySelector("form") === null) return null;
  return () => {
    close_dialog();
    show_it(dialog);
  };
}

function show_it(dialog: HTMLDialogElement): void {
  document.body.append(dialog);
  open_dialog = dialog;
  dialog.showModal();
}

// What was done may take along the button that has opened the dialog: then the view's heading is
// in focus, not nothing.
function follow_focus(opener: Element | null): void {
  if (opener === null || opener === document.body) return;
  const observer = new MutationObserver(() => {
    if (document.activeElement === opener) return;
    observer.disconnect();
    focus_heading();
  });
  observer.observe(document.body, { childList: true, subtree: true });
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
  show_it(dialog);
}

export function ask(question: Question): void {
  const fault = h("p.fault", { role: "alert", hidden: true });
  const confirm = h(question.danger ? "button.primary.danger" : "button.primary",
    { type: "submit" }, question.confirm);
  const dialog = h("dialog", { "aria-label": question.title });
  const opener = document.activeElement;
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    confirm.disabled = true;
    fault.hidden = true;
    try {
      await question.done(() => !dialog.open);
      dialog.close();
      follow_focus(opener);
    } catch (error) {
      confirm.disabled = false;
      if (!dialog.open) return failure(question.title, error);
      fault.textContent = words_of_error(error);
      fault.hidden = false;
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
