// What is shown instead of a queue that has no jobs yet, or is not there: its first job, to be
// pasted, with this server's port and what else a client needs to reach it.
import { overview_link } from "./address";
import { state } from "./api";
import type { QueueRef } from "./api";
import { escaped, is_addressable, segment_of, shown, text_of } from "./bytes";
import { h, replace } from "./dom";
import { copy_button } from "./notices";
import { ask_to_make } from "./queue_actions";
import { Tabs, empty } from "./view";

type Language = "redis-cli" | "Python" | "TypeScript";

// The name of a queue as a literal; null: it cannot be written there.
type Literal = (queue: string) => string | null;

const quoted = (mark: string, wide: (point: string) => string): Literal => (queue) => {
  const text = text_of(queue);
  const plain = text?.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`);
  return plain === undefined ? null : mark + escaped(plain, wide) + mark;
};

const LITERAL: Record<Language, Literal> = {
  "redis-cli": (queue) => {
    const text = text_of(queue);
    if (text !== null && /^[\w:.][\w:.-]*$/.test(text)) return text;
    if (queue.includes("%00")) return null;
    if (text !== null && escaped(text, () => "") === text) {
      return `'${text.replaceAll("'", "'\\''")}'`;
    }
    // As bash, zsh and others write bytes.
    return `$'${queue.replace(/%(..)/g, "\\x$1")}'`;
  },
  Python: quoted('"', (point) => `\\U${point.padStart(8, "0")}`),
  TypeScript: quoted("'", (point) => `\\u{${point}}`),
};

const USUAL_PORT = 6379;

// Whether only TLS leads to this server.
function only_tls(): boolean {
  return !state.session?.port && !!state.session?.tls_port;
}

function port_of_server(): number {
  return state.session?.port || state.session?.tls_port || USUAL_PORT;
}

// The user as a segment; null: nobody has to log in. The page knows its own user.
function user_of_server(): string | null {
  if (!state.session?.password_needed) return null;
  return (segment_of(state.session, "user") ?? "USER").replaceAll("'", "%27");
}

function url_of_server(host: string, db: number): string {
  const user = user_of_server();
  return `${only_tls() ? "rediss" : "redis"}://${user === null ? "" : `${user}:PASSWORD@`}${host}:`
    + `${port_of_server()}${db ? `/${db}` : ""}`;
}

function options_of_cli(host: string, db: number): string {
  const usual = host === "localhost" || host === "127.0.0.1";
  const user = user_of_server();
  return (only_tls() ? " --tls" : "") + (usual ? "" : ` -h ${host.replace(/^\[|\]$/g, "")}`)
    + (port_of_server() === USUAL_PORT ? "" : ` -p ${port_of_server()}`) + (db ? ` -n ${db}` : "")
    + (user === null ? "" : ` --user ${LITERAL["redis-cli"](user) ?? "USER"} -a PASSWORD`);
}

// `urgent`: whether the queue has a band of this name.
function code(language: Language, queue: string, db: number, urgent: boolean): string {
  const host = location.hostname || "localhost";
  const url = url_of_server(host, db);
  if (language === "Python") {
    return `from sluice import Queue\n\nqueue = Queue(${queue}, "${url}")\n`
      + `job = queue.add({"to": "ada"}${urgent ? ', pri="high"' : ""})\n`
      + "print(job.id, job.state, \"at position\", job.position)\n";
  }
  if (language === "TypeScript") {
    return "import { Queue } from '@sluice/queue'\n\n"
      + `const queue = new Queue(${queue}, { url: '${url}' })\n`
      + `const job = await queue.add({ to: 'ada' }${urgent ? ", { pri: 'high' }" : ""})\n`
      + "console.log(job.id, job.state, 'at position', job.position)\nqueue.close()\n";
  }
  const band = urgent ? " PRI HIGH" : "";
  return `redis-cli${options_of_cli(host, db)} Q.ADD ${queue} '*' '{"to":"ada"}'${band}\n`;
}

// What the code cannot say.
function notes(): (HTMLElement | null)[] {
  const note = (on: boolean | null | undefined, text: string) => on ? h("p.dim", {}, text) : null;
  const { session } = state;
  return [note(session?.password_needed, "This server wants a password: put a user's name and "
    + "password there."),
  note(only_tls(), "This server accepts only TLS. A client also needs the authority's certificate "
    + "(redis-cli: --cacert) if its system does not know it, and its own (--cert, --key) if the "
    + "server asks for one."),
  note(!session?.port && !session?.tls_port, "This server does not show its port here; "
    + `${USUAL_PORT} is the usual one.`)];
}

// Tabs with the code of each language. `queue`: a segment; `bands`: where they are known.
export function first_job(queue: string, db: number, bands = ["high"]): HTMLElement {
  const languages: Language[] = ["redis-cli", "Python", "TypeScript"];
  const body = h("div.code");
  const buttons = languages.map((language) =>
    h("button", { click: () => choose(language) }, language));
  const tabs = new Tabs("first-job", "Language", buttons, body);
  const choose = (language: Language) => {
    tabs.choose(buttons[languages.indexOf(language)]);
    const name = LITERAL[language](queue);
    if (name === null) {
      return replace(body, h("p.dim", {}, "A name of such bytes cannot be written here."));
    }
    const text = code(language, name, db, bands.some((band) => band.toLowerCase() === "high"));
    replace(body, h("pre", { tabindex: 0 }, text), copy_button(() => text));
  };
  choose("redis-cli");
  return h("div.first-job", {}, tabs.root, body, ...notes());
}

export function unused_queue({ queue, db }: QueueRef, bands: string[]): HTMLElement {
  return empty("This queue is empty",
    h("p", {}, "No job has been added to it yet. Paste this into a terminal or a program:"),
    first_job(queue, db, bands));
}

export function missing_queue({ queue, db }: QueueRef): HTMLElement {
  const make = h("button.primary", { click: () => ask_to_make(db, queue) }, "Make it…");
  const find = h("button", { title: "Find a queue (/)", click: () =>
    document.querySelector<HTMLInputElement>(".search input")?.select() }, "Find another…");
  return empty(`There is no queue ${shown(queue)}`,
    h("p", {}, "It was deleted, or it has not had a job or a setting yet, or its name is another "
      + "one."),
    h("div.buttons", {}, state.may("operate") && is_addressable(queue) ? make : null, find,
      h("a.button", { href: overview_link(db) }, "All queues")),
    h("p", {}, "Its first job makes it. Paste this into a terminal or a program:"),
    first_job(queue, db));
}
